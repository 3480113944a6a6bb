package runner

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"drover/output/event"
	"drover/output/fault"
	"drover/tools"
	"drover/tools/policy"
)

// judge asks the policy about a prepared call. What answers have allowed for
// longer than one call is allowed.
func (s *session) judge(c *call) policy.Verdict {
	v := s.widen(s.Policy.Decide(s.policyCall(c)))
	if v.Effect == policy.Ask && v.MaxScope != policy.ScopeOnce && s.approvedAsIs(c) {
		v.Effect, v.DecidedBy, v.Reason = policy.Allow, "grant", ""
	}
	return v
}

// policyCall is a call as the policy sees it.
func (s *session) policyCall(c *call) policy.Call {
	return policy.Call{
		Tool: c.tool.Spec().Name, Args: c.prepared.Args, Agent: s.agent, Actions: c.prepared.Actions, Grants: &s.answers.grants,
	}
}

// judgeAction asks the policy about what a call finds while it runs.
func (s *session) judgeAction(c *call, a policy.Action) policy.Verdict {
	return s.widen(s.Policy.Decide(policy.Call{
		Tool: c.name, Agent: s.agent, Actions: []policy.Action{a}, Grants: &s.answers.grants,
	}))
}

// decide reports the verdict on a call, and has somebody asked where it is a
// question. It returns what to tell the model if the call is refused, and "" if
// it may run. If the run ends meanwhile, nothing is decided.
func (s *session) decide(ctx context.Context, c *call, v policy.Verdict) (denied string) {
	v = s.withWants(c, v)
	id, scope := "", event.Scope("")
	if v.Effect == policy.Ask && v.OnAsk == policy.AskApprover && s.Approvals.Asker != nil {
		a := s.ask(ctx, c, question{
			ruleID: v.RuleID, reason: v.Reason, maxScope: v.MaxScope, proposals: s.propose(c, v),
		})
		if a.ended {
			return ""
		}
		v, id, scope = s.answered(ctx, c, v, a), a.id, a.scope
	}
	if v.Effect == policy.Allow {
		s.setRights(c, v)
	}
	e := decisionOf(c, v)
	e.CorrelationID, e.Scope = id, scope
	s.emit(e)
	if v.Effect == policy.Allow {
		return ""
	}
	s.recordDenial(c, e, v)
	return denialText(e, v)
}

// propose returns the rules that would have made the question needless, the
// narrowest first, and last what the model would like to have.
func (s *session) propose(c *call, v policy.Verdict) []policy.Proposal {
	call := s.policyCall(c)
	list := s.Policy.Propose(call, v)
	if w := c.prepared.Wants; w != nil {
		if wish, ok := s.Policy.ProposePrefix(call, w.PrefixRule); ok {
			list = append(list, wish)
		}
	}
	return list
}

// answered is the verdict after an answer. New arguments are prepared and judged
// again: an answer allows what was asked, not what the policy refuses.
func (s *session) answered(ctx context.Context, c *call, v policy.Verdict, a answer) policy.Verdict {
	if !a.approved {
		v.Effect, v.DecidedBy, v.Reason = policy.Deny, string(a.by), a.reason
		return v
	}
	if a.args != nil {
		if err := s.prepareAgain(c, a.args); err != nil {
			v.Effect, v.DecidedBy, v.Reason = policy.Deny, string(a.by), "the arguments that the answer brings cannot be used: "+err.Error()
			return v
		}
		if v = s.judge(c); v.Effect == policy.Deny {
			return v
		}
		if reason := s.planReason(c); reason != "" {
			v.Effect, v.DecidedBy, v.Reason = policy.Deny, "policy", reason
			return v
		}
		if reason := s.hooksAgain(ctx, c); reason != "" {
			v.Effect, v.DecidedBy, v.RuleID, v.Layer, v.Reason = policy.Deny, "hook", "", "", reason
			return v
		}
		c.remarks = append(c.remarks, "Whoever approved the call changed its arguments; what was run is "+c.prepared.Display+".")
	}
	v.Effect, v.DecidedBy, v.Reason = policy.Allow, string(a.by), a.reason
	return v
}

// prepareAgain gives a call other arguments.
func (s *session) prepareAgain(c *call, args json.RawMessage) error {
	in := tools.Input{Text: string(args), Freeform: c.input.Freeform}
	if in.Freeform {
		var raw struct {
			Input *string `json:"input"`
		}
		if err := json.Unmarshal(args, &raw); err != nil || raw.Input == nil {
			return errors.New("missing field `input`")
		}
		in.Text = *raw.Input
	}
	prepared, err := c.tool.Prepare(s.env(c), in)
	if err != nil {
		return err
	}
	c.prepared, c.input = prepared, in
	return nil
}

// decisionOf is the event of a verdict.
func decisionOf(c *call, v policy.Verdict) event.ToolDecisionEvent {
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
	if v.Effect != policy.Allow {
		e.Effect = "deny"
	}
	if v.Effect == policy.Ask {
		e.Reason = "it needs approval, and nobody can answer (on_ask: " + string(v.OnAsk) + ")"
		if v.Reason != "" {
			e.Reason = v.Reason + "; " + e.Reason
		}
	}
	return e
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
	case e.DecidedBy == "hook":
		b.WriteString("a hook")
	case e.DecidedBy == "approver":
		b.WriteString("the approver")
	case e.DecidedBy == "tty":
		b.WriteString("the person at the terminal")
	case e.DecidedBy == "timeout":
		b.WriteString("the policy, which asks for an approval that did not come")
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
		RuleID: e.RuleID, Reason: e.Reason, CorrelationID: e.CorrelationID, Counts: v.OnDeny != policy.DenyContinue,
	})
	if s.spent.refused != nil {
		return
	}
	switch {
	case v.Effect == policy.Ask && (v.OnAsk == policy.AskFail || v.OnAsk == policy.AskDefer):
		fix := "allow it in the policy, or set on_ask: deny to go on without it"
		if v.OnAsk == policy.AskDefer {
			fix = s.deferLocked()
		}
		s.spent.refused = &Stop{Exit: fault.NeedsInput, Reason: "needs_input", Err: &event.Err{
			Code: "needs_input", Message: "an action needs approval and nobody can answer: " + describe(v.Action), Fix: fix,
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
	if s.spent.refused != nil {
		return
	}
	fix := "give the answer with --answer ID=LABEL, or set on_ask: deny to let the agent choose"
	if s.Policy.OnAsk() == policy.AskDefer {
		fix += "; " + s.deferLocked()
	}
	s.spent.refused = &Stop{Exit: fault.NeedsInput, Reason: "needs_input", Err: &event.Err{
		Code: "needs_input", Message: "the agent asked a question: " + what, Fix: fix,
	}}
}

// deferLocked says how a deferred run is taken up, and has the last line say it.
func (s *session) deferLocked() string {
	s.outcome.Resume = s.Approvals.Resume
	if s.outcome.Resume == "" {
		return "allow it in the policy; the session was not kept, so that it cannot be taken up"
	}
	return "allow it in the policy, then take the session up again: " + s.outcome.Resume
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
