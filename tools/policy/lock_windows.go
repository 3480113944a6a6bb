package policy

import (
	"errors"
	"os"

	"golang.org/x/sys/windows"
)

// noFollow has no meaning on Windows, where making a link takes a right.
const noFollow = 0

func tryLock(f *os.File) error {
	var at windows.Overlapped
	flags := uint32(windows.LOCKFILE_EXCLUSIVE_LOCK | windows.LOCKFILE_FAIL_IMMEDIATELY)
	err := windows.LockFileEx(windows.Handle(f.Fd()), flags, 0, 1, 0, &at)
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) || errors.Is(err, windows.ERROR_IO_PENDING) {
		return errHeld
	}
	return err
}

// syncFolder has nothing to do: Windows writes renames through.
func syncFolder(string) error { return nil }
