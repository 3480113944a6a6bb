package cmd

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"drover/output/event"
	"drover/tools/sandbox"
)

// The tests of this file start the real process: the test binary runs as
// drover when this variable is set.
const asDrover = "DROVER_TEST_AS_MAIN"

func TestMain(m *testing.M) {
	sandbox.Main() // returns, unless this process is the helper of a run
	if os.Getenv(asDrover) != "" {
		os.Exit(Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
	}
	// Where hangups are ignored, as under nohup, a program inherits that, unless
	// somebody wants to be told of them.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP)
	flag.Parse()
	if err := flag.Set("test.parallel", strconv.Itoa(max(waiters, runtime.GOMAXPROCS(0)))); err != nil {
		panic(err) // the flag is the testing package's own
	}
	os.Exit(m.Run())
}

// waiters is how many parallel tests run at a time: they wait for processes
// more than they compute.
const waiters = 6

// process is a drover that runs in a folder of its own.
type process struct {
	t      *testing.T
	dir    string
	cmd    *exec.Cmd
	stderr bytes.Buffer
}

func newProcess(t *testing.T, script string, args ...string) *process {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "model.jsonl"), []byte(script), 0o600); err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	p := &process{t: t, dir: dir, cmd: exec.Command(self, args...)}
	p.cmd.Dir = dir
	p.cmd.Stderr = &p.stderr
	p.cmd.Env = append(os.Environ(), asDrover+"=1",
		"XDG_STATE_HOME="+filepath.Join(dir, ".state"), "XDG_CONFIG_HOME="+filepath.Join(dir, ".config"))
	return p
}

func run(t *testing.T, script string, args ...string) *process {
	t.Helper()
	return newProcess(t, script, append([]string{"run", "--model", "script:model.jsonl", "--yolo"}, args...)...)
}

// finish waits for the process and returns its exit code; a process that does
// not end is killed and the test fails.
func (p *process) finish() int {
	p.t.Helper()
	timer := time.AfterFunc(60*time.Second, func() { _ = p.cmd.Process.Kill() })
	err := p.cmd.Wait()
	if !timer.Stop() {
		p.t.Fatalf("the process did not end; stderr: %s", p.stderr.String())
	}
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		p.t.Fatal(err)
	}
	return p.cmd.ProcessState.ExitCode()
}

// output starts the process, reads all of stdout, and checks the stream.
func (p *process) output() (stdout []byte, exit int) {
	p.t.Helper()
	var out bytes.Buffer
	p.cmd.Stdout = &out
	if err := p.cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	exit = p.finish()
	p.check(out.Bytes(), exit)
	return out.Bytes(), exit
}

// check holds a whole stream against every promise.
func (p *process) check(stream []byte, exit int) event.RunFinishedEvent {
	p.t.Helper()
	for _, problem := range event.CheckStream(bytes.NewReader(stream)) {
		p.t.Errorf("stream: %v", problem)
	}
	end := lastLine(p.t, stream)
	if end.ExitCode != exit {
		p.t.Errorf("run.finished says %d, the process ended with %d; stderr: %s", end.ExitCode, exit, p.stderr.String())
	}
	p.noChildren(stream)
	return end
}

func lastLine(t *testing.T, stream []byte) event.RunFinishedEvent {
	t.Helper()
	lines := bytes.Split(bytes.TrimSuffix(stream, []byte("\n")), []byte("\n"))
	e, err := event.Decode(lines[len(lines)-1])
	if err != nil {
		t.Fatalf("last line: %v", err)
	}
	end, ok := e.Body.(event.RunFinishedEvent)
	if !ok {
		t.Fatalf("the last line is %s", e.Body.Type())
	}
	return end
}

// noChildren fails when a process of the run is still alive.
func (p *process) noChildren(stream []byte) {
	p.t.Helper()
	var first struct {
		RunID string `json:"run_id"`
	}
	line, _, _ := bytes.Cut(stream, []byte("\n"))
	if err := json.Unmarshal(line, &first); err != nil {
		p.t.Fatalf("first line: %v", err)
	}
	waitFor(p.t, "the end of every process of "+first.RunID, func() bool { return len(processesOf(first.RunID)) == 0 })
}

// processesOf finds processes by the run's id in their environment.
func processesOf(runID string) (pids []string) {
	files, _ := filepath.Glob("/proc/[0-9]*/environ") // the pattern is right
	for _, name := range files {
		env, err := os.ReadFile(name)
		if err == nil && bytes.Contains(env, []byte("DROVER_RUN_ID="+runID)) {
			pids = append(pids, filepath.Base(filepath.Dir(name)))
		}
	}
	return pids
}

// waitFor polls a condition with a generous deadline.
func waitFor(t *testing.T, what string, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !done(); {
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain for %s", what)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

const answer = `{"text":"Hello."}` + "\n"

func TestSilentStdinDoesNotHoldTheRunUp(t *testing.T) {
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer write.Close()
	defer read.Close()
	for name, stdin := range map[string]io.Reader{"open pipe": read, "null device": nil} {
		t.Run(name, func(t *testing.T) {
			p := run(t, answer, "hi")
			p.cmd.Stdin = stdin
			if _, exit := p.output(); exit != 0 {
				t.Errorf("exit %d: %s", exit, p.stderr.String())
			}
		})
	}
	t.Run("closed", func(t *testing.T) {
		p := run(t, answer, "hi")
		p.cmd.Args = append([]string{"sh", "-c", `exec "$0" "$@" <&-`, p.cmd.Path}, p.cmd.Args[1:]...)
		p.cmd.Path = "/bin/sh"
		if _, exit := p.output(); exit != 0 {
			t.Errorf("exit %d: %s", exit, p.stderr.String())
		}
	})
}

func TestLargePromptKeepsEveryByte(t *testing.T) {
	prompt := strings.Repeat("0123456789abcde\r\n", 300<<10/17) + "  trailing blanks  "
	p := run(t, answer, "-")
	p.cmd.Stdin = strings.NewReader(prompt)
	stdout, exit := p.output()
	if exit != 0 {
		t.Fatalf("exit %d: %s", exit, p.stderr.String())
	}
	if got := userMessage(t, stdout); got != prompt {
		t.Errorf("the prompt has %d bytes, want %d", len(got), len(prompt))
	}
	p = run(t, answer, "--prompt-file", "prompt.txt")
	if err := os.WriteFile(filepath.Join(p.dir, "prompt.txt"), []byte(prompt), 0o600); err != nil {
		t.Fatal(err)
	}
	stdout, _ = p.output()
	if got := userMessage(t, stdout); got != prompt {
		t.Errorf("from a file the prompt has %d bytes, want %d", len(got), len(prompt))
	}
}

func userMessage(t *testing.T, stream []byte) string {
	t.Helper()
	for line := range bytes.Lines(stream) {
		e, err := event.Decode(bytes.TrimSuffix(line, []byte("\n")))
		if err != nil {
			t.Fatal(err)
		}
		if m, ok := e.Body.(event.MessageEvent); ok && m.Role == "user" {
			return m.Text
		}
	}
	t.Fatal("no prompt in the stream")
	return ""
}

// chatter is a run with much to say.
func chatter(lines int) string {
	var b strings.Builder
	for i := range lines {
		fmt.Fprintf(&b, `{"text":%q,"tool_calls":[{"name":"exec_command","args":{"cmd":"echo %d; sleep 0.05"}}]}`+"\n", strings.Repeat("word ", 400), i)
	}
	return b.String() + answer
}

func TestReaderThatGoesAwayEndsTheRunWith141(t *testing.T) {
	p := run(t, chatter(40), "go")
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadBytes('\n')
	if err != nil {
		t.Fatal(err)
	}
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
	if exit := p.finish(); exit != 141 {
		t.Errorf("exit %d, want 141; stderr: %s", exit, p.stderr.String())
	}
	if n := strings.Count(p.stderr.String(), "\n"); n > 1 {
		t.Errorf("stderr has %d lines: %s", n, p.stderr.String())
	}
	p.noChildren(line)
	session := p.sessionFile()
	p.check(session, 141)
}

// sessionFile reads the one session that the process has left, without the
// private records.
func (p *process) sessionFile() []byte {
	p.t.Helper()
	files, err := filepath.Glob(filepath.Join(p.dir, ".state", "drover", "sessions", "*", "events.jsonl"))
	if err != nil || len(files) != 1 {
		p.t.Fatalf("session files: %v, %v", files, err)
	}
	data, err := os.ReadFile(files[0])
	if err != nil {
		p.t.Fatal(err)
	}
	var events bytes.Buffer
	for line := range bytes.Lines(data) {
		if !bytes.HasPrefix(line, []byte(`{"record"`)) {
			events.Write(line)
		}
	}
	return events.Bytes()
}

func TestSlowReaderLosesNothing(t *testing.T) {
	p := run(t, chatter(20), "go")
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var all bytes.Buffer
	buffer := make([]byte, 8<<10)
	for {
		n, err := out.Read(buffer)
		all.Write(buffer[:n])
		if err != nil {
			break
		}
		time.Sleep(2 * time.Millisecond)
	}
	p.check(all.Bytes(), p.finish())
}

// TestSignalEndsTheRunInOrder sends each signal during each kind of wait.
func TestSignalEndsTheRunInOrder(t *testing.T) {
	scripts := map[string]struct{ script, started string }{
		"command":      {`{"tool_calls":[{"name":"exec_command","args":{"cmd":"trap 'rm -rf lock' EXIT; mkdir lock; echo ready; sleep 60"}}]}`, "terminal.output"},
		"model stream": {`{"text":"One moment, I think about it for a long time.","delay_ms":60000}`, "turn.started"},
		"retry":        {`{"error":{"status":503,"message":"busy","retry_after":60}}`, "provider.retry"},
	}
	for where, s := range scripts {
		for sig, want := range map[syscall.Signal]int{syscall.SIGINT: 130, syscall.SIGTERM: 143} {
			t.Run(fmt.Sprintf("%s during %s", sig, where), func(t *testing.T) {
				t.Parallel()
				p := run(t, s.script+"\n"+answer, "go")
				out, err := p.cmd.StdoutPipe()
				if err != nil {
					t.Fatal(err)
				}
				if err := p.cmd.Start(); err != nil {
					t.Fatal(err)
				}
				var stream bytes.Buffer
				r := bufio.NewReader(out)
				for !strings.Contains(stream.String(), s.started) {
					line, err := r.ReadBytes('\n')
					stream.Write(line)
					if err != nil {
						t.Fatalf("the stream ended early: %v\n%s", err, stream.String())
					}
				}
				if err := p.cmd.Process.Signal(sig); err != nil {
					t.Fatal(err)
				}
				if _, err := stream.ReadFrom(r); err != nil {
					t.Fatal(err)
				}
				exit := p.finish()
				end := p.check(stream.Bytes(), exit)
				if exit != want || end.Status != "cancelled" {
					t.Errorf("exit %d, status %s, want %d, cancelled", exit, end.Status, want)
				}
				if _, err := os.Stat(filepath.Join(p.dir, "lock")); err == nil {
					t.Error("the command's exit trap did not run")
				}
			})
		}
	}
}

func TestKilledRunLeavesNoCommandBehind(t *testing.T) {
	p := run(t, `{"tool_calls":[{"name":"exec_command","args":{"cmd":"while :; do date >> beat; sleep 0.1; done"}}]}`+"\n", "go")
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadBytes('\n')
	if err != nil {
		t.Fatal(err)
	}
	waitFor(t, "the command", func() bool {
		_, err := os.Stat(filepath.Join(p.dir, "beat"))
		return err == nil
	})
	if err := p.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = p.cmd.Wait() // killed on purpose
	p.noChildren(line)
	// What was written before the kill is there, as whole lines.
	for l := range bytes.Lines(p.sessionFile()) {
		if _, err := event.Decode(bytes.TrimSuffix(l, []byte("\n"))); err != nil {
			t.Errorf("session line: %v", err)
		}
	}
}

func TestFullDiskIsTold(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip("this system has no /dev/full: ", err)
	}
	defer full.Close()
	p := run(t, chatter(3), "go")
	p.cmd.Stdout = full
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if exit := p.finish(); exit != 7 || !strings.Contains(p.stderr.String(), "no space left") {
		t.Errorf("exit %d, stderr %s", exit, p.stderr.String())
	}

	p = run(t, chatter(3), "go", "--out", "jsonl:/dev/full")
	stdout, exit := p.output()
	if exit != 0 || !bytes.Contains(stdout, []byte(`"code":"output_lost"`)) {
		t.Errorf("a full second output: exit %d", exit)
	}
}

func TestSessionFilesAreForTheirOwnerOnly(t *testing.T) {
	old := syscall.Umask(0)
	defer syscall.Umask(old)
	p := run(t, chatter(1), "go")
	p.output()
	err := filepath.WalkDir(filepath.Join(p.dir, ".state", "drover"), func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err == nil && info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has mode %v", path, info.Mode())
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestRunDoesNotInheritSecretsOfTheProvider(t *testing.T) {
	p := run(t, `{"tool_calls":[{"name":"exec_command","args":{"cmd":"env"}}]}`+"\n"+answer, "go")
	p.cmd.Env = append(p.cmd.Env, "OPENAI_API_KEY=sk-canary-00112233", "SOME_TOKEN=canary-445566778899")
	stdout, _ := p.output()
	for _, canary := range []string{"sk-canary-00112233", "canary-445566778899"} {
		if bytes.Contains(stdout, []byte(canary)) || bytes.Contains(p.sessionFile(), []byte(canary)) {
			t.Errorf("%s is in the stream", canary)
		}
	}
	if bytes.Contains(stdout, []byte("OPENAI_API_KEY")) {
		t.Error("the provider's key reached a command")
	}
}
