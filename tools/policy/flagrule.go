package policy

import (
	"fmt"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"drover/output/fault"
)

// flagRules reads the rules of the command line.
func (l *loader) flagRules() ([]*rule, error) {
	given := append([]FlagRule(nil), l.sources.Rules...)
	for _, list := range []struct {
		effect Effect
		texts  []string
	}{{Allow, l.sources.Allow}, {Ask, l.sources.Ask}, {Deny, l.sources.Deny}} {
		for _, text := range list.texts {
			given = append(given, FlagRule{Effect: list.effect, Text: text})
		}
	}
	var out []*rule
	for i, g := range given {
		b, why := l.flagBlock(g.Text)
		if why != "" {
			return nil, &fault.Error{
				Code: "policy_invalid_rule", What: fmt.Sprintf("rule %q of --%s cannot be used", g.Text, g.Effect), Why: why,
				Fix: "write exec:WORDS, read:GLOB, write:GLOB, delete:GLOB, host:NAME, mcp:SERVER/TOOL or tool:NAME", Exit: fault.Usage,
			}
		}
		out = append(out, &rule{
			block: b, id: fmt.Sprintf("flag-%d", i+1), effect: g.Effect, layer: layerFlag,
			file: "--" + string(g.Effect), line: i + 1, reason: g.Text,
		})
	}
	return out, nil
}

// flagBlock reads the short form of a rule; why says what is wrong with it.
func (l *loader) flagBlock(text string) (b block, why string) {
	kind, rest, ok := strings.Cut(text, ":")
	if !ok || rest == "" {
		return b, "it has no KIND: in front"
	}
	switch kind {
	case "exec":
		return execBlock(rest)
	case "read", "write", "delete":
		g, err := l.roots.newPathGlob(rest)
		if err != nil {
			return b, "the glob " + err.Error()
		}
		return block{kind: KindRead, access: accessOf(Kind(kind)), path: []pathGlob{g}}, ""
	case "host":
		if why := badHost(rest); why != "" {
			return b, "the host " + why
		}
		return block{kind: KindHost, host: []hostPattern{newHostPattern(rest)}}, ""
	case "mcp":
		server, tool, ok := strings.Cut(rest, "/")
		if !ok || server == "" || tool == "" {
			return b, "it does not name SERVER/TOOL"
		}
		return mcpBlock(server, tool)
	case "tool":
		p := parser{doc: &document{}, tools: l.sources.Tools}
		p.toolNames(textNode(rest), &b)
		if len(p.problems) > 0 {
			return b, p.problems[0].why + "; " + p.problems[0].fix
		}
		b.kind = KindTool
		return b, ""
	}
	why = fmt.Sprintf("unknown kind %q", kind)
	if near := fault.Nearest(kind, []string{"exec", "read", "write", "delete", "host", "mcp", "tool"}); near != "" {
		why += fmt.Sprintf("; did you mean %q?", near)
	}
	return b, why
}

func execBlock(text string) (b block, why string) {
	words, ok := splitWords(text)
	if !ok || len(words) == 0 {
		return b, "its words cannot be read"
	}
	for _, w := range words {
		p, err := newPattern(w)
		if err != nil {
			return b, "the glob " + err.Error()
		}
		b.argv = append(b.argv, []pattern{p})
	}
	b.kind = KindExec
	return b, ""
}

func mcpBlock(server, tool string) (b block, why string) {
	s, err := newPattern(server)
	if err != nil {
		return b, "the server " + err.Error()
	}
	t, err := newPattern(tool)
	if err != nil {
		return b, "the tool " + err.Error()
	}
	return block{kind: KindMCP, server: []pattern{s}, mcpTool: []pattern{t}}, ""
}

// splitWords splits a text at blanks outside quotes. Globs stay globs; ok is
// false for anything that a shell would expand or join.
func splitWords(text string) (words []string, ok bool) {
	err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Words(strings.NewReader(text), func(w *syntax.Word) bool {
		word := ""
		ok = true
		for _, part := range w.Parts {
			switch x := part.(type) {
			case *syntax.Lit:
				word += x.Value
			case *syntax.SglQuoted:
				word += escapeWord(x.Value)
			case *syntax.DblQuoted:
				for _, p := range x.Parts {
					lit, plain := p.(*syntax.Lit)
					if !plain {
						ok = false
						return false
					}
					word += escapeWord(lit.Value)
				}
			default:
				ok = false
				return false
			}
		}
		words = append(words, word)
		return true
	})
	return words, ok && err == nil
}

// escapeWord makes globs of a quoted text literal.
func escapeWord(s string) string { return escape(s, `\*?[`) }

// escape puts a backslash before each of the special characters.
func escape(s, special string) string {
	if !strings.ContainsAny(s, special) {
		return s
	}
	var b strings.Builder
	b.Grow(len(s) + 8)
	for i := 0; i < len(s); i++ {
		if strings.IndexByte(special, s[i]) >= 0 {
			b.WriteByte('\\')
		}
		b.WriteByte(s[i])
	}
	return b.String()
}
