package board

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"drover/output/event"
)

// sessions are a root and two agents of it, with their paths.
var sessions = []struct{ id, parent, agent string }{{"s", "", ""}, {"a", "s", "/root/a"}, {"b", "a", "/root/a/b"}}

// tangle is a run of up to eight calls in up to three sessions at once, in an
// order in which they could happen: each session and each call keeps its own.
func tangle(rnd *rand.Rand) []event.Event {
	var threads [][]event.Event
	for i := range 1 + rnd.IntN(len(sessions)) {
		s := sessions[i]
		origin := event.Origin{SessionID: s.id, ParentSessionID: s.parent, Agent: s.agent, Turn: 1}
		var text []event.Event
		for n := range rnd.IntN(4) {
			text = append(text, event.Event{Origin: origin, Body: event.MessageDeltaEvent{MessageID: fmt.Sprint(s.id, n), Delta: []string{"some ", "words\n", "of\na text"}[rnd.IntN(3)]}})
		}
		threads = append(threads, text)
		for n := range rnd.IntN(9) {
			id := fmt.Sprint(s.id, ".", n)
			var call []event.Event
			for _, b := range lifeOf(id, rnd) {
				call = append(call, event.Event{Origin: origin, Body: b})
			}
			threads = append(threads, call)
		}
	}
	var out []event.Event
	now := start
	for len(threads) > 0 {
		i := rnd.IntN(len(threads))
		if len(threads[i]) == 0 {
			threads = slices.Delete(threads, i, i+1)
			continue
		}
		e := threads[i][0]
		threads[i] = threads[i][1:]
		now = now.Add(time.Duration(rnd.IntN(700)) * time.Millisecond)
		e.Time, e.RunID = now, "r"
		out = append(out, e)
	}
	return out
}

// lifeOf are the events of a call, from its first to the one that ends it, if
// there is one.
func lifeOf(id string, rnd *rand.Rand) []event.Body {
	bodies := []event.Body{renamed(started, id), renamed(args, id), renamed(call, id), renamed(running, id), renamed(output, id)}
	bodies = bodies[:1+rnd.IntN(len(bodies))]
	switch rnd.IntN(5) {
	case 0:
		return bodies // its turn ends before it
	case 1:
		return append(bodies, renamed(stopped, id))
	case 2:
		return append(bodies, renamed(failed, id))
	}
	return append(bodies, renamed(exited, id), renamed(done, id))
}

// lanes collects what is printed by the lane that it is of.
func lanes(p Painter, into map[string][]string, items []Item) {
	for _, it := range items {
		switch {
		case it.Frame != nil:
			into[it.Frame.Agent] = append(into[it.Frame.Agent], p.Frame(it.Frame)...)
		case it.Text != nil:
			into[it.Text.Agent] = append(into[it.Text.Agent], it.Text.Lines...)
		}
	}
}

// TestEachLaneIsPrintedInItsOrderWheneverSomebodyLooks: what is printed must not
// depend on clocks, nor on how much room there is.
func TestEachLaneIsPrintedInItsOrderWheneverSomebodyLooks(t *testing.T) {
	rnd := rand.New(rand.NewPCG(5, 8))
	p := Painter{Style: NewStyle(false, true), Columns: 80}
	for round := range 2000 {
		events := tangle(rnd)
		byEvents, byClock := map[string][]string{}, map[string][]string{}
		one, other := New(Show{Agents: true}), New(Show{Agents: true})
		began, printed := map[string][]string{}, map[string][]string{}
		watch := func(items []Item) {
			for _, it := range items {
				if it.Frame != nil && !it.Frame.noCall {
					printed[it.Frame.Agent] = append(printed[it.Frame.Agent], it.Frame.ID)
					if !it.Frame.State.Final() {
						t.Fatalf("call %s is printed in state %d", it.Frame.ID, it.Frame.State)
					}
				}
			}
			lanes(p, byClock, items)
		}
		for _, e := range events {
			if id := callOf(e.Body); id != "" && !slices.Contains(began[e.Agent], id) {
				began[e.Agent] = append(began[e.Agent], id)
			}
			one.Take(e)
			lanes(p, byEvents, one.Ready())
			other.Take(e)
			if rnd.IntN(3) == 0 {
				watch(other.ReadyAt(e.Time.Add(time.Duration(rnd.IntN(2500))*time.Millisecond), rnd.IntN(4) == 0))
			}
		}
		one.End()
		lanes(p, byEvents, one.Ready())
		other.End()
		watch(other.ReadyAt(time.Time{}, false))
		if d := cmp.Diff(byEvents, byClock); d != "" {
			t.Fatalf("round %d: it matters when somebody looks: %s", round, d)
		}
		if d := cmp.Diff(began, printed); d != "" {
			t.Fatalf("round %d: the order is not that of the calls: %s", round, d)
		}
	}
}

func TestAFinalFrameWaitsForWhatMayBelongToIt(t *testing.T) {
	second := at(3, renamed(call, "d"))
	for _, tt := range []struct {
		name  string
		after float64
		room  bool
		event *event.Event
		goes  bool
	}{
		{"at once", 2, true, nil, false},
		{"after less than a second", 2.9, true, nil, false},
		{"after a second", 3, true, nil, true},
		{"at once where there is no room", 2, false, nil, true},
		{"at once when another begins", 2, true, &second, true},
		{"at once when the turn ends", 2, true, ptr(at(2, event.TurnFinishedEvent{})), true},
		{"at once when the session ends", 2, true, ptr(at(2, event.SessionFinishedEvent{})), true},
		{"at once when the run ends", 2, true, ptr(at(2, event.RunFinishedEvent{})), true},
	} {
		b := New(Show{})
		b.Take(at(0, call))
		b.Take(at(2, done))
		if due := b.Due(); !due.Equal(start.Add(3 * time.Second)) {
			t.Errorf("%s: it is due at %v", tt.name, due)
		}
		if tt.event != nil {
			b.Take(*tt.event)
		}
		items := b.ReadyAt(start.Add(time.Duration(tt.after*float64(time.Second))), !tt.room)
		if got := len(items) > 0 && items[0].Frame != nil; got != tt.goes {
			t.Errorf("%s: printed is %v, want %v", tt.name, got, tt.goes)
		}
		if tt.goes && !b.Due().IsZero() {
			t.Errorf("%s: something is due after it", tt.name)
		}
	}
}

// TestLanesArePrintedInTheOrderInWhichTheyCouldBe, although somebody looks only
// when everything is over.
func TestLanesArePrintedInTheOrderInWhichTheyCouldBe(t *testing.T) {
	b := New(Show{})
	for _, e := range []event.Event{
		at(0, renamed(call, "1")), of("other", at(0, renamed(call, "2"))), of("third", at(0, renamed(call, "3"))),
		of("third", at(1, renamed(done, "3"))), of("other", at(1, renamed(done, "2"))), at(1, renamed(done, "1")),
		of("other", at(2, event.TurnFinishedEvent{})), at(2, renamed(call, "4")), of("third", at(3, event.TurnFinishedEvent{})),
	} {
		b.Take(e)
	}
	var got []string
	for _, it := range b.Ready() {
		got = append(got, it.Frame.ID)
	}
	if d := cmp.Diff([]string{"2", "1", "3"}, got); d != "" {
		t.Error(d)
	}
}

// TestWhatAnAgentDoesAfterItsCallIsPrintedOnce: at which moment the frame of the
// call was printed must not matter.
func TestWhatAnAgentDoesAfterItsCallIsPrintedOnce(t *testing.T) {
	child := func(seconds float64, b event.Body) event.Event {
		e := of("a", at(seconds, b))
		e.ParentSessionID, e.Agent = "s", "/root/a"
		return e
	}
	events := []event.Event{
		at(0, event.ToolCallEvent{ToolCallID: "spawn", ToolName: "spawn_agent", Display: "spawn: /root/a"}),
		child(0, event.SessionStartedEvent{SpawnedByToolCallID: "spawn"}),
		child(1, renamed(call, "1")), child(1, renamed(failed, "1")), child(1, renamed(failed, "1")),
		at(2, event.ToolResultEvent{ToolCallID: "spawn"}),
		child(9, renamed(call, "2")), child(9, renamed(failed, "2")),
		child(10, event.SessionFinishedEvent{Status: "completed"}),
	}
	want := []string{
		"+ spawn_agent  /root/a                                                    2.0s",
		"  x exec_command  go test                                          error, 0.0s",
		"+ agent  /root/a 2 calls, 2 failed                                         10s",
		"  x exec_command  go test                                          error, 0.0s",
	}
	p := Painter{Style: NewStyle(false, true), Columns: 80}
	for looks := range 1 << len(events) {
		b := New(Show{})
		var rows []string
		for i, e := range events {
			b.Take(e)
			if looks>>i&1 == 1 {
				rows = append(rows, print(p, b.ReadyAt(e.Time.Add(2*time.Second), false))...)
			}
		}
		b.End()
		rows = append(rows, print(p, b.Ready())...)
		if d := cmp.Diff(want, rows); d != "" {
			t.Fatalf("looked at %b: %s", looks, d)
		}
	}
}

func TestHistoryThatWasLeftOpenHoldsNothingBack(t *testing.T) {
	b := New(Show{})
	p := Painter{Style: NewStyle(false, true), Columns: 80}
	replayed := func(seconds float64, body event.Body) event.Event {
		e := at(seconds, body)
		e.Replayed = true
		return e
	}
	b.Take(at(100, event.RunStartedEvent{}))
	b.Take(replayed(0, renamed(call, "old")))
	b.Take(replayed(7, event.MessageDeltaEvent{MessageID: "m", Delta: "it was\nnever fin"}))
	if got := b.Ready(); got != nil {
		t.Errorf("printed before it was over: %v", got)
	}
	b.Take(at(100, event.TurnStartedEvent{}))
	want := []string{"! exec_command  go test                                       incomplete, 7.0s", "text it was", "text never fin"}
	if d := cmp.Diff(want, print(p, b.Ready())); d != "" {
		t.Error(d)
	}
	b.Take(at(101, call))
	if rows := p.Region(b, start.Add(103*time.Second), 24); len(rows) != 2 || !strings.HasPrefix(rows[0], "> exec_command  go test") {
		t.Errorf("the region is %q", rows)
	}
}
