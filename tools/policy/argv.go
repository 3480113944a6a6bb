package policy

import (
	"path"
	"strings"
)

// covers tells whether the block certainly is about the command: every word
// that the block looks at is literal, and the program is the one it names.
func (b *block) covers(p *Policy, c *command) bool {
	if len(c.words) < max(len(b.argv), 1) || !c.words[0].literal {
		return false
	}
	if len(b.argv) > 0 {
		if !p.isProgram(b.argv[0], c) {
			return false
		}
		for i, alternatives := range b.argv[1:] {
			if w := c.words[i+1]; !w.literal || !anyPattern(alternatives, w.text) {
				return false
			}
		}
	}
	later := c.words[max(len(b.argv), 1):]
	if b.argvExact && len(later) > 0 {
		return false
	}
	if len(b.argvNone) > 0 {
		for _, list := range [2][]word{later, c.dropped} {
			for _, w := range list {
				if !w.literal || anyOption(b.argvNone, w.text) {
					return false
				}
			}
		}
	}
	if len(b.argvAny) == 0 {
		return true
	}
	for _, w := range later {
		if w.literal && anyPattern(b.argvAny, w.text) {
			return true
		}
	}
	return false
}

// isProgram tells whether the command word certainly is one of the programs.
// A bare word in a rule stands for the program of that name on PATH, a path
// for that file.
func (p *Policy) isProgram(alternatives []pattern, c *command) bool {
	text := c.words[0].text
	for _, alt := range alternatives {
		switch {
		case alt.any():
			return true
		case strings.Contains(alt.text, "/"):
			if file := p.fileOf(text, c.dir); file != "" && alt.match(file) || alt.relative() && p.relativeProgram(alt, text, c.dir) {
				return true
			}
		case !strings.Contains(text, "/"):
			if alt.match(text) && (p.resolves(text) || builtins[text] && !c.outermost) {
				return true
			}
		case text[0] == '/' && p.env.LookPath != nil && alt.match(path.Base(text)):
			if p.resolves(path.Base(text)) && clean(p.env.LookPath(path.Base(text))) == clean(text) {
				return true
			}
		}
	}
	return false
}

func (p pattern) relative() bool { return !strings.HasPrefix(p.text, "/") }

// relativeProgram matches a rule such as ./build.sh, which is relative to the
// workspace.
func (p *Policy) relativeProgram(alt pattern, text, dir string) bool {
	if !strings.Contains(text, "/") || dir == "" && text[0] != '/' {
		return false
	}
	full := join(dir, text)
	glob := strings.TrimPrefix(alt.text, "./")
	for _, root := range p.roots.workspace {
		if rel, ok := relativeTo(root, full, false); ok && matchWord(glob, rel) {
			return true
		}
	}
	return false
}

// fileOf returns the absolute file that a command word names, or an empty
// string.
func (p *Policy) fileOf(text, dir string) string {
	switch {
	case text == "":
		return ""
	case text[0] == '/':
		return clean(text)
	case strings.Contains(text, "/"):
		if dir == "" {
			return ""
		}
		return join(dir, text)
	case p.env.LookPath == nil:
		return ""
	}
	return clean(p.env.LookPath(text))
}

// suspects tells whether the block could be about the command, however it is
// spelled.
func (b *block) suspects(p *Policy, c *command) bool {
	if b.suspectsWords(p, c, c.words) {
		return true
	}
	return len(c.full) > 0 && b.suspectsWords(p, c, c.full)
}

func (b *block) suspectsWords(p *Policy, c *command, words []word) bool {
	if len(words) == 0 {
		return false
	}
	if len(b.argv) > 0 && !p.maybeProgram(b.argv[0], words[0], c) {
		return false
	}
	next := 1
	for i := 1; i < len(b.argv); i++ {
		if clustered(b.argv[i], words[1:]) {
			continue
		}
		if at, both := joinedWord(b.argv[i:], words, next); at >= 0 {
			if next = at + 1; both {
				i++
			}
			continue
		}
		at := nextWord(b.argv[i], words, next)
		if at < 0 {
			return false
		}
		next = at + 1
	}
	later := words[min(next, len(words)):]
	if b.argvExact && len(later) > 0 && len(b.argv) > 0 {
		return false
	}
	for _, w := range later {
		if w.literal && len(b.argvNone) > 0 && anyPattern(b.argvNone, w.text) {
			return false
		}
	}
	if len(b.argvAny) == 0 {
		return true
	}
	for _, w := range words[1:] {
		if anyOption(b.argvAny, w.text) {
			return true
		}
	}
	return false
}

// maybeProgram tells whether a command word could mean one of the programs:
// the folder of the program does not matter.
func (p *Policy) maybeProgram(alternatives []pattern, w word, c *command) bool {
	text := w.text
	if foldCase {
		text = strings.ToLower(text)
	}
	base := path.Base(text)
	linked := ""
	if w.literal && strings.Contains(text, "/") && p.env.Real != nil {
		// A link that the agent made may give the program another name.
		if file := p.fileOf(w.text, c.shown); file != "" && p.roots.mayChange(file) {
			linked = path.Base(p.env.Real(file))
		}
	}
	for _, alt := range alternatives {
		if linked != "" && alt.match(linked) {
			return true
		}
		if alt.any() || w.literal && (alt.match(text) || alt.match(base)) {
			return true
		}
		target := path.Base(alt.text)
		if w.glob && (matchWord(base, target) || matchWord(text, alt.text)) {
			return true
		}
		if !strings.Contains(alt.text, "/") || !w.literal {
			continue
		}
		if p.env.LookPath == nil && !strings.Contains(text, "/") && target == base {
			return true
		}
		if alt.relative() && p.relativeProgram(alt, text, c.shown) {
			return true
		}
		file := p.fileOf(text, c.shown)
		if file != "" && (alt.match(file) || p.env.Real != nil && alt.match(p.env.Real(file))) {
			return true
		}
	}
	return false
}

// nextWord returns the index of the next word that the alternatives match; only
// options and what may be their values may stand in between.
func nextWord(alternatives []pattern, words []word, from int) int {
	for i := from; i < len(words); i++ {
		w := words[i]
		if w.literal && anyOption(alternatives, w.text) {
			return i
		}
		if !w.literal || !strings.HasPrefix(w.text, "-") {
			if anyWildcard(alternatives) {
				return i
			}
			if !passes(words, from, i) {
				return -1
			}
		}
	}
	return -1
}

// passes tells whether a word that is no option may stand in front of a command
// of a program all the same: as the value of the option before it, which is none
// of the words up to from, or as the version of the program.
func passes(words []word, from, i int) bool {
	if i == 1 && words[i].literal && strings.HasPrefix(words[i].text, "+") {
		return true
	}
	return i > from && words[i-1].mayTakeValue() && path.Base(words[0].text) != "git"
}

// mayTakeValue tells whether the word is an option whose value may be the next
// word. What the options of git take is known, see git.go.
func (w *word) mayTakeValue() bool {
	return w.literal && len(w.text) > 1 && w.text[0] == '-' && w.text != "--" && !strings.Contains(w.text, "=") &&
		!switches[w.text] && !strings.HasPrefix(w.text, "--no-")
}

// switches are options that take no value, whatever the program.
var switches = map[string]bool{
	"--verbose": true, "--quiet": true, "--silent": true, "--debug": true, "--yes": true, "--json": true, "--help": true, "--version": true,
	"-v": true, "-q": true, "-s": true, "-y": true, "-h": true,
}

// joinedWord finds an option of a rule, such as -m, among others in one word, as
// in -Im, or with its value, the next word of the rule, as in -mvenv. It returns
// the index, -1 if there is none, and whether the value was met, too.
func joinedWord(argv [][]pattern, words []word, from int) (at int, both bool) {
	for _, alt := range argv[0] {
		if !alt.literal || len(alt.text) != 2 || !isCluster(alt.text) {
			continue
		}
		for i := from; i < len(words); i++ {
			w := &words[i]
			if !w.literal || !strings.HasPrefix(w.text, "-") {
				if !passes(words, from, i) {
					break
				}
				continue
			}
			before, value, found := strings.Cut(w.text, alt.text[1:])
			switch {
			case !found || len(w.text) < 3 || before != "-" && !isCluster(before):
			case value == "":
				return i, false
			case len(argv) > 1 && anyPattern(argv[1], value):
				return i, true
			}
		}
	}
	return -1, false
}

func anyWildcard(ps []pattern) bool {
	for _, p := range ps {
		if p.any() {
			return true
		}
	}
	return false
}

// clustered tells whether one of the alternatives is a cluster of short
// options, such as -rf, whose letters are all among the options of the words,
// in whatever spelling: -fr, -r -f.
func clustered(alternatives []pattern, words []word) bool {
	for _, alt := range alternatives {
		if alt.literal && isCluster(alt.text) && len(alt.text) > 2 && len(alt.text) <= 4 && holdsLetters(alt.text[1:], words) {
			return true
		}
	}
	return false
}

func isCluster(text string) bool {
	if len(text) < 2 || text[0] != '-' {
		return false
	}
	for i := 1; i < len(text); i++ {
		if c := text[i] | 0x20; c < 'a' || c > 'z' {
			return false
		}
	}
	return true
}

func holdsLetters(letters string, words []word) bool {
	have := ""
	for _, w := range words {
		if w.text == "--" {
			break
		}
		switch {
		case isCluster(w.text):
			have += w.text[1:]
		case len(w.text) > 2 && strings.HasPrefix(w.text, "--"):
			// Long options may be abbreviated.
			for name, letters := range longOptions {
				if strings.HasPrefix(name, w.text) {
					have += letters
				}
			}
		}
	}
	for i := 0; i < len(letters); i++ {
		// For most programs -R is -r.
		if strings.IndexByte(have, letters[i]) < 0 && (letters[i] != 'r' || !strings.Contains(have, "R")) {
			return false
		}
	}
	return true
}

// longOptions are the long names of short options that rules are often
// written with.
var longOptions = map[string]string{"--recursive": "rR", "--force": "f", "--verbose": "v", "--all": "a", "--interactive": "i", "--directory": "d"}

// anyOption tells whether a glob matches the word, or an option that the word
// abbreviates: many programs take --forc for --force, and some, all written in Go
// among them, take as many dashes as one likes.
func anyOption(ps []pattern, text string) bool {
	long := len(text) > 2 && strings.HasPrefix(text, "--")
	for _, p := range ps {
		if p.match(text) {
			return true
		}
		prefix := p.prefix()
		switch {
		case len(prefix) < 3 || prefix[0] != '-':
		case long && prefix[1] == '-':
			name, _, _ := strings.Cut(text, "=")
			if len(prefix) > len(name) && len(name) > 2 && strings.HasPrefix(prefix, name) {
				return true
			}
		case long:
			if p.match(text[1:]) {
				return true
			}
		case len(prefix) > 3 && prefix[1] == '-' && len(text) > 2 && text[0] == '-':
			if p.match("-" + text) {
				return true
			}
		}
	}
	return false
}
