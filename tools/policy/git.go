package policy

import "strings"

// gitNeutral are global options of git that change neither the repository
// nor what is run.
var gitNeutral = map[string]bool{
	"-P": true, "--no-pager": true, "--no-replace-objects": true, "--no-lazy-fetch": true,
	"--no-optional-locks": true, "--no-advice": true, "--literal-pathspecs": true, "--glob-pathspecs": true,
	"--noglob-pathspecs": true, "--icase-pathspecs": true,
}

// gitValues are global options of git that take the next word.
var gitValues = map[string]bool{
	"-c": true, "--config-env": true, "--exec-path": false, "--git-dir": true, "--work-tree": true,
	"--namespace": true, "--super-prefix": true, "--attr-source": true, "--list-cmds": false,
}

// gitRunners are sub-commands of git that run other programs.
var gitRunners = map[string]bool{"bisect": true, "submodule": true, "rebase": true, "filter-branch": true, "difftool": true, "mergetool": true}

// git judges a git command without its global options. -C names a folder that
// is judged as a path; options that choose programs make the command opaque.
func (a *analyser) git(c *command, sc *scope) {
	inner := *c
	words := []word{c.words[0]}
	dirs := sc.dirs
	i := 1
options:
	for i < len(c.words) {
		w := c.words[i]
		name, _, joined := strings.Cut(w.text, "=")
		value, known := gitValues[name]
		switch {
		case !w.literal:
			inner.opaque = "an option of git is computed"
			if w.free {
				inner.wild = inner.opaque
			}
			break options
		case !strings.HasPrefix(w.text, "-") || w.text == "-" || w.text == "--help" || w.text == "--version" || w.text == "-h" || w.text == "-v":
			break options
		case w.text == "-C" && i+1 < len(c.words):
			i++
			if !c.words[i].literal {
				inner.opaque = "the folder of git is computed"
				if c.words[i].free {
					inner.wild = inner.opaque + "; quote it"
				}
				break
			}
			dirs = a.gitFolder(c.words[i].text, dirs, sc)
		case gitNeutral[w.text]:
		default:
			inner.strange = true
			if inner.opaque = "the option " + name + " of git cannot be judged"; known && value && !joined {
				i++
			}
			if i < len(c.words) {
				a.guessSetting(c.words[i], sc)
				if !c.words[i].literal || strings.HasPrefix(strings.ToLower(c.words[i].text), "include") {
					inner.wild = "a setting of git is computed"
				}
			}
		}
		inner.dropped = append(inner.dropped, w)
		i++
	}
	inner.words = append(words, c.words[min(i, len(c.words)):]...)
	if len(inner.dropped) > 0 {
		inner.full = c.words
	}
	a.subcommand(&inner, sc)
	a.emit(&inner, sc)
	if len(inner.words) > 1 && gitRunners[inner.words[1].text] {
		a.carried(&inner, sc, false)
	}
}

// guessSetting tries deny and ask rules on the command that a setting such as
// alias.x=!rm names.
func (a *analyser) guessSetting(w word, sc *scope) {
	_, value, _ := strings.Cut(guessText([]word{w}), "=")
	a.guessScript(strings.TrimPrefix(value, "!"), sc)
}

// gitCommands are the sub-commands of git, which no alias can stand for. The
// deprecated ones are left out: newer versions let aliases replace them.
var gitCommands = set(strings.Fields(`add am annotate apply archive bisect blame branch bugreport bundle cat-file
	check-attr check-ignore check-mailmap check-ref-format checkout checkout-index cherry cherry-pick clean clone column
	commit commit-graph commit-tree config count-objects credential daemon describe diagnose diff diff-files diff-index
	diff-tree difftool fast-export fast-import fetch fetch-pack filter-branch fmt-merge-msg for-each-ref for-each-repo
	format-patch fsck gc get-tar-commit-id grep hash-object help hook imap-send index-pack init init-db instaweb
	interpret-trailers log ls-files ls-remote ls-tree mailinfo mailsplit maintenance merge merge-base merge-file
	merge-index merge-tree mergetool mktag mktree multi-pack-index mv name-rev notes pack-objects pack-refs patch-id prune
	prune-packed pull push quiltimport range-diff read-tree rebase receive-pack reflog remote repack replace request-pull
	rerere reset restore rev-list rev-parse revert rm send-pack shell shortlog show show-branch show-index show-ref
	sparse-checkout stage stash status stripspace submodule subtree switch symbolic-ref tag unpack-file unpack-objects
	update-index update-ref update-server-info upload-archive upload-pack var verify-commit verify-pack verify-tag version
	worktree write-tree`)...)

// gitPrograms are the sub-commands as programs of their own.
var gitPrograms = func() map[string]bool {
	m := make(map[string]bool, len(gitCommands))
	for name := range gitCommands {
		m["git-"+name] = true
	}
	return m
}()

// subcommand looks at what a sub-command of git may run besides itself: an
// alias, or what its options or settings name.
func (a *analyser) subcommand(c *command, sc *scope) {
	if len(c.words) < 2 || !c.words[1].literal || !a.p.hasRefusals() {
		return
	}
	name := c.words[1].text
	if !strings.HasPrefix(name, "-") && !gitCommands[name] {
		// Programs of git go before aliases.
		c.alias = a.p.env.LookPath == nil || !a.p.resolves("git-"+name)
		return
	}
	a.optionCommands("git", c, sc)
	args := c.words[2:]
	for _, w := range args {
		if transport, ok := strings.CutPrefix(w.text, "ext::"); ok {
			// The other side of a connection is a command; "% " is a blank in a
			// word of it.
			words := strings.Fields(strings.ReplaceAll(transport, "% ", "\x00"))
			for i := range words {
				words[i] = strings.ReplaceAll(words[i], "\x00", " ")
			}
			a.guessWords(literals(words), sc)
		}
	}
	if name == "for-each-repo" {
		for len(args) > 0 && strings.HasPrefix(args[0].text, "-") {
			args = args[1:]
		}
		a.guessWords(append([]word{literal("git")}, args...), sc)
	}
	if gitRunners[name] {
		for i, w := range args {
			if !w.literal && (w.free || i > 0 && gitRuns[args[i-1].text]) {
				c.wild = "a command for git is computed"
			}
		}
	}
	if name != "config" {
		return
	}
	for i, w := range args {
		switch {
		case w.literal:
			a.guessScript(strings.TrimPrefix(w.text, "!"), sc)
			if i > 0 && strings.HasPrefix(strings.ToLower(args[i-1].text), "alias.") {
				a.guessWords(append([]word{literal("git")}, literals(strings.Fields(w.text))...), sc)
			}
			if i+1 < len(args) && strings.HasPrefix(strings.ToLower(w.text), "include") {
				c.wild = "git takes settings from another file"
			}
		case w.free || i == 0 || !args[i-1].literal || namesCommand(args[i-1].text):
			c.wild = "a setting of git is computed"
		}
	}
}

// gitRuns are the words before a command that git runs.
var gitRuns = set("-x", "--exec", "--extcmd", "run", "foreach", "--recursive")

// namesCommand tells whether a setting of git may name a command.
func namesCommand(key string) bool {
	key = strings.ToLower(key)
	for _, part := range []string{"alias.", "core.", "pager.", "command", "cmd", "textconv", "driver", "filter.", "helper", "editor", "program", "include", "exec", "hook"} {
		if strings.Contains(key, part) {
			return true
		}
	}
	return false
}

func (a *analyser) gitFolder(dir string, from []string, sc *scope) []string {
	var to []string
	for _, d := range from {
		to = appendNew(to, join(d, dir))
		a.add(unit{action: a.p.located(KindRead, d, dir), implied: true}, sc)
	}
	return to
}
