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

	"drover/output/event"
)

// TerminalOptions are the terminal of a person.
type TerminalOptions struct {
	// Lines reads the person's lines.
	Lines LineReader
	// Out is where questions are printed; it is never standard output.
	Out io.Writer
	// Clean makes untrusted text safe to print on one line.
	Clean func(string) string
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
}

// Terminal asks the person at the terminal, in plain lines. Several requests are
// asked one after the other.
func Terminal(o TerminalOptions) Approver {
	return &terminal{TerminalOptions: o, turn: make(chan struct{}, 1)}
}

// By returns tty.
func (t *terminal) By() event.Decider { return "tty" }

// Close does nothing: the terminal is not ours.
func (t *terminal) Close() error { return nil }

// maxTries is how often a person may answer with something else.
const maxTries = 5

// Ask prints the request and reads lines until one is an answer.
func (t *terminal) Ask(ctx context.Context, e event.Event) (Answer, error) {
	select {
	case t.turn <- struct{}{}:
		defer func() { <-t.turn }()
	case <-ctx.Done():
		return Answer{}, context.Cause(ctx)
	}
	t.Lines.Discard()
	switch b := e.Body.(type) {
	case event.ToolApprovalRequestEvent:
		return t.approve(ctx, b)
	case event.InputRequestedEvent:
		return t.input(ctx, b)
	}
	return Answer{}, fmt.Errorf("%s is no request", e.Body.Type())
}

// maxShownRule bounds a rule on the screen. One that is longer cannot be chosen.
const maxShownRule = 2000

func (t *terminal) approve(ctx context.Context, b event.ToolApprovalRequestEvent) (Answer, error) {
	t.print("\n? %s\n", t.Clean(firstOf(b.Display, b.ToolName)))
	t.whole(b)
	if b.SubagentSessionID != "" {
		t.print("  asked by the agent of session %s\n", t.Clean(b.SubagentSessionID))
	}
	if b.Reason != "" {
		t.print("  why it is asked: %s\n", t.Clean(b.Reason))
	}
	shown := len(b.SuggestedRules) == 0 || len(b.SuggestedRules[0]) <= maxShownRule
	session := b.MaxScope != "once" && shown
	always := b.MaxScope == "always" && shown && t.Always && len(b.SuggestedRules) > 0
	if session && len(b.SuggestedRules) > 0 {
		t.print("  for longer it allows: %s\n", t.Clean(string(b.SuggestedRules[0])))
	}
	keys := "y once"
	if session {
		keys += ", s for this session"
	}
	if always {
		keys += ", a always"
	}
	keys += ", n no; a reason may follow"
	for range maxTries {
		t.print("  allow it? (%s): ", keys)
		line, err := t.Lines.ReadLine(ctx)
		if err != nil {
			t.print("\n")
			return Answer{}, t.nobody(ctx, err)
		}
		key, reason, _ := strings.Cut(strings.TrimSpace(line), " ")
		a := Answer{CorrelationID: b.CorrelationID, Scope: "once", Reason: cut(strings.TrimSpace(reason), maxReason)}
		switch key := strings.ToLower(key); {
		case key == "y" || key == "yes":
			a.Approved = true
		case (key == "s" || key == "session") && session:
			a.Approved, a.Scope = true, "session"
		case (key == "a" || key == "always") && always:
			a.Approved, a.Scope = true, "always"
		case key == "n" || key == "no":
		default:
			continue
		}
		return a, nil
	}
	return Answer{}, errors.New("the person at the terminal gave no answer that could be read")
}

func (t *terminal) input(ctx context.Context, b event.InputRequestedEvent) (Answer, error) {
	t.print("\n? %s\n", t.Clean(b.Prompt))
	for i, choice := range b.Choices {
		t.print("  %d  %s\n", i+1, t.Clean(choice))
	}
	for range maxTries {
		t.print("  your answer (a number or words): ")
		line, err := t.Lines.ReadLine(ctx)
		if err != nil {
			t.print("\n")
			return Answer{}, t.nobody(ctx, err)
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

func (t *terminal) print(format string, args ...any) {
	fmt.Fprintf(t.Out, format, args...)
}

func (t *terminal) nobody(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return fmt.Errorf("nobody can answer at the terminal: %w", err)
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
