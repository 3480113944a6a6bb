package policy

import (
	"path"
	"slices"
	"strings"
)

// wrapper is a program that runs the command in its last words and adds
// nothing that a policy cares about.
type wrapper struct {
	// flags are short options without a value, values those with one.
	flags, values string
	// long names the long options; true ones take the next word if they hold
	// no "=".
	long map[string]bool
	// operands is the number of words between the options and the command.
	operands int
	// numbers says that -5 is an option.
	numbers bool
	// own says that the wrapper needs a rule of its own, too.
	own bool
}

// wrappers are the programs that are looked through.
var wrappers = map[string]wrapper{
	"timeout": {flags: "vfp", values: "ks", operands: 1, long: map[string]bool{
		"--foreground": false, "--preserve-status": false, "--verbose": false, "--kill-after": true, "--signal": true}},
	"nice":    {values: "n", numbers: true, long: map[string]bool{"--adjustment": true}},
	"nohup":   {},
	"time":    {flags: "pv", values: "f", long: map[string]bool{"--portability": false, "--verbose": false, "--format": true}},
	"stdbuf":  {values: "ioe", long: map[string]bool{"--input": true, "--output": true, "--error": true}},
	"command": {flags: "p"},
	"builtin": {},
	"exec":    {flags: "cl", values: "a"},
	"setsid":  {flags: "cfw", long: map[string]bool{"--ctty": false, "--fork": false, "--wait": false}},
	"ionice": {flags: "t", values: "cn", long: map[string]bool{
		"--ignore": false, "--class": true, "--classdata": true}},
	"sudo": {flags: "AbEHKknPSBN", values: "CghpTUu", own: true, long: map[string]bool{
		"--user": true, "--group": true, "--non-interactive": false, "--set-home": false, "--stdin": false, "--prompt": true,
		"--background": false, "--preserve-groups": false, "--reset-timestamp": false}},
	"doas": {flags: "nL", values: "u", own: true},
	"xargs": {flags: "0oprtx", values: "dEILnPs", long: map[string]bool{
		"--null": false, "--delimiter": true, "--eof": false, "--replace": false, "--max-lines": false, "--max-args": true,
		"--max-procs": true, "--interactive": false, "--no-run-if-empty": false, "--max-chars": true, "--verbose": false,
		"--exit": false, "--show-limits": false, "--open-tty": false}},
}

// split returns the command behind the wrapper. It is not certain if an
// option is unknown or computed.
func (w wrapper) split(words []word) (rest []word, certain bool) {
	i := 1
	for i < len(words) {
		opt := words[i].text
		if !words[i].literal {
			return nil, false
		}
		if opt == "--" {
			i++
			break
		}
		if len(opt) < 2 || opt[0] != '-' {
			break
		}
		n, ok := w.option(opt)
		if !ok {
			return nil, false
		}
		for k := i + 1; k < i+n && k < len(words); k++ {
			if !words[k].literal {
				return nil, false
			}
		}
		i += n
	}
	for range w.operands {
		if i < len(words) && !words[i].literal {
			return nil, false
		}
		i++
	}
	if w.operands > 0 && i < len(words) && words[i].text == "--" {
		i++
	}
	if i >= len(words) {
		return nil, true
	}
	return words[i:], true
}

// option returns the number of words that an option takes.
func (w wrapper) option(opt string) (int, bool) {
	if strings.HasPrefix(opt, "--") {
		name, _, joined := strings.Cut(opt, "=")
		value, ok := w.long[name]
		if value && !joined {
			return 2, ok
		}
		return 1, ok
	}
	if w.numbers && strings.Trim(opt[1:], "0123456789") == "" {
		return 1, true
	}
	for k := 1; k < len(opt); k++ {
		switch {
		case strings.IndexByte(w.flags, opt[k]) >= 0:
		case strings.IndexByte(w.values, opt[k]) >= 0:
			if k+1 < len(opt) {
				return 1, true
			}
			return 2, true
		default:
			return 0, false
		}
	}
	return 1, true
}

// command judges a simple command, whatever stands in front of it, and
// returns the folders in which the shell may be afterwards.
func (a *analyser) command(c *command, sc *scope) []string {
	if a.commands++; a.commands > maxCommands {
		a.overrun(sc)
		return sc.dirs
	}
	c.shown = sc.dir()
	if len(sc.dirs) == 1 && !sc.lost {
		c.dir = sc.dirs[0]
	}
	if slices.ContainsFunc(c.words, func(w word) bool { return !w.literal }) {
		a.guessed(c, sc)
	}
	first := c.words[0]
	if !first.literal {
		a.computed(c, sc)
		return sc.dirs
	}
	name := path.Base(first.text)
	if sub, ok := strings.CutPrefix(name, "git-"); ok && gitCommands[sub] {
		// Each sub-command of git is a program in a folder of its own, too.
		a.guessWords(append([]word{literal("git"), literal(sub)}, c.words[1:]...), sc)
	}
	if !c.outermost {
		if sc.funcs[first.text] {
			c.function = true
			// What its body does with its arguments was judged there: a computed
			// name or script is one that may be any.
			sc.lost = sc.lost || changesDir(first.text)
			a.emit(c, sc)
			return sc.dirs
		}
		if strings.HasPrefix(first.text, "=") {
			// zsh replaces =name by the program's path.
			c.opaque = "the name of the command is computed"
			a.guessWords(append([]word{literal(first.text[1:])}, c.words[1:]...), sc)
		}
		if changesDir(first.text) {
			a.emit(c, sc)
			return a.moved(c, sc)
		}
	}
	if !a.p.trusted(first.text) {
		a.emit(c, sc)
		a.carried(c, sc, false)
		return sc.dirs
	}
	a.known(name, c, sc)
	return sc.dirs
}

// known judges a command by what its name stands for.
func (a *analyser) known(name string, c *command, sc *scope) {
	if typesShell(name, c.words) {
		c.wild = "what is typed into the shell of " + name + " is not read"
	}
	switch a.foreign(name, c, sc); {
	case name == "make" || name == "gmake":
		a.emit(c, sc)
		a.made(c, sc)
	case name == "socat":
		a.emit(c, sc)
		a.connected(c, sc)
	case shells[name]:
		a.shell(c, sc)
	case name == "env":
		a.envCommand(c, sc)
	case name == "git":
		a.git(c, sc)
	case name == "find" || name == "fd" || name == "fdfind":
		a.emit(c, sc)
		a.findActions(c, sc)
	case carriers[name]:
		if otherShells[name] && !slices.ContainsFunc(c.words, func(w word) bool { return w.literal && w.text == "-c" }) {
			c.wild = "the script of the shell is not read"
		}
		a.emit(c, sc)
		if name == "parallel" || name == "rush" || name == "sem" {
			a.fromLines(c, sc)
			return
		}
		a.carried(c, sc, true)
	case launchers[name]:
		a.emit(c, sc)
		a.optionCommands(name, c, sc)
		a.carried(c, sc, false)
	case copiers[name]:
		a.emit(c, sc)
		a.copied(c, sc)
	case schedulers[name]:
		c.wild = "what " + name + " runs later is not read"
		a.emit(c, sc)
	case optionRunners[name] != nil:
		a.emit(c, sc)
		a.optionCommands(name, c, sc)
		if name == "ssh" {
			// The other side may be this machine.
			a.carried(c, sc, false)
		}
	case !c.outermost && codeBuiltins[name] && c.name() == name:
		a.codeBuiltin(name, c, sc)
	default:
		if w, ok := wrappers[name]; ok {
			a.wrapped(name, w, c, sc)
			return
		}
		if c.feed != nil && interprets(name) {
			c.opaque = "an interpreter is fed by a here-document"
		}
		a.emit(c, sc)
	}
}

func (c *command) name() string { return c.words[0].text }

// emit adds the command as it stands.
func (a *analyser) emit(c *command, sc *scope) {
	if !c.outermost && setsVariables[c.name()] {
		a.setByName(c, sc)
	}
	if !c.outermost && evaluatesNames[c.name()] {
		for _, w := range c.words[1:] {
			if strings.Contains(w.text, "[") && strings.ContainsAny(w.text, "$`") {
				c.opaque = c.name() + " evaluates a name that is not known"
				a.guessScript(guessText([]word{w}), sc)
			}
		}
	}
	a.touched(c, sc)
	a.add(unit{cmd: c}, sc)
}

// setByName follows builtins that set the variables they are told.
func (a *analyser) setByName(c *command, sc *scope) {
	for i, w := range c.words[1:] {
		name, _, _ := strings.Cut(w.text, "=")
		if table, _, indexed := strings.Cut(name, "["); indexed && w.literal {
			a.hook(table, "", false, sc)
		}
		switch {
		case choosesProgram(name):
			c.opaque = "the variable " + name + " chooses programs"
			a.hook(name, "", false, sc)
		case !w.literal && (c.name() != "printf" || i > 0 && c.words[i].text == "-v"):
			c.opaque = "the name of a variable is computed"
		case c.name() == "read" && isName(w.text):
			sc.set(w.text, []string{strings.TrimSpace(sc.stdin)})
		}
	}
}

// wrapped judges the command behind a wrapper.
func (a *analyser) wrapped(name string, w wrapper, c *command, sc *scope) {
	rest, certain := w.split(c.words)
	if !certain || len(rest) == 0 {
		// Without a command the wrapper is a command itself: xargs prints,
		// "command -v" looks up.
		looksUp := name == "command" && len(c.words) > 1 && (c.words[1].text == "-v" || c.words[1].text == "-V")
		if !certain && name != "command" {
			c.opaque = "an option of " + name + " cannot be judged"
		}
		a.emit(c, sc)
		if !certain {
			outer := *c
			if name == "xargs" {
				outer.words = append(slices.Clone(c.words), word{text: "…", free: true})
			}
			dynamic := slices.ContainsFunc(c.words, func(w word) bool { return !w.literal })
			a.carried(&outer, sc, !looksUp && (name != "xargs" || dynamic))
		}
		return
	}
	outer := *c
	if w.own {
		a.add(unit{cmd: &outer}, sc)
	} else {
		a.add(unit{cmd: &outer, guess: true}, sc)
	}
	inner := *c
	inner.words, inner.outermost = rest, c.outermost && name != "command" && name != "builtin" && name != "exec"
	switch name {
	case "xargs":
		inner.words = fromInput(c.words[:len(c.words)-len(rest)], rest, sc.stdin)
		inner.feed = nil
		sc = sc.child()
		sc.stdin = ""
	case "sudo", "doas":
		for len(inner.words) > 1 && assignedName(inner.words[0].text) != "" {
			if v := assignedName(inner.words[0].text); !a.p.safeVariable(v) || !inner.words[0].literal {
				inner.opaque = "the variable " + v + " is not known to be harmless"
			}
			inner.words = inner.words[1:]
		}
	}
	a.command(&inner, sc)
}

// fromInput returns the command that xargs runs: words of its input stand
// where the replacement string is, or at the end.
func fromInput(options, rest []word, input string) []word {
	replace := ""
	for i, o := range options {
		switch {
		case o.text == "-I" && i+1 < len(options):
			replace = options[i+1].text
		case strings.HasPrefix(o.text, "-I"):
			replace = o.text[2:]
		case o.text == "--replace":
			replace = "{}"
		case strings.HasPrefix(o.text, "--replace="):
			replace = strings.TrimPrefix(o.text, "--replace=")
		}
	}
	words := slices.Clone(rest)
	if replace == "" {
		return append(words, word{text: "…", guess: strings.Fields(input), free: true})
	}
	for i, w := range words {
		if strings.Contains(w.text, replace) {
			words[i] = holed(w, replace)
			words[i].guess = []string{w.text}
			if line := strings.TrimSpace(input); line != "" {
				words[i].guess[0] = strings.ReplaceAll(w.text, replace, line)
			}
		}
	}
	return words
}

// assignedName returns the variable that NAME=VALUE assigns, or an empty
// string.
func assignedName(text string) string {
	name, _, ok := strings.Cut(text, "=")
	if !ok || name == "" || '0' <= name[0] && name[0] <= '9' {
		return ""
	}
	for i := 0; i < len(name); i++ {
		c := name[i] | 0x20
		if !('a' <= c && c <= 'z' || '0' <= name[i] && name[i] <= '9' || name[i] == '_') {
			return ""
		}
	}
	return name
}
