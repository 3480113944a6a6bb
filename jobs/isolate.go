package jobs

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"drover/jobs/patches"
	"drover/jobs/store"
	"drover/output/event"
	"drover/output/fault"
	"drover/runner"
)

// places are the folders in which the rows of one process work, one each. They
// lie below the job's folder in the state; a lock beside them says that their
// process lives.
type places struct {
	once     sync.Once
	isolator *runner.Isolator
	err      error
	lock     *os.File
}

// isolated tells whether each row works in a place of its own.
func (c *crew) isolated() bool { return c.spec.Isolate != "" && c.spec.Isolate != "none" }

// open makes the place that all others begin like.
func (p *places) open(ctx context.Context, c *crew) error {
	p.once.Do(func() {
		dir := filepath.Join(Folder(c.opts.State, c.jobID), "rows-"+c.worker)
		if p.err = os.MkdirAll(filepath.Dir(dir), 0o700); p.err != nil {
			return
		}
		if p.lock, _, p.err = store.LockFile(dir + ".lock"); p.err != nil {
			return
		}
		p.isolator, p.err = runner.NewIsolator(ctx, c.spec.Isolate, c.opts.Base.Cwd, dir)
	})
	return p.err
}

// close takes everything away.
func (p *places) close(c *crew) {
	if p.isolator != nil {
		_ = p.isolator.Close() // the folders go now, or with the next start
	}
	if p.lock != nil {
		_ = p.lock.Close()
		removePlaces(context.Background(), c)
	}
}

// removePlaces takes away what processes that do not live any more have left.
func removePlaces(ctx context.Context, c *crew) {
	locks, _ := filepath.Glob(filepath.Join(Folder(c.opts.State, c.jobID), "rows-*.lock")) // the pattern is valid
	for _, path := range locks {
		lock, free, err := store.LockFile(path)
		if err != nil || !free {
			continue
		}
		dir := strings.TrimSuffix(path, ".lock")
		err = runner.CleanIsolated(ctx, c.opts.Base.Cwd, dir)
		if err == nil {
			err = os.RemoveAll(dir)
		}
		if err != nil {
			c.log.Emit(event.Origin{}, event.NoticeEvent{Level: "warning", Code: "place_left", Message: "folders of earlier rows could not be removed: " + err.Error()})
		} else {
			_ = os.Remove(path) // an empty file
		}
		_ = lock.Close()
	}
}

// place is where one row works.
type place struct {
	crew *crew
	row  *store.Row
	at   *runner.Isolation
	undo func()
}

// isolate gives the row a place of its own, if the job says so, and changes the
// agent's options accordingly.
func (c *crew) isolate(ctx context.Context, o *runner.Options, row *store.Row) (*place, error) {
	p := &place{crew: c, row: row}
	if !c.isolated() {
		return p, nil
	}
	if err := c.places.open(context.WithoutCancel(ctx), c); err != nil {
		return nil, err
	}
	var err error
	if p.at, err = c.places.isolator.Isolate(ctx, fmt.Sprintf("%d-%d", row.Index, o.Row.Attempt)); err != nil {
		return nil, err
	}
	if *o, p.undo, err = c.opts.Relocate(ctx, *o, p.at.Dir); err != nil {
		p.remove()
		return nil, err
	}
	return p, nil
}

// keepDiff writes what the row has changed as a patch and returns its path, ""
// for a row that has changed nothing.
func (p *place) keepDiff() (string, error) {
	if p.at == nil {
		return "", nil
	}
	if p.undo != nil {
		p.undo() // nothing changes any more
		p.undo = nil
	}
	diff, files, err := p.at.Diff()
	if err != nil {
		return "", &fault.Error{Code: "diff", What: "the diff of the row cannot be made", Why: err.Error(), Exit: fault.Environment, Err: err}
	}
	if len(files) == 0 && len(diff) == 0 {
		return "", nil
	}
	path := filepath.Join(p.crew.opts.PatchDir, patches.FileName(p.row.ItemID)+".patch")
	if err = os.MkdirAll(p.crew.opts.PatchDir, 0o755); err == nil {
		err = os.WriteFile(path, diff, 0o644)
	}
	if err != nil {
		return "", &fault.Error{Code: "patch", What: fmt.Sprintf("the patch %q cannot be written", path), Why: reason(err), Exit: fault.Environment, Err: err}
	}
	return path, nil
}

// remove takes the place away.
func (p *place) remove() {
	if p.undo != nil {
		p.undo()
	}
	if p.at == nil {
		return
	}
	if err := p.at.Remove(context.Background()); err != nil {
		p.crew.log.Emit(event.Origin{ItemID: p.row.ItemID}, event.NoticeEvent{Level: "warning", Code: "place_left", Message: "the row's folder could not be removed: " + err.Error()})
	}
}

// tellConflicts names rows whose patches cannot all be applied.
func (c *crew) tellConflicts(ctx context.Context) {
	if !c.isolated() {
		return
	}
	list, err := patches.Conflicts(c.patches(ctx))
	if err != nil {
		c.log.Emit(event.Origin{}, event.NoticeEvent{Level: "warning", Code: "conflicts_unknown", Message: "some patches could not be compared: " + err.Error()})
	}
	if len(list) == 0 {
		return
	}
	var details []any
	for _, one := range list[:min(len(list), maxConflicts)] {
		details = append(details, map[string]any{"path": one.Path, "items": one.Items, "why": one.Why})
	}
	c.log.Emit(event.Origin{}, event.NoticeEvent{Level: "warning", Code: "patch_conflicts",
		Message: fmt.Sprintf("the patches of rows cannot all be applied (conflicts: %d, the first in %s)", len(list), list[0].Path),
		Details: map[string]any{"conflicts": details}})
}

// maxConflicts is how many conflicts an event names.
const maxConflicts = 100

// patches are the diffs of the rows that are completed.
func (c *crew) patches(ctx context.Context) func(yield func(patches.Named, error) bool) {
	return func(yield func(patches.Named, error) bool) {
		for after := -1; ; {
			page, err := c.store.Page(ctx, c.jobID, after, pageSize, false, "completed")
			if err != nil {
				yield(patches.Named{}, err)
				return
			}
			for _, row := range page {
				after = row.Index
				if row.Patch == "" {
					continue
				}
				diff, err := os.ReadFile(row.Patch)
				if !yield(patches.Named{Item: row.ItemID, Diff: diff}, err) {
					return
				}
			}
			if len(page) < pageSize {
				return
			}
		}
	}
}
