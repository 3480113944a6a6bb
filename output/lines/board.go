package lines

import (
	"strings"
	"time"

	"drover/output/event"
	"drover/output/internal/term"
)

// item is one thing to print: a frame, or a line of the assistant's text.
type item struct {
	frame *frame
	text  string
}

// entry is a frame or an open text, in the order in which they began.
type entry struct {
	frame *frame
	// text is what has arrived of a message and is not printed; done says
	// that no more will come.
	id   string
	text string
	done bool
}

// board keeps what is not printed yet.
type board struct {
	entries []*entry
	frames  map[string]*frame
	texts   map[string]*entry
}

func newBoard() *board {
	return &board{frames: map[string]*frame{}, texts: map[string]*entry{}}
}

// take updates the board. An event of a call that nobody announced opens its
// frame in the state that the event implies.
func (b *board) take(e event.Event) {
	switch body := e.Body.(type) {
	case event.MessageDeltaEvent:
		b.message(body.MessageID).text += body.Delta
	case event.MessageEvent:
		b.endMessage(body)
	case event.ToolCallStartEvent:
		b.frame(body.ToolCallID, e.Time).name = body.ToolName
	case event.ToolCallEvent:
		f := b.frame(body.ToolCallID, e.Time)
		f.name, f.display = body.ToolName, body.Display
	case event.ToolStatusEvent:
		f := b.frame(body.ToolCallID, e.Time)
		f.name = body.ToolName
		if body.Status == event.StatusRunning {
			f.started = e.Time
		}
	case event.ToolDecisionEvent:
		f := b.frame(body.ToolCallID, e.Time)
		f.rule, f.decidedBy = body.RuleID, string(body.DecidedBy)
		f.reason = body.Reason
	case event.TerminalAppendStringEvent:
		if body.Encoding != "base64" {
			b.frame(body.ToolCallID, e.Time).output.Write(body.Delta)
		}
	case event.TerminalCompletedEvent:
		f := b.frame(body.ToolCallID, e.Time)
		f.exitCode, f.signal, f.timedOut, f.command = body.ExitCode, body.Signal, body.TimedOut, true
	case event.PlanUpdatedEvent:
		b.plan(body)
	case event.ToolResultEvent:
		b.frame(body.ToolCallID, e.Time).finish(body, e.Time)
	case event.ToolIncompleteEvent:
		f := b.frame(body.ToolCallID, e.Time)
		f.state, f.ended = incomplete, e.Time
		if body.Reason == "cancelled" {
			f.state = cancelled
		}
	case event.TurnFinishedEvent:
		b.endTurn(e.Time)
	}
}

func (b *board) frame(id string, now time.Time) *frame {
	f := b.frames[id]
	if f == nil {
		f = &frame{id: id, name: "tool", started: now, output: term.NewDiscipline()}
		b.frames[id] = f
		b.entries = append(b.entries, &entry{frame: f})
	}
	return f
}

func (b *board) message(id string) *entry {
	t := b.texts[id]
	if t == nil {
		t = &entry{id: id}
		b.texts[id] = t
		b.entries = append(b.entries, t)
	}
	return t
}

// endMessage closes a text. Without deltas (a core stream) the whole is it.
func (b *board) endMessage(m event.MessageEvent) {
	if m.Role != "assistant" {
		return
	}
	t, seen := b.texts[m.MessageID]
	if !seen {
		t = b.message(m.MessageID)
		t.text = m.Text
	}
	if m.Truncated && t.text != "" {
		t.text += " [cut]"
	}
	t.done = true
	delete(b.texts, m.MessageID)
}

// plan belongs to the call of update_plan that is open.
func (b *board) plan(p event.PlanUpdatedEvent) {
	for i := len(b.entries) - 1; i >= 0; i-- {
		if f := b.entries[i].frame; f != nil && f.name == "update_plan" && f.state == open {
			f.plan = p.Items
			return
		}
	}
}

// endTurn ends what the turn has left open.
func (b *board) endTurn(now time.Time) {
	for _, e := range b.entries {
		if e.frame != nil && e.frame.state == open {
			e.frame.state, e.frame.ended = incomplete, now
		}
		e.done = true
	}
}

// ready takes from the board what can be printed: final items, in order, and
// whole lines of the text at the head.
func (b *board) ready() []item {
	var out []item
	for len(b.entries) > 0 {
		e := b.entries[0]
		if e.frame != nil {
			if e.frame.state == open {
				return out
			}
			out = append(out, item{frame: e.frame})
			delete(b.frames, e.frame.id)
		} else {
			out = append(out, e.lines()...)
			if !e.done {
				return out
			}
			if strings.TrimSpace(e.text) != "" {
				out = append(out, item{text: e.text})
			}
		}
		b.entries = b.entries[1:]
	}
	return out
}

// lines takes the completed lines out of a text.
func (e *entry) lines() []item {
	var out []item
	for {
		line, rest, ok := strings.Cut(e.text, "\n")
		if !ok {
			return out
		}
		out = append(out, item{text: line})
		e.text = rest
	}
}

// rest ends everything and takes it.
func (b *board) rest() []item {
	for _, e := range b.entries {
		e.done = true
		if e.frame != nil && e.frame.state == open {
			e.frame.state = incomplete
		}
	}
	return b.ready()
}

// still returns the frame of a call that has been running for another minute.
func (b *board) still(id string, now time.Time) *frame {
	f := b.frames[id]
	if f == nil || f.state != open {
		return nil
	}
	minutes := int(now.Sub(f.started) / time.Minute)
	if minutes <= f.minutes {
		return nil
	}
	f.minutes = minutes
	return f
}
