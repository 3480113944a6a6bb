package approver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"drover/output/event"
)

// TerminalOptions are the terminal of a person.
type TerminalOptions struct {
	// Lines reads the person's lines.
	Lines LineReader
	// Hold gets the terminal for one question: nothing else is printed on it
	// until release.
	Hold func() (out io.Writer, release func())
	// Show lays out a request, the n-th of so many that wait, with the scopes
	// that are offered beside once. Everything in the rows is clean. all is set
	// where the rows leave something out.
	Show func(e event.Event, n, of int, session, always bool) (rows, all []string)
	// Always says that an answer may be kept for good.
	Always bool
}

// LineReader reads what a person types.
type LineReader interface {
	// Discard forgets what was typed before the question was there.
	Discard()
	// ReadLine returns the next line without its end. It ends with ctx, and with
	// an error when nobody can type.
	ReadLine(ctx context.Context) (string, error)
}

// terminal asks one question after the other.
type terminal struct {
	TerminalOptions
	turn chan struct{}

	mu sync.Mutex
	// asked is how many questions of the batch that is being worked off have
	// had their turn, and waiting how many have not been answered.
	asked, waiting int
}

// Terminal asks the person at the terminal, in plain lines. Several requests are
// asked one after the other, in the order in which they came.
func Terminal(o TerminalOptions) Approver {
	return &terminal{TerminalOptions: o, turn: make(chan struct{}, 1)}
}

// By returns tty.
func (t *terminal) By() event.Decider { return "tty" }

// Close does nothing: the terminal is not ours.
func (t *terminal) Close() error { return nil }

// maxTries is how often a person may answer with something else.
const maxTries = 2

// gather is how long the first question waits for others that come at the same
// time, so that a person sees how many there are.
const gather = 50 * time.Millisecond

// Ask prints the request and reads lines until one is an answer.
func (t *terminal) Ask(ctx context.Context, e event.Event) (Answer, error) {
	t.count(1)
	defer t.count(-1)
	select {
	case t.turn <- struct{}{}:
		defer func() { <-t.turn }()
	case <-ctx.Done():
		return Answer{}, context.Cause(ctx)
	}
	select {
	case <-time.After(gather):
	case <-ctx.Done():
		return Answer{}, context.Cause(ctx)
	}
	out, release := t.Hold()
	defer release()
	t.Lines.Discard()
	d := &dialogue{terminal: t, out: out}
	d.n, d.of = t.next()
	switch b := e.Body.(type) {
	case event.ToolApprovalRequestEvent:
		return d.approve(ctx, e, b)
	case event.InputRequestedEvent:
		return d.input(ctx, e, b)
	}
	return Answer{}, fmt.Errorf("%s is no request", e.Body.Type())
}

func (t *terminal) count(d int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.waiting += d; t.waiting == 0 {
		t.asked = 0
	}
}

// next numbers a question among those that wait together.
func (t *terminal) next() (n, of int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.asked++
	return t.asked, t.asked + t.waiting - 1
}

// dialogue is one question and its answer.
type dialogue struct {
	*terminal
	out   io.Writer
	n, of int
}

// maxShownRule bounds a rule on the screen. One that is longer cannot be chosen.
const maxShownRule = 2000

func (d *dialogue) approve(ctx context.Context, e event.Event, b event.ToolApprovalRequestEvent) (Answer, error) {
	shown := len(b.SuggestedRules) == 0 || len(b.SuggestedRules[0]) <= maxShownRule
	session := b.MaxScope != "once" && shown
	always := b.MaxScope == "always" && shown && d.Always && len(b.SuggestedRules) > 0
	rows, all := d.Show(e, d.n, d.of, session, always)
	d.print(rows)
	prompt := "[y]es once, "
	if session {
		prompt += "[s]ession, "
	}
	if always {
		prompt += "[a]lways, "
	}
	prompt += "[N]o: "
	for try := 0; try < maxTries; {
		line, err := d.read(ctx, prompt, b.Deadline)
		if err != nil {
			return Answer{}, err
		}
		key, reason, _ := strings.Cut(strings.TrimSpace(line), " ")
		a := Answer{CorrelationID: b.CorrelationID, Scope: "once", Reason: cut(strings.TrimSpace(reason), maxReason)}
		switch key := strings.ToLower(key); {
		case key == "n" || key == "no" || key == "":
			return a, nil
		case all != nil && (key == "v" || key == "view"):
			d.print(all)
			all = nil // once is enough
			continue
		case reason != "": // only a no has one
		case key == "y" || key == "yes":
			a.Approved = true
			return a, nil
		case (key == "s" || key == "session") && session:
			a.Approved, a.Scope, a.Rule = true, "session", shownRule(b)
			return a, nil
		case (key == "a" || key == "always") && always:
			a.Approved, a.Scope, a.Rule = true, "always", shownRule(b)
			return a, nil
		}
		try++
	}
	return Answer{}, errors.New("the person at the terminal gave no answer that could be read")
}

// shownRule is the rule that the question shows: the answer means no other.
func shownRule(b event.ToolApprovalRequestEvent) json.RawMessage {
	if len(b.SuggestedRules) == 0 {
		return nil
	}
	if id := SuggestedID(b.SuggestedRules[0]); id != "" {
		raw, err := json.Marshal(id)
		if err == nil {
			return raw
		}
	}
	return b.SuggestedRules[0]
}

func (d *dialogue) input(ctx context.Context, e event.Event, b event.InputRequestedEvent) (Answer, error) {
	rows, all := d.Show(e, d.n, d.of, false, false)
	if all != nil {
		rows = all
	}
	d.print(rows)
	for range maxTries {
		line, err := d.read(ctx, "your answer (a number or words): ", "")
		if err != nil {
			return Answer{}, err
		}
		text := strings.TrimSpace(line)
		if text == "" {
			continue
		}
		if n, err := strconv.Atoi(text); err == nil && n >= 1 && n <= len(b.Choices) {
			text = b.Choices[n-1]
		}
		return Answer{CorrelationID: b.CorrelationID, Approved: true, Text: text, Scope: "once", question: true}, nil
	}
	return Answer{}, errors.New("the person at the terminal gave no answer")
}

func (d *dialogue) print(rows []string) {
	// A terminal that takes nothing gets no answer either: the deadline ends it.
	_, _ = io.WriteString(d.out, strings.Join(rows, "\n")+"\n")
}

// read prompts for a line. What ends the question otherwise is said behind the
// prompt, so that nobody answers what is no longer asked.
func (d *dialogue) read(ctx context.Context, prompt, deadline string) (string, error) {
	_, _ = io.WriteString(d.out, prompt)
	line, err := d.Lines.ReadLine(ctx)
	if err == nil {
		return line, nil
	}
	if ctx.Err() == nil {
		d.print([]string{"", "denied: nobody can answer here"})
		return "", fmt.Errorf("nobody can answer at the terminal: %w", err)
	}
	words := "no longer asked"
	if t, bad := time.Parse(time.RFC3339, deadline); bad == nil && !time.Now().Before(t) {
		words = "denied: no answer by " + t.Local().Format(time.TimeOnly)
	}
	d.print([]string{"", words})
	return "", context.Cause(ctx)
}

// SuggestedID is the id of a suggested rule, empty if it has none.
func SuggestedID(rule json.RawMessage) string {
	var r struct {
		ID string `json:"id"`
	}
	if json.Unmarshal(rule, &r) != nil {
		return ""
	}
	return r.ID
}

// Suggested returns the suggested rule that an answer means, or nil: the one
// with the id that it names, the rule that it holds, or the first.
func (a Answer) Suggested(rules []json.RawMessage) json.RawMessage {
	var id string
	switch {
	case a.Rule == nil && len(rules) > 0:
		return rules[0]
	case a.Rule == nil:
		return nil
	case json.Unmarshal(a.Rule, &id) != nil:
		return a.Rule
	}
	if i := slices.IndexFunc(rules, func(r json.RawMessage) bool { return SuggestedID(r) == id }); i >= 0 {
		return rules[i]
	}
	return nil
}
