package board

import (
	"fmt"
	"strings"
	"time"

	"drover/output/internal/term"
)

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
