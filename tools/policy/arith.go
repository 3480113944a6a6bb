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
	case x.Index != nil && a.unsafeArithmetic(x.Index, sc):
		return true
	}
	switch x.Param.Value {
	case "#", "?", "$", "!":
		return false
	}
	return !isName(x.Param.Value) || !a.isNumeric(x.Param.Value, sc)
}

func isName(s string) bool { return assignedName(s+"=") != "" }

// isNumeric tells whether a variable can only be a number: the script assigns
// nothing else to it, anywhere. What it does not assign comes from the
// environment, which the agent does not make.
func (a *analyser) isNumeric(name string, sc *scope) bool {
	if a.texts == nil {
		a.texts = textVariables(a.file)
	}
	if a.texts[name] || a.texts["*"] {
		a.guessCode(sc.value(name, ""), sc)
		return false
	}
	for _, v := range sc.vars[name] {
		if !isNumber(strings.TrimPrefix(v, "-")) {
			a.guessCode(v, sc)
			return false
		}
	}
	return true
}

// guessCode tries deny and ask rules on what a value would run.
func (a *analyser) guessCode(value string, sc *scope) {
	if strings.ContainsAny(value, "$`") {
		a.guessScript(": "+value, sc)
	}
}

// quotedIndex tries what an index in a quoted word would run: the tests -v and
// -eq evaluate it.
func (a *analyser) quotedIndex(n syntax.Node, sc *scope) {
	if !a.p.hasCommandRules() {
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

// textVariables returns the variables that a script may set to something that
// is no number; "*" stands for any.
func textVariables(file *syntax.File) map[string]bool {
	names := map[string]bool{}
	if file == nil {
		return names
	}
	syntax.Walk(file, func(n syntax.Node) bool {
		switch x := n.(type) {
		case *syntax.Assign:
			if x.Name != nil && !numericAssign(x) {
				names[x.Name.Value] = true
			}
		case *syntax.WordIter:
			if !slices.ContainsFunc(x.Items, func(w *syntax.Word) bool { return !numericItem(w.Lit()) }) {
				return true
			}
			names[x.Name.Value] = true
		case *syntax.ParamExp:
			if x.Exp != nil && x.Param != nil && (x.Exp.Op == syntax.AssignUnset || x.Exp.Op == syntax.AssignUnsetOrNull) {
				names[x.Param.Value] = true
			}
		case *syntax.CallExpr:
			if len(x.Args) > 0 && setsVariables[strings.TrimPrefix(x.Args[0].Lit(), `\`)] {
				namedVariables(x.Args[1:], names)
			}
		}
		return true
	})
	return names
}

func namedVariables(args []*syntax.Word, names map[string]bool) {
	for _, w := range args {
		text := w.Lit()
		if text == "" {
			names["*"] = true
			continue
		}
		name, _, _ := strings.Cut(text, "=")
		names[name] = true
	}
}

func numericAssign(as *syntax.Assign) bool {
	if as.Array != nil {
		return !slices.ContainsFunc(as.Array.Elems, func(e *syntax.ArrayElem) bool { return e.Value == nil || !numericWord(e.Value) })
	}
	return as.Value == nil || numericWord(as.Value)
}

// numericWord tells whether a word is a number or computed as one.
func numericWord(w *syntax.Word) bool {
	if lit := w.Lit(); lit != "" {
		return isNumber(strings.TrimPrefix(lit, "-"))
	}
	if len(w.Parts) != 1 {
		return len(w.Parts) == 0
	}
	switch x := w.Parts[0].(type) {
	case *syntax.ArithmExp:
		return true
	case *syntax.ParamExp:
		return x.Length || x.Param != nil && (x.Param.Value == "#" || x.Param.Value == "?")
	}
	return false
}

// numericItem accepts 5 and {1..5}.
func numericItem(text string) bool {
	if rest, ok := strings.CutPrefix(text, "{"); ok {
		text = strings.TrimSuffix(rest, "}")
		from, to, _ := strings.Cut(text, "..")
		to, step, _ := strings.Cut(to, "..")
		return isNumber(from) && isNumber(to) && (step == "" || isNumber(step))
	}
	return isNumber(text)
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
	if index := subscript(x); x.Index != nil && index != "@" && index != "*" && a.unsafeArithmetic(x.Index, sc) {
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
