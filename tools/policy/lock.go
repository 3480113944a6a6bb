package policy

import (
	"errors"
	"os"
	"time"
)

// errHeld says that somebody else has the lock.
var errHeld = errors.New("another process writes it")

// A writer holds the lock for as long as one small file takes; one that holds
// it for much longer is stuck, and must not stop a run.
const (
	lockTries = 250
	lockPause = 20 * time.Millisecond
)

// lockFile takes the lock of a file that stays where it is, and returns what
// gives it back. The lock ends with the process, too.
func lockFile(path string) (unlock func(), err error) {
	f, err := openLock(path)
	if err != nil {
		return nil, err
	}
	for try := 1; ; try++ {
		err := tryLock(f)
		if err == nil {
			// Nothing was written that closing could lose.
			return func() { _ = f.Close() }, nil
		}
		if !errors.Is(err, errHeld) || try == lockTries {
			return nil, errors.Join(err, f.Close())
		}
		time.Sleep(lockPause)
	}
}

// openLock opens the file of a lock, and is told of a link.
func openLock(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_RDWR|os.O_CREATE|noFollow, 0o600)
}
