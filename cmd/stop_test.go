package cmd

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"drover/output/event"
)

// stuck starts the process with a stdout that nobody reads, and waits until it
// is full.
func (p *process) stuck() {
	p.t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { _ = r.Close() })
	p.cmd.Stdout = w
	if err := p.cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	_ = w.Close() // the process has its own
	// The session's file is written before stdout, so it grows until the writes
	// to stdout wait.
	var last int64
	still := 0
	waitFor(p.t, "a full pipe", func() bool {
		files, _ := filepath.Glob(filepath.Join(p.dir, ".state", "drover", "sessions", "*", "events.jsonl")) // the pattern is right
		if len(files) != 1 {
			return false
		}
		info, err := os.Stat(files[0])
		if err != nil || info.Size() < 16<<10 {
			return false
		}
		if still++; info.Size() != last {
			last, still = info.Size(), 0
		}
		return still > 20
	})
}

// flood is a run that says more than any pipe holds, and then runs a command.
func flood() string {
	var b strings.Builder
	for range 40 {
		fmt.Fprintf(&b, `{"text":%q,"tool_calls":[{"name":"exec_command","args":{"cmd":"true"}}]}`+"\n", strings.Repeat("word ", 10_000))
	}
	return b.String() + answer
}

func TestStoppedReaderDoesNotHoldUpTheEnd(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		args    []string
		signals []syscall.Signal
		exit    int
	}{
		"SIGTERM":      {nil, []syscall.Signal{syscall.SIGTERM}, 143},
		"SIGINT twice": {nil, []syscall.Signal{syscall.SIGINT, syscall.SIGINT}, 130},
		"timeout":      {[]string{"--timeout", "2s"}, nil, 14},
		"idle timeout": {[]string{"--idle-timeout", "2s"}, nil, 14},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := run(t, flood(), append(c.args, "go")...)
			p.stuck()
			for _, s := range c.signals {
				if err := p.cmd.Process.Signal(s); err != nil {
					t.Fatal(err)
				}
				time.Sleep(50 * time.Millisecond) // two signals at once can count as one
			}
			if exit := p.finish(); exit != c.exit {
				t.Errorf("exit %d, want %d", exit, c.exit)
			}
			// The session has it all, in order.
			stream := p.sessionFile()
			p.check(stream, c.exit)
			if reached := bodies[event.LimitReachedEvent](t, stream); len(reached) != len(c.args)/2 {
				t.Errorf("limits reached: %+v", reached)
			}
			if !strings.Contains(p.stderr.String(), "did not read") {
				t.Errorf("stderr: %s", p.stderr.String())
			}
		})
	}
}

func TestStoppedReaderOfBothOutputs(t *testing.T) {
	t.Parallel()
	p := run(t, flood(), "go")
	p.cmd.Args = append([]string{"sh", "-c", `exec "$0" "$@" 2>&1`, p.cmd.Path}, p.cmd.Args[1:]...)
	p.cmd.Path = "/bin/sh"
	p.stuck()
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if exit := p.finish(); exit != 143 {
		t.Errorf("exit %d", exit)
	}
}

func TestSecondOutputWithoutAReader(t *testing.T) {
	t.Parallel()
	p := run(t, flood(), "--out", "jsonl:pipe", "--timeout", "2s", "go")
	r := pipeFor(t, p.dir)
	defer r.Close()
	stream, exit := p.output()
	if exit != 14 {
		t.Errorf("exit %d", exit)
	}
	if notices := bodies[event.NoticeEvent](t, stream); !contains(notices, "output_lost") {
		t.Errorf("notices: %+v", notices)
	}
}

// pipeFor makes a named pipe in dir that is open and never read.
func pipeFor(t *testing.T, dir string) *os.File {
	t.Helper()
	path := filepath.Join(dir, "pipe")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Skip("no pipes with names here: ", err)
	}
	r, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func contains(notices []event.NoticeEvent, code string) bool {
	for _, n := range notices {
		if n.Code == code {
			return true
		}
	}
	return false
}

// TestSecondSignalEndsCommandsAtOnce: what the second signal ends is closed in
// order all the same.
func TestSecondSignalEndsCommandsAtOnce(t *testing.T) {
	t.Parallel()
	for round := range 3 {
		r := run(t, `{"tool_calls":[{"name":"exec_command","args":{"cmd":"trap '' TERM INT; echo ready; while :; do sleep 0.01; echo x; done"}},{"name":"exec_command","args":{"cmd":"trap '' TERM INT; while :; do sleep 0.01; echo y; done"}}]}`+"\n"+answer, "--events", "full", "go").startUntil("ready")
		for range 2 + round {
			r.signal(syscall.SIGTERM)
			time.Sleep(30 * time.Millisecond) // signals at once count as one
		}
		stream, exit := r.rest()
		if exit != 143 {
			t.Errorf("exit %d", exit)
		}
		if n := bytes.Count(stream, []byte(`"type":"run.finished"`)); n != 1 {
			t.Errorf("%d last lines", n)
		}
		if lastLine(t, stream).ExitCode != exit {
			t.Error("the last line has another exit code")
		}
		r.check(stream, exit)
	}
}

func TestSignalBeforeTheRunBegins(t *testing.T) {
	t.Parallel()
	check := func(t *testing.T, p *process, ready func() bool) {
		t.Helper()
		var out bytes.Buffer
		p.cmd.Stdout = &out
		if err := p.cmd.Start(); err != nil {
			t.Fatal(err)
		}
		waitFor(t, "the preparation", ready)
		if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		exit := p.finish()
		if end := p.check(out.Bytes(), exit); exit != 143 || end.Status != "cancelled" || end.Reason != "sigterm" {
			t.Errorf("exit %d, %+v", exit, end)
		}
		if n := bytes.Count(out.Bytes(), []byte("\n")); n != 1 {
			t.Errorf("%d lines: %s", n, out.String())
		}
		left, _ := filepath.Glob(filepath.Join(p.dir, ".state", "drover", "sessions", "*")) // the pattern is right
		if len(left) != 0 {
			t.Errorf("sessions are left: %v", left)
		}
	}
	t.Run("prompt on stdin", func(t *testing.T) {
		t.Parallel()
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		defer w.Close()
		p := run(t, answer, "-")
		p.cmd.Stdin = r
		check(t, p, func() bool { return readsStdin(p.cmd.Process.Pid) })
	})
	t.Run("copy", func(t *testing.T) {
		t.Parallel()
		p := run(t, answer, "-f", "task.yaml")
		write := func(name, text string) {
			path := filepath.Join(p.dir, name)
			if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		write("task.yaml", "version: 1\nprompt: go\ncwd: work\nisolate: copy\n")
		for i := range 8000 {
			write(fmt.Sprintf("work/%d/%d", i%50, i), "text")
		}
		check(t, p, func() bool {
			copies, _ := filepath.Glob(filepath.Join(p.dir, ".state", "drover", "sessions", "*", "*", "*")) // the pattern is right
			return len(copies) > 0
		})
	})
}

// readsStdin tells whether a process waits for its standard input: by then it
// has taken the signals over.
func readsStdin(pid int) bool {
	files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/syscall", pid)) // the pattern is right
	for _, name := range files {
		data, err := os.ReadFile(name)
		if err == nil && strings.HasPrefix(string(data), fmt.Sprintf("%d 0x0 ", syscall.SYS_READ)) {
			return true
		}
	}
	return false
}

func TestIgnoredHangupStaysIgnored(t *testing.T) {
	t.Parallel()
	p := run(t, `{"tool_calls":[{"name":"exec_command","args":{"cmd":"echo ready; while [ ! -e go ]; do sleep 0.05; done"}}]}`+"\n"+answer, "hi")
	p.cmd.Args = append([]string{"sh", "-c", `trap '' HUP; exec "$0" "$@"`, p.cmd.Path}, p.cmd.Args[1:]...)
	p.cmd.Path = "/bin/sh"
	r := p.startUntil("ready")
	r.signal(syscall.SIGHUP)
	if err := os.WriteFile(filepath.Join(p.dir, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	stream, exit := r.rest()
	if r.check(stream, exit); exit != 0 {
		t.Errorf("exit %d", exit)
	}
}

func TestFilesThatAreNoFilesDoNotHoldTheRunUp(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		args []string
		exit int
	}{
		"last message": {[]string{"-o", "ff", "go"}, 7}, "output": {[]string{"--out", "jsonl:ff", "go"}, 2},
		"schema": {[]string{"--output-schema", "ff", "go"}, 3}, "endless schema": {[]string{"--output-schema", "/dev/zero", "go"}, 3},
		"task": {[]string{"-f", "ff"}, 3}, "prompt": {[]string{"--prompt-file", "ff"}, 2},
		"last message in no folder": {[]string{"-o", "missing/x", "go"}, 2}, "last message to a folder": {[]string{"-o", ".", "go"}, 2},
		"last message to a device": {[]string{"-o", "/dev/stderr", "go"}, 0}, "output to a device": {[]string{"--out", "jsonl:/dev/null", "go"}, 0},
		"empty check": {[]string{"--check", " ", "go"}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := run(t, answer, c.args...)
			if err := syscall.Mkfifo(filepath.Join(p.dir, "ff"), 0o600); err != nil {
				t.Skip("no pipes with names here: ", err)
			}
			stream, exit := p.output()
			if exit != c.exit {
				t.Errorf("exit %d, want %d; stderr: %s", exit, c.exit, p.stderr.String())
			}
			if begun := bytes.Contains(stream, []byte("turn.started")); begun != (c.exit == 0 || c.exit == 7) {
				t.Errorf("the model was asked: %v", begun)
			}
		})
	}
}

func TestPromptAndTaskMayBePipes(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skip("no bash: ", err)
	}
	for _, line := range []string{
		`exec "$0" "$@" --prompt-file <(sleep 0.2; echo piped)`,
		`exec "$0" "$@" -f <(sleep 0.2; printf 'version: 1\nprompt: piped\n')`,
	} {
		p := run(t, answer)
		p.cmd.Args = append([]string{"bash", "-c", line, p.cmd.Path}, p.cmd.Args[1:]...)
		p.cmd.Path = "/bin/bash"
		stream, exit := p.output()
		if exit != 0 || !strings.HasPrefix(userMessage(t, stream), "piped") {
			t.Errorf("%s: exit %d, stderr %s", line, exit, p.stderr.String())
		}
	}
}

// command is a drover in a folder of its own.
func command(t *testing.T, args ...string) *process { return newProcess(t, "", args...) }

func TestSignalEndsTheCommandOfAToolCall(t *testing.T) {
	t.Parallel()
	for sig, want := range map[syscall.Signal]int{syscall.SIGINT: 130, syscall.SIGTERM: 143} {
		p := command(t, "tools", "call", "exec_command", "--yolo")
		p.cmd.Stdin = strings.NewReader(`{"cmd":"sleep 300 & echo $! >child; wait"}`)
		if err := p.cmd.Start(); err != nil {
			t.Fatal(err)
		}
		var child string
		waitFor(t, "the command", func() bool {
			data, err := os.ReadFile(filepath.Join(p.dir, "child"))
			child = strings.TrimSpace(string(data))
			return err == nil && child != ""
		})
		if err := p.cmd.Process.Signal(sig); err != nil {
			t.Fatal(err)
		}
		if exit := p.finish(); exit != want {
			t.Errorf("%v: exit %d, want %d", sig, exit, want)
		}
		// Whoever adopts what is left may take a moment to bury it.
		waitFor(t, "the end of process "+child, func() bool {
			stat, err := os.ReadFile("/proc/" + child + "/stat")
			return err != nil || strings.Contains(string(stat), ") Z ")
		})
	}
	t.Run("while stdin is silent", func(t *testing.T) {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		defer w.Close()
		p := command(t, "tools", "call", "exec_command", "--yolo")
		p.cmd.Stdin = r
		if err := p.cmd.Start(); err != nil {
			t.Fatal(err)
		}
		waitFor(t, "the wait for stdin", func() bool { return readsStdin(p.cmd.Process.Pid) })
		if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		if exit := p.finish(); exit != 143 {
			t.Errorf("exit %d", exit)
		}
	})
}

func TestPatchThatCannotBeJudgedIsNotApplied(t *testing.T) {
	t.Parallel()
	for patch, want := range map[string]struct {
		exit    int
		applied bool
	}{
		"*** Begin Patch\n*** Add File: new\n+text\n*** End Patch\n": {0, true},
		"*** Begin Patch\n*** Add File: new\n+text\n":                {1, false},
		"": {2, false},
	} {
		p := command(t, "tools", "call", "apply_patch", "--yolo")
		p.cmd.Stdin = strings.NewReader(patch)
		if err := p.cmd.Start(); err != nil {
			t.Fatal(err)
		}
		exit := p.finish()
		_, err := os.Stat(filepath.Join(p.dir, "new"))
		if exit != want.exit || (err == nil) != want.applied {
			t.Errorf("%q: exit %d, applied %v; stderr: %s", patch, exit, err == nil, p.stderr.String())
		}
	}
}

func TestCommandsTellThatStdoutCannotBeWritten(t *testing.T) {
	t.Parallel()
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip("this system has no /dev/full: ", err)
	}
	t.Cleanup(func() { _ = full.Close() }) // after the parallel tests
	for _, line := range []string{
		"version", "version --format json", "exit-codes", "exit-codes --format json", "schema events", "schema task", "schema tool exec_command",
		"tools list", "tools list --format json", "tools show apply_patch", "tools show exec_command", "completion bash", "completion zsh", "completion fish", "--help", "run --help",
	} {
		t.Run(line, func(t *testing.T) {
			t.Parallel()
			p := command(t, strings.Fields(line)...)
			p.cmd.Stdout = full
			if err := p.cmd.Start(); err != nil {
				t.Fatal(err)
			}
			if exit := p.finish(); exit != 7 || !strings.Contains(p.stderr.String(), "standard output cannot be written") {
				t.Errorf("exit %d, stderr: %s", exit, p.stderr.String())
			}
		})
	}
	// What cobra itself refuses is a wrong command line.
	for _, line := range []string{"bogus", "completion bogus", "version extra", "run --bogus"} {
		p := command(t, strings.Fields(line)...)
		if err := p.cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if exit := p.finish(); exit != 2 {
			t.Errorf("%s: exit %d, stderr: %s", line, exit, p.stderr.String())
		}
	}
}

func TestConfigThatIsNoFileIsRefused(t *testing.T) {
	t.Parallel()
	p := run(t, answer, "go")
	dir := filepath.Join(p.dir, ".config", "drover")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(filepath.Join(dir, "config.yaml"), 0o600); err != nil {
		t.Skip("no pipes with names here: ", err)
	}
	if _, exit := p.output(); exit != 3 || !strings.Contains(p.stderr.String(), "not a plain file") {
		t.Errorf("exit %d, stderr: %s", exit, p.stderr.String())
	}
}

// zeros is a reader without an end.
type zeros struct{}

func (zeros) Read(b []byte) (int, error) { clear(b); return len(b), nil }

func TestInputOfAToolCallIsNeverCut(t *testing.T) {
	t.Parallel()
	p := command(t, "tools", "call", "exec_command", "--yolo")
	p.cmd.Stdin = io.LimitReader(zeros{}, maxPrompt+1)
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if exit := p.finish(); exit != 2 || !strings.Contains(p.stderr.String(), "larger than 64 MiB") {
		t.Errorf("exit %d, stderr: %s", exit, p.stderr.String())
	}
}
