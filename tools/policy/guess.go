package policy

import (
	"path"
	"strings"
)

// guessed tries deny and ask rules on what a command with expansions probably
// becomes.
func (a *analyser) guessed(c *command, sc *scope) {
	if !a.p.hasCommandRules() && a.p.settings.approval == "" {
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
func (a *analyser) carried(c *command, sc *scope) {
	if sc.carried || !a.p.hasCommandRules() {
		return
	}
	guess := sc.child()
	guess.guess, guess.carried = true, true
	guess.args = append([]string{""}, texts(c.words[1:])...)
	for i := 1; i < len(c.words) && i <= maxCarried; i++ {
		w := c.words[i]
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
		switch c.words[i].text {
		case "-exec", "-execdir", "-ok", "-okdir", "-x", "-X", "--exec", "--exec-batch":
			end := i + 1
			for end < len(c.words) && c.words[end].text != ";" && c.words[end].text != "+" {
				end++
			}
			a.guessWords(c.words[i+1:end], sc)
			i = end
		}
	}
}

// codeBuiltin judges a builtin that takes code, or changes what later words
// mean.
func (a *analyser) codeBuiltin(name string, c *command, sc *scope) {
	args := c.words[1:]
	code := ""
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
	case "trap":
		if len(args) < 2 || args[0].text == "-" || args[0].text == "" || strings.HasPrefix(args[0].text, "-") && args[0].text != "--" {
			a.emit(c, sc)
			return
		}
		code = guessText(args[:1])
		if args[0].text == "--" {
			code = guessText(args[1:2])
		}
	case "alias":
		for _, w := range args {
			_, value, _ := strings.Cut(guessText([]word{w}), "=")
			a.guessScript(value, sc)
		}
	case "eval":
		code = guessText(args)
	case "source", ".":
		for _, w := range args {
			a.guessScript(w.prints, sc)
		}
	case "mapfile", "readarray", "complete", "bind":
		if len(args) == 0 {
			a.emit(c, sc)
			return
		}
		a.carried(c, sc)
	}
	c.opaque = name + " runs code that cannot be judged"
	a.emit(c, sc)
	a.guessScript(code, sc)
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
		a.emit(c, sc)
		a.guessScript(sc.stdin, sc)
		for _, w := range c.words {
			a.guessScript(w.prints, sc)
		}
		return
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
