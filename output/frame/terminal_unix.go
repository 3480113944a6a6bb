//go:build unix

package frame

import (
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"
)

// NewTerminal returns the terminal that f is. Its modes are never changed.
func NewTerminal(f *os.File) (Terminal, error) {
	t := &fileTerminal{File: f, changed: make(chan os.Signal, 1)}
	signal.Notify(t.changed, syscall.SIGWINCH)
	return t, nil
}

type fileTerminal struct {
	*os.File
	changed chan os.Signal
}

func (t *fileTerminal) Size() (Size, error) {
	w, err := unix.IoctlGetWinsize(int(t.Fd()), unix.TIOCGWINSZ)
	if err != nil {
		return Size{}, err
	}
	return Size{Columns: int(w.Col), Rows: int(w.Row)}, nil
}

// Foreground is true where there is no job control to ask.
func (t *fileTerminal) Foreground() bool {
	group, err := unix.IoctlGetInt(int(t.Fd()), unix.TIOCGPGRP)
	return err != nil || group <= 0 || group == unix.Getpgrp()
}

func (t *fileTerminal) Changed() <-chan os.Signal { return t.changed }

// Close hides that of the file, which is not ours to close.
func (t *fileTerminal) Close() { signal.Stop(t.changed) }

// CanDraw tells whether a terminal obeys control sequences.
func CanDraw(*os.File) bool { return true }
