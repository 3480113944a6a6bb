package policy

import "strings"

// envCommand judges the command behind env.
func (a *analyser) envCommand(c *command, sc *scope) {
	inner := *c
	i := 1
	for ; i < len(c.words); i++ {
		w := c.words[i]
		if strings.Contains(w.text, "=") && !strings.HasPrefix(w.text, "-") {
			sc = a.envAssignment(&inner, c.words[:i+1], sc)
			continue
		}
		if !w.literal {
			break
		}
		n, ok := 1, true
		name, value, joined := strings.Cut(w.text, "=")
		switch {
		case w.text == "-" || w.text == "-i" || w.text == "--ignore-environment" || w.text == "-0" || w.text == "--null" || w.text == "-v" || w.text == "--debug" || w.text == "--":
		case w.text == "-u" || w.text == "--unset":
			n = 2
			if i+1 < len(c.words) {
				value = c.words[i+1].text
			}
			inner.unsetVariable(value)
		case name == "--unset" && joined:
			inner.unsetVariable(value)
		case strings.HasPrefix(w.text, "-u"):
			inner.unsetVariable(w.text[2:])
		case w.text == "-C" || w.text == "--chdir":
			n = 2
			if i+1 < len(c.words) && c.words[i+1].literal {
				value = c.words[i+1].text
				sc = sc.child()
				sc.dirs = sc.enter(value)
			} else {
				ok = false
			}
		case name == "--chdir" && joined, strings.HasPrefix(w.text, "-C"):
			if !joined {
				value = w.text[2:]
			}
			sc = sc.child()
			sc.dirs = sc.enter(value)
		case strings.HasPrefix(w.text, "-"):
			ok = false
		default:
			n = 0
		}
		if !ok {
			c.opaque = "an option of env cannot be judged"
			if _, split, ok := strings.Cut(strings.TrimPrefix(w.text, "--split-string="), "S"); ok && !strings.HasPrefix(w.text, "--") {
				value = split
			}
			a.guessScript(strings.TrimSpace(value+" "+guessText(c.words[i+1:])), sc)
			a.emit(c, sc)
			a.carried(c, sc, true)
			return
		}
		if n == 0 {
			break
		}
		i += n - 1
	}
	if i >= len(c.words) {
		a.emit(c, sc)
		return
	}
	outer := *c
	a.add(unit{cmd: &outer, guess: true}, sc)
	inner.words = c.words[i:]
	a.command(&inner, sc)
}

// setVariable notes that env sets a variable for the command.
func (c *command) setVariable(p *Policy, name string, env []word) {
	switch {
	case p.safeVariable(name):
	case choosesProgram(name):
		c.opaque = "the variable " + name + " chooses programs"
	default:
		c.env = env
	}
}

func (c *command) unsetVariable(name string) {
	if choosesProgram(name) {
		c.opaque = "the variable " + name + " chooses programs"
	}
}

// envAssignment judges the last of the words, with which env sets a variable,
// and returns the scope of the command.
func (a *analyser) envAssignment(inner *command, words []word, sc *scope) *scope {
	w := words[len(words)-1]
	name, value, _ := strings.Cut(w.text, "=")
	if assignedName(w.text) == "" {
		// For env every word with "=" is an assignment.
		inner.opaque = "a variable that env sets has an unusual name"
		a.hook(name, value, w.literal, sc)
		if !w.literal {
			a.addWild(inner.opaque, sc)
		}
		return sc
	}
	inner.setVariable(a.p, name, words)
	if a.hook(name, value, w.literal, sc); choosesProgram(name) {
		a.guessScript(value, sc)
	}
	if !w.literal {
		// Unlike an assignment, an argument is split into words.
		inner.opaque = "an argument of env is computed"
	}
	if name == "HOME" {
		sc = sc.child()
		sc.set(name, []string{value})
	}
	return sc
}
