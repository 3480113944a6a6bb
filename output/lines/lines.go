// Package lines shows a run to a person as lines that are printed once and
// never changed.
//
// A call becomes one row when it is final, with a few rows below it where more
// must be seen; the assistant's text is printed line by line. Calls are
// printed in the order in which they started, so a call that is still running
// holds back what came after it. There are no timers and no cursor movements:
// the same events give the same bytes. Text from outside is cleaned before it
// is cut and printed.
package lines

import (
	"fmt"
	"io"
	"strings"
	"time"

	"drover/output/event"
	"drover/output/internal/term"
)

// Options say how rows look.
type Options struct {
	// Width is that of the terminal, in cells; 0 means 80.
	Width int
	// Color uses a few SGR sequences, ASCII no character outside ASCII.
	Color, ASCII bool
}

// New returns a sink that prints to w.
func New(w io.Writer, o Options) event.Sink {
	if o.Width <= 0 {
		o.Width = 80
	}
	return &sink{w: w, board: newBoard(), paint: painter{style: newStyle(o), width: max(20, min(o.Width-2, 100))}}
}

type sink struct {
	w     io.Writer
	board *board
	paint painter
	// blank says that the last row was text, frame that it was a frame: one
	// blank line stands between the two kinds.
	last kind
	out  strings.Builder
}

type kind int

const (
	nothing kind = iota
	text
	row
)

// Emit takes an event and prints what it made final.
func (s *sink) Emit(e event.Event) error {
	s.board.take(e)
	for _, it := range s.board.ready() {
		s.print(it)
	}
	if note := s.note(e); note != "" {
		s.begin(row)
		s.out.WriteString(note)
	}
	if s.out.Len() == 0 {
		return nil
	}
	_, err := io.WriteString(s.w, s.out.String())
	s.out.Reset()
	return err
}

// Close prints what no event will finish any more: a stream that was cut still
// shows all it had.
func (s *sink) Close() error {
	for _, it := range s.board.rest() {
		s.print(it)
	}
	_, err := io.WriteString(s.w, s.out.String())
	s.out.Reset()
	return err
}

func (s *sink) print(it item) {
	if it.frame != nil {
		s.begin(row)
		s.out.WriteString(s.paint.frame(it.frame))
		return
	}
	s.begin(text)
	s.out.WriteString(term.Text(it.text))
	s.out.WriteByte('\n')
}

func (s *sink) begin(k kind) {
	if s.last != nothing && s.last != k {
		s.out.WriteByte('\n')
	}
	s.last = k
}

// note is the row of an event that belongs to no call.
func (s *sink) note(e event.Event) string {
	p := s.paint
	switch b := e.Body.(type) {
	case event.NoticeEvent:
		if b.Level == "warning" {
			return p.line(p.style.incomplete, "notice: "+b.Message)
		}
	case event.ErrorEvent:
		return p.line(p.style.failed, "error: "+b.Message)
	case event.ProviderRetryEvent:
		return p.line(p.style.incomplete, fmt.Sprintf("provider: %s, next try in %s (%d of %d)",
			b.ErrorKind, duration(time.Duration(b.DelayMS)*time.Millisecond), b.Attempt+1, b.MaxAttempts))
	case event.LimitReachedEvent:
		return p.line(p.style.incomplete, fmt.Sprintf("limit reached: %s %g of %g", b.Limit, b.Value, b.Max))
	case event.HeartbeatEvent:
		if f := s.board.still(b.ToolCallID, e.Time); f != nil {
			return p.header(p.style.running, f.name, f.preview(), "still running  "+duration(e.Time.Sub(f.started)))
		}
	case event.RunFinishedEvent:
		return p.end(b)
	}
	return ""
}
