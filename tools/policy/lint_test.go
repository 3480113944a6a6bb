package policy

import (
	"strings"
	"testing"
)

// linted returns what is found about each rule, and about the file under "".
func linted(t *testing.T, p *Policy) map[string][]Finding {
	t.Helper()
	got := map[string][]Finding{}
	for _, f := range p.Lint() {
		if f.Fix == "" || !strings.HasSuffix(f.Fix, ".") || f.File == "" || f.RuleID != "" && f.Line == 0 {
			t.Errorf("incomplete: %+v", f)
		}
		got[f.RuleID] = append(got[f.RuleID], f)
	}
	return got
}

func TestLintFindsWhatIsProbablyNotMeant(t *testing.T) {
	for _, c := range []struct{ name, rule, want string }{
		{"all commands", `effect: allow, argv: ["*"]`, "every command"},
		{"interpreter", `effect: allow, argv: [/usr/bin/python3.12]`, "whatever it is told"},
		{"shell code", `effect: allow, argv: [bash, [-c, -lc]]`, "whatever it is told"},
		{"shell script", `effect: allow, argv: [bash, build.sh]`, ""},
		{"make", `effect: allow, argv: [make]`, "whatever"},
		{"make anything", `effect: allow, argv: [make, "*"]`, "whatever"},
		{"sudo", `effect: allow, argv: [sudo]`, "whatever"},
		{"find", `effect: allow, argv: [find]`, "whatever"},
		{"xargs", `effect: allow, argv: [xargs]`, "whatever"},
		{"target", `effect: allow, argv: [make, test], argv_exact: true`, ""},
		{"only make", `effect: allow, argv: [make], argv_exact: true`, ""},
		{"deny all", `effect: deny, argv: ["*"]`, ""},
		{"machine", `effect: allow, path: ["/**"], access: [read]`, "every file"},
		{"home", `effect: allow, path: ["~/**"]`, "every file"},
		{"folder", `effect: allow, path: ["~/notes/**"]`, ""},
		{"hosts", `effect: allow, host: ["*"]`, "every host"},
		{"servers", `effect: allow, mcp: {server: "*"}`, "every tool of every server"},
		{"one server", `effect: allow, mcp: {server: github}`, ""},
		{"readers", `effect: allow, mcp: {server: "*", annotations: {readOnlyHint: true}}`, ""},
		{"tools", `effect: allow, tool: ["*"]`, "every tool"},
		{"free", `effect: allow, argv: [docker, build], sandbox: off`, "outside the sandbox"},
		{"network", `effect: allow, argv: [npm, ci], network: true`, ""},
		{"network of a program", `effect: allow, argv: [curl], network: true`, "every call of [curl]"},
		{"network of make", `effect: allow, argv: [make], network: true`, "opens the network for commands that run"},
		{"judged by argv", `effect: allow, tool: [exec_command]`, "judged by argv"},
		{"judged by argv too", `effect: allow, tool: ["shell*"]`, "judged by argv"},
		{"harmless tool", `effect: allow, tool: [update_plan]`, "without a rule"},
		{"mixed tools", `effect: allow, tool: [exec_command, spawn_agent]`, ""},
		{"on_ask", `effect: deny, argv: [x], on_ask: fail`, "on_ask has no effect"},
		{"max_scope", `effect: allow, argv: [x], max_scope: once`, "max_scope has no effect"},
		{"on_deny", `effect: allow, argv: [x], on_deny: fail`, "on_deny has no effect"},
		{"on_deny of a question", `effect: ask, argv: [x], on_deny: fail`, ""},
		{"exception is the rule", `effect: deny, argv: [x, y], except: [{argv: [x, y]}]`, "never matches"},
		{"exception is wider", `effect: allow, path: ["src/**"], access: [read], except: [{path: ["**"]}]`, "never matches"},
		{"exception", `effect: allow, path: ["**"], access: [read], except: [{path: ["src/**"]}]`, ""},
		{"exception for an agent", `effect: deny, argv: [x], except: [{argv: [x], agent: /root/a}]`, ""},
		{"any and none", `effect: deny, argv: [x], argv_any: ["-f"], argv_none: ["-*"]`, "never matches"},
		{"exact and any", `effect: allow, argv: [x], argv_any: ["-f"], argv_exact: true`, "never matches"},
		{"own word", `effect: allow, argv: [git, push], argv_none: ["pu*"]`, "only the words after argv"},
		{"port", `effect: allow, host: ["x.org:70000"]`, "no such port"},
		{"name", `effect: allow, host: ["user@x.org"]`, "no such characters"},
		{"dots", `effect: allow, host: ["x..org"]`, "is empty"},
		{"host", `effect: allow, host: ["*.x.org:443", "[::1]:80", "localhost", "10.0.0.1:*"]`, ""},
		{"closed folder", `effect: allow, path: ["/etc/**"], access: [write]`, "closed for writing"},
		{"closed folder read", `effect: allow, path: ["/etc/**"], access: [read, write]`, ""},
		{"open folder", `effect: allow, path: ["/w/src/**"], access: [write]`, ""},
		{"closed and open", `effect: allow, path: ["/etc/**", "x"], access: [write]`, ""},
	} {
		got := linted(t, load(t, "version: 1\nrules: [{id: r, "+c.rule+"}]\ntests: [{exec: x, expect: deny}]"))
		text := ""
		for _, f := range got["r"] {
			text += f.Message + "\n"
		}
		if c.want == "" && text != "" || !strings.Contains(text, c.want) || len(got[""]) > 0 {
			t.Errorf("%s: got %q, want %q", c.name, text, c.want)
		}
	}
}

func TestLintFindsRulesThatOthersDecide(t *testing.T) {
	p := load(t, `
version: 1
rules:
  - {id: push, effect: allow, argv: [git, push, origin]}
  - {id: no-push, effect: deny, argv: [git, push]}
  - {id: ask-push, effect: ask, argv: [git, push, "-n"]}
  - {id: paths, effect: allow, path: ["src/**"], access: [write]}
  - {id: no-paths, effect: deny, path: ["**"], access: [write, delete]}
  - {id: reads, effect: allow, path: ["src/**"]}
  - {id: tag, effect: allow, argv: [git, tag, v1]}
  - {id: asks-tag, effect: ask, argv: [git, tag]}
  - {id: twice, effect: deny, argv: [git, push]}
  - {id: server, effect: allow, mcp: {server: gh, tool: get_x}}
  - {id: no-gets, effect: deny, mcp: {server: gh, tool: "get_*"}}
  - {id: other, effect: allow, mcp: {server: gl, tool: get_x}}
  - {id: host, effect: allow, host: [a.x.org:443]}
  - {id: no-x, effect: deny, host: ["*.x.org"]}
  - {id: agent, effect: allow, tool: [spawn_agent]}
  - {id: no-agent, effect: deny, tool: ["spawn_*"]}
  - {id: here, effect: allow, argv: [deploy], argv_none: [--prod]}
  - {id: there, effect: ask, argv: [deploy], argv_none: [--prod]}
  - {id: terminal, effect: deny, argv: [top], mode: tty}
  - {id: top, effect: allow, argv: [top]}
  - {id: builder, effect: deny, argv: [ninja], agent: /root/a}
  - {id: ninja, effect: allow, argv: [ninja]}
deny_read: ["*.key"]
`)
	got := linted(t, p)
	for id, want := range map[string]string{
		"push": `the deny rule "no-push" in line 5 always decides before it`, "ask-push": `"no-push" in line 5 always`, "paths": `the deny rule "no-paths"`,
		"tag": `the ask rule "asks-tag" in line 11 always`, "twice": `the deny rule "no-push" in line 5 has the same conditions`,
		"server": `"no-gets"`, "host": `"no-x"`, "agent": `"no-agent"`, "here": `contradicts the ask rule "there" in line 21`, "": "no tests",
	} {
		if len(got[id]) != 1 || !strings.Contains(got[id][0].Message, want) {
			t.Errorf("%s: got %+v, want %q", id, got[id], want)
		}
		delete(got, id)
	}
	if len(got) > 0 {
		t.Errorf("found for nothing: %+v", got)
	}
	shown := p.Rules()
	if shown[0].Match != "argv: [git, push, origin]" || shown[3].Match != "path: [src/**] access: [write]" || shown[0].Line != 4 {
		t.Errorf("got %+v", shown)
	}
}

func TestThePresetsAndTheExampleAreClean(t *testing.T) {
	for _, name := range Presets() {
		data, _ := Preset(name)
		for id, findings := range linted(t, load(t, string(data))) {
			if name == presetCI && id == "commands" {
				continue
			}
			t.Errorf("%s: %s: %+v", name, id, findings)
		}
	}
	p, err := Load(Sources{Flags: []string{"testdata/example.yaml"}, Roots: Roots{Workspace: "/w", Writable: []string{"/w"}}})
	if err != nil {
		t.Fatal(err)
	}
	if got := p.Lint(); len(got) > 0 {
		t.Errorf("example: %+v", got)
	}
}
