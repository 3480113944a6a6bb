package runner

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"drover/output/event"
	"drover/tools"
	"drover/tools/policy"
	"drover/tools/sandbox"
)

// This file is for what calls may do beyond the sandbox of the run: what rules
// give them, what they want themselves, what request_permissions was granted,
// and another try outside after the sandbox stood in the way.

// sandboxed tells whether commands run in a sandbox, as run.started says.
func (r *run) sandboxed() bool {
	return r.Started.Sandbox != nil && r.Started.Sandbox.Mode != string(sandbox.Off)
}

// withWants is the verdict on a call that asks for something beyond the sandbox:
// what is allowed inside becomes a question.
func (s *session) withWants(c *call, v policy.Verdict) policy.Verdict {
	w := c.prepared.Wants
	if w == nil || v.Effect == policy.Deny || !s.sandboxed() || covers(union(s.granted(), allowedRights(v)), w.Rights) || s.approvedAsIs(c) {
		return v
	}
	reason := "it asks to run with more than the sandbox allows"
	if w.Off {
		reason = "it asks to run outside the sandbox"
	}
	if w.Justification != "" {
		reason += ": " + cutTo(w.Justification, 500)
	}
	if v.Reason != "" && v.Effect == policy.Ask {
		reason = v.Reason + "; " + reason
	}
	if v.Effect == policy.Allow {
		v.OnAsk, v.OnDeny = s.Policy.OnAsk(), s.Policy.OnDeny()
	}
	v.Effect, v.Reason = policy.Ask, reason
	if g, ok := s.Policy.Granular(); ok && !g.SandboxApproval {
		v.Effect, v.Reason = policy.Deny, reason+", and approval: granular lets nobody be asked"
	}
	return v
}

// allowedRights are those that the rules which allow a call give it.
func allowedRights(v policy.Verdict) sandbox.Rights {
	if v.Effect != policy.Allow {
		return sandbox.Rights{}
	}
	return sandbox.Rights{Off: v.Unsandboxed, Network: v.Network}
}

// setRights gives an allowed call what the verdict, its own wishes and earlier
// grants let it have.
func (s *session) setRights(c *call, v policy.Verdict) {
	c.rights = union(s.granted(), allowedRights(v))
	c.limit = v.Timeout
	if w := c.prepared.Wants; w != nil {
		c.rights = union(c.rights, w.Rights)
	}
}

// timeout is what tool.status says of an allowed call.
func (c *call) timeout() time.Duration {
	if c.limit > 0 && (c.prepared.Timeout == 0 || c.limit < c.prepared.Timeout) {
		return c.limit
	}
	return c.prepared.Timeout
}

// perform runs an allowed call. One that leaves a sandbox which is otherwise on
// runs alone.
func (s *session) perform(ctx context.Context, c *call) (tools.Result, error) {
	if c.rights.Off && s.sandboxed() {
		s.outside.Lock()
		defer s.outside.Unlock()
	} else {
		s.outside.RLock()
		defer s.outside.RUnlock()
	}
	return c.prepared.Run(ctx, s.env(c))
}

// retryReason is what is asked after the sandbox stood in the way.
const retryReason = "command failed; retry without sandbox?"

// retry runs a command once more outside the sandbox, which seems to have
// refused something inside it, if the approval policy has that asked and
// somebody says yes. Otherwise the result stays as it is.
func (s *session) retry(ctx context.Context, c *call, first tools.Result) (tools.Result, error) {
	if len(first.Refusals) == 0 || c.rights.Off || !s.mayRetry() || ctx.Err() != nil {
		return first, nil
	}
	outside := *c.prepared
	outside.Wants = &tools.Wants{Rights: sandbox.Rights{Off: true}}
	again := *c
	again.prepared = &outside
	if !s.approvedAsIs(&again) {
		a := s.ask(ctx, &again, question{reason: retryReason + " " + refusedBy(first.Refusals)})
		c.status = again.status
		if a.ended {
			return first, nil
		}
		s.setStatus(c, event.StatusRunning, c.timeout())
		if !a.approved || a.args != nil {
			// The call itself was allowed and has run: this is no refusal of it.
			return first, nil
		}
	}
	c.rights.Off = true
	c.remarks = append(c.remarks, "The sandbox refused something at first. Somebody allowed to run the command again without it; this is the result of that.")
	return s.perform(ctx, c)
}

// mayRetry tells whether the approval policy has somebody asked after a command
// failed in the sandbox, and somebody is there.
func (s *session) mayRetry() bool {
	if !s.canAsk() || !s.sandboxed() {
		return false
	}
	switch s.Policy.Approval() {
	case "untrusted", "on-failure":
		return true
	case "granular":
		g, _ := s.Policy.Granular()
		return g.SandboxApproval
	}
	return false
}

// refusedBy names what the sandbox refused, for the one who is asked.
func refusedBy(refusals []sandbox.Refusal) string {
	return "the sandbox seems to have refused " + refused(refusals[0])
}

// granted is what request_permissions was granted so far.
func (s *session) granted() sandbox.Rights {
	s.answers.mu.Lock()
	defer s.answers.mu.Unlock()
	return s.answers.rights
}

// widen allows reads and writes below what was granted, where no rule decides.
// Protected folders stay as they are.
func (s *session) widen(v policy.Verdict) policy.Verdict {
	r := s.granted()
	if v.Effect == policy.Allow || len(r.Read)+len(r.Write) == 0 || len(v.Parts) == 0 {
		return v
	}
	parts := slices.Clone(v.Parts)
	for i := range parts {
		p := &parts[i]
		if p.Effect == policy.Allow {
			continue
		}
		if p.RuleID != "" || !permits(r, p.Action) {
			return v
		}
		p.Effect, p.DecidedBy, p.Reason = policy.Allow, "grant", ""
	}
	v.Effect, v.DecidedBy, v.Reason, v.Parts = policy.Allow, "grant", "", parts
	return v
}

// permits tells whether rights cover an action on a path.
func permits(r sandbox.Rights, a policy.Action) bool {
	roots := r.Write
	switch a.Kind {
	case policy.KindRead:
		roots = slices.Concat(r.Write, r.Read)
	case policy.KindWrite, policy.KindDelete:
	default:
		return false
	}
	real := a.Real
	if real == "" {
		real = a.Path
	}
	return slices.ContainsFunc(roots, func(root string) bool {
		rel, ok := beneath(root, real)
		return ok && (a.Kind == policy.KindRead || !protectedName(rel))
	})
}

// beneath returns the path relative to a root that it is or lies below.
func beneath(root, path string) (rel string, ok bool) {
	rel, err := filepath.Rel(root, path)
	return rel, err == nil && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator))
}

func protectedName(rel string) bool {
	return slices.ContainsFunc(strings.Split(filepath.ToSlash(rel), "/"), func(name string) bool {
		return slices.ContainsFunc(tools.Protected, func(p string) bool { return strings.EqualFold(p, name) })
	})
}

// errNobodyAnswers is the error of a request for permissions without anybody
// who could grant it.
var errNobodyAnswers = errors.New("nobody can grant permissions in this run; go on without them")

// permit asks for permissions beyond the sandbox, for the rest of the run, and
// returns what was granted and for how long: turn or session.
func (s *session) permit(ctx context.Context, c *call, want sandbox.Rights, reason string) (sandbox.Rights, string, error) {
	g, granular := s.Policy.Granular()
	if s.Policy.Approval() == "never" || granular && !g.RequestPermissions {
		return sandbox.Rights{}, "turn", nil
	}
	if why := s.forbidden(c, want); why != "" {
		return sandbox.Rights{}, "", errors.New(why)
	}
	if !s.canAsk() {
		return sandbox.Rights{}, "", errNobodyAnswers
	}
	if reason == "" {
		reason = "the agent gave no reason"
	}
	a := s.ask(ctx, c, question{reason: cutTo(reason, 500), maxScope: policy.ScopeSession, permission: true})
	if a.ended {
		return sandbox.Rights{}, "", context.Cause(ctx)
	}
	s.setStatus(c, event.StatusRunning, c.timeout())
	if !a.approved {
		s.notePermission(c, a)
		return sandbox.Rights{}, "", errors.New("request_permissions was refused: " + a.reason)
	}
	if a.args != nil {
		narrowed, _, err := tools.ReadPermissions(a.args, s.Files)
		if err != nil {
			return sandbox.Rights{}, "", errors.New("the permissions that the answer names cannot be used: " + err.Error())
		}
		want = intersect(want, narrowed)
	}
	if err := s.grantRights(want); err != nil {
		return sandbox.Rights{}, "", err
	}
	if a.scope == "session" {
		return want, "session", nil
	}
	return want, "turn", nil
}

// notePermission counts a refused request for permissions like any refusal.
func (s *session) notePermission(c *call, a answer) {
	s.recordDenial(c, event.ToolDecisionEvent{DecidedBy: a.by, Reason: a.reason, CorrelationID: a.id},
		policy.Verdict{Effect: policy.Deny, OnDeny: s.Policy.OnDeny()})
}

// forbidden says which of the permissions no answer can give, or "".
func (s *session) forbidden(c *call, want sandbox.Rights) string {
	if files := s.Policy.ClosesNetwork(); want.Network && len(files) > 0 {
		return "the network stays closed: a policy file says network: deny"
	}
	check := func(kind policy.Kind, path string) string {
		v := s.Policy.Decide(policy.Call{Tool: c.name, Agent: s.agent, Actions: []policy.Action{{Kind: kind, Path: path, Real: path}}})
		switch {
		case v.Effect == policy.Deny && v.RuleID != "":
			return describe(v.Action) + " is refused by the policy rule " + v.RuleID
		case kind != policy.KindRead && protectedName(path):
			return describe(v.Action) + " is refused: the folder is protected"
		}
		return ""
	}
	for _, path := range want.Write {
		for _, kind := range []policy.Kind{policy.KindWrite, policy.KindDelete} {
			if why := check(kind, path); why != "" {
				return why
			}
		}
	}
	for _, path := range want.Read {
		if why := check(policy.KindRead, path); why != "" {
			return why
		}
	}
	return ""
}

// grantRights lets later calls have what was granted.
func (s *session) grantRights(r sandbox.Rights) error {
	for _, path := range r.Write {
		if err := s.Files.AddWritable(path); err != nil {
			return err
		}
	}
	s.answers.mu.Lock()
	defer s.answers.mu.Unlock()
	s.answers.rights = union(s.answers.rights, r)
	return nil
}

func union(a, b sandbox.Rights) sandbox.Rights {
	return sandbox.Rights{
		Off: a.Off || b.Off, Network: a.Network || b.Network,
		Read: joined(a.Read, b.Read), Write: joined(a.Write, b.Write),
	}
}

func joined(a, b []string) []string {
	out := slices.Concat(a, b)
	slices.Sort(out)
	return slices.Compact(out)
}

// intersect is what both rights allow; of two paths the deeper one.
func intersect(a, b sandbox.Rights) sandbox.Rights {
	both := func(a, b []string) (out []string) {
		for _, x := range a {
			for _, y := range b {
				if _, ok := beneath(x, y); ok {
					out = append(out, y)
				} else if _, ok := beneath(y, x); ok {
					out = append(out, x)
				}
			}
		}
		return joined(out, nil)
	}
	return sandbox.Rights{Network: a.Network && b.Network, Read: both(a.Read, b.Read), Write: both(a.Write, b.Write)}
}

// covers tells whether have includes want.
func covers(have, want sandbox.Rights) bool {
	all := func(have, want []string) bool {
		for _, w := range want {
			if !slices.ContainsFunc(have, func(h string) bool { _, ok := beneath(h, w); return ok }) {
				return false
			}
		}
		return true
	}
	return (have.Off || !want.Off) && (have.Network || !want.Network) &&
		all(slices.Concat(have.Read, have.Write), want.Read) && all(have.Write, want.Write)
}
