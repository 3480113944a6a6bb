//go:build unix

package proc

import (
	"os"
	"runtime"
	"sync"
	"syscall"
)

// All children are started by one goroutine that is locked to its thread for
// the life of the process. On Linux a child's parent-death signal fires when the
// thread that started it ends, not the process, and Go ends threads as it likes
// (golang.org/issue/27505). One thread is enough: starting takes well under a
// millisecond, and the kernel stops the thread, not the process, while it
// happens.
var thread = sync.OnceValue(startThread)

type request struct {
	path  string
	argv  []string
	attr  *os.ProcAttr
	reply chan<- reply
}

type reply struct {
	child *os.Process
	err   error
}

func startThread() chan<- request {
	requests := make(chan request)
	go func() { // lives as long as the process
		runtime.LockOSThread()
		sealDescriptors()
		for r := range requests {
			child, err := os.StartProcess(r.path, r.argv, r.attr)
			r.reply <- reply{child, err}
		}
	}()
	return requests
}

// spawn starts a child on the thread, with the null device as its input if it
// has no other.
func spawn(path string, argv []string, attr *os.ProcAttr) (*os.Process, error) {
	if attr.Files[0] == nil {
		null, err := os.Open(os.DevNull)
		if err != nil {
			return nil, err
		}
		defer func() { _ = null.Close() }() // only lent to the child
		attr.Files[0] = null
	}
	answer := make(chan reply, 1)
	thread() <- request{path, argv, attr, answer}
	r := <-answer
	return r.child, r.err
}

// direct is the Launcher of commands that are started right below drover.
type direct struct{}

// Launch starts a command on the thread.
func (direct) Launch(l Launch) (Child, error) {
	path, err := lookUp(l.Argv[0], l.Dir, l.Env)
	if err != nil {
		return nil, err
	}
	attr := sessionAttr()
	attr.Setctty = l.TTY // of descriptor 0
	child, err := spawn(path, l.Argv, &os.ProcAttr{Dir: l.Dir, Env: l.Env, Files: l.Files[:], Sys: attr})
	if err != nil {
		return nil, startError(l, err)
	}
	return directChild{child}, nil
}

// Pid is 0: the parent is drover itself.
func (direct) Pid() int { return 0 }

type directChild struct{ os *os.Process }

func (c directChild) Pid() int { return c.os.Pid }

func (c directChild) Wait() (Status, error) {
	state, err := c.os.Wait()
	if err != nil {
		return Status{}, err
	}
	if ws, ok := state.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		return Status{Code: -1, Signal: signalName(ws.Signal())}, nil
	}
	return Status{Code: state.ExitCode()}, nil
}

// openPipe returns the ends of a pipe that no child inherits by accident. The
// read end can be given a deadline; the write end blocks, as children expect.
func openPipe() (r, w *os.File, err error) {
	var fds [2]int
	if err := pipe(fds[:]); err != nil {
		return nil, nil, err
	}
	if err := syscall.SetNonblock(fds[0], true); err != nil {
		_ = syscall.Close(fds[0])
		_ = syscall.Close(fds[1])
		return nil, nil, err
	}
	return os.NewFile(uintptr(fds[0]), "pipe"), os.NewFile(uintptr(fds[1]), "pipe"), nil
}
