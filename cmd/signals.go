package cmd

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"drover/output/fault"
	"drover/runner"
	"drover/tools"
)

// handleSignals turns signals into the end of the run. The first one ends it
// in order; a second one kills the commands whose end is being waited for; a
// third one skips everything but the last line. SIGPIPE is
// caught so that a closed stdout is an error of the write: ignoring it instead
// would be inherited by every command.
func (a *app) handleSignals(ctx context.Context, p *prepared) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	p.cancel.Store(&cancel)
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGPIPE)
	done := make(chan struct{})
	// This goroutine ends when stop closes done; a third signal ends the
	// process from here.
	go func() {
		var first *runner.Stop
		for n := 0; ; {
			select {
			case <-done:
				return
			case s := <-signals:
				if s == syscall.SIGPIPE {
					continue
				}
				switch n++; n {
				case 1:
					first = stopForSignal(s)
					cancel(first)
				case 2:
					tools.Kill(p.options.Commands.RunID)
				default:
					a.endNow(p, first)
				}
			}
		}
	}()
	return ctx, func() {
		signal.Stop(signals)
		close(done)
		cancel(nil)
	}
}

func stopForSignal(s os.Signal) *runner.Stop {
	if s == syscall.SIGINT {
		return &runner.Stop{Exit: fault.Interrupted, Reason: "sigint"}
	}
	if s == syscall.SIGHUP {
		return &runner.Stop{Exit: fault.Terminated, Reason: "sighup"}
	}
	return &runner.Stop{Exit: fault.Terminated, Reason: "sigterm"}
}

// endNow writes the last line and ends the process.
func (a *app) endNow(p *prepared, stop *runner.Stop) {
	p.sweep()
	runner.Finish(p.log, runner.Outcome{SessionID: p.options.SessionID, End: *stop})
	_ = p.log.Close() // the process ends with the signal's code either way
	os.Exit(int(stop.Exit))
}
