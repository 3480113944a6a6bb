package session

import (
	"errors"
	"os"

	"golang.org/x/sys/windows"
)

// tryLock covers one byte far behind the end of the log, because a lock binds
// readers too on Windows.
func tryLock(f *os.File, k kind) error {
	flags := uint32(windows.LOCKFILE_FAIL_IMMEDIATELY)
	if k == exclusive {
		flags |= windows.LOCKFILE_EXCLUSIVE_LOCK
	}
	far := windows.Overlapped{OffsetHigh: 1 << 30}
	err := windows.LockFileEx(windows.Handle(f.Fd()), flags, 0, 1, 0, &far)
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) {
		return errLocked
	}
	return err
}
