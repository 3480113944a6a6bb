package model

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestLocalShellIsTheToolOfTheAPI(t *testing.T) {
	_, body := capture(t, newResponses, &Request{Model: "m",
		Tools: []Tool{{Name: localShell, Doc: "Runs.", Schema: json.RawMessage(`{"type":"object"}`), LocalShell: true}},
		Items: []Item{
			user("hi"),
			{Kind: ToolCall, CallID: "c1", Name: localShell, Args: `{"command":["ls","-l"],"timeout_ms":5}`},
			{Kind: ToolResult, CallID: "c1", Name: localShell, Text: `{"output":"x"}`},
			{Kind: ToolCall, CallID: "c2", Name: localShell, Args: `no action`},
			{Kind: ToolResult, CallID: "c2", Name: localShell, Text: "broken"},
			{Kind: ToolCall, CallID: "c3", Name: "update_plan", Args: `{}`},
			{Kind: ToolResult, CallID: "c3", Name: "update_plan", Text: "ok"},
		}})
	var got struct {
		Tools []map[string]any
		Input []map[string]any
	}
	if err := json.Unmarshal(body, &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]map[string]any{{"type": "local_shell"}}, got.Tools); diff != "" {
		t.Errorf("tools (-want +got):\n%s", diff)
	}
	want := []map[string]any{
		{"type": "local_shell_call", "call_id": "c1", "status": "completed", "action": map[string]any{
			"type": "exec", "env": map[string]any{}, "command": []any{"ls", "-l"}, "timeout_ms": 5.0,
		}},
		{"type": "local_shell_call_output", "id": "c1", "output": `{"output":"x"}`},
		{"type": "function_call", "call_id": "c2", "name": "local_shell", "arguments": "no action"},
		{"type": "function_call_output", "call_id": "c2", "output": "broken"},
		{"type": "function_call", "call_id": "c3", "name": "update_plan", "arguments": "{}"},
		{"type": "function_call_output", "call_id": "c3", "output": "ok"},
	}
	if diff := cmp.Diff(want, got.Input[1:]); diff != "" {
		t.Errorf("input (-want +got):\n%s", diff)
	}
}

func TestLocalShellOfOtherProvidersIsAFunction(t *testing.T) {
	for name, build := range map[string]func(endpoint) Provider{"messages": newMessages, "chat": newChat} {
		_, body := capture(t, build, &Request{Model: "m", Items: []Item{user("hi")},
			Tools: []Tool{{Name: localShell, Doc: "Runs.", Schema: json.RawMessage(`{"type":"object"}`), LocalShell: true}}})
		var got struct{ Tools []json.RawMessage }
		if err := json.Unmarshal(body, &got); err != nil || len(got.Tools) != 1 || !json.Valid(got.Tools[0]) {
			t.Fatalf("%s: %s, %v", name, body, err)
		}
		var tool struct {
			Name     string
			Function struct{ Name string }
		}
		if err := json.Unmarshal(got.Tools[0], &tool); err != nil || tool.Name+tool.Function.Name != localShell {
			t.Errorf("%s: %s", name, got.Tools[0])
		}
	}
}

func TestLocalShellCallsAreCalls(t *testing.T) {
	action := `{"type":"exec","command":["ls"],"env":{},"timeout_ms":10,"working_directory":"/w"}`
	done := `{"type":"response.completed","response":{"status":"completed","output":[]}}`
	for name, tt := range map[string]struct {
		events []string
		id     string
	}{
		"added and done": {[]string{
			`{"type":"response.output_item.added","output_index":0,"item":{"type":"local_shell_call","id":"lsh_1","call_id":"call_1","status":"in_progress","action":{"type":"exec","command":[],"env":{}}}}`,
			`{"type":"response.output_item.done","output_index":0,"item":{"type":"local_shell_call","id":"lsh_1","call_id":"call_1","status":"completed","action":` + action + `}}`,
			done,
		}, "call_1"},
		"only at the end": {[]string{
			`{"type":"response.completed","response":{"status":"completed","output":[{"type":"local_shell_call","id":"lsh_1","call_id":"call_1","action":` + action + `}]}}`,
		}, "call_1"},
		"without a call id": {[]string{
			`{"type":"response.output_item.done","output_index":0,"item":{"type":"local_shell_call","id":"lsh_1","action":` + action + `}}`, done,
		}, "lsh_1"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, size := range []int{1, 1 << 20} {
				checkStream(t, serve(t, newResponses, size, tt.events...), wanted{
					calls: []playedCall{{ID: tt.id, Name: localShell, Args: action}}, reason: ToolCalls,
				})
			}
		})
	}
}
