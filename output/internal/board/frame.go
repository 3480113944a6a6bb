package board

import (
	"time"

	"drover/output/event"
	"drover/output/internal/term"
)

// State is the state of a frame.
type State int

// The states, in the order in which they are reached.
const (
	Pending State = iota
	Streaming
	Awaiting
	Executing
	Done
	Failed
	Denied
	Cancelled
	Incomplete
)

// Final tells whether a frame in this state accepts no more changes but its
// arguments and output.
func (s State) Final() bool { return s >= Done }

// Frame is one call as a person sees it.
type Frame struct {
	ID, Name, Display string
	// Agent is the sub-agent that called, if those have lanes of their own.
	Agent string
	State State
	// Args is the end of the argument text while it streams, ArgsBytes how
	// much of it has come.
	Args      string
	ArgsBytes int
	// Output is nil for frames that show none.
	Output *term.Discipline
	// Command says that the call ran one; ExitCode is nil after a signal.
	Command  bool
	ExitCode *int
	Signal   string
	TimedOut bool
	Timeout  time.Duration
	Took     time.Duration
	// Rule, DecidedBy and Reason are those of a refusal.
	Rule, DecidedBy, Reason string
	Summary, Content        string
	Plan                    []event.PlanItem
	// Children are the agents that the call has spawned, Troubles the calls of
	// them that went wrong before it had its own end.
	Children []*Child
	Troubles Troubles

	// agent says that a sub-agent called, noCall that it is no call at all: a
	// command or an agent that went on after one.
	agent, noCall bool
	// replayed says that it is history, which is only shown when it is final.
	replayed bool
	// tails are the outputs of its commands; the first is Output.
	tails []tail

	began, ended time.Time
	// event is the one that made it final.
	event     int
	committed bool
	// minutes is for how long it was said to be still running.
	minutes int
}

// keptArgs is how much of streaming arguments a preview can need.
const keptArgs = 1 << 10

func newFrame(id string, now time.Time) *Frame {
	return &Frame{ID: id, Name: "call", began: now, Output: term.NewDiscipline()}
}

// Began is when the call began, and when it started to run once it has.
func (f *Frame) Began() time.Time { return f.began }

// callOf returns the call that an event is about, "" if it is about none.
func callOf(b event.Body) string {
	switch b := b.(type) {
	case event.ToolCallStartEvent:
		return b.ToolCallID
	case event.ToolCallArgsDeltaEvent:
		return b.ToolCallID
	case event.ToolCallEvent:
		return b.ToolCallID
	case event.ToolDecisionEvent:
		return b.ToolCallID
	case event.ToolStatusEvent:
		return b.ToolCallID
	case event.ToolResultEvent:
		return b.ToolCallID
	case event.ToolIncompleteEvent:
		return b.ToolCallID
	case event.TerminalNewRunningEvent:
		return b.ToolCallID
	case event.TerminalAppendStringEvent:
		return b.ToolCallID
	case event.TerminalCompletedEvent:
		return b.ToolCallID
	}
	return ""
}

// take changes the frame by one event. Any event may be the first, and none
// changes a state that is final.
func (f *Frame) take(e event.Event) {
	if f.committed {
		return
	}
	switch b := e.Body.(type) {
	case event.ToolCallStartEvent:
		f.name(b.ServerName, b.ToolName)
	case event.ToolCallArgsDeltaEvent:
		f.stream(b.Delta)
	case event.ToolCallEvent:
		f.name(b.ServerName, b.ToolName)
		f.Display = b.Display
		f.Args = ""
		if f.State == Pending || f.State == Streaming {
			f.State = Executing
		}
	case event.ToolDecisionEvent:
		f.name("", b.ToolName)
		if b.Effect == "deny" {
			f.Rule, f.DecidedBy, f.Reason = b.RuleID, string(b.DecidedBy), b.Reason
		}
	case event.ToolApprovalRequestEvent:
		f.name(b.ServerName, b.ToolName)
		if !f.State.Final() {
			f.State = Awaiting
			if f.Display == "" {
				f.Display = b.Display
			}
		}
	case event.ToolApprovalResponseEvent:
		if b.Approved {
			f.run()
		}
	case event.ToolStatusEvent:
		f.status(b, e.Time)
	case event.TerminalNewRunningEvent:
		f.run()
		f.tail(b.TerminalID)
	case event.TerminalAppendStringEvent:
		f.run()
		if b.Encoding != "base64" {
			f.write(b.TerminalID, b.Delta)
		}
	case event.TerminalCompletedEvent:
		f.run()
		f.endTail(b.TerminalID)
		if !f.State.Final() {
			f.Command, f.ExitCode, f.Signal = true, b.ExitCode, b.Signal
			f.TimedOut = b.TimedOut
		}
	case event.ToolResultEvent:
		f.finish(b, e.Time)
	case event.ToolIncompleteEvent:
		f.name("", b.ToolName)
		state := Incomplete
		if b.Reason == "cancelled" || b.Reason == "interrupted" {
			state = Cancelled
		}
		f.end(state, e.Time)
	}
}

func (f *Frame) name(server, tool string) {
	if tool == "" || f.Name != "call" {
		return
	}
	f.Name = tool
	if server != "" {
		f.Name = server + "." + tool
	}
}

func (f *Frame) stream(delta string) {
	switch f.State {
	case Pending:
		f.State = Streaming
	case Streaming, Awaiting:
	default:
		return
	}
	f.ArgsBytes += len(delta)
	f.Args += delta
	if n := len(f.Args) - 2*keptArgs; n > 0 {
		f.Args = f.Args[n+keptArgs:]
	}
}

func (f *Frame) status(b event.ToolStatusEvent, now time.Time) {
	f.name("", b.ToolName)
	if f.State.Final() {
		return
	}
	switch b.Status {
	case event.StatusAwaiting:
		f.State = Awaiting
	case event.StatusRunning:
		f.began = now
		f.Timeout = time.Duration(b.TimeoutSec * float64(time.Second))
		f.run()
	}
}

func (f *Frame) run() {
	if !f.State.Final() {
		f.State = Executing
	}
}

// finish merges the result. A second one is ignored.
func (f *Frame) finish(r event.ToolResultEvent, now time.Time) {
	f.name("", r.ToolName)
	if f.State.Final() {
		return
	}
	f.Summary = r.Summary
	if r.IsError || f.BadExit() {
		f.Content = r.Content
		if f.Content == "" {
			f.Content = r.Display
		}
	}
	if r.Error != nil && r.Error.Code == "timeout" {
		f.TimedOut = true
	}
	switch {
	case r.Denied:
		f.end(Denied, now)
	case r.IsError:
		f.end(Failed, now)
	default:
		f.end(Done, now)
	}
	if r.DurationMS > 0 {
		f.Took = time.Duration(r.DurationMS) * time.Millisecond
	}
}

func (f *Frame) end(s State, now time.Time) {
	if f.State.Final() {
		return
	}
	f.State, f.ended = s, now
	if now.After(f.began) {
		f.Took = now.Sub(f.began)
	}
}

// BadExit tells whether the call's last command ended with anything but 0.
func (f *Frame) BadExit() bool {
	return f.Command && (f.ExitCode == nil || *f.ExitCode != 0)
}

// timedOut tells whether the call, or its last command, had no more time.
func (f *Frame) timedOut() bool {
	return (f.State == Done || f.State == Failed) && f.TimedOut
}
