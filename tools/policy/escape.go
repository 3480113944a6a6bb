package policy

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// unescapeC decodes the escapes of $'…'.
func unescapeC(s string) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	var out strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' || i+1 == len(s) {
			out.WriteByte(s[i])
			continue
		}
		i++
		if k := strings.IndexByte("abeEfnrtv", s[i]); k >= 0 {
			out.WriteByte("\a\b\x1b\x1b\f\n\r\t\v"[k])
			continue
		}
		base, width := 16, 0
		switch c := s[i]; {
		case c == 'x':
			width = 2
		case c == 'u':
			width = 4
		case c == 'U':
			width = 8
		case c == 'c' && i+1 < len(s):
			i++
			out.WriteByte(s[i] & 0x1f)
			continue
		case '0' <= c && c <= '7':
			base, width = 8, 3
			if c == '0' {
				width = 4
			}
			i--
		default:
			out.WriteByte(c)
			continue
		}
		i += writeCode(&out, s[i+1:], base, width)
	}
	return out.String()
}

// writeCode writes the character whose number begins s and returns the
// length of the number.
func writeCode(out *strings.Builder, s string, base, width int) int {
	n := 0
	for n < width && n < len(s) {
		if _, err := strconv.ParseUint(s[n:n+1], base, 8); err != nil {
			break
		}
		n++
	}
	if n == 0 {
		return 0
	}
	code, err := strconv.ParseUint(s[:n], base, 32)
	if err != nil {
		return n
	}
	if base == 8 || width == 2 {
		out.WriteByte(byte(code))
		return n
	}
	if code > utf8.MaxRune {
		code = utf8.RuneError
	}
	out.WriteRune(rune(code))
	return n
}
