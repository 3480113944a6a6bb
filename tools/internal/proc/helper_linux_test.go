package proc

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// reaperVar makes the test binary a subreaper that ends what is below it.
const reaperVar = "DROVER_TEST_REAPER"

// reapAndEnd starts a command that leaves an orphan, and ends it although the
// first looks at the processes overlook it. It prints the orphan's id.
func reapAndEnd() {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		panic(err)
	}
	out, err := exec.Command("sh", "-c", `(trap '' TERM HUP; setsid sleep 600 >/dev/null 2>&1 & echo $!)`).Output()
	if err != nil {
		panic(err)
	}
	go func() { // reaps until the process ends
		for {
			if _, err := syscall.Wait4(-1, nil, 0, nil); err != nil {
				time.Sleep(time.Millisecond)
			}
		}
	}()
	looks := 0
	e := clearing{seen: map[int]bool{}, list: func() []member {
		if looks++; looks <= 5 {
			return nil
		}
		return descendants()
	}}
	ended, left := e.all(time.Second)
	fmt.Println(strings.TrimSpace(string(out)), ended, left)
}

// TestAProcessThatOneLookOverlooksIsEnded: a look at /proc is not one moment.
// Where ids have come round, a child is met before its parent; if that ends
// meanwhile, the child seems to have nobody, and it used to be left behind.
func TestAProcessThatOneLookOverlooksIsEnded(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), reaperVar+"=1")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	var pid, ended, left int
	if _, err := fmt.Fscan(bufio.NewReader(strings.NewReader(string(out))), &pid, &ended, &left); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if ended < 1 || left != 0 {
		t.Errorf("ended %d, left %d", ended, left)
	}
	if _, err := os.Stat("/proc/" + strconv.Itoa(pid)); err == nil {
		t.Errorf("process %d is still there", pid)
	}
}
