package cmd

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"drover/output/fault"
	"drover/tools/policy"
)

// streamOf writes the lines of one run: each call with what became of it.
func streamOf(t *testing.T, dir string, bodies ...string) string {
	t.Helper()
	lines := []string{`"type":"run.started","schema":"s","product":"drover","version":"1","cwd":"/gone/proj","model":"m","provider":"p","policy":{"default":"deny","sha256":"0"},"limits":{},"capabilities":[]`}
	lines = append(lines, bodies...)
	var b strings.Builder
	for i, l := range lines {
		fmt.Fprintf(&b, `{"v":1,"seq":%d,"ts":"2026-01-02T03:04:05Z","run_id":"run_1","session_id":"ses_1",%s}`+"\n", i+1, l)
	}
	name := filepath.Join(dir, "stream.jsonl")
	if err := os.WriteFile(name, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return "stream.jsonl"
}

func recordedExec(id, script string) string {
	args, _ := json.Marshal(map[string]string{"cmd": script}) // a map of strings always encodes
	return fmt.Sprintf(`"type":"tool.call","tool_call_id":%q,"tool_name":"exec_command","args":%s,"display":"run"`, id, args)
}

func recordedDecision(id, rest string) string {
	return fmt.Sprintf(`"type":"tool.decision","tool_call_id":%q,"tool_name":"exec_command",%s`, id, rest)
}

func TestReplayKnowsWhatTheRecordedPolicySaid(t *testing.T) {
	const policyText = "version: 1\nrules:\n  - {id: ok, effect: allow, argv: [ok]}\n  - {id: asks, effect: ask, argv: [asks]}\n  - {id: no, effect: deny, argv: [no]}\n"
	request := `"type":"tool.approval.requested","tool_call_id":"c","tool_name":"exec_command","correlation_id":"x","args":{}`
	for name, tt := range map[string]struct {
		script string
		lines  []string
		// want is the change, empty for none, and - for a call that is not judged.
		want string
	}{
		"allowed and allowed":        {"ok", []string{recordedDecision("c", `"effect":"allow","decided_by":"policy"`)}, ""},
		"allowed and refused":        {"no", []string{recordedDecision("c", `"effect":"allow","decided_by":"policy"`)}, "narrow"},
		"allowed by yolo":            {"asks", []string{recordedDecision("c", `"effect":"allow","decided_by":"yolo"`)}, "narrow"},
		"a person said yes":          {"asks", []string{request, recordedDecision("c", `"effect":"allow","decided_by":"tty"`)}, ""},
		"a person said no":           {"asks", []string{request, recordedDecision("c", `"effect":"deny","decided_by":"approver"`)}, ""},
		"a grant":                    {"ok", []string{recordedDecision("c", `"effect":"allow","decided_by":"grant"`)}, "widen"},
		"an ask without an answer":   {"asks", []string{recordedDecision("c", `"effect":"deny","decided_by":"policy","rule_id":"q","reason":"rule \"q\" says ask"`)}, ""},
		"an ask among the parts":     {"asks", []string{recordedDecision("c", `"effect":"deny","decided_by":"policy","reason":"r","parts":[{"action":"a","effect":"ask","decided_by":"policy"}]`)}, ""},
		"a refusal that now asks":    {"asks", []string{recordedDecision("c", `"effect":"deny","decided_by":"policy","rule_id":"q","reason":"never"`)}, "widen"},
		"a dry run":                  {"ok", []string{recordedDecision("c", `"effect":"would_deny","decided_by":"default"`)}, "widen"},
		"a dry run that was allowed": {"ok", []string{recordedDecision("c", `"effect":"would_allow","decided_by":"policy"`)}, ""},
		"plan mode refused":          {"ok", []string{recordedDecision("c", `"effect":"deny","decided_by":"policy","reason":"plan mode: the command may change state"`)}, ""},
		"core events of a run":       {"no", []string{`"type":"tool.status","tool_call_id":"c","tool_name":"exec_command","status":"running"`}, "narrow"},
		"a hook refused":             {"ok", []string{recordedDecision("c", `"effect":"deny","decided_by":"hook"`)}, "-"},
		"never decided":              {"ok", nil, "-"},
		"rewritten":                  {"ok", []string{request, `"type":"tool.approval.resolved","tool_call_id":"c","correlation_id":"x","approved":true,"scope":"once","decided_by":"approver","args_rewritten":true,"args":{"cmd":"no"}`, recordedDecision("c", `"effect":"allow","decided_by":"approver"`)}, "narrow"},
		"rewritten, and not told":    {"ok", []string{request, `"type":"tool.approval.resolved","tool_call_id":"c","correlation_id":"x","approved":true,"scope":"once","decided_by":"approver","args_rewritten":true`, recordedDecision("c", `"effect":"allow","decided_by":"approver"`)}, "-"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			writePolicy(t, dir, "p.yaml", policyText)
			file := streamOf(t, dir, append([]string{recordedExec("c", tt.script)}, tt.lines...)...)
			stdout, stderr, err := policyCommand(t, dir, "replay", "--policy", "p.yaml", "--format", "json", file)
			var got replayResult
			if json.Unmarshal([]byte(stdout), &got) != nil {
				t.Fatalf("%v: %s%s", err, stdout, stderr)
			}
			change := ""
			switch {
			case len(got.NotJudged) > 0:
				change = "-"
			case len(got.Changes) > 0:
				change = got.Changes[0].Change
			}
			if change != tt.want || got.Judged+len(got.NotJudged) != 1 {
				t.Errorf("got %q, want %q: %s", change, tt.want, stdout)
			}
		})
	}
}

// TestCallsAreJudgedWhereTheyWereMade takes a folder that is not there any more
// and a patch whose files are gone.
func TestCallsAreJudgedWhereTheyWereMade(t *testing.T) {
	dir := t.TempDir()
	writePolicy(t, dir, "p.yaml", "version: 1\nrules:\n  - {id: src, effect: allow, path: ['src/**'], access: [write, delete]}\n")
	patch := func(id, text string) string {
		args, _ := json.Marshal(map[string]string{"input": "*** Begin Patch\n" + text + "\n*** End Patch"}) // as above
		return fmt.Sprintf(`"type":"tool.call","tool_call_id":%q,"tool_name":"apply_patch","args":%s,"display":"patch"`, id, args)
	}
	allowed := func(id string) string { return recordedDecision(id, `"effect":"allow","decided_by":"policy"`) }
	file := streamOf(t, dir,
		patch("a", "*** Update File: src/old.go\n@@\n-gone\n+new"), allowed("a"),
		patch("b", "*** Delete File: /gone/proj/src/x.go"), allowed("b"),
		patch("c", "*** Update File: src/a.go\n*** Move to: lib/a.go\n@@\n-a\n+b"), allowed("c"),
		`"type":"tool.call","tool_call_id":"d","tool_name":"apply_patch","args":{"input":"cut"},"display":"patch","truncated":true`, allowed("d"),
		`"type":"tool.call","tool_call_id":"e","tool_name":"mine","args":{},"display":"mine"`, allowed("e"),
	)
	stdout, _, err := policyCommand(t, dir, "replay", "--policy", "p.yaml", "--format", "json", file)
	var got replayResult
	if json.Unmarshal([]byte(stdout), &got) != nil || err != nil {
		t.Fatalf("%v: %s", err, stdout)
	}
	if got.Judged != 3 || got.Narrowed != 1 || got.Changes[0].ToolCallID != "c" || len(got.NotJudged) != 2 {
		t.Errorf("got %s", stdout)
	}
	if !strings.Contains(got.NotJudged[0].Problem, "cut to fit") || !strings.Contains(got.NotJudged[1].Problem, "not known") {
		t.Errorf("got %+v", got.NotJudged)
	}
}

func TestStreamsThatAreDamagedAreNotReadInSilence(t *testing.T) {
	dir := t.TempDir()
	writePolicy(t, dir, "p.yaml", "version: 1\n")
	file := streamOf(t, dir, recordedExec("c", "ls"), recordedDecision("c", `"effect":"deny","decided_by":"default"`))
	data, err := os.ReadFile(filepath.Join(dir, file))
	if err != nil {
		t.Fatal(err)
	}
	writePolicy(t, dir, "broken.jsonl", "{\"v\":1}\n"+string(data)+`{"record":"keep","data":{}}`+"\n"+`{"v":1,"seq":9,"ty`)
	for _, sub := range []string{"replay", "suggest"} {
		stdout, stderr, err := policyCommand(t, dir, sub, "--policy", "p.yaml", "broken.jsonl")
		var quiet exitWith
		if !errors.As(err, &quiet) || quiet.code != fault.Failed || !strings.Contains(stderr, "broken.jsonl: line 1: ") || strings.Contains(stderr, "line 5") {
			t.Errorf("%s: %v, %s%s", sub, err, stdout, stderr)
		}
	}
	var quiet exitWith
	if _, _, err := policyCommand(t, dir, "replay", "--policy", "gone.yaml", file); fault.From(err).Exit != fault.Config {
		t.Errorf("got %v", err)
	}
	blind := streamOf(t, dir, `"type":"tool.call","tool_call_id":"e","tool_name":"mine","args":{},"display":"mine"`, recordedDecision("e", `"effect":"allow","decided_by":"policy"`))
	if _, _, err := policyCommand(t, dir, "replay", "--policy", "p.yaml", "--fail-on", "widen", blind); !errors.As(err, &quiet) || quiet.code != fault.Failed {
		t.Errorf("a stream of which nothing can be judged: %v", err)
	}
}

// TestSuggestedRulesAreAPolicyWhateverTheCallsHold takes calls that try to break
// out of the comments that they are named in.
func TestSuggestedRulesAreAPolicyWhateverTheCallsHold(t *testing.T) {
	dir := t.TempDir()
	writePolicy(t, dir, "p.yaml", "version: 1\n")
	var lines []string
	for i, script := range []string{"touch 'a\nrules: []'", "touch \"\x1b[31m\"", "git status", "touch 'x' # y\nid", "echo \u202e", "ls | sort"} {
		id := fmt.Sprintf("c%d", i)
		args, _ := json.Marshal(map[string]string{"cmd": script})           // as above
		display, _ := json.Marshal("run: " + script + "\n  - id: injected") // as above
		lines = append(lines, fmt.Sprintf(`"type":"tool.call","tool_call_id":%q,"tool_name":"exec_command","args":%s,"display":%s`, id, args, display),
			recordedDecision(id, `"effect":"would_deny","decided_by":"default"`))
	}
	file := streamOf(t, dir, lines...)
	stdout, stderr, err := policyCommand(t, dir, "suggest", "--policy", "p.yaml", file)
	if err != nil {
		t.Fatalf("%v: %s", err, stderr)
	}
	p, err := policy.Load(policy.Sources{Inline: []byte(stdout), Roots: policy.Roots{Workspace: dir}})
	if err != nil {
		t.Fatalf("%v:\n%s", err, stdout)
	}
	if len(p.Rules()) < 4 || strings.Contains(stdout, "\x1b") || strings.Contains(stdout, "\n  - id: injected") {
		t.Errorf("got %d rules:\n%s", len(p.Rules()), stdout)
	}
	writePolicy(t, dir, "more.yaml", stdout)
	again, _, err := policyCommand(t, dir, "suggest", "--policy", "p.yaml", "--policy", "more.yaml", "--format", "json", file)
	var got suggestions
	if err != nil || json.Unmarshal([]byte(again), &got) != nil || len(got.Rules) != 0 || got.AllowedNow+len(got.NeedsPerson) != got.Refused {
		t.Errorf("%v: with the rules in force: %s", err, again)
	}
}

func FuzzCaseFile(f *testing.F) {
	for _, seed := range []string{"policy: p.yaml\ntests:\n  - {exec: ls, expect: allow}\n", "policy:\n  - a\n  - b\ntests: []\n", "{policy: a}", "policy: &x a\ntests: *x\n", "? [a]\n: b\n", "policy: |\n  a\n  b\n", "---\n---\n"} {
		f.Add(seed)
	}
	name := filepath.Join(f.TempDir(), "x.policytest.yaml")
	f.Fuzz(func(t *testing.T, text string) {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		c, err := readCaseFile(name)
		if err != nil {
			if fault.From(err).Exit != fault.Config {
				t.Fatalf("no fault of the file: %v", err)
			}
			return
		}
		if len(c.policies) == 0 || strings.Count(string(c.cases), "\n") != strings.Count(text, "\n") {
			t.Fatalf("the lines have moved: %q became %q", text, c.cases)
		}
	})
}
