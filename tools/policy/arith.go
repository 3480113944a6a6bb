package policy

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// A shell evaluates the values of variables in arithmetic as expressions
// again, and an index in them may hold a command substitution: after
// a='b[$(rm x)]' the harmless looking $((a)) runs rm. So arithmetic is only
// known to be harmless if every variable in it is known to be a number.

// unsafeArithmetic tells whether an arithmetic expression could run commands
// that its text does not show. Substitutions that it shows are found by
// nested.
func (a *analyser) unsafeArithmetic(n syntax.ArithmExpr, sc *scope) bool {
	switch x := n.(type) {
	case nil:
		return false
	case *syntax.Word:
		return x != nil && a.unsafeOperand(x.Parts, sc)
	case *syntax.BinaryArithm:
		return a.unsafeArithmetic(x.X, sc) || a.unsafeArithmetic(x.Y, sc)
	case *syntax.UnaryArithm:
		return a.unsafeArithmetic(x.X, sc)
	case *syntax.ParenArithm:
		return a.unsafeArithmetic(x.X, sc)
	}
	return true
}

func (a *analyser) unsafeOperand(parts []syntax.WordPart, sc *scope) bool {
	for _, part := range parts {
		switch x := part.(type) {
		case *syntax.Lit:
			if !isNumber(x.Value) && (!isName(x.Value) || !a.isNumeric(x.Value, sc)) {
				return true
			}
		case *syntax.DblQuoted:
			if a.unsafeOperand(x.Parts, sc) {
				return true
			}
		case *syntax.ParamExp:
			if a.unsafeParameter(x, sc) {
				return true
			}
		case *syntax.ArithmExp:
			if a.unsafeArithmetic(x.X, sc) {
				return true
			}
		case *syntax.CmdSubst:
			if !a.printsNumber(x.Stmts) {
				return true
			}
		default:
			return true
		}
	}
	return false
}

// unsafeParameter tells whether a parameter in arithmetic may be anything but
// a number.
func (a *analyser) unsafeParameter(x *syntax.ParamExp, sc *scope) bool {
	switch {
	case x.Param == nil || x.Excl || x.Exp != nil || x.Repl != nil:
		return true
	case x.Length:
		return false
	case x.Index != nil && subscript(x) != "@" && subscript(x) != "*" && a.unsafeArithmetic(x.Index, sc):
		return true
	}
	switch name := x.Param.Value; {
	case name == "#" || name == "?" || name == "$" || name == "!":
		return false
	case isNumber(name):
		return !a.numericArguments(sc)
	}
	return !isName(x.Param.Value) || !a.isNumeric(x.Param.Value, sc)
}

func isName(s string) bool { return assignedName(s+"=") != "" }

// isNumeric tells whether a variable can only be a number: the script assigns
// nothing else to it, anywhere. What it does not assign comes from the script
// around it, or from the environment, which the agent does not make.
func (a *analyser) isNumeric(name string, sc *scope) bool {
	if a.numbers == nil {
		a.numbers = a.readNumbers(a.file)
	}
	if textSpecials[name] || a.numbers.text[name] || a.numbers.text["*"] {
		a.guessCode(sc.value(name, ""), sc)
		return false
	}
	if a.numbers.assigned[name] {
		return true
	}
	for _, v := range sc.vars[name] {
		if !isExpression(v) {
			a.guessCode(v, sc)
			return false
		}
	}
	return true
}

// textSpecials are variables of the shell that hold a text.
var textSpecials = set("PWD", "OLDPWD", "_", "REPLY", "OPTARG", "BASH_REMATCH", "DIRSTACK", "FUNCNAME", "BASH_COMMAND",
	"BASH_SOURCE", "BASH_ARGV", "BASH_ARGV0", "BASH_EXECUTION_STRING", "MAPFILE", "PS1", "PS2", "PS4", "IFS")

// guessCode tries deny and ask rules on what a value would run.
func (a *analyser) guessCode(value string, sc *scope) {
	if strings.ContainsAny(value, "$`") {
		a.guessScript(": "+value, sc)
	}
}

// quotedIndex tries what an index in a quoted word would run: the tests -v and
// -eq evaluate it.
func (a *analyser) quotedIndex(n syntax.Node, sc *scope) {
	if !a.p.hasRefusals() {
		return
	}
	syntax.Walk(n, func(n syntax.Node) bool {
		if w, ok := n.(*syntax.Word); ok {
			a.guessIndex(a.plain(w, sc), sc)
		}
		return true
	})
}

// guessIndex tries what a value would run if it were evaluated as a number.
func (a *analyser) guessIndex(value string, sc *scope) {
	if strings.Contains(value, "[") {
		a.guessCode(value, sc)
	}
}

// hidden tells whether a node evaluates text that could hold commands. What
// these are is not known.
func (a *analyser) hidden(n syntax.Node, sc *scope) bool {
	if !a.hiddenArithmetic(n, sc) {
		return false
	}
	if x, ok := n.(*syntax.ParamExp); !ok || !x.Excl || a.isSet(paramName(x), sc) {
		a.addWild("arithmetic evaluates a text that is not known", sc)
	}
	return true
}

// isSet tells whether a script sets a variable; what it does not set comes
// from the environment.
func (a *analyser) isSet(name string, sc *scope) bool {
	if a.numbers == nil {
		a.numbers = a.readNumbers(a.file)
	}
	return !isName(name) || textSpecials[name] || a.numbers.assigned[name] || a.numbers.text["*"] || len(sc.vars[name]) > 0
}

// hiddenArithmetic tells whether a node evaluates arithmetic that could run
// commands which its text does not show.
func (a *analyser) hiddenArithmetic(n syntax.Node, sc *scope) bool {
	switch x := n.(type) {
	case *syntax.ArithmExp:
		return a.unsafeArithmetic(x.X, sc)
	case *syntax.ArithmCmd:
		return a.unsafeArithmetic(x.X, sc)
	case *syntax.LetClause:
		return slices.ContainsFunc(x.Exprs, func(e syntax.ArithmExpr) bool { return a.unsafeArithmetic(e, sc) })
	case *syntax.CStyleLoop:
		return a.unsafeArithmetic(x.Init, sc) || a.unsafeArithmetic(x.Cond, sc) || a.unsafeArithmetic(x.Post, sc)
	case *syntax.ParamExp:
		return a.hiddenInParameter(x, sc)
	case *syntax.BinaryTest:
		return x.Op >= syntax.TsEql && x.Op <= syntax.TsGtr && (a.unsafeTest(x.X, sc) || a.unsafeTest(x.Y, sc))
	case *syntax.UnaryTest:
		w, ok := x.X.(*syntax.Word)
		return (x.Op == syntax.TsVarSet || x.Op == syntax.TsRefVar) && (!ok || !isName(w.Lit()))
	}
	return false
}

func (a *analyser) unsafeTest(x syntax.TestExpr, sc *scope) bool {
	w, ok := x.(*syntax.Word)
	return !ok || a.unsafeOperand(w.Parts, sc)
}

func (a *analyser) hiddenInParameter(x *syntax.ParamExp, sc *scope) bool {
	if x.Excl && x.Names == 0 && (x.Param == nil || !isName(sc.value(x.Param.Value, "")) || subscript(x) == "") {
		// ${!x} takes the value of x as a name, with an index if it has one.
		if index := subscript(x); index != "@" && index != "*" {
			a.guessCode(sc.value(paramName(x), ""), sc)
			return true
		}
	}
	if x.Exp != nil && x.Exp.Op == syntax.OtherParamOps && x.Exp.Word != nil && x.Exp.Word.Lit() == "P" {
		// ${x@P} expands the value like a prompt, with its substitutions.
		a.guessCode(sc.value(paramName(x), ""), sc)
		return true
	}
	if index := subscript(x); x.Index != nil && index != "@" && index != "*" && !a.isTable(paramName(x)) && a.unsafeArithmetic(x.Index, sc) {
		return true
	}
	return x.Slice != nil && (a.unsafeArithmetic(x.Slice.Offset, sc) || a.unsafeArithmetic(x.Slice.Length, sc))
}

func paramName(x *syntax.ParamExp) string {
	if x.Param == nil {
		return ""
	}
	return x.Param.Value
}
