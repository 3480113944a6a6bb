package cmd

import (
	"context"
	"os"
	"os/signal"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"drover/output/fault"
	"drover/runner"
	"drover/runner/session"
	"drover/tools"
)

// stopping is the end of a command before it is done. The first signal, a limit
// or a failed output ends it in order. A second signal kills the commands whose
// end is being waited for, so that the rest of the order takes no time. A third
// one, and an output that cannot be given up, soon skip everything but the last
// line.
type stopping struct {
	app *app
	// lone writes the last line of a run that has not begun; nil is no run.
	lone   func(runner.Stop)
	ctx    context.Context
	cancel context.CancelCauseFunc
	// ending ends with ctx, and also when the run ends for a reason of its own:
	// from then on nobody waits long for a reader.
	ending context.Context
	arm    context.CancelFunc
	// patience is how long the command may take to end before it has begun to
	// emit events.
	patience time.Duration
	// runID marks the processes of the command.
	runID atomic.Pointer[string]
	// created is the session of a run that is being prepared.
	created atomic.Pointer[session.Session]
	// run is set once the run emits events.
	run atomic.Pointer[prepared]
	// hurried is closed by the second signal, done when the command has ended.
	hurried, done chan struct{}
	hurry         func()

	// last is held by whoever ends the command, from then on.
	last sync.Mutex
}

// How long an end may take. A reader that reads at all needs much less.
const (
	patienceWithReader  = 3 * time.Second
	patienceWhenHurried = time.Second
	patienceWithPrepare = 3 * time.Second
	patienceWithCall    = graceOfCommands + 6*time.Second
	// lastResort is when a hurried end is cut off.
	lastResort = 3 * time.Second
	lookEvery  = 50 * time.Millisecond
)

// handleSignals turns signals into the end of the command, from now until stop.
// SIGPIPE is caught so that a closed stdout is an error of the write: ignoring
// it instead would be inherited by every command. A SIGHUP that is ignored from
// the start, as under nohup, stays ignored.
//
// patience is how long the command may take to end before it emits events, if
// it ever does; lone, if set, then writes its last line.
func (a *app) handleSignals(ctx context.Context, patience time.Duration, lone func(runner.Stop)) (context.Context, *stopping) {
	s := &stopping{app: a, lone: lone, patience: patience, hurried: make(chan struct{}), done: make(chan struct{})}
	s.ctx, s.cancel = context.WithCancelCause(ctx)
	s.ending, s.arm = context.WithCancel(s.ctx)
	s.hurry = sync.OnceFunc(func() { close(s.hurried) })
	list := []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGPIPE}
	if !signal.Ignored(syscall.SIGHUP) {
		list = append(list, syscall.SIGHUP)
	}
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, list...)
	// These goroutines end when stop closes done.
	go s.listen(signals)
	go s.watch()
	return s.ctx, s
}

func (s *stopping) listen(signals chan os.Signal) {
	defer signal.Stop(signals)
	for n := 0; ; {
		select {
		case <-s.done:
			return
		case got := <-signals:
			if got == syscall.SIGPIPE {
				continue
			}
			switch n++; n {
			case 1:
				s.cancel(stopForSignal(got))
			case 2:
				s.hurry()
				go s.kill()
			case 3:
				go s.endSoon()
			}
		}
	}
}

// kill ends the command's processes without any grace, also those that are just
// being started.
func (s *stopping) kill() {
	for {
		if id := s.runID.Load(); id != nil {
			tools.Kill(*id)
		}
		select {
		case <-s.done:
			return
		case <-time.After(4 * lookEvery):
		}
	}
}

// watch gives up readers that do not read once the command is to end, and ends
// the process where that does not help.
func (s *stopping) watch() {
	select {
	case <-s.done:
		return
	case <-s.ending.Done():
	}
	began := time.Now()
	var hurried time.Time
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	hurry := s.hurried
	for {
		select {
		case <-s.done:
			return
		case <-hurry:
			hurry, hurried = nil, time.Now()
		case <-tick.C:
		}
		if s.tooLong(began, hurried) {
			s.endNow()
		}
	}
}

// tooLong tells whether the end, which began then and was hurried then, must be
// cut off.
func (s *stopping) tooLong(began, hurried time.Time) bool {
	readers, start := patienceWithReader, s.patience
	if !hurried.IsZero() {
		readers, start = patienceWhenHurried, patienceWhenHurried
		began = hurried
	}
	p := s.run.Load()
	if p == nil {
		return time.Since(began) > start
	}
	// A write that began long ago has not been waited for any longer than the
	// end.
	blocked := min(p.log.Blocked(), time.Since(began))
	if blocked > readers {
		p.log.Abandon()
	}
	return blocked > readers+time.Second || !hurried.IsZero() && time.Since(hurried) > lastResort
}

// begin says that the run emits events from now on. It does not return when the
// process is being ended.
func (s *stopping) begin(p *prepared) {
	s.last.Lock()
	defer s.last.Unlock()
	s.run.Store(p)
}

// stop gives the signals back. It does not return when the process is being
// ended.
func (s *stopping) stop() {
	s.last.Lock()
	defer s.last.Unlock()
	close(s.done)
	s.arm()
}

// cause is why the command was stopped from outside, or nil.
func (s *stopping) cause() *runner.Stop {
	stop, _ := context.Cause(s.ctx).(*runner.Stop)
	return stop
}

// endSoon is endNow, but for a moment in which the order may still be kept: the
// commands have been killed.
func (s *stopping) endSoon() {
	select {
	case <-s.done:
	case <-time.After(patienceWhenHurried):
		s.endNow()
	}
}

// endNow writes the last line and ends the process.
func (s *stopping) endNow() {
	s.last.Lock() // for good: nothing may come after
	stop := s.cause()
	if stop == nil {
		stop = &runner.Stop{Exit: fault.Timeout, Reason: "output_stuck"}
	}
	var code atomic.Int32
	code.Store(int32(stop.Exit))
	within(time.Second, func() {
		if id := s.runID.Load(); id != nil {
			tools.Kill(*id)
		}
	})
	within(time.Second, func() {
		if p := s.run.Load(); p != nil {
			code.Store(int32(p.endNow(*stop)))
		} else if s.lone != nil {
			s.lone(*stop)
		}
	})
	if made := s.created.Load(); made != nil && s.run.Load() == nil {
		within(time.Second, func() {
			_ = made.Close() // it is removed
			s.app.forget(made, true)
		})
	}
	os.Exit(int(code.Load()))
}

// endNow writes the last line of a run that has begun, if nobody has written it
// yet, and returns the exit code that goes with it.
func (p *prepared) endNow(stop runner.Stop) fault.Exit {
	out := runner.Outcome{SessionID: p.options.SessionID, End: stop}
	if ran := p.outcome.Load(); ran != nil {
		out = *ran
		out.Fail(&stop)
	}
	first, _ := runner.Finish(p.log, out) // the process ends either way
	if !first {
		out = *p.outcome.Load() // it was stored before
	}
	return p.lateFailure(out.End.Exit)
}

// within waits for do, but not longer than limit. What takes longer goes with
// the process.
func within(limit time.Duration, do func()) {
	done := make(chan struct{})
	go func() { defer close(done); do() }()
	select {
	case <-done:
	case <-time.After(limit):
	}
}

// interruptible returns what do returns, or the cause of ctx when that ends
// first: do may wait for a pipe that nobody writes to, which nothing else ends.
func interruptible[T any](ctx context.Context, do func() (T, error)) (T, error) {
	type result struct {
		value T
		err   error
	}
	done := make(chan result, 1)
	// This goroutine ends with the process if ctx ends first.
	go func() {
		v, err := do()
		done <- result{v, err}
	}()
	select {
	case r := <-done:
		return r.value, r.err
	case <-ctx.Done():
		var none T
		return none, context.Cause(ctx)
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
