package model

import (
	"context"
	"errors"
	"iter"
	"time"
)

// Watch sends the request to p and ends the response when a clock runs out:
// FirstByte until the response has begun, Idle between two deltas with content.
// The clocks stand still while the caller works on a delta. Watch also keeps p
// to its contract: nothing follows the end, and there is always an end. It
// starts no goroutine; the error is always an *Error.
func Watch(ctx context.Context, clocks Clocks, p Provider, req *Request) iter.Seq2[Delta, error] {
	return func(yield func(Delta, error) bool) {
		own, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		c := &clock{cancel: cancel}
		defer c.stop()
		c.set(clocks.FirstByte, ErrFirstByte)
		c.run()
		calls := false
		for d, err := range p.Stream(own, req) {
			c.stop()
			calls = calls || d.Kind == CallStart
			if err != nil {
				yield(Delta{}, watchError(ctx, own, err))
				return
			}
			if d.Kind == Finish && d.Reason == ToolCalls && !calls {
				yield(Delta{}, errNoCalls)
				return
			}
			if !yield(d, nil) || d.Kind == Finish {
				return
			}
			if d.hasContent() || d.Kind == Opened {
				c.set(clocks.Idle, ErrIdle)
			}
			c.run()
		}
		yield(Delta{}, watchError(ctx, own, errNoEnd))
	}
}

var errNoEnd = &Error{Kind: ErrCut, Retryable: true, Message: "the stream ended before the response was complete"}

var errNoCalls = &Error{Kind: ErrMalformed, Retryable: true, Message: "the server ended the response for its calls, but sent none"}

// hasContent tells whether the delta brings the answer forward.
func (d *Delta) hasContent() bool {
	switch d.Kind {
	case TextDelta, ReasoningDelta, CallArgs:
		return d.Text != ""
	case CallStart, Keep:
		return true
	}
	return false
}

// clock cancels a stream when its time is up.
type clock struct {
	cancel context.CancelCauseFunc
	timer  *time.Timer
	kind   ErrorKind
	// bound is the whole time, left what remained when the clock was last
	// stopped. 0 is no bound.
	bound, left time.Duration
	started     time.Time
}

// set starts a new time, which passes only between run and stop.
func (c *clock) set(bound time.Duration, kind ErrorKind) {
	if c.kind != kind && c.timer != nil {
		// The timer's function holds the old kind.
		c.timer = nil
	}
	c.bound, c.left, c.kind = bound, bound, kind
}

func (c *clock) run() {
	if c.bound <= 0 {
		return
	}
	c.started = time.Now()
	if c.timer == nil {
		ranOut := &clockError{kind: c.kind, bound: c.bound}
		c.timer = time.AfterFunc(c.left, func() { c.cancel(ranOut) })
		return
	}
	c.timer.Reset(c.left)
}

func (c *clock) stop() {
	if c.timer != nil {
		c.timer.Stop()
		c.left = max(0, c.left-time.Since(c.started))
	}
}

// clockError is the cause with which a clock cancels.
type clockError struct {
	kind  ErrorKind
	bound time.Duration
}

func (e *clockError) Error() string {
	if e.kind == ErrFirstByte {
		return "the server did not begin to answer within " + e.bound.String()
	}
	return "the answer did not go on for " + e.bound.String()
}

// watchError returns how the stream really ended: cancelled by the caller, by a
// clock, or as the provider says.
func watchError(ctx, own context.Context, err error) *Error {
	if ctx.Err() != nil {
		return cancelled(ctx)
	}
	var ranOut *clockError
	if errors.As(context.Cause(own), &ranOut) {
		return &Error{Kind: ranOut.kind, Retryable: true, Message: ranOut.Error(), Err: err,
			Fix: "raise first_byte or stream_idle of the provider if the model really needs longer"}
	}
	var e *Error
	if errors.As(err, &e) {
		return e
	}
	return &Error{Kind: ErrServer, Message: err.Error(), Err: err}
}
