package policy

import (
	"errors"
	"fmt"
	"slices"
	"sync"
)

// The lives of an answer, from the shortest to the longest.
const (
	// ScopeOnce is the call that was asked about.
	ScopeOnce = "once"
	// ScopeSession is until the session ends.
	ScopeSession = "session"
	// ScopeAlways is until somebody takes the rule out of the user's
	// generated policy file.
	ScopeAlways = "always"
)

var scopes = []string{ScopeOnce, ScopeSession, ScopeAlways}

// shorterScope returns the shorter of two lives; an empty one is no limit.
func shorterScope(a, b string) string {
	switch {
	case a == "":
		return b
	case b == "" || slices.Index(scopes, a) <= slices.Index(scopes, b):
		return a
	}
	return b
}

// Grants are the answers that hold for a session, each kept as the rule that
// was approved. They turn questions into allows and never change a refusal. The
// zero value is empty; it may be used by many goroutines.
type Grants struct {
	// Parent are the grants of the session that started this one, which hold
	// here too. It must not change after the first use.
	Parent *Grants

	mu   sync.RWMutex
	list []granted
}

// granted is one answer.
type granted struct {
	proposal Proposal
	scope    string
}

// Grant is an answer that holds.
type Grant struct {
	ID    string `json:"id"`
	Scope string `json:"scope"`
	// Rule is the rule as it stands in a policy file.
	Rule Rule `json:"rule"`
	// CorrelationID is that of the request that was answered.
	CorrelationID string `json:"correlation_id,omitempty"`
	// Inherited says that a session above holds it.
	Inherited bool `json:"inherited,omitempty"`
}

// Add keeps an answer of the scope session or always. A rule that is held
// already is not added again. It refuses a scope beyond the proposal's
// MaxScope, and a proposal that neither Propose nor ParseProposal made.
func (g *Grants) Add(pr Proposal, scope string) error {
	switch {
	case scope != ScopeSession && scope != ScopeAlways:
		return fmt.Errorf("add grant: the scope %q holds for no other call", scope)
	case pr.rule == nil:
		return errors.New("add grant: the rule was not parsed")
	case shorterScope(scope, pr.MaxScope) != scope:
		return fmt.Errorf("add grant: the scope %q is longer than %q", scope, pr.MaxScope)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	for i, held := range g.list {
		if held.proposal.Rule.same(pr.Rule) {
			if shorterScope(held.scope, scope) == held.scope {
				g.list[i].scope = scope
			}
			return nil
		}
	}
	g.list = append(g.list, granted{proposal: pr, scope: scope})
	return nil
}

// Rules returns what is held, the session's own answers first.
func (g *Grants) Rules() []Grant {
	var out []Grant
	for at := g; at != nil; at = at.Parent {
		at.mu.RLock()
		for _, h := range at.list {
			out = append(out, Grant{
				ID: h.proposal.ID, Scope: h.scope, Rule: h.proposal.Rule,
				CorrelationID: h.proposal.CorrelationID, Inherited: at != g,
			})
		}
		at.mu.RUnlock()
	}
	return out
}

// Len returns how many answers are held, those of sessions above included.
func (g *Grants) Len() int {
	n := 0
	for at := g; at != nil; at = at.Parent {
		at.mu.RLock()
		n += len(at.list)
		at.mu.RUnlock()
	}
	return n
}

// find returns the first held rule that fits, or nil.
func (g *Grants) find(fits func(*rule) bool) *rule {
	for at := g; at != nil; at = at.Parent {
		if r := at.own(fits); r != nil {
			return r
		}
	}
	return nil
}

func (g *Grants) own(fits func(*rule) bool) *rule {
	g.mu.RLock()
	defer g.mu.RUnlock()
	for i := range g.list {
		if r := g.list[i].proposal.rule; fits(r) {
			return r
		}
	}
	return nil
}

// answer returns an earlier answer that fits a question, or nil. The rule that
// asks may have wanted its answers to be short-lived.
func (p *Policy) answer(part *Part, c *Call, fits func(*rule) bool) *rule {
	limit := ""
	if part.rule != nil {
		limit = part.rule.maxScope
	}
	if limit == ScopeOnce {
		return nil
	}
	if r := c.Grants.find(fits); r != nil || limit == ScopeSession {
		return r
	}
	for _, r := range p.granted {
		if fits(r) {
			return r
		}
	}
	return nil
}

func (p *Policy) noAnswers(c *Call) bool { return c.Grants == nil && len(p.granted) == 0 }

// allowBy makes a part one that an earlier answer allows. What the rule that
// asked sets for its commands stays.
func (part *Part) allowBy(r *rule) {
	part.Effect, part.DecidedBy, part.Reason, part.basis = Allow, byGrant, "", basisGrant
	part.RuleID, part.Layer, part.File, part.Line = r.id, r.layer, r.file, r.line
}

// grant allows what an earlier answer covers for certain.
func (p *Policy) grant(part *Part, s *subject) {
	if fits := p.covered(s); fits != nil {
		if r := p.answer(part, s.call, fits); r != nil {
			part.allowBy(r)
		}
	}
}

// frees tells whether an earlier answer for certain lets an allowed command
// leave the sandbox.
func (p *Policy) frees(part *Part, s *subject) bool {
	fits := p.covered(s)
	return fits != nil && p.answer(part, s.call, func(r *rule) bool { return r.rights.free && fits(r) }) != nil
}

// covered returns what tells whether a rule of an answer covers an action for
// certain; nil if none can.
func (p *Policy) covered(s *subject) func(*rule) bool {
	if p.noAnswers(s.call) || s.action.Kind == KindExec && (s.cmd == nil || s.cmd.opaque != "") {
		return nil
	}
	hidden := s.cmd != nil && (s.cmd.wild != "" || s.cmd.alias || s.cmd.renamed)
	return func(r *rule) bool {
		return r.kind == ruleKind(s.action.Kind) && (!hidden || r.spelled()) && r.matches(p, s)
	}
}

// grantWhole allows what an answer to exactly this vector covers: the person
// has read the whole of it. It holds in the workspace itself, because a rule
// does not say in which folder the vector was to run.
func (p *Policy) grantWhole(parts []Part, c *Call, a *Action) {
	if p.noAnswers(c) || !slices.Contains(p.roots.workspace, clean(a.Dir)) {
		return
	}
	s := subject{call: c, action: a}
	fits := func(r *rule) bool {
		return r.kind == KindExec && len(r.except)+len(r.args) == 0 && r.spellsWhole(a.Argv) && r.heeds(&s)
	}
	for i := range parts {
		if parts[i].Effect != Ask {
			continue
		}
		if r := p.answer(&parts[i], c, fits); r != nil {
			parts[i].allowBy(r)
		}
	}
}

// spelled tells whether the rule spells out at least two words of a command.
func (r *rule) spelled() bool {
	for _, alternatives := range r.argv {
		for _, alt := range alternatives {
			if _, ok := unescapeWord(alt.text); !ok && !alt.literal {
				return false
			}
		}
	}
	return len(r.argv) > 1
}

// spellsWhole tells whether the block is exactly this vector, word by word.
func (b *block) spellsWhole(argv []string) bool {
	if !b.argvExact || len(b.argv) != len(argv) || len(b.argvAny)+len(b.argvNone) > 0 {
		return false
	}
	for i, alternatives := range b.argv {
		if len(alternatives) != 1 {
			return false
		}
		text := alternatives[0].text
		if !alternatives[0].literal {
			plain, ok := unescapeWord(text)
			if !ok {
				return false
			}
			text = plain
		}
		if text != argv[i] {
			return false
		}
	}
	return true
}

// heeds tells whether the block is about the caller, whatever the action.
func (b *block) heeds(s *subject) bool {
	return (b.mode == "" || b.mode == s.call.Mode) && (len(b.agent) == 0 || matchAgent(b.agent, s.call.Agent))
}
