package cmd

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// This file plays one conversation through the three APIs over loopback HTTP,
// in every way in which a network can cut it into pieces.

// turnOfTask is one response of the conversation: a text and at most one call.
type turnOfTask struct {
	text, tool, input string
	freeform          bool
}

// task repairs a file: it reads it, patches it, and checks the result. The
// text and the patch hold characters of two, three and four bytes.
var task = []turnOfTask{
	{text: "Ich öffne die Datei — 文件 🙂.", tool: "exec_command", input: "cat greeting.txt"},
	{tool: "apply_patch", freeform: true, input: "*** Begin Patch\n*** Update File: greeting.txt\n@@\n-helo wörld 🙂\n+hello wörld 🙂\n*** End Patch"},
	{tool: "exec_command", input: "cat greeting.txt"},
	{text: "Repariert: hello wörld 🙂."},
}

type m = map[string]any

// sse encodes events; an empty name leaves the event line out.
func sse(name string, v any) string {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err) // maps of strings and numbers always encode
	}
	if name == "" {
		return "data: " + string(data) + "\n\n"
	}
	return "event: " + name + "\ndata: " + string(data) + "\n\n"
}

func object(key, value string) string {
	data, err := json.Marshal(map[string]string{key: value})
	if err != nil {
		panic(err) // a map of strings always encodes
	}
	return string(data)
}

// halves cuts a text in the middle, at a character.
func halves(s string) [2]string {
	r := []rune(s)
	return [2]string{string(r[:len(r)/2]), string(r[len(r)/2:])}
}

type wireAPI struct {
	api, path, result string
	encode            func(t turnOfTask, n int) string
}

var wireAPIs = []wireAPI{
	{api: "chat", path: "/v1/chat/completions", result: `"role":"tool"`, encode: encodeChat},
	{api: "responses", path: "/v1/responses", result: `call_output"`, encode: encodeResponses},
	{api: "messages", path: "/v1/messages", result: `"tool_result"`, encode: encodeMessages},
}

func encodeChat(t turnOfTask, n int) string {
	var b strings.Builder
	chunk := func(delta m, finish any) {
		b.WriteString(sse("", m{"id": "c", "choices": []any{m{"index": 0, "delta": delta, "finish_reason": finish}}}))
	}
	for _, half := range halves(t.text) {
		chunk(m{"content": half}, nil)
	}
	finish := "stop"
	if t.tool != "" {
		finish = "tool_calls"
		args := halves(object("cmd", t.input))
		if t.freeform {
			args = halves(object("input", t.input))
		}
		chunk(m{"tool_calls": []any{m{"index": 0, "id": fmt.Sprint("call_", n), "type": "function", "function": m{"name": t.tool, "arguments": args[0]}}}}, nil)
		chunk(m{"tool_calls": []any{m{"index": 0, "function": m{"arguments": args[1]}}}}, nil)
	}
	chunk(m{}, finish)
	b.WriteString(sse("", m{"id": "c", "choices": []any{}, "usage": m{"prompt_tokens": 100, "completion_tokens": 20}}))
	b.WriteString("data: [DONE]\n\n")
	return b.String()
}

func encodeResponses(t turnOfTask, n int) string {
	var b strings.Builder
	send := func(v m) { b.WriteString(sse(v["type"].(string), v)) }
	send(m{"type": "response.created", "response": m{"id": "r", "status": "in_progress"}})
	if t.text != "" {
		send(m{"type": "response.output_item.added", "output_index": 0, "item": m{"type": "message", "id": "msg", "role": "assistant", "content": []any{}}})
		for _, half := range halves(t.text) {
			send(m{"type": "response.output_text.delta", "output_index": 0, "item_id": "msg", "content_index": 0, "delta": half})
		}
		send(m{"type": "response.output_item.done", "output_index": 0, "item": m{"type": "message", "id": "msg", "role": "assistant", "content": []any{m{"type": "output_text", "text": t.text}}}})
	}
	if t.tool != "" {
		kind, key, event, whole := "function_call", "arguments", "response.function_call_arguments", object("cmd", t.input)
		if t.freeform {
			kind, key, event, whole = "custom_tool_call", "input", "response.custom_tool_call_input", t.input
		}
		item := m{"type": kind, "id": "item", "call_id": fmt.Sprint("call_", n), "name": t.tool, key: ""}
		send(m{"type": "response.output_item.added", "output_index": 1, "item": item})
		for _, half := range halves(whole) {
			send(m{"type": event + ".delta", "output_index": 1, "item_id": "item", "delta": half})
		}
		send(m{"type": event + ".done", "output_index": 1, "item_id": "item", key: whole})
		send(m{"type": "response.output_item.done", "output_index": 1, "item": m{"type": kind, "id": "item", "call_id": fmt.Sprint("call_", n), "name": t.tool, key: whole, "status": "completed"}})
	}
	send(m{"type": "response.completed", "response": m{"id": "r", "status": "completed", "usage": m{"input_tokens": 100, "output_tokens": 20, "total_tokens": 120}}})
	return b.String()
}

func encodeMessages(t turnOfTask, n int) string {
	var b strings.Builder
	send := func(v m) { b.WriteString(sse(v["type"].(string), v)) }
	send(m{"type": "message_start", "message": m{"id": "m", "type": "message", "role": "assistant", "content": []any{}, "model": "x", "usage": m{"input_tokens": 100, "output_tokens": 1}}})
	send(m{"type": "ping"})
	index := 0
	if t.text != "" {
		send(m{"type": "content_block_start", "index": index, "content_block": m{"type": "text", "text": ""}})
		for _, half := range halves(t.text) {
			send(m{"type": "content_block_delta", "index": index, "delta": m{"type": "text_delta", "text": half}})
		}
		send(m{"type": "content_block_stop", "index": index})
		index++
	}
	reason := "end_turn"
	if t.tool != "" {
		reason = "tool_use"
		args := halves(object("cmd", t.input))
		if t.freeform {
			args = halves(object("input", t.input))
		}
		send(m{"type": "content_block_start", "index": index, "content_block": m{"type": "tool_use", "id": fmt.Sprint("toolu_", n), "name": t.tool, "input": m{}}})
		for _, half := range args {
			send(m{"type": "content_block_delta", "index": index, "delta": m{"type": "input_json_delta", "partial_json": half}})
		}
		send(m{"type": "content_block_stop", "index": index})
	}
	send(m{"type": "message_delta", "delta": m{"stop_reason": reason}, "usage": m{"output_tokens": 20}})
	send(m{"type": "message_stop"})
	return b.String()
}

// chunkings are the ways in which a body reaches the client.
var chunkings = map[string]func(body string) []string{
	"whole":         func(b string) []string { return []string{b} },
	"per event":     func(b string) []string { return strings.SplitAfter(b, "\n\n") },
	"per character": func(b string) []string { return strings.Split(b, "") },
	"single bytes": func(b string) []string {
		var parts []string
		for i := range len(b) {
			parts = append(parts, b[i:i+1])
		}
		return parts
	},
	"CR LF": func(b string) []string { return []string{strings.ReplaceAll(b, "\n", "\r\n")} },
	"comments": func(b string) []string {
		return []string{": hello\n\n" + strings.ReplaceAll(b, "\n\n", "\n: keep-alive\n\n:\n\n")}
	},
	"long lines": func(b string) []string {
		// JSON allows blanks between its tokens, so a line can be any length.
		return []string{strings.ReplaceAll(b, "data: {", "data: {"+strings.Repeat(" ", 80<<10))}
	},
}

// loopback is a model server that plays the task.
type loopback struct {
	*httptest.Server
	mu     sync.Mutex
	bodies []string
}

func serveTask(t *testing.T, w wireAPI, cut func(string) []string) *loopback {
	t.Helper()
	l := &loopback{}
	l.Server = httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil || r.URL.Path != w.path {
			http.Error(rw, "no such thing: "+r.URL.Path, http.StatusNotFound)
			return
		}
		l.mu.Lock()
		l.bodies = append(l.bodies, string(body))
		l.mu.Unlock()
		n := min(bytes.Count(body, []byte(w.result)), len(task)-1)
		rw.Header().Set("Content-Type", "text/event-stream")
		for _, part := range cut(w.encode(task[n], n)) {
			if _, err := io.WriteString(rw, part); err != nil {
				return
			}
			rw.(http.Flusher).Flush()
		}
	}))
	t.Cleanup(l.Close)
	return l
}

// withServer is a run against a server.
func withServer(t *testing.T, url, api string, args ...string) *process {
	t.Helper()
	p := newProcess(t, "", append([]string{"run", "--model", "local/some-model", "--yolo"}, args...)...)
	base := url
	if api != "messages" {
		base += "/v1"
	}
	config := fmt.Sprintf("providers:\n  local: {api: %s, base_url: %q, api_key_env: LOCAL_KEY}\n", api, base)
	if err := os.MkdirAll(filepath.Join(p.dir, ".config", "drover"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(p.dir, ".config", "drover", "config.yaml"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	p.cmd.Env = append(p.cmd.Env, "LOCAL_KEY=canary-key-0123456789")
	return p
}

func TestSameTaskPassesOverEveryAPIInEveryChunking(t *testing.T) {
	for _, w := range wireAPIs {
		for name, cut := range chunkings {
			t.Run(w.api+" "+name, func(t *testing.T) {
				t.Parallel()
				server := serveTask(t, w, cut)
				p := withServer(t, server.URL, w.api, "Repair the greeting.")
				greeting := filepath.Join(p.dir, "greeting.txt")
				if err := os.WriteFile(greeting, []byte("helo wörld 🙂\n"), 0o600); err != nil {
					t.Fatal(err)
				}
				stdout, exit := p.output()
				if exit != 0 {
					t.Fatalf("exit %d: %s\n%s", exit, p.stderr.String(), stdout)
				}
				if got, err := os.ReadFile(greeting); err != nil || string(got) != "hello wörld 🙂\n" {
					t.Errorf("the file holds %q, %v", got, err)
				}
				end := lastLine(t, stdout)
				if end.Message != task[len(task)-1].text || end.Usage.InputTokens != 400 {
					t.Errorf("message %q, usage %+v", end.Message, end.Usage)
				}
				for _, body := range server.bodies {
					if strings.Contains(body, "canary-key") {
						t.Error("the key is in a request's body")
					}
				}
				if n := len(server.bodies[0]); n > 12<<10 {
					t.Errorf("the first request has %d bytes, more than 12 kB", n)
				}
			})
		}
	}
}

func TestProviderFailuresHaveTheirOwnCode(t *testing.T) {
	retriesOff := "    max_attempts: 1\n"
	for _, c := range []struct {
		name   string
		status int
		body   string
		exit   int
		kind   string
	}{
		{"bad key", 401, `{"error":{"message":"Incorrect API key provided"}}`, 4, "auth"},
		{"forbidden", 403, `{"error":{"message":"no access"}}`, 4, "auth"},
		{"unknown model", 404, `{"error":{"message":"The model some-model does not exist","code":"model_not_found"}}`, 3, "not_found"},
		{"rate limit", 429, `{"error":{"message":"slow down"}}`, 5, "rate_limit"},
		{"no quota", 429, `{"error":{"message":"You exceeded your quota","code":"insufficient_quota"}}`, 5, "quota"},
		{"server error", 500, `oops`, 5, "server_error"},
		{"overloaded", 529, `{"error":{"type":"overloaded_error","message":"Overloaded"}}`, 5, "overloaded"},
		{"too long", 400, `{"error":{"message":"maximum context length","code":"context_length_exceeded"}}`, 6, "context_length"},
		{"empty answer", 200, ``, 5, "malformed_response"},
		{"a web page", 200, `<html>hello</html>`, 5, "malformed_response"},
		{"error inside 200", 200, "event: error\ndata: {\"error\":{\"type\":\"server_error\",\"message\":\"broken\"}}\n\n", 5, "server_error"},
	} {
		for _, w := range wireAPIs {
			t.Run(c.name+" "+w.api, func(t *testing.T) {
				t.Parallel()
				server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
					rw.Header().Set("X-Request-Id", "req-42")
					rw.WriteHeader(c.status)
					_, _ = io.WriteString(rw, c.body) // a client that is gone shows in the test
				}))
				t.Cleanup(server.Close)
				for _, format := range []string{"jsonl", "text"} {
					p := withServer(t, server.URL, w.api, "--format", format, "hi")
					p.addConfig(retriesOff)
					var out bytes.Buffer
					p.cmd.Stdout = &out
					if err := p.cmd.Start(); err != nil {
						t.Fatal(err)
					}
					exit := p.finish()
					if exit != c.exit {
						t.Errorf("%s: exit %d, want %d; stderr: %s", format, exit, c.exit, p.stderr.String())
					}
					if strings.Contains(p.stderr.String()+out.String(), "canary-key") {
						t.Errorf("%s: the key is shown", format)
					}
					if format == "text" {
						if out.Len() > 0 {
							t.Errorf("text prints %q", out.String())
						}
						continue
					}
					end := p.check(out.Bytes(), exit)
					if end.Error == nil || end.Message != "" {
						t.Errorf("error %+v, message %q", end.Error, end.Message)
					}
				}
			})
		}
	}
}

// addConfig appends lines to the provider of the config.
func (p *process) addConfig(lines string) {
	p.t.Helper()
	name := filepath.Join(p.dir, ".config", "drover", "config.yaml")
	data, err := os.ReadFile(name)
	if err != nil {
		p.t.Fatal(err)
	}
	text := strings.Replace(string(data), "local: {", "local:\n    ", 1)
	text = strings.ReplaceAll(strings.Replace(text, "}\n", "\n", 1), ", ", "\n    ")
	if err := os.WriteFile(name, []byte(text+lines), 0o600); err != nil {
		p.t.Fatal(err)
	}
}

func TestSilentServerEndsTheRunWithinItsClocks(t *testing.T) {
	for _, w := range wireAPIs {
		t.Run(w.api, func(t *testing.T) {
			t.Parallel()
			var mu sync.Mutex
			requests := 0
			server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
				mu.Lock()
				requests++
				mu.Unlock()
				rw.Header().Set("Content-Type", "text/event-stream")
				rw.WriteHeader(http.StatusOK)
				for {
					// Pings keep the connection alive and bring nothing.
					if _, err := io.WriteString(rw, ": ping\n\nevent: ping\ndata: {\"type\":\"ping\"}\n\n"); err != nil {
						return
					}
					rw.(http.Flusher).Flush()
					select {
					case <-r.Context().Done():
						return
					case <-time.After(50 * time.Millisecond):
					}
				}
			}))
			t.Cleanup(server.Close)
			p := withServer(t, server.URL, w.api, "hi")
			p.addConfig("    max_attempts: 2\n    first_byte: 2s\n    stream_idle: 1s\n")
			stdout, exit := p.output()
			if exit != 5 || !bytes.Contains(stdout, []byte(`"type":"provider.retry"`)) {
				t.Errorf("exit %d: %s", exit, p.stderr.String())
			}
			mu.Lock()
			defer mu.Unlock()
			if requests != 2 {
				t.Errorf("%d requests, want 2", requests)
			}
		})
	}
}

func TestRefusedConnectionIsAProviderError(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	url := server.URL
	server.Close()
	p := withServer(t, url, "chat", "hi")
	p.addConfig("    max_attempts: 1\n")
	if _, exit := p.output(); exit != 5 {
		t.Errorf("exit %d: %s", exit, p.stderr.String())
	}
}

func TestCostLimitNeedsAPrice(t *testing.T) {
	p := withServer(t, "http://127.0.0.1:1", "chat", "--max-cost", "1", "hi")
	stdout, exit := p.output()
	if exit != 3 || !bytes.Contains(stdout, []byte(`"reason":"unknown_price"`)) {
		t.Errorf("exit %d: %s", exit, p.stderr.String())
	}
}

func TestCostLimitEndsTheRun(t *testing.T) {
	server := serveTask(t, wireAPIs[0], chunkings["whole"])
	p := withServer(t, server.URL, "chat", "--max-cost", "0.0002", "Repair the greeting.")
	p.addConfig("    models:\n      some-model: {input_price: 1, output_price: 1}\n")
	stdout, exit := p.output()
	end := lastLine(t, stdout)
	if exit != 13 || end.Reason != "limit_cost_usd" || end.CostUSD == nil || *end.CostUSD != 0.00024 {
		t.Errorf("exit %d, reason %s, cost %v: %s", exit, end.Reason, end.CostUSD, p.stderr.String())
	}
}
