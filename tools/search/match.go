package search

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
	"unicode/utf8"
)

const (
	// cancelLines is how many lines are tried between two looks at the
	// context.
	cancelLines = 256
	// cancelBytes is the same within one line or text.
	cancelBytes = 64 << 10
)

// matcher finds the lines of one query in the content of files. It may be used
// concurrently.
type matcher struct {
	// finders find a text without which no line matches; there are none for
	// a pattern of which nothing is known.
	finders finders
	// re decides about a line; nil if the text alone does.
	re *regexp.Regexp
	// multiline matches may cross lines. next then finds the match behind a
	// position from one character before it, as its only group.
	multiline bool
	next      *regexp.Regexp
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
		if strings.Contains(query, "\n") {
			err := m.compile(regexp.QuoteMeta(query), true)
			return m, err
		}
		return m, nil
	}
	tree, err := syntax.Parse(query, syntax.Perl&^syntax.OneLine)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrQuery, err)
	}
	named := strings.Contains(query, "\n") || strings.Contains(query, `\n`)
	if err := m.compile(query, crossesLines(tree, named)); err != nil {
		return nil, err
	}
	if list := needles(tree); list != nil {
		m.finders = newFinders(list)
	}
	return m, nil
}

// compile sets the pattern. It is put into a group, so that a flag at its
// start cannot end the line mode.
func (m *matcher) compile(query string, multiline bool) (err error) {
	m.re, err = regexp.Compile("(?m:" + query + ")")
	if m.multiline = multiline; err == nil && multiline {
		m.next, err = regexp.Compile(`\A(?s:.)(?s:.*?)((?m:` + query + "))")
	}
	if err != nil {
		return fmt.Errorf("%w: %w", ErrQuery, err)
	}
	return nil
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

// lines returns the matching lines of a file with their context, and the
// number of those that match. It changes data.
func (m *matcher) lines(ctx context.Context, data []byte, path string) ([]Line, int) {
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	out := lister{path: path, data: data, context: m.context, most: m.most, number: 1}
	if m.multiline {
		out.data = dropReturns(data)
		m.acrossLines(ctx, &out)
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
			loc := m.place(ctx, bytes.TrimSuffix(data[s.line:s.end], []byte("\r")))
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
func (m *matcher) place(ctx context.Context, line []byte) []int {
	switch {
	case len(line) > cancelBytes:
		return m.re.FindReaderIndex(&text{stopped: ctx.Err, data: line})
	case len(line) > MaxLineBytes:
		return m.re.FindIndex(line)
	case m.re.Match(line):
		return []int{0, 0}
	}
	return nil
}

// acrossLines runs the pattern over the whole text, again and again from the
// end of the match before.
func (m *matcher) acrossLines(ctx context.Context, out *lister) {
	data := out.data
	needle := m.finders.start()
	if len(m.finders) > 0 && needle.find(data, 0) < 0 {
		return
	}
	loc := m.re.FindReaderIndex(&text{stopped: ctx.Err, data: data})
	for loc != nil && ctx.Err() == nil && m.addAcross(out, loc) {
		from := loc[1]
		if loc[1] == loc[0] {
			_, size := utf8.DecodeRune(data[from:])
			from += size
		}
		if from >= len(data) {
			return
		}
		loc = m.after(ctx, data, from)
	}
}

// after returns the first match at or behind from, which is above 0. The
// character before is handed in too, because anchors look at it.
func (m *matcher) after(ctx context.Context, data []byte, from int) []int {
	_, size := utf8.DecodeLastRune(data[:from])
	from -= size
	loc := m.next.FindReaderSubmatchIndex(&text{stopped: ctx.Err, data: data[from:]})
	if loc == nil {
		return nil
	}
	return []int{from + loc[2], from + loc[3]}
}

// text hands data to a pattern and ends early when it is told to, because a
// pattern cannot be stopped otherwise.
type text struct {
	// stopped returns an error when the pattern should not go on.
	stopped func() error
	data    []byte
	at      int
	// checked is where the context was last looked at.
	checked int
}

// ReadRune is that of io.RuneReader.
func (t *text) ReadRune() (rune, int, error) {
	if t.at-t.checked >= cancelBytes {
		if t.checked = t.at; t.stopped() != nil {
			t.at = len(t.data)
		}
	}
	if t.at >= len(t.data) {
		return 0, 0, io.EOF
	}
	r, size := utf8.DecodeRune(t.data[t.at:])
	t.at += size
	return r, size, nil
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
