package cmd

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"drover/output/event"
)

// slowMachine is a deadline for what must not wait for a sleeping child; the
// children of these tests sleep far longer.
const slowMachine = 30 * time.Second

// completed returns the only end of a command in a stream.
func completed(t *testing.T, stream []byte) event.TerminalCompletedEvent {
	t.Helper()
	all := bodies[event.TerminalCompletedEvent](t, stream)
	if len(all) != 1 {
		t.Fatalf("%d commands ended, want 1:\n%.4000s", len(all), stream)
	}
	return all[0]
}

// TestCommandEndsWithinItsTimeout has the shapes in which something else than
// the shell holds the pipe (github.com/openai/codex/issues/4337,
// github.com/golang/go/issues/23019).
func TestCommandEndsWithinItsTimeout(t *testing.T) {
	t.Parallel()
	var all together
	for command, timesOut := range map[string]bool{
		"(sleep 300; echo late) & echo started; sleep 300":  true,
		"echo started; sleep 300":                           true,
		"echo started; sleep 300; true":                     true,
		"echo started; (sleep 300)":                         true,
		"echo started; sleep 300 | cat":                     true,
		"echo started; sleep 300 & wait":                    true,
		"echo started; trap '' TERM; sleep 300":             true,
		"echo started; nohup sleep 300 &":                   false,
		"echo started; setsid sleep 300 &":                  false,
		"echo started; setsid sleep 300; true":              true,
		"echo started; env -i setsid sleep 300 & sleep 300": true,
	} {
		p := run(t, script(t, calls(execCall(command)), says("Done.")), "--tool-timeout", "1s", "go")
		all.start(command, p, func(t *testing.T, stream []byte, exit int) {
			r, end := result(t, stream), completed(t, stream)
			if end.TimedOut != timesOut || r.IsError != timesOut || !strings.Contains(r.Content, "started") || strings.Contains(r.Content, "late") {
				t.Errorf("timed out %v, error %v: %s", end.TimedOut, r.IsError, r.Content)
			}
			if timesOut && (!strings.Contains(r.Content, "timed out") || !strings.Contains(string(r.Structured), `"timed_out":true`)) {
				t.Errorf("the model reads %q; structured %s", r.Content, r.Structured)
			}
			if took := time.Duration(end.DurationMS) * time.Millisecond; exit != 0 || took > slowMachine {
				t.Errorf("exit %d, took %v", exit, took)
			}
		})
	}
	all.finish(t)
}

// TestBackgroundJobsEndWithTheirCall pins what becomes of children that a
// finished command leaves (github.com/anthropics/claude-code/issues/82433).
func TestBackgroundJobsEndWithTheirCall(t *testing.T) {
	t.Parallel()
	var responses []m
	for i := range 20 {
		responses = append(responses, calls(execCall(fmt.Sprintf("sleep 1000 & echo pid $! in call %d", i))))
	}
	// The last call counts what has piled up below drover.
	responses = append(responses, calls(execCall("ps -o stat= --ppid $PPID | grep -c Z")), says("Done."))
	stream := run(t, script(t, responses...), "go").mustEnd(0)
	results := bodies[event.ToolResultEvent](t, stream)
	for _, r := range results[:20] {
		pid := regexp.MustCompile(`pid (\d+) in`).FindStringSubmatch(r.Content)
		if pid == nil {
			t.Fatalf("result %q", r.Content)
		}
		if stat, err := os.ReadFile("/proc/" + pid[1] + "/stat"); err == nil && !strings.Contains(string(stat), ") Z ") {
			t.Errorf("process %s still runs", pid[1])
		}
		if !strings.Contains(r.Content, "1 background processes of the command were ended") {
			t.Errorf("the model is not told: %s", r.Content)
		}
	}
	if defunct := results[20].Content; !strings.HasSuffix(defunct, "\n0\n") {
		t.Errorf("defunct processes: %s", defunct)
	}
}

// TestHugeOutputStaysOutOfMemory (github.com/anthropics/claude-code/issues/11155)
// compares the peak of drover with that of a run that prints nothing.
func TestHugeOutputStaysOutOfMemory(t *testing.T) {
	t.Parallel()
	peak := func(command string) (kb int64, stream []byte) {
		p := run(t, script(t, calls(execCall(command)), says("Done.")), "--tool-timeout", "1s", "go")
		if strings.HasPrefix(command, "printf") {
			p = run(t, script(t, calls(execCall(command)), says("Done.")), "go")
		}
		stream = p.mustEnd(0)
		return p.cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss, stream
	}
	idle, _ := peak("true")
	for _, command := range []string{"printf head; head -c 100000000 /dev/zero | tr '\\0' x; printf tail", "echo headx; yes x"} {
		kb, stream := peak(command)
		for range 2 {
			// A collector that gets no processor lets the peak rise; what is
			// kept in memory is there every time. And the kernel counts the
			// peak of the test process, which only rises, into both.
			if kb-idle > 20<<10 {
				again, _ := peak(command)
				kb = min(kb, again)
				idleNow, _ := peak("true")
				idle = max(idle, idleNow)
			}
		}
		if grown := kb - idle; grown > 20<<10 && !raceEnabled {
			t.Errorf("%q: the peak grew by %d KiB", command, grown)
		}
		r := result(t, stream)
		out := r.Content[strings.Index(r.Content, "Output:"):]
		if !strings.Contains(out, "headx") || !strings.Contains(out, "truncated…") || !r.Truncated || r.OutputBytes < 100_000 {
			t.Errorf("%q: %d bytes, truncated %v: %.200s", command, r.OutputBytes, r.Truncated, out)
		}
		for _, part := range []string{`"output_bytes":`, `"omitted_bytes":`} {
			if !strings.Contains(string(r.Structured), part) {
				t.Errorf("%q: no %s in %s", command, part, r.Structured)
			}
		}
		var shown int64
		for _, e := range bodies[event.TerminalAppendStringEvent](t, stream) {
			shown += int64(len(e.Delta)) + e.DroppedBytes
		}
		if shown != r.OutputBytes {
			t.Errorf("%q: %d bytes are accounted for, of %d", command, shown, r.OutputBytes)
		}
	}
}

// TestOutputThatIsNoTextIsDelivered (github.com/aden-hive/hive/issues/3486).
func TestOutputThatIsNoTextIsDelivered(t *testing.T) {
	t.Parallel()
	for command, want := range map[string]string{
		`printf 'ok\n\351\377\000\nafter\n'`:     "ok\n\\xe9\\xff\\x00\nafter\n",
		"head -c 4096 /bin/ls; echo; echo after": "bytes of binary data",
	} {
		t.Run(command, func(t *testing.T) {
			t.Parallel()
			stream := run(t, script(t, calls(execCall(command)), says("Done.")), "go").mustEnd(0)
			r := result(t, stream)
			if r.IsError || !strings.Contains(r.Content, want) || !strings.HasSuffix(r.Content, "after\n") || !strings.Contains(string(r.Structured), `"binary":true`) {
				t.Errorf("content %q, structured %s", r.Content, r.Structured)
			}
			var told []byte
			for _, e := range bodies[event.TerminalAppendStringEvent](t, stream) {
				told = append(told, deltaBytes(t, e)...)
			}
			if int64(len(told)) != r.OutputBytes || !bytes.HasSuffix(told, []byte("\nafter\n")) {
				t.Errorf("the events hold %d bytes of %d", len(told), r.OutputBytes)
			}
		})
	}
}

// TestPagersDoNotStart (github.com/google-gemini/gemini-cli/issues/13590): the
// user's pager holds for the user, not for the agent's children.
func TestPagersDoNotStart(t *testing.T) {
	t.Parallel()
	p := run(t, script(t, calls(execCall("for v in PAGER GIT_PAGER MANPAGER SYSTEMD_PAGER; do eval echo $v=\\$$v; done; git log --oneline | tail -1; git --paginate log --oneline | tail -1")), says("Done.")), "go")
	p.lay(map[string]string{"pager": "#!/bin/sh\ntouch canary\nsleep 300\n", "make.sh": "git init -q . && git -c user.name=a -c user.email=a@b commit -q --allow-empty -m first\n"})
	if err := os.Chmod(filepath.Join(p.dir, "pager"), 0o755); err != nil {
		t.Fatal(err)
	}
	p.sh("sh make.sh")
	pager := filepath.Join(p.dir, "pager")
	p.cmd.Env = append(p.cmd.Env, "PAGER="+pager, "GIT_PAGER="+pager, "MANPAGER="+pager, "LESS=-X")
	r := result(t, p.mustEnd(0))
	if _, err := os.Stat(filepath.Join(p.dir, "canary")); err == nil {
		t.Error("the pager was started")
	}
	if !strings.Contains(r.Content, "first") || !strings.Contains(r.Content, "GIT_PAGER=cat") || strings.Contains(r.Content, pager) {
		t.Errorf("got %s", r.Content)
	}
}

// sh runs a command line in the process's folder, outside drover.
func (p *process) sh(line string) {
	p.t.Helper()
	c := exec.Command("sh", "-c", line)
	c.Dir = p.dir
	if out, err := c.CombinedOutput(); err != nil {
		p.t.Fatalf("%s: %v\n%s", line, err, out)
	}
}

// TestCommandsFindStdinAtItsEnd holds even when drover's own is an open, unfed
// pipe (github.com/anomalyco/opencode/issues/42773).
func TestCommandsFindStdinAtItsEnd(t *testing.T) {
	t.Parallel()
	for command, want := range map[string]string{
		"cat; echo end": "end\n", "read x; echo got:$x": "got:\n", `python3 -c "input()"; true`: "EOFError",
	} {
		t.Run(command, func(t *testing.T) {
			t.Parallel()
			read, write, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			defer write.Close()
			defer read.Close()
			p := run(t, script(t, calls(execCall(command)), says("Done.")), "--tool-timeout", slowMachine.String(), "go")
			p.cmd.Stdin = read
			r := result(t, p.mustEnd(0))
			if strings.HasPrefix(command, "python3") && strings.Contains(r.Content, "not found") {
				t.Skip("this machine has no python3")
			}
			if !strings.Contains(r.Content, want) || strings.Contains(r.Content, "timed out") {
				t.Errorf("got %s", r.Content)
			}
		})
	}
}

// TestProgressBarsBecomeTheirLastState (github.com/indexable-inc/index/issues/1348).
func TestProgressBarsBecomeTheirLastState(t *testing.T) {
	t.Parallel()
	stream := run(t, script(t, calls(execCall(`for i in $(seq 5000); do printf '\rdownload 12%%'; done; printf '\rdownload 100%%\n'`)), says("Done.")), "go").mustEnd(0)
	r := result(t, stream)
	if !strings.HasSuffix(r.Content, "Output:\ndownload 100%\n") || len(r.Content) > 1000 || r.OutputBytes != 5000*13+15 {
		t.Errorf("%d bytes became %q", r.OutputBytes, r.Content)
	}
	var raw int
	for _, e := range bodies[event.TerminalAppendStringEvent](t, stream) {
		raw += strings.Count(e.Delta, "\r")
	}
	if raw != 5001 {
		t.Errorf("the events hold %d frames", raw)
	}
}

// TestManyCommandsAtOnceAllSucceed (github.com/golang/go/issues/27505): a
// signal at the death of a thread must not hit healthy children.
func TestManyCommandsAtOnceAllSucceed(t *testing.T) {
	t.Parallel()
	var many []m
	for range 200 {
		many = append(many, execCall("sleep 1; echo ok"))
	}
	stream := run(t, script(t, calls(many...), says("Done.")), "go").mustEnd(0)
	results := bodies[event.ToolResultEvent](t, stream)
	if len(results) != 200 {
		t.Fatalf("%d results", len(results))
	}
	for _, r := range results {
		if r.IsError || !strings.HasSuffix(r.Content, "Output:\nok\n") {
			t.Fatalf("result %q", r.Content)
		}
	}
}

// TestExitTrapsRunHoweverTheCommandEnds (github.com/anthropics/claude-code/issues/42532).
func TestExitTrapsRunHoweverTheCommandEnds(t *testing.T) {
	t.Parallel()
	const trap = "trap 'rm -r lockdir; exit' EXIT TERM; mkdir lockdir; echo ready; while :; do sleep 0.05; done"
	for _, c := range []struct {
		name, command string
		args          []string
		signal        syscall.Signal
		exit          int
	}{
		{"timeout", trap, []string{"--tool-timeout", "1s"}, 0, 0},
		{"limit of the run", trap, []string{"--timeout", "2s"}, 0, 14},
		{"SIGTERM", trap, nil, syscall.SIGTERM, 143},
		{"SIGINT", trap, nil, syscall.SIGINT, 130},
		{"SIGHUP", trap, nil, syscall.SIGHUP, 143},
		{"end of the call", "(" + trap + ") & until [ -d lockdir ]; do sleep 0.01; done; echo ready", nil, 0, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := run(t, script(t, calls(execCall(c.command)), says("Done.")), append(c.args, "go")...)
			r := p.startUntil("ready")
			if c.signal != 0 {
				r.signal(c.signal)
			}
			stream, exit := r.rest()
			p.check(stream, exit)
			if exit != c.exit {
				t.Errorf("exit %d, want %d", exit, c.exit)
			}
			if _, err := os.Stat(filepath.Join(p.dir, "lockdir")); err == nil {
				t.Error("the trap has not run")
			}
		})
	}
}

// reading is a process whose stream has been read up to some text.
type reading struct {
	*process
	out *bufio.Reader
	all bytes.Buffer
}

// startUntil starts the process and reads until a command has printed text.
func (p *process) startUntil(text string) *reading {
	p.t.Helper()
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		p.t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	r := &reading{process: p, out: bufio.NewReader(out)}
	for !strings.Contains(r.all.String(), `"delta":"`+text) {
		line, err := r.out.ReadBytes('\n')
		r.all.Write(line)
		if err != nil {
			p.t.Fatalf("the stream ended early: %v\n%s\n%s", err, r.all.String(), p.stderr.String())
		}
	}
	return r
}

func (r *reading) signal(s syscall.Signal) {
	r.t.Helper()
	if err := r.cmd.Process.Signal(s); err != nil {
		r.t.Fatal(err)
	}
}

// rest reads the stream to its end and waits for the process.
func (r *reading) rest() (stream []byte, exit int) {
	r.t.Helper()
	if _, err := io.Copy(&r.all, r.out); err != nil {
		r.t.Fatal(err)
	}
	return r.all.Bytes(), r.finish()
}

// TestSignalDuringCheckAndShutdown (github.com/echoVic/orca-agent/issues/72):
// the last line is there, wherever the signal comes.
func TestSignalDuringCheckAndShutdown(t *testing.T) {
	t.Parallel()
	t.Run("check", func(t *testing.T) {
		t.Parallel()
		r := run(t, script(t, says("Done.")), "--check", "echo ready; sleep 300", "go").startUntil("ready")
		r.signal(syscall.SIGTERM)
		stream, exit := r.rest()
		if end := r.check(stream, exit); exit != 143 || end.Status != "cancelled" {
			t.Errorf("exit %d, %+v", exit, end)
		}
	})
	for _, second := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT} {
		t.Run("shutdown, "+second.String(), func(t *testing.T) {
			t.Parallel()
			r := run(t, script(t, calls(execCall("trap 'touch told' TERM; echo ready; while :; do sleep 0.05; done")), says("Done.")), "go").startUntil("ready")
			r.signal(syscall.SIGTERM)
			// The command does not end, so drover waits for the grace to pass.
			waitFor(t, "the signal at the command", func() bool {
				_, err := os.Stat(filepath.Join(r.dir, "told"))
				return err == nil
			})
			r.signal(second)
			stream, exit := r.rest()
			if end := r.check(stream, exit); exit != 143 || end.Status != "cancelled" {
				t.Errorf("exit %d, %+v", exit, end)
			}
			// Without the second signal the command has its whole grace.
			if ends := bodies[event.TerminalCompletedEvent](t, stream); len(ends) != 1 || ends[0].Signal != "SIGKILL" {
				t.Errorf("the command ended as %+v", ends)
			}
		})
	}
}
