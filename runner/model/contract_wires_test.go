package model

import (
	"encoding/json"
	"strings"
)

type object = map[string]any

// named encodes an event; without a name the event line is left out.
func named(name string, v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // maps of strings and numbers always encode
	}
	if name == "" {
		return "data: " + string(b)
	}
	return "event: " + name + "\ndata: " + string(b)
}

// wrapped returns the pieces of the arguments that stand for a freeform input.
func wrapped(c answerCall, whole bool) []string {
	if !c.freeform {
		return c.args
	}
	pieces := []string{`{"input":"`}
	for _, a := range c.args {
		quoted := quoteJSON(a)
		pieces = append(pieces, quoted[1:len(quoted)-1])
	}
	if whole {
		pieces = append(pieces, `"}`)
	}
	return pieces
}

var chatWire = wire{
	name: "chat", build: newChat,
	silent: []string{`data: {"id":"c","choices":[]}`, `data: {"id":"c","choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]}`},
	failure: func(code, message string) string {
		return named("", object{"error": object{"message": message, "code": code}})
	},
	encode: func(a answer) (events []string, end int) {
		chunk := func(delta object, finish any) {
			events = append(events, named("", object{"id": "c", "object": "chat.completion.chunk",
				"choices": []any{object{"index": 0, "delta": delta, "finish_reason": finish}}}))
		}
		chunk(object{"role": "assistant", "content": nil}, nil)
		for _, s := range a.reasoning {
			chunk(object{"reasoning_content": s}, nil)
		}
		for _, s := range a.text {
			chunk(object{"content": s}, nil)
		}
		for i, c := range a.calls {
			chunk(object{"tool_calls": []any{object{"index": i, "id": c.id, "type": "function", "function": object{"name": c.name, "arguments": ""}}}}, nil)
			for _, s := range wrapped(c, a.finish != Length) {
				chunk(object{"tool_calls": []any{object{"index": i, "function": object{"arguments": s}}}}, nil)
			}
		}
		end = len(events)
		chunk(object{}, a.finish)
		if u := a.usage; u != nil {
			events = append(events, named("", object{"id": "c", "choices": []any{}, "usage": object{
				"prompt_tokens": u.InputTokens, "completion_tokens": u.OutputTokens,
				"prompt_tokens_details": object{"cached_tokens": u.CachedInputTokens},
			}}))
		}
		return append(events, "data: [DONE]"), end
	},
}

var responsesWire = wire{
	name: "responses", build: newResponses,
	silent: []string{`data: {"type":"response.in_progress","response":{"id":"r","status":"in_progress"}}`},
	failure: func(code, message string) string {
		return named("response.failed", object{"type": "response.failed", "response": object{"id": "r", "status": "failed",
			"error": object{"code": code, "message": message}}})
	},
	encode: func(a answer) (events []string, end int) {
		send := func(v object) { events = append(events, named(v["type"].(string), v)) }
		send(object{"type": "response.created", "response": object{"id": "r", "status": "in_progress"}})
		at := 0
		if len(a.reasoning) > 0 {
			send(object{"type": "response.output_item.added", "output_index": at, "item": object{"type": "reasoning", "id": "rs", "summary": []any{}}})
			for _, s := range a.reasoning {
				send(object{"type": "response.reasoning_summary_text.delta", "output_index": at, "item_id": "rs", "summary_index": 0, "delta": s})
			}
			at++
		}
		if len(a.text) > 0 {
			send(object{"type": "response.output_item.added", "output_index": at, "item": object{"type": "message", "id": "msg", "role": "assistant", "content": []any{}}})
			for _, s := range a.text {
				send(object{"type": "response.output_text.delta", "output_index": at, "item_id": "msg", "content_index": 0, "delta": s})
			}
			at++
		}
		for _, c := range a.calls {
			kind, key, event := "function_call", "arguments", "response.function_call_arguments"
			if c.freeform {
				kind, key, event = "custom_tool_call", "input", "response.custom_tool_call_input"
			}
			id := "item_" + c.id
			send(object{"type": "response.output_item.added", "output_index": at, "item": object{"type": kind, "id": id, "call_id": c.id, "name": c.name, key: ""}})
			for _, s := range c.args {
				send(object{"type": event + ".delta", "output_index": at, "item_id": id, "delta": s})
			}
			if a.finish != Length {
				whole := strings.Join(c.args, "")
				send(object{"type": event + ".done", "output_index": at, "item_id": id, key: whole})
				send(object{"type": "response.output_item.done", "output_index": at, "item": object{"type": kind, "id": id, "call_id": c.id, "name": c.name, key: whole}})
			}
			at++
		}
		end = len(events)
		response := object{"id": "r", "status": "completed"}
		if u := a.usage; u != nil {
			response["usage"] = object{"input_tokens": u.InputTokens, "output_tokens": u.OutputTokens,
				"input_tokens_details": object{"cached_tokens": u.CachedInputTokens}}
		}
		switch a.finish {
		case Length:
			response["status"], response["incomplete_details"] = "incomplete", object{"reason": "max_output_tokens"}
			send(object{"type": "response.incomplete", "response": response})
		case ContentFilter:
			response["status"], response["incomplete_details"] = "incomplete", object{"reason": "content_filter"}
			send(object{"type": "response.incomplete", "response": response})
		default:
			send(object{"type": "response.completed", "response": response})
		}
		return events, end
	},
}

var messagesWire = wire{
	name: "messages", build: newMessages,
	silent: []string{"event: ping\ndata: {\"type\":\"ping\"}"},
	failure: func(code, message string) string {
		return named("error", object{"type": "error", "error": object{"type": code, "message": message}})
	},
	encode: func(a answer) (events []string, end int) {
		send := func(v object) { events = append(events, named(v["type"].(string), v)) }
		start := object{"id": "m", "type": "message", "role": "assistant", "content": []any{}}
		if u := a.usage; u != nil {
			start["usage"] = object{"input_tokens": u.InputTokens - u.CachedInputTokens, "cache_read_input_tokens": u.CachedInputTokens, "output_tokens": 0}
		}
		send(object{"type": "message_start", "message": start})
		at := 0
		block := func(content, delta object, key string, pieces []string) {
			send(object{"type": "content_block_start", "index": at, "content_block": content})
			for _, s := range pieces {
				d := object{key: s}
				for k, v := range delta {
					d[k] = v
				}
				send(object{"type": "content_block_delta", "index": at, "delta": d})
			}
			send(object{"type": "content_block_stop", "index": at})
			at++
		}
		if len(a.reasoning) > 0 {
			block(object{"type": "thinking", "thinking": ""}, object{"type": "thinking_delta"}, "thinking", a.reasoning)
		}
		if len(a.text) > 0 {
			block(object{"type": "text", "text": ""}, object{"type": "text_delta"}, "text", a.text)
		}
		for _, c := range a.calls {
			block(object{"type": "tool_use", "id": c.id, "name": c.name, "input": object{}},
				object{"type": "input_json_delta"}, "partial_json", wrapped(c, a.finish != Length))
		}
		end = len(events)
		reasons := map[FinishReason]string{Stop: "end_turn", ToolCalls: "tool_use", Length: "max_tokens"}
		last := object{"type": "message_delta", "delta": object{"stop_reason": reasons[a.finish]}}
		if u := a.usage; u != nil {
			last["usage"] = object{"output_tokens": u.OutputTokens}
		}
		send(last)
		send(object{"type": "message_stop"})
		return events, end
	},
}
