package session

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"drover/output/event"
	"drover/output/fault"
)

var epoch = time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)

// line makes the n-th event of a log.
func line(n int, b event.Body) event.Event {
	return event.Event{Seq: int64(n), Time: epoch.Add(time.Duration(n) * time.Second), RunID: "run_a",
		Origin: event.Origin{SessionID: "ses_a"}, Body: b}
}

func create(t *testing.T, state, id string) *Session {
	t.Helper()
	s, err := Create(state, id)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func emit(t *testing.T, s *Session, n int, b event.Body) {
	t.Helper()
	if err := s.Emit(line(n, b)); err != nil {
		t.Fatal(err)
	}
}

func closed(t *testing.T, s *Session) {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// readAll returns what a reader sees: types, or "keep " with the value.
func readAll(t *testing.T, state, id string) ([]string, []Damage) {
	t.Helper()
	r, err := OpenReader(state, id)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var seen []string
	for {
		rec, err := r.Next()
		if errors.Is(err, io.EOF) {
			return seen, r.Damage()
		}
		if err != nil {
			t.Fatal(err)
		}
		if rec.Kept != nil {
			seen = append(seen, "keep "+string(rec.Kept))
		} else {
			seen = append(seen, rec.Type)
		}
	}
}

func wantExit(t *testing.T, err error, code string, exit fault.Exit) {
	t.Helper()
	var f *fault.Error
	if !errors.As(err, &f) || f.Code != code || f.Exit != exit {
		t.Fatalf("got %v, want %s with exit %d", err, code, exit)
	}
}

func TestEventsAndPrivateRecordsAreReadInOrder(t *testing.T) {
	state := t.TempDir()
	s := create(t, state, "ses_a")
	emit(t, s, 1, event.RunStartedEvent{Cwd: "/x"})
	if err := s.Keep(map[string]string{"sig": "a\nb"}); err != nil {
		t.Fatal(err)
	}
	emit(t, s, 2, event.MessageEvent{Role: "user", Text: "one\ntwo\u2028three"})
	emit(t, s, 3, event.TurnFinishedEvent{Status: "completed"})
	emit(t, s, 4, event.RunFinishedEvent{Status: "success"})
	closed(t, s)

	got, damage := readAll(t, state, "ses_a")
	want := []string{"run.started", `keep {"sig":"a\nb"}`, "message", "turn.finished", "run.finished"}
	if d := cmp.Diff(want, got); d != "" || damage != nil {
		t.Fatalf("damage %v, records (-want +got):\n%s", damage, d)
	}
	if err := s.Emit(line(5, event.HeartbeatEvent{})); !errors.Is(err, os.ErrClosed) {
		t.Fatalf("emit after close: %v", err)
	}
}

func TestEverythingIsPrivateToItsOwner(t *testing.T) {
	state := filepath.Join(t.TempDir(), "up", "drover")
	if err := os.MkdirAll(state, 0o755); err != nil {
		t.Fatal(err)
	}
	s := create(t, state, "ses_a")
	emit(t, s, 1, event.RunStartedEvent{})
	if _, err := s.Artifact("out.txt", []byte("x")); err != nil {
		t.Fatal(err)
	}
	closed(t, s)
	files := 0
	err := filepath.WalkDir(state, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		want := fs.FileMode(0o600)
		if d.IsDir() {
			want = 0o700
		} else {
			files++
		}
		if info.Mode().Perm() != want {
			t.Errorf("%s has mode %v, want %v", path, info.Mode().Perm(), want)
		}
		return nil
	})
	if err != nil || files != 2 {
		t.Fatalf("%d files, %v", files, err)
	}
}

func TestSecondWriterIsRefused(t *testing.T) {
	state := t.TempDir()
	s := create(t, state, "ses_a")
	emit(t, s, 1, event.RunStartedEvent{})
	_, err := Create(state, "ses_a")
	wantExit(t, err, "session_exists", fault.Session)
	_, _, err = Open(state, "ses_a")
	wantExit(t, err, "session_locked", fault.Session)
	wantExit(t, Remove(state, "ses_a", nil), "session_locked", fault.Session)
	closed(t, s)
	again, _, err := Open(state, "ses_a")
	if err != nil {
		t.Fatal(err)
	}
	closed(t, again)
}

func TestIDsThatAreNoNamesAreRefused(t *testing.T) {
	state := t.TempDir()
	outside := filepath.Join(state, "precious")
	if err := os.Mkdir(outside, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"", ".", "..", "../precious", "a/b", `a\b`, "/etc", "-rf", "a b", "a\x00", strings.Repeat("a", 129), "é"} {
		_, err := Create(state, id)
		wantExit(t, err, "session_id", fault.Session)
		_, _, err = Open(state, id)
		wantExit(t, err, "session_id", fault.Session)
		_, err = OpenReader(state, id)
		wantExit(t, err, "session_id", fault.Session)
		wantExit(t, Remove(state, id, nil), "session_id", fault.Session)
	}
	if _, err := os.Stat(outside); err != nil {
		t.Fatal(err)
	}
}

func TestStateFolderThatCannotBeMadeIsAnEnvironmentFault(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := Create(filepath.Join(file, "drover"), "ses_a")
	wantExit(t, err, "state_folder", fault.Environment)
}

// sample makes a finished log and returns its bytes.
func sample(t *testing.T, state string) []byte {
	t.Helper()
	s := create(t, state, "ses_a")
	emit(t, s, 1, event.RunStartedEvent{Cwd: "/x"})
	for n := 2; n < 8; n++ {
		emit(t, s, n, event.MessageEvent{Role: "user", Text: "ä \" \\ {} line"})
	}
	if err := s.Keep(map[string]any{"n": []int{1, 2}}); err != nil {
		t.Fatal(err)
	}
	emit(t, s, 8, event.RunFinishedEvent{Status: "success"})
	closed(t, s)
	data, err := os.ReadFile(filepath.Join(Dir(state, "ses_a"), logName))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestLogCutAtAnyByteKeepsItsWholeRecordsAndGoesOn(t *testing.T) {
	state := t.TempDir()
	data := sample(t, state)
	path := filepath.Join(Dir(state, "ses_a"), logName)
	firstLine := bytes.IndexByte(data, '\n')
	for cut := firstLine; cut <= len(data); cut++ {
		if err := os.WriteFile(path, data[:cut], 0o600); err != nil {
			t.Fatal(err)
		}
		// The brace that ends a record is its last byte but the newline.
		whole := bytes.Count(data[:cut], []byte("}\n"))
		end := bytes.LastIndexByte(data[:cut], '\n') + 1
		if cut < len(data) && data[cut] == '\n' {
			whole, end = whole+1, cut
		}
		before, damage := readAll(t, state, "ses_a")
		if len(before) != whole {
			t.Fatalf("cut at %d: %d records, want %d", cut, len(before), whole)
		}
		var torn Damage
		if end < cut {
			torn = Damage{Offset: int64(end), Bytes: int64(cut - end)}
		}
		if len(damage) > 1 || len(damage) == 1 && damage[0] != torn {
			t.Fatalf("cut at %d: damage %v, want %v", cut, damage, torn)
		}
		s, got, err := Open(state, "ses_a")
		if err != nil || got != torn {
			t.Fatalf("cut at %d: opened with %v, %v, want %v", cut, got, err, torn)
		}
		emit(t, s, 9, event.NoticeEvent{Code: "resumed"})
		closed(t, s)
		after, damage := readAll(t, state, "ses_a")
		if d := cmp.Diff(append(before, "notice"), after); d != "" || damage != nil {
			t.Fatalf("cut at %d: damage %v, records (-want +got):\n%s", cut, damage, d)
		}
	}
}

func TestLogWithoutWholeLineIsNotOpened(t *testing.T) {
	state := t.TempDir()
	data := sample(t, state)
	path := filepath.Join(Dir(state, "ses_a"), logName)
	for _, cut := range []int{0, 1, bytes.IndexByte(data, '\n') - 1} {
		if err := os.WriteFile(path, data[:cut], 0o600); err != nil {
			t.Fatal(err)
		}
		_, _, err := Open(state, "ses_a")
		wantExit(t, err, "session_empty", fault.Session)
		if left, err := os.ReadFile(path); err != nil || len(left) != cut {
			t.Fatalf("the log was changed to %d bytes, %v", len(left), err)
		}
	}
}

func TestDamageInTheMiddleIsPassedOverAndKept(t *testing.T) {
	state := t.TempDir()
	s := create(t, state, "ses_a")
	emit(t, s, 1, event.RunStartedEvent{})
	closed(t, s)
	path := filepath.Join(Dir(state, "ses_a"), logName)
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	bad := append(bytes.Repeat([]byte{0}, 100), '\n')
	if err := os.WriteFile(path, bytes.Join([][]byte{good, bad, good, bad, []byte("{\"v\":1")}, nil), 0o600); err != nil {
		t.Fatal(err)
	}
	s, torn, err := Open(state, "ses_a")
	if err != nil {
		t.Fatal(err)
	}
	closed(t, s)
	n := int64(len(good))
	if want := (Damage{Offset: 2*n + 101, Bytes: 101 + 6}); torn != want {
		t.Errorf("cut %v, want %v", torn, want)
	}
	got, damage := readAll(t, state, "ses_a")
	if d := cmp.Diff([]string{"run.started", "run.started"}, got); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]Damage{{Offset: n, Bytes: 101}}, damage); d != "" {
		t.Error(d)
	}
}

func TestLaterVersionIsRefusedAndLaterRecordsAreLeftAlone(t *testing.T) {
	state := t.TempDir()
	s := create(t, state, "ses_a")
	closed(t, s)
	path := filepath.Join(Dir(state, "ses_a"), logName)
	write := func(text string) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(`{"v":2,"type":"run.started"}` + "\n")
	_, _, err := Open(state, "ses_a")
	wantExit(t, err, "session_version", fault.Session)

	write(`{"v":1,"type":"run.started"}` + "\n" + `{"record":"index","at":7}` + "\n")
	s, torn, err := Open(state, "ses_a")
	if err != nil || torn != (Damage{}) {
		t.Fatalf("got %v, %v", torn, err)
	}
	closed(t, s)
}

func TestParallelKeepAndEmitWriteWholeLines(t *testing.T) {
	state := t.TempDir()
	s := create(t, state, "ses_a")
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 50 {
				if err := s.Keep("x"); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for n := range 50 {
		emit(t, s, n+1, event.TurnFinishedEvent{Status: "completed"})
	}
	wg.Wait()
	closed(t, s)
	got, damage := readAll(t, state, "ses_a")
	if len(got) != 250 || damage != nil {
		t.Fatalf("%d records, damage %v", len(got), damage)
	}
}

func TestIDsSortByTime(t *testing.T) {
	last := ""
	for ms := range 100 {
		id := newID("ses_", epoch.Add(time.Duration(ms*997)*time.Millisecond))
		if id <= last || checkID(id) != nil || len(id) != 23 {
			t.Fatalf("%q after %q", id, last)
		}
		last = id
	}
	if NewID() == NewID() || !strings.HasPrefix(NewRunID(), "run_") {
		t.Fatal("ids are not what they should be")
	}
}

func TestStateFolderComesFromTheEnvironment(t *testing.T) {
	for _, c := range []struct{ xdg, home, want string }{
		{"/s", "/h", "/s/drover"},
		{"", "/h", "/h/.local/state/drover"},
		{"relative", "/h", "/h/.local/state/drover"},
	} {
		got := StateDir(func(k string) string { return map[string]string{"XDG_STATE_HOME": c.xdg, "HOME": c.home}[k] })
		if got != c.want {
			t.Errorf("%+v: got %q", c, got)
		}
	}
	_, err := Create(StateDir(func(string) string { return "" }), "ses_a")
	wantExit(t, err, "state_folder", fault.Environment)
}

func TestEphemeralSessionLeavesNothing(t *testing.T) {
	s := Ephemeral("ses_a")
	emit(t, s, 1, event.RunStartedEvent{})
	if err := s.Keep("x"); err != nil {
		t.Fatal(err)
	}
	a, err := s.Artifact("out", []byte("data"))
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(filepath.Dir(a.Path))
	if err != nil || info.Mode().Perm() != 0o700 || s.Dir() != "" || !s.IsEphemeral() {
		t.Fatalf("%v, %v, dir %q", info, err, s.Dir())
	}
	closed(t, s)
	if _, err := os.Lstat(filepath.Dir(a.Path)); !os.IsNotExist(err) {
		t.Fatalf("left behind: %v", err)
	}
	if _, err := s.Artifact("late", nil); err == nil {
		t.Fatal("an artifact was made after the end")
	}
}

// FuzzReader checks that any bytes are read to their end, that records and
// damage cover them, and that a repaired log has no damage at its end.
func FuzzReader(f *testing.F) {
	f.Add([]byte(`{"v":1,"type":"a"}` + "\n" + `{"record":"keep","data":1}` + "\n{\"v"))
	f.Add([]byte("\n\n{}\nnull\n\x00"))
	f.Fuzz(func(t *testing.T, data []byte) {
		state := t.TempDir()
		if err := os.MkdirAll(Dir(state, "ses_a"), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(Dir(state, "ses_a"), logName), data, 0o600); err != nil {
			t.Fatal(err)
		}
		before, _ := readAll(t, state, "ses_a")
		s, _, err := Open(state, "ses_a")
		if err != nil {
			return
		}
		if err := s.Keep("end"); err != nil {
			t.Fatal(err)
		}
		closed(t, s)
		after, _ := readAll(t, state, "ses_a")
		if d := cmp.Diff(append(before, `keep "end"`), after); d != "" {
			t.Fatal(d)
		}
	})
}

func BenchmarkEmit(b *testing.B) {
	s, err := Create(b.TempDir(), "ses_a")
	if err != nil {
		b.Fatal(err)
	}
	e := line(1, event.MessageDeltaEvent{MessageID: "m1", Delta: "some words of text"})
	b.ReportAllocs()
	for b.Loop() {
		if err := s.Emit(e); err != nil {
			b.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		b.Fatal(err)
	}
}
