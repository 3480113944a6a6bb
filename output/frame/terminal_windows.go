package frame

import (
	"os"

	"golang.org/x/sys/windows"
	"golang.org/x/term"
)

// NewTerminal returns the console that f is. It fails if the console does not
// obey control sequences.
func NewTerminal(f *os.File) (Terminal, error) {
	var mode uint32
	console := windows.Handle(f.Fd())
	if err := windows.GetConsoleMode(console, &mode); err != nil {
		return nil, err
	}
	if err := windows.SetConsoleMode(console, mode|windows.ENABLE_VIRTUAL_TERMINAL_PROCESSING); err != nil {
		return nil, err
	}
	return &consoleTerminal{File: f, console: console, mode: mode}, nil
}

type consoleTerminal struct {
	*os.File
	console windows.Handle
	mode    uint32
}

func (t *consoleTerminal) Size() (Size, error) {
	w, h, err := term.GetSize(int(t.Fd()))
	return Size{Columns: w, Rows: h}, err
}

// Foreground is true: there is no job control.
func (t *consoleTerminal) Foreground() bool { return true }

// Changed is nil: the size is read at each paint.
func (t *consoleTerminal) Changed() <-chan os.Signal { return nil }

// Close gives the console its mode back.
func (t *consoleTerminal) Close() {
	_ = windows.SetConsoleMode(t.console, t.mode) // it may be gone
}

// CanDraw tells whether a console obeys control sequences.
func CanDraw(f *os.File) bool {
	t, err := NewTerminal(f)
	if err != nil {
		return false
	}
	t.Close()
	return true
}
