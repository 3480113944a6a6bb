package patch

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// ErrNoCall is the error for a command that is the text of a patch itself.
var ErrNoCall = errors.New("patch detected without an explicit call; send it to the apply_patch tool, or run [\"apply_patch\", \"<patch>\"]")

// FromCommand reports whether a command is nothing but a call of apply_patch, as
// models write it: the program with the patch as its only argument, or a shell
// script that is exactly a call with a here-document, maybe after one "cd DIR &&".
// It returns the text of the patch, which may still not parse, and the DIR,
// which is relative to the command's folder, or empty. A here-document is taken
// as written, nothing in it is expanded. Every other command is not found. The
// only error is ErrNoCall, with found true.
func FromCommand(argv []string) (text, dir string, found bool, err error) {
	if len(argv) == 2 && isProgram(argv[0]) {
		return argv[1], "", true, nil
	}
	script, ok := shellScript(argv)
	if !ok && len(argv) == 1 {
		if isPatch(argv[0]) {
			return argv[0], "", true, ErrNoCall
		}
		return "", "", false, nil
	}
	if !ok {
		return "", "", false, nil
	}
	if isPatch(script) {
		return script, "", true, ErrNoCall
	}
	text, dir, found = fromScript(script)
	return text, dir, found, nil
}

func isProgram(name string) bool { return name == "apply_patch" || name == "applypatch" }

// isPatch asks the parser only when a marker is there, which is rare.
func isPatch(text string) bool {
	if !strings.Contains(text, beginMarker) {
		return false
	}
	_, err := Parse(text)
	return err == nil
}

// shellScript returns the script of a shell call.
func shellScript(argv []string) (string, bool) {
	if len(argv) < 3 {
		return "", false
	}
	name := strings.ToLower(filepath.Base(strings.ReplaceAll(argv[0], `\`, "/")))
	name = strings.TrimSuffix(name, ".exe")
	flags, script := argv[1:len(argv)-1], argv[len(argv)-1]
	lower := strings.ToLower(strings.Join(flags, " "))
	switch name {
	case "bash", "zsh", "sh":
		return script, len(flags) == 1 && (flags[0] == "-lc" || flags[0] == "-c")
	case "pwsh", "powershell":
		return script, lower == "-command" || lower == "-noprofile -command"
	case "cmd":
		return script, lower == "/c"
	}
	return "", false
}

// fromScript wants one statement and nothing else in script.
func fromScript(script string) (text, dir string, found bool) {
	if !strings.Contains(script, "apply") || !strings.Contains(script, "<<") {
		return "", "", false
	}
	file, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(script), "")
	if err != nil || len(file.Stmts) != 1 {
		return "", "", false
	}
	stmt := file.Stmts[0]
	if both, ok := stmt.Cmd.(*syntax.BinaryCmd); ok && plain(stmt) && len(stmt.Redirs) == 0 && both.Op == syntax.AndStmt {
		args, ok := words(both.X)
		if !ok || len(both.X.Redirs) > 0 || len(args) != 2 || args[0] != "cd" || strings.HasPrefix(args[1], "-") {
			return "", "", false
		}
		dir, stmt = args[1], both.Y
	}
	args, ok := words(stmt)
	if !ok || len(args) != 1 || !isProgram(args[0]) || len(stmt.Redirs) != 1 {
		return "", "", false
	}
	text, found = heredoc(script, stmt.Redirs[0])
	return text, dir, found
}

// plain reports whether a statement is neither negated nor put aside.
func plain(s *syntax.Stmt) bool { return !s.Negated && !s.Background && !s.Coprocess }

// words returns the words of a simple command without assignments, if every one
// is known without running anything.
func words(s *syntax.Stmt) ([]string, bool) {
	call, ok := s.Cmd.(*syntax.CallExpr)
	if !ok || !plain(s) || len(call.Assigns) > 0 {
		return nil, false
	}
	out := make([]string, 0, len(call.Args))
	for _, word := range call.Args {
		if len(word.Parts) != 1 {
			return nil, false
		}
		value, ok := literal(word.Parts[0])
		if !ok {
			return nil, false
		}
		out = append(out, value)
	}
	return out, true
}

func literal(part syntax.WordPart) (string, bool) {
	switch p := part.(type) {
	case *syntax.Lit:
		return unescape(p.Value), !strings.ContainsAny(p.Value, "*?[{") && !strings.HasPrefix(p.Value, "~")
	case *syntax.SglQuoted:
		return p.Value, !p.Dollar
	case *syntax.DblQuoted:
		if len(p.Parts) == 0 {
			return "", true
		}
		lit, ok := p.Parts[0].(*syntax.Lit)
		if !ok || len(p.Parts) > 1 || p.Dollar || strings.Contains(lit.Value, `\`) {
			return "", false
		}
		return lit.Value, true
	}
	return "", false
}

// unescape takes the backslashes of an unquoted word away.
func unescape(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+1 < len(s) {
			i++
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// heredoc returns the body of a here-document as it stands in script.
func heredoc(script string, r *syntax.Redirect) (string, bool) {
	if r.N != nil || r.Hdoc == nil || !slices.Contains([]syntax.RedirOperator{syntax.Hdoc, syntax.DashHdoc}, r.Op) {
		return "", false
	}
	// The node reaches over the closing delimiter, which stands on a line of
	// its own.
	body := script[r.Hdoc.Pos().Offset():r.Hdoc.End().Offset()]
	body = body[:strings.LastIndexByte(body, '\n')+1]
	if r.Op == syntax.Hdoc {
		return body, true
	}
	lines := strings.SplitAfter(body, "\n")
	for i, line := range lines {
		lines[i] = strings.TrimLeft(line, "\t")
	}
	return strings.Join(lines, ""), true
}
