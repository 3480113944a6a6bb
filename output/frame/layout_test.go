package frame

import (
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"drover/output/event"
	"drover/output/internal/board"
	"drover/output/internal/term"
)

// spoken drops the rows that lines print only because they have no region.
func spoken(printed string) string {
	var kept strings.Builder
	for l := range strings.Lines(printed) {
		if !strings.HasPrefix(l, "▸ ") {
			kept.WriteString(l)
		}
	}
	return kept.String()
}

// TestACutStreamHasTheHistoryThatLinesPrint: wherever it was cut, whatever is
// shown, and whenever somebody looked.
func TestACutStreamHasTheHistoryThatLinesPrint(t *testing.T) {
	rnd := rand.New(rand.NewPCG(21, 4))
	streams := [][]event.Event{withoutJobs(recorded(t)), invented(rnd), invented(rnd)}
	for i, events := range streams {
		for n := range len(events) + 1 {
			show := board.Show{Reasoning: n%2 == 0}
			columns := []int{80, 40, 25}[n%3]
			want := spoken(printed(t, events[:n], columns, show))
			if d := cmp.Diff(want, committed(events[:n], columns, show, rnd)); d != "" {
				t.Fatalf("stream %d cut after %d events, %d columns: %s", i, n, columns, d)
			}
		}
	}
}

// withoutJobs leaves out what has lanes of its own: only within one is the order
// of rows the same whenever somebody looks.
func withoutJobs(events []event.Event) (out []event.Event) {
	for _, e := range events {
		if !strings.HasPrefix(e.Body.Type(), "job.") {
			out = append(out, e)
		}
	}
	return out
}

// TestTheSceneFitsEveryTerminal in each moment of a run, and has no rows when it
// is over.
func TestTheSceneFitsEveryTerminal(t *testing.T) {
	rnd := rand.New(rand.NewPCG(8, 15))
	sgr := regexp.MustCompile("\x1b\\[[0-9;]*m")
	for range 30 {
		events := append(recorded(t), invented(rnd)...)
		if rnd.IntN(2) == 0 {
			events = append(invented(rnd), recorded(t)...)
		}
		s := newScene(Options{Color: rnd.IntN(2) == 0, ASCII: rnd.IntN(2) == 0, Show: board.Show{Agents: rnd.IntN(2) == 0, Reasoning: rnd.IntN(2) == 0}})
		for _, e := range events {
			s.take(e)
			size := Size{Columns: 20 + rnd.IntN(181), Rows: 1 + rnd.IntN(60)}
			now := e.Time.Add(time.Duration(rnd.IntN(5000)) * time.Millisecond)
			if rnd.IntN(2) == 0 {
				s.commit(now, size)
			}
			rows := s.rows(now, size)
			if len(rows) > max(1, min(size.Rows/3, 12)) {
				t.Fatalf("%v has %d rows: %q", size, len(rows), rows)
			}
			for _, row := range rows {
				plain := sgr.ReplaceAllString(row, "")
				if w := term.Width(plain); w > min(size.Columns-2, 100) || strings.ContainsAny(plain, "\n\r\t\x1b") {
					t.Fatalf("%v: %q has %d cells", size, plain, w)
				}
			}
		}
		s.end()
		if s.commit(time.Time{}, Size{80, 24}); s.live() || !s.due().IsZero() {
			t.Fatal("it is over, and clocks run")
		}
		if rows := s.rows(time.Now(), Size{80, 24}); rows != nil {
			t.Fatalf("it is over, and there is %q", rows)
		}
	}
}

// BenchmarkSceneIntake is one piece of output of 100 bytes.
func BenchmarkSceneIntake(b *testing.B) {
	e := event.Event{Time: start, Origin: event.Origin{SessionID: "s", Turn: 1}, Body: prints("1", strings.Repeat("x", 98)+"\r\n")}
	s := newScene(Options{})
	s.take(event.Event{Time: start, Origin: e.Origin, Body: called("1", "yes")})
	for b.Loop() {
		s.take(e)
	}
}
