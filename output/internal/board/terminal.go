package board

import (
	"time"

	"drover/output/event"
)

type terminal struct {
	command string
	began   time.Time
	call    string
}

// startTerminal begins a command of a call.
func (b *Board) startTerminal(e event.Event, s event.TerminalNewRunningEvent) {
	b.terminals[s.TerminalID] = terminal{command: s.Command, began: e.Time, call: s.ToolCallID}
	b.give(b.frame(e, s.ToolCallID), e)
}

// endTerminal ends a command. One that outlives its call gets a row of its
// own.
func (b *Board) endTerminal(e event.Event, c event.TerminalCompletedEvent) {
	t := b.terminals[c.TerminalID]
	delete(b.terminals, c.TerminalID)
	f := b.frame(e, c.ToolCallID)
	if !f.State.Final() {
		b.give(f, e)
		return
	}
	began := t.began
	if began.IsZero() {
		began = f.began
	}
	row := newFrame(c.ToolCallID, began)
	row.Name, row.Display, row.Agent, row.noCall = f.Name, t.command, f.Agent, true
	row.take(e)
	row.take(event.Event{Time: e.Time, Body: event.ToolResultEvent{IsError: c.TimedOut, DurationMS: c.DurationMS}})
	row.Output, row.event = nil, b.events
	b.add(e.SessionID, &entry{frame: row})
	b.lane(e.SessionID).flush = b.events
}
