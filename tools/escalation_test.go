package tools

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"drover/tools/sandbox"
)

func TestEscalationIsAskedForOnlyWhereSomebodyMayGrantIt(t *testing.T) {
	env, rec := commandEnv(t)
	forms := map[Tool]string{
		execCommand:  `"cmd":"git push"`,
		shellCommand: `"command":"git push"`,
		shellTool:    `"command":["git","push"]`,
	}
	for tool, command := range forms {
		args := `{` + command + `,"sandbox_permissions":"require_escalated","justification":"to publish","prefix_rule":["git","push"]}`
		for _, approval := range []string{"on-request", "granular"} {
			env.Approval = approval
			call, err := tool.Prepare(env, Input{Text: args})
			if err != nil {
				t.Fatal(err)
			}
			want := &Wants{Rights: sandbox.Rights{Off: true}, Justification: "to publish", PrefixRule: []string{"git", "push"}}
			if diff := cmp.Diff(want, call.Wants); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tool.Spec().Name, diff)
			}
		}
		for _, approval := range []string{"untrusted", "on-failure", "never"} {
			env.Approval = approval
			if _, err := tool.Prepare(env, Input{Text: args}); err == nil || !strings.Contains(err.Error(), "the approval policy is "+approval) {
				t.Errorf("%s under %s: %v", tool.Spec().Name, approval, err)
			}
		}
		env.Approval = "on-request"
		call, err := tool.Prepare(env, Input{Text: `{` + command + `,"sandbox_permissions":"use_default"}`})
		if err != nil || call.Wants != nil {
			t.Errorf("%s asks for nothing, but got %+v, %v", tool.Spec().Name, call, err)
		}
	}
	if len(rec.events) > 0 {
		t.Errorf("events %v", rec.events)
	}
}
