package runner

import (
	"path/filepath"
	"strings"
	"testing"

	"drover/output/fault"
	"drover/tools"
	"drover/tools/policy"
)

func TestPlanIsFoundOnce(t *testing.T) {
	for _, c := range []struct{ name, text, plan, problem string }{
		{"block", "So:\n<proposed_plan>\n1. Do it.\n  - well\n</proposed_plan>\nThat is all.", "1. Do it.\n  - well", ""},
		{"one line", "<proposed_plan>Do it.</proposed_plan>", "Do it.", ""},
		{"none", "I would do it.", "", "no <proposed_plan> block"},
		{"two", "<proposed_plan>a</proposed_plan><proposed_plan>b</proposed_plan>", "", "more than one"},
		{"nested", "<proposed_plan>a<proposed_plan>b</proposed_plan>", "", "more than one"},
		{"open", "<proposed_plan>a", "", "not closed"},
		{"closed before it opens", "</proposed_plan>a<proposed_plan>", "", "not closed"},
		{"only the end", "a</proposed_plan>", "", "not closed"},
		{"empty", "<proposed_plan>\n \n</proposed_plan>", "", "is empty"},
	} {
		plan, problem := findPlan(c.text)
		if plan != c.plan || !strings.Contains(problem, c.problem) || (problem == "") != (c.problem == "") {
			t.Errorf("%s: got %q, %q", c.name, plan, problem)
		}
	}
}

func FuzzPlanIsPartOfItsMessage(f *testing.F) {
	f.Add("<proposed_plan>\na\n</proposed_plan>")
	f.Add("</proposed_plan><proposed_plan>")
	f.Fuzz(func(t *testing.T, text string) {
		plan, problem := findPlan(text)
		if (plan == "") != (problem != "") || !strings.Contains(text, plan) || strings.Contains(plan, planOpen) || strings.Contains(plan, planClose) {
			t.Fatalf("got %q, %q", plan, problem)
		}
	})
}

// TestPlanModeChangesNothing plays writes of every kind against a policy that
// allows everything.
func TestPlanModeChangesNothing(t *testing.T) {
	var dir string
	out, lines := play(t, `{"tool_calls":[{"name":"exec_command","args":{"cmd":"pwd"}}]}
{"capture":{"dir":"Output:\\n(\\S+)"},"tool_calls":[{"name":"write_file","args":{"path":"${dir}/a.txt","content":"x"}},{"name":"apply_patch","input":"*** Begin Patch\n*** Add File: b.txt\n+x\n*** End Patch"},{"name":"exec_command","args":{"cmd":"echo x > c.txt"}},{"name":"exec_command","args":{"cmd":"touch d.txt; ls"}},{"name":"exec_command","args":{"cmd":"apply_patch <<'EOF'\n*** Begin Patch\n*** Add File: e.txt\n+x\n*** End Patch\nEOF"}},{"name":"update_plan","args_raw":"{"},{"name":"check","args":{"cmd":"touch f.txt"}}]}
{"expect":"(?s)plan mode: files are not changed.*plan mode: the command may change state.*update_plan is a TODO/checklist tool and is not allowed in Plan mode","text":"<proposed_plan>\nWrite a.txt.\n</proposed_plan>"}`,
		func(o *Options) {
			dir, o.Mode = o.Cwd, ModePlan
			o.Checks, o.Schema = []string{"exit 1"}, &Schema{}
			o.Limits.Denials = 2
		})
	if out.End.Exit != fault.Success || string(out.StructuredOutput) != `{"plan":"Write a.txt."}` || len(out.Checks) != 0 {
		t.Errorf("ended with %+v, %s, %v", out.End, out.StructuredOutput, out.Checks)
	}
	if len(out.Denials) != 6 {
		t.Errorf("%d refusals: %+v", len(out.Denials), out.Denials)
	}
	for _, d := range out.Denials {
		if d.Counts || d.DecidedBy != "policy" || d.RuleID != "" || !strings.HasPrefix(d.Reason, "plan mode: ") {
			t.Errorf("refusal %+v", d)
		}
	}
	if left, err := filepath.Glob(filepath.Join(dir, "*.txt")); err != nil || len(left) > 0 {
		t.Errorf("%v was written, %v", left, err)
	}
	started, _, _ := strings.Cut(lines, "\n")
	if strings.Contains(started, `"write_file"`) || !strings.Contains(started, `"search_in_files"`) {
		t.Errorf("offered: %s", started)
	}
}

func TestPlanModeMayLook(t *testing.T) {
	out, _ := play(t, `{"tool_calls":[{"name":"exec_command","args":{"cmd":"pwd"}},{"name":"search_in_files","args":{"query":"pwd"}}]}
{"expect":"Process exited with code 0","text":"No plan."}`, func(o *Options) { o.Mode = ModePlan })
	if out.End.Exit != fault.Incomplete || out.End.Reason != "no_plan" || out.StructuredOutput != nil || len(out.Denials) != 0 {
		t.Errorf("ended with %+v, %s, %v", out.End, out.StructuredOutput, out.Denials)
	}
}

// TestPromptNamesTheQuestionsThatCanBeAsked keeps the model from guessing the
// ids of the answers, and from asking with a tool that is refused.
func TestPromptNamesTheQuestionsThatCanBeAsked(t *testing.T) {
	denied, err := policy.Load(policy.Sources{Preset: "yolo", Deny: []string{"tool:request_user_input"}, Roots: policy.Roots{Workspace: "/"}})
	if err != nil {
		t.Fatal(err)
	}
	allowed, err := policy.Load(policy.Sources{Preset: "yolo", Roots: policy.Roots{Workspace: "/"}})
	if err != nil {
		t.Fatal(err)
	}
	answers := map[string]string{"when": "noon", "target": "secretly staging"}
	for _, c := range []struct {
		policy  *policy.Policy
		answers map[string]string
		want    bool
	}{{allowed, answers, true}, {denied, answers, false}, {allowed, nil, false}} {
		r := &run{Options: Options{Tools: tools.All(), Policy: c.policy, Answers: c.answers}}
		r.chooseTools()
		text := systemPrompt(r)
		if got := strings.Contains(text, "under exactly these ids: target, when."); got != c.want || strings.Contains(text, "staging") {
			t.Errorf("%v: %s", c.want, text)
		}
	}
}
