package policy

import "time"

// verdict returns the strictest of the parts.
func (p *Policy) verdict(parts []Part) Verdict {
	best := 0
	for i := range parts {
		p.silence(&parts[i])
		if parts[i].Effect.stricter(parts[best].Effect) {
			best = i
		}
	}
	d := parts[best]
	v := Verdict{
		Effect: d.Effect, DecidedBy: d.DecidedBy, RuleID: d.RuleID, Layer: d.Layer,
		Reason: d.Reason, File: d.File, Line: d.Line, Action: d.Action, Parts: parts,
		OnAsk: p.onAskOf(d.rule), OnDeny: p.onDenyOf(d.rule),
	}
	v.Network, v.Unsandboxed, v.Timeout = rightsOf(parts)
	// A refusal that was expected must not hide one that counts.
	for i := range parts {
		if parts[i].Effect == Allow {
			continue
		}
		if r := parts[i].rule; r != nil && parts[i].Effect == Ask {
			v.MaxScope = shorterScope(v.MaxScope, r.maxScope)
		}
		if w := p.onDenyOf(parts[i].rule); w.rank() > v.OnDeny.rank() {
			v.OnDeny = w
		}
		if w := p.onAskOf(parts[i].rule); parts[i].Effect == v.Effect && w.rank() > v.OnAsk.rank() {
			v.OnAsk = w
		}
	}
	return v
}

// onDenyOf is the weight of a refusal by a rule, or by none.
func (p *Policy) onDenyOf(r *rule) OnDeny {
	if r != nil && r.onDeny != "" {
		return r.onDeny
	}
	return p.OnDeny()
}

// onAskOf is what becomes of the question of a rule, or of none.
func (p *Policy) onAskOf(r *rule) OnAsk {
	if r != nil && r.onAsk != "" {
		return r.onAsk
	}
	return p.OnAsk()
}

// inert are builtins of shells for which rights mean nothing: they open no
// file and no connection, so that "cd sub && npm ci" has those of npm ci.
var inert = set("cd", ":", "true", "false", "pwd", "echo")

// rightsOf joins what the rules set for the commands of a call.
func rightsOf(parts []Part) (network, unsandboxed bool, timeout time.Duration) {
	network, unsandboxed = true, true
	commands := 0
	for i := range parts {
		if a := &parts[i].Action; a.Kind != KindExec || parts[i].Effect == Allow && len(a.Argv) > 0 && inert[a.Argv[0]] {
			continue
		}
		commands++
		if !parts[i].certain {
			network, unsandboxed = false, unsandboxed && parts[i].freed
			continue
		}
		r := &parts[i].rule.rights
		network, unsandboxed = network && r.network, unsandboxed && (r.free || parts[i].freed)
		if r.timeout > 0 && (timeout == 0 || r.timeout < timeout) {
			timeout = r.timeout
		}
	}
	return network && commands > 0, unsandboxed && commands > 0, timeout
}
