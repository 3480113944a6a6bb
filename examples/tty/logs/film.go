package main

import (
	"encoding/json"
	"fmt"
	"io"
	"time"

	"drover/output/event"
	"drover/output/jsonl"
)

// film is a stream that is being written, with a clock that the writer moves.
type film struct {
	sink event.Sink
	now  time.Time
	seq  int64
	// session is whose events come next, turn its turn.
	session event.Origin
	calls   map[string]int
	denials []event.Denial
	err     error
}

// start begins a run and its first turn.
func start(w io.Writer) *film {
	f := &film{
		sink: jsonl.New(w), now: time.Date(2026, 9, 20, 10, 0, 0, 0, time.UTC),
		session: event.Origin{SessionID: "ses_1"}, calls: map[string]int{},
	}
	f.emit(event.RunStartedEvent{
		Schema: event.SchemaID, Product: "drover", Version: "0.1.0", Cwd: "/src/app", Model: "script:film.jsonl", Provider: "script",
		Policy: event.PolicyRef{Default: "allow", OnAsk: "deny", OnDeny: "report"}, PromptSource: "arg",
	})
	f.emit(event.SessionStartedEvent{})
	f.turn()
	return f
}

func (f *film) emit(b event.Body) { f.emitAs(f.session, b) }

func (f *film) emitAs(o event.Origin, b event.Body) {
	f.seq++
	if err := f.sink.Emit(event.Event{Seq: f.seq, Time: f.now, RunID: "run_film", Origin: o, Body: b}); f.err == nil {
		f.err = err
	}
}

// wait lets time pass.
func (f *film) wait(ms int) { f.now = f.now.Add(time.Duration(ms) * time.Millisecond) }

// turn begins the next turn.
func (f *film) turn() {
	f.session.Turn++
	f.emit(event.TurnStartedEvent{Input: "prompt"})
}

func (f *film) endTurn() {
	f.emit(event.TurnFinishedEvent{Status: "completed"})
}

// end ends the last turn and the run.
func (f *film) end() {
	f.endTurn()
	turns := f.session.Turn
	f.session.Turn = 0
	f.emit(event.SessionFinishedEvent{Status: "completed"})
	f.emit(event.RunFinishedEvent{Status: "success", Reason: "completed", Turns: turns, ToolCalls: f.calls, Denials: f.denials, Lines: f.seq + 1})
}

// call is one call of a tool.
type call struct {
	*film
	id, tool, what string
	as             event.Origin
	command        bool
}

// begin begins a call, whose arguments come in so many pieces, ms apart.
func (f *film) begin(id, tool, what string, pieces, ms int) *call {
	c := f.announce(id, tool, what)
	args := c.args()
	for i := range pieces {
		f.wait(ms)
		from, to := len(args)*i/pieces, len(args)*(i+1)/pieces
		c.emit(event.ToolCallArgsDeltaEvent{ToolCallID: id, Delta: string(args[from:to])})
	}
	c.run()
	return c
}

// announce says that a call has begun.
func (f *film) announce(id, tool, what string) *call {
	c := &call{film: f, id: id, tool: tool, what: what, as: f.session, command: tool == "exec_command"}
	c.emit(event.ToolCallStartEvent{ToolCallID: id, ToolName: tool})
	return c
}

func (c *call) emit(b event.Body) { c.emitAs(c.as, b) }

func (c *call) args() []byte {
	key := "path"
	if c.command {
		key = "cmd"
	}
	args, err := json.Marshal(map[string]string{key: c.what})
	if err != nil {
		c.err = err
	}
	return args
}

// run completes the call and runs it.
func (c *call) run() {
	display := c.what
	if c.command {
		display = "run: " + c.what
	}
	c.emit(event.ToolCallEvent{ToolCallID: c.id, ToolName: c.tool, Args: c.args(), Display: display})
	c.status(event.StatusPending)
	c.emit(event.ToolDecisionEvent{ToolCallID: c.id, ToolName: c.tool, Effect: "allow", DecidedBy: "default"})
	c.status(event.StatusRunning)
	if c.command {
		c.emit(event.TerminalNewRunningEvent{ToolCallID: c.id, TerminalID: "t" + c.id, Command: c.what, Description: c.what})
	}
}

func (c *call) status(s event.ToolStatus) {
	c.emit(event.ToolStatusEvent{ToolCallID: c.id, ToolName: c.tool, Status: s})
}

// print prints, as the command of the call.
func (c *call) print(format string, args ...any) {
	c.emit(event.TerminalAppendStringEvent{ToolCallID: c.id, TerminalID: "t" + c.id, Stream: "stdout", Delta: fmt.Sprintf(format, args...)})
}

// exit ends the command and the call.
func (c *call) exit(code int) {
	c.emit(event.TerminalCompletedEvent{ToolCallID: c.id, TerminalID: "t" + c.id, ExitCode: &code})
	c.result(event.ToolResultEvent{Display: fmt.Sprintf("exit %d", code)})
}

// deny refuses the call instead of running it.
func (c *call) deny(rule, reason string) {
	c.emit(event.ToolCallEvent{ToolCallID: c.id, ToolName: c.tool, Args: c.args(), Display: "run: " + c.what})
	c.status(event.StatusPending)
	c.emit(event.ToolDecisionEvent{ToolCallID: c.id, ToolName: c.tool, Effect: "deny", DecidedBy: "policy", RuleID: rule, Reason: reason})
	c.denials = append(c.denials, event.Denial{ToolCallID: c.id, ToolName: c.tool, SessionID: c.as.SessionID, DecidedBy: "policy", RuleID: rule})
	c.result(event.ToolResultEvent{Display: "denied", IsError: true, Denied: true})
}

// result ends the call.
func (c *call) result(r event.ToolResultEvent) {
	s := event.StatusDone
	switch {
	case r.Denied:
		s = event.StatusDenied
	case r.IsError:
		s = event.StatusError
	}
	c.status(s)
	r.ToolCallID, r.ToolName = c.id, c.tool
	c.emit(r)
	if !r.Denied {
		c.calls[c.tool]++
	}
}

// lost ends the call without a result.
func (c *call) lost(why event.IncompleteReason) {
	if c.command {
		c.emit(event.TerminalCompletedEvent{ToolCallID: c.id, TerminalID: "t" + c.id, Signal: "SIGTERM"})
	}
	c.status(event.StatusIncomplete)
	c.emit(event.ToolIncompleteEvent{ToolCallID: c.id, ToolName: c.tool, Reason: why, LastStatus: event.StatusRunning})
	c.calls[c.tool]++
}

// says emits a text of the assistant.
func (f *film) says(id, text string) {
	f.emit(event.MessageDeltaEvent{MessageID: id, Delta: text})
	f.emit(event.MessageEvent{MessageID: id, Role: "assistant", Text: text, Phase: "commentary"})
}
