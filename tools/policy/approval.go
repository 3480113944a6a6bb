package policy

import (
	"path"
	"strings"
)

// heuristic decides about a command that no rule decides, as the approval
// policy says.
func (p *Policy) heuristic(act Action, c *command) Part {
	if p.isKnownSafe(c) {
		return p.defaultPart(act, Allow, "", basisSafe)
	}
	approval := p.settings.approval
	if dangerous(c.words) {
		switch {
		case approval != approvalNever:
			return p.defaultPart(act, Ask, describe(&act)+" may destroy data", basisApproval)
		case !p.roots.free:
			return p.defaultPart(act, Deny, describe(&act)+" may destroy data, and approvals are off", basisApproval)
		}
	}
	if approval == approvalUntrusted {
		return p.defaultPart(act, Ask, describe(&act)+" is not known to be safe", basisApproval)
	}
	return p.defaultPart(act, Allow, "", basisApproval)
}

// The approval policies of the tool catalogue.
const (
	approvalUntrusted = "untrusted"
	approvalOnFailure = "on-failure"
	approvalOnRequest = "on-request"
	approvalNever     = "never"
	approvalGranular  = "granular"
)

// Granular says which kinds of questions may be asked under the approval
// policy granular; the others are refused without being asked.
type Granular struct {
	// SandboxApproval are questions about commands and patches that no rule
	// decides, and about leaving the sandbox.
	SandboxApproval bool `json:"sandbox_approval"`
	// Rules are the questions of ask rules.
	Rules bool `json:"rules"`
	// MCPElicitations are the questions that servers raise themselves.
	MCPElicitations bool `json:"mcp_elicitations"`
	// SkillApproval are questions about skills.
	SkillApproval bool `json:"skill_approval"`
	// RequestPermissions are the questions of the tool of that name.
	RequestPermissions bool `json:"request_permissions"`
}

// silence refuses a question that the approval policy does not let be asked.
func (p *Policy) silence(part *Part) {
	if part.Effect != Ask {
		return
	}
	banned := false
	switch p.settings.approval {
	case approvalNever:
		banned = true
	case approvalGranular:
		g := &p.settings.granular
		switch part.Action.Kind {
		case KindExec, KindRead, KindWrite, KindDelete:
			banned = !g.SandboxApproval
		}
		if part.basis == basisRule {
			banned = !g.Rules
		}
	}
	if !banned {
		return
	}
	part.Effect = Deny
	if part.Reason != "" {
		part.Reason += ", and "
	}
	part.Reason += "approval: " + p.settings.approval + " lets nobody be asked"
}

// dangerous tells whether a command is rm with force, in any spelling of its
// options.
func dangerous(words []word) bool {
	for len(words) > 1 && (words[0].text == "sudo" || words[0].text == "doas") {
		words = words[1:]
	}
	if len(words) < 2 || !words[0].literal || path.Base(words[0].text) != "rm" {
		return false
	}
	for _, w := range words[1:] {
		if w.text == "--" {
			return false
		}
		if strings.HasPrefix(w.text, "--f") || isCluster(w.text) && strings.ContainsRune(w.text, 'f') {
			return true
		}
	}
	return false
}

// knownSafe are programs that only read, whatever their options; those with
// exceptions are in safeUnless.
var knownSafe = set("cat", "cd", "cut", "echo", "expr", "false", "grep", "head", "id", "ls", "nl", "paste", "pwd", "rev",
	"seq", "stat", "tail", "tr", "true", "uname", "wc", "which", "whoami", "numfmt", "tac")

// safeUnless are programs that only read unless the words say otherwise.
var safeUnless = map[string]func(args []string) bool{
	"base64": func(args []string) bool {
		return !hasOption(args, "--output") && !hasPrefix(args, "-o")
	},
	"find": func(args []string) bool {
		for _, a := range args {
			switch a {
			case "-exec", "-execdir", "-ok", "-okdir", "-delete", "-fls", "-fprint", "-fprint0", "-fprintf":
				return false
			}
		}
		return true
	},
	"rg": func(args []string) bool {
		return !hasOption(args, "--pre", "--hostname-bin", "--search-zip") && !hasLetter(args, 'z')
	},
	"sort": func(args []string) bool {
		return !hasOption(args, "--output", "--compress-program") && !hasLetter(args, 'o')
	},
	"uniq": func(args []string) bool {
		operands := 0
		for _, a := range args {
			if a == "-" || !strings.HasPrefix(a, "-") {
				operands++
			}
		}
		// The second operand of uniq is a file that it writes.
		return operands < 2
	},
	"sed": safeSed,
	"git": safeGit,
}

// isKnownSafe tells whether a command certainly changes nothing.
func (p *Policy) isKnownSafe(c *command) bool {
	if c.opaque != "" || c.feed != nil || c.function || !p.trusted(c.name()) {
		return false
	}
	for _, w := range c.words {
		if !w.literal {
			return false
		}
	}
	for _, w := range c.dropped {
		if !gitNeutral[w.text] {
			return false
		}
	}
	name := path.Base(c.name())
	if knownSafe[name] {
		return true
	}
	safe := safeUnless[name]
	return safe != nil && safe(texts(c.words[1:]))
}

// safeSed accepts "sed -n 5p FILE" and "sed -n 5,9p FILE".
func safeSed(args []string) bool {
	if len(args) < 2 || len(args) > 3 || args[0] != "-n" || !strings.HasSuffix(args[1], "p") {
		return false
	}
	from, to, both := strings.Cut(strings.TrimSuffix(args[1], "p"), ",")
	return isNumber(from) && (!both || isNumber(to)) && (len(args) < 3 || !strings.HasPrefix(args[2], "-"))
}

func isNumber(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }

func safeGit(args []string) bool {
	if len(args) == 0 || hasOption(args, "--output", "--ext-diff", "--textconv", "--exec", "--paginate") {
		return false
	}
	switch args[0] {
	case "status", "log", "diff", "show":
		return true
	case "branch":
		return listsBranches(args[1:])
	}
	return false
}

// listsBranches tells whether the options of "git branch" only list.
func listsBranches(args []string) bool {
	listing := false
	for _, a := range args {
		switch a {
		case "-l", "--list", "--contains", "--no-contains", "--merged", "--no-merged", "--points-at":
			listing = true
		case "-a", "--all", "-r", "--remotes", "-v", "-vv", "--verbose", "--show-current", "--column", "--no-column",
			"--color", "--no-color", "-i", "--ignore-case", "--no-abbrev":
		default:
			if strings.HasPrefix(a, "--format=") || strings.HasPrefix(a, "--sort=") || strings.HasPrefix(a, "--color=") {
				continue
			}
			if !listing || strings.HasPrefix(a, "-") {
				return false
			}
		}
	}
	return true
}

// hasOption tells whether one of the long options is given, in full,
// abbreviated, or with a value.
func hasOption(args []string, names ...string) bool {
	for _, a := range args {
		name, _, _ := strings.Cut(a, "=")
		if len(name) < 4 {
			continue
		}
		for _, n := range names {
			if strings.HasPrefix(n, name) {
				return true
			}
		}
	}
	return false
}

func hasPrefix(args []string, prefix string) bool {
	for _, a := range args {
		if strings.HasPrefix(a, prefix) {
			return true
		}
	}
	return false
}

// hasLetter tells whether a cluster of short options holds the letter.
func hasLetter(args []string, letter byte) bool {
	for _, a := range args {
		if len(a) > 1 && a[0] == '-' && a[1] != '-' && strings.IndexByte(a, letter) > 0 {
			return true
		}
	}
	return false
}

// ChangesState tells whether an action may change anything outside the
// conversation: everything but reads and commands that are known to be safe
// and redirect nothing into a file.
func (p *Policy) ChangesState(a Action) bool {
	switch a.Kind {
	case KindRead:
		return false
	case KindExec:
	default:
		return true
	}
	for _, u := range p.analyse(&a) {
		switch {
		case u.guess:
		case u.cmd != nil && p.isKnownSafe(u.cmd):
		case u.action.Kind == KindRead:
		default:
			return true
		}
	}
	return len(a.Argv) == 0
}
