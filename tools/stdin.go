package tools

import (
	"context"
	"errors"
	"fmt"
	"time"

	"drover/tools/internal/proc"
)

// The bounds of the waits of exec_command and write_stdin.
const (
	minYield, maxYield = 250 * time.Millisecond, 30 * time.Second
	// defaultYield is the wait of a command, defaultTyping that after input.
	defaultYield, defaultTyping = 10 * time.Second, minYield
	// minPoll is the shortest wait without input.
	minPoll = 5 * time.Second
	// typingPause gives a program time to answer before output is collected.
	typingPause = 100 * time.Millisecond
)

// writeStdin types into a session, or only waits for what it prints. It declares
// no action: what runs in the session was judged when it was started.
var writeStdin = New(Def[stdinInput]{
	Name:     "write_stdin",
	Doc:      "Writes to the session of a running command and returns its new output. Without chars it waits for output, at least 5 s unless the command ends.",
	With:     "exec_command",
	Approval: "none",
	Display:  stdinInput.display,
	Run:      runStdin,
})

type stdinInput struct {
	SessionID       int32  `json:"session_id" jsonschema:"From exec_command."`
	Chars           string `json:"chars,omitempty" jsonschema:"Typed as they are, \\u0003 is Ctrl-C; needs a session with tty."`
	YieldTimeMS     *uint  `json:"yield_time_ms,omitempty" jsonschema:"Wait for output; default: 250."`
	MaxOutputTokens uint   `json:"max_output_tokens,omitempty" jsonschema:"As in exec_command."`
}

func (in stdinInput) display(Env) string {
	if in.Chars == "" {
		return fmt.Sprintf("wait: session %d", in.SessionID)
	}
	return fmt.Sprintf("type: %d bytes into session %d", len(in.Chars), in.SessionID)
}

func runStdin(ctx context.Context, in stdinInput, env Env) (Result, error) {
	began := time.Now()
	s, id := env.Commands.Sessions, int(in.SessionID)
	opened := s.use(id)
	if opened == nil {
		return stdinFailed("unknown_session", fmt.Sprintf("Unknown process id %d", in.SessionID)), nil
	}
	defer s.rest(opened)
	yield := in.yield(s)
	var notes []string
	if in.Chars != "" {
		note, failed := opened.send(ctx, in.Chars, yield)
		if failed != nil {
			return *failed, nil
		}
		if note != "" {
			notes = append(notes, note)
		}
		opened.sleep(ctx, s, typingPause)
	}
	opened.sleep(ctx, s, yield)
	r := opened.report(s, id)
	r.closed, r.Duration = r.over, time.Since(began)
	return execResult(r, env.Output.AtMost(tokens(in.MaxOutputTokens)), notes), nil
}

// yield is how long the call waits, within the bounds of its kind.
func (in stdinInput) yield(s *Sessions) time.Duration {
	if in.Chars == "" {
		return clampYield(in.YieldTimeMS, defaultTyping, minPoll, s.pollLimit())
	}
	return clampYield(in.YieldTimeMS, defaultTyping, minYield, maxYield)
}

// clampYield brings a wait in milliseconds into its bounds.
func clampYield(ms *uint, fallback, least, most time.Duration) time.Duration {
	wait := fallback
	if ms != nil {
		wait = milliseconds(*ms)
	}
	return min(max(wait, least), most)
}

// sleep waits for the end of the command, or so long.
func (o *openSession) sleep(ctx context.Context, s *Sessions, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	o.wait(ctx, s, t.C)
}

// send types into the session. A command that has just ended is no failure: its
// end is what the model should hear of. A command that does not read gets only
// as much as its terminal holds.
func (o *openSession) send(ctx context.Context, chars string, patience time.Duration) (note string, failed *Result) {
	const gone = "Note: the command had ended; nothing was written."
	if o.exited() {
		return gone, nil
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	n, err := o.process.Write(ctx, []byte(chars))
	if n > 0 {
		o.term.typed(chars[:n])
	}
	switch {
	case err == nil:
		return "", nil
	case errors.Is(err, proc.ErrNoTerminal):
		res := stdinFailed("no_terminal", "stdin is closed for this session; rerun exec_command with tty=true to keep stdin open")
		return "", &res
	case errors.Is(err, proc.ErrEnded):
		return gone, nil
	case ctx.Err() != nil:
		return fmt.Sprintf("Note: only %d of %d bytes were written; the command does not read its input.", n, len(chars)), nil
	}
	res := stdinFailed("write_failed", err.Error())
	return "", &res
}

func stdinFailed(code, text string) Result { return Fail(code, "write_stdin failed: "+text) }
