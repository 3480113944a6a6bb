package runner

import (
	"context"
	"encoding/json"
	"fmt"

	"drover/output/event"
	"drover/output/fault"
	"drover/tools"
)

// runChecks runs the check commands after a final answer. They are judged by
// the same policy and shown as calls of a tool named check. A failure goes
// back to the agent until its retries are used up.
func (s *session) runChecks(ctx context.Context) (event.TurnInput, *Stop) {
	if len(s.Checks) == 0 {
		return "", nil
	}
	s.mu.Lock()
	s.outcome.Checks = nil
	s.mu.Unlock()
	for _, command := range s.Checks {
		args, err := json.Marshal(map[string]string{"cmd": command})
		if err != nil {
			return "", StopFor(fmt.Errorf("encode check: %w", err))
		}
		c := &call{id: s.newCallID(""), name: "check", input: tools.Input{Text: string(args)}}
		s.live = append(s.live, c)
		s.emit(event.ToolCallStartEvent{ToolCallID: c.id, ToolName: c.name})
		s.show(c)
		item := s.guardedCall(ctx, c)
		if ctx.Err() != nil {
			return "", s.stopOf(ctx)
		}
		if stop := s.refusedStop(); stop != nil {
			return "", stop
		}
		if c.status == event.StatusDenied {
			return "", &Stop{Exit: fault.Blocked, Reason: "check_denied", Err: &event.Err{
				Code: "check_denied", Message: "the policy refused the check " + quoteCommand(command),
				Fix: "allow the check's command in the policy",
			}}
		}
		passed := c.status == event.StatusDone
		s.noteCheck(command, passed, c.exitCode)
		if !passed {
			return s.failedCheck(command, item.Text)
		}
	}
	return "", nil
}

// failedCheck sends a failed check back to the agent, or ends the run.
func (s *session) failedCheck(command, text string) (event.TurnInput, *Stop) {
	if s.checkTries >= s.CheckRetries {
		return "", &Stop{Exit: fault.Failed, Reason: "check_failed", Err: &event.Err{
			Code: "check_failed", Message: "the check " + quoteCommand(command) + " failed",
		}}
	}
	s.checkTries++
	s.say("user", fmt.Sprintf("The check `%s` failed (try %d of %d). Its result:\n\n%s\n\nRepair what is wrong, then give the final answer again.",
		command, s.checkTries, s.CheckRetries+1, text))
	return "check", nil
}

func (s *session) noteCheck(command string, passed bool, exitCode *int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := event.CheckResult{Command: command, Passed: passed, ExitCode: -1}
	if exitCode != nil {
		r.ExitCode = *exitCode
	}
	s.outcome.Checks = append(s.outcome.Checks, r)
}

func quoteCommand(c string) string { return "`" + cutTo(firstLine(c), 120) + "`" }
