//go:build !unix

package search

import (
	"io/fs"
	"os"
)

// file is an open regular file.
type file struct{ std *os.File }

// openFlags and folderFlags: there is nothing more to ask for here.
const (
	openFlags   = os.O_RDONLY
	folderFlags = os.O_RDONLY
)

// open opens a regular file that is no link.
func open(path string) (file, int64, error) {
	if info, err := os.Lstat(path); err != nil {
		return file{}, 0, err
	} else if !info.Mode().IsRegular() {
		return file{}, 0, &fs.PathError{Op: "open", Path: path, Err: errSpecial}
	}
	std, err := os.Open(path)
	if err != nil {
		return file{}, 0, err
	}
	return adopt(std, path)
}

// adopt takes over a file of the standard library.
func adopt(std *os.File, path string) (file, int64, error) {
	f := file{std}
	info, err := std.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = &fs.PathError{Op: "open", Path: path, Err: errSpecial}
	}
	if err != nil {
		f.close()
		return file{}, 0, err
	}
	return f, info.Size(), nil
}

// Read is that of io.Reader.
func (f file) Read(b []byte) (int, error) { return f.std.Read(b) }

// close ignores the error: nothing was written.
func (f file) close() { _ = f.std.Close() }
