//go:build linux

package tools

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"drover/output/event"
	"drover/output/fault"
	"drover/tools/sandbox"
)

// confine puts the commands of env into a sandbox of their folder.
func confine(t testing.TB, env *Env) {
	t.Helper()
	sb, err := sandbox.Open(t.Context(), sandbox.Options{
		Mode: sandbox.WorkspaceWrite, Cwd: env.Cwd, Writable: []string{env.Cwd},
		Protected: []string{filepath.Join(env.Cwd, ".git"), filepath.Join(env.Cwd, ".drover")},
		Environ:   env.Commands.Environ, Layers: filepath.Join(t.TempDir(), "layers"),
	})
	var f *fault.Error
	if errors.As(err, &f) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { sb.Close(time.Second) })
	env.Commands.Sandbox = sb
}

// outside is a file in a folder that no command of env may write.
func outside(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("/var", "drover-test-") // not /tmp, of which commands have their own
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return filepath.Join(dir, "file")
}

func TestRefusalOfTheSandboxIsToldInWords(t *testing.T) {
	target := outside(t)
	script := "echo inside > here; touch " + target + "; echo done; exit 1"
	for name, run := range map[string]func(Env) Result{
		"exec_command":  func(e Env) Result { return callJSON(t, t.Context(), execCommand, e, "cmd", script) },
		"shell_command": func(e Env) Result { return callJSON(t, t.Context(), shellCommand, e, "command", script) },
		"check":         func(e Env) Result { return callJSON(t, t.Context(), checkCommand, e, "cmd", script) },
		"session": func(e Env) Result {
			_, id := background(t, e, "sleep 0.5; "+script)
			res, _ := untilOver(t, e, id)
			return res
		},
		"session that told of it earlier": func(e Env) Result {
			_, id := background(t, e, "touch "+target+"; until [ -e go ]; do sleep 0.02; done; exit 1")
			touch(t, e, "go")
			res, _ := untilOver(t, e, id)
			touch(t, e, "here")
			return res
		},
	} {
		t.Run(name, func(t *testing.T) {
			env, rec := sessionEnv(t)
			confine(t, &env)
			res := run(env)
			if len(res.Refusals) != 1 || res.Refusals[0].Target != target {
				t.Fatalf("refusals %+v of:\n%s", res.Refusals, res.Text)
			}
			if want := "Note: the sandbox seems to have refused writing " + target + ": " + res.Refusals[0].Reason; !strings.Contains(res.Text, want) {
				t.Errorf("no %q in:\n%s", want, res.Text)
			}
			if _, err := os.Stat(filepath.Join(env.Cwd, "here")); err != nil {
				t.Error(err)
			}
			if _, err := os.Stat(target); !os.IsNotExist(err) {
				t.Errorf("the file outside: %v", err)
			}
			env.Commands.Sessions.Close()
			if start := rec.events[0].(event.TerminalNewRunningEvent); start.Sandbox != "workspace-write" {
				t.Errorf("started %+v", start)
			}
		})
	}
}

func TestRightsOfACallWidenItsSandboxOnly(t *testing.T) {
	env, _ := commandEnv(t)
	confine(t, &env)
	target := outside(t)
	plain := env
	env.Rights.Write = []string{filepath.Dir(target)}
	if res := callJSON(t, t.Context(), execCommand, env, "cmd", "echo x > "+target); *res.ExitCode != 0 {
		t.Errorf("with the right: %s", res.Text)
	}
	if res := callJSON(t, t.Context(), execCommand, plain, "cmd", "echo y > "+target); *res.ExitCode == 0 {
		t.Errorf("without the right: %s", res.Text)
	}
	env.Rights = sandbox.Rights{Off: true}
	if res := callJSON(t, t.Context(), execCommand, env, "cmd", "echo z > "+target); *res.ExitCode != 0 {
		t.Errorf("without the sandbox: %s", res.Text)
	}
}

func TestCommandsKnowTheirSandbox(t *testing.T) {
	env, _ := commandEnv(t)
	confine(t, &env)
	env.Commands.Environ = append(env.Commands.Environ, "DROVER_SANDBOX_LEVEL=none", "DROVER_SANDBOX_NETWORK_DISABLED=0")
	out := outputOf(t, callJSON(t, t.Context(), execCommand, env, "cmd", "env"))
	lines := strings.Split(out, "\n")
	for _, want := range append(env.Commands.Sandbox.Environ(), "DROVER_SANDBOX_NETWORK_DISABLED=1") {
		if !slices.Contains(lines, want) {
			t.Errorf("no %s in:\n%s", want, out)
		}
	}
	if strings.Count(out, "DROVER_SANDBOX_LEVEL=") != 1 {
		t.Errorf("twice in:\n%s", out)
	}
}

func TestProtectedFolderThatAppearsIsTold(t *testing.T) {
	env, rec := commandEnv(t)
	confine(t, &env)
	callJSON(t, t.Context(), execCommand, env, "cmd", "mkdir .drover")
	callJSON(t, t.Context(), execCommand, env, "cmd", "true")
	var notices []event.NoticeEvent
	for _, e := range rec.events {
		if n, ok := e.(event.NoticeEvent); ok {
			notices = append(notices, n)
		}
	}
	if len(notices) != 1 || notices[0].Code != "protected_created" || notices[0].Level != "warning" || !strings.Contains(notices[0].Message, ".drover") {
		t.Errorf("notices %+v", notices)
	}
}

// A command that kills what started it ends the run, not the sandbox.
func TestNothingRunsWithoutTheHelper(t *testing.T) {
	env, rec := sessionEnv(t)
	confine(t, &env)
	_, id := background(t, env, "echo up; sleep 300")
	if err := syscall.Kill(env.Commands.Sandbox.Launcher().Pid(), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	res, _ := untilOver(t, env, id)
	if !res.IsError || res.Code != "lost" || *res.ExitCode != -1 || !strings.Contains(res.Text, "nobody knows how the command ended") {
		t.Errorf("got %+v", res)
	}
	for _, tool := range []Tool{execCommand, shellCommand, checkCommand} {
		call, err := tool.Prepare(env, Input{Text: jsonArgs("cmd", "touch ran", "command", "touch ran")})
		if err != nil {
			t.Fatal(err)
		}
		_, err = call.Run(t.Context(), env)
		var f *fault.Error
		if !errors.As(err, &f) || f.Exit != fault.Environment {
			t.Errorf("%s: %v", tool.Spec().Name, err)
		}
	}
	if _, err := RunCommand(t.Context(), env, "touch ran", CommandOptions{}); !endsRun(err) {
		t.Errorf("RunCommand: %v", err)
	}
	if _, err := os.Stat(filepath.Join(env.Cwd, "ran")); !os.IsNotExist(err) {
		t.Errorf("a command ran: %v", err)
	}
	env.Commands.Sessions.Close()
	rec.output(t)
}

func TestConversationInASandbox(t *testing.T) {
	env, _ := sessionEnv(t)
	confine(t, &env)
	_, id := background(t, env, `tty -s && [ -t 1 ] && stty size; read -r x; echo "got $x"; while :; do sleep 0.05; done`, "tty", true)
	res := callJSON(t, t.Context(), writeStdin, env, "session_id", id, "chars", "a\n", "yield_time_ms", 1000)
	if out := outputOf(t, res); !strings.HasSuffix(out, "got a\n") {
		t.Errorf("output %q", out)
	}
	res = callJSON(t, t.Context(), writeStdin, env, "session_id", id, "chars", "\x03", "yield_time_ms", 30_000)
	if data(t, res).SessionID != 0 {
		t.Errorf("not interrupted: %s", res.Text)
	}
}

func TestFailedStartInASandbox(t *testing.T) {
	env, _ := commandEnv(t)
	confine(t, &env)
	for args, want := range map[string]string{
		`{"command":["no-such-program"]}`:           `start "no-such-program": program not found in PATH`,
		`{"command":["ls"],"workdir":"/nowhere"}`:   "/nowhere",
		`{"command":["./none"],"timeout_ms":20000}`: "no such file",
	} {
		call, err := shellTool.Prepare(env, Input{Text: args})
		if err != nil {
			t.Fatal(err)
		}
		if res, err := call.Run(t.Context(), env); err != nil || res.Code != "not_started" || !strings.Contains(res.Text, want) {
			t.Errorf("%s: %+v, %v", args, res, err)
		}
	}
}
