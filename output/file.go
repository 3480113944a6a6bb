package output

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/term"

	"drover/output/event"
	"drover/output/fault"
)

// OpenFile opens a format that writes to a file of its own, which is replaced
// and readable by its owner only. An unknown format or a file that cannot be
// created is a fault of class Usage.
func OpenFile(name, path string, o Options) (event.Sink, event.Level, error) {
	if _, _, err := Open(name, nil, o); err != nil {
		return nil, 0, err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		reason := err
		var pathErr *os.PathError
		if errors.As(err, &pathErr) {
			reason = pathErr.Err
		}
		return nil, 0, &fault.Error{
			Code: "output_unwritable", What: fmt.Sprintf("output file %q cannot be written", path), Why: reason.Error(),
			Fix: "name a file in a folder that exists and may be written", Exit: fault.Usage, Err: err,
		}
	}
	sink, level, err := Open(name, f, o)
	return &fileSink{Sink: sink, file: f}, level, err
}

// fileSink closes its file after its format.
type fileSink struct {
	event.Sink
	file *os.File
}

func (s *fileSink) Close() error { return errors.Join(s.Sink.Close(), s.file.Close()) }

// Width is the width of the terminal f in cells, 0 if it is none or does not
// say.
func Width(f *os.File) int {
	if !IsTerminal(f) {
		return 0
	}
	w, _, err := term.GetSize(int(f.Fd()))
	if err != nil {
		return 0
	}
	return w
}
