package model

import (
	"bytes"
	"encoding/json"
	"flag"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var updateBodies = flag.Bool("update-bodies", false, "rewrite testdata/*_request.json")

const testKey = "sk-very-secret-value"

// talk is a history with everything that a body can hold.
func talk(origin string) []Item {
	return []Item{
		user("Fix <the> tests & go on."),
		{Kind: Reasoning, Text: "shown only"},
		{Kind: Reasoning, Origin: origin, Opaque: json.RawMessage(`{"type":"reasoning","id":"rs_1","encrypted_content":"abc","summary":[]}`)},
		{Kind: AssistantMessage, Text: "I look."},
		{Kind: ToolCall, CallID: "c1", Name: "exec_command", Args: `{"z":"ls","a":1}`},
		{Kind: ToolCall, CallID: "c2", Name: "exec_command", Args: `{cmd: ls}`},
		{Kind: ToolCall, CallID: "c3", Name: "apply_patch", Args: "*** Begin Patch\n", Freeform: true},
		{Kind: ToolCall, CallID: "c4", Name: "update_plan"},
		{Kind: ToolResult, CallID: "c1", Name: "exec_command", Text: "ok"},
		{Kind: ToolResult, CallID: "c2", Name: "exec_command", Text: "failed to parse", IsError: true},
		{Kind: ToolResult, CallID: "c3", Name: "apply_patch", Text: "Success", Freeform: true},
		user("Note: be brief."),
		{Kind: ToolResult, CallID: "c4", Name: "update_plan", Text: ""},
		{Kind: Reasoning, Origin: "elsewhere", Opaque: json.RawMessage(`{"secret_of":"another provider"}`)},
		{Kind: AssistantMessage, Text: "Done."},
		user("Again."),
		{Kind: Reasoning, Origin: origin, Opaque: json.RawMessage(`{"type":"reasoning","id":"dangling"}`)},
		{Kind: AssistantMessage, Text: "  "},
		user("And again."),
	}
}

func fullRequest(origin string) *Request {
	return &Request{
		Model: "m-1", System: "You are drover.", Items: talk(origin), SessionID: "ses_1", MaxOutputTokens: 900,
		Tools: []Tool{
			{Name: "exec_command", Doc: "Runs a command.", Schema: json.RawMessage(`{"type":"object","properties":{"z":{"type":"string"},"a":{"type":"number"}},"required":["z"],"additionalProperties":false}`)},
			{Name: "apply_patch", Doc: "Edits files.", Grammar: "start: \"x\"", Freeform: true},
			{Name: "exec", Freeform: true},
			{Name: "update_plan"},
		},
		Schema: json.RawMessage(`{"type":"object","properties":{"ok":{"type":"boolean"}}}`), Strict: true,
	}
}

// capture serves one empty answer and returns the request as it came.
func capture(t *testing.T, build func(endpoint) Provider, req *Request) (*http.Request, []byte) {
	t.Helper()
	var got *http.Request
	var body []byte
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = r
		body, _ = io.ReadAll(r.Body)
		w.WriteHeader(http.StatusBadRequest)
	}))
	defer s.Close()
	p := build(endpoint{Name: "test", BaseURL: s.URL + "/api", Key: testKey, Client: s.Client(),
		UserAgent: "drover/test", Headers: map[string]string{"X-Team": "a b"}})
	if r := play(t, t.Context(), p, req); r.err == nil || r.err.Kind != ErrRequest || r.err.Status != 400 {
		t.Fatalf("got %+v", r.err)
	}
	return got, body
}

func TestRequestBodies(t *testing.T) {
	for _, c := range []struct {
		name, path, auth string
		build            func(endpoint) Provider
	}{
		{"responses", "/api/responses", "Authorization", newResponses},
		{"messages", "/api/v1/messages", "X-Api-Key", newMessages},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, body := capture(t, c.build, fullRequest("test"))
			if r.Method != http.MethodPost || r.URL.Path != c.path {
				t.Errorf("%s %s", r.Method, r.URL.Path)
			}
			if !strings.Contains(r.Header.Get(c.auth), testKey) || r.Header.Get("User-Agent") != "drover/test" ||
				r.Header.Get("X-Team") != "a b" || r.Header.Get("Accept") != "text/event-stream" {
				t.Errorf("header %v", r.Header)
			}
			for _, absent := range []string{testKey, "another provider", "dangling", "shown only", `"  "`} {
				if bytes.Contains(body, []byte(absent)) {
					t.Errorf("the body holds %q", absent)
				}
			}
			compareBody(t, filepath.Join("testdata", c.name+"_request.json"), body)
		})
	}
}

func compareBody(t *testing.T, path string, body []byte) {
	t.Helper()
	var b bytes.Buffer
	if err := json.Indent(&b, body, "", " "); err != nil {
		t.Fatal(err)
	}
	b.WriteByte('\n')
	if *updateBodies {
		if err := os.WriteFile(path, b.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), b.String()); diff != "" {
		t.Errorf("body (-want +got):\n%s", diff)
	}
}

func TestBodyOfABareRequest(t *testing.T) {
	for name, build := range map[string]func(endpoint) Provider{"responses": newResponses, "messages": newMessages} {
		_, body := capture(t, build, &Request{Model: "m", Items: []Item{user("hi")}})
		var got map[string]json.RawMessage
		if err := json.Unmarshal(body, &got); err != nil {
			t.Fatal(err)
		}
		for _, absent := range []string{"tools", "text", "output_config", "instructions", "system", "prompt_cache_key", "parallel_tool_calls"} {
			if got[absent] != nil {
				t.Errorf("%s: %s is sent: %s", name, absent, got[absent])
			}
		}
		if name == "messages" && string(got["max_tokens"]) != "16384" {
			t.Errorf("max_tokens %s", got["max_tokens"])
		}
	}
}

func TestHistoryThatBeginsWithAnAnswer(t *testing.T) {
	_, body := capture(t, newMessages, &Request{Model: "m", Items: []Item{
		{Kind: AssistantMessage, Text: "a"}, user("b"), user("c"),
	}})
	var got struct {
		Messages []struct {
			Role    string
			Content []struct{ Text string }
		}
	}
	if err := json.Unmarshal(body, &got); err != nil {
		t.Fatal(err)
	}
	roles := ""
	for _, m := range got.Messages {
		roles += m.Role + " "
	}
	if roles != "user assistant user " || len(got.Messages[2].Content) != 2 {
		t.Errorf("got %s", body)
	}
}

func TestBrokenSchemaIsAnErrorBeforeTheRequest(t *testing.T) {
	for _, build := range []func(endpoint) Provider{newResponses, newMessages} {
		p := build(endpoint{Name: "test", BaseURL: "http://127.0.0.1:1", Client: http.DefaultClient})
		for _, req := range []*Request{
			{Tools: []Tool{{Name: "t", Schema: json.RawMessage(`[]`)}}},
			{Schema: json.RawMessage(`{`), Strict: true},
		} {
			if r := play(t, t.Context(), p, req); r.err == nil || r.err.Kind != ErrRequest {
				t.Errorf("got %+v", r.err)
			}
		}
	}
}
