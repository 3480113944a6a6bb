package sandbox

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// waiting is a helper that has not been told its setup.
type waiting struct {
	control *conn
	process *os.Process
}

// startWaiting starts a helper in namespaces, which is what nearly every run
// needs.
func startWaiting() *waiting {
	if os.Args[0] == helperName {
		return nil // it would start itself for ever
	}
	h, err := newWaiting("", &setup{level: LevelNamespaces})
	if err != nil {
		return nil
	}
	return h
}

// newWaiting starts a helper for a setup that it is not told yet.
func newWaiting(program string, s *setup) (*waiting, error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("make control socket: %w", err)
	}
	control, err := newConn(pair[0])
	theirs := os.NewFile(uintptr(pair[1]), "control")
	if err != nil {
		_ = theirs.Close() // nobody has it
		return nil, fmt.Errorf("make control socket: %w", err)
	}
	process, err := spawnHelper(program, theirs, s)
	// The helper has its own. As long as this one is open, too, its end would
	// go unnoticed.
	_ = theirs.Close()
	if err != nil {
		control.close()
		return nil, &brokenError{text: "start helper: " + err.Error(), unsupported: s.level != LevelLandlock}
	}
	return &waiting{control, process}, nil
}

// end ends a helper that has not started anything.
func (h *waiting) end() {
	h.control.close()
	_ = h.process.Kill()
	_, _ = h.process.Wait() // it was killed
}
