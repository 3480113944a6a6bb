package event

import (
	"encoding/base64"
	"slices"
	"strings"
)

// encodedForms are the texts as which a secret turns up inside base64. What
// stands before it decides how its bits fall into characters, so there are
// three, each in the standard and in the URL alphabet. The characters at the
// edges that hold bits of a neighbour, too, are not part of a form: they differ
// from text to text and tell a few bits at most.
func encodedForms(secret string) []string {
	var out []string
	for before := range 3 {
		first := (before*8 + 5) / 6
		last := (before + len(secret)) * 8 / 6
		text := strings.Repeat("\x00", before) + secret
		for _, enc := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
			form := enc.EncodeToString([]byte(text))[first:last]
			if !slices.Contains(out, form) {
				out = append(out, form)
			}
		}
	}
	return out
}

// maxBreak bounds what is skipped at one place of a base64 text.
const maxBreak = 128

// skipBreaks returns how many bytes at the start of s are line ends, with the
// indent of the next line: base64 is wrapped, and the line ends may be escaped
// as in JSON. more says that s ended before it was clear.
func skipBreaks(s string) (n int, more bool) {
	for n < len(s) && n < maxBreak {
		switch c := s[n]; {
		case c == '\n' || c == '\r', n > 0 && (c == ' ' || c == '\t'):
			n++
		case c == '\\':
			slashes := 1
			for n+slashes < len(s) && s[n+slashes] == '\\' && slashes < maxSlashes {
				slashes++
			}
			if n+slashes == len(s) {
				return n, true
			}
			if e := s[n+slashes]; e != 'n' && e != 'r' {
				return n, false
			}
			n += slashes + 1
		default:
			return n, false
		}
	}
	return n, n == len(s)
}
