package runner

import (
	"errors"

	"drover/output/event"
	"drover/output/fault"
	"drover/tools/policy"
	"drover/tools/sandbox"
)

// maxRefusals is how many refusals of the sandbox the last line lists.
const maxRefusals = 100

// recordRefusals tells what the sandbox seems to have refused inside a command.
// It is an inference, so it counts only where the policy says so.
func (s *session) recordRefusals(c *call, refusals []sandbox.Refusal) {
	on := s.Policy.OnSandboxRefusal()
	for _, r := range refusals {
		e := event.SandboxRefusal{
			ToolCallID: c.id, ToolName: c.name, SessionID: s.id, Access: r.What, Target: r.Target, Reason: r.Reason,
			Counts: on != policy.DenyContinue,
		}
		s.emit(event.NoticeEvent{
			Level: "warning", Code: "sandbox_refusal", Message: "the sandbox seems to have refused " + refused(r) + ": " + r.Reason,
			Details: map[string]any{"tool_call_id": c.id, "access": r.What, "target": r.Target},
		})
		s.mu.Lock()
		if len(s.outcome.SandboxRefusals) < maxRefusals {
			s.outcome.SandboxRefusals = append(s.outcome.SandboxRefusals, e)
		}
		if on == policy.DenyFail && s.spent.refused == nil {
			s.spent.refused = &Stop{Exit: fault.Blocked, Reason: "sandbox_refusal", Err: &event.Err{
				Code: "sandbox_refusal", Message: "the sandbox refused " + refused(r) + ", and on_sandbox_refusal is fail",
				Fix: "read sandbox_refusals, then widen the sandbox or change on_sandbox_refusal",
			}}
		}
		s.mu.Unlock()
	}
}

// refused names what was refused.
func refused(r sandbox.Refusal) string {
	switch {
	case r.What == "" && r.Target == "":
		return "something"
	case r.Target == "":
		return "to " + r.What
	case r.What == "connect":
		return "the connection to " + r.Target
	case r.What == "read":
		return "reading " + r.Target
	}
	return "writing " + r.Target
}

// brokenBy ends the run if an error says that what bounds commands is gone: no
// command can be run any more, and none is run without it.
func (s *session) brokenBy(err error) *Stop {
	var f *fault.Error
	if !errors.As(err, &f) || f.Exit != fault.Environment {
		return nil
	}
	stop := StopFor(err)
	s.cancel(stop)
	return stop
}
