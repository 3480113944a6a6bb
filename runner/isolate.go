package runner

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"drover/output/event"
	"drover/output/fault"
	"drover/runner/internal/tree"
)

// Isolation is the place in which a run works instead of the folder it was
// started for.
type Isolation struct {
	// Mode is none, copy or worktree.
	Mode string
	// Source is the folder the run was started for, Dir the one in which it
	// works. Both are absolute.
	Source, Dir string
	// Skipped names what the place does not have of what Source has: sockets,
	// pipes, devices and a .git that leads to another folder in a copy,
	// submodules and filtered contents (Git LFS) in a worktree.
	Skipped []string

	// place is the folder that was made; Dir is it, or lies in it.
	place string
	// admin is the folder in which git keeps a worktree's state.
	admin    string
	snapshot *tree.Snapshot
}

// Isolate makes a place to work in. Mode none is src itself. Mode copy copies
// the whole of src to dst, with everything that git would ignore. Mode worktree
// makes a git worktree of src's HEAD at dst: what is not committed is not in it;
// if src lies deeper in its repository, Dir is the same folder of the worktree.
// dst must not exist; its parent must, and must not lie in src for a copy.
// Errors are faults of class Environment, or Config for an unknown mode.
//
// Diff compares with the state right after the copy, whose contents are kept in
// a file without a name until Close. That costs once more the size of the
// folder, but the diff is true even if src changes during the run. For many
// places of one folder, an Isolator keeps the contents once.
func Isolate(ctx context.Context, mode, src, dst string) (*Isolation, error) {
	i := &Isolation{Mode: mode, Source: src, Dir: src}
	var err error
	switch mode {
	case "", "none":
		i.Mode = "none"
		return i, nil
	case "copy":
		err = i.copyFrom(ctx, src, dst)
	case "worktree":
		var r *gitRepo
		if r, err = openRepository(ctx, src); err == nil {
			err = i.addWorktree(ctx, r, dst)
		}
	default:
		return nil, unknownMode(mode)
	}
	if err == nil {
		i.snapshot, err = tree.Take(ctx, i.Dir, dst+scratchSuffix)
	}
	if err != nil {
		// The first error is the one that is told; what is left goes with the
		// session.
		_ = RemoveIsolation(context.WithoutCancel(ctx), dst)
		return nil, isolateFault(src, err)
	}
	return i, nil
}

func unknownMode(mode string) error {
	return &fault.Error{Code: "isolate", What: fmt.Sprintf("isolate %q is not known", mode),
		Fix: "use one of: none, copy, worktree", Exit: fault.Config}
}

func isolateFault(src string, err error) error {
	f := &fault.Error{}
	if errors.As(err, &f) {
		return f
	}
	return &fault.Error{Code: "isolate", What: fmt.Sprintf("folder %q cannot be isolated", src), Why: err.Error(),
		Fix: "use isolate: none, or run in a folder that can be copied", Exit: fault.Environment, Err: err}
}

// Diff returns what has changed in the place since it was made, as a patch for
// git apply and as a list. Mode none has no diff. See tree.Snapshot.Diff for
// what a patch cannot show.
func (i *Isolation) Diff() ([]byte, []event.ChangedFile, error) {
	if i.snapshot == nil {
		return nil, nil, nil
	}
	// The run is over, and with it its context; a diff must be had all the same.
	return i.snapshot.Diff(context.Background())
}

// Close frees what Diff needs. The place itself stays.
func (i *Isolation) Close() error {
	if i.snapshot == nil {
		return nil
	}
	return i.snapshot.Close()
}

// Remove takes the place away at once: its folder, what git keeps of a
// worktree, and what Diff needs. It works on whatever an agent has made of the
// place, and goes on even if ctx ends. Mode none stays as it is. No process may
// work in the place any more.
func (i *Isolation) Remove(ctx context.Context) error {
	closing := i.Close()
	if i.place == "" {
		return closing
	}
	ctx = context.WithoutCancel(ctx)
	err := removePlace(ctx, i.place, i.admin)
	return errors.Join(closing, err)
}

// copyFrom copies a folder to dst.
func (i *Isolation) copyFrom(ctx context.Context, from, dst string) error {
	src, err := filepath.EvalSymlinks(from)
	if err != nil {
		return fmt.Errorf("find folder: %w", err)
	}
	parent, err := filepath.EvalSymlinks(filepath.Dir(dst))
	if err != nil {
		return fmt.Errorf("find place of the copy: %w", err)
	}
	if rel, err := filepath.Rel(src, parent); err == nil && filepath.IsLocal(rel) {
		return &fault.Error{Code: "isolate", What: fmt.Sprintf("folder %q cannot be copied", i.Source),
			Why: "drover's state folder, where the copy would be, lies inside it",
			Fix: "set XDG_STATE_HOME to a folder outside, or run in a sub-folder", Exit: fault.Environment}
	}
	if err := i.claim(dst, isolationRecord{Mode: "copy", Source: src}); err != nil {
		return err
	}
	i.Dir = dst
	i.Skipped, err = tree.Copy(ctx, src, dst)
	return err
}

// claim writes the record of a place that does not exist yet.
func (i *Isolation) claim(dst string, r isolationRecord) error {
	if _, err := os.Lstat(dst); !errors.Is(err, fs.ErrNotExist) {
		if err == nil {
			err = &fs.PathError{Op: "isolate", Path: dst, Err: fs.ErrExist}
		}
		return fmt.Errorf("make place: %w", err)
	}
	if err := writeRecord(dst, r); err != nil {
		return err
	}
	i.place = dst
	return nil
}

// addWorktree makes a worktree of the repository at dst.
func (i *Isolation) addWorktree(ctx context.Context, r *gitRepo, dst string) error {
	if err := i.claim(dst, isolationRecord{Mode: "worktree", Source: r.top, Common: r.common}); err != nil {
		return err
	}
	var err error
	i.admin, err = r.addWorktree(ctx, dst)
	if err != nil {
		return &fault.Error{Code: "isolate", What: fmt.Sprintf("a worktree of %q cannot be made", r.top), Why: err.Error(),
			Fix: "use isolate: copy", Exit: fault.Environment, Err: err}
	}
	i.Skipped = r.lacking(ctx, dst)
	i.Dir = filepath.Join(dst, filepath.FromSlash(r.prefix))
	if _, err := os.Stat(i.Dir); err != nil {
		return fmt.Errorf("find folder in the last commit: %w", err)
	}
	return nil
}
