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
	// did.
	TimedOut, Canceled bool
	// Text is the output as a model should read it, not yet cut to its limit.
	Text string
	// Binary says that some of it is no text.
	Binary bool
	// OutputBytes is the size of the output, OmittedBytes what Text lacks.
	OutputBytes, OmittedBytes int64
	// Ended counts processes that the command left behind and that were ended.
	Ended    int
	Duration time.Duration
}

// RunCommand runs a command line in the session's shell to its end, with the
// environment, the limits and the events of exec_command. It asks no policy. The
// error is that of a command that could not be started.
func RunCommand(ctx context.Context, env Env, cmd string, o CommandOptions) (CommandResult, error) {
	c := command{
		text: cmd, argv: env.Commands.shellArgv("", cmd, false), dir: env.abs(o.Dir),
		description: o.Description, timeout: env.Commands.limit(o.Timeout), forced: plainOutput,
	}
	return c.run(ctx, env)
}

// Sweep ends every process that the run left anywhere, and returns how many it
// ended. It is the last thing that a run does.
func Sweep(runID string) int {
	ended, _ := proc.Sweep(context.Background(), runID, 0) // what even KILL does not end, nobody can
	return ended
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
	// input is what the command reads; nil is nothing. streams, if set, gets the
	// output of a split command.
	input   []byte
	streams *split
}

// run runs the command, tells the stream, and waits until nothing of it is
// left.
func (c command) run(ctx context.Context, env Env) (CommandResult, error) {
	term := newTerminal(env, newTerminalID(), c.split)
	var out capture = &merged{}
	switch {
	case c.streams != nil:
		out = c.streams
	case c.split:
		out = &split{}
	}
	p, err := proc.Start(ctx, proc.Spec{
		Argv: c.argv, Dir: c.dir, Env: env.Commands.environment(c.dir, c.forced),
		Timeout: c.timeout, Grace: env.Commands.Grace, Linger: c.linger,
		RunID: env.Commands.RunID, Merge: !c.split, Input: c.input,
		Output: func(s proc.Stream, b []byte) {
			term.write(s, b)
			out.take(s, b)
		},
	})
	if err != nil {
		return CommandResult{}, err
	}
	description := c.description
	if description == "" {
		description = display("run: " + c.text)
	}
	term.opened(event.TerminalNewRunningEvent{Command: c.text, Description: description, Argv: c.argv, Cwd: c.dir})
	end := p.Wait()
	term.completed(completedEvent(end))
	res := CommandResult{
		ExitCode: end.Code, Signal: end.Signal, TimedOut: end.TimedOut, Canceled: end.Canceled,
		OutputBytes: end.Bytes, Ended: end.Ended, Duration: end.Duration,
	}
	head, tail, omitted := out.kept()
	res.OmittedBytes = omitted
	res.Text, res.Binary = readable(head, tail, omitted)
	return res, nil
}

func completedEvent(end proc.Result) event.TerminalCompletedEvent {
	e := event.TerminalCompletedEvent{
		IsError: end.Code != 0 || end.TimedOut || end.Canceled, Signal: end.Signal, TimedOut: end.TimedOut,
		DurationMS: end.Duration.Milliseconds(), OutputBytes: end.Bytes,
	}
	if end.Signal == "" && end.Code >= 0 {
		e.ExitCode = &end.Code
	}
	return e
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

// capture keeps the output of a command in bounded memory.
type capture interface {
	take(s proc.Stream, b []byte)
	// kept returns the output; omitted bytes lie between head and tail.
	kept() (head, tail []byte, omitted int64)
}

// merged keeps head and tail of both streams in order of writing.
type merged struct{ buf proc.Buffer }

func (m *merged) take(_ proc.Stream, b []byte) { _, _ = m.buf.Write(b) } // cannot fail

func (m *merged) kept() (head, tail []byte, omitted int64) {
	head, tail = m.buf.Parts()
	return head, tail, m.buf.Omitted()
}

// splitCap bounds each stream of split, and both together.
const splitCap = 1 << 20

// split keeps the first bytes of each stream. stderr comes after stdout.
type split struct {
	first [2][]byte
	total int64
}

func (p *split) take(s proc.Stream, b []byte) {
	p.total += int64(len(b))
	p.first[s] = append(p.first[s], b[:min(len(b), splitCap-len(p.first[s]))]...)
}

// kept joins the streams. Of too much output stdout gets a third, stderr the
// rest, and stdout what stderr does not need.
func (p *split) kept() (head, tail []byte, omitted int64) {
	stdout, stderr := p.first[proc.Stdout], p.first[proc.Stderr]
	if len(stdout)+len(stderr) > splitCap {
		third := min(len(stdout), splitCap/3)
		stderr = stderr[:min(len(stderr), splitCap-third)]
		stdout = stdout[:min(len(stdout), splitCap-len(stderr))]
	}
	omitted = p.total - int64(len(stdout)) - int64(len(stderr))
	if omitted == 0 {
		return append(stdout[:len(stdout):len(stdout)], stderr...), nil, 0
	}
	return stdout, stderr, omitted
}

// notes are what a model should know besides the exit code, a line each.
func (r CommandResult) notes(timeout time.Duration) []string {
	var notes []string
	if r.TimedOut {
		notes = append(notes, fmt.Sprintf("Note: the command timed out after %v and was ended with everything it had started.", timeout))
	}
	if r.Canceled {
		notes = append(notes, "Note: the command was ended because the run ends.")
	}
	if r.Signal != "" && !r.TimedOut && !r.Canceled {
		notes = append(notes, "Note: the command was ended by signal "+r.Signal+".")
	}
	if r.Ended > 0 && !r.TimedOut && !r.Canceled {
		notes = append(notes, fmt.Sprintf("Note: %d background processes of the command were ended with it; nothing outlives a call.", r.Ended))
	}
	if r.Binary {
		notes = append(notes, `Note: the output is not all text; other bytes are shown as \xNN or only counted.`)
	}
	return notes
}

// line says in a few words how a command ended.
func (r CommandResult) line() string {
	end := fmt.Sprintf("exit %d", r.ExitCode)
	switch {
	case r.TimedOut:
		end = "timed out"
	case r.Canceled:
		end = "cancelled"
	case r.Signal != "":
		end = r.Signal
	}
	lines := lineCount(r.Text)
	if lines == 1 {
		return end + ", 1 line"
	}
	return fmt.Sprintf("%s, %d lines", end, lines)
}

// commandData is the structured result of every command tool.
type commandData struct {
	ExitCode        int     `json:"exit_code"`
	Signal          string  `json:"signal,omitempty"`
	TimedOut        bool    `json:"timed_out,omitempty"`
	WallTimeSeconds float64 `json:"wall_time_seconds"`
	OutputBytes     int64   `json:"output_bytes"`
	OmittedBytes    int64   `json:"omitted_bytes,omitempty"`
	Binary          bool    `json:"binary,omitempty"`
}

// result is what all command tools report; the text is the tool's own.
func (r CommandResult) result(text string, truncated bool) Result {
	return Result{
		Text: text, Display: r.line(), ExitCode: &r.ExitCode, OutputBytes: r.OutputBytes,
		Truncated: truncated || r.OmittedBytes > 0,
		Structured: commandData{
			ExitCode: r.ExitCode, Signal: r.Signal, TimedOut: r.TimedOut, WallTimeSeconds: r.Duration.Seconds(),
			OutputBytes: r.OutputBytes, OmittedBytes: r.OmittedBytes, Binary: r.Binary,
		},
	}
}
