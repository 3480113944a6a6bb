package policy

import (
	"slices"
	"strings"
)

// otherShells are shells whose language is not read.
var otherShells = set("fish", "csh", "tcsh", "nu", "elvish", "xonsh")

// schedulers run a script of their input or of a file later.
var schedulers = set("at", "batch", "crontab")

// launchers run the command in their later words; words that are computed
// there are rather its arguments.
var launchers = set("eatmydata", "chronic", "pee", "ifne", "cpulimit", "catchsegv", "daemonize", "chpst", "envdir", "setuidgid",
	"softlimit", "schedtool", "lldb", "rr", "heaptrack", "doppler", "dotenv", "foreman", "pipenv", "poetry", "uv", "conda",
	"mamba", "pixi", "nix", "guix", "devbox", "npx", "npm", "volta", "pyenv", "rbenv", "pkgx",
	"ip", "watchexec", "nodemon", "reflex", "run-parts", "hatch", "rye", "bundle", "aws-vault", "op", "pnpx", "bunx", "pnpm", "yarn", "vagrant")

// copiers give files other names.
var copiers = set("ln", "cp", "mv", "install", "link")

// copied tries rules on a program that gets another name: what runs under
// that name cannot be told.
func (a *analyser) copied(c *command, sc *scope) {
	if !a.p.hasCommandRules() {
		return
	}
	for _, w := range c.words[1:] {
		file := w.text
		if !w.literal {
			if !w.subst || len(w.guess) != 1 {
				continue
			}
			file = w.guess[0]
		} else if !strings.Contains(file, "/") || !a.p.trusted(file) {
			continue
		}
		if file != "" {
			named := command{words: []word{literal(file)}, shown: sc.dir(), renamed: true}
			a.add(unit{cmd: &named, guess: true}, sc)
		}
	}
}

// fromLines tries the command of parallel, which takes words from its input
// and from the words behind ":::".
func (a *analyser) fromLines(c *command, sc *scope) {
	outer := *c
	outer.words = []word{c.words[0]}
	named := false
	for _, w := range c.words[1:] {
		if !named && (!w.literal || !strings.HasPrefix(w.text, "-")) {
			named = true
			if !w.literal || strings.ContainsAny(w.text, "{}") || strings.HasPrefix(w.text, ":::") {
				a.addWild("the command of "+c.name()+" is computed", sc)
			}
		}
		outer.words = append(outer.words, holed(w, "{}"))
	}
	if !named {
		a.addWild("the commands of "+c.name()+" are not read", sc)
	}
	outer.words = append(outer.words, word{text: "…", free: true})
	a.carried(&outer, sc, false)
}

// optionRunners are programs with options that name a command.
var optionRunners = map[string][]string{
	"tar":     tarRuns,
	"gtar":    tarRuns,
	"bsdtar":  tarRuns,
	"split":   {"--filter"},
	"sort":    {"--compress-program"},
	"rg":      {"--pre", "--hostname-bin"},
	"rsync":   {"-e", "--rsh", "--rsync-path"},
	"ssh":     {"-o"},
	"scp":     {"-S", "-o"},
	"sftp":    {"-S", "-o"},
	"go":      {"-exec", "--exec", "-toolexec", "--toolexec"},
	"zip":     {"-TT", "--unzip-command"},
	"npm":     {"-c", "--call"},
	"npx":     {"-c", "--call"},
	"man":     {"-P", "--pager", "-H"},
	"vi":      {"-c", "--cmd"},
	"vim":     {"-c", "--cmd"},
	"nvim":    {"-c", "--cmd"},
	"ex":      {"-c", "--cmd"},
	"nc":      {"-e", "-c"},
	"ncat":    {"-e", "-c", "--exec", "--sh-exec"},
	"cpio":    {"--rsh-command"},
	"tcpdump": {"-z"},
	"gcc":     {"-wrapper"}, "g++": {"-wrapper"}, "cc": {"-wrapper"}, "c++": {"-wrapper"},
	"apt": {"-o"}, "apt-get": {"-o"}, "dpkg": {"--pre-invoke", "--post-invoke"},
	"git": {"-x", "--exec", "--extcmd", "-u", "--upload-pack", "--receive-pack", "-O", "--open-files-in-pager", "-c", "--config"},
	"awk": {}, "gawk": {}, "mawk": {}, "nawk": {}, "sed": {}, "gsed": {},
}

var tarRuns = []string{"--checkpoint-action", "--to-command", "-I", "--use-compress-program", "--rsh-command", "-F",
	"--info-script", "--new-volume-script"}

// optionCommands tries deny and ask rules on the commands that options of a
// program name.
func (a *analyser) optionCommands(name string, c *command, sc *scope) {
	if !a.p.hasRefusals() {
		return
	}
	options, ok := optionRunners[name]
	if !ok {
		return
	}
	for i := 1; i < len(c.words); i++ {
		w := c.words[i]
		if strings.HasSuffix(name, "sed") {
			a.edited(&w, sc)
			continue
		}
		if len(options) == 0 {
			a.quoted(w.text, sc)
			if w.literal && !strings.HasPrefix(w.text, "-") && awkComputes(w.text) {
				a.addWild("awk runs what it puts together", sc)
			}
			continue
		}
		if !w.literal {
			if w.free && (options[0] == tarRuns[0]) || runsOption(options, w.opening()) || i > 1 && slices.Contains(options, c.words[i-1].text) {
				a.addWild("a command for "+name+" is computed", sc)
			}
			continue
		}
		if i > 1 && slices.Contains(options, c.words[i-1].text) {
			a.optionValue(w.text, sc)
			continue
		}
		if !runsOption(options, w.text) {
			continue
		}
		for _, o := range options {
			if rest, ok := strings.CutPrefix(w.text, o); ok && len(o) == 2 {
				a.optionValue(rest, sc)
			}
		}
		if _, value, ok := strings.Cut(w.text, "="); ok {
			a.optionValue(value, sc)
		}
	}
}

// opening returns how a computed word certainly begins.
func (w *word) opening() string {
	if w.free || len(w.shapes) != 1 {
		return ""
	}
	return pattern{text: w.shapes[0]}.prefix()
}

// runsOption tells whether a word gives one of the options, which may be
// abbreviated.
func runsOption(options []string, text string) bool {
	if len(text) < 2 || text[0] != '-' {
		return false
	}
	name, _, _ := strings.Cut(text, "=")
	for _, o := range options {
		if strings.HasPrefix(text, o) || len(name) > 4 && strings.HasPrefix(o, name) {
			return true
		}
	}
	return false
}

// optionValue tries what an option names, with and without what may stand in
// front of the command: exec=, alias.x=!, ProxyCommand=.
func (a *analyser) optionValue(text string, sc *scope) {
	for range 5 {
		a.guessScript(strings.TrimLeft(text, "!: "), sc)
		if _, rest, ok := strings.Cut(text, " "); ok {
			// The options of ssh take a blank for the sign.
			a.guessScript(rest, sc)
		}
		if strings.Contains(text, ",") {
			a.guessScript(strings.ReplaceAll(text, ",", " "), sc)
		}
		_, rest, ok := strings.Cut(text, "=")
		if !ok {
			return
		}
		text = rest
	}
}

// quoted tries the texts between double quotes in a program of another
// language, such as system("rm x") in awk.
func (a *analyser) quoted(text string, sc *scope) {
	if !strings.Contains(text, "system") && !strings.Contains(text, "|") {
		return
	}
	parts := strings.Split(text, `"`)
	for i := 1; i < len(parts) && i < 2*maxCarried; i += 2 {
		a.guessScript(parts[i], sc)
	}
}

// edited tries what a program of sed runs.
func (a *analyser) edited(w *word, sc *scope) {
	text := w.text
	if program, ok := readSed(text); ok && w.literal {
		for _, run := range program.runs {
			a.guessScript(run, sc)
		}
		if program.computed {
			a.addWild("sed runs what it reads", sc)
		}
		return
	}
	if strings.HasPrefix(text, "-e") {
		rest := *w
		rest.text = text[2:]
		a.edited(&rest, sc)
		return
	}
	if value, ok := strings.CutPrefix(text, "--expression="); ok {
		rest := *w
		rest.text = value
		a.edited(&rest, sc)
		return
	}
	for i := 0; i+1 < len(text); i++ {
		if text[i] != 'e' || text[i+1] != ' ' && text[i+1] != '\t' {
			continue
		}
		if i == 0 || strings.IndexByte("0123456789$/;{ \n!", text[i-1]) >= 0 {
			a.guessScript(text[i+1:], sc)
		}
	}
}

// computed judges a command whose name is only known when it runs.
func (a *analyser) computed(c *command, sc *scope) {
	first := c.words[0]
	c.opaque = "the name of the command is computed"
	sc.lost = sc.lost || first.couldBe(movers)
	names := first.named(shells, carriers, codeBuiltins, schedulers, otherShells, programRunners)
	if known, ok := first.texts(); ok {
		names = known
	}
	if first.free || len(first.shapes) == 0 || len(names) > maxSettled {
		c.wild = c.opaque
	} else {
		for _, name := range names {
			if name != "" {
				a.guessWords(append([]word{literal(name)}, c.words[1:]...), sc)
			}
		}
	}
	a.emit(c, sc)
	if !a.p.hasRefusals() {
		return
	}
	for _, name := range first.named(gitPrograms) {
		if c.wild != "" {
			break
		}
		a.guessWords(append([]word{literal("git"), literal(strings.TrimPrefix(name, "git-"))}, c.words[1:]...), sc)
	}
	if first.vanishes && len(c.words) > 1 {
		a.guessWords(c.words[1:], sc)
	}
	a.carried(c, sc, false)
}

// movers are builtins that change the folder, or run code that may.
var movers = set("cd", "pushd", "popd", "eval", "source", ".", "builtin", "command")

// programRunners are the programs besides shells and carriers that run the
// command they are told.
var programRunners = func() map[string]bool {
	m := set("env", "find", "fd", "fdfind", "git")
	for name := range wrappers {
		m[name] = true
	}
	for name := range optionRunners {
		m[name] = true
	}
	return m
}()

// hook looks at a variable that makes later commands run others: shells read
// the file that BASH_ENV names, git runs what GIT_PAGER says. A known value
// is tried as a command, an unknown one may be any.
func (a *analyser) hook(name, value string, known bool, sc *scope) {
	if !a.p.hasRefusals() {
		return
	}
	wild := false
	name, _, _ = strings.Cut(name, "[")
	switch {
	case nameTables[name] || sc.zsh && zshTables[name]:
		wild = true
	case name == "ENV":
		// It is also a popular name for the kind of an installation.
		wild = !known || strings.Trim(value, identifier) != ""
	case name == "PS4" || name == "PS0" || name == "PS1":
		wild = !known || strings.ContainsAny(value, "$`")
	case startupVariables[name] || strings.HasPrefix(name, "BASH_FUNC_") || strings.HasPrefix(name, "GIT_CONFIG") && name != "GIT_CONFIG_NOSYSTEM":
		wild = !known || value != "" && value != "/dev/null"
	case commandVariables[name] || hasAnySuffix(name, "PAGER", "EDITOR", "_RSH", "_SSH", "ASKPASS"):
		if wild = !known; known {
			a.guessScript(value, sc)
		}
	case known && hasAnySuffix(name, "_OPTIONS", "FLAGS", "_OPTS", "_COMMAND", "_CMD", "_SHELL"):
		a.optionValue(strings.ReplaceAll(value, `\`, ""), sc)
	}
	if wild {
		a.addWild("the variable "+name+" chooses what is run", sc)
	}
}

func hasAnySuffix(text string, suffixes ...string) bool {
	return slices.ContainsFunc(suffixes, func(s string) bool { return strings.HasSuffix(text, s) })
}

const identifier = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-"

// nameTables say what names of commands mean, and zshTables do in zsh.
var (
	nameTables = set("BASH_CMDS", "BASH_ALIASES")
	zshTables  = set("commands", "aliases", "galiases", "saliases", "functions", "path", "fpath")
)

// startupVariables name files or code that shells or git run by themselves.
var startupVariables = set("BASH_ENV", "PROMPT_COMMAND", "ZDOTDIR", "GIT_DIR", "GIT_COMMON_DIR", "GIT_EXEC_PATH", "GIT_TEMPLATE_DIR")

// commandVariables hold commands.
var commandVariables = set("PAGER", "MANPAGER", "EDITOR", "VISUAL", "BROWSER", "LESSOPEN", "LESSCLOSE", "SSH_ASKPASS",
	"SUDO_ASKPASS", "GIT_PAGER", "GIT_EDITOR", "GIT_SEQUENCE_EDITOR", "GIT_SSH", "GIT_SSH_COMMAND", "GIT_EXTERNAL_DIFF",
	"GIT_ASKPASS", "GIT_PROXY_COMMAND")
