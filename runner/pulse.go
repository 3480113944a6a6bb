package runner

import (
	"context"
	"sync"
	"time"

	"drover/output/event"
	"drover/output/fault"
)

// This file watches the clocks of a run: the wall and idle limits, and the
// silence that heartbeats break.

// waiting is what the run waits for, for heartbeats.
type waiting struct {
	mu     sync.Mutex
	on     event.WaitingOn
	callID string
	since  time.Time
	// active is when something last happened.
	active time.Time
	// asking is how many questions wait for somebody's answer.
	asking int
}

// pauseIdle stops the idle clock while questions are open: their own deadline
// ends them.
func (r *run) pauseIdle(questions int) {
	r.waiting.mu.Lock()
	defer r.waiting.mu.Unlock()
	r.waiting.asking += questions
	r.waiting.active = r.Now()
}

func (r *run) waitFor(on event.WaitingOn, callID string) {
	r.waiting.mu.Lock()
	defer r.waiting.mu.Unlock()
	r.waiting.on, r.waiting.callID, r.waiting.since = on, callID, r.Now()
}

// heartbeatEvery is how long the stream may be silent.
const heartbeatEvery = 15 * time.Second

// watchLimits watches the clocks of a run: the wall and idle limits end it,
// silence brings heartbeats. quiet ends all that could still emit something;
// stopWall, which comes later, ends the clock of the whole run.
func (r *run) watchLimits(ctx context.Context) (quiet, stopWall func()) {
	r.waiting.active = r.Now()
	ctx, stop := context.WithCancel(ctx)
	var group sync.WaitGroup
	group.Go(func() { every(ctx, time.Second, r.beat) })
	// The idle limit has a goroutine of its own: a heartbeat can be held up by
	// the reader whose silence the limit is for.
	if limit := r.Limits.Idle; limit > 0 {
		group.Go(func() { every(ctx, max(min(limit/10, time.Second), 10*time.Millisecond), r.watchIdle) })
	}
	stopWall = func() {}
	if limit := r.Limits.Wall; limit > 0 {
		// It only cancels: the goroutine that notices tells the stream.
		wall := time.AfterFunc(limit, func() { r.cancel(wallStop(limit)) })
		stopWall = func() { wall.Stop() }
	}
	return func() { stop(); group.Wait() }, stopWall
}

// wallStop ends a run whose time is over.
func wallStop(limit time.Duration) *Stop {
	return limitStop("wall_s", limit.Seconds(), limit.Seconds(), fault.Timeout)
}

// every calls do at each interval until ctx ends.
func every(ctx context.Context, interval time.Duration, do func()) {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			do()
		}
	}
}

// watchIdle ends a run in which nothing happens. Like the wall limit it emits
// nothing itself.
func (r *run) watchIdle() {
	r.waiting.mu.Lock()
	silent, asking := r.Now().Sub(r.waiting.active), r.waiting.asking
	r.waiting.mu.Unlock()
	if limit := r.Limits.Idle; silent >= limit && asking == 0 {
		r.cancel(limitStop("idle_s", silent.Seconds(), limit.Seconds(), fault.Timeout))
	}
}

// beat breaks a long silence.
func (r *run) beat() {
	now := r.Now()
	if now.Sub(r.Log.LastEmit()) < heartbeatEvery {
		return
	}
	r.waiting.mu.Lock()
	on, callID, since := r.waiting.on, r.waiting.callID, r.waiting.since
	r.waiting.mu.Unlock()
	if on == "" {
		on = "none"
	}
	r.tell(r.self(), event.HeartbeatEvent{
		WaitingOn: on, ElapsedMS: now.Sub(since).Milliseconds(), ToolCallID: callID,
	})
}
