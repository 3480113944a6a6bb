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
	if !mayDefine(file) || !strings.Contains(text, "cd") && !strings.Contains(text, "pushd") && !strings.Contains(text, "popd") {
		return false
	}
	found := false
	syntax.Walk(file, func(n syntax.Node) bool {
		switch n.(type) {
		case *syntax.ForClause, *syntax.WhileClause, *syntax.FuncDecl:
			syntax.Walk(n, func(inner syntax.Node) bool {
				if call, ok := inner.(*syntax.CallExpr); ok && len(call.Args) > 0 && changesDir(call.Args[0].Lit()) {
					found = true
				}
				return !found
			})
			return false
		}
		return !found
	})
	return found
}

func changesDir(name string) bool {
	return name == "cd" || name == "pushd" || name == "popd"
}
