package policy

import (
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

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
	r := wordReader{a: a, sc: sc, literal: true, several: len(w.Parts) > 1}
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
	return word{text: a.source(w), guess: r.words(), glob: r.glob, subst: r.subst}
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
	out := word{text: a.source(w), glob: r.glob, subst: r.subst}
	for _, parts := range expandBraces(braced.Parts, maxBraces) {
		one := wordReader{a: a, sc: r.sc, literal: true, mute: true}
		for i, part := range parts {
			one.part(part, i == 0 && len(parts) == 1, false)
		}
		out.guess = append(out.guess, one.words()...)
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
		results = next
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
			return
		}
		r.out.WriteString(x.Value)
	case *syntax.DblQuoted:
		r.some = true
		for _, p := range x.Parts {
			r.part(p, false, true)
		}
	case *syntax.ParamExp:
		r.literal = false
		r.nested(x)
		r.value(r.a.param(x, r.sc), quoted && !isList(x))
	case *syntax.CmdSubst:
		r.literal, r.subst = false, true
		if !r.mute {
			r.a.substitution(x.Stmts, r.sc)
		}
		r.value(r.a.output(x.Stmts, r.sc), quoted)
	case *syntax.ProcSubst:
		r.literal, r.subst = false, true
		if !r.mute {
			r.a.substitution(x.Stmts, r.sc)
		}
		r.value("/dev/fd/63", true)
	case *syntax.ArithmExp:
		r.literal = false
		r.nested(x)
		r.value("0", true)
	case *syntax.ExtGlob:
		r.literal, r.glob = false, true
		// In zsh a pattern may run code: *(e:'rm x':).
		r.subst = r.subst || r.sc.zsh
		r.value("*", true)
	case *syntax.BraceExp:
		r.literal = false
		if len(x.Elems) > 0 {
			for _, p := range x.Elems[0].Parts {
				r.part(p, false, quoted)
			}
		}
	default:
		r.literal = false
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
	if !quoted && strings.ContainsAny(text, " \t\n") {
		r.split = true
	}
	r.out.WriteString(text)
}

// plainLit reads unquoted text.
func (r *wordReader) plainLit(s string, first bool) {
	if first && strings.HasPrefix(s, "~") {
		user, rest, _ := strings.Cut(s[1:], "/")
		if user != "" || r.a.p.roots.home == "" {
			r.literal = false
		} else {
			r.out.WriteString(r.a.p.roots.home)
			if len(s) > 1 {
				r.out.WriteString("/")
			}
			s = rest
		}
	}
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
	if x.Exp == nil || x.Exp.Word == nil {
		return value
	}
	switch x.Exp.Op {
	case syntax.AlternateUnset, syntax.AlternateUnsetOrNull:
		return a.plain(x.Exp.Word, sc)
	case syntax.DefaultUnset, syntax.DefaultUnsetOrNull, syntax.AssignUnset, syntax.AssignUnsetOrNull:
		if value == "" {
			return a.plain(x.Exp.Word, sc)
		}
	}
	return value
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

// output guesses what a command substitution prints, for commands that print
// what they are told.
func (a *analyser) output(stmts []*syntax.Stmt, sc *scope) string {
	if len(stmts) != 1 {
		return ""
	}
	call, ok := stmts[0].Cmd.(*syntax.CallExpr)
	if !ok || len(call.Args) < 2 {
		return ""
	}
	words := make([]string, len(call.Args))
	for i, w := range call.Args {
		words[i] = a.plain(w, sc)
	}
	return printed(words)
}

func printed(words []string) string {
	args := words[1:]
	switch words[0] {
	case "echo":
		escapes := false
		for len(args) > 0 && len(args[0]) > 1 && strings.Trim(args[0], "neE") == "-" {
			escapes = escapes || strings.Contains(args[0], "e")
			args = args[1:]
		}
		text := strings.Join(args, " ")
		if escapes {
			text = unescapeC(text)
		}
		return text
	case "printf":
		if len(args) > 1 && args[0] == "--" {
			args = args[1:]
		}
		if len(args) > 1 {
			sep := ""
			if strings.HasSuffix(args[0], " ") || strings.HasSuffix(args[0], `\n`) {
				sep = " "
			}
			return unescapeC(strings.Join(args[1:], sep))
		}
		return unescapeC(args[0])
	case "which", "command", "type", "basename", "realpath", "readlink":
		return args[len(args)-1]
	}
	return ""
}

// unescapeC decodes the escapes of $'…'.
func unescapeC(s string) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	var out strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' || i+1 == len(s) {
			out.WriteByte(s[i])
			continue
		}
		i++
		if k := strings.IndexByte("abeEfnrtv", s[i]); k >= 0 {
			out.WriteByte("\a\b\x1b\x1b\f\n\r\t\v"[k])
			continue
		}
		base, width := 16, 0
		switch c := s[i]; {
		case c == 'x':
			width = 2
		case c == 'u':
			width = 4
		case c == 'U':
			width = 8
		case c == 'c' && i+1 < len(s):
			i++
			out.WriteByte(s[i] & 0x1f)
			continue
		case '0' <= c && c <= '7':
			base, width = 8, 3
			if c == '0' {
				width = 4
			}
			i--
		default:
			out.WriteByte(c)
			continue
		}
		i += writeCode(&out, s[i+1:], base, width)
	}
	return out.String()
}

// writeCode writes the character whose number begins s and returns the
// length of the number.
func writeCode(out *strings.Builder, s string, base, width int) int {
	n := 0
	for n < width && n < len(s) {
		if _, err := strconv.ParseUint(s[n:n+1], base, 8); err != nil {
			break
		}
		n++
	}
	if n == 0 {
		return 0
	}
	code, err := strconv.ParseUint(s[:n], base, 32)
	if err != nil {
		return n
	}
	if base == 8 || width == 2 {
		out.WriteByte(byte(code))
		return n
	}
	if code > utf8.MaxRune {
		code = utf8.RuneError
	}
	out.WriteRune(rune(code))
	return n
}
