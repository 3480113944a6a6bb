package term

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"
)

// Limits of what a Discipline keeps: the newest lines, and of a line the
// beginning.
const (
	maxLines     = 200
	maxKept      = 64 << 10
	maxLineBytes = 4 << 10
	maxColumn    = 4 << 10
	// maxCell is how many bytes one column takes: an emoji of many parts.
	maxCell = 64
)

// Discipline turns the output of a command into lines, as a terminal would
// show them: a carriage return overwrites, a backspace steps back, a tab jumps,
// erase-in-line erases; every other control sequence is dropped, also one cut
// in two by a chunk's end. It keeps the newest 200 lines or 64 KiB.
type Discipline struct {
	parser stripper
	// done[first:] are the finished lines, kept is how many bytes they hold.
	done  []string
	first int
	kept  int
	// dropped counts lines that are no longer kept.
	dropped int

	// line is the current line while nothing but appending has happened to it;
	// then it is split into cells, where the cursor can go back.
	line  []byte
	cells []cell
	split bool
	// stop is where in line its latest tab stop is, before what its last
	// character was. joined counts the bytes that were added to cells.
	stop   int
	before seen
	joined int
	// col is the cursor in a line that is split; back says that a carriage
	// return waits for what comes after it.
	col  int
	back bool
}

// cell is one column of a line: a character with what combines with it. The
// second column of a wide character is empty.
type cell string

// NewDiscipline returns an empty one.
func NewDiscipline() *Discipline {
	d := &Discipline{}
	d.parser.text, d.parser.control = d.rune, d.csi
	return d
}

// Write takes the next chunk of output.
func (d *Discipline) Write(chunk string) {
	for len(chunk) > 0 {
		// Printable ASCII at the end of a line is what most output is.
		if d.parser.state == ground && len(d.parser.partial) == 0 && !d.split && !d.back {
			n := 0
			for n < len(chunk) && chunk[n] >= 0x20 && chunk[n] < 0x7f {
				n++
			}
			if n > 0 {
				d.line = append(d.line, chunk[:min(n, maxLineBytes-len(d.line))]...)
				d.before = seen{last: rune(chunk[n-1])}
				chunk = chunk[n:]
				continue
			}
			if chunk[0] == '\n' {
				d.newline()
				chunk = chunk[1:]
				continue
			}
		}
		// One character, or the beginning of one, at a time.
		n := 1
		if len(d.parser.partial) == 0 && chunk[0] >= utf8.RuneSelf {
			_, n = utf8.DecodeRuneInString(chunk)
		}
		d.parser.write(chunk[:n])
		chunk = chunk[n:]
	}
}

// Tail returns the newest n lines, an unfinished last one included, and how
// many lines there have been in all.
func (d *Discipline) Tail(n int) (lines []string, total int) {
	kept := d.done[d.first:]
	last := d.current()
	total = d.dropped + len(kept)
	if last != "" {
		total++
		n--
	}
	lines = append(lines, kept[max(0, len(kept)-max(0, n)):]...)
	if last != "" && n >= 0 {
		lines = append(lines, last)
	}
	return lines, total
}

// Output returns the first n lines of an output that is there as a whole, and
// how many lines it has in all.
func Output(s string, n int) (lines []string, total int) {
	s = strings.Trim(s, "\r\n")
	if s == "" {
		return nil, 0
	}
	d := NewDiscipline()
	for line := range strings.SplitSeq(s, "\n") {
		if total++; total > n {
			return lines, total + strings.Count(s, "\n") - n
		}
		d.Write(line + "\n") // nothing of a line lasts beyond its end
		lines = append(lines, d.done[len(d.done)-1])
	}
	return lines, total
}

func (d *Discipline) rune(r rune) {
	switch {
	case r == '\n':
		d.newline()
	case r == '\r':
		d.back = true
	case r == '\b':
		d.splitLine()
		d.col = max(0, d.col-1)
	case r == '\t':
		d.tab()
	case isControl(r):
	case isBidi(r):
		for _, c := range fmt.Sprintf(`\u%04x`, r) {
			d.print(c)
		}
	case isInvisible(r) && r != zeroWidthJoiner:
	default:
		d.print(r)
	}
}

func (d *Discipline) newline() {
	line := d.current()
	d.done = append(d.done, line)
	d.kept += len(line)
	d.line, d.cells, d.split, d.col, d.back = d.line[:0], d.cells[:0], false, 0, false
	d.stop, d.before, d.joined = 0, seen{}, 0
	for len(d.done)-d.first > maxLines || d.kept > maxKept {
		d.kept -= len(d.done[d.first])
		d.done[d.first] = ""
		d.first++
		d.dropped++
	}
	if d.first > maxLines { // once in so many lines
		d.done = append(d.done[:0], d.done[d.first:]...)
		d.first = 0
	}
}

// current is the line that is not finished.
func (d *Discipline) current() string {
	if !d.split {
		return strings.TrimRight(string(d.line), " ")
	}
	var b strings.Builder
	for _, c := range d.cells {
		if b.Len()+len(c) > maxLineBytes {
			break
		}
		b.WriteString(string(c))
	}
	return strings.TrimRight(b.String(), " ")
}

// splitLine makes the line one in which the cursor can move.
func (d *Discipline) splitLine() {
	if !d.split {
		d.split, d.cells = true, d.cells[:0]
		for rest := string(d.line); rest != ""; {
			cluster, width := ansi.FirstGraphemeCluster(rest, ansi.GraphemeWidth)
			rest = rest[len(cluster):]
			d.cells = append(d.cells, cell(cluster))
			for range width - 1 {
				d.cells = append(d.cells, "")
			}
		}
		d.col = len(d.cells)
	}
	if d.back {
		d.back, d.col = false, 0
	}
}

func (d *Discipline) tab() {
	if !d.split && !d.back {
		n := tabStop - ansi.StringWidth(string(d.line[d.stop:]))%tabStop
		if len(d.line)+n <= maxLineBytes {
			d.line = append(d.line, strings.Repeat(" ", n)...)
			d.stop = len(d.line)
		}
		return
	}
	d.splitLine()
	d.col = min((d.col/tabStop+1)*tabStop, maxColumn)
}

// print puts a character at the cursor.
func (d *Discipline) print(r rune) {
	if !d.split && !d.back {
		if len(d.line)+utf8.RuneLen(r) <= maxLineBytes && (combines(r) == "" || joins(r, d.line)) && !d.before.piles(r) {
			d.line = utf8.AppendRune(d.line, r)
		}
		d.before.add(r)
		return
	}
	d.splitLine()
	if at := d.lastCell(); combines(r) != "" || at >= 0 && isEmoji(r) && strings.HasSuffix(string(d.cells[at]), string(rune(zeroWidthJoiner))) {
		if at >= 0 && len(d.cells[at]) < maxCell && d.joined < maxLineBytes && (combines(r) == "" || joins(r, []byte(d.cells[at]))) {
			d.cells[at] += cell(string(r))
			d.joined += utf8.RuneLen(r)
		}
		return
	}
	width := max(1, ansi.StringWidth(string(r)))
	if d.col+width > maxColumn {
		return
	}
	for len(d.cells) < d.col+width {
		d.cells = append(d.cells, " ")
	}
	d.tear(d.col)
	d.tear(d.col + width)
	d.cells[d.col] = cell(string(r))
	for i := 1; i < width; i++ {
		d.cells[d.col+i] = ""
	}
	d.col += width
}

// lastCell is the character that the cursor has just passed, -1 for none.
func (d *Discipline) lastCell() int {
	at := min(d.col, len(d.cells)) - 1
	for at > 0 && d.cells[at] == "" {
		at--
	}
	return at
}

// tear blanks a wide character that has a border at col inside it.
func (d *Discipline) tear(col int) {
	if col >= len(d.cells) || d.cells[col] != "" {
		return
	}
	from := col
	for from > 0 && d.cells[from] == "" {
		from--
	}
	for to := from; to < len(d.cells) && (to == from || d.cells[to] == ""); to++ {
		d.cells[to] = " "
	}
}

// combines names what takes no cell of its own: "join" for what only emoji
// may have, "mark" for marks of ordinary text, "" for everything else.
func combines(r rune) string {
	switch {
	case r == zeroWidthJoiner, r == textSelector, r == emojiSelector:
		return "join"
	case r >= 0x300 && ansi.StringWidth(string(r)) == 0:
		return "mark"
	}
	return ""
}

// joins tells whether r may follow what is there: marks need a character, and
// the joiner and the selector an emoji.
func joins(r rune, before []byte) bool {
	if len(before) == 0 {
		return false
	}
	if combines(r) == "mark" {
		return true
	}
	last, _ := utf8.DecodeLastRune(before)
	return isEmoji(last) || last == emojiSelector || r != zeroWidthJoiner && isKey(last)
}

func (d *Discipline) csi(params string, final byte) {
	if final != 'K' {
		return
	}
	mode, err := strconv.Atoi(params)
	if err != nil && params != "" {
		return
	}
	d.splitLine()
	switch mode {
	case 0:
		d.tear(d.col)
		d.cells = d.cells[:min(d.col, len(d.cells))]
	case 1:
		d.tear(d.col + 1)
		for i := range min(d.col+1, len(d.cells)) {
			d.cells[i] = " "
		}
	case 2:
		d.cells = d.cells[:0]
	}
}
