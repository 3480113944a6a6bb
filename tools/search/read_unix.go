//go:build unix

package search

import (
	"io"
	"io/fs"
	"syscall"
)

// file is an open regular file. It spares what os.File does beside the system
// calls (registering with the poller, a finalizer), which is felt when ten
// thousand small files are read.
type file struct{ fd int }

// open opens a regular file that is no link. The flags make sure that a pipe
// or device that took the place of a file a moment ago cannot block.
func open(path string) (f file, size int64, err error) {
	const flags = syscall.O_RDONLY | syscall.O_CLOEXEC | syscall.O_NOFOLLOW | syscall.O_NONBLOCK | syscall.O_NOCTTY
	for {
		f.fd, err = syscall.Open(path, flags, 0)
		if err != syscall.EINTR {
			break
		}
	}
	if err != nil {
		return file{}, 0, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	var stat syscall.Stat_t
	if err := syscall.Fstat(f.fd, &stat); err != nil {
		f.close()
		return file{}, 0, &fs.PathError{Op: "stat", Path: path, Err: err}
	}
	if stat.Mode&syscall.S_IFMT != syscall.S_IFREG {
		f.close()
		return file{}, 0, &fs.PathError{Op: "open", Path: path, Err: errSpecial}
	}
	return f, stat.Size, nil
}

// Read is that of io.Reader.
func (f file) Read(b []byte) (int, error) {
	for {
		n, err := syscall.Read(f.fd, b)
		switch {
		case err == syscall.EINTR:
			continue
		case err != nil:
			return 0, err
		case n == 0 && len(b) > 0:
			return 0, io.EOF
		}
		return n, nil
	}
}

// close ignores the error: nothing was written.
func (f file) close() { _ = syscall.Close(f.fd) }
