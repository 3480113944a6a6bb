package tools

import (
	"context"
	"time"

	"drover/output/event"
	"drover/tools/internal/proc"
	"drover/tools/sandbox"
)

// HookCommand is a command that watches over a run: it belongs to the user, not
// to the agent, and is no call.
type HookCommand struct {
	// Script is run by the session's shell.
	Script string
	// Dir is the absolute folder it starts in.
	Dir string
	// Input is what it reads from its standard input.
	Input []byte
	// Set are variables on top of the environment of commands.
	Set map[string]string
	// Timeout ends it with everything it has started; 0 is no limit.
	Timeout time.Duration
	// Rights are what it may do beyond the sandbox of the run.
	Rights sandbox.Rights
	// Notice gets what the sandbox has to tell about it; nil drops that.
	Notice func(event.NoticeEvent)
}

// HookResult is how a hook ended and what it printed.
type HookResult struct {
	// ExitCode is -1 when a signal ended the hook, whose name is Signal.
	ExitCode int
	Signal   string
	// TimedOut says that the timeout ended it, Canceled that the run did.
	TimedOut, Canceled bool
	// Stdout and Stderr are its output as it was written; Cut says that there
	// was more than is kept.
	Stdout, Stderr string
	Cut            bool
	Duration       time.Duration
}

// RunHook runs a hook to its end: in the sandbox and with the environment of
// commands, without provider keys, with a bounded output. Nothing of it is told
// to the stream, and nothing of it is left afterwards. The error is that of a
// hook that could not be started.
func RunHook(ctx context.Context, c Commands, h HookCommand) (HookResult, error) {
	forced := map[string]string{}
	for _, vars := range []map[string]string{plainOutput, h.Set} {
		for name, value := range vars {
			forced[name] = value
		}
	}
	streams := &split{}
	cmd := command{
		text: h.Script, argv: c.shellArgv("", h.Script, false), dir: h.Dir, description: display("hook: " + h.Script),
		timeout: h.Timeout, forced: forced, split: true, streams: streams, input: append([]byte{}, h.Input...),
	}
	r, err := cmd.run(ctx, Env{Cwd: h.Dir, Commands: c, Rights: h.Rights, Emit: func(b event.Body) {
		if n, ok := b.(event.NoticeEvent); ok && h.Notice != nil {
			h.Notice(n)
		}
	}})
	if err != nil {
		return HookResult{}, err
	}
	stdout, stderr := streams.first[proc.Stdout], streams.first[proc.Stderr]
	return HookResult{
		ExitCode: r.ExitCode, Signal: r.Signal, TimedOut: r.TimedOut, Canceled: r.Canceled,
		Stdout: string(stdout), Stderr: string(stderr), Cut: len(stdout) == splitCap || len(stderr) == splitCap,
		Duration: r.Duration,
	}, nil
}

// SessionShell is the program that runs commands which name no shell.
func (c Commands) SessionShell() string { return c.sessionShell() }
