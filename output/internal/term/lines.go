package term

import (
	"strings"

	"github.com/charmbracelet/x/ansi"
)

// Limits of what a Discipline keeps.
const (
	maxLines     = 200
	maxLineBytes = 4 << 10
)

// Discipline turns the output of a command into lines, as a terminal would
// show them: a carriage return overwrites, a backspace steps back, a tab jumps,
// erase-in-line erases; every other control sequence is dropped, also one cut
// in two by a chunk's end. It keeps the newest 200 lines.
type Discipline struct {
	parser *ansi.Parser
	done   []string
	line   []rune
	col    int
	// dropped counts lines that are no longer kept.
	dropped int
}

// NewDiscipline returns an empty one.
func NewDiscipline() *Discipline {
	d := &Discipline{parser: ansi.NewParser()}
	d.parser.SetHandler(ansi.Handler{
		Print:     d.print,
		Execute:   d.execute,
		HandleCsi: d.csi,
	})
	return d
}

// Write takes a chunk.
func (d *Discipline) Write(chunk string) {
	for i := range len(chunk) {
		d.parser.Advance(chunk[i])
	}
}

// Tail returns the newest n lines, an unfinished last one included, and how
// many lines there are in all.
func (d *Discipline) Tail(n int) (lines []string, total int) {
	lines = d.done
	if len(d.line) > 0 {
		lines = append(lines[:len(lines):len(lines)], string(d.line))
	}
	total = d.dropped + len(lines)
	return lines[max(0, len(lines)-n):], total
}

func (d *Discipline) print(r rune) {
	if isControl(r) || isInvisible(r) || isBidi(r) {
		return
	}
	if d.col < len(d.line) {
		d.line[d.col] = r
	} else if len(d.line) < maxLineBytes {
		for len(d.line) < d.col {
			d.line = append(d.line, ' ')
		}
		d.line = append(d.line, r)
	}
	d.col = min(d.col+1, maxLineBytes)
}

func (d *Discipline) execute(b byte) {
	switch b {
	case '\n':
		d.done = append(d.done, strings.TrimRight(string(d.line), " "))
		d.line, d.col = d.line[:0], 0
		if len(d.done) > 2*maxLines {
			d.dropped += maxLines
			d.done = append(d.done[:0], d.done[maxLines:]...)
		}
	case '\r':
		d.col = 0
	case '\b':
		d.col = max(0, d.col-1)
	case '\t':
		d.col = min((d.col/8+1)*8, maxLineBytes)
	}
}

func (d *Discipline) csi(cmd ansi.Cmd, params ansi.Params) {
	if cmd.Final() != 'K' {
		return
	}
	mode, _, _ := params.Param(0, 0)
	switch mode {
	case 0:
		d.line = d.line[:min(d.col, len(d.line))]
	case 1:
		for i := range min(d.col, len(d.line)) {
			d.line[i] = ' '
		}
	case 2:
		d.line = d.line[:0]
	}
}
