package jobs

import (
	"context"
	"sync"
	"time"
)

// gate lets rows through, as many at a time as the provider bears. It starts
// with the limit that the user gave. A provider that says it is asked too much
// halves it, at most once for each round of answers; every round without
// complaint adds one. When rows fail one after the other because the provider
// is down, the gate closes, and one row after the other tries whether it is back
// (a circuit breaker): an afternoon of failures costs a few tries, not the
// attempts of ten thousand rows.
type gate struct {
	max int

	mu sync.Mutex
	// limit is how many may be inside, as a float so that it can grow slowly.
	limit  float64
	inside int
	// cut is when the limit was last halved.
	cut time.Time
	// down counts failures of the provider in a row.
	down int
	// until is the end of the pause while the gate is closed; pause is how long
	// the latest one was, 0 while it is open.
	until time.Time
	pause time.Duration
	// probing says that a row is trying whether the provider is back.
	probing bool
	// wake is closed and replaced when something has changed.
	wake chan struct{}
	now  func() time.Time
}

const (
	// downLimit is how many rows in a row the provider fails before the gate
	// closes.
	downLimit  = 5
	firstPause = 5 * time.Second
	maxPause   = time.Minute
	// cutEvery spaces the halvings: answers to what was sent before one still
	// complain.
	cutEvery = 2 * time.Second
)

func newGate(limit int) *gate {
	return &gate{max: limit, limit: float64(limit), wake: make(chan struct{}), now: time.Now}
}

// enter waits until the row may run. probe says that it tries whether the
// provider is back: its failure costs no attempt.
func (g *gate) enter(ctx context.Context) (probe bool, err error) {
	for {
		if ctx.Err() != nil { // also where there is room
			return false, context.Cause(ctx)
		}
		g.mu.Lock()
		wait := time.Duration(0)
		switch {
		case g.pause > 0 && g.now().Before(g.until):
			wait = g.until.Sub(g.now())
		case g.pause > 0 && !g.probing:
			g.probing = true
			g.inside++
			g.mu.Unlock()
			return true, nil
		case g.pause == 0 && g.inside < max(1, int(g.limit)):
			g.inside++
			g.mu.Unlock()
			return false, nil
		}
		wake := g.wake
		g.mu.Unlock()
		if err := g.sleep(ctx, wake, wait); err != nil {
			return false, err
		}
	}
}

func (g *gate) sleep(ctx context.Context, wake chan struct{}, wait time.Duration) error {
	var timer <-chan time.Time
	if wait > 0 {
		t := time.NewTimer(wait)
		defer t.Stop()
		timer = t.C
	}
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-wake:
	case <-timer:
	}
	return nil
}

// providerSign is what a row says about the provider.
type providerSign int

const (
	answered providerSign = iota // the provider answered, whatever became of the row
	unknown                      // the row ended for a reason of its own
	failing                      // the provider was down or refused for its load
)

// leave takes a row out and learns from it. It tells whether the gate has just
// closed or opened.
func (g *gate) leave(probe bool, r providerSign) (closed, opened bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.inside--
	if probe {
		g.probing = false
	}
	switch r {
	case answered:
		opened = g.pause > 0
		g.down, g.pause = 0, 0
		if g.limit < float64(g.max) {
			g.limit = min(float64(g.max), g.limit+1/max(1, g.limit))
		}
	case failing:
		g.down++
		if g.down >= downLimit && (probe || g.pause == 0) {
			closed = g.pause == 0
			g.pause = min(maxPause, max(firstPause, 2*g.pause))
			g.until = g.now().Add(g.pause)
		}
	}
	close(g.wake)
	g.wake = make(chan struct{})
	return closed, opened
}

// complain says that the provider was asked too much.
func (g *gate) complain() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if now := g.now(); now.Sub(g.cut) >= cutEvery {
		g.cut, g.limit = now, max(1, g.limit/2)
	}
}

// open is how many may be inside now.
func (g *gate) open() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.pause > 0 {
		return 0
	}
	return max(1, int(g.limit))
}
