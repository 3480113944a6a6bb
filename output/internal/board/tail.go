package board

import (
	"strings"

	"drover/output/internal/term"
)

// tail is what a terminal of a call has printed. Commands that run one after
// the other share one: only those that run at the same time must be told apart.
type tail struct {
	// id is the terminal that prints, or has printed last.
	id    string
	ended bool
	// within says that the last line is not finished.
	within bool
	lines  *term.Discipline
}

const (
	// maxTerminals is how many terminals of one call are told apart.
	maxTerminals = 8
	// maxTerminal is how wide the short name of a terminal is at most.
	maxTerminal = 8
)

// tail returns where the output of a terminal goes; nil is nowhere.
func (f *Frame) tail(id string) *tail {
	if f.Output == nil {
		return nil
	}
	for i := range f.tails {
		if t := &f.tails[i]; t.id == id || id == "" {
			return t
		}
	}
	if len(f.tails) == 1 && f.tails[0].ended {
		t := &f.tails[0]
		if t.within {
			t.lines.Write("\n")
		}
		*t = tail{id: id, lines: t.lines}
		return t
	}
	lines := f.Output
	switch n := len(f.tails); {
	case n == maxTerminals:
		return &f.tails[0]
	case n > 0:
		lines = term.NewDiscipline()
	}
	f.tails = append(f.tails, tail{id: id, lines: lines})
	return &f.tails[len(f.tails)-1]
}

func (f *Frame) write(id, text string) {
	if t := f.tail(id); t != nil && text != "" {
		t.lines.Write(text)
		t.within = text[len(text)-1] != '\n'
	}
}

func (f *Frame) endTail(id string) {
	for i := range f.tails {
		if t := &f.tails[i]; t.id == id {
			t.ended = true
		}
	}
}

// Tail returns the newest n lines of the output of a call, and how many there
// were in all. Where several commands ran at a time, each line begins with the
// name of its terminal.
func (f *Frame) Tail(n int) (lines []string, total int) {
	if f.Output == nil {
		return nil, 0
	}
	if len(f.tails) < 2 {
		return f.Output.Tail(n)
	}
	for _, t := range f.tails {
		more, count := t.lines.Tail(n)
		total += count
		lines = append(lines, prefixed(t.id, more)...)
	}
	return share(lines, n), total
}

// share keeps the newest lines of each terminal when there are too many.
func share(lines []string, n int) []string {
	if len(lines) <= n {
		return lines
	}
	groups := map[string][]string{}
	var order []string
	for _, l := range lines {
		name, _, _ := strings.Cut(l, " ")
		if groups[name] == nil {
			order = append(order, name)
		}
		groups[name] = append(groups[name], l)
	}
	order = order[max(0, len(order)-n):]
	var out []string
	for i, name := range order {
		each := n / len(order)
		if i < n%len(order) {
			each++
		}
		g := groups[name]
		out = append(out, g[max(0, len(g)-each):]...)
	}
	return out
}

func prefixed(id string, lines []string) []string {
	out := make([]string, len(lines))
	for i, l := range lines {
		out[i] = term.Cut(strings.ReplaceAll(term.Label(id), " ", "_"), maxTerminal, "") + " " + l
	}
	return out
}
