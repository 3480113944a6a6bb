//go:build unix

package tree

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// openPlain opens a plain file for reading: no link is followed, and nothing
// waits for the other end of a pipe.
func openPlain(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("read file: %w", err)
	}
	return plain(f)
}

// mark changes whenever a file does: no program can set the time in it.
type mark struct {
	inode     uint64
	sec, nsec int64
	size      int64
	mode      uint32
}

// markOf returns the mark of the file at path, the zero mark if there is none.
func markOf(path string) mark {
	var st unix.Stat_t
	if err := unix.Lstat(path, &st); err != nil {
		return mark{}
	}
	sec, nsec := st.Ctim.Unix()
	return mark{inode: uint64(st.Ino), sec: sec, nsec: nsec, size: st.Size, mode: uint32(st.Mode)}
}
