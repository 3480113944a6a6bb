// Package term makes untrusted text safe to show and fits it to a width. It
// knows nothing of events and writes nothing.
//
// Everything that was not written by our own source passes one of three ways
// before it reaches a terminal: Label for what must be seen as it is (names,
// arguments, paths, errors), Text for prose, a Discipline for the output of
// commands. None of them lets a control character through but the newlines of
// prose.
package term

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// tabStop is the distance of tab stops, in cells.
const tabStop = 8

// Text cleans prose: newlines stay, tabs become blanks up to the next multiple
// of 8, escape sequences and other control characters go, and characters that
// turn the direction of text are shown by their number.
func Text(s string) string {
	if isPlain(s) {
		return s
	}
	var b strings.Builder
	stop := 0 // the latest tab stop, or the beginning of the line
	var before seen
	p := stripper{text: func(r rune) {
		switch {
		case r == '\n':
			b.WriteByte('\n')
			stop = b.Len()
		case r == '\t':
			cells := Width(b.String()[stop:])
			b.WriteString(strings.Repeat(" ", tabStop-cells%tabStop))
			stop = b.Len()
		case isControl(r):
			return
		case isBidi(r):
			fmt.Fprintf(&b, `\u%04x`, r)
		case before.hides(r) && (r < 0x200c || r > 0x200f), before.piles(r):
			return
		default:
			b.WriteRune(r)
		}
		before.add(r)
	}}
	p.write(s)
	p.flush()
	return b.String()
}

// Label cleans what stands on one line and must be seen as it is. Nothing is
// dropped: what cannot be shown is escaped, and if anything was, backslashes
// are doubled, so that the text has only one reading.
func Label(s string) string {
	if isPlain(s) && !strings.Contains(s, "\n") {
		return s
	}
	var b strings.Builder
	escaped := false
	var before seen
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		esc := escapeRune(r, size, s[i])
		if esc == "" && (before.hides(r) || before.piles(r)) {
			esc = number(r)
		}
		before.add(r)
		if esc != "" {
			b.WriteString(esc)
			escaped = true
		} else if r == '\\' {
			b.WriteByte(0) // becomes one backslash or two, below; a NUL of s is escaped
		} else {
			b.WriteRune(r)
		}
		i += size
	}
	slash := `\`
	if escaped {
		slash = `\\`
	}
	return strings.ReplaceAll(b.String(), "\x00", slash)
}

// Lines cleans a text of several lines that were written by us around values
// that were not: each line is a label.
func Lines(s string) string {
	parts := strings.Split(s, "\n")
	for i, p := range parts {
		parts[i] = Label(p)
	}
	return strings.Join(parts, "\n")
}

// escapeRune is how a character is shown in a label, "" if it may stay.
func escapeRune(r rune, size int, first byte) string {
	switch {
	case r == utf8.RuneError && size == 1:
		return fmt.Sprintf(`\x%02x`, first)
	case r == '\n':
		return `\n`
	case r == '\r':
		return `\r`
	case r == '\t':
		return `\t`
	case r == 0x1b:
		return `\e`
	case r < 0x20 || r == 0x7f:
		return fmt.Sprintf(`\x%02x`, r)
	case isControl(r), isBidi(r): // \x80 to \xff are bytes that are no text
		return number(r)
	}
	return ""
}

func number(r rune) string {
	if r < 0x10000 {
		return fmt.Sprintf(`\u%04x`, r)
	}
	return fmt.Sprintf(`\U%08x`, r)
}

// isPlain tells whether a text is ASCII without control characters but
// newlines, which most text is.
func isPlain(s string) bool {
	for i := range len(s) {
		if c := s[i]; (c < 0x20 && c != '\n') || c >= 0x7f {
			return false
		}
	}
	return true
}

func isControl(r rune) bool { return r < 0x20 || r >= 0x7f && r <= 0x9f }

// isBidi tells the characters that turn the direction of what follows.
func isBidi(r rune) bool { return r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069 }
