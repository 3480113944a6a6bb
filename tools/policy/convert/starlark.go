package convert

import (
	"bytes"
	"strings"
	"unicode/utf8"

	"go.starlark.net/syntax"

	"drover/tools/policy"
)

// This file reads the literals of rule files.

// maxNesting bounds how deep brackets may be nested: the parser calls itself
// for each.
const maxNesting = 100

// checkText refuses what no parser should see.
func checkText(f File) error {
	if len(f.Data) > MaxFile {
		return unreadable(f.Name, 0, "it is larger than 256 KiB")
	}
	if !utf8.Valid(f.Data) || bytes.IndexByte(f.Data, 0) >= 0 {
		return unreadable(f.Name, 0, "it is not UTF-8 text")
	}
	depth, line := 0, 1
	for _, c := range f.Data {
		switch c {
		case '\n':
			line++
		case '(', '[', '{':
			depth++
		case ')', ']', '}':
			depth = max(0, depth-1)
		}
		if depth > maxNesting {
			return unreadable(f.Name, line, "it is nested too deep")
		}
	}
	return nil
}

// plain takes the brackets off an expression.
func plain(x syntax.Expr) syntax.Expr {
	for {
		p, ok := x.(*syntax.ParenExpr)
		if !ok {
			return x
		}
		x = p.X
	}
}

// elements reads a list.
func elements(o origin, x syntax.Expr, what string) ([]syntax.Expr, error) {
	switch l := plain(x).(type) {
	case nil:
		return nil, unreadable(o.file, o.line, "%s needs the argument %q", o.text, what)
	case *syntax.ListExpr:
		return l.List, nil
	case *syntax.TupleExpr:
		return l.List, nil
	}
	return nil, unreadable(o.file, lineOf(o, x), "%s must be a list of literals", what)
}

// text reads a string.
func text(o origin, x syntax.Expr, what string) (string, error) {
	if x == nil {
		return "", unreadable(o.file, o.line, "%s needs the argument %q", o.text, what)
	}
	lit, ok := plain(x).(*syntax.Literal)
	if !ok {
		return "", unreadable(o.file, lineOf(o, x), "%s must be a literal string", what)
	}
	s, ok := lit.Value.(string)
	if !ok || lit.Token != syntax.STRING || !utf8.ValidString(s) || strings.ContainsRune(s, 0) {
		return "", unreadable(o.file, lineOf(o, x), "%s must be a literal string", what)
	}
	return s, nil
}

// words reads a string, or a list of alternatives.
func words(o origin, x syntax.Expr, what string) ([]string, error) {
	if _, ok := plain(x).(*syntax.ListExpr); !ok {
		s, err := text(o, x, what)
		return []string{s}, err
	}
	list, err := elements(o, x, what)
	if err != nil {
		return nil, err
	}
	out := []string{}
	for _, e := range list {
		s, err := text(o, e, what)
		if err != nil {
			return nil, err
		}
		out = append(out, s)
	}
	return out, nil
}

// examples reads a list of commands, each a list of words or a text that a
// shell would split.
func examples(o origin, x syntax.Expr, what string) ([][]string, error) {
	if x == nil {
		return nil, nil
	}
	list, err := elements(o, x, what)
	if err != nil {
		return nil, err
	}
	var out [][]string
	for _, e := range list {
		argv, err := words(o, e, what)
		if err != nil {
			return nil, err
		}
		if _, isList := plain(e).(*syntax.ListExpr); !isList {
			if argv, err = split(argv[0]); err != nil {
				return nil, unreadable(o.file, lineOf(o, e), "an example of %s cannot be read: %v", what, err)
			}
		}
		if len(argv) == 0 {
			return nil, unreadable(o.file, lineOf(o, e), "an example of %s is empty", what)
		}
		out = append(out, argv)
	}
	return out, nil
}

func decision(o origin, x syntax.Expr, known map[string]policy.Effect) (policy.Effect, error) {
	if x == nil {
		return policy.Allow, nil
	}
	word, err := text(o, x, "decision")
	if err != nil {
		return "", err
	}
	effect, ok := known[word]
	if !ok {
		return "", unreadable(o.file, lineOf(o, x), "unknown decision %q", word)
	}
	return effect, nil
}

func justification(o origin, x syntax.Expr) (string, error) {
	if x == nil {
		return "", nil
	}
	s, err := text(o, x, "justification")
	if err == nil && strings.TrimSpace(s) == "" {
		err = unreadable(o.file, lineOf(o, x), "the justification is empty")
	}
	return strings.TrimSpace(s), err
}

func lineOf(o origin, x syntax.Expr) int {
	if x == nil {
		return o.line
	}
	start, _ := x.Span()
	return int(start.Line)
}
