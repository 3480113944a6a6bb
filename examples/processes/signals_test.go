//go:build linux

package processes

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"drover/output/event"
)

// moment is when a signal meets a run: as soon as ready is in the stream or, if
// that is empty, a file of that name in the working folder.
type moment struct {
	responses []m
	args      []string
	// config is the text of the config file.
	config string
	ready  string
}

const (
	printed = `"delta":"ready`
	opened  = "running with session ID"
	// hanging is a program of the user's that never ends, and hides a child.
	hanging = `(setsid env -i sh -c 'cd /; sleep 600.MARK &' &); touch ready; sleep 600.MARK`
)

var moments = map[string]moment{
	"command":             {responses: []m{calls(command("echo ready; sleep 600.MARK")), says("Done.")}, ready: printed},
	"command that hides":  {responses: []m{calls(command("(setsid env -i sh -c 'cd /; sleep 600.MARK &' &); echo ready; sleep 600.MARK | cat")), says("Done.")}, ready: printed},
	"background session":  {responses: []m{calls(session("echo ready; sleep 600.MARK")), thinks()}, ready: opened},
	"session with a job":  {responses: []m{calls(session("set -m; sleep 600.MARK & echo ready; exec sleep 600.MARK")), thinks()}, ready: opened},
	"check":               {responses: []m{says("Done.")}, args: []string{"--check", "echo ready; sleep 600.MARK"}, ready: printed},
	"several at the time": {responses: []m{calls(command("sleep 600.MARK"), command("(sleep 600.MARK)"), command("sleep 600.MARK & sleep 0.1; echo ready; wait")), says("Done.")}, ready: printed},
	"approver":            {responses: []m{calls(command("echo never; : MARK")), says("Done.")}, args: []string{"--approver", hanging, "--ask", "exec:echo"}},
	"hook at the start":   {responses: []m{says("Done.")}, config: hook("SessionStart")},
	"hook before a call":  {responses: []m{calls(command("echo never; : MARK")), says("Done.")}, config: hook("PreToolUse")},
	"hook after a call":   {responses: []m{calls(command("echo once; : MARK")), says("Done.")}, config: hook("PostToolUse")},
	"hook at the end":     {responses: []m{says("Done.")}, config: hook("Stop")},
}

// hook is a config with a hook that hangs.
func hook(event string) string {
	return fmt.Sprintf("hooks: {%s: [{hooks: [{command: %q}]}]}\n", event, hanging)
}

// at prepares the run of a moment.
func at(t *testing.T, in mode, w moment) *trial {
	t.Helper()
	d := newTrial(t, in, w.responses, w.args...)
	if w.config != "" {
		dir := filepath.Join(d.base, "config", "drover")
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "config.yaml"), []byte(d.fill(w.config)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return d
}

// ready waits for the moment.
func (d *trial) ready(w moment) *trial {
	d.t.Helper()
	if w.ready != "" {
		return d.until(w.ready)
	}
	d.await("the program", func() bool { _, err := os.Stat(filepath.Join(d.work, "ready")); return err == nil })
	return d
}

var exits = map[syscall.Signal]int{syscall.SIGINT: 130, syscall.SIGTERM: 143, syscall.SIGHUP: 143}

func TestSignalEndsEveryProcess(t *testing.T) {
	both(t, func(t *testing.T, in mode) {
		for when, w := range moments {
			for sig, want := range exits {
				if sig == syscall.SIGHUP && w.config+strings.Join(w.args, "") != "" {
					continue // it is as SIGTERM but for its name
				}
				t.Run(fmt.Sprintf("%v, %s", sig, when), func(t *testing.T) {
					t.Parallel()
					d := at(t, in, w).start().ready(w)
					d.signal(sig)
					stream := d.end(want)
					end := checkStream(t, stream)
					if end.Status != "cancelled" {
						t.Errorf("status %s", end.Status)
					}
					for _, e := range bodies[event.TerminalCompletedEvent](t, stream) {
						if e.TimedOut {
							t.Error("a command is said to have timed out")
						}
					}
				})
			}
		}
	})
}

// TestFurtherSignalsWaitForNothing: the second signal skips the grace, the
// third what is still in the way, neither the last line.
func TestFurtherSignalsWaitForNothing(t *testing.T) {
	both(t, func(t *testing.T, in mode) {
		for name, script := range map[string]string{
			"command":  "trap 'touch told' TERM; echo ready; while :; do sleep 0.05; : MARK; done",
			"daemon":   "(setsid env -i sh -c 'trap \"\" TERM; while :; do sleep 0.05; : MARK; done' &); trap 'touch told' TERM; echo ready; while :; do sleep 0.05; : MARK; done",
			"flooding": "trap '' TERM; (trap 'touch told' TERM; touch armed; while :; do sleep 0.05; : MARK; done) & until [ -e armed ]; do sleep 0.02; done; echo ready; " + printing,
		} {
			for n := 2; n <= 3; n++ {
				t.Run(fmt.Sprintf("%d signals, %s", n, name), func(t *testing.T) {
					t.Parallel()
					d := newTrial(t, in, []m{calls(command(script)), says("Done.")}).start().until(printed)
					d.signal(syscall.SIGTERM)
					d.await("the signal at the command", func() bool {
						_, err := os.Stat(filepath.Join(d.work, "told"))
						return err == nil
					})
					for range n - 1 {
						d.signal(syscall.SIGINT)
						time.Sleep(20 * time.Millisecond) // signals at once count as one
					}
					if n == 2 {
						d.end(143)
						return
					}
					d.cutOff(patience, 143)
				})
			}
		}
	})
}

// beating is a command that writes to the workspace as long as it lives, and so
// does a daemon of it.
const beating = "(setsid env -i sh -c 'while :; do date >>beat.daemon; sleep 0.1; : MARK; done' &); while :; do date >>beat; sleep 0.1; : MARK; done"

// size is the size of a file in the working folder; 0 if there is none.
func (d *trial) size(name string) int64 {
	info, err := os.Stat(filepath.Join(d.work, name))
	if err != nil {
		return 0
	}
	return info.Size()
}

// TestKilledDroverLeavesNothing (github.com/anthropics/claude-code/issues/93996).
func TestKilledDroverLeavesNothing(t *testing.T) {
	both(t, func(t *testing.T, in mode) {
		for name, call := range map[string]m{
			"command": command(beating), "session": session(beating),
			"ignores signals": command("trap '' TERM HUP INT PIPE; " + beating),
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				d := newTrial(t, in, []m{calls(call), thinks()}).start()
				d.await("both beats", func() bool { return d.size("beat") > 0 && d.size("beat.daemon") > 0 })
				d.signal(syscall.SIGKILL)
				d.killed(t)
			})
		}
	})
}

// killed checks what must be true soon after drover was killed.
func (d *trial) killed(t *testing.T) {
	t.Helper()
	_ = d.cmd.Wait() // killed on purpose
	d.noneLeft(t, forsaken)
	beat, daemon := d.size("beat"), d.size("beat.daemon")
	time.Sleep(300 * time.Millisecond) // three beats
	if d.size("beat") != beat || d.size("beat.daemon") != daemon {
		t.Error("somebody still writes to the workspace")
	}
	select {
	case <-d.read:
	case <-time.After(patience):
		t.Error("somebody still holds the stdout of drover")
	}
}

func TestReaderThatGoesAwayEndsAFlood(t *testing.T) {
	both(t, func(t *testing.T, in mode) {
		for name, script := range map[string]string{
			"flood": "yes MARK", "output that ignores TERM": "trap '' TERM PIPE; " + printing,
			"flood and a daemon": "(setsid env -i sh -c 'cd /; sleep 600.MARK &' &); yes MARK",
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				d := newTrial(t, in, []m{calls(command(script)), says("Done.")}, "--events", "full")
				r, err := d.cmd.StdoutPipe()
				if err != nil {
					t.Fatal(err)
				}
				d.launch()
				if _, err := io.ReadFull(r, make([]byte, 64<<10)); err != nil {
					t.Fatal(err)
				}
				if err := r.Close(); err != nil {
					t.Fatal(err)
				}
				if exit := d.wait(patience); exit != 141 {
					t.Errorf("exit %d; stderr: %s", exit, d.stderr.String())
				}
				d.noneLeft(t, afterwards)
				if end := checkStream(t, d.sessionFile()); end.ExitCode != 141 {
					t.Errorf("the session says %d", end.ExitCode)
				}
			})
		}
	})
}

// TestExitTrapsRun (github.com/anthropics/claude-code/issues/42532): TERM comes
// first, whatever ends the command.
func TestExitTrapsRun(t *testing.T) {
	const trap = "trap 'rm -r lockdir; exit' EXIT TERM; mkdir lockdir; echo ready; while :; do sleep 0.05; : MARK; done"
	both(t, func(t *testing.T, in mode) {
		for _, c := range []struct {
			name string
			call m
			next m
			args []string
			sig  syscall.Signal
			exit int
		}{
			{name: "timeout", call: command(trap), args: []string{"--tool-timeout", "1s"}},
			{name: "limit of the run", call: command(trap), args: []string{"--timeout", "2s"}, exit: 14},
			{name: "SIGTERM", call: command(trap), sig: syscall.SIGTERM, exit: 143},
			{name: "SIGINT", call: command(trap), sig: syscall.SIGINT, exit: 130},
			{name: "SIGHUP", call: command(trap), sig: syscall.SIGHUP, exit: 143},
			{name: "end of the call", call: command("(" + trap + ") & until [ -d lockdir ]; do sleep 0.01; done; echo ready")},
			{name: "end of the run", call: session(trap)},
			{name: "SIGTERM, session", call: session(trap), next: thinks(), sig: syscall.SIGTERM, exit: 143},
			{name: "daemon, end of the call", call: command("(setsid env -i PATH=\"$PATH\" bash -c \"" + trap + "\" &) ; until [ -d lockdir ]; do sleep 0.01; done; echo ready")},
		} {
			t.Run(c.name, func(t *testing.T) {
				t.Parallel()
				next := c.next
				if next == nil {
					next = says("Done.")
				}
				d := newTrial(t, in, []m{calls(c.call), next}, c.args...).start()
				if c.sig != 0 {
					d.until(printed).signal(c.sig)
				}
				stream := d.end(c.exit)
				if !strings.Contains(string(stream), "ready") {
					t.Errorf("the command has not run: %s", d.said())
				}
				if _, err := os.Stat(filepath.Join(d.work, "lockdir")); err == nil {
					t.Error("the trap has not run")
				}
			})
		}
	})
}
