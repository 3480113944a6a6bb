package convert

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"go.starlark.net/syntax"

	"drover/tools/policy"
)

// Codex converts execpolicy rule files. They are read as calls of prefix_rule,
// network_rule and host_executable with literal arguments; anything else is an
// error, because rules that are computed cannot be told apart from rules that
// are missing. The examples of a rule are checked on the rule alone, as the
// other product does, and become tests. The errors are *fault.Error of class
// fault.Config.
func Codex(files []File) (Result, error) {
	c := codex{hosts: map[string][]string{}, b: &builder{
		head: []string{
			"Converted from execpolicy rules.",
			"An allow rule does not leave the sandbox here, and a bare program name means the one on PATH.",
		},
		// What no rule decides depends on other settings there; asking is the
		// strict reading.
		settings: []setting{{"default", "ask"}},
	}}
	for _, f := range files {
		if err := c.file(f); err != nil {
			return Result{}, err
		}
	}
	for _, r := range c.rules {
		c.convert(r)
	}
	return c.b.finish()
}

type codex struct {
	b     *builder
	rules []prefixRule
	// hosts are the files that host_executable lists for a program.
	hosts map[string][]string
}

// prefixRule is one call of prefix_rule.
type prefixRule struct {
	origin
	// pattern holds the alternatives of each word.
	pattern         [][]string
	effect          policy.Effect
	reason          string
	match, notMatch [][]string
}

func (c *codex) file(f File) (err error) {
	if err := checkText(f); err != nil {
		return err
	}
	tree, err := (&syntax.FileOptions{}).Parse(f.Name, f.Data, 0)
	if err != nil {
		line, why := starlarkReason(err)
		return unreadable(f.Name, line, "%s", why)
	}
	for _, s := range tree.Stmts {
		start, _ := s.Span()
		x, ok := s.(*syntax.ExprStmt)
		if !ok {
			return unreadable(f.Name, int(start.Line), "only calls of prefix_rule, network_rule and host_executable can be read")
		}
		if lit, ok := x.X.(*syntax.Literal); ok && lit.Token == syntax.STRING {
			continue // a text that stands alone is a remark
		}
		if err := c.call(f.Name, x.X); err != nil {
			return err
		}
	}
	return nil
}

// starlarkReason takes the line out of a parser's error.
func starlarkReason(err error) (line int, why string) {
	if e, ok := err.(syntax.Error); ok {
		return int(e.Pos.Line), e.Msg
	}
	return 0, err.Error()
}

// arguments are the named arguments of a call.
type arguments map[string]syntax.Expr

// call reads one call.
func (c *codex) call(file string, x syntax.Expr) error {
	start, _ := x.Span()
	o := origin{file: file, line: int(start.Line)}
	call, ok := x.(*syntax.CallExpr)
	name, isName := (*syntax.Ident)(nil), false
	if ok {
		name, isName = call.Fn.(*syntax.Ident)
	}
	if !ok || !isName {
		return unreadable(file, o.line, "only calls of prefix_rule, network_rule and host_executable can be read")
	}
	readers := map[string]struct {
		keys []string
		read func(origin, arguments) error
	}{
		"prefix_rule":     {[]string{"pattern", "decision", "justification", "match", "not_match"}, c.prefixRule},
		"network_rule":    {[]string{"host", "protocol", "decision", "justification"}, c.networkRule},
		"host_executable": {[]string{"name", "paths"}, c.hostExecutable},
	}
	r, ok := readers[name.Name]
	if !ok {
		return unreadable(file, o.line, "unknown call %s", name.Name)
	}
	args := arguments{}
	for i, a := range call.Args {
		key, value := r.keys[0], a
		if b, ok := a.(*syntax.BinaryExpr); ok && b.Op == syntax.EQ {
			id, ok := b.X.(*syntax.Ident)
			if !ok {
				return unreadable(file, o.line, "an argument of %s has no name", name.Name)
			}
			key, value = id.Name, b.Y
		} else if i > 0 {
			return unreadable(file, o.line, "write the arguments of %s as name = value", name.Name)
		}
		if !slices.Contains(r.keys, key) {
			return unreadable(file, o.line, "%s has no argument %q", name.Name, key)
		}
		if args[key] != nil {
			return unreadable(file, o.line, "%s has the argument %q twice", name.Name, key)
		}
		if id, ok := value.(*syntax.Ident); ok && id.Name == "None" {
			continue // the same as an argument that is not given
		}
		args[key] = value
	}
	o.text = name.Name
	return r.read(o, args)
}

func (c *codex) prefixRule(o origin, args arguments) error {
	r := prefixRule{origin: o, effect: policy.Allow}
	list, err := elements(o, args["pattern"], "pattern")
	if err != nil {
		return err
	}
	if len(list) == 0 {
		return unreadable(o.file, o.line, "prefix_rule needs a pattern")
	}
	for _, x := range list {
		alternatives, err := words(o, x, "pattern")
		if err != nil {
			return err
		}
		if len(alternatives) == 0 {
			return unreadable(o.file, o.line, "a list of alternatives in a pattern is empty")
		}
		r.pattern = append(r.pattern, alternatives)
	}
	r.text = "prefix_rule " + patternText(r.pattern)
	if r.effect, err = decision(o, args["decision"], map[string]policy.Effect{"allow": policy.Allow, "prompt": policy.Ask, "forbidden": policy.Deny}); err != nil {
		return err
	}
	if r.reason, err = justification(o, args["justification"]); err != nil {
		return err
	}
	if r.match, err = examples(o, args["match"], "match"); err != nil {
		return err
	}
	if r.notMatch, err = examples(o, args["not_match"], "not_match"); err != nil {
		return err
	}
	for _, argv := range r.match {
		if !r.matches(argv) {
			return unreadable(o.file, o.line, "the rule does not match its example %s", quote(argv))
		}
	}
	for _, argv := range r.notMatch {
		if r.matches(argv) {
			return unreadable(o.file, o.line, "the rule matches %s, which it says it does not", quote(argv))
		}
	}
	c.rules = append(c.rules, r)
	return nil
}

// matches tells whether the pattern is a prefix of the words.
func (r *prefixRule) matches(argv []string) bool {
	if len(argv) < len(r.pattern) {
		return false
	}
	for i, alternatives := range r.pattern {
		if !slices.Contains(alternatives, argv[i]) {
			return false
		}
	}
	return true
}

func patternText(pattern [][]string) string {
	parts := make([]string, len(pattern))
	for i, alternatives := range pattern {
		if parts[i] = quote(alternatives); len(alternatives) > 1 {
			parts[i] = "[" + strings.Join(alternatives, "|") + "]"
		}
	}
	return strings.Join(parts, " ")
}

func (c *codex) networkRule(o origin, args arguments) error {
	host, err := text(o, args["host"], "host")
	if err != nil {
		return err
	}
	protocol, err := text(o, args["protocol"], "protocol")
	if err != nil {
		return err
	}
	if !slices.Contains([]string{"http", "https", "socks5_tcp", "socks5_udp"}, protocol) {
		return unreadable(o.file, o.line, "unknown protocol %q", protocol)
	}
	effect, err := decision(o, args["decision"], map[string]policy.Effect{"allow": policy.Allow, "prompt": policy.Ask, "deny": policy.Deny, "forbidden": policy.Deny})
	if err != nil {
		return err
	}
	reason, err := justification(o, args["justification"])
	if err != nil {
		return err
	}
	if host == "" || strings.ContainsAny(host, "/*? \t") {
		return unreadable(o.file, o.line, "the host %q is not a plain name", host)
	}
	host = hostName(host)
	o.text = fmt.Sprintf("network_rule %s %s", host, protocol)
	if effect == policy.Allow && strings.HasPrefix(protocol, "socks5") {
		c.b.lost(o, "not mapped: there is no rule for a protocol, and no proxy")
		return nil
	}
	rule := policy.Rule{"effect": string(effect), "host": []string{host}}
	if effect == policy.Allow {
		// Any port of the host would be more than one protocol.
		rule["host"] = []string{host + map[string]string{"http": ":80", "https": ":443"}[protocol]}
		c.b.stricter(o, "it holds for connections that drover itself makes, to the usual port; commands have the network wholly or not at all")
	}
	if reason != "" {
		rule["reason"] = reason
	}
	c.b.add(entry{origin: o, rule: rule})
	return nil
}

// hostName is a host without its port, in lower case.
func hostName(host string) string {
	host = strings.ToLower(host)
	if i := strings.LastIndexByte(host, ':'); i > 0 && strings.Count(host, ":") == 1 {
		host = host[:i]
	}
	return strings.TrimSuffix(host, ".")
}

func (c *codex) hostExecutable(o origin, args arguments) error {
	name, err := text(o, args["name"], "name")
	if err != nil {
		return err
	}
	list, err := elements(o, args["paths"], "paths")
	if err != nil {
		return err
	}
	if name == "" || strings.ContainsAny(name, `/\`) {
		return unreadable(o.file, o.line, "host_executable needs the bare name of a program, not %q", name)
	}
	for _, x := range list {
		file, err := text(o, x, "paths")
		if err != nil {
			return err
		}
		if !path.IsAbs(file) || path.Base(file) != name {
			return unreadable(o.file, o.line, "%q is no absolute path of %s", file, name)
		}
		c.hosts[name] = append(c.hosts[name], file)
	}
	return nil
}

// convert writes a prefix rule as a rule on argv.
func (c *codex) convert(r prefixRule) {
	rule := policy.Rule{"effect": string(r.effect)}
	if r.reason != "" {
		rule["reason"] = r.reason
	}
	var argv []any
	for i, alternatives := range r.pattern {
		list := literals(alternatives)
		if i == 0 && r.effect == policy.Allow {
			// Files that the other product takes for the program.
			for _, name := range alternatives {
				list = append(list, literals(c.hosts[name])...)
			}
		}
		if slices.Contains(list, "") {
			c.b.lost(r.origin, "not mapped: a word of the pattern is empty")
			return
		}
		if len(list) == 1 {
			argv = append(argv, list[0])
			continue
		}
		argv = append(argv, list)
	}
	rule["argv"] = argv
	e := entry{origin: r.origin, rule: rule, examples: r.match, counter: r.notMatch}
	if len(e.examples) == 0 {
		e.examples = [][]string{firstOf(r.pattern)}
	}
	c.b.add(e)
}

// firstOf is the shortest command that a pattern matches.
func firstOf(pattern [][]string) []string {
	out := make([]string, len(pattern))
	for i, alternatives := range pattern {
		out[i] = alternatives[0]
	}
	return out
}
