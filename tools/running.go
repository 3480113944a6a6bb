package tools

import (
	"context"

	"drover/output/event"
	"drover/tools/internal/proc"
	"drover/tools/sandbox"
)

// running is one command that was started. Its end is told to the stream by the
// one goroutine that watches it, whoever waits for it.
type running struct {
	command command
	env     Env
	process *proc.Process
	term    *terminal
	out     capture
	spill   *spill
	// sandbox is what bounds the command, nil if nothing does; ends is what it
	// printed, for inferring what the sandbox refused.
	sandbox *sandbox.Sandbox
	ends    *excerpt
	// over is closed when nothing of the command is left and the stream knows;
	// end is valid from then on, without the output.
	over chan struct{}
	end  CommandResult
}

// start starts the command. The end of ctx ends it. released is called when it
// is over, and not at all if there is an error.
func (c command) start(ctx context.Context, env Env, released func()) (*running, error) {
	sb, err := env.sandbox()
	if err != nil {
		return nil, err
	}
	r := &running{
		command: c, env: env, sandbox: sb, over: make(chan struct{}), out: c.capture(),
		term:  newTerminal(env, newTerminalID(), c.names()),
		spill: newSpill(env.Artifact, c.shown(env)),
	}
	spec := proc.Spec{
		Argv: c.argv, Dir: c.dir, Timeout: c.timeout, Grace: env.Commands.Grace, Linger: c.linger,
		RunID: env.Commands.RunID, Merge: !c.split, Input: c.input, TTY: c.tty, Output: r.take,
	}
	started := event.TerminalNewRunningEvent{
		Command: c.text, Description: c.description, Argv: c.argv, Cwd: c.dir, TTY: c.tty,
	}
	if started.Description == "" {
		started.Description = display("run: " + c.text)
	}
	var inside []string
	if sb != nil {
		r.ends = &excerpt{}
		spec.Launcher, inside = sb.Launcher(), sb.Environ()
		started.Sandbox = string(sb.Info().Mode)
	}
	spec.Env = env.Commands.environment(c.dir, c.forced, inside)
	if r.process, err = proc.Start(ctx, spec); err != nil {
		return nil, startFault(err)
	}
	r.term.opened(started)
	go func() { // ends when the command does
		r.watch()
		if released != nil {
			released()
		}
	}()
	return r, nil
}

// take gets the output as it comes, never concurrently.
func (r *running) take(s proc.Stream, b []byte) {
	r.term.write(s, b)
	r.out.take(s, b)
	r.spill.write(b)
	r.ends.write(b)
}

// watch waits for the end of the command and tells it.
func (r *running) watch() {
	defer close(r.over)
	end := r.process.Wait()
	r.end = CommandResult{
		ExitCode: end.Code, Signal: end.Signal, TimedOut: end.TimedOut, Canceled: end.Canceled, Lost: end.Lost,
		Ended: end.Ended, Duration: end.Duration, limit: r.command.timeout, over: true,
	}
	r.end.Artifact, r.end.unkept = r.spill.finish()
	r.end.Refusals = r.refusals(end)
	r.tellAppeared()
	r.term.completed(r.completedEvent(end))
}

func (r *running) completedEvent(end proc.Result) event.TerminalCompletedEvent {
	e := event.TerminalCompletedEvent{
		IsError: end.Code != 0 || end.TimedOut || end.Canceled || end.Lost, Signal: end.Signal, TimedOut: end.TimedOut,
		DurationMS: end.Duration.Milliseconds(), OutputBytes: end.Bytes, Artifact: r.end.Artifact,
	}
	if end.Signal == "" && end.Code >= 0 {
		e.ExitCode = &end.Code
	}
	return e
}

// isOver tells whether nothing of the command is left.
func (r *running) isOver() bool {
	select {
	case <-r.over:
		return true
	default:
		return false
	}
}

// exited tells whether the command itself has ended; it is over soon then.
func (r *running) exited() bool {
	select {
	case <-r.process.Exited():
		return true
	default:
		return false
	}
}

// collect returns what the command has printed since the last time, and how it
// ended if it is over.
func (r *running) collect() CommandResult {
	over := r.isOver() // what is printed before the end is collected with it
	res := CommandResult{limit: r.command.timeout}
	if over {
		res = r.end
	}
	head, tail, total, omitted := r.out.drain(over)
	res.OutputBytes, res.OmittedBytes = total, omitted
	res.Text, res.Binary = readable(head, tail, omitted)
	return res
}
