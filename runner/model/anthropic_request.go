package model

import (
	"encoding/json"
	"strings"

	"github.com/anthropics/anthropic-sdk-go/v2"
	"github.com/anthropics/anthropic-sdk-go/v2/packages/param"
)

// defaultMaxTokens bounds a response where nobody said how long it may be; the
// API demands a bound. Every current model can write this much.
const defaultMaxTokens = 16384

// request builds the body of a request.
func (p *messages) request(req *Request) (*anthropic.MessageNewParams, error) {
	body := &anthropic.MessageNewParams{Model: req.Model, MaxTokens: defaultMaxTokens}
	if req.MaxOutputTokens > 0 {
		body.MaxTokens = int64(req.MaxOutputTokens)
	}
	for _, t := range req.Tools {
		tool, err := messagesTool(t)
		if err != nil {
			return nil, badRequest("encode the schema of tool "+t.Name, err)
		}
		body.Tools = append(body.Tools, anthropic.ToolUnionParam{OfTool: tool})
	}
	// Tools come before the system prompt in the cached prefix, so that one
	// breakpoint behind both covers them.
	if strings.TrimSpace(req.System) != "" {
		body.System = []anthropic.TextBlockParam{{Text: req.System, CacheControl: anthropic.NewCacheControlEphemeralParam()}}
	} else if n := len(body.Tools); n > 0 {
		body.Tools[n-1].OfTool.CacheControl = anthropic.NewCacheControlEphemeralParam()
	}
	if req.Strict {
		// The API refuses open objects; the system prompt has the schema anyway.
		schema, err := schemaObject(req.Schema)
		if err != nil {
			return nil, badRequest("encode the schema of the answer", err)
		}
		body.OutputConfig.Format.Schema = schema
	}
	talk := p.conversation(req.Items)
	markCache(talk)
	for _, m := range talk {
		body.Messages = append(body.Messages, m.param())
	}
	return body, nil
}

func messagesTool(t Tool) (*anthropic.ToolParam, error) {
	schema := t.Schema
	switch {
	case t.Freeform:
		schema = json.RawMessage(freeformSchema)
	case len(schema) == 0:
		schema = json.RawMessage(`{"type":"object","properties":{}}`)
	}
	// Decoded only to be sure that it is an object: what is sent is the text,
	// in which the members keep their order.
	if _, err := schemaObject(schema); err != nil {
		return nil, err
	}
	tool := &anthropic.ToolParam{Name: t.Name, InputSchema: param.Override[anthropic.ToolInputSchemaParam](schema)}
	doc := t.Doc
	if t.Freeform && t.Grammar != "" {
		doc = strings.TrimSpace(doc + "\n\nThe input follows this Lark grammar:\n" + t.Grammar)
	}
	if doc != "" {
		tool.Description = param.NewOpt(doc)
	}
	return tool, nil
}

// message is a message that is still being put together.
type message struct {
	assistant bool
	// results come before texts: the API wants a call's result to be the first
	// thing after it.
	results, blocks []anthropic.ContentBlockParamUnion
}

func (m *message) param() anthropic.MessageParam {
	blocks := append(m.results, m.blocks...)
	if m.assistant {
		return anthropic.NewAssistantMessage(blocks...)
	}
	return anthropic.NewUserMessage(blocks...)
}

// conversation turns the history into messages of alternating roles, the first
// being the user's.
func (p *messages) conversation(items []Item) []*message {
	var talk []*message
	at := func(assistant bool) *message {
		if len(talk) == 0 && assistant {
			// A history that was shortened may begin with an answer.
			talk = append(talk, &message{blocks: []anthropic.ContentBlockParamUnion{anthropic.NewTextBlock("Continue.")}})
		}
		if n := len(talk); n == 0 || talk[n-1].assistant != assistant {
			talk = append(talk, &message{assistant: assistant})
		}
		return talk[len(talk)-1]
	}
	for i := range items {
		it := &items[i]
		switch it.Kind {
		case UserMessage, AssistantMessage:
			// The API refuses texts without a visible character.
			if strings.TrimSpace(it.Text) != "" {
				m := at(it.Kind == AssistantMessage)
				m.blocks = append(m.blocks, anthropic.NewTextBlock(it.Text))
			}
		case Reasoning:
			if p.wantsBack(items, i) {
				m := at(true)
				m.blocks = append(m.blocks, param.Override[anthropic.ContentBlockParamUnion](it.Opaque))
			}
		case ToolCall:
			m := at(true)
			m.blocks = append(m.blocks, anthropic.NewToolUseBlock(it.CallID, callInput(it), it.Name))
		case ToolResult:
			m := at(false)
			m.results = append(m.results, toolResult(it))
		}
	}
	return talk
}

// wantsBack tells whether the reasoning item i goes back. A message must not
// end with its thinking, which is what remains of a response whose calls were
// dropped.
func (p *messages) wantsBack(items []Item, i int) bool {
	it := &items[i]
	return len(it.Opaque) > 0 && it.Origin == p.Name() && p.ReplayReasoning != "never" && isFollowed(items, i)
}

// callInput returns a call's arguments as the object that the API demands.
func callInput(it *Item) json.RawMessage {
	args := strings.TrimSpace(it.Args)
	switch {
	case it.Freeform:
		return json.RawMessage(freeformArgs(it.Args))
	case args == "" || args == "null":
		return json.RawMessage("{}")
	case args[0] == '{' && json.Valid([]byte(args)):
		return json.RawMessage(args)
	}
	// What the model wrote was no object and its result says so.
	return json.RawMessage(`{"invalid_arguments":` + quoteJSON(it.Args) + `}`)
}

func toolResult(it *Item) anthropic.ContentBlockParamUnion {
	r := &anthropic.ToolResultBlockParam{ToolUseID: it.CallID}
	if it.IsError {
		r.IsError = param.NewOpt(true)
	}
	if strings.TrimSpace(it.Text) != "" {
		r.Content = []anthropic.ToolResultBlockParamContentUnion{{OfText: &anthropic.TextBlockParam{Text: it.Text}}}
	}
	return anthropic.ContentBlockParamUnion{OfToolResult: r}
}

// markCache sets breakpoints behind the last two messages of the user: the
// first of them is where the previous request's prefix ended.
func markCache(talk []*message) {
	marks := 2
	for i := len(talk) - 1; i >= 0 && marks > 0; i-- {
		m := talk[i]
		if m.assistant {
			continue
		}
		marks--
		last := m.blocks
		if len(last) == 0 {
			last = m.results
		}
		if len(last) == 0 {
			continue
		}
		if c := last[len(last)-1].GetCacheControl(); c != nil {
			*c = anthropic.NewCacheControlEphemeralParam()
		}
	}
}
