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

// Finding is something in a policy that is valid and probably not meant.
type Finding struct {
	File string
	Line int
	// RuleID is the rule it is about; empty is the whole file.
	RuleID  string
	Message string
}

// Lint returns what is valid and probably not meant: rules that allow more
// than they seem to, rules that never decide, and files without tests.
// Built-in policies are not looked at.
func (p *Policy) Lint() []Finding {
	var out []Finding
	for _, r := range p.rules {
		if r.layer == layerBuiltin || r.effect != Allow {
			continue
		}
		for _, message := range []string{r.broad(), p.beaten(r), r.idle()} {
			if message != "" {
				out = append(out, Finding{File: r.file, Line: r.line, RuleID: r.id, Message: message})
			}
		}
	}
	tested := map[string]bool{}
	for _, t := range p.tests {
		tested[t.File] = true
	}
	for _, l := range p.layers {
		if l.Layer != layerBuiltin && !tested[l.Path] {
			out = append(out, Finding{File: l.Path, Message: "the file holds no tests"})
		}
	}
	return out
}

// runners are programs that run whatever they are told.
var runners = set("xargs", "find", "fd", "env", "npx", "pnpx", "bunx", "uvx", "pipx", "npm", "yarn", "pnpm", "ssh", "docker", "podman", "make", "gmake", "sudo", "doas")

// broad returns why an allow rule allows more than it seems to.
func (r *rule) broad() string {
	if len(r.argv) == 0 {
		return ""
	}
	for _, alt := range r.argv[0] {
		switch name := strings.TrimRight(alt.text[strings.LastIndexByte(alt.text, '/')+1:], "0123456789."); {
		case alt.any():
			return "it allows every command"
		case shells[name] || interpreters[name] || carriers[name] || runners[name]:
			if len(r.argv) == 1 && !r.argvExact {
				return fmt.Sprintf("%q runs whatever it is told", alt.text)
			}
		}
	}
	return ""
}

// idle returns why an allow rule never decides.
func (r *rule) idle() string {
	if r.kind != KindTool || len(r.tool) == 0 {
		return ""
	}
	name := ""
	for _, t := range r.tool {
		known := false
		for _, tool := range catalogue {
			if !t.match(tool) {
				continue
			}
			if known = true; judgedBy[tool] == "" {
				return ""
			}
			if name == "" {
				name = tool
			}
		}
		if !known {
			return ""
		}
	}
	if by := judgedBy[name]; by != nothing {
		return fmt.Sprintf("calls of %q are judged by %s, not by the name of the tool", name, by)
	}
	return fmt.Sprintf("calls of %q are allowed without a rule", name)
}

// nothing says that a tool has no outside effect.
const nothing = "nothing"

// judgedBy names what decides about tools that allow rules for tools have no
// effect on.
var judgedBy = map[string]string{
	"exec_command": "argv", "shell": "argv", "shell_command": "argv", "local_shell": "argv", "apply_patch": "path", "write_file": "path",
	"search_in_files": "path", "list_dir": "path", "view_image": "path", "write_stdin": nothing, "drover_help": nothing,
	"update_plan": nothing, "get_goal": nothing, "create_goal": nothing, "update_goal": nothing, "tool_search": nothing,
	"tool_suggest": nothing, "wait_agent": nothing, "list_agents": nothing, "close_agent": nothing, "exec": nothing, "wait": nothing,
	"report_agent_job_result": nothing,
}

// beaten returns which deny rule always decides before an allow rule.
func (p *Policy) beaten(r *rule) string {
	for _, d := range p.set(r.kind).deny {
		if len(d.except)+len(d.args)+len(d.agent)+len(d.argvAny)+len(d.argvNone) > 0 || d.argvExact {
			continue
		}
		if d.kind == KindExec && len(d.argv) > 0 && len(d.argv) <= len(r.argv) && coversWords(d.argv, r.argv) ||
			d.kind == KindRead && coversPaths(d, r) {
			return fmt.Sprintf("the deny rule %q always decides before it", d.id)
		}
	}
	return ""
}

func coversWords(deny, allow [][]pattern) bool {
	for i, alternatives := range deny {
		for _, word := range allow[i] {
			if !word.literal || !anyPattern(alternatives, word.text) {
				return false
			}
		}
	}
	return true
}

func coversPaths(deny, allow *rule) bool {
	if deny.access != 0 && (allow.access == 0 || allow.access&^deny.access != 0) {
		return false
	}
	for _, a := range allow.path {
		covered := false
		for _, d := range deny.path {
			if d.text == a.text || d.text == "**" && a.relative {
				covered = true
			}
		}
		if !covered {
			return false
		}
	}
	return len(allow.path) > 0
}
