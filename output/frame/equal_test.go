package frame

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"drover/output/event"
	"drover/output/internal/board"
	"drover/output/lines"
)

// recorded reads the stream that has every type of event in it.
func recorded(t testing.TB) []event.Event {
	t.Helper()
	f, err := os.Open("../event/testdata/stream.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	return read(t, f)
}

func read(t testing.TB, from io.Reader) []event.Event {
	t.Helper()
	var out []event.Event
	for r := event.NewReader(from); ; {
		e, err := r.Next()
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, e)
	}
}

// printed is what lines make of events.
func printed(t testing.TB, events []event.Event, columns int, show board.Show) string {
	t.Helper()
	var b bytes.Buffer
	sink := lines.New(&b, lines.Options{Width: columns, Show: show})
	for _, e := range events {
		if err := sink.Emit(e); err != nil {
			t.Fatal(err)
		}
	}
	if err := sink.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// committed is what frames move into history, looked at now and then.
func committed(events []event.Event, columns int, show board.Show, rnd *rand.Rand) string {
	s := newScene(Options{Show: show})
	size := Size{columns, 24}
	var b strings.Builder
	look := func(now time.Time) {
		for _, row := range s.commit(now, size) {
			b.WriteString(row + "\n")
		}
		s.rows(now, size)
	}
	for _, e := range events {
		s.take(e)
		if rnd.IntN(3) == 0 {
			look(e.Time.Add(time.Duration(rnd.IntN(3000)) * time.Millisecond))
		}
	}
	s.end()
	look(time.Time{})
	return b.String()
}

// invented are events of a session in an order that a run could have: several
// calls at a time, with text before and between them.
func invented(rnd *rand.Rand) []event.Event {
	var out []event.Event
	now := start
	add := func(b event.Body) {
		now = now.Add(time.Duration(rnd.IntN(500)) * time.Millisecond)
		out = append(out, event.Event{Time: now, RunID: "r", Origin: event.Origin{SessionID: "s", Turn: 1}, Body: b})
	}
	for turn := range 4 {
		text := "m" + fmt.Sprint(turn)
		for range rnd.IntN(4) {
			add(event.MessageDeltaEvent{MessageID: text, Delta: "words\nand "})
		}
		var calls [][]event.Body
		for n := range rnd.IntN(8) {
			calls = append(calls, callOf(fmt.Sprintf("%d.%d", turn, n), rnd))
		}
		for len(calls) > 0 {
			i := rnd.IntN(len(calls))
			add(calls[i][0])
			if calls[i] = calls[i][1:]; len(calls[i]) == 0 {
				calls = append(calls[:i], calls[i+1:]...)
			}
			if rnd.IntN(20) == 0 {
				add(event.NoticeEvent{Level: "warning", Message: "careful"})
			}
		}
		add(event.TurnFinishedEvent{})
	}
	return out
}

// callOf are the events of one call, whatever becomes of it.
func callOf(id string, rnd *rand.Rand) []event.Body {
	out := []event.Body{begin(id), called(id, "go test ./...\x1b[2J"), runs(id)}
	for range rnd.IntN(9) {
		out = append(out, prints(id, "some\r\nlines\n"))
	}
	switch rnd.IntN(5) {
	case 0:
		return append(out, event.ToolIncompleteEvent{ToolCallID: id, Reason: "cancelled"})
	case 1:
		return append(out, event.ToolResultEvent{ToolCallID: id, IsError: true, Denied: true})
	case 2:
		return out // nothing more comes
	}
	return append(out, exits(id, rnd.IntN(2)), ends(id))
}

// TestHistoryIsWhatLinesPrint: it must not matter whether somebody looked.
func TestHistoryIsWhatLinesPrint(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	var session, job []event.Event
	for _, e := range recorded(t) { // only within a lane the order is the same
		if strings.HasPrefix(e.Body.Type(), "job.") {
			job = append(job, e)
		} else {
			session = append(session, e)
		}
	}
	streams := [][]event.Event{session, job}
	for range 100 {
		streams = append(streams, invented(rnd))
	}
	for i, events := range streams {
		for _, columns := range []int{20, 39, 40, 60, 80, 101, 200} {
			want := printed(t, events, columns, board.Show{})
			var kept []string
			for l := range strings.Lines(want) {
				if !strings.HasPrefix(l, "▸ ") { // said because nobody looks
					kept = append(kept, l)
				}
			}
			got := committed(events, columns, board.Show{}, rnd)
			if d := cmp.Diff(strings.Join(kept, ""), got); d != "" {
				t.Fatalf("stream %d at %d columns: %s", i, columns, d)
			}
		}
	}
}

// TestAStreamCutAnywhereLeavesNothingLive: whatever is missing, the end is
// final.
func TestAStreamCutAnywhereLeavesNothingLive(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 3))
	streams := [][]event.Event{recorded(t), invented(rnd)}
	for _, events := range streams {
		for n := range events {
			for _, show := range []board.Show{{}, {Agents: true, Reasoning: true}} {
				for row := range strings.Lines(committed(events[:n], 80, show, rnd)) {
					if strings.ContainsAny(row[:1], ">~") || strings.HasPrefix(row, "▸") || strings.HasPrefix(row, "◌") {
						t.Fatalf("cut at %d: %q is not final", n, row)
					}
				}
			}
		}
	}
}

// FuzzAnyStream shows any bytes as a stream, live and final.
func FuzzAnyStream(f *testing.F) {
	golden, err := os.ReadFile("../event/testdata/stream.jsonl")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(golden)
	f.Add([]byte(`{"type":"tool.call","tool_call_id":"1","tool_name":"\u001b]52;c;eA==\u0007"}`))
	f.Fuzz(func(t *testing.T, stream []byte) {
		st := newStage(t, 40, 12)
		r := event.NewReader(bytes.NewReader(stream))
		for n := range 200 {
			e, err := r.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			if err == nil {
				_ = st.Emit(e)
			}
			if n%5 == 0 {
				st.pass(pause)
			}
		}
		if err := st.Close(); err != nil {
			t.Fatal(err)
		}
	})
}
