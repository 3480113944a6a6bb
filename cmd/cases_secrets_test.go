package cmd

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"drover/output/event"
)

// everything is all that a run has left to be read: stdout, stderr, and every
// file below the state folder.
func (p *process) everything(stdout []byte) map[string]string {
	p.t.Helper()
	all := map[string]string{"stdout": string(stdout), "stderr": p.stderr.String()}
	for name, content := range p.tree(".") {
		if strings.HasPrefix(name, ".state") {
			all[name] = content
		}
	}
	return all
}

// TestFailuresDoNotPrintTheEnvironment (github.com/OpenHands/OpenHands/issues/15557)
// fails in every way in which a command can, in every format.
func TestFailuresDoNotPrintTheEnvironment(t *testing.T) {
	t.Parallel()
	for name, call := range map[string]m{
		"missing program": execCall("no-such-program --now"),
		"timeout":         execCall("sleep 300"),
		"missing folder":  {"name": "exec_command", "args": m{"cmd": "true", "workdir": "nowhere"}},
		"too long":        execCall("echo " + strings.Repeat("a", 300_000)),
		"shell trace":     execCall("set -x; echo $API_TOKEN; env; exit 3"),
		"other process":   execCall("cat /proc/$PPID/environ /proc/self/environ"),
		"missing patch":   patchCall("*** Update File: canary1234\n@@\n-a\n+b\n"),
	} {
		for _, format := range []string{"jsonl", "lines", "text"} {
			t.Run(name+" "+format, func(t *testing.T) {
				t.Parallel()
				p := run(t, script(t, calls(call), says("Done.")), "--debug", "--events", "full", "--format", format, "--tool-timeout", "300ms", "go canary1234")
				p.cmd.Env = append(p.cmd.Env, "API_TOKEN=canary1234")
				stdout, exit := p.plain()
				if exit != 0 {
					t.Fatalf("exit %d: %s", exit, p.stderr.String())
				}
				if format == "jsonl" {
					p.check(stdout, exit)
				}
				for where, text := range p.everything(stdout) {
					if strings.Contains(text, "canary1234") {
						t.Errorf("the secret is in %s", where)
					}
				}
			})
		}
	}
}

// TestFailedStartPrintsNoSecret fails before the run has begun.
func TestFailedStartPrintsNoSecret(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{
		{"--model", "script:canary1234.jsonl"}, {"--policy", "canary1234.yaml"}, {"-C", "canary1234"}, {"--format", "canary1234"}, {"--model", "canary1234/x"}, {"--canary1234"},
	} {
		t.Run(strings.Join(args, " "), func(t *testing.T) {
			t.Parallel()
			p := run(t, answer, append(args, "hi")...)
			p.cmd.Env = append(p.cmd.Env, "API_TOKEN=canary1234")
			stdout, exit := p.output()
			if exit == 0 {
				t.Error("exit 0")
			}
			for where, text := range p.everything(stdout) {
				if strings.Contains(text, "canary1234") {
					t.Errorf("the secret is in %s: %s", where, text)
				}
			}
		})
	}
}

// TestNoFileIsForOthers runs under loose umasks and writes every kind of file
// (github.com/openclaw/openclaw/issues/7862).
func TestNoFileIsForOthers(t *testing.T) {
	t.Parallel()
	for _, mask := range []string{"000", "022"} {
		t.Run(mask, func(t *testing.T) {
			t.Parallel()
			p := run(t, script(t, calls(execCall("head -c 3000000 /dev/zero | tr '\\0' x"), patchCall("*** Add File: big\n+"+strings.Repeat("y", 300_000)+"\n")), says("Done.")),
				"--out", "jsonl:.state/drover/run.jsonl", "--out", "lines:.state/drover/run.txt", "go")
			p.lay(map[string]string{".state/": ""})
			if err := os.Chmod(filepath.Join(p.dir, ".state"), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.Mkdir(filepath.Join(p.dir, ".state", "drover"), 0o700); err != nil {
				t.Fatal(err)
			}
			p.cmd.Args = append([]string{"sh", "-c", `umask ` + mask + `; exec "$0" "$@"`, p.cmd.Path}, p.cmd.Args[1:]...)
			p.cmd.Path = "/bin/sh"
			p.mustEnd(0)
			files := 0
			err := filepath.WalkDir(filepath.Join(p.dir, ".state"), func(path string, d os.DirEntry, err error) error {
				if err != nil {
					return err
				}
				info, err := d.Info()
				if err == nil && info.Mode().Perm()&0o077 != 0 {
					t.Errorf("%s has mode %v", path, info.Mode())
				}
				if !d.IsDir() {
					files++
				}
				return err
			})
			if err != nil || files < 4 {
				t.Errorf("%d files, %v", files, err)
			}
		})
	}
}

// TestProvidersKeysStayWithDrover (github.com/google-antigravity/antigravity-cli/issues/781)
// looks for them in commands and checks, and masks what comes up all the same.
func TestProvidersKeysStayWithDrover(t *testing.T) {
	t.Parallel()
	keys := map[string]string{"OPENAI_API_KEY": "sk-openai-0123456789", "ANTHROPIC_API_KEY": "sk-ant-0123456789", "LOCAL_KEY": "canary-key-0123456789", "GROQ_API_KEY": "groq-0123456789"}
	p := run(t, script(t, calls(execCall("env | cut -d= -f1; echo; tr '\\0' '\\n' < /proc/$PPID/environ")), says("Done.")), "--check", "env | cut -d= -f1 > names.txt", "go")
	p.lay(map[string]string{".config/drover/config.yaml": "providers:\n  local: {api: chat, base_url: 'http://127.0.0.1:1/v1', api_key_env: LOCAL_KEY}\n"})
	for name, value := range keys {
		p.cmd.Env = append(p.cmd.Env, name+"="+value)
	}
	p.cmd.Env = append(p.cmd.Env, "HARMLESS=value")
	stream := p.mustEnd(0)
	names, _, _ := strings.Cut(bodies[event.ToolResultEvent](t, stream)[0].Content, "\n\n")
	for _, seen := range []string{names, p.tree(".")["names.txt"]} {
		if !strings.Contains(seen, "HARMLESS") {
			t.Errorf("the environment is not whole: %s", seen)
		}
		for name := range keys {
			if strings.Contains(seen, name) {
				t.Errorf("%s reached a command", name)
			}
		}
	}
	for where, text := range p.everything(stream) {
		for name, value := range keys {
			if strings.Contains(text, value) {
				t.Errorf("the value of %s is in %s", name, where)
			}
		}
	}
}

// TestSecretsAreMaskedInFilesBesideTheStream cuts a secret into pieces on the
// way into a large result, a large patch and the final answer.
func TestSecretsAreMaskedInFilesBesideTheStream(t *testing.T) {
	t.Parallel()
	const secret = "canary-4f9a1c77"
	filler := strings.Repeat("z", 100_000)
	p := run(t, script(t,
		calls(execCall("for i in $(seq 40000); do echo line $i; done; printf canary-; sleep 0.1; echo 4f9a1c77; seq 40000")),
		calls(patchCall("*** Add File: big\n+"+filler+secret+filler+"\n")),
		m{"text": filler + secret + strings.Repeat(filler, 12), "chunk": 1 << 16}), "--events", "full", "--out", "jsonl:copy.jsonl", "-o", "answer.txt", "go")
	p.cmd.Env = append(p.cmd.Env, "DEPLOY_TOKEN="+secret)
	stream := p.mustEnd(0)
	if len(lastLine(t, stream).Artifacts) == 0 && len(bodies[event.FileChangedEvent](t, stream)) == 0 {
		t.Error("nothing was spilled")
	}
	all := p.everything(stream)
	for name, content := range p.tree(".") {
		if name != "big" && name != "model.jsonl" {
			all[name] = content
		}
	}
	for where, text := range all {
		if strings.Contains(text, secret) {
			t.Errorf("the secret is in %s", where)
		}
	}
	if !bytes.Contains([]byte(p.tree(".")["big"]), []byte(secret)) {
		t.Error("the file that the agent wrote was changed by the mask")
	}
}
