//go:build unix

package policy

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// noFollow refuses a link in the place of a file.
const noFollow = unix.O_NOFOLLOW

func tryLock(f *os.File) error {
	for {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case errors.Is(err, unix.EWOULDBLOCK):
			return errHeld
		}
		return err
	}
}

// syncFolder makes a rename outlive a crash.
func syncFolder(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	err = f.Sync()
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOTSUP) {
		// Some file systems cannot, and need not.
		err = nil
	}
	return errors.Join(err, f.Close())
}
