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
			break options
		case !strings.HasPrefix(w.text, "-") || w.text == "-" || w.text == "--help" || w.text == "--version" || w.text == "-h" || w.text == "-v":
			break options
		case w.text == "-C" && i+1 < len(c.words):
			i++
			if !c.words[i].literal {
				inner.opaque = "the folder of git is computed"
				break
			}
			dirs = a.gitFolder(c.words[i].text, dirs, sc)
		case gitNeutral[w.text]:
		default:
			if inner.opaque = "the option " + name + " of git cannot be judged"; known && value && !joined {
				i++
			}
			if i < len(c.words) {
				a.guessSetting(c.words[i], sc)
			}
		}
		inner.dropped = append(inner.dropped, w)
		i++
	}
	inner.words = append(words, c.words[min(i, len(c.words)):]...)
	if len(inner.dropped) > 0 {
		inner.full = c.words
	}
	a.emit(&inner, sc)
	if len(inner.words) > 1 && gitRunners[inner.words[1].text] {
		a.carried(&inner, sc)
	}
}

// guessSetting tries deny and ask rules on the command that a setting such as
// alias.x=!rm names.
func (a *analyser) guessSetting(w word, sc *scope) {
	_, value, _ := strings.Cut(guessText([]word{w}), "=")
	a.guessScript(strings.TrimPrefix(value, "!"), sc)
}

func (a *analyser) gitFolder(dir string, from []string, sc *scope) []string {
	var to []string
	for _, d := range from {
		to = appendNew(to, join(d, dir))
		a.add(unit{action: a.p.located(KindRead, d, dir), implied: true}, sc)
	}
	return to
}
