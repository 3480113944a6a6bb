package runner

import (
	"slices"

	"drover/output/event"
	"drover/runner/model"
	"drover/tools"
	"drover/tools/policy"
)

// In a dry run the model runs and calls that only look are run. Every other
// call is judged, by the policy and by the hooks, reported with would_allow or
// would_deny, and not done. What
// would be refused counts for the exit code like a refusal, but ends nothing
// early: the point is to see everything that the task asks for.

// dryPrompt says what a dry run is. It stands after the system prompt.
const dryPrompt = `
Dry run: calls that only read are run; anything that could change something is judged by the policy and not done, and its result says so. Go on as if what would be allowed had been done, and do not send the same call again.
`

// rehearses tells whether a call is not done because the run is a dry one.
func (s *session) rehearses(c *call) bool {
	return s.DryRun && slices.ContainsFunc(c.prepared.Actions, s.Policy.ChangesState)
}

// rehearse answers a call that a dry run does not do; ok is false for a call
// that is run in a dry run, too.
func (s *session) rehearse(c *call, v policy.Verdict) (item model.Item, ok bool) {
	if !s.rehearses(c) {
		return item, false
	}
	e := event.ToolDecisionEvent{
		ToolCallID: c.id, ToolName: c.name, Effect: "would_allow", DecidedBy: event.Decider(v.DecidedBy),
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
		s.setStatus(c, event.StatusRunning, 0)
		return s.report(c, tools.Result{
			Text:    "dry run: not done. The policy allows it. Go on as if it had been done.",
			Display: "dry run: would be allowed",
		}, 0), true
	}
	if v.Effect == policy.Ask {
		e.Reason = wouldAsk(v)
	}
	s.wouldDeny(c, e, v.OnDeny)
	return s.deny(c, notDone+denialText(e, v)), true
}

// notDone begins what a dry run tells the model of a call that is refused.
const notDone = "dry run: not done. "

// wouldDeny reports and remembers a refusal of a dry run.
func (s *session) wouldDeny(c *call, e event.ToolDecisionEvent, on policy.OnDeny) {
	e.Effect = "would_deny"
	s.emit(e)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.outcome.Denials = append(s.outcome.Denials, event.Denial{
		ToolCallID: c.id, ToolName: c.name, SessionID: s.id, DecidedBy: e.DecidedBy,
		RuleID: e.RuleID, Reason: e.Reason, Counts: on != policy.DenyContinue,
	})
	s.spent.planRefusals++
}

// wouldAsk is the reason of a call about which somebody would be asked.
func wouldAsk(v policy.Verdict) string {
	reason := "needs approval (on_ask: " + string(v.OnAsk) + ")"
	if v.Reason != "" {
		reason += ": " + v.Reason
	}
	return reason
}
