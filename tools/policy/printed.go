package policy

import (
	"encoding/base64"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// output guesses what a command substitution prints, for commands that print
// what they are told.
func (a *analyser) output(stmts []*syntax.Stmt, sc *scope) string {
	if len(stmts) != 1 {
		return ""
	}
	call, ok := stmts[0].Cmd.(*syntax.CallExpr)
	if !ok || len(call.Args) == 0 {
		return ""
	}
	if call.Args[0].Lit() == "cat" {
		return a.given(stmts[0], sc)
	}
	if len(call.Args) < 2 {
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
	case "yes":
		return strings.Join(args, " ")
	case "which", "command", "type", "basename", "realpath", "readlink":
		return args[len(args)-1]
	}
	return ""
}

// printed guesses what a statement writes to a pipe: what it is told to
// print, or what it was given itself.
func (a *analyser) printed(s *syntax.Stmt, sc *scope) string {
	decode := false
	for depth := 0; s != nil && depth < maxDepth; depth++ {
		last := s
		pipe, piped := s.Cmd.(*syntax.BinaryCmd)
		if piped {
			last = pipe.Y
		}
		text := a.output([]*syntax.Stmt{last}, sc)
		if text == "" {
			text = a.given(last, sc)
		}
		if text == "" && !piped {
			text = sc.stdin
		}
		if text != "" || !piped {
			return decoded(text, decode)
		}
		decode = decode || decodes(last)
		s = pipe.X
	}
	return ""
}

// given guesses what here-documents give to a statement.
func (a *analyser) given(s *syntax.Stmt, sc *scope) string {
	for _, r := range s.Redirs {
		switch {
		case r.Hdoc != nil:
			return a.plain(r.Hdoc, sc)
		case r.Op == syntax.WordHdoc:
			return a.plain(r.Word, sc)
		}
	}
	return ""
}

// decodes tells whether a statement is "base64 -d".
func decodes(s *syntax.Stmt) bool {
	call, ok := s.Cmd.(*syntax.CallExpr)
	return ok && len(call.Args) > 1 && call.Args[0].Lit() == "base64" && strings.HasPrefix(strings.ToLower(strings.TrimLeft(call.Args[1].Lit(), "-")), "d")
}

func decoded(text string, decode bool) string {
	if !decode {
		return text
	}
	data, err := base64.StdEncoding.DecodeString(strings.TrimSpace(text))
	if err != nil {
		return ""
	}
	return string(data)
}
