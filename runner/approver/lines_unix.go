//go:build unix

package approver

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// terminalLines reads lines from a terminal, without a reader that would take
// what is typed when nobody asks.
type terminalLines struct {
	file *os.File
	rest []byte
}

// Lines reads what a person types at a terminal.
func Lines(terminal *os.File) LineReader { return &terminalLines{file: terminal} }

// Discard forgets what was typed so far.
func (l *terminalLines) Discard() {
	l.rest = nil
	flushInput(int(l.file.Fd()))
}

// pollEvery is how often, in milliseconds, the wait for a line looks for the end
// of its context.
const pollEvery = 100

// maxTyped is how long a typed line may be.
const maxTyped = 4 << 10

// ReadLine waits for a line.
func (l *terminalLines) ReadLine(ctx context.Context) (string, error) {
	fd := int(l.file.Fd())
	for {
		if i := bytes.IndexByte(l.rest, '\n'); i >= 0 {
			line := string(bytes.TrimRight(l.rest[:i], "\r"))
			l.rest = l.rest[i+1:]
			return line, nil
		}
		if len(l.rest) > maxTyped {
			return "", errors.New("the line is too long")
		}
		if ctx.Err() != nil {
			return "", context.Cause(ctx)
		}
		// Reading in the background would stop the process.
		if group, err := unix.IoctlGetInt(fd, unix.TIOCGPGRP); err == nil && group > 0 && group != unix.Getpgrp() {
			return "", errors.New("drover does not run in the foreground")
		}
		ready := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
		n, err := unix.Poll(ready, pollEvery)
		switch {
		case errors.Is(err, unix.EINTR), err == nil && n == 0:
			continue
		case err != nil:
			return "", err
		}
		buf := make([]byte, 1024)
		n, err = unix.Read(fd, buf)
		switch {
		case errors.Is(err, unix.EINTR), errors.Is(err, unix.EAGAIN):
			continue
		case err != nil:
			return "", err
		case n <= 0:
			return "", io.EOF
		}
		l.rest = append(l.rest, buf[:n]...)
	}
}
