package sandbox

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// The helper is this program again, told by the name it is started with. It is
// set up over its control socket alone: no argument and no variable can make a
// sandbox weaker.

// helperName is argv[0] of the helper.
const helperName = "drover-sandbox"

// The two lives of the helper, argv[1]: it sets up the tree and gives all rights
// up, then it starts itself anew and serves.
const (
	lifeSetUp = "set-up"
	lifeServe = "serve"
)

// controlFD is the descriptor of the control socket.
const controlFD = 3

// Main is the helper. It returns at once if this process is none, and never
// otherwise. It has to be the first thing that main does.
func Main() {
	// Bubblewrap starts it under a path.
	if len(os.Args) != 2 || filepath.Base(os.Args[0]) != helperName {
		return
	}
	os.Exit(helper(os.Args[1]))
}

func helper(life string) int {
	control, err := newConn(dupControl())
	if err != nil {
		fmt.Fprintln(os.Stderr, "drover: this is the sandbox's helper, which is started by drover alone")
		return 2
	}
	switch life {
	case lifeSetUp:
		err = setUp(control)
	case lifeServe:
		unix.CloseOnExec(controlFD)
		err = serve(control, true)
	default:
		err = fmt.Errorf("no such life: %q", life)
	}
	if err != nil {
		_ = control.send(frameBroken, broken(err)) // drover may be gone
		return 1
	}
	return 0
}

// dupControl leaves the control socket itself for the second life.
func dupControl() int {
	fd, err := unix.FcntlInt(controlFD, unix.F_DUPFD_CLOEXEC, controlFD+1)
	if err != nil {
		return -1
	}
	return fd
}

// setUp ends by becoming the second life, or right in serve if there is nothing
// to give up.
func setUp(control *conn) error {
	runtime.LockOSThread() // until exec; confine is about this thread
	kind, body, fds, err := control.receive()
	closeAll(fds)
	if err != nil {
		return err
	}
	s, err := unpackSetup(body)
	if err != nil || kind != frameSetup {
		return errors.Join(errFrame, err)
	}
	if s.level == LevelNone {
		runtime.UnlockOSThread()
		unix.CloseOnExec(controlFD)
		return serve(control, false)
	}
	write := s.private
	if s.level == LevelBubblewrap && s.whole {
		write = []string{"/"}
	}
	var refused []string
	if s.level == LevelNamespaces {
		if refused, write, err = place(s); err != nil {
			return err
		}
	}
	for _, p := range s.placements {
		if s.level == LevelLandlock && (p.kind == writable || p.kind == lifted) {
			write = append(write, p.path)
		}
	}
	var report packer
	report.strings(refused)
	if err := control.send(framePlaced, report); err != nil {
		return err
	}
	if err := os.Chdir("/"); err != nil {
		return err
	}
	if err := confine(s, write); err != nil {
		return err
	}
	err = unix.Exec("/proc/self/exe", []string{helperName, lifeServe}, []string{})
	return fmt.Errorf("start anew: %w", err)
}

// broken packs an error: its number, whether nothing of the kind is to be had
// here, and its text.
func broken(err error) []byte {
	var errno syscall.Errno
	errors.As(err, &errno)
	p := packer(numbers(int64(errno), int64(flag(errors.Is(err, errUnsupported)))))
	p.string(err.Error())
	return p
}
