package runner

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"drover/output/event"
	"drover/runner/approver"
	"drover/tools"
	"drover/tools/policy"
)

// TestTheQuestionOfASubAgentIsRelayedToTheRoot has the child of a child call a
// tool that the policy asks about, with a hook that watches: whoever answers
// talks to the root, and all else is told of the session that is blocked.
func TestTheQuestionOfASubAgentIsRelayedToTheRoot(t *testing.T) {
	for _, approved := range []bool{true, false} {
		asker := always(approver.Answer{Approved: approved, Scope: "session", Reason: "because"})
		o, out := stage(t, `{"text":"Done."}`)
		told := filepath.Join(t.TempDir(), "payload.json")
		watched(t, Hook{Event: PreToolUse, Command: "cat > " + told})(&o)
		asking(t, asker, asks)(&o)
		o.Now = time.Now
		r := &run{Options: o, started: o.Now(), cancel: func(error) {}, callIDs: map[string]bool{}}
		r.outcome.ToolCalls = map[string]int{}
		r.chooseTools()
		r.listenForRequests()
		root := r.newSession(t.Context())
		root.turn = 3
		child := &session{run: r, id: "ses_child", agent: "/root/reviewer", parent: root}
		blocked := &session{run: r, id: "ses_blocked", agent: "/root/reviewer/reader", parent: child, turn: 2, commands: tools.NewSessions(t.Context())}
		defer blocked.commands.Close()
		c := &call{id: "c1", name: "exec_command", input: tools.Input{Text: `{"cmd":"touch made"}`}}
		if _, stop := blocked.runCalls(t.Context(), []*call{c}); stop != nil {
			t.Fatalf("ended with %+v", stop)
		}
		if _, err := os.Stat(filepath.Join(o.Cwd, "made")); (err == nil) != approved {
			t.Errorf("approved %v: %v", approved, err)
		}
		// The answer is the child's, not that of its parents.
		again := func(s *session) policy.Effect { return s.judge(c).Effect }
		if got := again(blocked); (got == policy.Allow) != approved || again(child) != policy.Ask || again(root) != policy.Ask {
			t.Errorf("approved %v: later the child gets %s, its parent %s, the root %s", approved, got, again(child), again(root))
		}
		checkRelayed(t, out.String(), asker, approved)

		var p hookPayload
		if data, err := os.ReadFile(told); err != nil || json.Unmarshal(data, &p) != nil || p.Agent != blocked.agent || p.SessionID != blocked.id || p.CorrelationID == "" {
			t.Errorf("the hook was told %s, %v", data, err)
		}
		if denials := r.outcome.Denials; approved != (len(denials) == 0) || !approved && (denials[0].SessionID != blocked.id || denials[0].CorrelationID == "") {
			t.Errorf("denials %+v", denials)
		}
	}
}

// checkRelayed looks at whose each event is.
func checkRelayed(t *testing.T, stream string, asker *fakeAsker, approved bool) {
	t.Helper()
	var ids []string
	seen := map[string]bool{}
	for line := range strings.Lines(stream) {
		e, err := event.Decode([]byte(strings.TrimSuffix(line, "\n")))
		if err != nil {
			t.Fatal(err)
		}
		blocked := event.Origin{SessionID: "ses_blocked", ParentSessionID: "ses_child", Agent: "/root/reviewer/reader", Turn: 2}
		want := blocked
		switch b := e.Body.(type) {
		case event.ToolApprovalRequestEvent:
			ids = append(ids, b.CorrelationID)
			want = event.Origin{SessionID: "ses_test"}
			if d := cmp.Diff([]string{"ses_blocked", "ses_child", "ses_test"}, b.RelayPath); d != "" || b.SubagentSessionID != "ses_blocked" || b.ToolCallID != "c1" {
				t.Errorf("%+v (-want +got):\n%s", b, d)
			}
			if asked, err := event.AppendJSON(nil, asker.asked[0]); err != nil || string(asked)+"\n" != line {
				t.Errorf("what was asked is another event, %v: %s", err, asked)
			}
		case event.ToolApprovalResponseEvent:
			ids = append(ids, b.CorrelationID)
			want = event.Origin{SessionID: "ses_test"}
		case event.ToolDecisionEvent:
			ids = append(ids, b.CorrelationID)
			if (b.Effect == "allow") != approved || b.DecidedBy != "approver" {
				t.Errorf("got %+v", b)
			}
		case event.SessionStartedEvent, event.MessageEvent:
			continue // of the root
		}
		seen[string(e.Body.Type())] = true
		if d := cmp.Diff(want, e.Origin); d != "" {
			t.Errorf("%s (-want +got):\n%s", e.Body.Type(), d)
		}
	}
	if len(ids) != 3 || ids[0] == "" || ids[0] != ids[1] || ids[1] != ids[2] {
		t.Errorf("the correlation ids are %q", ids)
	}
	for _, typ := range []string{"tool.call", "tool.status", "hook.finished", "tool.approval.requested", "tool.approval.resolved", "tool.decision", "tool.result"} {
		if !seen[typ] {
			t.Errorf("no %s in\n%s", typ, stream)
		}
	}
	if approved != seen["terminal.started"] {
		t.Errorf("a terminal: %v", !approved)
	}
}
