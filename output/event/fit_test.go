package event

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

// fitted returns the events that a log makes of one body.
func fitted(t testing.TB, o Options, origin Origin, b Body) []Event {
	t.Helper()
	var out eventSink
	o.RunID = "run_1"
	log := New(o)
	log.Attach(Attachment{Name: "test", Sink: &out, Level: Full})
	log.Emit(origin, b)
	return out.events
}

type eventSink struct{ events []Event }

func (s *eventSink) Emit(e Event) error { s.events = append(s.events, e); return nil }
func (s *eventSink) Close() error       { return nil }

// TestNoLineIsTooLong fills every string of every type with something huge.
func TestNoLineIsTooLong(t *testing.T) {
	fillings := map[string]string{
		"ASCII":            strings.Repeat("all work and no play ", 8000),
		"control bytes":    strings.Repeat("\x00\x01", 6000),
		"CJK":              strings.Repeat("世界", 9000),
		"no text":          strings.Repeat("\xff\xfe", 6000),
		"a bit too long":   strings.Repeat("x", 66<<10),
		"short but many":   strings.Repeat("z", 12<<10),
		"quotes":           strings.Repeat("\"\\", 15_000),
		"a base64 torrent": base64.StdEncoding.EncodeToString([]byte(strings.Repeat("\xff", 1<<15))),
	}
	for name, text := range fillings {
		t.Run(name, func(t *testing.T) {
			origin := Origin{SessionID: text, ParentSessionID: text, Agent: text, ItemID: text, Turn: 3}
			for _, b := range filled(func(string) string { return text }) {
				events := fitted(t, Options{}, origin, b)
				if len(events) == 0 {
					t.Errorf("%s: nothing was emitted", b.Type())
				}
				for _, e := range events {
					line := mustEncode(t, e)
					if len(line)+1 > maxLineOf(b.Type()) {
						t.Errorf("%s: the line is %d bytes long", b.Type(), len(line)+1)
					}
					if err := checkStrict(line); err != nil {
						t.Errorf("%s: %v", b.Type(), err)
					}
				}
			}
		})
	}
}

func TestLongListsAreCutToo(t *testing.T) {
	var denials []Denial
	var files []ChangedFile
	details := map[string]any{}
	labels := map[string]string{}
	for i := range 12_000 {
		id := fmt.Sprintf("call_%d", i)
		denials = append(denials, Denial{ToolCallID: id, ToolName: "exec_command", DecidedBy: "policy"})
		files = append(files, ChangedFile{Path: "some/where/" + id, Kind: "modify"})
		details[id], labels[id] = []any{id, i}, id
	}
	var plan []PlanItem
	for range 3000 {
		plan = append(plan, PlanItem{Text: strings.Repeat("step ", 20), Status: "pending"})
	}
	deep, err := json.Marshal(details)
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range []Body{
		RunFinishedEvent{Denials: denials, FilesChanged: files, Message: "done"},
		NoticeEvent{Level: "info", Code: "c", Message: "m", Details: details},
		RunStartedEvent{Labels: labels, Tools: make([]string, 30_000)},
		PlanUpdatedEvent{Items: plan},
		ToolCallEvent{ToolCallID: "c", Args: deep},
		ToolResultEvent{ToolCallID: "c", Structured: deep},
	} {
		events := fitted(t, Options{}, Origin{}, b)
		line := mustEncode(t, events[0])
		if limit := maxLineOf(b.Type()); len(line)+1 > limit || len(line) < 2000 {
			t.Errorf("%s: the line is %d bytes long", b.Type(), len(line)+1)
		}
	}
	end := fitted(t, Options{}, Origin{}, RunFinishedEvent{Denials: denials, FilesChanged: files, Message: "done"})[0].Body.(RunFinishedEvent)
	if !end.Truncated || end.Message != "done" || len(end.Denials) != 1000 {
		t.Errorf("truncated %v, message %q, %d denials", end.Truncated, end.Message, len(end.Denials))
	}
}

func TestLongDeltasAreSplitOnCharacters(t *testing.T) {
	text := strings.Repeat("世界 means world, ", 3000)
	for _, b := range []Body{
		MessageDeltaEvent{MessageID: "m", Delta: text}, ReasoningDeltaEvent{MessageID: "m", Delta: text},
		ToolCallArgsDeltaEvent{ToolCallID: "c", Delta: text},
		TerminalAppendStringEvent{TerminalID: "t", Delta: text, DroppedBytes: 5},
	} {
		var joined strings.Builder
		events := fitted(t, Options{}, Origin{}, b)
		for i, e := range events {
			chunk := chunkOf(e.Body)
			joined.WriteString(chunk)
			if len(chunk) > maxDelta || !utf8.ValidString(chunk) {
				t.Errorf("%s: a chunk of %d bytes, valid %v", b.Type(), len(chunk), utf8.ValidString(chunk))
			}
			if dropped := droppedOf(e.Body); (dropped != 0) != (i == len(events)-1 && droppedOf(b) != 0) {
				t.Errorf("chunk %d says that %d bytes are lost", i, dropped)
			}
		}
		if joined.String() != text || len(events) < 8 {
			t.Errorf("%s: %d chunks do not make the text", b.Type(), len(events))
		}
	}
}

func TestLongBinaryOutputIsSplitSoThatEachPieceDecodes(t *testing.T) {
	raw := strings.Repeat("\xff\x00binary", 5000)
	for _, redact := range []*Redactor{nil, NewRedactor(nil)} {
		b := TerminalAppendStringEvent{TerminalID: "t", Encoding: "base64", Delta: base64.StdEncoding.EncodeToString([]byte(raw))}
		var joined strings.Builder
		for _, e := range fitted(t, Options{Redact: redact}, Origin{}, b) {
			joined.WriteString(chunkOf(e.Body))
		}
		if joined.String() != raw {
			t.Error("the pieces do not make the whole")
		}
	}
}

func TestTheLongestTextGivesWayFirst(t *testing.T) {
	b := ToolResultEvent{ToolCallID: "c1", ToolName: "exec_command", Display: "exit 0, 9 lines", Summary: strings.Repeat("s", 900), Content: strings.Repeat("é", 100_000)}
	got := fitted(t, Options{}, Origin{SessionID: "s"}, b)[0].Body.(ToolResultEvent)
	if !got.Truncated || !strings.HasPrefix(b.Content, got.Content) || len(got.Content) < 60<<10 || !utf8.ValidString(got.Content) {
		t.Errorf("truncated %v, %d bytes of content", got.Truncated, len(got.Content))
	}
	got.Content, got.Truncated = b.Content, false
	if d := cmp.Diff(b, got); d != "" {
		t.Errorf("more than the content was cut: %s", d)
	}
}

func TestArgumentsStayAnObjectWhenTheyAreCut(t *testing.T) {
	args, err := json.Marshal(map[string]any{"path": "a.txt", "content": strings.Repeat("x", 2<<20), "n": json.Number("12345678901234567890")})
	if err != nil {
		t.Fatal(err)
	}
	got := fitted(t, Options{}, Origin{}, ToolCallEvent{ToolCallID: "c", ToolName: "write_file", Args: args, Display: "write: a.txt"})[0].Body.(ToolCallEvent)
	var back struct {
		Path, Content string
		N             json.Number
	}
	if err := json.Unmarshal(got.Args, &back); err != nil {
		t.Fatal(err)
	}
	if !got.Truncated || back.Path != "a.txt" || back.N != "12345678901234567890" || len(back.Content) < 1_000_000 {
		t.Errorf("truncated %v, path %q, n %s, content %d bytes", got.Truncated, back.Path, back.N, len(back.Content))
	}
}

func TestWhatHasNoFlagEndsInAnEllipsis(t *testing.T) {
	got := fitted(t, Options{}, Origin{}, ErrorEvent{Code: "c", Message: strings.Repeat("environment ", 20_000)})[0].Body.(ErrorEvent)
	if !strings.HasSuffix(got.Message, "…") || len(got.Message) < 60<<10 {
		t.Errorf("%d bytes, ending in %q", len(got.Message), got.Message[len(got.Message)-10:])
	}
}

func TestLongNamesStayTheSameNameInEveryEvent(t *testing.T) {
	long := strings.Repeat("é", 5000)
	var names []string
	for _, b := range []Body{
		ToolCallStartEvent{ToolCallID: long}, ToolCallArgsDeltaEvent{ToolCallID: long}, ToolCallEvent{ToolCallID: long},
		ToolStatusEvent{ToolCallID: long}, ToolResultEvent{ToolCallID: long, Content: strings.Repeat("x", 100_000)},
	} {
		names = append(names, callID(fitted(t, Options{}, Origin{}, b)[0].Body))
	}
	for _, n := range names {
		if n != names[0] || len(n) > maxID || !utf8.ValidString(n) {
			t.Errorf("got %q and %q", n, names[0])
		}
	}
	if shortID(long) == shortID(long+"x") {
		t.Error("two names became one")
	}
	end := fitted(t, Options{}, Origin{}, RunFinishedEvent{Incomplete: []string{long}, Denials: []Denial{{ToolCallID: long}}})[0].Body.(RunFinishedEvent)
	job := fitted(t, Options{}, Origin{ItemID: long}, JobFinishedEvent{FailedItems: []string{long}})[0]
	if items := job.Body.(JobFinishedEvent).FailedItems; items[0] != job.ItemID {
		t.Errorf("the job names the row %q, the row itself is %q", items[0], job.ItemID)
	}
	if end.Incomplete[0] != names[0] || end.Denials[0].ToolCallID != names[0] {
		t.Error("the last line names the call otherwise")
	}
}

func TestWhatIsCutIsKeptAsAnArtifact(t *testing.T) {
	huge, long := strings.Repeat("x", 1<<20), strings.Repeat("x", 66<<10)
	raw := json.RawMessage(`{"a":"` + huge + `"}`)
	tests := []struct {
		body Body
		name string
		data string
	}{
		{MessageEvent{MessageID: "msg/1", Text: huge}, "message-msg_1.txt", huge},
		{ToolCallEvent{ToolCallID: "c1", Args: raw}, "args-c1.json", string(raw)},
		{ToolCallEvent{ToolCallID: "c1", ArgsRaw: huge}, "args-c1.json", huge},
		{ToolResultEvent{ToolCallID: "c1", Content: long}, "result-c1.txt", long},
		{ToolResultEvent{ToolCallID: "c1", Structured: raw}, "result-c1.json", string(raw)},
		{FileChangedEvent{ToolCallID: "../c1", Diff: long}, "diff-___c1.diff", long},
		{JobItemFinishedEvent{JobID: "j/1", Index: 3, Attempt: 2, Result: raw}, "row-3-2-j_1.json", string(raw)},
		{RunFinishedEvent{Message: huge}, "message.txt", huge},
		{RunFinishedEvent{StructuredOutput: raw}, "structured_output.json", string(raw)},
	}
	for _, tt := range tests {
		var name, data string
		store := func(n string, d []byte) (Artifact, error) {
			name, data = n, string(d)
			return Artifact{Path: "/state/" + n, Bytes: int64(len(d))}, nil
		}
		line := mustEncode(t, fitted(t, Options{Artifacts: store}, Origin{}, tt.body)[0])
		if name != tt.name || data != tt.data {
			t.Errorf("%s: %d bytes were stored as %q", tt.body.Type(), len(data), name)
		}
		if !strings.Contains(string(line), `"path":"/state/`+tt.name+`"`) || !strings.Contains(string(line), `"truncated":true`) {
			t.Errorf("%s: the line does not name the artifact: %.200s … %s", tt.body.Type(), line, line[len(line)-200:])
		}
		failing := func(string, []byte) (Artifact, error) { return Artifact{}, errors.New("disk full") }
		line = mustEncode(t, fitted(t, Options{Artifacts: failing}, Origin{}, tt.body)[0])
		if strings.Contains(string(line), `"path":"/state/`) || !strings.Contains(string(line), `"truncated":true`) {
			t.Errorf("%s: an artifact that is not there is named", tt.body.Type())
		}
	}
}

func TestOrdinaryEventsAreNotTouched(t *testing.T) {
	for _, b := range filled(plainText) {
		if d := cmp.Diff([]Body{b}, bodiesOf(fitted(t, Options{}, Origin{}, b)), cmp.Transformer("lines", func(e RunFinishedEvent) string {
			e.Lines = 0
			return fmt.Sprintf("%+v", e.Usage)
		})); d != "" {
			t.Errorf("%s: %s", b.Type(), d)
		}
	}
}

func bodiesOf(events []Event) []Body {
	var out []Body
	for _, e := range events {
		out = append(out, e.Body)
	}
	return out
}

func BenchmarkEmit(b *testing.B) {
	var discard discardSink
	for _, bb := range []struct {
		name string
		body Body
	}{
		{"message.delta", MessageDeltaEvent{MessageID: "msg_12", Delta: "a chunk of text, as models send it"}},
		{"tool.result", ToolResultEvent{ToolCallID: "call_12", ToolName: "exec_command", Display: "exit 0", Content: strings.Repeat("ok pkg/a 0.2s\n", 100)}},
		{"tool.result 1 MB", ToolResultEvent{ToolCallID: "call_12", ToolName: "exec_command", Display: "exit 0", Content: strings.Repeat("x", 1<<20)}},
	} {
		b.Run(bb.name, func(b *testing.B) {
			log := New(Options{RunID: "r", Redact: NewRedactor(nil)})
			log.Attach(Attachment{Sink: &discard, Level: Full})
			b.ReportAllocs()
			for b.Loop() {
				log.Emit(Origin{SessionID: "s"}, bb.body)
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "events/s")
		})
	}
}

// discardSink encodes as the jsonl format does.
type discardSink struct{ buf []byte }

func (s *discardSink) Emit(e Event) (err error) {
	s.buf, err = AppendJSON(s.buf[:0], e)
	return err
}

func (s *discardSink) Close() error { return nil }
