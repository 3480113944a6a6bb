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
	// asked is the request that the call waits for, "" if it waits for none.
	asked string
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
	c.answered(id, b)
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
	if from == StatusAwaiting && k.asked != "" {
		c.fail("call %s: status %s while the request %s is open", id, to, k.asked)
	}
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

// checkedRequest is a request for an approval.
type checkedRequest struct {
	callID             string
	resolved, approved bool
}

// approval checks that a blocked call is asked about once, and that the answer
// comes before anything else happens to it. The session that answers need not
// be that of the call.
func (c *Checker) approval(e Event) {
	switch b := e.Body.(type) {
	case ToolApprovalRequestEvent:
		if c.requests[b.CorrelationID] != nil {
			c.fail("the request %s has been made before", b.CorrelationID)
			return
		}
		if c.requests == nil {
			c.requests = map[string]*checkedRequest{}
		}
		c.requests[b.CorrelationID] = &checkedRequest{callID: b.ToolCallID}
		k := c.calls[b.ToolCallID]
		switch {
		case k == nil || k.ended || k.status != StatusAwaiting:
			c.fail("call %s is asked about without tool.status awaiting_approval", b.ToolCallID)
		case k.asked != "":
			c.fail("call %s waits for the request %s already", b.ToolCallID, k.asked)
		default:
			k.asked = b.CorrelationID
		}
	case ToolApprovalResponseEvent:
		r := c.requests[b.CorrelationID]
		if r == nil || r.resolved {
			c.fail("the request %s is not open", b.CorrelationID)
			return
		}
		r.resolved, r.approved = true, b.Approved
		if k := c.calls[r.callID]; k != nil && k.asked == b.CorrelationID {
			k.asked = ""
		}
	}
}

// answered checks that a decision is that of the answer it names.
func (c *Checker) answered(id string, b ToolDecisionEvent) {
	if b.CorrelationID == "" {
		return
	}
	r := c.requests[b.CorrelationID]
	switch {
	case r == nil || !r.resolved || r.callID != id:
		c.fail("call %s: the request %s was not resolved", id, b.CorrelationID)
	case b.Effect == "allow" && !r.approved:
		c.fail("call %s is allowed although the request %s was refused", id, b.CorrelationID)
	}
}

// openRequests returns the requests without an answer, in the order of their
// ids.
func (c *Checker) openRequests() []string {
	var open []string
	for id, r := range c.requests {
		if !r.resolved {
			open = append(open, id)
		}
	}
	slices.Sort(open)
	return open
}
