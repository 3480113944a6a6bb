package sandbox

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"runtime"
	"sync"
	"syscall"
	"time"

	"drover/tools/internal/proc"
	"golang.org/x/sys/unix"
)

// server starts commands and tells how they end. Everything below it is its
// business: it reaps orphans, and when drover is gone it ends all.
type server struct {
	control *conn
	orders  chan placed

	// mu is held from a fork until the child is known, so that the reaper never
	// meets one it does not know.
	mu       sync.Mutex
	children map[int]int64
	closed   bool
	born     chan struct{}
}

// placed is an order whose program has been found.
type placed struct {
	order
	path string
	fds  []int
}

// The answers that are no error number.
const (
	refusedNotFound  = -1
	refusedForbidden = -2
)

// serve returns when drover has closed the connection, or is gone, and nothing
// is left of what it had started.
func serve(control *conn, confined bool) error {
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return err
	}
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return err
	}
	// Drover's death is also told by a signal, should the socket be held open
	// by somebody. The answer is the same.
	gone := make(chan os.Signal, 1)
	signal.Notify(gone, syscall.SIGTERM)
	s := &server{control: control, orders: make(chan placed), children: map[int]int64{}, born: make(chan struct{}, 1)}
	apart := make(chan error, 1)
	go s.spawner(confined, apart) // lives as long as the process
	go s.reaper()                 // lives as long as the process
	if err := <-apart; err != nil {
		return err
	}
	if err := control.send(frameReady, nil); err != nil {
		return err
	}
	over := make(chan error, 1)
	go func() { over <- s.listen() }() // the process ends with it
	var err error
	select {
	case err = <-over:
	case <-gone:
	}
	s.end(proc.DefaultGrace)
	if errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) {
		return nil
	}
	return err
}

// listen takes orders until the connection ends.
func (s *server) listen() error {
	for {
		kind, body, fds, err := s.control.receive()
		if err != nil {
			closeAll(fds)
			return err
		}
		switch kind {
		case frameLaunch:
			go s.launch(body, fds) // sends an answer; ends with the process at the latest
		case frameEnd:
			closeAll(fds)
			u := unpacker{rest: body}
			ended, left := s.end(time.Duration(u.number()))
			if err := s.control.send(frameEnded, numbers(int64(ended), int64(left))); err != nil {
				return err
			}
		default:
			closeAll(fds)
			return errFrame
		}
	}
}

// end lets nobody in any more and ends everybody.
func (s *server) end(grace time.Duration) (ended, left int) {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	return proc.EndDescendants(grace) // the reaper reaps
}

// launch looks the program up, which may wait for a slow disk, and hands the
// order on.
func (s *server) launch(body []byte, fds []int) {
	o, err := unpackOrder(body)
	if err == nil && len(fds) != 3 {
		err = syscall.EMFILE // descriptors beyond the limit are dropped
	}
	if err != nil {
		closeAll(fds)
		s.refuse(o.id, err)
		return
	}
	path, err := proc.LookPath(o.argv[0], o.dir, o.env)
	if err != nil {
		closeAll(fds)
		s.refuse(o.id, err)
		return
	}
	s.orders <- placed{o, path, fds}
}

// spawner starts commands, in one thread that lives as long as the helper,
// because a parent-death signal is sent when the thread ends. The thread is more
// confined than the others are, and so is what it starts: a command that signals
// everybody, as kill -9 -1 does, does not reach the helper.
func (s *server) spawner(confined bool, apart chan<- error) {
	runtime.LockOSThread()
	var err error
	if confined && landlockABI() >= 6 {
		if unix.Gettid() == os.Getpid() {
			// The kernel asks the first thread of a process whether it may be
			// signalled: confined like the commands, it would let them end the
			// helper. It is kept here for good, so that the next try has another.
			go s.spawner(confined, apart)
			select {}
		}
		err = restrictSignals()
	}
	apart <- err
	for o := range s.orders {
		if err := s.spawn(o); err != nil {
			s.refuse(o.id, proc.StartError(proc.Launch{Argv: o.argv, Dir: o.dir}, err))
		}
		closeAll(o.fds)
	}
}

func (s *server) spawn(o placed) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return syscall.ECANCELED
	}
	pid, err := syscall.ForkExec(o.path, o.argv, &syscall.ProcAttr{
		Dir: o.dir, Env: o.env, Files: []uintptr{uintptr(o.fds[0]), uintptr(o.fds[1]), uintptr(o.fds[2])},
		Sys: &syscall.SysProcAttr{Setsid: true, Setctty: o.tty, Pdeathsig: syscall.SIGKILL},
	})
	if err != nil {
		return err
	}
	s.children[pid] = o.id
	_ = s.control.send(frameStarted, numbers(o.id, int64(pid))) // listen notices when drover is gone
	select {
	case s.born <- struct{}{}:
	default:
	}
	return nil
}

// reaper waits for children, the helper's own and orphans.
func (s *server) reaper() {
	for {
		var info unix.Siginfo
		// WNOWAIT leaves the dead where they are: ForkExec reaps a child whose
		// exec has failed, and must find it.
		err := unix.Waitid(unix.P_ALL, 0, &info, unix.WEXITED|unix.WNOWAIT, nil)
		switch {
		case errors.Is(err, unix.ECHILD):
			<-s.born // orphans come from children only
		case err == nil:
			s.bury()
		}
	}
}

func (s *server) bury() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, syscall.WNOHANG, nil)
		if errors.Is(err, syscall.EINTR) {
			continue
		}
		if err != nil || pid <= 0 {
			return
		}
		id, known := s.children[pid]
		if !known {
			continue
		}
		delete(s.children, pid)
		code, sig := int64(status.ExitStatus()), int64(0)
		if status.Signaled() {
			code, sig = -1, int64(status.Signal())
		}
		_ = s.control.send(frameExited, numbers(id, code, sig)) // listen notices when drover is gone
	}
}

// refuse tells why a command was not started.
func (s *server) refuse(id int64, err error) {
	var errno syscall.Errno
	code := int64(0)
	switch {
	case errors.As(err, &errno):
		code = int64(errno)
	case errors.Is(err, proc.ErrNotFound):
		code = refusedNotFound
	case errors.Is(err, fs.ErrPermission):
		code = refusedForbidden
	case errors.Is(err, fs.ErrNotExist):
		code = int64(syscall.ENOENT)
	}
	p := packer(numbers(id, code))
	p.string(err.Error())
	_ = s.control.send(frameRefused, p) // listen notices when drover is gone
}
