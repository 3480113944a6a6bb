package model

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// chunks returns a stream of chat chunks, each given as its first choice.
func chunks(choices ...string) string {
	var b strings.Builder
	for _, c := range choices {
		b.WriteString(`data: {"choices":[` + c + "]}\n\n")
	}
	return b.String()
}

// callChunk is a choice with the given entries of tool_calls.
func callChunk(entries ...string) string {
	return `{"delta":{"tool_calls":[` + strings.Join(entries, ",") + `]}}`
}

const (
	finishCalls = `{"delta":{},"finish_reason":"tool_calls"}`
	finishStop  = `{"delta":{},"finish_reason":"stop"}`
	done        = "data: [DONE]\n\n"
)

func TestCallsOfServersWithOddHabits(t *testing.T) {
	ls := playedCall{ID: "a", Name: "exec_command", Args: `{"cmd":"ls"}`}
	pwd := playedCall{ID: "b", Name: "exec_command", Args: `{"cmd":"pwd"}`}
	patch := playedCall{ID: "a", Name: "apply_patch", Args: "*** Begin\n\"ü\"", Freeform: true}
	noID := func(c playedCall) playedCall { c.ID = ""; return c }
	for _, c := range []struct {
		name string
		in   []string
		want []playedCall
	}{
		{"one index for all, ids differ, fragments interleaved", []string{
			callChunk(`{"index":0,"id":"a","function":{"name":"exec_command","arguments":"{\"cmd\":"}}`),
			callChunk(`{"index":0,"id":"b","function":{"name":"exec_command","arguments":"{\"cmd\":"}}`),
			callChunk(`{"index":0,"id":"a","function":{"arguments":"\"ls\"}"}}`),
			callChunk(`{"index":0,"id":"b","function":{"arguments":"\"pwd\"}"}}`),
		}, []playedCall{ls, pwd}},
		{"one index for all, ids only at the start", []string{
			callChunk(`{"index":0,"id":"a","function":{"name":"exec_command","arguments":"{\"cmd\":"}}`),
			callChunk(`{"index":0,"function":{"arguments":"\"ls\"}"}}`),
			callChunk(`{"index":0,"id":"b","function":{"name":"exec_command","arguments":"{\"cmd\":\"pwd\"}"}}`),
		}, []playedCall{ls, pwd}},
		{"no index, ids interleaved", []string{
			callChunk(`{"id":"a","function":{"name":"exec_command","arguments":"{\"cmd\":"}}`),
			callChunk(`{"id":"b","function":{"name":"exec_command","arguments":"{\"cmd\":"}}`),
			callChunk(`{"id":"a","function":{"arguments":"\"ls\"}"}}`),
			callChunk(`{"id":"b","function":{"arguments":"\"pwd\"}"}}`),
		}, []playedCall{ls, pwd}},
		{"null index, no ids but at the start", []string{
			callChunk(`{"index":null,"id":"a","function":{"name":"exec_command","arguments":"{\"cmd\":"}}`),
			callChunk(`{"index":null,"id":null,"function":{"name":null,"arguments":"\"ls\"}"}}`),
			callChunk(`{"id":"b","function":{"name":"exec_command","arguments":"{\"cmd\":\"pwd\"}"}}`),
		}, []playedCall{ls, pwd}},
		{"neither index nor ids, whole calls in one chunk", []string{
			callChunk(`{"function":{"name":"exec_command","arguments":"{\"cmd\":\"ls\"}"}}`, `{"function":{"name":"exec_command","arguments":"{\"cmd\":\"pwd\"}"}}`),
		}, []playedCall{noID(ls), noID(pwd)}},
		{"neither index nor ids, two calls without arguments", []string{
			callChunk(`{"function":{"name":"list_dir"}}`, `{"function":{"name":"list_dir","arguments":null}}`),
		}, []playedCall{{Name: "list_dir"}, {Name: "list_dir"}}},
		{"neither index nor ids, one after the other", []string{
			callChunk(`{"function":{"name":"exec_command","arguments":"{\"cmd\":\"ls\"}"}}`),
			callChunk(`{"function":{"name":"exec_command","arguments":"{\"cmd\":\"pwd\"}"}}`),
		}, []playedCall{noID(ls), noID(pwd)}},
		{"only places", []string{
			callChunk(`{"function":{"name":"exec_command"}}`, `{"function":{"name":"exec_command"}}`),
			callChunk(`{"function":{"arguments":"{\"cmd\":"}}`, `{"function":{"arguments":"{\"cmd\":"}}`),
			callChunk(`{"function":{"arguments":"\"ls\"}"}}`, `{"function":{"arguments":"\"pwd\"}"}}`),
		}, []playedCall{noID(ls), noID(pwd)}},
		{"no ids, indexes", []string{
			callChunk(`{"index":0,"function":{"name":"exec_command","arguments":""}}`, `{"index":1,"function":{"name":"exec_command","arguments":""}}`),
			callChunk(`{"index":1,"function":{"arguments":"{\"cmd\":\"pwd\"}"}}`),
			callChunk(`{"index":0,"function":{"arguments":"{\"cmd\":\"ls\"}"}}`),
		}, []playedCall{noID(ls), noID(pwd)}},
		{"no ids, one index for all", []string{
			callChunk(`{"index":0,"function":{"name":"exec_command","arguments":"{\"cmd\":\"ls\"}"}}`),
			callChunk(`{"index":0,"function":{"name":"exec_command","arguments":"{\"cmd\":\"pwd\"}"}}`),
		}, []playedCall{noID(ls), noID(pwd)}},
		{"indexes from 1 with a gap", []string{
			callChunk(`{"index":1,"id":"a","function":{"name":"exec_command","arguments":"{\"cmd\":\"ls\"}"}}`),
			callChunk(`{"index":7,"id":"b","function":{"name":"exec_command","arguments":"{\"cmd\":\"pwd\"}"}}`),
		}, []playedCall{ls, pwd}},
		{"id and name in every fragment", []string{
			callChunk(`{"index":0,"id":"a","function":{"name":"exec_command","arguments":"{\"cmd\":"}}`),
			callChunk(`{"index":0,"id":"a","function":{"name":"exec_command","arguments":"\"ls\""}}`),
			callChunk(`{"index":0,"id":"a","function":{"name":"exec_command","arguments":"}"}}`),
			callChunk(`{"index":0,"id":"a","function":{"name":"exec_command","arguments":""}}`),
		}, []playedCall{ls}},
		{"name in every fragment, no id", []string{
			callChunk(`{"index":0,"function":{"name":"exec_command","arguments":"{\"cmd\":"}}`),
			callChunk(`{"index":0,"function":{"name":"exec_command","arguments":"\"ls\"}"}}`),
			callChunk(`{"index":0,"function":{"name":"exec_command","arguments":""}}`),
		}, []playedCall{noID(ls)}},
		{"a new id in every fragment", []string{
			callChunk(`{"index":0,"id":"a","function":{"name":"exec_command","arguments":"{\"cmd\":"}}`),
			callChunk(`{"index":0,"id":"x1","function":{"arguments":"\"ls\""}}`),
			callChunk(`{"index":0,"id":"x2","function":{"arguments":"}"}}`),
		}, []playedCall{ls}},
		{"one id for two calls", []string{
			callChunk(`{"index":0,"id":"a","function":{"name":"exec_command","arguments":"{\"cmd\":\"ls\"}"}}`),
			callChunk(`{"index":1,"id":"a","function":{"name":"exec_command","arguments":"{\"cmd\":\"pwd\"}"}}`),
		}, []playedCall{ls, {ID: "a", Name: "exec_command", Args: `{"cmd":"pwd"}`}}},
		{"split name", []string{
			callChunk(`{"index":0,"id":"a","function":{"name":"exec"}}`),
			callChunk(`{"index":0,"function":{"name":"_comm"}}`),
			callChunk(`{"index":0,"function":{"name":"and"}}`),
			callChunk(`{"index":0,"function":{"arguments":"{\"cmd\":\"ls\"}"}}`),
		}, []playedCall{ls}},
		{"growing name", []string{
			callChunk(`{"index":0,"id":"a","function":{"name":"exec"}}`),
			callChunk(`{"index":0,"id":"a","function":{"name":"exec_command"}}`),
			callChunk(`{"index":0,"function":{"arguments":"{\"cmd\":\"ls\"}"}}`),
		}, []playedCall{ls}},
		{"name that is another's beginning", []string{
			callChunk(`{"index":0,"id":"a","function":{"name":"exec","arguments":"{}"}}`),
		}, []playedCall{{ID: "a", Name: "exec", Args: "{}"}}},
		{"two names at one index without ids", []string{
			callChunk(`{"index":0,"function":{"name":"list_dir"}}`),
			callChunk(`{"index":0,"function":{"name":"exec_command"}}`),
			callChunk(`{"index":0,"function":{"arguments":"{\"cmd\":\"ls\"}"}}`),
		}, []playedCall{{Name: "list_dir"}, noID(ls)}},
		{"arguments before the name", []string{
			callChunk(`{"index":0,"id":"a","function":{"arguments":"{\"cmd\":"}}`),
			callChunk(`{"index":0,"function":{"name":"exec_command","arguments":"\"ls\"}"}}`),
		}, []playedCall{ls}},
		{"stand-in before the arguments", []string{
			callChunk(`{"index":0,"id":"a","function":{"name":"exec_command","arguments":"{}"}}`),
			callChunk(`{"index":0,"function":{"arguments":"{\"cmd\":"}}`),
			callChunk(`{"index":0,"function":{"arguments":"\"ls\"}"}}`),
		}, []playedCall{ls}},
		{"stand-in in two pieces", []string{
			callChunk(`{"index":0,"id":"a","function":{"name":"exec_command","arguments":"{"}}`),
			callChunk(`{"index":0,"function":{"arguments":"}"}}`),
			callChunk(`{"index":0,"function":{"arguments":"{\"cmd\":\"ls\"}"}}`),
		}, []playedCall{ls}},
		{"stand-in object before text", []string{
			callChunk(`{"index":0,"id":"a","function":{"name":"exec_command","arguments":{}}}`),
			callChunk(`{"index":0,"function":{"arguments":"{\"cmd\":\"ls\"}"}}`),
		}, []playedCall{ls}},
		{"null before the arguments", []string{
			callChunk(`{"index":0,"id":"a","function":{"name":"exec_command","arguments":"null"}}`),
			callChunk(`{"index":0,"function":{"arguments":"{\"cmd\":\"ls\"}"}}`),
		}, []playedCall{ls}},
		{"nothing but a stand-in", []string{
			callChunk(`{"index":0,"id":"a","function":{"name":"list_dir","arguments":"{}"}}`),
		}, []playedCall{{ID: "a", Name: "list_dir", Args: "{}"}}},
		{"empty, null and no arguments", []string{
			callChunk(`{"index":0,"id":"a","function":{"name":"list_dir","arguments":""}}`),
			callChunk(`{"index":1,"id":"b","function":{"name":"list_dir","arguments":null}}`),
			callChunk(`{"index":2,"id":"c","function":{"name":"list_dir"}}`),
			callChunk(`{"index":3,"id":"d","function":{"name":"list_dir","arguments":"null"}}`),
		}, []playedCall{{ID: "a", Name: "list_dir"}, {ID: "b", Name: "list_dir"}, {ID: "c", Name: "list_dir"}, {ID: "d", Name: "list_dir"}}},
		{"arguments as an object", []string{
			callChunk(`{"index":0,"id":"a","function":{"name":"exec_command","arguments":{"cmd":"ls"}}}`),
		}, []playedCall{ls}},
		{"broken arguments stay as they are", []string{
			callChunk(`{"index":0,"id":"a","function":{"name":"exec_command","arguments":"{cmd: ls}"}}`),
			callChunk(`{"index":1,"id":"b","function":{"name":"exec_command","arguments":"{\"cmd\":\"rm x"}}`),
			callChunk(`{"index":2,"id":"c","function":{"name":"exec_command","arguments":"{\"cmd\":\"a\"}{\"cmd\":\"b\"}"}}`),
			callChunk(`{"index":3,"id":"d","function":{"name":"exec_command","arguments":"\"ls\""}}`),
		}, []playedCall{
			{ID: "a", Name: "exec_command", Args: `{cmd: ls}`}, {ID: "b", Name: "exec_command", Args: `{"cmd":"rm x`},
			{ID: "c", Name: "exec_command", Args: `{"cmd":"a"}{"cmd":"b"}`}, {ID: "d", Name: "exec_command", Args: `"ls"`},
		}},
		{"old function_call", []string{
			`{"delta":{"function_call":{"name":"exec_command","arguments":""}}}`,
			`{"delta":{"function_call":{"arguments":"{\"cmd\":"}}}`,
			`{"delta":{"function_call":{"arguments":"\"ls\"}"}}}`,
		}, []playedCall{noID(ls)}},
		{"name and arguments beside function", []string{
			callChunk(`{"index":0,"id":"a","name":"exec_command","arguments":"{\"cmd\":\"ls\"}"}`),
		}, []playedCall{ls}},
		{"one entry without a list", []string{
			`{"delta":{"tool_calls":{"id":"a","function":{"name":"exec_command","arguments":"{\"cmd\":\"ls\"}"}}}}`,
		}, []playedCall{ls}},
		{"freeform in pieces", []string{
			callChunk(`{"index":0,"id":"a","function":{"name":"apply_patch","arguments":"{\"inp"}}`),
			callChunk(`{"index":0,"function":{"arguments":"ut\": \"*** Begin\\"}}`),
			callChunk(`{"index":0,"function":{"arguments":"n\\\"\\u00f"}}`),
			callChunk(`{"index":0,"function":{"arguments":"c\\\"\"}"}}`),
		}, []playedCall{patch}},
		{"freeform behind a stand-in", []string{
			callChunk(`{"index":0,"id":"a","function":{"name":"apply_patch","arguments":"{}"}}`),
			callChunk(`{"index":0,"function":{"arguments":"{\"input\":\"*** Begin\\n\\\"ü\\\"\"}"}}`),
		}, []playedCall{patch}},
		{"freeform as an object", []string{
			callChunk(`{"index":0,"id":"a","function":{"name":"apply_patch","arguments":{"input":"*** Begin\n\"ü\""}}}`),
		}, []playedCall{patch}},
		{"freeform without the wrapping", []string{
			callChunk(`{"index":0,"id":"a","function":{"name":"apply_patch","arguments":"*** Begin\n\"ü\""}}`),
		}, []playedCall{patch}},
		{"character cut into its halves", []string{
			callChunk(`{"index":0,"id":"a","function":{"name":"exec_command","arguments":"{\"cmd\":\"\ud83d"}}`),
			callChunk(`{"index":0,"function":{"arguments":"\ude00\"}"}}`),
		}, []playedCall{{ID: "a", Name: "exec_command", Args: `{"cmd":"😀"}`}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, finish := range []string{finishCalls, finishStop, `{"delta":{},"finish_reason":"function_call"}`} {
				body := chunks(append(slices.Clone(c.in), finish)...) + done
				deltas, err := ask(t.Context(), chatWire.connect(t, stream(body)))
				got := checkContract(t, deltas, err)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(outcome{Calls: c.want, Finish: ToolCalls}, got); diff != "" {
					t.Errorf("answer (-want +got):\n%s", diff)
				}
			}
		})
	}
}

func TestAnswersOfServersWithOddHabits(t *testing.T) {
	usage := &Usage{InputTokens: 10, OutputTokens: 5}
	for _, c := range []struct {
		name, in string
		want     outcome
	}{
		{"reasoning under two names, then the answer", chunks(`{"delta":{"reasoning_content":"a"}}`, `{"delta":{"reasoning":"b"}}`, `{"delta":{"content":"c"}}`, finishStop) + done,
			outcome{Reasoning: "ab", Text: "c", Finish: Stop}},
		{"reasoning doubled under both names", chunks(`{"delta":{"reasoning_content":"a","reasoning":"a","content":""}}`, `{"delta":{"content":"c"}}`, finishStop) + done,
			outcome{Reasoning: "a", Text: "c", Finish: Stop}},
		{"reasoning between tags in the answer", chunks(`{"delta":{"content":"\n<thi"}}`, `{"delta":{"content":"nk>a<b </th"}}`, `{"delta":{"content":"ink>\n\n"}}`, `{"delta":{"content":"\nc <think>d</think>"}}`, finishStop) + done,
			outcome{Reasoning: "a<b ", Text: "c <think>d</think>", Finish: Stop}},
		{"answer that begins like a tag", chunks(`{"delta":{"content":" <th"}}`, `{"delta":{"content":"read>"}}`, finishStop) + done,
			outcome{Text: " <thread>", Finish: Stop}},
		{"answer that is the beginning of a tag", chunks(`{"delta":{"content":"<th"}}`, finishStop) + done,
			outcome{Text: "<th", Finish: Stop}},
		{"content as parts", chunks(`{"delta":{"content":[{"type":"thinking","thinking":[{"type":"text","text":"a"}]},{"type":"text","text":"b"},"c"]}}`, finishStop) + done,
			outcome{Reasoning: "a", Text: "bc", Finish: Stop}},
		{"null everywhere", chunks(`{"index":null,"delta":{"role":null,"content":null,"tool_calls":null,"refusal":null,"reasoning_content":null,"function_call":null},"finish_reason":null}`, `{"delta":{"content":"a"}}`, `{"delta":null,"finish_reason":"stop"}`) + done,
			outcome{Text: "a", Finish: Stop}},
		{"no end marker but a finish reason", chunks(`{"delta":{"content":"a"}}`, finishStop), outcome{Text: "a", Finish: Stop}},
		{"no blank line behind the finish reason", strings.TrimSpace(chunks(`{"delta":{"content":"a"}}`, finishStop)), outcome{Text: "a", Finish: Stop}},
		{"no blank line behind the end marker", chunks(`{"delta":{"content":"a"}}`) + "data: [DONE]", outcome{Text: "a", Finish: Stop}},
		{"end marker without a finish reason", chunks(`{"delta":{"content":"a"}}`) + done, outcome{Text: "a", Finish: Stop}},
		{"empty finish reason", chunks(`{"delta":{"content":"a"},"finish_reason":""}`, `{"delta":{"content":"b"},"finish_reason":""}`, finishStop) + done,
			outcome{Text: "ab", Finish: Stop}},
		{"usage in every chunk", `data: {"choices":[{"delta":{"content":"a"}}],"usage":{"prompt_tokens":10,"completion_tokens":1}}` + "\n\n" +
			`data: {"choices":[{"delta":{},"finish_reason":"stop"}],"usage":{"prompt_tokens":10,"completion_tokens":5}}` + "\n\n" + done,
			outcome{Text: "a", Finish: Stop, Usage: usage}},
		{"usage without choices", chunks(`{"delta":{"content":"a"}}`, finishStop) + `data: {"usage":{"prompt_tokens":10,"completion_tokens":5}}` + "\n\n" + done,
			outcome{Text: "a", Finish: Stop, Usage: usage}},
		{"usage null and zero", `data: {"choices":[],"usage":null}` + "\n\n" + chunks(`{"delta":{"content":"a"}}`, finishStop) + `data: {"choices":[],"usage":{"prompt_tokens":0,"completion_tokens":0}}` + "\n\n" + done,
			outcome{Text: "a", Finish: Stop}},
		{"usage with details", chunks(`{"delta":{"content":"a"}}`, finishStop) + `data: {"choices":[],"usage":{"prompt_tokens":10,"prompt_cache_hit_tokens":4,"completion_tokens":5,"completion_tokens_details":{"reasoning_tokens":3}}}` + "\n\n" + done,
			outcome{Text: "a", Finish: Stop, Usage: &Usage{InputTokens: 10, OutputTokens: 5, CachedInputTokens: 4, ReasoningTokens: 3}}},
		{"whole answer instead of a stream", ` {"choices":[{"message":{"role":"assistant","content":"a","reasoning_content":"r","tool_calls":[{"id":"x","function":{"name":"exec_command","arguments":"{}"}},{"id":"y","function":{"name":"list_dir","arguments":"{}"}}]},"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":10,"completion_tokens":5}}`,
			outcome{Text: "a", Reasoning: "r", Finish: ToolCalls, Usage: usage, Calls: []playedCall{{ID: "x", Name: "exec_command", Args: "{}"}, {ID: "y", Name: "list_dir", Args: "{}"}}}},
		{"refusal", chunks(`{"delta":{"refusal":"I "}}`, `{"delta":{"refusal":"won't"}}`, finishStop) + done, outcome{Text: "I won't", Finish: Refusal}},
		{"Google's length", chunks(`{"delta":{"content":"a"},"finish_reason":"MAX_TOKENS"}`) + done, outcome{Text: "a", Finish: Length}},
		{"Google's filter", chunks(`{"delta":{},"finish_reason":"SAFETY"}`) + done, outcome{Finish: ContentFilter}},
		{"unknown reason", chunks(`{"delta":{"content":"a"},"finish_reason":"because"}`) + done, outcome{Text: "a", Finish: Stop}},
		{"calls announced, none sent", chunks(`{"delta":{"content":"a"}}`, finishCalls) + done, outcome{Text: "a", Finish: Stop}},
		{"halves of a character", chunks(`{"delta":{"content":"\ud83d"}}`, `{"delta":{"content":"\ude00!\ud83d"}}`, `{"delta":{"content":"x"}}`, `{"delta":{"content":"\\ud83d"}}`, finishStop) + done,
			outcome{Text: "😀!\ufffdx\\ud83d", Finish: Stop}},
		{"bytes of a character in two events", strings.Replace(chunks(`{"delta":{"content":"aX"}}`, `{"delta":{"content":"Yb"}}`, finishStop), "X", "\xf0\x9f", 1) + done, outcome{Text: "", Finish: Stop}},
		{"more than one choice", `data: {"choices":[{"index":0,"delta":{"content":"a"}},{"index":1,"delta":{"content":"b"}}]}` + "\n\n" + chunks(finishStop) + done, outcome{Text: "a", Finish: Stop}},
		{"types beyond expectation", `data: {"choices":[{"index":"x","delta":{"content":{"a":1},"tool_calls":[1,"x",null],"role":7}}],"usage":"many","id":[1]}` + "\n\n" + chunks(`{"delta":{"content":"a"}}`, finishStop) + done,
			outcome{Text: "a", Finish: Stop}},
		{"other events in between", "event: ping\ndata: {\"type\":\"ping\"}\n\ndata: \n\n" + chunks(`{"delta":{"content":"a"}}`, finishStop) + done, outcome{Text: "a", Finish: Stop}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.name == "bytes of a character in two events" {
				c.in = strings.Replace(c.in, "Y", "\x99\x82", 1)
				c.want.Text = "a🙂b"
			}
			deltas, err := ask(t.Context(), chatWire.connect(t, stream(c.in)))
			got := checkContract(t, deltas, err)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("answer (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAnswersThatAreNone(t *testing.T) {
	for _, c := range []struct {
		name, in string
		kind     ErrorKind
	}{
		{"call malformed at the provider", chunks(`{"delta":{},"finish_reason":"MALFORMED_FUNCTION_CALL"}`) + done, ErrMalformed},
		{"call malformed after text", chunks(`{"delta":{"content":"a"}}`, `{"delta":{},"finish_reason":"malformed_function_call"}`) + done, ErrMalformed},
		{"calls announced, nothing sent", chunks(finishCalls) + done, ErrMalformed},
		{"only the end marker", done, ErrMalformed},
		{"only pings and the end marker", ": ping\n\n: ping\n\n" + done, ErrMalformed},
		{"nothing but a role", chunks(`{"delta":{"role":"assistant"}}`) + done, ErrMalformed},
		{"call without a name", chunks(callChunk(`{"index":0,"id":"a","function":{"arguments":"{}"}}`), finishCalls) + done, ErrMalformed},
		{"freeform cut within a good answer", chunks(callChunk(`{"index":0,"id":"a","function":{"name":"apply_patch","arguments":"{\"input\":\"*** Be"}}`), finishCalls) + done, ErrMalformed},
		{"finish reason error", chunks(`{"delta":{"content":"a"},"finish_reason":"error"}`) + done, ErrServer},
		{"server without resources", chunks(`{"delta":{"content":"a"},"finish_reason":"insufficient_system_resource"}`) + done, ErrOverloaded},
		{"aborted", chunks(`{"delta":{"content":"a"},"finish_reason":"abort"}`) + done, ErrCut},
		{"error in the old style", `data: {"object":"error","message":"out of memory","code":500}` + "\n\n", ErrServer},
		{"error as text", `data: {"error":"out of memory"}` + "\n\n", ErrServer},
		{"error without data", "event: error\n\n", ErrServer},
		{"deeply nested", "data: " + strings.Repeat("[", 1<<20) + "\n\n", ErrMalformed},
		{"whole answer without choices", `{"id":"x","choices":[]}`, ErrMalformed},
		{"whole answer cut", `{"choices":[{"message":{"content":"a"`, ErrMalformed},
	} {
		t.Run(c.name, func(t *testing.T) {
			deltas, err := ask(t.Context(), chatWire.connect(t, stream(c.in)))
			checkContract(t, deltas, err)
			var e *Error
			if !errors.As(err, &e) || e.Kind != c.kind || !e.Retryable || e.Message == "" {
				t.Errorf("got %+v", err)
			}
		})
	}
}

func TestStreamThatStaysOpenBehindItsEndDoesNotHold(t *testing.T) {
	for _, end := range []string{chunks(finishStop) + done, chunks(finishStop)} {
		t.Run(fmt.Sprint(len(end)), func(t *testing.T) {
			t.Parallel()
			p := chatWire.connect(t, func(w http.ResponseWriter, r *http.Request) {
				stream(chunks(`{"delta":{"content":"a"}}`)+end)(w, r)
				<-r.Context().Done()
			})
			began := time.Now()
			deltas, err := ask(t.Context(), p)
			if got := checkContract(t, deltas, err); err != nil || got.Text != "a" {
				t.Errorf("got %+v, %v", got, err)
			}
			if waited := time.Since(began); waited > trailingWait+20*time.Second {
				t.Errorf("waited %v", waited)
			}
		})
	}
}

func TestConversationAsMessages(t *testing.T) {
	mark := json.RawMessage(`{"field":"reasoning_content"}`)
	items := []Item{
		user("do <it> & go"),
		{Kind: Reasoning, Opaque: mark, Origin: "test"},
		{Kind: Reasoning, Text: "hm", Origin: "test"},
		{Kind: Reasoning, Text: "foreign", Origin: "other"},
		{Kind: AssistantMessage, Text: "I look."},
		{Kind: ToolCall, CallID: "a", Name: "exec_command", Args: `{"cmd":"ls"}`},
		{Kind: ToolCall, CallID: "b", Name: "apply_patch", Args: "*** \"x\"\n", Freeform: true},
		{Kind: ToolCall, CallID: "c", Name: "list_dir"},
		{Kind: ToolCall, CallID: "d", Name: "exec_command", Args: `{cmd: ls}`},
		{Kind: ToolResult, CallID: "b", Name: "apply_patch", Text: "patched"},
		{Kind: ToolResult, CallID: "d", Name: "exec_command", Text: "no JSON", IsError: true},
		{Kind: ToolResult, CallID: "a", Name: "exec_command", Text: "x.go"},
		{Kind: ToolResult, CallID: "gone", Name: "exec_command", Text: "old"},
		{Kind: Reasoning, Text: "alone", Origin: "test"},
		user("go on"),
		{Kind: AssistantMessage, Text: "Done."},
	}
	req := &Request{
		Model: "m", System: "sys", Items: items, MaxOutputTokens: 99, Schema: json.RawMessage(`{"type":"object"}`),
		Tools: []Tool{{Name: "exec_command", Doc: "runs", Schema: json.RawMessage(`{"type":"object","properties":{"cmd":{"type":"string"}}}`)},
			{Name: "apply_patch", Freeform: true}, {Name: "list_dir"}},
	}
	_, body := capture(t, newChat, req)
	compareBody(t, "testdata/chat_request.json", body)
}

func TestReasoningGoesBackToChatServers(t *testing.T) {
	mark := func(field string) Item {
		return Item{Kind: Reasoning, Opaque: json.RawMessage(`{"field":"` + field + `"}`), Origin: "test"}
	}
	thought := Item{Kind: Reasoning, Text: "hm", Origin: "test"}
	text := Item{Kind: AssistantMessage, Text: "a"}
	for _, c := range []struct {
		name, rule string
		items      []Item
		want       string
	}{
		{"auto, with calls", "auto", []Item{mark("reasoning_content"), thought, called("c")}, `"reasoning_content":"hm"`},
		{"auto, without calls", "auto", []Item{mark("reasoning_content"), thought, text}, ""},
		{"auto, other name", "auto", []Item{mark("reasoning"), thought, called("c")}, ""},
		{"auto, unknown name", "auto", []Item{thought, called("c")}, ""},
		{"always", "always", []Item{mark("reasoning_content"), thought, text}, `"reasoning_content":"hm"`},
		{"always, other name", "always", []Item{mark("reasoning"), thought, called("c")}, `"reasoning":"hm"`},
		{"never", "never", []Item{mark("reasoning_content"), thought, called("c")}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := &chat{endpoint: endpoint{Name: "test", ReplayReasoning: c.rule}}
			body, err := p.encode(&Request{Items: c.items}, chatForm{})
			if err != nil {
				t.Fatal(err)
			}
			if got := strings.Contains(string(body), `"reasoning`); got != (c.want != "") || !strings.Contains(string(body), c.want) {
				t.Errorf("body %s", body)
			}
		})
	}
}

func TestServerThatSendsReasoningIsRemembered(t *testing.T) {
	p := chatWire.connect(t, stream(chunks(`{"delta":{"reasoning_content":"a"}}`, `{"delta":{"reasoning_content":"b","content":"c"}}`, finishStop)+done))
	deltas, err := ask(t.Context(), p)
	checkContract(t, deltas, err)
	var kept []string
	for _, d := range deltas {
		if d.Kind == Keep {
			kept = append(kept, string(d.Item.Opaque)+d.Item.Origin)
		}
	}
	if diff := cmp.Diff([]string{`{"field":"reasoning_content"}test`}, kept); diff != "" {
		t.Error(diff)
	}
}

// pickyServer refuses bodies for which refuse returns a message.
func pickyServer(t *testing.T, status int, refuse func(body string) string) (Provider, *[]string) {
	var bodies []string
	client := &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
		data, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		bodies = append(bodies, string(data))
		answer := &http.Response{StatusCode: 200, Header: http.Header{}, Request: r, Body: io.NopCloser(strings.NewReader(chunks(`{"delta":{"content":"ok"}}`, finishStop) + done))}
		if message := refuse(string(data)); message != "" {
			answer.StatusCode = status
			answer.Body = io.NopCloser(strings.NewReader(named("", object{"error": object{"message": message}})[len("data: "):]))
		}
		return answer, nil
	})}
	return newChat(endpoint{Name: "test", BaseURL: "http://x.invalid/v1", Client: client, ReplayReasoning: "auto"}), &bodies
}

func TestPartsThatAServerRefusesAreLeftOut(t *testing.T) {
	req := &Request{Model: "m", MaxOutputTokens: 5, Tools: offeredTools, Schema: json.RawMessage(`{}`),
		Items: []Item{user("hi"), {Kind: Reasoning, Opaque: json.RawMessage(`{"field":"reasoning_content"}`), Origin: "test"},
			{Kind: Reasoning, Text: "hm", Origin: "test"}, called("c"), result("c", "r")}}
	plain := &Request{Model: "m", Items: []Item{user("hi"), called("c"), result("c", "r")}}
	for _, c := range []struct {
		name   string
		req    *Request
		refuse func(body string) string
	}{
		{"stream_options", req, func(b string) string {
			if strings.Contains(b, "stream_options") {
				return "Extra inputs are not permitted: stream_options"
			}
			return ""
		}},
		{"two parts, one after the other", req, func(b string) string {
			switch {
			case strings.Contains(b, "parallel_tool_calls"):
				return "unknown field parallel_tool_calls"
			case strings.Contains(b, `"response_format"`):
				return "response_format json_schema is not supported"
			}
			return ""
		}},
		{"max_tokens", req, func(b string) string {
			if strings.Contains(b, `"max_tokens"`) || !strings.Contains(b, `"max_completion_tokens":5`) {
				return "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead."
			}
			return ""
		}},
		{"reasoning that must not come back", req, func(b string) string {
			if strings.Contains(b, "reasoning_content") {
				return "reasoning_content is not allowed in messages"
			}
			return ""
		}},
		{"reasoning that must come back", plain, func(b string) string {
			if !strings.Contains(b, "reasoning_content") {
				return "Missing reasoning_content field in the assistant message"
			}
			return ""
		}},
		{"reasoning, with a message that misleads", req, func(b string) string {
			if strings.Contains(b, "reasoning_content") {
				return "reasoning_content must be removed, it is missing from our schema"
			}
			return ""
		}},
	} {
		for _, status := range []int{400, 422} {
			t.Run(fmt.Sprint(c.name, " ", status), func(t *testing.T) {
				p, bodies := pickyServer(t, status, c.refuse)
				retry := &Retry{MaxAttempts: 5}
				for attempt := 1; ; attempt++ {
					r := play(t, t.Context(), p, c.req)
					if r.err == nil {
						break
					}
					if delay, again := retry.Next(r.err, attempt); !again || delay != 0 {
						t.Fatalf("attempt %d: %+v, wait %v", attempt, r.err, delay)
					}
				}
				n := len(*bodies)
				if r := play(t, t.Context(), p, c.req); r.err != nil || len(*bodies) != n+1 {
					t.Errorf("what was learned is forgotten: %v", r.err)
				}
			})
		}
	}
}

func TestRefusalThatNothingCuresEnds(t *testing.T) {
	for _, message := range []string{"stream_options", "reasoning_content", "no such tool"} {
		p, bodies := pickyServer(t, 400, func(string) string { return message })
		for attempt := 1; ; attempt++ {
			if attempt == 6 {
				t.Fatalf("%s: still retryable after 5 attempts", message)
			}
			r := play(t, t.Context(), p, &Request{Items: []Item{called("c")}})
			if r.err == nil || r.err.Kind != ErrRequest {
				t.Fatalf("%s: got %+v", message, r)
			}
			if !r.err.Retryable {
				break
			}
		}
		if len(*bodies) > 3 {
			t.Errorf("%s: %d requests", message, len(*bodies))
		}
	}
}

func TestBaseURLWithAQuery(t *testing.T) {
	var got string
	client := &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
		got = r.URL.String()
		return &http.Response{StatusCode: 400, Body: http.NoBody, Request: r}, nil
	})}
	play(t, t.Context(), newChat(endpoint{BaseURL: "http://x.invalid/v1?api-version=2", Client: client}), &Request{})
	if got != "http://x.invalid/v1/chat/completions?api-version=2" {
		t.Errorf("got %s", got)
	}
}

func FuzzChatReader(f *testing.F) {
	full, _ := chatWire.encode(fullAnswer)
	for _, s := range []string{
		joinEvents(full), done, "<html>", `{"choices":[{"message":{"content":"a"}}]}`, `[{"error":{}}]`, "event: error\n\n",
		chunks(callChunk(`{"index":0,"id":"a","function":{"name":"exec","arguments":{}}}`, `{"function":{"arguments":"{\"input\":\"\\ud83d"}}`), finishStop),
		chunks(`{"delta":{"content":"<think>a\ud83d"}}`, `{"delta":{"content":["b",{"thinking":"c"}],"reasoning":"d"},"finish_reason":"length"}`),
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		c := &checker{t: t}
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		s := newChatStream(&chat{endpoint: endpoint{Name: "test"}}, &Request{Tools: offeredTools}, cancel)
		s.begin(c.take)
		s.open()
		if err := s.read(ctx, strings.NewReader(string(body))); err != nil {
			c.take(Delta{}, err)
		}
		if !c.ended {
			t.Fatal("the stream has no end")
		}
	})
}

// BenchmarkChatStream measures a response of 20,000 chunks.
func BenchmarkChatStream(b *testing.B) {
	const n = 20000
	chunk := `data: {"id":"chatcmpl-123","object":"chat.completion.chunk","created":1700000000,"model":"some-model","choices":[{"index":0,"delta":{"content":"word "},"logprobs":null,"finish_reason":null}]}` + "\n\n"
	body := strings.Repeat(chunk, n) + chunks(finishStop) + done
	client := &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: 200, Body: io.NopCloser(strings.NewReader(body)), Request: r}, nil
	})}
	p := newChat(endpoint{Name: "test", BaseURL: "http://x.invalid/v1", Client: client})
	for name, stream := range map[string]func() int{
		"provider": func() (deltas int) {
			for range p.Stream(context.Background(), &Request{Model: "m"}) {
				deltas++
			}
			return deltas
		},
		"watched": func() (deltas int) {
			for range Watch(context.Background(), Clocks{time.Minute, time.Minute}, p, &Request{Model: "m"}) {
				deltas++
			}
			return deltas
		},
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(body)))
			for b.Loop() {
				if got := stream(); got != n+2 {
					b.Fatalf("%d deltas", got)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/chunk")
		})
	}
}
