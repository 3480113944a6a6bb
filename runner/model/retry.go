package model

import (
	"math/rand/v2"
	"time"
)

// The waits between the attempts of one request. They are full-jitter
// exponential: a random time below a bound that doubles with each attempt.
const (
	// DefaultMaxAttempts is how often a request is sent at most.
	DefaultMaxAttempts = 5
	retryBase          = time.Second
	retryCap           = 30 * time.Second
	// maxRetryAfter is the longest wait that a server can ask for. A longer
	// wish is cut to it, so that a run stays bounded.
	maxRetryAfter = 2 * time.Minute
)

// Retry says whether and when a failed request is sent again. A nil Retry never
// says so. It does not wait itself.
type Retry struct {
	// MaxAttempts counts the first attempt too.
	MaxAttempts int
	// Base bounds the first wait and doubles with each attempt up to Cap.
	Base, Cap time.Duration
	// Rand returns a number in [0, 1); nil means math/rand.
	Rand func() float64
	// Limiter, if set, is held when the provider says that it is asked too
	// much.
	Limiter *Limiter
}

// Next returns how long to wait after the given attempt (the first is 1) has
// failed with e, and false when it is not worth another one. A wait that the
// server asked for is never shortened but to two minutes.
func (r *Retry) Next(e *Error, attempt int) (time.Duration, bool) {
	if r == nil || e == nil || !e.Retryable {
		return 0, false
	}
	delay := r.delay(e, attempt)
	if e.Kind == ErrRate || e.Kind == ErrOverloaded {
		// Those who still have attempts left wait too when this one gives up.
		r.Limiter.Hold(delay)
	}
	if attempt >= r.MaxAttempts {
		return 0, false
	}
	return delay, true
}

func (r *Retry) delay(e *Error, attempt int) time.Duration {
	if e.Kind == ErrRequest && e.RetryAfter == 0 {
		// The next request has another form; there is nothing to wait for.
		return 0
	}
	random := r.Rand
	if random == nil {
		random = rand.Float64
	}
	bound := r.Base
	for range attempt - 1 {
		if bound >= r.Cap {
			break
		}
		bound *= 2
	}
	bound = min(bound, r.Cap)
	if e.RetryAfter > 0 {
		// A little more than asked, so that not all come back at once.
		return min(e.RetryAfter, maxRetryAfter) + time.Duration(random()*float64(min(bound, r.Base)))
	}
	return time.Duration(random() * float64(bound))
}
