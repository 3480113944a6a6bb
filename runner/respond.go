package runner

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"drover/output/event"
	"drover/runner/model"
	"drover/tools"
)

// response is one complete model response.
type response struct {
	items  []model.Item
	calls  []*call
	text   string
	finish model.FinishReason
	usage  *model.Usage
}

// respond asks the model until a response ends well. Every try shows what it
// streams; a broken one is closed visibly and its calls never run.
func (s *session) respond(ctx context.Context) (*response, *Stop) {
	s.fitWindow()
	for attempt := 1; ; attempt++ {
		if err := s.Model.Limiter.Wait(ctx); err != nil {
			return nil, s.stopOf(ctx)
		}
		began := s.Now()
		c := &collector{session: s, began: began}
		err := c.collect(ctx)
		s.addAPITime(s.Now().Sub(began))
		if err == nil {
			return c.finish(), nil
		}
		c.abandon(ctx)
		if ctx.Err() != nil {
			return nil, s.stopOf(ctx)
		}
		var failed *model.Error
		if !errors.As(err, &failed) {
			return nil, StopFor(err)
		}
		if failed.Kind == model.ErrContext && s.shrink() {
			attempt-- // a shorter conversation is another request
			continue
		}
		delay, again := s.Model.Retry.Next(failed, attempt)
		if !again {
			return nil, StopFor(model.Fault(failed, s.Model.ID))
		}
		s.countRetry()
		s.emit(event.ProviderRetryEvent{
			Attempt: attempt, DelayMS: delay.Milliseconds(), ErrorKind: string(failed.Kind),
			MaxAttempts: s.Model.MaxAttempts, HTTPStatus: failed.Status, Message: failed.Message,
		})
		s.waitFor("rate_limit", "")
		if !pause(ctx, delay) {
			return nil, s.stopOf(ctx)
		}
	}
}

// collector turns the deltas of one try into events and items.
type collector struct {
	*session
	began      time.Time
	firstDelta time.Time
	items      []model.Item
	calls      []*call
	// message and reasoning are the open texts, as indexes into items + 1.
	message, reasoning  int
	messageID, reasonID string
	text, thought       strings.Builder
	reason              model.FinishReason
	usage               *model.Usage
}

func (c *collector) collect(ctx context.Context) error {
	c.waitFor("provider", "")
	defer c.waitFor("none", "")
	req := &model.Request{
		Model: c.Model.Model, System: c.system, Items: c.history, Tools: c.offered,
		MaxOutputTokens: c.Model.Info.MaxOutputTokens, Agent: c.agent, SessionID: c.id,
	}
	if c.Schema != nil {
		req.Schema, req.Strict = c.Schema.sent.Schema, c.Schema.sent.Strict
	}
	for d, err := range model.Watch(ctx, c.Model.Clocks, c.Model.Provider, req) {
		if err != nil {
			return err
		}
		c.take(d)
	}
	return nil
}

func (c *collector) take(d model.Delta) {
	if c.firstDelta.IsZero() && d.Kind != model.Opened {
		c.firstDelta = c.Now()
	}
	switch d.Kind {
	case model.TextDelta:
		if c.message == 0 {
			c.items = append(c.items, model.Item{Kind: model.AssistantMessage})
			c.message, c.messageID = len(c.items), c.session.messageID()
		}
		c.text.WriteString(d.Text)
		c.emit(event.MessageDeltaEvent{MessageID: c.messageID, Delta: d.Text})
	case model.ReasoningDelta:
		if c.reasoning == 0 {
			c.items = append(c.items, model.Item{Kind: model.Reasoning, Origin: c.Model.Provider.Name()})
			c.reasoning, c.reasonID = len(c.items), c.session.messageID()
		}
		c.thought.WriteString(d.Text)
		c.emit(event.ReasoningDeltaEvent{MessageID: c.reasonID, Delta: d.Text})
	case model.Keep:
		c.items = append(c.items, *d.Item)
	case model.CallStart:
		k := &call{id: c.newCallID(d.ID), name: cutTo(d.Name, 128), index: d.Index, freeform: d.Freeform}
		c.calls, c.live = append(c.calls, k), append(c.live, k)
		c.items = append(c.items, model.Item{Kind: model.ToolCall, CallID: k.id, Name: d.Name, Freeform: d.Freeform})
		k.item = len(c.items) - 1
		c.emit(event.ToolCallStartEvent{ToolCallID: k.id, ToolName: k.name, Index: d.Index})
	case model.CallArgs:
		for _, k := range c.calls {
			if k.index == d.Index {
				k.args.WriteString(d.Text)
				c.emit(event.ToolCallArgsDeltaEvent{ToolCallID: k.id, Delta: d.Text})
				break
			}
		}
	case model.Finish:
		c.reason, c.usage = d.Reason, d.Usage
	}
}

// finish closes the texts and reports the usage of a response that ended well.
func (c *collector) finish() *response {
	r := &response{items: c.items, calls: c.calls, text: c.text.String(), finish: c.reason, usage: c.usage}
	cut := c.reason == model.Length
	if c.reasoning > 0 {
		c.items[c.reasoning-1].Text = c.thought.String()
		c.emit(event.ReasoningEvent{MessageID: c.reasonID, Text: c.thought.String()})
	}
	if c.message > 0 {
		c.items[c.message-1].Text = r.text
		phase := event.Phase("final")
		if len(c.calls) > 0 || cut {
			phase = "commentary"
		}
		c.emit(event.MessageEvent{MessageID: c.messageID, Role: "assistant", Text: r.text, Phase: phase, Truncated: cut})
	}
	for _, k := range c.calls {
		k.input = tools.Input{Text: k.args.String(), Freeform: k.freeform}
		c.items[k.item].Args = k.input.Text
	}
	c.recordUsage(c)
	if cut || c.reason == model.ContentFilter || c.reason == model.Refusal {
		c.dropCalls(r)
	}
	c.keepOpaque(r.items)
	return r
}

// dropCalls ends the calls of a response that may not run any, and takes them
// out of the history.
func (c *collector) dropCalls(r *response) {
	for _, k := range c.calls {
		c.incomplete(k, "limit")
	}
	var kept []model.Item
	for _, it := range r.items {
		if it.Kind != model.ToolCall {
			kept = append(kept, it)
		}
	}
	r.items, r.calls = kept, nil
}

// abandon closes what a broken try has shown.
func (c *collector) abandon(ctx context.Context) {
	reason := event.IncompleteReason("provider_error")
	if ctx.Err() != nil {
		reason = incompleteReason(c.stopOf(ctx))
	}
	if c.reasoning > 0 {
		c.emit(event.ReasoningEvent{MessageID: c.reasonID, Text: c.thought.String(), Truncated: true})
	}
	if c.message > 0 {
		c.emit(event.MessageEvent{MessageID: c.messageID, Role: "assistant", Text: c.text.String(), Phase: "commentary", Truncated: true})
	}
	for _, k := range c.calls {
		c.incomplete(k, reason)
	}
}

// keepOpaque stores what only the provider needs back beside the events.
func (s *session) keepOpaque(items []model.Item) {
	if s.Keep == nil {
		return
	}
	for _, it := range items {
		if len(it.Opaque) == 0 {
			continue
		}
		if err := s.Keep(it); err != nil {
			s.emit(event.NoticeEvent{Level: "warning", Code: "session_record_lost", Message: "the session file could not keep a record: " + err.Error()})
			return
		}
	}
}

func (s *session) messageID() string {
	s.messages++
	return "msg_" + strconv.Itoa(s.messages)
}

// newCallID returns a call id that is unique in the run. The provider's own is
// used when it is harmless and new.
func (r *run) newCallID(id string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !harmlessID(id) || r.Row != nil && len(id) > maxRowCallID {
		id = "call_" + strconv.Itoa(len(r.callIDs)+1)
	}
	unique := id
	for n := 2; r.callIDs[unique]; n++ {
		unique = id + "_" + strconv.Itoa(n)
	}
	r.callIDs[unique] = true
	if r.Row != nil {
		// Other rows of the same run have calls of the same names.
		unique += fmt.Sprintf("_r%da%d", r.Row.Index+1, r.Row.Attempt)
	}
	return unique
}

// maxRowCallID leaves room for the number of the row: providers take ids of at
// most 64 bytes.
const maxRowCallID = 40

// harmlessID admits what providers really send; anything else could be made to
// look like something it is not.
func harmlessID(id string) bool {
	if id == "" || len(id) > 64 {
		return false
	}
	for _, c := range id {
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '_' && c != '-' {
			return false
		}
	}
	return true
}

func cutText(r *response) string {
	where := "its output limit"
	if r.usage != nil {
		where = fmt.Sprintf("%d output tokens", r.usage.OutputTokens)
	}
	return "Your last response was cut at " + where + ". None of its tool calls was run. Send the rest in smaller pieces."
}

func cutTo(s string, n int) string {
	if len(s) <= n {
		return s
	}
	// A secret that is cut here is known by the mark.
	const mark = "…"
	return strings.ToValidUTF8(s[:n-len(mark)], "") + mark
}

// pause waits, and tells whether the wait was not cut short.
func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
