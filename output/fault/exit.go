package fault

import "slices"

// Exit is an exit code of the drover process.
type Exit int

// The exit codes. 124 to 127 are left to timeout(1) and the shells; codes
// above 128 stand for signals only.
const (
	Success       Exit = 0
	Failed        Exit = 1
	Usage         Exit = 2
	Config        Exit = 3
	Auth          Exit = 4
	Provider      Exit = 5
	Model         Exit = 6
	Environment   Exit = 7
	Session       Exit = 8
	Blocked       Exit = 10
	NeedsInput    Exit = 11
	LimitTurns    Exit = 12
	LimitSpend    Exit = 13
	Timeout       Exit = 14
	InvalidOutput Exit = 15
	Incomplete    Exit = 16
	Partial       Exit = 20
	JobFailed     Exit = 21
	Internal      Exit = 70
	Interrupted   Exit = 130
	ClosedOutput  Exit = 141
	Terminated    Exit = 143
)

// Row is one line of the exit-code table.
type Row struct {
	// Code is the exit code.
	Code Exit `json:"code"`
	// Name is its stable name.
	Name string `json:"name"`
	// Status is run.finished.status of a run that ends with it.
	Status string `json:"status"`
	// When says when a run ends with it.
	When string `json:"when"`
	// Retry says whether trying again can help.
	Retry string `json:"retry"`
}

// table is in the order of the codes.
var table = []Row{
	{Success, "success", "success", "A final answer was given and nothing that was required is missing.", "-"},
	{Failed, "failed", "failed", "A check failed, or an error without a class of its own.", "maybe"},
	{Usage, "usage", "failed", "A wrong flag, a missing or empty prompt.", "no"},
	{Config, "config", "failed", "A config, policy, task, schema or script file is invalid, or the model is unknown.", "no"},
	{Auth, "auth", "failed", "A credential is missing, expired or refused.", "no"},
	{Provider, "provider", "failed", "The provider is unreachable, overloaded or limits the rate, after all retries.", "yes, later"},
	{Model, "model", "failed", "The model refused, was filtered, overran its context, or kept sending calls that cannot be read.", "rarely"},
	{Environment, "environment", "failed", "The sandbox, the workspace or the state folder cannot be used.", "no"},
	{Session, "session", "failed", "The session is not there, is locked, or has an unknown version.", "no"},
	{Blocked, "blocked", "blocked", "Something was refused and the policy says that the refusal counts.", "after changing the policy"},
	{NeedsInput, "needs_input", "needs_input", "An approval or a question was open and nobody could answer.", "after answering"},
	{LimitTurns, "limit_turns", "limit", "The limit of turns or tool calls was reached.", "maybe"},
	{LimitSpend, "limit_spend", "limit", "The limit of tokens or cost was reached.", "with more budget"},
	{Timeout, "timeout", "timeout", "The wall-clock or idle limit was reached.", "maybe"},
	{InvalidOutput, "invalid_output", "invalid_output", "The final answer does not match the output schema, after retries.", "maybe"},
	{Incomplete, "incomplete", "incomplete", "The run ended without a final answer.", "yes"},
	{Partial, "partial", "partial", "A list job ended with some rows completed and others not.", "jobs retry"},
	{JobFailed, "job_failed", "failed", "A list job ended with no row completed.", "maybe"},
	{Internal, "internal", "internal_error", "A bug in drover itself.", "report it"},
	{Interrupted, "interrupted", "cancelled", "SIGINT, after an orderly end.", "-"},
	{ClosedOutput, "closed_output", "cancelled", "The reader closed standard output.", "-"},
	{Terminated, "terminated", "cancelled", "SIGTERM, after an orderly end.", "-"},
}

// Table returns the rows of the exit-code table in the order of the codes.
func Table() []Row { return append([]Row(nil), table...) }

// Status returns run.finished.status for the code.
func (e Exit) Status() string { return e.row().Status }

// Name returns the code's stable name.
func (e Exit) Name() string { return e.row().Name }

func (e Exit) row() Row {
	for _, r := range table {
		if r.Code == e {
			return r
		}
	}
	return Row{Code: e, Name: "unknown", Status: "failed"}
}

// precedence tells which of several ends counts: the earlier group in this
// list. Codes of one group are of one kind: there the first in time counts.
var precedence = [][]Exit{
	{Usage}, {Config}, {Session}, {Environment}, {Auth}, {Internal}, {ClosedOutput},
	{Interrupted, Terminated}, {Timeout}, {LimitSpend}, {LimitTurns},
	{Provider, Model}, {NeedsInput}, {Blocked}, {InvalidOutput}, {Incomplete},
	{Failed}, {Partial, JobFailed}, {Success},
}

// Before tells whether e outranks other when both ended the same run.
func (e Exit) Before(other Exit) bool { return rank(e) < rank(other) }

func rank(e Exit) int {
	for i, group := range precedence {
		if slices.Contains(group, e) {
			return i
		}
	}
	return len(precedence)
}
