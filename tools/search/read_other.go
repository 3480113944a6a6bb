//go:build !unix

package search

import (
	"io/fs"
	"os"
)

// file is an open regular file.
type file struct{ f *os.File }

// open opens a regular file that is no link.
func open(path string) (file, int64, error) {
	info, err := os.Lstat(path)
	if err == nil && !info.Mode().IsRegular() {
		err = &fs.PathError{Op: "open", Path: path, Err: errSpecial}
	}
	if err != nil {
		return file{}, 0, err
	}
	f, err := os.Open(path)
	if err != nil {
		return file{}, 0, err
	}
	return file{f}, info.Size(), nil
}

// Read is that of io.Reader.
func (f file) Read(b []byte) (int, error) { return f.f.Read(b) }

// close ignores the error: nothing was written.
func (f file) close() { _ = f.f.Close() }
