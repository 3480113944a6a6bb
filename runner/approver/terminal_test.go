//go:build unix

package approver

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

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

// atTerminal asks at a terminal in memory, with a question that is one row.
func atTerminal(lines LineReader, out io.Writer, always bool) Approver {
	return Terminal(TerminalOptions{
		Lines: lines, Always: always, Hold: func() (io.Writer, func()) { return out, func() {} },
		Show: func(e event.Event, n, of int, session, always bool) (rows, all []string) {
			rows = []string{fmt.Sprintf("question %d of %d, session %t, always %t", n, of, session, always)}
			if b, ok := e.Body.(event.ToolApprovalRequestEvent); ok && b.Display == "folded" {
				return rows, []string{"all of it"}
			}
			return rows, nil
		},
	})
}

func TestAPersonAnswersWithOneKey(t *testing.T) {
	rule := []json.RawMessage{json.RawMessage(`{"id":"r1","argv":["rm"]}`)}
	for _, c := range []struct {
		name     string
		max      event.Scope
		always   bool
		lines    []string
		approved bool
		scope    event.Scope
		reason   string
		prompt   string
	}{
		{"once", "session", false, []string{"y"}, true, "once", "", "[y]es once, [s]ession, [N]o: "},
		{"the word", "session", false, []string{" Yes "}, true, "once", "", "[y]es once, [s]ession, [N]o: "},
		{"session", "session", false, []string{"s"}, true, "session", "", "[y]es once, [s]ession, [N]o: "},
		{"always", "always", true, []string{"A"}, true, "always", "", "[y]es once, [s]ession, [a]lways, [N]o: "},
		{"always is not offered", "always", false, []string{"a", "n"}, false, "once", "", "[y]es once, [s]ession, [N]o: "},
		{"no session beyond the rule", "once", true, []string{"s", "y"}, true, "once", "", "[y]es once, [N]o: "},
		{"no with a reason", "session", false, []string{" n  not on main "}, false, "once", "not on main", "[y]es once"},
		{"nothing is no", "session", false, []string{""}, false, "once", "", "[y]es once"},
		{"nonsense once", "session", false, []string{"what?", "yes"}, true, "once", "", "[y]es once"},
		{"yes and more is no yes", "session", false, []string{"yes but", "n"}, false, "once", "", "[y]es once"},
		{"view what is folded", "session", false, []string{"v", "y"}, true, "once", "", "all of it"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var out bytes.Buffer
			lines := &typed{lines: c.lines}
			ask := request("one")
			body := ask.Body.(event.ToolApprovalRequestEvent)
			body.SuggestedRules, body.MaxScope, body.Display = rule, c.max, "folded"
			ask.Body = body
			got, err := atTerminal(lines, &out, c.always).Ask(t.Context(), ask)
			if err != nil || got.Approved != c.approved || got.Scope != c.scope || got.Reason != c.reason || got.CorrelationID != "one" {
				t.Errorf("got %+v, %v", got, err)
			}
			if !strings.Contains(out.String(), c.prompt) || lines.discarded != 1 {
				t.Errorf("printed %q, discarded %d times", out.String(), lines.discarded)
			}
		})
	}
}

func TestAPersonWhoTypesNonsenseRefuses(t *testing.T) {
	a := atTerminal(&typed{lines: []string{"x", "x", "y"}}, io.Discard, false)
	if got, err := a.Ask(t.Context(), request("one")); err == nil {
		t.Errorf("got %+v", got)
	}
}

// TestAQuestionThatIsOverSaysSo: whoever comes back to the terminal must not
// answer what nobody asks any more.
func TestAQuestionThatIsOverSaysSo(t *testing.T) {
	ask := request("one")
	body := ask.Body.(event.ToolApprovalRequestEvent)
	body.Deadline = time.Now().Add(-time.Second).Format(time.RFC3339)
	ask.Body = body
	for _, c := range []struct{ name, deadline, want string }{
		{"the deadline", body.Deadline, "\ndenied: no answer by "}, {"another end", "", "\nno longer asked\n"},
	} {
		var out bytes.Buffer
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(errors.New("over"))
		d := &dialogue{terminal: &terminal{TerminalOptions: TerminalOptions{Lines: &typed{}}}, out: &out}
		if _, err := d.read(ctx, "? ", c.deadline); err == nil || err.Error() != "over" || !strings.Contains(out.String(), c.want) {
			t.Errorf("%s: %v, printed %q", c.name, err, out.String())
		}
	}
}

func TestQuestionsAreAnsweredByNumberOrInWords(t *testing.T) {
	e := event.Event{Body: event.InputRequestedEvent{CorrelationID: "q", Kind: "question", Prompt: "Where to?", Choices: []string{"Staging", "Production"}}}
	for line, want := range map[string]string{"2": "Production", "3": "3", "the blue one": "the blue one"} {
		got, err := atTerminal(&typed{lines: []string{"", line}}, io.Discard, false).Ask(t.Context(), e)
		if err != nil || !got.Approved || got.Text != want {
			t.Errorf("%q: %+v, %v", line, got, err)
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
	var out bytes.Buffer
	a := atTerminal(lines, &out, false)
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

// TestQuestionsThatWaitAreCounted: a person sees how many there are.
func TestQuestionsThatWaitAreCounted(t *testing.T) {
	keys := make(chan string)
	var out bytes.Buffer
	a := atTerminal(channel(keys), &out, false).(*terminal)
	var group sync.WaitGroup
	ask := func(waiting int) {
		group.Go(func() {
			if _, err := a.Ask(t.Context(), request("one")); err != nil {
				t.Error(err)
			}
		})
		for {
			a.mu.Lock()
			n := a.waiting
			a.mu.Unlock()
			if n == waiting {
				return
			}
			runtime.Gosched()
		}
	}
	ask(1)
	ask(2)
	keys <- "y"
	keys <- "y"
	group.Wait()
	ask(1)
	keys <- "n"
	group.Wait()
	got := out.String()
	if strings.Count(got, "question 1 of ") != 2 || !strings.Contains(got, "question 2 of 2,") || !strings.Contains(got, "question 1 of 1,") {
		t.Errorf("printed %q", got)
	}
}

// channel are lines that come when the test says so.
type channel chan string

func (channel) Discard() {}

func (c channel) ReadLine(ctx context.Context) (string, error) {
	select {
	case line := <-c:
		return line, nil
	case <-ctx.Done():
		return "", context.Cause(ctx)
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
