package output

import (
	"errors"
	"fmt"
	"os"
	"syscall"

	"golang.org/x/term"

	"drover/output/event"
	"drover/output/fault"
)

// OpenFile opens a format that writes to a file of its own, which is replaced
// and readable by its owner only. A pipe or a device is written to as it is; a
// pipe must have a reader, and the sink is guarded: see Guard.
// Standard output belongs to --format, so "-" is refused. An unknown format or
// a file that cannot be created is a fault of class Usage; what goes wrong
// later, such as a full disk, is returned by the sink.
func OpenFile(name, path string, o Options) (event.Sink, event.Level, error) {
	if _, err := find(name); err != nil {
		return nil, 0, err
	}
	if f, err := os.Stat(path); name == "frames" && (err != nil || f.Mode()&os.ModeCharDevice == 0) {
		return nil, 0, noTerminal() // before the file is emptied
	}
	if path == "-" {
		return nil, 0, &fault.Error{
			Code: "output_taken", What: fmt.Sprintf("%s cannot go to standard output as well", name),
			Why: "standard output carries one format", Fix: "choose it with --format " + name, Exit: fault.Usage,
		}
	}
	f, err := Create(path, 0o600)
	if err != nil {
		return nil, 0, &fault.Error{
			Code: "output_unwritable", What: fmt.Sprintf("output file %q cannot be written", path), Why: reason(err),
			Fix: "name a file in a folder that exists and may be written", Exit: fault.Usage, Err: err,
		}
	}
	sink, level, err := Open(name, f, o)
	if err != nil {
		return nil, 0, errors.Join(err, f.Close())
	}
	return Guard(&fileSink{Sink: sink, file: f}, f), level, nil
}

// Create opens a file for writing and empties it. With a mode of 0600 it is for
// its owner only, also when it was there before and whatever the umask. A pipe
// that nobody reads is an error and not a wait.
func Create(path string, mode os.FileMode) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC|syscall.O_NONBLOCK, mode)
	if errors.Is(err, syscall.ENXIO) {
		return nil, errors.New("it is a pipe that nobody reads, or a device that is not there")
	}
	if err != nil {
		return nil, err
	}
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() || mode != 0o600 {
		return f, nil // a pipe or device keeps its mode
	}
	if err := f.Chmod(0o600); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// reason is an error without the path that is named beside it.
func reason(err error) string {
	var pathErr *os.PathError
	if errors.As(err, &pathErr) {
		return pathErr.Err.Error()
	}
	return err.Error()
}

// fileSink closes its file after its format.
type fileSink struct {
	event.Sink
	file *os.File
}

// Close closes the format, which may still write, and then the file.
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
