package policy

import (
	"slices"
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// word is one word of a simple command.
type word struct {
	// text is the word itself if it is literal, else its source.
	text string
	// literal words hold no expansion: the shell passes them on as they are.
	literal bool
	// guess is what a word with an expansion probably becomes; deny rules
	// look at it. It may be no word at all, or several.
	guess []string
	// glob says that the word holds an unquoted file name pattern.
	glob bool
	// subst says that the word runs other commands.
	subst bool
	// prints is what a process substitution in the word probably holds.
	prints string
	// shapes are globs, one of which matches whatever a word with an expansion
	// becomes. A free word may become any words at all, a repeated one several
	// words of its shapes or none, one that vanishes no word.
	shapes                 []string
	free, repeat, vanishes bool
	// open says that a star in the shapes may stand for anything, slashes and
	// ".." included, and not only for names that the shell finds.
	open bool
}

func literal(text string) word { return word{text: text, literal: true} }

func literals(texts []string) []word {
	words := make([]word, len(texts))
	for i, t := range texts {
		words[i] = literal(t)
	}
	return words
}

// maxValue bounds a guessed value, in bytes.
const maxValue = 1 << 16

// maxBraces bounds the words that a brace expansion is tried as.
const maxBraces = 64

// word reads a word, and judges the commands that run inside it.
func (a *analyser) word(w *syntax.Word, sc *scope) word {
	if len(w.Parts) == 1 {
		if lit, ok := w.Parts[0].(*syntax.Lit); ok && !strings.ContainsAny(lit.Value, `\*?[{~`) {
			return literal(lit.Value)
		}
	}
	r := wordReader{a: a, sc: sc, literal: true, several: len(w.Parts) > 1, forming: a.p.hasRefusals()}
	for i, part := range w.Parts {
		r.part(part, i == 0 && (len(w.Parts) == 1 || startsFolder(part)), false)
	}
	braced := *w
	if syntax.SplitBraces(&braced) && slices.ContainsFunc(braced.Parts, isBrace) {
		return a.braces(&braced, &r, w)
	}
	if r.literal {
		return word{text: r.out.String(), literal: true}
	}
	out := word{text: a.source(w), guess: r.words(), glob: r.glob, subst: r.subst, prints: r.prints}
	out.formed(&r)
	return out
}

func isBrace(part syntax.WordPart) bool {
	_, ok := part.(*syntax.BraceExp)
	return ok
}

func startsFolder(part syntax.WordPart) bool {
	lit, ok := part.(*syntax.Lit)
	return ok && strings.Contains(lit.Value, "/")
}

// braces returns a word with brace expansions, guessed as all its results.
func (a *analyser) braces(braced *syntax.Word, r *wordReader, w *syntax.Word) word {
	out := word{text: a.source(w), glob: r.glob, subst: r.subst, repeat: true}
	results := expandBraces(braced.Parts, maxBraces)
	out.free = len(results) >= maxBraces
	for _, parts := range results {
		one := wordReader{a: a, sc: r.sc, literal: true, mute: true, forming: r.forming}
		for i, part := range parts {
			one.part(part, i == 0 && len(parts) == 1, false)
		}
		out.guess = append(out.guess, one.words()...)
		out.formed(&one)
	}
	return out
}

// expandBraces returns the products of the brace expansions, at most limit.
// Sequences such as {a..c} are left as they are.
func expandBraces(parts []syntax.WordPart, limit int) [][]syntax.WordPart {
	results := [][]syntax.WordPart{nil}
	for _, part := range parts {
		brace, ok := part.(*syntax.BraceExp)
		if !ok || brace.Sequence {
			for i := range results {
				results[i] = append(results[i], part)
			}
			continue
		}
		var next [][]syntax.WordPart
		for _, head := range results {
			for _, elem := range brace.Elems {
				for _, tail := range expandBraces(elem.Parts, limit) {
					if len(next) >= limit {
						break
					}
					next = append(next, append(append([]syntax.WordPart(nil), head...), tail...))
				}
			}
		}
		if results = next; len(results) >= limit {
			// The rest adds nothing to a word that may become any words.
			return results
		}
	}
	return results
}

// wordReader collects the value of a word from its parts.
type wordReader struct {
	a  *analyser
	sc *scope
	// mute readers guess only: nested commands were judged before.
	mute bool
	// several says that the word has more than one part.
	several                           bool
	out                               strings.Builder
	literal, glob, subst, split, some bool
	prints                            string
	// forming readers collect the shapes of the word; free and loose say that
	// it may become any words, or go on in any way.
	forming, free, loose, open bool
	forms                      []string
}

// words returns what the word read becomes.
func (r *wordReader) words() []string {
	text := r.out.String()
	if r.split {
		return strings.Fields(text)
	}
	if text == "" && !r.some {
		return nil
	}
	return []string{text}
}

func (r *wordReader) part(part syntax.WordPart, first, quoted bool) {
	switch x := part.(type) {
	case *syntax.Lit:
		if quoted {
			r.quotedLit(x.Value)
			return
		}
		r.plainLit(x.Value, first)
	case *syntax.SglQuoted:
		r.some = true
		if x.Dollar {
			r.out.WriteString(unescapeC(x.Value))
			r.form(escapeWord(unescapeC(x.Value)))
			return
		}
		r.out.WriteString(x.Value)
		r.form(escapeWord(x.Value))
	case *syntax.DblQuoted:
		r.some = true
		for _, p := range x.Parts {
			r.part(p, false, true)
		}
	case *syntax.ParamExp:
		r.literal = false
		r.nested(x)
		r.formParam(x, quoted)
		r.value(r.a.param(x, r.sc), quoted && !isList(x))
	case *syntax.CmdSubst:
		r.literal, r.subst = false, true
		if !r.mute {
			r.a.substitution(x.Stmts, r.sc)
		}
		r.formValue(quoted)
		r.value(r.a.output(x.Stmts, r.sc), quoted)
	case *syntax.ProcSubst:
		r.literal, r.subst = false, true
		if !r.mute {
			r.a.substitution(x.Stmts, r.sc)
		}
		r.prints = r.a.output(x.Stmts, r.sc)
		r.form("*")
		r.value("/dev/fd/63", true)
	case *syntax.ArithmExp:
		r.literal = false
		r.nested(x)
		r.form("*")
		r.value("0", true)
	case *syntax.ExtGlob:
		r.literal, r.glob = false, true
		// In zsh a pattern may run code: *(e:'rm x':).
		r.subst = r.subst || r.sc.zsh
		r.formValue(!r.sc.zsh)
		r.value("*", true)
	case *syntax.BraceExp:
		r.literal = false
		if !x.Sequence {
			r.free = true
		}
		r.open = true
		r.form("*")
		forming := r.forming
		r.forming = false
		defer func() { r.forming = forming }()
		if len(x.Elems) > 0 {
			for _, p := range x.Elems[0].Parts {
				r.part(p, false, quoted)
			}
		}
	default:
		r.literal, r.free = false, true
	}
}

// nested judges the commands inside an expansion.
func (r *wordReader) nested(n syntax.Node) {
	if !r.mute && r.a.nested(n, r.sc) {
		r.subst = true
	}
}

func (r *wordReader) value(text string, quoted bool) {
	if r.out.Len()+len(text) > maxValue {
		// A variable can double itself in each line.
		return
	}
	if !quoted {
		text = r.sc.fields(text)
		r.split = r.split || strings.ContainsAny(text, " \t\n")
	}
	r.out.WriteString(text)
}

// plainLit reads unquoted text.
func (r *wordReader) plainLit(s string, first bool) {
	if first && strings.HasPrefix(s, "~") {
		user, rest, _ := strings.Cut(s[1:], "/")
		switch moved := r.sc.vars["HOME"]; {
		case len(moved) > 0 && user == "":
			r.literal, r.open = false, true
			r.form("*")
			r.out.WriteString(moved[0])
			if len(s) > 1 {
				r.out.WriteString("/")
				r.form("/")
			}
			s = rest
		case user != "" || r.a.p.roots.home == "":
			r.literal, r.open = false, true
			r.form("*")
		default:
			r.out.WriteString(r.a.p.roots.home)
			r.form(escapeWord(r.a.p.roots.home))
			if len(s) > 1 {
				r.out.WriteString("/")
				r.form("/")
			}
			s = rest
		}
	}
	defer r.formLit(s)
	for i := 0; i < len(s); i++ {
		switch c := s[i]; c {
		case '\\':
			if i++; i < len(s) && s[i] != '\n' {
				r.out.WriteByte(s[i])
			}
			continue
		case '*', '?':
			r.literal, r.glob = false, true
		case '[':
			if r.several || strings.LastIndexByte(s[i:], ']') > 1 {
				r.literal, r.glob = false, true
			}
		}
		r.out.WriteByte(s[i])
	}
}

// quotedLit reads text between double quotes.
func (r *wordReader) quotedLit(s string) {
	from := r.out.Len()
	defer func() { r.form(escapeWord(r.out.String()[from:])) }()
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+1 < len(s) {
			switch s[i+1] {
			case '\n':
				i++
				continue
			case '$', '`', '"', '\\':
				i++
			}
		}
		r.out.WriteByte(s[i])
	}
}

func isList(x *syntax.ParamExp) bool {
	if x.Param == nil {
		return false
	}
	if x.Param.Value == "@" {
		return true
	}
	return subscript(x) == "@"
}

// subscript returns a literal index of an array, or an empty string.
func subscript(x *syntax.ParamExp) string {
	if w, ok := x.Index.(*syntax.Word); ok {
		return w.Lit()
	}
	return ""
}

// param guesses the value of a parameter: what the script assigned to it
// before, its default, or nothing.
func (a *analyser) param(x *syntax.ParamExp, sc *scope) string {
	if x.Param == nil || x.Length {
		return ""
	}
	value := sc.value(x.Param.Value, subscript(x))
	if x.Excl {
		value = sc.value(value, "")
	}
	if value == "" {
		switch x.Param.Value {
		case "IFS":
			return " "
		case "HOME":
			value = a.p.roots.home
		case "PWD":
			value = sc.dir()
		}
	}
	switch {
	case x.Slice != nil:
		return sliced(value, x.Slice)
	case x.Repl != nil && x.Repl.Orig != nil:
		with := ""
		if x.Repl.With != nil {
			with = a.plain(x.Repl.With, sc)
		}
		return bounded(strings.ReplaceAll(value, a.plain(x.Repl.Orig, sc), with))
	case x.Exp == nil || x.Exp.Word == nil:
		return value
	}
	switch x.Exp.Op {
	case syntax.RemSmallPrefix, syntax.RemLargePrefix:
		return strings.TrimPrefix(value, a.plain(x.Exp.Word, sc))
	case syntax.RemSmallSuffix, syntax.RemLargeSuffix:
		return strings.TrimSuffix(value, a.plain(x.Exp.Word, sc))
	case syntax.AlternateUnset, syntax.AlternateUnsetOrNull:
		return a.plain(x.Exp.Word, sc)
	case syntax.DefaultUnset, syntax.DefaultUnsetOrNull, syntax.AssignUnset, syntax.AssignUnsetOrNull:
		if value == "" {
			return a.plain(x.Exp.Word, sc)
		}
	}
	return value
}

// sliced guesses ${x:offset:length} for plain numbers.
func sliced(value string, s *syntax.Slice) string {
	number := func(e syntax.ArithmExpr, absent int) int {
		if w, ok := e.(*syntax.Word); ok {
			if n, err := strconv.Atoi(w.Lit()); err == nil && n >= 0 {
				return min(n, len(value))
			}
		}
		return absent
	}
	value = value[number(s.Offset, 0):]
	return value[:min(number(s.Length, len(value)), len(value))]
}

func bounded(s string) string {
	if len(s) > maxValue {
		return ""
	}
	return s
}

// plain guesses a word without judging what is inside it.
func (a *analyser) plain(w *syntax.Word, sc *scope) string {
	if a.guessing++; a.guessing > maxDepth {
		a.guessing--
		return ""
	}
	r := wordReader{a: a, sc: sc, mute: true}
	for _, part := range w.Parts {
		r.part(part, false, false)
	}
	a.guessing--
	return r.out.String()
}
