package policy

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// cannotJudge is the reason for words whose value or effect is only known
// when they are run.
const cannotJudge = "a substitution or computation in a word cannot be judged"

// command is one simple command of a script.
type command struct {
	// words are the command after its wrappers and global options; dropped
	// are the options that were taken out.
	words, dropped []word
	// full are the words before options were taken out, if any were.
	full []word
	// dir is the folder it runs in, empty if that is not certain; shown is
	// the most likely one.
	dir, shown string
	// opaque says why the command cannot be judged by its words.
	opaque string
	// env is the env command whose assignments need a rule of their own.
	env []word
	// function says that the name is that of a function of the script.
	function bool
	// feed is the here-document that is its standard input.
	feed *feed
	// wild says why the command may run any other command.
	wild string
	// strange says that the options of git are not known.
	strange bool
	// alias says that git may take its sub-command for the name of an alias.
	alias bool
	// renamed says that the program gets another name.
	renamed bool
	// outermost says that the vector is what drover itself starts.
	outermost bool
}

// unit is one thing of a script that has to be judged: a command, a path, or
// (with neither) a construct that cannot be judged.
type unit struct {
	cmd    *command
	action Action
	opaque string
	// inside says that the unit lies inside an opaque construct.
	inside bool
	// guess says that only deny and ask rules are tried.
	guess bool
	// implied says that a read inside the workspace follows from the command.
	implied bool
	// wild says that any command may be run.
	wild bool
	// maybe says that the action's path is not certain.
	maybe *possiblePath
	// derived says that the path follows from the words of a program: only
	// rules decide about it.
	derived bool
	// unread says that the script is too large to look for denied commands.
	unread bool
}

// analyser turns a vector or a script into units.
type analyser struct {
	p *Policy
	// text and file are the script that is being read, numbers what it says of
	// variables that may be numbers, tables its variables with texts for
	// indexes.
	text    string
	file    *syntax.File
	numbers *numbers
	tables  map[string]bool
	// funcs are the functions that it defines, and those around it.
	funcs map[string]bool
	// main is the script that drover itself starts, fixed its variables.
	main  *syntax.File
	fixed *settledVariables
	units []unit
	// refusals are the deny and ask rules about paths, once they are needed.
	refusals []refusal
	commands int
	steps    int
	guessing int
	// over says that a limit was reached.
	over bool
}

func (p *Policy) analyse(a *Action) []unit {
	an := analyser{p: p}
	sc := &scope{dirs: []string{clean(a.Dir)}}
	c := command{words: literals(a.Argv), outermost: true}
	if len(c.words) > 0 {
		an.command(&c, sc)
	}
	return an.units
}

func (a *analyser) add(u unit, sc *scope) {
	u.inside = u.inside || sc.opaque
	u.guess = u.guess || sc.guess
	a.units = append(a.units, u)
}

func (a *analyser) addOpaque(why string, sc *scope) {
	if !sc.guess {
		a.add(unit{opaque: why}, sc)
	}
}

// addWild notes that any command may be run; without a deny or ask rule
// nothing follows from it.
func (a *analyser) addWild(why string, sc *scope) {
	a.add(unit{opaque: why, wild: true, guess: true}, sc)
}

// script judges the text of a script.
func (a *analyser) script(text string, sc *scope) {
	if sc.depth++; sc.depth > maxDepth || tooComplex(text) {
		a.add(unit{opaque: "the script is too large or too deep to be judged", unread: true}, sc)
		return
	}
	if strings.Contains(text, "\r") {
		// For a shell a carriage return is a letter like others, for the parser
		// it is a part of the line's end.
		text = strings.ReplaceAll(text, "\r", "\x01")
	}
	parser := a.p.parser()
	file, err := parser.Parse(strings.NewReader(text), "")
	a.p.parsers.Put(parser)
	text0, file0, numbers0, tables0, funcs0 := a.text, a.file, a.numbers, a.tables, a.funcs
	a.text, a.file, a.numbers, a.tables = text, file, nil, nil
	if sc.depth == 1 && len(a.units) == 0 && err == nil {
		a.main = file
	}
	if err != nil {
		a.broken(text, file, sc)
	} else {
		sc.funcs = functions(file, sc.funcs)
		a.funcs = sc.funcs
		if wanders(file, text) {
			sc.lost = true
		}
		a.stmts(file.Stmts, sc)
	}
	a.text, a.file, a.numbers, a.tables, a.funcs = text0, file0, numbers0, tables0, funcs0
}

// broken judges what can be read of a script that does not parse.
func (a *analyser) broken(text string, file *syntax.File, sc *scope) {
	a.addOpaque("the script cannot be parsed", sc)
	if !sc.guess {
		a.addWild("the script cannot be parsed", sc)
	}
	guess := sc.child()
	guess.guess = true
	if file != nil {
		a.stmts(file.Stmts, guess)
	}
	parser := a.p.parser()
	defer a.p.parsers.Put(parser)
	for i, line := range strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune("\n;&|(){}`", r) }) {
		if i >= 256 {
			a.add(unit{opaque: "the script cannot be parsed", unread: true}, sc)
			return
		}
		if part, err := parser.Parse(strings.NewReader(line), ""); err == nil {
			a.text = line
			a.stmts(part.Stmts, guess)
			continue
		}
		if words := strings.Fields(strings.NewReplacer(`'`, "", `"`, "", `\`, "").Replace(line)); len(words) > 0 {
			c := command{words: literals(words)}
			a.guessWords(c.words, guess)
			a.carried(&c, guess, false)
		}
	}
}

func (a *analyser) source(n syntax.Node) string {
	from, to := n.Pos().Offset(), n.End().Offset()
	if to > uint(len(a.text)) || from > to {
		return "?"
	}
	return a.text[from:to]
}

func (a *analyser) stmts(list []*syntax.Stmt, sc *scope) {
	for _, s := range list {
		a.stmt(s, sc)
	}
}

// stmt judges a statement and returns the folders in which the shell may be
// if it succeeds.
func (a *analyser) stmt(s *syntax.Stmt, sc *scope) []string {
	if a.steps++; a.steps > maxSteps {
		a.overrun(sc)
		return sc.dirs
	}
	if s.Background || s.Coprocess || s.Disown {
		sc = sc.child()
	}
	fed := a.redirects(s, sc)
	if s.Cmd == nil {
		return sc.dirs
	}
	if fed == nil {
		return a.cmd(s.Cmd, nil, sc)
	}
	outer := sc.stdin
	sc.stdin = fed.text
	defer func() { sc.stdin = outer }()
	return a.cmd(s.Cmd, fed, sc)
}

// overrun notes once that the script is too long to be read to its end.
func (a *analyser) overrun(sc *scope) {
	if !a.over {
		a.over = true
		a.add(unit{opaque: "the script holds too many commands", unread: true}, sc)
	}
}

func (a *analyser) cmd(cmd syntax.Command, fed *feed, sc *scope) []string {
	switch x := cmd.(type) {
	case *syntax.CallExpr:
		return a.call(x, fed, sc)
	case *syntax.BinaryCmd:
		return a.binary(x, sc)
	case *syntax.Block:
		a.stmts(x.Stmts, sc)
	case *syntax.Subshell:
		a.stmts(x.Stmts, sc.child())
	case *syntax.IfClause:
		for ; x != nil; x = x.Else {
			a.stmts(x.Cond, sc)
			a.stmts(x.Then, sc)
		}
	case *syntax.WhileClause:
		a.stmts(x.Cond, sc)
		a.stmts(x.Do, sc)
	case *syntax.ForClause:
		a.loop(x, sc)
	case *syntax.CaseClause:
		a.opaqueIf(a.nested(x.Word, sc), sc)
		for _, item := range x.Items {
			for _, p := range item.Patterns {
				a.opaqueIf(a.nested(p, sc), sc)
			}
			a.stmts(item.Stmts, sc)
		}
	case *syntax.FuncDecl:
		if x.Body != nil {
			a.stmt(x.Body, sc.child())
		}
	case *syntax.TimeClause:
		return a.timed(x.Stmt, sc)
	case *syntax.CoprocClause:
		if x.Stmt != nil {
			a.stmt(x.Stmt, sc.child())
		}
	case *syntax.DeclClause:
		a.declare(x, sc)
	case *syntax.ArithmCmd, *syntax.TestClause, *syntax.LetClause:
		a.opaqueIf(a.nested(x, sc) || assignsProgram(x), sc)
		a.quotedIndex(x, sc)
	default:
		a.addOpaque("the construct is unknown", sc)
		a.addWild("the construct is unknown", sc)
		a.nested(x, sc)
	}
	return sc.dirs
}

// timed judges what the keyword time measures; it takes "--" in front.
func (a *analyser) timed(s *syntax.Stmt, sc *scope) []string {
	if s == nil {
		return sc.dirs
	}
	call, ok := s.Cmd.(*syntax.CallExpr)
	if ok && len(call.Assigns) == 0 && len(call.Args) > 1 && call.Args[0].Lit() == "--" {
		rest, inner := *s, *call
		inner.Args = call.Args[1:]
		rest.Cmd = &inner
		return a.stmt(&rest, sc)
	}
	if ok && len(call.Assigns) == 0 && len(call.Args) > 1 && strings.HasPrefix(call.Args[0].Lit(), "-") {
		// Shells without the keyword run the program time, which has options.
		words := []word{literal("time")}
		for _, w := range call.Args {
			words = append(words, a.word(w, sc))
		}
		a.guessWords(words, sc)
	}
	return a.stmt(s, sc)
}

// opaqueIf adds an opaque construct for commands that run inside a word.
func (a *analyser) opaqueIf(found bool, sc *scope) {
	if found {
		a.addOpaque(cannotJudge, sc)
	}
}

func (a *analyser) binary(x *syntax.BinaryCmd, sc *scope) []string {
	switch x.Op {
	case syntax.AndStmt:
		ok := a.stmt(x.X, sc)
		all, lost := sc.dirs, sc.lost
		sc.dirs = ok
		ok = a.stmt(x.Y, sc)
		sc.dirs, sc.lost = union(all, sc.dirs), sc.lost || lost
		return ok
	case syntax.OrStmt:
		a.stmt(x.X, sc)
		a.stmt(x.Y, sc)
		return sc.dirs
	}
	a.stmt(x.X, sc.child())
	right := sc.child()
	if a.p.hasRefusals() || a.p.settings.approval != "" {
		right.stdin = a.printed(x.X, sc)
	}
	if sc.zsh {
		// zsh runs the end of a pipeline in the shell itself.
		a.stmt(x.Y, right)
		sc.dirs, sc.lost = union(sc.dirs, right.dirs), sc.lost || right.lost
		return sc.dirs
	}
	a.stmt(x.Y, right)
	return sc.dirs
}

func (a *analyser) loop(x *syntax.ForClause, sc *scope) {
	iter, ok := x.Loop.(*syntax.WordIter)
	if !ok {
		a.opaqueIf(a.nested(x.Loop, sc), sc)
		a.stmts(x.Do, sc)
		return
	}
	var values []string
	for _, item := range iter.Items {
		w := a.word(item, sc)
		a.opaqueIf(w.subst, sc)
		if w.literal {
			values = append(values, w.text)
		} else {
			values = append(values, w.guess...)
		}
	}
	if choosesProgram(iter.Name.Value) {
		a.addOpaque("the variable "+iter.Name.Value+" chooses programs", sc)
		a.hook(iter.Name.Value, "", false, sc)
	}
	if len(values) > 0 {
		sc.set(iter.Name.Value, values[:1])
	}
	a.stmts(x.Do, sc)
	if !a.p.hasRefusals() {
		return
	}
	for _, v := range values[min(1, len(values)):min(16, len(values))] {
		guess := sc.child()
		guess.guess = true
		guess.set(iter.Name.Value, []string{v})
		a.stmts(x.Do, guess)
	}
}

// substitution judges commands that run inside a word.
func (a *analyser) substitution(stmts []*syntax.Stmt, sc *scope) {
	inner := sc.child()
	inner.opaque = true
	a.stmts(stmts, inner)
}

// nested judges all commands inside the expansions of a node and tells
// whether there were any.
func (a *analyser) nested(n syntax.Node, sc *scope) bool {
	found := false
	if isNil(n) {
		return false
	}
	syntax.Walk(n, func(n syntax.Node) bool {
		switch x := n.(type) {
		case *syntax.CmdSubst:
			found = true
			a.substitution(x.Stmts, sc)
			return false
		case *syntax.ProcSubst:
			found = true
			a.substitution(x.Stmts, sc)
			return false
		case *syntax.ParamExp:
			found = a.hidden(x, sc) || found
			if x.Exp != nil && x.Param != nil && (x.Exp.Op == syntax.AssignUnset || x.Exp.Op == syntax.AssignUnsetOrNull) {
				a.assigned(x.Param.Value, x.Exp.Word, sc)
			}
		default:
			found = a.hidden(n, sc) || found
		}
		return true
	})
	return found
}

func isNil(n syntax.Node) bool {
	switch x := n.(type) {
	case nil:
		return true
	case *syntax.Word:
		return x == nil
	}
	return false
}

// call judges a simple command.
func (a *analyser) call(x *syntax.CallExpr, fed *feed, sc *scope) []string {
	c := command{}
	var unsafe []string
	for _, as := range x.Assigns {
		subst := a.assign(as, sc)
		if as.Name != nil {
			text, known := a.static(as.Value)
			a.hook(as.Name.Value, text, (known || as.Value == nil) && !as.Append, sc)
		}
		switch {
		case subst:
			c.opaque = cannotJudge
		case as.Name == nil:
		case len(x.Args) == 0 && !choosesProgram(as.Name.Value):
		case as.Name.Value == "IFS" && len(x.Args) > 0 && x.Args[0].Lit() == "read":
			// For read itself it only says how to split a line.
		case !a.p.safeVariable(as.Name.Value):
			unsafe = append(unsafe, as.Name.Value)
			if choosesProgram(as.Name.Value) {
				a.guessScript(sc.value(as.Name.Value, ""), sc)
			}
		}
	}
	if len(unsafe) > 0 {
		c.opaque = "the variable " + unsafe[0] + " is not known to be harmless"
	}
	if len(x.Args) == 0 {
		if c.opaque != "" {
			a.addOpaque(c.opaque, sc)
		}
		return sc.dirs
	}
	c.words = make([]word, len(x.Args))
	for i, w := range x.Args {
		c.words[i] = a.word(w, sc)
		if c.words[i].subst && c.opaque == "" {
			c.opaque = cannotJudge
		}
	}
	if fed != nil {
		c.feed = fed
		if fed.subst && c.opaque == "" {
			c.opaque = cannotJudge
		}
	}
	return a.command(&c, sc)
}
