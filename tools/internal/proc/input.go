//go:build unix

package proc

import "os"

// feeder writes the input of a command. A nil one does nothing.
type feeder struct{ w *os.File }

// openInput returns the child's end of a pipe and what writes to the other one.
func openInput() (*os.File, *feeder, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, nil, err
	}
	return r, &feeder{w}, nil
}

// start writes in the background: a command need not read what it gets, and a
// pipe holds only some of it. The write ends at the latest with close.
func (f *feeder) start(input []byte) {
	if f == nil {
		return
	}
	go func() {
		_, _ = f.w.Write(input) // a command that stops reading says so by its exit code, if it minds
		_ = f.w.Close()
	}()
}

// close ends the input, also for a descendant that still holds the other end.
func (f *feeder) close() {
	if f != nil {
		_ = f.w.Close() // the second close does nothing
	}
}
