// Package runner runs one agent to its end.
//
// Run is the entry: it takes a prompt, a model, tools, a policy and a log, and
// returns an Outcome that says how the run ended and why. loop.go is the agent
// itself; respond.go turns one streamed response into events and items,
// calls.go runs what the model asked for, limits.go knows the budgets. The
// runner knows no particular tool, provider or format, and prints nothing:
// everything that happens is an event in the log.
package runner

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"drover/output/event"
	"drover/output/fault"
	"drover/runner/model"
	"drover/tools"
	"drover/tools/policy"
)

// RootAgent is the path of the agent that a run starts with.
const RootAgent = "/root"

// Options are everything that one run depends on.
type Options struct {
	// SessionID names the root session.
	SessionID string
	// Prompt is the task, as given.
	Prompt string
	// Started is what the first event says. The runner fills in the tools,
	// the limits and the model.
	Started event.RunStartedEvent
	Model   *model.OpenedModel
	// Tools are all tools that can be called; Shell names the command tool
	// that is offered.
	Tools []tools.Tool
	Shell string
	// Policy decides every call.
	Policy *policy.Policy
	// Files and Commands bound what allowed calls can do.
	Files    *tools.Files
	Commands tools.Commands
	Cwd      string
	// Instructions are files of the project that the model reads first.
	Instructions []Instruction
	Limits       Limits
	// Checks must pass before the run counts as a success; a failed one goes
	// back to the agent CheckRetries times.
	Checks       []string
	CheckRetries int
	// Hooks watch over the run, in the order in which their answers count. Each
	// has passed Hook.Check.
	Hooks []Hook
	// Mask takes the secrets out of what leaves the run by other ways than the
	// log, such as to hooks; nil takes none.
	Mask func(string) string
	// Mode says whether the agent works or plans. In plan mode neither checks
	// nor the schema apply.
	Mode Mode
	// DryRun judges and reports what calls would do instead of doing it; calls
	// that only read are run. Checks are left out.
	DryRun bool
	// Approvals say who is asked where the policy asks.
	Approvals Approvals
	// Answers are the answers to questions of the agent, by the question's id.
	Answers map[string]string
	// Schema, if set, is what the final answer must match.
	Schema *Schema
	// Output bounds the text of one tool result.
	Output tools.Limit
	Log    *event.Log
	// Notices are emitted right after run.started.
	Notices []event.NoticeEvent
	// Keep stores what only the provider needs back; nil stores nothing.
	Keep func(record any) error
	// OpenArtifact opens a file of the session for something large; nil has no
	// place for it.
	OpenArtifact func(name string) (tools.ArtifactWriter, error)
	// Stopped is called once when the run is to end before its answer, whatever
	// the cause, even while a reader of the stream holds up everything else. It
	// must be quick; nil is not called.
	Stopped func()
	// Now is the clock; nil means time.Now.
	Now func() time.Time
	// Row makes the agent one of many that work on the rows of a list job, in
	// one run that they share; nil is an agent that has the run for itself.
	Row *Row
}

// Row says which row of a list job an agent works on.
type Row struct {
	ItemID string
	// Index is the row's place in the table, from 0; Attempt counts from 1.
	Index, Attempt int
	// Values are what the script model can fill in.
	Values map[string]string
	// Budget is asked whether the job can pay for more, with what the row has
	// cost so far in US dollars; nil never says no.
	Budget func(cost float64) *Stop
	// Missing is asked at a final answer what is still missing; the agent is
	// told, unless it is "".
	Missing func() string
}

// run is the state that all sessions of one run share.
type run struct {
	Options
	started time.Time
	cancel  context.CancelCauseFunc
	// offered are the tools the model sees; callable are all, by name.
	offered  []model.Tool
	callable map[string]tools.Tool
	// asks says that a tool for questions is offered.
	asks bool

	mu      sync.Mutex
	outcome Outcome
	spent   spent
	waiting waiting
	callIDs map[string]bool
	// requests are the requests as the stream has them, by correlation id.
	requests sync.Map
	// telling keeps what follows from a limit behind the event that tells it.
	telling sync.Mutex
}

// Run runs one agent to its end, or until ctx is cancelled: with a *Stop as
// its cause, the outcome is that stop. It emits run.started first and the
// session's events after it; run.finished is left to Finish, so that the
// caller can add what happens in between. The run of a row is announced and
// finished by its job.
func Run(ctx context.Context, o Options) (out Outcome) {
	if o.Now == nil {
		o.Now = time.Now
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if o.Stopped != nil {
		defer context.AfterFunc(ctx, o.Stopped)()
	}
	if o.Mode == ModePlan {
		o.Checks, o.Schema = nil, nil
	}
	if o.Started.DryRun = o.DryRun; o.DryRun {
		o.Checks = nil
	}
	r := &run{Options: o, started: o.Now(), cancel: cancel, callIDs: map[string]bool{}}
	r.outcome.ToolCalls = map[string]int{}
	r.chooseTools()
	defer r.listenForRequests()()
	if o.Row != nil {
		ctx = model.WithScriptValues(ctx, o.Row.Values)
		defer o.Model.Forget(o.SessionID)
	}
	stopWatching, stopWall := r.watchLimits(ctx)
	defer stopWall()
	if o.Row == nil {
		r.announce()
	}

	s := r.newSession(ctx)
	stop := s.guardedRun(ctx)
	s.commands.Close() // their last events belong before the session's
	stopWatching()
	r.close(s, stop)
	return r.outcome
}

// chooseTools decides what the model sees: the offered tools, one command
// tool, and none that the policy refuses whatever its arguments.
func (r *run) chooseTools() {
	shell := r.Shell
	if shell == "" {
		shell = "exec_command"
	}
	r.callable = map[string]tools.Tool{}
	for _, t := range r.Tools {
		spec := t.Spec()
		r.callable[spec.Name] = t
		if !spec.Offered || spec.Command && spec.Name != shell || spec.With != "" && spec.With != shell || r.Policy.Denied(spec.Name) || spec.Asks && !r.answerable(spec) || !offeredIn(r.Mode, spec) {
			continue
		}
		r.asks = r.asks || spec.Asks && !spec.Permits
		r.offered = append(r.offered, model.Tool{
			Name: spec.Name, Doc: spec.Doc, Schema: spec.Schema,
			Grammar: spec.Grammar, Freeform: spec.Kind == tools.Freeform, LocalShell: spec.Kind == tools.LocalShell,
		})
	}
}

// answerable tells whether a tool that asks gets an answer.
func (r *run) answerable(spec tools.Spec) bool {
	return r.canAsk() || len(r.Answers) > 0 && !spec.Permits
}

// Announce emits the run.started of a run whose agents are the rows of a job.
func Announce(o Options) {
	if o.Now == nil {
		o.Now = time.Now
	}
	r := &run{Options: o}
	r.Started.DryRun = o.DryRun
	r.chooseTools()
	r.announce()
}

// tell emits an event and notes that the run is alive.
func (r *run) tell(o event.Origin, b event.Body) {
	if _, beat := b.(event.HeartbeatEvent); !beat {
		r.waiting.mu.Lock()
		r.waiting.active = r.Now()
		r.waiting.mu.Unlock()
	}
	r.Log.Emit(o, b)
}

// self is whose the events of the run itself are.
func (r *run) self() event.Origin { return event.Origin{SessionID: r.SessionID, ItemID: r.itemID()} }

func (r *run) itemID() string {
	if r.Row == nil {
		return ""
	}
	return r.Row.ItemID
}

func (r *run) announce() {
	e := r.Started
	e.Limits = r.Limits.event()
	e.Model, e.Provider = r.Model.Model, r.Model.Provider.Name()
	for _, t := range r.offered {
		e.Tools = append(e.Tools, t.Name)
	}
	for _, i := range r.Instructions {
		e.Instructions = append(e.Instructions, event.FileRef{Path: i.Path, SHA256: i.SHA256})
	}
	r.tell(r.self(), e)
	for _, n := range r.Notices {
		r.tell(r.self(), n)
	}
}

// newSession opens the root session with its prompt.
func (r *run) newSession(ctx context.Context) *session {
	s := &session{run: r, id: r.SessionID, agent: RootAgent, started: r.Now(), commands: tools.NewSessions(ctx)}
	s.commands.MaxPoll = r.Commands.MaxPoll
	s.repeats.warnAt, s.repeats.stopAt = r.Limits.LoopWarn, r.Limits.LoopStop
	s.emit(event.SessionStartedEvent{Model: r.Model.ID, Cwd: r.Cwd})
	s.system = systemPrompt(r)
	for _, i := range r.Instructions {
		s.add(model.Item{Kind: model.UserMessage, Text: i.message()})
	}
	s.say("user", r.Prompt)
	return s
}

// guardedRun turns a panic of the loop into the run's end.
func (s *session) guardedRun(ctx context.Context) (stop *Stop) {
	defer func() {
		if p := recover(); p != nil {
			stop = s.crashed(p)
			s.closeTurn(stop)
		}
	}()
	if stop := s.startHooks(ctx); stop != nil {
		return stop
	}
	return s.loop(ctx)
}

// closeTurn ends what a panic has left open, so that the stream keeps its
// promises even then.
func (s *session) closeTurn(stop *Stop) {
	for _, c := range s.live {
		if !c.final() {
			s.incomplete(c, "crash")
		}
	}
	if s.turn > 0 && s.turn != s.closed {
		s.finishTurn(stop)
	}
}

// crashed reports a panic and ends the run.
func (r *run) crashed(p any) *Stop {
	stop := &Stop{Exit: fault.Internal, Reason: "panic", Err: &event.Err{
		Code: "panic", Message: fmt.Sprint("drover has a bug: ", p),
		Fix: "report it with the session file; the work so far is kept",
	}}
	r.tell(r.self(), event.ErrorEvent{
		Code: "panic", Message: stop.Err.Message, Fatal: true,
		Details: map[string]any{"stack": string(debug.Stack())},
	})
	r.cancel(stop)
	return stop
}

// close ends the session and gathers the outcome.
func (r *run) close(s *session, stop *Stop) {
	r.mu.Lock()
	defer r.mu.Unlock()
	o := &r.outcome
	o.SessionID = s.id
	o.Turns += s.turn
	o.Duration = r.Now().Sub(r.started)
	o.settle(stop)
	r.priceLocked()
	status := event.SessionStatus("completed")
	switch {
	case o.End.Exit == fault.Success || o.End.Exit == fault.Blocked && stop == nil:
	case o.End.Exit == fault.Interrupted, o.End.Exit == fault.Terminated, o.End.Exit == fault.ClosedOutput, o.End.Exit == fault.Timeout:
		status = "interrupted"
	default:
		status = "failed"
	}
	calls := 0
	for _, n := range o.ToolCalls {
		calls += n
	}
	s.turn = 0
	s.emit(event.SessionFinishedEvent{
		Status: status, Usage: o.Usage, CostUSD: o.CostUSD, Message: o.Message,
		DurationMS: o.Duration.Milliseconds(), ToolCalls: calls,
	})
}

// Instruction is a file of the project, such as AGENTS.md, that the model
// reads before the prompt.
type Instruction struct {
	Path   string
	Text   string
	SHA256 string
}

func (i Instruction) message() string {
	return "Instructions of this project, from " + i.Path + ":\n\n" + i.Text
}

// Schema is a JSON Schema for the final answer, compiled.
type Schema struct {
	Raw json.RawMessage
	// Validate returns what is wrong with a JSON value.
	Validate func(value json.RawMessage) error
	// sent is the schema as providers get it.
	sent model.Adapted
}
