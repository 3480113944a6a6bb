package cmd

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"drover/output/event"
)

// exchange answers one request.
type exchange func(rw http.ResponseWriter, r *http.Request)

// played is a model server that answers the n-th request with the n-th
// exchange, and every further one with the last.
type played struct {
	*httptest.Server
	mu     sync.Mutex
	bodies []string
}

func playServer(t *testing.T, exchanges ...exchange) *played {
	t.Helper()
	s := &played{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		s.mu.Lock()
		n := min(len(s.bodies), len(exchanges)-1)
		s.bodies = append(s.bodies, string(body))
		s.mu.Unlock()
		exchanges[n](rw, r)
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *played) requests() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.bodies...)
}

// streams answers with a whole body, in one flush.
func streams(body string) exchange {
	return func(rw http.ResponseWriter, _ *http.Request) {
		rw.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(rw, body) // a client that is gone shows in the test
		rw.(http.Flusher).Flush()
	}
}

// fails answers with a status and headers given as alternating names and values.
func fails(status int, headers ...string) exchange {
	return func(rw http.ResponseWriter, _ *http.Request) {
		for i := 0; i < len(headers); i += 2 {
			rw.Header().Set(headers[i], headers[i+1])
		}
		rw.WriteHeader(status)
		_, _ = io.WriteString(rw, `{"error":{"message":"not now"}}`) // a client that is gone shows in the test
	}
}

// chat puts deltas, a finish reason and an end marker into one body; without a
// finish reason the body stops where the deltas do.
func chat(finish any, deltas ...m) string {
	var b strings.Builder
	for _, d := range deltas {
		b.WriteString(sse("", m{"id": "c", "choices": []any{m{"index": 0, "delta": d, "finish_reason": nil}}}))
	}
	if finish != nil {
		b.WriteString(sse("", m{"id": "c", "choices": []any{m{"index": 0, "delta": m{}, "finish_reason": finish}}}))
		b.WriteString("data: [DONE]\n\n")
	}
	return b.String()
}

func content(text string) m { return m{"content": text} }

// callDelta is a fragment of a call; nil leaves a key out.
func callDelta(index any, id, name string, args any) m {
	function, c := m{}, m{"function": m{}}
	if name != "" {
		function["name"] = name
	}
	if args != nil {
		function["arguments"] = args
	}
	c["function"] = function
	if index != nil {
		c["index"] = index
	}
	if id != "" {
		c["id"], c["type"] = id, "function"
	}
	return m{"tool_calls": []any{c}}
}

var chatDone = streams(chat("stop", content("Done.")))

// firstDeltas is the beginning of an answer, two deltas of its text, per API.
func firstDeltas(w wireAPI) string {
	events := map[string]int{"chat": 2, "responses": 4, "messages": 5}[w.api]
	return strings.Join(strings.SplitAfter(w.encode(turnOfTask{text: "The answer is wrong."}, 0), "\n\n")[:events], "")
}

func errorEvent(w wireAPI, code, message string) string {
	switch w.api {
	case "responses":
		return sse("response.failed", m{"type": "response.failed", "response": m{"id": "r", "status": "failed", "error": m{"code": code, "message": message}}})
	case "messages":
		return sse("error", m{"type": "error", "error": m{"type": code, "message": message}})
	}
	return sse("", m{"error": m{"code": code, "message": message}})
}

// TestErrorInsideAStream (github.com/openai/codex/issues/1597) comes after two
// deltas; it is tried again only where that can help.
func TestErrorInsideAStream(t *testing.T) {
	t.Parallel()
	var all together
	for _, w := range wireAPIs {
		good := streams(w.encode(turnOfTask{text: "Right."}, 0))
		again := playServer(t, streams(firstDeltas(w)+errorEvent(w, "server_error", "The server had an error")), good)
		all.start("server error "+w.api, withServer(t, again.URL, w.api, "hi"), func(t *testing.T, stream []byte, exit int) {
			retries, end := bodies[event.ProviderRetryEvent](t, stream), lastLine(t, stream)
			if len(retries) != 1 || retries[0].ErrorKind != "server_error" || !strings.Contains(retries[0].Message, "The server had an error") {
				t.Errorf("retries %+v", retries)
			}
			if reqs := again.requests(); exit != 0 || end.Message != "Right." || end.Usage.Retries != 1 || len(reqs) != 2 || reqs[0] != reqs[1] {
				t.Errorf("got %+v after %d requests", end, len(reqs))
			}
			var texts []string
			for _, e := range bodies[event.MessageEvent](t, stream)[1:] {
				texts = append(texts, fmt.Sprint(e.Text, " ", e.Truncated))
			}
			if len(texts) != 2 || texts[0] != "The answer is wrong. true" || texts[1] != "Right. false" {
				t.Errorf("messages %q", texts)
			}
		})
		once := playServer(t, streams(firstDeltas(w)+errorEvent(w, "context_length_exceeded", "Your input is too long")), good)
		all.start("context length "+w.api, withServer(t, once.URL, w.api, "hi"), func(t *testing.T, stream []byte, exit int) {
			end := lastLine(t, stream)
			if exit != 6 || end.Reason != "context_length" || end.Message != "" || !strings.Contains(end.Error.Message, "Your input is too long") || len(once.requests()) != 1 {
				t.Errorf("got %+v after %d requests", end, len(once.requests()))
			}
		})
	}
	all.finish(t)
}

// TestServerThatSaysNothing (github.com/openai/codex/issues/3229,
// github.com/earendil-works/pi/issues/8331) has a kind of its own for each way
// of saying nothing, and a bound on the attempts.
func TestServerThatSaysNothing(t *testing.T) {
	t.Parallel()
	wait := func(rw http.ResponseWriter, r *http.Request) { <-r.Context().Done() }
	for name, c := range map[string]struct {
		silence exchange
		kind    string
	}{
		"no headers": {wait, "first_byte_timeout"},
		"headers and never a byte": {func(rw http.ResponseWriter, r *http.Request) {
			rw.Header().Set("Content-Type", "text/event-stream")
			rw.WriteHeader(http.StatusOK)
			rw.(http.Flusher).Flush()
			wait(rw, r)
		}, "stream_idle"},
		"two deltas": {func(rw http.ResponseWriter, r *http.Request) {
			streams(chat(nil, content("The answer"), content(" is wrong.")))(rw, r)
			wait(rw, r)
		}, "stream_idle"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := playServer(t, c.silence)
			p := withServer(t, s.URL, "chat", "hi")
			clocks := map[string]string{"first_byte_timeout": "first_byte: 400ms", "stream_idle": "stream_idle: 400ms"}
			p.addConfig("    max_attempts: 2\n    " + clocks[c.kind] + "\n")
			stream := p.mustEnd(5)
			retries, end := bodies[event.ProviderRetryEvent](t, stream), lastLine(t, stream)
			if len(retries) != 1 || retries[0].ErrorKind != c.kind || end.Reason != c.kind || len(s.requests()) != 2 || end.Message != "" {
				t.Errorf("%d requests, retries %+v, end %+v", len(s.requests()), retries, end)
			}
		})
	}
}

// TestStatusesThatAreTriedAgain (github.com/headroomlabs-ai/headroom/pull/1495).
func TestStatusesThatAreTriedAgain(t *testing.T) {
	t.Parallel()
	var all together
	for _, status := range []int{408, 409, 425, 429, 500, 502, 503, 504, 529} {
		s := playServer(t, fails(status), chatDone)
		all.start(fmt.Sprint(status), withServer(t, s.URL, "chat", "hi"), func(t *testing.T, stream []byte, exit int) {
			if retries := bodies[event.ProviderRetryEvent](t, stream); exit != 0 || len(retries) != 1 || retries[0].HTTPStatus != status {
				t.Errorf("exit %d, retries %+v", exit, retries)
			}
		})
	}
	for _, status := range []int{400, 401, 403, 404, 413, 422} {
		s := playServer(t, fails(status), chatDone)
		all.start(fmt.Sprint(status), withServer(t, s.URL, "chat", "hi"), func(t *testing.T, _ []byte, exit int) {
			if exit == 0 || len(s.requests()) != 1 {
				t.Errorf("exit %d after %d requests", exit, len(s.requests()))
			}
		})
	}
	s := playServer(t, fails(529, "Retry-After", "1"), fails(529, "retry-after-ms", "20"), chatDone)
	all.start("twice, with a wish to wait", withServer(t, s.URL, "chat", "hi"), func(t *testing.T, stream []byte, exit int) {
		retries := bodies[event.ProviderRetryEvent](t, stream)
		if exit != 0 || len(retries) != 2 || retries[0].DelayMS < 1000 || retries[1].DelayMS < 20 || lastLine(t, stream).Usage.Retries != 2 {
			t.Errorf("exit %d, retries %+v, usage %+v", exit, retries, lastLine(t, stream).Usage)
		}
	})
	all.finish(t)
}

// playCalls plays one response with calls, and then an answer.
func playCalls(t *testing.T, args []string, body string) (*process, *played, []byte) {
	t.Helper()
	s := playServer(t, streams(body), chatDone)
	p := withServer(t, s.URL, "chat", append(args, "hi")...)
	stream, _ := p.output()
	return p, s, stream
}

// TestFragmentsOfCallsFindTheirCall has the ways in which servers number,
// name and begin calls.
func TestFragmentsOfCallsFindTheirCall(t *testing.T) {
	t.Parallel()
	const exec = "exec_command"
	for name, c := range map[string]struct {
		deltas []m
		want   []string
	}{
		// github.com/huggingface/smolagents/issues/1569
		"two calls of one index": {[]m{
			callDelta(0, "call_a", exec, `{"cmd":`), callDelta(0, "call_b", exec, `{"cmd":`),
			callDelta(0, "call_a", "", `"echo a"}`), callDelta(0, "call_b", "", `"echo b"}`),
		}, []string{"echo a", "echo b"}},
		"one after the other": {[]m{
			callDelta(0, "call_a", exec, `{"cmd":`), callDelta(0, "", "", `"echo a"}`), callDelta(0, "call_b", exec, `{"cmd":`), callDelta(0, "", "", `"echo b"}`),
		}, []string{"echo a", "echo b"}},
		"no index": {[]m{
			callDelta(nil, "call_a", exec, `{"cmd":`), callDelta(nil, "call_a", "", `"echo a"}`), callDelta(nil, "call_b", exec, `{"cmd":"echo b"}`),
		}, []string{"echo a", "echo b"}},
		// github.com/scriptscat/scriptcat/pull/1355
		"placeholder before the arguments": {[]m{
			callDelta(0, "call_a", exec, "{}"), callDelta(0, "", "", `{"cmd":`), callDelta(0, "", "", `"echo a"}`),
		}, []string{"echo a"}},
		"arguments as an object": {[]m{callDelta(0, "call_a", exec, m{"cmd": "echo a"})}, []string{"echo a"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, _, stream := playCalls(t, nil, chat("tool_calls", c.deltas...))
			var got []string
			for _, e := range bodies[event.ToolCallEvent](t, stream) {
				var args struct{ Cmd string }
				if err := json.Unmarshal(e.Args, &args); err != nil {
					t.Errorf("arguments %s: %v", e.Args, err)
				}
				got = append(got, args.Cmd)
			}
			if fmt.Sprint(got) != fmt.Sprint(c.want) {
				t.Errorf("calls %q, want %q", got, c.want)
			}
			for _, r := range bodies[event.ToolResultEvent](t, stream) {
				if r.IsError {
					t.Errorf("result %s", r.Content)
				}
			}
		})
	}
}

// TestCallsWithoutArguments (github.com/cloudwego/eino-ext/issues/923): where
// fields are required the model is told, and the run goes on.
func TestCallsWithoutArguments(t *testing.T) {
	t.Parallel()
	for name, args := range map[string]any{"empty": "", "null": "null", "no arguments": nil, "blank": " ", "object": "{}"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, s, stream := playCalls(t, nil, chat("tool_calls", callDelta(0, "call_a", "exec_command", args)))
			r := result(t, stream)
			if !r.IsError || !strings.Contains(r.Content, "missing field `cmd`") || lastLine(t, stream).Message != "Done." {
				t.Errorf("result %q, message %q", r.Content, lastLine(t, stream).Message)
			}
			if reqs := s.requests(); len(reqs) != 2 || !strings.Contains(reqs[1], "missing field `cmd`") {
				t.Errorf("%d requests", len(reqs))
			}
		})
	}
}

// TestBrokenArgumentsAreNeverRun (github.com/open-octo/octo-agent/pull/2356).
func TestBrokenArgumentsAreNeverRun(t *testing.T) {
	t.Parallel()
	for name, raw := range map[string]string{
		"cut": `{"cmd":"touch canary`, "no JSON": `{cmd: touch canary}`, "text behind": `{"cmd":"touch canary"} now`,
		"two objects": `{"cmd":"touch canary"}{"cmd":"touch canary"}`, "string": `"touch canary"`, "list": `["touch canary"]`, "no JSON at all": "touch canary",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			check := func(p *process, stream []byte) {
				c, r := bodies[event.ToolCallEvent](t, stream)[0], result(t, stream)
				if !r.IsError || !strings.Contains(r.Content, "failed to parse function arguments") || c.ArgsError == "" {
					t.Errorf("result %q, call %+v", r.Content, c)
				}
				if raw[0] == '{' && (c.ArgsRaw != raw || !strings.Contains(r.Content, "byte ")) {
					t.Errorf("raw %q, result %q", c.ArgsRaw, r.Content)
				}
				if _, err := os.Stat(filepath.Join(p.dir, "canary")); err == nil {
					t.Error("the call was run")
				}
				if end := lastLine(t, stream); end.ExitCode != 0 || end.Message != "Done." {
					t.Errorf("exit %d, message %q", end.ExitCode, end.Message)
				}
			}
			p, _, stream := playCalls(t, nil, chat("tool_calls", callDelta(0, "call_a", "exec_command", raw)))
			check(p, stream)
			p = run(t, script(t, calls(m{"name": "exec_command", "args_raw": raw}), says("Done.")), "go")
			check(p, p.mustEnd(0))
		})
	}
}

// TestCallsOfACutResponseNeverRun (github.com/earendil-works/pi/pull/6285),
// also if what is there of them happens to be whole.
func TestCallsOfACutResponseNeverRun(t *testing.T) {
	t.Parallel()
	patch := object("input", "*** Begin Patch\n*** Add File: canary\n+x\n*** End Patch")
	for name, delta := range map[string]m{
		"half a patch":   callDelta(0, "call_a", "apply_patch", patch[:len(patch)-25]),
		"whole patch":    callDelta(0, "call_a", "apply_patch", patch),
		"whole command":  callDelta(0, "call_a", "exec_command", `{"cmd":"touch canary"}`),
		"half a command": callDelta(0, "call_a", "exec_command", `{"cmd":"touch canary`),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, s, stream := playCalls(t, nil, chat(nil, callDelta(0, "call_b", "exec_command", `{"cmd":"touch canary"}`))+chat("length", withIndex(delta, 1)))
			if _, err := os.Stat(filepath.Join(p.dir, "canary")); err == nil {
				t.Error("a call was run")
			}
			if n := len(bodies[event.ToolIncompleteEvent](t, stream)); n != 2 {
				t.Errorf("%d calls are incomplete", n)
			}
			if reqs := s.requests(); len(reqs) != 2 || !strings.Contains(reqs[1], "was cut at") {
				t.Errorf("the model is not told: %.300q", reqs[len(reqs)-1])
			}
			if end := lastLine(t, stream); end.ExitCode != 0 || end.Message != "Done." {
				t.Errorf("exit %d, message %q", end.ExitCode, end.Message)
			}
		})
	}
}

func withIndex(delta m, index int) m {
	delta["tool_calls"].([]any)[0].(m)["index"] = index
	return delta
}

// TestReasoningIsKeptApart (github.com/charmbracelet/crush/issues/2754): some
// servers want it back after a call, others refuse it.
func TestReasoningIsKeptApart(t *testing.T) {
	t.Parallel()
	first := streams(chat("tool_calls", m{"reasoning_content": "I think. "}, m{"reasoning": ""}, callDelta(0, "call_a", "exec_command", `{"cmd":"echo a"}`)))
	second := streams(chat("stop", m{"reasoning": "Now I know."}, content("It is a.")))
	for name, wanted := range map[string]bool{"wanted back": true, "refused": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &played{}
			s.Server = httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body) // a broken request shows in the test
				s.mu.Lock()
				s.bodies = append(s.bodies, string(body))
				s.mu.Unlock()
				switch sent := strings.Contains(string(body), `"reasoning_content":"I think`); {
				case !strings.Contains(string(body), `"role":"tool"`):
					first(rw, r)
				case sent && !wanted:
					http.Error(rw, `{"error":{"message":"messages.2: reasoning_content is not permitted"}}`, http.StatusBadRequest)
				case !sent && wanted:
					http.Error(rw, `{"error":{"message":"messages.2: reasoning_content must be passed back"}}`, http.StatusBadRequest)
				default:
					second(rw, r)
				}
			}))
			t.Cleanup(s.Close)
			stream := withServer(t, s.URL, "chat", "hi").mustEnd(0)
			var thoughts []string
			for _, e := range bodies[event.ReasoningEvent](t, stream) {
				thoughts = append(thoughts, e.Text)
			}
			if fmt.Sprintf("%q", thoughts) != `["I think. " "Now I know."]` || lastLine(t, stream).Message != "It is a." {
				t.Errorf("reasoning %q, message %q", thoughts, lastLine(t, stream).Message)
			}
			if n := len(s.requests()); n > 3 {
				t.Errorf("%d requests", n)
			}
		})
	}
}

// TestServerThatCountsNothing (github.com/Gitlawb/openclaude/issues/2136):
// counts are estimated and said to be, budgets hold, and a cost that nobody
// knows is none.
func TestServerThatCountsNothing(t *testing.T) {
	t.Parallel()
	zeros := sse("", m{"id": "c", "choices": []any{}, "usage": m{"prompt_tokens": 0, "completion_tokens": 0}}) + "data: [DONE]\n\n"
	for name, usage := range map[string]string{"no usage": "data: [DONE]\n\n", "zeros": zeros} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var exchanges []exchange
			for i := range 60 {
				body := chat("tool_calls", callDelta(0, fmt.Sprint("call_", i), "exec_command", fmt.Sprintf(`{"cmd":"echo %d; seq 300"}`, i)))
				exchanges = append(exchanges, streams(strings.TrimSuffix(body, "data: [DONE]\n\n")+usage))
			}
			s := playServer(t, exchanges...)
			stream := withServer(t, s.URL, "chat", "--max-tokens", "10000", "hi").mustEnd(13)
			end := lastLine(t, stream)
			if !end.Usage.Estimated || end.Usage.InputTokens == 0 || end.CostUSD != nil || end.CostBasis != "unknown" || end.Turns > 20 {
				t.Errorf("usage %+v, cost %v %s, %d turns", end.Usage, end.CostUSD, end.CostBasis, end.Turns)
			}
			for _, u := range bodies[event.UsageEvent](t, stream) {
				if !u.Estimated || u.CostUSD != nil {
					t.Errorf("usage %+v", u)
				}
			}
		})
	}
}

// TestMalformedCallsOnTheProvidersSide (github.com/Wei-Shaw/sub2api/issues/7081)
// are no empty answer.
func TestMalformedCallsOnTheProvidersSide(t *testing.T) {
	bad := streams(chat("MALFORMED_FUNCTION_CALL"))
	t.Parallel()
	var all together
	for name, c := range map[string]struct {
		exchanges      []exchange
		attempts       int
		exit, requests int
	}{"three times": {[]exchange{bad, bad, bad, chatDone}, 5, 0, 4}, "always": {[]exchange{bad}, 2, 5, 2}} {
		s := playServer(t, c.exchanges...)
		p := withServer(t, s.URL, "chat", "hi")
		p.addConfig(fmt.Sprintf("    max_attempts: %d\n", c.attempts))
		all.start(name, p, func(t *testing.T, stream []byte, exit int) {
			if end := lastLine(t, stream); exit != c.exit || len(s.requests()) != c.requests || end.Usage.Retries != c.requests-1 {
				t.Errorf("exit %d, %d requests, usage %+v", exit, len(s.requests()), end.Usage)
			}
		})
	}
	all.finish(t)
}

// TestSuccessWithoutAnAnswerIsTriedAgain (github.com/headroomlabs-ai/headroom/pull/3083).
func TestSuccessWithoutAnAnswerIsTriedAgain(t *testing.T) {
	t.Parallel()
	var all together
	for _, w := range wireAPIs {
		good := streams(w.encode(turnOfTask{text: "Right."}, 0))
		for name, body := range map[string]string{
			"error alone": errorEvent(w, "server_error", "no backend"), "nothing": "", "web page": "<html><title>Sign in</title></html>",
			"end alone": map[string]string{"chat": "data: [DONE]\n\n", "responses": ": ping\n\n", "messages": "event: ping\ndata: {\"type\":\"ping\"}\n\nevent: message_stop\ndata: {\"type\":\"message_stop\"}\n\n"}[w.api],
		} {
			once := playServer(t, streams(body), good)
			all.start(w.api+" "+name+" once", withServer(t, once.URL, w.api, "hi"), func(t *testing.T, stream []byte, exit int) {
				if end := lastLine(t, stream); exit != 0 || end.Message != "Right." || end.Usage.Retries != 1 {
					t.Errorf("got %+v", end)
				}
			})
			always := playServer(t, streams(body))
			p := withServer(t, always.URL, w.api, "hi")
			p.addConfig("    max_attempts: 2\n")
			all.start(w.api+" "+name+" always", p, func(t *testing.T, stream []byte, exit int) {
				if end := lastLine(t, stream); exit != 5 || end.Message != "" || len(always.requests()) != 2 {
					t.Errorf("got %+v after %d requests", end, len(always.requests()))
				}
			})
		}
	}
	all.finish(t)
}

// TestConnectionThatEndsInTheMiddle (github.com/openonion/connectonion/issues/1116)
// runs nothing of the broken response and asks the same again.
func TestConnectionThatEndsInTheMiddle(t *testing.T) {
	t.Parallel()
	touch := func(i int) m {
		return callDelta(i, fmt.Sprint("call_", i), "exec_command", `{"cmd":"touch canary"}`)
	}
	cuts := map[string]string{
		"half a text":             chat(nil, content("The answer is"), content(" wro")),
		"half a call's arguments": chat(nil, content("So."), callDelta(0, "call_0", "exec_command", `{"cmd":"touch ca`)),
		"between calls":           chat(nil, touch(0), touch(1)),
		"before the end marker":   chat(nil, touch(0), touch(1), touch(2)),
		"in an event":             chat(nil, touch(0)) + "data: {\"choices\":[{\"ind",
	}
	endings := map[string]func(t *testing.T, rw http.ResponseWriter, r *http.Request){
		"close": func(*testing.T, http.ResponseWriter, *http.Request) {},
		"reset": func(t *testing.T, rw http.ResponseWriter, _ *http.Request) {
			if conn := hijack(t, rw); conn != nil {
				_ = conn.SetLinger(0) // the test then sees a plain close
				_ = conn.Close()
			}
		},
		"half-close": func(t *testing.T, rw http.ResponseWriter, _ *http.Request) {
			if conn := hijack(t, rw); conn != nil {
				_ = conn.CloseWrite()            // what matters is that drover goes on
				_, _ = io.Copy(io.Discard, conn) // until drover closes its side
				_ = conn.Close()
			}
		},
		"silence": func(_ *testing.T, _ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
	}
	var all together
	for where, body := range cuts {
		for how, end := range endings {
			s := playServer(t, func(rw http.ResponseWriter, r *http.Request) {
				streams(body)(rw, r)
				end(t, rw, r)
			}, chatDone)
			p := withServer(t, s.URL, "chat", "hi")
			p.addConfig("    stream_idle: 1s\n")
			all.start(where+" "+how, p, func(t *testing.T, stream []byte, exit int) {
				if exit != 0 {
					t.Fatalf("exit %d: %s", exit, p.stderr.String())
				}
				want := "stream_cut"
				if how == "silence" {
					want = "stream_idle"
				}
				if retries := bodies[event.ProviderRetryEvent](t, stream); len(retries) != 1 || retries[0].ErrorKind != want {
					t.Errorf("retries %+v", retries)
				}
				if reqs := s.requests(); len(reqs) != 2 || reqs[0] != reqs[1] {
					t.Errorf("%d requests, or not the same", len(reqs))
				}
				if _, err := os.Stat(filepath.Join(p.dir, "canary")); err == nil {
					t.Error("a call of the broken response was run")
				}
				if last := lastLine(t, stream); last.Message != "Done." {
					t.Errorf("message %q", last.Message)
				}
				for _, e := range bodies[event.MessageEvent](t, stream) {
					if e.Role == "assistant" && e.Text != "Done." && !e.Truncated {
						t.Errorf("the broken text is not marked: %+v", e)
					}
				}
			})
		}
	}
	all.finish(t)
}

func hijack(t *testing.T, rw http.ResponseWriter) *net.TCPConn {
	conn, _, err := rw.(http.Hijacker).Hijack()
	if err != nil {
		t.Errorf("take the connection: %v", err)
		return nil
	}
	return conn.(*net.TCPConn)
}

// TestPriceThatIsKnownIsAddedUp is the counterpart of a cost that nobody knows.
func TestPriceThatIsKnownIsAddedUp(t *testing.T) {
	t.Parallel()
	s := serveTask(t, wireAPIs[0], chunkings["whole"])
	p := withServer(t, s.URL, "chat", "Repair the greeting.")
	p.lay(map[string]string{"greeting.txt": "helo wörld 🙂\n"})
	p.addConfig("    models: {some-model: {input_price: 1000, output_price: 10000}}\n")
	stream := p.mustEnd(0)
	end := lastLine(t, stream)
	// Four responses of 100 and 20 tokens.
	if end.CostUSD == nil || *end.CostUSD < 1.19 || *end.CostUSD > 1.21 || end.CostBasis == "unknown" {
		t.Errorf("cost %v, basis %s", end.CostUSD, end.CostBasis)
	}
}
