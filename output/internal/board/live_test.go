package board

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"drover/output/event"
	"drover/output/internal/term"
)

var update = flag.Bool("update", false, "write the golden files anew")

// crowd is a board with so many items in any state.
func crowd(n int, rnd *rand.Rand) *Board {
	b := New(Show{Agents: rnd.IntN(2) == 0})
	b.Take(at(0, event.RunStartedEvent{}))
	for i := range n {
		id := fmt.Sprint(i)
		start := event.ToolCallStartEvent{ToolCallID: id, ToolName: []string{"exec_command", "apply_patch", "世界の道具"}[rnd.IntN(3)]}
		if rnd.IntN(10) == 0 {
			b.Take(at(1, event.MessageDeltaEvent{MessageID: id, Delta: strings.Repeat("words of a text 世界 ", rnd.IntN(20))}))
			continue
		}
		e := at(1, start)
		if rnd.IntN(4) == 0 {
			e.SessionID, e.ParentSessionID, e.Agent = "child", "s", "/root/child"
		}
		b.Take(e)
		origin := e.Origin
		for _, body := range []event.Body{
			event.ToolCallArgsDeltaEvent{ToolCallID: id, Delta: `{"cmd":"👩‍👩‍👧` + strings.Repeat("x", rnd.IntN(200))},
			event.ToolCallEvent{ToolCallID: id, ToolName: start.ToolName, Display: "run: " + strings.Repeat("go test 🇩🇪 ", rnd.IntN(20))},
			event.TerminalAppendStringEvent{ToolCallID: id, TerminalID: "t", Delta: strings.Repeat("output e\u0301\n", rnd.IntN(9))},
			event.ToolResultEvent{ToolCallID: id, ToolName: start.ToolName, IsError: rnd.IntN(2) == 0},
		}[:rnd.IntN(5)] {
			next := at(2, body)
			next.Origin = origin
			b.Take(next)
		}
	}
	return b
}

var more = regexp.MustCompile(`^… (\d+) more: (?:(\d+) running)?(?:, )?(?:(\d+) done)?$`)

// TestTheRegionFitsEveryScreen: whatever there is to show, it has few rows, none
// is too wide, the status is last, and what is folded is counted.
func TestTheRegionFitsEveryScreen(t *testing.T) {
	rnd := rand.New(rand.NewPCG(11, 12))
	now := start.Add(90 * time.Second)
	for n := range 41 {
		b := crowd(n, rnd)
		for range 60 {
			columns, height := 20+rnd.IntN(181), 1+rnd.IntN(60)
			p := Painter{Style: NewStyle(rnd.IntN(2) == 0, false), Columns: columns}
			rows := p.Region(b, now, height)
			if len(rows) > max(1, min(height/3, 12)) {
				t.Fatalf("%d items on %d rows: the region has %d", n, height, len(rows))
			}
			plain := make([]string, len(rows))
			headers := 0
			for i, row := range rows {
				plain[i] = regexp.MustCompile("\x1b\\[[0-9;]*m").ReplaceAllString(row, "")
				if w := term.Width(plain[i]); w > min(columns-2, 100) {
					t.Fatalf("%d columns: %q is %d cells wide", columns, plain[i], w)
				}
			}
			if height < noStatus {
				continue
			}
			last := len(rows) - 1
			if !strings.HasPrefix(plain[last], "  turn 1") {
				t.Fatalf("the last row is %q", plain[last])
			}
			for _, row := range plain[:last] {
				if strings.ContainsAny(row[:min(3, len(row))], "◌~▸✓✗⊘!") || strings.HasPrefix(row, "◌") {
					headers++
				}
			}
			if n > 0 && headers == 0 && height >= 12 && !strings.Contains(strings.Join(plain, "\n"), "words of") {
				t.Fatalf("%d items on %d rows show none: %q", n, height, plain)
			}
		}
	}
}

// TestWhatIsFoldedIsCounted: nothing is lost between what is seen and what is
// counted, and the right ones are seen.
func TestWhatIsFoldedIsCounted(t *testing.T) {
	rnd := rand.New(rand.NewPCG(2, 9))
	p := Painter{Style: NewStyle(false, false), Columns: 200}
	for n := range 41 {
		for range 20 {
			slots := p.slots(crowd(n, rnd), start)
			for budget := 1; budget <= maxRegion; budget++ {
				mustAddUp(t, p, slots, budget)
			}
		}
	}
}

func mustAddUp(t *testing.T, p Painter, slots []slot, budget int) {
	t.Helper()
	shown, folded := p.fold(slots, budget)
	if folded == "" {
		if len(shown) != len(slots) && !(budget == 1 && len(shown) == 1 && shown[0].text) || len(shown) > budget {
			t.Fatalf("%d of %d are seen in %d rows, and nothing is counted", len(shown), len(slots), budget)
		}
		return
	}
	seen := map[int]bool{}
	last := 0
	for _, s := range shown {
		if s.number <= last {
			t.Fatalf("number %d is below %d", s.number, last)
		}
		last = s.number
		seen[s.number] = true
	}
	running, done, newest, over := 0, 0, 0, false
	for _, s := range slots {
		switch {
		case seen[s.number] && s.final:
			over = true
		case seen[s.number] && !s.text:
			newest = s.number
		case seen[s.number]:
		case s.final:
			done++
		default:
			if running++; s.number < newest {
				t.Fatalf("number %d is seen, but not %d, which began before it", newest, s.number)
			}
		}
	}
	if over && running > 0 {
		t.Fatalf("one that is over is seen, and %d that run are not", running)
	}
	if m := more.FindStringSubmatch(folded); m == nil || count(m[1]) != running+done || count(m[2]) != running || count(m[3]) != done {
		t.Fatalf("%d running and %d done are counted as %q", running, done, folded)
	}
	if len(shown)+1 != budget {
		t.Fatalf("%d rows are used of %d", len(shown)+1, budget)
	}
}

// count is a number that may be missing.
func count(s string) int {
	n, _ := strconv.Atoi(s)
	return n
}

// TestTheNewestRunningAndTheFinishedOnesAreFolded, in this order of value: the
// oldest that runs is seen longest.
func TestTheNewestRunningAndTheFinishedOnesAreFolded(t *testing.T) {
	b := New(Show{})
	b.Take(at(0, event.RunStartedEvent{}))
	for i := range 12 {
		id := fmt.Sprint(i)
		b.Take(at(0, event.ToolCallEvent{ToolCallID: id, ToolName: "tool", Display: "number " + id}))
		b.Take(at(0, event.ToolStatusEvent{ToolCallID: id, ToolName: "tool", Status: event.StatusRunning}))
		if i%3 == 1 {
			b.Take(at(1, event.ToolResultEvent{ToolCallID: id, ToolName: "tool"}))
		}
	}
	p := Painter{Style: NewStyle(false, true), Columns: 40}
	got := p.Region(b, start.Add(9*time.Second), 24)
	want := []string{
		"> tool  number 0                      9s", "> tool  number 2                      9s", "> tool  number 3                      9s",
		"> tool  number 5                      9s", "> tool  number 6                      9s", "> tool  number 8                      9s",
		"... 6 more: 2 running, 4 done", "  turn 1, 8 running, 9s",
	}
	for i := range want {
		want[i] = strings.Replace(want[i], "                      9s", "                    9s", 1)
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if got := p.Region(b, start, 5); len(got) != 1 || got[0] != "... 12 more: 8 running, 4 done" {
		t.Errorf("one row is %q", got)
	}
}

func TestTheStatusSaysWhatIsAwaited(t *testing.T) {
	for _, tt := range []struct {
		name   string
		events []event.Event
		want   string
	}{
		{"the model", []event.Event{at(0, event.TurnStartedEvent{})}, "  turn 1 · waiting for the model  4s · 4s"},
		{"a retry", []event.Event{at(0, event.ProviderRetryEvent{Attempt: 1, DelayMS: 16000, MaxAttempts: 5})}, "  turn 1 · provider busy, next try in 12s (2 of 5) · 4s"},
		{"a retry that is due", []event.Event{at(0, event.ProviderRetryEvent{Attempt: 1, DelayMS: 1000, MaxAttempts: 5})}, "  turn 1 · waiting for the model  4s · 4s"},
		{"thoughts", []event.Event{at(1, event.ReasoningDeltaEvent{Delta: "hm"}), at(3, event.ReasoningDeltaEvent{Delta: "hm"})}, "  turn 1 · thinking  3s · 3s"},
		{"a text", []event.Event{at(1, event.MessageDeltaEvent{Delta: "words"})}, "  turn 1 · 3s"},
		{"a call", []event.Event{at(0, call)}, "  turn 1 · 1 running · 4s"},
		{"what there was", []event.Event{at(0, call), at(1, done), at(1, refusedAs("d")), at(2, event.PlanUpdatedEvent{Items: []event.PlanItem{{Status: "completed"}, {Status: "pending"}}}),
			at(2, event.UsageEvent{InputTokens: 45000, OutputTokens: 200, CostUSD: ptr(0.311)})}, "  turn 1 · waiting for the model  3s · 1 done · 1 failed · plan 1/2 · 4s · 45.2k tok · $0.31"},
		{"a command of a call that is over", []event.Event{at(0, call), at(0, event.TerminalNewRunningEvent{ToolCallID: "c", TerminalID: "t"}), at(1, done)},
			"  turn 1 · waiting for the model  3s · 1 done · 1 in background · 4s"},
	} {
		b := New(Show{})
		for _, e := range tt.events {
			b.Take(e)
		}
		rows := Painter{Style: NewStyle(false, false), Columns: 100}.Region(b, start.Add(4*time.Second), 24)
		if got := rows[len(rows)-1]; got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}

func TestHistoryThatIsShownAgainIsNeverLive(t *testing.T) {
	b := New(Show{})
	p := Painter{Style: NewStyle(false, true), Columns: 60}
	for _, body := range []event.Body{call, done} {
		e := at(0, body)
		e.Replayed = true
		b.Take(e)
		if rows := p.Region(b, start, 24); len(rows) != 1 {
			t.Errorf("the region is %q", rows)
		}
	}
	b.Take(at(1, event.TurnStartedEvent{}))
	if got := print(p, b.ReadyAt(start.Add(time.Second), false)); len(got) != 1 || !strings.HasPrefix(got[0], "+ exec_command  go test") {
		t.Errorf("history is %q", got)
	}
}

func refusedAs(id string) event.Body {
	r := refused
	r.ToolCallID = id
	return r
}

// scene is the moment in the middle of a run that the golden files show.
func scene() *Board {
	b := New(Show{})
	id := func(n string) event.ToolCallEvent {
		return event.ToolCallEvent{ToolCallID: n, ToolName: "exec_command"}
	}
	tell := func(seconds float64, bodies ...event.Body) {
		for _, body := range bodies {
			e := at(seconds, body)
			e.Turn = 4
			b.Take(e)
		}
	}
	tell(0, event.RunStartedEvent{}, event.UsageEvent{InputTokens: 45000, OutputTokens: 200, CostUSD: ptr(0.31)})
	for i := range 18 {
		r := event.ToolResultEvent{ToolCallID: fmt.Sprint("old", i), ToolName: "exec_command", IsError: i == 17}
		tell(1, event.ToolCallEvent{ToolCallID: r.ToolCallID, ToolName: "exec_command"}, r)
	}
	tell(60, event.MessageDeltaEvent{MessageID: "m", Delta: "Let me run the tests while I look at the failing package."})
	tell(60, event.MessageEvent{MessageID: "m", Role: "assistant", Text: "Let me run the tests while I look at the failing package."})
	one := id("1")
	one.Display = "run: go test ./runner/... -run TestReplay"
	tell(61, one, event.ToolStatusEvent{ToolCallID: "1", Status: event.StatusRunning},
		event.TerminalAppendStringEvent{ToolCallID: "1", TerminalID: "t", Delta: "ok    runner/event  0.412s\n--- FAIL: TestReplay (0.03s)\n    replay_test.go:88: got 3 frames, want 2\n"})
	tell(100, event.ToolCallEvent{ToolCallID: "2", ToolName: "search_in_files", Display: `search: "mark_orphan" in runner/`}, event.ToolStatusEvent{ToolCallID: "2", Status: event.StatusRunning})
	tell(101, event.ToolCallStartEvent{ToolCallID: "3", ToolName: "apply_patch"},
		event.ToolCallArgsDeltaEvent{ToolCallID: "3", Delta: strings.Repeat("*", 1340) + "\r\n@@ func (b *Board) finish()\n-\t\tbreak\n+\t\tcont"})
	tell(102, event.ToolCallStartEvent{ToolCallID: "4", ToolName: "list_dir"})
	return b
}
