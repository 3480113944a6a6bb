package runner

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"drover/output/event"
	"drover/output/fault"
	"drover/runner/model"
	"drover/tools"
	"drover/tools/policy"
	"drover/tools/sandbox"
)

// This file is what hooks mean for a run. A hook is a command of the user that
// is started at certain moments, reads what is happening as JSON, and may
// narrow it: refuse a call, have it asked about, change its input (which is
// judged again), keep a result or a final answer back. It can never allow what
// the policy does not. hooks_run.go runs them, hooks_answer.go reads what they
// say, hooks_payload.go is what they are told.

// HookEvent is the moment at which a hook is started.
type HookEvent string

// The moments.
const (
	// SessionStart is before the first request to the model.
	SessionStart HookEvent = "SessionStart"
	// PreToolUse is before a call that the policy does not refuse.
	PreToolUse HookEvent = "PreToolUse"
	// PostToolUse is after a call that succeeded, before the model sees the
	// result.
	PostToolUse HookEvent = "PostToolUse"
	// StopEvent is after the final answer, before the checks.
	StopEvent HookEvent = "Stop"
)

// HookEvents are all moments.
func HookEvents() []HookEvent { return []HookEvent{SessionStart, PreToolUse, PostToolUse, StopEvent} }

// OnHookError is what a hook that fails comes to: one that cannot be started,
// crashes, hangs, or answers something that cannot be read.
type OnHookError string

// The ways to take a failure.
const (
	// HookDeny takes it for a refusal. It is the default of PreToolUse.
	HookDeny OnHookError = "deny"
	// HookReport goes on with a warning. It is the default of the others.
	HookReport OnHookError = "report"
	// HookIgnore goes on; only hook.finished tells.
	HookIgnore OnHookError = "ignore"
)

// DefaultHookTimeout bounds a hook that sets no timeout itself.
const DefaultHookTimeout = time.Minute

// Hook is a command that watches over a run.
type Hook struct {
	Event HookEvent
	// Name is what events call it; empty is the command.
	Name string
	// Matcher is a regular expression for the whole name of a tool; empty and
	// "*" are all tools. Only PreToolUse and PostToolUse have one.
	Matcher string
	// Command is a script for the session's shell, started in the folder of the
	// run.
	Command string
	// Timeout ends it; 0 is DefaultHookTimeout.
	Timeout time.Duration
	// OnError is what a failure comes to; empty is the default of the event.
	OnError OnHookError
	// Rights are what it may do beyond the sandbox of the run.
	Rights sandbox.Rights
	// Program is a file that Command runs and the agent could change, absolute,
	// with the hash that it had at the start; the hook fails once it has another.
	// Empty is none.
	Program, ProgramSHA256 string
	// File and Line are where it is configured.
	File string
	Line int

	matcher *regexp.Regexp
}

// Check sets the defaults and tells what is wrong with the hook, in a sentence
// for the person who wrote it.
func (h *Hook) Check() error {
	tool := h.Event == PreToolUse || h.Event == PostToolUse
	switch {
	case !slices.Contains(HookEvents(), h.Event):
		return fmt.Errorf("%q is no event of a hook", h.Event)
	case strings.TrimSpace(h.Command) == "":
		return errors.New("it has no command")
	case strings.ContainsRune(h.Command, 0):
		return errors.New("its command holds a NUL byte")
	case !tool && h.Matcher != "" && h.Matcher != "*":
		return fmt.Errorf("%s has no tool that a matcher could match", h.Event)
	}
	if h.Name == "" {
		h.Name = cutTo(firstLine(h.Command), 80)
	}
	if h.Timeout == 0 {
		h.Timeout = DefaultHookTimeout
	}
	if h.OnError == "" {
		h.OnError = HookReport
		if h.Event == PreToolUse {
			h.OnError = HookDeny
		}
	}
	if h.Matcher == "" || h.Matcher == "*" {
		return nil
	}
	// A matcher names whole tools, so that Read does not match ReadOnly.
	re, err := regexp.Compile(`^(?:` + h.Matcher + `)$`)
	if err != nil {
		return fmt.Errorf("its matcher is no regular expression: %w", err)
	}
	h.matcher = re
	return nil
}

// matches tells whether the hook wants to know of a tool that goes by names.
func (h *Hook) matches(names []string) bool {
	return h.matcher == nil || slices.ContainsFunc(names, h.matcher.MatchString)
}

// remark adds what hooks have to say to a result.
func (c *call) remark(text string) string {
	if len(c.remarks) == 0 {
		return text
	}
	return text + "\n\n" + strings.Join(c.remarks, "\n\n")
}

// mask returns a text without the secrets of the run.
func (s *session) mask(text string) string {
	if s.Mask == nil {
		return text
	}
	return s.Mask(text)
}

// hooksOf are the hooks of an event; names are those of the tool.
func (r *run) hooksOf(at HookEvent, names []string) []*Hook {
	var list []*Hook
	for i := range r.Hooks {
		if h := &r.Hooks[i]; h.Event == at && h.matches(names) {
			list = append(list, h)
		}
	}
	return list
}

// maxStopBlocks is how often a hook may send the final answer back.
const maxStopBlocks = 3

// startHooks runs the hooks of the session's start. What they have to say stands
// before the prompt.
func (s *session) startHooks(ctx context.Context) *Stop {
	list := s.hooksOf(SessionStart, nil)
	if len(list) == 0 {
		return nil
	}
	said := s.runHooks(ctx, list, nil, s.payload(SessionStart, nil))
	if ctx.Err() != nil {
		return s.stopOf(ctx)
	}
	for _, d := range said {
		switch {
		case d.failed():
			return hookStop(fault.Environment, "hook_failed", "the session's start needs the hook "+d.hook.Name+": "+d.reason)
		case d.answer.block || d.answer.stop:
			return hookStop(fault.Blocked, "hook_blocked", "the hook "+d.hook.Name+" refuses the session: "+d.reason)
		}
	}
	if text := contextOf(said); text != "" {
		at := max(0, len(s.history)-1) // the prompt is the last so far
		s.history = slices.Insert(s.history, at, model.Item{Kind: model.UserMessage, Text: text})
		s.historyBytes += len(text)
		s.emit(event.MessageEvent{MessageID: s.messageID(), Role: "system", Text: text})
	}
	return nil
}

// preHooks runs the hooks before a call that the policy does not refuse, and
// returns the verdict that holds then. denied is what to tell the model if the
// call is refused, or if it cannot be run.
func (s *session) preHooks(ctx context.Context, c *call, v policy.Verdict) (after policy.Verdict, denied string) {
	if len(s.Hooks) == 0 {
		return v, ""
	}
	told := hookCallOf(c)
	if told == nil {
		return v, ""
	}
	list := s.hooksOf(PreToolUse, told.names)
	if len(list) == 0 {
		return v, ""
	}
	s.waitFor("tool", c.id)
	said := s.runHooks(ctx, list, c, s.payload(PreToolUse, told))
	s.waitFor("provider", "")
	if ctx.Err() != nil {
		return v, ""
	}
	if d := firstRefusal(said); d != nil {
		return v, s.denyByHook(c, d)
	}
	if input, by, err := rewriteOf(said, told); err != nil {
		return v, s.denyByHook(c, &hookRun{hook: by, reason: err.Error()})
	} else if input != nil {
		if err := s.rewrite(c, told, input, by); err != nil {
			return v, s.denyByHook(c, &hookRun{hook: by, reason: err.Error()})
		}
		v = s.judge(c)
		if reason := s.planReason(c); reason != "" && v.Effect == policy.Allow {
			return v, s.refuseInPlan(c, reason)
		}
	}
	c.remarks = append(c.remarks, remarksOf(said)...)
	if v.Effect != policy.Allow {
		return v, ""
	}
	for _, d := range said {
		if d.answer.ask {
			// An answer holds for this call: the hook asks about the next one again.
			v.Effect, v.DecidedBy, v.RuleID, v.Layer = policy.Ask, "hook", "", ""
			v.OnAsk, v.MaxScope = s.Policy.OnAsk(), policy.ScopeOnce
			v.Reason = "the hook " + d.hook.Name + " asks"
			if d.reason != "" {
				v.Reason += ": " + d.reason
			}
			break
		}
	}
	return v, ""
}

// hooksAgain asks the hooks about a call whose arguments an answer has changed,
// and returns why one of them refuses it, or "". Whoever answered knows these
// arguments, so that an ask is answered; a hook that wants others refuses.
func (s *session) hooksAgain(ctx context.Context, c *call) (reason string) {
	if len(s.Hooks) == 0 {
		return ""
	}
	told := hookCallOf(c)
	if told == nil {
		return ""
	}
	said := s.runHooks(ctx, s.hooksOf(PreToolUse, told.names), c, s.payload(PreToolUse, told))
	if ctx.Err() != nil {
		return "the run ends"
	}
	if d := firstRefusal(said); d != nil {
		if d.answer.stop {
			s.endByHook(d, fault.Blocked)
		}
		return "the hook " + d.hook.Name + ": " + d.reason
	}
	if input, by, err := rewriteOf(said, told); err != nil {
		return "the hook " + by.Name + ": " + err.Error()
	} else if input != nil {
		return "the hook " + by.Name + " wants other arguments than the answer brought"
	}
	c.remarks = append(c.remarks, remarksOf(said)...)
	return ""
}

// firstRefusal is the first hook that refuses the call, or nil.
func firstRefusal(said []*hookRun) *hookRun {
	for _, d := range said {
		if d.failed() || d.answer.block || d.answer.stop {
			return d
		}
	}
	return nil
}

// denyByHook refuses a call because of a hook, and returns what to tell the
// model.
func (s *session) denyByHook(c *call, d *hookRun) string {
	e := event.ToolDecisionEvent{
		ToolCallID: c.id, ToolName: c.name, Effect: "deny", DecidedBy: "hook",
		Reason: "the hook " + d.hook.Name + ": " + d.reason,
	}
	before := ""
	if s.rehearses(c) {
		before = notDone
		s.wouldDeny(c, e, s.Policy.OnDeny())
	} else {
		s.emit(e)
		s.recordDenial(c, e, policy.Verdict{Effect: policy.Deny, OnDeny: s.Policy.OnDeny()})
	}
	if d.answer.stop {
		s.endByHook(d, fault.Blocked)
	}
	return before + "denied: " + d.reason + "\nThe hook " + d.hook.Name + " refused the call. Nothing was done. Do not try the same again; " +
		"find an allowed way, or say in the final answer what is missing."
}

// endByHook ends the run after the calls of the turn, because a hook says so.
func (s *session) endByHook(d *hookRun, exit fault.Exit) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.spent.refused == nil {
		s.spent.refused = hookStop(exit, "hook_stopped", "the hook "+d.hook.Name+" ended the run: "+d.reason)
	}
}

func hookStop(exit fault.Exit, reason, message string) *Stop {
	return &Stop{Exit: exit, Reason: reason, Err: &event.Err{
		Code: reason, Message: message, Fix: "see hooks: in the config, and the hook.finished events",
	}}
}

// postHooks runs the hooks after a call that succeeded. What they object to
// stands in the place of the result.
func (s *session) postHooks(ctx context.Context, c *call, res tools.Result) tools.Result {
	if len(s.Hooks) == 0 {
		return res
	}
	told := s.hookCallAfter(c, res)
	if told == nil || res.IsError {
		return res
	}
	list := s.hooksOf(PostToolUse, told.names)
	if len(list) == 0 {
		return res
	}
	s.waitFor("tool", c.id)
	said := s.runHooks(ctx, list, c, s.payload(PostToolUse, told))
	s.waitFor("provider", "")
	if ctx.Err() != nil {
		return res
	}
	var feedback []string
	for _, d := range said {
		if d.failed() || d.answer.block || d.answer.stop {
			feedback = append(feedback, d.reason)
		}
		if d.answer.stop {
			s.endByHook(d, fault.Failed)
		}
	}
	c.remarks = append(c.remarks, remarksOf(said)...)
	if len(feedback) > 0 {
		res.Text = "The call was run. A hook objects to its result:\n" + strings.Join(feedback, "\n")
		res.Display = cutTo("hook: "+firstLine(feedback[0]), 200)
		res.Structured, res.Truncated = nil, false
	}
	return res
}

// stopHooks runs the hooks at the final answer. One that blocks sends its
// reason back to the agent, a bounded number of times.
func (s *session) stopHooks(ctx context.Context, answer string) (event.TurnInput, *Stop) {
	list := s.hooksOf(StopEvent, nil)
	if len(list) == 0 {
		return "", nil
	}
	p := s.payload(StopEvent, nil)
	active := s.stopBlocks > 0
	p.StopHookActive, p.LastAssistantMessage = &active, s.mask(answer)
	said := s.runHooks(ctx, list, nil, p)
	if ctx.Err() != nil {
		return "", s.stopOf(ctx)
	}
	var reasons []string
	for _, d := range said {
		switch {
		case d.failed():
			return "", hookStop(fault.Failed, "hook_failed", "the hook "+d.hook.Name+" failed: "+d.reason)
		case d.answer.stop:
			return "", hookStop(fault.Failed, "hook_stopped", "the hook "+d.hook.Name+" ended the run: "+d.reason)
		case d.answer.block:
			reasons = append(reasons, d.reason)
		}
	}
	if len(reasons) == 0 {
		if text := contextOf(said); text != "" {
			s.emit(event.NoticeEvent{Level: "info", Code: "hook_context", Message: text})
		}
		return "", nil
	}
	text := strings.Join(reasons, "\n")
	if s.stopBlocks >= maxStopBlocks {
		return "", hookStop(fault.Failed, "hook_blocked", fmt.Sprintf("a hook sent the final answer back %d times and objects again: %s", maxStopBlocks, firstLine(text)))
	}
	s.stopBlocks++
	s.say("user", fmt.Sprintf("A hook objects to ending here (%d of %d):\n\n%s\n\nGo on, then give the final answer again.", s.stopBlocks, maxStopBlocks, text))
	return "check", nil
}
