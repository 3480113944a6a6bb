package tools

import (
	"bytes"
	"fmt"
	"strings"
	"unicode/utf8"
)

// manyBad is how many bytes that are not text a line may show as escapes; a
// line with more is only counted.
const manyBad = 16

// readable turns what a command printed into text for the model: omitted bytes
// lie between head and tail. Progress lines are reduced to what a terminal
// would show in the end, escape sequences are left out, bytes that are not text
// become escapes such as \xff or, if many, a remark. binary says that there
// were some.
func readable(head, tail []byte, omitted int64) (text string, binary bool) {
	if omitted > 0 {
		// The cut may have split a character.
		before := len(head) + len(tail)
		head, tail = head[:len(head)-partial(head)], tail[continuation(tail):]
		omitted += int64(before - len(head) - len(tail))
	}
	if omitted == 0 && len(tail) > 0 {
		head = append(head[:len(head):len(head)], tail...)
		tail = nil
	}
	text, binary = settle(head)
	if omitted == 0 {
		return text, binary
	}
	end, alsoBinary := settle(tail)
	return fmt.Sprintf("%s\n[%d bytes omitted]\n%s", text, omitted, end), binary || alsoBinary
}

// partial is the length of an incomplete character at the end of b.
func partial(b []byte) int {
	for n := 1; n < utf8.UTFMax && n <= len(b); n++ {
		c := b[len(b)-n]
		if utf8.RuneStart(c) {
			if c >= utf8.RuneSelf && !utf8.FullRune(b[len(b)-n:]) {
				return n
			}
			return 0
		}
	}
	return 0
}

// continuation is the length of the rest of a character at the start of b.
func continuation(b []byte) int {
	n := 0
	for n < len(b) && n < utf8.UTFMax-1 && !utf8.RuneStart(b[n]) {
		n++
	}
	return n
}

// settle does the work of readable for one stretch of output.
func settle(b []byte) (text string, binary bool) {
	if isPlain(b) {
		return string(b), false
	}
	w := lineWriter{}
	w.out.Grow(len(b))
	var s settler
	for len(b) > 0 {
		line, rest, found := cutLine(b)
		size := len(b) - len(rest)
		b = rest
		bad := s.run(line)
		binary = binary || bad > 0
		if bad > manyBad {
			w.hide(size)
			continue
		}
		var text strings.Builder
		s.writeTo(&text)
		if found {
			text.WriteByte('\n')
		}
		w.write(text.String(), size)
	}
	w.end()
	return w.out.String(), binary
}

// lineWriter replaces binary lines by a remark, and with them the scraps of
// text between two of them.
type lineWriter struct {
	out strings.Builder
	// hidden is the size of the binary lines that a remark is still due for;
	// scraps are short lines after them, scrapBytes their size as printed.
	hidden, scrapBytes int
	scraps             strings.Builder
}

func (w *lineWriter) hide(size int) {
	w.hidden += w.scrapBytes + size
	w.scraps.Reset()
	w.scrapBytes = 0
}

func (w *lineWriter) write(line string, size int) {
	const scrap, manyScraps = 8, 64
	if w.hidden > 0 && len(line) <= scrap && w.scraps.Len() < manyScraps {
		w.scraps.WriteString(line)
		w.scrapBytes += size
		return
	}
	w.end()
	w.out.WriteString(line)
}

func (w *lineWriter) end() {
	if w.hidden > 0 {
		fmt.Fprintf(&w.out, "[%d bytes of binary data]\n", w.hidden)
	}
	w.out.WriteString(w.scraps.String())
	w.scraps.Reset()
	w.hidden, w.scrapBytes = 0, 0
}

func cutLine(b []byte) (line, rest []byte, found bool) {
	if i := bytes.IndexByte(b, '\n'); i >= 0 {
		return b[:i], b[i+1:], true
	}
	return b, nil, false
}

// isPlain tells whether b can be shown as it is, which is the rule.
func isPlain(b []byte) bool {
	ascii := true
	for _, c := range b {
		if c < ' ' && c != '\n' && c != '\t' || c == 0x7f {
			return false
		}
		ascii = ascii && c < utf8.RuneSelf
	}
	return ascii || utf8.Valid(b)
}

// settler plays one line as a terminal would. A cell is a character or, if
// negative, a byte that is none: -1 is the byte 0.
type settler struct {
	cells []rune
	col   int
}

// run plays a line and returns how many bad bytes are left on it.
func (s *settler) run(line []byte) int {
	s.cells, s.col = s.cells[:0], 0
	if n := len(line); n > 0 && line[n-1] == '\r' {
		line = line[:n-1] // the line ended with CR LF
	}
	for len(line) > 0 {
		r, size := utf8.DecodeRune(line)
		switch {
		case r == '\r':
			s.col = 0
		case r == '\b':
			s.col = max(0, s.col-1)
		case r == 0x1b:
			size = s.escape(line)
		case r == utf8.RuneError && size == 1, r < ' ' && r != '\t', r == 0x7f:
			s.put(-1 - rune(line[0]))
		default:
			s.put(r)
		}
		line = line[size:]
	}
	bad := 0
	for _, c := range s.cells {
		if c < 0 {
			bad++
		}
	}
	return bad
}

func (s *settler) put(r rune) {
	for s.col > len(s.cells) {
		s.cells = append(s.cells, ' ')
	}
	if s.col == len(s.cells) {
		s.cells = append(s.cells, r)
	} else {
		s.cells[s.col] = r
	}
	s.col++
}

// escape leaves out the escape sequence that b starts with, obeys it if it
// erases the line, and returns its length.
func (s *settler) escape(b []byte) int {
	n := escapeLength(b)
	if n == 0 {
		return len(b)
	}
	if b[1] == '[' && b[n-1] == 'K' {
		s.erase(string(b[2 : n-1]))
	}
	return n
}

// escapeLength is the length of the escape sequence that b starts with, 0 if it
// has no end.
func escapeLength(b []byte) int {
	if len(b) < 2 {
		return 0
	}
	switch b[1] {
	case '[':
		for i := 2; i < len(b); i++ {
			if b[i] >= 0x40 && b[i] <= 0x7e {
				return i + 1
			}
		}
		return 0
	case ']', 'P', '_', '^', 'X': // strings, up to BEL or ST
		for i := 2; i < len(b); i++ {
			if b[i] == 0x07 {
				return i + 1
			}
			if b[i] == 0x1b && i+1 < len(b) && b[i+1] == '\\' {
				return i + 2
			}
		}
		return 0
	case '(', ')', '*', '+', '#', '%', ' ':
		if len(b) < 3 {
			return 0
		}
		return 3
	}
	return 2
}

// erase obeys EL: 0 to the end of the line, 1 to its start, 2 all of it.
func (s *settler) erase(mode string) {
	switch mode {
	case "", "0":
		s.cells = s.cells[:min(s.col, len(s.cells))]
	case "1":
		for i := range min(s.col+1, len(s.cells)) {
			s.cells[i] = ' '
		}
	case "2":
		s.cells = s.cells[:0]
	}
}

func (s *settler) writeTo(out *strings.Builder) {
	for _, c := range s.cells {
		if c < 0 {
			fmt.Fprintf(out, `\x%02x`, -1-c)
		} else {
			out.WriteRune(c)
		}
	}
}
