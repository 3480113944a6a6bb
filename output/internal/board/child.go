package board

import (
	"fmt"
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
	// Now is the call that it began last and that is still running, or nil.
	Now *Frame
	// Troubles are calls that were refused or failed, and are not told yet.
	Troubles []*Frame

	parent string
	spawn  *Frame
	frames map[string]*Frame
	began  time.Time
	ended  bool
}

// child takes an event of a sub-agent's session.
func (b *Board) child(e event.Event) {
	c := b.children[e.SessionID]
	if c == nil {
		c = &Child{Agent: e.Agent, parent: e.ParentSessionID, frames: map[string]*Frame{}, began: e.Time}
		b.children[e.SessionID] = c
	}
	switch body := e.Body.(type) {
	case event.SessionStartedEvent:
		b.adopt(c, body.SpawnedByToolCallID)
	case event.SessionFinishedEvent:
		c.forget()
		b.outlived(c, e, body)
	case event.TurnFinishedEvent:
		c.forget()
	case event.UsageEvent:
		c.Tokens += body.InputTokens + body.OutputTokens
	default:
		if id := callOf(e.Body); id != "" {
			c.take(id, e)
			if b.show.Agents {
				c.Troubles = nil // they have frames of their own
			}
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
	if f := b.frames[spawn]; f != nil {
		c.spawn = f
	} else if p := b.children[c.parent]; p != nil {
		c.spawn = p.spawn
	}
	if c.spawn != nil {
		c.spawn.Children = append(c.spawn.Children, c)
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

func (c *Child) take(id string, e event.Event) {
	f := c.frames[id]
	if f == nil {
		f = newFrame(id, e.Time)
		f.Output = nil
		c.frames[id] = f
	}
	before := f.State.Final()
	f.take(e)
	if !f.State.Final() {
		c.Now = f
	}
	if before || !f.State.Final() {
		return
	}
	delete(c.frames, id)
	if c.Now == f {
		c.Now = nil
	}
	c.Calls++
	if f.State == Failed || f.State == Denied {
		c.Failed++
		c.Troubles = append(c.Troubles, f)
	}
}

// forget drops the calls that a child has left open.
func (c *Child) forget() {
	for id := range c.frames {
		delete(c.frames, id)
		c.Calls++
	}
	c.Now = nil
}

// outlived gives a child that ends after the call that spawned it a row of
// its own.
func (b *Board) outlived(c *Child, e event.Event, end event.SessionFinishedEvent) {
	if c.ended || c.spawn == nil || !c.spawn.committed {
		c.ended = true
		return
	}
	c.ended = true
	row := newFrame("", c.began)
	row.Name, row.Output = "agent", nil
	row.Display = fmt.Sprintf("%s %s", c.Agent, counts(c.Calls, c.Failed))
	state := Done
	switch end.Status {
	case "failed":
		state = Failed
	case "interrupted":
		state = Incomplete
	}
	row.end(state, e.Time)
	row.Children = []*Child{c}
	b.add(b.root(c), &entry{frame: row})
	b.lane(b.root(c)).flush = true
}

func counts(calls, failed int) string {
	s := fmt.Sprintf("%d calls", calls)
	if calls == 1 {
		s = "1 call"
	}
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
