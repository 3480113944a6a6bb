package policy

import (
	"time"

	"github.com/bmatcuk/doublestar/v4"
)

// rule is one rule of the pool.
type rule struct {
	block
	id, reason string
	effect     Effect
	except     []block
	onDeny     OnDeny
	onAsk      OnAsk
	maxScope   string
	rights     rights
	file       string
	layer      string
	line       int
}

// rights are what a rule sets for the commands that it lets run.
type rights struct {
	// network opens the network, free leaves the sandbox.
	network, free bool
	// timeout ends the command; 0 is none.
	timeout time.Duration
}

// access is the set of ways in which a path rule applies.
type access uint8

const (
	accessRead access = 1 << iota
	accessWrite
	accessDelete
	accessAll = accessRead | accessWrite | accessDelete
)

func accessOf(kind Kind) access {
	switch kind {
	case KindRead:
		return accessRead
	case KindWrite:
		return accessWrite
	case KindDelete:
		return accessDelete
	}
	return 0
}

// block is a set of conditions that an action meets together.
type block struct {
	// kind is the kind of action that the block is about. A path block has
	// KindRead and looks at access; an empty kind (only in except) fits all.
	kind      Kind
	tool      []pattern
	argv      [][]pattern
	argvAny   []pattern
	argvNone  []pattern
	argvExact bool
	path      []pathGlob
	access    access
	args      []argument
	agent     []string
	mode      Mode
	host      []hostPattern
	server    []pattern
	mcpTool   []pattern
	hints     hints
}

// argument is a condition on one value of the call's arguments.
type argument struct {
	pointer []string
	globs   []pattern
}

// subject is what a rule is tried on.
type subject struct {
	call   *Call
	action *Action
	// cmd is the parsed form of an exec action.
	cmd *command
	// possible says that the command cannot be fully read, and that anything
	// it could be counts.
	possible bool
}

// matches tells whether the rule is about the subject. Allow rules must be
// certain; deny and ask rules need a suspicion only. Exceptions are the other
// way round, because they widen a deny and narrow an allow.
func (r *rule) matches(p *Policy, s *subject) bool {
	suspicious := r.effect != Allow
	if !r.block.matches(p, s, suspicious) {
		return false
	}
	for i := range r.except {
		if r.except[i].matches(p, s, !suspicious) {
			return false
		}
	}
	return true
}

func (b *block) matches(p *Policy, s *subject, suspicious bool) bool {
	if b.kind != "" && b.kind != ruleKind(s.action.Kind) {
		return false
	}
	if b.mode != "" && b.mode != s.call.Mode {
		return false
	}
	if len(b.agent) > 0 && !matchAgent(b.agent, s.call.Agent) {
		return false
	}
	if !b.matchesAction(p, s, suspicious) {
		return false
	}
	if len(b.args) == 0 {
		return true
	}
	raw := s.action.Args
	if raw == nil {
		raw = s.call.Args
	}
	for _, a := range b.args {
		if !a.matches(raw, suspicious) {
			return false
		}
	}
	return true
}

func (b *block) matchesAction(p *Policy, s *subject, suspicious bool) bool {
	a := s.action
	switch ruleKind(a.Kind) {
	case KindTool:
		return len(b.tool) == 0 || anyPattern(b.tool, a.Tool)
	case KindExec:
		if !b.aboutCommands() {
			return true
		}
		if s.cmd == nil {
			return false
		}
		if suspicious && s.possible {
			return b.possible(p, s.cmd)
		}
		if suspicious {
			return b.suspects(p, s.cmd)
		}
		return b.covers(p, s.cmd)
	case KindRead:
		if b.access != 0 && b.access&accessOf(a.Kind) == 0 {
			return false
		}
		return len(b.path) == 0 || p.roots.matchPath(b.path, a, suspicious)
	case KindHost:
		return len(b.host) == 0 || matchHost(b.host, a.Host)
	case KindMCP:
		return (len(b.server) == 0 || anyPattern(b.server, a.Server)) &&
			(len(b.mcpTool) == 0 || anyPattern(b.mcpTool, a.Tool)) &&
			(b.hints == nil || b.hints.match(a, suspicious))
	}
	return false
}

func (b *block) aboutCommands() bool {
	return len(b.argv) > 0 || len(b.argvAny) > 0 || len(b.argvNone) > 0
}

// ruleKind folds the three ways to touch a path into one.
func ruleKind(kind Kind) Kind {
	if kind == KindWrite || kind == KindDelete {
		return KindRead
	}
	return kind
}

func matchAgent(globs []string, agent string) bool {
	for _, g := range globs {
		if ok, err := doublestar.Match(g, agent); ok && err == nil {
			return true
		}
	}
	return false
}
