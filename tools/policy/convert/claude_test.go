package convert

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"drover/output/fault"
	"drover/tools/policy"
)

func claudeOf(t *testing.T, text string) Result {
	t.Helper()
	r, err := Claude([]File{{Name: "settings.json", Data: []byte(text)}})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// rules makes settings with the rules of each list.
func settings(allow, ask, deny []string) string {
	list := func(texts []string) string {
		var out []string
		for _, s := range texts {
			out = append(out, fmt.Sprintf("%q", s))
		}
		return "[" + strings.Join(out, ", ") + "]"
	}
	return fmt.Sprintf("{\n\"permissions\": {\n\"allow\": %s,\n\"ask\": %s,\n\"deny\": %s}}", list(allow), list(ask), list(deny))
}

func TestBashRulesKeepTheirDecisions(t *testing.T) {
	r := claudeOf(t, settings(
		[]string{"Bash(npm run test:*)", "Bash(npm run build)", "Bash(git diff *)", "Bash(go vet*)", "Bash(docker * ps)", `Bash(echo "a b")`},
		[]string{"Bash(git push:*)", "Bash(curl * --upload-file *)"},
		[]string{"Bash(rm -rf:*)", "Bash(git * --force)", "Bash(*shutdown)", "Bash(dd)"},
	))
	p := pool(t, r)
	want := map[string]policy.Effect{
		"npm run test": "allow", "npm run test -- --watch": "allow", "npm run test:unit": "ask", "npm run build": "allow", "npm run build x": "ask",
		"git diff": "allow", "git diff HEAD": "allow", "git difftool": "ask", "go vet ./...": "allow", "go vets": "allow", "docker compose ps": "allow", "docker a b ps": "ask", "docker compose ps x": "ask",
		"echo 'a b'": "allow", "echo a b": "ask",
		"git push origin": "ask", "npm run build && git push": "ask", "curl x --upload-file y": "ask",
		"rm -rf /": "deny", "rm x": "ask", "git push origin --force": "deny", "git a b c --force": "deny", "shutdown": "deny", "sudo shutdown": "deny", "dd": "deny", "dd if=x": "ask",
	}
	var scripts []string
	for s := range want {
		scripts = append(scripts, s)
	}
	if diff := cmp.Diff(want, effects(p, scripts...)); diff != "" {
		t.Errorf("effects (-want +got):\n%s\n%s", diff, r.Policy)
	}
	if r.Lost() != 0 {
		t.Errorf("got notes %v", r.Notes)
	}
}

func TestPathRulesKeepTheirDecisions(t *testing.T) {
	r := claudeOf(t, settings(
		[]string{"Edit(./src/**)", "Write(docs/)", "Read(//etc/hosts)", "Read(~/notes)", "Edit(*.md)"},
		[]string{"Edit(/src/gen/**)"},
		[]string{"Read(.env)", "Read(./secrets/**)", "Edit(**/*.lock)"},
	))
	p := pool(t, r)
	for call, want := range map[string]policy.Effect{
		"write src/a/b.go": "allow", "write docs/x/y": "allow", "write docsx": "ask", "write README.md": "allow", "write sub/README.md": "ask", "write other": "ask",
		"delete src/a": "ask", "write src/gen/a": "ask", "read src/a": "allow", "read .env": "deny", "read sub/.env": "deny", "read .env/x": "deny", "read secrets/a/b": "deny",
		"write a.lock": "deny", "write src/a.lock": "deny", "delete src/a.lock": "deny", "read /etc/hosts": "allow", "read /etc/passwd": "ask", "read ~/notes/x": "allow", "read ~/other": "ask",
	} {
		access, name, _ := strings.Cut(call, " ")
		c := p.CallOf(policy.Test{Paths: map[policy.Kind][]string{policy.Kind(access): {name}}})
		if got := p.Decide(c); got.Effect != want {
			t.Errorf("%s: got %s by %q, want %s", call, got.Effect, got.RuleID, want)
		}
	}
	if r.Lost() != 0 || !strings.Contains(string(r.Policy), `Paths such as "/src" are relative`) {
		t.Errorf("got notes %v\n%s", r.Notes, r.Policy)
	}
}

func TestHostsServersAndToolsAreMapped(t *testing.T) {
	r := claudeOf(t, settings(
		[]string{"WebFetch(domain:Docs.Example.com)", "mcp__github__get_*", "mcp__my_server", "TodoWrite", "Grep", "Task"},
		[]string{"mcp__github__create_issue"},
		[]string{"WebFetch(domain:evil.example)", "mcp__github__delete_repo", "Glob"},
	))
	p := pool(t, r)
	for i, tt := range []struct {
		action policy.Action
		want   policy.Effect
	}{
		{policy.Action{Kind: policy.KindHost, Host: "docs.example.com:443"}, "allow"},
		{policy.Action{Kind: policy.KindHost, Host: "x.docs.example.com:443"}, "ask"},
		{policy.Action{Kind: policy.KindHost, Host: "evil.example:80"}, "deny"},
		{policy.Action{Kind: policy.KindMCP, Server: "github", Tool: "get_issue"}, "allow"},
		{policy.Action{Kind: policy.KindMCP, Server: "github", Tool: "create_issue"}, "ask"},
		{policy.Action{Kind: policy.KindMCP, Server: "github", Tool: "delete_repo"}, "deny"},
		{policy.Action{Kind: policy.KindMCP, Server: "my_server", Tool: "anything"}, "allow"},
		{policy.Action{Kind: policy.KindMCP, Server: "other", Tool: "anything"}, "ask"},
		{policy.Tool("spawn_agent", nil), "allow"},
	} {
		if v := p.Decide(policy.Call{Tool: "x", Actions: []policy.Action{tt.action}}); v.Effect != tt.want {
			t.Errorf("%d: got %s by %q, want %s", i, v.Effect, v.RuleID, tt.want)
		}
	}
	if !p.Denied("list_dir") || p.Denied("search_in_files") || r.Lost() != 0 {
		t.Errorf("got notes %v\n%s", r.Notes, r.Policy)
	}
}

func TestModesAndFolders(t *testing.T) {
	write := func(p *policy.Policy, name string) policy.Effect {
		return p.Decide(p.CallOf(policy.Test{Paths: map[policy.Kind][]string{policy.KindWrite: {name}}})).Effect
	}
	for mode, want := range map[string]struct {
		fallback, write policy.Effect
		lost            int
	}{
		"default": {"ask", "ask", 0}, "acceptEdits": {"ask", "allow", 0}, "plan": {"ask", "ask", 1}, "bypassPermissions": {"allow", "allow", 0},
		"dontAsk": {"deny", "deny", 0}, "sometimes": {"ask", "ask", 1},
	} {
		r := claudeOf(t, fmt.Sprintf(`{"permissions": {"defaultMode": %q, "additionalDirectories": ["/data/x", "../docs/"]}}`, mode))
		p := pool(t, r)
		if p.Default() != want.fallback || write(p, "a") != want.write || write(p, "/data/x/a") != want.write || r.Lost() != want.lost {
			t.Errorf("%s: default %s, write %s, %s, notes %v", mode, p.Default(), write(p, "a"), write(p, "/data/x/a"), r.Notes)
		}
		if diff := cmp.Diff([]string{"/data/x", "/docs"}, p.AddDirs()); diff != "" {
			t.Errorf("%s: %s", mode, diff)
		}
		if v := p.Decide(p.CallOf(policy.Test{Paths: map[policy.Kind][]string{policy.KindRead: {"/data/x/a"}}})); v.Effect != policy.Allow {
			t.Errorf("%s: reading an additional folder is %s", mode, v.Effect)
		}
		if !strings.Contains(string(r.Policy), "../docs/: reading it needs a rule") {
			t.Errorf("the folder that no glob can name is not told:\n%s", r.Policy)
		}
	}
}

func TestWhatCannotBeMappedIsLost(t *testing.T) {
	r := claudeOf(t, `{
  "hooks": {"PreToolUse": []},
  "model": "x",
  "permissions": {
    "allow": ["Bash(cd x && make)", "Bash(FOO=1 make)", "Read(!a)", "Read(../x)", "WebSearch", "Bash(echo \"x)", "Task(Explore)", "WebFetch(url:x)", "mcp__*", "Bash(echo \\*)", "Read([)"],
    "disableBypassPermissionsMode": "disable"
  }
}`)
	if r.Lost() != 13 || len(r.Notes) != 13 {
		t.Errorf("%d are lost", r.Lost())
		for _, n := range r.Notes {
			t.Log(n)
		}
	}
	p := pool(t, r)
	if len(p.Rules()) != 1 {
		t.Errorf("got %d rules:\n%s", len(p.Rules()), r.Policy)
	}
	for _, part := range []string{"# Not mapped:\n", "#   settings.json:2: hooks: not mapped", "#   settings.json:5: Bash(cd x && make): not mapped: every command"} {
		if !strings.Contains(string(r.Policy), part) {
			t.Errorf("%q is missing:\n%s", part, r.Policy)
		}
	}
}

func TestSettingsThatCannotBeReadAreErrors(t *testing.T) {
	for name, tt := range map[string]struct{ text, why string }{
		"empty":            {"", "ends too early"},
		"no json":          {"{\n  'a': 1}", "line 2"},
		"no object":        {"[]", "no JSON object"},
		"trailing":         {"{} {}", "something follows"},
		"key twice":        {"{\"permissions\": {\"deny\": [],\n\"deny\": []}}", `the key "deny" stands twice`},
		"no list":          {`{"permissions": {"allow": "Bash"}}`, "permissions.allow is no list"},
		"number in a list": {"{\"permissions\": {\"deny\": [\n3]}}", "line 2: permissions.deny holds"},
		"no bracket":       {`{"permissions": {"deny": ["Bash(rm"]}}`, "no closing bracket"},
		"no tool":          {`{"permissions": {"deny": ["(rm)"]}}`, "names no tool"},
		"permissions list": {`{"permissions": []}`, "permissions is no object"},
		"mode is number":   {`{"permissions": {"defaultMode": 1}}`, "is no text"},
		"too deep":         {strings.Repeat("[", 10000), "nested too deep"},
		"not text":         {"{\"a\": \"\xff\"}", "not UTF-8"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Claude([]File{{Name: "settings.json", Data: []byte(tt.text)}})
			f := fault.From(err)
			if err == nil || f.Exit != fault.Config || !strings.Contains(f.Why, tt.why) {
				t.Errorf("got %v, want %q", err, tt.why)
			}
		})
	}
}

func TestSeveralSettingsArePooledStrictly(t *testing.T) {
	r, err := Claude([]File{
		{Name: "user.json", Data: []byte(`{"permissions": {"defaultMode": "acceptEdits", "allow": ["Bash(git:*)"]}}`)},
		{Name: "project.json", Data: []byte(`{"permissions": {"defaultMode": "default", "deny": ["Bash(git push:*)"]}}`)},
	})
	if err != nil {
		t.Fatal(err)
	}
	p := pool(t, r)
	if got := effects(p, "git log", "git push"); got["git log"] != "allow" || got["git push"] != "deny" || p.Default() != policy.Ask {
		t.Errorf("got %v", got)
	}
	if len(r.Notes) != 1 || r.Lost() != 0 {
		t.Errorf("got notes %v", r.Notes)
	}
}

func FuzzClaude(f *testing.F) {
	for _, seed := range []string{
		settings([]string{"Bash(npm run test:*)", "Edit(src/**)", "mcp__a__b*"}, []string{"Bash(git * main)"}, []string{"Read(.env)", "Bash(*x)"}),
		`{"permissions": {"defaultMode": "acceptEdits", "additionalDirectories": ["../x", "/y*", "~"], "allow": ["Read(//a/{b,c}[d)", "Bash([ -f x)"]}}`,
		`{"permissions": {"deny": ["Bash(\u001b[31m * y)", "WebFetch(domain:*.x)", "Read(\u202e)"]}}`, `{"permissions": null}`, "[", `{"a": 1e999}`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		r, err := Claude([]File{{Name: "settings.json", Data: []byte(text)}})
		if err != nil {
			if fault.From(err).Exit != fault.Config {
				t.Fatalf("no fault of the file: %v", err)
			}
			return
		}
		checkResult(t, r)
	})
}
