package policy

import "strings"

// moved follows cd and its like.
func (a *analyser) moved(c *command, sc *scope) []string {
	i, physical := 1, false
	for i < len(c.words) && c.words[i].literal && len(c.words[i].text) > 1 && c.words[i].text[0] == '-' {
		physical = physical || isCluster(c.words[i].text) && strings.Contains(c.words[i].text, "P")
		i++
	}
	args := c.words[i:]
	back := c.name() == "popd" || c.name() == "pushd" && len(args) == 0 || len(args) == 1 && args[0].literal && args[0].text == "-"
	switch {
	case len(args) > 1 || strings.Contains(a.text, "CDPATH"):
		sc.lost = true
	case back && len(sc.been) > 0 && !strings.Contains(a.text, "OLDPWD") && !strings.Contains(a.text, "DIRSTACK"):
		return sc.reach(sc.been)
	case back:
		sc.lost = true
	case len(args) == 0 && a.p.roots.home == "":
		sc.lost = true
	case len(args) == 0:
		return sc.enter(a.p.roots.home)
	case args[0].literal:
		to := sc.enter(args[0].text)
		if physical && a.p.env.Real != nil {
			for _, dir := range to {
				to = sc.reach(appendNew(to, a.p.env.Real(dir)))
			}
		}
		return to
	default:
		return a.movedTo(&args[0], sc)
	}
	return sc.dirs
}

// movedTo follows cd to a computed folder.
func (a *analyser) movedTo(w *word, sc *scope) []string {
	targets, ok := w.texts()
	if !ok || len(targets) > maxDirs {
		sc.lost = true
		return sc.dirs
	}
	var to []string
	for _, target := range targets {
		switch {
		case target != "":
			for _, dir := range sc.dirs {
				to = appendNew(to, join(dir, target))
			}
		case len(w.guess) > 0 && w.guess[0] != "":
			// The variable has a value here.
		case w.vanishes && a.p.roots.home != "":
			to = appendNew(to, a.p.roots.home)
		case w.vanishes:
			sc.lost = true
		default:
			to = union(to, sc.dirs)
		}
	}
	return sc.reach(to)
}
