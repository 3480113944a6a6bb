//go:build unix

package approver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"

	"golang.org/x/sys/unix"

	"drover/output/event"
	"drover/output/fault"
)

// descriptor talks to a program on an open descriptor.
type descriptor struct {
	desk *desk
	file *os.File
	// writes says that requests are sent on it; otherwise their reader takes
	// them from the event stream.
	writes bool
	mu     sync.Mutex
}

// Descriptor reads answers from the open descriptor n, a line each. If it is a
// socket, requests are written to it, too, as the lines that the event stream
// has; from a pipe or a file answers are only read. The descriptor is closed
// for the children of drover. Its errors are faults of class Usage.
func Descriptor(n int, notice Notice) (Approver, error) {
	bad := func(why, fix string) error {
		return &fault.Error{Code: "usage", What: fmt.Sprintf("--approvals-fd %d cannot be used", n), Why: why, Fix: fix, Exit: fault.Usage}
	}
	if n <= 2 {
		return nil, bad("0, 1 and 2 are the standard streams", "open another descriptor, for example 3")
	}
	var st unix.Stat_t
	if err := unix.Fstat(n, &st); err != nil {
		return nil, bad("it is not open", "open it for drover, as in: drover run … --approvals-fd 3 3<answers")
	}
	flags, err := unix.FcntlInt(uintptr(n), unix.F_GETFL, 0)
	if err != nil {
		return nil, bad(err.Error(), "")
	}
	if flags&unix.O_ACCMODE == unix.O_WRONLY {
		return nil, bad("it is only open for writing", "give a socket, or the reading end of a pipe")
	}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFDIR:
		return nil, bad("it is a folder", "give a socket, or the reading end of a pipe")
	case unix.S_IFSOCK, unix.S_IFIFO, unix.S_IFREG, unix.S_IFCHR:
	default: // such as the poller of the runtime, where the caller opened nothing
		return nil, bad("nothing can be read from it as from a file", "open it for drover, as in: drover run … --approvals-fd 3 3<answers")
	}
	KeepFromChildren(n)
	// The poller of the runtime can end a read only on one that does not block.
	if st.Mode&unix.S_IFMT != unix.S_IFREG {
		if err := unix.SetNonblock(n, true); err != nil {
			return nil, bad(err.Error(), "")
		}
	}
	d := &descriptor{
		desk: newDesk(notice), file: os.NewFile(uintptr(n), fmt.Sprintf("approvals-fd %d", n)),
		writes: st.Mode&unix.S_IFMT == unix.S_IFSOCK,
	}
	go d.read()
	return d, nil
}

// KeepFromChildren closes the descriptor n for every process that is started from
// now on: a command of the agent that inherited it could answer for itself. It
// does nothing if n is not open.
func KeepFromChildren(n int) {
	if n > 2 {
		unix.CloseOnExec(n)
	}
}

func (d *descriptor) read() {
	err := d.desk.read(d.file)
	if err == nil || errors.Is(err, io.EOF) || errors.Is(err, os.ErrClosed) {
		err = errNobody
	} else {
		err = fmt.Errorf("the approver's channel broke: %w", err)
	}
	d.desk.end(err)
}

// By returns approver.
func (d *descriptor) By() event.Decider { return "approver" }

// Ask sends the request, where it can be sent, and waits for its line.
func (d *descriptor) Ask(ctx context.Context, e event.Event) (Answer, error) {
	return d.desk.ask(ctx, e, func(w *waiting) {
		if d.writes {
			// A reader that does not read holds up this request alone.
			go d.send(w)
		}
	})
}

func (d *descriptor) send(w *waiting) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, err := d.file.Write(w.line); err != nil {
		w.fail(fmt.Errorf("the request could not be sent: %w", err))
	}
}

// Close ends the reading.
func (d *descriptor) Close() error {
	d.desk.end(errNobody)
	return d.file.Close()
}
