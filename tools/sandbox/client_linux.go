package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"sync"
	"syscall"
	"time"

	"drover/tools/internal/proc"
	"golang.org/x/sys/unix"
)

// client is drover's side of a helper: a proc.Launcher.
type client struct {
	control *conn
	process *os.Process

	mu      sync.Mutex
	last    int64
	pending map[int64]*child
	why     string

	// gone is closed when the helper is, or is not to be trusted any more.
	gone chan struct{}
	// buried is closed when it has been reaped.
	buried chan struct{}
	ended  chan int
}

// child is a command that was asked for.
type child struct {
	client *client
	argv0  string
	pid    int
	// started gets one answer, status another one if that was no error.
	started chan error
	status  chan proc.Status
}

// launchError is why a command was not started, told by the helper.
type launchError struct {
	text  string
	cause error
}

func (e *launchError) Error() string { return e.text }
func (e *launchError) Unwrap() error { return e.cause }

// serveClient takes a helper over that is ready.
func serveClient(control *conn, process *os.Process) *client {
	c := &client{
		control: control, process: process, pending: map[int64]*child{},
		gone: make(chan struct{}), buried: make(chan struct{}), ended: make(chan int, 1),
	}
	go c.listen() // ends with the helper
	go c.watch()  // ends with the helper
	return c
}

// Pid is the helper's.
func (c *client) Pid() int { return c.process.Pid }

// Launch has a command started.
func (c *client) Launch(l proc.Launch) (proc.Child, error) {
	if len(l.Argv) == 0 {
		return nil, errors.New("start command: no program named")
	}
	fds, null, err := descriptors(l.Files)
	if null != nil {
		defer func() { _ = null.Close() }() // lent, too
	}
	if err != nil {
		return nil, fmt.Errorf("start %q: %w", l.Argv[0], err)
	}
	ch := &child{client: c, argv0: l.Argv[0], started: make(chan error, 1), status: make(chan proc.Status, 1)}
	c.mu.Lock()
	c.last++
	o := order{id: c.last, tty: l.TTY, dir: l.Dir, argv: l.Argv, env: l.Env}
	c.pending[o.id] = ch
	c.mu.Unlock()
	err = c.control.send(frameLaunch, o.pack(), fds...)
	runtime.KeepAlive(l.Files)
	if err != nil {
		c.forget(o.id)
		return nil, c.lost()
	}
	select {
	case err = <-ch.started:
	case <-c.gone:
		select {
		case err = <-ch.started:
		default:
			err = c.lost()
		}
	}
	if err != nil {
		c.forget(o.id)
		return nil, err
	}
	return ch, nil
}

// descriptors returns the numbers of files without changing how they block. A
// missing one is the null device.
func descriptors(files [3]*os.File) (fds []int, null *os.File, err error) {
	for _, f := range files {
		if f == nil {
			if null == nil {
				if null, err = os.OpenFile(os.DevNull, os.O_RDWR, 0); err != nil {
					return nil, nil, err
				}
			}
			f = null
		}
		raw, err := f.SyscallConn()
		if err != nil {
			return nil, null, err
		}
		if err := raw.Control(func(fd uintptr) { fds = append(fds, int(fd)) }); err != nil {
			return nil, null, err
		}
	}
	return fds, null, nil
}

func (c *client) forget(id int64) {
	c.mu.Lock()
	delete(c.pending, id)
	c.mu.Unlock()
}

// Pid is the command's.
func (ch *child) Pid() int { return ch.pid }

// Wait returns how the command ended, or an error if its helper is gone.
func (ch *child) Wait() (proc.Status, error) {
	select {
	case st := <-ch.status:
		return st, nil
	case <-ch.client.gone:
	}
	select {
	case st := <-ch.status:
		return st, nil
	default:
		return proc.Status{Code: -1}, ch.client.lost()
	}
}

// lost says why the helper is gone.
func (c *client) lost() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.why == "" {
		return lost("its helper has ended; a command may have ended it")
	}
	return lost(c.why)
}

// listen reads what the helper tells until it is gone.
func (c *client) listen() {
	var err error
	for err == nil {
		var kind byte
		var body []byte
		var fds []int
		if kind, body, fds, err = c.control.receive(); err == nil {
			err = c.take(kind, body)
		}
		closeAll(fds) // a helper sends none
	}
	c.mu.Lock()
	if c.why == "" && errors.Is(err, errFrame) {
		c.why = "its helper has sent a " + errFrame.Error()
	}
	c.mu.Unlock()
	close(c.gone)
	c.control.close()
	c.bury()
	close(c.buried)
}

// bury ends the helper, which has a moment to end what is below it.
func (c *client) bury() {
	timer := time.AfterFunc(proc.DefaultGrace+killTime, func() { _ = c.process.Kill() })
	defer timer.Stop()
	_, _ = c.process.Wait() // how it ended does not matter any more
}

// killTime is how long the helper may take to kill what ignores it.
const killTime = 6 * time.Second

func (c *client) take(kind byte, body []byte) error {
	u := unpacker{rest: body}
	id := u.number()
	if kind == frameEnded {
		left := u.number()
		if err := u.end(); err != nil {
			return err
		}
		_ = left // Close cannot do more about it than the helper did
		select {
		case c.ended <- int(id):
		default:
		}
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	ch := c.pending[id]
	if ch == nil {
		return errFrame
	}
	switch kind {
	case frameStarted:
		ch.pid = int(u.number())
		ch.started <- nil
	case frameRefused:
		delete(c.pending, id)
		ch.started <- refused(u.number(), u.string())
	case frameExited:
		delete(c.pending, id)
		ch.status <- statusOf(int(u.number()), syscall.Signal(u.number()))
	default:
		return errFrame
	}
	return u.end()
}

func refused(code int64, text string) error {
	e := &launchError{text: text}
	switch {
	case code == refusedNotFound:
		e.cause = proc.ErrNotFound
	case code == refusedForbidden:
		e.cause = fs.ErrPermission
	case code > 0:
		e.cause = syscall.Errno(code)
	}
	return e
}

func statusOf(code int, sig syscall.Signal) proc.Status {
	if sig != 0 {
		return proc.Status{Code: -1, Signal: proc.SignalName(sig)}
	}
	return proc.Status{Code: code}
}

// How often a stopped helper is looked for, and continued before it is ended. It
// can only have been stopped by a command.
const (
	watchEvery = time.Second
	maxStops   = 5
)

// watch sees to it that no command can make drover wait for ever by stopping the
// helper.
func (c *client) watch() {
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	for stops := 0; ; {
		select {
		case <-c.gone:
			return
		case <-tick.C:
		}
		c.mu.Lock()
		busy := len(c.pending) > 0
		c.mu.Unlock()
		if !busy || !isStopped(c.process.Pid) {
			continue
		}
		if stops++; stops > maxStops {
			c.mu.Lock()
			c.why = "a command keeps stopping its helper"
			c.mu.Unlock()
			_ = c.process.Kill()
			return
		}
		_ = c.process.Signal(unix.SIGCONT)
	}
}

// close ends everything below the helper, then the helper.
func (c *client) close(grace time.Duration) int {
	ended := 0
	if c.control.send(frameEnd, numbers(int64(grace))) == nil {
		timer := time.NewTimer(grace + killTime)
		defer timer.Stop()
		select {
		case ended = <-c.ended:
		case <-c.gone:
		case <-timer.C:
			_ = c.process.Kill()
		}
	}
	_ = c.control.socket.CloseRead() // ends listen
	<-c.buried
	return ended
}
