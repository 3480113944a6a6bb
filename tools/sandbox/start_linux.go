package sandbox

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"drover/tools/internal/proc"
	"golang.org/x/sys/unix"
)

// setUpTime is how long a helper may take until it is ready.
const setUpTime = 30 * time.Second

// brokenError is why a helper gave up.
type brokenError struct {
	text string
	// unsupported says that the system refuses what the level needs.
	unsupported bool
	errno       syscall.Errno
}

func (e *brokenError) Error() string { return e.text }

// start sets a helper up: the one that waits already if it is of the right kind,
// or a new one. It returns which folders got no layer.
func start(ctx context.Context, program string, s *setup, early *Early) (*client, []string, error) {
	var h *waiting
	if s.level == LevelNamespaces && program == "" {
		h = early.take()
	}
	if h == nil {
		var err error
		if h, err = newWaiting(program, s); err != nil {
			return nil, nil, err
		}
	}
	refused, err := handshake(ctx, h.control, s)
	if err != nil {
		h.end()
		if s.level == LevelBubblewrap {
			err = s.wrapperError(err)
		}
		return nil, nil, err
	}
	return serveClient(h.control, h.process), refused, nil
}

// handshake sends the setup and waits until the helper is ready.
func handshake(ctx context.Context, control *conn, s *setup) (refused []string, err error) {
	deadline := time.Now().Add(setUpTime)
	if d, ok := ctx.Deadline(); ok && d.Before(deadline) {
		deadline = d
	}
	_ = control.socket.SetDeadline(deadline) // sockets have deadlines
	stop := context.AfterFunc(ctx, func() { _ = control.socket.SetDeadline(time.Now()) })
	defer stop()
	if err := control.send(frameSetup, s.pack()); err != nil {
		return nil, errors.Join(ctx.Err(), silent(err))
	}
	for {
		kind, body, fds, err := control.receive()
		closeAll(fds) // a helper sends none
		if err != nil {
			return nil, errors.Join(ctx.Err(), silent(err))
		}
		u := unpacker{rest: body}
		switch kind {
		case framePlaced:
			refused = u.strings()
		case frameReady:
			_ = control.socket.SetDeadline(time.Time{}) // as above
			return refused, nil
		case frameBroken:
			b := &brokenError{errno: syscall.Errno(u.number()), unsupported: u.number() != 0, text: u.string()}
			b.unsupported = b.unsupported || b.errno == unix.ENOSYS
			return nil, b
		default:
			return nil, errFrame
		}
		if err := u.end(); err != nil {
			return nil, err
		}
	}
}

func silent(err error) error {
	return fmt.Errorf("the helper does not answer: %w", err)
}

// ownProgram is the file that this process runs.
const ownProgram = "/proc/self/exe"

// spawnHelper starts the program as a helper, in namespaces of its own if the
// level wants them.
func spawnHelper(program string, control *os.File, s *setup) (*os.Process, error) {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer func() { _ = null.Close() }() // lent
	attr := &os.ProcAttr{
		Dir: "/", Env: []string{}, Files: []*os.File{null, null, null, control},
		Sys: &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGTERM},
	}
	// The file this process runs, whatever has become of its name.
	program = cmp.Or(program, ownProgram)
	argv := []string{helperName, lifeSetUp}
	switch s.level {
	case LevelNamespaces:
	case LevelBubblewrap:
		return spawnWrapped(program, attr, s)
	default:
		return proc.StartHelper(program, argv, attr)
	}
	// Shared memory and message queues of System V belong to the user, not to a
	// place in the tree that could be hidden.
	attr.Sys.Cloneflags = unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWIPC
	root := os.Geteuid() == 0
	if !root {
		attr.Sys.AmbientCaps = helperNeeds
		return asDumpable(func() (*os.Process, error) {
			attr.Sys.UidMappings, attr.Sys.GidMappings = one(os.Geteuid()), one(os.Getegid())
			return proc.StartHelper(program, argv, attr)
		})
	}
	// Root works with files of other users.
	attr.Sys.UidMappings, attr.Sys.GidMappings = ranges("/proc/self/uid_map"), ranges("/proc/self/gid_map")
	attr.Sys.GidMappingsEnableSetgroups = true
	p, err := proc.StartHelper(program, argv, attr)
	if errors.Is(err, unix.EPERM) {
		attr.Sys.UidMappings, attr.Sys.GidMappings = one(0), one(os.Getegid())
		attr.Sys.GidMappingsEnableSetgroups = false
		p, err = proc.StartHelper(program, argv, attr)
	}
	return p, err
}

func one(id int) []syscall.SysProcIDMap {
	return []syscall.SysProcIDMap{{ContainerID: id, HostID: id, Size: 1}}
}

// ranges maps every id that exists here to itself. The lines of the file are
// "INSIDE OUTSIDE COUNT".
func ranges(file string) []syscall.SysProcIDMap {
	text, _ := os.ReadFile(file) // an empty map is refused, which leads to one
	var out []syscall.SysProcIDMap
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		if len(fields) != 3 {
			continue
		}
		first, err1 := strconv.Atoi(fields[0])
		count, err2 := strconv.Atoi(fields[2])
		if err1 == nil && err2 == nil {
			out = append(out, syscall.SysProcIDMap{ContainerID: first, HostID: first, Size: count})
		}
	}
	return out
}

// dumpable serializes changes of a property that the process has once.
var dumpable sync.Mutex

// asDumpable lets a child be mapped by this process: as long as the process is
// kept private, so are the files in /proc of a child that is not yet another
// program.
func asDumpable(do func() (*os.Process, error)) (*os.Process, error) {
	dumpable.Lock()
	defer dumpable.Unlock()
	was, err := unix.PrctlRetInt(unix.PR_GET_DUMPABLE, 0, 0, 0, 0)
	if err == nil && was != 1 {
		if err := unix.Prctl(unix.PR_SET_DUMPABLE, 1, 0, 0, 0); err != nil {
			return nil, err
		}
		// Only 0 and 1 can be set; 2 is what 0 is for everybody but root.
		defer func() { _ = unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0) }()
	}
	return do()
}

// isStopped tells whether a process is stopped.
func isStopped(pid int) bool {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	i := bytes.LastIndexByte(b, ')')
	return err == nil && i >= 0 && i+2 < len(b) && (b[i+2] == 'T' || b[i+2] == 't')
}
