package policy

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"drover/output/fault"
)

// parser reads one document and collects what is wrong with it.
type parser struct {
	doc   *document
	roots *rootSet
	tools []string
	// problems are in the order of discovery.
	problems []problem
}

// problem is one thing that is wrong with a file.
type problem struct {
	line           int
	code, why, fix string
}

// parseDocument reads a policy file. A key that is unknown or has no effect
// is an error: rules that are silently ignored are how trust is lost.
func parseDocument(name, layer string, data []byte, roots *rootSet, tools []string) (*document, error) {
	p := &parser{doc: &document{name: name, layer: layer}, roots: roots, tools: tools}
	var root yaml.Node
	dec := yaml.NewDecoder(bytes.NewReader(data))
	if err := dec.Decode(&root); err != nil {
		if errors.Is(err, io.EOF) {
			return nil, fileError(name, "policy_invalid", "it is empty", "write at least: version: 1", nil)
		}
		return nil, fileError(name, "policy_invalid", yamlReason(err), p.check(), err)
	}
	if err := dec.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		return nil, fileError(name, "policy_invalid", "it holds several documents", "keep one document in a file", nil)
	}
	if len(root.Content) == 0 || root.Content[0].Tag == "!!null" {
		return nil, fileError(name, "policy_invalid", "it is empty", "write at least: version: 1", nil)
	}
	if p.plain(root.Content[0]) {
		p.top(root.Content[0])
	}
	if err := p.err(); err != nil {
		return nil, err
	}
	return p.doc, nil
}

func yamlReason(err error) string {
	return strings.TrimPrefix(strings.TrimPrefix(err.Error(), "yaml: "), "unmarshal errors:\n  ")
}

func (p *parser) check() string { return "check the file with: drover policy check " + p.doc.name }

// err returns the first problem by line as an error.
func (p *parser) err() error {
	if len(p.problems) == 0 {
		return nil
	}
	slices.SortStableFunc(p.problems, func(a, b problem) int { return a.line - b.line })
	first := p.problems[0]
	why := fmt.Sprintf("line %d: %s", first.line, first.why)
	if n := len(p.problems) - 1; n > 0 {
		why += fmt.Sprintf(" (and %d more)", n)
	}
	var all []error
	for _, pr := range p.problems {
		all = append(all, fmt.Errorf("line %d: %s", pr.line, pr.why))
	}
	fix := first.fix
	if fix != "" && p.doc.layer != layerBuiltin {
		if !strings.HasSuffix(fix, "?") {
			fix += "."
		}
		fix += " Check the file with: drover policy check " + p.doc.name
	} else if fix == "" {
		fix = p.check()
	}
	return &fault.Error{
		Code: first.code, What: fmt.Sprintf("policy file %q cannot be used", p.doc.name),
		Why: why, Fix: fix, Exit: fault.Config, Err: errors.Join(all...),
	}
}

func (p *parser) fail(n *yaml.Node, fix, format string, args ...any) {
	p.problems = append(p.problems, problem{line: n.Line, code: "policy_invalid", why: fmt.Sprintf(format, args...), fix: fix})
}

// plain refuses anchors, aliases and tags of all nodes: a small file could
// otherwise stand for a huge one.
func (p *parser) plain(n *yaml.Node) bool {
	switch {
	case n.Kind == yaml.AliasNode || n.Anchor != "":
		p.fail(n, "write the value out", "anchors and aliases are not allowed")
		return false
	case n.Style&yaml.TaggedStyle != 0:
		p.fail(n, "leave the tag out", "the tag %q is not allowed", n.Tag)
		return false
	}
	for _, c := range n.Content {
		if !p.plain(c) {
			return false
		}
	}
	return true
}

// fields maps the keys of a mapping to what reads them.
type fields map[string]func(*yaml.Node)

// mapping reads a mapping whose keys must be known and given once.
func (p *parser) mapping(n *yaml.Node, what string, known fields) {
	if n.Kind != yaml.MappingNode {
		p.fail(n, "write it as key: value", "%s must be a mapping", what)
		return
	}
	seen := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		read := known[key.Value]
		switch {
		case key.Kind != yaml.ScalarNode:
			p.fail(key, "", "a key of %s must be a word", what)
		case read == nil:
			p.unknownKey(key, what, known)
		case seen[key.Value]:
			p.fail(key, "remove one of them", "the key %q is given twice", key.Value)
		default:
			read(value)
		}
		seen[key.Value] = true
	}
}

func (p *parser) unknownKey(key *yaml.Node, what string, known fields) {
	names := make([]string, 0, len(known))
	for name := range known {
		names = append(names, name)
	}
	slices.SortFunc(names, byUse)
	fix := fmt.Sprintf("the keys of %s are %s", what, strings.Join(names, ", "))
	if near := nearestKey(key.Value, names); near != "" {
		fix = fmt.Sprintf("did you mean %q?", near)
	}
	p.problems = append(p.problems, problem{
		line: key.Line, code: "policy_unknown_key", why: fmt.Sprintf("unknown key %q", key.Value), fix: fix,
	})
}

func (p *parser) text(into *string) func(*yaml.Node) {
	return func(n *yaml.Node) {
		if n.Kind != yaml.ScalarNode || n.Tag != "!!str" || n.Value == "" {
			p.fail(n, "write it as a text, in quotes if need be", "expected a text, found %s", nodeName(n))
			return
		}
		*into = n.Value
	}
}

func (p *parser) boolean(into *bool) func(*yaml.Node) {
	return func(n *yaml.Node) {
		if n.Kind != yaml.ScalarNode || n.Tag != "!!bool" {
			p.fail(n, "write true or false", "expected true or false, found %s", nodeName(n))
			return
		}
		*into = n.Value == "true" || n.Value == "True" || n.Value == "TRUE"
	}
}

// choice reads one of some words into a string type.
func choice[T ~string](p *parser, into *T, words ...string) func(*yaml.Node) {
	return func(n *yaml.Node) {
		if n.Kind == yaml.ScalarNode && slices.Contains(words, n.Value) {
			*into = T(n.Value)
			return
		}
		fix := "use one of " + strings.Join(words, ", ")
		if near := fault.Nearest(n.Value, words); n.Kind == yaml.ScalarNode && near != "" {
			fix = fmt.Sprintf("did you mean %q?", near)
		}
		p.fail(n, fix, "unknown value %s", nodeName(n))
	}
}

// words reads a word or a list of words.
func (p *parser) words(n *yaml.Node) []string {
	switch {
	case n.Kind == yaml.ScalarNode && n.Tag != "!!null":
		return []string{n.Value}
	case n.Kind == yaml.SequenceNode && len(n.Content) > 0:
		var out []string
		for _, c := range n.Content {
			if c.Kind != yaml.ScalarNode || c.Tag == "!!null" {
				p.fail(c, "write it in quotes", "expected a word, found %s", nodeName(c))
				continue
			}
			out = append(out, c.Value)
		}
		return out
	}
	p.fail(n, "write a list: [one, two]", "expected a list of words, found %s", nodeName(n))
	return nil
}

func (p *parser) patterns(into *[]pattern) func(*yaml.Node) {
	return func(n *yaml.Node) {
		for _, text := range p.words(n) {
			*into = append(*into, p.pattern(n, text))
		}
	}
}

func (p *parser) pattern(n *yaml.Node, text string) pattern {
	pat, err := newPattern(text)
	switch {
	case err != nil:
		p.fail(n, `write "\\[" for the character itself`, "the glob %q %v", text, err)
	case len(text) > maxGlob:
		p.fail(n, "shorten it", "a glob is longer than %d bytes", maxGlob)
	}
	return pat
}

func (p *parser) globs(into *[]pathGlob) func(*yaml.Node) {
	return func(n *yaml.Node) {
		for _, text := range p.words(n) {
			g, err := p.roots.newPathGlob(text)
			if err != nil {
				p.fail(n, "", "the glob %q %v", text, err)
				continue
			}
			*into = append(*into, g)
		}
	}
}

// top reads the top level.
func (p *parser) top(n *yaml.Node) {
	s := &p.doc.settings
	p.mapping(n, "a policy", fields{
		"version": func(n *yaml.Node) {
			if n.Kind != yaml.ScalarNode || n.Value != "1" {
				p.fail(n, "write: version: 1", "unknown version %s", nodeName(n))
			}
		},
		"default":            choice(p, &s.defaultEffect, "allow", "ask", "deny"),
		"approval":           p.approval,
		"on_ask":             choice(p, &s.onAsk, "deny", "fail", "defer", "approver"),
		"on_deny":            choice(p, &s.onDeny, "continue", "report", "fail"),
		"on_sandbox_refusal": choice(p, &s.onSandboxRefusal, "continue", "report", "fail"),
		"max_denials":        p.maxDenials,
		"network":            choice(p, &s.network, "allow", "deny"),
		"locked":             p.boolean(&p.doc.locked),
		"add_dirs":           p.addDirs,
		"deny_read":          p.denyRead,
		"shell": func(n *yaml.Node) {
			p.mapping(n, "shell", fields{
				"opaque":   choice(p, &s.opaque, "allow", "ask", "deny"),
				"safe_env": p.safeEnv,
			})
		},
		"rules": p.rules,
		"tests": p.cases,
	})
}

func (p *parser) approval(n *yaml.Node) {
	d := p.doc
	if n.Kind == yaml.MappingNode {
		d.approval = approvalGranular
		table := n
		if len(n.Content) == 2 && n.Content[0].Value == approvalGranular {
			table = n.Content[1]
		}
		p.granular(table)
		return
	}
	choice(p, &d.approval, approvalUntrusted, approvalOnFailure, approvalOnRequest, approvalNever, approvalGranular)(n)
	if d.approval == approvalGranular {
		// The word alone: whatever must be in the table may be asked.
		d.granular = Granular{SandboxApproval: true, Rules: true, MCPElicitations: true}
	}
}

// granular reads the table of the approval policy of that name.
func (p *parser) granular(n *yaml.Node) {
	g := &p.doc.granular
	given := map[string]bool{}
	known := fields{}
	for name, into := range map[string]*bool{
		"sandbox_approval": &g.SandboxApproval, "rules": &g.Rules, "mcp_elicitations": &g.MCPElicitations,
		"skill_approval": &g.SkillApproval, "request_permissions": &g.RequestPermissions,
	} {
		known[name] = func(n *yaml.Node) {
			given[name] = true
			p.boolean(into)(n)
		}
	}
	before := len(p.problems)
	p.mapping(n, "approval", known)
	if len(p.problems) > before {
		return
	}
	for _, name := range []string{"sandbox_approval", "rules", "mcp_elicitations"} {
		if !given[name] {
			p.fail(n, "write: "+name+": true or false", "the key %q of approval is missing", name)
		}
	}
}

func (p *parser) denyRead(n *yaml.Node) {
	var globs []pathGlob
	p.globs(&globs)(n)
	for _, g := range globs {
		p.doc.denyRead = append(p.doc.denyRead, unreadable{glob: g, file: p.doc.name, layer: p.doc.layer, line: n.Line})
	}
}

func (p *parser) safeEnv(n *yaml.Node) {
	p.doc.safeEnv = []pattern{}
	if n.Kind == yaml.SequenceNode && len(n.Content) == 0 {
		return
	}
	p.patterns(&p.doc.safeEnv)(n)
}

func (p *parser) maxDenials(n *yaml.Node) {
	v := 0
	if n.Kind != yaml.ScalarNode || n.Tag != "!!int" || n.Decode(&v) != nil || v < 1 {
		p.fail(n, "write a number of at least 1", "expected a number of at least 1, found %s", nodeName(n))
		return
	}
	p.doc.maxDenials = v
}

func (p *parser) addDirs(n *yaml.Node) {
	for _, text := range p.words(n) {
		switch {
		case text == "~" || strings.HasPrefix(text, "~/"):
			if p.roots.home == "" {
				continue
			}
			text = join(p.roots.home, strings.TrimPrefix(text[1:], "/"))
		case filepath.IsAbs(text):
			text = clean(text)
		case len(p.roots.workspace) > 0:
			text = join(p.roots.workspace[0], text)
		default:
			p.fail(n, "write an absolute path", "the folder %q is relative", text)
			continue
		}
		p.doc.addDirs = appendNew(p.doc.addDirs, text)
	}
}

func nodeName(n *yaml.Node) string {
	switch {
	case n.Kind == yaml.MappingNode:
		return "a mapping"
	case n.Kind == yaml.SequenceNode && len(n.Content) == 0:
		return "an empty list"
	case n.Kind == yaml.SequenceNode:
		return "a list"
	case n.Tag == "!!null" || n.Value == "":
		return "nothing"
	}
	return fmt.Sprintf("%q", shorten(n.Value))
}
