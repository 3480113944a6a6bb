package policy

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Test is one case of a policy file: a call and the effect that it must have.
type Test struct {
	Name string
	// Exec is a script, Paths are globless paths by access, Tool and Args are
	// a tool's call, Host and MCP ("server/tool") what is to be reached.
	Exec  string
	Paths map[Kind][]string
	Tool  string
	Args  json.RawMessage
	Host  string
	MCP   string
	Agent string
	// Mode is where the call is made; empty is where the policy is used.
	Mode Mode
	// Expect is the effect, Rule the rule that must decide; empty is any.
	Expect Effect
	Rule   string
	File   string
	Line   int
}

// CallOf returns the call that a case describes. Relative paths start at the
// workspace.
func (p *Policy) CallOf(t Test) Call {
	root := ""
	if len(p.roots.workspace) > 0 {
		root = p.roots.workspace[0]
	}
	c := Call{Agent: t.Agent, Args: t.Args, Tool: t.Tool, Mode: t.Mode}
	if t.Exec != "" {
		c.Tool = "exec_command"
		c.Actions = append(c.Actions, Exec(root, "bash", "-c", t.Exec))
	}
	for _, kind := range []Kind{KindRead, KindWrite, KindDelete} {
		for _, name := range t.Paths[kind] {
			if c.Tool == "" {
				c.Tool = "apply_patch"
			}
			if name == "~" || strings.HasPrefix(name, "~/") {
				name = p.roots.home + name[1:]
			}
			c.Actions = append(c.Actions, p.located(kind, root, name))
		}
	}
	if t.Host != "" {
		c.Actions = append(c.Actions, Action{Kind: KindHost, Host: t.Host})
	}
	if server, tool, ok := strings.Cut(t.MCP, "/"); ok {
		c.Tool = server + "__" + tool
		c.Actions = append(c.Actions, Action{Kind: KindMCP, Server: server, Tool: tool, Args: t.Args})
	}
	if t.Tool != "" && len(c.Actions) == 0 {
		c.Actions = append(c.Actions, Tool(t.Tool, t.Args))
	}
	return c
}

// cases reads the tests of a file.
func (p *parser) cases(n *yaml.Node) {
	if n.Kind != yaml.SequenceNode {
		p.fail(n, "write each case as a list item", "tests must be a list")
		return
	}
	for i, item := range n.Content {
		t := Test{File: p.doc.name, Line: item.Line}
		before := len(p.problems)
		p.mapping(item, "a test", fields{
			"name":   p.text(&t.Name),
			"exec":   p.text(&t.Exec),
			"path":   func(n *yaml.Node) { t.Paths = p.casePaths(n) },
			"tool":   p.text(&t.Tool),
			"args":   func(n *yaml.Node) { t.Args = p.caseArgs(n) },
			"host":   p.text(&t.Host),
			"mcp":    p.text(&t.MCP),
			"agent":  p.text(&t.Agent),
			"mode":   choice(p, &t.Mode, "headless", "tty"),
			"expect": choice(p, &t.Expect, "allow", "ask", "deny"),
			"rule":   p.text(&t.Rule),
		})
		if len(p.problems) > before {
			continue
		}
		if t.Name == "" {
			t.Name = fmt.Sprintf("case %d", i+1)
		}
		subjects := 0
		for _, set := range []bool{t.Exec != "", len(t.Paths) > 0, t.Tool != "", t.Host != "", t.MCP != ""} {
			if set {
				subjects++
			}
		}
		switch {
		case t.Expect == "":
			p.fail(item, "write: expect: allow, ask or deny", "the case %q expects nothing", t.Name)
		case subjects != 1:
			p.fail(item, "write one of exec, path, tool, host, mcp", "the case %q must hold one call", t.Name)
		case t.MCP != "" && !strings.Contains(t.MCP, "/"):
			p.fail(item, "write: mcp: SERVER/TOOL", "the case %q names no tool", t.Name)
		}
		p.doc.tests = append(p.doc.tests, t)
	}
}

func (p *parser) casePaths(n *yaml.Node) map[Kind][]string {
	out := map[Kind][]string{}
	known := fields{}
	for _, kind := range []Kind{KindRead, KindWrite, KindDelete} {
		known[string(kind)] = func(n *yaml.Node) { out[kind] = p.words(n) }
	}
	p.mapping(n, "path", known)
	return out
}

func (p *parser) caseArgs(n *yaml.Node) json.RawMessage {
	var v any
	if err := n.Decode(&v); err != nil {
		p.fail(n, "", "the arguments cannot be read")
		return nil
	}
	data, err := json.Marshal(v)
	if err != nil {
		p.fail(n, "use text as keys", "the arguments are no JSON")
		return nil
	}
	return slices.Clip(data)
}

func textNode(text string) *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: text, Line: 1}
}
