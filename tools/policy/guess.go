package policy

import (
	"path"
	"slices"
	"strings"
)

// guessed tries deny and ask rules on what a command with expansions probably
// becomes.
func (a *analyser) guessed(c *command, sc *scope) {
	if !a.p.hasRefusals() && a.p.settings.approval == "" {
		return
	}
	var words []word
	for _, w := range c.words {
		if w.literal {
			words = append(words, w)
			continue
		}
		words = append(words, literals(w.guess)...)
	}
	a.guessWords(words, sc)
}

func (a *analyser) guessWords(words []word, sc *scope) {
	if len(words) == 0 || sc.depth >= maxDepth {
		return
	}
	guess := sc.child()
	guess.guess = true
	guess.depth++
	a.command(&command{words: words}, guess)
}

// guessScript tries deny and ask rules on a text that is probably run.
func (a *analyser) guessScript(text string, sc *scope) {
	if strings.TrimSpace(text) == "" {
		return
	}
	guess := sc.child()
	guess.guess = true
	a.script(text, guess)
}

// maxCarried bounds the words of a carrier that are tried as a command.
const maxCarried = 32

// carried tries deny and ask rules on every command that the later words of a
// program could be.
// If it runs one of them itself, a computed word may be a command, too.
func (a *analyser) carried(c *command, sc *scope, computed bool) {
	if computed && len(c.words) > maxCarried {
		a.addWild("it carries too many words", sc)
	}
	if sc.carried || !a.p.hasRefusals() {
		return
	}
	guess := sc.child()
	guess.guess, guess.carried = true, true
	guess.args = append([]string{""}, texts(c.words[1:])...)
	for i := 1; i < len(c.words) && i <= maxCarried; i++ {
		w := c.words[i]
		if !w.literal && computed {
			a.guessWords(c.words[i:], guess)
		}
		if !w.literal || strings.HasPrefix(w.text, "-") {
			continue
		}
		a.guessWords(c.words[i:], guess)
		if strings.ContainsAny(w.text, " \t\n;|&") {
			a.guessScript(w.text, guess)
		}
	}
}

func texts(words []word) []string {
	out := make([]string, len(words))
	for i, w := range words {
		out[i] = w.text
	}
	return out
}

// findActions tries deny and ask rules on the commands that find or fd runs.
func (a *analyser) findActions(c *command, sc *scope) {
	for i := 1; i < len(c.words); i++ {
		w := c.words[i]
		if w.free {
			a.addWild(w.text+" may hold actions of find; quote it", sc)
		}
		if !w.literal && w.couldBe(findRunners) {
			a.guessWords(c.words[i+1:], sc)
		}
		if !w.literal || !findRunners[w.text] {
			continue
		}
		end := i + 1
		for end < len(c.words) && c.words[end].text != ";" && c.words[end].text != "+" {
			end++
		}
		action := make([]word, 0, end-i)
		for _, w := range c.words[i+1 : end] {
			action = append(action, holed(w, "{}"))
		}
		a.guessWords(action, sc)
		i = end
	}
}

// findRunners are the actions of find and fd that run commands.
var findRunners = set("-exec", "-execdir", "-ok", "-okdir", "-x", "-X", "--exec", "--exec-batch")

// holed returns a literal word whose hole is filled with a name when it runs.
func holed(w word, hole string) word {
	if !w.literal || !strings.Contains(w.text, hole) {
		return w
	}
	shape := strings.ReplaceAll(escapeWord(w.text), escapeWord(hole), "*")
	return word{text: w.text, guess: []string{w.text}, shapes: []string{shape}}
}

// codeBuiltin judges a builtin that takes code, or changes what later words
// mean.
func (a *analyser) codeBuiltin(name string, c *command, sc *scope) {
	args := c.words[1:]
	if (name == "eval" || name == "source" || name == ".") && len(args) > 0 && args[0].text == "--" {
		args = args[1:]
	}
	code, computed := "", slices.ContainsFunc(args, func(w word) bool { return !w.literal })
	switch name {
	case "hash", "set", "unalias", "shopt":
		if name == "set" && len(args) > 0 {
			sc.args = append([]string{""}, strings.Fields(guessText(args))...)
			if first := sc.args[min(1, len(sc.args)-1)]; first == "--" {
				sc.args = sc.args[1:]
			}
		}
		if !changesMeaning(name, args) {
			a.emit(c, sc)
			return
		}
		if name == "hash" {
			c.wild = "hash gives a name to another program"
		}
	case "trap":
		if len(args) == 0 || len(args) < 2 && args[0].literal || args[0].text == "-" || args[0].text == "" || strings.HasPrefix(args[0].text, "-") && args[0].text != "--" {
			a.emit(c, sc)
			return
		}
		code = guessText(args[:1])
		if args[0].text == "--" {
			code = guessText(args[1:2])
		}
		if !args[0].literal || args[0].text == "--" && !args[1].literal {
			c.wild = "the code of trap is computed"
		}
	case "alias":
		for _, w := range args {
			_, value, defines := strings.Cut(guessText([]word{w}), "=")
			a.guessScript(value, sc)
			if defines || !w.literal {
				c.wild = "an alias changes what later words mean"
			}
		}
	case "eval":
		code = guessText(args)
		for strings.HasPrefix(code, "eval ") {
			code = strings.TrimLeft(code[len("eval "):], " ")
		}
		if computed || !a.parses(code) {
			c.wild = "the code of eval cannot be read"
		}
	case "source", ".":
		for _, w := range args {
			a.guessScript(w.prints, sc)
		}
		if len(args) > 0 {
			c.wild = "the file of " + name + " is not read"
		}
	case "jobs", "fc", "enable":
		if !a.jobBuiltin(name, c, sc) {
			a.emit(c, sc)
			return
		}
	case "mapfile", "readarray", "complete", "compgen", "bind":
		if len(args) == 0 || name == "compgen" && !takesCode(args) {
			a.emit(c, sc)
			return
		}
		a.completion(name, c, sc)
	}
	c.opaque = name + " runs code that cannot be judged"
	if c.wild != "" || namesMover(code) {
		// What it runs may change the folder.
		sc.lost = true
	}
	a.emit(c, sc)
	a.guessScript(code, sc)
}

// namesMover tells whether a text could change the folder of the shell.
func namesMover(code string) bool {
	return strings.Contains(code, "cd") || strings.Contains(code, "pushd") || strings.Contains(code, "popd")
}

// jobBuiltin judges builtins that run commands only if they are told to, and
// tells whether this one does.
func (a *analyser) jobBuiltin(name string, c *command, sc *scope) bool {
	for i, w := range c.words[1:] {
		switch {
		case !w.literal:
			c.wild = "an argument of " + name + " is computed"
			return true
		case name == "jobs" && w.text == "-x":
			a.guessWords(c.words[i+2:], sc)
			return true
		case name == "fc" && strings.HasPrefix(w.text, "-") && strings.Contains(w.text, "l"):
			return true
		case name == "enable" && strings.HasPrefix(w.text, "-") && strings.Contains(w.text, "f"):
			c.wild = "enable loads builtins"
		}
	}
	if name == "fc" {
		c.wild = "fc runs commands again"
	}
	return name != "jobs"
}

// takesCode tells whether options of compgen run what they name.
func takesCode(args []word) bool {
	return slices.ContainsFunc(args, func(w word) bool {
		return !w.literal || strings.HasPrefix(w.text, "-") && strings.ContainsAny(w.text, "CFW")
	})
}

// completion judges builtins whose options take code.
func (a *analyser) completion(name string, c *command, sc *scope) {
	a.carried(c, sc, false)
	for i, w := range c.words[1:] {
		before := c.words[i].text
		switch {
		case !w.literal && (w.free || before == "-C" || before == "-F" || before == "-W" || name == "bind"):
			c.wild = "an argument of " + name + " is computed"
		case name == "bind" && strings.HasPrefix(w.text, "-") && strings.ContainsAny(w.text, "xf"):
			c.wild = "bind gives keys to commands"
		case w.literal:
			text := w.text
			if at := strings.IndexAny(text, "CFW"); strings.HasPrefix(text, "-") && at > 0 {
				text = text[at+1:]
			}
			a.guessScript(text, sc)
		}
	}
}

// parses tells whether a text is a script.
func (a *analyser) parses(text string) bool {
	if tooComplex(text) {
		return false
	}
	parser := a.p.parser()
	defer a.p.parsers.Put(parser)
	_, err := parser.Parse(strings.NewReader(text), "")
	return err == nil
}

// changesMeaning tells whether the options make later commands mean something
// else: hash -p gives a name to another file, set -a exports all variables.
func changesMeaning(name string, args []word) bool {
	for i, w := range args {
		switch {
		case !w.literal:
			return true
		case name == "hash" && strings.HasPrefix(w.text, "-") && strings.Contains(w.text, "p"),
			name == "set" && strings.HasPrefix(w.text, "-") && strings.Contains(w.text, "a"),
			name == "set" && w.text == "allexport" && i > 0,
			name == "shopt" && (w.text == "expand_aliases" || w.text == "extdebug"):
			return true
		}
	}
	return false
}

func guessText(words []word) string {
	var parts []string
	for _, w := range words {
		if w.literal {
			parts = append(parts, w.text)
		} else {
			parts = append(parts, w.guess...)
		}
	}
	return strings.Join(parts, " ")
}

// shell looks into a shell that is given a script.
func (a *analyser) shell(c *command, sc *scope) {
	script, why := scriptOf(c.words)
	if why != "" {
		c.opaque = why
	}
	if script < 0 {
		if c.feed != nil {
			c.opaque = "a shell is fed by a here-document"
		}
		if !a.readsKnown(c) {
			c.wild = "the script of the shell is not read"
		}
		a.emit(c, sc)
		a.guessScript(sc.stdin, sc)
		for _, w := range c.words {
			a.guessScript(w.prints, sc)
		}
		return
	}
	if slices.ContainsFunc(c.words[1:script], func(w word) bool { return isCluster(w.text) && strings.Contains(w.text, "i") }) || why != "" {
		a.addWild("the shell reads files of its own", sc)
	}
	inner := sc.child()
	inner.zsh = path.Base(c.name()) == "zsh"
	inner.args = append([]string{path.Base(c.name())}, texts(c.words[script+1:])...)
	if len(c.words) > script+1 {
		inner.args = texts(c.words[script+1:])
	}
	w := c.words[script]
	if !w.literal {
		c.opaque = "the script is computed"
		if scripts, ok := w.texts(); ok {
			for _, text := range scripts {
				a.guessScript(text, inner)
			}
		} else {
			c.wild = c.opaque
		}
		a.emit(c, sc)
		return
	}
	if !c.outermost {
		outer := *c
		a.add(unit{cmd: &outer, guess: true}, sc)
		if c.opaque != "" {
			a.addOpaque(c.opaque, sc)
		}
	}
	a.script(w.text, inner)
}

// scriptOf returns the index of the script that a shell is given with -c, or
// -1; why says what makes it opaque.
func scriptOf(words []word) (index int, why string) {
	command := false
	i := 1
	for ; i < len(words); i++ {
		w := words[i]
		if !w.literal {
			if command {
				return i, ""
			}
			return -1, "an option of the shell is computed"
		}
		switch {
		case w.text == "--" || w.text == "-":
			if command && i+1 < len(words) {
				return i + 1, why
			}
			return -1, why
		case strings.HasPrefix(w.text, "--"):
			switch name, _, joined := strings.Cut(w.text, "="); name {
			case "--rcfile", "--init-file":
				why = "the shell reads a file of its own"
				if !joined {
					i++
				}
			}
		case len(w.text) > 1 && (w.text[0] == '-' || w.text[0] == '+'):
			for _, o := range w.text[1:] {
				switch o {
				case 'c':
					command = true
				case 'o', 'O':
					i++
				case 's':
					why = "the shell reads its standard input"
				}
			}
		case command:
			return i, why
		default:
			return -1, why
		}
	}
	return -1, why
}

// readsKnown tells whether a shell without -c runs nothing but a script that
// was read.
func (a *analyser) readsKnown(c *command) bool {
	for _, w := range c.words[1:] {
		switch {
		case !w.literal:
			return false
		case w.text == "--version" || w.text == "--help":
			return true
		case !strings.HasPrefix(w.text, "-") || strings.HasPrefix(w.text, "--") || strings.Contains(w.text, "i"):
			return false
		}
	}
	return c.feed != nil && c.feed.known
}

// texts returns all that a word may become; ok is false if that is not known.
func (w *word) texts() (texts []string, ok bool) {
	if w.free || w.repeat || len(w.shapes) == 0 {
		return nil, false
	}
	for _, shape := range w.shapes {
		text, literal := unescapeWord(shape)
		if !literal {
			return nil, false
		}
		texts = append(texts, text)
	}
	return texts, true
}

// unescapeWord undoes escapeWord; ok is false for a glob.
func unescapeWord(shape string) (text string, ok bool) {
	var out strings.Builder
	for i := 0; i < len(shape); i++ {
		switch shape[i] {
		case '*', '?', '[':
			return "", false
		case '\\':
			if i++; i == len(shape) {
				return "", false
			}
		}
		out.WriteByte(shape[i])
	}
	return out.String(), true
}
