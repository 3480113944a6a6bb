package tools

import (
	"maps"
	"slices"
	"strings"
)

// coreNames are the variables that inherit: core keeps.
var coreNames = []string{
	"PATH", "SHELL", "TMPDIR", "TEMP", "TMP", "HOME", "LANG", "LC_ALL",
	"LC_CTYPE", "LOGNAME", "USER",
}

// secretNames are the patterns that drop_secret_names drops.
var secretNames = []string{"*KEY*", "*SECRET*", "*TOKEN*"}

// plainOutput makes programs print plain text without asking a pager, a
// terminal or a locale. It overrides what the user set, for commands only.
var plainOutput = map[string]string{
	"NO_COLOR": "1", "TERM": "dumb", "COLORTERM": "",
	"LANG": "C.UTF-8", "LC_CTYPE": "C.UTF-8", "LC_ALL": "C.UTF-8",
	"PAGER": "cat", "GIT_PAGER": "cat", "GH_PAGER": "cat", "MANPAGER": "cat",
	"SYSTEMD_PAGER": "cat", "LESS": "FRX", "DROVER_CI": "1",
}

// threadVar tells every command whose it is.
const threadVar = "DROVER_THREAD_ID"

// environment is the whole environment of a command in dir, in order of names:
// what ShellEnvironment leaves of drover's own, then the variables in forced,
// then the session, then what the sandbox needs inside. Names in Remove are
// in it only if PassKeys lists them, too.
func (c Commands) environment(dir string, forced map[string]string, inside []string) []string {
	vars := map[string]string{}
	for _, kv := range c.Environ {
		if name, value, ok := strings.Cut(kv, "="); ok && name != "" {
			vars[name] = value
		}
	}
	c.Environment.apply(vars)
	maps.Copy(vars, forced)
	for _, name := range c.Remove {
		if !slices.Contains(c.Environment.PassKeys, name) {
			delete(vars, name)
		}
	}
	if c.SessionID != "" {
		vars[threadVar] = c.SessionID
	}
	// A stale PWD misleads programs that trust it.
	vars["PWD"] = dir
	for _, kv := range inside {
		if name, value, ok := strings.Cut(kv, "="); ok {
			vars[name] = value
		}
	}
	out := make([]string, 0, len(vars))
	for _, name := range slices.Sorted(maps.Keys(vars)) {
		out = append(out, name+"="+vars[name])
	}
	return out
}

// apply drops and sets variables in the order of the manual: inherit, secret
// names, exclude, set, include_only.
func (s ShellEnvironment) apply(vars map[string]string) {
	keep := func(name string) bool { return true }
	switch s.Inherit {
	case "", "all":
	case "core":
		keep = func(name string) bool { return slices.Contains(coreNames, strings.ToUpper(name)) }
	default: // none; a word that nobody knows must not let more through
		keep = func(string) bool { return false }
	}
	maps.DeleteFunc(vars, func(name, _ string) bool {
		return !keep(name) || s.DropSecretNames && matchesAny(secretNames, name) || matchesAny(s.Exclude, name)
	})
	maps.Copy(vars, s.Set)
	if len(s.IncludeOnly) > 0 {
		maps.DeleteFunc(vars, func(name, _ string) bool { return !matchesAny(s.IncludeOnly, name) })
	}
}

func matchesAny(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool {
		return matchesName(strings.ToUpper(p), strings.ToUpper(name))
	})
}

// matchesName matches * (any text) and ? (one byte). It takes a time of at most
// the product of both lengths.
func matchesName(pattern, name string) bool {
	p, n, star, from := 0, 0, -1, 0
	for n < len(name) {
		switch {
		case p < len(pattern) && pattern[p] == '*':
			star, from = p, n
			p++
		case p < len(pattern) && (pattern[p] == '?' || pattern[p] == name[n]):
			p++
			n++
		case star >= 0:
			from++
			p, n = star+1, from
		default:
			return false
		}
	}
	return strings.Trim(pattern[p:], "*") == ""
}
