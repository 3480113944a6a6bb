package policy

import "time"

// basis is what a part rests on.
type basis uint8

// The bases of a decision.
const (
	basisNone basis = iota
	basisRule
	basisDefault
	basisOpaque
	basisApproval
	basisSafe
	basisPrivate
	basisWorkspace
	basisSandbox
	basisGrant
)

// String names the basis.
func (b basis) String() string {
	switch b {
	case basisRule:
		return "rule"
	case basisDefault:
		return "default"
	case basisOpaque:
		return "shell.opaque"
	case basisApproval:
		return "approval"
	case basisSafe:
		return "known_safe"
	case basisPrivate:
		return "private_folder"
	case basisWorkspace:
		return "workspace_read"
	case basisSandbox:
		return "sandbox"
	case basisGrant:
		return "grant"
	}
	return "no_effect"
}

// Explanation is a verdict with all that led to it.
type Explanation struct {
	Effect    Effect `json:"effect"`
	DecidedBy string `json:"decided_by"`
	RuleID    string `json:"rule_id,omitempty"`
	Layer     string `json:"layer,omitempty"`
	File      string `json:"file,omitempty"`
	Line      int    `json:"line,omitempty"`
	Reason    string `json:"reason,omitempty"`
	// Deciding is the index of the action that decided.
	Deciding int `json:"deciding"`
	// OnAsk, MaxScope and OnDeny say what becomes of a question or a refusal.
	OnAsk    OnAsk  `json:"on_ask,omitempty"`
	MaxScope string `json:"max_scope,omitempty"`
	OnDeny   OnDeny `json:"on_deny,omitempty"`
	// Network, Unsandboxed and TimeoutMS are the rights of the commands.
	Network     bool  `json:"network,omitempty"`
	Unsandboxed bool  `json:"unsandboxed,omitempty"`
	TimeoutMS   int64 `json:"timeout_ms,omitempty"`
	// Default, Approval and Opaque are what decides where no rule does.
	Default  Effect            `json:"default"`
	Approval string            `json:"approval,omitempty"`
	Opaque   Effect            `json:"shell_opaque"`
	Mode     Mode              `json:"mode"`
	Actions  []ExplainedAction `json:"actions"`
}

// ExplainedAction is one judged action.
type ExplainedAction struct {
	Kind Kind `json:"kind"`
	// Action says what would be done, for a person.
	Action    string   `json:"action"`
	Argv      []string `json:"argv,omitempty"`
	Path      string   `json:"path,omitempty"`
	Real      string   `json:"real,omitempty"`
	Effect    Effect   `json:"effect"`
	DecidedBy string   `json:"decided_by"`
	// Basis says what the effect rests on: rule, grant, default, shell.opaque,
	// approval (the heuristic of the approval policy), known_safe, sandbox,
	// private_folder, workspace_read, or no_effect.
	Basis  string `json:"basis"`
	RuleID string `json:"rule_id,omitempty"`
	Layer  string `json:"layer,omitempty"`
	File   string `json:"file,omitempty"`
	Line   int    `json:"line,omitempty"`
	Reason string `json:"reason,omitempty"`
	// Rules are all rules that the action meets, the strictest first.
	Rules []RuleMatch `json:"rules"`
}

// RuleMatch is a rule that an action meets.
type RuleMatch struct {
	RuleRef
	// Decides says that it is the one that decided.
	Decides bool `json:"decides,omitempty"`
	// Possible says that the command cannot be fully read, and that the rule
	// could be about what it becomes.
	Possible bool `json:"possible,omitempty"`
}

// Explain judges a call and returns all that led to the verdict.
func (p *Policy) Explain(c Call) Explanation {
	c.tracing = true
	v := p.Decide(c)
	e := Explanation{
		Effect: v.Effect, DecidedBy: v.DecidedBy, RuleID: v.RuleID, Layer: v.Layer, File: v.File, Line: v.Line, Reason: v.Reason,
		Network: v.Network, Unsandboxed: v.Unsandboxed, TimeoutMS: int64(v.Timeout / time.Millisecond),
		Default: p.settings.defaultEffect, Approval: p.settings.approval, Opaque: p.settings.opaque, Mode: c.Mode,
		Actions: make([]ExplainedAction, 0, len(v.Parts)),
	}
	if e.Mode == "" {
		e.Mode = p.mode
	}
	switch v.Effect {
	case Ask:
		e.OnAsk, e.MaxScope, e.OnDeny = v.OnAsk, v.MaxScope, v.OnDeny
	case Deny:
		e.OnDeny = v.OnDeny
	}
	for i := range v.Parts {
		if v.Parts[i].Effect.stricter(v.Parts[e.Deciding].Effect) {
			e.Deciding = i
		}
		e.Actions = append(e.Actions, explained(&v.Parts[i]))
	}
	return e
}

func explained(part *Part) ExplainedAction {
	a := &part.Action
	out := ExplainedAction{
		Kind: a.Kind, Action: describe(a), Argv: a.Argv, Path: a.Path, Real: a.Real,
		Effect: part.Effect, DecidedBy: part.DecidedBy, Basis: part.basis.String(),
		RuleID: part.RuleID, Layer: part.Layer, File: part.File, Line: part.Line, Reason: part.Reason,
		Rules: []RuleMatch{},
	}
	if out.Real == out.Path {
		out.Real = ""
	}
	if part.met != nil {
		for _, m := range *part.met {
			// A rule that asked does not decide where an answer does.
			m.Decides = m.Decides && part.DecidedBy != byGrant
			out.Rules = append(out.Rules, m)
		}
	}
	return out
}

// met returns the rules that an action meets, the strictest first.
func (p *Policy) met(s *subject, part *Part) []RuleMatch {
	var out []RuleMatch
	if s.action.Kind == KindTool && s.action.Tool != canonicalTool(s.action.Tool) {
		a := *s.action
		a.Tool = canonicalTool(a.Tool)
		s = &subject{call: s.call, action: &a}
	}
	maybe := *s
	maybe.possible = true
	rules := p.set(ruleKind(s.action.Kind))
	for _, list := range [3][]*rule{rules.deny, rules.ask, rules.allow} {
		for _, r := range list {
			m := RuleMatch{RuleRef: r.ref(), Decides: r == part.rule}
			if !r.matches(p, s) {
				m.Possible = r.effect != Allow && s.cmd != nil && s.cmd.unread() && r.matches(p, &maybe)
				if !m.Possible && !m.Decides {
					continue
				}
			}
			out = append(out, m)
		}
	}
	return out
}
