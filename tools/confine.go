package tools

import (
	"errors"
	"fmt"
	"strings"

	"drover/output/event"
	"drover/output/fault"
	"drover/tools/internal/proc"
	"drover/tools/sandbox"
)

// sandbox is what bounds the commands of the call, nil if nothing does.
func (e Env) sandbox() (*sandbox.Sandbox, error) {
	sb, r := e.Commands.Sandbox, e.Rights
	if sb == nil || !r.Off && !r.Network && len(r.Read)+len(r.Write) == 0 {
		return sb, nil
	}
	sb, err := sb.With(r)
	if err != nil {
		return nil, startFault(fmt.Errorf("open sandbox: %w", err))
	}
	return sb, nil
}

// startFault makes the error of a helper that is gone one that ends the run:
// without it no command is bounded any more. Other errors are those of the one
// command.
func startFault(err error) error {
	var f *fault.Error
	if !errors.Is(err, proc.ErrGone) || errors.As(err, &f) {
		return err
	}
	return &fault.Error{
		Code: "sandbox_gone", What: "no command can be run any more", Why: err.Error(),
		Fix: "start the run again", Exit: fault.Environment, Err: err,
	}
}

// endsRun tells whether an error concerns every further command.
func endsRun(err error) bool {
	var f *fault.Error
	return errors.As(err, &f) && f.Exit == fault.Environment
}

// refusals are what the sandbox seems to have refused.
func (r *running) refusals(end proc.Result) []sandbox.Refusal {
	if r.sandbox == nil {
		return nil
	}
	return r.sandbox.Refusals(sandbox.Ended{ExitCode: end.Code, Signal: end.Signal, Output: r.ends.text(), Dir: r.command.dir})
}

// tellAppeared tells that a command has created what is protected where it is
// there from the start.
func (r *running) tellAppeared() {
	if r.sandbox == nil {
		return
	}
	for _, path := range r.sandbox.Appeared() {
		r.env.Emit(event.NoticeEvent{
			Level: "warning", Code: "protected_created",
			Message: "a command created " + path + ", which would be protected if it had been there when the run started; nothing in it is trusted in this run",
			Details: map[string]any{"path": path, "tool_call_id": r.env.CallID},
		})
	}
}

// refusalNote tells the model about a refusal.
func refusalNote(r sandbox.Refusal) string {
	doing := map[string]string{"read": "reading ", "write": "writing ", "connect": "connecting to "}[r.What]
	what := strings.TrimSpace(doing + r.Target)
	if r.Target == "" {
		what = "something"
	}
	return "Note: the sandbox seems to have refused " + what + ": " + r.Reason
}
