//go:build unix

// Package proc runs the commands of tools: it starts them, collects what they
// print, ends them, and sees to it that nothing of them is left.
//
// Start runs one command as the leader of its own session and process group,
// with the null device, Spec.Input or a terminal of its own as input, an
// environment made of Spec.Env alone, and no descriptor of drover's. It is
// started by drover itself or by a Launcher. Wait returns when the command is
// over and everything it had started is gone. A background child of a finished command is therefore
// ended with it: TERM, a grace for exit traps, KILL. Sweep does the same for a
// whole run. Buffer keeps the head and the tail of an output of any size.
//
// The package knows no tools, no events and no policy, writes nothing anywhere,
// and reads only /proc. It holds one process-wide thing, the thread that starts
// children; thread.go says why.
package proc

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// Stream says which output of a command some bytes came from.
type Stream int

// The streams. With Spec.Merge everything is Stdout.
const (
	Stdout Stream = iota
	Stderr
)

// DefaultGrace is the time between TERM and KILL when Spec.Grace is 0.
const DefaultGrace = 2 * time.Second

// DefaultLinger is the wait for pipes that outlive a command when Spec.Linger
// is 0.
const DefaultLinger = 50 * time.Millisecond

// The variables that mark every descendant of a command. A process that leaves
// its session keeps its environment, so it can be found by them.
const (
	// RunIDVar holds Spec.RunID.
	RunIDVar = "DROVER_RUN_ID"
	// markVar holds a value of its own for each command.
	markVar = "DROVER_COMMAND_MARK"
)

// Spec is a command and the limits it runs under.
type Spec struct {
	// Argv is the program and its arguments. A program without a slash is
	// looked up in the PATH of Env; one with a slash is relative to Dir.
	Argv []string
	// Dir is the folder the command starts in. It must exist.
	Dir string
	// Env is the whole environment, NAME=value. Nothing of drover's own
	// environment is added.
	Env []string
	// Timeout ends the command; 0 means no limit.
	Timeout time.Duration
	// Grace is the time between TERM and KILL; 0 means DefaultGrace.
	Grace time.Duration
	// Linger is how long the output is awaited after the command has exited
	// while a descendant holds the pipe; 0 means DefaultLinger.
	Linger time.Duration
	// RunID marks all descendants, for Sweep. Empty means no mark.
	RunID string
	// Input is what the command reads from its standard input, which ends after
	// it. Nil is the null device. It is no way to talk to a command: everything
	// is known before it starts.
	Input []byte
	// TTY gives the command a terminal of its own instead of pipes, 24 rows of
	// 80 columns until Resize; everything it prints is Stdout, and Write types
	// into it. Input is not used then.
	TTY bool
	// Merge gives the command one pipe for both outputs, so that they arrive in
	// the exact order of writing. With two pipes the order between them is the
	// order of reading.
	Merge bool
	// Output gets the output as it arrives, never concurrently. It must not
	// keep the bytes. A slow Output slows the command. Nil discards.
	Output func(Stream, []byte)
	// Launcher starts the command; nil starts it directly below drover. The
	// program and the folder are then looked for where the Launcher is.
	Launcher Launcher
}

// Result is how a command ended.
type Result struct {
	// Code is the exit code, or -1 when a signal ended the command or it could
	// not be ended at all.
	Code int
	// Signal is the name of the signal that ended the command, such as
	// "SIGKILL"; empty when it exited by itself.
	Signal string
	// TimedOut says that Spec.Timeout ended the command.
	TimedOut bool
	// Canceled says that the context ended the command.
	Canceled bool
	// Lost says that nobody knows how the command ended, because what started
	// it is gone; Code is -1 then.
	Lost bool
	// Abandoned says that a pipe was still open at the end, held by a process
	// that could not be found; output after that moment is lost.
	Abandoned bool
	// Ended counts descendants that outlived the command and were ended.
	Ended int
	// Survivors counts processes that even KILL did not end in time.
	Survivors int
	// Duration is from the start to the exit of the command itself.
	Duration time.Duration
	// Bytes counts all output, delivered in full to Spec.Output.
	Bytes int64
}

// Process is a started command.
type Process struct {
	spec    Spec
	kin     kin
	child   Child
	started time.Time

	// exited is closed when the command itself has been reaped; status and lost
	// are valid from then on.
	exited chan struct{}
	status Status
	lost   bool

	*streams
	// done is closed when the command and all its kin are over; res is valid
	// from then on.
	done chan struct{}
	res  Result
}

// Start starts a command. It is over when Wait returns; ending ctx ends it with
// TERM, grace and KILL. Errors name the program or the folder, never the
// environment.
func Start(ctx context.Context, s Spec) (*Process, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("start command: %w", err)
	}
	if len(s.Argv) == 0 || s.Argv[0] == "" {
		return nil, errors.New("start command: no program named")
	}
	if s.Grace <= 0 {
		s.Grace = DefaultGrace
	}
	if s.Linger <= 0 {
		s.Linger = DefaultLinger
	}
	if s.Launcher == nil {
		s.Launcher = direct{}
	} else if dir, err := filepath.Abs(s.Dir); err == nil {
		s.Dir = dir
	}
	mark := newMark()
	st, err := openStreams(s)
	if err != nil {
		return nil, fmt.Errorf("start %q: %w", s.Argv[0], err)
	}
	started := time.Now()
	child, err := s.Launcher.Launch(Launch{
		Argv: s.Argv, Dir: s.Dir, Env: childEnv(s.Env, s.RunID, mark), Files: st.files, TTY: s.TTY,
	})
	st.closeLent()
	if err != nil {
		st.close()
		return nil, err
	}
	p := &Process{
		spec: s, child: child, started: started, streams: st,
		kin:    newKin(child.Pid(), markVar+"="+mark, s.Launcher.Pid()),
		exited: make(chan struct{}), done: make(chan struct{}),
	}
	st.out.start()
	st.feed.start(s.Input)
	go p.reap()         // ends when the command does
	go p.supervise(ctx) // Wait waits for it
	return p, nil
}

// Pid is the process id of the command, which is also the id of its session and
// of its process group.
func (p *Process) Pid() int { return p.child.Pid() }

// Exited is closed when the command itself has ended. What it has started may
// still run, and output may still come.
func (p *Process) Exited() <-chan struct{} { return p.exited }

// Done is closed when Wait would return at once.
func (p *Process) Done() <-chan struct{} { return p.done }

// Wait returns when the command is over, its output delivered and its
// descendants gone. It may be called more than once.
func (p *Process) Wait() Result {
	<-p.done
	return p.res
}

// Run is Start and Wait.
func Run(ctx context.Context, s Spec) (Result, error) {
	p, err := Start(ctx, s)
	if err != nil {
		return Result{}, err
	}
	return p.Wait(), nil
}

// reap waits for the command itself. Reaping at once is safe for later signals
// to the group: while the group has a member its id is not given away, and an
// empty group is seen as such right after.
func (p *Process) reap() {
	status, err := p.child.Wait()
	p.status, p.lost = status, err != nil
	p.hangUp()
	close(p.exited)
}

func newMark() string {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails; the runtime aborts instead
	return hex.EncodeToString(b[:])
}

// childEnv is env with the marks, and without marks of a drover further up.
func childEnv(env []string, runID, mark string) []string {
	out := make([]string, 0, len(env)+2)
	for _, kv := range env {
		if !strings.HasPrefix(kv, RunIDVar+"=") && !strings.HasPrefix(kv, markVar+"=") {
			out = append(out, kv)
		}
	}
	if runID != "" {
		out = append(out, RunIDVar+"="+runID)
	}
	return append(out, markVar+"="+mark)
}

// startError says what stood in the way. The kernel gives one code for a
// missing program, a missing interpreter and a missing folder.
func startError(s Launch, err error) error {
	var pe *os.PathError
	if errors.As(err, &pe) {
		err = pe.Err
	}
	name := s.Argv[0]
	if s.Dir != "" && (errors.Is(err, syscall.ENOENT) || errors.Is(err, syscall.ENOTDIR) || errors.Is(err, syscall.EACCES)) {
		if st, statErr := os.Stat(s.Dir); statErr != nil {
			return fmt.Errorf("start %q: folder %q: %w", name, s.Dir, underlying(statErr))
		} else if !st.IsDir() {
			return fmt.Errorf("start %q: folder %q: %w", name, s.Dir, syscall.ENOTDIR)
		}
	}
	switch {
	case errors.Is(err, syscall.ENOENT):
		return fmt.Errorf("start %q: the interpreter named in its first line or header is missing: %w", name, err)
	case errors.Is(err, syscall.E2BIG):
		return fmt.Errorf("start %q: the arguments or the environment are too long for this system: %w", name, err)
	case errors.Is(err, syscall.EINVAL):
		return fmt.Errorf("start %q: an argument holds a zero byte: %w", name, err)
	}
	return fmt.Errorf("start %q: %w", name, err)
}

func underlying(err error) error {
	var pe *os.PathError
	if errors.As(err, &pe) {
		return pe.Err
	}
	return err
}
