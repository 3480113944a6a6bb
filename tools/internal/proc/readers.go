//go:build unix

package proc

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// readSize is what one read takes: the capacity of a pipe.
const readSize = 64 << 10

// lastReads bounds what is still read from a pipe that is given up: what lay in
// it, not what somebody keeps writing.
const lastReads = 16

// readBuffers are shared between commands, so that a run of many short ones
// does not allocate 64 KiB for each.
var readBuffers = sync.Pool{New: func() any { return new([readSize]byte) }}

// readers reads the outputs of one command and hands them on, one at a time.
type readers struct {
	ends   []*os.File
	output func(Stream, []byte)

	mu        sync.Mutex // held while output runs
	bytes     atomic.Int64
	abandoned atomic.Bool
	held      atomic.Bool // a pipe was given up before its end
	open      atomic.Int32
	// drained is closed when every pipe has been read to its end or given up.
	drained chan struct{}
}

func newReaders(output func(Stream, []byte)) *readers {
	return &readers{output: output, drained: make(chan struct{})}
}

// add opens a pipe and returns the end that the command writes to.
func (r *readers) add() (*os.File, error) {
	end, w, err := openPipe()
	if err != nil {
		return nil, fmt.Errorf("open pipe: %w", err)
	}
	r.ends = append(r.ends, end)
	return w, nil
}

func (r *readers) close() {
	for _, f := range r.ends {
		_ = f.Close() // an end only read from
	}
}

// start begins to read. Whoever waits for drained waits for the goroutines.
func (r *readers) start() {
	r.open.Store(int32(len(r.ends)))
	for i, f := range r.ends {
		go r.read(f, Stream(i))
	}
}

func (r *readers) read(f *os.File, s Stream) {
	defer func() {
		_ = f.Close()
		if r.open.Add(-1) == 0 {
			close(r.drained)
		}
	}()
	raw, err := f.SyscallConn()
	if err != nil {
		return // the file is open, so it has one
	}
	for {
		err := r.take(raw, s)
		if err == nil && !r.abandoned.Load() {
			continue
		}
		if err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
			r.readLast(f, raw, s)
		}
		return
	}
}

// take waits until there is something to read and delivers it. While it waits
// it holds no buffer, so that a silent command costs next to nothing.
func (r *readers) take(raw syscall.RawConn, s Stream) error {
	var buf *[readSize]byte
	var n int
	var failed error
	err := raw.Read(func(fd uintptr) bool {
		buf = readBuffers.Get().(*[readSize]byte)
		n, failed = readFD(int(fd), buf[:])
		if failed != syscall.EAGAIN {
			return true
		}
		readBuffers.Put(buf)
		buf = nil
		return false
	})
	if buf == nil {
		return err // the deadline
	}
	defer readBuffers.Put(buf)
	if n > 0 {
		r.deliver(s, buf[:n])
		return nil
	}
	// The end of a terminal is an error on Linux: nobody holds its other side.
	if failed == nil || failed == syscall.EIO {
		return io.EOF
	}
	return failed
}

func readFD(fd int, buf []byte) (int, error) {
	for {
		n, err := syscall.Read(fd, buf)
		if err != syscall.EINTR {
			return n, err
		}
	}
}

// readLast takes what lies in a pipe that is given up: it was written in time,
// and perhaps not read yet because a delivery took long.
func (r *readers) readLast(f *os.File, raw syscall.RawConn, s Stream) {
	for range lastReads {
		if f.SetReadDeadline(time.Now().Add(time.Millisecond)) != nil {
			break
		}
		err := r.take(raw, s)
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			break
		}
	}
	r.held.Store(true)
}

func (r *readers) deliver(s Stream, b []byte) {
	r.bytes.Add(int64(len(b)))
	if r.output == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.output(s, b)
}

// abandon stops reading pipes that somebody still holds, and returns when the
// last delivery is over.
func (r *readers) abandon() {
	r.abandoned.Store(true)
	for _, f := range r.ends {
		_ = f.SetReadDeadline(time.Now()) // fails only on a pipe already closed
	}
	<-r.drained
}
