package store

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"drover/output/fault"
)

// both runs a test on SQLite, and on PostgreSQL where DROVER_POSTGRES names a
// server: what one keeps, the other keeps.
func both(t *testing.T, test func(t *testing.T, s *Store, job string)) {
	job := fmt.Sprintf("t%d", time.Now().UnixNano())
	t.Run("sqlite", func(t *testing.T) {
		s, err := OpenFolder(t.Context(), t.TempDir(), true)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		test(t, s, job)
	})
	t.Run("postgres", func(t *testing.T) {
		address := os.Getenv("DROVER_POSTGRES")
		if address == "" {
			t.Skip("DROVER_POSTGRES is not set: there is no server; SQLite keeps the same contract")
		}
		s, err := OpenPostgres(t.Context(), address)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		defer func() { _ = s.Remove(context.Background(), job) }()
		test(t, s, job)
	})
}

// load brings rows with the given texts into the job.
func load(t *testing.T, s *Store, job string, texts ...string) *Loader {
	t.Helper()
	ctx := t.Context()
	var l *Loader
	err := s.Tx(ctx, func(tx *sql.Tx) error {
		if err := s.PutJob(ctx, tx, &Job{ID: job, Name: "n", Spec: []byte(`{}`), Header: []string{"a"}, Total: len(texts), Status: "pending"}); err != nil {
			return err
		}
		var err error
		if l, err = s.Load(ctx, tx, job); err != nil {
			return err
		}
		for i, text := range texts {
			id, _, _ := strings.Cut(text, "=")
			if err := l.Add(ctx, &Row{ItemID: id, Index: i, SHA256: text, Cells: []string{text, "line\nbreak \x00 ü"}}); err != nil {
				return err
			}
		}
		return l.Finish(ctx, tx)
	})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func claim(t *testing.T, s *Store, job, item, worker string) *Row {
	t.Helper()
	r, err := s.Claim(t.Context(), job, item, worker, false)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func finish(t *testing.T, s *Store, r *Row) bool {
	t.Helper()
	var kept bool
	err := s.Tx(t.Context(), func(tx *sql.Tx) (err error) {
		kept, err = s.Finish(t.Context(), tx, r, false)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return kept
}

func TestRowIsClaimedAndFinishedOnce(t *testing.T) {
	both(t, func(t *testing.T, s *Store, job string) {
		load(t, s, job, "a=1", "b=1")
		r := claim(t, s, job, "a", "w1")
		if r == nil || r.Attempt != 1 || len(r.Cells) != 2 || r.Cells[1] != "line\nbreak \x00 ü" {
			t.Fatalf("claimed %+v", r)
		}
		if again := claim(t, s, job, "a", "w2"); again != nil {
			t.Errorf("it was claimed twice: %+v", again)
		}
		cost := 0.25
		r.Status, r.Result, r.CostUSD, r.InputTokens = "completed", []byte(`{"n":1}`), &cost, 7
		stolen := *r
		stolen.Worker = "w2"
		if finish(t, s, &stolen) {
			t.Error("another worker finished it")
		}
		if !finish(t, s, r) || finish(t, s, r) {
			t.Error("it was not finished once")
		}
		page, err := s.Page(t.Context(), job, -1, 10, true)
		if err != nil || len(page) != 2 {
			t.Fatal(page, err)
		}
		got := page[0]
		if got.Status != "completed" || string(got.Result) != `{"n":1}` || got.CostUSD == nil || *got.CostUSD != cost || got.ReportedAt.IsZero() || got.CompletedAt.IsZero() {
			t.Errorf("kept %+v", got)
		}
		if page[1].CostUSD != nil || page[1].Status != "pending" {
			t.Errorf("the other row is %+v", page[1])
		}
	})
}

func TestReleasedRowCanBeClaimedAgain(t *testing.T) {
	both(t, func(t *testing.T, s *Store, job string) {
		load(t, s, job, "a=1")
		half := 0.5
		for attempt, uncounted := range []bool{false, true, false} {
			r := claim(t, s, job, "a", "w")
			if want := []int{1, 2, 2}[attempt]; r == nil || r.Attempt != want {
				t.Fatalf("claim %d: %+v", attempt, r)
			}
			r.CostUSD, r.Error = &half, "down"
			if ok, err := s.Release(t.Context(), r, uncounted); !ok || err != nil {
				t.Fatal(ok, err)
			}
			if ok, _ := s.Release(t.Context(), r, uncounted); ok {
				t.Error("it was released twice")
			}
		}
		if cost, err := s.Cost(t.Context(), job); err != nil || cost == nil || *cost != 1.5 {
			t.Errorf("the attempts cost %v, %v", cost, err)
		}
	})
}

func TestClaimAndEndWhoseAnswerWasLostAreFoundAgain(t *testing.T) {
	both(t, func(t *testing.T, s *Store, job string) {
		load(t, s, job, "a=1")
		claim(t, s, job, "a", "w1")
		if r, err := s.Claim(t.Context(), job, "a", "w2", true); r != nil || err != nil {
			t.Errorf("another worker got it: %+v, %v", r, err)
		}
		r, err := s.Claim(t.Context(), job, "a", "w1", true)
		if err != nil || r == nil || r.Attempt != 1 || len(r.Cells) != 2 {
			t.Fatalf("its own worker did not get it again: %+v, %v", r, err)
		}
		kept := func(released, want bool) {
			t.Helper()
			if got, err := s.Kept(t.Context(), r, released); err != nil || got != want {
				t.Errorf("kept: %v, %v; want %v", got, err, want)
			}
		}
		kept(false, false)
		kept(true, false)
		if ok, err := s.Release(t.Context(), r, false); !ok || err != nil {
			t.Fatal(ok, err)
		}
		kept(false, false)
		kept(true, true)
		r = claim(t, s, job, "a", "w1")
		r.Status = "completed"
		if !finish(t, s, r) {
			t.Fatal("not finished")
		}
		kept(false, true)
		kept(true, false)
		stolen := *r
		stolen.Worker = "w2"
		if got, err := s.Kept(t.Context(), &stolen, false); err != nil || got {
			t.Errorf("another worker's end counts as kept: %v", err)
		}
	})
}

func TestTextOfAnAgentIsStoredWhateverItIs(t *testing.T) {
	both(t, func(t *testing.T, s *Store, job string) {
		load(t, s, job, "a=1")
		r := claim(t, s, job, "a", "w")
		r.Error, r.Patch = "a\x00b\xff", "/p\xfe"
		if ok, err := s.Release(t.Context(), r, false); !ok || err != nil {
			t.Fatal(ok, err)
		}
		r = claim(t, s, job, "a", "w")
		r.Status, r.Error, r.Result = "failed", "a\x00b\xff", []byte("{\"n\":\"\xff\\u0000\"}")
		if !finish(t, s, r) {
			t.Fatal("not finished")
		}
		if err := s.End(t.Context(), job, "failed", "c\x00"); err != nil {
			t.Error(err)
		}
		page, err := s.Page(t.Context(), job, -1, 1, false)
		if err != nil || len(page) != 1 || page[0].Error != "a\ufffdb\ufffd" || string(page[0].Result) != "{\"n\":\"\ufffd\\u0000\"}" {
			t.Errorf("kept %+v, %v", page[0], err)
		}
	})
}

func TestChangedTableKeepsWhatHasNotChanged(t *testing.T) {
	both(t, func(t *testing.T, s *Store, job string) {
		load(t, s, job, "a=1", "b=1", "c=1")
		for _, id := range []string{"a", "b", "c"} {
			r := claim(t, s, job, id, "w")
			r.Status, r.Result = "completed", []byte(`{}`)
			finish(t, s, r)
		}
		l := load(t, s, job, "d=1", "c=1", "b=2")
		if l.Added != 1 || l.Kept != 1 || l.Changed != 1 || l.Removed != 1 {
			t.Errorf("added %d, kept %d, changed %d, removed %d", l.Added, l.Kept, l.Changed, l.Removed)
		}
		page, err := s.Page(t.Context(), job, -1, 10, true)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, r := range page {
			got = append(got, r.ItemID+" "+r.Status+" "+r.Cells[0])
		}
		if want := []string{"d pending d=1", "c completed c=1", "b pending b=2"}; !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}

func TestRowsOfADeadWorkerAreSetFree(t *testing.T) {
	dir := t.TempDir()
	s, err := OpenFolder(t.Context(), dir, true)
	if err != nil {
		t.Fatal(err)
	}
	load(t, s, "j", "a=1", "b=1")
	claim(t, s, "j", "a", "w1")
	if _, err := OpenFolder(t.Context(), dir, true); fault.From(err).Code != "job_locked" || fault.From(err).Exit != fault.Session {
		t.Errorf("a second process got in: %v", err)
	}
	if !Locked(dir) {
		t.Error("nobody sees the lock")
	}
	_ = s.Close() // as a kill does
	if s, err = OpenFolder(t.Context(), dir, true); err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	r := claim(t, s, "j", "a", "w2")
	if r == nil || r.Lost != 1 || r.Attempt != 2 {
		t.Errorf("the row is %+v", r)
	}
}

func TestSweepTakesOnlyFromTheDead(t *testing.T) {
	both(t, func(t *testing.T, s *Store, job string) {
		if s.Embedded() {
			t.Skip("an embedded database has one worker, and a lock that says whether it lives")
		}
		ctx := t.Context()
		load(t, s, job, "a=1", "b=1")
		if err := s.Beat(ctx, job+"-alive", "h", 1); err != nil {
			t.Fatal(err)
		}
		claim(t, s, job, "a", job+"-alive")
		dead := claim(t, s, job, "b", job+"-dead")
		if _, err := s.Sweep(ctx); err != nil {
			t.Fatal(err)
		}
		by, err := s.Counts(ctx, job)
		if err != nil || by["running"] != 1 || by["pending"] != 1 {
			t.Errorf("%v, %v", by, err)
		}
		dead.Status = "completed"
		if finish(t, s, dead) {
			t.Error("a row that was taken away was finished")
		}
		held, err := s.Held(ctx, job+"-alive")
		if err != nil || held[job+"\x00a"] != 1 {
			t.Errorf("%v, %v", held, err)
		}
	})
}

func TestPasswordOfTheServerIsInNoError(t *testing.T) {
	_, err := OpenPostgres(t.Context(), "postgres://u:sesame77@127.0.0.1:1/none?connect_timeout=1")
	if err == nil || strings.Contains(err.Error(), "sesame77") || fault.From(err).Exit != fault.Environment {
		t.Errorf("got %v", err)
	}
}

func TestFolderThatIsNoJobSaysSo(t *testing.T) {
	_, err := OpenFolder(t.Context(), filepath.Join(t.TempDir(), "none"), false)
	if f := fault.From(err); f.Code != "job_unknown" || f.Exit != fault.Session {
		t.Errorf("got %v", err)
	}
}
