//go:build unix

package approver

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"sync"
	"testing"

	"github.com/creack/pty"

	"drover/output/event"
)

// typed are the lines of a person.
type typed struct {
	lines     []string
	discarded int
}

func (l *typed) Discard() { l.discarded++ }

func (l *typed) ReadLine(ctx context.Context) (string, error) {
	if len(l.lines) == 0 {
		<-ctx.Done()
		return "", context.Cause(ctx)
	}
	line := l.lines[0]
	l.lines = l.lines[1:]
	return line, nil
}

func TestAPersonAnswersWithOneKey(t *testing.T) {
	ask := request("one")
	body := ask.Body.(event.ToolApprovalRequestEvent)
	body.Display, body.Reason = "run: rm\x1b[2J x", "why\nnot"
	body.SuggestedRules = []json.RawMessage{json.RawMessage(`{"id":"r1","argv":["rm"]}`)}
	for _, c := range []struct {
		name     string
		max      event.Scope
		always   bool
		lines    []string
		approved bool
		scope    event.Scope
		reason   string
	}{
		{"once", "session", false, []string{"y"}, true, "once", ""},
		{"session with a reason", "session", false, []string{"s it is only a test"}, true, "session", "it is only a test"},
		{"always", "always", true, []string{"A"}, true, "always", ""},
		{"always is not offered", "always", false, []string{"a", "n"}, false, "once", ""},
		{"no session beyond the rule", "once", true, []string{"s", "a", "y"}, true, "once", ""},
		{"no with a reason", "session", false, []string{" n  not on main "}, false, "once", "not on main"},
		{"nonsense first", "session", false, []string{"", "what?", "yes"}, true, "once", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			var out bytes.Buffer
			lines := &typed{lines: c.lines}
			a := Terminal(TerminalOptions{Lines: lines, Out: &out, Always: c.always, Clean: func(s string) string {
				return strings.NewReplacer("\x1b", "?", "\n", " ").Replace(s)
			}})
			body.MaxScope = c.max
			ask.Body = body
			got, err := a.Ask(t.Context(), ask)
			if err != nil || got.Approved != c.approved || got.Scope != c.scope || got.Reason != c.reason || got.CorrelationID != "one" {
				t.Errorf("got %+v, %v", got, err)
			}
			if strings.Contains(out.String(), "\x1b") || !strings.Contains(out.String(), "why it is asked: why not") || lines.discarded != 1 {
				t.Errorf("printed %q, discarded %d times", out.String(), lines.discarded)
			}
			if offered := c.always && c.max == "always"; offered != strings.Contains(out.String(), "a always") {
				t.Errorf("printed %q", out.String())
			}
		})
	}
}

func TestAPersonWhoTypesNonsenseRefuses(t *testing.T) {
	a := Terminal(TerminalOptions{Lines: &typed{lines: []string{"1", "2", "3", "4", "5", "y"}}, Out: io.Discard, Clean: func(s string) string { return s }})
	if got, err := a.Ask(t.Context(), request("one")); err == nil {
		t.Errorf("got %+v", got)
	}
}

func TestQuestionsAreAnsweredByNumberOrInWords(t *testing.T) {
	e := event.Event{Body: event.InputRequestedEvent{CorrelationID: "q", Kind: "question", Prompt: "Where to?", Choices: []string{"Staging", "Production"}}}
	for line, want := range map[string]string{"2": "Production", "3": "3", "the blue one": "the blue one"} {
		var out bytes.Buffer
		a := Terminal(TerminalOptions{Lines: &typed{lines: []string{"", line}}, Out: &out, Clean: func(s string) string { return s }})
		got, err := a.Ask(t.Context(), e)
		if err != nil || !got.Approved || got.Text != want || !strings.Contains(out.String(), "2  Production") {
			t.Errorf("%q: %+v, %v, %q", line, got, err, out.String())
		}
	}
}

func TestQuestionsAtTheTerminalComeOneAfterTheOther(t *testing.T) {
	var mu sync.Mutex
	inside, most := 0, 0
	lines := &counted{typed: typed{lines: []string{"y", "y", "y", "y"}}, enter: func(d int) {
		mu.Lock()
		defer mu.Unlock()
		inside += d
		most = max(most, inside)
	}}
	a := Terminal(TerminalOptions{Lines: lines, Out: io.Discard, Clean: func(s string) string { return s }})
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			if _, err := a.Ask(t.Context(), request("one")); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	if most != 1 {
		t.Errorf("%d questions at a time", most)
	}
}

type counted struct {
	typed
	enter func(int)
}

func (c *counted) ReadLine(ctx context.Context) (string, error) {
	c.enter(1)
	defer c.enter(-1)
	return c.typed.ReadLine(ctx)
}

func TestLinesOfATerminal(t *testing.T) {
	terminal, tty, err := pty.Open()
	if err != nil {
		t.Skip("no terminal to be had: ", err)
	}
	defer terminal.Close()
	defer tty.Close()
	lines := Lines(tty)
	// What was typed before the question is forgotten.
	if _, err := io.WriteString(terminal, "y\n"); err != nil {
		t.Fatal(err)
	}
	lines.Discard()
	ended, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("the run ends"))
	if line, err := lines.ReadLine(ended); err == nil {
		t.Errorf("got %q", line)
	}
	if _, err := io.WriteString(terminal, "no thanks\nrest\n"); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"no thanks", "rest"} {
		if line, err := lines.ReadLine(t.Context()); err != nil || line != want {
			t.Errorf("got %q, %v, want %q", line, err, want)
		}
	}
	// Nobody is there any more.
	if err := terminal.Close(); err != nil {
		t.Fatal(err)
	}
	if line, err := lines.ReadLine(t.Context()); err == nil {
		t.Errorf("got %q after the end", line)
	}
}
