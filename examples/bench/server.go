package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
)

// startServer serves the three APIs. What it plays depends on the model's name
// and on how many tool results a request holds, so it keeps no state and any
// number of clients may ask at once.
func startServer() (*httptest.Server, error) {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/chat/completions", play(chatAPI))
	mux.HandleFunc("POST /v1/responses", play(responsesAPI))
	mux.HandleFunc("POST /v1/messages", play(messagesAPI))
	return httptest.NewServer(mux), nil
}

// api is one wire format: how tool results look in a request, and how a
// response is streamed.
type api struct {
	result string
	stream func(w io.Writer, text []string, commands []m, turn int)
}

func play(a api) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		var req struct{ Model string }
		if err := json.Unmarshal(body, &req); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		done := bytes.Count(body, []byte(a.result))
		text, commands := answer(req.Model, done)
		a.stream(w, text, commands, done)
	}
}

// answer is the conversation of a model name after that many tool results: a
// text, or the arguments of the commands to run.
func answer(model string, done int) (text []string, commands []m) {
	kind, number, _ := strings.Cut(model, "-")
	n, err := strconv.Atoi(number)
	if err != nil {
		n = 0
	}
	switch {
	case kind == "turns" && done < n:
		return nil, []m{{"cmd": "true"}}
	case kind == "parallel" && done < n:
		for range n {
			commands = append(commands, m{"cmd": "sleep 1"})
		}
		return nil, commands
	case kind == "sessions" && done < n:
		for range n {
			commands = append(commands, m{"cmd": "echo open; sleep 2", "tty": true})
		}
		return nil, commands
	case kind == "output" && done == 0:
		return nil, []m{{"cmd": fmt.Sprintf("head -c %d /dev/zero | tr '\\0' x", n)}}
	case kind == "chunks":
		for i := range n {
			text = append(text, fmt.Sprintf("chunk %d ", i))
		}
		return text, nil
	}
	return []string{"Done", "."}, nil
}

func event(w io.Writer, name string, v any) {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err) // maps of strings and numbers always encode
	}
	if name != "" {
		fmt.Fprintf(w, "event: %s\n", name)
	}
	fmt.Fprintf(w, "data: %s\n\n", data)
}

type m = map[string]any

var chatAPI = api{result: `"role":"tool"`, stream: func(w io.Writer, text []string, commands []m, turn int) {
	chunk := func(delta m, finish any) {
		event(w, "", m{"id": "c", "object": "chat.completion.chunk", "choices": []any{m{"index": 0, "delta": delta, "finish_reason": finish}}})
	}
	for _, t := range text {
		chunk(m{"content": t}, nil)
	}
	finish := "stop"
	for i, c := range commands {
		finish = "tool_calls"
		chunk(m{"tool_calls": []any{m{"index": i, "id": callID(turn, i), "type": "function",
			"function": m{"name": "exec_command", "arguments": args(c)}}}}, nil)
	}
	chunk(m{}, finish)
	event(w, "", m{"id": "c", "choices": []any{}, "usage": m{"prompt_tokens": 100, "completion_tokens": 10}})
	fmt.Fprint(w, "data: [DONE]\n\n")
}}

var responsesAPI = api{result: `"type":"function_call_output"`, stream: func(w io.Writer, text []string, commands []m, turn int) {
	send := func(v m) { event(w, v["type"].(string), v) }
	send(m{"type": "response.created", "response": m{"id": "r", "status": "in_progress"}})
	index := 0
	if len(text) > 0 {
		send(m{"type": "response.output_item.added", "output_index": 0, "item": m{"type": "message", "id": "msg", "role": "assistant", "content": []any{}}})
		for _, t := range text {
			send(m{"type": "response.output_text.delta", "output_index": 0, "item_id": "msg", "content_index": 0, "delta": t})
		}
		send(m{"type": "response.output_item.done", "output_index": 0, "item": m{"type": "message", "id": "msg", "role": "assistant",
			"content": []any{m{"type": "output_text", "text": strings.Join(text, "")}}}})
		index++
	}
	for i, c := range commands {
		id := callID(turn, i)
		item := m{"type": "function_call", "id": "fc_" + id, "call_id": id, "name": "exec_command", "arguments": ""}
		send(m{"type": "response.output_item.added", "output_index": index, "item": item})
		send(m{"type": "response.function_call_arguments.delta", "output_index": index, "item_id": "fc_" + id, "delta": args(c)})
		send(m{"type": "response.function_call_arguments.done", "output_index": index, "item_id": "fc_" + id, "arguments": args(c)})
		send(m{"type": "response.output_item.done", "output_index": index, "item": m{"type": "function_call", "id": "fc_" + id, "call_id": id, "name": "exec_command", "arguments": args(c), "status": "completed"}})
		index++
	}
	send(m{"type": "response.completed", "response": m{"id": "r", "status": "completed", "usage": m{"input_tokens": 100, "output_tokens": 10, "total_tokens": 110}}})
}}

var messagesAPI = api{result: `"type":"tool_result"`, stream: func(w io.Writer, text []string, commands []m, turn int) {
	send := func(v m) { event(w, v["type"].(string), v) }
	send(m{"type": "message_start", "message": m{"id": "m", "type": "message", "role": "assistant", "content": []any{}, "model": "bench", "usage": m{"input_tokens": 100, "output_tokens": 1}}})
	index := 0
	if len(text) > 0 {
		send(m{"type": "content_block_start", "index": 0, "content_block": m{"type": "text", "text": ""}})
		for _, t := range text {
			send(m{"type": "content_block_delta", "index": 0, "delta": m{"type": "text_delta", "text": t}})
		}
		send(m{"type": "content_block_stop", "index": 0})
		index++
	}
	reason := "end_turn"
	for i, c := range commands {
		reason = "tool_use"
		send(m{"type": "content_block_start", "index": index, "content_block": m{"type": "tool_use", "id": callID(turn, i), "name": "exec_command", "input": m{}}})
		send(m{"type": "content_block_delta", "index": index, "delta": m{"type": "input_json_delta", "partial_json": args(c)}})
		send(m{"type": "content_block_stop", "index": index})
		index++
	}
	send(m{"type": "message_delta", "delta": m{"stop_reason": reason}, "usage": m{"output_tokens": 10}})
	send(m{"type": "message_stop"})
}}

func callID(turn, i int) string { return fmt.Sprintf("call_%d_%d", turn, i) }

func args(command m) string {
	data, err := json.Marshal(command)
	if err != nil {
		panic(err) // maps of strings and booleans always encode
	}
	return string(data)
}
