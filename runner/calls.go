package runner

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"drover/output/event"
	"drover/output/fault"
	"drover/runner/model"
	"drover/tools"
	"drover/tools/policy"
	"drover/tools/sandbox"
)

// call is one tool call, from its first delta to its result.
type call struct {
	id, name string
	// index is the provider's, item the place in the response's items.
	index, item int
	freeform    bool
	args        strings.Builder
	input       tools.Input

	tool     tools.Tool
	prepared *tools.Call
	// err is why the call cannot be run, as the model should read it.
	err    error
	status event.ToolStatus
	// exitCode is that of the command that the call ran, if it ran one.
	exitCode *int
	// rights and limit are what the call may do beyond the sandbox, and its
	// time limit by the policy, once it is allowed.
	rights sandbox.Rights
	limit  time.Duration
	// remarks are what hooks have to say to the model besides the result.
	remarks []string
	// last says that the call's result was the end of the work.
	last bool
}

// runCalls runs the calls of one response. Calls of parallel tools overlap;
// any other call waits for all before it and holds back all after it, which is
// a reader/writer lock in order of arrival. The results are in call order.
func (s *session) runCalls(ctx context.Context, calls []*call) ([]model.Item, *Stop) {
	for _, c := range calls {
		s.show(c)
	}
	results := make([]model.Item, len(calls))
	var group sync.WaitGroup
	for i, c := range calls {
		if c.parallel() {
			group.Go(func() { results[i] = s.guardedCall(ctx, c) })
			continue
		}
		group.Wait()
		results[i] = s.guardedCall(ctx, c)
	}
	group.Wait()
	if ctx.Err() != nil {
		return results, s.stopOf(ctx)
	}
	return results, s.afterCalls(calls)
}

// show completes a call: its arguments are there, nothing has been done.
func (s *session) show(c *call) {
	e := event.ToolCallEvent{ToolCallID: c.id, ToolName: c.name, Display: c.name}
	c.tool = s.lookUp(c.name)
	if c.tool == nil {
		c.err = fmt.Errorf("unsupported call: %s", c.name)
		if c.freeform {
			c.err = fmt.Errorf("unsupported custom tool call: %s", c.name)
		}
	} else {
		c.prepared, c.err = c.tool.Prepare(s.env(c), c.input)
	}
	if c.prepared != nil {
		e.Args, e.Display = c.prepared.Args, c.prepared.Display
	} else {
		e.Args, e.ArgsRaw, e.ArgsError = rawArgs(c)
	}
	s.emit(e)
	s.setStatus(c, event.StatusPending, 0)
}

// rawArgs are the arguments of a call that cannot be run: parsed if they can
// be, and as they came if not.
func rawArgs(c *call) (args json.RawMessage, raw, problem string) {
	if !c.freeform && json.Valid([]byte(c.input.Text)) {
		return json.RawMessage(c.input.Text), "", c.err.Error()
	}
	return json.RawMessage("null"), c.input.Text, c.err.Error()
}

func (s *session) lookUp(name string) tools.Tool {
	if t := s.callable[name]; t != nil {
		return t
	}
	if t := tools.Find(name); t != nil {
		return s.callable[t.Spec().Name]
	}
	return nil
}

func (c *call) parallel() bool {
	return c.err == nil && c.tool.Spec().Parallel
}

// guardedCall runs one call and turns a panic in it into the run's end.
func (s *session) guardedCall(ctx context.Context, c *call) (item model.Item) {
	defer func() {
		if p := recover(); p != nil {
			s.crashed(p)
			if !c.final() {
				s.incomplete(c, "crash")
			}
			item = c.result("the tool crashed; the run ends", true)
		}
	}()
	return s.runCall(ctx, c)
}

// runCall decides one call and runs it if it may be run.
func (s *session) runCall(ctx context.Context, c *call) model.Item {
	if stop := s.mayCall(ctx); stop != nil {
		s.incomplete(c, incompleteReason(stop))
		return c.result("not run: "+stop.Reason, false)
	}
	if c.err != nil {
		return s.refuse(c, "invalid_call", c.err.Error())
	}
	verdict := s.judge(c)
	// Plan mode only narrows: what the policy refuses is refused by the policy,
	// and counts.
	if reason := s.planReason(c); reason != "" && verdict.Effect == policy.Allow {
		return s.deny(c, s.refuseInPlan(c, reason))
	}
	if verdict.Effect != policy.Deny {
		var denied string
		if verdict, denied = s.preHooks(ctx, c, verdict); denied != "" {
			return s.deny(c, denied)
		}
		if ctx.Err() != nil {
			s.incomplete(c, incompleteReason(s.stopOf(ctx)))
			return c.result("not run: the run ends", false)
		}
	}
	if item, ok := s.rehearse(c, verdict); ok {
		return item
	}
	if denied := s.decide(ctx, c, verdict); denied != "" {
		return s.deny(c, denied)
	}
	if ctx.Err() != nil {
		s.incomplete(c, incompleteReason(s.stopOf(ctx)))
		return c.result("not run: the run ends", false)
	}
	s.setStatus(c, event.StatusRunning, c.timeout())
	s.waitFor("tool", c.id)
	began := s.Now()
	res, err := s.perform(ctx, c)
	if err == nil {
		res, err = s.retry(ctx, c, res)
	}
	took := s.Now().Sub(began)
	s.waitFor("provider", "")
	if ctx.Err() != nil {
		s.incomplete(c, incompleteReason(s.stopOf(ctx)))
		return c.result(abortText(c.tool.Spec().Name, took), false)
	}
	if stop := s.brokenBy(err); stop != nil {
		s.incomplete(c, "crash")
		return c.result("not run: "+stop.Reason, true)
	}
	if err != nil {
		res = tools.Fail("tool_failed", c.name+" failed: "+err.Error())
	}
	return s.report(c, s.postHooks(ctx, c, res), took)
}

// report merges a result into its call.
func (s *session) report(c *call, res tools.Result, took time.Duration) model.Item {
	s.countCall(c.name, res.OutputBytes)
	s.recordRefusals(c, res.Refusals)
	c.exitCode, c.last = res.ExitCode, res.Final
	text := s.repeats.note(c, c.remark(s.Output.Recorded().Cut(res.Text)))
	e := event.ToolResultEvent{
		ToolCallID: c.id, ToolName: c.name, IsError: res.IsError, Display: res.Display,
		Summary: res.Summary, Content: text, DurationMS: took.Milliseconds(),
		OutputBytes: res.OutputBytes, Truncated: res.Truncated || len(text) < len(res.Text), Artifact: res.Artifact,
	}
	status := event.StatusDone
	if res.IsError {
		status = event.StatusError
		e.Error = &event.Err{Code: res.Code, Message: res.Display}
		if res.Code == "" {
			e.Error.Code = "tool_error"
		}
	}
	if res.Structured != nil {
		if raw, err := json.Marshal(res.Structured); err == nil {
			e.Structured = raw
		}
	}
	s.setStatus(c, status, 0)
	s.emit(e)
	if res.Code == tools.CodeNeedsInput {
		s.noteQuestion(res.Display)
	}
	return c.result(text, res.IsError)
}

// refuse answers a call that was never run.
func (s *session) refuse(c *call, code, text string) model.Item {
	s.setStatus(c, event.StatusError, 0)
	s.emit(event.ToolResultEvent{
		ToolCallID: c.id, ToolName: c.name, IsError: true, Display: firstLine(text), Content: text,
		Error: &event.Err{Code: code, Message: firstLine(text)},
	})
	return c.result(text, true)
}

// deny answers a call that the policy refused.
func (s *session) deny(c *call, text string) model.Item {
	text = s.repeats.noteDenied(c, text)
	s.setStatus(c, event.StatusDenied, 0)
	s.emit(event.ToolResultEvent{
		ToolCallID: c.id, ToolName: c.name, IsError: true, Denied: true,
		Display: firstLine(text), Content: text, Error: &event.Err{Code: "denied", Message: firstLine(text)},
	})
	return c.result(text, true)
}

// incomplete ends a call that will have no result.
func (s *session) incomplete(c *call, reason event.IncompleteReason) {
	last := c.status
	e := event.ToolIncompleteEvent{ToolCallID: c.id, ToolName: c.name, Reason: reason, LastStatus: last}
	if last == "" {
		// Its arguments never came whole: it was not shown as a call yet.
		e.ArgsPartial = c.args.String()
		c.status = event.StatusIncomplete
	} else {
		s.setStatus(c, event.StatusIncomplete, 0)
	}
	s.emit(e)
	if last == "" {
		return // a call that was never whole is no call without a result
	}
	s.mu.Lock()
	s.outcome.Incomplete = append(s.outcome.Incomplete, c.id)
	s.mu.Unlock()
}

func (s *session) setStatus(c *call, status event.ToolStatus, timeout time.Duration) {
	c.status = status
	s.emit(event.ToolStatusEvent{ToolCallID: c.id, ToolName: c.name, Status: status, TimeoutSec: timeout.Seconds()})
}

func (c *call) final() bool {
	switch c.status {
	case event.StatusDone, event.StatusError, event.StatusDenied, event.StatusIncomplete:
		return true
	}
	return false
}

// result is the item that answers the call in the history.
func (c *call) result(text string, isError bool) model.Item {
	return model.Item{Kind: model.ToolResult, CallID: c.id, Name: c.name, Text: text, IsError: isError, Freeform: c.freeform}
}

// env is what the tool of one call may ask of the run.
func (s *session) env(c *call) tools.Env {
	// A command may outlive its turn and still belongs to it.
	commands, origin := s.Commands, s.origin()
	commands.Sessions = s.commands
	env := tools.Env{
		Cwd: s.Cwd, Files: s.Files, CallID: c.id, ToolName: c.name,
		Output: s.Output, Commands: commands,
		Planning: s.Mode == ModePlan, Artifact: s.OpenArtifact,
		Answers: func(id string) (string, bool) { label, ok := s.Answers[id]; return label, ok },
		Rights:  c.rights, Timeout: c.limit, Approval: s.Policy.Approval(),
		Judge: func(a policy.Action) policy.Verdict { return s.judgeAction(c, a) },
		Permit: func(ctx context.Context, want sandbox.Rights, reason string) (sandbox.Rights, string, error) {
			return s.permit(ctx, c, want, reason)
		},
		Emit: func(b event.Body) {
			if f, ok := b.(event.FileChangedEvent); ok {
				s.noteFile(f)
			}
			s.tell(origin, b)
		},
	}
	env.MoneyLeft, env.Charge = s.moneyLeft, s.charge
	if s.canAsk() {
		env.Ask = func(ctx context.Context, id string) (string, event.Decider, error) { return s.askInput(ctx, c, id) }
	}
	return env
}

// abortText is what the history says of a call that was cancelled.
func abortText(tool string, took time.Duration) string {
	seconds := max(took.Seconds(), 0.1)
	switch tool {
	case "shell", "shell_command", "local_shell":
		return fmt.Sprintf("Wall time: %.1f seconds\naborted by user", seconds)
	}
	return fmt.Sprintf("aborted by user after %.1fs", seconds)
}

func incompleteReason(stop *Stop) event.IncompleteReason {
	switch stop.Exit {
	case fault.Timeout:
		return "timeout"
	case fault.LimitTurns, fault.LimitSpend, fault.Blocked, fault.NeedsInput:
		return "limit"
	case fault.Internal:
		return "crash"
	}
	return "cancelled"
}

// afterCalls looks at a finished set of calls for what should end the run: too
// many calls that cannot be read, or the same call again and again.
func (s *session) afterCalls(calls []*call) *Stop {
	for _, c := range calls {
		if errors.Is(c.err, tools.ErrArguments) {
			s.repeats.broken++
		} else {
			s.repeats.broken = 0
		}
	}
	if stop := s.refusedStop(); stop != nil {
		return stop
	}
	return s.repeats.stop()
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(s), "\n")
	return cutTo(line, 200)
}
