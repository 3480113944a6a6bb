package board

import (
	"slices"
	"time"
)

// This file takes what is final off the board.

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
		if len(l.items) == 0 || l.flush > 0 {
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

// ready merges what the lanes have: whole items, in the order in which they
// could be printed.
func (b *Board) ready(now time.Time, noRoom bool) []Item {
	type ordered struct {
		Item
		event int
	}
	var all []ordered
	for _, l := range b.order {
		event := 0
		for len(l.items) > 0 {
			item, at, more := b.pop(l, now, noRoom)
			event = max(event, at)
			if item != nil {
				all = append(all, ordered{*item, event})
			}
			if !more {
				break
			}
		}
	}
	slices.SortStableFunc(all, func(a, b ordered) int { return a.event - b.event })
	var out []Item
	for _, it := range all {
		out = append(out, it.Item)
	}
	if b.last != nil {
		out = append(out, Item{Note: b.last})
		b.last = nil
	}
	return out
}

// pop returns what the head of a lane has to print, with which event it became
// final, and whether the lane may be asked again.
func (b *Board) pop(l *lane, now time.Time, noRoom bool) (item *Item, event int, more bool) {
	head := l.items[0]
	event = head.event
	switch {
	case head.note != nil:
		item = &Item{Note: head.note}
	case head.job != nil:
		if !head.job.final {
			return nil, 0, false
		}
		item, event = &Item{Job: head.job}, b.events
	case head.frame != nil:
		f := head.frame
		switch {
		case !f.State.Final():
			return nil, 0, false
		case len(l.items) > 1:
			event = max(f.event, l.items[1].event)
		case l.flush > 0:
			event = max(f.event, l.flush)
		case noRoom || !now.Before(f.ended.Add(late)):
			event = b.events
		default:
			return nil, 0, false
		}
		item = &Item{Frame: b.settle(f)}
	default:
		t := head.text
		event = t.event
		if lines := t.lines(); len(lines) > 0 {
			item = &Item{Text: &Text{Block: t.block, Lines: lines, Agent: t.agent, Thought: t.thought}}
		}
		if !t.done {
			return item, event, false
		}
		if t.revised {
			// The remark takes the place of its text.
			t.revised = false
			l.items[0] = &entry{event: event, note: &Note{Kind: Warning, Text: "text was revised, see the log"}}
			return item, event, true
		}
	}
	l.items[0] = nil
	l.items = l.items[1:]
	return item, event, true
}

// settle returns a frame as it is to be printed. What the board keeps of it is
// only that it was there.
func (b *Board) settle(f *Frame) *Frame {
	b.status.count(f)
	shown := *f
	f.committed = true
	f.Output, f.tails, f.Content, f.Plan, f.Troubles = nil, nil, "", nil, Troubles{}
	return &shown
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
