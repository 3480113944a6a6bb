package policy

import (
	"path"
	"strings"
)

// A command that cannot be fully read may be anything that its shapes allow.
// A deny or ask rule that could be about one of these things decides: what a
// rule names is never run only because it was hidden.

// possible tells whether a command that cannot be fully read could be what
// the block is about.
func (b *block) possible(p *Policy, c *command) bool {
	if c.wild != "" {
		return true
	}
	if len(c.words) == 0 {
		return false
	}
	if (c.alias || c.renamed) && (len(b.argv) == 0 || p.maybeProgram(b.argv[0], c.words[0], c)) {
		return true
	}
	return b.possibleWords(p, c, c.words) || c.strange && b.possibleWords(p, c, c.full)
}

// unread tells whether a command cannot be fully read.
func (c *command) unread() bool {
	if c.wild != "" || c.alias || c.renamed {
		return true
	}
	for _, list := range [2][]word{c.words, c.full} {
		for i := range list {
			if !list[i].literal {
				return true
			}
		}
	}
	return false
}

func (b *block) possibleWords(p *Policy, c *command, words []word) bool {
	if len(b.argv) > 0 && !p.possibleProgram(b.argv[0], words[0], c) {
		return false
	}
	literals, dynamic := 0, false
	for _, w := range words {
		dynamic = dynamic || !w.literal
		if !w.literal {
			continue
		}
		if literals++; len(b.argvNone) > 0 && literals > len(b.argv) && anyPattern(b.argvNone, w.text) {
			return false
		}
	}
	if !dynamic || b.argvExact && literals > len(b.argv) {
		return false
	}
	if len(b.argv) > 1 && !words[0].free && !reaches(b.argv[1:], words[1:]) {
		return false
	}
	if len(b.argvAny) == 0 {
		return true
	}
	for i, w := range words {
		if w.literal && i > 0 && anyOption(b.argvAny, w.text) || !w.literal && w.could(b.argvAny) {
			return true
		}
	}
	return false
}

// maxRuleWords bounds the words of a rule that are followed one by one; a
// longer rule is met by any words.
const maxRuleWords = 63

// reaches tells whether the words could begin with those of the rule, with
// options in between. It follows all readings of the words at once: bit i of
// the set says that i words of the rule may have been met.
func reaches(argv [][]pattern, words []word) bool {
	if len(argv) > maxRuleWords {
		return true
	}
	done := uint64(1) << len(argv)
	clusters := make([]bool, len(argv))
	for i := range argv {
		clusters[i] = clustered(argv[i], words)
	}
	at := uint64(1)
	for k := 0; ; k++ {
		for i := range argv {
			if clusters[i] && at&(1<<i) != 0 {
				at |= 2 << i
			}
		}
		if at&done != 0 {
			return true
		}
		if k == len(words) || at == 0 {
			return false
		}
		w := &words[k]
		if w.free || !w.literal && len(w.shapes) == 0 {
			return true
		}
		passed := uint64(0)
		if (k == 0 && w.literal && strings.HasPrefix(w.text, "+")) || k > 0 && words[k-1].mayTakeValue() {
			passed = at // see passes
		}
		at = w.steps(argv, at) | passed
	}
}

// steps returns how many words of the rule may have been met after w.
func (w *word) steps(argv [][]pattern, at uint64) uint64 {
	next := uint64(0)
	for i := range argv {
		if at&(1<<i) == 0 {
			continue
		}
		switch {
		case w.literal:
			if anyOption(argv[i], w.text) || anyWildcard(argv[i]) {
				next |= 2 << i
			}
			if strings.HasPrefix(w.text, "-") {
				next |= 1 << i
			}
		default:
			if w.could(argv[i]) {
				next |= 2 << i
				if w.repeat && i+1 < len(argv) {
					// The word may go on with the next words of the rule.
					at |= 2 << i
				}
			}
			if w.repeat || w.vanishes || w.mayBeOption() {
				next |= 1 << i
			}
		}
	}
	return next
}

// could tells whether a word with an expansion could be one that the patterns
// match.
func (w *word) could(ps []pattern) bool {
	if w.free || len(w.shapes) == 0 {
		return true
	}
	for _, shape := range w.shapes {
		for _, p := range ps {
			if meets(shape, p) {
				return true
			}
		}
	}
	return false
}

func (w *word) mayBeOption() bool {
	for _, shape := range w.shapes {
		if shape != "" && strings.ContainsRune("-*?", rune(shape[0])) {
			return true
		}
	}
	return w.free
}

// possibleProgram tells whether a command word could mean one of the programs.
func (p *Policy) possibleProgram(alternatives []pattern, w word, c *command) bool {
	if w.literal {
		return p.maybeProgram(alternatives, w, c)
	}
	if w.could(alternatives) {
		return true
	}
	for _, shape := range w.shapes {
		base := shape[strings.LastIndexByte(shape, '/')+1:]
		for _, alt := range alternatives {
			name := pattern{text: path.Base(alt.text), literal: alt.literal}
			if meets(base, name) || meets(base, alt) {
				return true
			}
		}
	}
	return false
}

// named returns which of the programs a command word could name.
func (w *word) named(programs ...map[string]bool) (names []string) {
	for _, shape := range w.shapes {
		base := shape[strings.LastIndexByte(shape, '/')+1:]
		for _, list := range programs {
			if !strings.ContainsAny(base, `*?\`) {
				if list[base] {
					names = appendNew(names, base)
				}
				continue
			}
			for name := range list {
				if matchWord(base, name) {
					names = appendNew(names, name)
				}
			}
		}
	}
	return names
}

// couldBe tells whether a command word could name one of the programs.
func (w *word) couldBe(programs ...map[string]bool) bool {
	return w.free || len(w.shapes) == 0 || len(w.named(programs...)) > 0
}

// meets tells whether a word could be matched by both a shape and a pattern.
// Shells may be told to ignore case, so case does not matter. Of two globs
// only the literal ends are compared.
func meets(shape string, p pattern) bool {
	if p.any() {
		return true
	}
	shape, text := strings.ToLower(shape), strings.ToLower(p.text)
	if p.literal {
		return matchWord(shape, text)
	}
	from, other := pattern{text: shape}.prefix(), pattern{text: text}.prefix()
	if !strings.HasPrefix(from, other) && !strings.HasPrefix(other, from) {
		return false
	}
	from, other = literalEnd(shape), literalEnd(text)
	return strings.HasSuffix(from, other) || strings.HasSuffix(other, from)
}

// literalEnd returns the literal end of a glob.
func literalEnd(glob string) string { return glob[strings.LastIndexAny(glob, `*?[]\`)+1:] }

// possibleRule returns the first deny or ask rule that could be about a
// command which cannot be fully read, or nil.
func (p *Policy) possibleRule(rules []*rule, s *subject) *rule {
	if len(rules) == 0 || !s.cmd.unread() {
		return nil
	}
	inner := *s
	inner.possible = true
	return firstMatch(p, rules, &inner)
}

// possiblePart returns the part of a rule that could be about the action.
func (p *Policy) possiblePart(a Action, r *rule, c *command) Part {
	part := p.rulePart(a, r)
	if part.RuleID == r.id && part.Effect == r.effect {
		why := c.wild
		switch {
		case why != "":
		case c.alias:
			why = "the sub-command of git may be an alias"
		case c.renamed:
			why = "the program gets another name"
		default:
			why = "it depends on an expansion"
		}
		part.Reason = describe(&a) + ` cannot be read (` + why + `), and rule "` + r.id + `" may apply`
	}
	return part
}

// wildPart decides about a construct that may run any command; ok is false if
// no rule could be about it.
func (p *Policy) wildPart(call *Call, a Action, why string) (part Part, ok bool) {
	c := command{wild: why}
	s := subject{call: call, action: &a, cmd: &c}
	rules := p.set(KindExec)
	for _, list := range [2][]*rule{rules.deny, rules.ask} {
		if r := p.possibleRule(list, &s); r != nil {
			return p.possiblePart(a, r, &c), true
		}
	}
	return Part{}, false
}

// vouched tells whether an allow rule spells out at least two words of a
// command and so stands for what its file holds: "bash build.sh" in a rule is
// meant as it is written.
func (p *Policy) vouched(s *subject) bool {
	for _, r := range p.set(KindExec).allow {
		if len(r.argv) < 2 || !r.matches(p, s) {
			continue
		}
		spelled := true
		for _, alternatives := range r.argv {
			for _, alt := range alternatives {
				spelled = spelled && alt.literal
			}
		}
		if spelled {
			return true
		}
	}
	return false
}

// hasPathRules tells whether any rule could refuse a path or ask for it.
func (p *Policy) hasPathRules() bool {
	rules := p.byKind[KindRead]
	return rules != nil && (len(rules.deny) > 0 || len(rules.ask) > 0)
}
