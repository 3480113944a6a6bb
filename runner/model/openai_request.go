package model

import (
	"encoding/json"
	"strings"

	"github.com/openai/openai-go/v3/packages/param"
	oai "github.com/openai/openai-go/v3/responses"
	"github.com/openai/openai-go/v3/shared"
)

// schemaName names the answer's schema to APIs that want a name.
const schemaName = "answer"

// request builds the body of a request.
func (p *responses) request(req *Request) (*oai.ResponseNewParams, error) {
	body := &oai.ResponseNewParams{
		Model: req.Model,
		// Nothing is kept on the server: the whole conversation is sent each
		// time, with the encrypted reasoning that only the server can read.
		Store:   param.NewOpt(false),
		Include: []oai.ResponseIncludable{oai.ResponseIncludableReasoningEncryptedContent},
	}
	if req.System != "" {
		body.Instructions = param.NewOpt(req.System)
	}
	if req.SessionID != "" {
		body.PromptCacheKey = param.NewOpt(req.SessionID)
	}
	if req.MaxOutputTokens > 0 {
		body.MaxOutputTokens = param.NewOpt(int64(req.MaxOutputTokens))
	}
	for _, t := range req.Tools {
		tool, err := responsesTool(t)
		if err != nil {
			return nil, badRequest("encode the schema of tool "+t.Name, err)
		}
		body.Tools = append(body.Tools, tool)
	}
	if len(body.Tools) > 0 {
		body.ParallelToolCalls = param.NewOpt(true)
	}
	if len(req.Schema) > 0 {
		schema, err := schemaObject(req.Schema)
		if err != nil {
			return nil, badRequest("encode the schema of the answer", err)
		}
		body.Text.Format.OfJSONSchema = &oai.ResponseFormatTextJSONSchemaConfigParam{
			Name: schemaName, Schema: schema, Strict: param.NewOpt(req.Strict),
		}
	}
	body.Input.OfInputItemList = p.input(req.Items, offersLocalShell(req.Tools))
	return body, nil
}

func badRequest(verb string, err error) *Error {
	return &Error{Kind: ErrRequest, Message: verb + ": " + err.Error(), Err: err}
}

// schemaObject decodes the outer object of a schema only, so that the members
// within keep their order, in which models read them.
func schemaObject(schema json.RawMessage) (map[string]any, error) {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(schema, &members); err != nil {
		return nil, err
	}
	object := make(map[string]any, len(members))
	for k, v := range members {
		object[k] = v
	}
	return object, nil
}

func responsesTool(t Tool) (oai.ToolUnionParam, error) {
	if t.LocalShell {
		return localShellTool(), nil
	}
	if t.Freeform {
		c := &oai.CustomToolParam{Name: t.Name, Description: optional(t.Doc)}
		if t.Grammar != "" {
			c.Format.OfGrammar = &shared.CustomToolInputFormatGrammarParam{Definition: t.Grammar, Syntax: "lark"}
		}
		return oai.ToolUnionParam{OfCustom: c}, nil
	}
	f := &oai.FunctionToolParam{Name: t.Name, Description: optional(t.Doc), Strict: param.NewOpt(false)}
	if len(t.Schema) == 0 {
		f.Parameters = map[string]any{"type": "object", "properties": map[string]any{}}
		return oai.ToolUnionParam{OfFunction: f}, nil
	}
	var err error
	f.Parameters, err = schemaObject(t.Schema)
	return oai.ToolUnionParam{OfFunction: f}, err
}

// optional leaves an empty text out.
func optional(s string) param.Opt[string] {
	if s == "" {
		return param.Opt[string]{}
	}
	return param.NewOpt(s)
}

// input turns the conversation into input items. local says that calls of
// local_shell are those of the API's own tool.
func (p *responses) input(items []Item, local bool) oai.ResponseInputParam {
	list := make(oai.ResponseInputParam, 0, len(items))
	native := map[string]bool{} // the calls that went out in the API's own form
	for i := range items {
		it := &items[i]
		switch it.Kind {
		case UserMessage:
			list = append(list, oai.ResponseInputItemParamOfMessage(it.Text, oai.EasyInputMessageRoleUser))
		case AssistantMessage:
			if strings.TrimSpace(it.Text) != "" {
				list = append(list, oai.ResponseInputItemParamOfMessage(it.Text, oai.EasyInputMessageRoleAssistant))
			}
		case Reasoning:
			if p.wantsBack(items, i) {
				list = append(list, param.Override[oai.ResponseInputItemUnionParam](it.Opaque))
			}
		case ToolCall:
			if local && it.Name == localShell && !it.Freeform {
				if call, ok := localShellCall(it); ok {
					native[it.CallID] = true
					list = append(list, call)
					continue
				}
			}
			list = append(list, responsesCall(it))
		case ToolResult:
			if native[it.CallID] {
				list = append(list, localShellResult(it))
				continue
			}
			list = append(list, responsesResult(it))
		}
	}
	return list
}

// wantsBack tells whether the reasoning item i goes back. The server refuses
// reasoning that nothing follows, which is what remains of a response whose
// calls were dropped.
func (p *responses) wantsBack(items []Item, i int) bool {
	it := &items[i]
	return len(it.Opaque) > 0 && it.Origin == p.Name() && p.ReplayReasoning != "never" && isFollowed(items, i)
}

// isFollowed tells whether the same response says or calls something after its
// item i.
func isFollowed(items []Item, i int) bool {
	for _, next := range items[i+1:] {
		switch next.Kind {
		case ToolCall:
			return true
		case AssistantMessage:
			if strings.TrimSpace(next.Text) != "" {
				return true
			}
		case UserMessage, ToolResult:
			return false
		}
	}
	return false
}

func responsesCall(it *Item) oai.ResponseInputItemUnionParam {
	if it.Freeform {
		return oai.ResponseInputItemUnionParam{OfCustomToolCall: &oai.ResponseCustomToolCallParam{
			CallID: it.CallID, Name: it.Name, Input: it.Args,
		}}
	}
	args := it.Args
	if args == "" {
		args = "{}"
	}
	return oai.ResponseInputItemParamOfFunctionCall(args, it.CallID, it.Name)
}

func responsesResult(it *Item) oai.ResponseInputItemUnionParam {
	if it.Freeform {
		out := &oai.ResponseCustomToolCallOutputParam{CallID: it.CallID}
		out.Output.OfString = param.NewOpt(it.Text)
		return oai.ResponseInputItemUnionParam{OfCustomToolCallOutput: out}
	}
	out := &oai.ResponseInputItemFunctionCallOutputParam{CallID: optional(it.CallID)}
	out.Output.OfString = param.NewOpt(it.Text)
	return oai.ResponseInputItemUnionParam{OfFunctionCallOutput: out}
}
