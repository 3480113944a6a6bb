package tools

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"drover/output/event"
	"drover/tools/internal/proc"
	"drover/tools/sandbox"
)

// CommandOptions are how RunCommand runs a command.
type CommandOptions struct {
	// Dir is the folder of the command, relative to Env.Cwd; empty is Env.Cwd.
	Dir string
	// Description says what the command is for; empty is the command itself.
	Description string
	// Timeout ends the command; 0 is no limit besides Commands.Timeout.
	Timeout time.Duration
}

// CommandResult is how a command ended and what it printed.
type CommandResult struct {
	// ExitCode is -1 when a signal ended the command.
	ExitCode int
	// Signal is the name of that signal, or empty.
	Signal string
	// TimedOut says that a timeout ended the command, Canceled that the run
	// did. Lost says that nobody knows how it ended.
	TimedOut, Canceled, Lost bool
	// Text is the output as a model should read it, not yet cut to its limit.
	Text string
	// Binary says that some of it is no text.
	Binary bool
	// OutputBytes is the size of the output, OmittedBytes what Text lacks.
	OutputBytes, OmittedBytes int64
	// Ended counts processes that the command left behind and that were ended.
	Ended    int
	Duration time.Duration
	// Refusals are what the sandbox seems to have refused.
	Refusals []sandbox.Refusal
	// Artifact is the whole output, if Env.Output shows less and there is a
	// place for it.
	Artifact *event.Artifact

	// limit is the timeout that held; unkept says that Artifact does not hold
	// all that is not shown.
	limit  time.Duration
	unkept bool
	// over says that nothing of the command is left; session is the id of one
	// that still runs; closed says that a session has ended with this result.
	over, closed bool
	session      int
}

// RunCommand runs a command line in the session's shell to its end, with the
// environment, the sandbox, the limits and the events of exec_command. It asks
// no policy. The error is that of a command that could not be started; one of
// class fault.Environment means that none can be started any more.
func RunCommand(ctx context.Context, env Env, cmd string, o CommandOptions) (CommandResult, error) {
	c := command{
		text: cmd, argv: env.Commands.shellArgv("", cmd, false), dir: env.abs(o.Dir),
		description: o.Description, timeout: env.limit(o.Timeout), forced: plainOutput,
	}
	return c.run(ctx, env)
}

// Sweep ends every process that the run left anywhere, and returns how many it
// ended. It is the last thing that a run does.
func Sweep(runID string) int {
	ended, _ := proc.Sweep(context.Background(), runID, 0) // what even KILL does not end, nobody can
	return ended
}

// SweepSession ends what the commands of one session have left running.
func SweepSession(sessionID string) {
	_, _ = proc.SweepVar(context.Background(), threadVar, sessionID, 0) // as for Sweep
}

// Kill ends every process of the run without giving it time to clean up. The
// calls that wait for them then end by themselves.
func Kill(runID string) {
	now, cancel := context.WithCancel(context.Background())
	cancel()
	_, _ = proc.Sweep(now, runID, 0) // the sweep at the end of the run tries again
}

// command is one command to be run.
type command struct {
	// text is the command as people read it, argv what is executed.
	text string
	argv []string
	// dir is absolute.
	dir         string
	description string
	timeout     time.Duration
	// linger is how long the output of descendants is awaited; 0 is the
	// default of proc.
	linger time.Duration
	// forced are variables on top of the environment.
	forced map[string]string
	// split keeps stdout and stderr apart and puts them one after the other.
	split bool
	// tty gives the command a terminal.
	tty bool
	// input is what the command reads; nil is nothing. streams, if set, gets the
	// output of a split command.
	input   []byte
	streams *split
	// output bounds what the model is shown; the zero value is Env.Output.
	output Limit
}

// run runs the command, tells the stream, and waits until nothing of it is
// left.
func (c command) run(ctx context.Context, env Env) (CommandResult, error) {
	r, err := c.start(ctx, env, nil)
	if err != nil {
		return CommandResult{}, err
	}
	<-r.over
	return r.collect(), nil
}

func (c command) capture() capture {
	switch {
	case c.streams != nil:
		return c.streams
	case c.split:
		return &split{}
	}
	return &merged{}
}

// names tells how the events of the command name its streams.
func (c command) names() streamNames {
	switch {
	case c.tty:
		return streamNames{"tty", "tty"}
	case c.split:
		return streamNames{"stdout", "stderr"}
	}
	return streamNames{}
}

// shown is how many bytes of output the model can get.
func (c command) shown(env Env) int {
	if c.output != (Limit{}) {
		return c.output.budget()
	}
	return env.Output.budget()
}

// limit is the strictest of a call's timeout, that of the run and that of the
// policy.
func (e Env) limit(timeout time.Duration) time.Duration {
	timeout = e.Commands.limit(timeout)
	if e.Timeout > 0 && (timeout <= 0 || e.Timeout < timeout) {
		return e.Timeout
	}
	return timeout
}

// limit is the stricter of a call's timeout and that of the run.
func (c Commands) limit(timeout time.Duration) time.Duration {
	if c.Timeout > 0 && (timeout <= 0 || c.Timeout < timeout) {
		return c.Timeout
	}
	return max(0, timeout)
}

// abs is a folder that a model names, as an absolute path.
func (e Env) abs(dir string) string {
	if filepath.IsAbs(dir) {
		return filepath.Clean(dir)
	}
	return filepath.Join(e.Cwd, dir)
}

func newTerminalID() string { return "term_" + randomHex(6) }

func randomHex(n int) string {
	b := make([]byte, n)
	_, _ = rand.Read(b) // never fails; the runtime aborts instead
	return hex.EncodeToString(b)
}

// quoteArgv writes an argument vector as a shell would read it.
func quoteArgv(argv []string) string {
	words := make([]string, len(argv))
	for i, arg := range argv {
		words[i] = arg
		if arg == "" || strings.ContainsFunc(arg, needsQuotes) {
			words[i] = "'" + strings.ReplaceAll(arg, "'", `'\''`) + "'"
		}
	}
	return strings.Join(words, " ")
}

func needsQuotes(r rune) bool {
	switch {
	case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9':
		return false
	}
	return !strings.ContainsRune("-_./:=@%+,", r)
}

// notes are what a model should know besides the exit code, a line each.
func (r CommandResult) notes() []string {
	var notes []string
	if r.TimedOut {
		notes = append(notes, fmt.Sprintf("Note: the command timed out after %v and was ended with everything it had started.", r.limit))
	}
	if r.Canceled {
		notes = append(notes, "Note: the command was ended because the run ends.")
	}
	if r.Signal != "" && !r.TimedOut && !r.Canceled {
		notes = append(notes, "Note: the command was ended by signal "+r.Signal+".")
	}
	if r.Ended > 0 && !r.TimedOut && !r.Canceled {
		notes = append(notes, fmt.Sprintf("Note: %d background processes of the command were ended with it; nothing outlives its command.", r.Ended))
	}
	if r.Binary {
		notes = append(notes, `Note: the output is not all text; other bytes are shown as \xNN or only counted.`)
	}
	return append(notes, r.lateNotes()...)
}

// lateNotes are the notes that every command tool gives, in its own place.
func (r CommandResult) lateNotes() []string {
	var notes []string
	if r.Lost {
		notes = append(notes, "Note: nobody knows how the command ended: the process that started it is gone. It was ended.")
	}
	for _, refusal := range r.Refusals {
		notes = append(notes, refusalNote(refusal))
	}
	switch {
	case r.Artifact != nil && r.unkept:
		notes = append(notes, fmt.Sprintf("Note: the first %d bytes of the output: %s", r.Artifact.Bytes, r.Artifact.Path))
	case r.Artifact != nil:
		notes = append(notes, "Note: full output: "+r.Artifact.Path)
	case r.unkept:
		notes = append(notes, "Note: the full output is kept nowhere; what is not shown is dropped.")
	}
	return notes
}

// line says in a few words how a command ended.
func (r CommandResult) line() string {
	end := fmt.Sprintf("exit %d", r.ExitCode)
	switch {
	case r.session > 0:
		end = fmt.Sprintf("running in session %d", r.session)
	case r.TimedOut:
		end = "timed out"
	case r.Canceled:
		end = "cancelled"
	case r.Lost:
		end = "lost"
	case r.Signal != "":
		end = r.Signal
	}
	lines := lineCount(r.Text)
	if lines == 1 {
		return end + ", 1 line"
	}
	return fmt.Sprintf("%s, %d lines", end, lines)
}

// commandData is the structured result of every command tool. A command that
// still runs has a session and no exit code.
type commandData struct {
	ExitCode        *int    `json:"exit_code,omitempty"`
	Signal          string  `json:"signal,omitempty"`
	TimedOut        bool    `json:"timed_out,omitempty"`
	SessionID       int     `json:"session_id,omitempty"`
	SessionClosed   bool    `json:"session_closed,omitempty"`
	WallTimeSeconds float64 `json:"wall_time_seconds"`
	OutputBytes     int64   `json:"output_bytes"`
	OmittedBytes    int64   `json:"omitted_bytes,omitempty"`
	Binary          bool    `json:"binary,omitempty"`
}

// result is what all command tools report; the text is the tool's own.
func (r CommandResult) result(text string, truncated bool) Result {
	data := commandData{
		Signal: r.Signal, TimedOut: r.TimedOut, SessionID: r.session, SessionClosed: r.closed,
		WallTimeSeconds: r.Duration.Seconds(), OutputBytes: r.OutputBytes, OmittedBytes: r.OmittedBytes, Binary: r.Binary,
	}
	if r.session == 0 {
		data.ExitCode = &r.ExitCode
	}
	return Result{
		Text: text, Display: r.line(), ExitCode: data.ExitCode, OutputBytes: r.OutputBytes,
		Truncated: truncated || r.OmittedBytes > 0, Structured: data, Refusals: r.Refusals, Artifact: r.Artifact,
	}
}

// failed marks the result of a command that was cut off, whatever it printed.
func (r CommandResult) failed(res Result) Result {
	switch {
	case r.TimedOut:
		res.IsError, res.Code = true, "timeout"
	case r.Lost:
		res.IsError, res.Code = true, "lost"
	}
	return res
}
