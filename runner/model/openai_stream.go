package model

import (
	"encoding/json"
	"strconv"
	"strings"
)

// responsesReader turns the events of a Responses stream into deltas.
//
// Every piece of a response is announced up to four times: as deltas, as a
// "done" event, as a part of its item's "done" event and as a part of the last
// event. Servers leave out what they like. The reader delivers each piece once,
// at the first place where it stands.
type responsesReader struct {
	emitter
	*endpoint
	// keepAll keeps reasoning that came without its encrypted form too.
	keepAll bool
	// freeform names the tools that were offered as freeform.
	freeform map[string]bool

	states []*responsesCallState
	// shown are the texts, refusals and reasonings of which something was
	// delivered, by kind, output index and part.
	shown map[string]bool
	// message and thought are the texts that were delivered last, to separate
	// one from the next.
	message, thought string
	kept             map[string]bool
	keptAny          bool
	refused          bool
	// content and thoughts join what was cut inside a character.
	content, thoughts textJoiner
}

// responsesCallState is a call of the response.
type responsesCallState struct {
	*openCall
	itemID, callID string
	output         int
	pieces         textJoiner
}

// responsesEvent is what the reader needs of any event.
type responsesEvent struct {
	Type         string          `json:"type"`
	OutputIndex  int             `json:"output_index"`
	ContentIndex int             `json:"content_index"`
	SummaryIndex int             `json:"summary_index"`
	ItemID       string          `json:"item_id"`
	Delta        json.RawMessage `json:"delta"`
	Text         string          `json:"text"`
	Refusal      string          `json:"refusal"`
	Arguments    string          `json:"arguments"`
	Input        string          `json:"input"`
	Item         json.RawMessage `json:"item"`
	Response     *responsesBody  `json:"response"`
	// Error tells an error event without a type from others.
	Error json.RawMessage `json:"error"`
}

type responsesBody struct {
	Status     string            `json:"status"`
	Output     []json.RawMessage `json:"output"`
	Incomplete *struct {
		Reason string `json:"reason"`
	} `json:"incomplete_details"`
	Usage *struct {
		InputTokens  int64 `json:"input_tokens"`
		OutputTokens int64 `json:"output_tokens"`
		Input        struct {
			Cached     int64 `json:"cached_tokens"`
			CacheWrite int64 `json:"cache_write_tokens"`
		} `json:"input_tokens_details"`
		Output struct {
			Reasoning int64 `json:"reasoning_tokens"`
		} `json:"output_tokens_details"`
	} `json:"usage"`
}

type responsesItem struct {
	Type      string          `json:"type"`
	ID        string          `json:"id"`
	CallID    string          `json:"call_id"`
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"`
	Input     string          `json:"input"`
	Action    json.RawMessage `json:"action"`
	Encrypted string          `json:"encrypted_content"`
	Content   []responsesPart `json:"content"`
	Summary   []responsesPart `json:"summary"`
}

type responsesPart struct {
	Type    string `json:"type"`
	Text    string `json:"text"`
	Refusal string `json:"refusal"`
}

func newResponsesReader(p *endpoint, req *Request) *responsesReader {
	return &responsesReader{endpoint: p, keepAll: p.ReplayReasoning == "always", freeform: freeformNames(req.Tools),
		shown: map[string]bool{}, kept: map[string]bool{}}
}

// freeformNames returns the names of the freeform tools.
func freeformNames(tools []Tool) map[string]bool {
	names := map[string]bool{}
	for _, t := range tools {
		if t.Freeform {
			names[t.Name] = true
		}
	}
	return names
}

// read takes one event. It returns an error when the response has failed.
func (r *responsesReader) read(name string, data []byte) error {
	var e responsesEvent
	if err := r.decode(data, &e); err != nil {
		return err
	}
	if e.Type == "" {
		e.Type = name
	}
	switch e.Type {
	case "response.created", "response.queued", "response.in_progress":
		r.open()
	case "response.output_text.delta":
		r.say(&e, e.ContentIndex, joinText(&r.content, e.Delta))
	case "response.output_text.done":
		r.sayOnce(&e, e.ContentIndex, e.Text)
	case "response.refusal.delta":
		r.refused = true
		r.say(&e, e.ContentIndex, joinText(&r.content, e.Delta))
	case "response.refusal.done":
		r.refused = true
		r.sayOnce(&e, e.ContentIndex, e.Refusal)
	case "response.reasoning_summary_text.delta":
		r.think(&e, "s", e.SummaryIndex, joinText(&r.thoughts, e.Delta))
	case "response.reasoning_summary_text.done":
		r.thinkOnce(&e, "s", e.SummaryIndex, e.Text)
	case "response.reasoning_text.delta":
		r.think(&e, "t", e.ContentIndex, joinText(&r.thoughts, e.Delta))
	case "response.reasoning_text.done":
		r.thinkOnce(&e, "t", e.ContentIndex, e.Text)
	case "response.function_call_arguments.delta", "response.custom_tool_call_input.delta":
		c := r.callFor(&e)
		r.emitArgs(c.openCall, joinText(&c.pieces, e.Delta))
	case "response.function_call_arguments.done":
		r.emitWhole(r.callFor(&e).openCall, e.Arguments)
	case "response.custom_tool_call_input.done":
		r.emitWhole(r.callFor(&e).openCall, e.Input)
	case "response.output_item.added":
		return r.item(&e, e.Item, false)
	case "response.output_item.done":
		return r.item(&e, e.Item, true)
	case "response.completed", "response.done", "response.incomplete", "response.failed", "response.cancelled":
		return r.end(&e, data)
	case "error", "response.error":
		return r.streamError(data)
	default:
		// An event of a kind that is not known changes nothing, but a nameless
		// one that carries an error is one.
		if isObject(e.Error) && !strings.HasPrefix(e.Type, "response.") {
			return r.streamError(data)
		}
	}
	return nil
}

// partKey names a part of the response, in all the events that speak of it.
func partKey(kind string, output, part int) string {
	return kind + strconv.Itoa(output) + "/" + strconv.Itoa(part)
}

func (r *responsesReader) say(e *responsesEvent, part int, text string) {
	if text == "" {
		return
	}
	// A message after a message would run into it.
	message := strconv.Itoa(e.OutputIndex)
	if r.message != "" && r.message != message {
		text = "\n\n" + text
	}
	r.message = message
	r.shown[partKey("m", e.OutputIndex, part)] = true
	r.text(text)
}

func (r *responsesReader) sayOnce(e *responsesEvent, part int, text string) {
	if !r.shown[partKey("m", e.OutputIndex, part)] {
		r.say(e, part, text)
	}
}

func (r *responsesReader) think(e *responsesEvent, kind string, part int, text string) {
	if text == "" {
		return
	}
	key := partKey(kind, e.OutputIndex, part)
	if r.thought != "" && r.thought != key {
		text = "\n\n" + text
	}
	r.thought = key
	r.shown[key] = true
	r.reasoning(text)
}

func (r *responsesReader) thinkOnce(e *responsesEvent, kind string, part int, text string) {
	if !r.shown[partKey(kind, e.OutputIndex, part)] {
		r.think(e, kind, part, text)
	}
}

// callFor returns the call that an event speaks of. The item's id comes first,
// since servers have sent parallel calls with one index; the index second,
// since proxies have sent one item with an id per event.
func (r *responsesReader) callFor(e *responsesEvent) *responsesCallState {
	var c *responsesCallState
	if e.ItemID != "" {
		c = r.find(func(c *responsesCallState) bool { return c.itemID == e.ItemID })
	}
	if c == nil {
		c = r.find(func(c *responsesCallState) bool { return c.output == e.OutputIndex })
	}
	if c == nil {
		// Its item has not been announced: the pieces wait for the name.
		c = r.newCall(e.ItemID, "", e.OutputIndex)
	}
	return c
}

// find returns the newest call that fits, or nil.
func (r *responsesReader) find(fits func(*responsesCallState) bool) *responsesCallState {
	for i := len(r.states) - 1; i >= 0; i-- {
		if fits(r.states[i]) {
			return r.states[i]
		}
	}
	return nil
}

func (r *responsesReader) newCall(itemID, callID string, output int) *responsesCallState {
	c := &responsesCallState{openCall: r.emitter.newCall(), itemID: itemID, callID: callID, output: output}
	r.states = append(r.states, c)
	return c
}

// item takes an item that was added or is done.
func (r *responsesReader) item(e *responsesEvent, raw json.RawMessage, done bool) error {
	if len(raw) == 0 {
		return nil
	}
	var it responsesItem
	if err := r.decode(raw, &it); err != nil {
		return err
	}
	switch it.Type {
	case "function_call", "custom_tool_call", localShellItem:
		r.callItem(e, &it, done)
	case "message":
		r.open()
		for i, part := range it.Content {
			if !done {
				break
			}
			if part.Type == "refusal" {
				r.refused = true
				r.sayOnce(e, i, part.Refusal)
				continue
			}
			r.sayOnce(e, i, part.Text)
		}
	case "reasoning":
		r.open()
		if done {
			r.reasoningItem(e, &it, raw)
		}
	}
	return nil
}

func (r *responsesReader) callItem(e *responsesEvent, it *responsesItem, done bool) {
	if it.Type == localShellItem {
		it.Name = localShell
		if it.CallID == "" {
			it.CallID = it.ID
		}
	}
	c := r.callOf(e, it)
	c.itemID, c.callID = it.ID, it.CallID
	if !c.named {
		custom := it.Type == "custom_tool_call"
		r.start(c.openCall, it.CallID, it.Name, custom || r.freeform[it.Name], !custom)
	}
	if !done {
		return
	}
	args := it.Input
	switch it.Type {
	case "function_call":
		args = argsText(it.Arguments)
	case localShellItem:
		args = string(it.Action)
	}
	r.emitWhole(c.openCall, args)
	r.close(c.openCall)
}

// callOf finds the call of an item, or opens one.
func (r *responsesReader) callOf(e *responsesEvent, it *responsesItem) *responsesCallState {
	if it.ID != "" {
		if c := r.find(func(c *responsesCallState) bool { return c.itemID == it.ID }); c != nil {
			return c
		}
	}
	if it.CallID != "" {
		if c := r.find(func(c *responsesCallState) bool { return c.callID == it.CallID }); c != nil {
			return c
		}
	}
	// A call at this index is this one unless it has another call id.
	c := r.find(func(c *responsesCallState) bool {
		return c.output == e.OutputIndex && (c.callID == "" || it.CallID == "")
	})
	if c != nil && !c.closed {
		return c
	}
	return r.newCall(it.ID, it.CallID, e.OutputIndex)
}

// reasoningItem delivers what no delta brought, and keeps the item when it can
// be sent back: without its encrypted content the server would look for it
// where it was told to store nothing.
func (r *responsesReader) reasoningItem(e *responsesEvent, it *responsesItem, raw json.RawMessage) {
	for i, part := range it.Summary {
		r.thinkOnce(e, "s", i, part.Text)
	}
	for i, part := range it.Content {
		r.thinkOnce(e, "t", i, part.Text)
	}
	key := it.ID
	if key == "" {
		key = strconv.Itoa(e.OutputIndex)
	}
	if it.Encrypted == "" && !r.keepAll || r.kept[key] {
		return
	}
	r.kept[key] = true
	r.keptAny = true
	r.keep(&Item{Kind: Reasoning, Opaque: append(json.RawMessage(nil), raw...), Origin: r.Name})
}

// end takes the last event.
func (r *responsesReader) end(e *responsesEvent, data []byte) error {
	body := e.Response
	if body == nil {
		body = &responsesBody{}
	}
	status := body.Status
	if kind := strings.TrimPrefix(e.Type, "response."); status == "" || kind != "done" && kind != "completed" {
		status = kind
	}
	if status == "failed" || status == "cancelled" {
		return r.streamError(data)
	}
	if err := r.missing(body.Output); err != nil {
		return err
	}
	r.reasoning(r.thoughts.flush())
	r.text(r.content.flush())
	reason := Stop
	switch {
	case status == "incomplete":
		why := ""
		if body.Incomplete != nil {
			why = body.Incomplete.Reason
		}
		switch why {
		case "max_output_tokens", "max_tokens", "length":
			reason = Length
		case "content_filter":
			reason = ContentFilter
		default:
			return &Error{Kind: ErrServer, Retryable: true, Message: "the server left the response incomplete: " + r.clean(why, 100)}
		}
	case r.refused:
		reason = Refusal
	case len(r.states) > 0:
		reason = ToolCalls
	}
	return r.finish(reason, body.usage())
}

// missing delivers the items of the last event, where the stream brought none
// of their kind: some servers send nothing else.
func (r *responsesReader) missing(output []json.RawMessage) error {
	noText, noCalls, noKeep := r.message == "", len(r.states) == 0, !r.keptAny
	for i, raw := range output {
		var it responsesItem
		if err := r.decode(raw, &it); err != nil {
			return err
		}
		take := false
		switch it.Type {
		case "message":
			take = noText
		case "function_call", "custom_tool_call", localShellItem:
			take = noCalls
		case "reasoning":
			take = noKeep
		}
		if !take {
			continue
		}
		if err := r.item(&responsesEvent{OutputIndex: i}, raw, true); err != nil {
			return err
		}
	}
	return nil
}

func (b *responsesBody) usage() *Usage {
	if b.Usage == nil {
		return nil
	}
	return counted(Usage{
		InputTokens: b.Usage.InputTokens, OutputTokens: b.Usage.OutputTokens,
		CachedInputTokens: b.Usage.Input.Cached, CacheWriteTokens: b.Usage.Input.CacheWrite,
		ReasoningTokens: b.Usage.Output.Reasoning,
	})
}

// argsText returns arguments that came as a string, as APIs say, or as the
// object itself, as some servers do.
func argsText(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s
	}
	return string(raw)
}
