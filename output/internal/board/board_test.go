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
