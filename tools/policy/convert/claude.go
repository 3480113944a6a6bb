package convert

import (
	"cmp"
	"slices"
	"strings"

	"drover/tools/policy"
)

// Claude converts the permissions of settings files. A rule of theirs is
// written with the tools of that product; it becomes a rule about what the tool
// would do. Where a pattern there can match more than a rule here can say, an
// allow rule matches less and an ask or deny rule matches more. The errors are
// *fault.Error of class fault.Config.
func Claude(files []File) (Result, error) {
	c := claude{b: &builder{head: []string{
		"Converted from permission settings.",
		"Reading the working folder needs no rule there; the first rule says so here.",
		"A prefix ends at the end of a word, and a bare program name means the one on PATH.",
	}}}
	for _, f := range files {
		if err := c.file(f); err != nil {
			return Result{}, err
		}
	}
	c.finish()
	return c.b.finish()
}

type claude struct {
	b *builder
	// mode is the strictest defaultMode, dirs the additional folders.
	mode     string
	modeFrom origin
	dirs     []string
	dirFrom  map[string]origin
	rules    []claudeRule
	// anchored says that a path was relative to the settings file.
	anchored bool
}

// claudeRule is one entry of allow, ask or deny.
type claudeRule struct {
	origin
	effect policy.Effect
	// tool and spec are the two parts of Tool(spec); hasSpec is false without
	// brackets.
	tool, spec string
	hasSpec    bool
}

func (c *claude) file(f File) error {
	if len(f.Data) > MaxFile {
		return unreadable(f.Name, 0, "it is larger than 256 KiB")
	}
	tree, line, err := readTree(f.Data)
	if err != nil {
		return unreadable(f.Name, line, "%s", err)
	}
	top, ok := tree.data.([]member)
	if !ok {
		return unreadable(f.Name, tree.line, "it is no JSON object")
	}
	for _, m := range top {
		o := origin{file: f.Name, line: m.value.line, text: m.key}
		switch m.key {
		case "permissions":
			if err := c.permissions(f.Name, m.value); err != nil {
				return err
			}
		case "hooks", "sandbox", "disableBypassPermissionsMode", "allowManagedPermissionRulesOnly", "enabledMcpjsonServers", "disabledMcpjsonServers", "enableAllProjectMcpServers":
			c.b.lost(o, "not mapped: it is no permission rule")
		}
	}
	return nil
}

func (c *claude) permissions(file string, v value) error {
	members, ok := v.data.([]member)
	if !ok {
		return unreadable(file, v.line, "permissions is no object")
	}
	for _, m := range members {
		o := origin{file: file, line: m.value.line, text: "permissions." + m.key}
		var err error
		switch m.key {
		case "allow", "ask", "deny":
			err = c.list(o, policy.Effect(m.key), m.value)
		case "additionalDirectories":
			err = c.addDirs(o, m.value)
		case "defaultMode":
			err = c.defaultMode(o, m.value)
		default:
			c.b.lost(o, "not mapped: there is nothing like it")
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// texts reads a list of strings with their lines.
func texts(o origin, v value) ([]origin, error) {
	list, ok := v.data.([]value)
	if !ok {
		return nil, unreadable(o.file, v.line, "%s is no list", o.text)
	}
	var out []origin
	for _, e := range list {
		s, ok := e.data.(string)
		if !ok {
			return nil, unreadable(o.file, e.line, "%s holds something that is no text", o.text)
		}
		out = append(out, origin{file: o.file, line: e.line, text: s})
	}
	return out, nil
}

func (c *claude) list(o origin, effect policy.Effect, v value) error {
	entries, err := texts(o, v)
	for _, e := range entries {
		r := claudeRule{origin: e, effect: effect}
		r.tool = strings.TrimSpace(e.text)
		if i := strings.IndexByte(r.tool, '('); i >= 0 {
			if !strings.HasSuffix(r.tool, ")") {
				return unreadable(e.file, e.line, "the rule %q has no closing bracket", e.text)
			}
			r.tool, r.spec, r.hasSpec = r.tool[:i], r.tool[i+1:len(r.tool)-1], true
		}
		if r.tool == "" {
			return unreadable(e.file, e.line, "the rule %q names no tool", e.text)
		}
		c.rules = append(c.rules, r)
	}
	return err
}

func (c *claude) addDirs(o origin, v value) error {
	entries, err := texts(o, v)
	for _, e := range entries {
		if e.text == "" {
			continue
		}
		if c.dirFrom == nil {
			c.dirFrom = map[string]origin{}
		}
		if !slices.Contains(c.dirs, e.text) {
			c.dirs = append(c.dirs, e.text)
			c.dirFrom[e.text] = e
		}
	}
	return err
}

// modes are the values of defaultMode, the strictest first.
var modes = []string{"dontAsk", "plan", "default", "acceptEdits", "bypassPermissions"}

func (c *claude) defaultMode(o origin, v value) error {
	mode, ok := v.data.(string)
	if !ok {
		return unreadable(o.file, v.line, "%s is no text", o.text)
	}
	o.text += " " + mode
	at := slices.Index(modes, mode)
	if at < 0 {
		c.b.lost(o, "not mapped: the mode is not known; what no rule decides is asked about")
		mode, at = "default", slices.Index(modes, "default")
	}
	if c.mode != "" && c.mode != mode {
		c.b.stricter(o, "several files set a mode; the strictest counts here")
	}
	if c.mode == "" || at < slices.Index(modes, c.mode) {
		c.mode, c.modeFrom = mode, o
	}
	return nil
}

// finish writes the rules, the mode and the folders.
func (c *claude) finish() {
	fallback := policy.Ask
	switch c.mode {
	case "dontAsk":
		fallback = policy.Deny
	case "bypassPermissions":
		fallback = policy.Allow
	case "plan":
		c.b.lost(c.modeFrom, "not mapped: a policy has no plan mode; run with --mode plan")
	}
	c.b.settings = append(c.b.settings, setting{"default", string(fallback)})
	reads := []string{"**"}
	for _, dir := range c.dirs {
		reads = append(reads, c.below(dir)...)
	}
	if len(c.dirs) > 0 {
		c.addDirSetting()
	}
	c.b.add(entry{origin: origin{file: cmp.Or(c.modeFrom.file, "settings"), text: "reading the working folders"},
		rule: policy.Rule{"effect": "allow", "path": reads, "access": []string{"read"}}})
	if c.mode == "acceptEdits" {
		writes := []string{"**"}
		for _, dir := range c.dirs {
			writes = append(writes, c.below(dir)...)
		}
		c.b.stricter(c.modeFrom, "it holds for edits; commands that change files need rules of their own")
		c.b.add(entry{origin: c.modeFrom, rule: policy.Rule{"effect": "allow", "path": writes, "access": []string{"write"}}})
	}
	for _, r := range c.rules {
		c.rule(r)
	}
	if c.anchored {
		c.b.head = append(c.b.head, `Paths such as "/src" are relative to the settings there; here they start at the working folder.`)
	}
}

// addDirSetting adds the folders that the loader takes.
func (c *claude) addDirSetting() {
	var kept []string
	for _, dir := range c.dirs {
		if _, err := loadRules([]setting{{"add_dirs", []string{dir}}}); err != nil {
			c.b.lost(c.dirFrom[dir], "not mapped: %s", loaderReason(err))
			continue
		}
		kept = append(kept, dir)
	}
	if len(kept) > 0 {
		c.b.settings = append(c.b.settings, setting{"add_dirs", kept})
	}
}

// below are the globs of everything in an additional folder, if a glob can say
// it.
func (c *claude) below(dir string) []string {
	glob := escapePath(strings.TrimSuffix(dir, "/")) + "/**"
	if _, err := loadRules(nil, policy.Rule{"id": "x", "effect": "allow", "path": []string{glob}}); err != nil {
		c.b.stricter(c.dirFrom[dir], "reading it needs a rule with its absolute name: %s", loaderReason(err))
		return nil
	}
	return []string{glob}
}

// escapePath writes the name of a file as a glob that matches it alone.
func escapePath(name string) string {
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`, "{", `\{`).Replace(name)
}

// rule converts one rule.
func (c *claude) rule(r claudeRule) {
	switch r.tool {
	case "Bash":
		c.bash(r)
	case "Read":
		c.path(r, "read")
	case "Edit", "Write", "MultiEdit", "NotebookEdit":
		c.path(r, "write")
	case "Glob", "Grep", "LS":
		c.search(r)
	case "WebFetch":
		c.fetch(r)
	case "Task", "Agent":
		c.simple(r, "spawn_agent")
	case "TodoWrite", "TodoRead":
		if r.effect == policy.Allow && !r.hasSpec {
			return // update_plan needs no permission
		}
		c.simple(r, "update_plan")
	default:
		if name, ok := strings.CutPrefix(r.tool, "mcp__"); ok && !r.hasSpec {
			c.mcp(r, name)
			return
		}
		c.b.lost(r.origin, "not mapped: drover has no such tool")
	}
}

// simple converts a rule about a whole tool.
func (c *claude) simple(r claudeRule, tool string) {
	if r.hasSpec && r.spec != "*" {
		c.b.lost(r.origin, "not mapped: what is in the brackets has no equal")
		return
	}
	c.b.add(entry{origin: r.origin, rule: policy.Rule{"effect": string(r.effect), "tool": []string{tool}}})
}

func (c *claude) search(r claudeRule) {
	if r.effect == policy.Allow || r.hasSpec && r.tool != "Grep" {
		c.path(r, "read")
		return
	}
	c.simple(r, map[string]string{"Grep": "search_in_files", "Glob": "list_dir", "LS": "list_dir"}[r.tool])
}

func (c *claude) fetch(r claudeRule) {
	host, ok := strings.CutPrefix(r.spec, "domain:")
	switch {
	case !r.hasSpec || r.spec == "*":
		host = "*"
	case !ok || host == "" || strings.ContainsAny(host, "/ "):
		c.b.lost(r.origin, "not mapped: it is not domain:NAME")
		return
	}
	rule := policy.Rule{"effect": string(r.effect), "host": []string{strings.ToLower(host)}}
	c.b.add(entry{origin: r.origin, rule: rule})
}

// mcp converts mcp__SERVER or mcp__SERVER__TOOL, where the tool may be a glob.
func (c *claude) mcp(r claudeRule, name string) {
	server, tool, _ := strings.Cut(name, "__")
	if server == "" || strings.Contains(server, "*") {
		c.b.lost(r.origin, "not mapped: it names no server")
		return
	}
	if tool == "" {
		tool = "*"
	}
	parts := strings.Split(tool, "*")
	rule := policy.Rule{"effect": string(r.effect), "mcp": map[string]any{"server": literal(server), "tool": strings.Join(literals(parts), "*")}}
	c.b.add(entry{origin: r.origin, rule: rule})
}
