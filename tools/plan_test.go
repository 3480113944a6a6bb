package tools

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"drover/output/event"
)

func TestPlanIsReplacedAsAWhole(t *testing.T) {
	env, events := toolEnv(t, nil)
	in := Input{Text: `{"explanation":"why","plan":[{"step":"read","status":"completed"},{"step":"write","status":"in_progress"},{"step":"test","status":"pending"}]}`}
	call, err := updatePlan.Prepare(env, in)
	if err != nil {
		t.Fatal(err)
	}
	if want := "plan: 1/3, write"; call.Display != want || len(call.Actions) > 0 {
		t.Errorf("display %q, want %q; actions %v", call.Display, want, call.Actions)
	}
	for _, in := range []Input{in, {Text: `{"plan":[]}`}} {
		if res := callTool(t, updatePlan, env, in); res.IsError || res.Text != "Plan updated" {
			t.Errorf("error %v, %q", res.IsError, res.Text)
		}
	}
	want := []event.Body{
		event.PlanUpdatedEvent{Explanation: "why", Items: []event.PlanItem{{Text: "read", Status: "completed"}, {Text: "write", Status: "in_progress"}, {Text: "test", Status: "pending"}}},
		event.PlanUpdatedEvent{Items: []event.PlanItem{}},
	}
	if diff := cmp.Diff(want, *events); diff != "" {
		t.Errorf("want - got +\n%s", diff)
	}
}

func TestPlanKeysAreStrict(t *testing.T) {
	env, events := toolEnv(t, nil)
	for _, c := range []struct{ name, in, want string }{
		{"no plan", `{}`, "missing field `plan`"},
		{"unknown key", `{"plan":[],"x":1}`, `unknown field "x"`},
		{"unknown key in a step", `{"plan":[{"step":"a","status":"pending","id":1}]}`, `unknown field "id"`},
		{"unknown status", `{"plan":[{"step":"a","status":"done"}]}`, `plan[0]: status "done" is not one of pending, in_progress, completed`},
		{"status missing", `{"plan":[{"step":"a","status":"pending"},{"step":"b"}]}`, "plan[1]: missing field `status`"},
		{"step missing", `{"plan":[{"status":"pending"}]}`, "plan[0]: missing field `step`"},
	} {
		t.Run(c.name, func(t *testing.T) {
			res := callTool(t, updatePlan, env, Input{Text: c.in})
			if want := "failed to parse function arguments: " + c.want; !res.IsError || res.Text != want {
				t.Errorf("error %v, got %q, want %q", res.IsError, res.Text, want)
			}
		})
	}
	if len(*events) > 0 {
		t.Errorf("events %v", *events)
	}
}
