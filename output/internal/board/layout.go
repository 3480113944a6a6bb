package board

import (
	"fmt"
	"strings"
	"time"

	"drover/output/event"
	"drover/output/internal/term"
)

// Painter lays out final items as rows. It cleans every text that comes from
// outside before it cuts it.
type Painter struct {
	Style Style
	// Columns is the width of the terminal in cells.
	Columns int
}

const (
	// maxWidth is how wide a frame gets on a wide terminal.
	maxWidth = 100
	// minWidth is what rows take even if the terminal has less.
	minWidth = 18
	// narrow is the number of columns below which the right side is shortened.
	narrow = 60
	// maxName is how wide a tool's name is at most.
	maxName = 24
	// gap stands between the parts of a header.
	gap = 2
	// The most rows below a header: of output, of a plan, of an agent's
	// troubles.
	maxTail, maxPlan, maxTroubles = 5, 10, 5
)

// width is how many cells a row takes.
func (p Painter) width() int { return max(minWidth, min(p.Columns-2, maxWidth)) }

// meta is the right side of a header.
type meta struct {
	// words come first, then the duration, which is dimmed.
	words, took string
	// below is a row of its own for what a narrow terminal has no room for.
	below string
}

// Frame returns the rows of a final frame.
func (p Painter) Frame(f *Frame) []string {
	look := p.Style.of(f)
	m := p.meta(f)
	rows := []string{p.header(look, p.head(f), m, p.width())}
	if m.below != "" {
		rows = append(rows, p.below(mark{}, m.below))
	}
	switch {
	case f.Plan != nil && f.State == Done:
		rows = append(rows, p.plan(f.Plan)...)
	case f.State == Denied:
		if f.Reason != "" {
			rows = append(rows, p.below(look, term.Label(f.Reason)))
		}
	case f.State == Done && !f.BadExit() && !f.timedOut():
		if s := firstLine(f.Summary); s != "" && s != m.words && s != p.preview(f) {
			rows = append(rows, p.below(look, s))
		}
	default:
		rows = append(rows, p.tail(look, f)...)
	}
	return append(rows, p.troubles(f.Troubles)...)
}

// firstLine cleans what is text of several lines at most and must be one.
func firstLine(s string) string {
	s, _, _ = strings.Cut(strings.TrimLeft(s, " \r\n"), "\n")
	return strings.TrimSpace(term.Text(s))
}

// Still is the row of a call that has been running for another minute.
func (p Painter) Still(f *Frame, now time.Time) string {
	m := meta{words: "still running  " + Duration(now.Sub(f.Began()))}
	return p.header(p.Style.running, p.head(f), m, p.width())
}

// Note returns the rows of a remark.
func (p Painter) Note(n *Note) []string {
	look, text := p.Style.incomplete, n.Text
	switch n.Kind {
	case Failure:
		look = p.Style.failed
	case KindRow:
		look = p.Style.failed
		return []string{p.Style.paint(look.sgr, look.icon) + " " + term.Cut(term.Label(text), p.width()-gap, p.Style.ellipsis)}
	case KindGoal:
		return []string{p.goal(look, n)}
	case KindEnd:
		look, text = p.end(*n.End)
	}
	var rows []string
	lead := p.Style.paint(look.sgr, look.icon)
	for _, line := range term.Wrap(term.Label(text), p.width()-gap) {
		rows = append(rows, strings.TrimRight(lead+" "+line, " "))
		lead = " "
	}
	return rows
}

// goal is what a long session works towards, and its budget. The text of its
// remark is the agent, if it is that of one.
func (p Painter) goal(look mark, n *Note) string {
	g := n.Goal
	m := meta{words: term.Cut(term.Label(g.Status), maxName, p.Style.ellipsis)}
	if g.TokenBudget > 0 && p.Columns >= narrow {
		m.words += fmt.Sprintf("%s%s of %s", p.Style.between, tokens(g.TokensUsed), tokens(g.TokenBudget))
	}
	return p.header(look, head{agent: strings.TrimSuffix(n.Text, ": "), name: "goal", preview: term.Label(g.Objective)}, m, p.width())
}

// Line cleans a line of a text. It is not cut: copying gives back what was
// written.
func (p Painter) Line(t *Text, line string) string {
	line = p.thought(t.Thought, term.Text(line))
	if t.Agent != "" {
		line = term.Label(t.Agent) + "  " + line
	}
	return line
}

// thought dims what the model thought.
func (p Painter) thought(thought bool, line string) string {
	if thought {
		return p.Style.paint(dim, line)
	}
	return line
}

// head is the left side of a header.
type head struct {
	// agent is before the name where agents have lanes of their own.
	agent, name, preview string
	// end says that the end of the preview is what matters.
	end bool
}

func (p Painter) head(f *Frame) head {
	return head{agent: f.Agent, name: f.Name, preview: p.preview(f)}
}

// header is one row: icon, name and preview at the left, meta at the right.
// Meta is never cut; the preview gives way first, then the name.
func (p Painter) header(look mark, h head, m meta, width int) string {
	right := m.words
	if m.took != "" && right != "" {
		right += p.Style.between
	}
	room := width - term.Width(look.icon) - 1 - term.Width(right) - term.Width(m.took) - gap
	agent := ""
	if h.agent != "" {
		agent = term.Cut(term.Label(h.agent), max(0, min(maxName, room-maxName)), p.Style.ellipsis) + " "
		room -= term.Width(agent)
	}
	name := term.Cut(term.Label(h.name), min(maxName, max(1, room)), p.Style.ellipsis)
	used := term.Width(name)
	left := ""
	if room -= used + gap; h.preview != "" && room > len(p.Style.ellipsis)/2 {
		cut := term.Cut
		if h.end {
			cut = term.CutLeft
		}
		left = strings.Repeat(" ", gap) + cut(h.preview, room, p.Style.ellipsis)
		used += term.Width(left)
	}
	used += term.Width(agent)
	name = agent + p.Style.paint(bold, name)
	fill := width - term.Width(look.icon) - 1 - used - term.Width(right) - term.Width(m.took)
	row := p.Style.paint(look.sgr, look.icon) + " " + name + left
	if right == "" && m.took == "" {
		return row
	}
	return row + strings.Repeat(" ", max(1, fill)) + right + p.Style.paint(dim, m.took)
}

// below is a row under a header.
func (p Painter) below(look mark, text string) string {
	rail := look.rail
	if rail == "" {
		rail = " "
	}
	row := p.Style.paint(look.sgr, rail)
	if rail == " " {
		row = rail
	}
	return strings.TrimRight(row+" "+term.Cut(text, p.width()-gap, p.Style.ellipsis), " ")
}

// belowMarked is a row under a header with a mark of its own.
func (p Painter) belowMarked(rail, look mark, text string) string {
	room := p.width() - gap - term.Width(look.icon) - 1
	return p.Style.paint(rail.sgr, rail.rail) + " " + p.Style.paint(look.sgr, look.icon) + " " + term.Cut(text, room, p.Style.ellipsis)
}

// preview is what the call does, without the verb that the tool's name
// repeats.
func (p Painter) preview(f *Frame) string {
	if f.Plan != nil {
		for _, it := range f.Plan {
			if it.Status == "in_progress" {
				return term.Label(it.Text)
			}
		}
	}
	verb, rest, ok := strings.Cut(f.Display, ": ")
	if ok && len(verb) <= maxName && !strings.ContainsAny(verb, "`\"'/=") {
		return term.Label(rest)
	}
	if f.Display == f.Name {
		return ""
	}
	if word, rest, ok := strings.Cut(f.Display, " "); ok && repeats(f.Name, word) {
		return term.Label(rest)
	}
	return term.Label(f.Display)
}

// repeats tells whether a word says what a tool's name has just said: list of
// list_dir.
func repeats(name, word string) bool {
	word = strings.TrimSuffix(word, ":")
	return word != "" && (name == word || strings.HasPrefix(name, word+"_"))
}

func (p Painter) meta(f *Frame) meta {
	short := p.Columns < narrow
	m := meta{took: Duration(f.Took)}
	switch {
	case f.State == Denied:
		by := "by " + term.Label(f.DecidedBy)
		if f.Rule != "" {
			by = "by " + term.Label(f.Rule)
		}
		switch {
		case by == "by ":
			return meta{words: "denied"}
		case short || term.Width(by) > p.width()/2:
			return meta{words: "denied", below: by}
		}
		return meta{words: "denied " + by}
	case f.State == Cancelled, f.State == Incomplete:
		m.words = "incomplete"
		if f.State == Cancelled {
			m.words = "cancelled"
		}
		if short {
			m.took = ""
		}
	case f.timedOut():
		if short {
			return meta{words: "timeout"}
		}
		m.words = "timed out"
		if f.Timeout > 0 {
			m.words += " after " + limitText(f.Timeout)
		}
	case f.Plan != nil && f.State != Failed:
		done := 0
		for _, it := range f.Plan {
			if it.Status == "completed" {
				done++
			}
		}
		return meta{words: fmt.Sprintf("%d/%d", done, len(f.Plan))}
	case f.State == Failed && !f.BadExit(): // the command went well, if there was one
		m.words = "error"
	case f.Command && f.ExitCode == nil:
		m.words = "killed"
		if f.Signal != "" && !short {
			m.words += " by " + term.Cut(term.Label(f.Signal), maxName, p.Style.ellipsis)
		}
	case f.Command:
		m.words = fmt.Sprint(*f.ExitCode)
		if !short {
			m.words = "exit " + m.words
		}
	}
	return m
}

// tail is what must be seen of a call that did not go well: the end of its
// output, or the beginning of its error.
func (p Painter) tail(look mark, f *Frame) []string {
	var rows []string
	if lines, total := f.Tail(maxTail); total > 0 {
		for _, line := range lines {
			rows = append(rows, p.below(look, line))
		}
		if n := total - len(lines); n > 0 {
			rows = append(rows, p.below(look, p.cutLines(n, "earlier")))
		}
		return rows
	}
	lines, total := term.Output(f.Content, maxTail)
	for _, line := range lines {
		rows = append(rows, p.below(look, line))
	}
	if n := total - len(lines); n > 0 {
		rows = append(rows, p.below(look, p.cutLines(n, "more")))
	}
	return rows
}

// cutLines says how many lines are not shown.
func (p Painter) cutLines(n int, which string) string {
	word := "lines"
	if n == 1 {
		word = "line"
	}
	return fmt.Sprintf("%s %d %s %s", p.Style.ellipsis, n, which, word)
}

func (p Painter) plan(items []event.PlanItem) []string {
	var rows []string
	for i, it := range items {
		if i == maxPlan {
			return append(rows, p.below(mark{}, fmt.Sprintf("%s %d more", p.Style.ellipsis, len(items)-maxPlan)))
		}
		look := p.Style.pending
		switch it.Status {
		case "completed":
			look = p.Style.done
		case "in_progress":
			look = p.Style.running
		}
		text := term.Cut(term.Label(it.Text), p.width()-2*gap, p.Style.ellipsis)
		rows = append(rows, strings.TrimRight("  "+p.Style.paint(look.sgr, look.icon)+" "+text, " "))
	}
	return rows
}

// troubles are the refused and failed calls of agents.
func (p Painter) troubles(t Troubles) []string {
	var rows []string
	for _, f := range t.Frames {
		m := p.meta(f)
		m.below = ""
		rows = append(rows, "  "+p.header(p.Style.of(f), p.head(f), m, p.width()-gap))
	}
	if t.More > 0 {
		rows = append(rows, p.below(mark{}, fmt.Sprintf("%s %d more", p.Style.ellipsis, t.More)))
	}
	return rows
}

// end is the last row of a run.
func (p Painter) end(e event.RunFinishedEvent) (mark, string) {
	look, words := p.Style.done, []string{string(e.Status)}
	if e.ExitCode != 0 {
		look = p.Style.failed
		words[0] = fmt.Sprintf("%s, exit %d: %s", e.Status, e.ExitCode, e.Reason)
	}
	if e.Turns > 0 {
		words = append(words, plural(e.Turns, "turn"))
	}
	calls := 0
	for _, n := range e.ToolCalls {
		calls += n
	}
	if calls > 0 {
		words = append(words, plural(calls, "call"))
	}
	if n := len(e.Denials); n > 0 {
		words = append(words, fmt.Sprintf("%d refused", n))
	}
	words = append(words, Duration(time.Duration(e.DurationMS)*time.Millisecond))
	if n := e.Usage.InputTokens + e.Usage.OutputTokens; n > 0 {
		words = append(words, tokens(n))
	}
	if e.CostUSD != nil && *e.CostUSD > 0 {
		words = append(words, fmt.Sprintf("$%.2f", *e.CostUSD))
	}
	return look, strings.Join(words, p.Style.between)
}

func plural(n int, word string) string {
	if n == 1 {
		return "1 " + word
	}
	return fmt.Sprintf("%d %ss", n, word)
}
