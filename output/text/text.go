// Package text prints the final answer of a run and nothing else: the contract
// that shells know. A run without an answer prints nothing.
package text

import (
	"fmt"
	"io"
	"strings"

	"drover/output/event"
)

// New returns a sink that writes to w when the run ends. clean is applied to
// the answer first; nil leaves it as the model wrote it, which is what programs
// want and a terminal must not get. An error of w is returned wrapped.
func New(w io.Writer, clean func(string) string) event.Sink { return &sink{w: w, clean: clean} }

type sink struct {
	w     io.Writer
	clean func(string) string
}

// Emit waits for the last event.
func (s *sink) Emit(e event.Event) error {
	end, ok := e.Body.(event.RunFinishedEvent)
	if !ok || end.Message == "" {
		return nil
	}
	text := end.Message
	if s.clean != nil {
		text = s.clean(text)
	}
	if !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	if _, err := io.WriteString(s.w, text); err != nil {
		return fmt.Errorf("write answer: %w", err)
	}
	return nil
}

// Close does nothing: a run that never ended has no answer.
func (s *sink) Close() error { return nil }
