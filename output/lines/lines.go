// Package lines shows a run to a person as lines that are printed once and
// never changed.
//
// A call becomes one row when it is final, with a few rows below it where more
// must be seen; the assistant's text is printed line by line. Calls are
// printed in the order in which they began, so a call that is still running
// holds back what came after it. What is final, and how it looks, is decided in
// output/internal/board; this package only prints. There are no timers and no
// cursor movements: the same events give the same bytes.
package lines

import (
	"fmt"
	"io"
	"strings"

	"drover/output/event"
	"drover/output/internal/board"
)

// Options say how rows look.
type Options struct {
	// Width is that of the terminal, in cells; 0 means 80.
	Width int
	// Color uses a few SGR sequences, ASCII no character outside ASCII.
	Color, ASCII bool
	// Show adds what is not shown by default.
	Show board.Show
}

// New returns a sink that prints to w. An error of w is returned wrapped.
func New(w io.Writer, o Options) event.Sink {
	if o.Width <= 0 {
		o.Width = 80
	}
	return &sink{w: w, board: board.New(o.Show), rows: board.Transcript{
		Painter: board.Painter{Style: board.NewStyle(o.Color, o.ASCII), Columns: o.Width},
	}}
}

type sink struct {
	w     io.Writer
	board *board.Board
	rows  board.Transcript
	out   strings.Builder
}

// Emit takes an event and prints what it made final.
func (s *sink) Emit(e event.Event) error {
	s.board.Take(e)
	s.print(s.rows.Rows(s.board.Ready()))
	for _, f := range s.board.Minutes(e.Time) {
		s.print(s.rows.Still(f, e.Time))
	}
	for _, j := range s.board.Progress(e.Time) {
		s.print(s.rows.StillJob(j, e.Time))
	}
	return s.flush()
}

// Close prints what no event will finish any more: a stream that was cut still
// shows all it had.
func (s *sink) Close() error {
	s.board.End()
	s.print(s.rows.Rows(s.board.Ready()))
	return s.flush()
}

func (s *sink) print(rows []string) {
	for _, r := range rows {
		s.out.WriteString(r)
		s.out.WriteByte('\n')
	}
}

func (s *sink) flush() error {
	if s.out.Len() == 0 {
		return nil
	}
	_, err := io.WriteString(s.w, s.out.String())
	s.out.Reset()
	if err != nil {
		return fmt.Errorf("write lines: %w", err)
	}
	return nil
}
