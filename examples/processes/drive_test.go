//go:build linux

package processes

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"drover/output/event"
)

// The commands of these tests sleep for ten minutes unless somebody ends them.
const (
	// toolTimeout ends the commands of most tests.
	toolTimeout = time.Second
	// grace is what drover gives a command between TERM and KILL.
	grace = 2 * time.Second
	// patience is how long a run may take that needs no longer than a timeout
	// and a grace, on a machine that has much else to do.
	patience = 10*(toolTimeout+grace) + 30*time.Second
	// afterwards is how long a process that was killed may take to go.
	afterwards = 5 * time.Second
	// forsaken is how long the processes of a drover that was killed may take
	// to be ended by whoever does that.
	forsaken = 30 * time.Second
)

type m = map[string]any

func calls(c ...m) m {
	list := make([]any, len(c))
	for i := range c {
		list[i] = c[i]
	}
	return m{"tool_calls": list}
}

func command(script string) m { return m{"name": "exec_command", "args": m{"cmd": script}} }

// session is a command in a terminal that is left running.
func session(script string) m {
	return m{"name": "exec_command", "args": m{"cmd": script, "tty": true, "yield_time_ms": 250}}
}

func says(text string) m { return m{"text": text} }

// thinks is an answer that takes longer than any test.
func thinks() m { return m{"text": "Late.", "delay_ms": 600_000} }

// trial is one drover in a folder of its own.
type trial struct {
	t *testing.T
	// base holds everything of the trial, work is the working folder in it.
	base, work string
	// mark are digits that only this trial has. In scripts and arguments MARK
	// stands for them, so that "sleep 600.MARK" can be told from any other
	// sleep, and BINARY for the path of drover.
	mark   string
	cmd    *exec.Cmd
	begun  time.Time
	stdout output
	stderr output
	// read is closed when stdout has ended.
	read chan struct{}
}

var trials atomic.Int64

// newTrial prepares a run of the responses.
func newTrial(t *testing.T, in mode, responses []m, args ...string) *trial {
	t.Helper()
	d := &trial{t: t, base: t.TempDir(), mark: fmt.Sprintf("%d%05d", 100_000_000+os.Getpid(), trials.Add(1)), read: make(chan struct{})}
	d.work = filepath.Join(d.base, "work")
	if err := os.Mkdir(d.work, 0o755); err != nil {
		t.Fatal(err)
	}
	var script bytes.Buffer
	for _, r := range responses {
		line, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		script.WriteString(d.fill(string(line)) + "\n")
	}
	model := filepath.Join(d.base, "model.jsonl")
	if err := os.WriteFile(model, script.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	argv := []string{"run", "--model", "script:" + model}
	if !slices.Contains(args, "--approver") { // who would not be asked
		argv = append(argv, "--yolo")
	}
	if in != "" {
		argv = append(argv, "--sandbox", string(in))
	}
	for _, arg := range append(args, "go") {
		argv = append(argv, d.fill(arg))
	}
	d.cmd = exec.Command(binary, argv...)
	d.cmd.Dir = d.work
	d.cmd.Env = append(cleanEnv(), "XDG_STATE_HOME="+filepath.Join(d.base, "state"), "XDG_CONFIG_HOME="+filepath.Join(d.base, "config"))
	d.cmd.Stderr = &d.stderr
	d.cmd.WaitDelay = forsaken
	// A command that kills its group must not get at the tests.
	d.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	return d
}

// fill puts the mark and the path of drover into a script.
func (d *trial) fill(text string) string {
	return strings.NewReplacer("MARK", d.mark, "BINARY", binary).Replace(text)
}

// lay writes a file into the working folder.
func (d *trial) lay(name, text string) {
	d.t.Helper()
	path := filepath.Join(d.work, name)
	if err := os.WriteFile(path, []byte(d.fill(text)), 0o755); err != nil {
		d.t.Fatal(err)
	}
}

// start starts drover and reads what it prints.
func (d *trial) start() *trial {
	d.t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		d.t.Fatal(err)
	}
	d.cmd.Stdout = w
	d.launch()
	_ = w.Close() // drover has its own
	go func() {   // it ends with the last writer, which wait awaits
		defer close(d.read)
		defer func() { _ = r.Close() }() // only read from
		_, _ = io.Copy(&d.stdout, r)     // what is missing shows in the stream
	}()
	return d
}

// launch starts drover without a reader. Whatever happens, nothing of it is
// left after the test.
func (d *trial) launch() {
	d.t.Helper()
	d.begun = time.Now()
	if err := d.cmd.Start(); err != nil {
		d.t.Fatal(err)
	}
	d.t.Cleanup(func() {
		if d.cmd.ProcessState == nil {
			_ = d.cmd.Process.Kill() // the test has failed already
			_ = d.cmd.Wait()
		}
		if d.t.Failed() {
			d.kill()
		}
		// The layers of a drover that was killed stay, and the kernel makes the
		// folders that it needs for them without any rights.
		_ = filepath.WalkDir(filepath.Join(d.base, "state"), func(path string, f fs.DirEntry, err error) error {
			if err == nil && f.IsDir() {
				_ = os.Chmod(path, 0o700) // removing it fails then, and tells
			}
			return nil
		})
	})
}

// until waits for a text in the stream.
func (d *trial) until(text string) *trial {
	d.t.Helper()
	d.await(text+" in the stream", func() bool { return strings.Contains(d.stdout.String(), text) })
	return d
}

// await waits for a condition, with a generous deadline.
func (d *trial) await(what string, done func() bool) {
	d.t.Helper()
	for deadline := time.Now().Add(patience); !done(); {
		over := time.Now().After(deadline)
		select {
		case <-d.read:
			over = !done() // nothing more will come
		case <-time.After(5 * time.Millisecond):
		}
		if over {
			d.t.Fatalf("waited in vain for %s; %s", what, d.said())
		}
	}
}

func (d *trial) signal(s syscall.Signal) {
	d.t.Helper()
	if err := d.cmd.Process.Signal(s); err != nil {
		d.t.Fatal(err)
	}
}

// wait waits for drover to end, at most for the given time since its start.
func (d *trial) wait(limit time.Duration) (exit int) {
	d.t.Helper()
	stuck := time.AfterFunc(limit-time.Since(d.begun), func() { _ = d.cmd.Process.Kill() })
	err := d.cmd.Wait()
	var failed *exec.ExitError
	if err != nil && !errors.As(err, &failed) {
		d.t.Fatal(err) // such as somebody who holds its stderr
	}
	if !stuck.Stop() {
		d.t.Fatalf("the run has not ended in %v; %s", limit, d.said())
	}
	return d.cmd.ProcessState.ExitCode()
}

// end waits for drover, whose stream must be whole and whose exit code must be
// as expected, and looks for what it has left.
func (d *trial) end(want int) []byte { return d.endWithin(patience, want) }

func (d *trial) endWithin(limit time.Duration, want int) []byte {
	d.t.Helper()
	stream := d.cutOff(limit, want)
	checkStream(d.t, stream)
	if layers, _ := filepath.Glob(filepath.Join(d.base, "state", "drover", "sessions", "*", "layers", "*")); len(layers) > 0 { // the pattern is right
		d.t.Errorf("private layers are left: %v", layers)
	}
	return stream
}

// cutOff is endWithin for an end that may skip everything but the last line.
func (d *trial) cutOff(limit time.Duration, want int) []byte {
	d.t.Helper()
	exit := d.wait(limit)
	d.noneLeft(d.t, afterwards)
	select {
	case <-d.read:
	case <-time.After(patience):
		d.t.Fatal("somebody still holds the stdout of drover")
	}
	stream := []byte(d.stdout.String())
	end := lastLine(d.t, stream)
	if exit != want || end.ExitCode != want {
		d.t.Fatalf("exit %d, the stream says %d (%s), want %d; %s", exit, end.ExitCode, end.Reason, want, d.said())
	}
	return stream
}

// said is the end of what drover has printed, for the messages of tests.
func (d *trial) said() string {
	out := d.stdout.String()
	return fmt.Sprintf("stderr: %s\nthe stream ends with: %s", d.stderr.String(), out[max(0, len(out)-2500):])
}

// checkStream holds a stream against every promise and the schema.
func checkStream(t *testing.T, stream []byte) event.RunFinishedEvent {
	t.Helper()
	for _, problem := range event.CheckStream(bytes.NewReader(stream)) {
		t.Errorf("stream: %v", problem)
	}
	for line := range bytes.Lines(stream) {
		if err := event.Validate(bytes.TrimSuffix(line, []byte("\n"))); err != nil {
			t.Errorf("schema: %v in %.300s", err, line)
		}
	}
	return lastLine(t, stream)
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

// sessionFile is the stream as the session of the trial has kept it.
func (d *trial) sessionFile() []byte {
	d.t.Helper()
	files, err := filepath.Glob(filepath.Join(d.base, "state", "drover", "sessions", "*", "events.jsonl"))
	if err != nil || len(files) != 1 {
		d.t.Fatalf("session files: %v, %v", files, err)
	}
	data, err := os.ReadFile(files[0])
	if err != nil {
		d.t.Fatal(err)
	}
	var events bytes.Buffer
	for line := range bytes.Lines(data) {
		if !bytes.HasPrefix(line, []byte(`{"record"`)) {
			events.Write(line)
		}
	}
	return events.Bytes()
}

// bodies returns the events of one type in a stream, in order.
func bodies[T event.Body](t *testing.T, stream []byte) (found []T) {
	t.Helper()
	for line := range bytes.Lines(stream) {
		e, err := event.Decode(bytes.TrimSuffix(line, []byte("\n")))
		if err != nil {
			t.Fatal(err)
		}
		if b, ok := e.Body.(T); ok {
			found = append(found, b)
		}
	}
	return found
}

// results are the results of a stream; there must be so many.
func results(t *testing.T, stream []byte, n int) []event.ToolResultEvent {
	t.Helper()
	all := bodies[event.ToolResultEvent](t, stream)
	if len(all) != n {
		t.Fatalf("%d results, want %d: %s", len(all), n, stream[max(0, len(stream)-2500):])
	}
	return all
}

// output collects what a process prints while others look at it.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(b)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}
