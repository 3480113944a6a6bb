// Package jsonl writes the event stream itself: one JSON object per line, one
// write per line.
//
// It is the format for programs, and what drover prints when stdout is no
// terminal. It holds nothing back: a line is written before the next event is
// taken, so a reader sees each event at once and a killed process leaves whole
// lines behind. It decides nothing; levels and masking are the log's business.
package jsonl

import (
	"fmt"
	"io"

	"drover/output/event"
)

// New returns a sink that writes each event to w as one line. An error of w,
// such as a closed pipe or a full disk, is returned wrapped by Emit. Close
// closes nothing: w belongs to the caller.
func New(w io.Writer) event.Sink { return &sink{w: w} }

type sink struct {
	w   io.Writer
	buf []byte
}

// keptBuffer is the largest buffer that is kept for the next line.
const keptBuffer = 128 << 10

// Emit writes one line with one call of Write.
func (s *sink) Emit(e event.Event) error {
	line, err := event.AppendJSON(s.buf[:0], e)
	if err != nil {
		return err
	}
	line = append(line, '\n')
	if cap(line) <= keptBuffer {
		s.buf = line
	}
	n, err := s.w.Write(line)
	if err == nil && n < len(line) {
		err = io.ErrShortWrite
	}
	if err != nil {
		return fmt.Errorf("write %s event: %w", e.Body.Type(), err)
	}
	return nil
}

// Close does nothing: every line has been written.
func (s *sink) Close() error { return nil }
