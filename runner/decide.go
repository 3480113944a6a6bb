package runner

import (
	"fmt"
	"slices"
	"strings"

	"drover/output/event"
	"drover/output/fault"
	"drover/tools/policy"
)

// decide reports the verdict on a call. It returns what to tell the model if
// the call is refused, and "" if it may run.
func (s *session) decide(c *call, v policy.Verdict) (denied string) {
	e := event.ToolDecisionEvent{
		ToolCallID: c.id, ToolName: c.name, Effect: "allow", DecidedBy: event.Decider(v.DecidedBy),
		RuleID: v.RuleID, Layer: event.Layer(v.Layer), Reason: v.Reason,
	}
	if len(v.Parts) > 1 {
		for _, p := range strictest(v.Parts) {
			e.Parts = append(e.Parts, event.DecisionPart{
				Action: describe(p.Action), Effect: string(p.Effect), RuleID: p.RuleID, DecidedBy: event.Decider(p.DecidedBy),
			})
		}
	}
	if v.Effect == policy.Allow {
		s.emit(e)
		return ""
	}
	e.Effect = "deny"
	if v.Effect == policy.Ask && e.Reason == "" {
		e.Reason = "needs approval, and nobody can answer (on_ask: " + string(v.OnAsk) + ")"
	}
	s.emit(e)
	s.recordDenial(c, e, v)
	return denialText(e, v)
}

// maxParts is how many judged parts an event lists.
const maxParts = 50

// strictest returns the parts in their order, or if there are too many, those
// that were refused first.
func strictest(parts []policy.Part) []policy.Part {
	if len(parts) <= maxParts {
		return parts
	}
	parts = slices.Clone(parts)
	slices.SortStableFunc(parts, func(a, b policy.Part) int { return rankOf(b.Effect) - rankOf(a.Effect) })
	return parts[:maxParts]
}

func rankOf(e policy.Effect) int {
	return slices.Index([]policy.Effect{policy.Allow, policy.Ask, policy.Deny}, e)
}

// denialText tells the model what was refused, by what, and how to go on.
func denialText(e event.ToolDecisionEvent, v policy.Verdict) string {
	var b strings.Builder
	fmt.Fprintf(&b, "denied: %s is refused by ", describe(v.Action))
	switch {
	case v.RuleID != "":
		b.WriteString("the policy rule " + v.RuleID)
	case v.DecidedBy == "default":
		b.WriteString("the policy's default")
	case v.DecidedBy == "sandbox":
		b.WriteString("the sandbox")
	default:
		b.WriteString("the policy")
	}
	if e.Reason != "" {
		b.WriteString(": " + e.Reason)
	}
	b.WriteString("\nNothing was done. Do not try the same again; find an allowed way, or say in the final answer what is missing.")
	return b.String()
}

// describe says in a few words what an action is.
func describe(a policy.Action) string {
	var s string
	switch a.Kind {
	case policy.KindExec:
		s = "running `" + strings.Join(a.Argv, " ") + "`"
	case policy.KindRead:
		s = "reading " + a.Path
	case policy.KindWrite:
		s = "writing " + a.Path
	case policy.KindDelete:
		s = "deleting " + a.Path
	case policy.KindHost:
		s = "connecting to " + a.Host
	case policy.KindMCP:
		s = "calling " + a.Server + "/" + a.Tool
	default:
		s = "the tool " + a.Tool
	}
	return cutTo(s, 300)
}

// recordDenial remembers a refusal for the exit code, and ends the run where
// the policy says so.
func (s *session) recordDenial(c *call, e event.ToolDecisionEvent, v policy.Verdict) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.outcome.Denials = append(s.outcome.Denials, event.Denial{
		ToolCallID: c.id, ToolName: c.name, SessionID: s.id, DecidedBy: e.DecidedBy,
		RuleID: e.RuleID, Reason: e.Reason, Counts: v.OnDeny != policy.DenyContinue,
	})
	if s.spent.refused != nil {
		return
	}
	switch {
	case v.Effect == policy.Ask && (v.OnAsk == policy.AskFail || v.OnAsk == policy.AskDefer):
		s.spent.refused = &Stop{Exit: fault.NeedsInput, Reason: "needs_input", Err: &event.Err{
			Code: "needs_input", Message: "an action needs approval and nobody can answer",
			Fix: "allow it in the policy, or set on_ask: deny to go on without it",
		}}
	case v.OnDeny == policy.DenyFail:
		s.spent.refused = &Stop{Exit: fault.Blocked, Reason: "denied", Err: &event.Err{
			Code: "denied", Message: "a call was refused, and on_deny is fail",
			Fix: "read denials, then allow the action in the policy",
		}}
	}
}

// noteQuestion ends the run after a question that nobody can answer, where the
// policy says so.
func (s *session) noteQuestion(what string) {
	if on := s.Policy.OnAsk(); on != policy.AskFail && on != policy.AskDefer {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.spent.refused == nil {
		s.spent.refused = &Stop{Exit: fault.NeedsInput, Reason: "needs_input", Err: &event.Err{
			Code: "needs_input", Message: "the agent asked a question: " + what,
			Fix: "give the answer with --answer ID=LABEL, or set on_ask: deny to let the agent choose",
		}}
	}
}

// refusedStop is the end that refusals have brought about, if any.
func (s *session) refusedStop() *Stop {
	s.mu.Lock()
	refused, n := s.spent.refused, len(s.outcome.Denials)-s.spent.planRefusals
	s.mu.Unlock()
	if refused != nil {
		return refused
	}
	if limit := s.Limits.Denials; limit > 0 && n >= limit {
		told := &event.LimitReachedEvent{Limit: "denials", Value: float64(n), Max: float64(limit), Scope: "run"}
		return s.tellLimit(&Stop{limit: told, Exit: fault.Blocked, Reason: "max_denials", Err: &event.Err{
			Code: "max_denials", Message: fmt.Sprintf("%d calls were refused, which is the limit", n),
			Fix: "read denials, then allow what is needed in the policy or raise max_denials",
		}})
	}
	return nil
}
