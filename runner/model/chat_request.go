package model

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
)

type chatRequest struct {
	Model             string             `json:"model"`
	Messages          []chatMessage      `json:"messages"`
	Stream            bool               `json:"stream"`
	StreamOptions     *chatStreamOptions `json:"stream_options,omitempty"`
	MaxTokens         int                `json:"max_tokens,omitempty"`
	MaxOutputTokens   int                `json:"max_completion_tokens,omitempty"`
	Tools             []chatTool         `json:"tools,omitempty"`
	ParallelToolCalls bool               `json:"parallel_tool_calls,omitempty"`
	ResponseFormat    *chatFormat        `json:"response_format,omitempty"`
}

type chatStreamOptions struct {
	IncludeUsage bool `json:"include_usage"`
}

type chatMessage struct {
	Role string `json:"role"`
	// Content is null in a message that is nothing but calls.
	Content *string `json:"content"`
	// ReasoningContent and Reasoning are two names of one thing.
	ReasoningContent *string        `json:"reasoning_content,omitempty"`
	Reasoning        *string        `json:"reasoning,omitempty"`
	ToolCalls        []chatCallSent `json:"tool_calls,omitempty"`
	ToolCallID       string         `json:"tool_call_id,omitempty"`
}

type chatCallSent struct {
	ID       string           `json:"id"`
	Type     string           `json:"type"`
	Function chatFunctionSent `json:"function"`
}

type chatFunctionSent struct {
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

type chatTool struct {
	Type     string       `json:"type"`
	Function chatFunction `json:"function"`
}

type chatFunction struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Parameters  json.RawMessage `json:"parameters"`
}

type chatFormat struct {
	Type       string     `json:"type"`
	JSONSchema chatSchema `json:"json_schema"`
}

type chatSchema struct {
	Name   string          `json:"name"`
	Schema json.RawMessage `json:"schema"`
	Strict bool            `json:"strict,omitempty"`
}

// reasoningField and otherReasoningField are the names under which servers send
// reasoning, and under which it goes back.
const (
	reasoningField      = "reasoning_content"
	otherReasoningField = "reasoning"
)

// chatMark is the opaque part of a kept item: under which name the server sent
// the reasoning of this response.
type chatMark struct {
	Field string `json:"field"`
}

// encode writes the request's body.
func (c *chat) encode(req *Request, form chatForm) ([]byte, error) {
	body := chatRequest{
		Model: req.Model, Messages: c.messages(req, form), Stream: true,
		ParallelToolCalls: len(req.Tools) > 0 && !form.noParallelCalls,
	}
	if !form.noStreamOptions {
		body.StreamOptions = &chatStreamOptions{IncludeUsage: true}
	}
	if form.newMaxTokens {
		body.MaxOutputTokens = req.MaxOutputTokens
	} else {
		body.MaxTokens = req.MaxOutputTokens
	}
	for _, t := range req.Tools {
		f := chatFunction{Name: t.Name, Description: t.Doc, Parameters: t.Schema}
		switch {
		case t.Freeform:
			f.Parameters = json.RawMessage(freeformSchema)
		case len(t.Schema) == 0:
			f.Parameters = json.RawMessage(`{"type":"object","properties":{}}`)
		}
		body.Tools = append(body.Tools, chatTool{Type: "function", Function: f})
	}
	if len(req.Schema) > 0 && !form.noResponseFormat {
		body.ResponseFormat = &chatFormat{Type: "json_schema", JSONSchema: chatSchema{Name: "answer", Schema: req.Schema, Strict: req.Strict}}
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(body); err != nil {
		return nil, fmt.Errorf("encode request: %w", err)
	}
	return b.Bytes(), nil
}

// messages turns the conversation into messages: what the model sent in one
// response becomes one message, and the results follow it in the order of their
// calls, because servers refuse anything in between.
func (c *chat) messages(req *Request, form chatForm) []chatMessage {
	out := make([]chatMessage, 0, len(req.Items)+1)
	if req.System != "" {
		out = append(out, chatMessage{Role: "system", Content: &req.System})
	}
	results := map[string]*Item{}
	for i := range req.Items {
		if it := &req.Items[i]; it.Kind == ToolResult {
			results[it.CallID] = it
		}
	}
	answered := map[string]bool{}
	for i := 0; i < len(req.Items); {
		it := &req.Items[i]
		if it.fromModel() {
			end := i
			for end < len(req.Items) && req.Items[end].fromModel() {
				end++
			}
			out = c.response(out, req.Items[i:end], results, answered, form)
			i = end
			continue
		}
		i++
		switch {
		case it.Kind == UserMessage:
			out = append(out, chatMessage{Role: "user", Content: &it.Text})
		case !answered[it.CallID]:
			// A result whose call is gone, say after the history was shortened.
			text := "Result of an earlier call of " + it.Name + ":\n" + it.Text
			out = append(out, chatMessage{Role: "user", Content: &text})
		}
	}
	return out
}

// response appends one response of the model and the results of its calls.
func (c *chat) response(out []chatMessage, items []Item, results map[string]*Item, answered map[string]bool, form chatForm) []chatMessage {
	m := chatMessage{Role: "assistant"}
	var text, reasoning []string
	field := ""
	for i := range items {
		it := &items[i]
		switch it.Kind {
		case AssistantMessage:
			text = append(text, it.Text)
		case Reasoning:
			if it.Origin != c.endpoint.Name {
				continue
			}
			var mark chatMark
			if json.Unmarshal(it.Opaque, &mark) == nil && mark.Field != "" {
				field = mark.Field
			}
			if it.Text != "" {
				reasoning = append(reasoning, it.Text)
			}
		case ToolCall:
			m.ToolCalls = append(m.ToolCalls, chatCallSent{ID: it.CallID, Type: "function",
				Function: chatFunctionSent{Name: it.Name, Arguments: sentArgs(it)}})
		}
	}
	if len(text) == 0 && len(m.ToolCalls) == 0 {
		return out
	}
	if len(text) > 0 {
		joined := strings.Join(text, "\n")
		m.Content = &joined
	}
	c.replay(&m, strings.Join(reasoning, "\n"), field, form)
	out = append(out, m)
	for _, call := range m.ToolCalls {
		answered[call.ID] = true
		content := "This call has no result: the run was interrupted."
		if r := results[call.ID]; r != nil {
			content = r.Text
		}
		out = append(out, chatMessage{Role: "tool", Content: &content, ToolCallID: call.ID})
	}
	return out
}

// replay puts the reasoning back into a message, where the setting and the
// server want it.
func (c *chat) replay(m *chatMessage, reasoning, field string, form chatForm) {
	switch c.ReplayReasoning {
	case "never":
		return
	case "always":
		if reasoning == "" {
			return
		}
	default:
		if len(m.ToolCalls) == 0 || form.reasoning == forbidden ||
			form.reasoning == asReceived && (field != reasoningField || reasoning == "") {
			return
		}
		field = reasoningField
	}
	if field == otherReasoningField {
		m.Reasoning = &reasoning
		return
	}
	m.ReasoningContent = &reasoning
}

// sentArgs returns a call's arguments as a JSON object, because many servers
// read the arguments of the history and refuse all later requests when they
// cannot.
func sentArgs(it *Item) string {
	args := strings.TrimSpace(it.Args)
	switch {
	case it.Freeform:
		return freeformArgs(it.Args)
	case args == "" || args == "null":
		return "{}"
	case strings.HasPrefix(args, "{") && json.Valid([]byte(args)):
		return args
	}
	return `{"invalid_json":` + quoteJSON(it.Args) + `}`
}
