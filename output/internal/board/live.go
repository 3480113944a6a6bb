package board

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"drover/output/internal/term"
)

// This file lays out the region: what is not final yet. It is called at each
// paint and not at each event.

const (
	// maxRegion is how many rows the region has at most; it is never more than a
	// third of the screen.
	maxRegion = 12
	// maxLiveText is how many rows an unfinished line of text gets.
	maxLiveText = 3
	// noStatus is the number of rows of a screen without room for the status.
	noStatus = 6
)

// Cap is how many rows the region may have on a screen of so many rows.
func Cap(rows int) int { return max(1, min(rows/3, maxRegion)) }

// part is an item of the region: a header, or the end of a text, with the rows
// that it would like to have below.
type part struct {
	header string
	tail   []string
	// want is how many rows of the tail it would like, got what it gets.
	want, got int
	// pick chooses so many rows of the tail; nil are the last ones.
	pick  func(n int) []string
	final bool
	text  bool
}

// Crowded tells whether there are more items than the region has rows.
func (b *Board) Crowded(rows int) bool {
	n := 0
	for _, l := range b.order {
		n += len(l.items)
	}
	return n > Cap(rows)
}

// Region returns the rows of what is not final yet, at most Cap(rows).
func (p Painter) Region(b *Board, now time.Time, rows int) []string {
	budget := Cap(rows)
	var status string
	if b.status.Open && rows >= noStatus && (len(b.jobs) == 0 || b.status.Turn > 0) {
		status = p.status(b, now)
		budget--
	}
	parts := p.parts(b, now)
	out := p.spread(parts, budget)
	if status != "" {
		out = append(out, status)
	}
	return out
}

// parts are the items in the order in which they began.
func (p Painter) parts(b *Board, now time.Time) []*part {
	type numbered struct {
		n int
		*part
	}
	var list []numbered
	for _, l := range b.order {
		for i, it := range l.items {
			if made := p.part(it, now, i == 0); made != nil {
				list = append(list, numbered{it.number, made})
			}
		}
	}
	slices.SortStableFunc(list, func(a, b numbered) int { return a.n - b.n })
	var parts []*part
	for _, it := range list {
		parts = append(parts, it.part)
	}
	for _, c := range b.living() {
		m := meta{took: elapsed(now.Sub(c.began))}
		parts = append(parts, &part{header: p.header(p.Style.running, head{name: "agent", preview: p.doing(c)}, m, p.width())})
	}
	return parts
}

// living are agents that outlived the calls that had spawned them.
func (b *Board) living() []*Child {
	var out []*Child
	for _, c := range b.children {
		if !b.show.Agents && !c.ended && c.spawn != nil && c.spawn.committed {
			out = append(out, c)
		}
	}
	slices.SortFunc(out, func(a, b *Child) int { return a.began.Compare(b.began) })
	return out
}

func (p Painter) part(it *entry, now time.Time, head bool) *part {
	switch {
	case it.frame != nil && it.frame.replayed:
		return nil
	case it.frame != nil:
		return p.live(it.frame, now)
	case it.job != nil:
		return p.jobPart(it.job, now)
	case it.note != nil:
		return &part{header: p.Note(it.note)[0], final: true}
	}
	rest := strings.TrimRight(string(it.text.rest), "\n")
	if i := strings.LastIndexByte(rest, '\n'); i >= 0 {
		rest = rest[i+1:]
	}
	if rest == "" && head {
		return nil // all of it has been committed
	}
	lines := term.Wrap(term.Text(rest), p.width())
	lines = lines[max(0, len(lines)-maxLiveText):]
	last := len(lines) - 1
	made := &part{text: true, header: p.thought(it.text.thought, lines[last]), final: it.text.done}
	for _, line := range lines[:last] {
		made.tail = append(made.tail, p.thought(it.text.thought, line))
	}
	return made
}

// live is a frame that is not committed.
func (p Painter) live(f *Frame, now time.Time) *part {
	if f.State.Final() {
		m := p.meta(f)
		return &part{header: p.header(p.Style.of(f), p.head(f), m, p.width()), final: true}
	}
	made := &part{header: p.header(p.Style.of(f), p.liveHead(f), p.liveMeta(f, now), p.width())}
	if f.State != Executing {
		return made
	}
	look := p.Style.of(f)
	for _, c := range f.Children {
		made.tail = append(made.tail, p.below(look, p.childCounts(c)))
	}
	if len(f.Children) == 0 {
		lines, _ := f.Tail(maxTail)
		for _, line := range lines {
			made.tail = append(made.tail, p.below(look, line))
		}
	}
	made.want = min(len(made.tail), maxTail)
	return made
}

// liveHead is what the call does, or the end of its arguments as they came.
func (p Painter) liveHead(f *Frame) head {
	h := p.head(f)
	switch {
	case f.State == Streaming || f.State == Awaiting && f.Display == "":
		h.preview, h.end = term.Label(f.Args), true
		if f.ArgsBytes > len(f.Args) {
			h.preview = p.Style.ellipsis + h.preview
		}
	case len(f.Children) == 1:
		h.preview = p.doing(f.Children[0])
	}
	return h
}

func (p Painter) liveMeta(f *Frame, now time.Time) meta {
	short := p.Columns < narrow
	switch f.State {
	case Pending:
		return meta{words: "pending"}
	case Streaming:
		return meta{words: bytesText(f.ArgsBytes)}
	case Awaiting:
		if short {
			return meta{words: "approval"}
		}
		return meta{words: "needs approval"}
	}
	if f.Plan != nil {
		return p.meta(f)
	}
	return meta{took: elapsed(now.Sub(f.began))}
}

// doing is what an agent does at the moment.
func (p Painter) doing(c *Child) string {
	words := []string{term.Label(c.Agent)}
	if c.Turn > 0 {
		words = append(words, fmt.Sprintf("turn %d", c.Turn))
	}
	if f := c.Now; f != nil {
		words = append(words, strings.TrimRight(term.Label(f.Name)+" "+p.preview(f), " "))
	}
	return strings.Join(words, p.Style.between)
}

func (p Painter) childCounts(c *Child) string {
	words := []string{plural(c.Calls, "call")}
	if c.Failed > 0 {
		words = append(words, fmt.Sprintf("%d failed", c.Failed))
	}
	if c.Tokens > 0 {
		words = append(words, tokens(c.Tokens))
	}
	return strings.Join(words, p.Style.between)
}

// spread gives the rows of the region to its parts, which stay in their order:
// first a row for an open text, then a header for each, then tails, one row at a
// time.
func (p Painter) spread(parts []*part, budget int) []string {
	if budget <= 0 || len(parts) == 0 {
		return nil
	}
	shown, folded := p.fold(parts, budget)
	left := budget - len(shown)
	if folded != "" {
		left--
	}
	for given := true; given && left > 0; {
		given = false
		for _, it := range shown {
			if left > 0 && it.got < it.want {
				it.got++
				left--
				given = true
			}
		}
	}
	for _, it := range shown { // nothing else wants them
		if it.text {
			it.got = min(len(it.tail), left)
			left -= it.got
		}
	}
	var out []string
	for _, it := range shown {
		switch {
		case it.text:
			out = append(append(out, it.tail[len(it.tail)-it.got:]...), it.header)
		default:
			out = append(append(out, it.header), it.rows()...)
		}
	}
	if folded != "" {
		out = append(out, folded)
	}
	return out
}

// rows are those of the tail that have a place.
func (it *part) rows() []string {
	if it.pick != nil {
		return it.pick(it.got)
	}
	return it.tail[len(it.tail)-it.got:]
}

// fold chooses the parts that get a header. What does not fit is counted in one
// row: final ones first, then those that began last.
func (p Painter) fold(parts []*part, budget int) (shown []*part, folded string) {
	if len(parts) <= budget {
		return parts, ""
	}
	keep := map[*part]bool{}
	if i := slices.IndexFunc(parts, func(it *part) bool { return it.text && !it.final }); i >= 0 {
		keep[parts[i]] = true
		if budget == 1 {
			return parts[i : i+1], ""
		}
	}
	for _, final := range []bool{false, true} {
		for _, it := range parts {
			if it.final == final && len(keep) < budget-1 {
				keep[it] = true
			}
		}
	}
	running, done := 0, 0
	for _, it := range parts {
		switch {
		case keep[it]:
			shown = append(shown, it)
		case it.final:
			done++
		default:
			running++
		}
	}
	var words []string
	if running > 0 {
		words = append(words, fmt.Sprintf("%d running", running))
	}
	if done > 0 {
		words = append(words, fmt.Sprintf("%d done", done))
	}
	row := fmt.Sprintf("%s %d more: %s", p.Style.ellipsis, running+done, strings.Join(words, ", "))
	return shown, term.Cut(row, p.width(), p.Style.ellipsis)
}

// status is the last row of the region.
func (p Painter) status(b *Board, now time.Time) string {
	s := b.Status()
	var words []string
	add := func(n int, format string) {
		if n > 0 {
			words = append(words, fmt.Sprintf(format, n))
		}
	}
	add(s.Turn, "turn %d")
	switch {
	case !s.Retry.IsZero() && now.Before(s.Retry):
		text := "provider busy, next try in " + elapsed(s.Retry.Sub(now)+time.Second-1)
		if s.Tries > 0 {
			text += fmt.Sprintf(" (%d of %d)", s.Try, s.Tries)
		}
		words = append(words, text)
	case s.Running > 0:
		add(s.Running, "%d running")
	case !s.Thinking.IsZero():
		words = append(words, "thinking  "+elapsed(now.Sub(s.Thinking)))
	case !b.writing() && s.Coming == 0 && !b.jobLive():
		words = append(words, "waiting for the model  "+elapsed(now.Sub(s.Waiting)))
	}
	if p.Columns < narrow {
		return p.fit(append(words, elapsed(now.Sub(s.Began))))
	}
	add(s.Done, "%d done")
	add(s.Failed, "%d failed")
	if s.Plan > 0 {
		words = append(words, fmt.Sprintf("plan %d/%d", s.PlanDone, s.Plan))
	}
	add(s.Background, "%d in background")
	words = append(words, elapsed(now.Sub(s.Began)))
	if s.Tokens > 0 {
		words = append(words, tokens(s.Tokens))
	}
	if s.CostUSD > 0 {
		words = append(words, fmt.Sprintf("$%.2f", s.CostUSD))
	}
	return p.fit(words)
}

// fit drops words from the right until they fit.
func (p Painter) fit(words []string) string {
	for {
		row := "  " + strings.Join(words, p.Style.between)
		if len(words) == 1 || term.Width(row) <= p.width() {
			return term.Cut(row, p.width(), p.Style.ellipsis)
		}
		words = words[:len(words)-1]
	}
}

// jobLive tells whether a list job goes on.
func (b *Board) jobLive() bool {
	for _, j := range b.jobs {
		if !j.final {
			return true
		}
	}
	return false
}

// writing tells whether a text is being written.
func (b *Board) writing() bool {
	for _, l := range b.order {
		if n := len(l.items); n > 0 && l.items[n-1].text != nil && !l.items[n-1].text.done {
			return true
		}
	}
	return false
}

// Tail returns the newest n lines of the output of a call, and how many there
// were in all. Where several commands run at a time, each line begins with the
// name of its terminal.
func (f *Frame) Tail(n int) (lines []string, total int) {
	if f.Output == nil {
		return nil, 0
	}
	lines, total = f.Output.Tail(n)
	if len(f.others) == 0 {
		return lines, total
	}
	lines = prefixed(f.first, lines)
	for _, o := range f.others {
		more, count := o.output.Tail(n)
		total += count
		lines = append(lines, prefixed(o.id, more)...)
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

// maxTerminal is how wide the short name of a terminal is at most.
const maxTerminal = 8

// elapsed is a duration that still grows: whole seconds.
func elapsed(d time.Duration) string {
	d = max(0, d).Truncate(time.Second)
	if d < 10*time.Second {
		return fmt.Sprintf("%ds", d/time.Second)
	}
	return Duration(d)
}

// bytesText is a count of bytes: 812 B, 1.4 KB.
func bytesText(n int) string {
	switch {
	case n < 1000:
		return fmt.Sprintf("%d B", n)
	case n < 1000*1000:
		return fmt.Sprintf("%.1f KB", float64(n)/1000)
	}
	return fmt.Sprintf("%.1f MB", float64(n)/1e6)
}
