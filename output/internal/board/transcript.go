package board

import "time"

// Transcript lays out what becomes final as the rows that stay. Every format
// that prints them says the same.
type Transcript struct {
	Painter Painter
	// last says what the last row was: a block of text by its number, a row of
	// anything else, or nothing yet. One blank row stands between them.
	last int
}

// What Transcript.last is beside the number of a block, which is from 1.
const (
	nothing = 0
	row     = -1
)

// Rows returns the rows of items, without line ends.
func (t *Transcript) Rows(items []Item) []string {
	var out []string
	for _, it := range items {
		switch {
		case it.Frame != nil:
			out = t.add(out, row, t.Painter.Frame(it.Frame)...)
		case it.Job != nil:
			out = t.add(out, row, t.Painter.Job(it.Job)...)
		case it.Note != nil:
			out = t.add(out, row, t.Painter.Note(it.Note)...)
		default:
			for _, line := range it.Text.Lines {
				out = t.add(out, it.Text.Block, t.Painter.Line(it.Text, line))
			}
		}
	}
	return out
}

// Still returns the rows for a call that has been running for another minute.
func (t *Transcript) Still(f *Frame, now time.Time) []string {
	return t.add(nil, row, t.Painter.Still(f, now))
}

// StillJob returns the rows for a job that goes on.
func (t *Transcript) StillJob(j *Job, now time.Time) []string {
	return t.add(nil, row, t.Painter.StillJob(j, now))
}

func (t *Transcript) add(out []string, kind int, rows ...string) []string {
	if t.last != nothing && t.last != kind {
		out = append(out, "")
	}
	t.last = kind
	return append(out, rows...)
}
