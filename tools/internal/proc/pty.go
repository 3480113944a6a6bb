//go:build unix

package proc

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"
)

// The size of a terminal until Resize, and the largest one: programs compute
// with the size, and some allocate a screen of it.
const (
	defaultRows, defaultCols = 24, 80
	maxRows, maxCols         = 1000, 1000
)

// ErrNoTerminal says that a command reads from no terminal, so that nothing can
// be typed.
var ErrNoTerminal = errors.New("the command has no terminal")

// ErrEnded says that a command ended before it could take what was typed.
var ErrEnded = errors.New("the command has ended")

// terminal is a pseudo-terminal: the command's side and drover's.
type terminal struct {
	master, slave *os.File
	writing       sync.Mutex
}

func openTerminal() (*terminal, error) {
	blocking, slave, err := pty.Open()
	if err != nil {
		return nil, fmt.Errorf("open terminal: %w", err)
	}
	master, err := pollable(blocking)
	if err == nil {
		t := &terminal{master: master, slave: slave}
		if err = t.resize(defaultRows, defaultCols); err == nil {
			return t, nil
		}
		_ = master.Close() // nothing was written yet
	}
	_ = slave.Close() // as above
	return nil, fmt.Errorf("open terminal: %w", err)
}

// pollable returns the same open file with deadlines, and closes f: setting a
// terminal up has made it blocking, and a blocking read would hold a thread.
func pollable(f *os.File) (*os.File, error) {
	defer func() { _ = f.Close() }() // the copy lives on
	fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	if err := syscall.SetNonblock(fd, true); err != nil {
		_ = syscall.Close(fd)
		return nil, err
	}
	return os.NewFile(uintptr(fd), "terminal"), nil
}

func (t *terminal) resize(rows, cols int) error {
	raw, err := t.master.SyscallConn()
	if err != nil {
		return err
	}
	size := unix.Winsize{Row: uint16(min(max(rows, 1), maxRows)), Col: uint16(min(max(cols, 1), maxCols))}
	var failed error
	err = raw.Control(func(fd uintptr) { failed = unix.IoctlSetWinsize(int(fd), unix.TIOCSWINSZ, &size) })
	return errors.Join(err, failed)
}

// Resize tells the command that its terminal has another size, brought into 1
// to 1000 for both. It fails with ErrNoTerminal, or when the command is over.
func (p *Process) Resize(rows, cols int) error {
	if p.term == nil {
		return ErrNoTerminal
	}
	if err := p.term.resize(rows, cols); err != nil {
		return fmt.Errorf("resize terminal: %w", err)
	}
	return nil
}

// Write types into the terminal of the command, bytes as they are: 0x03
// interrupts, 0x04 at the start of a line ends the input. It returns how many
// bytes the terminal took before ctx ended: a command that does not read takes
// only so many. The error wraps ErrNoTerminal, ErrEnded or that of ctx.
func (p *Process) Write(ctx context.Context, b []byte) (int, error) {
	t := p.term
	if t == nil {
		return 0, ErrNoTerminal
	}
	t.writing.Lock()
	defer t.writing.Unlock()
	late := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		_ = t.master.SetWriteDeadline(time.Now()) // fails only once it is closed, as the write does
		close(late)
	})
	n, err := t.master.Write(b)
	if !stop() {
		<-late
		_ = t.master.SetWriteDeadline(time.Time{}) // as above
	}
	switch {
	case err == nil:
		return n, nil
	case errors.Is(err, os.ErrDeadlineExceeded):
		return n, fmt.Errorf("write to terminal: %w", context.Cause(ctx))
	case errors.Is(err, os.ErrClosed), errors.Is(err, syscall.EIO):
		return n, ErrEnded
	}
	return n, fmt.Errorf("write to terminal: %w", err)
}
