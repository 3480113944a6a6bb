package board

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"drover/output/event"
	"drover/output/internal/term"
)

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
