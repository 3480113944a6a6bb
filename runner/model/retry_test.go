package model

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestWaitsGrowAndAreBounded(t *testing.T) {
	server := &Error{Kind: ErrServer, Retryable: true}
	for _, c := range []struct {
		random  float64
		attempt int
		e       *Error
		want    time.Duration
	}{
		{0, 1, server, 0},
		{0.5, 1, server, 500 * time.Millisecond},
		{0.5, 2, server, time.Second},
		{0.5, 3, server, 2 * time.Second},
		{0.5, 5, server, 8 * time.Second},
		{0.5, 6, server, 15 * time.Second},
		{0.5, 99, server, 15 * time.Second},
		{0.5, 1, &Error{Kind: ErrServer, Retryable: true, RetryAfter: 7 * time.Second}, 7500 * time.Millisecond},
		{0, 9, &Error{Kind: ErrRate, Retryable: true, RetryAfter: 7 * time.Second}, 7 * time.Second},
		{0.5, 9, &Error{Kind: ErrRate, Retryable: true, RetryAfter: time.Hour}, 2*time.Minute + 500*time.Millisecond},
		{0.5, 1, &Error{Kind: ErrRequest, Retryable: true}, 0},
	} {
		r := &Retry{MaxAttempts: 100, Base: retryBase, Cap: retryCap, Rand: func() float64 { return c.random }}
		if got, again := r.Next(c.e, c.attempt); !again || got != c.want {
			t.Errorf("attempt %d of %+v: %v %v, want %v", c.attempt, c.e, got, again, c.want)
		}
	}
}

func TestAttemptsAreBounded(t *testing.T) {
	r := &Retry{MaxAttempts: 3, Base: retryBase, Cap: retryCap}
	e := &Error{Kind: ErrOverloaded, Retryable: true}
	for attempt, want := range map[int]bool{1: true, 2: true, 3: false, 4: false} {
		if delay, got := r.Next(e, attempt); got != want || delay < 0 || delay > retryCap {
			t.Errorf("attempt %d: %v %v", attempt, delay, got)
		}
	}
	if _, again := r.Next(&Error{Kind: ErrAuth}, 1); again {
		t.Error("a wrong key is tried again")
	}
	if _, again := r.Next(nil, 1); again {
		t.Error("nothing is tried again")
	}
	if _, again := (*Retry)(nil).Next(e, 1); again {
		t.Error("without a rule it is tried again")
	}
}

func TestOnlyBusyProvidersHoldTheOthers(t *testing.T) {
	for kind, held := range map[ErrorKind]bool{ErrRate: true, ErrOverloaded: true, ErrServer: false, ErrCut: false, ErrIdle: false} {
		synctest.Test(t, func(t *testing.T) {
			l := &Limiter{}
			r := &Retry{MaxAttempts: 1, Base: retryBase, Cap: retryCap, Limiter: l}
			// Also the last attempt holds the others.
			r.Next(&Error{Kind: kind, Retryable: true, RetryAfter: 9 * time.Second}, 1)
			began := time.Now()
			if err := l.Wait(t.Context()); err != nil {
				t.Fatal(err)
			}
			if waited := time.Since(began) >= 9*time.Second; waited != held {
				t.Errorf("%s: waited %v", kind, time.Since(began))
			}
		})
	}
}

// release starts n waiters and returns when each of them was let go.
func release(t *testing.T, l *Limiter, n int) []time.Duration {
	began := time.Now()
	var mu sync.Mutex
	var times []time.Duration
	var wg sync.WaitGroup
	for range n {
		wg.Go(func() {
			if err := l.Wait(t.Context()); err != nil {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			times = append(times, time.Since(began))
		})
	}
	wg.Wait()
	slices.Sort(times)
	return times
}

func TestWaitersAreReleasedOneByOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &Limiter{}
		if got := release(t, l, 10); got[9] != 0 {
			t.Errorf("without a hold they waited %v", got)
		}
		l.Hold(2 * time.Second)
		for i, at := range release(t, l, 10) {
			if want := 2*time.Second + time.Duration(i)*releaseGap; at != want {
				t.Errorf("waiter %d was let go after %v, want %v", i, at, want)
			}
		}
		time.Sleep(time.Minute)
		if got := release(t, l, 10); got[9] != 0 {
			t.Errorf("after the hold they waited %v", got)
		}
	})
}

func TestNewHoldReachesThoseWhoWaitAlready(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &Limiter{}
		l.Hold(2 * time.Second)
		time.AfterFunc(2*time.Second+releaseGap/2, func() { l.Hold(5 * time.Second) })
		time.AfterFunc(3*time.Second, func() { l.Hold(time.Second) })
		got := release(t, l, 4)
		if got[0] != 2*time.Second || got[1] < 7*time.Second+releaseGap/2 || got[3] > 9*time.Second {
			t.Errorf("they were let go after %v", got)
		}
		for i := 2; i < len(got); i++ {
			if got[i]-got[i-1] < releaseGap {
				t.Errorf("two went together: %v", got)
			}
		}
	})
}

func TestHeldWaitEndsWithTheContext(t *testing.T) {
	why := errors.New("enough")
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		l := &Limiter{}
		l.Hold(time.Hour)
		time.AfterFunc(time.Second, func() { cancel(why) })
		began := time.Now()
		if err := l.Wait(ctx); err != why || time.Since(began) != time.Second {
			t.Errorf("got %v after %v", err, time.Since(began))
		}
	})
	var none *Limiter
	none.Hold(time.Hour)
	if err := none.Wait(t.Context()); err != nil {
		t.Errorf("without a limiter: %v", err)
	}
}

func TestLimitersAreSharedByKey(t *testing.T) {
	var all Limiters
	a := all.get(limiterKey{"p", "u", "k"})
	if a != all.get(limiterKey{"p", "u", "k"}) || a == all.get(limiterKey{"p", "u", "other"}) || a == all.get(limiterKey{"q", "u", "k"}) {
		t.Error("limiters are not told apart by provider and key")
	}
	var none *Limiters
	if none.get(limiterKey{}) == nil {
		t.Error("no limiter")
	}
}

// A fan-out of agents that is refused goes on together and gets through.
func TestFanOutBacksOffTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const agents, perSecond = 40, 25
		l := &Limiter{}
		var mu sync.Mutex
		requests, refusals := 0, 0
		second := time.Time{}
		// server allows some requests in each second.
		server := func() *Error {
			mu.Lock()
			defer mu.Unlock()
			if now := time.Now().Truncate(time.Second); !now.Equal(second) {
				second, requests = now, 0
			}
			if requests++; requests > perSecond {
				refusals++
				return &Error{Kind: ErrRate, Retryable: true, RetryAfter: time.Second}
			}
			return nil
		}
		var wg sync.WaitGroup
		for i := range agents {
			wg.Go(func() {
				r := &Retry{MaxAttempts: DefaultMaxAttempts, Base: retryBase, Cap: retryCap, Limiter: l}
				for attempt := 1; ; attempt++ {
					if err := l.Wait(t.Context()); err != nil {
						t.Error(err)
						return
					}
					e := server()
					if e == nil {
						return
					}
					delay, again := r.Next(e, attempt)
					if !again {
						t.Errorf("agent %d gave up", i)
						return
					}
					time.Sleep(delay)
				}
			})
		}
		wg.Wait()
		if refusals > agents {
			t.Errorf("%d refusals for %d agents", refusals, agents)
		}
	})
}
