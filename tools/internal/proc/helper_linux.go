package proc

import (
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// StartHelper starts a process that launches commands for drover, on the thread
// that all children are started on, so that its parent-death signal fires when
// drover ends and not before. The descriptors are those of attr.Files alone.
func StartHelper(path string, argv []string, attr *os.ProcAttr) (*os.Process, error) {
	return spawn(path, argv, attr)
}

// StartError says what stood in the way of a start, as the errors of Start do.
func StartError(l Launch, err error) error { return startError(l, err) }

// SignalName returns the name of a signal, such as "SIGKILL".
func SignalName(s syscall.Signal) string { return signalName(s) }

// EndDescendants ends every process below the calling one, which must be their
// subreaper: TERM, grace, KILL. reap is called again and again and must reap
// whatever has ended. It returns how many processes there were to end, and how
// many are left after the last KILL.
func EndDescendants(grace time.Duration, reap func()) (ended, left int) {
	below := descendants()
	if len(below) == 0 {
		return 0, 0
	}
	seen := map[int]bool{}
	note := func(below []member) {
		for _, m := range below {
			seen[m.pid] = true
		}
	}
	note(below)
	signalEach(below, syscall.SIGTERM)
	signalEach(below, syscall.SIGCONT) // a stopped process takes no TERM
	below = awaitNone(grace, reap, note)
	if len(below) == 0 {
		return len(seen), 0
	}
	// Whoever forks all the time is stopped first, since between the look at
	// the processes and the signal there is a child that nobody has seen.
	for range 8 {
		signalEach(below, syscall.SIGSTOP)
		next := descendants()
		note(next)
		if len(next) <= len(below) {
			break
		}
		below = next
	}
	deadline := time.Now().Add(killTime)
	for len(below) > 0 && time.Now().Before(deadline) {
		signalEach(below, syscall.SIGKILL)
		below = awaitNone(50*time.Millisecond, reap, note)
	}
	return len(seen), len(below)
}

// killTime is how long processes are killed again and again before they are
// given up; only one stuck in the kernel takes longer than a moment.
const killTime = 5 * time.Second

// awaitNone waits until nobody is below the calling process, or until the time
// is over, and returns who is left.
func awaitNone(wait time.Duration, reap func(), note func([]member)) []member {
	deadline := time.Now().Add(wait)
	for pause := time.Millisecond; ; pause = min(2*pause, 20*time.Millisecond) {
		reap()
		below := descendants()
		note(below)
		left := time.Until(deadline)
		if len(below) == 0 || left <= 0 {
			return below
		}
		time.Sleep(min(pause, left))
	}
}

// descendants are the living processes below the calling one.
func descendants() []member {
	all, _ := listProcesses() // without /proc nobody is found
	own := os.Getpid()
	mine := map[int]bool{}
	for _, p := range all {
		if p.parent == own {
			mine[p.pid] = true
		}
	}
	return closure(all, mine, own)
}

func signalEach(list []member, s syscall.Signal) {
	for _, m := range list {
		_ = unix.Kill(m.pid, s) // it may have ended by itself
	}
}
