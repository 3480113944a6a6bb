package model

import (
	"context"
	"sync"
	"time"
)

// releaseGap is the time between two requests that a hold had kept back: a
// server that has just recovered is not met by everybody at once.
const releaseGap = 50 * time.Millisecond

// Limiter makes everybody who uses one key of one provider wait together after
// the provider asked one of them to. Its zero value is ready, a nil Limiter
// never waits, and it is safe for concurrent use.
type Limiter struct {
	mu sync.Mutex
	// until is the end of the hold; next is when the next one in the queue
	// may go.
	until, next time.Time
}

// Hold keeps all requests back for d from now on. A hold that lasts longer
// already is not shortened.
func (l *Limiter) Hold(d time.Duration) {
	if l == nil || d <= 0 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	until := time.Now().Add(d)
	if until.After(l.until) {
		l.until = until
	}
	if l.until.After(l.next) {
		l.next = l.until
	}
}

// Wait returns nil when a request may be sent. It returns ctx's cause when ctx
// ends first.
func (l *Limiter) Wait(ctx context.Context) error {
	if l == nil {
		return nil
	}
	for {
		at := l.place()
		d := time.Until(at)
		if d <= 0 {
			return nil
		}
		t := time.NewTimer(d)
		select {
		case <-ctx.Done():
			t.Stop()
			return context.Cause(ctx)
		case <-t.C:
		}
		if !l.held() {
			return nil
		}
		// A new hold began meanwhile.
	}
}

// place takes a place in the queue: the time at which a request may go, or the
// zero time when nothing waits.
func (l *Limiter) place() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !time.Now().Before(l.next) {
		return time.Time{}
	}
	at := l.next
	l.next = at.Add(releaseGap)
	return at
}

func (l *Limiter) held() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return time.Now().Before(l.until)
}

// Limiters hands out one Limiter for each provider and key. One of them, shared
// by all calls of Open, makes a whole process back off together. Its zero value
// is ready and it is safe for concurrent use.
type Limiters struct {
	mu  sync.Mutex
	all map[limiterKey]*Limiter
}

type limiterKey struct{ provider, baseURL, key string }

// get returns the limiter of k; a nil Limiters makes a new one each time.
func (l *Limiters) get(k limiterKey) *Limiter {
	if l == nil {
		return &Limiter{}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.all == nil {
		l.all = map[limiterKey]*Limiter{}
	}
	if l.all[k] == nil {
		l.all[k] = &Limiter{}
	}
	return l.all[k]
}
