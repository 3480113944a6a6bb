package model

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/google/jsonschema-go/jsonschema"

	"drover/output/fault"
)

// played is what one response came to.
type played struct {
	text, reasoning string
	calls           []playedCall
	deltas          []Delta
	finish          *Delta
	err             *Error
}

type playedCall struct {
	ID, Name, Args string
	Freeform       bool
}

// play runs one response of p and joins its deltas.
func play(t *testing.T, ctx context.Context, p Provider, req *Request) played {
	t.Helper()
	var r played
	for d, err := range p.Stream(ctx, req) {
		if err != nil {
			if !errors.As(err, &r.err) {
				t.Fatalf("error %v is no *Error", err)
			}
			continue
		}
		r.deltas = append(r.deltas, d)
		switch d.Kind {
		case TextDelta:
			r.text += d.Text
		case ReasoningDelta:
			r.reasoning += d.Text
		case CallStart:
			if d.Index != len(r.calls) {
				t.Fatalf("call index %d after %d calls", d.Index, len(r.calls))
			}
			r.calls = append(r.calls, playedCall{ID: d.ID, Name: d.Name, Freeform: d.Freeform})
		case CallArgs:
			r.calls[d.Index].Args += d.Text
		case Finish:
			r.finish = &d
		}
	}
	return r
}

func scriptOf(t testing.TB, name string, lines ...string) Provider {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(strings.Join(lines, "\n")), 0o600); err != nil {
		t.Fatal(err)
	}
	p, err := openScript(path)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestScriptStreamsTextReasoningAndCallsInPieces(t *testing.T) {
	p := scriptOf(t, "s.jsonl",
		`{"text":"Grüße an alle Leser","reasoning":"I think","chunk":3,"tool_calls":[{"name":"exec_command","args":{"z":"ls", "a":1.50}},{"name":"apply_patch","input":"*** Begin"},{"name":"x","args_raw":"{\"cmd\":"},{"name":"y"},{"name":"z","id":"own","args":{}}],"usage":{"input_tokens":3,"output_tokens":4,"reasoning_tokens":1}}`)
	r := play(t, t.Context(), p, &Request{})
	if r.err != nil || r.text != "Grüße an alle Leser" || r.reasoning != "I think" {
		t.Fatalf("got %+v", r)
	}
	want := []playedCall{
		{ID: "call_1", Name: "exec_command", Args: `{"z":"ls","a":1.50}`},
		{ID: "call_2", Name: "apply_patch", Args: "*** Begin", Freeform: true},
		{ID: "call_3", Name: "x", Args: `{"cmd":`},
		{ID: "call_4", Name: "y"},
		{ID: "own", Name: "z", Args: "{}"},
	}
	if diff := cmp.Diff(want, r.calls); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
	if r.finish == nil || r.finish.Reason != ToolCalls || r.finish.Usage.ReasoningTokens != 1 {
		t.Errorf("finish %+v", r.finish)
	}
	for i, d := range r.deltas {
		if len(d.Text) > 3 || !utf8.ValidString(d.Text) || (d.Kind == Opened) != (i == 0) {
			t.Errorf("delta %d is %+v", i, d)
		}
	}
}

func TestScriptRunsOut(t *testing.T) {
	p := scriptOf(t, "s.jsonl", `{"text":"one"}`)
	if r := play(t, t.Context(), p, &Request{SessionID: "a"}); r.finish == nil || r.finish.Reason != Stop || r.finish.Usage != nil {
		t.Fatalf("got %+v", r)
	}
	r := play(t, t.Context(), p, &Request{SessionID: "a"})
	if r.err == nil || r.err.Kind != ErrScriptEnded || r.err.Retryable || len(r.deltas) != 0 {
		t.Fatalf("got %+v", r)
	}
	if r := play(t, t.Context(), p, &Request{SessionID: "b"}); r.text != "one" {
		t.Fatalf("a new session got %+v", r)
	}
}

func TestScriptErrorIsAnsweredByTheNextLine(t *testing.T) {
	p := scriptOf(t, "s.jsonl",
		`{"error":{"status":529,"retry_after":1.5}}`,
		`{"text":"half an","error":{"status":500,"message":"boom"}}`,
		`{"error":{"status":401}}`,
		`{"error":{"message":"gone"}}`,
		`{"text":"well"}`)
	r := play(t, t.Context(), p, &Request{})
	if len(r.deltas) != 0 || r.err.Kind != ErrOverloaded || !r.err.Retryable || r.err.RetryAfter != 1500*time.Millisecond {
		t.Errorf("529: %+v %+v", r, r.err)
	}
	r = play(t, t.Context(), p, &Request{})
	if r.text != "half an" || r.finish != nil || r.err.Kind != ErrServer || r.err.Message != "boom" {
		t.Errorf("500: %+v %+v", r, r.err)
	}
	if r = play(t, t.Context(), p, &Request{}); r.err.Kind != ErrAuth || r.err.Retryable {
		t.Errorf("401: %+v", r.err)
	}
	if r = play(t, t.Context(), p, &Request{}); r.err.Kind != ErrConnect || !r.err.Retryable || r.err.Status != 0 {
		t.Errorf("no status: %+v", r.err)
	}
	if r = play(t, t.Context(), p, &Request{}); r.text != "well" || r.err != nil {
		t.Errorf("last: %+v", r)
	}
}

func TestScriptCutEndsInTheMiddle(t *testing.T) {
	p := scriptOf(t, "s.jsonl", `{"cut":true,"chunk":1,"text":"abcd","tool_calls":[{"name":"exec_command","args":{"cmd":"rm -rf /tmp/x"}}]}`, `{"text":"again"}`)
	r := play(t, t.Context(), p, &Request{})
	if r.err == nil || r.err.Kind != ErrCut || !r.err.Retryable || r.finish != nil {
		t.Fatalf("got %+v", r)
	}
	if r.text != "abcd" || len(r.calls) != 1 || r.calls[0].Args == "" || json.Valid([]byte(r.calls[0].Args)) {
		t.Errorf("the cut is not in the middle: %+v", r)
	}
	if r := play(t, t.Context(), p, &Request{}); r.text != "again" {
		t.Errorf("retry got %+v", r)
	}
}

func result(id, text string) Item { return Item{Kind: ToolResult, CallID: id, Text: text} }
func called(id string) Item       { return Item{Kind: ToolCall, CallID: id, Name: "t"} }
func user(text string) Item       { return Item{Kind: UserMessage, Text: text} }

func TestScriptExpectsWhatWasAddedInCallOrder(t *testing.T) {
	p := scriptOf(t, "s.jsonl", `{"expect":"^first\nsecond\nstray\nand go on$","capture":{"w":"(s[a-z]+d)"},"text":"${w} $${w} ${other}","tool_calls":[{"name":"a","args":{"${w}":["${w}\"",1]}},{"name":"b","input":"<${w}>"}]}`,
		`{"text":"still ${w}"}`, `{"expect":"absent"}`)
	items := []Item{user("old"), called("a"), called("b"),
		result("b", "second"), result("zz", "stray"), user("and go on"), result("a", "first")}
	// The history came from nowhere that this session saw: it is a sub-agent's.
	p.(*script).sessions["s"] = &scriptSession{begun: true}
	r := play(t, t.Context(), p, &Request{SessionID: "s", Items: items})
	if r.err != nil || r.text != "second ${w} ${other}" {
		t.Fatalf("got %+v %v", r, r.err)
	}
	if r.calls[0].Args != `{"${w}":["second\"",1]}` || r.calls[1].Args != "<second>" {
		t.Errorf("calls %+v", r.calls)
	}
	if r := play(t, t.Context(), p, &Request{SessionID: "s"}); r.text != "still second" {
		t.Errorf("captured value is gone: %+v", r)
	}
	long := strings.Repeat("ü", 1000)
	r = play(t, t.Context(), p, &Request{SessionID: "s", Items: []Item{user(long)}})
	if r.err == nil || r.err.Kind != ErrScriptMismatch || r.err.Retryable ||
		!strings.Contains(r.err.Message, "line 3: expect /absent/") || len(r.err.Message) > 700 || !utf8.ValidString(r.err.Message) {
		t.Errorf("got %v", r.err)
	}
}

func TestScriptCaptureWithoutMatchIsAMismatch(t *testing.T) {
	p := scriptOf(t, "s.jsonl", `{"capture":{"pid":"pid ([0-9]+)"},"text":"${pid}"}`)
	r := play(t, t.Context(), p, &Request{Items: []Item{user("none")}})
	if r.err == nil || r.err.Kind != ErrScriptMismatch || !strings.Contains(r.err.Message, "capture pid") {
		t.Fatalf("got %+v", r.err)
	}
}

func TestScriptFillsInGivenValues(t *testing.T) {
	p := scriptOf(t, "s.jsonl", `{"text":"${row.First name} ${item_id} ${row.x","tool_calls":[{"name":"report","args":{"id":"\u0024{item_id}"}}]}`)
	ctx := WithScriptValues(t.Context(), map[string]string{"row.First name": "Zoë \"Z\"", "item_id": "7\n"})
	r := play(t, ctx, p, &Request{})
	if r.text != "Zoë \"Z\" 7\n ${row.x" || r.calls[0].Args != `{"id":"7\n"}` {
		t.Fatalf("got %+v", r)
	}
}

func TestScriptLinesBelongToAgents(t *testing.T) {
	p := scriptOf(t, "s.jsonl",
		`{"text":"root 1"}`, `{"agent":"tester","text":"tester"}`, `{"agent":"*","text":"any"}`,
		`{"agent":"/root/b*/**","text":"deep"}`, `{"text":"root 2"}`)
	for _, c := range []struct {
		session, agent string
		want           []string
	}{
		{"r", "/root", []string{"root 1", "root 2"}},
		{"t", "/root/tester", []string{"tester", "any"}},
		{"t2", "/root/b/tester", []string{"tester", "any", "deep"}},
		{"o", "/root/other", []string{"any"}},
	} {
		// A sub-agent may begin with its parent's history.
		req := &Request{SessionID: c.session, Agent: c.agent}
		if c.agent != "/root" {
			req.Items = []Item{user("x"), called("a"), result("a", "r"), user("y")}
		}
		var got []string
		for {
			r := play(t, t.Context(), p, req)
			if r.err != nil {
				break
			}
			got = append(got, r.text)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.agent, diff)
		}
	}
}

func TestResumedSessionContinuesAfterItsResponses(t *testing.T) {
	lines := []string{`{"error":{"status":500}}`, `{"capture":{"what":"(g.)"},"text":"one"}`, `{"cut":true,"text":"two"}`,
		`{"tool_calls":[{"name":"t"}]}`, `{"text":"three ${what}","tool_calls":[{"name":"t"}]}`}
	history := []Item{user("go"), {Kind: Reasoning}, {Kind: AssistantMessage, Text: "one"}, user("more"),
		called("call_1"), called("call_7"), result("call_1", ""), result("call_7", "")}
	r := play(t, t.Context(), scriptOf(t, "s.jsonl", lines...), &Request{SessionID: "s", Items: history})
	if r.text != "three go" || r.calls[0].ID != "call_8" {
		t.Fatalf("got %+v %v", r, r.err)
	}
	history = append(history, Item{Kind: AssistantMessage}, user("and"), Item{Kind: AssistantMessage}, user("x"))
	r = play(t, t.Context(), scriptOf(t, "s.jsonl", lines...), &Request{SessionID: "s", Items: history})
	if r.err == nil || r.err.Kind != ErrScriptEnded {
		t.Fatalf("got %+v", r)
	}
}

func TestScriptDelayEndsWithTheContext(t *testing.T) {
	p := scriptOf(t, "s.jsonl", `{"text":"slow","delay_ms":86400000}`)
	ctx, cancel := context.WithCancelCause(t.Context())
	cause := errors.New("enough")
	cancel(cause)
	r := play(t, ctx, p, &Request{})
	if r.err == nil || r.err.Kind != ErrCancelled || !errors.Is(r.err, cause) || len(r.deltas) != 0 {
		t.Fatalf("got %+v", r)
	}
}

func TestScriptStopsWhenTheReaderStops(t *testing.T) {
	p := scriptOf(t, "s.jsonl", `{"text":"abc","chunk":1,"tool_calls":[{"name":"t","args":{"a":"b"}}]}`)
	for stop := range 12 {
		n := 0
		for range p.Stream(t.Context(), &Request{SessionID: strconv.Itoa(stop)}) {
			if n == stop {
				break
			}
			n++
		}
	}
}

func TestYAMLScript(t *testing.T) {
	p := scriptOf(t, "s.yaml", "# talk", "---", "text: |", "  Two", "  lines", "tool_calls:",
		"- name: exec_command", "  args: {when: 2026-01-02, yes: true, n: 0x10, f: 1.5, nothing: ~, list: [a, 'b']}",
		"---", "---", `{"text": "json in yaml", "finish": length}`, "---")
	r := play(t, t.Context(), p, &Request{})
	if r.text != "Two\nlines\n" || r.calls[0].Args != `{"when":"2026-01-02","yes":true,"n":16,"f":1.5,"nothing":null,"list":["a","b"]}` {
		t.Fatalf("got %+v", r)
	}
	if r := play(t, t.Context(), p, &Request{}); r.text != "json in yaml" || r.finish.Reason != Length {
		t.Fatalf("got %+v", r)
	}
	if r := play(t, t.Context(), p, &Request{}); r.err == nil {
		t.Fatalf("got %+v", r)
	}
}

func TestBrokenScriptIsRefused(t *testing.T) {
	for _, c := range []struct{ name, file, text, why, fix string }{
		{"misspelled key", "s.jsonl", "{}\n\n{\"txet\":\"a\"}", `line 3: the key "txet" is unknown`, "did you mean text?"},
		{"key in another case", "s.jsonl", `{"Text":"a"}`, `the key "Text" is unknown`, "did you mean text?"},
		{"far key", "s.jsonl", `{"abracadabra":1}`, "unknown", "known are text, reasoning"},
		{"doubled key", "s.jsonl", `{"text":"a","text":"b"}`, `the key "text" is there twice`, ""},
		{"doubled key in YAML", "s.yaml", "text: a\ntext: b", `document 1 (line 1): the key "text" is there twice`, ""},
		{"wrong type", "s.jsonl", `{"text":1}`, "text must be a string, it is a number", ""},
		{"null", "s.jsonl", `{"text":null}`, "text must be a string, it is null", ""},
		{"broken JSON", "s.jsonl", `{"text":`, "line 1: it is no complete JSON object: unexpected end", "one whole object per line"},
		{"array", "s.jsonl", `[]`, "it is an array", ""},
		{"bad pattern", "s.jsonl", `{"expect":"("}`, "expect: error parsing regexp", ""},
		{"capture without group", "s.jsonl", `{"capture":{"a":"b"}}`, "has no group", "parentheses"},
		{"capture name", "s.jsonl", `{"capture":{"a}":"(b)"}}`, "may hold only", ""},
		{"args and input", "s.jsonl", `{"tool_calls":[{"name":"a"},{"name":"a","args":{},"input":""}]}`, "tool_calls[1]: args and input exclude each other", ""},
		{"args string", "s.jsonl", `{"tool_calls":[{"name":"a","args":"{}"}]}`, "args must be an object", "args_raw"},
		{"no name", "s.jsonl", `{"tool_calls":[{"args":{}}]}`, "tool_calls[0]: name is missing", ""},
		{"empty id", "s.jsonl", `{"tool_calls":[{"name":"a","id":""}]}`, "id must not be empty", ""},
		{"calls object", "s.jsonl", `{"tool_calls":{}}`, "tool_calls must be an array", ""},
		{"unknown finish", "s.jsonl", `{"finish":"lenght"}`, `finish "lenght" is unknown`, "did you mean length?"},
		{"negative delay", "s.jsonl", `{"delay_ms":-1}`, "delay_ms must be a whole number from 0 to 86400000, it is -1", ""},
		{"zero chunk", "s.jsonl", `{"chunk":0}`, "chunk must be a whole number of at least 1, it is 0", ""},
		{"fraction", "s.jsonl", `{"usage":{"input_tokens":1.5}}`, "input_tokens must be a whole number", ""},
		{"unknown usage", "s.jsonl", `{"usage":{"tokens":1}}`, `the key "tokens" is unknown`, ""},
		{"status", "s.jsonl", `{"error":{"status":200}}`, "status must be a whole number from 400 to 599", ""},
		{"retry after", "s.jsonl", `{"error":{"retry_after":"1s"}}`, "retry_after must be a number of seconds", ""},
		{"cut and error", "s.jsonl", `{"cut":true,"error":{}}`, "error and cut exclude each other", ""},
		{"cut and usage", "s.jsonl", `{"cut":true,"usage":{}}`, "no finish and no usage", ""},
		{"cut type", "s.jsonl", `{"cut":"yes"}`, "cut must be true or false", ""},
		{"agent glob", "s.jsonl", `{"agent":"[a"}`, "is no glob", ""},
		{"agent root", "s.jsonl", `{"agent":"/root"}`, "agent names the root agent", "leave agent out"},
		{"empty", "s.jsonl", "\n", "it holds no response", ""},
		{"not UTF-8", "s.jsonl", "{\"text\":\"\xff\"}", "it is not UTF-8 text", ""},
		{"YAML syntax", "s.yml", "a: [", "document 1: yaml:", ""},
		{"YAML tag", "s", "text: !!binary aGk=", "the tag !!binary is not known", ""},
		{"YAML key", "s.yaml", "? [a]\n: b", "a key must be plain text", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), c.file)
			if err := os.WriteFile(path, []byte(c.text), 0o600); err != nil {
				t.Fatal(err)
			}
			_, err := openScript(path)
			var f *fault.Error
			if !errors.As(err, &f) || f.Code != "script_invalid" || f.Exit != fault.Config {
				t.Fatalf("got %#v", err)
			}
			if !strings.Contains(f.What, path) || !strings.Contains(f.Why, c.why) || !strings.Contains(f.Fix, c.fix) {
				t.Errorf("got %s", f.Text())
			}
		})
	}
}

func TestMissingScriptIsRefused(t *testing.T) {
	for _, path := range []string{filepath.Join(t.TempDir(), "none.jsonl"), t.TempDir()} {
		if _, err := openScript(path); fault.From(err).Code != "script_invalid" {
			t.Errorf("got %v", err)
		}
	}
}

func TestScriptSchemaAgreesWithTheLoader(t *testing.T) {
	var schema jsonschema.Schema
	if err := json.Unmarshal(ScriptSchema(), &schema); err != nil {
		t.Fatal(err)
	}
	resolved, err := schema.Resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	call := schema.Properties["tool_calls"].Items
	for _, c := range []struct {
		keys   []string
		schema *jsonschema.Schema
	}{
		{scriptLineKeys, &schema}, {scriptCallKeys, call},
		{scriptErrorKeys, schema.Properties["error"]}, {scriptUsageKeys, schema.Properties["usage"]},
	} {
		if len(c.keys) != len(c.schema.Properties) {
			t.Errorf("%d keys, schema has %d", len(c.keys), len(c.schema.Properties))
		}
		for _, k := range c.keys {
			if c.schema.Properties[k] == nil {
				t.Errorf("the schema lacks %s", k)
			}
		}
	}
	for _, line := range []string{
		`{}`, `{"text":"a","cut":false,"finish":"stop"}`, `{"cut":true,"finish":"stop"}`, `{"error":{},"usage":{}}`,
		`{"error":{"status":200}}`, `{"error":{"status":503,"retry_after":0.5}}`, `{"chunk":0}`,
		`{"tool_calls":[{"name":"a","args":{},"input":""}]}`, `{"tool_calls":[{"name":"a","args":{}}]}`,
		`{"tool_calls":[{}]}`, `{"capture":{"a b":"(x)"}}`, `{"capture":{"a":"(x)"},"agent":"*"}`, `{"finish":"end"}`,
	} {
		var v any
		if err := json.Unmarshal([]byte(line), &v); err != nil {
			t.Fatal(err)
		}
		_, _, loaded := parseScript("s.jsonl", []byte(line))
		if valid := resolved.Validate(v); (valid == nil) != (loaded == nil) {
			t.Errorf("%s: schema says %v, loader %v", line, valid, loaded)
		}
	}
}

func FuzzScript(f *testing.F) {
	for _, s := range []string{
		`{"text":"a${b}","tool_calls":[{"name":"x","args":{"a":["${b}",{"c":1e9}]},"id":"q"},{"name":"y","input":"\ud83d\ude00"}],"capture":{"b":"(.)"}}`,
		"{\"cut\":true,\"chunk\":1,\"text\":\"äöü\"}\r\n{\"error\":{\"status\":429,\"retry_after\":1}}",
		"text: a\n---\n- b", "a: &a [*a]", "&a {? *a : b}", "{<<: {text: a}}", `{"expect":"(?i)x","usage":{"input_tokens":1}}`,
	} {
		f.Add([]byte(s), "value")
	}
	f.Fuzz(func(t *testing.T, data []byte, value string) {
		for _, name := range []string{"s.jsonl", "s.yaml", "s"} {
			lines, where, err := parseScript(name, data)
			if err != nil {
				if err.Error() == "" || strings.Contains(where, "\n") {
					t.Fatalf("bad message %q %q", where, err)
				}
				continue
			}
			p := &script{file: name, lines: lines, sessions: map[string]*scriptSession{}}
			for i := range lines {
				l := lines[i]
				l.delay = 0
				turn := p.fill(&scriptSession{}, &l, map[string]string{"b": value})
				ends := 0
				for d, err := range func(yield func(Delta, error) bool) { turn.stream(context.Background(), yield) } {
					if err != nil || d.Kind == Finish {
						ends++
					}
					if utf8.ValidString(value) && !utf8.ValidString(d.Text) {
						t.Fatalf("delta %q is cut inside a character", d.Text)
					}
				}
				if ends != 1 {
					t.Fatalf("%d ends", ends)
				}
				for _, c := range turn.calls {
					if c.json && !json.Valid([]byte(c.args)) {
						t.Fatalf("args %q are no JSON", c.args)
					}
				}
			}
		}
	})
}

func BenchmarkOpenScript(b *testing.B) {
	line := `{"expect":"ok","text":"I look at the next file.","tool_calls":[{"name":"exec_command","args":{"cmd":"go test ./..."}}],"usage":{"input_tokens":900,"output_tokens":40}}`
	path := filepath.Join(b.TempDir(), "s.jsonl")
	if err := os.WriteFile(path, []byte(strings.Repeat(line+"\n", 10000)), 0o600); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := openScript(path); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkScriptTurn(b *testing.B) {
	p := scriptOf(b, "s.jsonl", `{"expect":"ok","text":"I look at the next file.","tool_calls":[{"name":"exec_command","args":{"cmd":"go test ./..."}}]}`)
	s := &scriptSession{begun: true}
	p.(*script).sessions["s"] = s
	req := &Request{SessionID: "s", Items: []Item{called("a"), result("a", "ok")}}
	b.ReportAllocs()
	for b.Loop() {
		s.next = 0
		for _, err := range p.Stream(context.Background(), req) {
			if err != nil {
				b.Fatal(err)
			}
		}
	}
}
