package runner

import (
	"encoding/json"
	"time"

	"drover/output/event"
	"drover/output/fault"
)

// Stop is why a run ends before its final answer, or in spite of it. It is
// also the cause with which a run's context is cancelled from outside.
type Stop struct {
	Exit fault.Exit
	// Reason is a stable snake_case code; prose is in Err.
	Reason string
	Err    *event.Err
	// limit is told in the stream by whoever notices the stop first.
	limit *event.LimitReachedEvent
}

// Error returns the reason.
func (s *Stop) Error() string { return s.Reason }

// StopFor makes a stop of an error.
func StopFor(err error) *Stop {
	f := fault.From(err)
	return &Stop{Exit: f.Exit, Reason: f.Code, Err: &event.Err{
		Code: f.Code, Message: f.Error(), Fix: f.Fix, Retryable: f.Retryable, HTTPStatus: f.Status,
	}}
}

// Outcome is how a run ended and what it did.
type Outcome struct {
	SessionID string
	// End is the end that counts. Success has no error.
	End Stop
	// Message is the final answer; it is empty when there is none.
	Message          string
	StructuredOutput json.RawMessage
	StructuredError  string
	Usage            event.Usage
	UsageByModel     map[string]event.Usage
	CostUSD          *float64
	CostBasis        event.CostBasis
	APITime          time.Duration
	Duration         time.Duration
	Turns            int
	ToolCalls        map[string]int
	Denials          []event.Denial
	// SandboxRefusals are what the sandbox seems to have refused inside allowed
	// commands.
	SandboxRefusals []event.SandboxRefusal
	Incomplete      []string
	FilesChanged    []event.ChangedFile
	Checks          []event.CheckResult
	Artifacts       []event.Artifact
	// Resume is the command that goes on with the session, if there is one.
	Resume string
}

// settle chooses the end that counts: the stop of the loop, if any, against
// refusals that the policy counts.
func (o *Outcome) settle(stop *Stop) {
	o.End = Stop{Exit: fault.Success, Reason: "completed"}
	if stop != nil {
		o.End = *stop
	}
	for _, d := range o.Denials {
		if d.Counts && fault.Blocked.Before(o.End.Exit) {
			o.End = Stop{Exit: fault.Blocked, Reason: "denied", Err: &event.Err{
				Code: "denied", Message: "a call was refused and the policy counts refusals",
				Fix: "read denials, then allow the action in the policy or set on_deny: continue on the rule",
			}}
			break
		}
	}
	for _, r := range o.SandboxRefusals {
		if r.Counts && fault.Blocked.Before(o.End.Exit) {
			o.End = Stop{Exit: fault.Blocked, Reason: "sandbox_refusal", Err: &event.Err{
				Code: "sandbox_refusal", Message: "the sandbox refused something inside a command, and the policy counts that",
				Fix: "read sandbox_refusals, then widen the sandbox or set on_sandbox_refusal: continue",
			}}
			break
		}
	}
}

// Fail makes the outcome end with stop, if that outranks the end so far.
func (o *Outcome) Fail(stop *Stop) {
	if stop.Exit.Before(o.End.Exit) {
		o.End = *stop
	}
}

// Finish emits the last line of a run and closes the log, in one step. It tells
// whether it was the first to do so; if not, it does nothing. The error is that
// of closing.
func Finish(log *event.Log, o Outcome) (first bool, err error) {
	e := event.RunFinishedEvent{
		Status: event.RunStatus(o.End.Exit.Status()), ExitCode: int(o.End.Exit),
		Reason: o.End.Reason, Error: o.End.Err,
		Usage: o.Usage, DurationMS: o.Duration.Milliseconds(), Turns: o.Turns,
		Denials: o.Denials, Message: o.Message,
		StructuredOutput: o.StructuredOutput, StructuredError: o.StructuredError,
		CostUSD: o.CostUSD, CostBasis: o.CostBasis, UsageByModel: o.UsageByModel,
		APIDurationMS: o.APITime.Milliseconds(), ToolCalls: o.ToolCalls,
		SandboxRefusals: o.SandboxRefusals, Incomplete: o.Incomplete, FilesChanged: o.FilesChanged, Checks: o.Checks,
		Artifacts: o.Artifacts, Redactions: log.Redactions(), Resume: o.Resume,
	}
	if e.Denials == nil {
		e.Denials = []event.Denial{}
	}
	return log.Finish(event.Origin{SessionID: o.SessionID}, e)
}
