package session

import (
	"errors"
	"os"
	"time"
)

// kind is how a log is locked: by its one writer, or by a list that looks
// whether there is a writer.
type kind int

const (
	exclusive kind = iota
	shared
)

// errLocked says that another process, or another Session, has the log open.
var errLocked = errors.New("the session is open elsewhere")

const (
	lockTries = 5
	lockPause = 20 * time.Millisecond
)

// lock takes the lock of the one writer, or returns errLocked. The lock ends
// with the file, also when the process is killed. It tries for a moment: a list
// that looks for writers holds the lock for as long as that takes.
func lock(f *os.File) error {
	for try := 1; ; try++ {
		err := tryLock(f, exclusive)
		if !errors.Is(err, errLocked) || try == lockTries {
			return err
		}
		time.Sleep(lockPause)
	}
}
