// Package policy decides what an agent may attempt.
//
// A tool declares the actions of a call (an argument vector, a path, a host,
// a tool of a server, or the tool itself); Load pools the rules of all
// policy files, and Policy.Decide judges every action and returns the
// strictest effect with the rule and the line that decided. Deny beats ask,
// ask beats allow, allow beats the default; order and layer play no part.
//
// A command that cannot be fully read (a computed word, a script that a shell
// takes from a file, an alias of git) is decided by the strictest deny or ask
// rule that could be about it, in every mode; only without such a rule is it
// what shell.opaque says. What programs of other languages do (python -c, perl
// -e, make, or a script run by its own name) is not read: rules match them by
// name only, and the sandbox bounds them.
//
// An answer that holds longer than one call is a grant: a rule of its own that
// turns a question into an allow, and never a refusal. Grants holds those of a
// session, AppendGenerated writes those that outlive it, and Propose makes the
// small rules that an answer may choose from.
//
// The package is not responsible for carrying a decision out: asking, counting
// refusals and the kernel sandbox live elsewhere. It knows tools only by name.
// It reads files in Load, once: a file that changes while a run goes on changes
// nothing before the next run. AppendGenerated alone writes one; everything
// else is handed in, such as look-ups on PATH and real names of paths. A Policy
// does not change after Load and may be used by many goroutines.
package policy

import (
	"encoding/json"
	"slices"
	"sync"
	"time"

	"mvdan.cc/sh/v3/syntax"
)

// Effect is what happens to an action.
type Effect string

// The effects, from the mildest to the strictest.
const (
	Allow Effect = "allow"
	Ask   Effect = "ask"
	Deny  Effect = "deny"
)

// stricter tells whether e is stricter than other.
func (e Effect) stricter(other Effect) bool { return e.rank() > other.rank() }

func (e Effect) rank() int {
	switch e {
	case Allow:
		return 1
	case Ask:
		return 2
	case Deny:
		return 3
	}
	return 0
}

// OnAsk is what becomes of a question that no grant answers.
type OnAsk string

// The ways to answer a question when nobody is there.
const (
	AskDeny     OnAsk = "deny"
	AskFail     OnAsk = "fail"
	AskDefer    OnAsk = "defer"
	AskApprover OnAsk = "approver"
)

// rank orders what becomes of a question, the milder first.
func (o OnAsk) rank() int {
	return slices.Index([]OnAsk{AskApprover, AskDeny, AskDefer, AskFail}, o)
}

// OnDeny is whether a refusal counts for the exit code.
type OnDeny string

// The weights of a refusal, from the mildest to the strictest.
const (
	DenyContinue OnDeny = "continue"
	DenyReport   OnDeny = "report"
	DenyFail     OnDeny = "fail"
)

func (o OnDeny) rank() int {
	switch o {
	case DenyContinue:
		return 1
	case DenyReport:
		return 2
	case DenyFail:
		return 3
	}
	return 0
}

// Mode is whether a person can be asked at a terminal.
type Mode string

// The modes.
const (
	ModeHeadless Mode = "headless"
	ModeTTY      Mode = "tty"
)

// Kind is what an action touches.
type Kind string

// The kinds of actions.
const (
	KindExec   Kind = "exec"
	KindRead   Kind = "read"
	KindWrite  Kind = "write"
	KindDelete Kind = "delete"
	KindTool   Kind = "tool"
	KindHost   Kind = "host"
	KindMCP    Kind = "mcp"
)

// Action is one thing a call would do.
type Action struct {
	Kind Kind
	// Argv is the vector of an exec action as it would be executed. A shell
	// with a script is looked into.
	Argv []string
	// Dir is the absolute working directory of an exec action.
	Dir string
	// Path is the absolute, cleaned path of a read, write or delete as it was
	// written, Real its name after symbolic links; an empty Real is Path.
	Path, Real string
	// Tool is the tool of a tool action, or the server's tool of an mcp
	// action; Args are its arguments, nil for those of the call.
	Tool string
	Args json.RawMessage
	// Host is name:port.
	Host string
	// Server is the server of an mcp action.
	Server string
	// Annotations are what the server says of the tool of an mcp action. They
	// count only if Trusted says that the configuration trusts the server.
	Annotations *Annotations
	Trusted     bool
}

// Exec returns the action of running argv in the absolute folder dir.
func Exec(dir string, argv ...string) Action {
	return Action{Kind: KindExec, Dir: dir, Argv: argv}
}

// Read returns the action of reading a path.
func Read(path, real string) Action { return Action{Kind: KindRead, Path: path, Real: real} }

// Write returns the action of writing a path.
func Write(path, real string) Action { return Action{Kind: KindWrite, Path: path, Real: real} }

// Delete returns the action of deleting a path.
func Delete(path, real string) Action { return Action{Kind: KindDelete, Path: path, Real: real} }

// Tool returns the action of using a tool that is no command, path, host or
// server.
func Tool(name string, args json.RawMessage) Action {
	return Action{Kind: KindTool, Tool: name, Args: args}
}

// Call is one call of a tool with everything it would do.
type Call struct {
	Tool string
	Args json.RawMessage
	// Agent is the path of the calling agent; empty is the root.
	Agent string
	// Actions are judged one by one. Without any, only a deny or ask rule that
	// names the tool stops the call.
	Actions []Action
	// Mode is what rules with a mode are compared with; empty is that of the
	// policy.
	Mode Mode
	// Grants are the answers that hold for the session of the call; nil is
	// none.
	Grants *Grants

	// tracing says that every part lists the rules that it met.
	tracing bool
}

// The deciders of a verdict.
const (
	byPolicy  = "policy"
	byDefault = "default"
	bySandbox = "sandbox"
	byYolo    = "yolo"
	byGrant   = "grant"
)

// Part is one judged action.
type Part struct {
	Action Action
	Effect Effect
	// DecidedBy is policy (a rule), default, sandbox (a protected folder or
	// a place outside the writable roots), yolo, or grant (an earlier answer,
	// which RuleID names).
	DecidedBy string
	// RuleID, Layer, File and Line name the rule that decided, if one did.
	RuleID, Layer, File string
	Line                int
	// Reason is one clause for the model.
	Reason string

	rule  *rule
	basis basis
	// certain says that the rule is about this very command, so that its
	// rights count.
	certain bool
	// freed says that an earlier answer lets the command leave the sandbox.
	freed bool
	// met are the rules that the action met, if the call is traced.
	met *[]RuleMatch
}

// Verdict is the decision on a call.
type Verdict struct {
	Effect Effect
	// DecidedBy is policy (a rule), default, sandbox, yolo or grant.
	DecidedBy string
	// RuleID, Layer, File and Line name the rule that decided, if one did.
	RuleID, Layer, Reason, File string
	Line                        int
	// OnDeny says whether a refusal by this verdict counts.
	OnDeny OnDeny
	// OnAsk says what becomes of the question if the effect is ask.
	OnAsk OnAsk
	// MaxScope is the longest life of a yes, once, session or always: the
	// shortest that a rule which asks sets. Empty is no limit.
	MaxScope string
	// Network, Unsandboxed and Timeout are what the deciding rules set for the
	// commands of the call. The first two hold only if a rule that says so
	// decided about every command, save for builtins without any effect such as
	// cd; of several timeouts the shortest counts, and 0 is none. What an ask
	// rule sets holds once the answer is yes.
	Network, Unsandboxed bool
	Timeout              time.Duration
	// Action is the action that decided.
	Action Action
	// Parts are all judged actions; the strictest one decided.
	Parts []Part
}

// LayerRef is a source of rules, by the hash of its bytes.
type LayerRef struct{ Path, Layer, SHA256 string }

// Policy is the pool of all rules.
type Policy struct {
	rules    []*rule
	byKind   map[Kind]*ruleSet
	settings settings
	roots    rootSet
	env      Env
	mode     Mode
	yolo     bool
	// granted are the "always" answers: they are in the pool as well.
	granted []*rule
	// tools are names of tools beyond the catalogue.
	tools   []string
	preset  string
	layers  []LayerRef
	sha256  string
	tests   []Test
	notices []string
	parsers *sync.Pool
	// closesNetwork are the files behind ClosesNetwork.
	closesNetwork []string
}

// ruleSet holds the rules that can match one kind of action.
type ruleSet struct{ deny, ask, allow []*rule }

func (p *Policy) set(kind Kind) *ruleSet {
	if s := p.byKind[kind]; s != nil {
		return s
	}
	return &ruleSet{}
}

// Decide judges a call.
func (p *Policy) Decide(c Call) Verdict {
	if c.Agent == "" {
		c.Agent = "/root"
	}
	if c.Mode == "" {
		c.Mode = p.mode
	}
	c.Tool = canonicalTool(c.Tool)
	var parts []Part
	if part, ok := p.toolPart(&c); ok {
		if parts = append(parts, part); part.Effect == Deny {
			return p.verdict(parts)
		}
	}
	if len(c.Actions) == 0 {
		if len(parts) == 0 {
			parts = []Part{{Action: Tool(c.Tool, c.Args), Effect: Allow, DecidedBy: byDefault}}
		}
		return p.verdict(parts)
	}
	for i := range c.Actions {
		parts = p.judge(parts, &c, &c.Actions[i])
	}
	if len(parts) == 0 {
		// A script without any command, such as a comment, does nothing.
		parts = []Part{{Action: c.Actions[0], Effect: Allow, DecidedBy: byDefault}}
	}
	return p.verdict(parts)
}

// toolPart judges the call by its tool's name and arguments, whatever actions
// it declares; ok is false if no rule stops it.
func (p *Policy) toolPart(c *Call) (part Part, ok bool) {
	rules := p.set(KindTool)
	if len(rules.deny)+len(rules.ask) == 0 {
		return Part{}, false
	}
	a := Tool(c.Tool, c.Args)
	s := subject{call: c, action: &a}
	for _, list := range [2][]*rule{rules.deny, rules.ask} {
		if r := firstMatch(p, list, &s); r != nil {
			part = p.rulePart(a, r)
			p.settle(&part, &s)
			return part, true
		}
	}
	return Part{}, false
}

// Denied tells whether the tool is refused whatever its arguments and whoever
// calls it. Such a tool is not offered to the model.
func (p *Policy) Denied(tool string) bool {
	tool = canonicalTool(tool)
	for _, r := range p.set(KindTool).deny {
		if (r.mode == "" || r.mode == p.mode) && len(r.except) == 0 && len(r.args) == 0 && len(r.agent) == 0 && anyPattern(r.tool, tool) {
			return true
		}
	}
	return false
}

// Default returns what happens to an action that no rule decides.
func (p *Policy) Default() Effect { return p.settings.defaultEffect }

// OnAsk returns what becomes of a question if the deciding rule does not say.
func (p *Policy) OnAsk() OnAsk {
	if p.settings.onAsk == "" {
		return AskDeny
	}
	return p.settings.onAsk
}

// OnDeny returns whether a refusal counts if the deciding rule does not say.
func (p *Policy) OnDeny() OnDeny {
	if p.settings.onDeny == "" {
		return DenyReport
	}
	return p.settings.onDeny
}

// OnSandboxRefusal returns whether something that the sandbox seems to have
// refused inside an allowed command counts.
func (p *Policy) OnSandboxRefusal() OnDeny {
	if p.settings.onSandboxRefusal == "" {
		return DenyContinue
	}
	return p.settings.onSandboxRefusal
}

// MaxDenials returns how many refusals end a run; 0 means not set.
func (p *Policy) MaxDenials() int { return p.settings.maxDenials }

// Approval returns the approval policy that decides unmatched commands and
// patches: untrusted, on-failure, on-request, never, granular, or empty.
func (p *Policy) Approval() string { return p.settings.approval }

// Granular returns which kinds of questions may be asked; ok is false if the
// approval policy is not granular.
func (p *Policy) Granular() (g Granular, ok bool) {
	return p.settings.granular, p.settings.approval == approvalGranular
}

// Mode returns what rules with a mode are compared with.
func (p *Policy) Mode() Mode { return p.mode }

// Network tells whether commands have the network.
func (p *Policy) Network() bool { return p.settings.network == Allow }

// ClosesNetwork returns the files that say network: deny, presets aside.
func (p *Policy) ClosesNetwork() []string { return append([]string(nil), p.closesNetwork...) }

// AddDirs returns the absolute folders that the policy adds to the writable
// roots.
func (p *Policy) AddDirs() []string { return append([]string(nil), p.settings.addDirs...) }

// DenyRead returns the globs of files that nobody may read: absolute ones, or
// relative to the workspace.
func (p *Policy) DenyRead() []string {
	var out []string
	for _, d := range p.settings.denyRead {
		out = append(out, d.glob.text)
	}
	return out
}

// Unprotected returns the absolute protected folders whose protection a rule
// lifts by naming them.
func (p *Policy) Unprotected() []string { return append([]string(nil), p.roots.lifted...) }

// SHA256 returns the hash of everything the pool was made of.
func (p *Policy) SHA256() string { return p.sha256 }

// Layers returns the sources of the pool, the strongest first.
func (p *Policy) Layers() []LayerRef { return append([]LayerRef(nil), p.layers...) }

// PresetName returns the preset in force, or an empty string.
func (p *Policy) PresetName() string { return p.preset }

// Tests returns the cases written in the files of the pool.
func (p *Policy) Tests() []Test { return append([]Test(nil), p.tests...) }

// Notices returns what was left out of the pool and why, one sentence each.
func (p *Policy) Notices() []string { return append([]string(nil), p.notices...) }

func (p *Policy) parser() *syntax.Parser {
	if parser, ok := p.parsers.Get().(*syntax.Parser); ok {
		return parser
	}
	return syntax.NewParser(syntax.Variant(syntax.LangBash))
}
