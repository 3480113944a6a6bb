package term

import "unicode"

// This file knows characters that take no place of their own: text can be hidden
// in them, or behind them.

const (
	zeroWidthJoiner = 0x200d
	textSelector    = 0xfe0e
	emojiSelector   = 0xfe0f
	// maxMarks is how many marks may pile up on a character. No language needs
	// half as many; more would be drawn over the rows above.
	maxMarks = 16
)

// seen is what stands before a character.
type seen struct {
	last  rune
	marks int
}

func (s *seen) add(r rune) {
	if !isMark(r) {
		s.marks = 0
	} else {
		s.marks++
	}
	s.last = r
}

// hides tells whether r could not be seen here. A selector is only all right
// after what has two looks.
func (s *seen) hides(r rune) bool {
	if r == textSelector || r == emojiSelector {
		return !isEmoji(s.last) && !isKey(s.last)
	}
	return isInvisible(r)
}

// piles tells whether r is one mark too many on its character.
func (s *seen) piles(r rune) bool { return s.marks >= maxMarks && isMark(r) }

// isMark tells marks that are drawn on the character before them.
func isMark(r rune) bool { return r >= 0x300 && unicode.In(r, unicode.Mn, unicode.Me) }

// isKey tells what is a key or a sign with a selector after it.
func isKey(r rune) bool {
	return r >= '0' && r <= '9' || r == '#' || r == '*' || r == 0xa9 || r == 0xae
}

// isEmoji tells what may be an emoji or a part of one. There are some other
// symbols among them, but no letters.
func isEmoji(r rune) bool {
	switch {
	case r < 0x203c:
		return false
	case r <= 0x214f, r >= 0x2190 && r <= 0x2bff:
		return true
	case r == 0x3030, r == 0x303d, r == 0x3297, r == 0x3299:
		return true
	}
	return r >= 0x1f000 && r <= 0x1faff
}

// isInvisible tells characters without a look of their own.
func isInvisible(r rune) bool {
	switch {
	case r < 0xad:
		return false
	case r == 0xad, r == 0x034f, r == 0x061c, r == 0x115f, r == 0x1160, r == 0x17b4, r == 0x17b5,
		r >= 0x180b && r <= 0x180f, r >= 0x200b && r <= 0x200f, r == 0x2028, r == 0x2029,
		r >= 0x2060 && r <= 0x2065, r >= 0x206a && r <= 0x206f, r == 0x3164, r >= 0xfe00 && r <= 0xfe0d,
		r == 0xfeff, r == 0xffa0, r >= 0xfff0 && r <= 0xfffb, r >= 0x1d173 && r <= 0x1d17a:
		return true
	}
	return r >= 0xe0000 && r <= 0xe0fff
}
