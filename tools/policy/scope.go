package policy

import (
	"maps"
	"slices"
	"strconv"
	"strings"
)

// scope is what is known at one place of a script.
type scope struct {
	// dirs are the folders in which the place may run; the first is the most
	// likely one.
	dirs []string
	// lost says that the folder may be any other, too.
	lost bool
	// been are the folders that the place has left.
	been []string
	// vars are values that the script assigned, for guesses.
	vars map[string][]string
	// args are $0, $1 and so on.
	args []string
	// funcs are the functions that the script defines.
	funcs map[string]bool
	// stdin guesses what the place reads.
	stdin string
	// zsh says that the shell is zsh.
	zsh bool
	// opaque says that the place lies inside a construct that cannot be
	// judged as a whole, such as a command substitution.
	opaque bool
	// guess says that the place was only guessed: deny and ask rules are
	// tried, and nothing else follows from it.
	guess bool
	// carried says that the words of a carrier are being tried.
	carried bool
	// depth counts shells within shells.
	depth int
}

// maxDirs bounds the folders that are followed; beyond it the place is lost.
const maxDirs = 16

// maxVars bounds the variables that are followed.
const maxVars = 256

func (s *scope) dir() string {
	if len(s.dirs) == 0 {
		return ""
	}
	return s.dirs[0]
}

// child returns a scope whose changes do not come back, as in a subshell.
func (s *scope) child() *scope {
	c := *s
	c.dirs = slices.Clone(s.dirs)
	c.vars = maps.Clone(s.vars)
	return &c
}

func (s *scope) set(name string, values []string) {
	if name == "" || len(s.vars) >= maxVars {
		return
	}
	if s.vars == nil {
		s.vars = map[string][]string{}
	}
	s.vars[name] = values
}

// value returns what is known of a parameter.
func (s *scope) value(name, index string) string {
	switch name {
	case "":
		return ""
	case "@", "*":
		if len(s.args) > 1 {
			return strings.Join(s.args[1:], " ")
		}
		return ""
	}
	if n, err := strconv.Atoi(name); err == nil {
		if n >= 0 && n < len(s.args) {
			return s.args[n]
		}
		return ""
	}
	values := s.vars[name]
	switch index {
	case "@", "*":
		return strings.Join(values, " ")
	case "":
		index = "0"
	}
	if n, err := strconv.Atoi(index); err == nil && n >= 0 && n < len(values) {
		return values[n]
	}
	return ""
}

// fields replaces what the script made a separator of words by blanks.
func (s *scope) fields(text string) string {
	ifs := s.vars["IFS"]
	if len(ifs) != 1 || ifs[0] == "" {
		return text
	}
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune(ifs[0], r) {
			return ' '
		}
		return r
	}, text)
}

// enter adds the folders that cd to target leads to, and returns them.
func (s *scope) enter(target string) []string {
	var to []string
	for _, dir := range s.dirs {
		to = appendNew(to, join(dir, target))
	}
	return s.reach(to)
}

// reach adds folders that the place may be in from now on, and returns them.
func (s *scope) reach(to []string) []string {
	s.been = union(s.been, s.dirs)
	s.dirs = union(s.dirs, to)
	if len(s.dirs) > maxDirs {
		s.dirs, s.lost = s.dirs[:maxDirs], true
	}
	return to
}

func union(a, b []string) []string {
	for _, s := range b {
		a = appendNew(a, s)
	}
	return a
}

func appendNew(list []string, s string) []string {
	if slices.Contains(list, s) {
		return list
	}
	// The three-index form keeps callers that share the list apart.
	return append(list[:len(list):len(list)], s)
}
