package policy

import (
	"fmt"
	"strings"
)

// RuleRef is a rule of the pool as it is shown to a person.
type RuleRef struct {
	ID     string `json:"id"`
	Effect Effect `json:"effect"`
	// Match are the conditions in the words of the policy file.
	Match  string `json:"match"`
	Reason string `json:"reason,omitempty"`
	Layer  string `json:"layer"`
	File   string `json:"file"`
	Line   int    `json:"line"`
	// OnAsk, OnDeny and MaxScope are what the rule sets for its questions and
	// refusals; empty is what the policy says.
	OnAsk    OnAsk  `json:"on_ask,omitempty"`
	OnDeny   OnDeny `json:"on_deny,omitempty"`
	MaxScope string `json:"max_scope,omitempty"`
	// Network, Unsandboxed and TimeoutMS are what it sets for its commands.
	Network     bool  `json:"network,omitempty"`
	Unsandboxed bool  `json:"unsandboxed,omitempty"`
	TimeoutMS   int64 `json:"timeout_ms,omitempty"`
}

// Rules returns the rules of the pool in the order of their sources.
func (p *Policy) Rules() []RuleRef {
	out := make([]RuleRef, 0, len(p.rules))
	for _, r := range p.rules {
		out = append(out, r.ref())
	}
	return out
}

func (r *rule) ref() RuleRef {
	match := r.block.String()
	for _, e := range r.except {
		match += ", except " + e.String()
	}
	return RuleRef{
		ID: r.id, Effect: r.effect, Match: match, Reason: r.reason, Layer: r.layer, File: r.file, Line: r.line,
		OnAsk: r.onAsk, OnDeny: r.onDeny, MaxScope: r.maxScope, Network: r.rights.network, Unsandboxed: r.rights.free,
		TimeoutMS: r.rights.timeout.Milliseconds(),
	}
}

// String returns the conditions in the words of the policy file.
func (b block) String() string {
	var parts []string
	add := func(key string, values []string) {
		if len(values) > 0 {
			parts = append(parts, key+": "+list(values))
		}
	}
	add("tool", patternTexts(b.tool))
	if len(b.argv) > 0 {
		words := make([]string, len(b.argv))
		for i, alternatives := range b.argv {
			if words[i] = list(patternTexts(alternatives)); len(alternatives) == 1 {
				words[i] = alternatives[0].text
			}
		}
		parts = append(parts, "argv: "+list(words))
	}
	add("argv_any", patternTexts(b.argvAny))
	add("argv_none", patternTexts(b.argvNone))
	if b.argvExact {
		parts = append(parts, "argv_exact: true")
	}
	var globs []string
	for _, g := range b.path {
		globs = append(globs, g.text)
	}
	add("path", globs)
	add("access", b.access.names())
	var hosts []string
	for _, h := range b.host {
		hosts = append(hosts, h.String())
	}
	add("host", hosts)
	if len(b.server)+len(b.mcpTool) > 0 {
		annotations := ""
		if b.hints != nil {
			annotations = ", annotations: {" + strings.Join(b.hints.names(), ", ") + "}"
		}
		parts = append(parts, fmt.Sprintf("mcp: {server: %s, tool: %s%s}", list(patternTexts(b.server)), list(patternTexts(b.mcpTool)), annotations))
	}
	for _, a := range b.args {
		add("args /"+strings.Join(a.pointer, "/"), patternTexts(a.globs))
	}
	add("agent", b.agent)
	if b.mode != "" {
		parts = append(parts, "mode: "+string(b.mode))
	}
	return strings.Join(parts, " ")
}

func (h hostPattern) String() string {
	name := h.name
	if strings.Contains(name, ":") {
		name = "[" + name + "]"
	}
	if h.port != "" {
		name += ":" + h.port
	}
	return name
}

func (a access) names() []string {
	var out []string
	for _, n := range []struct {
		bit  access
		name string
	}{{accessRead, "read"}, {accessWrite, "write"}, {accessDelete, "delete"}} {
		if a&n.bit != 0 {
			out = append(out, n.name)
		}
	}
	return out
}

func patternTexts(ps []pattern) []string {
	out := make([]string, len(ps))
	for i, p := range ps {
		out[i] = p.text
	}
	return out
}

func list(words []string) string { return "[" + strings.Join(words, ", ") + "]" }
