//go:build unix

package proc

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"
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
	stdoutW, stderrW *os.File // the ends given to the command
	ends             []*os.File
	output           func(Stream, []byte)

	mu        sync.Mutex // held while output runs
	bytes     atomic.Int64
	abandoned atomic.Bool
	held      atomic.Bool // a pipe was given up before its end
	open      atomic.Int32
	// drained is closed when every pipe has been read to its end or given up.
	drained chan struct{}
}

func openReaders(merge bool, output func(Stream, []byte)) (*readers, error) {
	r := &readers{output: output, drained: make(chan struct{})}
	end, w, err := openPipe()
	if err != nil {
		return nil, fmt.Errorf("open pipe: %w", err)
	}
	r.ends, r.stdoutW, r.stderrW = append(r.ends, end), w, w
	if !merge {
		end, w, err := openPipe()
		if err != nil {
			r.closeWriters()
			r.closeReaders()
			return nil, fmt.Errorf("open pipe: %w", err)
		}
		r.ends, r.stderrW = append(r.ends, end), w
	}
	return r, nil
}

// closeWriters closes drover's copies of the ends that the command writes to.
// Without it no pipe would ever come to its end.
func (r *readers) closeWriters() {
	_ = r.stdoutW.Close() // nothing was written through it
	if r.stderrW != r.stdoutW {
		_ = r.stderrW.Close()
	}
}

func (r *readers) closeReaders() {
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
	buf := readBuffers.Get().(*[readSize]byte)
	defer func() {
		readBuffers.Put(buf)
		_ = f.Close()
		if r.open.Add(-1) == 0 {
			close(r.drained)
		}
	}()
	for {
		n, err := f.Read(buf[:])
		if n > 0 {
			r.deliver(s, buf[:n])
		}
		if err == nil && !r.abandoned.Load() {
			continue
		}
		if err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
			r.readLast(f, s, buf[:])
		}
		return
	}
}

// readLast takes what lies in a pipe that is given up: it was written in time,
// and perhaps not read yet because a delivery took long.
func (r *readers) readLast(f *os.File, s Stream, buf []byte) {
	for range lastReads {
		if f.SetReadDeadline(time.Now().Add(time.Millisecond)) != nil {
			break
		}
		n, err := f.Read(buf)
		if n > 0 {
			r.deliver(s, buf[:n])
		}
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
