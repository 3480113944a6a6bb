// Package tree copies a folder and tells later what has changed in it.
//
// Copy makes a copy of a whole tree. Take remembers the state of a tree in a
// Snapshot, Snapshot.At makes the same snapshot for another copy of the tree
// without reading it, and Snapshot.Diff gives everything that has changed since
// as a patch that git apply takes, and as a list. A snapshot keeps the content
// of what it saw, so that its diff is true whatever happens to the folder that
// was copied. All follow no symbolic link and open nothing but plain files. What
// git cannot say is not in a diff: empty folders, times, owners, and modes
// besides the executable bit. Whatever is named .git is left out of snapshots.
package tree

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
)

const (
	// copiers is how many files are copied at the same time.
	copiers = 8
	// chunk is how much of a file is copied between two looks at the context.
	chunk = 64 << 20
	// maxProblems ends a copy: more errors of this kind tell nothing new.
	maxProblems = 5
	// maxSkipped bounds the list of what was not copied.
	maxSkipped = 100

	allModes = fs.ModePerm | fs.ModeSetuid | fs.ModeSetgid | fs.ModeSticky
)

// Copy copies the folder src to dst, which must not exist: files, folders and
// symbolic links as they are, with modes and, but for links, times of change.
// Hard links become files of their own. Files that are neither of these are
// skipped, and so is a .git that is no folder and leads out of src, because
// git would then work on the original; skipped lists them, the first hundred.
// A file that vanishes meanwhile is left out.
func Copy(ctx context.Context, src, dst string) (skipped []string, err error) {
	c := &copier{src: src, dst: dst}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(copiers)
	walking := filepath.WalkDir(src, func(path string, d fs.DirEntry, err error) error {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			return c.problem(path, err)
		}
		return c.visit(ctx, group, path, d)
	})
	copying := group.Wait()
	if err := errors.Join(walking, copying); err != nil && len(c.problems) == 0 {
		return nil, err
	}
	if err := c.finish(); err != nil {
		return nil, err
	}
	return c.skipped, nil
}

// copier is the state of one copy.
type copier struct {
	src, dst string
	// dirs get their modes and times at the end, when nothing is written into
	// them any more.
	dirs []dirEntry

	mu       sync.Mutex
	skipped  []string
	problems []error
}

type dirEntry struct {
	path string
	info fs.FileInfo
}

// visit copies one entry, files in the background.
func (c *copier) visit(ctx context.Context, group *errgroup.Group, path string, d fs.DirEntry) error {
	rel, err := filepath.Rel(c.src, path)
	if err != nil {
		return err
	}
	to := filepath.Join(c.dst, rel)
	info, err := d.Info()
	if err != nil {
		return c.problem(path, err)
	}
	switch {
	case d.Name() == ".git" && !d.IsDir() && leadsOut(c.src, path):
		c.skip(rel)
	case d.IsDir():
		if err := os.Mkdir(to, 0o700); err != nil {
			return fmt.Errorf("copy folder: %w", err)
		}
		c.dirs = append(c.dirs, dirEntry{to, info})
	case info.Mode().IsRegular():
		group.Go(func() error { return c.problem(path, copyFile(ctx, path, to, info)) })
	case info.Mode()&fs.ModeSymlink != 0:
		return c.problem(path, copyLink(path, to))
	default:
		c.skip(rel)
	}
	return nil
}

// leadsOut tells whether a .git that is a link or a file with a path leads out
// of the tree.
func leadsOut(src, path string) bool {
	target, err := filepath.EvalSymlinks(path)
	if err != nil {
		return true
	}
	if data, err := readSmall(target); err == nil {
		line, ok := strings.CutPrefix(strings.TrimSpace(string(data)), "gitdir:")
		if !ok {
			return false
		}
		line = strings.TrimSpace(line)
		if filepath.IsAbs(line) {
			return true // also inside src: the copy would refer to the original
		}
		target = filepath.Join(filepath.Dir(target), line)
	}
	rel, err := filepath.Rel(src, target)
	return err != nil || !filepath.IsLocal(rel)
}

// readSmall reads a plain file of at most 4 KiB.
func readSmall(path string) ([]byte, error) {
	f, err := openPlain(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, 4<<10))
}

func (c *copier) skip(rel string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.skipped) < maxSkipped {
		c.skipped = append(c.skipped, filepath.ToSlash(rel))
	}
}

// problem notes what cannot be copied, and ends the copy when it is too much.
func (c *copier) problem(path string, err error) error {
	if err == nil || errors.Is(err, fs.ErrNotExist) && path != c.src {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.problems = append(c.problems, err)
	if len(c.problems) >= maxProblems {
		return errors.New("too many errors")
	}
	return nil
}

// finish gives the folders their modes, inner ones first.
func (c *copier) finish() error {
	if len(c.problems) > 0 {
		return fmt.Errorf("copy files: %w", errors.Join(c.problems...))
	}
	for i := len(c.dirs) - 1; i >= 0; i-- {
		if err := stamp(c.dirs[i].path, c.dirs[i].info); err != nil {
			return err
		}
	}
	return nil
}

// copyFile copies one file. On file systems that can, the copy shares its
// blocks with the original until one of them changes: io.CopyN hands the work
// to the kernel.
func copyFile(ctx context.Context, from, to string, info fs.FileInfo) (err error) {
	in, err := openPlain(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("copy file: %w", err)
	}
	defer func() {
		if closing := out.Close(); err == nil && closing != nil {
			err = fmt.Errorf("copy file: %w", closing)
		}
		if err == nil {
			err = stamp(to, info)
		}
	}()
	for {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		_, err := io.CopyN(out, in, chunk)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("copy file: %w", err)
		}
	}
}

func copyLink(from, to string) error {
	target, err := os.Readlink(from)
	if err != nil {
		return fmt.Errorf("copy link: %w", err)
	}
	if err := os.Symlink(target, to); err != nil {
		return fmt.Errorf("copy link: %w", err)
	}
	return nil
}

// stamp gives a copy the mode and time of its original.
func stamp(path string, info fs.FileInfo) error {
	if err := os.Chtimes(path, time.Time{}, info.ModTime()); err != nil {
		return fmt.Errorf("copy time: %w", err)
	}
	if err := os.Chmod(path, info.Mode()&allModes); err != nil {
		return fmt.Errorf("copy mode: %w", err)
	}
	return nil
}
