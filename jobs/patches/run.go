package patches

import (
	"crypto/sha256"
	"hash"
)

// run is a run of changed lines while it is read.
type run struct {
	start, old int
	inserted   hash.Hash
	open       bool
	// last is the sign of the last line.
	last byte
}

// runOf begins at a line that is not changed yet.
func runOf(at int) *run { return &run{start: at, old: at, inserted: sha256.New(), last: ' '} }

// take takes the lines up to at out of the file before.
func (r *run) take(at int) { r.old, r.open, r.last = at, true, '-' }

func (r *run) insert(line []byte) {
	// A hash takes everything.
	_, _ = r.inserted.Write(line)
	_, _ = r.inserted.Write([]byte{'\n'})
	r.open, r.last = true, '+'
}

// noEnd notes that the last line has no end.
func (r *run) noEnd() {
	if r.last == '+' {
		_, _ = r.inserted.Write([]byte{'\\'})
	}
}

// end adds the run to a change if there is one, and begins anew at a line.
func (r *run) end(c *change, at int) {
	if r.open {
		c.regions = append(c.regions, region{r.start, r.old, sum(r.inserted.Sum(nil)[:len(sum{})])})
		r.inserted.Reset()
	}
	r.start, r.old, r.open, r.last = at, at, false, ' '
}
