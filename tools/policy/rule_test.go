package policy

import (
	"encoding/json"
	"strings"
	"sync"
	"testing"
)

func TestToolRules(t *testing.T) {
	p := load(t, `
version: 1
rules:
  - {id: no-web, effect: deny, tool: [list_mcp_*, container.exec]}
  - {id: no-plan-for-children, effect: deny, tool: [update_plan], agent: ["/root/*"]}
  - {id: spawn, effect: allow, tool: [spawn_agent], args: {/role: [reviewer, "test*"], /n: ["3"]}}
  - {id: no-root, effect: deny, args: {/role: [root]}}
  - {id: mine, effect: allow, tool: [deploy], except: [{args: {/target: [prod*]}}]}
`, func(s *Sources) { s.Tools = []string{"deploy"} })
	for _, c := range []struct {
		call Call
		want Effect
		id   string
	}{
		{Call{Tool: "list_mcp_resources"}, Deny, "no-web"}, {Call{Tool: "shell", Actions: []Action{Exec("/w", "ls")}}, Deny, "no-web"},
		{Call{Tool: "container.exec"}, Deny, "no-web"}, {Call{Tool: "update_plan"}, Allow, ""}, {Call{Tool: "update_plan", Agent: "/root/a"}, Deny, "no-plan-for-children"},
		{Call{Tool: "never_heard_of"}, Allow, ""},
		{spawn(`{"role":"reviewer","n":3}`), Allow, "spawn"}, {spawn(`{"role":"tester","n":3}`), Allow, "spawn"}, {spawn(`{"role":"reviewer"}`), Deny, ""},
		{spawn(`{"role":"root","n":3}`), Deny, "no-root"}, {spawn(`{"role":"reviewer","Role":"root","n":3}`), Deny, "no-root"},
		{spawn(`{"role":"reviewer","ROLE":"other","n":3}`), Deny, ""}, {spawn(`{"ROLE":"reviewer","n":3}`), Allow, "spawn"},
		{spawn(`{"role":["reviewer","x"],"n":3}`), Deny, ""}, {spawn(`{"role":["reviewer"],"n":3}`), Allow, "spawn"}, {spawn(`{"role":{"a":1},"n":3}`), Deny, ""},
		{spawn(`{`), Deny, ""}, {spawn(``), Deny, ""}, {spawn(`[]`), Deny, ""},
		{Call{Tool: "deploy", Actions: []Action{Tool("deploy", json.RawMessage(`{"target":"staging"}`))}}, Allow, "mine"},
		{Call{Tool: "deploy", Actions: []Action{Tool("deploy", json.RawMessage(`{"Target":"prod-eu"}`))}}, Deny, ""},
	} {
		if v := p.Decide(c.call); v.Effect != c.want || v.RuleID != c.id {
			t.Errorf("%s %s: got %s by %q, want %s by %q", c.call.Tool, c.call.Args, v.Effect, v.RuleID, c.want, c.id)
		}
	}
	for name, want := range map[string]bool{"list_mcp_resources": true, "shell": true, "container.exec": true, "update_plan": false, "spawn_agent": false, "exec_command": false} {
		if p.Denied(name) != want {
			t.Errorf("Denied(%s) = %v", name, !want)
		}
	}
}

func TestAskRulesForToolsStopCallsThatDeclareOtherActions(t *testing.T) {
	for _, c := range []struct {
		rule string
		call Call
		want Effect
	}{
		{`tool: [exec_command]`, run("ls"), Ask}, {`tool: ["exec_*"]`, run("ls"), Ask}, {`tool: [exec_command]`, run("rm x"), Deny},
		{`tool: [container.exec]`, Call{Tool: "shell", Actions: []Action{Exec("/w", "ls")}}, Ask},
		{`tool: [shell]`, Call{Tool: "container.exec", Actions: []Action{Exec("/w", "ls")}}, Ask},
		{`tool: [applypatch]`, Call{Tool: "apply_patch", Actions: []Action{Write("/w/a", "")}}, Ask},
		{`tool: [shell]`, run("ls"), Allow}, {`tool: [update_plan]`, Call{Tool: "update_plan"}, Ask},
		{`tool: [exec_command], agent: ["/root/a"]`, run("ls"), Allow},
		{`args: {/cmd: ["ls*"]}`, Call{Tool: "exec_command", Args: json.RawMessage(`{"cmd":"ls -l"}`), Actions: []Action{Exec("/w", "ls", "-l")}}, Ask},
	} {
		p := load(t, "version: 1\ndefault: allow\nrules:\n  - {id: a, effect: ask, "+c.rule+"}\n  - {id: d, effect: deny, argv: [rm]}\n")
		if v := p.Decide(c.call); v.Effect != c.want || c.want == Ask && v.RuleID != "a" {
			t.Errorf("%s: got %s by %q, want %s", c.rule, v.Effect, v.RuleID, c.want)
		}
	}
	p := load(t, "version: 1\nrules: [{id: a, effect: allow, tool: [exec_command]}]")
	if v := p.Decide(run("touch x")); v.Effect != Deny {
		t.Errorf("an allow rule for a tool allows its commands: %+v", v)
	}
}

func spawn(args string) Call {
	return Call{Tool: "spawn_agent", Args: json.RawMessage(args), Actions: []Action{Tool("spawn_agent", json.RawMessage(args))}}
}

func TestRulesCarryTheirOwnAnswers(t *testing.T) {
	p := load(t, `
version: 1
on_ask: defer
on_deny: fail
max_denials: 3
on_sandbox_refusal: report
rules:
  - {id: d, effect: deny, argv: [rm], on_deny: continue, reason: Files are kept.}
  - {id: a, effect: ask, argv: [git, push], on_ask: approver, max_scope: once}
  - {id: c, effect: allow, argv: [make], agent: ["/root/builder/**"]}
`)
	if v := p.Decide(run("rm x")); v.OnDeny != DenyContinue || v.OnAsk != AskDefer || v.Reason != "Files are kept." || v.DecidedBy != "policy" {
		t.Errorf("got %+v", v)
	}
	if v := p.Decide(run("git push")); v.OnAsk != AskApprover || v.OnDeny != DenyFail || v.MaxScope != "once" || !strings.Contains(v.Reason, `"a"`) {
		t.Errorf("got %+v", v)
	}
	v := p.Decide(run("touch x"))
	if v.OnDeny != DenyFail || v.DecidedBy != "default" || !strings.Contains(v.Reason, "touch x") || v.RuleID != "" {
		t.Errorf("got %+v", v)
	}
	if p.MaxDenials() != 3 || p.OnSandboxRefusal() != DenyReport {
		t.Error("settings are lost")
	}
	child := run("make all")
	if child.Agent = "/root/builder/one"; p.Decide(child).Effect != Allow || p.Decide(run("make all")).Effect != Deny {
		t.Error("agent globs are not honoured")
	}
	flags := load(t, "version: 1\non_ask: defer", func(s *Sources) { s.OnAsk, s.OnDeny, s.MaxDenials = AskFail, DenyContinue, 7 })
	if flags.OnAsk() != AskFail || flags.OnDeny() != DenyContinue || flags.MaxDenials() != 7 {
		t.Error("flags do not replace what the file says")
	}
}

func TestHosts(t *testing.T) {
	p := load(t, `
version: 1
rules:
  - {id: a, effect: allow, host: ["pkg.go.dev:443", "*.golang.org", "127.0.0.1:8080", "[::1]:80"]}
  - {id: d, effect: deny, host: ["10.0.0.1"]}
`)
	for host, want := range map[string]Effect{
		"pkg.go.dev:443": Allow, "pkg.go.dev:80": Deny, "PKG.go.dev.:443": Allow, "x.golang.org:1": Allow, "golang.org:443": Deny, "evilgolang.org:443": Deny,
		"127.0.0.1:8080": Allow, "[::ffff:127.0.0.1]:8080": Allow, "[::1]:80": Allow, "[::2]:80": Deny, "10.0.0.1:1": Deny, "pkg.go.dev:443.evil.com:443": Deny,
	} {
		if v := p.Decide(Call{Tool: "x", Actions: []Action{{Kind: KindHost, Host: host}}}); v.Effect != want {
			t.Errorf("%s: got %s, want %s", host, v.Effect, want)
		}
	}
}

func TestDecisionsMayBeMadeAtTheSameTime(t *testing.T) {
	p := load(t, "version: 1\nrules: [{id: g, effect: allow, argv: [git]}, {id: d, effect: deny, argv: [rm]}]")
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for range 50 {
				if p.Decide(run("git status; a=rm; $a x")).RuleID != "d" || p.Decide(run("git log | git x")).Effect != Allow {
					t.Error("a decision depends on others")
				}
			}
		})
	}
	group.Wait()
}
