package cmd

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"drover/output/event"
)

// What a command or a file tool leaves where the next run looks for the user's
// policy would be the user's policy.
func TestNothingBecomesTheUsersPolicy(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		args   []string
		files  map[string]string
		policy string
	}{
		"home is the workspace":      {args: []string{"-C", "home"}},
		"home is reached by a link":  {args: []string{"-C", "real"}, files: map[string]string{"real/": "", "home": "-> real"}},
		"home is added":              {args: []string{"-C", "work", "--add-dir", "home"}, files: map[string]string{"work/": ""}},
		"home is added by a policy":  {args: []string{"-C", "work", "--policy", "p.yaml"}, files: map[string]string{"work/": ""}, policy: "add_dirs: [../home]"},
		"a folder is there already":  {args: []string{"-C", "home"}, files: map[string]string{"home/.config/drover/other": "x"}},
		"the folders above it moved": {args: []string{"-C", "."}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			own := filepath.Join("home", ".config", "drover", "policy.yaml")
			p := run(t, "")
			home := filepath.Join(p.dir, "home")
			target := filepath.Join(p.dir, own)
			p.lay(map[string]string{
				"write.sh": "cd '" + p.dir + "'\nmv home gone; mv home/.config home/gone; mkdir -p '" + filepath.Dir(target) + "'; echo 'version: 1' > '" + target + "'; true\n",
				"model":    script(t, calls(execCall("sh '"+filepath.Join(p.dir, "write.sh")+"'"), m{"name": "write_file", "args": m{"path": target, "content": "version: 1\n"}}), says("Done.")),
				"p.yaml":   "version: 1\ndefault: allow\non_deny: continue\n" + c.policy,
			})
			if c.files["home"] == "" {
				p.lay(map[string]string{"home/": ""})
			}
			p.lay(c.files)
			p.cmd.Args = append([]string{p.cmd.Args[0], "run", "--model", "script:" + filepath.Join(p.dir, "model"), "--policy", filepath.Join(p.dir, "p.yaml")}, append(c.args, "go")...)
			p.cmd.Env = append(p.cmd.Env, "HOME="+home, "XDG_CONFIG_HOME=", "XDG_STATE_HOME="+filepath.Join(p.dir, "state"))
			stream, _ := p.output()
			if results := bodies[event.ToolResultEvent](t, stream); len(results) != 2 || !strings.HasPrefix(results[1].Content, "denied") {
				t.Errorf("the file tool wrote: %+v\n%s", results, p.stderr.String())
			}
			if text, err := os.ReadFile(target); err == nil {
				t.Errorf("the user's policy is %q", text)
			}
		})
	}
}

// Commands read as little of what the policy hides as file tools do, in whatever
// way it is named and wherever the workspace lies.
func TestCommandsReadNothingHidden(t *testing.T) {
	t.Parallel()
	for _, work := range []string{"work", "w[o]rk {a,b}", `w\*rk`} {
		t.Run(work, func(t *testing.T) {
			t.Parallel()
			p := run(t, "")
			files := map[string]string{}
			for _, name := range []string{"home/.ssh/id", work + "/sec/key", work + "/sub/x.pem", work + "/sub/deep/y.pem", "home/other/z", "home/lone", "added/sec/key"} {
				files[name] = "canary " + name
			}
			p.lay(files)
			p.lay(map[string]string{
				work + "/plain":   "plain",
				work + "/look.sh": "cat '" + strings.Join([]string{p.dir + "/home/.ssh/id", "sec/key", "sub/x.pem", "sub/deep/y.pem", p.dir + "/home/other/z", p.dir + "/home/lone", p.dir + "/added/sec/key", "plain"}, "' '") + "'; true\n",
				"p.yaml":          "version: 1\ndefault: allow\nadd_dirs: [../added]\ndeny_read: ['~/.ssh/**', 'sec/', '**/y.pem', '~/other/*', '~/lone', 'sub/x.pem']\n",
				"model":           script(t, calls(execCall("sh look.sh")), says("Done.")),
			})
			p.cmd.Args = []string{p.cmd.Args[0], "run", "--model", "script:" + filepath.Join(p.dir, "model"), "--policy", filepath.Join(p.dir, "p.yaml"), "-C", work, "go"}
			p.cmd.Env = append(p.cmd.Env, "HOME="+filepath.Join(p.dir, "home"), "XDG_CONFIG_HOME=", "XDG_STATE_HOME="+filepath.Join(p.dir, "state"))
			got := result(t, p.mustEnd(0)).Content
			if strings.Contains(got, "canary") || !strings.Contains(got, "plain") {
				t.Errorf("the command read: %s", got)
			}
		})
	}
}

// withoutNamespaces makes a drover run where the kernel makes no more user
// namespaces, and where there is no bubblewrap unless it is asked for.
func withoutNamespaces(t *testing.T, p *process, bubblewrap bool) {
	t.Helper()
	hide := "for p in /usr/bin/bwrap /usr/local/bin/bwrap /bin/bwrap; do [ ! -e $p ] || mount --bind /dev/null $p || exit 99; done; "
	if bubblewrap {
		hide = ""
	}
	shell := hide + "echo 0 >/proc/sys/user/max_user_namespaces || exit 99; exec \"$@\""
	argv := append([]string{"unshare", "-Urm", "sh", "-c", shell, "sh"}, append([]string{p.cmd.Path}, p.cmd.Args[1:]...)...)
	if err := exec.Command("unshare", "-Urm", "sh", "-c", hide+"echo 0 >/proc/sys/user/max_user_namespaces").Run(); err != nil {
		t.Skipf("no namespace to try it in: %v", err)
	}
	path, err := exec.LookPath(argv[0])
	if err != nil {
		t.Skip(err)
	}
	p.cmd.Path, p.cmd.Args = path, argv
}

// TestASandboxThatCannotBeSetUpEndsTheRunBeforeItBegins: nothing ran, and nobody
// is told that something did.
func TestASandboxThatCannotBeSetUpEndsTheRunBeforeItBegins(t *testing.T) {
	t.Parallel()
	p := newProcess(t, script(t, calls(execCall("touch canary")), says("Done.")), "run", "--model", "script:model.jsonl", "--policy", "p.yaml", "go")
	p.lay(map[string]string{"p.yaml": "version: 1\ndefault: allow\ndeny_read: ['**/.env']\n"})
	withoutNamespaces(t, p, false)
	stream, exit := p.output()
	if exit != 7 || !strings.Contains(p.stderr.String(), "no sandbox for commands") || !strings.Contains(p.stderr.String(), "--sandbox off") {
		t.Errorf("exit %d; stderr: %s", exit, p.stderr.String())
	}
	if n := len(bodies[event.TurnStartedEvent](t, stream)); n != 0 {
		t.Error("the model was asked")
	}
	if _, err := os.Stat(filepath.Join(p.dir, "canary")); err == nil {
		t.Error("the command ran")
	}
}

// TestALowerLevelIsTold: what is not enforced is a notice, and the level is in the
// first line.
func TestALowerLevelIsTold(t *testing.T) {
	t.Parallel()
	for _, bubblewrap := range []bool{false, true} {
		p := run(t, script(t, calls(execCall("echo $DROVER_SANDBOX_LEVEL; touch /etc/canary .git/canary")), says("Done.")), "go")
		p.lay(map[string]string{".git/config": ""})
		level := "landlock"
		if _, err := os.Stat("/usr/bin/bwrap"); bubblewrap && err != nil {
			t.Skip("bubblewrap is not installed")
		}
		if bubblewrap {
			level = "bubblewrap"
		}
		withoutNamespaces(t, p, bubblewrap)
		stream := p.mustEnd(0)
		started := bodies[event.RunStartedEvent](t, stream)
		if len(started) != 1 || started[0].Sandbox == nil || started[0].Sandbox.Level != level {
			t.Errorf("%s: the run says %+v", level, started[0].Sandbox)
		}
		if !strings.Contains(string(stream), "user namespaces are refused") {
			t.Errorf("%s: no notice says so", level)
		}
		if r := result(t, stream); !strings.Contains(r.Content, level) {
			t.Errorf("%s: the command says %s", level, r.Content)
		}
		if _, err := os.Stat(filepath.Join(p.dir, ".git", "canary")); bubblewrap && err == nil {
			t.Error("bubblewrap: .git was written")
		}
	}
}
