package event

import (
	"bytes"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

var testTime = time.Date(2026, 9, 20, 10, 0, 0, 7e6, time.UTC)

func testEvent(b Body) Event {
	e := Event{
		Seq: 7, Time: testTime, RunID: "run_1",
		Origin: Origin{SessionID: "ses_a", Turn: 2}, Body: b,
	}
	if slices.Contains(itemLevel, b.Type()) {
		e.ItemID = "row_1"
	}
	return e
}

// fill sets every field of v to something that is not zero. text makes the
// strings.
func fill(v reflect.Value, text func(field string) string, field string) {
	switch v.Kind() {
	case reflect.String:
		v.SetString(text(field))
	case reflect.Int, reflect.Int64:
		v.SetInt(7)
	case reflect.Float64:
		v.SetFloat(1.5)
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), text, field)
	case reflect.Slice:
		if v.Type() == reflect.TypeFor[json.RawMessage]() {
			raw, _ := json.Marshal(map[string]any{"k": text(field), "n": 12345678901234567})
			v.SetBytes(raw)
			return
		}
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		for i := range 2 {
			fill(v.Index(i), text, field)
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		elem := reflect.New(v.Type().Elem()).Elem()
		fill(elem, text, field)
		v.SetMapIndex(reflect.ValueOf(text("key")), elem)
	case reflect.Interface:
		v.Set(reflect.ValueOf(text(field)))
	case reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i), text, v.Type().Field(i).Name)
		}
	}
}

// filled returns one body of every type with every field set.
func filled(text func(field string) string) []Body {
	var out []Body
	for _, name := range typeNames() {
		v := reflect.New(reflect.TypeOf(kinds[name].zero)).Elem()
		fill(v, text, "")
		out = append(out, v.Interface().(Body))
	}
	return out
}

func plainText(field string) string { return "text of " + field }

func mustEncode(t testing.TB, e Event) []byte {
	t.Helper()
	line, err := AppendJSON(nil, e)
	if err != nil {
		t.Fatalf("%s: %v", e.Body.Type(), err)
	}
	return line
}

func TestEveryEventComesBackAsItWas(t *testing.T) {
	for _, text := range []func(string) string{plainText, func(string) string { return "a\"\\\n\t\x01é\u2028😀" }} {
		for _, b := range filled(text) {
			e := testEvent(b)
			e.ParentSessionID, e.Agent, e.ItemID, e.Replayed = "ses_p", "/root/x", "row 1", true
			e.Ext = json.RawMessage(`{"vendor":1}`)
			line := mustEncode(t, e)
			if err := checkStrict(line); err != nil {
				t.Errorf("%s: %v in %s", b.Type(), err, line)
			}
			got, err := Decode(line)
			if err != nil {
				t.Errorf("%s: %v", b.Type(), err)
				continue
			}
			if d := cmp.Diff(e, got); d != "" {
				t.Errorf("%s: %s", b.Type(), d)
			}
		}
	}
}

func TestZeroBodiesComeBackToo(t *testing.T) {
	for _, name := range typeNames() {
		line := mustEncode(t, testEvent(kinds[name].zero))
		if _, err := Decode(line); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestFastPathsWriteWhatEncodingJSONWrites(t *testing.T) {
	texts := []string{"", "plain", "a\"\\/\n\r\t\b\f\x00\x1f", "é😀\u2028\u2029\u2027", "<a>&"}
	for _, text := range texts {
		for _, b := range filled(func(string) string { return text }) {
			fast := mustEncode(t, testEvent(b))
			slow, err := appendAny(appendEnvelope(nil, testEvent(b)), strictBody(b))
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(string(escapeControls(append(slow, '}'), 0)), string(fast)); d != "" {
				t.Errorf("%s with %q: %s", b.Type(), text, d)
			}
		}
	}
}

func TestEnvelopeKeysComeFirstAndInOrder(t *testing.T) {
	e := testEvent(ToolStatusEvent{ToolCallID: "c1", ToolName: "exec_command", Status: StatusRunning, TimeoutSec: 120})
	e.Time = time.Date(2026, 1, 2, 5, 4, 5, 6_999_999, time.FixedZone("", 2*3600))
	want := `{"v":1,"seq":7,"ts":"2026-01-02T03:04:05.006Z","type":"tool.status","run_id":"run_1","session_id":"ses_a","turn":2,` +
		`"tool_call_id":"c1","tool_name":"exec_command","status":"running","timeout_sec":120}`
	if d := cmp.Diff(want, string(mustEncode(t, e))); d != "" {
		t.Error(d)
	}
}

func TestLinesAreStrictWhateverCameIn(t *testing.T) {
	long := strings.Repeat("[", 2000) + strings.Repeat("]", 2000)
	tests := []struct {
		name string
		body Body
		want string // a part of the line
	}{
		{"invalid bytes", NoticeEvent{Message: "a\xffb\xc3"}, `"message":"a\ufffdb\ufffd"`},
		{"invalid bytes in a delta", MessageDeltaEvent{Delta: "a\xffb\xed\xa0\x80"}, "\"delta\":\"a\uFFFDb\uFFFD\uFFFD\uFFFD\""},
		{"invalid bytes in arguments", ToolCallEvent{Args: json.RawMessage("{\"a\":\"x\xff\"}")}, "\"args\":{\"a\":\"x\uFFFD\"}"},
		{"duplicate keys", ToolCallEvent{Args: json.RawMessage(`{"a":1,"\u0061":2}`)}, `"args":{"a":2}`},
		{"half a surrogate", ToolCallEvent{Args: json.RawMessage(`{"a":"\ud800x"}`)}, "\"args\":{\"a\":\"\uFFFDx\"}"},
		{"line breaks", ToolCallEvent{Args: json.RawMessage("{\n \"a\": [1,\r\n 2]\n}")}, `"args":{"a":[1,2]}`},
		{"line separators", ToolCallEvent{Args: json.RawMessage("{\"a\":\"\u2028\"}")}, `"args":{"a":"\u2028"}`},
		{"big numbers", ToolCallEvent{Args: json.RawMessage(`{"a":123456789012345678901234567890,"a":1e999}`)}, `"args":{"a":1e999}`},
		{"no JSON", ToolCallEvent{Args: json.RawMessage(`{"a":`)}, `"args":"{\"a\":"`},
		{"no arguments", ToolCallEvent{}, `"args":null`},
		{"empty arguments", ToolCallEvent{Args: json.RawMessage{}}, `"args":null`},
		{"deep nesting", ToolResultEvent{Structured: json.RawMessage(long)}, `"structured":`},
		{"required lists", RunFinishedEvent{}, `"denials":[]`},
		{"no HTML escapes", MessageEvent{Text: "<b>&"}, `"text":"<b>&"`},
		{"control characters", MessageDeltaEvent{Delta: "a\x7f\u009b2J\u00a0"}, "\"delta\":\"a\\u007f\\u009b2J\u00a0\""},
		{"control characters in arguments", ToolCallEvent{Args: json.RawMessage("{\"\u0085\":\"\x7f\"}")}, `"args":{"\u0085":"\u007f"}`},
		{"unknown type", Unknown{Name: "x.new", Raw: json.RawMessage(`{"v":1,"seq":3,"a":{"b": 1},"type":"x.new"}`)}, `"run_id":"run_1","session_id":"ses_a","turn":2,"a":{"b":1}}`},
		{"unknown type without body", Unknown{Name: "x.new"}, `"turn":2}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			line := mustEncode(t, testEvent(tt.body))
			if !strings.Contains(string(line), tt.want) {
				t.Errorf("got %s, want it to contain %s", line, tt.want)
			}
			if tt.name == "deep nesting" {
				return
			}
			if err := checkStrict(line); err != nil {
				t.Errorf("%v in %s", err, line)
			}
			if bytes.ContainsAny(line, "\n\r\u2028\u2029\u0085\u009b\x7f") {
				t.Errorf("a line break in %q", line)
			}
		})
	}
}

func TestAppendKeepsTheBufferOnFailure(t *testing.T) {
	e := testEvent(LimitReachedEvent{Value: nan()})
	got, err := AppendJSON([]byte("before"), e)
	if err == nil || string(got) != "before" {
		t.Errorf("got %q, %v", got, err)
	}
	if _, err := AppendJSON(nil, Event{}); err == nil {
		t.Error("an event without a body was encoded")
	}
}

func nan() float64 { var zero float64; return zero / zero }

func FuzzEncodeIsStrict(f *testing.F) {
	f.Add("a\xff\u2028", `{"a":1,"a":2}`)
	f.Add("\x00\"\\", "{\"a\":\"\\ud800\"} ")
	f.Add("", "nul")
	f.Fuzz(func(t *testing.T, text, raw string) {
		for _, b := range []Body{
			MessageDeltaEvent{MessageID: text, Delta: text},
			TerminalAppendStringEvent{ToolCallID: text, Delta: raw, Stream: Stream(text)},
			ToolStatusEvent{ToolName: text, Progress: raw, TimeoutSec: 0.25},
			ToolCallEvent{Args: json.RawMessage(raw), Display: text},
			NoticeEvent{Message: text, Details: map[string]any{text: raw}},
		} {
			line, err := AppendJSON(nil, testEvent(b))
			if err != nil {
				t.Fatal(err)
			}
			if !utf8.Valid(line) || !json.Valid(line) || bytes.ContainsAny(line, "\n\r\u2028\u2029") {
				t.Fatalf("%s: bad line %q", b.Type(), line)
			}
			if _, err := Decode(line); err != nil {
				t.Fatalf("%s: %v", b.Type(), err)
			}
		}
	})
}

func BenchmarkEncode(b *testing.B) {
	bodies := []struct {
		name string
		body Body
	}{
		{"message.delta", MessageDeltaEvent{MessageID: "msg_12", Delta: "a chunk of text, as models send it"}},
		{"terminal.output", TerminalAppendStringEvent{ToolCallID: "call_12", TerminalID: "t1", Stream: "stdout", Delta: strings.Repeat("ok  \tpkg/a\t0.2s\n", 20)}},
		{"tool.status", ToolStatusEvent{ToolCallID: "call_12", ToolName: "exec_command", Status: StatusRunning, TimeoutSec: 120}},
		{"tool.result", ToolResultEvent{ToolCallID: "call_12", ToolName: "exec_command", Display: "exit 0, 1 line", Content: "ok\n", DurationMS: 12, OutputBytes: 3}},
		{"tool.call", ToolCallEvent{ToolCallID: "call_12", ToolName: "exec_command", Args: json.RawMessage(`{"cmd":"go test ./..."}`), Display: "run: go test ./..."}},
	}
	for _, bb := range bodies {
		b.Run(bb.name, func(b *testing.B) {
			e := testEvent(bb.body)
			var buf []byte
			var err error
			b.ReportAllocs()
			for b.Loop() {
				if buf, err = AppendJSON(buf[:0], e); err != nil {
					b.Fatal(err)
				}
			}
			b.SetBytes(int64(len(buf)))
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "events/s")
		})
	}
}
