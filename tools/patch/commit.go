package patch

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
)

// Apply writes all changes or none. When a step fails, it undoes the steps
// before it: original contents are restored, new files and folders removed. The
// error says so, and names what could not be undone. A file that changed since
// NewPlan is an error before the first write.
func (p *Plan) Apply() error {
	for i := range p.Changes {
		if err := p.recheck(&p.Changes[i]); err != nil {
			return err
		}
	}
	w := writer{files: p.files}
	for _, step := range p.steps(&w) {
		if err := step(); err != nil {
			return errors.Join(fmt.Errorf("%w; nothing was changed", err), w.rollback())
		}
	}
	return nil
}

// recheck compares the disk with what NewPlan saw.
func (p *Plan) recheck(c *Change) error {
	if c.stat != nil {
		now, err := p.files.Lstat(c.source())
		if err != nil || !unchanged(now, c.stat) {
			return fmt.Errorf("%s changed while the patch was being applied; nothing was written", c.source())
		}
	}
	if c.Kind == Added || c.Kind == Renamed {
		now, err := p.files.Lstat(c.Abs)
		if err == nil && !c.sameEntry(now) {
			return fmt.Errorf("%s appeared while the patch was being applied; nothing was written", c.Abs)
		}
	}
	return nil
}

// steps orders the work: contents first, then removals, and the removal of a
// link, which cannot be undone, last.
func (p *Plan) steps(w *writer) []func() error {
	var writes, removals, links []func() error
	for i := range p.Changes {
		c := &p.Changes[i]
		switch c.Kind {
		case Added:
			writes = append(writes, func() error { return w.create(c.Abs, c.After, 0) })
		case Modified:
			writes = append(writes, func() error { return w.replace(c.Abs, c.Before, c.After) })
		case Renamed:
			if at, err := p.files.Lstat(c.Abs); err == nil && c.sameEntry(at) {
				// One directory entry under two spellings: written first, the
				// new name would be removed with the old.
				writes = append(writes,
					func() error { return w.remove(c.OldAbs, c.Before, c.mode) },
					func() error { return w.create(c.Abs, c.After, c.mode) })
				continue
			}
			writes = append(writes, func() error { return w.create(c.Abs, c.After, c.mode) })
			removals = append(removals, func() error { return w.remove(c.OldAbs, c.Before, c.mode) })
		case Deleted:
			if c.stat.Mode().IsRegular() {
				removals = append(removals, func() error { return w.remove(c.Abs, c.Before, c.mode) })
			} else {
				links = append(links, func() error { return w.files.Remove(c.Abs) })
			}
		}
	}
	return slices.Concat(writes, removals, links)
}

// writer does single steps and remembers how to undo each.
type writer struct {
	files Files
	undo  []func() error
}

// create writes a new file and the folders above it.
func (w *writer) create(name string, data []byte, perm fs.FileMode) error {
	if err := w.parents(filepath.Dir(name)); err != nil {
		return fmt.Errorf("create folder of %s: %w", name, reason(err))
	}
	if err := w.files.WriteFile(name, data, perm); err != nil {
		return fmt.Errorf("write %s: %w", name, reason(err))
	}
	w.undo = append(w.undo, func() error { return w.files.Remove(name) })
	return nil
}

// parents creates dir. Only the folders that were missing are undone.
func (w *writer) parents(dir string) error {
	var missing []string
	for at := dir; ; at = filepath.Dir(at) {
		if _, err := w.files.Lstat(at); !errors.Is(err, fs.ErrNotExist) || at == filepath.Dir(at) {
			break
		}
		missing = append(missing, at)
	}
	if len(missing) == 0 {
		return nil
	}
	slices.Reverse(missing)
	for _, at := range missing {
		w.undo = append(w.undo, func() error {
			if err := w.files.Remove(at); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
			return nil
		})
	}
	return w.files.MkdirAll(dir)
}

func (w *writer) replace(name string, before, after []byte) error {
	if err := w.files.WriteFile(name, after, 0); err != nil {
		return fmt.Errorf("write %s: %w", name, reason(err))
	}
	w.undo = append(w.undo, func() error { return w.files.WriteFile(name, before, 0) })
	return nil
}

func (w *writer) remove(name string, before []byte, mode fs.FileMode) error {
	if err := w.files.Remove(name); err != nil {
		return fmt.Errorf("remove %s: %w", name, reason(err))
	}
	w.undo = append(w.undo, func() error { return w.files.WriteFile(name, before, mode) })
	return nil
}

// rollback undoes the steps, last first, and goes on past a failure so that as
// much as possible is restored.
func (w *writer) rollback() error {
	var errs []error
	for _, undo := range slices.Backward(w.undo) {
		if err := undo(); err != nil {
			errs = append(errs, fmt.Errorf("restore after the failure: %w", err))
		}
	}
	return errors.Join(errs...)
}
