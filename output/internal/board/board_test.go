package board

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"drover/output/event"
	"drover/output/internal/term"
)

var start = time.Date(2026, 9, 20, 10, 0, 0, 0, time.UTC)

// at makes an event of the root session.
func at(seconds float64, b event.Body) event.Event {
	return event.Event{
		Time: start.Add(time.Duration(seconds * float64(time.Second))), RunID: "r",
		Origin: event.Origin{SessionID: "s", Turn: 1}, Body: b,
	}
}

func of(session string, e event.Event) event.Event {
	e.SessionID = session
	return e
}

func ptr[T any](v T) *T { return &v }

// show plays events and returns the rows of everything, in ASCII and without
// blank lines.
func show(columns int, events ...event.Event) []string {
	b := New(Show{})
	p := Painter{Style: NewStyle(false, true), Columns: columns}
	var rows []string
	for _, e := range events {
		b.Take(e)
		rows = append(rows, print(p, b.Ready())...)
	}
	b.End()
	return append(rows, print(p, b.Ready())...)
}

func print(p Painter, items []Item) []string {
	var rows []string
	for _, it := range items {
		switch {
		case it.Frame != nil:
			rows = append(rows, p.Frame(it.Frame)...)
		case it.Note != nil:
			rows = append(rows, p.Note(it.Note)...)
		case it.Job != nil:
			rows = append(rows, p.Job(it.Job)...)
		default:
			for _, l := range it.Text.Lines {
				rows = append(rows, "text "+p.Line(it.Text, l))
			}
		}
	}
	return rows
}

var (
	started  = event.ToolCallStartEvent{ToolCallID: "c", ToolName: "exec_command"}
	args     = event.ToolCallArgsDeltaEvent{ToolCallID: "c", Delta: "{"}
	call     = event.ToolCallEvent{ToolCallID: "c", ToolName: "exec_command", Display: "run: go test"}
	awaiting = event.ToolStatusEvent{ToolCallID: "c", ToolName: "exec_command", Status: event.StatusAwaiting}
	running  = event.ToolStatusEvent{ToolCallID: "c", ToolName: "exec_command", Status: event.StatusRunning}
	output   = event.TerminalAppendStringEvent{ToolCallID: "c", TerminalID: "t", Delta: "x\n"}
	exited   = event.TerminalCompletedEvent{ToolCallID: "c", TerminalID: "t", ExitCode: ptr(1)}
	done     = event.ToolResultEvent{ToolCallID: "c", ToolName: "exec_command"}
	failed   = event.ToolResultEvent{ToolCallID: "c", ToolName: "exec_command", IsError: true}
	refused  = event.ToolResultEvent{ToolCallID: "c", ToolName: "exec_command", IsError: true, Denied: true}
	stopped  = event.ToolIncompleteEvent{ToolCallID: "c", ToolName: "exec_command", Reason: "cancelled"}
	lost     = event.ToolIncompleteEvent{ToolCallID: "c", ToolName: "exec_command", Reason: "crash"}
)

// TestEveryEventInEveryState is the table of transitions: what a row leaves out
// stays as it is, and final states always do.
func TestEveryEventInEveryState(t *testing.T) {
	states := []State{Pending, Streaming, Awaiting, Executing, Done, Failed, Denied, Cancelled, Incomplete}
	to := func(s State) map[State]State {
		return map[State]State{Pending: s, Streaming: s, Awaiting: s, Executing: s}
	}
	status := func(s event.ToolStatus) event.Body { return event.ToolStatusEvent{ToolCallID: "c", Status: s} }
	lost := func(why event.IncompleteReason) event.Body {
		return event.ToolIncompleteEvent{ToolCallID: "c", Reason: why}
	}
	rows := []struct {
		body event.Body
		want map[State]State
	}{
		{started, nil},
		{args, map[State]State{Pending: Streaming}},
		{call, map[State]State{Pending: Executing, Streaming: Executing}},
		{event.ToolDecisionEvent{ToolCallID: "c", Effect: "allow"}, nil},
		{event.ToolDecisionEvent{ToolCallID: "c", Effect: "deny"}, nil},
		{status("pending"), nil}, {status("done"), nil}, {status("error"), nil}, {status("denied"), nil}, {status("incomplete"), nil},
		{awaiting, to(Awaiting)},
		{event.ToolApprovalRequestEvent{ToolCallID: "c"}, to(Awaiting)},
		{event.ToolApprovalResponseEvent{ToolCallID: "c", Approved: true}, to(Executing)},
		{event.ToolApprovalResponseEvent{ToolCallID: "c"}, nil}, // its result says so
		{running, to(Executing)},
		{event.TerminalNewRunningEvent{ToolCallID: "c", TerminalID: "t"}, to(Executing)},
		{output, to(Executing)},
		{exited, to(Executing)},
		{done, to(Done)},
		{failed, to(Failed)},
		{refused, to(Denied)},
		{event.ToolResultEvent{ToolCallID: "c", IsError: true, Error: &event.Err{Code: "timeout"}}, to(Failed)},
		{lost("cancelled"), to(Cancelled)}, {lost("interrupted"), to(Cancelled)},
		{lost("turn_ended"), to(Incomplete)}, {lost("crash"), to(Incomplete)}, {lost(""), to(Incomplete)},
	}
	for _, tt := range rows {
		for _, from := range states {
			want, ok := tt.want[from]
			if !ok {
				want = from
			}
			f := newFrame("c", start)
			f.State = from
			for n := range 2 { // a second one changes no more
				f.take(at(1, tt.body))
				if f.State != want {
					t.Errorf("%+v in state %d leads to %d, want %d (time %d)", tt.body, from, f.State, want, n+1)
				}
			}
		}
	}
}

// TestWhatEndsATurnEndsEachOfItsCalls, whatever state they are in and whatever
// lies between them.
func TestWhatEndsATurnEndsEachOfItsCalls(t *testing.T) {
	for _, end := range []event.Body{event.TurnFinishedEvent{}, event.SessionFinishedEvent{}, event.RunFinishedEvent{}, nil} {
		b := New(Show{})
		for i, bodies := range [][]event.Body{{started}, {started, args}, {call, awaiting}, {call, running}, {call, done}, {call, running, output}} {
			for _, body := range bodies {
				b.Take(at(float64(i), renamed(body, fmt.Sprint(i))))
			}
		}
		if end != nil {
			b.Take(at(9, end))
		} else {
			b.End()
		}
		var got []State
		for _, it := range b.Ready() {
			if it.Frame != nil {
				got = append(got, it.Frame.State)
			}
		}
		if d := cmp.Diff([]State{Incomplete, Incomplete, Incomplete, Incomplete, Done, Incomplete}, got); d != "" {
			t.Errorf("%T: %s", end, d)
		}
	}
}

// TestAnEventOfAnUnknownCallMakesItsFrame in the state that it implies.
func TestAnEventOfAnUnknownCallMakesItsFrame(t *testing.T) {
	for _, tt := range []struct {
		body event.Body
		want State
	}{
		{started, Pending}, {args, Streaming}, {call, Executing}, {awaiting, Awaiting}, {event.ToolApprovalRequestEvent{ToolCallID: "c"}, Awaiting},
		{running, Executing}, {output, Executing}, {exited, Executing}, {event.TerminalNewRunningEvent{ToolCallID: "c"}, Executing},
		{done, Done}, {failed, Failed}, {refused, Denied}, {stopped, Cancelled}, {lost, Incomplete},
	} {
		b := New(Show{})
		b.Take(at(0, tt.body))
		if f := b.frames["c"]; f == nil || f.State != tt.want {
			t.Errorf("%+v makes %+v", tt.body, f)
		}
	}
	b := New(Show{})
	b.Take(at(0, event.ToolApprovalResponseEvent{ToolCallID: "c", Approved: true}))
	if items := b.frames; len(items) != 0 {
		t.Errorf("an answer to nobody's question makes %v", items)
	}
}

func TestFinalFramesLookAsTheirStateSays(t *testing.T) {
	code := func(n int) event.Body {
		return event.TerminalCompletedEvent{ToolCallID: "c", TerminalID: "t", ExitCode: &n}
	}
	timeout := event.ToolStatusEvent{ToolCallID: "c", Status: event.StatusRunning, TimeoutSec: 120}
	tests := []struct {
		name   string
		events []event.Body
		want   []string
	}{
		{"done", []event.Body{call, running, done}, []string{"+ exec_command  go test                                                   0.1s"}},
		{"exit 0", []event.Body{call, running, output, code(0), done}, []string{"+ exec_command  go test                                           exit 0, 0.3s"}},
		{"exit 1", []event.Body{call, running, output, exited, done}, []string{"x exec_command  go test                                           exit 1, 0.3s", "! x"}},
		{"a signal", []event.Body{call, running, event.TerminalCompletedEvent{ToolCallID: "c", Signal: "SIGKILL"}, done},
			[]string{"x exec_command  go test                                killed by SIGKILL, 0.2s"}},
		{"an error", []event.Body{call, running, event.ToolResultEvent{ToolCallID: "c", IsError: true, Content: "no such file\nreally"}},
			[]string{"x exec_command  go test                                            error, 0.1s", "! no such file", "! really"}},
		{"timed out", []event.Body{call, timeout, output, event.TerminalCompletedEvent{ToolCallID: "c", Signal: "SIGTERM", TimedOut: true},
			event.ToolResultEvent{ToolCallID: "c", IsError: true, DurationMS: 120000}},
			[]string{"T exec_command  go test                              timed out after 2m, 2m00s", ": x"}},
		{"denied", []event.Body{call, event.ToolDecisionEvent{ToolCallID: "c", Effect: "deny", DecidedBy: "policy", RuleID: "no-push", Reason: "pushes\nare for people"}, refused},
			[]string{"/ exec_command  go test                                      denied by no-push", `  pushes\nare for people`}},
		{"denied by default", []event.Body{call, event.ToolDecisionEvent{ToolCallID: "c", Effect: "deny", DecidedBy: "default"}, refused},
			[]string{"/ exec_command  go test                                      denied by default"}},
		{"cancelled", []event.Body{call, running, stopped}, []string{"- exec_command  go test                                        cancelled, 0.1s"}},
		{"incomplete", []event.Body{call, running, output, lost}, []string{"! exec_command  go test                                       incomplete, 0.2s", ": x"}},
		{"nothing but a result", []event.Body{event.ToolResultEvent{ToolCallID: "c"}}, []string{"+ call                                                                    0.0s"}},
		{"a second result", []event.Body{call, running, done, failed, lost}, []string{"+ exec_command  go test                                                   0.1s"}},
		{"a result before its call", []event.Body{done, call}, []string{"+ exec_command  go test                                                   0.0s"}},
		{"a tool of a server", []event.Body{event.ToolCallEvent{ToolCallID: "c", ServerName: "github", ToolName: "get_issue", Display: "mcp github: get_issue"}, done},
			[]string{"+ github.get_issue  get_issue                                             0.1s"}},
		{"a summary", []event.Body{call, running, event.ToolResultEvent{ToolCallID: "c", Summary: "3 tests\x1b[2J"}},
			[]string{"+ exec_command  go test                                                   0.1s", `  3 tests`}},
		{"a summary of many lines", []event.Body{call, running, event.ToolResultEvent{ToolCallID: "c", Summary: "\n3 tests\r\nand more"}},
			[]string{"+ exec_command  go test                                                   0.1s", "  3 tests"}},
		{"an error after a command that went well", []event.Body{call, running, code(0), failed},
			[]string{"x exec_command  go test                                            error, 0.2s"}},
		{"a command that had no more time, and a tool that does not mind", []event.Body{call, timeout, event.TerminalCompletedEvent{ToolCallID: "c", Signal: "SIGTERM", TimedOut: true}, done},
			[]string{"T exec_command  go test                               timed out after 2m, 0.2s"}},
		{"a plan that was not taken", []event.Body{event.ToolCallEvent{ToolCallID: "c", ToolName: "update_plan", Display: "plan: 2 steps"}, event.PlanUpdatedEvent{Items: []event.PlanItem{{Text: "a"}}},
			event.ToolResultEvent{ToolCallID: "c", IsError: true, Content: "too long"}},
			[]string{"x update_plan  2 steps                                             error, 0.2s", "! too long"}},
		{"a word that repeats the name", []event.Body{event.ToolCallEvent{ToolCallID: "c", ToolName: "list_dir", Display: "list a b"}, event.ToolResultEvent{ToolCallID: "c"}},
			[]string{"+ list_dir  a b                                                           0.1s"}},
		{"interrupted", []event.Body{call, running, event.ToolIncompleteEvent{ToolCallID: "c", Reason: "interrupted"}},
			[]string{"- exec_command  go test                                        cancelled, 0.1s"}},
		{"a stream that was cut", []event.Body{call, running, output}, []string{"! exec_command  go test                                       incomplete, 0.1s", ": x"}},
		{"commands one after the other", []event.Body{call, printing("1", "one\npart"), terminalEnd("1", 0), printing("2", "two\n"), terminalEnd("2", 3), done},
			[]string{"x exec_command  go test                                           exit 3, 0.5s", "! one", "! part", "! two"}},
		{"commands at a time", []event.Body{call, printing("1", "one\n"), printing("2", "two\n"), terminalEnd("1", 0), printing("3", "three\n"), terminalEnd("3", 0), terminalEnd("2", 3), done},
			[]string{"x exec_command  go test                                           exit 3, 0.7s", "! 1 one", "! 2 two", "! 3 three"}},
		{"a command with a colon", []event.Body{event.ToolCallEvent{ToolCallID: "c", ToolName: "x", Display: "echo 'a: b'"}, done},
			[]string{"+ x  echo 'a: b'                                                          0.1s"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var events []event.Event
			for i, b := range tt.events {
				events = append(events, at(float64(i+1)/10, b))
			}
			if d := cmp.Diff(tt.want, show(80, events...)); d != "" {
				t.Error(d)
			}
		})
	}
}

func printing(terminal, text string) event.Body {
	return event.TerminalAppendStringEvent{ToolCallID: "c", TerminalID: terminal, Delta: text}
}

func terminalEnd(terminal string, code int) event.Body {
	return event.TerminalCompletedEvent{ToolCallID: "c", TerminalID: terminal, ExitCode: &code}
}

func TestNarrowTerminalsGetTheShortForms(t *testing.T) {
	deny := event.ToolDecisionEvent{ToolCallID: "c", Effect: "deny", DecidedBy: "policy", RuleID: "no-force-push"}
	long := event.ToolCallEvent{ToolCallID: "c", ToolName: "exec_command", Display: "run: git push --force origin main"}
	tests := []struct {
		name   string
		events []event.Body
		want   []string
	}{
		{"exit code", []event.Body{long, running, exited, done}, []string{"x exec_command  git push -...  1, 0.2s"}},
		{"denied", []event.Body{long, deny, refused}, []string{"/ exec_command  git push --...  denied", "  by no-force-push"}},
		{"timed out", []event.Body{long, running, event.ToolResultEvent{ToolCallID: "c", IsError: true, Error: &event.Err{Code: "timeout"}}},
			[]string{"T exec_command  git push -...  timeout"}},
		{"incomplete", []event.Body{long, running, lost}, []string{"! exec_command  git pus...  incomplete"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var events []event.Event
			for i, b := range tt.events {
				events = append(events, at(float64(i)/10, b))
			}
			if d := cmp.Diff(tt.want, show(40, events...)); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestTheEndOfALongOutputIsShown(t *testing.T) {
	events := []event.Event{at(0, call), at(0, running)}
	for i := range 300 {
		events = append(events, at(1, event.TerminalAppendStringEvent{ToolCallID: "c", TerminalID: "t", Delta: fmt.Sprintf("line %d\r\n", i)}))
	}
	got := show(80, append(events, at(2, exited), at(2, done))...)
	want := []string{"! line 295", "! line 296", "! line 297", "! line 298", "! line 299", "! ... 295 earlier lines"}
	if d := cmp.Diff(want, got[1:]); d != "" {
		t.Error(d)
	}
	if got := show(80, append(events, at(2, event.TerminalCompletedEvent{ToolCallID: "c", ExitCode: ptr(0)}), at(2, done))...); len(got) != 1 {
		t.Errorf("a command that went well shows %q", got)
	}
}

func TestItemsAreCommittedInTheOrderInWhichTheyBegan(t *testing.T) {
	id := func(n string, b event.Body) event.Body {
		switch b := b.(type) {
		case event.ToolCallEvent:
			b.ToolCallID, b.Display = n, n
			return b
		case event.ToolResultEvent:
			b.ToolCallID = n
			return b
		}
		return b
	}
	b := New(Show{})
	p := Painter{Style: NewStyle(false, true), Columns: 80}
	step := func(e event.Event) (names []string) {
		b.Take(e)
		for _, row := range print(p, b.Ready()) {
			names = append(names, strings.Join(strings.Fields(row)[:min(3, len(strings.Fields(row)))], " "))
		}
		return names
	}
	steps := []struct {
		what  string
		event event.Event
		want  []string
	}{
		{"one begins", at(0, id("1", call)), nil},
		{"two begins", at(0, id("2", call)), nil},
		{"two ends first", at(1, id("2", done)), nil},
		{"text comes behind", at(1, event.MessageDeltaEvent{MessageID: "m", Delta: "hello\nwor"}), nil},
		{"one ends: all that is final goes", at(2, id("1", done)), []string{"+ exec_command 1", "+ exec_command 2", "text hello"}},
		{"text goes line by line", at(2, event.MessageDeltaEvent{MessageID: "m", Delta: "ld\n"}), []string{"text world"}},
		{"its whole is not repeated", at(2, event.MessageEvent{MessageID: "m", Role: "assistant", Text: "hello\nworld\n"}), nil},
		{"three begins", at(3, id("3", call)), nil},
		{"three ends and waits for what may belong to it", at(3, id("3", done)), nil},
		{"another session is another lane", of("other", at(3, id("9", call))), nil},
		{"a late result is ignored", at(3, id("1", failed)), nil},
		{"four begins: three goes", at(4, id("4", call)), []string{"+ exec_command 3"}},
		{"the turn ends: four is incomplete", at(5, event.TurnFinishedEvent{}), []string{"! exec_command 4"}},
		{"nothing is committed twice", at(5, id("4", done)), nil},
		{"the end of the run ends all", at(6, event.RunFinishedEvent{Status: "success"}), []string{"! exec_command 9", "+ success, 0.0s"}},
	}
	for _, s := range steps {
		if d := cmp.Diff(s.want, step(s.event)); d != "" {
			t.Errorf("%s: %s", s.what, d)
		}
	}
}

func TestTextThatWasRevisedIsRemarked(t *testing.T) {
	got := show(80, at(0, event.MessageDeltaEvent{MessageID: "m", Delta: "one\ntwo"}), at(1, event.MessageEvent{MessageID: "m", Role: "assistant", Text: "three"}))
	if d := cmp.Diff([]string{"text one", "text two", "! text was revised, see the log"}, got); d != "" {
		t.Error(d)
	}
	got = show(80, at(0, event.MessageDeltaEvent{MessageID: "m", Delta: "one\ntwo"}), at(1, event.MessageEvent{MessageID: "m", Role: "assistant", Text: "one", Truncated: true}))
	if d := cmp.Diff([]string{"text one", "text two"}, got); d != "" {
		t.Error(d)
	}
	got = show(80, at(0, event.MessageEvent{MessageID: "m", Role: "assistant", Text: "whole\n\x1b[2Jtext"}), at(1, event.MessageEvent{MessageID: "u", Role: "user", Text: "prompt"}))
	if d := cmp.Diff([]string{"text whole", "text text"}, got); d != "" {
		t.Error(d)
	}
}

func TestPlansShowTheirSteps(t *testing.T) {
	items := []event.PlanItem{{Text: "one", Status: "completed"}, {Text: "two\n", Status: "in_progress"}}
	for range 12 {
		items = append(items, event.PlanItem{Text: "more", Status: "pending"})
	}
	plan := event.ToolCallEvent{ToolCallID: "c", ToolName: "update_plan", Display: "plan: 14 steps"}
	got := show(80, at(0, plan), at(0, running), at(0, event.PlanUpdatedEvent{Items: items}), at(1, done))
	want := []string{`+ update_plan  two\n                                                      1/14`, "  + one", `  > two\n`}
	for range 8 {
		want = append(want, "  . more")
	}
	if d := cmp.Diff(append(want, "  ... 4 more"), got); d != "" {
		t.Error(d)
	}
	if got := show(80, at(0, event.PlanUpdatedEvent{Items: items})); got != nil {
		t.Errorf("a plan of no call shows %q", got)
	}
}

func TestAgentsAreShownInTheCallThatSpawnedThem(t *testing.T) {
	agent := func(session, parent, name string, seconds float64, b event.Body) event.Event {
		e := at(seconds, b)
		e.SessionID, e.ParentSessionID, e.Agent = session, parent, name
		return e
	}
	spawn := event.ToolCallEvent{ToolCallID: "spawn", ToolName: "spawn_agent", Display: "spawn: /root/a"}
	events := []event.Event{
		at(0, spawn), agent("a", "s", "/root/a", 1, event.SessionStartedEvent{SpawnedByToolCallID: "spawn"}),
		agent("b", "a", "/root/a/b", 1, event.SessionStartedEvent{SpawnedByToolCallID: "inner"}),
	}
	for i := range 4 {
		for j, r := range []event.ToolResultEvent{done, failed} {
			c, session := call, []string{"a", "b"}[j]
			c.ToolCallID = fmt.Sprintf("%d.%d", i, j)
			c.Display = "run: " + c.ToolCallID
			r.ToolCallID = c.ToolCallID
			r.IsError = i > 0
			events = append(events, agent(session, map[string]string{"a": "s", "b": "a"}[session], "/root/x", 2, c), agent(session, map[string]string{"a": "s", "b": "a"}[session], "/root/x", 3, r))
		}
	}
	text := agent("a", "s", "/root/a", 3, event.MessageDeltaEvent{MessageID: "m", Delta: "not shown\n"})
	events = append(events, text, at(4, event.ToolResultEvent{ToolCallID: "spawn", Summary: "started"}), at(5, event.TurnFinishedEvent{}))
	got := show(80, events...)
	if len(got) != 10 || !strings.HasPrefix(got[0], "+ spawn_agent  /root/a ") || got[1] != "  started" ||
		!strings.HasPrefix(got[2], "  x exec_command  1.0 ") || got[7] != "  ... 1 more" {
		t.Errorf("got %s", strings.Join(got, "\n"))
	}
	lost := []string{
		"! agent  /root/a 4 calls, 3 failed                            incomplete, 4.0s",
		"! agent  /root/a/b 4 calls, 3 failed                          incomplete, 4.0s",
	}
	if d := cmp.Diff(lost, got[8:]); d != "" {
		t.Error(d)
	}
	for _, row := range got {
		if term.Width(row) > 78 {
			t.Errorf("%q is too wide", row)
		}
	}
	// An agent that ends later gets a row of its own.
	late := call
	late.ToolCallID = "late"
	refusal := refused
	refusal.ToolCallID = "late"
	after := show(80, append(events, agent("a", "s", "/root/a", 6, late), agent("a", "s", "/root/a", 6, refusal),
		agent("a", "s", "/root/a", 61, event.SessionFinishedEvent{Status: "completed"}))...)
	want := []string{
		"+ agent  /root/a 5 calls, 4 failed                                       1m00s",
		"  / exec_command  go test                                               denied",
		"! agent  /root/a/b 4 calls, 3 failed                         incomplete, 1m00s",
	}
	if d := cmp.Diff(want, after[8:]); d != "" {
		t.Error(d)
	}
}

func TestACommandThatOutlivesItsCallGetsARow(t *testing.T) {
	got := show(80, at(0, call), at(0, running), at(0, event.TerminalNewRunningEvent{ToolCallID: "c", TerminalID: "t", Command: "npm run dev"}),
		at(1, done), at(2, event.TurnFinishedEvent{}), at(3, output), at(12, event.TerminalCompletedEvent{ToolCallID: "c", TerminalID: "t", ExitCode: ptr(0)}))
	want := []string{
		"+ exec_command  go test                                                   1.0s",
		"+ exec_command  npm run dev                                        exit 0, 12s",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func TestWhatHasNoFrameIsRemarked(t *testing.T) {
	got := show(60, at(0, event.NoticeEvent{Level: "info", Message: "not shown"}), at(0, event.NoticeEvent{Level: "warning", Message: "config\x07: a deprecated key, which is explained at some length"}),
		at(0, event.ErrorEvent{Message: "boom"}), at(0, event.LimitWarningEvent{Limit: "cost_usd", Value: 0.8, Max: 1}),
		at(0, event.GoalUpdatedEvent{Objective: "a goal\nof many words that do not fit", Status: "active", TokenBudget: 50000, TokensUsed: 900}),
		at(0, event.ProviderRetryEvent{Attempt: 1, DelayMS: 12000, ErrorKind: "overloaded", HTTPStatus: 529, MaxAttempts: 5}),
		at(0, event.RunFinishedEvent{Status: "failed", ExitCode: 4, Reason: "auth", Turns: 1, ToolCalls: map[string]int{"a": 2}, CostUSD: ptr(1.5), Usage: event.Usage{InputTokens: 12345}}))
	want := []string{
		`! config\x07: a deprecated key, which is explained at some`, "  length", "x error: boom", "! limit cost_usd: 0.8 of 1 are used",
		`! goal  a goal\nof many w...  active, 900 tok of 50.0k tok`,
		"! provider: overloaded (529), next try in 12s (2 of 5)",
		"x failed, exit 4: auth, 1 turn, 2 calls, 0.0s, 12.3k tok,", "  $1.50",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func TestACallThatRunsLongIsMentionedOnceAMinute(t *testing.T) {
	b := New(Show{})
	p := Painter{Style: NewStyle(false, true), Columns: 80}
	b.Take(at(0, call))
	b.Take(at(0, running))
	var got []string
	for s := 0.0; s < 200; s += 15 {
		now := start.Add(time.Duration(s) * time.Second)
		for _, f := range b.Minutes(now) {
			got = append(got, p.Still(f, now))
		}
	}
	want := []string{
		"> exec_command  go test                                   still running  1m00s",
		"> exec_command  go test                                   still running  2m00s",
		"> exec_command  go test                                   still running  3m00s",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func TestColoursMarkIconRailAndNothingElse(t *testing.T) {
	b := New(Show{})
	p := Painter{Style: NewStyle(true, false), Columns: 60}
	for _, body := range []event.Body{call, running, output, exited, done, event.TurnFinishedEvent{}} {
		b.Take(at(0, body))
	}
	want := []string{
		"\x1b[33m✗\x1b[m \x1b[1mexec_command\x1b[m  go test                      exit 1 · \x1b[2m0.0s\x1b[m",
		"\x1b[33m┃\x1b[m x",
	}
	if d := cmp.Diff(want, print(p, b.Ready())); d != "" {
		t.Error(d)
	}
}

func TestRowsOfListJobsAreNotShown(t *testing.T) {
	e := at(0, call)
	e.ItemID = "row 1"
	if got := show(80, e); got != nil {
		t.Errorf("got %q", got)
	}
}

// goldenStream reads the stream that has every type of event in it.
func goldenStream(t testing.TB) []event.Event {
	t.Helper()
	f, err := os.Open("../../event/testdata/stream.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var out []event.Event
	r := event.NewReader(f)
	for {
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

func TestAStreamCutAnywhereIsShownToItsEnd(t *testing.T) {
	events := goldenStream(t)
	for n := range events {
		frames := map[string]bool{}
		for _, e := range events[:n] {
			if id := callOf(e.Body); id != "" && e.ParentSessionID == "" {
				frames[id] = true
			}
		}
		rows := show(80, events[:n]...)
		shown := 0
		for _, r := range rows {
			if r[0] == '>' || r[0] == '~' {
				t.Errorf("cut at %d: %q is not final", n, r)
			}
			if strings.Contains(r, "exec_command") || strings.Contains(r, "spawn_agent") || strings.Contains(r, "apply_patch") || strings.Contains(r, "update_plan") {
				if r[0] != ' ' {
					shown++
				}
			}
		}
		if shown != len(frames) {
			t.Errorf("cut at %d: %d frames are shown, want %d: %q", n, shown, len(frames), rows)
		}
	}
}

func TestAnyOrderOfEventsShowsEachCallOnce(t *testing.T) {
	rnd := rand.New(rand.NewPCG(7, 7))
	bodies := []event.Body{started, args, call, awaiting, running, output, exited, done, failed, refused, stopped, event.TurnFinishedEvent{}}
	for range 1000 {
		b := New(Show{})
		count := map[string]int{}
		first := map[string][]string{}
		var got []string
		collect := func() {
			for _, it := range b.Ready() {
				if it.Frame != nil && it.Frame.Output != nil {
					count[it.Frame.ID]++
					got = append(got, it.Frame.ID)
				}
			}
		}
		for range 60 {
			session, id := []string{"s1", "s2", "s3"}[rnd.IntN(3)], fmt.Sprint(rnd.IntN(3))
			e := of(session, at(rnd.Float64()*100, renamed(bodies[rnd.IntN(len(bodies))], session+id)))
			if c := callOf(e.Body); c != "" && !slices.Contains(first[session], c) {
				first[session] = append(first[session], c)
			}
			b.Take(e)
			collect()
		}
		b.End()
		collect()
		for session, want := range first {
			var have []string
			for _, id := range got {
				if strings.HasPrefix(id, session) {
					have = append(have, id)
				}
			}
			if d := cmp.Diff(want, have); d != "" {
				t.Fatalf("lane %s: %s", session, d)
			}
		}
		for id, n := range count {
			if n != 1 {
				t.Fatalf("call %s was shown %d times", id, n)
			}
		}
	}
}

// renamed gives an event's call another id.
func renamed(b event.Body, id string) event.Body {
	switch b := b.(type) {
	case event.ToolCallStartEvent:
		b.ToolCallID = id
		return b
	case event.ToolCallArgsDeltaEvent:
		b.ToolCallID = id
		return b
	case event.ToolCallEvent:
		b.ToolCallID = id
		return b
	case event.ToolStatusEvent:
		b.ToolCallID = id
		return b
	case event.TerminalAppendStringEvent:
		b.ToolCallID, b.TerminalID = id, id
		return b
	case event.TerminalCompletedEvent:
		b.ToolCallID, b.TerminalID = id, id
		return b
	case event.ToolResultEvent:
		b.ToolCallID = id
		return b
	case event.ToolIncompleteEvent:
		b.ToolCallID = id
		return b
	}
	return b
}

func TestNoRowIsTooWideOrUnsafe(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 3))
	texts := []string{"x", "", "a long text that goes on and on until nobody reads it any more, and then some", "\x1b]52;c;eA==\x07", "世界世界世界世界世界世界世界世界", "👩‍👩‍👧👩‍👩‍👧👩‍👩‍👧", "\u202e\u200b\n\t", "e\u0301\u0301\u0301", "\xff\xfe"}
	text := func() string { return texts[rnd.IntN(len(texts))] + texts[rnd.IntN(len(texts))] }
	for range 1500 {
		columns := 1 + rnd.IntN(140)
		p := Painter{Style: NewStyle(false, rnd.IntN(2) == 0), Columns: columns}
		f := newFrame("c", start)
		f.Name, f.Display, f.State = text(), text(), Done+State(rnd.IntN(5))
		f.Rule, f.DecidedBy, f.Reason, f.Summary, f.Content, f.Signal = text(), text(), text(), text(), text(), text()
		f.Command, f.TimedOut = rnd.IntN(2) == 0, rnd.IntN(2) == 0
		f.Output.Write(text() + "\n" + text())
		rows := append(p.Frame(f), p.Still(f, start.Add(time.Hour)))
		rows = append(rows, p.Note(&Note{Text: text()})...)
		for _, r := range rows {
			if w := term.Width(r); w > p.width() && !strings.Contains(r, "still running") && columns > 45 {
				t.Fatalf("at %d columns %q takes %d cells", columns, r, w)
			}
			if strings.ContainsAny(r, "\x00\x07\x1b\n\t\r\u202e\u200b") {
				t.Fatalf("%q is not safe", r)
			}
		}
	}
}

// BenchmarkTakeText is one line that grows and grows.
func BenchmarkTakeText(b *testing.B) {
	board := New(Show{})
	e := at(1, event.MessageDeltaEvent{MessageID: "m", Delta: "a chunk of text, as models send it "})
	for b.Loop() {
		board.Take(e)
		board.Ready()
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "events/s")
}

func BenchmarkTakeOutput(b *testing.B) {
	board := New(Show{})
	board.Take(at(0, call))
	e := at(1, event.TerminalAppendStringEvent{ToolCallID: "c", TerminalID: "t", Delta: strings.Repeat("x", 98) + "\r\n"})
	for b.Loop() {
		board.Take(e)
		board.Ready()
		board.Minutes(e.Time)
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "events/s")
}

// BenchmarkIntake is what a loud command costs: 200,000 pieces of 100 bytes, and
// nobody looks.
func BenchmarkIntake(b *testing.B) {
	e := at(1, event.TerminalAppendStringEvent{ToolCallID: "c", TerminalID: "t", Delta: strings.Repeat("x", 98) + "\r\n"})
	for b.Loop() {
		board := New(Show{})
		board.Take(at(0, call))
		for range 200_000 {
			board.Take(e)
		}
	}
}

// BenchmarkRegion lays out 40 items; with thousands behind one that runs long it
// must not take longer.
func BenchmarkRegion(b *testing.B) {
	for _, n := range []int{40, 4000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			board := crowd(n, rand.New(rand.NewPCG(1, 1)))
			p := Painter{Style: NewStyle(true, false), Columns: 120}
			for b.Loop() {
				p.Region(board, start.Add(time.Minute), 50)
			}
		})
	}
}

// BenchmarkRegionText is one line of a megabyte without an end.
func BenchmarkRegionText(b *testing.B) {
	board := New(Show{})
	board.Take(at(1, event.MessageDeltaEvent{MessageID: "m", Delta: strings.Repeat("words ", 1<<20/6)}))
	p := Painter{Style: NewStyle(true, false), Columns: 120}
	for b.Loop() {
		p.Region(board, start.Add(time.Minute), 50)
	}
}
