package policy

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// assigned notes an assignment inside an expansion.
func (a *analyser) assigned(name string, w *syntax.Word, sc *scope) {
	if w != nil {
		sc.set(name, []string{a.plain(w, sc)})
	}
	if choosesProgram(name) {
		a.addOpaque("the variable "+name+" chooses programs", sc)
		a.hook(name, "", false, sc)
	}
}

// assignsProgram tells whether an arithmetic expression sets a variable that
// chooses programs.
func assignsProgram(n syntax.Node) bool {
	found := false
	syntax.Walk(n, func(n syntax.Node) bool {
		if w, ok := n.(*syntax.Word); ok && choosesProgram(w.Lit()) {
			found = true
		}
		return !found
	})
	return found
}

// assign reads the value of an assignment and tells whether commands run in
// it.
func (a *analyser) assign(as *syntax.Assign, sc *scope) bool {
	subst := false
	var values []string
	add := func(w *syntax.Word) {
		v := a.word(w, sc)
		subst = subst || v.subst
		if v.literal {
			values = append(values, v.text)
			return
		}
		values = append(values, v.guess...)
	}
	if as.Value != nil {
		add(as.Value)
		for _, v := range values {
			a.guessIndex(v, sc)
		}
		if len(values) > 1 {
			// A value is not split into words.
			values = []string{strings.Join(values, " ")}
		}
	}
	if as.Array != nil {
		for _, e := range as.Array.Elems {
			if e.Value != nil {
				add(e.Value)
			}
		}
	}
	if as.Index != nil {
		subst = a.nested(as.Index, sc) || subst
		if (as.Name == nil || !a.isTable(as.Name.Value)) && a.unsafeArithmetic(as.Index, sc) {
			a.addWild("arithmetic evaluates a text that is not known", sc)
			subst = true
		}
	}
	if as.Name != nil && !as.Naked {
		if as.Append {
			values = appended(sc.vars[as.Name.Value], values, as.Array != nil)
		}
		sc.set(as.Name.Value, values)
	}
	return subst
}

func appended(old, more []string, array bool) []string {
	if array || len(old) == 0 || len(more) == 0 {
		return append(slices.Clone(old), more...)
	}
	if len(old[0])+len(more[0]) > maxValue {
		return old
	}
	return []string{old[0] + more[0]}
}

// declare judges export, declare, local, readonly and their like.
func (a *analyser) declare(x *syntax.DeclClause, sc *scope) {
	words := []word{literal(x.Variant.Value)}
	exported, reference, integer, list := x.Variant.Value == "export", false, false, false
	for _, as := range x.Args {
		words = append(words, word{text: a.source(as), literal: true})
		if as.Name == nil {
			if as.Value != nil && as.Naked {
				flag := a.word(as.Value, sc)
				a.opaqueIf(flag.subst, sc)
				option := strings.HasPrefix(flag.text, "-")
				integer = integer || option && strings.Contains(flag.text, "i")
				list = list || option && strings.ContainsAny(flag.text, "aA")
				a.declaredText(&flag, option, integer, list, sc)
				reference = reference || !flag.literal || option && strings.Contains(flag.text, "n")
				exported = exported || !flag.literal || option && strings.Contains(flag.text, "x")
				if !flag.literal || option && strings.ContainsAny(flag.text, "in") || !option && strings.Contains(flag.text, "[") {
					// Integers and references evaluate what is assigned to them.
					a.addOpaque(x.Variant.Value+" evaluates a value that is not known", sc)
					a.guessCode(guessText([]word{flag}), sc)
				}
			}
			continue
		}
		name := as.Name.Value
		if integer && !a.isNumeric(name, sc) {
			a.addWild("an integer evaluates a text that is not known", sc)
		}
		target, plain := a.static(as.Value)
		target, _, _ = strings.Cut(target, "[")
		if reference && as.Value != nil && (!plain || isSpecial(target)) {
			a.addWild("a reference stands for another variable", sc)
		}
		a.opaqueIf(a.assign(as, sc), sc)
		text, known := a.static(as.Value)
		a.hook(name, text, (known || as.Value == nil) && !as.Append, sc)
		if choosesProgram(name) || exported && !a.p.safeVariable(name) {
			a.addOpaque("the variable "+name+" is not known to be harmless", sc)
		}
	}
	a.add(unit{cmd: &command{words: words, shown: sc.dir()}, guess: true}, sc)
}

// declaredText judges an argument of declare that is a word of its own:
// "x=(…)" is read as a list again, an index in it is evaluated.
func (a *analyser) declaredText(w *word, option, integer, list bool, sc *scope) {
	if option {
		return
	}
	if !w.literal && (integer || list || !strings.Contains(w.text, "=")) {
		a.addWild("declare evaluates a value that is not known", sc)
	}
	name, value, _ := strings.Cut(guessText([]word{*w}), "=")
	a.guessCode(name, sc)
	if integer || list {
		a.guessCode(value, sc)
	}
}
