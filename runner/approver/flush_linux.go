package approver

import "golang.org/x/sys/unix"

// flushInput drops what a terminal holds and nobody has read.
func flushInput(fd int) {
	_ = unix.IoctlSetInt(fd, unix.TCFLSH, unix.TCIFLUSH) // at worst something typed earlier is an answer that can be seen
}
