package policy

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Finding is something in a policy that is valid and probably not meant.
type Finding struct {
	File string `json:"file"`
	Line int    `json:"line,omitempty"`
	// RuleID is the rule it is about; empty is the whole file.
	RuleID  string `json:"rule_id,omitempty"`
	Message string `json:"message"`
	// Fix says what to write instead, in a sentence.
	Fix string `json:"fix"`
}

// finding is what one check found, if it found something.
type finding struct{ message, fix string }

func found(fix, format string, args ...any) finding {
	return finding{message: fmt.Sprintf(format, args...), fix: fix}
}

// Lint returns what is valid and probably not meant: rules that allow more
// than they seem to, rules that contradict others or never decide, keys without
// effect, and files without tests. Built-in policies are not looked at.
func (p *Policy) Lint() []Finding {
	var out []Finding
	for i, r := range p.rules {
		if r.layer == layerBuiltin || r.id == denyReadID {
			continue
		}
		for _, f := range p.check(i, r) {
			if f.message != "" {
				out = append(out, Finding{File: r.file, Line: r.line, RuleID: r.id, Message: f.message, Fix: f.fix})
			}
		}
	}
	slices.SortStableFunc(out, func(a, b Finding) int { return cmp.Or(strings.Compare(a.File, b.File), a.Line-b.Line) })
	tested := map[string]bool{}
	for _, t := range p.tests {
		tested[t.File] = true
	}
	for _, l := range p.layers {
		if l.Layer != layerBuiltin && !tested[l.Path] {
			out = append(out, Finding{
				File: l.Path, Message: "the file holds no tests",
				Fix: "Add cases under tests:, and run them with: drover policy test.",
			})
		}
	}
	return out
}

// check returns what is found about one rule.
func (p *Policy) check(i int, r *rule) []finding {
	out := []finding{p.twice(i, r), r.never(), p.neverWritable(r), r.useless(), r.ownWord()}
	if r.effect != Deny {
		out = append(out, p.beaten(r))
	}
	if r.effect == Allow {
		out = append(out, r.tooWide(), r.idle())
	}
	return append(out, r.wideRights()...)
}

// runners are programs that run whatever they are told.
var runners = set("xargs", "find", "fd", "env", "npx", "pnpx", "bunx", "uvx", "pipx", "npm", "yarn", "pnpm", "ssh", "docker", "podman", "make", "gmake", "sudo", "doas")

// codeOptions are options of interpreters that take code.
var codeOptions = set("-c", "-lc", "-e", "-E", "-r", "-p", "--eval", "--command", "--print")

// broad returns why an allow rule for commands allows more than it seems to.
func (r *rule) broad() string {
	if len(r.argv) == 0 {
		return ""
	}
	for _, alt := range r.argv[0] {
		switch name := strings.TrimRight(alt.text[strings.LastIndexByte(alt.text, '/')+1:], "0123456789."); {
		case alt.any():
			return "it allows every command"
		case shells[name] || interpreters[name] || carriers[name] || runners[name]:
			if r.openEnded(!runners[name]) {
				return fmt.Sprintf("%q runs whatever it is told", alt.text)
			}
		}
	}
	return ""
}

// openEnded tells whether the words behind the program may be any, or begin
// with an option that takes code if the program is an interpreter.
func (r *rule) openEnded(interpreter bool) bool {
	if r.argvExact {
		return false
	}
	later := r.argv[1:]
	if interpreter && len(later) == 1 && slices.ContainsFunc(later[0], func(w pattern) bool { return codeOptions[w.text] }) {
		return true
	}
	for _, alternatives := range later {
		if !slices.ContainsFunc(alternatives, pattern.any) {
			return false
		}
	}
	return true
}

// tooWide tells what an allow rule of any kind opens.
func (r *rule) tooWide() finding {
	if why := r.broad(); why != "" {
		return found("Name the sub-commands or scripts that are meant: argv: [make, test].", "%s", why)
	}
	for _, g := range r.path {
		if everything(g.text) {
			return found("Name the folders that are meant.", "the glob %q is every file of the machine", g.text)
		}
	}
	for _, h := range r.host {
		if h.name == "*" {
			return found(`Name the hosts: ["example.org:443", "*.example.org"].`, "it allows every host")
		}
	}
	anyServer := slices.ContainsFunc(r.server, pattern.any) || r.kind == KindMCP && len(r.server) == 0
	if anyServer && r.hints == nil && (len(r.mcpTool) == 0 || slices.ContainsFunc(r.mcpTool, pattern.any)) {
		return found("Name the servers, or the tools that only read.", "it allows every tool of every server")
	}
	if r.kind == KindTool && slices.ContainsFunc(r.tool, pattern.any) && len(r.args) == 0 {
		return found("Name the tools.", "it allows every tool")
	}
	return finding{}
}

// everything tells whether an absolute glob leaves nothing out.
func everything(glob string) bool {
	rest, ok := strings.CutPrefix(glob, "/")
	if !ok {
		rest, ok = strings.CutPrefix(glob, "~/")
	}
	if !ok {
		return false
	}
	for part := range strings.SplitSeq(rest, "/") {
		if part == "" || strings.Trim(part, "*") != "" {
			return false
		}
	}
	return strings.Contains(rest, "**")
}

// wideRights returns which rights a rule gives that are rarely meant.
func (r *rule) wideRights() []finding {
	var out []finding
	if r.rights.free {
		out = append(out, found("Remove sandbox: off; if only the network is missing, write network: true.",
			"its commands run outside the sandbox, with the rights of the user"))
	}
	switch {
	case !r.rights.network:
	case r.broad() != "":
		out = append(out, found("Name the commands that need the network.", "it opens the network for commands that run whatever they are told"))
	case len(r.argv) == 1 && !r.argvExact:
		out = append(out, found("Name the sub-commands that need the network: argv: [npm, ci].",
			"it opens the network for every call of %s", list(patternTexts(r.argv[0]))))
	}
	return out
}

// twice tells whether another rule has the same conditions: one of the same
// effect, or one that contradicts it.
func (p *Policy) twice(i int, r *rule) finding {
	about := r.conditions()
	for j, other := range p.rules {
		switch {
		case j == i || other.kind != r.kind || other.conditions() != about:
		case other.effect == r.effect && j < i:
			return found("Remove one of them.", "the %s rule %q%s has the same conditions", other.effect, other.id, other.at(r))
		case other.effect.stricter(r.effect) && other.layer != layerBuiltin:
			return found("Remove one of them, or narrow the stricter one with except.",
				"it contradicts the %s rule %q%s, which has the same conditions and decides", other.effect, other.id, other.at(r))
		}
	}
	return finding{}
}

// conditions returns all conditions in words, exceptions included.
func (r *rule) conditions() string { return r.ref().Match }

// at says where a rule stands, if that helps to find it from another.
func (r *rule) at(from *rule) string {
	switch {
	case r.line == 0:
		return ""
	case r.file == from.file:
		return fmt.Sprintf(" in line %d", r.line)
	}
	return fmt.Sprintf(" in %s:%d", r.file, r.line)
}

// beaten tells which stricter rule always decides before this one. The same
// conditions are told as a contradiction.
func (p *Policy) beaten(r *rule) finding {
	rules := p.set(r.kind)
	lists := [][]*rule{rules.deny}
	if r.effect == Allow {
		lists = append(lists, rules.ask)
	}
	for _, list := range lists {
		for _, d := range list {
			if d.conditions() == r.conditions() || len(d.except)+len(d.args)+len(d.agent) > 0 || d.mode != "" && d.mode != r.mode {
				continue
			}
			if d.includes(r) {
				return found("Remove the rule, or narrow the stricter one with except.", "the %s rule %q%s always decides before it", d.effect, d.id, d.at(r))
			}
		}
	}
	return finding{}
}

// includes tells whether a rule certainly is about everything that another one
// is about.
func (r *rule) includes(other *rule) bool {
	switch r.kind {
	case KindExec:
		return len(r.argvAny)+len(r.argvNone) == 0 && !r.argvExact && len(r.argv) > 0 && len(r.argv) <= len(other.argv) && coversWords(r.argv, other.argv)
	case KindRead:
		return coversPaths(r, other)
	case KindTool:
		return len(other.tool) > 0 && coversPatterns(r.tool, other.tool)
	case KindMCP:
		return r.hints == nil && (len(r.server) == 0 || len(other.server) > 0 && coversPatterns(r.server, other.server)) &&
			(len(r.mcpTool) == 0 || len(other.mcpTool) > 0 && coversPatterns(r.mcpTool, other.mcpTool))
	case KindHost:
		for _, h := range other.host {
			if strings.HasPrefix(h.name, "*") || !slices.ContainsFunc(r.host, func(wide hostPattern) bool {
				return (wide.port == "" || wide.port == "*" || wide.port == h.port) && matchHost([]hostPattern{{name: wide.name}}, h.name)
			}) {
				return false
			}
		}
		return len(other.host) > 0
	}
	return false
}

func coversWords(strict, mild [][]pattern) bool {
	for i, alternatives := range strict {
		if !coversPatterns(alternatives, mild[i]) {
			return false
		}
	}
	return true
}

// coversPatterns tells whether every word that the mild patterns match is one
// that the strict ones match.
func coversPatterns(strict, mild []pattern) bool {
	for _, word := range mild {
		if slices.ContainsFunc(strict, pattern.any) {
			return true
		}
		same := slices.ContainsFunc(strict, func(p pattern) bool { return p.text == word.text })
		if !same && (!word.literal || !anyPattern(strict, word.text)) {
			return false
		}
	}
	return true
}

func coversPaths(strict, mild *rule) bool {
	if strict.access != 0 && (mild.access == 0 || mild.access&^strict.access != 0) {
		return false
	}
	for _, a := range mild.path {
		covered := false
		for _, d := range strict.path {
			if d.text == a.text || d.text == "**" && a.relative {
				covered = true
			}
		}
		if !covered {
			return false
		}
	}
	return len(mild.path) > 0
}

// never tells why no action can meet the rule.
func (r *rule) never() finding {
	const remove = "Remove the rule, or the condition that empties it."
	for i := range r.except {
		e := rule{block: r.except[i]}
		e.kind = r.kind
		if e.String() == r.block.String() || e.unconditional() && e.includes(r) {
			return found(remove, "it never matches: its exception is as wide as the rule")
		}
	}
	if len(r.argvAny) > 0 && len(r.argvNone) > 0 && coversPatterns(r.argvNone, r.argvAny) {
		return found(remove, "it never matches: argv_none excludes all that argv_any wants")
	}
	if r.argvExact && len(r.argvAny) > 0 && len(r.argv) > 0 && r.effect == Allow {
		return found(remove, "it never matches: argv_exact forbids the words that argv_any wants")
	}
	for _, h := range r.host {
		if why := h.impossible(); why != "" {
			return found("Write a name and, if needed, a port: example.org:443.", "the host %q never matches: %s", h.String(), why)
		}
	}
	return finding{}
}

// unconditional tells whether the block has no condition besides what it is
// about.
func (b *block) unconditional() bool {
	return len(b.args)+len(b.agent) == 0 && b.mode == "" && b.hints == nil
}

// impossible returns why no connection has such a host, or an empty string.
func (h hostPattern) impossible() string {
	if n, err := strconv.Atoi(h.port); h.port != "" && h.port != "*" && (err != nil || n < 1 || n > 65535) {
		return "there is no such port"
	}
	name := strings.TrimPrefix(h.name, "*.")
	switch {
	case h.name == "*":
		return ""
	case strings.ContainsAny(name, " \t@?#\\"):
		return "a name holds no such characters"
	case name == "" || strings.HasPrefix(name, ".") || strings.Contains(name, ".."):
		return "a part of the name is empty"
	case len(name) > 253:
		return "it is longer than a name can be"
	}
	return ""
}

// neverWritable tells whether an allow or ask rule for writing is about places
// only that the sandbox keeps closed.
func (p *Policy) neverWritable(r *rule) finding {
	if r.effect == Deny || r.kind != KindRead || len(r.path) == 0 || r.access == 0 || r.access&accessRead != 0 || p.roots.free || len(p.roots.writable) == 0 {
		return finding{}
	}
	for _, g := range r.path {
		if g.relative || len(g.forms) == 0 {
			return finding{}
		}
		for _, form := range g.forms {
			fixed := pathGlob{text: form}.fixed()
			for _, list := range [2][]string{p.roots.writable, p.roots.private} {
				for _, root := range list {
					if below(root, fixed) || below(fixed, root) {
						return finding{}
					}
				}
			}
		}
	}
	return found("Add the folder with add_dirs: [FOLDER].", "it never decides: the sandbox keeps %q closed for writing", r.path[0].text)
}

// fixed returns the folder that every match of an absolute glob is below of.
func (g pathGlob) fixed() string {
	at := strings.IndexAny(g.text, `*?[{\`)
	if at < 0 {
		return g.text
	}
	if cut := strings.LastIndexByte(g.text[:at], '/'); cut > 0 {
		return g.text[:cut]
	}
	return "/"
}

// useless tells which key of the rule has no effect.
func (r *rule) useless() finding {
	switch {
	case r.onAsk != "" && r.effect != Ask:
		return found("Remove the key.", "on_ask has no effect: the rule asks nobody")
	case r.maxScope != "" && r.effect != Ask:
		return found("Remove the key.", "max_scope has no effect: the rule asks nobody")
	case r.onDeny != "" && r.effect == Allow:
		return found("Remove the key.", "on_deny has no effect: the rule refuses nothing")
	}
	return finding{}
}

// ownWord tells whether argv_none names a word of argv, which it does not look
// at.
func (r *rule) ownWord() finding {
	for _, alternatives := range r.argv[min(1, len(r.argv)):] {
		for _, alt := range alternatives {
			if alt.literal && anyPattern(r.argvNone, alt.text) && !slices.ContainsFunc(r.argvNone, pattern.any) {
				return found("Remove the word from argv or from argv_none.", "argv_none excludes %q, which argv itself wants; only the words after argv are looked at", alt.text)
			}
		}
	}
	return finding{}
}

// idle tells why an allow rule for a tool never decides.
func (r *rule) idle() finding {
	if r.kind != KindTool || len(r.tool) == 0 {
		return finding{}
	}
	name := ""
	for _, t := range r.tool {
		known := false
		for _, tool := range catalogue {
			if !t.match(tool) {
				continue
			}
			if known = true; judgedBy[tool] == "" {
				return finding{}
			}
			if name == "" {
				name = tool
			}
		}
		if !known {
			return finding{}
		}
	}
	if by := judgedBy[name]; by != nothing {
		return found("Write a rule with "+by+" instead.", "calls of %q are judged by %s, not by the name of the tool", name, by)
	}
	return found("Remove the rule.", "calls of %q are allowed without a rule", name)
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
	"report_agent_job_result": nothing, "spawn_agents_on_csv": "path",
}
