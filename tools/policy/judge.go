package policy

import "strings"

// rulePart returns the part that a rule decides.
func (p *Policy) rulePart(a Action, r *rule) Part {
	reason := r.reason
	if reason == "" && r.effect != Allow {
		reason = `rule "` + r.id + `" says ` + string(r.effect)
	}
	return p.finish(Part{Action: a, Effect: r.effect, DecidedBy: byPolicy, RuleID: r.id, Layer: r.layer,
		File: r.file, Line: r.line, Reason: reason, rule: r})
}

// defaultPart returns a part that no rule decides.
func (p *Policy) defaultPart(a Action, effect Effect, why string) Part {
	part := Part{Action: a, Effect: effect, DecidedBy: byDefault}
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
		return append(parts, p.rulePart(*a, r))
	}
	return append(parts, p.defaultPart(*a, p.settings.defaultEffect, "no rule allows "+describe(a)))
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
	for _, u := range p.analyse(a) {
		switch {
		case u.cmd != nil:
			if part, ok := p.judgeCommand(c, &u); ok {
				parts = append(parts, part)
			}
		case u.action.Kind == KindHost:
			if judged := p.judge(nil, c, &u.action); !u.guess || judged[0].RuleID != "" && judged[0].Effect != Allow {
				parts = append(parts, judged...)
			}
		case u.action.Kind != "":
			part, decided := p.judgePath(c, &u.action, pathOrigin{redirect: !u.implied, implied: u.implied})
			if !u.guess || decided && part.Effect != Allow {
				parts = append(parts, part)
			}
		case u.wild:
			if part, ok := p.wildPart(c, Action{Kind: KindExec, Dir: a.Dir, Argv: a.Argv}, u.opaque); ok {
				parts = append(parts, part)
			}
		case u.unread && p.hasRefusals():
			parts = append(parts, Part{Action: *a, Effect: Deny, DecidedBy: byDefault, Reason: u.opaque})
		default:
			act := Action{Kind: KindExec, Dir: a.Dir, Argv: a.Argv}
			parts = append(parts, p.opaquePart(act, u.opaque))
		}
	}
	return parts
}

// opaquePart decides about something that cannot be judged by its words.
func (p *Policy) opaquePart(a Action, why string) Part {
	effect := p.settings.opaque
	if p.settings.approval == "untrusted" && Ask.stricter(effect) {
		effect = Ask
	}
	return p.defaultPart(a, effect, why)
}

// judgeCommand judges one simple command; ok is false if nothing follows from
// it.
func (p *Policy) judgeCommand(call *Call, u *unit) (part Part, ok bool) {
	c := u.cmd
	act := Action{Kind: KindExec, Dir: c.shown, Argv: texts(c.words)}
	s := subject{call: call, action: &act, cmd: c}
	rules := p.set(KindExec)
	if r := firstMatch(p, rules.deny, &s); r != nil {
		return p.rulePart(act, r), true
	}
	vouched := (c.wild != "" || c.alias) && !u.guess && p.vouched(&s)
	if r := p.possibleRule(rules.deny, &s); r != nil && !vouched {
		return p.possiblePart(act, r, c), true
	}
	asked := firstMatch(p, rules.ask, &s)
	if asked == nil && !vouched {
		if r := p.possibleRule(rules.ask, &s); r != nil && (c.opaque == "" || u.guess || p.settings.opaque != Deny) {
			return p.possiblePart(act, r, c), true
		}
	}
	if asked == nil && u.guess {
		if p.settings.approval != "" && dangerous(c.words) {
			return p.heuristic(act, c), true
		}
		return Part{}, false
	}
	if c.opaque == "" && c.env != nil && !p.allowsEnv(&s) {
		name, _, _ := strings.Cut(c.env[len(c.env)-1].text, "=")
		c.opaque = "the variable " + name + " is not known to be harmless"
	}
	if asked != nil {
		if c.opaque != "" && p.settings.opaque == Deny && !u.guess {
			return p.opaquePart(act, c.opaque), true
		}
		return p.rulePart(act, asked), true
	}
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
	if r := firstMatch(p, rules.allow, &s); r != nil {
		return p.rulePart(act, r), true
	}
	switch {
	case p.settings.approval != "":
		return p.heuristic(act, c), true
	case u.inside:
		return p.opaquePart(act, "no rule allows "+describe(&act)+" inside a command substitution"), true
	}
	return p.defaultPart(act, p.settings.defaultEffect, "no rule allows "+describe(&act)), true
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
	rules := p.set(KindRead)
	if r := firstMatch(p, rules.deny, &s); r != nil {
		return p.rulePart(*a, r), true
	}
	if a.Kind != KindRead {
		if why := p.sandboxRefusal(&s, from); why != "" {
			return Part{Action: *a, Effect: Deny, DecidedBy: bySandbox, Reason: why}, true
		}
	}
	if r := firstMatch(p, rules.ask, &s); r != nil {
		return p.rulePart(*a, r), true
	}
	if r := firstMatch(p, rules.allow, &s); r != nil {
		return p.rulePart(*a, r), true
	}
	effect := p.settings.defaultEffect
	inside := p.roots.inWorkspace(a)
	switch {
	case a.Kind == KindRead && from.implied && inside,
		a.Kind == KindRead && from.redirect && p.settings.approval != "",
		a.Kind == KindRead && effect == Ask && inside:
		effect = Allow
	case a.Kind != KindRead && p.settings.approval == "untrusted":
		effect = Ask
	case a.Kind != KindRead && p.settings.approval != "":
		effect = Allow
	}
	return p.defaultPart(*a, effect, "no rule allows "+describe(a)), false
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
	if from.redirect && p.roots.allBelow(p.roots.private, a) {
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
