package board

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"drover/output/event"
)

// Child is a sub-agent. Its calls are not shown one by one: the frame of the
// call that spawned it counts them and names those that went wrong.
type Child struct {
	Agent         string
	Turn          int
	Calls, Failed int
	Tokens        int64

	parent string
	spawn  *Frame
	// frames are its calls that have no result, past those that have one.
	frames map[string]*Frame
	past   map[string]bool
	began  time.Time
	// number is its place among the entries of all lanes.
	number int
	ended  bool
	// troubles are those after the call that spawned it had ended.
	troubles Troubles
}

// Troubles are calls of agents that were refused or failed: the first few, and
// how many there are beside them.
type Troubles struct {
	Frames []*Frame
	More   int
}

func (t *Troubles) add(f *Frame) {
	if len(t.Frames) == maxTroubles {
		t.More++
		return
	}
	t.Frames = append(t.Frames, f)
}

// child takes an event of a sub-agent's session.
func (b *Board) child(e event.Event) {
	c := b.children[e.SessionID]
	if c == nil {
		b.made++
		c = &Child{Agent: e.Agent, parent: e.ParentSessionID, frames: map[string]*Frame{}, past: map[string]bool{}, began: e.Time, number: b.made}
		b.children[e.SessionID] = c
	}
	switch body := e.Body.(type) {
	case event.SessionStartedEvent:
		c.ended = false
		b.adopt(c, body.SpawnedByToolCallID)
	case event.SessionFinishedEvent:
		c.forget()
		b.outlived(c, e.Time, stateOf(body.Status))
	case event.TurnFinishedEvent:
		c.forget()
	case event.ToolApprovalRequestEvent:
		b.childCall(c, body.ToolCallID, e)
	case event.ToolApprovalResponseEvent:
		if c.frames[body.ToolCallID] != nil {
			b.childCall(c, body.ToolCallID, e)
		}
	case event.UsageEvent:
		c.Tokens += body.InputTokens + body.OutputTokens
	default:
		if id := callOf(e.Body); id != "" {
			b.childCall(c, id, e)
		} else if n := noteOf(e.Body); n != nil && !b.show.Agents {
			n.Text = c.Agent + ": " + n.Text
			b.add(b.root(c), &entry{note: n})
		}
	}
	c.Turn = max(c.Turn, e.Turn)
}

// adopt ties a child to the call that spawned it; a grandchild to the call
// that spawned its parent.
func (b *Board) adopt(c *Child, spawn string) {
	f := b.frames[spawn]
	if p := b.children[c.parent]; f == nil && p != nil {
		f = p.spawn
	}
	if f == nil || f.State.Final() {
		return
	}
	if c.spawn = f; !slices.Contains(f.Children, c) {
		f.Children = append(f.Children, c)
	}
}

// root returns the session whose lane shows the child.
func (b *Board) root(c *Child) string {
	session := c.parent
	for range len(b.children) {
		p := b.children[session]
		if p == nil {
			break
		}
		session = p.parent
	}
	return session
}

// childCall follows a call of a child.
func (b *Board) childCall(c *Child, id string, e event.Event) {
	if c.past[id] {
		return
	}
	f := c.frames[id]
	if f == nil {
		f = newFrame(id, e.Time)
		f.Output, f.event = nil, b.events
		c.frames[id] = f
	}
	if f.take(e); !f.State.Final() {
		return
	}
	delete(c.frames, id)
	c.past[id] = true
	c.Calls++
	if f.State != Failed && f.State != Denied {
		return
	}
	c.Failed++
	switch f.Content = ""; {
	case b.show.Agents: // it has a frame of its own
	case c.within():
		c.spawn.Troubles.add(f)
	default:
		c.troubles.add(f)
	}
}

// within tells whether the child is shown in the frame of a call.
func (c *Child) within() bool { return c.spawn != nil && !c.spawn.State.Final() }

// now is the call that the child is at: one that waits for an answer, or the one
// that began last.
func (c *Child) now() (now *Frame) {
	for _, f := range c.frames {
		waits := f.State == Awaiting
		if now == nil || waits && now.State != Awaiting || waits == (now.State == Awaiting) && f.event > now.event {
			now = f
		}
	}
	return now
}

// forget drops the calls that a child has left open.
func (c *Child) forget() {
	c.Calls += len(c.frames)
	for id := range c.frames {
		c.past[id] = true
	}
	clear(c.frames)
}

// living are the agents that are not in the frame of a call: it has ended before
// them, or is not known.
func (b *Board) living() []*Child {
	var out []*Child
	for _, c := range b.children {
		if !c.ended && !c.within() {
			out = append(out, c)
		}
	}
	slices.SortFunc(out, func(a, b *Child) int { return cmp.Compare(a.number, b.number) })
	return out
}

// outlived gives a child that ends after the call that spawned it a row of its
// own.
func (b *Board) outlived(c *Child, now time.Time, state State) {
	if c.ended {
		return
	}
	if c.ended = true; c.within() {
		return
	}
	row := newFrame("", c.began)
	row.Name, row.Output, row.noCall = "agent", nil, true
	row.Display = fmt.Sprintf("%s %s", c.Agent, counts(c.Calls, c.Failed))
	row.end(state, now)
	row.event, row.Troubles = b.events, c.troubles
	c.troubles = Troubles{}
	b.add(b.root(c), &entry{frame: row})
	b.lane(b.root(c)).flush = b.events
}

func stateOf(s event.SessionStatus) State {
	switch s {
	case "failed":
		return Failed
	case "interrupted":
		return Incomplete
	}
	return Done
}

func counts(calls, failed int) string {
	s := plural(calls, "call")
	if failed > 0 {
		s += fmt.Sprintf(", %d failed", failed)
	}
	return s
}

// noteOf returns the remark for an event that has no frame, nil for events
// that are not shown.
func noteOf(b event.Body) *Note {
	switch b := b.(type) {
	case event.NoticeEvent:
		if b.Level == "warning" {
			return &Note{Kind: Warning, Text: b.Message}
		}
	case event.ErrorEvent:
		return &Note{Kind: Failure, Text: "error: " + b.Message}
	case event.ProviderRetryEvent:
		return &Note{Kind: Warning, Text: retryText(b)}
	case event.GoalUpdatedEvent:
		return &Note{Kind: KindGoal, Goal: &b}
	case event.LimitWarningEvent:
		return &Note{Kind: Warning, Text: fmt.Sprintf("limit %s: %s of %s are used", b.Limit, number(b.Value), number(b.Max))}
	case event.LimitReachedEvent:
		return &Note{Kind: Warning, Text: fmt.Sprintf("limit %s is reached: %s of %s", b.Limit, number(b.Value), number(b.Max))}
	}
	return nil
}

func retryText(b event.ProviderRetryEvent) string {
	why := b.ErrorKind
	if b.HTTPStatus != 0 {
		why += fmt.Sprintf(" (%d)", b.HTTPStatus)
	}
	text := fmt.Sprintf("provider: %s, next try in %s", why, Duration(time.Duration(b.DelayMS)*time.Millisecond))
	if b.MaxAttempts > 0 {
		text += fmt.Sprintf(" (%d of %d)", b.Attempt+1, b.MaxAttempts)
	}
	return text
}
