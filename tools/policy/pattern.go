package policy

import (
	"errors"
	"strings"
)

// pattern is a glob on one word. Unlike in a path, * crosses slashes, because
// a word such as --output=/etc/x is one thing. Braces are literal.
type pattern struct {
	text string
	// literal patterns hold no glob characters; text is then the word itself.
	literal bool
}

// newPattern checks and prepares a glob.
func newPattern(text string) (pattern, error) {
	if text == "[" || text == "[[" {
		// The test commands are words, not the beginning of a set.
		return pattern{text: text, literal: true}, nil
	}
	if !strings.ContainsAny(text, `*?[\`) {
		return pattern{text: text, literal: true}, nil
	}
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '\\':
			if i++; i == len(text) {
				return pattern{}, errors.New("ends in a backslash")
			}
		case '[':
			end := setEnd(text[i:])
			if end < 0 {
				return pattern{}, errors.New(`has a "[" without its "]"`)
			}
			i += end
		}
	}
	return pattern{text: text}, nil
}

func (p pattern) any() bool { return !p.literal && strings.Trim(p.text, "*") == "" }

func (p pattern) match(s string) bool {
	if p.literal {
		return p.text == s
	}
	return matchWord(p.text, s)
}

// prefix returns the literal beginning of the pattern.
func (p pattern) prefix() string {
	if p.literal {
		return p.text
	}
	if i := strings.IndexAny(p.text, `*?[\`); i >= 0 {
		return p.text[:i]
	}
	return p.text
}

func anyPattern(ps []pattern, s string) bool {
	for _, p := range ps {
		if p.match(s) {
			return true
		}
	}
	return false
}

// matchWord matches a whole word in time proportional to the product of the
// lengths: on a mismatch only the last star is widened.
func matchWord(glob, s string) bool {
	g, i := 0, 0
	star, mark := -1, 0
	for i < len(s) {
		if g < len(glob) {
			if glob[g] == '*' {
				star, mark = g, i
				g++
				continue
			}
			if n, ok := matchOne(glob[g:], s[i]); ok {
				g += n
				i++
				continue
			}
		}
		if star < 0 {
			return false
		}
		mark++
		g, i = star+1, mark
	}
	for g < len(glob) && glob[g] == '*' {
		g++
	}
	return g == len(glob)
}

// matchOne matches one byte and returns the length of the pattern's element.
func matchOne(glob string, c byte) (int, bool) {
	switch glob[0] {
	case '?':
		return 1, true
	case '\\':
		if len(glob) > 1 {
			return 2, glob[1] == c
		}
		return 1, c == '\\'
	case '[':
		end := setEnd(glob)
		if end < 0 {
			return 1, c == '['
		}
		return end + 1, inSet(glob[1:end], c)
	}
	return 1, glob[0] == c
}

// setEnd returns the index of the "]" that closes the set at the beginning of
// glob, or -1.
func setEnd(glob string) int {
	i := 1
	if i < len(glob) && (glob[i] == '!' || glob[i] == '^') {
		i++
	}
	if i < len(glob) && glob[i] == ']' {
		i++
	}
	for ; i < len(glob); i++ {
		switch glob[i] {
		case '\\':
			i++
		case ']':
			return i
		}
	}
	return -1
}

func inSet(set string, c byte) bool {
	negated := false
	if set != "" && (set[0] == '!' || set[0] == '^') {
		negated, set = true, set[1:]
	}
	found := false
	for i := 0; i < len(set); i++ {
		low := set[i]
		if low == '\\' && i+1 < len(set) {
			i++
			low = set[i]
		}
		high := low
		if i+2 < len(set) && set[i+1] == '-' {
			high = set[i+2]
			i += 2
		}
		if low <= c && c <= high {
			found = true
		}
	}
	return found != negated
}
