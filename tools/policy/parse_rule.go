package policy

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/bmatcuk/doublestar/v4"
	"go.yaml.in/yaml/v3"

	"drover/output/fault"
)

// rules reads the list of rules.
func (p *parser) rules(n *yaml.Node) {
	if n.Kind != yaml.SequenceNode {
		p.fail(n, "write each rule as a list item", "rules must be a list")
		return
	}
	lines := map[string]int{}
	for _, item := range n.Content {
		r := p.rule(item)
		if r == nil {
			continue
		}
		if line := lines[r.id]; line > 0 && r.id != "" {
			p.fail(item, "give each rule an id of its own", "the id %q was used in line %d", r.id, line)
		}
		lines[r.id] = item.Line
		p.doc.rules = append(p.doc.rules, r)
	}
}

// rule reads one rule, or returns nil if it is no mapping.
func (p *parser) rule(n *yaml.Node) *rule {
	if n.Kind != yaml.MappingNode {
		p.fail(n, "write: - {id: NAME, effect: deny, argv: [WORD]}", "a rule must be a mapping")
		return nil
	}
	r := &rule{file: p.doc.name, layer: p.doc.layer, line: n.Line}
	known := p.conditions(&r.block)
	known["id"] = p.text(&r.id)
	known["effect"] = choice(p, &r.effect, "allow", "ask", "deny")
	known["reason"] = p.text(&r.reason)
	known["on_deny"] = choice(p, &r.onDeny, "continue", "report", "fail")
	known["on_ask"] = choice(p, &r.onAsk, "deny", "fail", "defer", "approver")
	known["max_scope"] = choice(p, &r.maxScope, "once", "session", "always")
	known["except"] = func(n *yaml.Node) { r.except = p.exceptions(n) }
	known["network"] = p.boolean(&r.rights.network)
	known["sandbox"] = func(n *yaml.Node) { p.sandboxOff(n, r) }
	known["timeout"] = func(n *yaml.Node) { p.timeout(n, r) }
	before := len(p.problems)
	p.mapping(n, "a rule", known)
	if len(p.problems) > before {
		return r
	}
	if r.id == "" {
		p.fail(n, "give it a unique id", "the rule has no id")
	}
	if r.effect == "" {
		p.fail(n, "write: effect: allow, ask or deny", "the rule %q has no effect", r.id)
	}
	switch kind, clash := r.block.about(); {
	case clash != "":
		p.fail(n, "write one rule for each kind", "the rule %q mixes %s", r.id, clash)
	case kind == "":
		p.fail(n, "add one of tool, argv, path, host, mcp, args", "the rule %q matches nothing", r.id)
	default:
		r.kind = kind
		p.exceptKinds(n, r)
		p.checkRights(n, r)
	}
	return r
}

// checkRights refuses rights that could never be given: a refusal runs nothing,
// and only commands run in the sandbox.
func (p *parser) checkRights(n *yaml.Node, r *rule) {
	for _, key := range []string{"network", "sandbox", "timeout"} {
		value := child(n, key)
		switch {
		case value == nil:
		case r.effect == Deny:
			p.fail(value, "remove the key, or write another rule that allows", "the rule %q denies, so that %s has no effect", r.id, key)
		case r.kind != KindExec:
			p.fail(value, "write it on a rule with argv", "%s is for commands, and the rule %q is about something else", key, r.id)
		}
	}
}

// child returns the value of a key, or nil.
func child(n *yaml.Node, key string) *yaml.Node {
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			return n.Content[i+1]
		}
	}
	return nil
}

func (p *parser) sandboxOff(n *yaml.Node, r *rule) {
	if n.Kind != yaml.ScalarNode || n.Value != "off" {
		p.fail(n, "write: sandbox: off, or leave the key out", "a rule can only switch the sandbox off, found %s", nodeName(n))
		return
	}
	r.rights.free = true
}

func (p *parser) timeout(n *yaml.Node, r *rule) {
	d, err := time.ParseDuration(n.Value)
	if n.Kind != yaml.ScalarNode || err != nil || d <= 0 {
		p.fail(n, "write a number with its unit: 90s, 10m", "expected a duration, found %s", nodeName(n))
		return
	}
	r.rights.timeout = d
}

// conditions returns the readers of the keys that a rule and an exception
// share.
func (p *parser) conditions(b *block) fields {
	return fields{
		"tool":     func(n *yaml.Node) { p.toolNames(n, b) },
		"argv":     func(n *yaml.Node) { p.argv(n, b) },
		"argv_any": p.patterns(&b.argvAny), "argv_none": p.patterns(&b.argvNone),
		"argv_exact": p.boolean(&b.argvExact),
		"path":       p.globs(&b.path),
		"access":     func(n *yaml.Node) { p.access(n, b) },
		"args":       func(n *yaml.Node) { p.args(n, b) },
		"agent":      func(n *yaml.Node) { p.agents(n, b) },
		"mode":       choice(p, &b.mode, "headless", "tty"),
		"host":       func(n *yaml.Node) { p.hosts(n, b) },
		"mcp":        func(n *yaml.Node) { p.mcp(n, b) },
	}
}

func (p *parser) exceptions(n *yaml.Node) []block {
	if n.Kind != yaml.SequenceNode || len(n.Content) == 0 {
		p.fail(n, "write: except: [{path: [GLOB]}]", "except must be a list of conditions")
		return nil
	}
	var out []block
	for _, item := range n.Content {
		var b block
		p.mapping(item, "an exception", p.conditions(&b))
		kind, clash := b.about()
		if clash != "" {
			p.fail(item, "write one exception for each kind", "the exception mixes %s", clash)
		}
		if kind == "" && len(b.agent) == 0 && b.mode == "" {
			p.fail(item, "add a condition", "the exception is empty")
		}
		if kind == KindTool && len(b.tool) == 0 {
			// Arguments alone narrow a rule of any kind.
			kind = ""
		}
		b.kind = kind
		out = append(out, b)
	}
	return out
}

// exceptKinds refuses exceptions that can never meet what the rule is about.
func (p *parser) exceptKinds(n *yaml.Node, r *rule) {
	for _, e := range r.except {
		if e.kind != "" && e.kind != r.kind {
			p.fail(n, "write the exception with the keys of the rule", "an exception of the rule %q is about something else", r.id)
		}
	}
}

// about returns the kind of action that the conditions are about; clash names
// two kinds that cannot be met together.
func (b *block) about() (kind Kind, clash string) {
	var kinds []Kind
	var names []string
	for _, k := range []struct {
		kind Kind
		name string
		set  bool
	}{
		{KindTool, "tool", len(b.tool) > 0},
		{KindExec, "argv", b.aboutCommands()},
		{KindRead, "path", len(b.path) > 0},
		{KindHost, "host", len(b.host) > 0},
		{KindMCP, "mcp", len(b.server) > 0 || len(b.mcpTool) > 0},
	} {
		if k.set {
			kinds, names = append(kinds, k.kind), append(names, k.name)
		}
	}
	switch {
	case len(kinds) > 1:
		return "", strings.Join(names, " and ")
	case len(kinds) == 1 && b.access != 0 && kinds[0] != KindRead:
		return "", names[0] + " and access"
	case len(kinds) == 1 && b.argvExact && kinds[0] != KindExec:
		return "", names[0] + " and argv_exact"
	case len(kinds) == 1:
		return kinds[0], ""
	case len(b.args) > 0 && b.access == 0 && !b.argvExact:
		return KindTool, ""
	}
	return "", ""
}

func (p *parser) toolNames(n *yaml.Node, b *block) {
	for _, text := range p.words(n) {
		pat := p.pattern(n, text)
		if pat.literal {
			pat.text = canonicalTool(pat.text)
		}
		known := slices.ContainsFunc(catalogue, pat.match) || slices.ContainsFunc(p.tools, pat.match)
		if !known {
			fix := "print the names with: drover tools list"
			if near := fault.Nearest(text, append(slices.Clone(catalogue), p.tools...)); near != "" {
				fix = fmt.Sprintf("did you mean %q?", near)
			}
			p.problems = append(p.problems, problem{line: n.Line, code: "policy_unknown_tool", why: fmt.Sprintf("unknown tool %q", text), fix: fix})
		}
		b.tool = append(b.tool, pat)
	}
}

func (p *parser) argv(n *yaml.Node, b *block) {
	if n.Kind != yaml.SequenceNode || len(n.Content) == 0 {
		p.fail(n, "write: argv: [git, status]", "argv must be a list of words")
		return
	}
	for _, item := range n.Content {
		var alternatives []pattern
		for _, text := range p.words(item) {
			if text == "" {
				p.fail(item, "write the word", "argv holds an empty word")
			}
			alternatives = append(alternatives, p.pattern(item, text))
		}
		b.argv = append(b.argv, alternatives)
	}
}

func (p *parser) access(n *yaml.Node, b *block) {
	for _, text := range p.words(n) {
		a := accessOf(Kind(text))
		if a == 0 {
			fix := "use read, write and delete"
			if near := fault.Nearest(text, []string{"read", "write", "delete"}); near != "" {
				fix = fmt.Sprintf("did you mean %q?", near)
			}
			p.fail(n, fix, "unknown access %q", text)
		}
		b.access |= a
	}
}

func (p *parser) args(n *yaml.Node, b *block) {
	if n.Kind != yaml.MappingNode || len(n.Content) == 0 {
		p.fail(n, "write: args: {/name: [GLOB]}", "args must map JSON pointers to globs")
		return
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		pointer, ok := parsePointer(key.Value)
		if !ok {
			p.fail(key, fmt.Sprintf("write %q", "/"+key.Value), "%q is no JSON pointer", key.Value)
			continue
		}
		a := argument{pointer: pointer}
		p.patterns(&a.globs)(n.Content[i+1])
		b.args = append(b.args, a)
	}
}

func (p *parser) agents(n *yaml.Node, b *block) {
	for _, text := range p.words(n) {
		if !strings.HasPrefix(text, "/") && !strings.HasPrefix(text, "*") {
			p.fail(n, `agents have paths: "/root", "/root/NAME", "/root/**"`, "%q is no path of an agent", text)
		}
		if !doublestar.ValidatePattern(text) || len(text) > maxGlob {
			p.fail(n, "", "the glob %q is no glob", shorten(text))
		}
		b.agent = append(b.agent, text)
	}
}

func (p *parser) hosts(n *yaml.Node, b *block) {
	for _, text := range p.words(n) {
		if why := badHost(text); why != "" {
			p.fail(n, `write "name", "*.suffix" or "name:port"`, "the host %q %s", text, why)
			continue
		}
		b.host = append(b.host, newHostPattern(text))
	}
}

// badHost returns what is wrong with a host pattern, or an empty string.
func badHost(text string) string {
	name, port := splitHost(text)
	if text == "" || name == "" {
		return "has no name"
	}
	if strings.Contains(text, "/") {
		return "is no name but a URL"
	}
	if port != "" && port != "*" && !isNumber(port) {
		return "has a port that is no number"
	}
	if i := strings.LastIndexByte(name, '*'); i > 0 || i == 0 && name != "*" && !strings.HasPrefix(name, "*.") {
		return "has a star that is not its first label"
	}
	return ""
}

func (p *parser) mcp(n *yaml.Node, b *block) {
	p.mapping(n, "mcp", fields{
		"server":      p.patterns(&b.server),
		"tool":        p.patterns(&b.mcpTool),
		"annotations": func(n *yaml.Node) { p.annotations(n, b) },
	})
	if len(b.server) == 0 && len(b.mcpTool) == 0 && len(p.problems) == 0 {
		p.fail(n, "write: mcp: {server: NAME, tool: [GLOB]}", "mcp names no server")
	}
}
