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
// subreaper: TERM, grace, KILL. Somebody else must reap meanwhile. It returns how
// many processes there were to end, and how many are left after the last KILL.
func EndDescendants(grace time.Duration) (ended, left int) {
	e := clearing{list: descendants, seen: map[int]bool{}}
	return e.all(grace)
}

// clearing is the end of a process's descendants.
type clearing struct {
	// list looks the descendants up. A look takes time, in which processes fork
	// and lose their parents, so it may miss some, even all.
	list func() []member
	seen map[int]bool
}

func (e *clearing) all(grace time.Duration) (ended, left int) {
	if childless() {
		return 0, 0
	}
	below := e.look()
	signalEach(below, syscall.SIGTERM)
	signalEach(below, syscall.SIGCONT) // a stopped process takes no TERM
	below, gone := e.wait(grace)
	if gone {
		return len(e.seen), 0
	}
	// Whoever forks all the time is stopped first, since between the look at
	// the processes and the signal there is a child that nobody has seen.
	for range 8 {
		signalEach(below, syscall.SIGSTOP)
		next := e.look()
		if len(next) <= len(below) {
			break
		}
		below = next
	}
	for deadline := time.Now().Add(killTime); !gone && time.Now().Before(deadline); {
		signalEach(below, syscall.SIGKILL)
		below, gone = e.wait(50 * time.Millisecond)
	}
	if gone {
		return len(e.seen), 0
	}
	return len(e.seen), max(1, len(below))
}

// killTime is how long processes are killed again and again before they are
// given up; only one stuck in the kernel takes longer than a moment.
const killTime = 5 * time.Second

// wait waits until nobody is below the calling process, or until the time is
// over, and returns who is left.
func (e *clearing) wait(wait time.Duration) (below []member, gone bool) {
	deadline := time.Now().Add(wait)
	for pause := time.Millisecond; ; pause = min(2*pause, 20*time.Millisecond) {
		if childless() {
			return nil, true
		}
		below = e.look()
		left := time.Until(deadline)
		if left <= 0 {
			return below, false
		}
		time.Sleep(min(pause, left))
	}
}

func (e *clearing) look() []member {
	below := e.list()
	for _, m := range below {
		e.seen[m.pid] = true
	}
	return below
}

// childless tells whether nobody is below the calling process. Only the kernel
// knows: a subreaper has a child as long as it has any descendant, while a look
// at /proc meets processes one after the other and overlooks a child whose
// parent ends between its own turn and that of the parent.
func childless() bool {
	for {
		err := unix.Waitid(unix.P_ALL, 0, nil, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil)
		if err != unix.EINTR {
			return err == unix.ECHILD
		}
	}
}

// descendants are the living processes below the calling one, as far as one
// look finds them.
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
