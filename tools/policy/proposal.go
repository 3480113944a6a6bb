package policy

import (
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
)

// Proposal is a small rule that would allow what was asked or refused.
type Proposal struct {
	// ID is the id of the rule. The same rule always has the same one.
	ID string `json:"id"`
	// Title says what the rule allows, for a person.
	Title string `json:"title,omitempty"`
	// Rule is the rule as it stands in a policy file.
	Rule Rule `json:"rule"`
	// MaxScope is the longest life that an answer with it may have; empty is
	// no limit.
	MaxScope string `json:"max_scope,omitempty"`
	// Wide says that it allows much more than what was asked.
	Wide bool `json:"wide,omitempty"`
	// CoversCall says that it alone answers every question of the call.
	CoversCall bool `json:"covers_call,omitempty"`
	// Wish says that the model has asked for it: it counts only in an answer that
	// names it.
	Wish bool `json:"wish,omitempty"`
	// CorrelationID is that of the request that was answered with it.
	CorrelationID string `json:"correlation_id,omitempty"`

	rule *rule
}

// maxProposals bounds how many rules are proposed for one call, and maxTried
// how many are tried: each is judged with the whole call.
const (
	maxProposals = 8
	maxTried     = 48
)

// ParseProposal reads a rule that an answer brings, as strictly as the loader
// reads one of a file. Its effect can only be allow, and may be left out like
// its id. A rule that would open the network or leave the sandbox is refused:
// an answer says that something may run, not with which rights.
func (p *Policy) ParseProposal(data json.RawMessage) (Proposal, error) {
	var text Rule
	if err := json.Unmarshal(data, &text); err != nil || text == nil {
		return Proposal{}, errors.New("read rule: it is no JSON object")
	}
	if err := uniqueKeys(data); err != nil {
		return Proposal{}, err
	}
	for key, absent := range map[string]any{"effect": string(Allow), "id": text.name()} {
		if _, ok := text[key]; !ok {
			text[key] = absent
		}
	}
	r, err := text.compile(p)
	switch {
	case err != nil:
		return Proposal{}, err
	case r.effect != Allow:
		return Proposal{}, fmt.Errorf("read rule: an answer can only allow, and its effect is %q", r.effect)
	case r.rights != (rights{}):
		return Proposal{}, errors.New("read rule: an answer cannot set network, sandbox or timeout")
	}
	return Proposal{
		ID: r.id, Title: r.block.String(), Rule: text, MaxScope: r.maxScope, Wide: r.broad() != "", rule: r,
	}, nil
}

// uniqueKeys refuses a key of a rule that is given twice: two readers could
// take it for two different rules.
func uniqueKeys(data []byte) error {
	n, err := jsonNode(data)
	if err != nil {
		return fmt.Errorf("read rule: %w", err)
	}
	return uniqueIn(n)
}

// Propose returns the smallest rules that would answer the questions of a
// verdict, the narrowest first. It proposes nothing against a refusal, nothing
// where a rule wants every answer to hold once only, and nothing that an answer
// would not change: each rule was tried.
func (p *Policy) Propose(c Call, v Verdict) []Proposal {
	if v.Effect != Ask || v.MaxScope == ScopeOnce {
		return nil
	}
	asked := partsWith(v.Parts, Ask)
	var whole []draft
	for i := range c.Actions {
		if d := wholeDraft(&c.Actions[i], len(asked) == 1); len(d.rule) > 0 && len(whole) < maxProposals/2 {
			whole = append(whole, d)
		}
	}
	var out []Proposal
	tries := 0
	try := func(d draft, most int) {
		if len(out) >= most || tries >= maxTried {
			return
		}
		tries++
		if pr, ok := p.tried(d, c, v, asked); ok && !known(out, pr) {
			out = append(out, pr)
		}
	}
	try(p.together(asked), maxProposals)
	for i := 0; i < len(asked) && tries < maxTried-len(whole); i++ {
		for _, d := range p.drafts(asked[i], absolute) {
			try(d, maxProposals-len(whole))
		}
	}
	for _, d := range whole {
		try(d, maxProposals)
	}
	return out
}

// ProposePrefix returns the rule that a model would like to have when it asks to
// run outside the sandbox: one that lets every command that begins with the words
// do that. It is none unless no rule asks or refuses, the rule alone answers
// every question of the call, and it is no way round the policy: not a program
// that runs what it is told, and not git alone.
func (p *Policy) ProposePrefix(c Call, words []string) (Proposal, bool) {
	v := p.Decide(c)
	if v.Effect == Deny || v.MaxScope == ScopeOnce || len(words) == 0 || len(words) == 1 && path.Base(words[0]) == "git" {
		return Proposal{}, false
	}
	for i := range v.Parts {
		if v.Parts[i].rule != nil && v.Parts[i].Effect != Allow {
			return Proposal{}, false
		}
	}
	pr, ok := p.complete(draft{
		rule:  Rule{"argv": argvGlobs(words), "sandbox": "off"},
		title: "commands that begin with " + shorten(strings.Join(words, " ")) + ", outside the sandbox",
	})
	if !ok || pr.Wide {
		return Proposal{}, false
	}
	pr.MaxScope, pr.Wish = shorterScope(pr.MaxScope, v.MaxScope), true
	grants := &Grants{Parent: c.Grants}
	if err := grants.Add(pr, ScopeSession); err != nil {
		return Proposal{}, false
	}
	c.Grants = grants
	after := p.Decide(c)
	pr.CoversCall = after.Effect == Allow && after.Unsandboxed
	return pr, pr.CoversCall
}

// tried completes a draft if it is a rule that answers a question.
func (p *Policy) tried(d draft, c Call, v Verdict, asked []Part) (Proposal, bool) {
	pr, ok := p.complete(d)
	if !ok {
		return Proposal{}, false
	}
	pr.MaxScope = shorterScope(pr.MaxScope, v.MaxScope)
	grants := &Grants{Parent: c.Grants}
	if err := grants.Add(pr, ScopeSession); err != nil {
		return Proposal{}, false
	}
	c.Grants = grants
	after := p.Decide(c)
	pr.CoversCall = after.Effect == Allow
	return pr, after.Effect != Deny && len(partsWith(after.Parts, Ask)) < len(asked)
}

// complete compiles a draft; ok is false if it is no rule.
func (p *Policy) complete(d draft) (pr Proposal, ok bool) {
	if len(d.rule) == 0 {
		return Proposal{}, false
	}
	d.rule["effect"] = string(Allow)
	d.rule["id"] = d.rule.name()
	r, err := d.rule.compile(p)
	if err != nil {
		return Proposal{}, false
	}
	return Proposal{
		ID: r.id, Title: d.title, Rule: d.rule, MaxScope: d.maxScope, Wide: d.wide || r.broad() != "", rule: r,
	}, true
}

func known(list []Proposal, pr Proposal) bool {
	for _, other := range list {
		if other.Rule.same(pr.Rule) {
			return true
		}
	}
	return false
}

func partsWith(parts []Part, effect Effect) []Part {
	var out []Part
	for i := range parts {
		if parts[i].Effect == effect {
			out = append(out, parts[i])
		}
	}
	return out
}

// Obstacle is something that no new allow rule changes.
type Obstacle struct {
	// Action says what stopped, for a person.
	Action string `json:"action"`
	// DecidedBy is policy, default or sandbox; RuleID, Layer, File and Line
	// name the rule in the way, if it is one.
	DecidedBy string `json:"decided_by"`
	RuleID    string `json:"rule_id,omitempty"`
	Layer     string `json:"layer,omitempty"`
	File      string `json:"file,omitempty"`
	Line      int    `json:"line,omitempty"`
	Reason    string `json:"reason,omitempty"`
}

// ProposeDenied returns the smallest useful rules that would have allowed what
// a verdict refuses or asks, written in a policy file: one for each part that
// stopped, and it was tried there (of a call with very many parts, the first
// ones are). What a rule refuses or asks, or the sandbox
// holds, is returned as an obstacle: a person has to decide about it.
func (p *Policy) ProposeDenied(c Call, v Verdict) ([]Proposal, []Obstacle) {
	var out []Proposal
	var stuck []Obstacle
	tries := 0
	seen := map[string]bool{}
	for i := range v.Parts {
		part := &v.Parts[i]
		key := fmt.Sprintf("%s %q %q %q %q", part.Action.Kind, part.Action.Argv, part.Action.Path, part.Action.Host, part.Action.Server+"/"+part.Action.Tool)
		if part.Effect == Allow || seen[key] {
			continue
		}
		seen[key] = true
		pr, ok := p.helps(part, c, v.Parts, &tries)
		switch {
		case ok && !known(out, pr):
			out = append(out, pr)
		case !ok:
			stuck = append(stuck, Obstacle{
				Action: describe(&part.Action), DecidedBy: part.DecidedBy, RuleID: part.RuleID,
				Layer: part.Layer, File: part.File, Line: part.Line, Reason: part.Reason,
			})
		}
	}
	for i := range out {
		c.Grants = nil
		out[i].CoversCall = p.withRules(out[i].rule).Decide(c).Effect == Allow
	}
	return out, stuck
}

// helps returns the best rule that would allow a part if it stood in a file.
func (p *Policy) helps(part *Part, c Call, before []Part, tries *int) (Proposal, bool) {
	if part.rule != nil || part.DecidedBy == bySandbox {
		return Proposal{}, false
	}
	drafts := p.drafts(*part, relative)
	for _, wide := range [2]bool{false, true} {
		for i := len(drafts) - 1; i >= 0; i-- {
			pr, ok := p.complete(drafts[i])
			if !ok || pr.Wide != wide || *tries >= maxTried {
				continue
			}
			*tries++
			after := p.withRules(pr.rule).Decide(c)
			if stopped(after.Parts, part) < stopped(before, part) {
				return pr, true
			}
		}
	}
	return Proposal{}, false
}

// stopped counts the parts about the same action that are not allowed.
func stopped(parts []Part, like *Part) int {
	n := 0
	for i := range parts {
		if parts[i].Effect != Allow && sameAction(&parts[i].Action, &like.Action) {
			n++
		}
	}
	return n
}

func sameAction(a, b *Action) bool {
	return a.Kind == b.Kind && slices.Equal(a.Argv, b.Argv) && a.Path == b.Path &&
		a.Host == b.Host && a.Server == b.Server && a.Tool == b.Tool
}

// withRules returns the policy with more rules in its pool.
func (p *Policy) withRules(rules ...*rule) *Policy {
	out := *p
	out.byKind = make(map[Kind]*ruleSet, len(p.byKind)+1)
	for kind, set := range p.byKind {
		same := *set
		out.byKind[kind] = &same
	}
	for _, r := range rules {
		set := out.byKind[r.kind]
		if set == nil {
			set = &ruleSet{}
			out.byKind[r.kind] = set
		}
		set.allow = append(set.allow[:len(set.allow):len(set.allow)], r)
	}
	return &out
}
