package tools

import (
	"context"
	"errors"
	"fmt"

	"drover/output/event"
)

// updatePlan shows the plan of the agent. Nothing is kept: each call brings the
// whole list.
var updatePlan = notPlanning{New(Def[planInput]{
	Name:     "update_plan",
	Doc:      "Replaces the list of steps shown to the user. At most one step is in_progress.",
	Strict:   true,
	Approval: "never",
	Enums:    map[string][]any{"plan.status": {"pending", "in_progress", "completed"}},
	Check:    checkPlan,
	Display:  func(in planInput, _ Env) string { return "plan: " + in.progress() },
	Run:      runPlan,
})}

// notPlanning is a tool that plan mode has no use for: its list is of steps
// that are being carried out.
type notPlanning struct{ Tool }

// Prepare refuses every call in plan mode, whatever its arguments.
func (t notPlanning) Prepare(env Env, in Input) (*Call, error) {
	if env.Planning {
		return nil, errors.New(t.Spec().Name + " is a TODO/checklist tool and is not allowed in Plan mode")
	}
	return t.Tool.Prepare(env, in)
}

type planInput struct {
	Plan        []planStep `json:"plan"`
	Explanation string     `json:"explanation,omitempty"`
}

type planStep struct {
	Step   string           `json:"step"`
	Status event.PlanStatus `json:"status"`
}

// checkPlan does what the decoder does not: keys of the steps must be there, and
// the status must be a known one.
func checkPlan(in planInput, _ Env) error {
	for i, s := range in.Plan {
		switch s.Status {
		case "pending", "in_progress", "completed":
		case "":
			return &ArgumentError{Message: fmt.Sprintf("plan[%d]: missing field `status`", i)}
		default:
			return &ArgumentError{Message: fmt.Sprintf("plan[%d]: status %q is not one of pending, in_progress, completed", i, s.Status)}
		}
		if s.Step == "" {
			return &ArgumentError{Message: fmt.Sprintf("plan[%d]: missing field `step`", i)}
		}
	}
	return nil
}

// progress is the share of completed steps and the one being worked on.
func (in planInput) progress() string {
	done, current := 0, ""
	for _, s := range in.Plan {
		switch {
		case s.Status == "completed":
			done++
		case s.Status == "in_progress" && current == "":
			current = ", " + s.Step
		}
	}
	return fmt.Sprintf("%d/%d%s", done, len(in.Plan), current)
}

func runPlan(_ context.Context, in planInput, env Env) (Result, error) {
	e := event.PlanUpdatedEvent{Items: make([]event.PlanItem, 0, len(in.Plan)), Explanation: in.Explanation}
	for _, s := range in.Plan {
		e.Items = append(e.Items, event.PlanItem{Text: s.Step, Status: s.Status})
	}
	env.Emit(e)
	return Result{Text: "Plan updated", Display: in.progress()}, nil
}
