package proc

import (
	"errors"
	"os"
)

// ErrGone says that what starts commands, and ends them with drover, is gone.
// Nothing can be started any more, and nothing is started without it.
var ErrGone = errors.New("the helper that starts commands is gone")

// Launcher starts children somewhere else than directly below drover: in a
// sandbox, or below a helper that outlives drover long enough to clean up.
type Launcher interface {
	// Launch starts a program. It looks the program up in the PATH of the
	// environment where the child will run, since the files may differ there.
	// Errors are those of Start, or wrap ErrGone.
	Launch(Launch) (Child, error)
	// Pid is the process below which everything that was launched lives; 0 if
	// there is none. It is no kin of any command.
	Pid() int
}

// Launch is what a Launcher starts. The child leads a session of its own.
type Launch struct {
	Argv []string
	// Dir is the absolute folder in which the child starts.
	Dir string
	// Env is the whole environment, NAME=value.
	Env []string
	// Files are the standard descriptors, lent until Launch returns.
	Files [3]*os.File
	// TTY makes Files[0] the controlling terminal of the child's session.
	TTY bool
}

// Child is a process that a Launcher has started.
type Child interface {
	Pid() int
	// Wait returns when the child has ended. It is called once. An error means
	// that nobody knows how it ended, for example because its helper is gone.
	Wait() (Status, error)
}

// Status is how a process ended.
type Status struct {
	// Code is the exit code, -1 after a signal.
	Code int
	// Signal is the name of the signal that ended it, or empty.
	Signal string
}
