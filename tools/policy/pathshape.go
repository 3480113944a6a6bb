package policy

import (
	"path"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

// A file whose name is only known when the script runs may be any file that
// its shape allows. A deny or ask rule that could be about one of these
// decides; an allow rule never does.

// possiblePath is a file whose name is not certain.
type possiblePath struct {
	// shapes are absolute globs, one of which matches the name.
	shapes []string
	// open says that what a star stands for may hold slashes and "..", so that
	// only the end of a shape is certain.
	open bool
	// deep says that everything below the file is touched, too.
	deep bool
	// why says what makes the name uncertain.
	why string
}

// possiblePathPart returns the part of the first deny or ask rule that could
// be about a file whose name is not certain; ok is false if there is none.
func (p *Policy) possiblePathPart(call *Call, u *unit) (part Part, ok bool) {
	s := subject{call: call, action: &u.action}
	rules := p.set(KindRead)
	for _, list := range [2][]*rule{rules.deny, rules.ask} {
		for _, r := range list {
			if !p.mayConcern(r, &s, u.maybe) {
				continue
			}
			part := p.rulePart(u.action, r)
			if part.RuleID == r.id && part.Effect == r.effect {
				part.Reason = describe(&u.action) + " cannot be judged (" + u.maybe.why + `), and rule "` + r.id + `" may apply`
			}
			p.settle(&part, &s)
			return part, true
		}
	}
	return Part{}, false
}

// mayConcern tells whether a rule could be about the file. Exceptions that
// name paths never hold for certain.
func (p *Policy) mayConcern(r *rule, s *subject, f *possiblePath) bool {
	b := r.block
	b.path = nil
	if !b.matches(p, s, true) {
		return false
	}
	for i := range r.except {
		if len(r.except[i].path) == 0 && r.except[i].matches(p, s, false) {
			return false
		}
	}
	if len(r.path) == 0 {
		return true
	}
	for _, g := range r.path {
		for _, form := range p.roots.absolute(g) {
			if f.meets(form, segments(form)) {
				return true
			}
		}
	}
	return false
}

// refusal is a deny or ask rule about paths, made ready for many of them.
type refusal struct {
	rule  *rule
	forms []string
	parts [][]string
}

// refused tells whether a deny or ask rule names a path, or could name one
// that is not certain. Most paths that follow from the words of programs are
// of no interest, and are not kept.
func (a *analyser) refused(act *Action, f *possiblePath) bool {
	if a.refusals == nil {
		rules := a.p.set(KindRead)
		for _, list := range [2][]*rule{rules.deny, rules.ask} {
			for _, r := range list {
				ready := refusal{rule: r}
				for _, g := range r.path {
					for _, form := range a.p.roots.absolute(g) {
						ready.forms, ready.parts = append(ready.forms, form), append(ready.parts, segments(form))
					}
				}
				a.refusals = append(a.refusals, ready)
			}
		}
	}
	for i := range a.refusals {
		r := &a.refusals[i]
		switch {
		case r.rule.access != 0 && r.rule.access&accessOf(act.Kind) == 0:
		case len(r.rule.path) == 0:
			return true
		case f == nil:
			if a.p.roots.matchPath(r.rule.path, act, true) {
				return true
			}
		default:
			for k, form := range r.forms {
				if f.meets(form, r.parts[k]) {
					return true
				}
			}
		}
	}
	return false
}

// absolute returns the absolute globs that a glob stands for.
func (s *rootSet) absolute(g pathGlob) []string {
	if !g.relative {
		return g.forms
	}
	var out []string
	for _, root := range s.workspace {
		for _, form := range g.forms {
			out = append(out, path.Join(escapeGlob(root), form))
		}
	}
	return out
}

// meets tells whether the glob, which is given in parts, too, could match the
// file.
func (f *possiblePath) meets(form string, parts []string) bool {
	if foldCase {
		form = strings.ToLower(form)
		parts = segments(form)
	}
	for _, shape := range f.shapes {
		if foldCase {
			shape = strings.ToLower(shape)
		}
		switch {
		case f.open:
			if endsMeet(shape, form) {
				return true
			}
		case segmentsMeet(segments(shape), parts, f.deep):
			return true
		}
	}
	return false
}

// segments returns the parts of a cleaned absolute glob.
func segments(glob string) []string {
	return strings.Split(strings.Trim(path.Clean(glob), "/"), "/")
}

// endsMeet compares the last parts of a shape and a glob.
func endsMeet(shape, form string) bool {
	last := shape[strings.LastIndexByte(shape, '/')+1:]
	if last == "" || last == "." || last == ".." || strings.Contains(form, "{") {
		return true
	}
	return partsMeet(last, form[strings.LastIndexByte(form, '/')+1:], true)
}

// partsMeet tells whether one part of a name could be matched by both the part
// of a shape and that of a glob. Patterns of a shell leave names alone that
// begin with a dot, hidden ones do not.
func partsMeet(shape, form string, hidden bool) bool {
	if strings.Trim(form, "*") == "" {
		return true
	}
	if text, ok := unescapeWord(shape); ok {
		found, err := doublestar.Match(form, text)
		return found || err != nil
	}
	if !hidden && strings.HasPrefix(form, ".") && shape[0] != '.' {
		return false
	}
	if !strings.ContainsAny(form, `*?[\{`) {
		return matchWord(strings.ToLower(shape), strings.ToLower(form))
	}
	return meets(shape, pattern{text: form})
}

// segmentsMeet tells whether a name could be matched by both a shape and a
// glob, part by part; deep shapes may also be folders above such a name. Two
// stars of the glob stand for any parts; at its end they stand for at least
// one, because what a pattern of a shell finds there is a folder.
func segmentsMeet(shape, form []string, deep bool) bool {
	for len(shape) > 0 {
		if len(form) == 0 {
			return false
		}
		if strings.Contains(form[0], "{") {
			return true
		}
		if form[0] == "**" {
			rest := form[1:]
			if len(rest) == 0 {
				return true
			}
			for i := 0; i <= len(shape); i++ {
				if segmentsMeet(shape[i:], rest, false) {
					return true
				}
			}
			return false
		}
		if !partsMeet(shape[0], form[0], false) {
			return false
		}
		shape, form = shape[1:], form[1:]
	}
	return deep || len(form) == 0
}
