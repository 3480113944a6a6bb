package convert

import (
	"path"
	"strings"

	"drover/tools/policy"
)

// This file converts the two kinds of rules that hold a pattern: commands and
// paths.

// bash converts a rule about commands. In a pattern there, a star stands for
// any text, blanks too; here it stays within a word, but what follows the words
// of a rule is free.
func (c *claude) bash(r claudeRule) {
	spec := strings.TrimSpace(r.spec)
	if !r.hasSpec || spec == "*" || spec == ":*" {
		c.b.add(entry{origin: r.origin, rule: policy.Rule{"effect": string(r.effect), "argv": []any{"*"}}})
		return
	}
	open := false
	if prefix, ok := strings.CutSuffix(spec, ":*"); ok {
		spec, open = prefix, true
	}
	list, why := patternWords(spec)
	if n := len(list); why == "" && n > 1 && list[n-1].text == "*" && list[n-1].star && !open {
		list, open = list[:n-1], true
	}
	if why == "" && len(list) == 0 {
		why = "it names no command"
	}
	if why != "" {
		c.b.lost(r.origin, "not mapped: %s", why)
		return
	}
	c.command(r, list, open)
}

// patternWord is one word of a pattern; star says that it holds a star.
type patternWord struct {
	text string
	star bool
}

// glob is the word as a glob of a rule.
func (w patternWord) glob() string {
	return strings.Join(literals(strings.Split(w.text, "*")), "*")
}

// patternWords splits a pattern into words. Patterns there are plain texts; one
// that a shell would not read as a single command has no equal here, because
// every command of a script is judged by itself.
func patternWords(spec string) (list []patternWord, why string) {
	if strings.Contains(spec, `\`) {
		return nil, "a backslash may take the meaning from a star, or not"
	}
	if strings.ContainsAny(spec, ";&|<>`$()\n\r") {
		return nil, "every command of a script is judged by itself here; write a rule for each"
	}
	words, err := split(spec)
	if err != nil {
		return nil, err.Error()
	}
	for i, w := range words {
		if w == "" {
			return nil, "a word is empty"
		}
		if name, _, ok := strings.Cut(w, "="); ok && i == 0 && !strings.ContainsAny(name, "-/.*") {
			return nil, "variables in front of a command are judged by shell.safe_env"
		}
		list = append(list, patternWord{text: w, star: strings.Contains(w, "*")})
	}
	return list, ""
}

// command writes the words as a rule. open says that more words may follow.
func (c *claude) command(r claudeRule, list []patternWord, open bool) {
	last := len(list) - 1
	stars := -1
	for i, w := range list {
		// A star at the very end covers what follows, like an open rule.
		if w.star && !(i == last && !open && strings.IndexByte(w.text, '*') == len(w.text)-1) {
			stars = i
			break
		}
	}
	if list[last].star && stars != last {
		open = true
	}
	rule := policy.Rule{"effect": string(r.effect)}
	e := entry{origin: r.origin, rule: rule}
	if stars >= 0 && r.effect != policy.Allow {
		c.wider(e, list, stars)
		return
	}
	var argv []any
	for _, w := range list {
		argv = append(argv, w.glob())
	}
	rule["argv"] = argv
	if !open {
		rule["argv_exact"] = true
	}
	if stars >= 0 {
		c.b.stricter(r.origin, "a star in the middle stands for one word here")
	} else if example, ok := exampleOf(list); ok {
		e.examples = [][]string{example}
	}
	c.b.add(e)
}

// wider writes a deny or ask rule with a star in the middle: the words before
// the star, and a word behind them that any text of the pattern would hold.
func (c *claude) wider(e entry, list []patternWord, star int) {
	c.b.stricter(e.origin, "a star in the middle stands for any words; the rule here matches more commands")
	hint := list[len(list)-1].hint()
	if star == 0 {
		// The star may stand for the program, too.
		program := policy.Rule{"effect": e.rule["effect"], "argv": []any{hint}}
		c.b.add(entry{origin: e.origin, rule: program})
		if hint == "*" {
			return
		}
		e.rule["argv"], e.rule["argv_any"] = []any{"*"}, []string{hint}
		c.b.add(e)
		return
	}
	var argv []any
	for _, w := range list[:star] {
		argv = append(argv, w.glob())
	}
	e.rule["argv"] = argv
	if hint != "*" {
		e.rule["argv_any"] = []string{hint}
	}
	c.b.add(e)
}

// hint is a glob for one word that every text holds which the last word of a
// pattern matches, blanks included.
func (w patternWord) hint() string {
	if !w.star {
		return w.glob()
	}
	parts := strings.Split(w.text, "*")
	if last := parts[len(parts)-1]; last != "" {
		return "*" + literal(last)
	}
	if parts[0] != "" {
		return literal(parts[0]) + "*"
	}
	for _, p := range parts {
		if p != "" {
			return "*" + literal(p) + "*"
		}
	}
	return "*"
}

// exampleOf is a command that the words match.
func exampleOf(list []patternWord) ([]string, bool) {
	var out []string
	for _, w := range list {
		if w.star {
			return nil, false
		}
		out = append(out, w.text)
	}
	return out, true
}

// path converts a rule about files.
func (c *claude) path(r claudeRule, access string) {
	rule := policy.Rule{"effect": string(r.effect), "access": []string{access}}
	if access == "write" && r.effect != policy.Allow {
		// What may not be changed may not be deleted either.
		rule["access"] = []string{"write", "delete"}
	}
	spec := strings.TrimSpace(r.spec)
	switch {
	case !r.hasSpec || spec == "" || spec == "*" || spec == "**":
		rule["path"] = []string{"**"}
		if r.effect != policy.Allow {
			rule["path"] = []string{"**", "/**"}
		} else {
			c.b.stricter(r.origin, "it holds in the working folder")
		}
	default:
		globs, why := c.globs(spec, r.effect)
		if why != "" {
			c.b.lost(r.origin, "not mapped: %s", why)
			return
		}
		rule["path"] = globs
	}
	c.b.add(entry{origin: r.origin, rule: rule})
}

// globs converts a pattern of the kind that git ignores files with.
func (c *claude) globs(spec string, effect policy.Effect) (globs []string, why string) {
	if strings.HasPrefix(spec, "!") {
		return nil, "a pattern that takes another one back has no equal; use except"
	}
	spec = strings.ReplaceAll(spec, "{", `\{`)
	switch {
	case strings.HasPrefix(spec, "//"):
		spec = spec[1:]
	case strings.HasPrefix(spec, "~/"), spec == "~":
	case strings.HasPrefix(spec, "/"):
		c.anchored = true
		spec = spec[1:]
	case strings.HasPrefix(spec, "./"):
		spec = strings.TrimLeft(strings.TrimPrefix(spec, "./"), "/")
	}
	folder := strings.HasSuffix(spec, "/")
	spec = strings.TrimRight(spec, "/")
	if spec == "" {
		spec = "**"
	}
	if spec == ".." || strings.HasPrefix(spec, "../") || strings.Contains(spec, "/../") || strings.HasSuffix(spec, "/..") {
		return nil, "it leaves the working folder; write the absolute path"
	}
	list := []string{spec}
	if !strings.Contains(spec, "/") && spec != "**" && spec != "~" && effect != policy.Allow {
		// Such a name may be meant in every folder.
		list = append(list, "**/"+spec)
	}
	for _, g := range list {
		if !folder {
			globs = append(globs, g)
		}
		last := path.Base(g)
		// A pattern that matches a folder matches everything in it.
		if last != "**" && (folder || effect != policy.Allow || !strings.ContainsAny(last, `*?[\`)) {
			globs = append(globs, g+"/**")
		}
	}
	return globs, ""
}
