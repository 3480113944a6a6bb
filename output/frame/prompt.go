package frame

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"drover/output/event"
	"drover/output/internal/term"
)

// A display of a call is short and may hide the half of a command that matters.
// Whoever answers for a call sees its arguments as they are: all of them, in
// full, and with everything that has no look of its own spelt out.

// QuestionOptions say how a question looks.
type QuestionOptions struct {
	// Columns is the width of the terminal, in cells; 0 means 80.
	Columns int
	// N is the number of the question, from 1, and Of how many wait.
	N, Of int
	// Session and Always are the longer scopes that are offered.
	Session, Always bool
	// Folder is where the run works, Home the user's folder, which is shortened.
	Folder, Home string
	// ASCII uses no character outside ASCII beside those of the question.
	ASCII bool
}

// notAll is below what is too long to be shown at all.
const notAll = "  THIS IS NOT ALL OF IT: it is too long to be shown"

// Question is a request to a person as ordinary lines, without line ends.
type Question struct {
	Rows []string
	// All is what Rows leave out the middle of; it is nil if they are whole.
	All []string
}

const (
	// maxShown is how many rows a value takes before its middle is left out;
	// headShown and tailShown are what stays.
	maxShown, headShown, tailShown = 20, 15, 4
	// maxQuestion bounds, in bytes, what is shown of one value at all.
	maxQuestion = 64 << 10
	// labelWidth is that of the names at the left, in cells.
	labelWidth = 9
)

// NewQuestion lays out a request of type tool.approval.requested or
// input.requested; of other events it is empty.
func NewQuestion(e event.Event, o QuestionOptions) Question {
	if o.Columns <= 0 {
		o.Columns = 80
	}
	q := &asked{o: o}
	switch b := e.Body.(type) {
	case event.ToolApprovalRequestEvent:
		q.approval(e, b)
	case event.InputRequestedEvent:
		q.input(b)
	}
	if !q.folded {
		return Question{Rows: q.rows}
	}
	return Question{Rows: q.rows, All: q.all}
}

// asked collects the rows of a question, with and without what is left out.
type asked struct {
	o         QuestionOptions
	rows, all []string
	folded    bool
}

func (q *asked) approval(e event.Event, b event.ToolApprovalRequestEvent) {
	name := term.Label(b.ToolName)
	if b.ServerName != "" {
		name = term.Label(b.ServerName + "." + b.ToolName)
	}
	q.line("? " + name + "  needs your approval" + q.count())
	if b.SubagentSessionID != "" {
		agent := b.SubagentSessionID
		if e.Agent != "" {
			agent = e.Agent
		}
		q.value("agent", agent)
	}
	q.args(b)
	if b.RuleID != "" || b.Reason != "" {
		q.value("rule", strings.Trim(b.RuleID+": "+b.Reason, ": "))
	}
	if q.o.Session && len(b.SuggestedRules) > 0 {
		q.value("session", "allows "+string(b.SuggestedRules[0])+" until the end")
	}
	if t, err := time.Parse(time.RFC3339, b.Deadline); err == nil {
		q.value("until", t.Local().Format(time.TimeOnly)+", then it is denied")
	}
}

func (q *asked) input(b event.InputRequestedEvent) {
	q.value("?", b.Prompt)
	for i, choice := range b.Choices {
		q.line(fmt.Sprintf("  %d  %s", i+1, term.Label(choice)))
	}
}

func (q *asked) count() string {
	if q.o.Of <= 1 {
		return ""
	}
	return fmt.Sprintf(" (%d of %d)", q.o.N, q.o.Of)
}

// args shows every argument: what is run first, where it is run next, and
// what is left on one row. They are the values that are executed.
func (q *asked) args(b event.ToolApprovalRequestEvent) {
	var args map[string]any
	if err := json.Unmarshal(b.Args, &args); err != nil {
		q.value("with", string(b.Args))
		return
	}
	folder := q.o.Folder
	var rest []string
	for _, key := range slices.SortedFunc(maps.Keys(args), byWeight) {
		label, text := argument(key, args[key])
		switch {
		case label == "in":
			folder = text
		case label != "":
			q.value(label, text)
		default:
			rest = append(rest, text)
		}
	}
	if folder != "" {
		q.value("in", shortened(folder, q.o.Home))
	}
	if len(rest) > 0 {
		q.value("also", strings.Join(rest, " "))
	}
	if b.Truncated {
		q.line(notAll)
	}
}

// labels names the arguments that a person looks for first, in that order.
var labels = []struct{ key, label string }{
	{"cmd", "command"}, {"command", "command"}, {"path", "path"}, {"url", "url"}, {"host", "host"},
	{"input", "input"}, {"patch", "patch"}, {"workdir", "in"}, {"cwd", "in"}, {"justification", "says"},
}

func byWeight(a, b string) int {
	weight := func(key string) int {
		for i, l := range labels {
			if l.key == key {
				return i
			}
		}
		return len(labels)
	}
	if d := weight(a) - weight(b); d != 0 {
		return d
	}
	return strings.Compare(a, b)
}

// argument is how an argument is shown: with a label of its own, or, where the
// label is empty, as a pair among others.
func argument(key string, v any) (label, text string) {
	for _, l := range labels {
		if l.key != key {
			continue
		}
		switch v := v.(type) {
		case string:
			return l.label, v
		case []any:
			if words, ok := quoted(v); ok {
				return l.label, words
			}
		}
	}
	raw, err := json.Marshal(v)
	if err != nil {
		raw = []byte("?") // it was JSON
	}
	if s, ok := v.(string); ok && len(s) > 40 {
		return key, s
	}
	return "", key + "=" + string(raw)
}

// quoted joins the words of a command so that each can be told from the next.
func quoted(list []any) (string, bool) {
	var words []string
	for _, v := range list {
		w, ok := v.(string)
		if !ok {
			return "", false
		}
		if w == "" || strings.ContainsFunc(w, func(r rune) bool {
			return !strings.ContainsRune("%+,-./:=@_", r) && (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z')
		}) {
			w = "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
		}
		words = append(words, w)
	}
	return strings.Join(words, " "), true
}

// shortened writes the user's folder as ~.
func shortened(path, home string) string {
	if home == "" || home == "/" {
		return path
	}
	if path == home {
		return "~"
	}
	if rest, ok := strings.CutPrefix(path, strings.TrimSuffix(home, "/")+"/"); ok {
		return "~/" + rest
	}
	return path
}

func (q *asked) line(row string) {
	q.rows = append(q.rows, row)
	q.all = append(q.all, row)
}

// value shows a value beside its name. A row ends behind each line break, which
// is spelt out all the same; longer rows are left to the terminal to wrap, so
// that copying gives back what is executed.
func (q *asked) value(name, text string) {
	cut := len(text) > maxQuestion
	if cut {
		text = strings.ToValidUTF8(text[:maxQuestion], "")
	}
	lead := "  " + term.Pad(term.Label(name), labelWidth)
	if name == "?" {
		lead = "? "
	}
	indent := strings.Repeat(" ", term.Width(lead))
	var whole, wrapped []string
	for _, piece := range pieces(text) {
		whole = append(whole, lead+piece)
		for _, row := range term.Chop(piece, q.o.Columns-len(indent)-1) {
			wrapped = append(wrapped, lead+row)
			lead = indent
		}
	}
	if len(wrapped) <= maxShown {
		q.rows = append(q.rows, whole...)
	} else {
		q.folded = true
		q.rows = append(q.rows, q.fold(wrapped, indent)...)
	}
	q.all = append(q.all, whole...)
	if cut {
		q.line(notAll)
	}
}

// fold leaves out the middle of many rows.
func (q *asked) fold(rows []string, indent string) []string {
	dots := "…"
	if q.o.ASCII {
		dots = "..."
	}
	out := append([]string(nil), rows[:headShown]...)
	out = append(out, fmt.Sprintf("%s%s %d rows, [v]iew all", indent, dots, len(rows)-headShown-tailShown))
	return append(out, rows[len(rows)-tailShown:]...)
}

// pieces cleans a value as one label and breaks it behind each line break.
func pieces(text string) []string {
	if !strings.Contains(text, "\n") {
		return []string{term.Label(text)}
	}
	var out []string
	for rest := text; rest != ""; {
		line, after, found := strings.Cut(rest, "\n")
		// The line break makes each piece one in which something is escaped, so
		// that backslashes mean the same in all of them.
		piece := term.Label(line + "\n")
		if !found {
			piece = strings.TrimSuffix(piece, `\n`)
		}
		out, rest = append(out, piece), after
	}
	return out
}
