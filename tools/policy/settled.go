package policy

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// settledValue is one value that a variable may have.
type settledValue struct {
	// shape is a glob that matches the value; whole says that it is the value
	// itself and that no shell splits or expands it.
	shape string
	whole bool
	// open says that a star in the shape may stand for anything.
	open bool
}

// builtinWrappers are builtins that run the builtin they are told.
var builtinWrappers = set("command", "builtin", "exec")

// settledVariables are the variables of a script that nothing but plain
// assignments can set, with all values that they may have.
type settledVariables struct {
	values map[string][]settledValue
	// open are variables that may be anything.
	open map[string]bool
	// all says that every variable may be anything.
	all bool
	// heads are computed names of commands.
	heads []*syntax.Word
}

// maxSettled bounds the values of a variable that are told apart.
const maxSettled = 16

// ownedVariables are set by the user's environment, and a script that wants
// something else from them must assign them.
var ownedVariables = set("HOME", "USER", "LOGNAME", "HOSTNAME", "TMPDIR", "UID", "EUID", "PPID", "SHLVL")

// settled returns the values that a variable may have besides being empty; ok
// is false if it may be anything. Only the variables of the script that
// drover itself starts are followed: its environment is not the agent's.
func (a *analyser) settled(name string) (values []settledValue, ok bool) {
	if a.main == nil || a.file != a.main || isSpecial(name) {
		return nil, false
	}
	if a.fixed == nil {
		a.fixed = a.settle(a.main)
		// A computed name is only trusted not to set variables if the values
		// that are known so far rule that out.
		for _, w := range a.fixed.heads {
			r := wordReader{a: a, sc: &scope{}, mute: true, forming: true, several: len(w.Parts) > 1}
			for i, part := range w.Parts {
				r.part(part, i == 0, false)
			}
			var head word
			if head.formed(&r); head.couldBe(setsVariables, codeBuiltins, builtinWrappers) {
				a.fixed.all = true
			}
		}
	}
	s := a.fixed
	if s.all || s.open[name] {
		return nil, false
	}
	values = s.values[name]
	if len(values) == 0 {
		return []settledValue{{shape: "*", whole: true, open: true}}, ownedVariables[name]
	}
	return values, len(values) <= maxSettled
}

// isSpecial tells whether the shell itself sets a variable.
func isSpecial(name string) bool {
	switch name {
	case "_", "REPLY", "MAPFILE", "COPROC", "PWD", "OLDPWD", "DIRSTACK", "FUNCNAME", "OPTARG", "OPTIND", "RANDOM", "IFS":
		return true
	}
	return !isName(name) || strings.HasPrefix(name, "BASH") || strings.HasPrefix(name, "COMP") || strings.HasPrefix(name, "HIST")
}

func (a *analyser) settle(file *syntax.File) *settledVariables {
	s := &settledVariables{values: map[string][]settledValue{}, open: map[string]bool{}}
	syntax.Walk(file, func(n syntax.Node) bool {
		switch x := n.(type) {
		case *syntax.Assign:
			a.settleAssign(x, s)
		case *syntax.WordIter:
			if len(x.Items) == 0 {
				s.open[x.Name.Value] = true
			}
			for _, item := range x.Items {
				a.settleValue(x.Name.Value, item, s)
			}
		case *syntax.ParamExp:
			if x.Exp != nil && x.Param != nil && (x.Exp.Op == syntax.AssignUnset || x.Exp.Op == syntax.AssignUnsetOrNull) {
				s.open[x.Param.Value] = true
			}
		case *syntax.ArithmExp, *syntax.ArithmCmd, *syntax.LetClause, *syntax.CStyleLoop:
			openNames(n, s)
		case *syntax.CoprocClause:
			if x.Name != nil {
				s.open[x.Name.Lit()] = true
			}
		case *syntax.Redirect:
			if x.N != nil {
				s.open[strings.Trim(x.N.Value, "{}")] = true
			}
		case *syntax.CallExpr:
			a.settleCall(x, s)
		}
		return !s.all
	})
	return s
}

// openNames notes every name in arithmetic: it may be assigned there.
func openNames(n syntax.Node, s *settledVariables) {
	syntax.Walk(n, func(n syntax.Node) bool {
		if w, ok := n.(*syntax.Word); ok && isName(w.Lit()) {
			s.open[w.Lit()] = true
		}
		return true
	})
}

func (a *analyser) settleAssign(as *syntax.Assign, s *settledVariables) {
	switch {
	case as.Name == nil:
		// The options of declare and its like change what values mean.
		if text, ok := a.static(as.Value); as.Value != nil && (!ok || text != "-x" && text != "-r" && text != "-g") {
			s.all = true
		}
	case as.Naked:
	case as.Append || as.Array != nil || as.Index != nil:
		s.open[as.Name.Value] = true
	case as.Value != nil:
		a.settleValue(as.Name.Value, as.Value, s)
	}
}

func (a *analyser) settleValue(name string, w *syntax.Word, s *settledVariables) {
	if text, ok := a.static(w); ok {
		v := settledValue{shape: escapeWord(text), whole: !strings.ContainsAny(text, " \t\n*?[")}
		if !slices.Contains(s.values[name], v) {
			s.values[name] = append(s.values[name], v)
		}
		return
	}
	r := wordReader{a: a, sc: &scope{}, literal: true, mute: true, forming: true, several: len(w.Parts) > 1}
	for i, part := range w.Parts {
		if _, ok := part.(*syntax.Lit); !ok {
			s.open[name] = true
			return
		}
		r.part(part, i == 0, false)
	}
	if r.free || strings.Contains(r.out.String(), "{") {
		s.open[name] = true
		return
	}
	for _, shape := range r.shapes() {
		s.values[name] = append(s.values[name], settledValue{shape: shape})
	}
}

// settleCall notes the variables that a command may set.
func (a *analyser) settleCall(x *syntax.CallExpr, s *settledVariables) {
	head, setting := true, false
	for i, w := range x.Args {
		text, ok := a.static(w)
		switch {
		case !ok && i == 0:
			s.heads = append(s.heads, w)
			return
		case !ok && (head || setting):
			s.all = true
		case setting:
			if strings.HasPrefix(text, "-v") && len(text) > 2 {
				text = text[2:]
			}
			name, _, _ := strings.Cut(text, "=")
			name, _, _ = strings.Cut(name, "[")
			s.open[name] = true
		case !head:
			return
		case text == "printf" && i+1 < len(x.Args):
			if next, ok := a.static(x.Args[i+1]); ok && !strings.HasPrefix(next, "-v") {
				return
			}
			setting = true
		case setsVariables[text]:
			setting = true
		case codeBuiltins[text] && text != "set" && text != "shopt" && text != "hash":
			s.all = true
		default:
			head = text == "command" || text == "builtin" || i > 0 && strings.HasPrefix(text, "-")
		}
	}
}

// static returns the text of a word that holds no expansion.
func (a *analyser) static(w *syntax.Word) (text string, ok bool) {
	if w == nil {
		return "", false
	}
	for _, part := range w.Parts {
		switch x := part.(type) {
		case *syntax.Lit:
			if strings.Contains(x.Value, "{") {
				return "", false
			}
		case *syntax.SglQuoted, *syntax.DblQuoted:
		default:
			return "", false
		}
	}
	r := wordReader{a: a, sc: &scope{}, literal: true, mute: true, several: len(w.Parts) > 1}
	for i, part := range w.Parts {
		r.part(part, i == 0, false)
	}
	return r.out.String(), r.literal
}

// place returns the folder that HOME or PWD certainly holds, or an empty
// string.
func (a *analyser) place(name string, sc *scope) string {
	if name != "HOME" && name != "PWD" {
		return ""
	}
	// HOME is asked for because PWD is never settled.
	if _, ok := a.settled("HOME"); !ok || a.fixed.open[name] || len(a.fixed.values[name]) > 0 {
		return ""
	}
	switch {
	case name == "HOME":
		return a.p.roots.home
	case len(sc.dirs) == 1 && !sc.lost:
		return sc.dirs[0]
	}
	return ""
}
