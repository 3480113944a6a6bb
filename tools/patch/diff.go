package patch

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

const (
	contextLines = 3
	// maxCells bounds the table of the line comparison; larger blocks are shown
	// as removed and added whole.
	maxCells = 1 << 18
)

// Diff returns the unified diff of a file that is replaced as a whole, with
// three lines of context, and counts its lines. A nil before stands for a new
// file. The diff is empty when nothing changes or a side is not UTF-8 text.
func Diff(path string, before, after []byte) (text string, added, removed int) {
	if !utf8.Valid(before) || !utf8.Valid(after) {
		return "", 0, 0
	}
	// The byte-order mark counts as part of the first line here, as any other
	// byte that may change.
	old, lines := splitLines(string(before)), splitLines(string(after))
	d := &document{lines: old}
	body, added, removed := d.diff(d.reduce(edit{hi: len(old), lines: lines}, sameLine))
	if body == "" {
		return "", 0, 0
	}
	from := path
	if before == nil {
		from = ""
	}
	return fileHeader(from, path) + body, added, removed
}

func sameLine(a, b line) bool { return a == b }

func sameBody(a, b line) bool { return a.body == b.body }

// reduce cuts lines out of e that are the same before and after, so that only
// real changes are left.
func (d *document) reduce(e edit, same func(a, b line) bool) []edit {
	for e.lo < e.hi && len(e.lines) > 0 && same(d.lines[e.lo], e.lines[0]) {
		e.lo++
		e.lines = e.lines[1:]
	}
	for e.lo < e.hi && len(e.lines) > 0 && same(d.lines[e.hi-1], e.lines[len(e.lines)-1]) {
		e.hi--
		e.lines = e.lines[:len(e.lines)-1]
	}
	old := d.lines[e.lo:e.hi]
	if len(old) == 0 && len(e.lines) == 0 {
		return nil
	}
	if len(old) == 0 || len(e.lines) == 0 || len(old)*len(e.lines) > maxCells {
		return []edit{e}
	}
	return split(e, old, same)
}

// split divides e at a longest common subsequence of its old and new lines.
func split(e edit, old []line, same func(a, b line) bool) []edit {
	common := commonLengths(old, e.lines, same)
	var out []edit
	cur := edit{lo: e.lo, hi: e.lo}
	flush := func() {
		if cur.lo < cur.hi || len(cur.lines) > 0 {
			out = append(out, cur)
		}
	}
	i, j := 0, 0
	for i < len(old) || j < len(e.lines) {
		switch {
		case i < len(old) && j < len(e.lines) && same(old[i], e.lines[j]):
			flush()
			i, j = i+1, j+1
			cur = edit{lo: e.lo + i, hi: e.lo + i}
		case j == len(e.lines) || i < len(old) && common[i+1][j] >= common[i][j+1]:
			i++
			cur.hi++
		default:
			cur.lines = append(cur.lines, e.lines[j])
			j++
		}
	}
	flush()
	return out
}

// commonLengths tells for each pair of suffixes how many lines they share in
// order.
func commonLengths(a, b []line, same func(a, b line) bool) [][]int {
	rows := make([][]int, len(a)+1)
	cells := make([]int, (len(a)+1)*(len(b)+1))
	for i := range rows {
		rows[i], cells = cells[:len(b)+1], cells[len(b)+1:]
	}
	for i := len(a) - 1; i >= 0; i-- {
		for j := len(b) - 1; j >= 0; j-- {
			if same(a[i], b[j]) {
				rows[i][j] = rows[i+1][j+1] + 1
			} else {
				rows[i][j] = max(rows[i+1][j], rows[i][j+1])
			}
		}
	}
	return rows
}

// diff renders edits of d as a unified diff without file headers and counts the
// lines.
func (d *document) diff(edits []edit) (text string, added, removed int) {
	var b strings.Builder
	shift := 0
	for len(edits) > 0 {
		n := 1
		for n < len(edits) && edits[n].lo-edits[n-1].hi <= 2*contextLines {
			n++
		}
		group := edits[:n]
		edits = edits[n:]
		plus, minus := d.hunk(&b, group, shift)
		added, removed, shift = added+plus, removed+minus, shift+plus-minus
	}
	return b.String(), added, removed
}

// hunk writes one hunk with the edits of group. shift is by how many lines the
// earlier hunks moved the new side.
func (d *document) hunk(b *strings.Builder, group []edit, shift int) (plus, minus int) {
	lo := max(0, group[0].lo-contextLines)
	hi := min(len(d.lines), group[len(group)-1].hi+contextLines)
	for _, e := range group {
		plus += len(e.lines)
		minus += e.hi - e.lo
	}
	fmt.Fprintf(b, "@@ -%s +%s @@\n", span(lo, hi-lo), span(lo+shift, hi-lo+plus-minus))
	at := lo
	for _, e := range group {
		writeLines(b, ' ', d.lines[at:e.lo])
		writeLines(b, '-', d.lines[e.lo:e.hi])
		writeLines(b, '+', e.lines)
		at = e.hi
	}
	writeLines(b, ' ', d.lines[at:hi])
	return plus, minus
}

// span is the position of a hunk side. An empty side names the line before it.
func span(start, count int) string {
	if count > 0 {
		start++
	}
	if count == 1 {
		return fmt.Sprint(start)
	}
	return fmt.Sprintf("%d,%d", start, count)
}

// writeLines keeps the endings, so that the diff shows a changed ending too.
func writeLines(b *strings.Builder, mark byte, lines []line) {
	for _, l := range lines {
		b.WriteByte(mark)
		b.WriteString(l.body)
		b.WriteString(l.eol)
		if l.eol == "" {
			b.WriteString("\n\\ No newline at end of file\n")
		}
	}
}

// fileHeader names both sides of a diff; an empty name stands for no file.
func fileHeader(oldPath, newPath string) string {
	side := func(mark, path, prefix string) string {
		switch {
		case path == "":
			path = "/dev/null"
		case !strings.HasPrefix(path, "/"):
			path = prefix + path
		}
		// A tab ends a name with spaces, as readers of diffs expect.
		if strings.Contains(path, " ") {
			path += "\t"
		}
		return mark + path + "\n"
	}
	return side("--- ", oldPath, "a/") + side("+++ ", newPath, "b/")
}
