package policy

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"drover/output/fault"
)

const allowStatus = "version: 1\nrules:\n  - id: a\n    effect: allow\n    argv: [git, status]\n"

func write(t *testing.T, dir, name, text string) string {
	t.Helper()
	file := filepath.Join(dir, name)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// loadError loads sources that must be refused, and returns the error.
func loadError(t *testing.T, s Sources) *fault.Error {
	t.Helper()
	s.Roots = Roots{Workspace: "/w", Writable: []string{"/w"}}
	p, err := Load(s)
	var f *fault.Error
	if !errors.As(err, &f) {
		t.Fatalf("got %v and no error (%v)", p != nil, err)
	}
	class := fault.Config
	if len(s.Allow)+len(s.Ask)+len(s.Deny)+len(s.Rules) > 0 {
		class = fault.Usage // what is wrong stands on the command line
	}
	if p != nil || f.Exit != class || f.Why == "" || f.What == "" {
		t.Fatalf("incomplete error: %+v", f)
	}
	return f
}

func TestMistakesAreLoadErrors(t *testing.T) {
	for _, c := range []struct{ name, yaml, code, why, fix string }{
		{"foreign key", "version: 1\nrules:\n  - id: a\n    effect: allow\n    comand_prefix: [git, status]\n", "policy_unknown_key", `line 5: unknown key "comand_prefix"`, `"argv"`},
		{"misspelled key", "version: 1\nrules:\n  - id: a\n    effect: allow\n    argz: [git]\n", "policy_unknown_key", `line 5: unknown key "argz"`, `did you mean "argv"? Check the file with: drover policy check ci.yaml`},
		{"top level", "version: 1\ndefaults: deny\n", "policy_unknown_key", `line 2: unknown key "defaults"`, `"default"`},
		{"shell", "shell: {opaqe: ask}\n", "policy_unknown_key", `line 1: unknown key "opaqe"`, `"opaque"`},
		{"far key", "version: 1\nzzzzzzzzzz: 1\n", "policy_unknown_key", `line 2`, `the keys of a policy are`},
		{"effect", "rules: [{id: a, effect: alow, argv: [x]}]", "policy_invalid", `unknown value "alow"`, `"allow"`},
		{"default", "default: yes\n", "policy_invalid", `unknown value "yes"`, "allow, ask, deny"},
		{"no effect", "rules: [{id: a, argv: [x]}]", "policy_invalid", "has no effect", ""},
		{"no id", "rules: [{effect: deny, argv: [x]}]", "policy_invalid", "has no id", ""},
		{"no matcher", "rules: [{id: a, effect: deny}]", "policy_invalid", "matches nothing", ""},
		{"only access", "rules: [{id: a, effect: deny, access: [read]}]", "policy_invalid", "matches nothing", ""},
		{"only agent", "rules: [{id: a, effect: deny, agent: /root}]", "policy_invalid", "matches nothing", ""},
		{"two matchers", "rules: [{id: a, effect: deny, argv: [x], path: [y]}]", "policy_invalid", "mixes argv and path", ""},
		{"access of command", "rules: [{id: a, effect: deny, argv: [x], access: [read]}]", "policy_invalid", "mixes argv and access", ""},
		{"duplicate id", "rules:\n - {id: a, effect: deny, argv: [x]}\n - {id: a, effect: deny, argv: [y]}\n", "policy_invalid", `line 3: the id "a" was used in line 2`, ""},
		{"duplicate key", "default: deny\ndefault: allow\n", "policy_invalid", `line 2: the key "default" is given twice`, ""},
		{"bad path glob", "rules: [{id: a, effect: deny, path: ['[']}]", "policy_invalid", "glob", ""},
		{"bad word glob", "rules: [{id: a, effect: deny, argv: ['a[b']}]", "policy_invalid", "glob", ""},
		{"climbing glob", "rules: [{id: a, effect: deny, path: ['../x']}]", "policy_invalid", "leaves the workspace", ""},
		{"unknown tool", "rules: [{id: a, effect: deny, tool: [exec_comand]}]", "policy_unknown_tool", `unknown tool "exec_comand"`, `"exec_command"`},
		{"unknown access", "rules: [{id: a, effect: deny, path: [x], access: [wite]}]", "policy_invalid", `unknown access "wite"`, `"write"`},
		{"argv is text", "rules: [{id: a, effect: deny, argv: git status}]", "policy_invalid", "argv must be a list", ""},
		{"argv is empty", "rules: [{id: a, effect: deny, argv: []}]", "policy_invalid", "argv must be a list", ""},
		{"argv holds nothing", "rules: [{id: a, effect: deny, argv: [~]}]", "policy_invalid", "list of words", ""},
		{"rules is mapping", "rules: {id: a}", "policy_invalid", "rules must be a list", ""},
		{"rule is text", "rules: [a]", "policy_invalid", "must be a mapping", ""},
		{"id is number", "rules: [{id: 1, effect: deny, argv: [x]}]", "policy_invalid", "expected a text", ""},
		{"bool is text", "rules: [{id: a, effect: deny, argv: [x], argv_exact: maybe}]", "policy_invalid", "expected true or false", ""},
		{"version", "version: 2\n", "policy_invalid", `unknown version "2"`, ""},
		{"denials", "max_denials: 0\n", "policy_invalid", "at least 1", ""},
		{"pointer", "rules: [{id: a, effect: deny, tool: [spawn_agent], args: {role: [x]}}]", "policy_invalid", `"role" is no JSON pointer`, `"/role"`},
		{"agent", "rules: [{id: a, effect: deny, argv: [x], agent: reviewer}]", "policy_invalid", "no path of an agent", ""},
		{"host", "rules: [{id: a, effect: deny, host: ['https://x/y']}]", "policy_invalid", "URL", ""},
		{"star in host", "rules: [{id: a, effect: deny, host: ['a.*.b']}]", "policy_invalid", "star", ""},
		{"exception of another kind", "rules: [{id: a, effect: deny, argv: [x], except: [{path: [y]}]}]", "policy_invalid", "something else", ""},
		{"unknown key in exception", "rules: [{id: a, effect: deny, argv: [x], except: [{argvv: [y]}]}]", "policy_unknown_key", "argvv", `"argv"`},
		{"mode", "rules: [{id: a, effect: deny, argv: [x], mode: screen}]", "policy_invalid", `unknown value "screen"`, "headless, tty"},
		{"sandbox on", "rules: [{id: a, effect: allow, argv: [x], sandbox: read-only}]", "policy_invalid", "can only switch the sandbox off", "sandbox: off"},
		{"sandbox of deny", "rules: [{id: a, effect: deny, argv: [x], sandbox: off}]", "policy_invalid", `the rule "a" denies, so that sandbox has no effect`, "remove"},
		{"network of deny", "rules: [{id: a, effect: deny, argv: [x], network: true}]", "policy_invalid", "network has no effect", "remove"},
		{"network of path", "rules: [{id: a, effect: allow, path: [x], network: true}]", "policy_invalid", "network is for commands", "argv"},
		{"network is text", "rules: [{id: a, effect: allow, argv: [x], network: allow}]", "policy_invalid", "expected true or false", ""},
		{"timeout of deny", "rules: [{id: a, effect: deny, argv: [x], timeout: 5s}]", "policy_invalid", "timeout has no effect", ""},
		{"timeout of tool", "rules: [{id: a, effect: allow, tool: [spawn_agent], timeout: 5s}]", "policy_invalid", "timeout is for commands", ""},
		{"timeout without unit", "rules: [{id: a, effect: allow, argv: [x], timeout: 5}]", "policy_invalid", `expected a duration, found "5"`, "10m"},
		{"timeout of nothing", "rules: [{id: a, effect: allow, argv: [x], timeout: 0s}]", "policy_invalid", "expected a duration", ""},
		{"granular without keys", "approval: {rules: true}\n", "policy_invalid", `the key "sandbox_approval" of approval is missing`, ""},
		{"granular typo", "approval: {rule: true, sandbox_approval: true, mcp_elicitations: true}\n", "policy_unknown_key", `"rule"`, `"rules"`},
		{"granular text", "approval: {rules: yes, sandbox_approval: true, mcp_elicitations: true}\n", "policy_invalid", "expected true or false", ""},
		{"approval", "approval: sometimes\n", "policy_invalid", `unknown value "sometimes"`, "granular"},
		{"annotation", "rules: [{id: a, effect: allow, mcp: {server: x, annotations: {readonlyHint: true}}}]", "policy_unknown_key", "readonlyHint", `"readOnlyHint"`},
		{"no annotations", "rules: [{id: a, effect: allow, mcp: {server: x, annotations: {}}}]", "policy_invalid", "annotations is empty", ""},
		{"only annotations", "rules: [{id: a, effect: allow, mcp: {annotations: {readOnlyHint: true}}}]", "policy_invalid", "names no server", ""},
		{"alias", "a: &a [x]\nrules: *a\n", "policy_invalid", "anchors and aliases", ""},
		{"tag", "default: !!str deny\n", "policy_invalid", "tag", ""},
		{"two documents", "version: 1\n---\nversion: 1\n", "policy_invalid", "several documents", ""},
		{"no yaml", "version: 1\n\tdefault: [\n", "policy_invalid", "line 2", ""},
		{"empty", "", "policy_invalid", "empty", ""},
		{"comment", "# nothing\n", "policy_invalid", "empty", ""},
		{"null", "~\n", "policy_invalid", "empty", ""},
		{"list", "- a\n", "policy_invalid", "must be a mapping", ""},
		{"test without call", "tests: [{name: a, expect: deny}]", "policy_invalid", "one call", ""},
		{"test without effect", "tests: [{name: a, exec: ls}]", "policy_invalid", "expects nothing", ""},
		{"utf-16", "\xff\xfev\x00e\x00", "policy_bad_encoding", "UTF-16", ""},
		{"utf-16 without mark", "v\x00e\x00", "policy_bad_encoding", "NUL", ""},
		{"broken utf-8", "version: 1\n# \xff\n", "policy_bad_encoding", "line 2", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			write(t, ".", "ci.yaml", c.yaml)
			f := loadError(t, Sources{Flags: []string{"ci.yaml"}})
			if f.Code != c.code || !strings.Contains(f.Why, c.why) || !strings.Contains(f.Fix, c.fix) || !strings.Contains(f.What, `"ci.yaml"`) {
				t.Errorf("got %s %q %q, want %s %q %q", f.Code, f.Why, f.Fix, c.code, c.why, c.fix)
			}
		})
	}
}

func TestEveryMistakeIsCounted(t *testing.T) {
	f := loadError(t, Sources{Inline: []byte("x: 1\ny: 2\ndefault: z\n"), InlineName: "task.yaml"})
	if !strings.Contains(f.Why, "line 1") || !strings.Contains(f.Why, "(and 2 more)") || !strings.Contains(f.What, "task.yaml") {
		t.Errorf("got %+v", f)
	}
}

func TestFilesThatCannotBeReadFailClosed(t *testing.T) {
	dir := t.TempDir()
	locked := write(t, dir, "locked.yaml", allowStatus)
	if err := os.Chmod(locked, 0); err != nil {
		t.Fatal(err)
	}
	cases := map[string]Sources{
		"missing": {Flags: []string{filepath.Join(dir, "missing.yaml")}}, "folder": {Flags: []string{dir}}, "folder of user": {User: dir},
		"folder of project": {Project: dir}, "device": {Flags: []string{os.DevNull}}, "nameless": {Flags: []string{""}},
	}
	if os.Geteuid() != 0 {
		cases["unreadable"] = Sources{Flags: []string{locked}}
	}
	for name, s := range cases {
		t.Run(name, func(t *testing.T) {
			if f := loadError(t, s); f.Code != "policy_unreadable" {
				t.Errorf("got %+v", f)
			}
		})
	}
	p, err := Load(Sources{User: filepath.Join(dir, "no.yaml"), Managed: filepath.Join(dir, "no.yaml"), Project: filepath.Join(dir, "no.yaml"), Generated: filepath.Join(dir, "no.yaml")})
	if err != nil || p.PresetName() != presetWorkspace {
		t.Errorf("files that nobody named must not be there: %v", err)
	}
}

func TestByteOrderMarkIsAccepted(t *testing.T) {
	p := load(t, "\xef\xbb\xbf"+allowStatus)
	checkCommands(t, p, []judged{{`git status`, Allow}, {`ls`, Deny}})
}

func TestManagedFileMustBelongToRoot(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can make a file that belongs to root")
	}
	dir := t.TempDir()
	file := write(t, dir, "policy.yaml", allowStatus)
	if _, err := Load(Sources{Managed: file}); err != nil {
		t.Fatalf("a file of root: %v", err)
	}
	for _, mode := range []os.FileMode{0o666, 0o620} {
		if err := os.Chmod(file, mode); err != nil {
			t.Fatal(err)
		}
		if f := loadError(t, Sources{Managed: file}); f.Code != "policy_unsafe_owner" {
			t.Errorf("mode %o: got %+v", mode, f)
		}
	}
	if err := os.Chmod(file, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(file, 1000, 1000); err != nil {
		t.Fatal(err)
	}
	if f := loadError(t, Sources{Managed: file}); f.Code != "policy_unsafe_owner" {
		t.Errorf("got %+v", f)
	}
}

func TestProjectFileOnlyTightensUnlessTrusted(t *testing.T) {
	dir := t.TempDir()
	project := write(t, dir, "policy.yaml", `
version: 1
default: allow
approval: never
network: allow
add_dirs: [/]
on_ask: approver
shell: {opaque: allow, safe_env: ["*"]}
rules:
  - {id: all, effect: allow, argv: ["*"]}
  - {id: no-make, effect: deny, argv: [make], on_deny: continue}
  - {id: ask-go, effect: ask, argv: [go]}
`)
	user := write(t, dir, "user.yaml", "version: 1\nrules: [{id: u, effect: allow, argv: [[git, make, go]]}]")
	p, err := Load(Sources{User: user, Project: project, Roots: Roots{Workspace: "/w"}})
	if err != nil {
		t.Fatal(err)
	}
	checkCommands(t, p, []judged{{`git x`, Allow}, {`make`, Deny}, {`go x`, Ask}, {`touch x`, Deny}, {`go $(x)`, Ask}, {`git log $(x)`, Ask}, {`git $(x)`, Deny}, {`GIT_X=1 git x`, Ask}})
	if v := p.Decide(run("make")); v.OnDeny != DenyReport || v.Layer != "project" || v.RuleID != "no-make" || v.File != project || v.Line == 0 {
		t.Errorf("got %+v", v)
	}
	if p.Network() || len(p.AddDirs()) > 0 || p.OnAsk() != AskDeny || p.Approval() != "" || p.Default() != Deny {
		t.Error("an untrusted file widened the settings")
	}
	notices := strings.Join(p.Notices(), "\n")
	if !strings.Contains(notices, "1 allow rules") || !strings.Contains(notices, "approval, network, add_dirs, on_ask, shell.safe_env, default") {
		t.Errorf("notices: %s", notices)
	}

	alone, err := Load(Sources{Project: project, Roots: Roots{Workspace: "/w", Writable: []string{"/w"}}})
	if err != nil || alone.PresetName() != presetWorkspace || alone.Approval() != "on-failure" {
		t.Errorf("an untrusted file stands in for the preset: %v %q", err, alone.PresetName())
	}
	trusted, err := Load(Sources{Project: project, TrustProject: true, Roots: Roots{Workspace: "/w"}})
	if err != nil || trusted.PresetName() != "" || !trusted.Network() || len(trusted.Notices()) > 0 {
		t.Errorf("a trusted file counts in full: %v %v", err, trusted.Notices())
	}
	checkCommands(t, trusted, []judged{{`touch x`, Allow}, {`make`, Deny}})
	tight := write(t, dir, "tight.yaml", "version: 1\ndefault: deny\nnetwork: deny\nmax_denials: 1\non_deny: fail\ndeny_read: ['*.key']\n")
	p, err = Load(Sources{Inline: []byte("version: 1\ndefault: allow\nnetwork: allow\nmax_denials: 9\n"), Project: tight, Roots: Roots{Workspace: "/w"}})
	if err != nil || p.Default() != Deny || p.Network() || p.MaxDenials() != 1 || p.OnDeny() != DenyFail || len(p.DenyRead()) != 1 {
		t.Errorf("an untrusted file must be able to tighten: %v %+v", err, p)
	}
}

func TestLayersPoolAndTheStrictestDefaultCounts(t *testing.T) {
	dir := t.TempDir()
	one := write(t, dir, "one.yaml", "version: 1\ndefault: allow\non_ask: fail\nrules: [{id: a, effect: allow, argv: [git]}]")
	two := write(t, dir, "two.yaml", "version: 1\ndefault: ask\non_ask: defer\nrules: [{id: d, effect: deny, argv: [git, push]}]")
	p, err := Load(Sources{Flags: []string{one, two}, Allow: []string{"exec:make"}, Deny: []string{"exec:make clean"}, Roots: Roots{Workspace: "/w"}})
	if err != nil {
		t.Fatal(err)
	}
	if p.Default() != Ask || p.OnAsk() != AskFail || len(p.Layers()) != 2 || p.Layers()[0].Path != one || p.Layers()[0].Layer != "flag" || len(p.SHA256()) != 64 {
		t.Errorf("got %s %s %v", p.Default(), p.OnAsk(), p.Layers())
	}
	checkCommands(t, p, []judged{{`git log`, Allow}, {`git x`, Deny}, {`git push`, Deny}, {`make`, Allow}, {`make clean`, Deny}, {`ls`, Ask}})
	if v := p.Decide(run("make clean")); v.RuleID != "flag-2" || v.Layer != "flag" {
		t.Errorf("got %+v", v)
	}
	same, err := Load(Sources{Flags: []string{one, two}, Allow: []string{"exec:make"}, Deny: []string{"exec:make clean"}, Roots: Roots{Workspace: "/w"}})
	if err != nil || same.SHA256() != p.SHA256() {
		t.Error("the hash of one pool differs")
	}
	other, err := Load(Sources{Flags: []string{one, two}, Allow: []string{"exec:make"}, Roots: Roots{Workspace: "/w"}})
	if err != nil || other.SHA256() == p.SHA256() {
		t.Error("the hash does not depend on the rules of flags")
	}
}

func TestLockedFileKeepsWeakerLayersFromWidening(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can make a file that belongs to root")
	}
	dir := t.TempDir()
	managed := write(t, dir, "m.yaml", "version: 1\nlocked: true\nrules: [{id: m, effect: allow, argv: [git]}]")
	flag := write(t, dir, "f.yaml", "version: 1\ndefault: allow\nnetwork: allow\nrules: [{id: f, effect: allow, argv: [make]}, {id: d, effect: deny, argv: [git, push]}]")
	p, err := Load(Sources{Managed: managed, Flags: []string{flag}, Allow: []string{"exec:ls"}, Roots: Roots{Workspace: "/w"}})
	if err != nil {
		t.Fatal(err)
	}
	checkCommands(t, p, []judged{{`git log`, Allow}, {`git x`, Deny}, {`git push`, Deny}, {`make`, Deny}, {`ls`, Deny}})
	if p.Network() || len(p.Notices()) < 2 {
		t.Errorf("notices %v", p.Notices())
	}
	if f := loadError(t, Sources{Managed: managed, Yolo: true}); f.Code != "policy_locked" {
		t.Errorf("got %+v", f)
	}
}

func TestRulesOfTheCommandLine(t *testing.T) {
	p := load(t, "version: 1", func(s *Sources) {
		s.Allow = []string{"exec:git status", "read:src/**", "write:src/**", "delete:src/*", "host:*.golang.org:443", "mcp:github/get_*", "tool:spawn_agent", `exec:echo "a b" x*`, "exec:*.sh"}
		s.Ask, s.Deny = []string{"exec:git push"}, []string{"tool:apply_patch", "host:evil.golang.org"}
	})
	checkCommands(t, p, []judged{{`git status -s`, Allow}, {`git log`, Deny}, {`git push`, Ask}, {`echo "a b" xyz`, Allow}, {`echo a b xyz`, Deny}, {`a.sh`, Allow}})
	for _, c := range []struct {
		action Action
		want   Effect
		id     string
	}{
		{Read("/w/src/a/b", ""), Allow, "flag-2"}, {Write("/w/src/a/b", ""), Allow, "flag-3"}, {Delete("/w/src/a/b", ""), Deny, ""}, {Delete("/w/src/a", ""), Allow, "flag-4"},
		{Action{Kind: KindHost, Host: "pkg.golang.org:443"}, Allow, "flag-5"}, {Action{Kind: KindHost, Host: "golang.org:443"}, Deny, ""},
		{Action{Kind: KindHost, Host: "EVIL.golang.org.:443"}, Deny, "flag-12"}, {Action{Kind: KindMCP, Server: "github", Tool: "get_x"}, Allow, "flag-6"},
		{Action{Kind: KindMCP, Server: "github", Tool: "put_x"}, Deny, ""}, {Tool("spawn_agent", nil), Allow, "flag-7"},
	} {
		if v := p.Decide(Call{Tool: "x", Actions: []Action{c.action}}); v.Effect != c.want || v.RuleID != c.id {
			t.Errorf("%+v: got %s by %q, want %s by %q", c.action, v.Effect, v.RuleID, c.want, c.id)
		}
	}
	ordered := load(t, "version: 1", func(s *Sources) { s.Rules = []FlagRule{{Deny, "exec:a"}, {Allow, "exec:b"}} })
	if v := ordered.Decide(run("b")); v.RuleID != "flag-2" {
		t.Errorf("got %+v", v)
	}
	for _, text := range []string{"", "git", "exec:", "exec:$x", "exec:'a", "run:x", "mcp:x", "mcp:/x", "host:http://x", "tool:nothing", "read:../x", "write:[", "exec:a | b"} {
		f := loadError(t, Sources{Allow: []string{text}})
		if f.Code != "policy_invalid_rule" || !strings.Contains(f.What, "--allow") || f.Fix == "" {
			t.Errorf("%q: got %+v", text, f)
		}
	}
}

func TestPresetIsNeverMixedWithAFile(t *testing.T) {
	if p := load(t, "version: 1", func(s *Sources) { s.Preset = "ci" }); p.PresetName() != "" || p.Decide(run("ls")).Effect != Deny {
		t.Error("a preset was mixed with a file")
	}
	flagged := load(t, "", func(s *Sources) { s.Inline, s.Deny = nil, []string{"exec:make"} })
	checkCommands(t, flagged, []judged{{`make`, Deny}, {`ls`, Allow}, {`touch x`, Allow}})
	if f := loadError(t, Sources{Preset: "wrkspace"}); f.Code != "policy_unknown_preset" {
		t.Errorf("got %+v", f)
	}
	if _, ok := Preset("../load"); ok {
		t.Error("a preset outside the list")
	}
}

func TestYoloAllowsAllButDenyRulesAndProtection(t *testing.T) {
	p := load(t, "", func(s *Sources) { s.Inline, s.Yolo = nil, true })
	checkCommands(t, p, []judged{{`echo "$(date)"`, Allow}, {`$x`, Allow}, {`echo (`, Allow}, {`rm -rf x`, Allow}, {`echo x > .git/config`, Deny}, {`echo x > /etc/x`, Deny}})
	if v := p.Decide(run("make")); v.DecidedBy != "yolo" {
		t.Errorf("got %+v", v)
	}
	file := load(t, "version: 1\ndefault: deny\nshell: {opaque: deny}\nrules: [{id: d, effect: deny, argv: [rm]}, {id: a, effect: ask, argv: [git]}, {id: o, effect: allow, argv: [ls]}]", func(s *Sources) { s.Yolo = true })
	checkCommands(t, file, []judged{{`rm x`, Deny}, {`echo $(rm x)`, Deny}, {`git x`, Allow}, {`make`, Allow}, {`$x`, Deny}, {`ls`, Allow}})
	if v := file.Decide(run("git x")); v.DecidedBy != "yolo" {
		t.Errorf("got %+v", v)
	}
	if v := file.Decide(run("ls")); v.DecidedBy != "policy" || v.RuleID != "o" {
		t.Errorf("got %+v", v)
	}
}

func FuzzLoad(f *testing.F) {
	f.Add([]byte(allowStatus))
	f.Add([]byte("\xef\xbb\xbfversion: 1\nrules: [{id: a, effect: deny, path: ['**/[a-z]{b,c}'], access: write, except: [{path: x}]}]"))
	f.Add([]byte("a: &a [*a, *a]\n"))
	f.Add([]byte("tests: [{path: {read: ''}, expect: ask}, {tool: x, args: {1: 2}, expect: deny}]"))
	f.Add([]byte("approval: {granular: {rules: true}}\nrules: [{id: a, effect: allow, argv: [x], network: true, sandbox: off, timeout: 5s, mode: tty, argv_none: ['*']}]"))
	f.Add([]byte("rules: [{id: a, effect: ask, mcp: {server: '[', tool: ~}, agent: '/{'}]"))
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := Load(Sources{Inline: data, Roots: Roots{Workspace: "/w", Writable: []string{"/w"}, Home: "/h"}})
		if err != nil {
			var e *fault.Error
			if !errors.As(err, &e) || e.Exit != fault.Config || e.Code == "" {
				t.Fatalf("no error for people: %v", err)
			}
			return
		}
		for _, c := range p.Tests() {
			p.Decide(p.CallOf(c))
		}
		p.Explain(run("git status; echo $(x) > y"))
		for _, found := range p.Lint() {
			if found.Message == "" || found.Fix == "" {
				t.Fatalf("incomplete: %+v", found)
			}
		}
	})
}

func FuzzShellAnalyser(f *testing.F) {
	for _, s := range []string{
		`git -C a status && x > "$y"`, "cat <<EOF | sh\nrm $(x)\nEOF", `a=(b c); "${a[@]}" {d,e} ~/f`, `for i in 1; do env A=1 timeout 5 xargs -I{} sh -c '{}'; done`,
		`$'\x72\u0041\c' ; echo "${x:=y}" $((1+$(z)))`, `f() { f; }; f`, "if x; then", "[[ a =~ b ]] || trap 'x' 0", "git -c ", "IFS=,", "IFS=, read x", "env -u", "timeout -k", "bash -o", "xargs -I", "find -exec", "git -C",
	} {
		f.Add(s)
	}
	deny := load(f, "version: 1\ndefault: allow\nrules: [{id: d, effect: deny, argv: [zzz]}]")
	closed := load(f, "version: 1\nrules: [{id: d, effect: allow, argv: [git, status]}]")
	f.Fuzz(func(t *testing.T, script string) {
		v := deny.Decide(run(script))
		if v.Effect == Ask {
			t.Errorf("nothing asks, but the verdict is %+v", v)
		}
		// A denied command in front, where every shell would run it, is seen
		// whatever follows.
		if v := deny.Decide(run("zzz\n" + script)); v.Effect != Deny {
			t.Errorf("the command in front of %q is not seen", script)
		}
		if v := closed.Decide(run("zzz\n" + script)); v.Effect == Allow {
			t.Errorf("an unknown command in front of %q is allowed", script)
		}
	})
}
