//go:build unix

package approver

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"drover/output/event"
	"drover/output/fault"
)

const (
	// maxClients is how many clients may be connected at once.
	maxClients = 32
	// backlog is how many may wait to be connected.
	backlog = 128
	// maxQueue is how many requests a client may leave unread.
	maxQueue = 256
	// sendTimeout is how long a client may take for one line.
	sendTimeout = 10 * time.Second
)

// socket listens for programs that answer.
type socket struct {
	desk     *desk
	listener *net.UnixListener
	path     string
	identity os.FileInfo
	// ours tells whether a process belongs to the run, and so to the agent.
	ours func(pid int) bool

	mu      sync.Mutex
	clients map[*client]bool
	closed  bool
}

// client is a connected program.
type client struct {
	conn  net.Conn
	queue chan []byte
}

// Socket listens on a Unix socket that only the user can connect to. Every
// client gets every open request as a line of the event stream, a later one
// those that are still open, and the first answer to a request counts. Without
// a client a request waits for one. ours tells whether a process was started by
// the run: such a one may not answer. Errors are faults of class Usage.
func Socket(path string, ours func(pid int) bool, notice Notice) (Approver, error) {
	bad := func(why, fix string, err error) error {
		return &fault.Error{Code: "usage", What: fmt.Sprintf("--approvals-socket %q cannot be used", path), Why: why, Fix: fix, Exit: fault.Usage, Err: err}
	}
	if strings.HasPrefix(path, "@") {
		return nil, bad("an abstract socket has no file whose mode keeps others out", "name a file; write ./@NAME for one of that name", nil)
	}
	if info, err := os.Lstat(path); err == nil {
		if info.Mode()&os.ModeSocket == 0 {
			return nil, bad("a file of that name exists, and it is no socket", "name a file that does not exist", nil)
		}
		if conn, err := net.DialTimeout("unix", path, time.Second); err == nil {
			_ = conn.Close() // it was only to see whether somebody listens
			return nil, bad("another process listens on it", "name another file", nil)
		}
		if err := os.Remove(path); err != nil {
			return nil, bad("the old socket cannot be removed: "+cause(err), "", err)
		}
	}
	listener, err := listenPrivate(path)
	if err != nil {
		return nil, bad(cause(err), "name a file in a folder that you can write; the whole path may be about 100 bytes long", err)
	}
	listener.SetUnlinkOnClose(false)
	identity, err := os.Lstat(path)
	if err != nil {
		_ = listener.Close() // the first error matters more
		return nil, bad(cause(err), "", err)
	}
	s := &socket{desk: newDesk(notice), listener: listener, path: path, identity: identity, ours: ours, clients: map[*client]bool{}}
	go s.accept()
	return s, nil
}

// listenPrivate makes a socket that only the user can connect to, from its first
// moment: its mode is set before it listens, until when it refuses everybody. A
// mask of the process would reach whatever else is being made or started.
func listenPrivate(path string) (*net.UnixListener, error) {
	fd, err := privateSocket()
	if err != nil {
		return nil, err
	}
	file := os.NewFile(uintptr(fd), path)
	defer file.Close()         // the listener has a descriptor of its own
	_ = unix.Fchmod(fd, 0o600) // on Linux it is the mode of the name, too; elsewhere it may fail
	if err := unix.Bind(fd, &unix.SockaddrUnix{Name: path}); err != nil {
		return nil, fmt.Errorf("bind: %w", err)
	}
	listener, err := listenOn(file, path)
	if err != nil {
		_ = os.Remove(path) // the first error matters more
	}
	return listener, err
}

// privateSocket is a socket that no child inherits.
func privateSocket() (int, error) {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err != nil {
		return 0, fmt.Errorf("make a socket: %w", err)
	}
	unix.CloseOnExec(fd)
	return fd, nil
}

func listenOn(file *os.File, path string) (*net.UnixListener, error) {
	if err := os.Chmod(path, 0o600); err != nil {
		return nil, err
	}
	if err := unix.Listen(int(file.Fd()), backlog); err != nil {
		return nil, fmt.Errorf("listen: %w", err)
	}
	l, err := net.FileListener(file)
	if err != nil {
		return nil, err
	}
	listener, ok := l.(*net.UnixListener)
	if !ok {
		return nil, errors.Join(errors.New("it is no Unix socket"), l.Close())
	}
	return listener, nil
}

// cause is the part of an error that does not repeat the path.
func cause(err error) string {
	var no syscall.Errno
	if errors.As(err, &no) {
		return no.Error()
	}
	return err.Error()
}

func (s *socket) accept() {
	for {
		conn, err := s.listener.AcceptUnix()
		if err != nil {
			s.desk.end(errNobody)
			return
		}
		if pid := peer(conn); pid > 0 && s.ours != nil && s.ours(pid) {
			s.desk.report(CodeClient, "a process of the run tried to answer its own requests, and was refused")
			_ = conn.Close() // nothing was sent
			continue
		}
		s.welcome(conn)
	}
}

// welcome adds a client and sends it what is open.
func (s *socket) welcome(conn net.Conn) {
	c := &client{conn: conn, queue: make(chan []byte, maxQueue)}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || len(s.clients) >= maxClients {
		_ = conn.Close() // there is nothing to say to it
		if !s.closed {
			s.desk.report(CodeClient, fmt.Sprintf("a client was refused: %d are connected already", maxClients))
		}
		return
	}
	s.clients[c] = true
	// A request is queued twice at most, here and in Ask; that is harmless.
	for _, w := range s.desk.pending() {
		c.queue <- w.line
		if len(c.queue) == cap(c.queue) {
			break
		}
	}
	go s.write(c)
	go func() {
		_ = s.desk.read(conn) // a client may go away at any time
		s.drop(c)
	}()
}

func (s *socket) write(c *client) {
	for line := range c.queue {
		_ = c.conn.SetWriteDeadline(time.Now().Add(sendTimeout)) // the write fails if this does
		if _, err := c.conn.Write(line); err != nil {
			s.drop(c)
		}
	}
}

// drop removes a client. It may be called again.
func (s *socket) drop(c *client) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.clients[c] {
		delete(s.clients, c)
		close(c.queue)
		_ = c.conn.Close() // it is gone either way
	}
}

// By returns approver.
func (s *socket) By() event.Decider { return "approver" }

// Ask sends the request to every client and waits for the first answer.
func (s *socket) Ask(ctx context.Context, e event.Event) (Answer, error) {
	return s.desk.ask(ctx, e, func(w *waiting) {
		s.mu.Lock()
		defer s.mu.Unlock()
		for c := range s.clients {
			select {
			case c.queue <- w.line:
			default:
				s.desk.report(CodeClient, "a client was dropped: it does not read")
				delete(s.clients, c)
				close(c.queue)
				_ = c.conn.Close() // it does not read
			}
		}
	})
}

// Close ends all connections and removes the socket, if it is still the one that
// was made.
func (s *socket) Close() error {
	s.desk.end(errNobody)
	err := s.listener.Close()
	s.mu.Lock()
	s.closed = true
	var list []*client
	for c := range s.clients {
		list = append(list, c)
	}
	s.mu.Unlock()
	for _, c := range list {
		s.drop(c)
	}
	// A new file may have the number of one that is gone, but not its time.
	if now, statErr := os.Lstat(s.path); statErr == nil && os.SameFile(now, s.identity) && now.ModTime().Equal(s.identity.ModTime()) {
		return errors.Join(err, os.Remove(s.path))
	}
	return err
}
