package event

import (
	"strings"
	"unicode/utf8"
)

// value is one secret text. It matches also where the text stands inside JSON
// and is escaped, once or several times over.
type value struct {
	marker string
	units  []unit
	// wrapped says that line ends may stand between the characters.
	wrapped bool
	// percent is the text of a value whose bytes may be escaped with percent
	// signs; it has no units.
	percent string
}

// unit is one character with the backslashes before it. The last unit of a
// text that ends in backslashes has no character.
type unit struct {
	slashes int
	text    string
	r       rune
	// short is the letter of the character's short JSON escape, 0 if none.
	short byte
}

func newValue(marker, text string) *value {
	v := &value{marker: marker}
	slashes := 0
	for len(text) > 0 {
		r, size := utf8.DecodeRuneInString(text)
		u := unit{slashes: slashes, text: text[:size], r: r}
		text = text[size:]
		if r == '\\' {
			slashes++
			continue
		}
		if i := strings.IndexRune("\n\r\t\b\f", r); i >= 0 {
			u.short = "nrtbf"[i]
		}
		v.units = append(v.units, u)
		slashes = 0
	}
	if slashes > 0 {
		v.units = append(v.units, unit{slashes: slashes})
	}
	return v
}

// special tells whether JSON writers put a backslash before the character.
func (u unit) special() bool { return u.short != 0 || u.r == '"' || u.r == '/' || u.r == '\'' }

// maxSlashes bounds the backslashes before one character: four levels of JSON
// inside JSON.
const maxSlashes = 64

// match returns how many bytes of s, from its start, are the secret. more says
// that s ended before it was clear.
func (v *value) match(s string) (n int, more bool) {
	if v.percent != "" {
		return v.matchPercent(s)
	}
	for i, u := range v.units {
		if v.wrapped && i > 0 {
			skip, more := skipBreaks(s[n:])
			if more {
				return 0, true
			}
			n += skip
		}
		slashes := 0
		for n+slashes < len(s) && s[n+slashes] == '\\' && slashes < maxSlashes {
			slashes++
		}
		n += slashes
		if u.text == "" {
			if slashes < u.slashes {
				return 0, n == len(s)
			}
			return n, n == len(s) && slashes < maxSlashes
		}
		if n == len(s) {
			return 0, true
		}
		size, more := u.match(s[n:], slashes)
		if size == 0 {
			return 0, more
		}
		n += size
	}
	return n, false
}

// match returns how many bytes at the start of s, which follow so many
// backslashes, are the unit's character.
func (u unit) match(s string, slashes int) (n int, more bool) {
	if slashes < u.slashes {
		return 0, false
	}
	if slashes == u.slashes || u.slashes > 0 || u.r == '"' || u.r == '/' || u.r == '\'' {
		if strings.HasPrefix(s, u.text) {
			return len(u.text), false
		}
		if strings.HasPrefix(u.text, s) {
			return 0, true
		}
	}
	if slashes == u.slashes {
		return 0, false
	}
	if u.short != 0 && s[0] == u.short {
		return 1, false
	}
	if s[0] != 'u' {
		return 0, false
	}
	if u.r <= 0xFFFF {
		return matchHex(s, u.r)
	}
	high, low := 0xD800+(u.r-0x10000)>>10, 0xDC00+(u.r-0x10000)&0x3FF
	if n, more = matchHex(s, high); n == 0 {
		return 0, more
	}
	for n < len(s) && s[n] == '\\' {
		n++
	}
	if n == len(s) {
		return 0, true
	}
	m, more := matchHex(s[n:], low)
	if m == 0 {
		return 0, more
	}
	return n + m, false
}

// matchHex matches uXXXX.
func matchHex(s string, r rune) (n int, more bool) {
	if len(s) < 5 {
		for i := range len(s) {
			if i == 0 && s[0] != 'u' || i > 0 && hexDigit(s[i]) != byte(r>>(16-4*i)&0xF) {
				return 0, false
			}
		}
		return 0, true
	}
	if s[0] == 'u' && hex4(s[1:]) == r {
		return 5, false
	}
	return 0, false
}

// hexDigit returns the value of a hexadecimal digit, 255 if it is none.
func hexDigit(c byte) byte {
	switch {
	case c >= '0' && c <= '9':
		return c - '0'
	case c >= 'a' && c <= 'f':
		return c - 'a' + 10
	case c >= 'A' && c <= 'F':
		return c - 'A' + 10
	}
	return 255
}
