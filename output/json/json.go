// Package json prints the last event of a run and nothing else, as one line:
// one object for programs that do not want a stream.
package json

import (
	"io"

	"drover/output/event"
)

// New returns a sink that writes run.finished to w.
func New(w io.Writer) event.Sink { return &sink{w: w} }

type sink struct{ w io.Writer }

func (s *sink) Emit(e event.Event) error {
	end, ok := e.Body.(event.RunFinishedEvent)
	if !ok {
		return nil
	}
	end.Lines = 1
	e.Body = end
	line, err := event.AppendJSON(nil, e)
	if err != nil {
		return err
	}
	_, err = s.w.Write(append(line, '\n'))
	return err
}

func (s *sink) Close() error { return nil }
