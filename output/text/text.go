// Package text prints the final answer of a run and nothing else: the contract
// that shells know. A run without an answer prints nothing.
package text

import (
	"io"
	"strings"

	"drover/output/event"
)

// New returns a sink that writes to w when the run ends.
func New(w io.Writer) event.Sink { return &sink{w: w} }

type sink struct{ w io.Writer }

func (s *sink) Emit(e event.Event) error {
	end, ok := e.Body.(event.RunFinishedEvent)
	if !ok || end.Message == "" {
		return nil
	}
	text := end.Message
	if !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	_, err := io.WriteString(s.w, text)
	return err
}

func (s *sink) Close() error { return nil }
