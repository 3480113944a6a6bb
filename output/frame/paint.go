package frame

import (
	"strconv"
)

// What may be sent to the terminal beside text, CR, LF and the colours of
// board.Style. There is no absolute position, no saved cursor, no scroll region
// and no query among them, so that nothing outlives a write and nothing is
// waited for.
const (
	eraseLine   = "\x1b[K"
	eraseBelow  = "\x1b[J"
	stepRight   = "\x1b[C"
	wrapOff     = "\x1b[?7l"
	wrapOn      = "\x1b[?7h"
	cursorOff   = "\x1b[?25l"
	cursorOn    = "\x1b[?25h"
	beginSync   = "\x1b[?2026h"
	endSync     = "\x1b[?2026l"
	normal      = "\x1b[m"
	nextLine    = "\r\n"
	eraseRegion = "\r" + eraseLine + stepRight + eraseBelow + "\r"
)

// eraseRegion leaves the first cell out of what it erases below the cursor: a
// terminal that erases everything from its top left cell may push the rows into
// its history instead.

// painter turns rows into bytes. It knows what the region looks like, whose
// first cell the cursor rests at between two paints.
type painter struct {
	// rows are those on the terminal, without the blank before each. known says
	// that they are there as they were painted.
	rows  []string
	known bool
	buf   []byte
}

// forget is for when the terminal may show anything where the region was.
func (p *painter) forget() { p.known = false }

// erase is what takes the region off the terminal; nothing if there is none.
func (p *painter) erase() []byte {
	if len(p.rows) == 0 {
		return nil
	}
	p.rows, p.known = p.rows[:0], true
	return []byte(eraseRegion)
}

// paint returns what moves commits above the region and draws rows in it, to be
// written in one piece; nothing if nothing changes. It is valid until the next
// call.
func (p *painter) paint(commits, rows []string) []byte {
	if len(commits) == 0 && p.known && equal(p.rows, rows) {
		return nil
	}
	if len(commits) == 0 && len(rows) == 0 && len(p.rows) == 0 {
		return nil
	}
	b := append(p.buf[:0], beginSync+cursorOff+"\r"...)
	all := !p.known
	if len(commits) > 0 {
		b = append(b, eraseRegion...)
		for _, line := range commits {
			b = append(append(b, line...), nextLine...)
		}
		all = true
	}
	if len(rows) == 0 {
		b = append(b, eraseRegion...)
	} else {
		b = p.region(b, rows, all)
	}
	b = append(b, "\r"+cursorOn+endSync...)
	p.rows, p.known, p.buf = append(p.rows[:0], rows...), true, b
	return b
}

// region draws the rows, without wrapping, and goes back to the first one.
func (p *painter) region(b []byte, rows []string, all bool) []byte {
	shrinks := len(rows) < len(p.rows)
	b = append(b, wrapOff...)
	for i, row := range rows {
		if i > 0 {
			b = append(b, nextLine...)
		}
		// The last row of a smaller region is always drawn: what is erased
		// below begins where the cursor is.
		if all || i >= len(p.rows) || p.rows[i] != row || shrinks && i == len(rows)-1 {
			b = append(append(append(b, ' '), row...), normal+eraseLine...)
		}
	}
	if shrinks || all {
		b = append(b, eraseBelow...)
	}
	b = append(b, wrapOn...)
	if n := len(rows) - 1; n > 0 {
		b = append(strconv.AppendInt(append(b, "\x1b["...), int64(n), 10), 'A')
	}
	return b
}

func equal(a, b []string) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}
