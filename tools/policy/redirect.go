package policy

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// feed is what here-documents and here-strings give to a command.
type feed struct {
	text  string
	subst bool
	// known says that the text is exactly what the command reads.
	known bool
}

// redirects adds the files that a statement reads and writes, and returns its
// here-documents.
func (a *analyser) redirects(s *syntax.Stmt, sc *scope) *feed {
	var fed *feed
	inputs := 0
	defer func() {
		if fed != nil && inputs > 1 {
			fed.known = false
		}
	}()
	for _, r := range s.Redirs {
		switch r.Op {
		case syntax.Hdoc, syntax.DashHdoc, syntax.WordHdoc, syntax.RdrIn, syntax.RdrInOut, syntax.DplIn:
			inputs++
		}
		switch r.Op {
		case syntax.Hdoc, syntax.DashHdoc:
			fed = a.feed(fed, r.Hdoc, sc)
		case syntax.WordHdoc:
			fed = a.feed(fed, r.Word, sc)
		case syntax.RdrIn:
			if w := a.redirect(r.Word, sc, KindRead); w.prints != "" {
				fed = &feed{text: w.prints, subst: true}
			}
		case syntax.RdrInOut:
			a.redirect(r.Word, sc, KindRead, KindWrite)
		case syntax.DplIn, syntax.DplOut:
			if !isDescriptor(r.Word.Lit()) {
				a.redirect(r.Word, sc, KindWrite)
			}
		default:
			a.redirect(r.Word, sc, KindWrite)
		}
	}
	return fed
}

// isDescriptor tells whether the target of >& is a descriptor, which may be
// moved ("2-") or closed ("-").
func isDescriptor(text string) bool {
	return text != "" && strings.Trim(strings.TrimSuffix(text, "-"), "0123456789") == ""
}

func (a *analyser) feed(fed *feed, w *syntax.Word, sc *scope) *feed {
	if fed == nil {
		fed = &feed{}
	}
	if w == nil {
		return fed
	}
	fed.subst = a.nested(w, sc) || fed.subst
	fed.text += a.plain(w, sc) + "\n"
	text, literal := a.static(w)
	fed.known = literal && !strings.Contains(text, `\`) && !strings.Contains(a.source(w), `\`)
	return fed
}

// redirect adds one file, and returns its name.
func (a *analyser) redirect(target *syntax.Word, sc *scope, kinds ...Kind) word {
	w := a.word(target, sc)
	names := w.guess
	if w.literal {
		names = []string{w.text}
	}
	lost := sc.lost && (len(names) != 1 || !strings.HasPrefix(names[0], "/"))
	if !w.literal || lost || sc.zsh && (w.text == "!" || w.text == "|") {
		// In zsh ">! file" is what ">| file" is elsewhere.
		a.addOpaque("the target of a redirection is not certain", sc)
		for _, kind := range kinds {
			a.addPossible(kind, &w, sc)
		}
	}
	for _, name := range names {
		if name == "" || harmlessDevice(name) {
			continue
		}
		if host := networkDevice(name); host != "" {
			a.add(unit{action: Action{Kind: KindHost, Host: host}, guess: !w.literal}, sc)
			continue
		}
		for _, dir := range sc.dirs {
			for _, kind := range kinds {
				a.add(unit{action: a.p.located(kind, dir, name), guess: !w.literal || lost}, sc)
			}
			if strings.HasPrefix(name, "/") {
				break
			}
		}
	}
	return w
}

// maxName bounds a name whose links are followed, in bytes: systems open no
// longer ones.
const maxName = 4096

// located returns the action on a path below dir with its real name.
func (p *Policy) located(kind Kind, dir, name string) Action {
	act := Action{Kind: kind, Path: join(dir, name)}
	if p.env.Real != nil && len(name) <= maxName {
		// The path is not cleaned: behind a link ".." leads elsewhere.
		if !strings.HasPrefix(name, "/") {
			name = dir + "/" + name
		}
		act.Real = p.env.Real(name)
	}
	return act
}

// harmlessDevice tells whether a name is a device that stores nothing.
func harmlessDevice(name string) bool {
	switch name {
	case "/dev/null", "/dev/stdin", "/dev/stdout", "/dev/stderr", "/dev/tty", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom":
		return true
	}
	rest, ok := strings.CutPrefix(name, "/dev/fd/")
	return ok && rest != "" && strings.Trim(rest, "0123456789") == ""
}

// networkDevice returns the host that bash connects to for /dev/tcp/HOST/PORT,
// or an empty string.
func networkDevice(name string) string {
	for _, prefix := range []string{"/dev/tcp/", "/dev/udp/"} {
		if rest, ok := strings.CutPrefix(clean(name), prefix); ok {
			host, port, _ := strings.Cut(rest, "/")
			return host + ":" + port
		}
	}
	return ""
}

// addPossible adds a file whose name is not certain: the word is computed, or
// the folder is.
func (a *analyser) addPossible(kind Kind, w *word, sc *scope) {
	if !a.p.hasPathRules() {
		return
	}
	f := possiblePath{open: w.open || w.free || !w.literal && len(w.shapes) == 0, why: "its name depends on an expansion"}
	shapes := w.shapes
	switch {
	case w.literal:
		shapes = []string{escapeWord(w.text)}
		f.why = "its folder depends on an expansion"
	case w.free || len(shapes) == 0:
		shapes = []string{"*"}
	}
	for _, shape := range shapes {
		switch {
		case shape == "" || !f.open && harmlessDevice(shape):
		case strings.HasPrefix(shape, "/") || f.open:
			f.shapes = append(f.shapes, shape)
		case sc.lost:
			f.open, f.shapes = true, append(f.shapes, shape)
		default:
			for _, dir := range sc.dirs {
				f.shapes = append(f.shapes, join(escapeWord(dir), shape))
			}
		}
	}
	if act := (Action{Kind: kind, Path: w.text}); len(f.shapes) > 0 && a.refused(&act, &f) {
		a.add(unit{action: act, maybe: &f, guess: true}, sc)
	}
}
