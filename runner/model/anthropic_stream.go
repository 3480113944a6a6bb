package model

import (
	"bytes"
	"encoding/json"
	"strings"
)

// messagesReader turns the events of a Messages stream into deltas.
//
// The end marker is message_stop. A stream that ends cleanly without it is
// good all the same when a stop reason has come and no block is open: the stop
// reason is what says that the message is complete.
type messagesReader struct {
	emitter
	*endpoint
	// keepAll keeps thinking that is not signed too.
	keepAll bool
	// freeform names the tools that were offered as freeform.
	freeform map[string]bool

	// blocks are the open blocks, oldest first.
	blocks []*messagesBlock
	// spoke says that text was delivered, apart that another block came since.
	spoke, apart bool
	began        bool
	stopReason   string
	usage        messagesUsage
	// content and thoughts join what was cut inside a character.
	content, thoughts textJoiner
}

// messagesBlock is a content block that has begun.
type messagesBlock struct {
	index int
	kind  string
	call  *openCall
	// pieces joins arguments that were cut inside a character.
	pieces textJoiner
	// input is what the block's start said of a call's arguments.
	input json.RawMessage
	// raw is a block that goes back as it came.
	raw                 json.RawMessage
	thinking, signature strings.Builder
}

type messagesEvent struct {
	Type    string `json:"type"`
	Index   *int   `json:"index"`
	Message struct {
		Usage      messagesUsage `json:"usage"`
		StopReason string        `json:"stop_reason"`
	} `json:"message"`
	Block json.RawMessage `json:"content_block"`
	Delta struct {
		Type       string          `json:"type"`
		Text       json.RawMessage `json:"text"`
		JSON       json.RawMessage `json:"partial_json"`
		Thinking   json.RawMessage `json:"thinking"`
		Signature  string          `json:"signature"`
		StopReason string          `json:"stop_reason"`
	} `json:"delta"`
	Usage messagesUsage `json:"usage"`
	// Error tells an error event without a type from others.
	Error json.RawMessage `json:"error"`
}

type messagesUsage struct {
	Input      int64 `json:"input_tokens"`
	Output     int64 `json:"output_tokens"`
	CacheRead  int64 `json:"cache_read_input_tokens"`
	CacheWrite int64 `json:"cache_creation_input_tokens"`
	Details    struct {
		Thinking int64 `json:"thinking_tokens"`
	} `json:"output_tokens_details"`
}

// merge takes over what a later event counted: the counts are running totals,
// and an event that does not count a kind leaves it out.
func (u *messagesUsage) merge(later messagesUsage) {
	for _, f := range []struct{ into, from *int64 }{
		{&u.Input, &later.Input}, {&u.Output, &later.Output},
		{&u.CacheRead, &later.CacheRead}, {&u.CacheWrite, &later.CacheWrite},
		{&u.Details.Thinking, &later.Details.Thinking},
	} {
		if *f.from > 0 {
			*f.into = *f.from
		}
	}
}

func newMessagesReader(p *endpoint, req *Request) *messagesReader {
	return &messagesReader{endpoint: p, keepAll: p.ReplayReasoning == "always", freeform: freeformNames(req.Tools)}
}

// read takes one event. It returns an error when the response has failed.
func (r *messagesReader) read(name string, data []byte) error {
	var e messagesEvent
	if err := r.decode(data, &e); err != nil {
		return err
	}
	if e.Type == "" {
		e.Type = name
	}
	switch e.Type {
	case "message_start":
		r.began = true
		r.usage.merge(e.Message.Usage)
		r.stopReason = e.Message.StopReason
		r.open()
	case "content_block_start":
		r.began = true
		return r.blockStart(&e)
	case "content_block_delta":
		r.began = true
		r.blockDelta(&e)
	case "content_block_stop":
		if b := r.block(e.Index); b != nil {
			r.blockStop(b)
		}
	case "message_delta":
		if e.Delta.StopReason != "" {
			r.stopReason = e.Delta.StopReason
		}
		r.usage.merge(e.Usage)
	case "message_stop":
		if !r.began && r.stopReason == "" {
			return &Error{Kind: ErrMalformed, Retryable: true, Message: "the server ended a message that it had not begun"}
		}
		return r.end()
	case "error":
		return r.streamError(data)
	default:
		// Events of unknown kinds change nothing, as the API's rules demand,
		// but a nameless one that carries an error is one.
		if isObject(e.Error) {
			return r.streamError(data)
		}
	}
	return nil
}

// block returns the newest open block with the index, or the newest of all
// where the event names none that is open.
func (r *messagesReader) block(index *int) *messagesBlock {
	n := len(r.blocks)
	if n == 0 {
		return nil
	}
	for i := n - 1; i >= 0 && index != nil; i-- {
		if r.blocks[i].index == *index {
			return r.blocks[i]
		}
	}
	return r.blocks[n-1]
}

func (r *messagesReader) blockStart(e *messagesEvent) error {
	var start struct {
		Type     string          `json:"type"`
		ID       string          `json:"id"`
		Name     string          `json:"name"`
		Text     string          `json:"text"`
		Thinking string          `json:"thinking"`
		Sign     string          `json:"signature"`
		Input    json.RawMessage `json:"input"`
	}
	if len(e.Block) > 0 {
		if err := r.decode(e.Block, &start); err != nil {
			return err
		}
	}
	b := &messagesBlock{index: len(r.blocks), kind: start.Type}
	if e.Index != nil {
		b.index = *e.Index
	}
	r.open()
	r.blocks = append(r.blocks, b)
	switch start.Type {
	case "text":
		r.say(start.Text)
		return nil
	case "tool_use":
		b.call, b.input = r.newCall(), start.Input
		r.start(b.call, start.ID, start.Name, r.freeform[start.Name], true)
	case "thinking":
		b.thinking.WriteString(start.Thinking)
		b.signature.WriteString(start.Sign)
		r.reasoning(start.Thinking)
	case "redacted_thinking":
		b.raw = append(json.RawMessage(nil), e.Block...)
	}
	r.apart = r.spoke
	return nil
}

// say delivers text. Blocks of text that follow each other are one text; one
// that comes after something else begins a paragraph.
func (r *messagesReader) say(s string) {
	if s == "" {
		return
	}
	if r.apart {
		r.apart = false
		s = "\n\n" + s
	}
	r.spoke = true
	r.text(s)
}

func (r *messagesReader) blockDelta(e *messagesEvent) {
	b := r.block(e.Index)
	switch e.Delta.Type {
	case "text_delta":
		r.say(joinText(&r.content, e.Delta.Text))
	case "thinking_delta":
		text := joinText(&r.thoughts, e.Delta.Thinking)
		if b != nil {
			b.thinking.WriteString(text)
		}
		r.reasoning(text)
	case "signature_delta":
		if b != nil {
			b.signature.WriteString(e.Delta.Signature)
		}
	case "input_json_delta":
		if b != nil && b.call != nil {
			r.emitArgs(b.call, joinText(&b.pieces, e.Delta.JSON))
		}
	}
}

// blockStop ends a block.
func (r *messagesReader) blockStop(b *messagesBlock) {
	for i := range r.blocks {
		if r.blocks[i] == b {
			r.blocks = append(r.blocks[:i], r.blocks[i+1:]...)
			break
		}
	}
	switch {
	case b.call != nil:
		if args := bytes.TrimSpace(b.input); len(args) > 0 && string(args) != "{}" && string(args) != "null" {
			r.emitWhole(b.call, string(args))
		}
		r.close(b.call)
	case b.kind == "thinking" && (b.signature.Len() > 0 || r.keepAll && b.thinking.Len() > 0):
		// The vendor takes its thinking back only unchanged and signed.
		r.keep(r.reasoningItem(json.RawMessage(`{"type":"thinking","thinking":` + quoteJSON(b.thinking.String()) +
			`,"signature":` + quoteJSON(b.signature.String()) + `}`)))
	case b.raw != nil:
		r.keep(r.reasoningItem(b.raw))
	}
}

func (r *messagesReader) reasoningItem(opaque json.RawMessage) *Item {
	return &Item{Kind: Reasoning, Opaque: opaque, Origin: r.Name}
}

// end ends the message.
func (r *messagesReader) end() error {
	for len(r.blocks) > 0 {
		r.blockStop(r.blocks[0])
	}
	r.reasoning(r.thoughts.flush())
	r.text(r.content.flush())
	reason := Stop
	switch r.stopReason {
	case "max_tokens", "model_context_window_exceeded":
		reason = Length
	case "refusal":
		reason = Refusal
	default:
		// Also end_turn, stop_sequence, pause_turn and what is not known yet:
		// the calls tell whether there is something to do.
		if len(r.calls) > 0 {
			reason = ToolCalls
		}
	}
	u := r.usage
	return r.finish(reason, counted(Usage{
		InputTokens:       u.Input + u.CacheRead + u.CacheWrite,
		OutputTokens:      u.Output,
		CachedInputTokens: u.CacheRead,
		CacheWriteTokens:  u.CacheWrite,
		ReasoningTokens:   u.Details.Thinking,
	}))
}

// cut ends a stream that ended cleanly without message_stop.
func (r *messagesReader) cut() error {
	if r.stopReason != "" && len(r.blocks) == 0 {
		return r.end()
	}
	return r.emitter.cut()
}
