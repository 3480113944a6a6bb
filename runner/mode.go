package runner

import (
	"encoding/json"
	"slices"
	"strings"

	"drover/output/event"
	"drover/output/fault"
	"drover/tools"
	"drover/tools/policy"
)

// Mode is what a run is for.
type Mode string

// The modes. In plan mode an agent looks, changes nothing, and ends with a
// plan. The zero value is ModeDefault.
const (
	ModeDefault Mode = "default"
	ModePlan    Mode = "plan"
)

// planPrompt says what plan mode wants. It stands after the system prompt, so
// that it wins over it.
const planPrompt = `
Plan mode: change nothing. Read, search and run commands that only look; writes, and commands that may change anything, are refused here whatever the policy says. Make a plan that somebody else can carry out without asking: what to change, in which files, in which order, and how to verify it.
End with a message that holds the plan exactly once, between a line <proposed_plan> and a line </proposed_plan>. Without that block the run counts as incomplete.
`

// planReason says why plan mode refuses a call, or "".
func (s *session) planReason(c *call) string {
	if s.Mode != ModePlan {
		return ""
	}
	at := slices.IndexFunc(c.prepared.Actions, s.Policy.ChangesState)
	if at < 0 {
		return ""
	}
	switch a := c.prepared.Actions[at]; a.Kind {
	case policy.KindExec:
		return "plan mode: the command may change state"
	case policy.KindWrite, policy.KindDelete:
		return "plan mode: files are not changed"
	default:
		return "plan mode: " + describe(a) + " may change state"
	}
}

// refuseInPlan answers a call that plan mode refuses. The refusal is seen in
// the stream and in the last line, and counts for nothing.
func (s *session) refuseInPlan(c *call, reason string) string {
	s.emit(event.ToolDecisionEvent{ToolCallID: c.id, ToolName: c.name, Effect: "deny", DecidedBy: "policy", Reason: reason})
	s.mu.Lock()
	s.outcome.Denials = append(s.outcome.Denials, event.Denial{
		ToolCallID: c.id, ToolName: c.name, SessionID: s.id, DecidedBy: "policy", Reason: reason,
	})
	s.spent.planRefusals++
	s.mu.Unlock()
	return "denied: " + reason + "\nNothing was done. Look with commands that only read, and put what is to be done into the plan."
}

// offeredIn tells whether a mode has any use for a tool.
func offeredIn(m Mode, spec tools.Spec) bool {
	return m != ModePlan || !spec.Writes || spec.Runs
}

// proposePlan takes the plan out of the final message.
func (s *session) proposePlan(text string) *Stop {
	plan, problem := findPlan(text)
	if problem != "" {
		return &Stop{Exit: fault.Incomplete, Reason: "no_plan", Err: &event.Err{
			Code: "no_plan", Message: "the run was to end with a plan: " + problem,
			Fix: "read message for what the agent said; a stronger model or a clearer prompt may help",
		}}
	}
	value, err := json.Marshal(map[string]string{"plan": plan})
	if err != nil {
		return StopFor(err)
	}
	s.mu.Lock()
	s.outcome.StructuredOutput = value
	s.mu.Unlock()
	return nil
}

const planOpen, planClose = "<proposed_plan>", "</proposed_plan>"

// findPlan returns the text of the one plan in a message, or what is wrong.
func findPlan(text string) (plan, problem string) {
	opened, closed := strings.Count(text, planOpen), strings.Count(text, planClose)
	switch {
	case opened == 0 && closed == 0:
		return "", "its last message holds no " + planOpen + " block"
	case opened > 1 || closed > 1:
		return "", "its last message holds more than one " + planOpen + " block"
	}
	_, rest, opens := strings.Cut(text, planOpen)
	plan, _, closes := strings.Cut(rest, planClose)
	if !opens || !closes {
		return "", "the " + planOpen + " block of its last message is not closed"
	}
	if plan = strings.Trim(plan, "\r\n"); !visible(plan) {
		return "", "the " + planOpen + " block of its last message is empty"
	}
	return plan, ""
}
