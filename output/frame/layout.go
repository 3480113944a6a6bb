package frame

import (
	"time"

	"drover/output/event"
	"drover/output/internal/board"
)

// scene is what is to be seen: the board, and how it is laid out. It is not for
// concurrent use.
type scene struct {
	board *board.Board
	rest  board.Transcript
}

func newScene(o Options) *scene {
	return &scene{
		board: board.New(o.Show),
		rest:  board.Transcript{Painter: board.Painter{Style: board.NewStyle(o.Color, o.ASCII)}},
	}
}

// take takes an event. It lays nothing out.
func (s *scene) take(e event.Event) { s.board.Take(e) }

// end makes everything final.
func (s *scene) end() { s.board.End() }

// commit takes off the board what is to be moved into history now, as rows
// without line ends.
func (s *scene) commit(now time.Time, size Size) []string {
	s.rest.Painter.Columns = size.Columns
	return s.rest.Rows(s.board.ReadyAt(now, s.board.Crowded(size.Rows)))
}

// rows lays out the region.
func (s *scene) rows(now time.Time, size Size) []string {
	p := s.rest.Painter
	p.Columns = size.Columns
	return p.Region(s.board, now, size.Rows)
}

// due is when, in the time of the run, something becomes final by itself; zero
// is never.
func (s *scene) due() time.Time { return s.board.Due() }

// live tells whether clocks run.
func (s *scene) live() bool { return s.board.Open() }
