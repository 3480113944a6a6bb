//go:build darwin || freebsd || netbsd || openbsd || dragonfly

package approver

import "golang.org/x/sys/unix"

// flushInput drops what a terminal holds and nobody has read.
func flushInput(fd int) {
	const read = 1                                        // FREAD
	_ = unix.IoctlSetPointerInt(fd, unix.TIOCFLUSH, read) // at worst something typed earlier is an answer that can be seen
}
