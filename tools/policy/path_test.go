package policy

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

type pathCase struct {
	action Action
	want   Effect
	by     string
}

func checkPaths(t *testing.T, p *Policy, cases []pathCase) {
	t.Helper()
	for _, c := range cases {
		v := p.Decide(Call{Tool: "apply_patch", Actions: []Action{c.action}})
		if v.Effect != c.want || c.by != "" && v.DecidedBy != c.by {
			t.Errorf("%s %s (%s): got %s by %s %q (%s), want %s by %s", c.action.Kind, c.action.Path, c.action.Real, v.Effect, v.DecidedBy, v.RuleID, v.Reason, c.want, c.by)
		}
	}
}

func TestAllowNeedsBothNamesAndDenyNeedsEither(t *testing.T) {
	p := load(t, `
version: 1
rules:
  - {id: src, effect: allow, path: ["src/**", "*.md", "link/**", "/data/**", "~/notes/*"]}
  - {id: env, effect: deny, path: ["**/.env*", "/data/secret/**"]}
  - {id: ask, effect: ask, path: ["src/gen/**"], access: [write]}
`, func(s *Sources) { s.Roots.Writable = []string{"/w", "/data"} })
	checkPaths(t, p, []pathCase{
		{Write("/w/src/a.go", ""), Allow, "policy"},
		{Write("/w/src/a.go", "/w/src/a.go"), Allow, ""},
		{Write("/w/src/../other/a.go", ""), Deny, "default"},
		{Write("/w/src/a.go", "/w/other/a.go"), Deny, "default"},
		{Read("/w/src/a.go", "/etc/passwd"), Deny, "default"},
		{Write("/w/src/a.go", "/etc/passwd"), Deny, "sandbox"},
		{Write("/w/link/x", "/tmp/outside/x"), Deny, "sandbox"},
		{Read("/w/link/x", "/tmp/outside/x"), Deny, "default"},
		{Read("/w/link/x", "/data/x"), Allow, ""},
		{Read("/w/src/x", "/w/src/.env"), Deny, "policy"},
		{Read("/w/src/.env", "/w/src/x"), Deny, "policy"},
		{Read("/w/.env.local", ""), Deny, "policy"},
		{Read("/w/README.md", ""), Allow, ""},
		{Read("/w/docs/README.md", ""), Deny, "default"},
		{Read("/wx/src/a", ""), Deny, "default"},
		{Read("/data/secret/a", ""), Deny, "policy"},
		{Write("/data/a/b", ""), Allow, ""},
		{Read("/home/u/notes/a", ""), Allow, ""},
		{Read("/home/u/notes/a/b", ""), Deny, ""},
		{Write("/w/src/gen/a.go", ""), Ask, "policy"},
		{Write("/w/src/b.go", "/w/src/gen/a.go"), Ask, "policy"},
		{Read("/w/src/gen/a.go", ""), Allow, ""},
		{Delete("/w/src/a.go", ""), Allow, ""},
		{Read("/w", ""), Deny, "default"},
	})
}

func TestProtectedFoldersNeedARuleThatNamesThem(t *testing.T) {
	open := load(t, "version: 1\ndefault: allow")
	checkPaths(t, open, []pathCase{
		{Write("/w/.git/config", ""), Deny, "sandbox"}, {Write("/w/.git", ""), Deny, "sandbox"}, {Delete("/w/.git", ""), Deny, "sandbox"},
		{Write("/w/.drover/policy.yaml", ""), Deny, "sandbox"}, {Write("/w/.agents/x", ""), Deny, "sandbox"}, {Write("/w/x/../.git/hooks/a", ""), Deny, "sandbox"},
		{Write("/w/link/config", "/w/.git/config"), Deny, "sandbox"}, {Write("/w/.gitignore", ""), Allow, ""}, {Write("/w/.github/x", ""), Allow, ""},
		{Read("/w/.git/config", ""), Allow, ""}, {Write("/w/sub/.git/config", ""), Allow, ""}, {Write("/etc/x", ""), Deny, "sandbox"},
		{Write("/wx/a", ""), Deny, "sandbox"},
	})
	checkCommands(t, open, []judged{{`echo x > .git/config`, Deny}, {`echo x > a`, Allow}, {`echo x > ../a`, Deny}, {`cat .git/config`, Allow}})
	for _, text := range []string{`**`, `**/*`, `.*/**`, `.g*/**`, `/w/**`} {
		p := load(t, "version: 1\nrules: [{id: all, effect: allow, path: ['"+text+"'], access: [write, delete]}]")
		checkPaths(t, p, []pathCase{{Write("/w/.git/config", ""), Deny, "sandbox"}})
		if len(p.Unprotected()) != 0 {
			t.Errorf("%s lifts %v", text, p.Unprotected())
		}
	}
	for _, text := range []string{`.git/**`, `/w/.git/**`, `**/.git/**`, `./.git/**`, `.git/`} {
		p := load(t, "version: 1\nrules: [{id: git, effect: allow, path: ['"+text+"'], access: [write]}]")
		checkPaths(t, p, []pathCase{{Write("/w/.git/config", ""), Allow, "policy"}, {Write("/w/.drover/x", ""), Deny, "sandbox"}, {Delete("/w/.git/config", ""), Deny, "sandbox"}})
		if got := strings.Join(p.Unprotected(), " "); got != "/w/.git" {
			t.Errorf("%s lifts %q", text, got)
		}
	}
	asks := load(t, "version: 1\nrules: [{id: git, effect: ask, path: ['.git/**'], access: [write]}]")
	checkPaths(t, asks, []pathCase{{Write("/w/.git/config", ""), Ask, "policy"}})
	denied := load(t, "version: 1\nrules: [{id: a, effect: allow, path: ['.git/**']}, {id: d, effect: deny, path: ['.git/hooks/**']}]")
	checkPaths(t, denied, []pathCase{{Write("/w/.git/hooks/x", ""), Deny, "policy"}, {Write("/w/.git/index", ""), Allow, ""}})
}

func TestSandboxModesBoundWrites(t *testing.T) {
	readOnly := load(t, "version: 1\ndefault: allow", func(s *Sources) { s.Roots.Writable = nil })
	checkPaths(t, readOnly, []pathCase{{Write("/w/a", ""), Deny, "sandbox"}, {Read("/w/a", ""), Allow, ""}})
	off := load(t, "version: 1\ndefault: allow", func(s *Sources) { s.Roots.Unrestricted = true })
	checkPaths(t, off, []pathCase{{Write("/etc/x", ""), Allow, ""}, {Write("/w/.git/x", ""), Deny, "sandbox"}})
	added := load(t, "version: 1\ndefault: allow\nadd_dirs: [/data, ../sib, ~/x]")
	checkPaths(t, added, []pathCase{
		{Write("/data/a", ""), Allow, ""}, {Write("/sib/a", ""), Allow, ""}, {Write("/home/u/x/a", ""), Allow, ""}, {Write("/data/.git/a", ""), Deny, "sandbox"},
	})
	private := load(t, "version: 1\napproval: on-failure", func(s *Sources) { s.Roots.Private = []string{"/tmp"} })
	checkCommands(t, private, []judged{{`echo x > /tmp/out`, Allow}, {`echo x > /etc/out`, Deny}})
	checkPaths(t, private, []pathCase{{Write("/tmp/out", ""), Deny, "sandbox"}})
	inside := load(t, "version: 1\ndefault: deny\nrules: [{id: e, effect: allow, argv: [[echo, cd]]}]", func(s *Sources) {
		s.Roots = Roots{Workspace: "/tmp/w", Writable: []string{"/tmp/w", "/tmp/data"}, Private: []string{"/tmp"}}
		s.Env.Real = func(name string) string {
			if name == "/tmp/w/link" {
				return "/tmp/other"
			}
			return name
		}
	})
	for script, want := range map[string]Effect{
		"echo x > /tmp/out": Allow, "echo x > /tmp/w/out": Deny, "echo x > out": Deny, "echo x > ../data/out": Deny, "echo x > link": Deny, "echo x > /tmp/w/.git/x": Deny,
	} {
		if v := inside.Decide(Call{Actions: []Action{Exec("/tmp/w", "bash", "-c", script)}}); v.Effect != want {
			t.Errorf("%q in a workspace below a private folder: got %s (%s)", script, v.Effect, v.Reason)
		}
	}
}

func TestWorkspaceBehindALinkIsOneFolder(t *testing.T) {
	p := load(t, "version: 1\nrules: [{id: w, effect: allow, path: ['**']}, {id: abs, effect: allow, path: ['/home/u/p/x/**']}]", func(s *Sources) {
		s.Roots.Workspace, s.Roots.Writable = "/home/u/p", []string{"/home/u/p"}
		s.Env.Real = func(name string) string {
			if rest, ok := strings.CutPrefix(name, "/home/u/p"); ok {
				return "/data/proj" + rest
			}
			return name
		}
	})
	checkPaths(t, p, []pathCase{
		{Write("/home/u/p/a.txt", "/data/proj/a.txt"), Allow, ""},
		{Write("/data/proj/a.txt", "/data/proj/a.txt"), Allow, ""},
		{Write("/home/u/p/x/a", "/data/proj/x/a"), Allow, ""},
		{Write("/home/u/p/.git/a", "/data/proj/.git/a"), Deny, "sandbox"},
		{Write("/data/proj/.git/a", "/data/proj/.git/a"), Deny, "sandbox"},
		{Write("/data/other/a", "/data/other/a"), Deny, "sandbox"},
	})
	v := p.Decide(Call{Tool: "exec_command", Actions: []Action{Exec("/home/u/p", "bash", "-c", "> link/a")}})
	if v.Effect != Allow || v.Action.Real != "/data/proj/link/a" {
		t.Errorf("redirect: got %+v", v)
	}
}

func TestLinksAreFollowedBeforeTheDecision(t *testing.T) {
	dir := RealPath(t.TempDir())
	work, outside := filepath.Join(dir, "w"), filepath.Join(dir, "outside")
	for _, d := range []string{work, outside, filepath.Join(work, "sub"), filepath.Join(outside, "deep")} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for name, target := range map[string]string{"link": outside, "deep": filepath.Join(outside, "deep"), "file": filepath.Join(outside, "new"), "rel": "../outside", "in": "sub", "loop": "loop"} {
		if err := os.Symlink(target, filepath.Join(work, name)); err != nil {
			t.Fatal(err)
		}
	}
	p := load(t, "version: 1\nrules: [{id: c, effect: allow, argv: [[cd, echo, git]]}, {id: w, effect: allow, path: ['**']}]", func(s *Sources) {
		s.Roots = Roots{Workspace: work, Writable: []string{work}}
		s.Env.Real = RealPath
	})
	for script, want := range map[string]Effect{
		"echo > sub/x": Allow, "echo > in/x": Allow, "echo > link/x": Deny, "echo > rel/x": Deny, "echo > file": Deny, "echo > deep/../x": Deny,
		"echo > in/../x": Allow, "cd link && echo > x": Deny, "cd deep && echo > ../x": Deny, "cd in && echo > ../x": Allow, "git -C link status": Deny,
		"git -C in status": Allow, "echo > loop": Allow,
	} {
		if v := p.Decide(Call{Tool: "x", Actions: []Action{Exec(work, "bash", "-c", script)}}); v.Effect != want {
			t.Errorf("%q: got %s %s (%s), want %s", script, v.Effect, v.Action.Real, v.Reason, want)
		}
	}
}

func TestReadsAreNeverAskedInsideTheWorkspace(t *testing.T) {
	p := load(t, "version: 1\ndefault: ask\ndeny_read: ['**/*.key', '/etc/shadow']")
	checkPaths(t, p, []pathCase{
		{Read("/w/a", ""), Allow, "default"}, {Read("/w/a", "/etc/x"), Ask, ""}, {Read("/etc/x", ""), Ask, ""}, {Write("/w/a", ""), Ask, ""},
		{Read("/w/x/a.key", ""), Deny, "policy"}, {Read("/w/a", "/etc/shadow"), Deny, "policy"}, {Write("/w/a.key", ""), Ask, ""},
	})
	if got := strings.Join(p.DenyRead(), " "); got != "**/*.key /etc/shadow" {
		t.Errorf("DenyRead = %q", got)
	}
}

func TestPatchesFollowTheApprovalPolicy(t *testing.T) {
	for approval, want := range map[string]Effect{"untrusted": Ask, "on-failure": Allow, "on-request": Allow, "never": Allow} {
		p := load(t, "version: 1\napproval: "+approval+"\nrules: [{id: no, effect: deny, path: ['no/**']}]")
		checkPaths(t, p, []pathCase{
			{Write("/w/a", ""), want, "default"}, {Delete("/w/a", ""), want, "default"}, {Write("/etc/a", ""), Deny, "sandbox"},
			{Write("/w/.git/a", ""), Deny, "sandbox"}, {Write("/w/no/a", ""), Deny, "policy"}, {Read("/w/a", ""), Deny, "default"},
		})
	}
	two := load(t, "version: 1\nrules: [{id: a, effect: allow, path: ['src/**']}]")
	v := two.Decide(Call{Tool: "apply_patch", Actions: []Action{Write("/w/src/a", ""), Write("/w/b", ""), Delete("/w/src/c", "")}})
	if v.Effect != Deny || v.Action.Path != "/w/b" || len(v.Parts) != 3 {
		t.Errorf("one file outside does not refuse the patch: %+v", v)
	}
}

func FuzzPath(f *testing.F) {
	f.Add("src/**", "/w/src/a", "/etc/passwd")
	f.Add("**/{a,b}*[c-d]", "/w/x/../ac", "")
	f.Add("/w/.git/**", "/w/.git/./config", "/w//x")
	f.Add("~/x/", "/home/u/x", "\x00")
	f.Add("/", ".", "/")
	f.Fuzz(func(t *testing.T, glob, name, real string) {
		s := newRootSet(Roots{Workspace: "/w", Writable: []string{"/w"}, Home: "/home/u"}, Env{}, nil)
		g, err := s.newPathGlob(glob)
		if err != nil || len(glob) > 64 || len(name) > 256 || len(real) > 256 {
			return
		}
		a := Action{Kind: KindWrite, Path: "/" + name, Real: real}
		// Of the root itself there is no exact glob: "/" is all below it.
		if exact, err := s.newPathGlob(escapeGlob(clean(a.Path))); err == nil && clean(a.Path) != "/" && len(exact.text) < maxGlob {
			if itself := (Action{Kind: KindWrite, Path: a.Path}); !s.matchPath([]pathGlob{exact}, &itself, false) {
				t.Errorf("the glob %q of exactly %q does not match it", exact.text, a.Path)
			}
			if other := (Action{Kind: KindWrite, Path: a.Path + "x"}); clean(other.Path) != clean(a.Path) && s.matchPath([]pathGlob{exact}, &other, false) {
				t.Errorf("the glob %q of exactly %q matches another file", exact.text, a.Path)
			}
		}
		sure := s.matchPath([]pathGlob{g}, &a, false)
		if sure && !s.matchPath([]pathGlob{g}, &a, true) {
			t.Errorf("%q certainly matches %q but not possibly", glob, name)
		}
		if g.relative && sure && !s.inWorkspace(&a) {
			t.Errorf("the relative glob %q matches %q outside the workspace", glob, name)
		}
	})
}
