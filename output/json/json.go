// Package json prints the last event of a run and nothing else, as one line:
// one object for programs that do not want a stream.
package json

import (
	"fmt"
	"io"

	"drover/output/event"
)

// New returns a sink that writes run.finished to w. An error of w is returned
// wrapped.
func New(w io.Writer) event.Sink { return &sink{w: w} }

type sink struct{ w io.Writer }

// Emit waits for the last event.
func (s *sink) Emit(e event.Event) error {
	end, ok := e.Body.(event.RunFinishedEvent)
	if !ok {
		return nil
	}
	// The line is all there is, and says so.
	end.Lines = 1
	e.Body = end
	line, err := event.AppendJSON(nil, e)
	if err != nil {
		return err
	}
	if _, err := s.w.Write(append(line, '\n')); err != nil {
		return fmt.Errorf("write result: %w", err)
	}
	return nil
}

// Close does nothing: the line has been written.
func (s *sink) Close() error { return nil }
