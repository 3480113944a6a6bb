package search

import (
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// beneath opens paths below a folder with one system call, in which the kernel
// itself refuses links. The zero value is not usable.
type beneath struct{ dir *os.File }

// openBeneath returns a value that is not usable if the kernel, or a filter in
// front of it, does not know the call.
func openBeneath(root *os.Root) beneath {
	dir, err := root.Open(".")
	if err != nil {
		return beneath{}
	}
	b := beneath{dir}
	probe, err := b.folder(".")
	if err != nil {
		b.close()
		return beneath{}
	}
	_ = probe.Close() // it was only read
	return b
}

func (b beneath) ok() bool { return b.dir != nil }

func (b beneath) close() {
	if b.dir != nil {
		_ = b.dir.Close() // it was only read
	}
}

func (b beneath) open(rel string, flags int) (int, error) {
	how := unix.OpenHow{Flags: uint64(flags), Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS}
	for {
		fd, err := unix.Openat2(int(b.dir.Fd()), rel, &how)
		if err == nil {
			return fd, nil
		}
		if err != unix.EINTR {
			return 0, &fs.PathError{Op: "open", Path: rel, Err: err}
		}
	}
}

func (b beneath) file(rel string) (file, int64, error) {
	fd, err := b.open(rel, openFlags)
	if err != nil {
		return file{}, 0, err
	}
	return file{fd: fd}.regular(rel)
}

func (b beneath) folder(rel string) (*os.File, error) {
	// Without O_NONBLOCK the poller is not asked to watch the folder.
	fd, err := b.open(rel, folderFlags&^unix.O_NONBLOCK)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), rel), nil
}
