package cmd

import (
	"encoding/json"
	"encoding/xml"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"drover/output/fault"
)

const casesPolicy = `version: 1
rules:
  - {id: git, effect: allow, argv: [git, [status, log]]}
  - {id: make, effect: ask, argv: [make]}
  - {id: no-rm, effect: deny, argv: [rm], reason: "keep files"}
tests:
  - {name: status, exec: "git status", expect: allow, rule: git}
`

func TestFailedCaseSaysExpectedGotRuleAndLine(t *testing.T) {
	dir := t.TempDir()
	writePolicy(t, dir, "p.yaml", casesPolicy+`  - {name: "asks <first> #1", exec: "make all", expect: allow}
  - {name: wrong rule, exec: "rm x", expect: deny, rule: git}
  - {name: no call, tool: exec_command, args: {comand: ls}, expect: allow}
`)
	for format, parts := range map[string][]string{
		"text": {
			`FAIL p.yaml:8 asks <first> #1: expected allow, got ask by rule "make"`, "call: exec make all", `decided by rule "make" (p.yaml:4): rule "make" says ask`,
			`FAIL p.yaml:9 wrong rule: expected deny by rule "git", got deny by rule "no-rm"`, `(p.yaml:5): keep files`,
			"FAIL p.yaml:10 no call: expected allow, got no verdict: failed to parse function arguments: missing field `cmd`", "p.yaml: FAILED: 1 of 4 cases passed",
		},
		"tap": {"TAP version 13\n1..4\nok 1 - p.yaml:7: status\nnot ok 2 - p.yaml:8: asks <first> \\#1\n  ---\n", `  expected: "allow"`, `  got: "ask by rule \"make\""`},
	} {
		stdout, stderr, err := policyCommand(t, dir, "test", "p.yaml", "--format", format)
		var quiet exitWith
		if !errors.As(err, &quiet) || quiet.code != fault.Failed || stderr != "" {
			t.Errorf("%s: got %v, %s", format, err, stderr)
		}
		for _, part := range parts {
			if !strings.Contains(stdout, part) {
				t.Errorf("%s lacks %q:\n%s", format, part, stdout)
			}
		}
	}

	stdout, _, _ := policyCommand(t, dir, "test", "p.yaml", "--format", "junit")
	var junit junitSuites
	if err := xml.Unmarshal([]byte(stdout), &junit); err != nil {
		t.Fatalf("%v: %s", err, stdout)
	}
	if junit.Tests != 4 || junit.Failed != 3 || len(junit.Suites) != 1 || junit.Suites[0].Cases[1].Name != "asks <first> #1" || junit.Suites[0].Cases[1].Failure == nil ||
		junit.Suites[0].Cases[0].Failure != nil || junit.Suites[0].Cases[1].Line != 8 {
		t.Errorf("got %+v", junit)
	}
	stdout, _, _ = policyCommand(t, dir, "test", "p.yaml", "--format", "json")
	var doc struct {
		Passed, Failed int
		Suites         []suiteResult
	}
	if err := json.Unmarshal([]byte(stdout), &doc); err != nil {
		t.Fatalf("%v: %s", err, stdout)
	}
	if doc.Passed != 1 || doc.Failed != 3 || doc.Suites[0].Cases[1].Got.RuleID != "make" || doc.Suites[0].Cases[1].Got.Line != 4 {
		t.Errorf("got %+v", doc)
	}
}

func TestCasesOfToolsAreJudgedByWhatTheyDo(t *testing.T) {
	dir := t.TempDir()
	writePolicy(t, dir, "p.yaml", casesPolicy+`  - {tool: exec_command, args: {cmd: git log}, expect: allow, rule: git}
  - {tool: shell, args: {command: [rm, -r, x]}, expect: deny, rule: no-rm}
  - {tool: update_plan, args: {plan: [{step: look, status: pending}]}, expect: allow}
  - {tool: spawn_agent, expect: deny}
  - {name: a program that no machine has, exec: "no-such-program-anywhere", expect: deny}
`)
	stdout, stderr, err := policyCommand(t, dir, "test", "p.yaml")
	if err != nil || !strings.Contains(stdout, "p.yaml: ok: 6 of 6 cases passed") {
		t.Errorf("got %v, %s%s", err, stdout, stderr)
	}
}

func TestProgramThatIsNotOnPathCountsAsFound(t *testing.T) {
	dir := t.TempDir()
	writePolicy(t, dir, "p.yaml", `version: 1
rules:
  - {id: tool, effect: allow, argv: [no-such-program-anywhere]}
  - {id: git, effect: allow, argv: [git, status]}
tests:
  - {exec: "no-such-program-anywhere --version", expect: allow, rule: tool}
  - {name: a function that the script defines is no program, exec: "f() { git status; }; f", expect: allow}
`)
	stdout, stderr, err := policyCommand(t, dir, "test", "p.yaml")
	if err != nil {
		t.Errorf("got %v, %s%s", err, stdout, stderr)
	}
	stdout, _, err = policyCommand(t, dir, "explain", "--policy", "p.yaml", "--exec", "no-such-program-anywhere && git status")
	if err != nil || !strings.Contains(stdout, `note: "no-such-program-anywhere" is nowhere on PATH here`) || strings.Contains(stdout, `note: "git"`) {
		t.Errorf("got %v, %s", err, stdout)
	}
}

func TestCaseFilesBesideAPolicyAreRun(t *testing.T) {
	dir := t.TempDir()
	writePolicy(t, dir, "p.yaml", casesPolicy)
	writePolicy(t, dir, "other.yaml", casesPolicy)
	writePolicy(t, dir, "more.policytest.yaml", "# first\npolicy:\n  p.yaml\ntests:\n  - {name: log, exec: git log, expect: allow}\n  - {name: bad, exec: git log, expect: deny}\n")
	writePolicy(t, dir, "others.policytest.yaml", "policy: [other.yaml]\ntests:\n  - {name: elsewhere, exec: git log, expect: deny}\n")
	for _, args := range [][]string{{"test", "p.yaml"}, {"test", "p.yaml", "more.policytest.yaml"}} {
		stdout, _, err := policyCommand(t, dir, args...)
		var quiet exitWith
		if !errors.As(err, &quiet) || quiet.code != fault.Failed {
			t.Errorf("got %v", err)
		}
		for _, part := range []string{"p.yaml: ok: 1 of 1", "FAIL more.policytest.yaml:6 bad: expected deny, got allow", `(p.yaml:3)`, "more.policytest.yaml: FAILED: 1 of 2 cases passed"} {
			if strings.Count(stdout, part) != 1 {
				t.Errorf("%q is not there once:\n%s", part, stdout)
			}
		}
		if strings.Contains(stdout, "elsewhere") {
			t.Errorf("cases of another policy were run:\n%s", stdout)
		}
	}
}

func TestBrokenCaseFilesFailClosed(t *testing.T) {
	for name, text := range map[string]string{
		"unknown key":      "policy: p.yaml\nrules: []\ntests: []\n",
		"no policy":        "tests: []\n",
		"flow mapping":     "{policy: p.yaml, tests: []}\n",
		"not yaml":         "policy: [\n",
		"missing policy":   "policy: gone.yaml\ntests:\n  - {exec: ls, expect: allow}\n",
		"wrong case":       "policy: p.yaml\ntests:\n  - {exec: ls, expect: alow}\n",
		"policy is number": "policy: 3\ntests: []\n",
		"empty":            "",
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			writePolicy(t, dir, "p.yaml", casesPolicy)
			writePolicy(t, dir, "x.policytest.yaml", text)
			_, _, err := policyCommand(t, dir, "test", "x.policytest.yaml")
			if f := fault.From(err); err == nil || f.Exit != fault.Config {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestPolicyTestWithoutCasesIsNoSuccess(t *testing.T) {
	dir := t.TempDir()
	writePolicy(t, dir, "p.yaml", "version: 1\n")
	_, _, err := policyCommand(t, dir, "test", "p.yaml")
	if f := fault.From(err); err == nil || f.Exit != fault.Failed || f.Code != "no_tests" {
		t.Errorf("got %v", err)
	}
	if _, _, err := policyCommand(t, dir, "test", "gone.yaml"); fault.From(err).Exit != fault.Config {
		t.Errorf("got %v", err)
	}
	if _, _, err := policyCommand(t, dir, "test", "p.yaml", "--format", "xml"); fault.From(err).Exit != fault.Usage {
		t.Errorf("got %v", err)
	}
}

func TestPolicyInForceIsTestedWithAllItsLayers(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "config", "drover"), 0o700); err != nil {
		t.Fatal(err)
	}
	writePolicy(t, dir, filepath.Join("config", "drover", "policy.yaml"), "version: 1\nrules:\n  - {id: no-log, effect: deny, argv: [git, log]}\n")
	writePolicy(t, dir, "p.yaml", "version: 1\nrules:\n  - {id: git, effect: allow, argv: [git]}\ntests:\n  - {name: log, exec: git log, expect: allow}\n")
	stdout, _, err := policyCommand(t, dir, "test", "--policy", "p.yaml")
	var quiet exitWith
	if !errors.As(err, &quiet) || quiet.code != fault.Failed || !strings.Contains(stdout, `FAIL p.yaml:5 log: expected allow, got deny by rule "no-log"`) {
		t.Errorf("got %v, %s", err, stdout)
	}
}

func TestPolicyCheckStrictAndJSON(t *testing.T) {
	dir := t.TempDir()
	writePolicy(t, dir, "good.yaml", casesPolicy)
	writePolicy(t, dir, "wide.yaml", "version: 1\nrules:\n  - {id: all, effect: allow, argv: ['*']}\ntests:\n  - {exec: ls, expect: allow}\n")
	writePolicy(t, dir, "bad.yaml", "version: 2\nrules:\n  - {id: a, effect: alow, argv: [x]}\n")
	if stdout, _, err := policyCommand(t, dir, "check", "--strict", "good.yaml"); err != nil {
		t.Errorf("got %v, %s", err, stdout)
	}
	var quiet exitWith
	if _, _, err := policyCommand(t, dir, "check", "--strict", "wide.yaml"); !errors.As(err, &quiet) || quiet.code != fault.Config {
		t.Errorf("got %v", err)
	}
	stdout, stderr, err := policyCommand(t, dir, "check", "--format", "json", "wide.yaml", "bad.yaml")
	if !errors.As(err, &quiet) || quiet.code != fault.Config {
		t.Errorf("got %v", err)
	}
	var got []checkedFile
	if err := json.Unmarshal([]byte(stdout), &got); err != nil {
		t.Fatalf("%v: %s", err, stdout)
	}
	if len(got) != 2 || !got[0].OK || len(got[0].Warnings) != 1 || got[0].Warnings[0].Line != 3 || got[1].OK || len(got[1].Error.Problems) != 2 || !strings.Contains(got[1].Error.Why, "line 1") {
		t.Errorf("got %+v", got)
	}
	if !strings.Contains(stderr, "  also: line 3") {
		t.Errorf("the second problem is not told: %s", stderr)
	}
}

func TestExplainRefusesHalfACall(t *testing.T) {
	dir := t.TempDir()
	for _, args := range [][]string{
		{}, {"--exec", "ls", "--host", "x"}, {"--path", "src/a.go"}, {"--path", "exec:x"}, {"--path", "read:"}, {"--tool", "exec_comand"},
		{"--tool", "spawn_agent", "--args", "{"}, {"--args", "{}", "--exec", "ls"}, {"--mcp", "github"}, {"--host", "https://x/"}, {"--agent", "root", "--exec", "ls"},
		{"--tool", "exec_command", "--args", "{}"}, {"--exec", "ls", "--format", "yaml"}, {"--exec", "ls", "--sandbox", "on"},
	} {
		if _, _, err := policyCommand(t, dir, append([]string{"explain"}, args...)...); err == nil || fault.From(err).Exit != fault.Usage {
			t.Errorf("%q: got %v", args, err)
		}
	}
}

func TestExplainSeesTheSandboxAndTheLayers(t *testing.T) {
	dir := t.TempDir()
	for _, tt := range []struct {
		args []string
		want string
		code fault.Exit
	}{
		{[]string{"--path", "write:a"}, "allow: write a", fault.Success},
		{[]string{"--path", "write:/elsewhere/a"}, "decided by the sandbox", fault.Blocked},
		{[]string{"--path", "write:/elsewhere/a", "--add-dir", "/elsewhere"}, "allow: write", fault.Success},
		{[]string{"--path", "write:a", "--sandbox", "read-only"}, "the sandbox is read-only", fault.Blocked},
		{[]string{"--exec", "rm -rf x", "--deny", "exec:rm"}, `decided by rule "flag-1" (--deny)`, fault.Blocked},
		{[]string{"--exec", "anything", "--yolo"}, "decided by --yolo", fault.Success},
		{[]string{"--tool", "update_plan", "--args", `{"plan":[]}`, "--deny", "tool:update_plan"}, "deny: tool update_plan", fault.Blocked},
		{[]string{"--tool", "apply_patch", "--args", `{"input":"*** Begin Patch\n*** Delete File: x\n*** End Patch"}`, "--deny", "delete:x"}, `delete: delete of "` + dir + `/x"`, fault.Blocked},
	} {
		stdout, _, err := policyCommand(t, dir, append([]string{"explain"}, tt.args...)...)
		code := fault.Success
		var quiet exitWith
		if errors.As(err, &quiet) {
			code = quiet.code
		} else if err != nil {
			t.Errorf("%q: %v", tt.args, err)
		}
		if code != tt.code || !strings.Contains(stdout, tt.want) {
			t.Errorf("%q: exit %d, %s", tt.args, code, stdout)
		}
	}
}

func TestExplainShowsEveryRuleThatMatches(t *testing.T) {
	dir := t.TempDir()
	writePolicy(t, dir, "p.yaml", "version: 1\nrules:\n  - {id: git, effect: allow, argv: [git]}\n  - {id: asks, effect: ask, argv: [git, push]}\n  - {id: never, effect: deny, argv: [git, push], argv_any: [-f]}\n")
	stdout, _, err := policyCommand(t, dir, "explain", "--policy", "p.yaml", "--exec", "git push -f")
	var quiet exitWith
	if !errors.As(err, &quiet) || quiet.code != fault.Blocked {
		t.Errorf("got %v", err)
	}
	for _, part := range []string{"never (p.yaml:5, flag)  <- decides", "ask   asks (p.yaml:4, flag)\n", "allow git (p.yaml:3, flag)\n"} {
		if !strings.Contains(stdout, part) {
			t.Errorf("%q is missing:\n%s", part, stdout)
		}
	}
	stdout, _, _ = policyCommand(t, dir, "explain", "--policy", "p.yaml", "--exec", "git push -f", "--format", "json")
	var got explained
	if err := json.Unmarshal([]byte(stdout), &got); err != nil || len(got.Actions) != 1 || len(got.Actions[0].Rules) != 3 || !got.Actions[0].Rules[0].Decides {
		t.Errorf("got %v, %s", err, stdout)
	}
}
