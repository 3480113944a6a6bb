package lines

import (
	"bytes"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"drover/output/event"
)

var update = flag.Bool("update", false, "write the golden files anew")

// stream is a recorded run with every type of event.
func stream(t testing.TB) []event.Event {
	t.Helper()
	f, err := os.Open("../event/testdata/stream.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var out []event.Event
	for r := event.NewReader(f); ; {
		e, err := r.Next()
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, e)
	}
}

func render(t testing.TB, o Options, events []event.Event) string {
	t.Helper()
	var out bytes.Buffer
	s := New(&out, o)
	for _, e := range events {
		if err := s.Emit(e); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestARecordedRunLooksAsItAlwaysDid(t *testing.T) {
	for name, o := range map[string]Options{
		"80.txt": {}, "40.txt": {Width: 40}, "ascii.txt": {ASCII: true}, "color.txt": {Color: true, Width: 200},
	} {
		t.Run(name, func(t *testing.T) {
			got := render(t, o, stream(t))
			golden := filepath.Join("testdata", name)
			if *update {
				if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(string(want), got); d != "" {
				t.Errorf("it is not %s any more (run with -update if that is meant): %s", golden, d)
			}
		})
	}
}

func TestTheSameEventsGiveTheSameBytes(t *testing.T) {
	if d := cmp.Diff(render(t, Options{}, stream(t)), render(t, Options{}, stream(t))); d != "" {
		t.Error(d)
	}
}

func TestWithoutColourThereIsNoEscape(t *testing.T) {
	plain := render(t, Options{}, stream(t))
	if strings.Contains(plain, "\x1b") {
		t.Error("an escape sequence without colour")
	}
	colored := render(t, Options{Color: true}, stream(t))
	for _, code := range []string{"", "1", "2", "31", "32", "33", "35", "36"} {
		colored = strings.ReplaceAll(colored, "\x1b["+code+"m", "")
	}
	if d := cmp.Diff(plain, colored); d != "" {
		t.Errorf("colour changes more than colour: %s", d)
	}
}

func TestCoreStreamsAreShownToo(t *testing.T) {
	var core []event.Event
	for _, e := range stream(t) {
		if event.LevelOf(e.Body) == event.Core {
			core = append(core, e)
		}
	}
	got := render(t, Options{}, core)
	for _, want := range []string{"I run the tests.\n", "✗ exec_command  go test ./...", "⊘ exec_command  git push", "✗ timeout, exit 14"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is missing in:\n%s", want, got)
		}
	}
}

func TestBlankLinesStandBetweenTextAndRows(t *testing.T) {
	session := event.Origin{SessionID: "s", Turn: 1}
	var events []event.Event
	for _, b := range []event.Body{
		event.MessageDeltaEvent{MessageID: "1", Delta: "one\n\ntwo"}, event.MessageEvent{MessageID: "1", Role: "assistant", Text: "one\n\ntwo"},
		event.ToolCallEvent{ToolCallID: "c", ToolName: "list_dir"}, event.ToolResultEvent{ToolCallID: "c", ToolName: "list_dir"},
		event.ToolCallEvent{ToolCallID: "d", ToolName: "list_dir"}, event.ToolResultEvent{ToolCallID: "d", ToolName: "list_dir"},
		event.MessageEvent{MessageID: "2", Role: "assistant", Text: "three"}, event.MessageEvent{MessageID: "3", Role: "assistant", Text: "four"},
	} {
		events = append(events, event.Event{Origin: session, Body: b})
	}
	row := "+ list_dir  " + "\n"
	got := strings.ReplaceAll(render(t, Options{ASCII: true, Width: 30}, events), "+ list_dir              0.0s\n", row)
	if d := cmp.Diff("one\n\ntwo\n\n"+row+row+"\nthree\n\nfour\n", got); d != "" {
		t.Error(d)
	}
}

func TestNothingFromOutsideReachesTheTerminal(t *testing.T) {
	evil := "\x1b]52;c;eA==\x07\x1b[2J\x1b[?1049h\u009b31m\u202e\u200b\r\x08\x7f"
	session := event.Origin{SessionID: "s", Turn: 1}
	child := event.Origin{SessionID: "t", ParentSessionID: "s", Agent: evil, Turn: 1}
	var events []event.Event
	add := func(o event.Origin, b event.Body) { events = append(events, event.Event{Origin: o, Body: b}) }
	add(session, event.MessageDeltaEvent{MessageID: "1", Delta: evil + "\n" + evil})
	add(session, event.ToolCallEvent{ToolCallID: "c", ToolName: evil, ServerName: evil, Display: evil})
	add(session, event.ToolDecisionEvent{ToolCallID: "c", Effect: "deny", RuleID: evil, Reason: evil, DecidedBy: event.Decider(evil)})
	add(session, event.TerminalAppendStringEvent{ToolCallID: "c", Delta: evil})
	add(session, event.TerminalCompletedEvent{ToolCallID: "c", Signal: evil})
	add(child, event.SessionStartedEvent{SpawnedByToolCallID: "c"})
	add(child, event.ToolCallEvent{ToolCallID: "d", ToolName: evil, Display: evil})
	add(child, event.ToolResultEvent{ToolCallID: "d", IsError: true, Content: evil})
	add(child, event.NoticeEvent{Level: "warning", Message: evil})
	add(session, event.PlanUpdatedEvent{Items: []event.PlanItem{{Text: evil}}})
	add(session, event.ToolResultEvent{ToolCallID: "c", IsError: true, Denied: true, Content: evil, Summary: evil, Display: evil})
	add(session, event.ErrorEvent{Message: evil})
	add(session, event.NoticeEvent{Level: "warning", Message: evil})
	add(session, event.ProviderRetryEvent{ErrorKind: evil})
	add(session, event.LimitReachedEvent{Limit: evil})
	add(session, event.RunFinishedEvent{Status: event.RunStatus(evil), Reason: evil, ExitCode: 1})
	got := render(t, Options{Width: 60}, events)
	for _, r := range got {
		if r != '\n' && r < 0x20 || r >= 0x7f && r <= 0x9f || r == 0x202e || r == 0x200b {
			t.Fatalf("%U reached the terminal: %q", r, got)
		}
	}
}

// brokenPipe fails from the first byte on.
type brokenPipe struct{}

func (brokenPipe) Write([]byte) (int, error) { return 0, syscall.EPIPE }

func TestAWriterThatFailsIsReported(t *testing.T) {
	s := New(brokenPipe{}, Options{})
	if err := s.Emit(event.Event{Body: event.ErrorEvent{Message: "x"}}); !errors.Is(err, syscall.EPIPE) {
		t.Errorf("got %v", err)
	}
}
