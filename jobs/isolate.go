package jobs

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"drover/jobs/store"
	"drover/output/event"
	"drover/output/fault"
	"drover/runner"
)

// place is where one row works.
type place struct {
	crew *crew
	row  *store.Row
	at   *runner.Isolation
	undo func()
	path string
}

// isolate gives the row a place of its own, if the job says so, and changes the
// agent's options accordingly.
func (c *crew) isolate(ctx context.Context, o *runner.Options, row *store.Row) (*place, error) {
	p := &place{crew: c, row: row}
	if c.spec.Isolate == "" || c.spec.Isolate == "none" {
		return p, nil
	}
	p.path = filepath.Join(c.places(), fmt.Sprintf("%d-%d", row.Index, row.Attempt))
	if err := os.MkdirAll(c.places(), 0o700); err != nil {
		return nil, &fault.Error{Code: "isolate", What: "the folder for isolated rows cannot be made", Why: err.Error(), Exit: fault.Environment, Err: err}
	}
	var err error
	if p.at, err = runner.Isolate(ctx, c.spec.Isolate, o.Cwd, p.path); err != nil {
		return nil, err
	}
	if *o, p.undo, err = c.opts.Relocate(ctx, *o, p.at.Dir); err != nil {
		p.remove()
		return nil, err
	}
	return p, nil
}

// places is the folder below which rows work.
func (c *crew) places() string {
	return filepath.Join(c.opts.State, "jobs", c.jobID, "rows-"+c.worker)
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
	path := filepath.Join(p.crew.opts.PatchDir, fmt.Sprintf("%d.patch", p.row.Index+1))
	if err := os.MkdirAll(p.crew.opts.PatchDir, 0o755); err != nil {
		return "", patchFault(path, err)
	}
	if err := os.WriteFile(path, diff, 0o644); err != nil {
		return "", patchFault(path, err)
	}
	return path, nil
}

func patchFault(path string, err error) error {
	return &fault.Error{Code: "patch", What: fmt.Sprintf("the patch %q cannot be written", path), Why: err.Error(), Exit: fault.Environment, Err: err}
}

// remove takes the place away.
func (p *place) remove() {
	if p.undo != nil {
		p.undo()
	}
	if p.at == nil {
		return
	}
	_ = p.at.Close() // it was only read from
	if err := runner.RemoveIsolation(context.Background(), p.path); err != nil {
		p.crew.log.Emit(event.Origin{ItemID: p.row.ItemID}, event.NoticeEvent{Level: "warning", Code: "place_left", Message: "the row's folder could not be removed: " + err.Error()})
	}
}

// removePlaces takes away what a process that was killed has left behind.
func (c *crew) removePlaces(ctx context.Context) {
	base := filepath.Join(c.opts.State, "jobs", c.jobID)
	left, _ := filepath.Glob(filepath.Join(base, "rows-*")) // the pattern is valid
	for _, dir := range left {
		entries, err := os.ReadDir(dir)
		if err != nil {
			continue
		}
		for _, entry := range entries {
			if entry.IsDir() {
				_ = runner.RemoveIsolation(ctx, filepath.Join(dir, entry.Name())) // the next start tries again
			}
		}
		_ = os.RemoveAll(dir)
	}
}
