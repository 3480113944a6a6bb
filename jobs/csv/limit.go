package csv

import "bufio"

// cellLimit passes CSV on and drops the bytes of a cell beyond the limit, so that
// a cell of any size costs no memory. What is left of such a cell is one byte
// above the limit, by which the reader behind knows it. A carriage return counts
// nothing, because the reader may drop it.
type cellLimit struct {
	src       *bufio.Reader
	max       int64
	delimiter byte

	state cellState
	// size counts the bytes of the present cell.
	size int64
	// sizes are those of the cells that were cut, in their order.
	sizes []int64
	// pending is a byte that had no room behind its quote in the latest Read.
	pending []byte
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
)

// next is the size of the next cell that was cut, in the order of the table.
func (l *cellLimit) next() int64 {
	if len(l.sizes) == 0 {
		return l.max + 1
	}
	size := l.sizes[0]
	l.sizes = l.sizes[1:]
	return size
}

// Read passes bytes on. However small p is, it gets at least one.
func (l *cellLimit) Read(p []byte) (n int, err error) {
	n = copy(p, l.pending)
	l.pending = l.pending[n:]
	for n < len(p) {
		c, err := l.src.ReadByte()
		if err != nil {
			if n > 0 {
				return n, nil
			}
			return 0, err
		}
		quote, keep := l.step(c)
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

// step follows the quotes. It tells whether the byte is passed on, and whether a
// quote that was held back goes before it.
func (l *cellLimit) step(c byte) (quote, keep bool) {
	switch l.state {
	case quotedCell:
		if c != '"' {
			return false, l.count(c)
		}
		if l.size > l.max {
			l.state = heldQuote
			return false, false
		}
		l.state = afterQuote
		return false, true
	case afterQuote:
		if c == '"' {
			l.state = quotedCell
			l.size++ // beyond the limit by one at most: both halves are passed on
			return false, true
		}
	case heldQuote:
		if c == '"' {
			l.state = quotedCell
			l.size++
			return false, false
		}
		quote = true
	default:
		if c == '"' && l.state == cellStart {
			l.state = quotedCell
			return false, true
		}
	}
	if c == l.delimiter || c == '\n' {
		l.end()
		return quote, true
	}
	if l.state == afterQuote || l.state == heldQuote {
		return quote, true // a mistake, or the CR before the line's end
	}
	l.state = plainCell
	return quote, l.count(c)
}

// count counts a byte of the cell and tells whether it is passed on.
func (l *cellLimit) count(c byte) bool {
	if c == '\r' {
		return l.size <= l.max
	}
	l.size++
	return l.size <= l.max+1
}

// end ends the cell.
func (l *cellLimit) end() {
	if l.size > l.max {
		l.sizes = append(l.sizes, l.size)
	}
	l.state, l.size = cellStart, 0
}
