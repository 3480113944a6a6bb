//go:build linux

package processes

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// entry is one process of /proc.
type entry struct {
	pid, parent int
	state       byte
	// argv is joined by blanks; empty for a zombie.
	argv string
}

func (e entry) String() string { return fmt.Sprintf("%d %c %s", e.pid, e.state, e.argv) }

func (e entry) dead() bool { return e.state == 'Z' || e.state == 'X' }

// processes lists what runs on this machine.
func processes() (all []entry) {
	names, _ := filepath.Glob("/proc/[0-9]*") // the pattern is right
	for _, name := range names {
		stat, err := os.ReadFile(name + "/stat")
		end := bytes.LastIndexByte(stat, ')')
		if err != nil || end < 0 {
			continue // it is gone
		}
		fields := strings.Fields(string(stat[end+1:]))
		pid, _ := strconv.Atoi(filepath.Base(name)) // the pattern sees to digits
		parent, err := strconv.Atoi(fields[1])
		if err != nil {
			continue
		}
		argv, _ := os.ReadFile(name + "/cmdline") // a zombie has none
		all = append(all, entry{pid, parent, fields[0][0], strings.TrimSpace(strings.ReplaceAll(string(argv), "\x00", " "))})
	}
	return all
}

// below returns the descendants of a process.
func below(pid int) (found []entry) {
	all := processes()
	mine := map[int]bool{pid: true}
	for grown := true; grown; {
		grown = false
		for _, e := range all {
			if mine[e.parent] && !mine[e.pid] {
				mine[e.pid], grown = true, true
				found = append(found, e)
			}
		}
	}
	return found
}

// left returns the living processes of a trial but drover itself: those that
// carry its mark in their arguments, work in its folder, or have its folder in
// the environment they were started with. A command would have to get rid of
// all three to be overlooked.
func (d *trial) left() (found []entry) {
	for _, e := range processes() {
		if e.dead() || e.pid == d.cmd.Process.Pid || e.pid == os.Getpid() {
			continue
		}
		dir := "/proc/" + strconv.Itoa(e.pid)
		cwd, _ := os.Readlink(dir + "/cwd")     // of others it is not to be read
		env, _ := os.ReadFile(dir + "/environ") // nor is this
		if strings.Contains(e.argv, d.mark) || strings.HasPrefix(cwd, d.base) || bytes.Contains(env, []byte(d.base)) {
			found = append(found, e)
		}
	}
	return found
}

// noneLeft fails when a process of the trial outlives drover. What has got its
// KILL may take a moment to go.
func (d *trial) noneLeft(t *testing.T, patience time.Duration) {
	t.Helper()
	var left []entry
	for deadline := time.Now().Add(patience); ; {
		if left = d.left(); len(left) == 0 {
			return
		}
		if time.Now().After(deadline) {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Errorf("%d processes are left, such as %v", len(left), left[:min(4, len(left))])
	d.kill()
}

// kill ends what a failed test would leave behind.
func (d *trial) kill() {
	for range 50 {
		left := d.left()
		if len(left) == 0 {
			return
		}
		for _, e := range left {
			_ = syscall.Kill(e.pid, syscall.SIGKILL) // it may be gone already
		}
	}
}

// helpersLeft returns the processes that still run the drover under test, when
// all tests are over. Unlike commands they carry no mark.
func helpersLeft() (found []entry) {
	for deadline := time.Now().Add(forsaken); ; time.Sleep(50 * time.Millisecond) {
		found = nil
		for _, e := range processes() {
			if exe, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", e.pid)); err == nil && exe == binary && !e.dead() {
				found = append(found, e)
			}
		}
		if len(found) == 0 || time.Now().After(deadline) {
			return found
		}
	}
}

// status reads a number of /proc/PID/status, such as VmHWM; 0 if there is none.
func status(pid int, name string) int64 {
	data, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid)) // it may be gone
	_, rest, _ := strings.Cut(string(data), "\n"+name+":")
	fields := strings.Fields(rest)
	if len(fields) == 0 {
		return 0
	}
	n, _ := strconv.ParseInt(fields[0], 10, 64) // the kernel prints numbers
	return n
}
