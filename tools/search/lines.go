package search

import (
	"bytes"
	"fmt"
	"strings"
	"unicode/utf8"
)

// MaxLineBytes is how much of a line is shown.
const MaxLineBytes = 500

// span is a match: the lines it is in and the match itself, as indices.
type span struct {
	line, end   int // end is that of the last line, before its "\n"
	from, until int
}

// lineStart and lineEnd are the bounds of the line that holds an index.
func lineStart(data []byte, i int) int { return bytes.LastIndexByte(data[:i], '\n') + 1 }

func lineEnd(data []byte, i int) int {
	if n := bytes.IndexByte(data[i:], '\n'); n >= 0 {
		return i + n
	}
	return len(data)
}

// lister turns matches, in order, into lines with context.
type lister struct {
	path    string
	data    []byte
	context int
	most    int

	lines   []Line
	matches int
	// shown is the start of the first line that is not listed or passed.
	shown int
	// number is that of the line at counted.
	number, counted int
	// owed is how many lines of context the last match still wants.
	owed int
}

// add lists a line that matches; it returns false when there are enough.
func (l *lister) add(s span) bool {
	l.trail(s.line)
	l.lead(s.line)
	l.put(s.line, s.end, s.from, s.until, true)
	l.owed = l.context
	l.matches++
	return l.matches != l.most
}

// trail lists the context behind the last match, up to an index.
func (l *lister) trail(until int) {
	for ; l.owed > 0 && l.shown < until; l.owed-- {
		end := lineEnd(l.data, l.shown)
		l.put(l.shown, end, l.shown, l.shown, false)
	}
	l.owed = 0
}

// lead lists the context before the line that starts at an index.
func (l *lister) lead(at int) {
	start := at
	for n := 0; n < l.context && start > l.shown; n++ {
		start = lineStart(l.data, start-1)
	}
	for start < at {
		end := lineEnd(l.data, start)
		l.put(start, end, start, start, false)
		start = end + 1
	}
}

func (l *lister) put(start, end, from, until int, match bool) {
	l.number += bytes.Count(l.data[l.counted:start], []byte{'\n'})
	l.counted = start
	l.shown = end + 1
	text := bytes.TrimSuffix(l.data[start:end], []byte("\r"))
	l.lines = append(l.lines, Line{Path: l.path, Number: l.number, Text: shorten(text, from-start, until-start), Match: match})
}

// shorten makes a line valid UTF-8 and keeps what is around text[from:until]
// if it is too long.
func shorten(text []byte, from, until int) string {
	if len(text) <= MaxLineBytes {
		return strings.ToValidUTF8(string(text), "\uFFFD")
	}
	// The match gets the middle; a match that is itself too long its start.
	start := max(0, from-(MaxLineBytes-min(until-from, MaxLineBytes))/2)
	start = min(start, len(text)-MaxLineBytes)
	end := start + MaxLineBytes
	for n := 0; start > 0 && n < utf8.UTFMax && !utf8.RuneStart(text[start]); n++ {
		start++
	}
	for n := 0; end < len(text) && n < utf8.UTFMax && !utf8.RuneStart(text[end]); n++ {
		end--
	}
	var b strings.Builder
	if start > 0 {
		b.WriteString("…")
	}
	b.WriteString(strings.ToValidUTF8(string(text[start:end]), "\uFFFD"))
	if end < len(text) {
		b.WriteString("…")
	}
	fmt.Fprintf(&b, " [line of %d bytes cut]", len(text))
	return b.String()
}
