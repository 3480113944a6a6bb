package event

import (
	"bytes"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
)

// checkedCall is how far a call has come.
type checkedCall struct {
	session string
	// announced, whole and ended say that tool.call.started, tool.call and the
	// result or incomplete have been seen.
	announced, whole, ended bool
	args                    strings.Builder
	status                  ToolStatus
	effect                  DecisionEffect
	// last is the type of the call's latest event but those of its terminals.
	last string
}

// openCalls returns the calls of a session that have no end, in the order of
// their ids; all sessions' for "".
func (c *Checker) openCalls(session string) []string {
	var open []string
	for id, k := range c.calls {
		if !k.ended && (session == "" || k.session == session) {
			open = append(open, id)
		}
	}
	slices.Sort(open)
	return open
}

// callID returns the call that an event belongs to, "" if it belongs to none.
// The events of a terminal are not asked: it may outlive its call.
func callID(b Body) string {
	switch b := b.(type) {
	case ToolCallStartEvent:
		return b.ToolCallID
	case ToolCallArgsDeltaEvent:
		return b.ToolCallID
	case ToolCallEvent:
		return b.ToolCallID
	case ToolDecisionEvent:
		return b.ToolCallID
	case ToolStatusEvent:
		return b.ToolCallID
	case ToolResultEvent:
		return b.ToolCallID
	case ToolIncompleteEvent:
		return b.ToolCallID
	case FileChangedEvent:
		return b.ToolCallID
	}
	return ""
}

// call checks the order of the events of one call. Other calls may come in
// between.
func (c *Checker) call(e Event) {
	id := callID(e.Body)
	if id == "" {
		return
	}
	k := c.calls[id]
	if k == nil {
		k = &checkedCall{session: e.SessionID}
		if c.calls == nil {
			c.calls = map[string]*checkedCall{}
		}
		c.calls[id] = k
	}
	if k.ended {
		c.fail("call %s has ended before", id)
		return
	}
	if s := c.session(e.SessionID); !s.turnOpen {
		c.fail("call %s is outside a turn", id)
	}
	if _, isStatus := e.Body.(ToolStatusEvent); k.last == "tool.call" && !isStatus {
		c.fail("call %s: tool.status pending has to follow tool.call", id)
	}
	switch b := e.Body.(type) {
	case ToolCallStartEvent:
		if k.last != "" {
			c.fail("call %s has begun before", id)
		}
		k.announced = true
	case ToolCallArgsDeltaEvent:
		if !k.announced || k.whole {
			c.fail("call %s: arguments have to come between tool.call.started and tool.call", id)
		}
		k.args.WriteString(b.Delta)
	case ToolCallEvent:
		c.wholeCall(id, k, b)
	case ToolDecisionEvent:
		c.decision(id, k, b)
	case ToolStatusEvent:
		c.status(id, k, b)
	case ToolResultEvent:
		c.result(id, k, b)
	case ToolIncompleteEvent:
		c.end(id, k, StatusIncomplete)
	case FileChangedEvent:
		if !k.whole {
			c.fail("call %s has no tool.call yet", id)
		}
	}
	k.last = e.Body.Type()
}

func (c *Checker) wholeCall(id string, k *checkedCall, b ToolCallEvent) {
	if k.whole {
		c.fail("call %s has a tool.call already", id)
	}
	if !k.announced {
		c.failAtDefault("call %s has no tool.call.started", id)
	}
	k.whole = true
	if joined := k.args.String(); joined != "" && !b.Truncated && !sameArgs(joined, b) {
		c.fail("call %s: the joined deltas are not its arguments", id)
	}
	k.args.Reset()
}

// sameArgs tells whether streamed arguments are those of the call: the text
// that could not be parsed, the same JSON, or the raw input of a freeform
// tool. Where a secret was masked the two need not be the same JSON.
func sameArgs(joined string, b ToolCallEvent) bool {
	if joined == b.ArgsRaw || strings.Contains(joined, "[secret:") {
		return true
	}
	var input struct {
		Input *string `json:"input"`
	}
	if json.Unmarshal(b.Args, &input) == nil && input.Input != nil && *input.Input == joined {
		return true
	}
	if text := strings.TrimSpace(joined); text == "" || text == "null" {
		joined = "{}"
	}
	streamed, ok := parsed([]byte(joined))
	if !ok {
		return false
	}
	args, ok := parsed(b.Args)
	return ok && reflect.DeepEqual(streamed, args)
}

func parsed(raw []byte) (v any, ok bool) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	return v, dec.Decode(&v) == nil
}

func (c *Checker) decision(id string, k *checkedCall, b ToolDecisionEvent) {
	switch {
	case !k.whole:
		c.fail("call %s has no tool.call yet", id)
	case k.effect != "":
		c.fail("call %s was decided before", id)
	case k.status == StatusRunning:
		c.fail("call %s was decided after it ran", id)
	}
	k.effect = b.Effect
	if b.Effect == "deny" {
		c.refused = append(c.refused, id)
	}
}

// status checks that a state may follow the one before it.
func (c *Checker) status(id string, k *checkedCall, b ToolStatusEvent) {
	if !k.whole {
		c.fail("call %s has no tool.call yet", id)
	}
	from, to := k.status, b.Status
	allowed := false
	switch to {
	case StatusPending:
		allowed = from == "" && k.last == "tool.call"
	case StatusAwaiting:
		allowed = from == StatusPending || from == StatusRunning
	case StatusRunning:
		// More progress of the same state is no change but may be told.
		allowed = from == StatusPending || from == StatusAwaiting || from == StatusRunning && b.Progress != ""
		if k.effect == "" {
			c.failAtDefault("call %s runs without a decision", id)
		}
		if k.effect == "deny" {
			c.fail("call %s was refused and runs", id)
		}
	case StatusDone:
		allowed = from == StatusRunning
	default:
		allowed = from == StatusPending || from == StatusAwaiting || from == StatusRunning
	}
	if !allowed {
		c.fail("call %s: status %s cannot follow %q", id, to, from)
	}
	k.status = to
}

func (c *Checker) result(id string, k *checkedCall, b ToolResultEvent) {
	if !k.whole {
		c.fail("call %s has no tool.call", id)
	}
	want := StatusDone
	switch {
	case b.Denied:
		want = StatusDenied
		if !b.IsError {
			c.fail("call %s was denied: is_error has to be true", id)
		}
	case b.IsError:
		want = StatusError
	}
	if k.effect == "deny" && !b.Denied {
		c.fail("call %s was refused: its result has to say denied", id)
	}
	c.end(id, k, want)
}

// end checks the state directly before a call's last event.
func (c *Checker) end(id string, k *checkedCall, want ToolStatus) {
	k.ended = true
	if !k.whole {
		return // its arguments never came whole, so it had no state
	}
	if k.last != "tool.status" || k.status != want {
		c.fail("call %s: tool.status %s has to come directly before, not %s %s", id, want, k.last, k.status)
	}
}
