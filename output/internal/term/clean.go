// Package term makes untrusted text safe to show and fits it to a width. It
// knows nothing of events. Everything that was not written by our own source
// passes Text, Label or a Discipline before it reaches a terminal.
package term

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"
)

// Text cleans prose: newlines stay, tabs become blanks, escape sequences and
// other control characters go, and characters that turn the direction of text
// are shown.
func Text(s string) string {
	if plain(s) {
		return s
	}
	var b strings.Builder
	for _, r := range ansi.Strip(valid(s)) {
		switch {
		case r == '\n':
			b.WriteRune(r)
		case r == '\t':
			b.WriteString("    ")
		case isControl(r):
		case isBidi(r):
			fmt.Fprintf(&b, `\u%04x`, r)
		case isInvisible(r) && (r < 0x200c || r > 0x200f):
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// Label cleans what stands on one line and must be seen as it is: names,
// arguments, paths, rules, errors. Nothing is dropped: what cannot be shown is
// escaped, and if anything was, backslashes are doubled, so that the text has
// only one reading.
func Label(s string) string {
	if plain(s) && !strings.ContainsRune(s, '\n') {
		return s
	}
	var b strings.Builder
	escaped := false
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		if esc := escape(r, size, s[i]); esc != "" {
			b.WriteString(esc)
			escaped = true
		} else if r == '\\' {
			b.WriteString("\x00") // becomes one backslash or two, below
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

// escape is how a character is shown in a label, or "" if it may stay.
func escape(r rune, size int, first byte) string {
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
	case isControl(r):
		return fmt.Sprintf(`\x%02x`, r)
	case isBidi(r), isInvisible(r) && r < 0x10000:
		return fmt.Sprintf(`\u%04x`, r)
	case isInvisible(r):
		return fmt.Sprintf(`\U%08x`, r)
	}
	return ""
}

// plain tells whether a text is ASCII without control characters but newlines,
// which most text is.
func plain(s string) bool {
	for i := range len(s) {
		if c := s[i]; (c < 0x20 && c != '\n') || c >= 0x7f {
			return false
		}
	}
	return true
}

func valid(s string) string { return strings.ToValidUTF8(s, "\ufffd") }

func isControl(r rune) bool { return r < 0x20 || r >= 0x7f && r <= 0x9f }

func isBidi(r rune) bool { return r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069 }

func isInvisible(r rune) bool {
	switch {
	case r == 0xad, r >= 0x200b && r <= 0x200f, r == 0x2028, r == 0x2029, r == 0xfeff, r == 0x2060:
		return true
	}
	return r >= 0xe0000 && r <= 0xe007f
}
