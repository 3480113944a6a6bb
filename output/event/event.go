// Package event is the contract of the event stream: every line drover can
// emit, as Go structs, and the Log that numbers them.
//
// Producers call Log.Emit with who they are (Origin) and what happened (a
// Body). The log assigns seq and the time, masks secrets once for everybody,
// and hands the event to every sink and subscriber in one order. It owns the
// order of truth and nothing else: how events look is the business of the
// formats in output, who produces them that of runner and tools. The schema,
// the stream checker and the secret mask live here because they are part of
// the contract. This package writes to nothing itself.
package event

import (
	"encoding/json"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Version is the major version of the stream, the key v of every line.
const Version = 1

// SchemaID names the schema, its minor version included.
const SchemaID = "urn:drover:schema:events:1.0"

// Body is what one event says. The bodies are the *Event structs of this
// package, passed by value, and Unknown.
type Body interface {
	// Type is the dotted name of the event, the key type of its line.
	Type() string
}

// Unknown is a body of a type that this version does not know, kept as read.
type Unknown struct {
	Name string
	Raw  json.RawMessage
}

// Type returns the name as read.
func (u Unknown) Type() string { return u.Name }

// Origin says whose event it is. The zero value is the run itself.
type Origin struct {
	SessionID       string
	ParentSessionID string
	// Agent is the path of a sub-agent, such as /root/reviewer.
	Agent string
	// Turn counts from 1 within a session; 0 is outside a turn.
	Turn int
	// ItemID is the row of a list job.
	ItemID string
}

// Event is one event: the envelope that every line has, and its body.
type Event struct {
	// Seq rises strictly within a run and is the same in every sink.
	Seq int64
	// Time is when the event was made, for display and not for ordering.
	Time  time.Time
	RunID string
	Origin
	// Replayed marks history that is shown again.
	Replayed bool
	// Ext is vendor data that others ignore.
	Ext  json.RawMessage
	Body Body
}

// Sink receives events in order. Emit is never called concurrently and never
// after Close. An error from Emit detaches the sink.
type Sink interface {
	Emit(Event) error
	Close() error
}

// Level is how much of the stream a sink gets.
type Level int

// The levels. Each includes the ones before it.
const (
	Core Level = iota
	Default
	Full
)

// Attachment is a sink with its place in the log.
type Attachment struct {
	// Name is what errors call the sink, such as "jsonl:run.jsonl".
	Name  string
	Sink  Sink
	Level Level
	// Failed is called once, outside the log's lock, when the sink fails. It
	// may be nil. The log has already detached the sink then.
	Failed func(error)
	// Abandon makes the write of the sink that is in progress, if there is one,
	// end at once with an error, whatever the reader does. It is called outside
	// the log's lock, and may be nil for a sink that nobody can hold up.
	Abandon func()
}

// Options are what a Log needs from outside.
type Options struct {
	RunID string
	// Now is the clock; nil means time.Now.
	Now func() time.Time
	// Artifacts stores what a line cannot hold and says where. The name is a
	// plain file name and not unique. It is called inside Emit and must not
	// call the log. With nil such texts are only cut.
	Artifacts func(name string, data []byte) (Artifact, error)
	// Redact masks secrets in every event; nil masks nothing.
	Redact *Redactor
}

// Log assigns seq and hands events to sinks. Its methods are safe for
// concurrent use. A slow sink slows the producers; nothing is lost.
type Log struct {
	mu     sync.Mutex
	opts   Options
	seq    int64
	sinks  []*attached
	subs   map[Topic][]*func(Event)
	closed bool
	// last is when the latest event was emitted.
	last time.Time
	// lastEmit is the same in nanoseconds, and writing the sink that is being
	// written to: both can be asked for while a stuck reader holds the lock.
	lastEmit atomic.Int64
	writing  atomic.Pointer[attached]
	// fitted is reused between calls so that splitting costs no allocation.
	fitted []Body
}

type attached struct {
	Attachment
	lines int64
	// busy is when the present write began, in nanoseconds.
	busy atomic.Int64
}

// New returns a log without sinks.
func New(o Options) *Log {
	if o.Now == nil {
		o.Now = time.Now
	}
	l := &Log{opts: o, subs: map[Topic][]*func(Event){}, last: o.Now()}
	l.lastEmit.Store(l.last.UnixNano())
	return l
}

// RunID returns the run's id.
func (l *Log) RunID() string { return l.opts.RunID }

// Attach adds a sink. Events emitted before are not repeated.
func (l *Log) Attach(a Attachment) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sinks = append(l.sinks, &attached{Attachment: a})
}

// Subscribe calls fn for every event of the topic, in order, from then on and
// until cancel. fn runs inside Emit: it must be quick and must not call the log.
func (l *Log) Subscribe(t Topic, fn func(Event)) (cancel func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.subs[t] = append(l.subs[t], &fn)
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.subs[t] = slices.DeleteFunc(l.subs[t], func(f *func(Event)) bool { return f == &fn })
	}
}

// LastEmit is when the latest event was emitted. It never waits.
func (l *Log) LastEmit() time.Time { return time.Unix(0, l.lastEmit.Load()) }

// Blocked is for how long a sink has been busy with one event, 0 if none is:
// its reader does not read. It never waits.
func (l *Log) Blocked() time.Duration {
	a := l.writing.Load()
	if a == nil {
		return 0
	}
	return max(time.Since(time.Unix(0, a.busy.Load())), 1)
}

// Abandon gives up the sink that is being written to: it fails, and the log
// goes on without it. It does nothing if no sink is busy or the busy one cannot
// be given up, and never waits.
func (l *Log) Abandon() {
	if a := l.writing.Load(); a != nil && a.Abandon != nil {
		a.Abandon()
	}
}

// Redactions is how many secrets have been masked so far.
func (l *Log) Redactions() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.opts.Redact.Count()
}

// Emit numbers an event and hands it on. After Close it does nothing.
func (l *Log) Emit(o Origin, b Body) {
	l.mu.Lock()
	failures := l.emitLocked(o, b)
	l.mu.Unlock()
	tell(failures)
}

// Finish emits the last event and closes the log in one step, so that no event
// can follow. It tells whether it was the first to end the log; if not, it does
// nothing. The error is that of Close.
func (l *Log) Finish(o Origin, b Body) (first bool, err error) {
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return false, nil
	}
	failures := l.emitLocked(o, b)
	failures, err = l.closeLocked(failures)
	l.mu.Unlock()
	tell(failures)
	return true, err
}

func tell(failures []failure) {
	for _, f := range failures {
		f.Failed(f.err)
	}
}

type failure struct {
	Attachment
	err error
}

func (l *Log) emitLocked(o Origin, b Body) []failure {
	if l.closed {
		return nil
	}
	l.last = l.opts.Now()
	l.lastEmit.Store(l.last.UnixNano())
	if l.opts.Redact == nil {
		return l.send(o, b, nil)
	}
	var failures []failure
	for _, r := range l.opts.Redact.route(o, b) {
		failures = l.send(r.origin, r.body, failures)
	}
	return failures
}

// send numbers a body that is masked and hands it on, in as many lines as it
// takes.
func (l *Log) send(o Origin, b Body, failures []failure) []failure {
	if b == nil {
		return failures
	}
	o = fitOrigin(o)
	l.fitted = l.fit(o, b, l.fitted[:0])
	for _, one := range l.fitted {
		l.seq++
		e := Event{Seq: l.seq, Time: l.last, RunID: l.opts.RunID, Origin: o, Body: one}
		failures = l.deliver(e, failures)
	}
	return failures
}

// begin notes that a sink is written to from now on.
func (l *Log) begin(a *attached) {
	a.busy.Store(time.Now().UnixNano()) // a real reader is slow by the real clock
	l.writing.Store(a)
}

func (l *Log) deliver(e Event, failures []failure) []failure {
	level := LevelOf(e.Body)
	kept := l.sinks[:0]
	for _, a := range l.sinks {
		if level > a.Level {
			kept = append(kept, a)
			continue
		}
		out := e
		if end, ok := e.Body.(RunFinishedEvent); ok {
			// lines counts what this sink got, so its reader can prove that
			// nothing is missing.
			end.Lines = a.lines + 1
			out.Body = end
		}
		l.begin(a)
		err := a.Sink.Emit(out)
		l.writing.Store(nil)
		if err != nil {
			_ = a.Sink.Close() // the sink is broken; its first error is the one that is told
			if a.Failed != nil {
				failures = append(failures, failure{a.Attachment, err})
			}
			continue
		}
		a.lines++
		kept = append(kept, a)
	}
	clear(l.sinks[len(kept):])
	l.sinks = kept
	for _, fn := range l.subs[TopicOf(e.Body)] {
		(*fn)(e)
	}
	for _, fn := range l.subs[TopicAll] {
		(*fn)(e)
	}
	return failures
}

// Close closes every sink and returns the first error. It may be called twice.
func (l *Log) Close() error {
	l.mu.Lock()
	failures, err := l.closeLocked(nil)
	l.mu.Unlock()
	tell(failures)
	return err
}

// closeLocked closes every sink. One that fails in the end has lost something,
// like one that fails before.
func (l *Log) closeLocked(failures []failure) (_ []failure, first error) {
	if l.closed {
		return failures, nil
	}
	l.closed = true
	for _, a := range l.sinks {
		l.begin(a)
		err := a.Sink.Close()
		l.writing.Store(nil)
		if err != nil && a.Failed != nil {
			failures = append(failures, failure{a.Attachment, err})
		}
		if err != nil && first == nil {
			first = err
		}
	}
	return failures, first
}
