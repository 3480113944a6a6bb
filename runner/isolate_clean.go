package runner

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"drover/runner/internal/tree"
	"drover/runner/textfile"
)

const (
	// recordSuffix is added to the folder's name for a file beside it that says
	// what must be done to remove it. It lies beside the folder because an agent
	// can change everything inside. It is written before the folder and removed
	// after it.
	recordSuffix = ".json"
	// newSuffix is added to the name of a record that is being written.
	newSuffix = ".new"
	// scratchSuffix is added to the folder's name for the file of a snapshot.
	scratchSuffix = ".base"
	// maxRecord bounds a record in bytes.
	maxRecord = 64 << 10
	// removeTries is how often a folder is removed that fills up again, and
	// removePause the time before the second try; it doubles.
	removeTries = 5
	removePause = 20 * time.Millisecond
)

// isolationRecord is the content of the file beside a place.
type isolationRecord struct {
	Mode   string `json:"mode"`
	Source string `json:"source"`
	// Common is the folder in which git keeps everything of a worktree's
	// repository.
	Common string `json:"common,omitempty"`
}

func writeRecord(dst string, r isolationRecord) error {
	data, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("encode isolation record: %w", err)
	}
	// By rename, so that a record is whole or not there.
	if err := os.WriteFile(dst+recordSuffix+newSuffix, data, 0o600); err != nil {
		return fmt.Errorf("write isolation record: %w", err)
	}
	if err := os.Rename(dst+recordSuffix+newSuffix, dst+recordSuffix); err != nil {
		return fmt.Errorf("write isolation record: %w", err)
	}
	return nil
}

// readRecord reads the record beside dst; its mode is empty if there is none.
func readRecord(dst string) (r isolationRecord, err error) {
	data, err := textfile.Plain(dst+recordSuffix, maxRecord)
	if errors.Is(err, fs.ErrNotExist) {
		return isolationRecord{}, nil
	}
	if err == nil {
		err = json.Unmarshal(data, &r)
	}
	if err != nil {
		return isolationRecord{}, fmt.Errorf("read isolation record: %w", err)
	}
	return r, nil
}

// RemoveIsolation undoes what Isolate did at dst outside of it: a worktree is
// taken out of its repository. The folder of a copy stays, for whoever removes
// the session. Where there was no isolation it does nothing.
func RemoveIsolation(ctx context.Context, dst string) error {
	r, err := readRecord(dst)
	if err != nil || r.Mode != "worktree" {
		return err
	}
	return removeWorktree(ctx, dst, r)
}

// removeWorktree removes the folder of a worktree and then what its repository
// has about it. The folder's own .git is not asked for the repository: an agent
// may have changed it.
func removeWorktree(ctx context.Context, dst string, r isolationRecord) error {
	if err := removeFolder(ctx, dst); err != nil {
		return fmt.Errorf("remove worktree: %w", err)
	}
	if r.Common == "" {
		repo, err := openRepository(ctx, r.Source)
		if err != nil {
			if _, gone := os.Stat(r.Source); errors.Is(gone, fs.ErrNotExist) {
				return nil // the repository is gone, and its list of worktrees with it
			}
			return fmt.Errorf("remove worktree: %w", err)
		}
		r.Common = repo.common
	}
	return dropAdmin(r.Common, dst)
}

// removeFolder removes a folder into which a git may write for a moment still
// whose drover was killed.
func removeFolder(ctx context.Context, dst string) error {
	pause := removePause
	for try := 1; ; try++ {
		err := tree.Remove(dst)
		if err == nil || try == removeTries {
			return err
		}
		if wait(ctx, pause) != nil {
			return err
		}
		pause *= 2
	}
}

// dropAdmin removes what the repository keeps of the worktree at dst, and never
// anything of another one. It does by hand what git worktree remove does: that
// looks into the worktree, and git worktree prune removes those of other people
// that happen not to be mounted.
func dropAdmin(common, dst string) error {
	worktrees := filepath.Join(common, "worktrees")
	entries, err := os.ReadDir(worktrees)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read worktrees: %w", err)
	}
	want := filepath.Join(realFolder(dst), filepath.Base(dst), ".git")
	for _, e := range entries {
		admin := filepath.Join(worktrees, e.Name())
		if !e.IsDir() || !belongs(admin, want) && !halfMade(admin, dst) {
			continue
		}
		if err := tree.Remove(admin); err != nil {
			return fmt.Errorf("remove worktree: %w", err)
		}
	}
	return nil
}

// realFolder is the folder of a path without links, as git writes it.
func realFolder(path string) string {
	dir := filepath.Dir(path)
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		return real
	}
	return dir
}

// belongs tells whether git's state of a worktree is of the one whose .git is
// the path.
func belongs(admin, path string) bool {
	data, err := textfile.Plain(filepath.Join(admin, "gitdir"), maxRecord)
	return err == nil && within(admin, strings.TrimSuffix(string(data), "\n")) == path
}

// halfMade tells whether a folder is what a git that was killed has left of the
// worktree at dst: it has dst's name and no worktree yet, and is younger than
// dst's record.
func halfMade(admin, dst string) bool {
	number, ok := strings.CutPrefix(filepath.Base(admin), filepath.Base(dst))
	if !ok || strings.Trim(number, "0123456789") != "" {
		return false
	}
	if data, err := textfile.Plain(filepath.Join(admin, "gitdir"), maxRecord); err == nil && len(data) > 0 || err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false
	}
	made, errMade := os.Stat(admin)
	record, errRecord := os.Stat(dst + recordSuffix)
	// Between the steps of the clock that stamps files, both have one time.
	return errMade == nil && errRecord == nil && !made.ModTime().Before(record.ModTime().Add(-time.Second))
}

// removePlace removes a place with all that belongs to it, the record last, so
// that what fails half-way can be found again. admin is what is known of git's
// state, or empty.
func removePlace(ctx context.Context, dst, admin string) error {
	r, err := readRecord(dst)
	if err != nil {
		return err
	}
	if admin != "" && belongs(admin, filepath.Join(realFolder(dst), filepath.Base(dst), ".git")) {
		// Nothing has to be looked for.
		err = errors.Join(removeFolder(ctx, dst), tree.Remove(admin))
	} else if r.Mode == "worktree" {
		err = removeWorktree(ctx, dst, r)
	} else {
		err = removeFolder(ctx, dst)
	}
	if err != nil {
		return fmt.Errorf("remove place: %w", err)
	}
	for _, suffix := range []string{scratchSuffix, recordSuffix + newSuffix, recordSuffix} {
		if err := os.Remove(dst + suffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("remove place: %w", err)
		}
	}
	return nil
}

// CleanIsolated removes every place that a process which was killed has left
// directly below dir: copies, worktrees, and what their repositories keep of
// them. source is a folder of the repository, for worktrees of which nothing is
// left below dir; "" if there is none. Whatever has no record of a place beside
// it stays, and so does every other worktree. It goes on after an error and
// returns them all. A dir that is not there is clean. No other process may make
// places in dir meanwhile.
func CleanIsolated(ctx context.Context, source, dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("clean places: %w", err)
	}
	var failed []error
	for _, e := range entries {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if name, ok := strings.CutSuffix(e.Name(), recordSuffix+newSuffix); ok && e.Type().IsRegular() && name != "" {
			failed = append(failed, os.Remove(filepath.Join(dir, e.Name())))
		}
		name, ok := strings.CutSuffix(e.Name(), recordSuffix)
		if !ok || name == "" || !e.Type().IsRegular() {
			continue
		}
		dst := filepath.Join(dir, name)
		// What is no record is somebody else's.
		if r, err := readRecord(dst); err == nil && r.Source != "" && (r.Mode == "copy" || r.Mode == "worktree") {
			failed = append(failed, removePlace(ctx, dst, ""))
		}
	}
	if source != "" {
		failed = append(failed, dropLost(ctx, source, dir))
	}
	return errors.Join(failed...)
}

// dropLost removes what the repository of source keeps of worktrees that lay
// directly below dir and are gone.
func dropLost(ctx context.Context, source, dir string) error {
	common, err := git(ctx, source, "rev-parse", "--git-common-dir")
	if err != nil {
		return nil // there is no repository, or no git, and so no worktree
	}
	worktrees := filepath.Join(within(source, common), "worktrees")
	entries, err := os.ReadDir(worktrees)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read worktrees: %w", err)
	}
	real := filepath.Join(realFolder(dir), filepath.Base(dir))
	for _, e := range entries {
		admin := filepath.Join(worktrees, e.Name())
		data, err := textfile.Plain(filepath.Join(admin, "gitdir"), maxRecord)
		if err != nil {
			continue // not ours to judge
		}
		place := filepath.Dir(within(admin, strings.TrimSuffix(string(data), "\n")))
		if _, err := os.Lstat(place); filepath.Dir(place) != real || !errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err := tree.Remove(admin); err != nil {
			return fmt.Errorf("remove worktree: %w", err)
		}
	}
	return nil
}
