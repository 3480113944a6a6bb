// Package board turns events into what a person is shown: frames of calls,
// the assistant's text, remarks; in which order, and when each is final. It
// also lays final frames out as rows, for every format that prints them.
//
// It is pure: the same events give the same items and rows. It knows no
// terminal, no timer and no writer; time is that of the events. Text in items
// is as it came; Painter cleans it.
package board

import (
	"bytes"
	"strings"
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
	// made numbers entries in the order in which they began.
	made int
}

// lane holds the items of one root session in the order in which they began.
type lane struct {
	items []*entry
	// flush lets the last item go although none has begun after it.
	flush bool
}

// entry is an item of a lane.
type entry struct {
	frame *Frame
	job   *Job
	text  *text
	note  *Note
	// number is its place among the entries of all lanes.
	number int
}

// text is a message that is being written.
type text struct {
	block int
	// whole is all that came as deltas, rest what is not printed of it, and
	// ready says that there is a completed line in it.
	whole strings.Builder
	rest  []byte
	ready bool
	done  bool
	// revised says that the whole differs from its deltas.
	revised bool
	agent   string
	thought bool
}

type terminal struct {
	command string
	began   time.Time
	call    string
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
	switch body := e.Body.(type) {
	case event.MessageDeltaEvent:
		b.message(e, body.MessageID, false).add(body.Delta)
	case event.MessageEvent:
		if body.Role == "assistant" {
			b.message(e, body.MessageID, false).end(body.Text, body.Truncated)
		}
	case event.ReasoningDeltaEvent:
		if b.show.Reasoning {
			b.message(e, body.MessageID, true).add(body.Delta)
		}
	case event.ReasoningEvent:
		if b.show.Reasoning {
			b.message(e, body.MessageID, true).end(body.Text, body.Truncated)
		}
	case event.ToolApprovalRequestEvent:
		b.request(e, body)
	case event.ToolApprovalResponseEvent:
		if f := b.frames[body.ToolCallID]; f != nil {
			f.take(e)
		}
	case event.PlanUpdatedEvent:
		b.plan(e.SessionID, body)
	case event.TerminalNewRunningEvent:
		b.terminals[body.TerminalID] = terminal{command: body.Command, began: e.Time, call: body.ToolCallID}
		b.frame(e, body.ToolCallID).take(e)
	case event.TerminalCompletedEvent:
		b.endTerminal(e, body)
	case event.TurnFinishedEvent, event.SessionFinishedEvent:
		b.endLane(e.SessionID, e.Time)
	default:
		if id := callOf(e.Body); id != "" {
			b.frame(e, id).take(e)
			return
		}
		b.note(e)
	}
}

// End makes everything final: no more events will come. It may be called
// again.
func (b *Board) End() {
	if b.ended {
		return
	}
	b.ended = true
	for session := range b.lanes {
		b.endLane(session, time.Time{})
	}
	for _, j := range b.jobs {
		j.end()
	}
	for _, c := range b.children {
		c.forget()
	}
}

// late is how long after a frame is final something that belongs to it may come.
const late = time.Second

// Ready takes what can be printed off the board: final items at the head of
// their lanes, and completed lines of a text at the head. The last item of a
// lane waits until another begins or its turn ends, so that what still belongs
// to it gets in.
func (b *Board) Ready() []Item { return b.ready(time.Time{}, false) }

// ReadyAt is Ready, but the last item of a lane waits no longer than a second,
// and not at all if there is no room for it.
func (b *Board) ReadyAt(now time.Time, noRoom bool) []Item { return b.ready(now, noRoom) }

// Due is when the next frame will have waited long enough, or zero.
func (b *Board) Due() (due time.Time) {
	for _, l := range b.order {
		if len(l.items) == 0 || l.flush {
			continue
		}
		if f := l.items[0].frame; f != nil && f.State.Final() {
			if t := f.ended.Add(late); due.IsZero() || t.Before(due) {
				due = t
			}
		}
	}
	return due
}

func (b *Board) ready(now time.Time, noRoom bool) []Item {
	var out []Item
	for _, l := range b.order {
		for len(l.items) > 0 {
			item, more := b.pop(l, now, noRoom)
			if item != nil {
				out = append(out, *item)
			}
			if !more {
				break
			}
		}
	}
	if b.last != nil {
		out = append(out, Item{Note: b.last})
		b.last = nil
	}
	return out
}

// pop returns what the head of a lane has to print, and whether the lane may
// be asked again.
func (b *Board) pop(l *lane, now time.Time, noRoom bool) (item *Item, more bool) {
	head := l.items[0]
	switch {
	case head.note != nil:
		item = &Item{Note: head.note}
	case head.job != nil:
		if !head.job.final {
			return nil, false
		}
		item = &Item{Job: head.job}
	case head.frame != nil:
		f := head.frame
		if !f.State.Final() || len(l.items) == 1 && !l.flush && !noRoom && now.Before(f.ended.Add(late)) {
			return nil, false
		}
		f.committed = true
		b.status.count(f)
		shown := *f
		item = &Item{Frame: &shown}
		f.Output, f.others, f.Content, f.Plan = nil, nil, "", nil // it stays only to be known
	default:
		t := head.text
		if lines := t.lines(); len(lines) > 0 {
			item = &Item{Text: &Text{Block: t.block, Lines: lines, Agent: t.agent, Thought: t.thought}}
		}
		if !t.done {
			return item, false
		}
		if t.revised {
			// The remark takes the place of its text.
			t.revised = false
			l.items[0] = &entry{note: &Note{Kind: Warning, Text: "text was revised, see the log"}}
			return item, true
		}
	}
	l.items[0] = nil
	l.items = l.items[1:]
	return item, true
}

// lines takes the completed lines out of a text; all of it once it is done.
func (t *text) lines() []string {
	if !t.ready && !t.done {
		return nil
	}
	cut := bytes.LastIndexByte(t.rest, '\n') + 1
	if t.done {
		cut = len(t.rest)
	}
	t.ready = false
	if cut == 0 {
		return nil
	}
	lines := strings.Split(strings.TrimSuffix(string(t.rest[:cut]), "\n"), "\n")
	t.rest = t.rest[:copy(t.rest, t.rest[cut:])]
	return lines
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
	e.number = b.made
	l.items = append(l.items, e)
	l.flush = false
}

// frame returns the frame of a call. A call that nobody announced gets one, in
// the state that the event implies.
func (b *Board) frame(e event.Event, id string) *Frame {
	f := b.frames[id]
	if f == nil {
		f = newFrame(id, e.Time)
		f.replayed = e.Replayed
		if e.ParentSessionID != "" {
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
		b.frame(e, r.ToolCallID).take(e)
	}
}

func (b *Board) message(e event.Event, id string, thought bool) *text {
	key := e.SessionID + "\x00" + id
	if thought {
		key += "\x00"
	}
	t := b.texts[key]
	if t == nil {
		b.blocks++
		t = &text{block: b.blocks, thought: thought}
		if e.ParentSessionID != "" {
			t.agent = e.Agent
		}
		b.texts[key] = t
		b.add(e.SessionID, &entry{text: t})
	}
	return t
}

func (t *text) add(delta string) {
	if t.done {
		return
	}
	t.whole.WriteString(delta)
	t.rest = append(t.rest, delta...)
	t.ready = t.ready || strings.Contains(delta, "\n")
}

// end closes a text. Without deltas (a core stream, history) the whole is
// printed, otherwise it only has to be the same. What a model thought may come
// as a summary, which is another text.
func (t *text) end(whole string, truncated bool) {
	if t.done {
		return
	}
	t.done = true
	switch joined := t.whole.String(); {
	case joined == "":
		t.rest = []byte(whole)
	case !truncated && !t.thought && joined != whole:
		t.revised = true
	}
	t.whole.Reset()
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

// endTerminal ends a command. One that outlives its call gets a row of its
// own.
func (b *Board) endTerminal(e event.Event, c event.TerminalCompletedEvent) {
	t := b.terminals[c.TerminalID]
	delete(b.terminals, c.TerminalID)
	f := b.frame(e, c.ToolCallID)
	if !f.State.Final() {
		f.take(e)
		return
	}
	began := t.began
	if began.IsZero() {
		began = f.began
	}
	row := newFrame(c.ToolCallID, began)
	row.Name, row.Display = f.Name, t.command
	row.take(e)
	row.take(event.Event{Time: e.Time, Body: event.ToolResultEvent{IsError: c.TimedOut, DurationMS: c.DurationMS}})
	row.Output = nil
	b.add(e.SessionID, &entry{frame: row})
	b.lane(e.SessionID).flush = true
}

// endLane ends what a turn has left open.
func (b *Board) endLane(session string, now time.Time) {
	l := b.lane(session)
	for _, it := range l.items {
		switch {
		case it.frame != nil:
			it.frame.abandon(now)
		case it.text != nil:
			it.text.done = true
		}
	}
	l.flush = true
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

// Minutes returns the frames that, by the time of the latest event, have been
// running for another whole minute since they were returned last.
func (b *Board) Minutes(now time.Time) []*Frame {
	if now.Before(b.due) {
		return nil
	}
	b.due = now.Add(time.Minute)
	var out []*Frame
	for _, l := range b.order {
		for _, it := range l.items {
			if f := it.frame; f != nil && f.State == Executing {
				if minutes := int(now.Sub(f.began) / time.Minute); minutes > f.minutes {
					f.minutes = minutes
					out = append(out, f)
				}
				next := f.began.Add(time.Duration(f.minutes+1) * time.Minute)
				if next.Before(b.due) {
					b.due = next
				}
			}
		}
	}
	return out
}
