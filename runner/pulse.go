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
}

func (r *run) waitFor(on event.WaitingOn, callID string) {
	r.waiting.mu.Lock()
	defer r.waiting.mu.Unlock()
	r.waiting.on, r.waiting.callID, r.waiting.since = on, callID, r.Now()
}

// heartbeatEvery is how long the stream may be silent.
const heartbeatEvery = 15 * time.Second

// watchLimits watches the clocks of a run until the returned function is
// called: the wall and idle limits end it, silence brings heartbeats.
func (r *run) watchLimits(ctx context.Context) (stop func()) {
	r.waiting.active = r.Now()
	r.Log.Subscribe(event.TopicAll, func(e event.Event) {
		if _, beat := e.Body.(event.HeartbeatEvent); !beat {
			r.waiting.mu.Lock()
			r.waiting.active = e.Time
			r.waiting.mu.Unlock()
		}
	})
	done := make(chan struct{})
	var group sync.WaitGroup
	group.Go(func() {
		tick := time.NewTicker(r.tickEvery())
		defer tick.Stop()
		for {
			select {
			case <-done:
				return
			case <-ctx.Done():
				return
			case <-tick.C:
				r.tick()
			}
		}
	})
	var wall *time.Timer
	if r.Limits.Wall > 0 {
		wall = time.AfterFunc(r.Limits.Wall, func() {
			r.limitReached("wall_s", r.Limits.Wall.Seconds(), r.Limits.Wall.Seconds())
			r.cancel(limitStop("wall_s", r.Limits.Wall.Seconds(), r.Limits.Wall.Seconds(), fault.Timeout))
		})
	}
	return func() {
		if wall != nil {
			wall.Stop()
		}
		close(done)
		group.Wait()
	}
}

// tickEvery is often enough for the idle limit to be kept within a tenth.
func (r *run) tickEvery() time.Duration {
	if r.Limits.Idle > 0 {
		return max(min(r.Limits.Idle/10, time.Second), 10*time.Millisecond)
	}
	return time.Second
}

func (r *run) tick() {
	now := r.Now()
	r.waiting.mu.Lock()
	on, callID, since := r.waiting.on, r.waiting.callID, r.waiting.since
	silent := now.Sub(r.waiting.active)
	r.waiting.mu.Unlock()
	if limit := r.Limits.Idle; limit > 0 && silent >= limit {
		r.limitReached("idle_s", silent.Seconds(), limit.Seconds())
		r.cancel(limitStop("idle_s", silent.Seconds(), limit.Seconds(), fault.Timeout))
		return
	}
	if now.Sub(r.Log.LastEmit()) >= heartbeatEvery {
		if on == "" {
			on = "none"
		}
		r.Log.Emit(event.Origin{SessionID: r.SessionID}, event.HeartbeatEvent{
			WaitingOn: on, ElapsedMS: now.Sub(since).Milliseconds(), ToolCallID: callID,
		})
	}
}
