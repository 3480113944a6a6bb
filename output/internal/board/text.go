package board

import (
	"bytes"
	"strings"

	"drover/output/event"
)

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
	revised  bool
	agent    string
	thought  bool
	replayed bool
	// event is the one that has last made something of it final.
	event int
}

func (b *Board) message(e event.Event, id string, thought bool) *text {
	key := e.SessionID + "\x00" + id
	if thought {
		key += "\x00"
	}
	t := b.texts[key]
	if t == nil {
		b.blocks++
		t = &text{block: b.blocks, thought: thought, replayed: e.Replayed}
		if e.ParentSessionID != "" {
			t.agent = e.Agent
		}
		b.texts[key] = t
		b.add(e.SessionID, &entry{text: t})
	}
	return t
}

func (t *text) add(delta string, event int) {
	if t.done {
		return
	}
	t.whole.WriteString(delta)
	t.rest = append(t.rest, delta...)
	if strings.Contains(delta, "\n") {
		t.ready, t.event = true, event
	}
}

// stop ends a text of which no more will come.
func (t *text) stop(event int) {
	if !t.done {
		t.done, t.event = true, event
		t.whole.Reset()
	}
}

// end closes a text. Without deltas (a core stream, history) the whole is
// printed, otherwise it only has to be the same. What a model thought may come
// as a summary, which is another text.
func (t *text) end(whole string, truncated bool, event int) {
	if t.done {
		return
	}
	switch joined := t.whole.String(); {
	case joined == "":
		t.rest = []byte(whole)
	case !truncated && !t.thought && joined != whole:
		t.revised = true
	}
	t.stop(event)
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
	if t.done {
		t.rest = nil // the text stays only to be known
	}
	return lines
}
