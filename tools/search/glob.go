package search

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

// maxWays bounds the alternatives of a glob. They are looked at one by one,
// because matching nested braces takes exponential time.
const maxWays = 64

// glob chooses files by their path below the root. The zero value chooses all.
type glob struct {
	inverted bool
	// byName compares the last part of a path only.
	byName bool
	// ways are the alternatives of the braces; none choose all.
	ways []way
}

// way is a pattern without braces, as a whole and in parts.
type way struct {
	pattern string
	parts   []string
}

// newGlob parses a glob. One that is an absolute path below a root, in either
// of its spellings, is taken relative to it.
func newGlob(text string, roots ...string) (glob, error) {
	if text == "" {
		return glob{}, nil
	}
	g := glob{}
	text, g.inverted = strings.CutPrefix(text, "!")
	pattern := filepath.ToSlash(text)
	anchored := strings.HasPrefix(pattern, "/") || strings.HasPrefix(pattern, "./")
	for _, root := range roots {
		if rest, ok := strings.CutPrefix(pattern, filepath.ToSlash(under(root, ""))); ok {
			pattern = rest
			break
		}
	}
	pattern = strings.TrimPrefix(strings.TrimPrefix(pattern, "./"), "/")
	if strings.HasSuffix(pattern, "/") {
		pattern += "**"
	}
	if pattern == "" || !doublestar.ValidatePattern(pattern) {
		return glob{}, fmt.Errorf("%w: %q does not parse", ErrGlob, text)
	}
	alternatives := expand(pattern, nil)
	if alternatives == nil {
		return glob{}, fmt.Errorf("%w: it has more than %d alternatives", ErrGlob, maxWays)
	}
	for _, a := range alternatives {
		g.ways = append(g.ways, way{pattern: a, parts: strings.Split(a, "/")})
	}
	g.byName = !anchored && !strings.Contains(pattern, "/")
	return g, nil
}

// match tells whether a file is chosen.
func (g glob) match(rel, name string) bool {
	if len(g.ways) == 0 {
		return true
	}
	if g.byName {
		rel = name
	}
	for _, w := range g.ways {
		if doublestar.MatchUnvalidated(w.pattern, rel) {
			return !g.inverted
		}
	}
	return g.inverted
}

// mayHold tells whether a folder can hold chosen files.
func (g glob) mayHold(rel string) bool {
	if len(g.ways) == 0 || g.byName || g.inverted {
		return true
	}
	folder := strings.Split(rel, "/")
	for _, w := range g.ways {
		if leads(w.parts, folder) {
			return true
		}
	}
	return false
}

// leads tells whether a way can go through a folder.
func leads(way, folder []string) bool {
	for i, part := range folder {
		switch {
		case i >= len(way):
			return false
		case strings.Contains(way[i], "**"):
			return true
		case !doublestar.MatchUnvalidated(way[i], part):
			return false
		}
	}
	return len(way) > len(folder)
}

// names tells whether the glob names an ignored path: a part without
// wildcards is its name, and the parts before match what is above it.
func (g glob) names(rel, name string) bool {
	if g.inverted {
		return false
	}
	for _, w := range g.ways {
		if g.byName {
			if w.pattern == name {
				return true
			}
			continue
		}
		for i, part := range w.parts {
			if part == name && doublestar.MatchUnvalidated(strings.Join(w.parts[:i+1], "/"), rel) {
				return true
			}
		}
	}
	return false
}

// expand adds the alternatives of a pattern's braces to list; it returns nil
// if there are too many.
func expand(pattern string, list []string) []string {
	open, closed, commas := braces(pattern)
	if open < 0 {
		if list = append(list, pattern); len(list) > maxWays {
			return nil
		}
		return list
	}
	start := open + 1
	for _, end := range append(commas, closed) {
		if list = expand(pattern[:open]+pattern[start:end]+pattern[closed+1:], list); list == nil {
			return nil
		}
		start = end + 1
	}
	return list
}

// braces finds the first pair of braces and the commas that split it; open is
// -1 if there is none.
func braces(pattern string) (open, closed int, commas []int) {
	open = -1
	depth := 0
	for i := 0; i < len(pattern); i++ {
		switch pattern[i] {
		case '\\':
			i++
		case '[':
			i = classEnd(pattern, i)
		case '{':
			if depth++; open < 0 {
				open = i
			}
		case '}':
			if depth--; depth == 0 {
				return open, i, commas
			}
		case ',':
			if depth == 1 {
				commas = append(commas, i)
			}
		}
	}
	return -1, 0, nil
}

// classEnd returns the index of the bracket that closes the one at i.
func classEnd(pattern string, i int) int {
	for i++; i < len(pattern) && pattern[i] != ']'; i++ {
		if pattern[i] == '\\' {
			i++
		}
	}
	return i
}
