package event

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"drover/output/fault"
)

var update = flag.Bool("update", false, "write the golden files anew")

// lineSink keeps the lines of a stream.
type lineSink struct{ lines []string }

func (s *lineSink) Emit(e Event) error {
	line, err := AppendJSON(nil, e)
	s.lines = append(s.lines, string(line))
	return err
}

func (s *lineSink) Close() error { return nil }

func (s *lineSink) String() string { return strings.Join(s.lines, "\n") + "\n" }

// storyLog is a log with a clock that goes on by 100 ms per event.
func storyLog() *Log {
	now := time.Date(2026, 9, 20, 10, 0, 0, 0, time.UTC)
	return New(Options{RunID: "run_7", Now: func() time.Time {
		now = now.Add(100 * time.Millisecond)
		return now
	}})
}

func ptr[T any](v T) *T { return &v }

// tellStory emits a run that has every type of event in it: two parallel
// calls, a plan, a patch, a child agent whose push is refused, a provider that
// has to be asked twice, and a time limit that ends it.
func tellStory(log *Log) {
	root := Origin{SessionID: "ses_a"}
	turn := Origin{SessionID: "ses_a", Turn: 1}
	child := Origin{SessionID: "ses_b", ParentSessionID: "ses_a", Agent: "/root/reviewer"}
	childTurn := child
	childTurn.Turn = 1
	status := func(o Origin, id, tool string, s ToolStatus) {
		log.Emit(o, ToolStatusEvent{ToolCallID: id, ToolName: tool, Status: s})
	}
	log.Emit(root, RunStartedEvent{
		Schema: SchemaID, Product: "drover", Version: "0.1.0", Cwd: "/src/app", Model: "script:model.jsonl", Provider: "script",
		Policy: PolicyRef{Default: "deny", SHA256: "e3b0c442", OnDeny: "report"}, Limits: Limits{Turns: 200, WallS: 6},
		Capabilities: []string{"args_delta", "terminal", "usage"}, PromptSource: "arg",
	})
	log.Emit(root, SessionStartedEvent{})
	log.Emit(root, NoticeEvent{Level: "info", Code: "no_policy", Message: "no policy file was found; the preset workspace is used"})
	log.Emit(turn, TurnStartedEvent{Input: "prompt"})
	log.Emit(turn, MessageEvent{MessageID: "msg_1", Role: "user", Text: "Make the tests pass."})
	log.Emit(turn, HeartbeatEvent{WaitingOn: "provider", ElapsedMS: 15000})
	log.Emit(turn, ContextCompactedEvent{Trigger: "auto", TokensBefore: 9000, TokensAfter: 4000})
	log.Emit(turn, ProviderRetryEvent{Attempt: 1, DelayMS: 500, ErrorKind: "overloaded", MaxAttempts: 5, HTTPStatus: 529})
	log.Emit(turn, ReasoningDeltaEvent{MessageID: "msg_2", Delta: "The tests "})
	log.Emit(turn, ReasoningDeltaEvent{MessageID: "msg_2", Delta: "come first."})
	log.Emit(turn, MessageDeltaEvent{MessageID: "msg_3", Delta: "I run the te"})
	log.Emit(turn, MessageDeltaEvent{MessageID: "msg_3", Delta: "sts.\n"})
	log.Emit(turn, ToolCallStartEvent{ToolCallID: "c1", ToolName: "exec_command"})
	log.Emit(turn, ToolCallArgsDeltaEvent{ToolCallID: "c1", Delta: `{"cmd":"go te`})
	log.Emit(turn, ToolCallStartEvent{ToolCallID: "c2", ToolName: "spawn_agent", Index: 1})
	log.Emit(turn, ToolCallArgsDeltaEvent{ToolCallID: "c1", Delta: `st ./..."}`})
	log.Emit(turn, ReasoningEvent{MessageID: "msg_2", Text: "The tests come first."})
	log.Emit(turn, MessageEvent{MessageID: "msg_3", Role: "assistant", Text: "I run the tests.\n", Phase: "commentary"})
	log.Emit(turn, UsageEvent{Model: "script", InputTokens: 4000, OutputTokens: 200, CachedInputTokens: 1000, FinishReason: "tool_calls"})
	log.Emit(turn, ToolCallEvent{ToolCallID: "c1", ToolName: "exec_command", Args: json.RawMessage(`{"cmd":"go test ./..."}`), Display: "run: go test ./..."})
	status(turn, "c1", "exec_command", StatusPending)
	log.Emit(turn, ToolCallEvent{ToolCallID: "c2", ToolName: "spawn_agent", Args: json.RawMessage(`{"role":"reviewer"}`), Display: "spawn: reviewer"})
	status(turn, "c2", "spawn_agent", StatusPending)
	log.Emit(turn, ToolDecisionEvent{ToolCallID: "c1", ToolName: "exec_command", Effect: "allow", DecidedBy: "policy", RuleID: "go-tools", Layer: "project"})
	log.Emit(turn, ToolStatusEvent{ToolCallID: "c1", ToolName: "exec_command", Status: StatusRunning, TimeoutSec: 120})
	log.Emit(turn, TerminalNewRunningEvent{ToolCallID: "c1", TerminalID: "t1", Command: "go test ./...", Description: "unit tests"})
	log.Emit(turn, ToolDecisionEvent{ToolCallID: "c2", ToolName: "spawn_agent", Effect: "allow", DecidedBy: "default"})
	status(turn, "c2", "spawn_agent", StatusRunning)
	log.Emit(child, SessionStartedEvent{SpawnedByToolCallID: "c2"})
	log.Emit(childTurn, TurnStartedEvent{Input: "prompt"})
	log.Emit(turn, TerminalAppendStringEvent{ToolCallID: "c1", TerminalID: "t1", Stream: "stdout", Delta: "--- FAIL: TestReplay (0.03s)\n    replay_test.go:88: got 3 frames, want 2\n"})
	log.Emit(childTurn, UsageEvent{Model: "script", InputTokens: 900, OutputTokens: 40})
	log.Emit(childTurn, ToolCallStartEvent{ToolCallID: "c3", ToolName: "exec_command"})
	log.Emit(childTurn, ToolCallEvent{ToolCallID: "c3", ToolName: "exec_command", Args: json.RawMessage(`{"cmd":"git push"}`), Display: "run: git push"})
	status(childTurn, "c3", "exec_command", StatusPending)
	log.Emit(childTurn, HookFinishedEvent{Hook: "audit", Event: "PreToolUse", Outcome: "ok", ToolCallID: "c3", ExitCode: ptr(0), Decision: "none", DurationMS: 12})
	status(childTurn, "c3", "exec_command", StatusAwaiting)
	log.Emit(turn, ToolApprovalRequestEvent{
		ToolCallID: "c3", ToolName: "exec_command", CorrelationID: "ap_1", Args: json.RawMessage(`{"cmd":"git push"}`), Display: "run: git push",
		SubagentSessionID: "ses_b", RelayPath: []string{"ses_b", "ses_a"}, RuleID: "no-push", MaxScope: "session", Deadline: "2026-09-20T10:05:00.000Z",
		SuggestedRules: []json.RawMessage{json.RawMessage(`{"id":"ap_1","effect":"allow","exec":"git push"}`)},
	})
	log.Emit(turn, ToolApprovalResponseEvent{CorrelationID: "ap_1", Scope: "once", DecidedBy: "approver", ToolCallID: "c3", RuleID: "no-push", Reason: "pushes are for people", WaitMS: 600})
	log.Emit(childTurn, ToolDecisionEvent{ToolCallID: "c3", ToolName: "exec_command", Effect: "deny", DecidedBy: "approver", RuleID: "no-push", Reason: "pushes are for people", Scope: "once", CorrelationID: "ap_1"})
	status(childTurn, "c3", "exec_command", StatusDenied)
	log.Emit(childTurn, ToolResultEvent{ToolCallID: "c3", ToolName: "exec_command", Display: "denied: pushes are for people", IsError: true, Denied: true})
	log.Emit(turn, TerminalInputEvent{ToolCallID: "c1", TerminalID: "t1", Bytes: 2, Text: "y\n"})
	log.Emit(turn, TerminalAppendStringEvent{ToolCallID: "c1", TerminalID: "t1", Stream: "stdout", Delta: "FAIL\n"})
	log.Emit(turn, TerminalCompletedEvent{ToolCallID: "c1", TerminalID: "t1", ExitCode: ptr(1), OutputBytes: 78})
	status(turn, "c1", "exec_command", StatusDone)
	log.Emit(turn, ToolResultEvent{ToolCallID: "c1", ToolName: "exec_command", Display: "exit 1, 3 lines", Content: "FAIL\n", DurationMS: 42000, OutputBytes: 78})
	log.Emit(root, LimitWarningEvent{Limit: "wall_s", Value: 4.8, Max: 6, Scope: "run"})
	log.Emit(childTurn, TurnFinishedEvent{Status: "interrupted", StopReason: "wall_s"})
	log.Emit(child, SessionFinishedEvent{Status: "interrupted", Usage: Usage{InputTokens: 900, OutputTokens: 40, Calls: 1}})
	status(turn, "c2", "spawn_agent", StatusIncomplete)
	log.Emit(turn, ToolIncompleteEvent{ToolCallID: "c2", ToolName: "spawn_agent", Reason: "timeout", LastStatus: StatusRunning})
	log.Emit(turn, TurnFinishedEvent{Status: "completed"})
	tellSecondTurn(log)
	log.Emit(root, SessionFinishedEvent{Status: "interrupted", Usage: Usage{InputTokens: 9000, OutputTokens: 500, CachedInputTokens: 1000, Calls: 2}})
	log.Emit(root, RunFinishedEvent{
		Status: "timeout", ExitCode: 14, Reason: "wall_s", DurationMS: 6010, Turns: 2,
		Usage:   Usage{InputTokens: 9900, OutputTokens: 540, CachedInputTokens: 1000, Calls: 3, Retries: 1},
		Denials: []Denial{{ToolCallID: "c3", ToolName: "exec_command", SessionID: "ses_b", DecidedBy: "approver", RuleID: "no-push", CorrelationID: "ap_1", Counts: true}}, Incomplete: []string{"c2"},
		ToolCalls: map[string]int{"exec_command": 1, "apply_patch": 1, "update_plan": 1},
	})
}

func tellSecondTurn(log *Log) {
	turn := Origin{SessionID: "ses_a", Turn: 2}
	status := func(id, tool string, s ToolStatus) {
		log.Emit(turn, ToolStatusEvent{ToolCallID: id, ToolName: tool, Status: s})
	}
	log.Emit(turn, TurnStartedEvent{Input: "tool_results"})
	log.Emit(turn, ToolCallStartEvent{ToolCallID: "c4", ToolName: "update_plan"})
	log.Emit(turn, ToolCallStartEvent{ToolCallID: "c5", ToolName: "apply_patch", Index: 1})
	log.Emit(turn, ToolCallArgsDeltaEvent{ToolCallID: "c5", Delta: "*** Begin Patch\n*** End Patch"})
	log.Emit(turn, UsageEvent{Model: "script", InputTokens: 5000, OutputTokens: 300, FinishReason: "tool_calls"})
	log.Emit(turn, ToolCallEvent{ToolCallID: "c4", ToolName: "update_plan", Args: json.RawMessage(`{"plan":[]}`), Display: "plan: 2 steps"})
	status("c4", "update_plan", StatusPending)
	log.Emit(turn, ToolDecisionEvent{ToolCallID: "c4", ToolName: "update_plan", Effect: "allow", DecidedBy: "default"})
	status("c4", "update_plan", StatusRunning)
	log.Emit(turn, PlanUpdatedEvent{Items: []PlanItem{{Text: "run the tests", Status: "completed"}, {Text: "fix them", Status: "in_progress"}}})
	status("c4", "update_plan", StatusDone)
	log.Emit(turn, ToolResultEvent{ToolCallID: "c4", ToolName: "update_plan", Display: "plan updated"})
	log.Emit(turn, ToolCallEvent{ToolCallID: "c5", ToolName: "apply_patch", Args: json.RawMessage(`{"input":"*** Begin Patch\n*** End Patch"}`), Display: "patch: loop.go +14 −3"})
	status("c5", "apply_patch", StatusPending)
	log.Emit(turn, ToolDecisionEvent{ToolCallID: "c5", ToolName: "apply_patch", Effect: "allow", DecidedBy: "policy", RuleID: "workspace-writes"})
	status("c5", "apply_patch", StatusRunning)
	log.Emit(turn, FileChangedEvent{ToolCallID: "c5", Path: "loop.go", Kind: "modify", Added: 14, Removed: 3})
	status("c5", "apply_patch", StatusDone)
	log.Emit(turn, ToolResultEvent{ToolCallID: "c5", ToolName: "apply_patch", Display: "1 file changed", Summary: "loop.go +14 −3"})
	log.Emit(turn, InputRequestedEvent{CorrelationID: "q1", Kind: "question", Prompt: "Where to?", Choices: []string{"staging", "production"}})
	log.Emit(turn, InputResolvedEvent{CorrelationID: "q1", DecidedBy: "policy", Reason: "nobody can answer"})
	log.Emit(turn, GoalUpdatedEvent{Objective: "green tests", Status: "active", TokenBudget: 50000, TokensUsed: 9900})
	tellJob(log)
	log.Emit(turn, LimitReachedEvent{Limit: "wall_s", Value: 6, Max: 6, Scope: "run"})
	log.Emit(turn, ErrorEvent{Code: "wall_s", Message: "the time limit of 6s was reached", Fatal: true})
	log.Emit(turn, TurnFinishedEvent{Status: "interrupted", StopReason: "wall_s"})
}

// tellJob emits a job of three rows: one goes well, one fails, one is tried
// twice.
func tellJob(log *Log) {
	job := Origin{}
	row := func(id string) Origin { return Origin{ItemID: id} }
	log.Emit(job, JobStartedEvent{JobID: "job_1", Total: 4, Source: FileRef{Path: "tickets.csv"}, IDColumn: "id", OutputPath: "results.csv", Concurrency: 2, Resumed: true, Skipped: 1})
	log.Emit(row("acme-1"), JobItemStartedEvent{JobID: "job_1", Index: 1, Attempt: 1})
	log.Emit(row("acme-2"), JobItemStartedEvent{JobID: "job_1", Index: 2, Attempt: 1})
	log.Emit(job, JobProgressEvent{JobID: "job_1", Total: 4, Pending: 1, Running: 2, Skipped: 1})
	log.Emit(row("acme-1"), JobItemFinishedEvent{JobID: "job_1", Index: 1, Attempt: 1, Status: "completed", ExitCode: ptr(0), Result: json.RawMessage(`{"ok":true}`), DurationMS: 200})
	log.Emit(row("acme-2"), JobItemFinishedEvent{JobID: "job_1", Index: 2, Attempt: 1, Status: "timeout", ExitCode: ptr(14), WillRetry: true, DurationMS: 200})
	log.Emit(row("acme-3"), JobItemStartedEvent{JobID: "job_1", Index: 3, Attempt: 1})
	log.Emit(row("acme-2"), JobItemStartedEvent{JobID: "job_1", Index: 2, Attempt: 2})
	log.Emit(row("acme-2"), JobItemFinishedEvent{JobID: "job_1", Index: 2, Attempt: 2, Status: "completed", ExitCode: ptr(0), Result: json.RawMessage(`{"ok":true}`), DurationMS: 100})
	log.Emit(job, JobProgressEvent{JobID: "job_1", Total: 4, Running: 1, Completed: 2, Skipped: 1, ETASeconds: ptr(0.5), CostUSD: ptr(0.25)})
	log.Emit(row("acme-3"), JobItemFinishedEvent{JobID: "job_1", Index: 3, Attempt: 1, Status: "failed", ExitCode: ptr(1), Error: &Err{Code: "failed", Message: "no such ticket"}, DurationMS: 300})
	log.Emit(job, JobFinishedEvent{JobID: "job_1", Status: "partial", Total: 4, Completed: 2, Failed: 1, Skipped: 1, OutputPath: "results.csv", FailedItems: []string{"acme-3"}})
}

// story returns the lines of the golden stream at a level.
func story(level Level) *lineSink {
	var s lineSink
	log := storyLog()
	log.Attach(Attachment{Name: "test", Sink: &s, Level: level})
	tellStory(log)
	return &s
}

func TestTheGoldenStreamKeepsAllGuarantees(t *testing.T) {
	for _, level := range []Level{Core, Default, Full} {
		s := story(level)
		for _, err := range CheckStream(strings.NewReader(s.String())) {
			t.Errorf("level %d: %v", level, err)
		}
	}
	full := story(Full).String()
	golden := filepath.Join("testdata", "stream.jsonl")
	if *update {
		if err := os.WriteFile(golden, []byte(full), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), full); d != "" {
		t.Errorf("the stream is not %s any more (run with -update if that is meant): %s", golden, d)
	}
	for _, name := range typeNames() {
		if !strings.Contains(full, `"type":"`+name+`"`) {
			t.Errorf("the golden stream has no %s", name)
		}
	}
}

func TestARunThatCouldNotStartIsOneLine(t *testing.T) {
	var s lineSink
	log := storyLog()
	log.Attach(Attachment{Sink: &s})
	log.Emit(Origin{}, RunFinishedEvent{Status: "failed", ExitCode: 3, Reason: "config"})
	for _, err := range CheckStream(strings.NewReader(s.String())) {
		t.Error(err)
	}
	ok := strings.Replace(strings.Replace(s.String(), `"failed"`, `"success"`, 1), `"exit_code":3`, `"exit_code":0`, 1)
	if errs := CheckStream(strings.NewReader(ok)); len(errs) != 1 || !strings.Contains(errs[0].Error(), "cannot be a success") {
		t.Errorf("got %v", errs)
	}
}

func TestHistoryMayBeShownAgain(t *testing.T) {
	lines := slices.Clone(story(Core).lines)
	replayed := testEvent(ToolResultEvent{ToolCallID: "old", ToolName: "x"})
	replayed.Seq, replayed.RunID, replayed.SessionID, replayed.Turn, replayed.Replayed = 1, "run_7", "ses_a", 0, true
	lines = slices.Insert(lines, 1, string(mustEncode(t, replayed)))
	lines = renumbered(t, lines)
	for _, err := range CheckStream(strings.NewReader(strings.Join(lines, "\n") + "\n")) {
		t.Error(err)
	}
}

// edit changes one line as decoded JSON.
func edit(t *testing.T, line string, change func(map[string]any)) string {
	t.Helper()
	dec := json.NewDecoder(strings.NewReader(line))
	dec.UseNumber()
	var m map[string]any
	if err := dec.Decode(&m); err != nil {
		t.Fatal(err)
	}
	change(m)
	out, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// renumbered gives the lines new numbers and the last one their count, so that
// a test can break one guarantee and no other.
func renumbered(t *testing.T, lines []string) []string {
	t.Helper()
	out := make([]string, len(lines))
	for i, line := range lines {
		out[i] = edit(t, line, func(m map[string]any) {
			m["seq"] = i + 1
			if m["type"] == "run.finished" {
				m["lines"] = len(lines)
			}
		})
	}
	return out
}

// TestEveryBrokenGuaranteeIsReported breaks one guarantee of the golden stream
// at a time. find names the line by what it contains.
func TestEveryBrokenGuaranteeIsReported(t *testing.T) {
	type lines = []string
	at := func(l lines, find ...string) int {
		i := slices.IndexFunc(l, func(s string) bool {
			for _, f := range find {
				if !strings.Contains(s, f) {
					return false
				}
			}
			return true
		})
		if i < 0 {
			t.Fatalf("no line with %q", find)
		}
		return i
	}
	typ := func(name string) string { return `"type":"` + name + `"` }
	drop := func(find ...string) func(lines) lines {
		return func(l lines) lines { i := at(l, find...); return slices.Delete(l, i, i+1) }
	}
	set := func(key string, value any, find ...string) func(lines) lines {
		return func(l lines) lines {
			i := at(l, find...)
			l[i] = edit(t, l[i], func(m map[string]any) { m[key] = value })
			return l
		}
	}
	double := func(find ...string) func(lines) lines {
		return func(l lines) lines { i := at(l, find...); return slices.Insert(l, i, l[i]) }
	}
	// move puts a line before another.
	move := func(from, before []string) func(lines) lines {
		return func(l lines) lines {
			i := at(l, from...)
			line := l[i]
			l = slices.Delete(l, i, i+1)
			return slices.Insert(l, at(l, before...), line)
		}
	}
	of := func(s ...string) []string { return s }
	tests := []struct {
		name   string
		change func(lines) lines
		want   string
	}{
		{"no first line", drop(typ("run.started")), "neither run.started nor"},
		{"a second first line", double(typ("run.started")), "not the first line"},
		{"no last line", drop(typ("run.finished")), "last line is not run.finished"},
		{"a second last line", double(typ("run.finished")), "follows run.finished"},
		{"another schema", set("schema", "urn:other", typ("run.started")), "the schema is"},
		{"another run", set("run_id", "run_8", typ("heartbeat")), "run_id is"},
		{"a session that changes its parent", set("agent", "/root/other", typ("tool.result"), `"c3"`), "at its start"},
		{"a session that starts twice", double(typ("session.started"), "ses_b"), "has started before"},
		{"a turn in no session", drop(typ("session.started"), "ses_b"), "is not open"},
		{"a session that ends in a turn", move(of(typ("session.finished"), "ses_b"), of(typ("turn.finished"), "ses_b")), "still open"},
		{"a turn that does not end", drop(typ("turn.finished"), `"turn":2`), "turn 2 of session ses_a is still open"},
		{"a turn that does not begin", drop(typ("turn.started"), `"turn":2`), "turn 2 of session ses_a is not open"},
		{"a turn twice", set("turn", 1, typ("turn.started"), `"turn":2`), "turn 1 follows turn 1"},
		{"a call announced twice", double(typ("tool.call.started"), `"c1"`), "has begun before"},
		{"a call not announced", drop(typ("tool.call.started"), `"c2"`), "no tool.call.started"},
		{"arguments before their call", move(of(typ("tool.call.args_delta"), `"c5"`), of(typ("tool.call.started"), `"c5"`)), "arguments have to come between"},
		{"arguments after the whole", move(of(typ("tool.call.args_delta"), `"c5"`), of(typ("file.changed"))), "arguments have to come between"},
		{"other arguments", set("args", map[string]any{"cmd": "rm"}, typ("tool.call"), `"c1"`), "not its arguments"},
		{"other freeform input", set("args", map[string]any{"input": "x"}, typ("tool.call"), `"c5"`), "not its arguments"},
		{"a whole call twice", double(typ("tool.call"), `"c1"`), "has a tool.call already"},
		{"no pending", drop(typ("tool.status"), `"c1"`, "pending"), "pending has to follow tool.call"},
		{"pending later", move(of(typ("tool.status"), `"c1"`, "pending"), of(typ("tool.status"), `"c1"`, "running")), "pending has to follow tool.call"},
		{"a job that starts twice", double(typ("job.started")), "has started before"},
		{"a job that does not start", drop(typ("job.started")), "job job_1 is not open"},
		{"a job that does not end", drop(typ("job.finished")), "job job_1 is still open"},
		{"a job that goes on after its end", move(of(typ("job.finished")), of(typ("job.progress"), `"completed":2`)), "job job_1 is not open"},
		{"a row begun twice", double(typ("job.item.started"), "acme-1"), "row acme-1 is still open"},
		{"a row that is not begun", drop(typ("job.item.started"), "acme-1"), "attempt 1 at row acme-1 is not open"},
		{"a row that is not ended", drop(typ("job.item.finished"), "acme-3"), "row acme-3 is still open"},
		{"an attempt twice", set("attempt", 1, typ("job.item.started"), "acme-2", `"attempt":2`), "attempt 1 at row acme-2 follows attempt 1"},
		{"another attempt", set("attempt", 7, typ("job.item.finished"), "acme-1"), "attempt 7 at row acme-1 is not open"},
		{"rows that are not counted", set("running", 0, typ("job.progress"), `"completed":2`), "the rows add up to 3, there are 4"},
		{"a negative count", set("failed", -1, typ("job.progress"), `"completed":2`), "a count is -1"},
		{"another number of rows", set("total", 5, typ("job.finished")), "at its start it had 4"},
		{"another number of rows on the way", set("total", 5, typ("job.progress"), `"completed":2`), "at its start it had 4"},
		{"more rows skipped than there are", set("skipped", 5, typ("job.started")), "5 rows of 4 are skipped"},
		{"more rows than there are", set("completed", 9, typ("job.finished")), "11 rows of 4"},
		{"failures in a completed job", set("status", "completed", typ("job.finished")), "1 of them failed"},
		{"a failure that is not named", set("failed_items", []string{"a", "b"}, typ("job.finished")), "1 rows failed, 2 are named"},
		{"decided twice", double(typ("tool.decision"), `"c1"`), "decided before"},
		{"decided too late", move(of(typ("tool.decision"), `"c1"`), of(typ("terminal.started"))), "decided after it ran"},
		{"not decided", drop(typ("tool.decision"), `"c1"`), "runs without a decision"},
		{"refused and run", set("effect", "deny", typ("tool.decision"), `"c1"`), "was refused and runs"},
		{"refused and not denied", func(l lines) lines {
			l = set("effect", "deny", typ("tool.decision"), `"c3"`)(l)
			l = set("denied", false, typ("tool.result"), `"c3"`)(l)
			return set("status", "error", typ("tool.status"), `"c3"`, "denied")(l)
		}, "has to say denied"},
		{"denied and no error", set("is_error", false, typ("tool.result"), `"c3"`), "is_error has to be true"},
		{"asked without being blocked", drop(typ("tool.status"), "awaiting_approval"), "without tool.status awaiting_approval"},
		{"asked twice", double(typ("tool.approval.requested")), "has been made before"},
		{"asked again while it waits", func(l lines) lines {
			i := at(l, typ("tool.approval.requested"))
			return slices.Insert(l, i, edit(t, l[i], func(m map[string]any) { m["correlation_id"] = "ap_0" }))
		}, "waits for the request ap_0 already"},
		{"a request without an answer", drop(typ("tool.approval.resolved")), "the request ap_1 is still open"},
		{"going on before the answer", drop(typ("tool.approval.resolved")), "status denied while the request ap_1 is open"},
		{"two answers", double(typ("tool.approval.resolved")), "the request ap_1 is not open"},
		{"an answer to nothing", drop(typ("tool.approval.requested")), "the request ap_1 is not open"},
		{"a decision before its answer", move(of(typ("tool.decision"), `"c3"`), of(typ("tool.approval.resolved"))), "the request ap_1 was not resolved"},
		{"another decision than the answer", set("effect", "allow", typ("tool.decision"), `"c3"`), "although the request ap_1 was refused"},
		{"running twice", double(typ("tool.status"), `"c1"`, "running"), `cannot follow "running"`},
		{"done without running", drop(typ("tool.status"), `"c4"`, "running"), `status done cannot follow "pending"`},
		{"no final state", drop(typ("tool.status"), `"c1"`, "done"), "done has to come directly before"},
		{"a final state that does not fit", set("is_error", true, typ("tool.result"), `"c1"`), "error has to come directly before"},
		{"something after the final state", move(of(typ("file.changed")), of(typ("tool.result"), `"c5"`)), "has to come directly before"},
		{"no final state before incomplete", drop(typ("tool.status"), `"c2"`, "incomplete"), "incomplete has to come directly before"},
		{"no result", drop(typ("tool.result"), `"c5"`), "call c5 is still open"},
		{"two results", double(typ("tool.result"), `"c1"`), "has ended before"},
		{"a result and incomplete", func(l lines) lines {
			i := at(l, typ("tool.result"), `"c1"`)
			inc := edit(t, l[at(l, typ("tool.incomplete"))], func(m map[string]any) { m["tool_call_id"] = "c1" })
			return slices.Insert(l, i+1, inc)
		}, "has ended before"},
		{"a result without a call", set("tool_call_id", "c9", typ("tool.result"), `"c4"`), "call c9 has no tool.call"},
		{"a file of no call", set("tool_call_id", "c9", typ("file.changed")), "call c9 has no tool.call"},
		{"a call outside a turn", move(of(typ("turn.finished"), `"turn":2`), of(typ("tool.status"), `"c5"`, "done")), "outside a turn"},
		{"a delta after its message", move(of(typ("message.delta"), "sts."), of(typ("limit.warning"))), "follows the whole text"},
		{"a message that is not its deltas", set("text", "I ran", typ("message"), `"msg_3"`), "joined deltas are not the whole"},
		{"reasoning that is not its deltas", set("text", "Why", typ("reasoning")), "joined deltas are not the whole"},
		{"deltas without their message", drop(typ("message"), `"msg_3"`), "has no whole"},
		{"a message twice", double(typ("message"), `"msg_1"`), "came before"},
		{"a terminal that starts twice", double(typ("terminal.started")), "has started before"},
		{"a terminal that never started", drop(typ("terminal.started")), "terminal t1 is not open"},
		{"output after the end", move(of(typ("terminal.output"), "FAIL\\n\""), of(typ("limit.warning"))), "terminal t1 is not open"},
		{"a terminal that ends twice", double(typ("terminal.completed")), "has completed before"},
		{"a terminal that does not end", drop(typ("terminal.completed")), "terminal t1 is still open"},
		{"usage that does not add up", drop(typ("usage"), "900"), "add up to"},
		{"a refusal that is not listed", set("denials", []any{}, typ("run.finished")), "not among the denials"},
		{"a status of another exit code", set("status", "success", typ("run.finished")), "do not belong together"},
		{"an exit code that is none", set("exit_code", 99, typ("run.finished")), "do not belong together"},
		{"an unknown key", set("novel", 1, typ("heartbeat")), "not in the schema"},
		{"a long line", set("message", strings.Repeat("x", 64<<10), typ("notice")), "65535 are allowed"},
		{"a very long line", set("text", strings.Repeat("x", 1<<20), typ("message"), `"msg_1"`), "1048576 are allowed"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			broken := renumbered(t, tt.change(slices.Clone(story(Full).lines)))
			errs := CheckStream(strings.NewReader(strings.Join(broken, "\n") + "\n"))
			if !anyContains(errs, tt.want) {
				t.Errorf("got %v, want one with %q", errs, tt.want)
			}
		})
	}
}

func anyContains(errs []error, want string) bool {
	return slices.ContainsFunc(errs, func(err error) bool { return strings.Contains(err.Error(), want) })
}

func TestBrokenFramingIsReported(t *testing.T) {
	good := story(Default).String()
	tests := []struct{ name, stream, want string }{
		{"empty", "", "the stream is empty"},
		{"byte-order mark", "\xef\xbb\xbf" + good, "byte-order mark"},
		{"blank line", strings.Replace(good, "\n", "\n\n", 1), "line 2: the line is blank"},
		{"carriage returns", strings.ReplaceAll(good, "\n", "\r\n"), "carriage return"},
		{"no newline at the end", strings.TrimSuffix(good, "\n"), "no newline"},
		{"invalid UTF-8", strings.Replace(good, "The tests", "The \xff tests", 1), "not valid UTF-8"},
		{"line separators", strings.Replace(good, "The tests", "The \u2028 tests", 1), "not escaped"},
		{"duplicate keys", strings.Replace(good, `"level":"info"`, `"level":"info","level":"info"`, 1), `the key "level" occurs twice`},
		{"duplicate keys deep inside", strings.Replace(good, `{"cmd":"git push"}`, `{"cmd":"git push","cmd":""}`, 1), `the key "cmd" occurs twice`},
		{"text between", strings.Replace(good, "\n", "\nwarning: x\n", 1), "not one JSON object"},
		{"a cut line", good[:len(good)-20] + "\n", "not one JSON object"},
		{"broken JSON", strings.Replace(good, `"level":`, `"level"`, 1), "not JSON"},
		{"a number that stays", strings.Replace(good, `"seq":5,`, `"seq":2,`, 1), "seq 2 follows"},
		{"a lost line", good[strings.Index(good, "\n")+1:], "lines is"},
		{"another version", strings.Replace(good, `{"v":1,"seq":5`, `{"v":2,"seq":5`, 1), "version 2 is not known"},
		{"something after the end", good + "\n", "follows run.finished"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if errs := CheckStream(strings.NewReader(tt.stream)); !anyContains(errs, tt.want) {
				t.Errorf("got %v, want one with %q", errs, tt.want)
			}
		})
	}
}

func TestExitCodesAreThoseOfTheTable(t *testing.T) {
	want := map[int]RunStatus{}
	for _, row := range fault.Table() {
		want[int(row.Code)] = RunStatus(row.Status)
	}
	if d := cmp.Diff(want, statusOfExit); d != "" {
		t.Error(d)
	}
}

func FuzzChecker(f *testing.F) {
	f.Add([]byte(story(Full).String()))
	f.Add([]byte("{}\n\n{\"v\":1}"))
	f.Fuzz(func(t *testing.T, stream []byte) {
		var c Checker
		for line := range bytes.SplitSeq(stream, []byte("\n")) {
			c.Line(line)
		}
		c.Finish()
	})
}

func BenchmarkCheckStream(b *testing.B) {
	stream := story(Full)
	text := stream.String()
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		if errs := CheckStream(strings.NewReader(text)); errs != nil {
			b.Fatal(errs)
		}
	}
	b.ReportMetric(float64(b.N*len(stream.lines))/b.Elapsed().Seconds(), "lines/s")
}
