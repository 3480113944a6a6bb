package policy

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// lineOf returns the line of a rule in the text of a policy.
func lineOf(t *testing.T, text, id string) int {
	t.Helper()
	for i, line := range strings.Split(text, "\n") {
		if strings.Contains(line, "id: "+id) && strings.HasSuffix(strings.TrimSpace(line), "id: "+id) {
			return i + 1
		}
	}
	t.Fatalf("no rule %q", id)
	return 0
}

func TestExplainNamesRuleAndLineOfEveryCaseOfTheExample(t *testing.T) {
	file := filepath.Join("testdata", "example.yaml")
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	p, err := Load(Sources{Flags: []string{file}, Roots: Roots{Workspace: "/w", Writable: []string{"/w"}, Home: "/home/u"}})
	if err != nil {
		t.Fatal(err)
	}
	// A name stands for the rule that decides, a word in brackets for what
	// decides without one.
	want := map[string]string{
		"status": "git-read", "pipeline": "git-read", "pipe to unknown": "no-force-push", "log to file": "(default)", "redirect secret": "no-secrets",
		"redirect code": "write-code", "substitution": "(shell.opaque)", "env prefix": "go-tools", "bad env prefix": "(shell.opaque)", "wrapper": "go-tools",
		"push": "push-asks", "force push": "no-force-push", "read env": "no-secrets", "climb out": "(default)", "patch two files": "no-secrets",
		"reviewer writes": "reviewers-do-not-write", "mcp read": "issues-read", "mcp write": "(default)", "host": "net-docs", "other host": "(default)",
		"spawn": "spawn-reviewer", "spawn other": "(default)",
	}
	for _, c := range p.Tests() {
		e := p.Explain(p.CallOf(c))
		a := e.Actions[e.Deciding]
		got, line := e.RuleID, 0
		if got == "" {
			got = "(" + a.Basis + ")"
		} else {
			line = lineOf(t, string(data), got)
		}
		if e.Effect != c.Expect || got != want[c.Name] || e.Line != line || line > 0 && e.File != file || a.Effect != e.Effect {
			t.Errorf("%s: got %s by %s in %s:%d, want %s by %s in line %d", c.Name, e.Effect, got, e.File, e.Line, c.Expect, want[c.Name], line)
		}
		decides := ""
		for _, m := range a.Rules {
			if m.Decides {
				decides = m.ID
			}
		}
		if decides != e.RuleID {
			t.Errorf("%s: %q decides, and the list says %q", c.Name, e.RuleID, decides)
		}
		delete(want, c.Name)
	}
	if len(want) > 0 {
		t.Errorf("no cases: %v", want)
	}
}

func TestExplainListsEveryRuleThatAnActionMeets(t *testing.T) {
	p := load(t, `
version: 1
default: deny
approval: on-request
deny_read: ["*.key"]
rules:
  - {id: git, effect: allow, argv: [git], network: true, timeout: 10s}
  - {id: push, effect: ask, argv: [git, push], max_scope: session}
  - {id: force, effect: deny, argv: [git, push], argv_any: [--force]}
  - {id: other, effect: deny, argv: [rm]}
  - {id: tmp, effect: allow, path: [tmp/**]}
`)
	e := p.Explain(run("git push --force; git $x > tmp/a; ls; rm -rf y"))
	var got []string
	for _, a := range e.Actions {
		line := a.Action + ": " + string(a.Effect) + " by " + a.Basis
		for _, m := range a.Rules {
			line += " " + m.ID
			if m.Possible {
				line += "?"
			}
			if m.Decides {
				line += "!"
			}
		}
		got = append(got, line)
	}
	want := []string{
		`"git push --force": deny by rule force! push git`,
		`write of "/w/tmp/a": allow by rule tmp!`,
		`"git $x": deny by rule force?! other? push? git`,
		`"ls": allow by known_safe`,
		`"rm -rf y": deny by rule other!`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if e.Effect != Deny || e.RuleID != "force" || e.Line != 9 || e.Deciding != 0 || e.OnDeny != DenyReport || e.Approval != "on-request" {
		t.Errorf("got %+v", e)
	}
	asked := p.Explain(run("git push"))
	if asked.Effect != Ask || asked.MaxScope != "session" || asked.OnAsk != AskDeny {
		t.Errorf("got %+v", asked)
	}
	allowed := p.Explain(run("git log"))
	if !allowed.Network || allowed.TimeoutMS != 10_000 || allowed.Actions[0].Rules[0].TimeoutMS != 10_000 {
		t.Errorf("got %+v", allowed)
	}
	read := p.Explain(Call{Actions: []Action{Read("/w/a.key", "/w/b")}})
	if read.RuleID != "deny_read" || read.Line != 5 || read.Layer != "flag" || read.Actions[0].Real != "/w/b" {
		t.Errorf("got %+v", read)
	}
	nothing := p.Explain(Call{Tool: "update_plan"})
	if nothing.Effect != Allow || nothing.Actions[0].Basis != "no_effect" {
		t.Errorf("got %+v", nothing)
	}
	data, err := json.Marshal(nothing)
	if err != nil || !strings.Contains(string(data), `"rules":[]`) || !strings.Contains(string(data), `"shell_opaque":"allow"`) {
		t.Errorf("got %s, %v", data, err)
	}
}

func TestExplainTellsOfAnEarlierAnswer(t *testing.T) {
	p := load(t, asking)
	c := run("git push")
	c.Grants = &Grants{}
	if err := c.Grants.Add(parsed(t, p, `{"id":"yes","argv":["git","push"]}`), ScopeSession); err != nil {
		t.Fatal(err)
	}
	e := p.Explain(c)
	if a := e.Actions[0]; e.Effect != Allow || a.Basis != "grant" || a.RuleID != "yes" || len(a.Rules) != 1 || a.Rules[0].ID != "push" || a.Rules[0].Decides {
		t.Errorf("got %+v", e)
	}
}
