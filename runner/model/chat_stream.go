package model

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"drover/runner/internal/sse"
)

const (
	// trailingWait is how long a response whose finish reason is known may
	// still take to bring its usage and its end marker.
	trailingWait = 3 * time.Second
	// drainWait is how long the end of the body may take after the end marker,
	// so that the connection can be used again.
	drainWait = 250 * time.Millisecond
	// maxWholeAnswer bounds an answer that comes as one JSON object.
	maxWholeAnswer = maxEventBytes
)

// chatStream reads one response.
type chatStream struct {
	emitter
	c      *chat
	req    *Request
	cancel context.CancelFunc

	// answers counts what was part of an answer, whatever was in it.
	answers int
	finish  string
	refused bool
	usage   *Usage
	// content is the answer's text, thought its reasoning.
	content, thought textJoiner
	think            thinkFilter
	// field is the name under which reasoning came.
	field   string
	callers chatCalls
	// trailing ends a response that is complete but for its end marker.
	trailing *time.Timer
}

func newChatStream(c *chat, req *Request, cancel context.CancelFunc) *chatStream {
	s := &chatStream{c: c, req: req, cancel: cancel}
	s.think = thinkFilter{text: s.text, reasoning: s.reasoning}
	s.callers = chatCalls{e: &s.emitter, tools: req.Tools}
	return s
}

// read reads the body to its end. Its error is nil after Finish.
func (s *chatStream) read(ctx context.Context, body io.Reader) error {
	defer func() {
		if s.trailing != nil {
			s.trailing.Stop()
		}
	}()
	head, err := readHead(body)
	switch {
	case len(head) == 0 && err == io.EOF:
		return s.c.malformed("the server sent an empty answer", nil)
	case len(head) == 0:
		return s.broken(ctx, err)
	case head[0] == '{' || head[0] == '[':
		return s.readWhole(ctx, io.MultiReader(bytes.NewReader(head), body))
	case head[0] == '<':
		rest, _ := io.ReadAll(io.LimitReader(body, maxErrorBody)) // what came of it is enough for the excerpt
		return s.c.malformed("the server sent a web page", []byte(plainText(string(append(head, rest...)))))
	}
	r := sse.NewReader(io.MultiReader(bytes.NewReader(head), body), maxEventBytes)
	for !s.left() {
		ev, err := r.Next()
		if errors.Is(err, io.ErrUnexpectedEOF) && len(ev.Data) > 0 && gjson.GetBytes(ev.Data, "choices.0.finish_reason").String() != "" {
			// Nothing but the blank line behind the last event is missing.
			err = nil
		}
		if err != nil && bytes.Equal(bytes.TrimSpace(ev.Data), doneMark) {
			err = nil
		}
		if err != nil {
			if s.answers == 0 && (err == io.EOF || errors.Is(err, io.ErrUnexpectedEOF)) {
				return s.c.malformed(noAnswer, head)
			}
			return s.broken(ctx, err)
		}
		done, err := s.event(ev)
		if err != nil {
			return err
		}
		if done {
			s.drain(body)
			return nil
		}
	}
	return nil
}

// readHead reads until there is something besides blanks, and returns it from
// there on.
func readHead(body io.Reader) ([]byte, error) {
	buf := make([]byte, 512)
	for {
		n, err := body.Read(buf)
		head := bytes.TrimLeft(bytes.TrimPrefix(buf[:n], []byte("\xef\xbb\xbf")), jsonSpace)
		if len(head) > 0 || err != nil {
			return head, err
		}
	}
}

var doneMark = []byte("[DONE]")

// event takes one event. It returns true after Finish.
func (s *chatStream) event(ev sse.Event) (done bool, err error) {
	data := bytes.TrimSpace(ev.Data)
	switch {
	case ev.Type == "error":
		return false, s.c.streamError(data)
	case len(data) == 0:
		return false, nil
	case bytes.Equal(data, doneMark):
		return true, s.end()
	case !validChunk(data):
		return false, s.c.malformed("the server sent an event that is no JSON", data)
	}
	return false, s.chunk(gjson.ParseBytes(data))
}

// validChunk tells whether data are JSON. The faster check has no bound for
// how deep it recurses; only the size of ordinary chunks keeps it shallow.
func validChunk(data []byte) bool {
	if len(data) > 64<<10 {
		return json.Valid(data)
	}
	return gjson.ValidBytes(data)
}

// chunk takes one JSON object of the stream, or a whole answer.
func (s *chatStream) chunk(v gjson.Result) (err error) {
	var choices gjson.Result
	failed := false
	v.ForEach(func(key, value gjson.Result) bool {
		switch key.Str {
		case "choices":
			choices = value
		case "usage":
			s.takeUsage(value)
		case "error":
			failed = failed || value.Type != gjson.Null && value.Type != gjson.False
		case "object", "type":
			failed = failed || value.Str == "error"
		}
		return true
	})
	if failed {
		return s.c.streamError([]byte(v.Raw))
	}
	if !choices.IsArray() {
		return nil
	}
	s.callers.chunk++
	choices.ForEach(func(_, choice gjson.Result) bool {
		s.answers++
		choice.ForEach(func(key, value gjson.Result) bool {
			switch key.Str {
			case "delta", "message":
				s.delta(value)
			case "finish_reason":
				if value.Type == gjson.String && value.Str != "" && value.Str != "null" {
					s.finished(value.Str)
				}
			}
			return true
		})
		// More than one choice was never asked for.
		return false
	})
	return nil
}

// delta takes a piece of the answer, or a whole message.
func (s *chatStream) delta(v gjson.Result) {
	var reasoning, reasoningContent gjson.Result
	v.ForEach(func(key, value gjson.Result) bool {
		switch key.Str {
		case "content":
			s.takeContent(value)
		case reasoningField:
			reasoningContent = value
		case otherReasoningField:
			reasoning = value
		case "refusal":
			if value.Type == gjson.String && value.Str != "" {
				s.refused = true
				s.text(s.content.join(value))
			}
		case "tool_calls":
			s.callers.take(value)
		case "function_call":
			s.callers.takeLegacy(value)
		}
		return true
	})
	// Some servers send both, with the same text.
	switch {
	case reasoningContent.Type == gjson.String && reasoningContent.Str != "":
		s.takeReasoning(reasoningField, reasoningContent)
	case reasoning.Type == gjson.String && reasoning.Str != "":
		s.takeReasoning(otherReasoningField, reasoning)
	}
}

func (s *chatStream) takeContent(v gjson.Result) {
	switch {
	case v.Type == gjson.String:
		s.think.write(s.content.join(v))
	case v.IsArray():
		v.ForEach(func(_, part gjson.Result) bool {
			switch {
			case part.Type == gjson.String:
				s.think.write(s.content.join(part))
			case part.Get("thinking").Exists():
				// Mistral puts reasoning into parts of their own.
				s.takeThinking(part.Get("thinking"))
			default:
				s.takeContent(part.Get("text"))
			}
			return true
		})
	}
}

func (s *chatStream) takeThinking(v gjson.Result) {
	if v.Type == gjson.String {
		s.takeReasoning("", v)
		return
	}
	v.ForEach(func(_, part gjson.Result) bool {
		if t := part.Get("text"); t.Type == gjson.String {
			s.takeReasoning("", t)
		}
		return true
	})
}

func (s *chatStream) takeReasoning(field string, v gjson.Result) {
	if field != "" && s.field == "" {
		s.field = field
		// Marks of two short names always encode.
		mark, _ := json.Marshal(chatMark{Field: field})
		s.keep(&Item{Kind: Reasoning, Origin: s.c.endpoint.Name, Opaque: mark})
	}
	s.reasoning(s.thought.join(v))
}

// finished notes the finish reason and bounds the wait for what may follow.
func (s *chatStream) finished(reason string) {
	s.finish = reason
	if s.trailing == nil {
		s.trailing = time.AfterFunc(trailingWait, s.cancel)
	}
}

// takeUsage keeps the last usage that counts something.
func (s *chatStream) takeUsage(v gjson.Result) {
	if !v.IsObject() {
		return
	}
	first := func(paths ...string) int64 {
		for _, p := range paths {
			if n := v.Get(p); n.Exists() {
				return max(0, n.Int())
			}
		}
		return 0
	}
	u := counted(Usage{
		InputTokens:       first("prompt_tokens", "input_tokens"),
		OutputTokens:      first("completion_tokens", "output_tokens"),
		CachedInputTokens: first("prompt_tokens_details.cached_tokens", "prompt_cache_hit_tokens", "input_tokens_details.cached_tokens"),
		ReasoningTokens:   first("completion_tokens_details.reasoning_tokens", "output_tokens_details.reasoning_tokens"),
	})
	if u != nil {
		s.usage = u
	}
}

// readWhole reads an answer that is one JSON object although a stream was asked
// for.
func (s *chatStream) readWhole(ctx context.Context, body io.Reader) error {
	data, err := io.ReadAll(io.LimitReader(body, maxWholeAnswer+1))
	if err != nil {
		return s.broken(ctx, err)
	}
	if len(data) > maxWholeAnswer {
		return s.c.failure(ctx, sse.ErrTooLarge, true)
	}
	if !json.Valid(data) {
		return s.c.malformed("the server sent an answer that is no JSON", data)
	}
	v := gjson.ParseBytes(data)
	if v.IsArray() {
		v = v.Get("0")
	}
	if err := s.chunk(v); err != nil {
		return err
	}
	if s.answers == 0 {
		return s.c.malformed(noAnswer, data)
	}
	return s.end()
}

// broken ends a stream that ended without its end marker. With a finish reason
// the answer is complete all the same.
func (s *chatStream) broken(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return cancelled(ctx)
	}
	if s.finish != "" {
		return s.end()
	}
	if err == io.EOF || errors.Is(err, io.ErrUnexpectedEOF) {
		return s.cut()
	}
	return s.c.failure(ctx, err, true)
}

// end finishes an answer that is complete.
func (s *chatStream) end() error {
	s.think.write(s.content.flush())
	s.think.flush()
	s.reasoning(s.thought.flush())
	s.callers.flush()
	reason, err := s.reason()
	if err != nil {
		return err
	}
	return s.emitter.finish(reason, s.usage)
}

// reason maps the finish reason of any server.
func (s *chatStream) reason() (FinishReason, error) {
	reason := Stop
	switch strings.ToLower(s.finish) {
	case "length", "max_tokens", "max_output_tokens", "model_length", "model_context_window_exceeded":
		return Length, nil
	case "content_filter", "safety", "recitation", "blocklist", "prohibited_content", "spii", "sensitive":
		return ContentFilter, nil
	case "refusal":
		return Refusal, nil
	case "tool_calls", "function_call", "tool_use", "tool_call":
		reason = ToolCalls
	case "malformed_function_call", "unexpected_tool_call", "malformed_tool_call":
		return "", &Error{Kind: ErrMalformed, Retryable: true, Message: "the server reported that the model's call is malformed"}
	case "error":
		return "", &Error{Kind: ErrServer, Retryable: true, Message: "the server ended the answer with an error"}
	case "insufficient_system_resource":
		return "", &Error{Kind: ErrOverloaded, Retryable: true, Message: "the server ran out of resources"}
	case "abort", "aborted", "cancelled":
		return "", &Error{Kind: ErrCut, Retryable: true, Message: "the server gave the answer up"}
	}
	switch {
	case s.refused:
		return Refusal, nil
	case len(s.calls) > 0:
		return ToolCalls, nil
	case s.think.wrote || s.finish != "" && reason == Stop:
		return Stop, nil
	}
	return "", s.c.malformed("the answer ended without text, calls and a finish reason", []byte(s.finish))
}

// drain reads the end of the body, which follows the end marker at once or
// never.
func (s *chatStream) drain(body io.Reader) {
	t := time.AfterFunc(drainWait, s.cancel)
	defer t.Stop()
	_, _ = io.Copy(io.Discard, io.LimitReader(body, 4096)) // the answer is complete
}
