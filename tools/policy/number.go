package policy

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// numbers is what a script says about variables that arithmetic may evaluate.
type numbers struct {
	// text are variables that may hold something that is no number; "*" stands
	// for any. assigned are all that the script sets, tables those whose
	// indexes are texts.
	text, assigned, tables map[string]bool
	// from are variables whose values variables take.
	from map[string][]string
	// arguments says that functions are only called with numbers; takes are
	// variables among these.
	arguments bool
	takes     []string
}

// readNumbers looks at every place where a script sets a variable.
func (a *analyser) readNumbers(file *syntax.File) *numbers {
	s := &numbers{text: map[string]bool{}, assigned: map[string]bool{}, tables: map[string]bool{}, from: map[string][]string{}, arguments: true}
	if file == nil {
		return s
	}
	syntax.Walk(file, func(n syntax.Node) bool {
		switch x := n.(type) {
		case *syntax.Assign:
			a.numberAssign(x, s)
		case *syntax.DeclClause:
			s.declared(x)
		case *syntax.WordIter:
			s.assigned[x.Name.Value] = true
			for _, w := range x.Items {
				if !numericItem(w.Lit()) {
					a.numberWord(x.Name.Value, w, s)
				}
			}
			if len(x.Items) == 0 {
				s.from[x.Name.Value] = append(s.from[x.Name.Value], "1")
			}
		case *syntax.ParamExp:
			if x.Exp != nil && x.Param != nil && (x.Exp.Op == syntax.AssignUnset || x.Exp.Op == syntax.AssignUnsetOrNull) {
				a.numberWord(x.Param.Value, x.Exp.Word, s)
			}
		case *syntax.CallExpr:
			a.numberCall(x, a.funcs, s)
		}
		return true
	})
	s.spread()
	return s
}

// spread marks what takes the value of a text as a text.
func (s *numbers) spread() {
	for changed := true; changed; {
		changed = false
		for name, from := range s.from {
			if !s.text[name] && slices.ContainsFunc(from, func(f string) bool { return s.text[f] || textSpecials[f] || isNumber(f) && !s.arguments }) {
				s.text[name], changed = true, true
			}
		}
		if s.arguments && slices.ContainsFunc(s.takes, func(f string) bool { return s.text[f] || textSpecials[f] }) {
			s.arguments, changed = false, true
		}
	}
}

func (a *analyser) numberAssign(as *syntax.Assign, s *numbers) {
	if as.Name == nil || as.Naked {
		return
	}
	name := as.Name.Value
	s.assigned[name] = true
	if as.Value != nil {
		a.numberWord(name, as.Value, s)
	}
	if as.Array == nil {
		return
	}
	for _, e := range as.Array.Elems {
		if e.Value != nil && !numericItem(e.Value.Lit()) {
			a.numberWord(name, e.Value, s)
		}
	}
}

// declared notes tables, whose indexes are no arithmetic.
func (s *numbers) declared(x *syntax.DeclClause) {
	table := false
	for _, as := range x.Args {
		switch {
		case as.Name == nil && as.Value != nil:
			table = table || strings.HasPrefix(as.Value.Lit(), "-") && strings.Contains(as.Value.Lit(), "A")
		case as.Name != nil && table:
			s.tables[as.Name.Value] = true
		}
	}
}

// numberWord notes that a variable takes the value of a word.
func (a *analyser) numberWord(name string, w *syntax.Word, s *numbers) {
	from, ok := a.numeric(w)
	if !ok {
		s.text[name] = true
		return
	}
	if len(from) > 0 {
		s.from[name] = append(s.from[name], from...)
	}
}

// numeric tells whether a word is a number if the variables in it are.
func (a *analyser) numeric(w *syntax.Word) (from []string, ok bool) {
	if w == nil {
		return nil, true
	}
	parts := w.Parts
	for len(parts) == 1 {
		quoted, ok := parts[0].(*syntax.DblQuoted)
		if !ok {
			break
		}
		parts = quoted.Parts
	}
	for _, part := range parts {
		switch x := part.(type) {
		case *syntax.Lit:
			if !isExpression(x.Value) && x.Value != "" {
				return nil, false
			}
			from = append(from, identifiers(x.Value)...)
		case *syntax.SglQuoted:
			if !isExpression(x.Value) && x.Value != "" {
				return nil, false
			}
			from = append(from, identifiers(x.Value)...)
		case *syntax.ArithmExp:
		case *syntax.ParamExp:
			more, ok := a.numericParameter(x)
			if !ok {
				return nil, false
			}
			from = append(from, more...)
		case *syntax.CmdSubst:
			if !a.printsNumber(x.Stmts) {
				return nil, false
			}
		default:
			return nil, false
		}
	}
	return from, true
}

func (a *analyser) numericParameter(x *syntax.ParamExp) (from []string, ok bool) {
	switch {
	case x.Param == nil:
		return nil, false
	case x.Length:
		return nil, true
	case x.Excl:
		// The indexes of an array; those of a table are texts.
		index := subscript(x)
		return nil, (index == "@" || index == "*") && !a.isTable(x.Param.Value)
	case x.Repl != nil:
		return nil, false
	}
	if x.Exp != nil {
		switch x.Exp.Op {
		case syntax.DefaultUnset, syntax.DefaultUnsetOrNull, syntax.AssignUnset, syntax.AssignUnsetOrNull, syntax.AlternateUnset, syntax.AlternateUnsetOrNull:
			if from, ok = a.numeric(x.Exp.Word); !ok {
				return nil, false
			}
		case syntax.RemSmallPrefix, syntax.RemLargePrefix, syntax.RemSmallSuffix, syntax.RemLargeSuffix:
		default:
			return nil, false
		}
	}
	switch name := x.Param.Value; name {
	case "#", "?", "$", "!":
		return from, true
	case "@", "*":
		return append(from, "1"), true
	default:
		return append(from, name), true
	}
}

// isTable tells whether the script declares a variable with indexes that are
// texts.
func (a *analyser) isTable(name string) bool {
	if a.tables == nil {
		tables := &numbers{tables: map[string]bool{}}
		if a.file != nil {
			syntax.Walk(a.file, func(n syntax.Node) bool {
				if x, ok := n.(*syntax.DeclClause); ok {
					tables.declared(x)
				}
				return true
			})
		}
		a.tables = tables.tables
	}
	return a.tables[name]
}

// numberCall notes the variables that a command sets, and the arguments of
// functions.
func (a *analyser) numberCall(x *syntax.CallExpr, funcs map[string]bool, s *numbers) {
	words := x.Args
	for len(words) > 0 {
		head, ok := a.static(words[0])
		switch {
		case !ok:
			// What a computed name could be is judged where it stands.
			return
		case head == "command" || head == "builtin":
			words = words[1:]
			continue
		case head == "set":
			s.arguments = s.arguments && a.onlyOptions(words[1:])
			return
		case funcs[head]:
			for _, w := range words[1:] {
				from, ok := a.numeric(w)
				s.arguments = s.arguments && ok
				s.takes = append(s.takes, from...)
			}
			return
		case codeBuiltins[head] && head != "shopt" && head != "hash" && head != "mapfile" && head != "readarray":
			s.text["*"] = true
			return
		case setsVariables[head]:
			a.numberNames(head, words[1:], s)
			return
		}
		return
	}
}

// onlyOptions tells whether the words of set leave the arguments alone.
func (a *analyser) onlyOptions(words []*syntax.Word) bool {
	for i, w := range words {
		text, ok := a.static(w)
		if !ok || text == "--" || !strings.HasPrefix(text, "-") && !strings.HasPrefix(text, "+") &&
			(i == 0 || !strings.HasSuffix(words[i-1].Lit(), "o")) {
			return false
		}
	}
	return true
}

// numberNames notes the names that a builtin sets.
func (a *analyser) numberNames(head string, words []*syntax.Word, s *numbers) {
	if head == "printf" {
		text := ""
		if len(words) > 0 {
			static, ok := a.static(words[0])
			if !ok && !strings.HasPrefix(words[0].Lit(), "%") && len(words[0].Parts) > 0 && startsComputed(words[0]) {
				s.text["*"] = true
			}
			text = static
		}
		if !strings.HasPrefix(text, "-v") {
			return
		}
		words = words[:min(2, len(words))]
	}
	for i, w := range words {
		text, ok := a.static(w)
		if !ok {
			if i > 0 && strings.HasPrefix(words[i-1].Lit(), "-") && head == "read" {
				// The value of an option, such as a prompt.
				continue
			}
			text = "*"
		}
		name, _, _ := strings.Cut(strings.TrimPrefix(text, "-v"), "=")
		name, _, _ = strings.Cut(name, "[")
		s.text[name], s.assigned[name] = true, true
	}
}

// startsComputed tells whether a word begins with an expansion.
func startsComputed(w *syntax.Word) bool {
	part := w.Parts[0]
	if quoted, ok := part.(*syntax.DblQuoted); ok {
		if len(quoted.Parts) == 0 {
			return false
		}
		part = quoted.Parts[0]
	}
	switch part.(type) {
	case *syntax.Lit, *syntax.SglQuoted:
		return false
	}
	return true
}

// numericArguments tells whether $1 and so on are numbers: the script has no
// arguments, and its functions get nothing else.
func (a *analyser) numericArguments(sc *scope) bool {
	if a.numbers == nil {
		a.numbers = a.readNumbers(a.file)
	}
	return len(sc.args) <= 1 && a.numbers.arguments && !a.numbers.text["*"]
}

// isExpression tells whether evaluating a text can run nothing: it holds no
// index and no expansion.
func isExpression(text string) bool { return text != "" && !strings.ContainsAny(text, "[$`") }

// identifiers returns the names in an expression.
func identifiers(text string) (names []string) {
	for name := range strings.FieldsFuncSeq(text, func(r rune) bool { return !strings.ContainsRune(identifier, r) || r == '-' }) {
		if isName(name) {
			names = append(names, name)
		}
	}
	return names
}

// numberPrinters are programs that print a number and nothing else if the
// condition on their words holds.
var numberPrinters = map[string]func(args []string) bool{
	"seq": func(args []string) bool {
		return !slices.ContainsFunc(args, func(w string) bool {
			return strings.HasPrefix(w, "-f") || strings.HasPrefix(w, "-s") || strings.HasPrefix(w, "--")
		})
	},
	"nproc": func([]string) bool { return true },
	"wc":    func(args []string) bool { return !slices.ContainsFunc(args, isOperand) },
	"grep": func(args []string) bool {
		return len(args) > 0 && isCluster(args[0]) && strings.Contains(args[0], "c") && !strings.ContainsAny(args[0], "rRH") && len(args) <= 3
	},
	"date": func(args []string) bool {
		return len(args) > 0 && strings.HasPrefix(args[len(args)-1], "+%") && strings.Trim(args[len(args)-1], "+%sYmdHMSNjuw-") == ""
	},
	"stat": func(args []string) bool {
		return len(args) == 3 && args[0] == "-c" && strings.HasPrefix(args[1], "%") && strings.Trim(args[1], "%sYXZbhiu") == ""
	},
	"id":   func(args []string) bool { return len(args) == 1 && (args[0] == "-u" || args[0] == "-g") },
	"true": func([]string) bool { return true },
	":":    func([]string) bool { return true },
	"expr": func(args []string) bool {
		return !slices.ContainsFunc(args, func(w string) bool { return !isExpression(w) || w == ":" || w == "substr" || w == "match" })
	},
}

func isOperand(w string) bool { return !strings.HasPrefix(w, "-") || strings.HasPrefix(w, "--files0") }

// printsNumber tells whether a command substitution is a number.
func (a *analyser) printsNumber(stmts []*syntax.Stmt) bool {
	if len(stmts) != 1 {
		return false
	}
	return a.numberStmt(stmts[0])
}

func (a *analyser) numberStmt(s *syntax.Stmt) bool {
	switch x := s.Cmd.(type) {
	case *syntax.BinaryCmd:
		if x.Op == syntax.AndStmt || x.Op == syntax.OrStmt {
			return a.numberStmt(x.X) && a.numberStmt(x.Y)
		}
		if call, ok := x.Y.Cmd.(*syntax.CallExpr); ok && len(call.Args) > 0 && (call.Args[0].Lit() == "tr" && len(call.Args) == 3 && call.Args[1].Lit() == "-d" || call.Args[0].Lit() == "xargs" && len(call.Args) == 1) {
			return a.numberStmt(x.X)
		}
		return a.numberStmt(x.Y)
	case *syntax.CallExpr:
		if len(x.Args) == 0 || len(x.Assigns) > 0 {
			return false
		}
		words := make([]string, len(x.Args))
		for i, w := range x.Args {
			text, ok := a.static(w)
			if !ok {
				text = "$"
			}
			words[i] = text
		}
		if words[0] == "echo" && len(words) == 2 {
			return isNumber(words[1])
		}
		prints := numberPrinters[words[0]]
		return prints != nil && !a.funcs[words[0]] && prints(words[1:])
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
