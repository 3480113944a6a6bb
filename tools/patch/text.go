package patch

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

const bom = "\uFEFF"

// line is one line of a file: its text and the bytes that end it, which are LF,
// CR LF, or nothing on a last line without newline.
type line struct{ body, eol string }

// document is a text file as lines. Joining bom and lines gives its bytes.
type document struct {
	name  string // for messages
	raw   string
	bom   string
	lines []line
}

// newDocument splits data. It refuses bytes that are not UTF-8, because the text
// of a patch could not name them.
func newDocument(name string, data []byte) (*document, error) {
	s := string(data)
	if !utf8.ValidString(s) {
		return nil, fmt.Errorf("%s is not valid UTF-8 (first bad byte at offset %d), so a patch cannot update it", name, badByte(s))
	}
	d := &document{name: name, raw: s}
	if strings.HasPrefix(s, bom) {
		d.bom, s = bom, s[len(bom):]
	}
	d.lines = splitLines(s)
	return d, nil
}

func badByte(s string) int {
	for i, r := range s {
		if r == utf8.RuneError {
			if _, size := utf8.DecodeRuneInString(s[i:]); size == 1 {
				return i
			}
		}
	}
	return len(s)
}

func splitLines(s string) []line {
	lines := make([]line, 0, strings.Count(s, "\n")+1)
	for s != "" {
		end := strings.IndexByte(s, '\n')
		if end < 0 {
			return append(lines, line{body: s})
		}
		l := line{s[:end], s[end : end+1]}
		if end > 0 && s[end-1] == '\r' {
			l = line{s[:end-1], s[end-1 : end+1]}
		}
		lines = append(lines, l)
		s = s[end+1:]
	}
	return lines
}

// edit replaces the lines lo to hi, hi not included, by lines.
type edit struct {
	lo, hi int
	lines  []line
}

// settle turns the edits of all chunks into the final ones: in file order, not
// touching, without lines that stay the same, with line endings.
func (d *document) settle(edits []edit) []edit {
	edits = merge(edits)
	var reduced []edit
	// Endings are not compared: a line whose text stays keeps its own.
	for _, e := range edits {
		reduced = append(reduced, d.reduce(e, sameBody)...)
	}
	usual := d.usualEnding()
	for i := range reduced {
		d.end(&reduced[i], usual)
	}
	reduced = d.keepFinalNewline(reduced, usual)
	if d.bom != "" && len(reduced) > 0 && reduced[0].lo == 0 && len(reduced[0].lines) > 0 {
		first := &reduced[0].lines[0]
		first.body = strings.TrimPrefix(first.body, bom)
	}
	return reduced
}

// merge sorts edits and joins those that touch. An insertion inside a replaced
// range, which only a chunk without old lines can make, moves behind it.
func merge(edits []edit) []edit {
	slices.SortStableFunc(edits, func(a, b edit) int {
		return cmp.Or(cmp.Compare(a.lo, b.lo), cmp.Compare(a.hi, b.hi))
	})
	var out []edit
	for _, e := range edits {
		if len(out) > 0 && e.lo <= out[len(out)-1].hi {
			last := &out[len(out)-1]
			last.hi = max(last.hi, e.hi)
			last.lines = append(last.lines, e.lines...)
			continue
		}
		out = append(out, e)
	}
	return out
}

// usualEnding is the ending most lines have; LF when the file has none.
func (d *document) usualEnding() string {
	crlf, lf := 0, 0
	for _, l := range d.lines {
		switch l.eol {
		case "\r\n":
			crlf++
		case "\n":
			lf++
		}
	}
	if crlf > lf {
		return "\r\n"
	}
	return "\n"
}

// end gives every new line the ending of the old line it replaces, else that of
// the line before it, else of the line after it.
func (d *document) end(e *edit, usual string) {
	before := ""
	if e.lo > 0 {
		before = d.lines[e.lo-1].eol
	}
	after := ""
	if e.hi < len(d.lines) {
		after = d.lines[e.hi].eol
	}
	for i := range e.lines {
		own := ""
		if e.lo+i < e.hi {
			own = d.lines[e.lo+i].eol
		}
		e.lines[i].eol = cmp.Or(own, before, after, usual)
		before = e.lines[i].eol
	}
}

// keepFinalNewline corrects the last edit of a file that does not end in a
// newline. The file stays without one, except that an empty last line in the
// patch asks for it.
func (d *document) keepFinalNewline(edits []edit, usual string) []edit {
	n := len(d.lines)
	if n == 0 || d.lines[n-1].eol != "" || len(edits) == 0 {
		return edits
	}
	last := &edits[len(edits)-1]
	if last.hi < n {
		return edits
	}
	if last.lo == n || len(last.lines) == 0 {
		// Something follows the line without newline, or the line before the
		// removed ones becomes the last: its ending changes with it.
		if last.lo == 0 {
			return edits
		}
		kept := d.lines[last.lo-1]
		if kept.body == "" {
			// A blank line is nothing but its newline, so it keeps it.
			return edits
		}
		last.lo--
		if kept.eol == "" {
			kept.eol = usual
			if last.lo > 0 {
				kept.eol = d.lines[last.lo-1].eol
			}
		}
		last.lines = append([]line{kept}, last.lines...)
	}
	final := &last.lines[len(last.lines)-1]
	final.eol = ""
	if final.body == "" {
		last.lines = last.lines[:len(last.lines)-1]
	}
	if len(edits) > 1 && edits[len(edits)-2].hi == last.lo {
		return merge(edits)
	}
	return edits
}

// apply returns the bytes after edits. A file without lines is empty: its
// byte-order mark goes too.
func (d *document) apply(edits []edit) []byte {
	if len(edits) == 0 {
		return []byte(d.raw)
	}
	var b strings.Builder
	b.Grow(len(d.raw) + 256)
	b.WriteString(d.bom)
	write := func(lines []line) {
		for _, l := range lines {
			b.WriteString(l.body)
			b.WriteString(l.eol)
		}
	}
	at := 0
	for _, e := range edits {
		write(d.lines[at:e.lo])
		write(e.lines)
		at = e.hi
	}
	write(d.lines[at:])
	if b.Len() == len(d.bom) {
		return []byte{}
	}
	return []byte(b.String())
}
