package board

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"drover/output/event"
)

// styles are those in which the golden files are.
var styles = []struct {
	name         string
	color, ascii bool
}{{"plain", false, false}, {"color", true, false}, {"ascii", false, true}}

// mustLookLike compares rows with a golden file.
func mustLookLike(t *testing.T, name string, rows []string) {
	t.Helper()
	got := strings.Join(rows, "\n") + "\n"
	path := filepath.Join("testdata", name+".txt")
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), got); d != "" {
		t.Errorf("it is not %s any more (run with -update if that is meant): %s", path, d)
	}
}

// past are calls that ended in each way in which one can.
func past() []event.Event {
	var out []event.Event
	now := 0.0
	tell := func(seconds float64, b event.Body) {
		now += seconds
		out = append(out, at(now, b))
	}
	begin := func(id, tool, display string) {
		tell(0, event.ToolCallEvent{ToolCallID: id, ToolName: tool, Display: display})
		tell(0, event.ToolStatusEvent{ToolCallID: id, ToolName: tool, Status: event.StatusRunning, TimeoutSec: 120})
	}
	prints := func(id, text string) {
		tell(0, event.TerminalAppendStringEvent{ToolCallID: id, TerminalID: "t" + id, Delta: text})
	}
	exits := func(id string, seconds float64, code int) {
		tell(seconds, event.TerminalCompletedEvent{ToolCallID: id, TerminalID: "t" + id, ExitCode: &code})
		tell(0, event.ToolResultEvent{ToolCallID: id, Display: fmt.Sprintf("exit %d", code), DurationMS: int64(seconds * 1000)})
	}
	begin("1", "exec_command", "run: go build ./...")
	exits("1", 3.1, 0)
	begin("2", "apply_patch", "patch: runner/loop.go +14 −3, runner/calls.go +2 −2")
	tell(0.1, event.ToolResultEvent{ToolCallID: "2", Display: "2 files", DurationMS: 100})
	begin("3", "exec_command", "run: go test ./runner/...")
	prints("3", strings.Repeat("ok\r\n", 212)+"--- FAIL: TestReplay (0.03s)\n    replay_test.go:88: got 3 frames, want 2\nFAIL\nFAIL  runner  0.9s\nFAIL\n")
	exits("3", 42, 1)
	tell(0, event.ToolCallEvent{ToolCallID: "4", ToolName: "exec_command", Display: "run: git push --force origin main"})
	tell(0, event.ToolDecisionEvent{ToolCallID: "4", Effect: "deny", DecidedBy: "policy", RuleID: "no-force-push"})
	tell(0, event.ToolResultEvent{ToolCallID: "4", IsError: true, Denied: true})
	begin("5", "exec_command", "run: ./e2e.sh")
	tell(120, event.TerminalCompletedEvent{ToolCallID: "5", TerminalID: "t5", Signal: "SIGKILL", TimedOut: true})
	tell(0, event.ToolResultEvent{ToolCallID: "5", IsError: true, Error: &event.Err{Code: "timeout"}, DurationMS: 120_000})
	begin("6", "spawn_agent", "spawn: /root/reviewer")
	tell(31, event.ToolIncompleteEvent{ToolCallID: "6", Reason: "crash"})
	begin("7", "exec_command", "run: npm run dev")
	tell(8, event.ToolIncompleteEvent{ToolCallID: "7", Reason: "cancelled"})
	begin("8", "view_image", "view: missing.png")
	tell(0.2, event.ToolResultEvent{ToolCallID: "8", IsError: true, Content: "missing.png: no such file\n", DurationMS: 200})
	return out
}

// TestEachEndLooksAsItAlwaysDid, at two widths and in all styles.
func TestEachEndLooksAsItAlwaysDid(t *testing.T) {
	for _, columns := range []int{80, 40} {
		for _, st := range styles {
			b := New(Show{})
			for _, e := range past() {
				b.Take(e)
			}
			b.End()
			p := Painter{Style: NewStyle(st.color, st.ascii), Columns: columns}
			mustLookLike(t, fmt.Sprintf("history-%d-%s", columns, st.name), print(p, b.Ready()))
		}
	}
}

// TestTheMomentsOfARunLookAsTheyAlwaysDid, live, at two widths and in all styles.
func TestTheMomentsOfARunLookAsTheyAlwaysDid(t *testing.T) {
	for _, m := range []struct {
		name  string
		board func() *Board
		after time.Duration
		rows  int
	}{{"live", scene, 103 * time.Second, 27}, {"crowd", crowded, 131 * time.Second, 18}, {"agents", agents, 60 * time.Second, 24}} {
		for _, columns := range []int{80, 40} {
			for _, st := range styles {
				b := m.board()
				b.Ready()
				p := Painter{Style: NewStyle(st.color, st.ascii), Columns: columns}
				mustLookLike(t, fmt.Sprintf("%s-%d-%s", m.name, columns, st.name), p.Region(b, start.Add(m.after), m.rows))
			}
		}
	}
}

// crowded has more items than the region has rows: nine that run, one of them
// for a sub-agent, and three that have ended behind the first.
func crowded() *Board {
	b := New(Show{})
	tell := func(seconds float64, body event.Body) {
		e := at(seconds, body)
		e.Turn = 2
		b.Take(e)
	}
	begin := func(seconds float64, id, tool, display string) {
		tell(seconds, event.ToolCallEvent{ToolCallID: id, ToolName: tool, Display: display})
		tell(seconds, event.ToolStatusEvent{ToolCallID: id, ToolName: tool, Status: event.StatusRunning})
	}
	tell(0, event.UsageEvent{InputTokens: 17_000, OutputTokens: 1000})
	begin(1, "1", "exec_command", "run: make -j8")
	begin(73, "2", "exec_command", "run: go test ./...")
	tell(80, event.TerminalAppendStringEvent{ToolCallID: "2", TerminalID: "t2", Delta: "ok  tools/policy  0.8s\nok  tools/patch  1.2s\n"})
	begin(80, "3", "spawn_agent", "spawn: /root/reviewer")
	for i, body := range []event.Body{event.SessionStartedEvent{SpawnedByToolCallID: "3"}, event.ToolCallEvent{ToolCallID: "c", ToolName: "exec_command", Display: "run: go vet ./..."}} {
		e := at(81+float64(i), body)
		e.SessionID, e.ParentSessionID, e.Agent, e.Turn = "child", "s", "/root/reviewer", 3
		b.Take(e)
	}
	for i := range 9 {
		id := fmt.Sprint("x", i)
		begin(90, id, "read_file", "read: file "+id)
		if i < 3 {
			tell(91, event.ToolResultEvent{ToolCallID: id})
		}
	}
	return b
}

// agents are one in its call, with calls that went wrong, one whose call waits
// for an answer, and one that outlived its call; and a text behind them all.
func agents() *Board {
	b := New(Show{})
	child := func(session, path string, turn int, seconds float64, body event.Body) {
		e := at(seconds, body)
		e.SessionID, e.ParentSessionID, e.Agent, e.Turn = session, "s", path, turn
		b.Take(e)
	}
	spawn := func(seconds float64, id, path string) {
		b.Take(at(seconds, event.ToolCallEvent{ToolCallID: id, ToolName: "spawn_agent", Display: "spawn: " + path}))
		child(id, path, 0, seconds, event.SessionStartedEvent{SpawnedByToolCallID: id})
	}
	spawn(0, "old", "/root/fixer")
	b.Take(at(1, event.ToolResultEvent{ToolCallID: "old", ToolName: "spawn_agent"}))
	b.Take(at(1, event.TurnFinishedEvent{}))
	child("old", "/root/fixer", 2, 2, event.ToolCallEvent{ToolCallID: "w", ToolName: "apply_patch", Display: "patch: a.go +1 −0"})

	spawn(9, "one", "/root/reviewer")
	for i := range 10 {
		id := fmt.Sprint("v", i)
		child("one", "/root/reviewer", 3, 10, event.ToolCallEvent{ToolCallID: id, ToolName: "exec_command", Display: "run: go vet"})
		child("one", "/root/reviewer", 3, 11, event.ToolResultEvent{ToolCallID: id, IsError: i == 4})
	}
	child("one", "/root/reviewer", 3, 12, event.UsageEvent{InputTokens: 24_000, OutputTokens: 100})
	child("one", "/root/reviewer", 3, 12, event.ToolCallEvent{ToolCallID: "v", ToolName: "exec_command", Display: "run: go vet ./..."})

	spawn(20, "two", "/root/publisher")
	child("two", "/root/publisher", 1, 21, event.ToolCallEvent{ToolCallID: "p", ToolName: "exec_command", Display: "run: git push"})
	b.Take(at(22, event.ToolApprovalRequestEvent{ToolCallID: "p", ToolName: "exec_command", SubagentSessionID: "two", CorrelationID: "q"}))
	b.Take(at(23, event.MessageDeltaEvent{MessageID: "m", Delta: "The reviewer looks at all of it, and the publisher waits for somebody who lets it go on; the rest is wr"}))
	return b
}

func TestAnAnsweredAgentGoesOn(t *testing.T) {
	b := agents()
	p := Painter{Style: NewStyle(false, true), Columns: 80}
	find := func() string {
		for _, row := range p.Region(b, start.Add(time.Minute), 36) {
			if strings.Contains(row, "publisher") {
				return row
			}
		}
		return ""
	}
	if row := find(); !strings.HasPrefix(row, "? spawn_agent") || !strings.HasSuffix(row, "needs approval") {
		t.Errorf("it waits, and is shown as %q", row)
	}
	b.Take(at(24, event.ToolApprovalResponseEvent{ToolCallID: "p", CorrelationID: "q", Approved: true}))
	if row := find(); !strings.HasPrefix(row, "> spawn_agent") || !strings.HasSuffix(row, "40s") {
		t.Errorf("it goes on, and is shown as %q", row)
	}
}
