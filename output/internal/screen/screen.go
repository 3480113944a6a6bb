// Package screen is a terminal in memory for tests. It obeys the few control
// sequences that frames may send and takes any other as an error, so that a
// test fails on what would be an accident on some real terminal.
package screen

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"
)

// Screen is a terminal with a scrollback. The zero value is not usable.
type Screen struct {
	// Emoji is how many cells an emoji takes; 0 is what most terminals do.
	// Terminals do not agree.
	Emoji int

	cols, rows int
	lines      []line
	history    []line
	row, col   int
	noWrap     bool
	hidden     bool
	sync       bool
	styled     bool
	err        error
	// Writes counts calls of Write, Bytes what they brought.
	Writes, Bytes int
}

// line is a row of cells. wrapped says that the next one goes on with it.
type line struct {
	cells   []string
	wrapped bool
}

// New returns an empty screen with the cursor at its top left.
func New(cols, rows int) *Screen {
	return &Screen{cols: cols, rows: rows, lines: make([]line, rows)}
}

// Write obeys what is written in one piece. After it, the cursor must rest in
// the first column and every mode must be what it was; the first violation is
// returned, then and later.
func (s *Screen) Write(p []byte) (int, error) {
	s.Writes++
	s.Bytes += len(p)
	rest := string(p)
	for rest != "" && s.err == nil {
		rest = rest[s.next(rest):]
	}
	if s.err == nil {
		s.err = s.calm()
	}
	if s.err != nil {
		return 0, s.err
	}
	return len(p), nil
}

// Err is the first violation.
func (s *Screen) Err() error { return s.err }

func (s *Screen) calm() error {
	switch {
	case s.col != 0:
		return fmt.Errorf("the cursor rests in column %d", s.col)
	case s.noWrap:
		return fmt.Errorf("wrapping is left off")
	case s.hidden:
		return fmt.Errorf("the cursor is left hidden")
	case s.sync:
		return fmt.Errorf("synchronised output is left on")
	case s.styled:
		return fmt.Errorf("a colour is left on")
	}
	return nil
}

// next obeys the beginning of a text and returns how much of it that was.
func (s *Screen) next(text string) int {
	switch c := text[0]; {
	case c == '\r':
		s.col = 0
		return 1
	case c == '\n':
		s.down(false)
		return 1
	case c == 0x1b:
		return s.sequence(text)
	case c < 0x20 || c == 0x7f:
		s.fail("control character %#02x", c)
		return 1
	}
	cluster, width := ansi.FirstGraphemeCluster(text, ansi.GraphemeWidth)
	r, size := utf8.DecodeRuneInString(cluster)
	if r == utf8.RuneError && size == 1 || r >= 0x80 && r <= 0x9f {
		s.fail("bytes %q", cluster)
	}
	if s.Emoji > 0 && width == 2 && r >= 0x1f000 {
		width = s.Emoji
	}
	s.print(cluster, width)
	return len(cluster)
}

func (s *Screen) fail(format string, args ...any) {
	if s.err == nil {
		s.err = fmt.Errorf("the terminal got "+format, args...)
	}
}

// sequence obeys a control sequence, which must be one of the allowed.
func (s *Screen) sequence(text string) int {
	end := 2
	for end < len(text) && (text[end] < 0x40 || text[end] > 0x7e) {
		end++
	}
	if len(text) < 3 || text[1] != '[' || end == len(text) {
		s.fail("%q", text[:min(len(text), 8)])
		return len(text)
	}
	params, final := text[2:end], text[end]
	end++
	switch {
	case final == 'K' && params == "":
		s.erase(s.row, s.col)
	case final == 'J' && params == "":
		s.erase(s.row, s.col)
		for i := s.row + 1; i < s.rows; i++ {
			s.erase(i, 0)
		}
	case final == 'C' && params == "":
		s.col = min(s.col+1, s.cols-1)
	case final == 'A':
		n, err := strconv.Atoi(params)
		if err != nil || n < 1 {
			s.fail("%q", text[:end])
		}
		if n > s.row {
			s.fail("cursor up by %d in row %d", n, s.row)
		}
		s.row = max(0, s.row-n)
	case final == 'h' || final == 'l':
		s.mode(params, final == 'h')
	case final == 'm':
		s.style(params)
	default:
		s.fail("%q", text[:end])
	}
	return end
}

func (s *Screen) mode(params string, on bool) {
	switch params {
	case "?7":
		s.noWrap = !on
	case "?25":
		s.hidden = !on
	case "?2026":
		s.sync = on
	default:
		s.fail("mode %q", params)
	}
}

func (s *Screen) style(params string) {
	for p := range strings.SplitSeq(params, ";") {
		switch p {
		case "", "0":
			s.styled = false
		case "1", "2", "31", "32", "33", "35", "36":
			s.styled = true
		default:
			s.fail("colour %q", params)
		}
	}
}

func (s *Screen) erase(row, from int) {
	l := &s.lines[row]
	l.cells = l.cells[:min(from, len(l.cells))]
	l.wrapped = false
}

// print puts a character at the cursor. In the last column the cursor waits
// there until the next one comes.
func (s *Screen) print(cluster string, width int) {
	if width == 0 {
		return // it joins what is there, which no test looks at
	}
	if s.col+width > s.cols {
		switch {
		case width > s.cols:
			return
		case s.noWrap:
			s.col = s.cols - width
		default:
			s.lines[s.row].wrapped = true
			s.down(true)
			s.col = 0
		}
	}
	l := &s.lines[s.row]
	for len(l.cells) < s.col+width {
		l.cells = append(l.cells, " ")
	}
	l.cells[s.col] = cluster
	for i := 1; i < width; i++ {
		l.cells[s.col+i] = ""
	}
	s.col += width
	if s.noWrap {
		s.col = min(s.col, s.cols-1)
	}
}

func (s *Screen) down(wrapping bool) {
	if s.row++; s.row < s.rows {
		if !wrapping && s.row > 0 {
			s.lines[s.row-1].wrapped = false
		}
		return
	}
	s.history = append(s.history, s.lines[0])
	s.lines = append(s.lines[1:], line{})
	s.row = s.rows - 1
}

// Resize changes the size. Rows are cut or left as they are and not wrapped
// anew; what no longer fits goes into the history from the top.
func (s *Screen) Resize(cols, rows int) {
	for s.row >= rows {
		s.history = append(s.history, s.lines[0])
		s.lines = s.lines[1:]
		s.row--
	}
	for len(s.lines) < rows {
		s.lines = append(s.lines, line{})
	}
	s.lines = s.lines[:rows]
	for i := range s.lines {
		s.lines[i].cells = s.lines[i].cells[:min(cols, len(s.lines[i].cells))]
	}
	s.cols, s.rows, s.col = cols, rows, min(s.col, cols-1)
}

func (l line) String() string { return strings.TrimRight(strings.Join(l.cells, ""), " ") }

// Above is what is above the cursor: history, with wrapped rows joined.
func (s *Screen) Above() []string {
	var out []string
	joined := ""
	for _, l := range append(append([]line(nil), s.history...), s.lines[:s.row]...) {
		if l.wrapped {
			joined += strings.Join(l.cells, "")
			continue
		}
		out, joined = append(out, strings.TrimRight(joined+strings.Join(l.cells, ""), " ")), ""
	}
	return out
}

// Region is what is at the cursor and below it, without empty rows at the end.
func (s *Screen) Region() []string {
	var out []string
	for _, l := range s.lines[s.row:] {
		out = append(out, l.String())
	}
	for len(out) > 0 && out[len(out)-1] == "" {
		out = out[:len(out)-1]
	}
	return out
}

// Text is what the screen shows, row by row.
func (s *Screen) Text() []string {
	var out []string
	for _, l := range s.lines {
		out = append(out, l.String())
	}
	return out
}
