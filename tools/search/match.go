package search

import (
	"bytes"
	"context"
	"fmt"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
	"unicode/utf8"
)

const (
	// MaxLineBytes is how much of a line is shown.
	MaxLineBytes = 500
	// cancelLines is how many lines are tried between two looks at the
	// context.
	cancelLines = 4096
)

// matcher finds the lines of one query in the content of files. It may be used
// concurrently.
type matcher struct {
	// finders find a text without which no line matches; there are none for
	// a pattern of which nothing is known.
	finders finders
	// re decides about a line; nil if the text alone does.
	re *regexp.Regexp
	// multiline matches may cross lines.
	multiline bool
	context   int
	// most is how many matching lines of one file are wanted at most; 0 is
	// all.
	most int
}

// newMatcher compiles the query.
func newMatcher(o Options) (*matcher, error) {
	m := &matcher{context: o.ContextLines}
	if o.MaxResults > 0 {
		m.most = o.MaxResults + 1
	}
	if o.Query == "" {
		return nil, fmt.Errorf("%w: it is empty", ErrQuery)
	}
	query := strings.ReplaceAll(o.Query, "\r\n", "\n")
	if !o.Regex {
		m.finders = newFinders([]needle{{text: query}})
		if m.multiline = strings.Contains(query, "\n"); m.multiline {
			m.re = regexp.MustCompile(regexp.QuoteMeta(query))
		}
		return m, nil
	}
	tree, err := syntax.Parse(query, syntax.Perl&^syntax.OneLine)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrQuery, err)
	}
	// The whole pattern is put into a group, so that a flag at its start
	// cannot end the line mode.
	if m.re, err = regexp.Compile("(?m:" + query + ")"); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrQuery, err)
	}
	m.multiline = crossesLines(tree, strings.Contains(query, "\n") || strings.Contains(query, `\n`))
	if list := needles(tree); list != nil {
		m.finders = newFinders(list)
	}
	return m, nil
}

// crossesLines tells whether a pattern is meant to match more than one line:
// it has a line end, matches any character, or asks for the start or the end
// of the text. A class such as \s or [^x] holds the line end too, but means
// it only if the pattern spells it (named).
func crossesLines(re *syntax.Regexp, named bool) bool {
	switch re.Op {
	case syntax.OpAnyChar, syntax.OpBeginText, syntax.OpEndText:
		return true
	case syntax.OpLiteral:
		return slices.Contains(re.Rune, '\n')
	case syntax.OpCharClass:
		for i := 0; named && i+1 < len(re.Rune); i += 2 {
			if re.Rune[i] <= '\n' && '\n' <= re.Rune[i+1] {
				return true
			}
		}
	}
	return slices.ContainsFunc(re.Sub, func(sub *syntax.Regexp) bool { return crossesLines(sub, named) })
}

// span is a match: the lines it is in and the match itself, as indices.
type span struct {
	line, end   int // end is that of the last line, before its "\n"
	from, until int
}

// lines returns the matching lines of a file with their context, and the
// number of those that match. It changes data.
func (m *matcher) lines(ctx context.Context, data []byte, path string) ([]Line, int) {
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	out := lister{path: path, data: data, context: m.context, most: m.most, number: 1}
	if m.multiline {
		out.data = dropReturns(data)
		m.acrossLines(&out)
	} else {
		m.inLines(ctx, &out)
	}
	out.trail(len(out.data))
	return out.lines, out.matches
}

// dropReturns makes every line end a single "\n".
func dropReturns(data []byte) []byte {
	if !bytes.Contains(data, []byte("\r\n")) {
		return data
	}
	out := data[:0]
	for len(data) > 0 {
		i := bytes.Index(data, []byte("\r\n"))
		if i < 0 {
			return append(out, data...)
		}
		out = append(out, data[:i]...)
		data = data[i+1:]
	}
	return out
}

// inLines tries one line at a time, and only those with a needle if there are
// needles.
func (m *matcher) inLines(ctx context.Context, out *lister) {
	data := out.data
	needle := m.finders.start()
	for at, tried := 0, 1; at < len(data); tried++ {
		if tried%cancelLines == 0 && ctx.Err() != nil {
			return
		}
		hit := at
		if len(m.finders) > 0 {
			if hit = needle.find(data, at); hit < 0 {
				return
			}
		}
		s := span{line: lineStart(data, hit), end: lineEnd(data, hit), from: hit}
		if at = s.end + 1; m.re == nil {
			s.until = hit + len(m.finders[0].text)
		} else {
			loc := m.place(bytes.TrimSuffix(data[s.line:s.end], []byte("\r")))
			if loc == nil {
				continue
			}
			s.from, s.until = s.line+loc[0], s.line+loc[1]
		}
		if !out.add(s) {
			return
		}
	}
}

// place returns where the pattern matches in a line, or nil. In a line that is
// shown whole the place does not matter, and not to look for it is faster.
func (m *matcher) place(line []byte) []int {
	if len(line) > MaxLineBytes {
		return m.re.FindIndex(line)
	}
	if m.re.Match(line) {
		return []int{0, 0}
	}
	return nil
}

// acrossLines runs the pattern over the whole text.
func (m *matcher) acrossLines(out *lister) {
	data := out.data
	needle := m.finders.start()
	if len(m.finders) > 0 && needle.find(data, 0) < 0 {
		return
	}
	// Several matches may be on one line, so it takes more matches than lines.
	for n := 4 * m.most; ; n *= 4 {
		if n == 0 {
			n = -1
		}
		found := m.re.FindAllIndex(data, n)
		if n < 0 || len(found) < n || differentLines(data, found, m.most) {
			for _, loc := range found {
				if !m.addAcross(out, loc) {
					return
				}
			}
			return
		}
	}
}

// addAcross adds the lines of one match that are not listed yet.
func (m *matcher) addAcross(out *lister, loc []int) bool {
	data, from := out.data, loc[0]
	if from == len(data) && (from == 0 || data[from-1] == '\n') {
		return true // an empty match behind the last line
	}
	last := loc[1]
	if last > from && data[last-1] == '\n' {
		last-- // the line end belongs to the line before
	}
	for at := from; at <= last; {
		s := span{line: lineStart(data, at), end: lineEnd(data, at), from: at, until: last}
		s.until = min(s.until, s.end)
		if at = s.end + 1; s.line >= out.shown && !out.add(s) {
			return false
		}
	}
	return true
}

// differentLines tells whether the matches start on at least n lines.
func differentLines(data []byte, found [][]int, n int) bool {
	lines, end := 0, -1
	for _, loc := range found {
		if loc[0] > end {
			lines++
			end = lineEnd(data, loc[0])
		}
	}
	return lines >= n
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
