package policy

import (
	"testing"
	"time"
)

func TestRulesSetTheRightsOfTheirCommands(t *testing.T) {
	p := load(t, `
version: 1
default: deny
shell: {opaque: ask}
rules:
  - {id: fetch, effect: allow, argv: [npm, ci], network: true, timeout: 2m}
  - {id: test, effect: allow, argv: [go, test], timeout: 30s}
  - {id: free, effect: allow, argv: [docker, build], network: true, sandbox: off}
  - {id: push, effect: ask, argv: [git, push], network: true}
  - {id: plain, effect: allow, argv: [[echo, ls, cd]]}
  - {id: src, effect: allow, path: ["src/**"]}
`)
	for _, c := range []struct {
		script        string
		want          Effect
		network, free bool
		timeout       time.Duration
	}{
		{"npm ci", Allow, true, false, 2 * time.Minute},
		{"npm ci && npm ci > src/log", Allow, true, false, 2 * time.Minute},
		{"npm ci && ls", Allow, false, false, 2 * time.Minute},
		{"ls && npm ci", Allow, false, false, 2 * time.Minute},
		{"npm ci; go test ./...", Allow, false, false, 30 * time.Second},
		{"docker build . && npm ci", Allow, true, false, 2 * time.Minute},
		{"docker build .", Allow, true, true, 0},
		{"docker build . | sh", Deny, false, false, 0},
		{"docker build $(cat f)", Ask, false, false, 0},
		{"git push", Ask, true, false, 0},
		{"git push && ls", Ask, false, false, 0},
		{"git $x push", Ask, false, false, 0},
		{"ls", Allow, false, false, 0},
		{"cd sub && npm ci && echo done", Allow, true, false, 2 * time.Minute},
		{"echo done", Allow, false, false, 0},
		{"./echo && npm ci", Deny, false, false, 2 * time.Minute},
		{"echo() { ls; }; echo; npm ci", Ask, false, false, 2 * time.Minute},
		{"echo $(ls) && npm ci", Ask, false, false, 2 * time.Minute},
		{"timeout 60 npm ci", Allow, true, false, 2 * time.Minute},
		{"touch x", Deny, false, false, 0},
		{"# nothing", Allow, false, false, 0},
		{"> src/new", Allow, false, false, 0},
	} {
		v := p.Decide(run(c.script))
		if v.Effect != c.want || v.Network != c.network || v.Unsandboxed != c.free || v.Timeout != c.timeout {
			t.Errorf("%q: got %s network %t free %t timeout %s (%s)", c.script, v.Effect, v.Network, v.Unsandboxed, v.Timeout, v.Reason)
		}
	}
}

func TestAnUntrustedFileGivesNoRights(t *testing.T) {
	dir := t.TempDir()
	project := write(t, dir, "policy.yaml", "version: 1\nrules: [{id: push, effect: ask, argv: [git, push], network: true, sandbox: off, timeout: 5s}]")
	p, err := Load(Sources{Project: project, Inline: []byte("version: 1\ndefault: allow"), Roots: Roots{Workspace: "/w"}})
	if err != nil {
		t.Fatal(err)
	}
	if v := p.Decide(run("git push")); v.Effect != Ask || v.Network || v.Unsandboxed || v.Timeout != 5*time.Second {
		t.Errorf("got %+v", v)
	}
	trusted, err := Load(Sources{Project: project, TrustProject: true, Roots: Roots{Workspace: "/w"}})
	if err != nil {
		t.Fatal(err)
	}
	if v := trusted.Decide(run("git push")); v.Effect != Ask || !v.Network || !v.Unsandboxed {
		t.Errorf("got %+v", v)
	}
}

func TestRulesForATerminalOnly(t *testing.T) {
	const text = `
version: 1
rules:
  - {id: asks, effect: ask, argv: [git, push], mode: tty}
  - {id: never, effect: deny, argv: [git, push], mode: headless}
  - {id: make, effect: allow, argv: [make], except: [{mode: headless}]}
  - {id: no-plan, effect: deny, tool: [update_plan], mode: tty}
  - {id: git, effect: allow, path: [".git/**"], access: [write], mode: tty}
tests:
  - {name: here,     exec: git push, expect: deny, rule: never}
  - {name: terminal, exec: git push, mode: tty, expect: ask, rule: asks}
`
	headless, tty := load(t, text), load(t, text, func(s *Sources) { s.TTY = true })
	checkCommands(t, headless, []judged{{`git push`, Deny}, {`make`, Deny}})
	checkCommands(t, tty, []judged{{`git push`, Ask}, {`make`, Allow}})
	checkCases(t, headless)
	if headless.Denied("update_plan") || !tty.Denied("update_plan") {
		t.Error("a rule for a terminal hides a tool elsewhere")
	}
	if len(headless.Unprotected()) != 0 || len(tty.Unprotected()) != 1 {
		t.Errorf("unprotected: %v and %v", headless.Unprotected(), tty.Unprotected())
	}
	checkPaths(t, headless, []pathCase{{Write("/w/.git/x", ""), Deny, "sandbox"}})
	checkPaths(t, tty, []pathCase{{Write("/w/.git/x", ""), Allow, "policy"}})
	if headless.Mode() != ModeHeadless || tty.Mode() != ModeTTY {
		t.Error("the mode is lost")
	}
}

func TestAnnotationsCountOnlyFromTrustedServers(t *testing.T) {
	p := load(t, `
version: 1
default: deny
rules:
  - {id: reads, effect: allow, mcp: {server: "*", annotations: {readOnlyHint: true}}}
  - {id: closed, effect: allow, mcp: {server: local, annotations: {openWorldHint: false, destructiveHint: false}}}
  - {id: breaks, effect: deny, mcp: {server: db, annotations: {destructiveHint: true}}}
  - {id: db, effect: allow, mcp: {server: db}}
  - {id: asks, effect: ask, mcp: {server: web}, except: [{mcp: {server: web, annotations: {readOnlyHint: true}}}]}
`)
	yes, no := new(bool), new(bool)
	*yes = true
	for _, c := range []struct {
		name, server string
		said         *Annotations
		trusted      bool
		want         Effect
		id           string
	}{
		{"reads", "x", &Annotations{ReadOnly: yes}, true, Allow, "reads"},
		{"says so, but who says it", "x", &Annotations{ReadOnly: yes}, false, Deny, ""},
		{"says nothing", "x", nil, true, Deny, ""},
		{"writes", "x", &Annotations{ReadOnly: no}, true, Deny, ""},
		{"closed", "local", &Annotations{OpenWorld: no, Destructive: no}, true, Allow, "closed"},
		{"absent is the worst", "local", &Annotations{Destructive: no}, true, Deny, ""},
		{"destroys", "db", &Annotations{Destructive: yes}, true, Deny, "breaks"},
		{"destroys unless it says otherwise", "db", nil, true, Deny, "breaks"},
		{"destroys nothing", "db", &Annotations{Destructive: no}, true, Allow, "db"},
		{"a reader destroys nothing", "db", &Annotations{ReadOnly: yes}, true, Allow, "reads"},
		{"an untrusted server may do anything", "db", &Annotations{Destructive: no}, false, Deny, "breaks"},
		{"exception", "web", &Annotations{ReadOnly: yes}, true, Allow, "reads"},
		{"exception of an untrusted server", "web", &Annotations{ReadOnly: yes}, false, Ask, "asks"},
	} {
		v := p.Decide(Call{Tool: "x", Actions: []Action{{Kind: KindMCP, Server: c.server, Tool: "t", Annotations: c.said, Trusted: c.trusted}}})
		if v.Effect != c.want || v.RuleID != c.id {
			t.Errorf("%s: got %s by %q, want %s by %q", c.name, v.Effect, v.RuleID, c.want, c.id)
		}
	}
}

func TestGranularApprovalSilencesKindsOfQuestions(t *testing.T) {
	const rules = "rules: [{id: push, effect: ask, argv: [git, push]}, {id: gen, effect: ask, path: ['gen/**']}, {id: s, effect: ask, mcp: {server: s}}]"
	server := Call{Tool: "s__t", Actions: []Action{{Kind: KindMCP, Server: "s", Tool: "t"}}}
	for _, c := range []struct {
		approval                 string
		rule, heuristic, servers Effect
		want                     Granular
	}{
		{"granular", Ask, Ask, Ask, Granular{SandboxApproval: true, Rules: true, MCPElicitations: true}},
		{"{sandbox_approval: false, rules: true, mcp_elicitations: false}", Ask, Deny, Ask, Granular{Rules: true}},
		{"{sandbox_approval: true, rules: false, mcp_elicitations: true, request_permissions: true}", Deny, Ask, Deny,
			Granular{SandboxApproval: true, MCPElicitations: true, RequestPermissions: true}},
		{"{granular: {sandbox_approval: false, rules: false, mcp_elicitations: false, skill_approval: true}}", Deny, Deny, Deny, Granular{SkillApproval: true}},
	} {
		p := load(t, "version: 1\napproval: "+c.approval+"\n"+rules)
		checkCommands(t, p, []judged{{`git push`, c.rule}, {`rm -rf x`, c.heuristic}, {`make`, Allow}, {`echo > gen/x`, c.rule}})
		if v := p.Decide(server); v.Effect != c.servers {
			t.Errorf("%s: server got %s", c.approval, v.Effect)
		}
		if g, ok := p.Granular(); !ok || g != c.want || p.Approval() != "granular" {
			t.Errorf("%s: got %+v", c.approval, g)
		}
	}
	never := load(t, "version: 1\napproval: never\n"+rules)
	checkCommands(t, never, []judged{{`git push`, Deny}, {`rm -rf x`, Deny}, {`make`, Allow}})
	v := never.Decide(run("git push"))
	if want := `rule "push" says ask, and approval: never lets nobody be asked`; v.Reason != want || v.RuleID != "push" {
		t.Errorf("got %q, want %q", v.Reason, want)
	}
	if _, ok := never.Granular(); ok {
		t.Error("never is not granular")
	}
}

func TestTheShortestScopeOfAllQuestionsCounts(t *testing.T) {
	p := load(t, `
version: 1
default: ask
rules:
  - {id: a, effect: ask, argv: [git, push], max_scope: session}
  - {id: b, effect: ask, argv: [npm, publish], max_scope: once}
  - {id: c, effect: ask, argv: [make], max_scope: always}
`)
	for script, want := range map[string]string{"git push": "session", "git push; npm publish": "once", "npm publish; git push; x": "once", "make; git push": "session", "make": "always", "x": ""} {
		if v := p.Decide(run(script)); v.MaxScope != want || v.Effect != Ask {
			t.Errorf("%q: got %q, want %q", script, v.MaxScope, want)
		}
	}
}

func TestCommandsWriteFreelyIntoPrivateFoldersAndFileToolsDoNot(t *testing.T) {
	private := func(s *Sources) { s.Roots.Private = []string{"/tmp", "/home/u/.cache"} }
	for _, text := range []string{"version: 1\ndefault: deny\nrules: [{id: e, effect: allow, argv: [echo]}]", "version: 1\napproval: on-failure", "version: 1\ndefault: ask\nrules: [{id: e, effect: allow, argv: [echo]}]"} {
		p := load(t, text, private)
		checkCommands(t, p, []judged{{`echo x > /tmp/out`, Allow}, {`echo x >> /home/u/.cache/a/b`, Allow}, {`echo < /tmp/out`, Allow}, {`echo x > /tmpx`, Deny}, {`echo x > /tmp/../etc/x`, Deny}})
		checkPaths(t, p, []pathCase{{Write("/tmp/out", ""), Deny, "sandbox"}, {Delete("/tmp/out", ""), Deny, "sandbox"}})
	}
	p := load(t, "version: 1\napproval: untrusted\nrules: [{id: d, effect: deny, path: ['/tmp/keep/**']}]", private)
	checkCommands(t, p, []judged{{`echo x > /tmp/out`, Ask}, {`echo x > /tmp/keep/a`, Deny}})
	linked := load(t, "version: 1\ndefault: deny\nrules: [{id: e, effect: allow, argv: [echo]}]", private, func(s *Sources) {
		s.Env.Real = func(name string) string {
			if name == "/tmp/link" {
				return "/etc/passwd"
			}
			return name
		}
	})
	checkCommands(t, linked, []judged{{`echo x > /tmp/link`, Deny}, {`echo x > /tmp/other`, Allow}})
	readOnly := load(t, "version: 1\ndefault: allow", private, func(s *Sources) { s.Roots.Writable = nil })
	checkCommands(t, readOnly, []judged{{`echo x > /tmp/out`, Allow}, {`echo x > out`, Deny}})
}
