//go:build linux

package processes

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// hungry is a program that takes more and more memory.
const hungry = `awk 'BEGIN { s = "xxxxxxxxxx"; for (;;) s = s s }'`

// limited makes a group of processes that share a little memory, and returns the
// file that takes its members.
func limited(t *testing.T, limit int64) string {
	t.Helper()
	for _, c := range []struct{ root, limit string }{
		{"/sys/fs/cgroup/memory", "memory.limit_in_bytes"}, {"/sys/fs/cgroup", "memory.max"},
	} {
		dir := filepath.Join(c.root, "drover-test-"+strconv.Itoa(os.Getpid()))
		if os.Mkdir(dir, 0o755) != nil {
			continue
		}
		t.Cleanup(func() {
			if err := os.Remove(dir); err != nil {
				t.Errorf("the group is not empty: %v", err)
			}
		})
		if os.WriteFile(filepath.Join(dir, c.limit), []byte(strconv.FormatInt(limit, 10)), 0o644) == nil {
			// Swapping would only take longer.
			_ = os.WriteFile(filepath.Join(dir, "memory.swap.max"), []byte("0"), 0o644)
			return filepath.Join(dir, "cgroup.procs")
		}
	}
	t.Skip("no group with a memory limit can be made here (cgroup)")
	return ""
}

// TestACommandThatTheKernelKillsForItsMemory ends its call and not the run, and
// what killed it is told.
func TestACommandThatTheKernelKillsForItsMemory(t *testing.T) {
	members := limited(t, 160<<20)
	for _, in := range []mode{"", "off"} {
		d := newTrial(t, in, []m{calls(command("echo begun; sleep 600.MARK & " + hungry + "; exit $?")), says("Done.")})
		d.cmd.Args = append([]string{"sh", "-c", "echo $$ >" + members + " && exec \"$@\"", "sh"}, append([]string{d.cmd.Path}, d.cmd.Args[1:]...)...)
		d.cmd.Path = "/bin/sh"
		stream := d.start().endWithin(patience, 0)
		r := results(t, stream, 1)[0]
		if !strings.Contains(r.Content, "begun") || !strings.Contains(r.Content, "code 137") {
			t.Errorf("the model reads %s", r.Content)
		}
		if end := terminals(t, stream)[r.ToolCallID]; end.TimedOut || end.ExitCode == nil || *end.ExitCode != 137 {
			t.Errorf("the command ended with %+v", end)
		}
	}
}

// TestAKilledCommandNamesItsSignal, when it is the command itself.
func TestAKilledCommandNamesItsSignal(t *testing.T) {
	members := limited(t, 160<<20)
	d := newTrial(t, "", []m{calls(command("echo begun; exec " + hungry)), says("Done.")})
	d.cmd.Args = append([]string{"sh", "-c", "echo $$ >" + members + " && exec \"$@\"", "sh"}, append([]string{d.cmd.Path}, d.cmd.Args[1:]...)...)
	d.cmd.Path = "/bin/sh"
	stream := d.start().endWithin(patience, 0)
	r := results(t, stream, 1)[0]
	if end := terminals(t, stream)[r.ToolCallID]; end.Signal != "SIGKILL" || end.TimedOut {
		t.Errorf("the command ended with %+v", end)
	}
	if !strings.Contains(r.Content, "begun") || !strings.Contains(r.Content, "SIGKILL") {
		t.Errorf("the model reads %s", r.Content)
	}
}
