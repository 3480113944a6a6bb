package runner

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"slices"
	"sync"
	"time"

	"drover/output/event"
	"drover/runner/approver"
	"drover/tools/policy"
	"drover/tools/sandbox"
)

// This file asks somebody about a call and weighs the answer. decide.go says
// when; permit.go is for what a call wants beyond the sandbox.

// DefaultApprovalTimeout is how long a request waits for its answer where
// nothing else is said.
const DefaultApprovalTimeout = 5 * time.Minute

// Approvals say who is asked about calls, and what an answer may do.
type Approvals struct {
	// Asker is asked where on_ask is approver; nil is nobody.
	Asker approver.Approver
	// Timeout refuses a request by itself; 0 is DefaultApprovalTimeout.
	Timeout time.Duration
	// Generate keeps the rule of an answer for good. It is nil where answers
	// must not write policy; "always" then lasts for the session.
	Generate func(p policy.Proposal, correlationID string) error
	// Resume is what a deferred run can be taken up with: a command, or the id
	// of the session. It is empty if there is nothing to take up.
	Resume string
}

// answers are what a session was allowed by answers that hold longer than one
// call.
type answers struct {
	// grants are the rules that were approved.
	grants policy.Grants

	mu sync.Mutex
	// exact are the calls that were approved as they are.
	exact map[string]bool
	// rights are what request_permissions was granted.
	rights sandbox.Rights
}

// question is what somebody is asked about a call.
type question struct {
	ruleID, reason string
	// maxScope is the longest scope that a rule allows; empty is no limit.
	maxScope  string
	proposals []policy.Proposal
	// permission says that it is not about this call, but about what later ones
	// may do; the one who asks keeps the answer.
	permission bool
}

// answer is what came of a question.
type answer struct {
	id       string
	by       event.Decider
	approved bool
	scope    event.Scope
	reason   string
	// args are new arguments; nil leaves them as they are.
	args json.RawMessage
	// ended says that the run ends, and that there is no answer.
	ended bool
}

// grantRecord is a grant in the session file, for whoever takes the session up.
type grantRecord struct {
	Kind string `json:"kind"`
	event.Grant
}

// canAsk tells whether somebody answers where no rule says otherwise.
func (r *run) canAsk() bool {
	return r.Approvals.Asker != nil && r.Policy.OnAsk() == policy.AskApprover
}

// listenForRequests keeps the requests as the stream has them, which is how an
// approver gets them: numbered, and without secrets. They are kept until stop.
func (r *run) listenForRequests() (stop func()) {
	if r.Approvals.Asker == nil {
		return func() {}
	}
	return r.Log.Subscribe(event.TopicApprovals, func(e event.Event) {
		switch b := e.Body.(type) {
		case event.ToolApprovalRequestEvent:
			r.requests.Store(b.CorrelationID, e)
		case event.InputRequestedEvent:
			r.requests.Store(b.CorrelationID, e)
		}
	})
}

// newCorrelationID names a request. It cannot be guessed, so that an answer is
// one to this request.
func newCorrelationID() string {
	b := make([]byte, 6)
	_, _ = rand.Read(b) // never fails; the runtime aborts instead
	return "ap_" + hex.EncodeToString(b)
}

// errLate is why a request that nobody has answered ends.
var errLate = errors.New("nobody answered in time")

// ask puts a question about a call and waits for the answer: until its
// deadline, or until the run ends. Other calls go on meanwhile. The call is
// blocked before, and resolved after.
func (s *session) ask(ctx context.Context, c *call, q question) answer {
	id := newCorrelationID()
	timeout := s.approvalTimeout()
	began := s.Now()
	s.setStatus(c, event.StatusAwaiting, 0)
	defer s.waitForAnswer(c)()
	origin, child := s.answering()
	s.tell(origin, event.ToolApprovalRequestEvent{
		ToolCallID: c.id, ToolName: c.name, CorrelationID: id, Args: c.prepared.Args, Display: c.prepared.Display,
		SubagentSessionID: child, RelayPath: s.relayPath(), RuleID: q.ruleID, Reason: q.reason,
		SuggestedRules: suggestions(q.proposals), MaxScope: s.longest(q),
		Deadline: began.Add(timeout).UTC().Format("2006-01-02T15:04:05.000Z"),
	})
	said, err := s.answerTo(ctx, id, timeout)
	a := answer{id: id, by: s.Approvals.Asker.By(), scope: "once", reason: said.Reason}
	switch {
	case ctx.Err() != nil:
		a.ended, a.by, a.reason = true, "default", "the run ended before there was an answer"
	case errors.Is(err, errLate):
		a.by, a.reason = "timeout", "nobody answered within "+timeout.String()
	case err != nil:
		a.reason = err.Error()
	case said.Approved:
		a.approved, a.args = true, said.Args
		a.scope = s.keepAnswer(c, q, said, id)
	}
	s.tell(origin, event.ToolApprovalResponseEvent{
		CorrelationID: id, Approved: a.approved, Scope: a.scope, DecidedBy: a.by, ToolCallID: c.id, RuleID: q.ruleID,
		Reason: a.reason, ArgsRewritten: a.args != nil, Args: a.args, WaitMS: s.Now().Sub(began).Milliseconds(),
	})
	return a
}

func (r *run) approvalTimeout() time.Duration {
	if r.Approvals.Timeout > 0 {
		return r.Approvals.Timeout
	}
	return DefaultApprovalTimeout
}

// answerTo asks about a request that is in the stream. It ends at the deadline
// and with ctx, whatever the approver does.
func (r *run) answerTo(ctx context.Context, id string, timeout time.Duration) (approver.Answer, error) {
	kept, ok := r.requests.LoadAndDelete(id)
	if !ok {
		return approver.Answer{}, errors.New("the request could not be told")
	}
	request, _ := kept.(event.Event)
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, errLate)
	defer cancel()
	type result struct {
		answer approver.Answer
		err    error
	}
	done := make(chan result, 1)
	go func() {
		defer func() {
			if p := recover(); p != nil {
				done <- result{err: errors.New("the approver crashed")}
			}
		}()
		a, err := r.Approvals.Asker.Ask(ctx, request)
		done <- result{a, err}
	}()
	select {
	case got := <-done:
		return got.answer, got.err
	case <-ctx.Done():
	}
	// Whoever asks a person says that the question is over before others print.
	select {
	case <-done:
	case <-time.After(closingTime):
	}
	return approver.Answer{}, context.Cause(ctx)
}

// closingTime is how long an approver whose question is over may take to say so.
const closingTime = time.Second

// waitForAnswer tells the clocks that somebody is asked, and returns what ends
// that.
func (s *session) waitForAnswer(c *call) (done func()) {
	s.waitFor("approval", c.id)
	s.pauseIdle(1)
	return func() {
		s.pauseIdle(-1)
		s.waitFor("tool", c.id)
	}
}

// answering is the session that has to answer, the root, and the one that is
// blocked if it is another.
func (s *session) answering() (o event.Origin, child string) {
	if s.parent == nil {
		return s.origin(), ""
	}
	// The turn of the root is not the child's to read.
	return event.Origin{SessionID: s.SessionID}, s.id
}

// relayPath is the way from the blocked session to the one that answers.
func (s *session) relayPath() (path []string) {
	for at := s; s.parent != nil && at != nil; at = at.parent {
		path = append(path, at.id)
	}
	return path
}

// suggestions are the proposals as the request shows them.
func suggestions(proposals []policy.Proposal) []json.RawMessage {
	var out []json.RawMessage
	for _, p := range proposals {
		if raw, err := json.Marshal(p.Rule); err == nil {
			out = append(out, raw)
		}
	}
	return out
}

// scopes are the scopes from the shortest to the longest.
var scopes = []event.Scope{"once", "session", "always"}

func shorter(a, b event.Scope) event.Scope {
	if slices.Index(scopes, a) < slices.Index(scopes, b) {
		return a
	}
	return b
}

// longest is the longest scope that an answer to the question can have.
func (s *session) longest(q question) event.Scope {
	scope := s.scopeLimit(q)
	if len(q.proposals) == 0 {
		return shorter(scope, "session") // without a rule nothing can be kept for good
	}
	return scope
}

// keepAnswer makes a yes hold for as long as it may, and returns how long that
// is. What is less than was said is told.
func (s *session) keepAnswer(c *call, q question, said approver.Answer, id string) event.Scope {
	scope := said.Scope
	reduced := func(to event.Scope, why string) {
		s.emit(event.NoticeEvent{
			Level: "warning", Code: "approval_scope", Message: "an answer of scope " + string(said.Scope) + " holds for " + scopeText(to) + " only: " + why,
			Details: map[string]any{"correlation_id": id, "tool_call_id": c.id},
		})
		scope = to
	}
	if limit := s.scopeLimit(q); shorter(limit, scope) != scope {
		why := "the rule's max_scope says so"
		if event.Scope(q.maxScope) != limit {
			why = "answers may not write policy (--allow-policy-writes)"
		}
		reduced(limit, why)
	}
	if scope == "once" || q.permission {
		return scope
	}
	rule, why := s.ruleOf(q, said)
	switch {
	case said.Args != nil && said.Rule == nil:
		// What was suggested, and the call as it was, is not what was approved.
		reduced("once", "it changes the arguments and names no rule")
		return scope
	case why != "":
		reduced("once", why)
		return scope
	case rule == nil && scope == "always":
		reduced("session", "no rule can be made of it")
	case rule != nil && scope == "always" && s.holdsSecret(rule):
		reduced("session", "its rule would hold a secret, and no file may hold one")
	case rule != nil && rule.MaxScope != "" && shorter(event.Scope(rule.MaxScope), scope) != scope:
		reduced(event.Scope(rule.MaxScope), "the rule's max_scope says so")
	}
	if scope == "once" {
		return scope
	}
	if rule != nil && scope == "always" {
		if err := s.Approvals.Generate(*rule, id); err != nil {
			reduced("session", "the rule could not be written: "+err.Error())
		}
	}
	if said.Args == nil {
		s.keepExact(c)
	}
	s.keepGrant(rule, scope, id)
	return scope
}

// scopeLimit is the longest scope that rules and settings allow.
func (s *session) scopeLimit(q question) event.Scope {
	limit := event.Scope("always")
	if s.Approvals.Generate == nil {
		limit = "session"
	}
	if q.maxScope != "" {
		limit = shorter(limit, event.Scope(q.maxScope))
	}
	return limit
}

func scopeText(scope event.Scope) string {
	if scope == "session" {
		return "this session"
	}
	return "this call"
}

// ruleOf is the rule that an answer means; nil if there is none to choose from.
// why says what is wrong with the one that it brings.
func (s *session) ruleOf(q question, said approver.Answer) (rule *policy.Proposal, why string) {
	if said.Rule == nil {
		if len(q.proposals) == 0 {
			return nil, ""
		}
		if q.proposals[0].Wish {
			return nil, "" // the call as it is was approved, and no more
		}
		at := max(0, slices.IndexFunc(q.proposals, func(p policy.Proposal) bool { return p.CoversCall && !p.Wide && !p.Wish }))
		return &q.proposals[at], ""
	}
	var id string
	if json.Unmarshal(said.Rule, &id) == nil {
		at := slices.IndexFunc(q.proposals, func(p policy.Proposal) bool { return p.ID == id })
		if at < 0 {
			return nil, "its rule is none of those that were suggested"
		}
		return &q.proposals[at], ""
	}
	parsed, err := s.Policy.ParseProposal(said.Rule)
	if err != nil {
		return nil, "its rule cannot be used: " + err.Error()
	}
	return &parsed, ""
}

// keepExact remembers that exactly this call was approved for the session.
func (s *session) keepExact(c *call) {
	s.answers.mu.Lock()
	defer s.answers.mu.Unlock()
	if s.answers.exact == nil {
		s.answers.exact = map[string]bool{}
	}
	s.answers.exact[exactKey(c)] = true
}

// keepGrant remembers the rule of an answer for the rest of the session, and in
// its file; nil is none.
func (s *session) keepGrant(rule *policy.Proposal, scope event.Scope, id string) {
	if rule == nil {
		return
	}
	rule.CorrelationID = id
	if err := s.answers.grants.Add(*rule, string(scope)); err != nil {
		s.emit(event.NoticeEvent{Level: "warning", Code: "approval_scope", Message: "the rule of an answer holds for this call alone: " + err.Error()})
		return
	}
	raw, err := json.Marshal(rule.Rule)
	if err != nil || s.Keep == nil || s.holdsSecret(rule) {
		return
	}
	record := grantRecord{Kind: "grant", Grant: event.Grant{Rule: raw, Scope: scope, SessionID: s.id, CorrelationID: id}}
	if err := s.Keep(record); err != nil {
		s.emit(event.NoticeEvent{Level: "warning", Code: "session_lost", Message: "a grant could not be kept for later: " + err.Error()})
	}
}

// holdsSecret tells whether a rule names a secret of the run, such as the
// argument of a command.
func (s *session) holdsSecret(rule *policy.Proposal) bool {
	raw, err := json.Marshal(rule.Rule)
	return err != nil || s.mask(string(raw)) != string(raw)
}

// approvedAsIs tells whether exactly this call was approved for the session.
func (s *session) approvedAsIs(c *call) bool {
	s.answers.mu.Lock()
	defer s.answers.mu.Unlock()
	return s.answers.exact[exactKey(c)]
}

// exactKey is the same for calls that do the same: the same tool, actions,
// folder, terminal, and wishes beyond the sandbox.
func exactKey(c *call) string {
	var args struct {
		TTY bool `json:"tty"`
	}
	_ = json.Unmarshal(c.prepared.Args, &args) // another tool's arguments have no terminal
	key := struct {
		Tool    string
		Actions []policy.Action
		Args    json.RawMessage
		TTY     bool
		Rights  *sandbox.Rights
	}{Tool: c.tool.Spec().Name, Actions: c.prepared.Actions, TTY: args.TTY}
	if len(key.Actions) == 0 {
		key.Args = c.prepared.Args
	}
	if w := c.prepared.Wants; w != nil {
		key.Rights = &w.Rights
	}
	out, err := json.Marshal(key)
	if err != nil {
		return c.id // then it is like no other
	}
	return string(out)
}

// askInput has somebody answer a question that is in the stream.
func (s *session) askInput(ctx context.Context, c *call, id string) (text string, by event.Decider, err error) {
	defer s.waitForAnswer(c)()
	timeout := s.approvalTimeout()
	by = s.Approvals.Asker.By()
	a, err := s.answerTo(ctx, id, timeout)
	switch {
	case ctx.Err() != nil:
		return "", "default", errors.New("the run ended before there was an answer")
	case errors.Is(err, errLate):
		return "", "timeout", errors.New("nobody answered within " + timeout.String())
	case err != nil:
		return "", by, err
	case !a.Approved:
		return "", by, errors.New("whoever was asked gave no answer")
	}
	return a.Text, by, nil
}
