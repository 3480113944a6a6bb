// Package textfile reads the files that a person names or a repository brings:
// bounded, and without waiting for ever.
//
// Opening a pipe waits until somebody writes to it, and a device has no end.
// Plain and PlainIn therefore take plain files only; Open takes a pipe as well,
// such as the shell's <(...), and waits a while for its first byte. What is in
// the files is the business of the caller.
package textfile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
	"time"
)

var (
	// ErrNotPlain is the error for a pipe, a device, a socket or a folder where
	// a file is wanted.
	ErrNotPlain = errors.New("it is not a plain file")
	// ErrTooLarge is the error for a file above the caller's limit.
	ErrTooLarge = errors.New("it is too large")
	// ErrNoWriter is the error for a pipe that stays empty.
	ErrNoWriter = errors.New("it is a pipe that nobody writes to")
)

// writerWait is how long a pipe may stay without its first byte while nobody
// has it open for writing.
const writerWait = 5 * time.Second

// Plain reads a plain file of at most limit bytes. A link to one is followed.
func Plain(path string, limit int64) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return plain(f, limit)
}

// PlainIn is Plain for a name below root, which a link does not leave.
func PlainIn(root *os.Root, name string, limit int64) ([]byte, error) {
	f, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return plain(f, limit)
}

func plain(f *os.File, limit int64) ([]byte, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, ErrNotPlain
	}
	data, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err != nil {
		return nil, err
	}
	if int64(len(data)) > limit {
		return nil, fmt.Errorf("%w: the limit is %d KiB", ErrTooLarge, limit>>10)
	}
	return data, nil
}

// Open opens a file or a pipe for reading. The reader of a pipe returns
// ErrNoWriter when nobody has begun to write after a few seconds; from the first
// byte on it waits for the end as long as it takes.
func Open(path string) (io.ReadCloser, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	if info.Mode()&fs.ModeNamedPipe == 0 {
		return f, nil
	}
	return &pipe{File: f, wait: writerWait}, nil
}

// pipe is a pipe that may not have a writer yet: it then reads as if it were at
// its end.
type pipe struct {
	*os.File
	wait  time.Duration
	began bool
}

// pollEvery is the time between two looks for the first byte.
const pollEvery = 20 * time.Millisecond

// Read reads from the pipe once there is something.
func (p *pipe) Read(b []byte) (int, error) {
	for {
		n, err := p.File.Read(b)
		if n > 0 || p.began || !errors.Is(err, io.EOF) {
			p.began = true
			return n, err
		}
		if p.wait -= pollEvery; p.wait < 0 {
			return 0, ErrNoWriter
		}
		time.Sleep(pollEvery)
	}
}
