package session

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"drover/output/fault"
	"drover/runner/internal/tree"
)

// Remove deletes a session with everything in its folder. clean, if it is not
// nil, runs before with the folder, while the session is locked; its error
// stops the removal. Remove refuses a session that somebody writes to. The
// errors are faults of class Session or Environment, or clean's own.
func Remove(state, id string, clean func(dir string) error) error {
	if err := checkID(id); err != nil {
		return err
	}
	dir := Dir(state, id)
	if info, err := os.Lstat(dir); errors.Is(err, fs.ErrNotExist) || err == nil && !info.IsDir() {
		return notFound(id)
	} else if err != nil {
		return stateError(id, err)
	}
	f, err := os.OpenFile(filepath.Join(dir, logName), os.O_RDWR, 0)
	switch {
	case err == nil:
		defer f.Close()
		if err := lock(f); errors.Is(err, errLocked) {
			return lockedError(id)
		} else if err != nil {
			return stateError(id, fmt.Errorf("lock session log: %w", err))
		}
	case !errors.Is(err, fs.ErrNotExist):
		return stateError(id, err)
	}
	if clean != nil {
		if err := clean(dir); err != nil {
			return err
		}
	}
	if err := tree.Remove(dir); err != nil {
		return &fault.Error{Code: "session_remove", What: fmt.Sprintf("session %q cannot be removed", id), Why: err.Error(),
			Exit: fault.Environment, Err: err}
	}
	return nil
}
