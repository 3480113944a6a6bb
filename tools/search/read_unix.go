//go:build unix

package search

import (
	"io"
	"io/fs"
	"os"
	"syscall"
)

// file is an open regular file. It spares what os.File does beside the system
// calls (registering with the poller, a finalizer), which is felt when ten
// thousand small files are read.
type file struct {
	fd int
	// std holds fd if it was opened by the standard library.
	std *os.File
}

// openFlags make sure that opening a link fails and that a pipe or a device
// which took the place of a file a moment ago cannot block.
const openFlags = syscall.O_RDONLY | syscall.O_CLOEXEC | syscall.O_NOFOLLOW | syscall.O_NONBLOCK | syscall.O_NOCTTY

// folderFlags are those for folders.
const folderFlags = openFlags | syscall.O_DIRECTORY

// open opens a regular file that is no link.
func open(path string) (f file, size int64, err error) {
	for {
		f.fd, err = syscall.Open(path, openFlags, 0)
		if err != syscall.EINTR {
			break
		}
	}
	if err != nil {
		return file{}, 0, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	return f.regular(path)
}

// adopt takes over a file of the standard library.
func adopt(std *os.File, path string) (file, int64, error) {
	return file{fd: int(std.Fd()), std: std}.regular(path)
}

// regular returns the size of the file, and closes it if it is not regular.
func (f file) regular(path string) (file, int64, error) {
	var stat syscall.Stat_t
	err := syscall.Fstat(f.fd, &stat)
	if err == nil && stat.Mode&syscall.S_IFMT != syscall.S_IFREG {
		err = errSpecial
	}
	if err != nil {
		f.close()
		return file{}, 0, &fs.PathError{Op: "open", Path: path, Err: err}
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
func (f file) close() {
	if f.std != nil {
		_ = f.std.Close()
		return
	}
	_ = syscall.Close(f.fd)
}
