package frame

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"drover/output/event"
	"drover/output/internal/board"
	"drover/output/internal/term"
	"drover/output/lines"
)

// attacks are what text from outside may hold to reach the terminal, or to look
// like something else.
var attacks = []string{
	"\x1b]52;c;aGk=\x07", "\x1b]52;c;aGk=\x1b\\", "\u009d52;c;aGk=\u009c", "\x1b]0;title\x07", "\x1b]8;;http://x\x1b\\y",
	"\x1bP1;2q\x1b\\", "\u0090q\u009c", "\x1b_x\x1b\\", "\x1b[2J\x1b[3J\x1b[H", "\u009b2J", "\x1b[?1049h\x1bc\x1b7",
	"\x1b[31mred", "\x1b[", "\x1b", "\x1b]52;c;", "\r\x1b[K\b\b", "\n\n\x07\x00\x7f\u0085\t", "\v\f",
	"a\u202eb\u202ac\u2066d\u2069", "a\u200bb\u00adc\u2028d\u2029e\ufefff\U000e0041", "\xff\xc3\x28\x9b2J\x9d0;x\x9c",
	"世界👩‍👩‍👧\ufe0f\u200d🇩🇪", "e" + strings.Repeat("\u0301", 50), strings.Repeat("long ", 100),
}

// attack returns a copy of a value with its strings changed, empty ones too; text
// gets the path of each. What is not there (no error, no element) is made up.
func attack(v reflect.Value, path string, text func(path, s string) string) reflect.Value {
	out := reflect.New(v.Type()).Elem()
	out.Set(v)
	switch v.Kind() {
	case reflect.String:
		out.SetString(text(path, v.String()))
	case reflect.Struct:
		for i := range v.NumField() {
			if out.Field(i).CanSet() {
				out.Field(i).Set(attack(v.Field(i), path+"."+v.Type().Field(i).Name, text))
			}
		}
	case reflect.Pointer:
		made := reflect.New(v.Type().Elem())
		if !v.IsNil() {
			made.Elem().Set(v.Elem())
		}
		if made.Elem().Set(attack(made.Elem(), path, text)); !v.IsNil() || !made.Elem().IsZero() {
			out.Set(made)
		}
	case reflect.Slice:
		if v.Type() == reflect.TypeFor[json.RawMessage]() {
			if raw, err := json.Marshal(text(path, "raw")); err == nil {
				out.SetBytes(raw)
			}
			return out
		}
		list := reflect.MakeSlice(v.Type(), 0, v.Len()+1)
		for i := range v.Len() {
			list = reflect.Append(list, attack(v.Index(i), path+"[]", text))
		}
		if made := attack(reflect.New(v.Type().Elem()).Elem(), path+"[]", text); v.Len() == 0 && !made.IsZero() {
			list = reflect.Append(list, made)
		}
		out.Set(list)
	case reflect.Map:
		if v.Type().Key().Kind() == reflect.String {
			out.Set(reflect.MakeMap(v.Type()))
			for _, k := range v.MapKeys() {
				out.SetMapIndex(attack(k, path+"{}", text), attack(v.MapIndex(k), path+"{}", text))
			}
		}
	}
	return out
}

func attackAll(events []event.Event, text func(path, s string) string) []event.Event {
	var out []event.Event
	for _, e := range events {
		e.Body = attack(reflect.ValueOf(e.Body), e.Body.Type(), text).Interface().(event.Body)
		e.Origin = attack(reflect.ValueOf(e.Origin), "origin", text).Interface().(event.Origin)
		out = append(out, e)
	}
	rootStays(events, out)
	return out
}

// rootStays undoes what was done to fields that say where an event belongs, so
// that not all of them are about sub-agents and rows of jobs.
func rootStays(events, attacked []event.Event) {
	for i, e := range events {
		o := &attacked[i].Origin
		if e.ParentSessionID == "" {
			o.ParentSessionID, o.Agent = "", ""
		}
		if e.ItemID == "" {
			o.ItemID = ""
		}
	}
}

var allowedColour = regexp.MustCompile("\x1b\\[(0|1|2|31|32|33|35|36|1;33)?m")

// mustBeHarmless fails if a terminal would do more with a text than print it.
func mustBeHarmless(t *testing.T, what, text string) {
	t.Helper()
	text = allowedColour.ReplaceAllString(text, "")
	if !utf8.ValidString(text) {
		t.Fatalf("%s: no valid text: %q", what, text)
	}
	for i, r := range text {
		switch {
		case r == '\n':
		case r < 0x20, r >= 0x7f && r <= 0x9f, r >= 0x202a && r <= 0x202e, r >= 0x2066 && r <= 0x2069,
			r == 0xad, r == 0x200b, r == 0x2028, r == 0x2029, r == 0xfeff, r >= 0xe0000 && r <= 0xe0fff:
			t.Fatalf("%s: %U in %q", what, r, text[max(0, i-40):min(len(text), i+40)])
		}
	}
}

// attackable is the recorded run, and what it has no place for: several terminals
// and a signal, a row at work, a job of which only the end is known, an agent
// that speaks, a refusal without a rule.
func attackable(t *testing.T) (events []event.Event) {
	t.Helper()
	for _, e := range recorded(t) {
		events = append(events, e)
		with := func(o event.Origin, bodies ...event.Body) {
			for _, b := range bodies {
				events = append(events, event.Event{Time: e.Time, RunID: e.RunID, Origin: o, Body: b})
			}
		}
		switch b := e.Body.(type) {
		case event.TerminalNewRunningEvent:
			with(e.Origin, event.TerminalNewRunningEvent{ToolCallID: b.ToolCallID, TerminalID: "t8"},
				event.TerminalAppendStringEvent{ToolCallID: b.ToolCallID, TerminalID: "t8", Delta: "eight\n"},
				event.TerminalAppendStringEvent{ToolCallID: b.ToolCallID, TerminalID: "t9", Delta: "nine\n"})
		case event.TurnStartedEvent:
			with(e.Origin, event.MessageEvent{MessageID: "m9", Role: "assistant", Text: "a text"},
				event.ToolCallEvent{ToolCallID: "c8", ToolName: "exec_command", Display: "run: x"},
				event.ToolDecisionEvent{ToolCallID: "c8", Effect: "deny", DecidedBy: "policy"},
				event.ToolResultEvent{ToolCallID: "c8", IsError: true, Denied: true},
				event.ToolCallEvent{ToolCallID: "c9", ToolName: "exec_command", Display: "run: x"},
				event.TerminalCompletedEvent{ToolCallID: "c9", TerminalID: "t1", Signal: "SIGKILL"},
				event.ToolResultEvent{ToolCallID: "c9"})
		case event.JobItemStartedEvent:
			with(event.Origin{SessionID: "row", ItemID: e.ItemID, Turn: 1}, event.ToolCallEvent{ToolCallID: "c7", ToolName: "exec_command", Display: "run: x"})
		case event.JobFinishedEvent:
			with(event.Origin{}, event.JobFinishedEvent{JobID: "job_2", Status: "partial", Total: 1, Failed: 1, FailedItems: []string{"acme"}})
		}
	}
	return events
}

func TestNoTextFromOutsideReachesTheTerminalAsItCame(t *testing.T) {
	t.Parallel()
	events := attackable(t)
	paths := map[string]bool{}
	attackAll(events, func(path, s string) string { paths[path] = true; return s })
	shown := ""
	for n, a := range attacks {
		for how, text := range map[string]func(path, s string) string{
			"after": func(_, s string) string { return s + a }, "before": func(_, s string) string { return a + s }, "instead": func(string, string) string { return a },
		} {
			what := fmt.Sprintf("%q %s everything", a, how)
			shown += attackedRun(t, what, attackAll(events, text), []int{80, 40, 120, 25}[n%4], n%2 == 0)
		}
	}
	// One field at a time leaves the others what they have to be for it to be
	// shown.
	for n, path := range slices.Sorted(maps.Keys(paths)) {
		a := attacks[n%len(attacks)] + "\u009d52;c;aGk=\u009c\u202e\x07" + attacks[0]
		one := attackAll(events, func(p, s string) string {
			if p == path {
				return s + a
			}
			return s
		})
		shown += attackedRun(t, fmt.Sprintf("%q in %s", a, path), one, 80, false)
	}
	// The test would say nothing if none of it was shown.
	for _, escaped := range []string{`\e]52;c;aGk=\x07`, `\u009d52;c;aGk=\u009c`, `\u202e`, `\u200b`, `\xff`, `\e[2J`} {
		if !strings.Contains(shown, escaped) {
			t.Errorf("%s is shown nowhere", escaped)
		}
	}
}

// attackedRun shows events in both formats and returns what lines print.
func attackedRun(t *testing.T, what string, events []event.Event, columns int, color bool) string {
	t.Helper()
	agents := attackedRunWith(t, what+", agents", events, columns, color, board.Show{Agents: true, Reasoning: true})
	return agents + attackedRunWith(t, what, events, columns, color, board.Show{})
}

func attackedRunWith(t *testing.T, what string, events []event.Event, columns int, color bool, show board.Show) string {
	t.Helper()
	var printed bytes.Buffer
	sink := lines.New(&printed, lines.Options{Width: columns, Color: color, Show: show})
	s := newScene(Options{Color: color, Show: show})
	size := Size{columns, 40}
	for _, e := range events {
		if err := sink.Emit(e); err != nil {
			t.Fatal(err)
		}
		s.take(e)
		for _, row := range s.commit(e.Time, size) {
			mustBeHarmless(t, what+", history", row)
		}
		for _, row := range s.rows(e.Time, size) {
			mustBeHarmless(t, what+", region", row)
			if strings.Contains(row, "\n") || term.Width(row) > max(20, columns-2) {
				t.Fatalf("%s: a row of the region takes %d cells: %q", what, term.Width(row), row)
			}
		}
	}
	if err := sink.Close(); err != nil {
		t.Fatal(err)
	}
	mustBeHarmless(t, what+", lines", printed.String())
	return printed.String()
}
