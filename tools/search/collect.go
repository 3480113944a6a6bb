package search

import (
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

// collection gathers what the workers find, in any order.
type collection struct {
	// max is the wanted number of matches, 0 for all; one more is kept as
	// long as the walk goes on, to know that there is one.
	max     int
	context int

	// bound is the path of the match after the last wanted one as far as is
	// known: paths behind it cannot be part of the result.
	bound atomic.Pointer[string]

	mu      sync.Mutex
	files   []fileLines
	matches int
	skipped []skip
	// searched are the paths of files, kept only if there is a max.
	searched []string
	count    int
}

type fileLines struct {
	path    string
	lines   []Line
	matches int
}

type skipKind uint8

const (
	skipIgnoredFile skipKind = iota
	skipIgnoredFolder
	skipBinary
	skipTooLarge
	skipUnreadable
	skipLink
	skipSpecial
	skipHidden
)

type skip struct {
	path string
	kind skipKind
}

// beyond tells that nothing at or below a path can be part of the result any
// more. The path of a folder ends in "/".
func (c *collection) beyond(path string) bool {
	bound := c.bound.Load()
	return bound != nil && path > *bound
}

func (c *collection) add(f fileLines) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.files = append(c.files, f)
	c.matches += f.matches
	if c.max == 0 || c.matches <= c.max {
		return
	}
	slices.SortFunc(c.files, func(a, b fileLines) int { return strings.Compare(a.path, b.path) })
	c.matches = 0
	for i := range c.files {
		if c.matches += c.files[i].matches; c.matches > c.max {
			c.files = c.files[:i+1]
			path := c.files[i].path
			c.bound.Store(&path)
			return
		}
	}
}

func (c *collection) saw(path string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.count++; c.max > 0 {
		c.searched = append(c.searched, path)
	}
}

func (c *collection) skip(path string, kind skipKind) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.skipped = append(c.skipped, skip{path, kind})
}

// result puts everything in order once the workers are done.
func (c *collection) result() Result {
	slices.SortFunc(c.files, func(a, b fileLines) int { return strings.Compare(a.path, b.path) })
	r := Result{Files: c.count}
	for _, f := range c.files {
		if c.max > 0 && r.Matches+f.matches > c.max {
			r.Capped = true
			f = f.cut(c.max-r.Matches, c.context)
		}
		r.Lines = append(r.Lines, f.lines...)
		if r.Matches += f.matches; r.Capped {
			break
		}
	}
	slices.SortFunc(c.skipped, func(a, b skip) int { return strings.Compare(a.path, b.path) })
	for _, s := range c.skipped {
		if !c.beyond(s.path) {
			r.Skipped.count(s)
		}
	}
	if r.Capped {
		// What a slower worker might not have reached does not count.
		r.Files = 0
		for _, path := range c.searched {
			if !c.beyond(path) {
				r.Files++
			}
		}
	}
	return r
}

// cut keeps the first matches and the context behind the last of them.
func (f fileLines) cut(matches, context int) fileLines {
	if matches == 0 {
		return fileLines{path: f.path}
	}
	seen, last := 0, 0
	for i, line := range f.lines {
		switch {
		case line.Match && seen == matches, !line.Match && seen == matches && line.Number > last+context:
			return fileLines{path: f.path, lines: f.lines[:i], matches: matches}
		case line.Match:
			seen, last = seen+1, line.Number
		}
	}
	return f
}

func (s *Skipped) count(one skip) {
	switch one.kind {
	case skipIgnoredFile, skipIgnoredFolder:
		if s.Ignored == "" {
			s.Ignored = one.path
		}
		if one.kind == skipIgnoredFile {
			s.IgnoredFiles++
		} else {
			s.IgnoredFolders++
		}
	case skipBinary:
		s.Binary++
	case skipTooLarge:
		s.TooLarge++
	case skipUnreadable:
		s.Unreadable++
	case skipLink:
		s.Links++
	case skipSpecial:
		s.Special++
	case skipHidden:
		s.Hidden++
	}
}
