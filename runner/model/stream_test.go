package model

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// serve returns a provider whose server answers every request with the events,
// one data line each, in pieces of size bytes. An event may begin with its name
// and a space.
func serve(t testing.TB, build func(endpoint) Provider, size int, events ...string) Provider {
	t.Helper()
	var b strings.Builder
	for _, e := range events {
		if name, data, found := strings.Cut(e, " {"); found && !strings.HasPrefix(e, "{") {
			b.WriteString("event: " + name + "\n")
			e = "{" + data
		}
		b.WriteString("data: " + e + "\n\n")
	}
	body := b.String()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for rest := body; rest != ""; {
			n := min(size, len(rest))
			_, _ = w.Write([]byte(rest[:n]))
			w.(http.Flusher).Flush()
			rest = rest[n:]
		}
	}))
	t.Cleanup(s.Close)
	return build(endpoint{Name: "test", BaseURL: s.URL, Client: s.Client()})
}

// wanted is what a stream must come to.
type wanted struct {
	text, reasoning string
	calls           []playedCall
	kept            []string
	reason          FinishReason
	usage           *Usage
	fails           ErrorKind
	retry           bool
	message         string
}

func checkStream(t *testing.T, p Provider, want wanted) {
	t.Helper()
	r := play(t, t.Context(), p, &Request{Model: "m", Items: []Item{user("hi")},
		Tools: []Tool{{Name: "exec_command"}, {Name: "apply_patch", Freeform: true}}})
	if r.text != want.text || r.reasoning != want.reasoning {
		t.Errorf("text %q, reasoning %q", r.text, r.reasoning)
	}
	if diff := cmp.Diff(want.calls, r.calls); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
	var kept []string
	for i, d := range r.deltas {
		if (d.Kind == Opened) != (i == 0) {
			t.Errorf("delta %d is %+v", i, d)
		}
		if d.Kind == Keep {
			if d.Item.Kind != Reasoning || d.Item.Origin != "test" || !json.Valid(d.Item.Opaque) {
				t.Errorf("kept %+v", d.Item)
			}
			kept = append(kept, string(d.Item.Opaque))
		}
	}
	if diff := cmp.Diff(want.kept, kept); diff != "" {
		t.Errorf("kept (-want +got):\n%s", diff)
	}
	if want.fails != "" {
		if r.finish != nil || r.err == nil || r.err.Kind != want.fails || r.err.Retryable != want.retry || !strings.Contains(r.err.Error(), want.message) {
			t.Errorf("ended with %+v and %+v", r.finish, r.err)
		}
		return
	}
	if r.err != nil || r.finish == nil {
		t.Fatalf("ended with %+v and %v", r.finish, r.err)
	}
	if r.finish.Reason != want.reason {
		t.Errorf("reason %q, want %q", r.finish.Reason, want.reason)
	}
	if diff := cmp.Diff(want.usage, r.finish.Usage); diff != "" {
		t.Errorf("usage (-want +got):\n%s", diff)
	}
}

var chunkings = map[string]int{"whole": 1 << 20, "bytes": 1}

func TestResponsesStreams(t *testing.T) {
	const created = `{"type":"response.created","response":{"status":"in_progress"}}`
	const completed = `{"type":"response.completed","response":{"status":"completed"}}`
	call := playedCall{ID: "call_a", Name: "exec_command", Args: `{"cmd":"ls"}`}
	for _, c := range []struct {
		name   string
		events []string
		want   wanted
	}{
		{"everything", []string{
			created, `{"type":"response.in_progress","response":{}}`,
			`{"type":"response.output_item.added","output_index":0,"item":{"type":"reasoning","id":"rs_1","summary":[]}}`,
			`{"type":"response.reasoning_summary_part.added","item_id":"rs_1","output_index":0,"summary_index":0,"part":{"type":"summary_text","text":""}}`,
			`{"type":"response.reasoning_summary_text.delta","item_id":"rs_1","output_index":0,"summary_index":0,"delta":"First"}`,
			`{"type":"response.reasoning_summary_text.done","item_id":"rs_1","output_index":0,"summary_index":0,"text":"First"}`,
			`{"type":"response.reasoning_summary_text.delta","item_id":"rs_1","output_index":0,"summary_index":1,"delta":"Second"}`,
			`{"type":"response.output_item.done","output_index":0,"item":{"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"First"},{"type":"summary_text","text":"Second"}],"encrypted_content":"enc"}}`,
			`{"type":"response.output_item.added","output_index":1,"item":{"type":"message","id":"msg_1","role":"assistant","content":[]}}`,
			`{"type":"response.content_part.added","item_id":"msg_1","output_index":1,"content_index":0,"part":{"type":"output_text","text":""}}`,
			`{"type":"response.output_text.delta","item_id":"msg_1","output_index":1,"content_index":0,"delta":"I loök "}`,
			`{"type":"response.output_text.delta","item_id":"msg_1","output_index":1,"content_index":0,"delta":"😀."}`,
			`{"type":"response.output_text.done","item_id":"msg_1","output_index":1,"content_index":0,"text":"I loök 😀."}`,
			`{"type":"response.output_item.done","output_index":1,"item":{"type":"message","id":"msg_1","content":[{"type":"output_text","text":"I loök 😀."}]}}`,
			`{"type":"response.output_item.added","output_index":2,"item":{"type":"function_call","id":"fc_1","call_id":"call_a","name":"exec_command","arguments":""}}`,
			`{"type":"response.function_call_arguments.delta","item_id":"fc_1","output_index":2,"delta":"{\"cmd\":"}`,
			`{"type":"response.function_call_arguments.delta","item_id":"fc_1","output_index":2,"delta":"\"ls\"}"}`,
			`{"type":"response.function_call_arguments.done","item_id":"fc_1","output_index":2,"arguments":"{\"cmd\":\"ls\"}"}`,
			`{"type":"response.output_item.done","output_index":2,"item":{"type":"function_call","id":"fc_1","call_id":"call_a","name":"exec_command","arguments":"{\"cmd\":\"ls\"}"}}`,
			`{"type":"response.output_item.added","output_index":3,"item":{"type":"custom_tool_call","id":"ct_1","call_id":"call_b","name":"apply_patch","input":""}}`,
			`{"type":"response.custom_tool_call_input.delta","item_id":"ct_1","output_index":3,"delta":"*** Begin"}`,
			`{"type":"response.custom_tool_call_input.delta","item_id":"ct_1","output_index":3,"delta":" Patch"}`,
			`{"type":"response.custom_tool_call_input.done","item_id":"ct_1","output_index":3,"input":"*** Begin Patch"}`,
			`{"type":"response.output_item.done","output_index":3,"item":{"type":"custom_tool_call","id":"ct_1","call_id":"call_b","name":"apply_patch","input":"*** Begin Patch"}}`,
			`{"type":"response.of_a_new_kind","delta":{"a":1}}`,
			`{"type":"response.completed","response":{"status":"completed","output":[{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"enc"},{"type":"message","content":[{"type":"output_text","text":"I loök 😀."}]},{"type":"function_call","id":"fc_1","call_id":"call_a","name":"exec_command","arguments":"{\"cmd\":\"ls\"}"}],"usage":{"input_tokens":90,"input_tokens_details":{"cached_tokens":64},"output_tokens":20,"output_tokens_details":{"reasoning_tokens":7},"total_tokens":110}}}`,
		}, wanted{text: "I loök 😀.", reasoning: "First\n\nSecond", reason: ToolCalls,
			calls: []playedCall{call, {ID: "call_b", Name: "apply_patch", Args: "*** Begin Patch", Freeform: true}},
			kept:  []string{`{"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"First"},{"type":"summary_text","text":"Second"}],"encrypted_content":"enc"}`},
			usage: &Usage{InputTokens: 90, CachedInputTokens: 64, OutputTokens: 20, ReasoningTokens: 7}}},

		{"only the last event", []string{
			`{"type":"response.completed","response":{"status":"completed","output":[{"type":"reasoning","id":"r","encrypted_content":"e","summary":[{"text":"Hm"}]},{"type":"message","content":[{"type":"output_text","text":"Hi"}]},{"type":"function_call","id":"fc","call_id":"call_a","name":"exec_command","arguments":"{\"cmd\":\"ls\"}"}],"usage":{"input_tokens":0,"output_tokens":0}}}`,
		}, wanted{text: "Hi", reasoning: "Hm", calls: []playedCall{call}, reason: ToolCalls,
			kept: []string{`{"type":"reasoning","id":"r","encrypted_content":"e","summary":[{"text":"Hm"}]}`}}},

		{"only done events", []string{created,
			`{"type":"response.output_text.done","output_index":0,"text":"Hi"}`,
			`{"type":"response.function_call_arguments.done","item_id":"fc","output_index":1,"arguments":"{\"cmd\":\"ls\"}"}`,
			`{"type":"response.output_item.done","output_index":1,"item":{"type":"function_call","id":"fc","call_id":"call_a","name":"exec_command","arguments":"{\"cmd\":\"ls\"}"}}`,
			completed}, wanted{text: "Hi", calls: []playedCall{call}, reason: ToolCalls}},

		{"names of events only", []string{`response.created {"response":{}}`, `response.output_text.delta {"delta":"Hi"}`, `response.completed {"response":{}}`},
			wanted{text: "Hi", reason: Stop}},

		{"parallel calls with one index, interleaved", []string{created,
			`{"type":"response.output_item.added","output_index":0,"item":{"type":"function_call","id":"f1","call_id":"call_a","name":"exec_command"}}`,
			`{"type":"response.output_item.added","output_index":0,"item":{"type":"function_call","id":"f2","call_id":"call_b","name":"exec_command"}}`,
			`{"type":"response.function_call_arguments.delta","item_id":"f1","output_index":0,"delta":"{\"cmd\":"}`,
			`{"type":"response.function_call_arguments.delta","item_id":"f2","output_index":0,"delta":"{}"}`,
			`{"type":"response.function_call_arguments.delta","item_id":"f2","output_index":0,"delta":"{\"cmd\":\"pwd\"}"}`,
			`{"type":"response.function_call_arguments.delta","item_id":"f1","output_index":0,"delta":"\"ls\"}"}`,
			completed}, wanted{reason: ToolCalls, calls: []playedCall{call, {ID: "call_b", Name: "exec_command", Args: `{"cmd":"pwd"}`}}}},

		{"another item id in every event", []string{created,
			`{"type":"response.output_item.added","output_index":0,"item":{"type":"function_call","id":"x1","call_id":"call_a","name":"exec_command"}}`,
			`{"type":"response.function_call_arguments.delta","item_id":"x2","output_index":0,"delta":"{\"cmd\":\"ls\"}"}`,
			`{"type":"response.output_item.done","output_index":0,"item":{"type":"function_call","id":"x3","call_id":"call_a","name":"exec_command","arguments":"{\"cmd\":\"ls\"}"}}`,
			completed}, wanted{reason: ToolCalls, calls: []playedCall{call}}},

		{"call without arguments", []string{created,
			`{"type":"response.output_item.done","output_index":0,"item":{"type":"function_call","call_id":"call_a","name":"exec_command","arguments":""}}`,
			completed}, wanted{reason: ToolCalls, calls: []playedCall{{ID: "call_a", Name: "exec_command"}}}},

		{"characters cut in two", []string{created,
			`{"type":"response.output_text.delta","delta":"a\ud83d"}`, `{"type":"response.output_text.delta","delta":"\ude00"}`,
			"{\"type\":\"response.output_text.delta\",\"delta\":\"\xf0\x9f\"}", "{\"type\":\"response.output_text.delta\",\"delta\":\"\x98\x80b\"}",
			completed}, wanted{text: "a😀😀b", reason: Stop}},

		{"two messages", []string{created,
			`{"type":"response.output_text.delta","output_index":0,"delta":"One."}`,
			`{"type":"response.output_text.delta","output_index":1,"delta":"Two."}`,
			completed}, wanted{text: "One.\n\nTwo.", reason: Stop}},

		{"freeform tool called as a function", []string{created,
			`{"type":"response.output_item.added","output_index":0,"item":{"type":"function_call","id":"f1","call_id":"c","name":"apply_patch"}}`,
			`{"type":"response.function_call_arguments.delta","item_id":"f1","delta":"{\"input\":\"a\\n"}`,
			`{"type":"response.function_call_arguments.delta","item_id":"f1","delta":"b\"}"}`,
			completed}, wanted{reason: ToolCalls, calls: []playedCall{{ID: "c", Name: "apply_patch", Args: "a\nb", Freeform: true}}}},

		{"freeform input that is no whole string", []string{created,
			`{"type":"response.output_item.done","output_index":0,"item":{"type":"function_call","id":"f1","call_id":"c","name":"apply_patch","arguments":"{\"input\":\"rm /tmp/x"}}`,
			completed}, wanted{fails: ErrMalformed, retry: true, message: "apply_patch",
			calls: []playedCall{{ID: "c", Name: "apply_patch", Args: "rm /tmp/x", Freeform: true}}}},

		{"arguments without a call", []string{created,
			`{"type":"response.function_call_arguments.delta","item_id":"f1","delta":"{}"}`, completed},
			wanted{fails: ErrMalformed, retry: true}},

		{"refusal", []string{created, `{"type":"response.refusal.delta","output_index":0,"delta":"I can"}`, `{"type":"response.refusal.delta","output_index":0,"delta":"not."}`,
			`{"type":"response.refusal.done","output_index":0,"refusal":"I cannot."}`, completed}, wanted{text: "I cannot.", reason: Refusal}},

		{"cut by the output limit in a call", []string{created,
			`{"type":"response.output_item.added","output_index":0,"item":{"type":"function_call","id":"f1","call_id":"c","name":"apply_patch"}}`,
			`{"type":"response.function_call_arguments.delta","item_id":"f1","delta":"{\"input\":\"a"}`,
			`{"type":"response.incomplete","response":{"status":"incomplete","incomplete_details":{"reason":"max_output_tokens"},"usage":{"input_tokens":1,"output_tokens":2}}}`},
			wanted{reason: Length, usage: &Usage{InputTokens: 1, OutputTokens: 2}, calls: []playedCall{{ID: "c", Name: "apply_patch", Args: "a", Freeform: true}}}},

		{"content filter", []string{created, `{"type":"response.completed","response":{"status":"incomplete","incomplete_details":{"reason":"content_filter"}}}`},
			wanted{reason: ContentFilter}},

		{"failed", []string{created, `{"type":"response.output_text.delta","delta":"Hal"}`,
			`{"type":"response.failed","response":{"status":"failed","error":{"code":"server_error","message":"it broke"}}}`},
			wanted{text: "Hal", fails: ErrServer, retry: true, message: "it broke"}},
		{"context", []string{created, `{"type":"response.failed","response":{"error":{"code":"context_length_exceeded","message":"too long"}}}`},
			wanted{fails: ErrContext, message: "too long"}},
		{"error event", []string{created, `error {"type":"error","code":"rate_limit_exceeded","message":"slow down"}`},
			wanted{fails: ErrRate, retry: true, message: "slow down"}},
		{"nested error event", []string{`{"type":"error","error":{"type":"insufficient_quota","code":"insufficient_quota","message":"no money"}}`},
			wanted{fails: ErrQuota, message: "no money"}},
		{"nameless error", []string{`{"error":{"message":"gateway"}}`}, wanted{fails: ErrServer, retry: true, message: "gateway"}},

		{"no end marker", []string{created, `{"type":"response.output_text.delta","delta":"Hal"}`}, wanted{text: "Hal", fails: ErrCut, retry: true}},
		{"nothing at all", nil, wanted{fails: ErrMalformed, retry: true}},
		{"no JSON", []string{created, `oops`}, wanted{fails: ErrMalformed, retry: true, message: "oops"}},
	} {
		for size, n := range chunkings {
			t.Run(c.name+"/"+size, func(t *testing.T) {
				checkStream(t, serve(t, newResponses, n, c.events...), c.want)
			})
		}
	}
}

func TestMessagesStreams(t *testing.T) {
	const start = `message_start {"type":"message_start","message":{"id":"msg_1","role":"assistant","content":[],"usage":{"input_tokens":10,"cache_read_input_tokens":80,"cache_creation_input_tokens":5,"output_tokens":1}}}`
	const stop = `message_stop {"type":"message_stop"}`
	ended := func(reason string) string {
		return `message_delta {"type":"message_delta","delta":{"stop_reason":"` + reason + `"},"usage":{"output_tokens":20}}`
	}
	usage := &Usage{InputTokens: 95, OutputTokens: 20, CachedInputTokens: 80, CacheWriteTokens: 5}
	call := playedCall{ID: "toolu_1", Name: "exec_command", Args: `{"cmd":"ls"}`}
	for _, c := range []struct {
		name   string
		events []string
		want   wanted
	}{
		{"everything", []string{start, `ping {"type":"ping"}`,
			`{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}`,
			`{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"Let me "}}`,
			`{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"see <x>."}}`,
			`{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"sig=="}}`,
			`{"type":"content_block_stop","index":0}`,
			`{"type":"content_block_start","index":1,"content_block":{"type":"redacted_thinking","data":"xyz"}}`,
			`{"type":"content_block_stop","index":1}`,
			`{"type":"content_block_start","index":2,"content_block":{"type":"text","text":""}}`,
			`{"type":"content_block_delta","index":2,"delta":{"type":"text_delta","text":"I loök "}}`,
			`{"type":"ping"}`,
			`{"type":"content_block_delta","index":2,"delta":{"type":"text_delta","text":"😀."}}`,
			`{"type":"content_block_stop","index":2}`,
			`{"type":"content_block_start","index":3,"content_block":{"type":"tool_use","id":"toolu_1","name":"exec_command","input":{}}}`,
			`{"type":"content_block_delta","index":3,"delta":{"type":"input_json_delta","partial_json":""}}`,
			`{"type":"content_block_delta","index":3,"delta":{"type":"input_json_delta","partial_json":"{\"cmd\":"}}`,
			`{"type":"content_block_delta","index":3,"delta":{"type":"input_json_delta","partial_json":"\"ls\"}"}}`,
			`{"type":"content_block_stop","index":3}`,
			`{"type":"content_block_start","index":4,"content_block":{"type":"tool_use","id":"toolu_2","name":"apply_patch","input":{}}}`,
			`{"type":"content_block_delta","index":4,"delta":{"type":"input_json_delta","partial_json":"{\"input\": \"*** Begin Patch\\n+\\u00"}}`,
			`{"type":"content_block_delta","index":4,"delta":{"type":"input_json_delta","partial_json":"fc\"}"}}`,
			`{"type":"content_block_stop","index":4}`,
			`{"type":"something_new","delta":5}`,
			ended("tool_use"), stop,
		}, wanted{text: "I loök 😀.", reasoning: "Let me see <x>.", reason: ToolCalls, usage: usage,
			calls: []playedCall{call, {ID: "toolu_2", Name: "apply_patch", Args: "*** Begin Patch\n+ü", Freeform: true}},
			kept:  []string{`{"type":"thinking","thinking":"Let me see <x>.","signature":"sig=="}`, `{"type":"redacted_thinking","data":"xyz"}`}}},

		{"arguments in the block's start only", []string{start,
			`{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"toolu_1","name":"exec_command","input":{"cmd":"ls"}}}`,
			`{"type":"content_block_stop","index":0}`, ended("tool_use"), stop},
			wanted{reason: ToolCalls, usage: usage, calls: []playedCall{call}}},

		{"call without arguments", []string{start,
			`{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"toolu_1","name":"exec_command","input":{}}}`,
			`{"type":"content_block_stop","index":0}`, ended("tool_use"), stop},
			wanted{reason: ToolCalls, usage: usage, calls: []playedCall{{ID: "toolu_1", Name: "exec_command"}}}},

		{"all calls with one index", []string{start,
			`{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"toolu_1","name":"exec_command"}}`,
			`{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{\"cmd\":\"ls\"}"}}`,
			`{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"toolu_2","name":"exec_command"}}`,
			`{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{}"}}`,
			`{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{\"cmd\":\"pwd\"}"}}`,
			ended("end_turn"), stop},
			wanted{reason: ToolCalls, usage: usage, calls: []playedCall{call, {ID: "toolu_2", Name: "exec_command", Args: `{"cmd":"pwd"}`}}}},

		{"no indexes", []string{start,
			`{"type":"content_block_start","content_block":{"type":"text","text":"Hi"}}`, `{"type":"content_block_stop"}`,
			`{"type":"content_block_start","content_block":{"type":"tool_use","id":"toolu_1","name":"exec_command"}}`,
			`{"type":"content_block_delta","delta":{"type":"input_json_delta","partial_json":"{\"cmd\":\"ls\"}"}}`,
			`{"type":"content_block_stop"}`, ended("tool_use"), stop},
			wanted{text: "Hi", reason: ToolCalls, usage: usage, calls: []playedCall{call}}},

		{"text after a call", []string{start,
			`{"type":"content_block_start","index":0,"content_block":{"type":"text","text":"A"}}`, `{"type":"content_block_stop","index":0}`,
			`{"type":"content_block_start","index":1,"content_block":{"type":"text","text":"B"}}`, `{"type":"content_block_stop","index":1}`,
			`{"type":"content_block_start","index":2,"content_block":{"type":"server_tool_use","id":"x","name":"y"}}`, `{"type":"content_block_stop","index":2}`,
			`{"type":"content_block_start","index":3,"content_block":{"type":"text","text":"C"}}`, `{"type":"content_block_stop","index":3}`,
			ended("end_turn"), stop}, wanted{text: "AB\n\nC", reason: Stop, usage: usage}},

		{"characters cut in two", []string{start,
			`{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`,
			`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"a\ud83d"}}`, `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"\ude00"}}`,
			"{\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"\xf0\x9f\"}}", "{\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"\x98\x80b\"}}",
			`{"type":"content_block_stop","index":0}`, ended("end_turn"), stop}, wanted{text: "a😀😀b", reason: Stop, usage: usage}},

		{"unsigned thinking is not kept", []string{start,
			`{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"Hm"}}`, `{"type":"content_block_stop","index":0}`,
			ended("stop_sequence"), stop}, wanted{reasoning: "Hm", reason: Stop, usage: usage}},

		{"cut by the output limit in a call", []string{start,
			`{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"toolu_2","name":"apply_patch"}}`,
			`{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{\"input\":\"a"}}`,
			ended("max_tokens"), stop},
			wanted{reason: Length, usage: usage, calls: []playedCall{{ID: "toolu_2", Name: "apply_patch", Args: "a", Freeform: true}}}},
		{"refusal", []string{start, ended("refusal"), stop}, wanted{reason: Refusal, usage: usage}},
		{"pause", []string{start, ended("pause_turn"), stop}, wanted{reason: Stop, usage: usage}},
		{"no usage", []string{`{"type":"message_start","message":{}}`, `{"type":"message_delta","delta":{"stop_reason":"end_turn"}}`, stop}, wanted{reason: Stop}},

		{"stop reason but no message_stop", []string{start, ended("end_turn")}, wanted{reason: Stop, usage: usage}},
		{"open block and no message_stop", []string{start,
			`{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"toolu_1","name":"exec_command"}}`,
			ended("tool_use")}, wanted{fails: ErrCut, retry: true, calls: []playedCall{{ID: "toolu_1", Name: "exec_command"}}}},
		{"cut after complete arguments", []string{start,
			`{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"toolu_1","name":"exec_command"}}`,
			`{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{\"cmd\":\"ls\"}"}}`,
			`{"type":"content_block_stop","index":0}`}, wanted{fails: ErrCut, retry: true, calls: []playedCall{call}}},
		{"pings and message_stop only", []string{`{"type":"ping"}`, stop}, wanted{fails: ErrMalformed, retry: true}},
		{"nothing at all", nil, wanted{fails: ErrMalformed, retry: true}},
		{"overloaded", []string{start, `error {"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`},
			wanted{fails: ErrOverloaded, retry: true, message: "Overloaded"}},
		{"prompt too long", []string{`error {"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 210000 tokens > 200000 maximum"}}`},
			wanted{fails: ErrContext, message: "prompt is too long"}},
		{"bad key", []string{`error {"type":"error","error":{"type":"authentication_error","message":"no"}}`}, wanted{fails: ErrAuth}},
	} {
		for size, n := range chunkings {
			t.Run(c.name+"/"+size, func(t *testing.T) {
				checkStream(t, serve(t, newMessages, n, c.events...), c.want)
			})
		}
	}
}

// dialects are the providers whose streams are read here.
var dialects = map[string]func(endpoint) Provider{"responses": newResponses, "messages": newMessages}

func TestSuccessThatIsNoStream(t *testing.T) {
	for _, c := range []struct {
		name, kind, body string
		fails            ErrorKind
		retry            bool
		message          string
	}{
		{"web page", "text/html; charset=utf-8", "<html><title>Sign in</title><body>x</body></html>", ErrMalformed, true, "Sign in"},
		{"lone error", "application/json", `{"error":{"code":"insufficient_quota","message":"no money"}}`, ErrQuota, false, "no money"},
		{"other document", "application/json", `{"ok":true}`, ErrMalformed, true, `{"ok":true}`},
		{"web page that says it streams", "text/event-stream", "<html>Sign in</html>\n\n", ErrMalformed, true, "Sign in"},
		{"empty", "text/event-stream", "", ErrMalformed, true, "empty answer"},
		{"comments only", "text/event-stream", ": ping\n\n:\n\n", ErrMalformed, true, "no answer"},
	} {
		for dialect, build := range dialects {
			t.Run(c.name+"/"+dialect, func(t *testing.T) {
				s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					w.Header().Set("Content-Type", c.kind)
					_, _ = w.Write([]byte(c.body))
				}))
				defer s.Close()
				p := build(endpoint{Name: "test", BaseURL: s.URL, Client: s.Client()})
				checkStream(t, p, wanted{fails: c.fails, retry: c.retry, message: c.message})
			})
		}
	}
}

func TestConnectionServesTheNextTurn(t *testing.T) {
	ends := map[string]string{
		"responses": `{"type":"response.completed","response":{"status":"completed"}}`,
		"messages":  `{"type":"message_start"}` + "\n\ndata: " + `{"type":"message_stop"}`,
	}
	for dialect, build := range dialects {
		var mu sync.Mutex
		addresses := map[string]bool{}
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			mu.Lock()
			addresses[r.RemoteAddr] = true
			mu.Unlock()
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = w.Write([]byte("data: " + ends[dialect] + "\n\n"))
			w.(http.Flusher).Flush()
		}))
		p := build(endpoint{Name: "test", BaseURL: s.URL, Client: s.Client()})
		for range 5 {
			if r := play(t, t.Context(), p, &Request{Model: "m"}); r.finish == nil {
				t.Fatalf("%s: got %+v", dialect, r.err)
			}
			for d, err := range Watch(t.Context(), Clocks{}, p, &Request{Model: "m"}) {
				if err != nil || d.Kind == Finish {
					break
				}
			}
		}
		s.Close()
		if len(addresses) != 1 {
			t.Errorf("%s: %d connections for 10 turns", dialect, len(addresses))
		}
	}
}

func TestServerThatHoldsTheStreamOpenDoesNotHoldTheTurn(t *testing.T) {
	release := make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write([]byte("data: {\"type\":\"response.completed\",\"response\":{}}\n\n"))
		w.(http.Flusher).Flush()
		<-release
	}))
	defer s.Close()
	defer close(release)
	p := newResponses(endpoint{Name: "test", BaseURL: s.URL, Client: s.Client()})
	if r := play(t, t.Context(), p, &Request{Model: "m"}); r.finish == nil {
		t.Fatalf("got %+v", r.err)
	}
}

func TestReasoningGoesBackAsTheUserWishes(t *testing.T) {
	items := []Item{user("a"), {Kind: Reasoning, Origin: "test", Opaque: json.RawMessage(`{"type":"mark"}`)}, called("c"), result("c", "r")}
	for dialect, build := range dialects {
		for wish, want := range map[string]bool{"": true, "auto": true, "always": true, "never": false} {
			var body []byte
			client := &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
				body, _ = io.ReadAll(r.Body)
				return &http.Response{StatusCode: 400, Body: http.NoBody, Request: r}, nil
			})}
			p := build(endpoint{Name: "test", BaseURL: "http://x.invalid", Client: client, ReplayReasoning: wish})
			play(t, t.Context(), p, &Request{Model: "m", Items: items})
			if got := strings.Contains(string(body), `"mark"`); got != want {
				t.Errorf("%s %q: sent back %v", dialect, wish, got)
			}
		}
	}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
