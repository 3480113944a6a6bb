package board

import (
	"fmt"
	"strconv"
	"time"
)

// Style is the one table of icons, rails and colours.
type Style struct {
	color bool
	// pending to incomplete are the marks of frames and remarks.
	pending, streaming, awaiting, running, done, badExit, failed, denied, timedOut, cancelled, incomplete mark
	ellipsis, between, none                                                                               string
}

// mark is how a state is marked: an icon before the name, a rail before the
// rows below, a colour for both.
type mark struct{ icon, rail, sgr string }

// The colours, as parameters of SGR.
const (
	bold, dim, red, green, yellow, magenta, cyan = "1", "2", "31", "32", "33", "35", "36"
	boldYellow                                   = "1;33"
)

// NewStyle returns the style with or without colours, and with or without
// characters outside ASCII.
func NewStyle(color, ascii bool) Style {
	s := Style{
		color:   color,
		running: mark{"▸", "│", cyan}, done: mark{"✓", " ", green}, badExit: mark{"✗", "┃", yellow},
		failed: mark{"✗", "┃", red}, denied: mark{"⊘", " ", magenta}, timedOut: mark{"⧗", "╎", red},
		cancelled: mark{"-", "╎", dim}, incomplete: mark{"!", "╎", yellow}, pending: mark{"◌", " ", dim},
		streaming: mark{"~", " ", dim}, awaiting: mark{"?", " ", boldYellow},
		ellipsis: "…", between: " · ", none: "–",
	}
	if ascii {
		s.running = mark{">", "|", cyan}
		s.done, s.badExit, s.failed = mark{"+", " ", green}, mark{"x", "!", yellow}, mark{"x", "!", red}
		s.denied, s.timedOut = mark{"/", " ", magenta}, mark{"T", ":", red}
		s.cancelled, s.incomplete, s.pending = mark{"-", ":", dim}, mark{"!", ":", yellow}, mark{".", " ", dim}
		s.ellipsis, s.between, s.none = "...", ", ", "-"
	}
	return s
}

// paint wraps text in a colour, if there are colours.
func (s Style) paint(sgr, text string) string {
	if !s.color || sgr == "" || text == "" {
		return text
	}
	return "\x1b[" + sgr + "m" + text + "\x1b[m"
}

// of returns the look of a frame.
func (s Style) of(f *Frame) mark {
	switch f.State {
	case Pending:
		return s.pending
	case Streaming:
		return s.streaming
	case Awaiting:
		return s.awaiting
	case Done:
		switch {
		case f.timedOut():
			return s.timedOut
		case f.BadExit():
			return s.badExit
		}
		return s.done
	case Failed:
		if f.timedOut() {
			return s.timedOut
		}
		return s.failed
	case Denied:
		return s.denied
	case Cancelled:
		return s.cancelled
	case Incomplete:
		return s.incomplete
	}
	return s.running
}

// Duration is short: 0.4s, 42s, 3m07s, 1h04m.
func Duration(d time.Duration) string {
	if d < 9950*time.Millisecond {
		return fmt.Sprintf("%.1fs", d.Seconds())
	}
	switch d = d.Round(time.Second); {
	case d < time.Minute:
		return fmt.Sprintf("%ds", d/time.Second)
	case d < time.Hour:
		return fmt.Sprintf("%dm%02ds", d/time.Minute, d%time.Minute/time.Second)
	}
	return fmt.Sprintf("%dh%02dm", d/time.Hour, d%time.Hour/time.Minute)
}

// limitText is a duration that somebody chose: 2m rather than 2m00s.
func limitText(d time.Duration) string {
	switch {
	case d >= time.Hour && d%time.Hour == 0:
		return fmt.Sprintf("%dh", d/time.Hour)
	case d >= time.Minute && d%time.Minute == 0:
		return fmt.Sprintf("%dm", d/time.Minute)
	case d >= time.Second && d < time.Minute && d%time.Second == 0:
		return fmt.Sprintf("%ds", d/time.Second)
	}
	return Duration(d)
}

// tokens is a count of tokens: 900 tok, 45.2k tok, 1.3M tok.
func tokens(n int64) string {
	if n < 1000 {
		return fmt.Sprintf("%d tok", n)
	}
	if n < 999_950 {
		return fmt.Sprintf("%.1fk tok", float64(n)/1000)
	}
	return fmt.Sprintf("%.1fM tok", float64(n)/1e6)
}

// number is short for budgets: 6, 0.8, 200000.
func number(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }
