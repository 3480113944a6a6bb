package tools

import (
	"drover/output/event"
)

const (
	// spillKept is how much of an output stays in memory before a file is opened
	// for it.
	spillKept = 64 << 10
	// spillCap bounds the file: a command that floods must not fill the disk.
	spillCap = 256 << 20
)

// spill keeps the whole output of a command in a file of the session, if it is
// more than the model is shown. It is not safe for concurrent use.
type spill struct {
	open func(name string) (ArtifactWriter, error)
	// shown is how many bytes need no file.
	shown int64
	kept  []byte
	file  ArtifactWriter
	// total counts the output, written what is in the file.
	total, written int64
	failed         bool
}

func newSpill(open func(string) (ArtifactWriter, error), shown int) *spill {
	return &spill{open: open, shown: int64(shown), failed: open == nil}
}

func (s *spill) write(b []byte) {
	s.total += int64(len(b))
	switch {
	case s.failed:
	case s.file == nil && len(s.kept)+len(b) <= spillKept:
		s.kept = append(s.kept, b...)
	case s.file == nil && !s.begin():
	default:
		s.append(b)
	}
}

// begin opens the file with what was kept until now.
func (s *spill) begin() bool {
	file, err := s.open("output-" + randomHex(6) + ".log")
	if err != nil {
		s.failed, s.kept = true, nil
		return false
	}
	s.file = file
	s.append(s.kept)
	s.kept = nil
	return !s.failed
}

func (s *spill) append(b []byte) {
	b = b[:min(int64(len(b)), spillCap-s.written)]
	if len(b) == 0 {
		return
	}
	if _, err := s.file.Write(b); err != nil {
		s.file.Abort()
		s.file, s.failed = nil, true
		return
	}
	s.written += int64(len(b))
}

// finish returns the file, nil if none was needed. unkept says that there is
// none although it was needed, or that it does not hold everything.
func (s *spill) finish() (artifact *event.Artifact, unkept bool) {
	defer func() { s.kept = nil }()
	if s.total <= s.shown {
		if s.file != nil {
			s.file.Abort()
		}
		return nil, false
	}
	if s.failed || s.file == nil && !s.begin() {
		return nil, true
	}
	a, err := s.file.Finish()
	if err != nil {
		return nil, true
	}
	return &a, s.written < s.total
}
