package sandbox

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// maxRefusalsOfCommand is how many refusals of one command are told, and
// maxRefusalText how much of its output is looked at.
const (
	maxRefusalsOfCommand = 10
	maxRefusalText       = 256 << 10
)

// bounds are what a sandbox forbids, for the inference from what a command
// printed. The zero value forbids nothing.
type bounds struct {
	on       bool
	mode     Mode
	network  bool
	writable []string
	// protected are names below writable ones that are not, masked what is not
	// read, free what is written all the same.
	protected, masked, free []string
	// could tells whether drover itself could write a path: if it cannot, the
	// sandbox is not what stands in the way.
	could func(path string) bool
	// denies is what a refused write looks like: EROFS, or EACCES if Landlock
	// refuses it.
	denies cause
}

type cause int

const (
	unclear cause = iota
	readOnly
	forbidden
	busy
)

// causes are the words for an error, in the order in which they are looked for.
// The same error has a name in every language.
var causes = []struct {
	words string
	cause cause
}{
	{"read-only file system", readOnly}, {"read-only filesystem", readOnly}, {"erofs", readOnly},
	{"os error 30", readOnly}, {"code: 30,", readOnly}, {"errno 30", readOnly},
	{"permission denied", forbidden}, {"operation not permitted", forbidden}, {"eacces", forbidden},
	{"eperm", forbidden}, {"os error 13", forbidden}, {"os error 1)", forbidden}, {"code: 13,", forbidden},
	{"device or resource busy", busy}, {"ebusy", busy},
}

// networkLines are what programs say when they reach no host; the group, if any,
// is the host. Like all patterns here they are made when first used.
var networkLines = sync.OnceValue(func() []*regexp.Regexp {
	return []*regexp.Regexp{
		regexp.MustCompile(`(?i)could not resolve (?:host(?:name)?|proxy)[: ]+'?([^\s:']+)`),
		regexp.MustCompile(`\blookup ([^\s:]+)(?: on |: )`),
		regexp.MustCompile(`getaddrinfo (?:EAI_AGAIN|ENOTFOUND|EAI_FAIL|EPERM) ([^\s:,]+)`),
		regexp.MustCompile(`unable to resolve host address [‘'"]?([^\s‘’'"]+)`),
		regexp.MustCompile(`(?i)(?:temporary failure resolving|failed to resolve) '([^']+)'`),
		regexp.MustCompile(`host='([^']+)'.*(?:name resolution|not permitted|NewConnectionError)`),
		regexp.MustCompile(`([A-Za-z0-9][A-Za-z0-9.-]*): (?:Temporary failure in name resolution|Name or service not known)`),
		regexp.MustCompile(`(?i)failed to connect to (\S+) port \d+`),
		regexp.MustCompile(`(?i)connecting to (\S+?)\.{0,3} failed: operation not permitted`),
		regexp.MustCompile(`dial (?:tcp|udp)[46]? (\S+?):? (?:socket|connect): (?:operation not permitted|permission denied)`),
		regexp.MustCompile(`connect E(?:PERM|ACCES) (\S+)`),
		regexp.MustCompile(`(?i)failed to lookup address information.*?(?:https?://([^/\s:"')]+))?`),
		regexp.MustCompile(`(?i)temporary failure in name resolution`),
		regexp.MustCompile(`(?i)\b(?:socket|listen (?:tcp|udp)\S*)\b.*(?:operation not permitted|permission denied)`),
	}
})

// callWords name the programs and calls that the filter refuses.
var callWords = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)\b(?:mount|umount|unshare|chroot|pivot_root|setns|nsenter|ptrace|strace|clone3?|io_uring\w*|bpf|perf_event_open|userfaultfd|keyctl|newuidmap|bwrap)\b`)
})

// shellPrefix is how a shell begins a message of its own: its name and the line
// of the script. The name is a path that nobody wanted to write.
var shellPrefix = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^\S*sh: (?:-c: )?(?:line )?\d+: `) })

// quotedName is a name in quotes, in one of the groups.
var quotedName = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`'([^'\n]+)'|"([^"\n]+)"|‘([^’\n]+)’|` + "`([^`'\n]+)['`]")
})

// escapes are the control sequences that colour a line.
var escapes = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\x1b\[[0-9;?]*[ -/]*[@-~]`) })

// refusals goes by what a command printed and by how it ended. A command that
// succeeded has dealt with what it met; only an error that nothing but the
// sandbox makes, a read-only file system at a path that drover could write, is
// told of it.
func (b *bounds) refusals(e Ended) []Refusal {
	if !b.on {
		return nil
	}
	found := collector{seen: map[[2]string]bool{}}
	const badCall = 128 + 31
	if e.Signal == "SIGSYS" || e.ExitCode == badCall {
		found.add(Refusal{Reason: "the sandbox ends programs of another architecture; a policy rule with sandbox: off would allow it"})
	}
	text := e.Output
	if len(text) > maxRefusalText {
		text = text[:maxRefusalText/2] + "\n" + text[len(text)-maxRefusalText/2:]
	}
	vague := false
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(escapes().ReplaceAllString(line, ""))
		line = shellPrefix().ReplaceAllString(line, "")
		if line == "" || len(line) > 4096 {
			continue
		}
		c := causeOf(line)
		if e.ExitCode == 0 && e.Signal == "" {
			if c == readOnly {
				found.add(b.path(line, c, e.Dir))
			}
			continue
		}
		if r := b.host(line); r.Reason != "" {
			found.add(r)
			continue
		}
		r := b.path(line, c, e.Dir)
		if r.Reason == "" && c == forbidden && callWords().MatchString(line) {
			r = Refusal{Reason: "the sandbox refuses namespaces, mounts, tracing and the like; a policy rule with sandbox: off would allow it"}
		}
		vague = vague || r.Reason == "" && c == readOnly && b.denies == readOnly && !named(line)
		found.add(r)
	}
	if vague && len(found.list) == 0 {
		found.add(Refusal{What: "write", Reason: b.outside()})
	}
	return found.list
}

type collector struct {
	list []Refusal
	seen map[[2]string]bool
}

func (c *collector) add(r Refusal) {
	key := [2]string{r.What, r.Target}
	if r.Reason == "" || c.seen[key] || len(c.list) == maxRefusalsOfCommand {
		return
	}
	c.seen[key] = true
	c.list = append(c.list, r)
}

func causeOf(line string) cause {
	lower := strings.ToLower(line)
	for _, c := range causes {
		if strings.Contains(lower, c.words) {
			return c.cause
		}
	}
	return unclear
}

// host returns a refusal if the line tells of a host that was not reached
// because there is no network.
func (b *bounds) host(line string) Refusal {
	if b.network {
		return Refusal{}
	}
	for _, re := range networkLines() {
		m := re.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		r := Refusal{What: "connect", Reason: "commands have no network; --network, or a policy rule with network: true, would allow it"}
		if len(m) > 1 {
			r.Target = strings.Trim(m[1], ".,;'\"()[]")
		}
		return r
	}
	return Refusal{}
}

// path returns a refusal if the line names a path that the sandbox forbids and
// an error that it makes.
func (b *bounds) path(line string, c cause, dir string) Refusal {
	if c == unclear {
		return Refusal{}
	}
	for _, name := range names(line) {
		path := name
		if !filepath.IsAbs(path) {
			path = filepath.Join(dir, path)
		}
		if r := b.judge(filepath.Clean(path), c); r.Reason != "" {
			return r
		}
	}
	return Refusal{}
}

// judge tells whether the sandbox refuses a path in this way.
func (b *bounds) judge(path string, c cause) Refusal {
	if !filepath.IsAbs(path) || strings.ContainsRune(path, 0) {
		return Refusal{}
	}
	real := filepath.Join(realPath(filepath.Dir(path)), filepath.Base(path))
	if c == forbidden && (belowAny(b.masked, real) || belowAny(b.masked, realPath(path))) {
		return Refusal{What: "read", Target: path, Reason: "deny_read in the policy hides it from commands"}
	}
	if belowAny(b.free, real) {
		return Refusal{}
	}
	if at := innermost(b.protected, real); at != "" && len(at) >= len(innermost(b.writable, real)) {
		if c != b.denies && c != busy {
			return Refusal{}
		}
		name := filepath.Base(at)
		return Refusal{What: "write", Target: path,
			Reason: name + ` is protected; a policy rule path: ["` + name + `/**"], access: [write] lifts it`}
	}
	if c != b.denies || belowAny(b.writable, real) || b.could == nil || !b.could(real) {
		return Refusal{}
	}
	return Refusal{What: "write", Target: path, Reason: b.outside()}
}

func (b *bounds) outside() string {
	if b.mode == ReadOnly {
		return "the sandbox is read-only; --sandbox workspace-write would allow writes in the workspace"
	}
	return "commands write only the workspace and added folders; --add-dir, or add_dirs in the policy, would allow it"
}

// named tells whether a line names a path, be it one of no interest.
func named(line string) bool {
	for _, m := range quotedName().FindAllString(line, 8) {
		if !strings.ContainsRune(m, ' ') {
			return true
		}
	}
	return slices.ContainsFunc(names(line), func(name string) bool { return strings.ContainsRune(name, '/') })
}

// names returns what may be a path in a line, the likeliest first: what is
// quoted, then what stands between colons, then words.
func names(line string) []string {
	var out []string
	add := func(name string) {
		name = strings.TrimLeft(name, "([{'\"`‘")
		if name = strings.TrimRight(name, ".,;:)]}'\"`’"); name != "" && len(name) < 4096 {
			out = append(out, name)
		}
	}
	for _, m := range quotedName().FindAllStringSubmatch(line, 8) {
		for _, group := range m[1:] {
			add(group)
		}
	}
	for part := range strings.SplitSeq(line, ": ") {
		part = strings.TrimSpace(part)
		if strings.HasPrefix(part, "/") || strings.HasPrefix(part, "./") || !strings.ContainsRune(part, ' ') {
			add(part)
		}
		for _, word := range strings.Fields(part) {
			if strings.Contains(strings.TrimLeft(word, `'"(`), "/") {
				add(word)
			}
		}
	}
	return out
}
