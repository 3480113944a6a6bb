package lines

import (
	"fmt"
	"strings"
	"time"

	"drover/output/event"
	"drover/output/internal/term"
)

// style is the one table of icons, rails and colours.
type style struct {
	color                                                       bool
	running, done, badExit, failed, denied, timedOut, cancelled mark
	incomplete, pending                                         mark
	railFailed, railCut, ellipsis, dot                          string
}

type mark struct{ icon, sgr string }

func newStyle(o Options) style {
	s := style{
		color:   o.Color,
		running: mark{"▸", "36"}, done: mark{"✓", "32"}, badExit: mark{"✗", "33"}, failed: mark{"✗", "31"},
		denied: mark{"⊘", "35"}, timedOut: mark{"⧗", "31"}, cancelled: mark{"-", "2"}, incomplete: mark{"!", "33"}, pending: mark{"◌", "2"},
		railFailed: "┃", railCut: "╎", ellipsis: "…", dot: "·",
	}
	if o.ASCII {
		s.running.icon, s.done.icon, s.badExit.icon, s.failed.icon = ">", "+", "x", "x"
		s.denied.icon, s.timedOut.icon, s.pending.icon = "/", "T", "."
		s.railFailed, s.railCut, s.ellipsis, s.dot = "!", ":", "...", ","
	}
	return s
}

func (s style) sgr(code, text string) string {
	if !s.color || code == "" {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

// painter makes rows of a width.
type painter struct {
	style style
	width int
}

// frame is a final frame as rows with their newlines.
func (p painter) frame(f *frame) string {
	m, rail, meta := p.look(f)
	var b strings.Builder
	b.WriteString(p.header(m, f.name, f.preview(), meta))
	if f.plan != nil {
		p.plan(&b, f.plan)
		return b.String()
	}
	lines, earlier := f.tail()
	for _, line := range lines {
		b.WriteString(p.row(p.style.sgr(m.sgr, rail)+" ", line, 2))
	}
	if earlier > 0 {
		b.WriteString(p.row(p.style.sgr(m.sgr, rail)+" ", fmt.Sprintf("%s %d earlier lines", p.style.ellipsis, earlier), 2))
	}
	if f.state == done && !f.badExit() && f.result.Summary != "" {
		b.WriteString(p.row("  ", term.Label(f.result.Summary), 2))
	}
	return b.String()
}

// look chooses icon, rail and the words on the right.
func (p painter) look(f *frame) (m mark, rail, meta string) {
	s := p.style
	took := f.took
	if took == 0 && !f.ended.IsZero() {
		took = f.ended.Sub(f.started)
	}
	with := func(word string) string { return word + " " + s.dot + " " + duration(took) }
	if s.dot == "," {
		with = func(word string) string { return word + ", " + duration(took) }
	}
	switch {
	case f.state == denied && f.rule != "":
		return s.denied, " ", "denied by " + term.Label(f.rule)
	case f.state == denied:
		return s.denied, " ", "denied by " + f.decidedBy
	case f.state == cancelled:
		return s.cancelled, s.railCut, with("cancelled")
	case f.state == incomplete:
		return s.incomplete, s.railCut, with("incomplete")
	case f.timedOut:
		return s.timedOut, s.railCut, with("timed out")
	case f.state == failed && f.badExit():
		return s.failed, s.railFailed, with(exitWord(f))
	case f.state == failed:
		return s.failed, s.railFailed, with("error")
	case f.badExit():
		return s.badExit, s.railFailed, with(exitWord(f))
	case f.plan != nil:
		done := 0
		for _, it := range f.plan {
			if it.Status == "completed" {
				done++
			}
		}
		return s.done, " ", fmt.Sprintf("%d/%d", done, len(f.plan))
	case f.command:
		return s.done, " ", with(exitWord(f))
	}
	return s.done, " ", duration(took)
}

func exitWord(f *frame) string {
	if f.exitCode == nil {
		return "killed by " + term.Label(f.signal)
	}
	return fmt.Sprintf("exit %d", *f.exitCode)
}

// header is one row: icon, name and preview at the left, meta at the right.
// meta is never cut; the preview gives way first, then the name.
func (p painter) header(m mark, name, preview, meta string) string {
	name = term.Cut(term.Label(name), 24, p.style.ellipsis)
	room := p.width - term.Width(m.icon) - 1 - term.Width(meta) - 1
	name = term.Cut(name, max(1, room), p.style.ellipsis)
	room -= term.Width(name) + 2
	left := ""
	if preview = term.Label(preview); preview != "" && room > term.Width(p.style.ellipsis) {
		left = "  " + term.Cut(preview, room, p.style.ellipsis)
	}
	gap := p.width - term.Width(m.icon) - 1 - term.Width(name) - term.Width(left) - term.Width(meta)
	return p.style.sgr(m.sgr, m.icon) + " " + p.style.sgr("1", name) + left + strings.Repeat(" ", max(1, gap)) + p.style.sgr("2", meta) + "\n"
}

// row is a row below a header.
func (p painter) row(lead, text string, leadWidth int) string {
	return strings.TrimRight(lead+term.Cut(text, p.width-leadWidth, p.style.ellipsis), " ") + "\n"
}

// line is a remark, in as many rows as it needs.
func (p painter) line(m mark, text string) string {
	var b strings.Builder
	lead := p.style.sgr(m.sgr, m.icon) + " "
	for _, part := range term.Wrap(term.Label(text), p.width-2) {
		b.WriteString(p.row(lead, part, 2))
		lead = "  "
	}
	return b.String()
}

func (p painter) plan(b *strings.Builder, items []event.PlanItem) {
	const most = 10
	for i, it := range items {
		if i == most {
			b.WriteString(p.row("  ", fmt.Sprintf("%s %d more", p.style.ellipsis, len(items)-most), 2))
			return
		}
		m := p.style.pending
		switch it.Status {
		case "completed":
			m = p.style.done
		case "in_progress":
			m = p.style.running
		}
		b.WriteString(p.row("  "+p.style.sgr(m.sgr, m.icon)+" ", term.Label(it.Text), 4))
	}
}

// end is the last row of a run.
func (p painter) end(e event.RunFinishedEvent) string {
	m, words := p.style.done, []string{string(e.Status)}
	if e.ExitCode != 0 {
		m = p.style.failed
		words[0] = fmt.Sprintf("%s, exit %d: %s", e.Status, e.ExitCode, e.Reason)
	}
	calls := 0
	for _, n := range e.ToolCalls {
		calls += n
	}
	words = append(words, fmt.Sprintf("%d turns", e.Turns), fmt.Sprintf("%d calls", calls),
		duration(time.Duration(e.DurationMS)*time.Millisecond), tokenCount(e.Usage.InputTokens+e.Usage.OutputTokens))
	if e.CostUSD != nil && *e.CostUSD > 0 {
		words = append(words, fmt.Sprintf("$%.2f", *e.CostUSD))
	}
	if n := len(e.Denials); n > 0 {
		words = append(words, fmt.Sprintf("%d refused", n))
	}
	sep := " " + p.style.dot + " "
	if p.style.dot == "," {
		sep = ", "
	}
	return p.line(m, strings.Join(words, sep))
}

func tokenCount(n int64) string {
	if n < 1000 {
		return fmt.Sprintf("%d tok", n)
	}
	return fmt.Sprintf("%.1fk tok", float64(n)/1000)
}

// duration is short: 0.4s, 42s, 3m07s, 1h04m.
func duration(d time.Duration) string {
	switch {
	case d < 10*time.Second:
		return fmt.Sprintf("%.1fs", d.Seconds())
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%dm%02ds", int(d.Minutes()), int(d.Seconds())%60)
	}
	return fmt.Sprintf("%dh%02dm", int(d.Hours()), int(d.Minutes())%60)
}
