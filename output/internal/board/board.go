// Package board turns events into what a person is shown: frames of calls,
// the assistant's text, remarks; in which order, and when each is final. It
// also lays final frames out as rows, for every format that prints them.
//
// It is pure: the same events give the same items and rows. It knows no
// terminal, no timer and no writer; time is that of the events. Text in items
// is as it came; Painter cleans it.
package board

import (
	"time"

	"drover/output/event"
)

// Item is one thing to print, whole and final. Exactly one field is set.
type Item struct {
	Frame *Frame
	Job   *Job
	// Text are completed lines of a text block.
	Text *Text
	Note *Note
}

// Text is a piece of the assistant's text, or of what it thought.
type Text struct {
	// Block numbers the message, so that pieces of one can be told from those
	// of the next.
	Block int
	Lines []string
	// Agent is the sub-agent that wrote it, if those have lanes of their own.
	Agent   string
	Thought bool
}

// Note is a remark that belongs to no call.
type Note struct {
	Kind NoteKind
	Text string
	// End is the last event of the run, for KindEnd, Goal that of a KindGoal.
	End  *event.RunFinishedEvent
	Goal *event.GoalUpdatedEvent
}

// NoteKind says how a remark is marked.
type NoteKind int

// The kinds of remarks.
const (
	Warning NoteKind = iota
	Failure
	KindEnd
	// KindRow is a failed row of a list job, KindGoal a goal; both take one row
	// of the terminal.
	KindRow
	KindGoal
)

// Board keeps what is not printed yet. The zero value is not usable.
type Board struct {
	lanes    map[string]*lane
	order    []*lane
	frames   map[string]*Frame
	texts    map[string]*text
	children map[string]*Child
	jobs     map[string]*Job
	// terminals are the commands that run; one may outlive its call.
	terminals map[string]terminal
	blocks    int
	ended     bool
	// last is the end of the run, which comes after everything else.
	last *Note
	// due is the earliest time at which some frame has run another minute.
	due time.Time
	// show is what is shown beside what everybody sees.
	show Show
	// status is about the run as a whole.
	status Status
	// made numbers entries in the order in which they began, events what has
	// been taken; seen is the time of the latest event.
	made, events int
	seen         time.Time
	// replaying says that what was taken last is history.
	replaying bool
}

// lane holds the items of one root session in the order in which they began.
type lane struct {
	items []*entry
	// flush lets the last item go although none has begun after it; it is the
	// event that said so.
	flush int
}

// entry is an item of a lane.
type entry struct {
	frame *Frame
	job   *Job
	text  *text
	note  *Note
	// number is its place among the entries of all lanes, event the one with
	// which it began.
	number, event int
}

// New returns an empty board.
func New(show Show) *Board {
	return &Board{
		show:  show,
		lanes: map[string]*lane{}, frames: map[string]*Frame{}, texts: map[string]*text{},
		children: map[string]*Child{}, terminals: map[string]terminal{},
	}
}

// Take updates the board with one event. Types that it does not know, and rows
// of list jobs, change nothing.
func (b *Board) Take(e event.Event) {
	if b.ended {
		return
	}
	b.events++
	if b.replaying && !e.Replayed {
		b.endReplay()
	}
	b.replaying = e.Replayed
	if !e.Time.IsZero() {
		b.seen = e.Time
	}
	b.status.take(e)
	if b.takeJob(e) {
		return
	}
	if end, ok := e.Body.(event.RunFinishedEvent); ok {
		b.End()
		b.last = &Note{Kind: KindEnd, End: &end}
		return
	}
	if e.ParentSessionID != "" {
		b.child(e)
		if !b.show.Agents {
			return
		}
	}
	b.dispatch(e)
}

func (b *Board) dispatch(e event.Event) {
	switch body := e.Body.(type) {
	case event.MessageDeltaEvent:
		b.message(e, body.MessageID, false).add(body.Delta, b.events)
	case event.MessageEvent:
		if body.Role == "assistant" {
			b.message(e, body.MessageID, false).end(body.Text, body.Truncated, b.events)
		}
	case event.ReasoningDeltaEvent:
		if b.show.Reasoning {
			b.message(e, body.MessageID, true).add(body.Delta, b.events)
		}
	case event.ReasoningEvent:
		if b.show.Reasoning {
			b.message(e, body.MessageID, true).end(body.Text, body.Truncated, b.events)
		}
	case event.ToolApprovalRequestEvent:
		b.request(e, body)
	case event.ToolApprovalResponseEvent:
		b.response(e, body)
	case event.PlanUpdatedEvent:
		b.plan(e.SessionID, body)
	case event.TerminalNewRunningEvent:
		b.startTerminal(e, body)
	case event.TerminalCompletedEvent:
		b.endTerminal(e, body)
	case event.TurnFinishedEvent, event.SessionFinishedEvent:
		b.endLane(e.SessionID, e.Time)
	default:
		if id := callOf(e.Body); id != "" {
			b.give(b.frame(e, id), e)
			return
		}
		b.note(e)
	}
}

// give hands an event to a frame.
func (b *Board) give(f *Frame, e event.Event) {
	open := !f.State.Final()
	if f.take(e); open && f.State.Final() {
		f.event = b.events
	}
}

// End makes everything final: no more events will come. It may be called
// again.
func (b *Board) End() {
	if b.ended {
		return
	}
	b.ended, b.status.Open = true, false
	b.events++
	orphans := b.living()
	for session := range b.lanes {
		b.endLane(session, b.seen)
	}
	for _, j := range b.jobs {
		j.end()
	}
	for _, c := range b.children {
		c.forget()
	}
	for _, c := range orphans {
		b.outlived(c, b.seen, Incomplete)
	}
}

func (b *Board) lane(session string) *lane {
	l := b.lanes[session]
	if l == nil {
		l = &lane{}
		b.lanes[session] = l
		b.order = append(b.order, l)
	}
	return l
}

func (b *Board) add(session string, e *entry) {
	l := b.lane(session)
	b.made++
	e.number, e.event = b.made, b.events
	l.items = append(l.items, e)
	l.flush = 0
}

// frame returns the frame of a call. A call that nobody announced gets one, in
// the state that the event implies.
func (b *Board) frame(e event.Event, id string) *Frame {
	f := b.frames[id]
	if f == nil {
		f = newFrame(id, e.Time)
		f.replayed, f.agent = e.Replayed, e.ParentSessionID != ""
		if f.agent {
			f.Agent = e.Agent
		}
		b.frames[id] = f
		b.add(e.SessionID, &entry{frame: f})
	}
	return f
}

// request marks the call that waits for an answer, which may be one of a
// sub-agent.
func (b *Board) request(e event.Event, r event.ToolApprovalRequestEvent) {
	if f := b.frames[r.ToolCallID]; f != nil || r.SubagentSessionID == "" {
		b.give(b.frame(e, r.ToolCallID), e)
	} else if c := b.children[r.SubagentSessionID]; c != nil {
		b.childCall(c, r.ToolCallID, e)
	}
}

// response marks the call that has got its answer. It may not be the session's
// own: answers to agents come through the root session.
func (b *Board) response(e event.Event, r event.ToolApprovalResponseEvent) {
	if f := b.frames[r.ToolCallID]; f != nil {
		b.give(f, e)
		return
	}
	for _, c := range b.children {
		if c.frames[r.ToolCallID] != nil {
			b.childCall(c, r.ToolCallID, e)
		}
	}
}

// plan belongs to the call of update_plan that is open.
func (b *Board) plan(session string, p event.PlanUpdatedEvent) {
	items := b.lane(session).items
	for i := len(items) - 1; i >= 0; i-- {
		if f := items[i].frame; f != nil && f.Name == "update_plan" && f.Plan == nil {
			f.Plan = p.Items
			return
		}
	}
}

// endLane ends what a turn has left open.
func (b *Board) endLane(session string, now time.Time) {
	l := b.lane(session)
	for _, it := range l.items {
		switch {
		case it.frame != nil:
			b.abandon(it.frame, now)
		case it.text != nil:
			it.text.stop(b.events)
		}
	}
	l.flush = b.events
}

// abandon ends a frame whose result will not come.
func (b *Board) abandon(f *Frame, now time.Time) {
	if !f.State.Final() {
		f.event = b.events
		f.end(Incomplete, now)
	}
}

// endReplay ends what history has left open: nothing of it goes on now.
func (b *Board) endReplay() {
	for _, l := range b.order {
		for _, it := range l.items {
			if it.frame != nil && it.frame.replayed {
				b.abandon(it.frame, b.seen)
			} else if it.text != nil && it.text.replayed {
				it.text.stop(b.events)
			}
		}
	}
}

// note adds a remark for what belongs to no call.
func (b *Board) note(e event.Event) {
	if n := noteOf(e.Body); n != nil {
		if e.ParentSessionID != "" {
			n.Text = e.Agent + ": " + n.Text
		}
		b.add(e.SessionID, &entry{note: n})
	}
}
