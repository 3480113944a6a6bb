package board

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"drover/output/internal/term"
)

// This file gives the rows of the region to what is not committed yet. It is
// called at each paint and not at each event.

const (
	// maxRegion is how many rows the region has at most; it is never more than a
	// third of the screen.
	maxRegion = 12
	// noStatus is the number of rows of a screen without room for the status.
	noStatus = 6
)

// Cap is how many rows the region may have on a screen of so many rows.
func Cap(rows int) int { return max(1, min(rows/3, maxRegion)) }

// hasStatus tells whether the region ends with the status of the run. A list job
// without an agent of its own says in its frame all that there is to say.
func (b *Board) hasStatus(rows int) bool {
	return b.status.Open && rows >= noStatus && (len(b.jobs) == 0 || b.status.Turn > 0)
}

// room is how many rows there are for items.
func (b *Board) room(rows int) int {
	if b.hasStatus(rows) {
		return Cap(rows) - 1
	}
	return Cap(rows)
}

// Crowded tells whether there are more items than the region has rows for.
func (b *Board) Crowded(rows int) bool {
	n := 0
	for _, l := range b.order {
		n += len(l.items)
	}
	return n > b.room(rows)
}

// slot is something that wants a place in the region. It is laid out when it has
// one: there can be thousands of them.
type slot struct {
	number int
	// text says that it is one that is being written, final that nothing more
	// will become of it.
	text, final bool
	layout      func() *part
}

// part is what is seen of a slot: a header, or the end of a text, with the rows
// that it would like to have below.
type part struct {
	header string
	tail   []string
	// want is how many rows of the tail it would like, got what it gets.
	want, got int
	// pick chooses so many rows of the tail; nil are the last ones.
	pick func(n int) []string
	// text says that the header is the last row, and the tail is above it.
	text bool
}

// Region returns the rows of what is not final yet, at most Cap(rows).
func (p Painter) Region(b *Board, now time.Time, rows int) []string {
	out := p.spread(p.slots(b, now), b.room(rows))
	if b.hasStatus(rows) {
		out = append(out, p.status(b, now))
	}
	return out
}

// slots are the items in the order in which they began.
func (p Painter) slots(b *Board, now time.Time) []slot {
	var slots []slot
	for _, l := range b.order {
		for _, it := range l.items {
			if s, ok := p.slot(it, now); ok {
				slots = append(slots, s)
			}
		}
	}
	if !b.show.Agents {
		for _, c := range b.living() {
			slots = append(slots, slot{number: c.number, layout: func() *part { return p.child(c, now) }})
		}
	}
	slices.SortStableFunc(slots, func(a, b slot) int { return a.number - b.number })
	return slots
}

// slot returns the place that an item wants, if it wants one.
func (p Painter) slot(it *entry, now time.Time) (slot, bool) {
	s := slot{number: it.number}
	switch {
	case it.frame != nil:
		s.final = it.frame.State.Final()
		s.layout = func() *part { return p.live(it.frame, now) }
		return s, !it.frame.replayed
	case it.job != nil:
		s.final = it.job.final
		s.layout = func() *part { return p.jobPart(it.job, now) }
		return s, true
	case it.note != nil:
		s.final = true
		s.layout = func() *part { return &part{header: p.Note(it.note)[0]} }
		return s, true
	}
	s.final, s.text = it.text.done, !it.text.done
	s.layout = func() *part { return p.text(it.text) }
	return s, !it.text.replayed && len(it.text.last()) > 0
}

// spread gives the rows of the region to its parts, which stay in their order:
// first a row for an open text, then a header for each, then tails, one row at a
// time.
func (p Painter) spread(slots []slot, budget int) []string {
	if budget <= 0 || len(slots) == 0 {
		return nil
	}
	shown, folded := p.fold(slots, budget)
	left := budget - len(shown)
	if folded != "" {
		left--
	}
	parts := make([]*part, len(shown))
	for i, s := range shown {
		parts[i] = s.layout()
	}
	give(parts, left)
	var out []string
	for _, it := range parts {
		switch {
		case it.text:
			out = append(append(out, it.tail[len(it.tail)-it.got:]...), it.header)
		default:
			out = append(append(out, it.header), it.rows()...)
		}
	}
	if folded != "" {
		out = append(out, folded)
	}
	return out
}

// give hands out the rows that are left, one at a time.
func give(parts []*part, left int) {
	for given := true; given && left > 0; {
		given = false
		for _, it := range parts {
			if left > 0 && !it.text && it.got < it.want {
				it.got++
				left--
				given = true
			}
		}
	}
	for _, it := range parts { // nothing else wants them
		if it.text {
			it.got = min(len(it.tail), left)
			left -= it.got
		}
	}
}

// rows are those of the tail that have a place.
func (it *part) rows() []string {
	if it.pick != nil {
		return it.pick(it.got)
	}
	return it.tail[len(it.tail)-it.got:]
}

// fold chooses the slots that get a header. What does not fit is counted in one
// row: final ones first, then those that began last.
func (p Painter) fold(slots []slot, budget int) (shown []slot, folded string) {
	if len(slots) <= budget {
		return slots, ""
	}
	keep, kept := make([]bool, len(slots)), 0
	if i := slices.IndexFunc(slots, func(s slot) bool { return s.text }); i >= 0 {
		if budget == 1 {
			return slots[i : i+1], ""
		}
		keep[i] = true
		kept++
	}
	for _, final := range []bool{false, true} {
		for i, s := range slots {
			if s.final == final && !keep[i] && kept < budget-1 {
				keep[i] = true
				kept++
			}
		}
	}
	running, done := 0, 0
	for i, s := range slots {
		switch {
		case keep[i]:
			shown = append(shown, s)
		case s.final:
			done++
		default:
			running++
		}
	}
	var words []string
	if running > 0 {
		words = append(words, fmt.Sprintf("%d running", running))
	}
	if done > 0 {
		words = append(words, fmt.Sprintf("%d done", done))
	}
	row := fmt.Sprintf("%s %d more: %s", p.Style.ellipsis, running+done, strings.Join(words, ", "))
	return shown, term.Cut(row, p.width(), p.Style.ellipsis)
}
