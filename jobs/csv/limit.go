package csv

import (
	"bufio"
	"errors"
	"io"
)

// cellLimit passes CSV on and drops the bytes of a cell beyond the limit, so that
// a cell of any size costs no memory. What is left of such a cell is one byte
// above the limit, by which the reader behind knows it. So is the rest of a line
// behind a misplaced quote, which that reader refuses anyway.
//
// Carriage returns before a line's end are taken out, as the reader behind would
// do with one: what it sees has the size that was counted here.
type cellLimit struct {
	src       *bufio.Reader
	max       int64
	delimiter byte

	state cellState
	// size counts the bytes of the present cell.
	size int64
	// held are carriage returns of which it is not known yet whether a line's end
	// follows; replay are those of them that are bytes of a cell.
	held, replay int
	// line is the one that the reader behind is given, from 1; dropped are the
	// line ends that it is not given, dropping those of the present cell.
	line, dropped, dropping int
	// cuts are the cells that were cut, from the present record on; shift are the
	// line ends that were dropped before it.
	cuts  []cut
	shift int
	// opened is the line of the file in which the last quote was opened.
	opened int
	// pending is a byte that had no room behind its quote in the latest Read.
	pending []byte
	// passed counts the bytes that were passed on.
	passed int64
	ended  bool
}

// cut is a cell that was cut: the line of the reader behind in which it ends, its
// size, and how many line ends were dropped.
type cut struct {
	line, dropped int
	size          int64
}

type cellState int

const (
	cellStart cellState = iota
	plainCell
	quotedCell
	// afterQuote is behind a quote in a quoted cell: the cell's end, or half of a
	// doubled quote. heldQuote is the same behind one that was not passed on,
	// because the cell is being cut.
	afterQuote
	heldQuote
	// misplaced is behind a quoted cell and a carriage return, where nothing but
	// a mistake can follow; refused is the rest of a line with a mistake.
	misplaced
	refused
)

// begin tells that a record begins in the given line of the reader behind, and
// returns the line of the file.
func (l *cellLimit) begin(line int) int {
	for len(l.cuts) > 0 && l.cuts[0].line < line {
		l.next()
	}
	return line + l.shift
}

// next is the size of the next cell of the record that was cut.
func (l *cellLimit) next() int64 {
	if len(l.cuts) == 0 {
		return l.max + 1
	}
	c := l.cuts[0]
	l.cuts = l.cuts[1:]
	l.shift += c.dropped
	return c.size
}

// unclosed returns the line of the quote that is open at the end of the table, 0
// if there is none or the reader behind has not come so far.
func (l *cellLimit) unclosed(offset int64) int {
	if !l.ended || l.state != quotedCell || offset < l.passed {
		return 0
	}
	return l.opened
}

// Read passes bytes on. However small p is, it gets at least one.
func (l *cellLimit) Read(p []byte) (n int, err error) {
	defer func() { l.passed += int64(n) }()
	n = copy(p, l.pending)
	l.pending = l.pending[n:]
	for n < len(p) {
		c, err := l.byte()
		if err != nil {
			if errors.Is(err, io.EOF) && !l.ended {
				n += l.finish(p[n:])
			}
			if n > 0 {
				return n, nil
			}
			return 0, err
		}
		quote, keep := l.step(c)
		if keep && c == '\r' && l.size == l.max+1 {
			c = '.' // the reader behind would drop it before a line's end, and not know the cell
		}
		if quote {
			p[n] = '"'
			n++
		}
		switch {
		case keep && n == len(p):
			l.pending = append(l.pending[:0], c)
		case keep:
			p[n] = c
			n++
		}
		if n > 0 && l.src.Buffered() == 0 {
			return n, nil
		}
	}
	return n, nil
}

// byte is the next byte that counts.
func (l *cellLimit) byte() (byte, error) {
	for {
		if l.replay > 0 {
			l.replay--
			return '\r', nil
		}
		c, err := l.src.ReadByte()
		switch {
		case err != nil:
			return 0, err
		case c == '\r':
			l.held++
			continue
		case l.held == 0:
			return c, nil
		}
		l.replay, l.held = l.held, 0
		if c == '\n' {
			// In a quoted cell the line's end has one, the rest is text.
			l.replay--
			if l.state != quotedCell {
				l.replay = 0
			}
		}
		if l.replay == 0 {
			return c, nil
		}
		if err := l.src.UnreadByte(); err != nil {
			return 0, err
		}
	}
}

// finish ends the last cell. It returns how many bytes it has passed on.
func (l *cellLimit) finish(p []byte) (n int) {
	l.ended = true
	if l.state == heldQuote {
		l.state = afterQuote
		p[0] = '"'
		n = 1
	}
	if l.state != quotedCell {
		l.end()
	}
	return n
}

// step follows the quotes. It tells whether the byte is passed on, and whether a
// quote that was held back goes before it.
func (l *cellLimit) step(c byte) (quote, keep bool) {
	if l.state == quotedCell {
		return l.quoted(c)
	}
	if l.state == afterQuote || l.state == heldQuote {
		quote = l.state == heldQuote
		if c == '"' {
			l.state = quotedCell
			l.size++ // beyond the limit by one at most if both halves are passed on
			return false, !quote
		}
	}
	if c == '\n' || c == l.delimiter && l.state != refused && l.state != misplaced {
		l.end()
		if c == '\n' {
			l.line++
		}
		return quote, true
	}
	switch l.state {
	case afterQuote, heldQuote:
		l.state = refused
		if c == '\r' {
			l.state = misplaced
		}
		return quote, true
	case misplaced:
		if c == '\r' {
			return false, false
		}
		l.state = refused
		return false, true
	case refused:
		return false, false
	case cellStart:
		if c == '"' {
			l.state = quotedCell
			l.opened = l.line + l.dropped
			return false, true
		}
	}
	if l.state = plainCell; c == '"' {
		l.state = refused
		return false, true
	}
	return false, l.count()
}

// quoted takes a byte of a quoted cell.
func (l *cellLimit) quoted(c byte) (quote, keep bool) {
	if c == '"' {
		if l.size > l.max {
			l.state = heldQuote
			return false, false
		}
		l.state = afterQuote
		return false, true
	}
	keep = l.count()
	if c == '\n' {
		if keep {
			l.line++
		} else {
			l.dropped++
			l.dropping++
		}
	}
	return false, keep
}

// count counts a byte of the cell and tells whether it is passed on.
func (l *cellLimit) count() bool {
	l.size++
	return l.size <= l.max+1
}

// end ends the cell.
func (l *cellLimit) end() {
	if l.size > l.max {
		l.cuts = append(l.cuts, cut{line: l.line, dropped: l.dropping, size: l.size})
	}
	l.state, l.size, l.dropping = cellStart, 0, 0
}
