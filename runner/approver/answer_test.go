package approver

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"drover/output/event"
)

// request is an event that asks.
func request(id string) event.Event {
	return event.Event{Seq: 7, RunID: "run_1", Origin: event.Origin{SessionID: "ses_1"}, Body: event.ToolApprovalRequestEvent{
		ToolCallID: "c", ToolName: "exec_command", CorrelationID: id, Args: json.RawMessage(`{"cmd":"ls"}`), MaxScope: "session",
	}}
}

func yes(id string) string {
	return fmt.Sprintf(`{"v":1,"type":"tool.approval.response","correlation_id":%q,"approved":true}`, id)
}

func TestAnswersAreReadStrictly(t *testing.T) {
	for _, c := range []struct {
		name, line string
		want       Answer
		wrong      string
	}{
		{name: "yes", line: `{"v":1,"type":"tool.approval.response","correlation_id":"a","approved":true}`,
			want: Answer{CorrelationID: "a", Approved: true, Scope: "once"}},
		{name: "everything", line: `{"v":1,"type":"tool.approval.response","correlation_id":"a","approved":true,"scope":"always","reason":"r","rule":{"argv":["ls"]},"args":{"cmd":"ls"}}`,
			want: Answer{CorrelationID: "a", Approved: true, Scope: "always", Reason: "r", Rule: json.RawMessage(`{"argv":["ls"]}`), Args: json.RawMessage(`{"cmd":"ls"}`)}},
		{name: "the id of a rule", line: `{"v":1,"type":"tool.approval.response","correlation_id":"a","approved":true,"rule":"r1","args":null}`,
			want: Answer{CorrelationID: "a", Approved: true, Scope: "once", Rule: json.RawMessage(`"r1"`)}},
		{name: "no", line: `{"v":1,"type":"tool.approval.response","correlation_id":"a","approved":false}`, want: Answer{CorrelationID: "a", Scope: "once"}},
		{name: "an answer in words", line: `{"v":1,"type":"input.response","correlation_id":"a","answer":"blue"}`,
			want: Answer{CorrelationID: "a", Approved: true, Text: "blue", Scope: "once"}},
		{name: "no answer", line: `{"v":1,"type":"input.response","correlation_id":"a","answered":false}`, want: Answer{CorrelationID: "a", Scope: "once"}},
		{name: "no JSON", line: `yes`, wrong: "no JSON object"},
		{name: "a list", line: `[]`, wrong: "no JSON object"},
		{name: "cut", line: `{"v":1,"type":"tool.approval.response","correlation_id":"a","approved":true`, wrong: "no JSON"},
		{name: "two objects", line: `{"v":1,"type":"tool.approval.response","correlation_id":"a","approved":false}{"approved":true}`, wrong: "something follows"},
		{name: "no verdict", line: `{"v":1,"type":"tool.approval.response","correlation_id":"a"}`, wrong: "approved is missing"},
		{name: "a verdict in words", line: `{"v":1,"type":"tool.approval.response","correlation_id":"a","approved":"true"}`, wrong: "neither true nor false"},
		{name: "a verdict in capitals", line: `{"v":1,"type":"tool.approval.response","correlation_id":"a","Approved":true}`, wrong: "approved is missing"},
		{name: "two verdicts", line: `{"v":1,"type":"tool.approval.response","correlation_id":"a","approved":false,"approved":true}`, wrong: "occurs twice"},
		{name: "another version", line: `{"v":2,"type":"tool.approval.response","correlation_id":"a","approved":true}`, wrong: "version 2"},
		{name: "no version", line: `{"type":"tool.approval.response","correlation_id":"a","approved":true}`, wrong: "v is missing"},
		{name: "no request", line: `{"v":1,"type":"tool.approval.response","approved":true}`, wrong: "correlation_id is missing"},
		{name: "another type", line: `{"v":1,"type":"message","correlation_id":"a","approved":true}`, wrong: `type "message"`},
		{name: "another scope", line: `{"v":1,"type":"tool.approval.response","correlation_id":"a","approved":true,"scope":"forever"}`, wrong: `scope "forever"`},
		{name: "a misspelt key", line: `{"v":1,"type":"tool.approval.response","correlation_id":"a","approved":true,"arg":{"cmd":"ls"}}`, wrong: `the key "arg" is not known`},
		{name: "arguments that are none", line: `{"v":1,"type":"tool.approval.response","correlation_id":"a","approved":true,"args":"ls"}`, wrong: "args is no object"},
		{name: "a rule that is none", line: `{"v":1,"type":"tool.approval.response","correlation_id":"a","approved":true,"rule":7}`, wrong: "neither an object nor an id"},
		{name: "no words", line: `{"v":1,"type":"input.response","correlation_id":"a"}`, wrong: "answer is missing"},
		{name: "no text", line: "{\"v\":1,\"reason\":\"\xff\"}", wrong: "not UTF-8"},
		{name: "too long", line: `{"v":1,"reason":"` + strings.Repeat("x", maxAnswer) + `"}`, wrong: "longer than"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := ParseAnswer([]byte(c.line))
			if c.wrong != "" {
				if err == nil || !strings.Contains(err.Error(), c.wrong) {
					t.Errorf("got %+v, %v, want an error with %q", got, err, c.wrong)
				}
				return
			}
			if d := cmp.Diff(c.want, got, cmpopts.IgnoreUnexported(Answer{})); err != nil || d != "" {
				t.Errorf("%v %s", err, d)
			}
		})
	}
}

func FuzzParseAnswer(f *testing.F) {
	f.Add([]byte(`{"v":1,"type":"tool.approval.response","correlation_id":"a","approved":true,"scope":"session","rule":"x","args":{}}`))
	f.Add([]byte(`{"v":1,"type":"input.response","correlation_id":"a","answered":false}`))
	f.Add([]byte(`{"v":1,"v":1}`))
	f.Fuzz(func(t *testing.T, line []byte) {
		a, err := ParseAnswer(line)
		if err == nil && (a.CorrelationID == "" || a.Scope == "" || a.Args != nil && !json.Valid(a.Args)) {
			t.Errorf("%q became %+v", line, a)
		}
	})
}
