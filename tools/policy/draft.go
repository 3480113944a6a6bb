package policy

import (
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// draft is a rule that might help, before it was tried.
type draft struct {
	rule     Rule
	title    string
	maxScope string
	wide     bool
}

// spelling is how the paths of a draft are written.
type spelling int

const (
	// absolute paths hold in one workspace only, which is what an answer
	// means.
	absolute spelling = iota
	// relative paths are how a policy file is written.
	relative
)

// drafts returns rules for one part, the narrowest first.
func (p *Policy) drafts(part Part, how spelling) []draft {
	a := &part.Action
	switch a.Kind {
	case KindExec:
		return p.execDrafts(a)
	case KindRead, KindWrite, KindDelete:
		return p.pathDrafts(a, how)
	case KindHost:
		name, port := splitHost(a.Host)
		host := hostPattern{name: name, port: port}.String()
		return []draft{{rule: Rule{"host": []string{host}}, title: "connections to " + shorten(host)}}
	case KindMCP:
		return toolDrafts(&part, draft{
			rule:  Rule{"mcp": map[string]any{"server": literalGlob(a.Server), "tool": []string{literalGlob(a.Tool)}}},
			title: "the tool " + shorten(a.Server+"/"+a.Tool),
		})
	case KindTool:
		name := canonicalTool(a.Tool)
		by := judgedBy[name]
		return toolDrafts(&part, draft{
			rule: Rule{"tool": []string{literalGlob(name)}}, title: "the tool " + shorten(name), wide: by != "" && by != nothing,
		})
	}
	return nil
}

// toolDrafts returns the tool with the arguments that were asked about, if the
// rule that asks looks at any, and the tool.
func toolDrafts(part *Part, tool draft) []draft {
	if part.rule == nil || len(part.rule.args) == 0 {
		return []draft{tool}
	}
	args := map[string]any{}
	var shown []string
	for _, a := range part.rule.args {
		values, err := pointed(part.Action.Args, a.pointer)
		var text string
		if err != nil || len(values) != 1 || json.Unmarshal(values[0], &text) != nil {
			return []draft{tool}
		}
		key := pointerText(a.pointer)
		args[key] = []string{literalGlob(text)}
		shown = append(shown, key+" "+shorten(text))
	}
	narrow := draft{rule: Rule{"args": args}, title: tool.title + " with " + strings.Join(shown, ", ")}
	for key, value := range tool.rule {
		narrow.rule[key] = value
	}
	return []draft{narrow, tool}
}

// pointerText writes a JSON pointer.
func pointerText(keys []string) string {
	var b strings.Builder
	for _, key := range keys {
		b.WriteString("/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(key))
	}
	return b.String()
}

// literalGlob returns a word as a glob that means nothing but the word.
func literalGlob(word string) string {
	if word == "[" || word == "[[" {
		return word
	}
	return escapeWord(word)
}

func argvGlobs(argv []string) []string {
	out := make([]string, len(argv))
	for i, w := range argv {
		out[i] = literalGlob(w)
	}
	return out
}

// execDrafts returns the exact command and, where the words after it cannot
// make something else of it, what it begins with.
func (p *Policy) execDrafts(a *Action) []draft {
	if len(a.Argv) == 0 {
		return nil
	}
	argv := slices.Clone(a.Argv)
	if strings.Contains(argv[0], "/") && !strings.HasPrefix(argv[0], "/") {
		argv[0] = join(clean(a.Dir), argv[0])
	}
	out := []draft{{
		rule:  Rule{"argv": argvGlobs(argv), "argv_exact": true},
		title: "exactly `" + shorten(strings.Join(argv, " ")) + "`",
	}}
	n, none := prefixOf(argv)
	if n == 0 {
		return out
	}
	r := Rule{"argv": argvGlobs(argv[:n])}
	if len(none) > 0 {
		r["argv_none"] = none
	}
	return append(out, draft{
		rule: r, title: "commands that begin with `" + shorten(strings.Join(argv[:n], " ")) + "`", wide: n == 1,
	})
}

// wholeDraft returns the rule that is exactly one vector with the script in
// it. It cannot be told what such a script does, so that an answer to it ends
// with the session.
func wholeDraft(a *Action, alone bool) draft {
	if a.Kind != KindExec || len(a.Argv) == 0 {
		return draft{}
	}
	title := "exactly `" + shorten(a.Argv[len(a.Argv)-1]) + "`"
	if !alone {
		title = "all of `" + shorten(a.Argv[len(a.Argv)-1]) + "`"
	}
	return draft{rule: Rule{"argv": argvGlobs(a.Argv), "argv_exact": true}, title: title, maxScope: ScopeSession}
}

// subcommands are programs whose first word says what they do, with the
// sub-commands that are followed by one more such word.
var subcommands = map[string]map[string]bool{
	"git":       set("remote", "stash", "worktree", "submodule", "bisect", "notes", "lfs"),
	"go":        set("mod", "work", "tool"),
	"cargo":     {},
	"npm":       set("run", "run-script", "cache", "config"),
	"pnpm":      set("run", "store"),
	"yarn":      set("run", "workspace", "cache"),
	"bun":       set("run", "pm"),
	"deno":      set("task"),
	"pip":       set("cache", "config"),
	"pip3":      set("cache", "config"),
	"uv":        set("pip", "tool", "run", "cache"),
	"poetry":    set("run", "env", "cache"),
	"bundle":    set("exec"),
	"gem":       {},
	"composer":  {},
	"mvn":       {},
	"gradle":    {},
	"make":      {},
	"just":      {},
	"task":      {},
	"docker":    set("compose", "image", "container", "volume", "network", "system", "buildx"),
	"podman":    set("image", "container", "volume", "network", "system"),
	"kubectl":   set("config", "rollout"),
	"helm":      set("repo"),
	"terraform": set("state", "workspace"),
	"gh":        set("pr", "issue", "repo", "run", "release", "workflow", "api", "auth"),
	"glab":      set("mr", "issue", "repo", "ci"),
	"systemctl": {},
	"brew":      {},
	"apt":       {},
	"apt-get":   {},
	"dnf":       {},
	"apk":       {},
	"rustup":    set("toolchain", "target", "component"),
	"dotnet":    {},
	"swift":     set("package"),
	"flutter":   set("pub"),
	"dart":      set("pub"),
	"zig":       {},
	"mix":       {},
	"bazel":     {},
	"buf":       {},
	"drover":    set("policy", "jobs", "events", "sessions", "tools"),
}

// openEnded are sub-commands that run whatever the later words say.
var openEnded = map[string]map[string]bool{
	"docker": set("run", "exec"), "podman": set("run", "exec"), "kubectl": set("exec", "run", "debug"), "npm": set("exec", "x"),
	"pnpm": set("exec", "dlx"), "yarn": set("exec", "dlx"), "bun": set("x"), "uv": set("run"), "poetry": set("run"),
	"bundle": set("exec"), "deno": set("run", "eval"), "go": set("run", "generate"), "cargo": set("run"), "mix": set("run"),
	"git": set("bisect", "filter-branch", "submodule", "rebase", "difftool", "mergetool", "config"), "dotnet": set("exec"), "bazel": set("run"),
}

// noOptions are the options that a prefix leaves out, because they run
// programs, write files or take away what others have.
var noOptions = map[string][]string{
	"git": {"--output*", "--ext-diff", "--textconv", "--exec*", "--upload-pack*", "--receive-pack*", "--force*", "-f", "+*"},
	"go":  {"-exec*", "--exec*", "-toolexec*", "--toolexec*", "-o*", "--o*"},
}

// prefixOf returns how many words a rule for commands like this one should
// spell, and which later words it should exclude; 0 means that no beginning
// says what such a command does.
func prefixOf(argv []string) (words int, none []string) {
	name := path.Base(argv[0])
	deeper, known := subcommands[name]
	if !known {
		if banned(name) {
			return 0, nil
		}
		return 1, nil
	}
	if len(argv) < 2 || !isSubcommand(argv[1]) || openEnded[name][argv[1]] {
		return 0, nil
	}
	n := 2
	if deeper[argv[1]] {
		if len(argv) < 3 || !isSubcommand(argv[2]) || openEnded[name][argv[2]] {
			return 0, nil
		}
		n = 3
	}
	return n, noOptions[name]
}

// isSubcommand tells whether a word looks like one rather than like a file.
func isSubcommand(word string) bool {
	if word == "" || len(word) > 40 {
		return false
	}
	for i, r := range word {
		letter := r >= 'a' && r <= 'z'
		if !letter && (i == 0 || r != '-' && r != ':' && r != '_' && (r < '0' || r > '9')) {
			return false
		}
	}
	return true
}

// harmful are programs whose name alone says too little to be allowed for
// good: what they do to files, processes or other machines is in their words.
var harmful = set("rm", "rmdir", "shred", "dd", "mkfs", "mount", "umount", "chmod", "chown", "chgrp", "chattr", "mv", "cp", "ln",
	"install", "truncate", "tee", "kill", "pkill", "killall", "reboot", "shutdown", "halt", "curl", "wget", "scp", "sftp", "rsync",
	"nc", "ncat", "socat", "telnet", "ftp", "crontab", "at", "iptables", "useradd", "usermod", "passwd", "visudo", "insmod", "eval",
	"exec", "source", ".", "trap", "alias", "command", "builtin", "time", "tar", "zip", "unzip", "sed", "git", "openssl", "gpg")

// banned tells whether a rule must not consist of a program's name: programs
// that run whatever they are told, and those that may do harm.
func banned(name string) bool {
	bare := strings.TrimRight(name, "0123456789.-")
	if _, wrapper := wrappers[name]; wrapper {
		return true
	}
	for _, n := range [2]string{name, bare} {
		if shells[n] || interpreters[n] || carriers[n] || runners[n] || harmful[n] || codeBuiltins[n] || launchers[n] || schedulers[n] {
			return true
		}
	}
	_, runsOptions := optionRunners[name]
	return runsOptions
}

// pathDrafts returns the path itself, and everything below its folder.
func (p *Policy) pathDrafts(a *Action, how spelling) []draft {
	names := []string{clean(a.Path)}
	if real := clean(a.Real); real != "" && real != names[0] {
		names = append(names, real)
	}
	if slices.Contains(names, "/") {
		// No glob is the root alone.
		return nil
	}
	verb := map[Kind]string{KindRead: "reading ", KindWrite: "writing ", KindDelete: "deleting "}[a.Kind]
	access := []string{string(a.Kind)}
	out := []draft{{
		rule:  Rule{"path": p.pathGlobs(names, "", how), "access": access},
		title: verb + shorten(names[0]),
	}}
	dir := path.Dir(names[0])
	if dir == "/" || p.nearProtected(names) {
		return out
	}
	folders := make([]string, len(names))
	for i, name := range names {
		folders[i] = path.Dir(name)
	}
	return append(out, draft{
		rule:  Rule{"path": p.pathGlobs(folders, "/**", how), "access": access},
		title: verb + "anything below " + shorten(dir),
		wide:  !belowAny(p.roots.workspace, dir) || slices.Contains(p.roots.workspace, dir),
	})
}

// nearProtected tells whether a path has the name of a protected folder in it:
// a rule that spells it would lift the protection.
func (p *Policy) nearProtected(names []string) bool {
	for _, name := range names {
		for part := range strings.SplitSeq(name, "/") {
			if slices.Contains(protectedNames, part) {
				return true
			}
		}
	}
	return false
}

// pathGlobs writes names as globs that mean nothing else.
func (p *Policy) pathGlobs(names []string, tail string, how spelling) []string {
	var out []string
	for _, name := range names {
		glob := escapeGlob(name)
		if how == relative {
			for _, root := range p.roots.workspace {
				if rel, ok := relativeTo(root, name, false); ok {
					glob = escapeGlob(rel)
					break
				}
			}
		}
		if tail != "" {
			glob = strings.TrimPrefix(glob+tail, "./")
		}
		out = appendNew(out, glob)
	}
	return out
}

// together returns one rule for all paths of several questions, as the files
// of a patch.
func (p *Policy) together(asked []Part) draft {
	if len(asked) < 2 {
		return draft{}
	}
	var names, access []string
	for i := range asked {
		a := &asked[i].Action
		switch a.Kind {
		case KindRead, KindWrite, KindDelete:
		default:
			return draft{}
		}
		access = appendNew(access, string(a.Kind))
		names = appendNew(names, clean(a.Path))
		if real := clean(a.Real); real != "" {
			names = appendNew(names, real)
		}
	}
	if slices.Contains(names, "/") {
		return draft{}
	}
	return draft{rule: Rule{"path": p.pathGlobs(names, "", absolute), "access": access}, title: "all files of the call"}
}

// name returns the id of a rule: a word about it, and the beginning of its
// digest, so that two rules never share one.
func (r Rule) name() string {
	word := "rule"
	for _, key := range []string{"argv", "path", "host", "tool"} {
		list := textsOf(r[key])
		if len(list) == 0 {
			continue
		}
		word = list[0]
		if key == "argv" && len(list) > 1 && isSubcommand(list[1]) {
			word = path.Base(word) + "-" + list[1]
		}
		break
	}
	if _, ok := r["mcp"]; ok {
		word = "mcp"
	}
	return slug(path.Base(word)) + "-" + r.digest()[:10]
}

// textsOf returns the words of a value up to the first that is none.
func textsOf(value any) []string {
	switch list := value.(type) {
	case []string:
		return list
	case []any:
		var out []string
		for _, v := range list {
			text, ok := v.(string)
			if !ok {
				return out
			}
			out = append(out, text)
		}
		return out
	}
	return nil
}

func slug(text string) string {
	var b strings.Builder
	for _, c := range strings.ToLower(text) {
		switch {
		case c >= 'a' && c <= 'z' || c >= '0' && c <= '9':
			b.WriteRune(c)
		case b.Len() > 0 && !strings.HasSuffix(b.String(), "-"):
			b.WriteByte('-')
		}
		if b.Len() >= 24 {
			break
		}
	}
	if s := strings.Trim(b.String(), "-"); s != "" {
		return s
	}
	return "rule"
}

// uniqueIn refuses mappings that give a key twice.
func uniqueIn(n *yaml.Node) error {
	if n.Kind == yaml.MappingNode {
		seen := map[string]bool{}
		for i := 0; i+1 < len(n.Content); i += 2 {
			key := n.Content[i].Value
			if seen[key] {
				return fmt.Errorf("read rule: the key %q is given twice", key)
			}
			seen[key] = true
		}
	}
	for _, c := range n.Content {
		if err := uniqueIn(c); err != nil {
			return err
		}
	}
	return nil
}
