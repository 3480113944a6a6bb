package store

import (
	"errors"
	"os"
	"time"
)

// errLocked says that another process has the lock.
var errLocked = errors.New("the lock is held by another process")

const (
	lockTries = 5
	lockPause = 20 * time.Millisecond
)

// takeLock takes the lock that is the file at path. It ends with the file, also
// when the process is killed.
func takeLock(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	for try := 1; ; try++ {
		err := tryLock(f)
		if err == nil {
			return f, nil
		}
		if !errors.Is(err, errLocked) || try == lockTries {
			_ = f.Close() // nothing was written
			return nil, err
		}
		time.Sleep(lockPause) // whoever only looks holds it for a moment
	}
}

// Locked tells whether a process runs the job in the folder.
func Locked(dir string) bool {
	f, err := os.OpenFile(lockPath(dir), os.O_RDWR, 0)
	if err != nil {
		return false
	}
	defer f.Close()
	return errors.Is(tryLock(f), errLocked)
}

// LockFile takes the lock that is the file at path, and tells whether nobody
// else had it. Closing the file gives it back.
func LockFile(path string) (f *os.File, free bool, err error) {
	f, err = takeLock(path)
	if errors.Is(err, errLocked) {
		return nil, false, nil
	}
	return f, err == nil, err
}
