package policy

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// The limits of one script. The parser calls itself for each level of
// nesting, and a Go stack that overflows cannot be caught, so that a script
// is measured before it is parsed.
const (
	maxScript   = 1 << 20
	maxNesting  = 16_000
	maxCommands = 4096
	maxSteps    = 20_000
	maxDepth    = 12
)

// tooComplex tells whether a script could nest too deeply for the parser: it
// counts everything that can open a level.
func tooComplex(text string) bool {
	if len(text) > maxScript {
		return true
	}
	if len(text) <= maxNesting {
		return false
	}
	opening := "({["
	if strings.Contains(text, "((") || strings.ContainsAny(text, "[") {
		opening = "({[-~!?*+"
	}
	n := 0
	for i := 0; i < len(text); i++ {
		if strings.IndexByte(opening, text[i]) >= 0 {
			n++
		}
	}
	for _, w := range []string{"if", "while", "until", "for", "case", "select", "time", "coproc", "function"} {
		n += strings.Count(text, w)
	}
	return n > maxNesting
}

// functions returns the names of the functions that a script defines.
func functions(file *syntax.File, known map[string]bool) map[string]bool {
	if !mayDefine(file) {
		return known
	}
	names := map[string]bool{}
	for name := range known {
		names[name] = true
	}
	syntax.Walk(file, func(n syntax.Node) bool {
		if f, ok := n.(*syntax.FuncDecl); ok {
			if f.Name != nil {
				names[f.Name.Value] = true
			}
			for _, name := range f.Names {
				names[name.Value] = true
			}
		}
		return true
	})
	return names
}

// mayDefine is false for the plain commands that most scripts are.
func mayDefine(file *syntax.File) bool {
	for _, s := range file.Stmts {
		switch s.Cmd.(type) {
		case *syntax.CallExpr, nil:
		default:
			return true
		}
	}
	return false
}

// wanders tells whether the folder may change where the order of commands is
// not the order of the text: in loops and functions.
func wanders(file *syntax.File, text string) bool {
	if !mayDefine(file) || !namesMover(text) {
		return false
	}
	return strays(file, false)
}

// strays tells whether a loop or a function below the node, or the node itself
// if it is inside one, changes the folder. A subshell in a loop begins in the
// same folder each time.
func strays(n syntax.Node, inside bool) bool {
	found, top := false, true
	syntax.Walk(n, func(n syntax.Node) bool {
		if top {
			top = false
			return true
		}
		switch x := n.(type) {
		case *syntax.ForClause, *syntax.WhileClause, *syntax.FuncDecl:
			found = found || strays(x, true)
			return false
		case *syntax.Subshell:
			found = found || strays(x, false)
			return false
		case *syntax.CallExpr:
			for i := 0; inside && i < len(x.Args) && i < 3; i++ {
				found = found || changesDir(x.Args[i].Lit())
			}
		}
		return !found
	})
	return found
}

func changesDir(name string) bool {
	return name == "cd" || name == "pushd" || name == "popd"
}
