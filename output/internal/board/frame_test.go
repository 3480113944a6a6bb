package board

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"drover/output/event"
)

// TestEveryEventInEveryState is the table of transitions: what a row leaves out
// stays as it is, and final states always do.
func TestEveryEventInEveryState(t *testing.T) {
	states := []State{Pending, Streaming, Awaiting, Executing, Done, Failed, Denied, Cancelled, Incomplete}
	to := func(s State) map[State]State {
		return map[State]State{Pending: s, Streaming: s, Awaiting: s, Executing: s}
	}
	status := func(s event.ToolStatus) event.Body { return event.ToolStatusEvent{ToolCallID: "c", Status: s} }
	lost := func(why event.IncompleteReason) event.Body {
		return event.ToolIncompleteEvent{ToolCallID: "c", Reason: why}
	}
	rows := []struct {
		body event.Body
		want map[State]State
	}{
		{started, nil},
		{args, map[State]State{Pending: Streaming}},
		{call, map[State]State{Pending: Executing, Streaming: Executing}},
		{event.ToolDecisionEvent{ToolCallID: "c", Effect: "allow"}, nil},
		{event.ToolDecisionEvent{ToolCallID: "c", Effect: "deny"}, nil},
		{status("pending"), nil}, {status("done"), nil}, {status("error"), nil}, {status("denied"), nil}, {status("incomplete"), nil},
		{awaiting, to(Awaiting)},
		{event.ToolApprovalRequestEvent{ToolCallID: "c"}, to(Awaiting)},
		{event.ToolApprovalResponseEvent{ToolCallID: "c", Approved: true}, to(Executing)},
		{event.ToolApprovalResponseEvent{ToolCallID: "c"}, nil}, // its result says so
		{running, to(Executing)},
		{event.TerminalNewRunningEvent{ToolCallID: "c", TerminalID: "t"}, to(Executing)},
		{output, to(Executing)},
		{exited, to(Executing)},
		{done, to(Done)},
		{failed, to(Failed)},
		{refused, to(Denied)},
		{event.ToolResultEvent{ToolCallID: "c", IsError: true, Error: &event.Err{Code: "timeout"}}, to(Failed)},
		{lost("cancelled"), to(Cancelled)}, {lost("interrupted"), to(Cancelled)},
		{lost("turn_ended"), to(Incomplete)}, {lost("crash"), to(Incomplete)}, {lost(""), to(Incomplete)},
	}
	for _, tt := range rows {
		for _, from := range states {
			want, ok := tt.want[from]
			if !ok {
				want = from
			}
			f := newFrame("c", start)
			f.State = from
			for n := range 2 { // a second one changes no more
				f.take(at(1, tt.body))
				if f.State != want {
					t.Errorf("%+v in state %d leads to %d, want %d (time %d)", tt.body, from, f.State, want, n+1)
				}
			}
		}
	}
}

// TestWhatEndsATurnEndsEachOfItsCalls, whatever state they are in and whatever
// lies between them.
func TestWhatEndsATurnEndsEachOfItsCalls(t *testing.T) {
	for _, end := range []event.Body{event.TurnFinishedEvent{}, event.SessionFinishedEvent{}, event.RunFinishedEvent{}, nil} {
		b := New(Show{})
		for i, bodies := range [][]event.Body{{started}, {started, args}, {call, awaiting}, {call, running}, {call, done}, {call, running, output}} {
			for _, body := range bodies {
				b.Take(at(float64(i), renamed(body, fmt.Sprint(i))))
			}
		}
		if end != nil {
			b.Take(at(9, end))
		} else {
			b.End()
		}
		var got []State
		for _, it := range b.Ready() {
			if it.Frame != nil {
				got = append(got, it.Frame.State)
			}
		}
		if d := cmp.Diff([]State{Incomplete, Incomplete, Incomplete, Incomplete, Done, Incomplete}, got); d != "" {
			t.Errorf("%T: %s", end, d)
		}
	}
}

// TestAnEventOfAnUnknownCallMakesItsFrame in the state that it implies.
func TestAnEventOfAnUnknownCallMakesItsFrame(t *testing.T) {
	for _, tt := range []struct {
		body event.Body
		want State
	}{
		{started, Pending}, {args, Streaming}, {call, Executing}, {awaiting, Awaiting}, {event.ToolApprovalRequestEvent{ToolCallID: "c"}, Awaiting},
		{running, Executing}, {output, Executing}, {exited, Executing}, {event.TerminalNewRunningEvent{ToolCallID: "c"}, Executing},
		{done, Done}, {failed, Failed}, {refused, Denied}, {stopped, Cancelled}, {lost, Incomplete},
	} {
		b := New(Show{})
		b.Take(at(0, tt.body))
		if f := b.frames["c"]; f == nil || f.State != tt.want {
			t.Errorf("%+v makes %+v", tt.body, f)
		}
	}
	b := New(Show{})
	b.Take(at(0, event.ToolApprovalResponseEvent{ToolCallID: "c", Approved: true}))
	if items := b.frames; len(items) != 0 {
		t.Errorf("an answer to nobody's question makes %v", items)
	}
}

func TestTextThatWasRevisedIsRemarked(t *testing.T) {
	got := show(80, at(0, event.MessageDeltaEvent{MessageID: "m", Delta: "one\ntwo"}), at(1, event.MessageEvent{MessageID: "m", Role: "assistant", Text: "three"}))
	if d := cmp.Diff([]string{"text one", "text two", "! text was revised, see the log"}, got); d != "" {
		t.Error(d)
	}
	got = show(80, at(0, event.MessageDeltaEvent{MessageID: "m", Delta: "one\ntwo"}), at(1, event.MessageEvent{MessageID: "m", Role: "assistant", Text: "one", Truncated: true}))
	if d := cmp.Diff([]string{"text one", "text two"}, got); d != "" {
		t.Error(d)
	}
	got = show(80, at(0, event.MessageEvent{MessageID: "m", Role: "assistant", Text: "whole\n\x1b[2Jtext"}), at(1, event.MessageEvent{MessageID: "u", Role: "user", Text: "prompt"}))
	if d := cmp.Diff([]string{"text whole", "text text"}, got); d != "" {
		t.Error(d)
	}
}
