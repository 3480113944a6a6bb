package search

import (
	"bytes"
	"strings"
)

// finder finds the next place of a needle. It jumps from one occurrence of the
// needle's rarest byte to the next, which the processor does 16 or 32 bytes at
// a time, and compares only there.
type finder struct {
	text []byte
	fold bool
	// rare is the index of the rarest byte of text.
	rare int
	// low and high are that byte in both cases; equal if it has one.
	low, high byte
}

// common lists bytes of source text from the most to the least frequent; the
// others are rarer.
const common = " etaronisldcupmf\t(),.hgb_y/v\n=w\"x:k;*{}-0T1S2ICEqNARjz>3PDOLFM[]456789B&<'+`|U!GVH#W"

// rarity is higher for rarer bytes.
func rarity(b byte) int {
	if i := strings.IndexByte(common, b); i >= 0 {
		return i
	}
	return len(common)
}

func newFinder(n needle) finder {
	f := finder{text: []byte(n.text), fold: n.fold}
	best := -1
	for i, b := range f.text {
		worth := rarity(b)
		if f.fold && isAlpha(b) {
			worth = min(worth, rarity(b-'a'+'A')) // both cases are looked for
		}
		if worth > best {
			f.rare, best = i, worth
		}
	}
	f.low = f.text[f.rare]
	f.high = f.low
	if f.fold && isAlpha(f.low) {
		f.high = f.low - 'a' + 'A'
	}
	return f
}

// find returns the index of the first occurrence at or after from, or -1.
func (f *finder) find(data []byte, from int) int {
	if f.low != f.high {
		return f.findFolded(data, from)
	}
	last := len(data) - len(f.text) // the last possible start
	misses, start := 0, from
	for from <= last {
		i := bytes.IndexByte(data[from+f.rare:last+f.rare+1], f.low)
		if i < 0 {
			return -1
		}
		from += i
		if f.at(data, from) {
			return from
		}
		from++
		// Where the byte is not rare after all, comparing at each place is
		// slower than the library's search for the whole text.
		if misses++; misses > 16+(from-start)/16 && !f.fold && from <= last {
			if i := bytes.Index(data[from:], f.text); i < 0 {
				return -1
			}
			return from + i
		}
	}
	return -1
}

// findFolded looks for both cases of the rarest byte.
func (f *finder) findFolded(data []byte, from int) int {
	last := len(data) - len(f.text)
	low, high := -1, -1 // the next places of both, at or after from
	for from <= last {
		if low < from {
			low = next(data, from, last, f.rare, f.low)
		}
		if high < from {
			high = next(data, from, last, f.rare, f.high)
		}
		from = min(low, high)
		if from <= last && f.at(data, from) {
			return from
		}
		from++
	}
	return -1
}

// next returns the first start at or after from, and at most last, at which
// data has b at offset; beyond last if there is none.
func next(data []byte, from, last, offset int, b byte) int {
	if i := bytes.IndexByte(data[from+offset:last+offset+1], b); i >= 0 {
		return from + i
	}
	return last + 1
}

// at tells whether the text is at an index.
func (f *finder) at(data []byte, i int) bool {
	if !f.fold {
		return bytes.Equal(data[i:i+len(f.text)], f.text)
	}
	for k, b := range f.text {
		if lowerByte(data[i+k]) != b {
			return false
		}
	}
	return true
}

// finders looks for several needles at a time.
type finders []finder

func newFinders(list []needle) finders {
	out := make(finders, len(list))
	for i, n := range list {
		out[i] = newFinder(n)
	}
	return out
}

// cursor is a position of finders in one text.
type cursor struct {
	finders finders
	// at holds the next place of each, len(data) if there is none.
	at [maxNeedles]int
}

func (fs finders) start() cursor {
	c := cursor{finders: fs}
	for i := range fs {
		c.at[i] = -1
	}
	return c
}

// find returns the first place of any needle at or after from, or -1.
func (c *cursor) find(data []byte, from int) int {
	best := len(data)
	for i := range c.finders {
		if c.at[i] < from {
			if c.at[i] = c.finders[i].find(data, from); c.at[i] < 0 {
				c.at[i] = len(data)
			}
		}
		best = min(best, c.at[i])
	}
	if best == len(data) {
		return -1
	}
	return best
}
