package model

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// emitter hands deltas to the caller and keeps them to the contract: Opened
// first, calls counted from 0 and opened before their arguments, and nothing
// after the end. The readers of the wire formats embed it.
type emitter struct {
	yield func(Delta, error) bool
	// accepted, opened, ended: the server has taken the request, the response
	// has begun, has ended with Finish.
	accepted, opened, ended bool
	// gone says that the caller wants no more.
	gone  bool
	calls []*openCall
	// started counts the calls that were announced.
	started int
}

// openCall is a call of the response. Arguments that come before its name
// wait.
type openCall struct {
	index  int
	named  bool
	name   string
	args   argStream
	closed bool
	// broken says that a freeform input was no whole string.
	broken bool
}

func (e *emitter) begin(yield func(Delta, error) bool) { e.yield = yield }

func (e *emitter) send(d Delta) {
	if !e.gone && !e.ended {
		e.gone = !e.yield(d, nil)
	}
}

// accept says that the server has taken the request, once.
func (e *emitter) accept() {
	if !e.accepted {
		e.accepted = true
		e.send(Delta{Kind: Opened})
	}
}

// open says that the response has begun: something of it has arrived.
func (e *emitter) open() {
	e.accept()
	e.opened = true
}

func (e *emitter) text(s string) {
	if s != "" {
		e.open()
		e.send(Delta{Kind: TextDelta, Text: s})
	}
}

func (e *emitter) reasoning(s string) {
	if s != "" {
		e.open()
		e.send(Delta{Kind: ReasoningDelta, Text: s})
	}
}

func (e *emitter) keep(it *Item) {
	e.open()
	e.send(Delta{Kind: Keep, Item: it})
}

// newCall adds a call that has no name yet.
func (e *emitter) newCall() *openCall {
	c := &openCall{}
	e.calls = append(e.calls, c)
	return c
}

// start announces the call. Wrapped says that the input of a freeform call
// comes as the argument of a function.
func (e *emitter) start(c *openCall, id, name string, freeform, wrapped bool) {
	e.open()
	c.named, c.name = true, name
	c.index = e.started
	e.started++
	if freeform && wrapped {
		c.args.unwrap = &freeformDecoder{}
	}
	e.send(Delta{Kind: CallStart, Index: c.index, ID: id, Name: name, Freeform: freeform})
	e.argText(c, c.args.ready())
}

// emitArgs delivers a piece of the call's arguments.
func (e *emitter) emitArgs(c *openCall, piece string) {
	if c.closed {
		return
	}
	c.args.put(piece)
	if c.named {
		e.argText(c, c.args.ready())
	}
}

// emitWhole takes the arguments as a whole and delivers what is missing.
func (e *emitter) emitWhole(c *openCall, args string) {
	if c.closed {
		return
	}
	c.args.putWhole(args)
	if c.named {
		e.argText(c, c.args.ready())
	}
}

func (e *emitter) argText(c *openCall, s string) {
	if s != "" {
		e.send(Delta{Kind: CallArgs, Index: c.index, Text: s})
	}
}

// close ends the call's arguments.
func (e *emitter) close(c *openCall) {
	if c.closed || !c.named {
		return
	}
	c.closed = true
	rest, ok := c.args.end()
	c.broken = !ok
	e.argText(c, rest)
}

// finish ends a good response. A call that cannot be what the model meant makes
// it a bad one, unless no call of it may run anyway.
func (e *emitter) finish(reason FinishReason, usage *Usage) error {
	e.open()
	for _, c := range e.calls {
		e.close(c)
		if reason != Stop && reason != ToolCalls {
			continue
		}
		if !c.named {
			return &Error{Kind: ErrMalformed, Retryable: true, Message: "the server sent arguments of a call without a name"}
		}
		if c.broken {
			return &Error{Kind: ErrMalformed, Retryable: true,
				Message: fmt.Sprintf("the input of the call of %q is no whole JSON string", c.name)}
		}
	}
	e.send(Delta{Kind: Finish, Reason: reason, Usage: usage})
	e.ended = true
	return nil
}

// cut is the error of a stream that ended before its end marker.
func (e *emitter) cut() error {
	if !e.opened {
		return &Error{Kind: ErrMalformed, Retryable: true, Message: noAnswer}
	}
	return &Error{Kind: ErrCut, Retryable: true, Message: "the stream ended before the response was complete"}
}

// over says that nothing more is to be delivered.
func (e *emitter) over() bool { return e.ended || e.gone }

// finished says that Finish was sent.
func (e *emitter) finished() bool { return e.ended }

// left says that the caller wants no more.
func (e *emitter) left() bool { return e.gone }

// begun says that something of a response has arrived.
func (e *emitter) begun() bool { return e.opened }

// counted returns the usage, or nil where the server counted nothing: zeros
// mean that it does not count, and the caller then estimates.
func counted(u Usage) *Usage {
	if u.InputTokens <= 0 && u.OutputTokens <= 0 {
		return nil
	}
	return &u
}

// excerpt shortens what a server sent for a message.
func excerpt(data []byte) string {
	const most = 200
	s := strings.ToValidUTF8(string(data[:min(len(data), most+utf8.UTFMax)]), "")
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most], "") + "…"
	}
	return s
}
