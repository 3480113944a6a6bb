package policy

import "strings"

// rulePart returns the part that a rule decides.
func (p *Policy) rulePart(a Action, r *rule) Part {
	reason := r.reason
	if reason == "" && r.effect != Allow {
		reason = `rule "` + r.id + `" says ` + string(r.effect)
	}
	return p.finish(Part{Action: a, Effect: r.effect, DecidedBy: byPolicy, RuleID: r.id, Layer: r.layer,
		File: r.file, Line: r.line, Reason: reason, rule: r, basis: basisRule})
}

// defaultPart returns a part that no rule decides.
func (p *Policy) defaultPart(a Action, effect Effect, why string, on basis) Part {
	part := Part{Action: a, Effect: effect, DecidedBy: byDefault, basis: on}
	if effect != Allow {
		part.Reason = why
	}
	return p.finish(part)
}

// finish turns what yolo overrides into an allow.
func (p *Policy) finish(part Part) Part {
	if !p.yolo || part.DecidedBy == bySandbox {
		return part
	}
	if part.Effect == Ask || part.DecidedBy == byDefault {
		part.Effect, part.DecidedBy, part.Reason = Allow, byYolo, ""
	}
	return part
}

// settle completes a part that was judged: an earlier answer turns its
// question into an allow.
func (p *Policy) settle(part *Part, s *subject) {
	if s.call.tracing {
		met := p.met(s, part)
		part.met = &met
	}
	if part.Effect == Ask {
		p.grant(part, s)
	}
	if part.Effect == Allow && s.action.Kind == KindExec {
		part.freed = p.frees(part, s)
	}
}

// judge appends the parts of one action.
func (p *Policy) judge(parts []Part, c *Call, a *Action) []Part {
	switch a.Kind {
	case KindExec:
		return p.judgeExec(parts, c, a)
	case KindRead, KindWrite, KindDelete:
		part, _ := p.judgePath(c, a, pathOrigin{})
		return append(parts, part)
	}
	s := subject{call: c, action: a}
	if a.Kind == KindTool {
		tool := *a
		tool.Tool = canonicalTool(a.Tool)
		s.action = &tool
	}
	if r := p.decidingRule(&s); r != nil {
		parts = append(parts, p.rulePart(*a, r))
	} else {
		parts = append(parts, p.defaultPart(*a, p.settings.defaultEffect, "no rule allows "+describe(a), basisDefault))
	}
	p.settle(&parts[len(parts)-1], &s)
	return parts
}

// decidingRule returns the rule that decides about the subject: a deny rule,
// else an ask rule, else an allow rule, else nil.
func (p *Policy) decidingRule(s *subject) *rule {
	rules := p.set(ruleKind(s.action.Kind))
	for _, list := range [3][]*rule{rules.deny, rules.ask, rules.allow} {
		if r := firstMatch(p, list, s); r != nil {
			return r
		}
	}
	return nil
}

func firstMatch(p *Policy, rules []*rule, s *subject) *rule {
	for _, r := range rules {
		if r.matches(p, s) {
			return r
		}
	}
	return nil
}

func describe(a *Action) string {
	switch a.Kind {
	case KindExec:
		return `"` + shorten(strings.Join(a.Argv, " ")) + `"`
	case KindRead, KindWrite, KindDelete:
		return string(a.Kind) + ` of "` + shorten(a.Path) + `"`
	case KindHost:
		return `the host "` + shorten(a.Host) + `"`
	case KindMCP:
		return `the tool "` + shorten(a.Server+"/"+a.Tool) + `"`
	}
	return `the tool "` + shorten(a.Tool) + `"`
}

// maxShown bounds what a reason quotes, in bytes.
const maxShown = 120

func shorten(s string) string {
	s = strings.ToValidUTF8(strings.Join(strings.Fields(s), " "), "�")
	if len(s) > maxShown {
		return strings.ToValidUTF8(s[:maxShown], "") + "…"
	}
	return s
}

// hasCommandRules tells whether any rule could refuse a command or ask.
func (p *Policy) hasCommandRules() bool {
	rules := p.byKind[KindExec]
	return rules != nil && (len(rules.deny) > 0 || len(rules.ask) > 0)
}

// hasRefusals tells whether any rule could refuse or ask for something that a
// script does.
func (p *Policy) hasRefusals() bool {
	paths := p.set(KindRead)
	return p.hasCommandRules() || len(paths.deny) > 0 || len(paths.ask) > 0
}

// judgeExec judges every command and path of a vector.
func (p *Policy) judgeExec(parts []Part, c *Call, a *Action) []Part {
	if len(a.Argv) == 0 {
		return append(parts, Part{Action: *a, Effect: Deny, DecidedBy: byDefault, Reason: "the command is empty"})
	}
	before := len(parts)
	parts = p.judgeUnits(parts, c, a)
	p.grantWhole(parts[before:], c, a)
	return parts
}

func (p *Policy) judgeUnits(parts []Part, c *Call, a *Action) []Part {
	units := p.analyse(a)
	for i := range units {
		u := &units[i]
		switch {
		case u.cmd != nil:
			if part, ok := p.judgeCommand(c, u); ok {
				parts = append(parts, part)
			}
		case u.action.Kind == KindHost:
			if judged := p.judge(nil, c, &u.action); !u.guess || judged[0].RuleID != "" && judged[0].Effect != Allow {
				parts = append(parts, judged...)
			}
		case u.maybe != nil:
			if part, ok := p.possiblePathPart(c, u); ok {
				parts = append(parts, part)
			}
		case u.action.Kind != "":
			part, decided := p.judgePath(c, &u.action, pathOrigin{redirect: !u.implied, implied: u.implied})
			if !u.guess || decided && part.Effect != Allow && (!u.derived || part.RuleID != "") {
				parts = append(parts, part)
			}
		case u.wild:
			if part, ok := p.wildPart(c, Action{Kind: KindExec, Dir: a.Dir, Argv: a.Argv}, u.opaque); ok {
				p.settle(&part, &subject{call: c, action: a, cmd: &command{wild: u.opaque}})
				parts = append(parts, part)
			}
		case u.unread && p.hasRefusals():
			parts = append(parts, Part{Action: *a, Effect: Deny, DecidedBy: byDefault, Reason: u.opaque, basis: basisOpaque})
		default:
			act := Action{Kind: KindExec, Dir: a.Dir, Argv: a.Argv}
			part := p.opaquePart(act, u.opaque)
			p.settle(&part, &subject{call: c, action: a})
			parts = append(parts, part)
		}
	}
	return parts
}

// opaquePart decides about something that cannot be judged by its words.
func (p *Policy) opaquePart(a Action, why string) Part {
	effect := p.settings.opaque
	if p.settings.approval == approvalUntrusted && Ask.stricter(effect) {
		effect = Ask
	}
	return p.defaultPart(a, effect, why, basisOpaque)
}

// judgeCommand judges one simple command; ok is false if nothing follows from
// it.
func (p *Policy) judgeCommand(call *Call, u *unit) (part Part, ok bool) {
	act := Action{Kind: KindExec, Dir: u.cmd.shown, Argv: texts(u.cmd.words)}
	s := subject{call: call, action: &act, cmd: u.cmd}
	if part, ok = p.commandPart(&s, u); ok {
		p.settle(&part, &s)
	}
	return part, ok
}

func (p *Policy) commandPart(s *subject, u *unit) (part Part, ok bool) {
	c, act := s.cmd, *s.action
	rules := p.set(KindExec)
	if r := firstMatch(p, rules.deny, s); r != nil {
		return p.rulePart(act, r), true
	}
	vouched := (c.wild != "" || c.alias) && !u.guess && p.vouched(s)
	if r := p.possibleRule(rules.deny, s); r != nil && !vouched {
		return p.possiblePart(act, r, c), true
	}
	asked := firstMatch(p, rules.ask, s)
	if asked == nil && !vouched {
		if r := p.possibleRule(rules.ask, s); r != nil {
			maybe := p.possiblePart(act, r, c)
			if u.guess {
				return maybe, true
			}
			// What the command certainly is may be refused whatever else it is.
			if part, ok = p.unaskedPart(s, u); !ok || !part.Effect.stricter(maybe.Effect) {
				part = maybe
			}
			return part, true
		}
	}
	if asked == nil && u.guess {
		if p.settings.approval != "" && dangerous(c.words) {
			return p.heuristic(act, c), true
		}
		return Part{}, false
	}
	if asked == nil {
		return p.unaskedPart(s, u)
	}
	p.checkEnv(s)
	if c.opaque != "" && p.settings.opaque == Deny && !u.guess {
		return p.opaquePart(act, c.opaque), true
	}
	part = p.rulePart(act, asked)
	if asked.rights != (rights{}) && asked.block.matches(p, s, false) {
		part.certain = true
	}
	return part, true
}

// checkEnv makes a command opaque that sets variables of which no rule says
// that they are harmless.
func (p *Policy) checkEnv(s *subject) {
	c := s.cmd
	if c.opaque == "" && c.env != nil && !p.allowsEnv(s) {
		name, _, _ := strings.Cut(c.env[len(c.env)-1].text, "=")
		c.opaque = "the variable " + name + " is not known to be harmless"
	}
}

// unaskedPart judges a command that no deny or ask rule certainly names.
func (p *Policy) unaskedPart(s *subject, u *unit) (part Part, ok bool) {
	c, act := s.cmd, *s.action
	p.checkEnv(s)
	if c.function {
		if !p.isShadowing(c.name()) {
			// The body of the function was judged.
			return Part{}, false
		}
		c.opaque = "a function stands for the command"
	}
	if c.opaque != "" {
		return p.opaqueCommand(act, c), true
	}
	if r := firstMatch(p, p.set(KindExec).allow, s); r != nil {
		part := p.rulePart(act, r)
		part.certain = true
		return part, true
	}
	switch {
	case p.settings.approval != "":
		return p.heuristic(act, c), true
	case u.inside:
		return p.opaquePart(act, "no rule allows "+describe(&act)+" inside a command substitution"), true
	}
	return p.defaultPart(act, p.settings.defaultEffect, "no rule allows "+describe(&act), basisDefault), true
}

// opaqueCommand decides about an opaque command: what shell.opaque says, and
// not less than what the approval policy says of its words.
func (p *Policy) opaqueCommand(act Action, c *command) Part {
	part := p.opaquePart(act, c.opaque)
	if p.settings.approval == "" {
		return part
	}
	if h := p.heuristic(act, c); h.Effect.stricter(part.Effect) {
		return h
	}
	return part
}

// allowsEnv tells whether a rule allows the env command that sets variables
// which are not known to be harmless.
func (p *Policy) allowsEnv(s *subject) bool {
	env := command{words: s.cmd.env, dir: s.cmd.dir, outermost: s.cmd.outermost}
	act := Action{Kind: KindExec, Dir: s.cmd.shown, Argv: texts(env.words)}
	return firstMatch(p, p.set(KindExec).allow, &subject{call: s.call, action: &act, cmd: &env}) != nil
}

// isShadowing tells whether a function has the name of something else that a
// rule or a reader could mean by it.
func (p *Policy) isShadowing(name string) bool {
	if builtins[name] || knownSafe[name] || shells[name] || carriers[name] {
		return true
	}
	if _, ok := wrappers[name]; ok {
		return true
	}
	if p.env.LookPath != nil {
		return p.env.LookPath(name) != ""
	}
	for _, r := range p.set(KindExec).allow {
		if len(r.argv) > 0 && anyPattern(r.argv[0], name) {
			return true
		}
	}
	return false
}

// pathOrigin says where a path action comes from.
type pathOrigin struct {
	// redirect paths are opened by a shell inside the sandbox.
	redirect bool
	// implied reads follow from a command that was judged itself.
	implied bool
}

// judgePath judges a path; decided tells whether a rule or the sandbox did.
func (p *Policy) judgePath(c *Call, a *Action, from pathOrigin) (part Part, decided bool) {
	s := subject{call: c, action: a}
	part, decided = p.pathPart(&s, from)
	p.settle(&part, &s)
	return part, decided
}

func (p *Policy) pathPart(s *subject, from pathOrigin) (part Part, decided bool) {
	a := s.action
	rules := p.set(KindRead)
	if r := firstMatch(p, rules.deny, s); r != nil {
		return p.rulePart(*a, r), true
	}
	if a.Kind != KindRead {
		if why := p.sandboxRefusal(s, from); why != "" {
			return Part{Action: *a, Effect: Deny, DecidedBy: bySandbox, Reason: why, basis: basisSandbox}, true
		}
	}
	for _, list := range [2][]*rule{rules.ask, rules.allow} {
		if r := firstMatch(p, list, s); r != nil {
			return p.rulePart(*a, r), true
		}
	}
	effect, on := p.unmatchedPath(a, from)
	return p.defaultPart(*a, effect, "no rule allows "+describe(a), on), false
}

// unmatchedPath decides about a path that no rule names.
func (p *Policy) unmatchedPath(a *Action, from pathOrigin) (Effect, basis) {
	approval := p.settings.approval
	switch {
	case a.Kind != KindRead && approval == approvalUntrusted:
		return Ask, basisApproval
	case from.redirect && p.roots.isPrivate(a):
		// What a command puts there is gone with the run.
		return Allow, basisPrivate
	case a.Kind == KindRead && from.redirect && approval != "",
		a.Kind != KindRead && approval != "":
		return Allow, basisApproval
	case a.Kind == KindRead && (from.implied || p.settings.defaultEffect == Ask) && p.roots.inWorkspace(a):
		return Allow, basisWorkspace
	}
	return p.settings.defaultEffect, basisDefault
}

// sandboxRefusal returns why a path cannot be written whatever the default,
// or an empty string.
func (p *Policy) sandboxRefusal(s *subject, from pathOrigin) string {
	a := s.action
	if dir := p.roots.protectedBy(a); dir != "" && !p.namesProtected(s, dir) {
		return `"` + shorten(dir) + `" is protected; only a rule that names it lifts that`
	}
	if p.roots.free || p.roots.allBelow(p.roots.writable, a) {
		return ""
	}
	if from.redirect && p.roots.isPrivate(a) {
		return ""
	}
	if len(p.roots.writable) == 0 {
		return "the sandbox is read-only"
	}
	return `"` + shorten(a.Path) + `" is outside the writable folders`
}

// namesProtected tells whether a rule that spells the protected folder out
// is about the action.
func (p *Policy) namesProtected(s *subject, dir string) bool {
	rules := p.set(KindRead)
	for _, list := range [2][]*rule{rules.allow, rules.ask} {
		for _, r := range list {
			if !r.matches(p, s) {
				continue
			}
			for _, g := range r.path {
				if g.spells(dir) {
					return true
				}
			}
		}
	}
	return false
}
