package frame

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"drover/output/event"
)

func request(args any) event.Event {
	raw, err := json.Marshal(args)
	if err != nil {
		panic(err)
	}
	return event.Event{Body: event.ToolApprovalRequestEvent{
		ToolCallID: "c", ToolName: "exec_command", CorrelationID: "ap_1", Args: raw, Display: "run: git push",
	}}
}

func TestAQuestionShowsWhatWillBeExecuted(t *testing.T) {
	deadline := time.Date(2026, 9, 20, 14, 2, 31, 0, time.Local)
	e := request(map[string]any{"cmd": "git push origin HEAD:refs/heads/fix\u202e-yb", "workdir": "/home/me/src/app", "tty": true, "yield_time_ms": 250})
	b := e.Body.(event.ToolApprovalRequestEvent)
	b.RuleID, b.Reason = "push-asks", "pushes are reviewed\nby a person"
	b.SuggestedRules = []json.RawMessage{json.RawMessage(`{"id":"r","argv":["git"]}`)}
	b.SubagentSessionID, b.Deadline = "session-2", deadline.Format(time.RFC3339)
	e.Body = b
	got := NewQuestion(e, QuestionOptions{Columns: 80, N: 1, Of: 2, Session: true, Home: "/home/me"})
	want := Question{Rows: []string{
		"? exec_command  needs your approval (1 of 2)",
		"  agent    session-2",
		`  command  git push origin HEAD:refs/heads/fix\u202e-yb`,
		"  in       ~/src/app",
		"  also     tty=true yield_time_ms=250",
		`  rule     push-asks: pushes are reviewed\n`,
		"           by a person",
		`  session  allows {"id":"r","argv":["git"]} until the end`,
		"  until    14:02:31, then it is denied",
	}}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func TestAQuestionHidesNothing(t *testing.T) {
	for _, tt := range []struct {
		name string
		args any
		want []string
	}{
		{"an end of line ends a comment", map[string]any{"cmd": "echo ok # all right\nrm -rf x"},
			[]string{`  command  echo ok # all right\n`, "           rm -rf x"}},
		{"a forged row", map[string]any{"cmd": "x\n  rule     safe: always good"},
			[]string{`  command  x\n`, "             rule     safe: always good"}},
		{"backslashes beside line breaks", map[string]any{"cmd": "printf 'a\\nb'\necho 'c\\nd'"},
			[]string{`  command  printf 'a\\nb'\n`, `           echo 'c\\nd'`}},
		{"blanks are kept", map[string]any{"cmd": "touch 'a  b'"}, []string{"  command  touch 'a  b'"}},
		{"escapes", map[string]any{"cmd": "a\x1b[2Jb\u200bc\td"}, []string{`  command  a\e[2Jb\u200bc\td`}},
		{"a list of words", map[string]any{"command": []string{"sh", "-c", "rm 'a b'; id", ""}},
			[]string{`  command  sh -c 'rm '\''a b'\''; id' ''`}},
		{"what is asked for and why", map[string]any{"cmd": "id", "justification": "to see", "sandbox_permissions": "escalated"},
			[]string{"  command  id", "  says     to see", `  also     sandbox_permissions="escalated"`}},
		{"an odd type", map[string]any{"cmd": map[string]any{"x": 1}}, []string{`  also     cmd={"x":1}`}},
		{"a long text of another name", map[string]any{"prompt": strings.Repeat("ab ", 20)},
			[]string{"  prompt   " + strings.Repeat("ab ", 20)}},
		{"no object", "text", []string{`  with     "text"`}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			want := append([]string{"? exec_command  needs your approval"}, tt.want...)
			if d := cmp.Diff(Question{Rows: want}, NewQuestion(request(tt.args), QuestionOptions{})); d != "" {
				t.Error(d)
			}
		})
	}
}

// TestALongCommandIsFoldedAndCanBeSeenWhole: nothing of it is cut without a
// word, at any width.
func TestALongCommandIsFoldedAndCanBeSeenWhole(t *testing.T) {
	var lines []string
	for i := range 40 {
		lines = append(lines, fmt.Sprintf("echo %d", i))
	}
	q := NewQuestion(request(map[string]any{"cmd": strings.Join(lines, "\n")}), QuestionOptions{Columns: 40})
	if len(q.Rows) != 1+headShown+1+tailShown || q.Rows[16] != "           … 21 rows, [v]iew all" || q.Rows[20] != "           echo 39" {
		t.Errorf("the folded rows are\n%s", strings.Join(q.Rows, "\n"))
	}
	if len(q.All) != 41 || q.All[1] != `  command  echo 0\n` || q.All[40] != "           echo 39" {
		t.Errorf("the whole is\n%s", strings.Join(q.All, "\n"))
	}
	long := strings.Repeat("0123456789", 30)
	q = NewQuestion(request(map[string]any{"cmd": long}), QuestionOptions{Columns: 40})
	if q.All != nil || q.Rows[1] != "  command  "+long {
		t.Errorf("300 characters at 40 columns: %q", q)
	}
	q = NewQuestion(request(map[string]any{"cmd": strings.Repeat(long, 3)}), QuestionOptions{Columns: 40, ASCII: true})
	if q.All[1] != "  command  "+strings.Repeat(long, 3) || !strings.Contains(strings.Join(q.Rows, "\n"), "... 14 rows, [v]iew all") {
		t.Errorf("900 characters at 40 columns: %q", q)
	}
	q = NewQuestion(request(map[string]any{"cmd": strings.Repeat("y", 2*maxQuestion)}), QuestionOptions{})
	if q.Rows[len(q.Rows)-1] != notAll || q.All[len(q.All)-1] != notAll {
		t.Error("what is not shown at all is not told")
	}
}

func TestQuestionsOfAnAgentHaveNumberedChoices(t *testing.T) {
	q := NewQuestion(event.Event{Body: event.InputRequestedEvent{Prompt: "Where\x07 to?", Choices: []string{"Staging", "Prod\x1b[2J"}}}, QuestionOptions{})
	want := Question{Rows: []string{`? Where\x07 to?`, "  1  Staging", `  2  Prod\e[2J`}}
	if d := cmp.Diff(want, q); d != "" {
		t.Error(d)
	}
	if q := NewQuestion(event.Event{Body: event.NoticeEvent{}}, QuestionOptions{}); q.Rows != nil {
		t.Errorf("a notice asks %q", q.Rows)
	}
}

func FuzzQuestion(f *testing.F) {
	f.Add(`{"cmd":"a\nb\u001b[2J"}`, "rule\x1b", 40)
	f.Add(`["x"]`, "", 1)
	f.Fuzz(func(t *testing.T, args, reason string, columns int) {
		e := event.Event{Body: event.ToolApprovalRequestEvent{ToolName: reason, Args: json.RawMessage(args), Reason: reason, RuleID: args}}
		q := NewQuestion(e, QuestionOptions{Columns: columns % 200})
		for _, row := range append(q.Rows, q.All...) {
			for _, r := range row {
				if r < 0x20 || r >= 0x7f && r <= 0x9f || r >= 0x202a && r <= 0x202e {
					t.Fatalf("%q has %U", row, r)
				}
			}
		}
	})
}
