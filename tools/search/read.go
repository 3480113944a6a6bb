package search

import (
	"bytes"
	"errors"
	"io"
	"sync"
)

const (
	// MaxFileBytes is the size above which a file is not searched.
	MaxFileBytes = 64 << 20
	// binaryBytes is how much of a file is looked at for a NUL.
	binaryBytes = 8 << 10
	// keptBytes is the largest buffer a worker keeps. Larger files are read
	// one at a time, so that memory does not grow with the number of workers.
	keptBytes = 1 << 20
)

var (
	errSpecial  = errors.New("not a regular file")
	errTooLarge = errors.New("too large")
	errBinary   = errors.New("binary")
)

// reader reads whole files into one buffer, again and again.
type reader struct {
	buf []byte
	// large is held while a buffer above keptBytes is in use.
	large *sync.Mutex
}

// read calls use with the content of a file, which is valid only during the
// call and may be changed by it, and closes the file.
func (r *reader) read(f file, size int64, use func(data []byte)) error {
	defer f.close()
	if size > MaxFileBytes {
		return errTooLarge
	}
	r.reserve(size)
	n, err := fill(f, r.buf, size)
	if err == nil && bytes.IndexByte(r.buf[:min(n, binaryBytes)], 0) >= 0 {
		return errBinary
	}
	if err == nil && n == len(r.buf) {
		return r.readLarge(f, size, use)
	}
	if err != nil {
		return err
	}
	use(r.buf[:n])
	return nil
}

// reserve makes room for a file of that size and one byte, which shows that
// the file has ended.
func (r *reader) reserve(size int64) {
	want := min(size+1, keptBytes)
	if int64(len(r.buf)) < want {
		r.buf = make([]byte, max(64<<10, min(2*want, keptBytes)))
	}
}

// readLarge goes on with a file that has filled the buffer, because it is
// large or because it grows while it is read.
func (r *reader) readLarge(f file, size int64, use func(data []byte)) error {
	r.large.Lock()
	defer r.large.Unlock()
	buf := make([]byte, max(size+1, int64(2*len(r.buf))))
	n := copy(buf, r.buf)
	for {
		more, err := fill(f, buf[n:], 0)
		if err != nil {
			return err
		}
		if n += more; n < len(buf) {
			use(buf[:n])
			return nil
		}
		if n > MaxFileBytes {
			return errTooLarge
		}
		buf = append(buf, make([]byte, len(buf))...)
	}
}

// fill reads until b is full or the file ends. A file of a known size has
// ended where it should have; that of many special file systems is 0.
func fill(f file, b []byte, size int64) (n int, err error) {
	for n < len(b) {
		m, err := f.Read(b[n:])
		n += m
		if err == io.EOF || err == nil && int64(n) == size {
			return n, nil
		}
		if err != nil {
			return n, err
		}
	}
	return n, nil
}
