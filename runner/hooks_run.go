package runner

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"time"

	"drover/output/event"
	"drover/runner/textfile"
	"drover/tools"
)

// hookRun is one hook that was run.
type hookRun struct {
	hook   *Hook
	answer hookAnswer
	// reason is why it refuses, asks or fails; it is never empty with a refusal
	// or a failure.
	reason string
	// problem is set if the hook did not do what a hook does.
	problem  string
	timedOut bool
	exit     *int
	took     time.Duration
}

// failed tells whether the hook failed and its failure is a refusal.
func (d *hookRun) failed() bool { return d.problem != "" && d.hook.OnError == HookDeny }

// maxHookText bounds a reason or a context in bytes.
const maxHookText = 32 << 10

// runHooks runs hooks side by side and reports each; the results are in the
// order of the config. A cancelled run ends them.
func (s *session) runHooks(ctx context.Context, list []*Hook, c *call, p hookPayload) []*hookRun {
	input, err := json.Marshal(p)
	said := make([]*hookRun, len(list))
	if err != nil {
		for i, h := range list {
			said[i] = failedHook(h, "its input cannot be encoded: "+err.Error())
		}
	} else {
		input = append(input, '\n')
		var group sync.WaitGroup
		for i, h := range list {
			group.Go(func() { said[i] = s.guardedHook(ctx, h, input) })
		}
		group.Wait()
	}
	if ctx.Err() != nil {
		return said
	}
	for _, d := range said {
		s.reportHook(d, c)
	}
	return said
}

func failedHook(h *Hook, problem string) *hookRun {
	return &hookRun{hook: h, problem: problem, reason: "the hook " + problem}
}

// guardedHook turns a panic into the run's end.
func (s *session) guardedHook(ctx context.Context, h *Hook, input []byte) (d *hookRun) {
	defer func() {
		if p := recover(); p != nil {
			s.crashed(p)
			d = failedHook(h, "was ended by a bug in drover")
		}
	}()
	return s.runHook(ctx, h, input)
}

// runHook runs one hook and reads its answer.
func (s *session) runHook(ctx context.Context, h *Hook, input []byte) *hookRun {
	if h.changed() {
		return failedHook(h, "has another program than at the start of the run: "+h.Program+" was changed")
	}
	res, err := tools.RunHook(ctx, s.Commands, tools.HookCommand{
		Script: h.Command, Dir: s.Cwd, Input: input, Timeout: h.Timeout, Rights: h.Rights,
		Notice: func(n event.NoticeEvent) { s.emit(n) },
		// Hooks written for other products look for the project here.
		Set: map[string]string{"DROVER_PROJECT_DIR": s.Cwd, "CLAUDE_PROJECT_DIR": s.Cwd},
	})
	if err != nil {
		return failedHook(h, "cannot be started: "+err.Error())
	}
	d := &hookRun{hook: h, took: res.Duration}
	if res.Signal == "" && res.ExitCode >= 0 {
		d.exit = &res.ExitCode
	}
	switch {
	case res.TimedOut:
		d.problem, d.timedOut = fmt.Sprintf("timed out after %v", h.Timeout), true
	case res.Signal != "":
		d.problem = "was ended by signal " + res.Signal
	case res.ExitCode == 2:
		d.answer.block = true
		d.reason = hookText(res.Stderr)
	case res.ExitCode != 0:
		d.problem = fmt.Sprintf("exited with code %d", res.ExitCode)
		if line := firstLine(hookText(res.Stderr)); line != "" {
			d.problem += ": " + line
		}
	case res.Cut:
		d.problem = "printed more than an answer can hold"
	default:
		d.answer, err = readHookAnswer(h.Event, res.Stdout)
		if err != nil {
			d.answer, d.problem = hookAnswer{}, "answered something that cannot be used: "+err.Error()
		}
		d.reason = hookText(d.answer.reason)
	}
	if d.problem != "" {
		d.reason = "the hook " + d.problem
	} else if d.reason == "" && (d.answer.block || d.answer.stop) {
		d.reason = "no reason given"
	}
	return d
}

// maxHookProgram bounds a program that is compared; larger ones are not.
const maxHookProgram = 16 << 20

// changed tells whether the hook's program is not the one of the start.
func (h *Hook) changed() bool {
	if h.ProgramSHA256 == "" {
		return false
	}
	data, err := textfile.Plain(h.Program, maxHookProgram)
	sum := sha256.Sum256(data)
	return err != nil || hex.EncodeToString(sum[:]) != h.ProgramSHA256
}

// hookText is a text of a hook, within its bounds.
func hookText(s string) string {
	return cutTo(strings.TrimSpace(strings.ToValidUTF8(s, "\uFFFD")), maxHookText)
}

// reportHook tells the stream how a hook ended.
func (s *session) reportHook(d *hookRun, c *call) {
	e := event.HookFinishedEvent{
		Hook: d.hook.Name, Event: string(d.hook.Event), Outcome: "ok", ExitCode: d.exit, Decision: "none",
		Reason: cutTo(d.reason, 2000), DurationMS: d.took.Milliseconds(),
	}
	if c != nil {
		e.ToolCallID = c.id
	}
	switch {
	case d.timedOut:
		e.Outcome = "timeout"
	case d.problem != "":
		e.Outcome = "error"
	case d.answer.block || d.answer.stop:
		e.Outcome, e.Decision = "blocked", "deny"
	case d.answer.ask:
		e.Decision = "ask"
	case d.answer.allow:
		e.Decision = "allow"
	}
	if d.failed() {
		e.Decision = "deny"
	}
	s.emit(e)
	if d.problem != "" && d.hook.OnError == HookReport {
		s.emit(event.NoticeEvent{Level: "warning", Code: "hook_failed",
			Message: fmt.Sprintf("the %s hook %s %s; the run goes on without it", d.hook.Event, d.hook.Name, cutTo(d.problem, 2000))})
	}
	if d.answer.message != "" {
		s.emit(event.NoticeEvent{Level: "info", Code: "hook_message", Message: hookText(d.answer.message)})
	}
}

// contextOf joins what hooks want the model to know.
func contextOf(said []*hookRun) string {
	return strings.Join(remarksOf(said), "\n\n")
}

func remarksOf(said []*hookRun) []string {
	var texts []string
	for _, d := range said {
		if d.problem == "" && d.answer.context != "" {
			texts = append(texts, "From the hook "+d.hook.Name+":\n"+hookText(d.answer.context))
		}
	}
	return texts
}
