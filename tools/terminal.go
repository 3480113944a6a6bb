package tools

import (
	"encoding/base64"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"drover/output/event"
	"drover/tools/internal/proc"
)

// The promised rate of terminal.output: at most one event per terminal in
// terminalPause, or whenever terminalChunk bytes have gathered; terminalCap
// bytes in all.
const (
	terminalPause = 50 * time.Millisecond
	terminalChunk = 8 << 10
	terminalCap   = 1 << 20
)

// terminal tells the stream what one command prints. Its lock is held while it
// emits, so the events are in order; a slow stream slows the command.
type terminal struct {
	callID, id string
	emit       func(event.Body)

	mu sync.Mutex
	// pending is what was printed and not yet told, by stream; first is the
	// stream that has waited longest.
	pending [2][]byte
	first   proc.Stream
	// room is what may still be told; dropped counts what was not.
	room    int
	dropped int64
	timer   *time.Timer
	armed   bool
	closed  bool
	// names are what events call the streams.
	names streamNames
}

// streamNames are the names of the streams by number; empty names none.
type streamNames [2]event.Stream

func newTerminal(env Env, id string, names streamNames) *terminal {
	t := &terminal{callID: env.CallID, id: id, emit: env.Emit, room: terminalCap, names: names}
	t.mu.Lock() // until opened: output must not overtake terminal.started
	return t
}

// opened tells that the command runs, and lets its output through.
func (t *terminal) opened(e event.TerminalNewRunningEvent) {
	defer t.mu.Unlock()
	e.ToolCallID, e.TerminalID = t.callID, t.id
	t.emit(e)
}

func (t *terminal) write(s proc.Stream, b []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	take := min(len(b), t.room)
	t.room -= take
	t.dropped += int64(len(b) - take)
	b = b[:take]
	for len(b) > 0 {
		n := min(len(b), terminalChunk-len(t.pending[s]))
		if len(t.pending[1-s]) == 0 {
			t.first = s
		}
		t.pending[s] = append(t.pending[s], b[:n]...)
		b = b[n:]
		if len(t.pending[s]) == terminalChunk {
			t.flush(s, false)
		}
	}
	t.arm()
}

// arm makes sure that what is pending is told soon.
func (t *terminal) arm() {
	if t.armed || len(t.pending[0])+len(t.pending[1]) == 0 {
		return
	}
	t.armed = true
	if t.timer == nil {
		t.timer = time.AfterFunc(terminalPause, t.tick)
		return
	}
	t.timer.Reset(terminalPause)
}

func (t *terminal) tick() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return
	}
	t.armed = false
	told := t.first
	t.flush(told, false)
	if len(t.pending[1-told]) > 0 {
		t.first = 1 - told
	}
	t.arm()
}

// flush tells what is pending of one stream. A character that is not complete
// yet waits for its rest, unless this is the end.
func (t *terminal) flush(s proc.Stream, end bool) {
	b := t.pending[s]
	keep := 0
	if !end {
		keep = partial(b)
	}
	if len(b) == keep {
		return
	}
	e := event.TerminalAppendStringEvent{ToolCallID: t.callID, TerminalID: t.id, Stream: t.names[s]}
	if told := b[:len(b)-keep]; utf8.Valid(told) {
		e.Delta = string(told)
	} else {
		e.Delta, e.Encoding = base64.StdEncoding.EncodeToString(told), "base64"
	}
	t.pending[s] = append(b[:0], b[len(b)-keep:]...)
	t.emit(e)
}

// typedText is how much of what was typed an event shows.
const typedText = 4 << 10

// typed tells that something was written to the command.
func (t *terminal) typed(text string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return // it ended with what was typed
	}
	shown := strings.ToValidUTF8(text[:min(len(text), typedText)], "")
	t.emit(event.TerminalInputEvent{ToolCallID: t.callID, TerminalID: t.id, Bytes: int64(len(text)), Text: shown})
}

// completed tells the rest of the output, how much was left out, and the end.
func (t *terminal) completed(e event.TerminalCompletedEvent) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed = true
	if t.timer != nil {
		t.timer.Stop()
	}
	t.flush(t.first, true)
	t.flush(1-t.first, true)
	if t.dropped > 0 {
		t.emit(event.TerminalAppendStringEvent{ToolCallID: t.callID, TerminalID: t.id, DroppedBytes: t.dropped})
	}
	e.ToolCallID, e.TerminalID, e.Truncated = t.callID, t.id, t.dropped > 0
	t.emit(e)
}
