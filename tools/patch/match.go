package patch

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// A tier says how loosely lines are compared. A lower tier is tried over the
// whole file before the next one.
type tier int

const (
	exact     tier = iota
	rightTrim      // trailing white space disregarded
	bothTrim       // leading and trailing white space disregarded
	lookAlike      // and typographic punctuation read as ASCII
	tiers
	// within is for anchors only: the text stands somewhere in the line between
	// word boundaries, as "class B" does in "class B(Base):".
	within = tiers
)

// key is the form of a line that is compared on tier t.
func (t tier) key(s string) string {
	switch t {
	case exact:
		return s
	case rightTrim:
		return strings.TrimRightFunc(s, unicode.IsSpace)
	case bothTrim:
		return strings.TrimSpace(s)
	default:
		return strings.TrimPrefix(strings.TrimSpace(strings.Map(ascii, s)), bom)
	}
}

// ascii maps punctuation and spaces that models replace by their ASCII likeness.
func ascii(r rune) rune {
	switch {
	case r < 0xA0:
		return r
	case r >= 0x2010 && r <= 0x2015, r == 0x2212:
		return '-'
	case r >= 0x2018 && r <= 0x201B:
		return '\''
	case r >= 0x201C && r <= 0x201F:
		return '"'
	case r == 0xA0, r >= 0x2002 && r <= 0x200A, r == 0x202F, r == 0x205F, r == 0x3000:
		return ' '
	}
	return r
}

// finder looks for lines in one file.
type finder struct {
	doc *document
	// keys holds the file's lines per tier, made when a tier is first needed.
	keys [tiers][]string
}

func (f *finder) lineKeys(t tier) []string {
	if f.keys[t] == nil {
		keys := make([]string, len(f.doc.lines))
		for i, line := range f.doc.lines {
			keys[i] = t.key(line.body)
		}
		f.keys[t] = keys
	}
	return f.keys[t]
}

// patternKeys is pattern as it is compared on tier t.
func patternKeys(t tier, pattern []string) []string {
	keys := make([]string, len(pattern))
	for i, line := range pattern {
		keys[i] = t.key(line)
	}
	return keys
}

// next returns the first place at or after from where pattern matches on tier t,
// or -1.
func (f *finder) next(t tier, pattern []string, from int) int {
	if t == within {
		return f.nextWithin(pattern[0], from)
	}
	keys, want := f.lineKeys(t), patternKeys(t, pattern)
	for at := from; at+len(want) <= len(keys); at++ {
		if slices.Equal(keys[at:at+len(want)], want) {
			return at
		}
	}
	return -1
}

func (f *finder) nextWithin(anchor string, from int) int {
	anchor = lookAlike.key(anchor)
	keys := f.lineKeys(lookAlike)
	for at := from; at < len(keys); at++ {
		if containsWord(keys[at], anchor) {
			return at
		}
	}
	return -1
}

// containsWord reports whether text stands in line with no letter or digit
// directly continuing it on either side.
func containsWord(line, text string) bool {
	for start := 0; ; {
		i := strings.Index(line[start:], text)
		if i < 0 {
			return false
		}
		i += start
		if !joined(line[:i], text) && !joined(text, line[i+len(text):]) {
			return true
		}
		start = i + 1
	}
}

// joined reports whether the end of left and the start of right form one word.
func joined(left, right string) bool {
	l, r := []rune(left), []rune(right)
	return len(l) > 0 && len(r) > 0 && isWord(l[len(l)-1]) && isWord(r[0])
}

func isWord(r rune) bool {
	return r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r)
}

// seek finds pattern at or after from on the lowest tier below limit.
func (f *finder) seek(pattern []string, from int, limit tier) (int, tier, bool) {
	for t := exact; t < limit; t++ {
		if at := f.next(t, pattern, from); at >= 0 {
			return at, t, true
		}
	}
	return 0, 0, false
}

// seekEnd matches pattern against the last lines of the file only.
func (f *finder) seekEnd(pattern []string) (int, tier, bool) {
	at := len(f.doc.lines) - len(pattern)
	if at < 0 {
		return 0, 0, false
	}
	return f.seek(pattern, at, tiers)
}

// step is one anchor as it was found.
type step struct {
	text string
	at   int
	tier tier
}

// follow seeks the anchors one after the other. The error names the first that
// is missing.
func (f *finder) follow(anchors []string, from int) ([]step, error) {
	steps := make([]step, 0, len(anchors))
	for _, text := range anchors {
		at, t, ok := f.seek([]string{text}, from, within+1)
		if !ok {
			return nil, fmt.Errorf("Failed to find context '%s' in %s", text, f.doc.name)
		}
		steps = append(steps, step{text, at, t})
		from = at + 1
	}
	return steps, nil
}

// maxPlaces bounds the candidates that an error lists.
const maxPlaces = 10

// places returns the other positions that old could mean, beside at: all later
// matches when there is no anchor, else those reached from another line that
// looks like the first anchor.
func (f *finder) places(steps []step, old []string, at int, t tier) []int {
	found := []int{at}
	if len(steps) == 0 {
		for next := f.next(t, old, at+1); next >= 0 && len(found) < maxPlaces; next = f.next(t, old, next+1) {
			found = append(found, next)
		}
		return found
	}
	// Another first anchor before the second step leads to the same place, so
	// each round starts at the step after the first.
	first := steps[0]
	from := secondStep(steps, at)
	for len(found) < maxPlaces {
		anchor := f.next(first.tier, []string{first.text}, from)
		if anchor < 0 {
			return found
		}
		chain, err := f.follow(texts(steps[1:]), anchor+1)
		if err != nil {
			return found
		}
		bodyFrom := anchor + 1
		if len(chain) > 0 {
			bodyFrom = chain[len(chain)-1].at + 1
		}
		next := f.next(t, old, bodyFrom)
		if next < 0 {
			return found
		}
		if next != at {
			found = append(found, next)
		}
		from = secondStep(append([]step{{at: anchor}}, chain...), next)
	}
	return found
}

// secondStep is the position reached right after the first anchor.
func secondStep(steps []step, at int) int {
	if len(steps) > 1 {
		return steps[1].at
	}
	return max(at, steps[0].at+1)
}

func texts(steps []step) []string {
	out := make([]string, len(steps))
	for i, s := range steps {
		out[i] = s.text
	}
	return out
}

// ambiguous is the error for a chunk that fits at several places.
func (f *finder) ambiguous(old []string, at []int) error {
	numbers := make([]string, len(at))
	for i, line := range at {
		numbers[i] = strconv.Itoa(line + 1)
	}
	more := ""
	if len(at) == maxPlaces {
		more = " and maybe more"
	}
	return fmt.Errorf("ambiguous context in %s: the lines match at lines %s%s; add context lines or an @@ header that only one place has:\n%s",
		f.doc.name, strings.Join(numbers, ", "), more, strings.Join(old, "\n"))
}

// mismatch is the error for a chunk that fits nowhere at or after from. In
// strict mode it also says which line does not match.
func (f *finder) mismatch(old []string, from int, strict bool) error {
	text := fmt.Sprintf("Failed to find expected lines in %s:\n%s", f.doc.name, strings.Join(old, "\n"))
	if !strict {
		return fmt.Errorf("%s", text)
	}
	return fmt.Errorf("%s\n%s", text, f.firstMismatch(old, from))
}

// firstMismatch explains the closest failure: the place where most leading lines
// of old match loosely, and the first line that does not match there.
func (f *finder) firstMismatch(old []string, from int) string {
	keys, want := f.lineKeys(lookAlike), patternKeys(lookAlike, old)
	best, bestAt := 0, from
	for at := from; at < len(keys); at++ {
		n := 0
		for n < len(want) && at+n < len(keys) && keys[at+n] == want[n] {
			n++
		}
		if n > best {
			best, bestAt = n, at
		}
	}
	if best == len(want) {
		return fmt.Sprintf("The lines stand at line %d, but not at the end of the file.", bestAt+1)
	}
	missing := fmt.Sprintf("The first line that does not match is %q", old[best])
	switch line := bestAt + best; {
	case best == 0 && from > 0:
		return missing + fmt.Sprintf(": no line after line %d is like it.", from)
	case best == 0:
		return missing + ": no line of the file is like it."
	case line == len(keys):
		return missing + fmt.Sprintf(": the file ends after line %d.", line)
	default:
		return missing + fmt.Sprintf(": line %d of the file is %q.", line+1, f.doc.lines[line].body)
	}
}
