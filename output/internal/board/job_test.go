package board

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"drover/output/event"
	"drover/output/internal/term"
)

// bigJob plays a job of many rows, several at a time: most go well, some fail,
// some take too long, some are tried again. The same seed tells the same story.
type bigJob struct {
	log  *event.Log
	now  time.Time
	rnd  *rand.Rand
	rows int
	// queue are the rows to begin, running those under way with the time of
	// their next step.
	queue   []*playedRow
	running []*playedRow
	began   time.Time
	told    time.Time
	// the outcome, each row once
	completed, failed, retried int
	failedItems                []string
	cost                       float64
}

type playedRow struct {
	index, attempt, step int
	at, began            time.Time
}

func (r *playedRow) id() string { return fmt.Sprintf("acme-%d", 7000+r.index) }

// collect keeps the events of a log, and its lines.
type collect struct {
	events []event.Event
	lines  bytes.Buffer
}

func (c *collect) Emit(e event.Event) error {
	line, err := event.AppendJSON(nil, e)
	c.events = append(c.events, e)
	c.lines.Write(append(line, '\n'))
	return err
}

func (c *collect) Close() error { return nil }

// playJob returns the events of a job, which keep the guarantees of a stream.
func playJob(t testing.TB, rows, workers int) (*bigJob, []event.Event) {
	t.Helper()
	j := &bigJob{now: start, began: start, rnd: rand.New(rand.NewPCG(41, 1000)), rows: rows}
	j.log = event.New(event.Options{RunID: "run_1", Now: func() time.Time { return j.now }})
	var got collect
	j.log.Attach(event.Attachment{Name: "test", Sink: &got, Level: event.Default, Failed: func(err error) { t.Error(err) }})
	j.play(workers)
	if rows <= 100 { // checking takes long, and more rows are more of the same
		for _, err := range event.CheckStream(bytes.NewReader(got.lines.Bytes())) {
			t.Fatal(err)
		}
	}
	return j, got.events
}

func (j *bigJob) play(workers int) {
	none := event.Origin{}
	j.log.Emit(none, event.RunStartedEvent{
		Schema: event.SchemaID, Product: "drover", Version: "1", Cwd: "/app", Model: "script", Provider: "script",
		Capabilities: []string{"jobs"}, Policy: event.PolicyRef{Default: "deny", SHA256: strings.Repeat("0", 64)},
	})
	j.log.Emit(none, event.JobStartedEvent{JobID: "triage", Total: j.rows, Source: event.FileRef{Path: "data/tickets.csv"}, IDColumn: "id", OutputPath: "results.csv", Concurrency: workers})
	for i := range j.rows {
		j.queue = append(j.queue, &playedRow{index: i, attempt: 1})
	}
	for len(j.queue)+len(j.running) > 0 {
		for len(j.running) < workers && len(j.queue) > 0 {
			j.begin(j.queue[0])
			j.queue = j.queue[1:]
		}
		next := slices.MinFunc(j.running, func(a, b *playedRow) int { return a.at.Compare(b.at) })
		j.now = next.at
		j.step(next)
		j.progress()
	}
	status := event.JobStatus("completed")
	if j.failed > 0 {
		status = "partial"
	}
	slices.Sort(j.failedItems)
	j.log.Emit(none, event.JobFinishedEvent{JobID: "triage", Status: status, Total: j.rows, Completed: j.completed, Failed: j.failed, OutputPath: "results.csv", FailedItems: j.failedItems})
	j.log.Emit(none, event.RunFinishedEvent{Status: "failed", ExitCode: 1, Reason: "rows_failed", DurationMS: j.now.Sub(j.began).Milliseconds()})
}

func (j *bigJob) begin(r *playedRow) {
	r.began, r.at, r.step = j.now, j.now, 0
	j.running = append(j.running, r)
	j.log.Emit(event.Origin{ItemID: r.id()}, event.JobItemStartedEvent{JobID: "triage", Index: r.index, Attempt: r.attempt})
}

// step plays the next part of a row: its session, a call that runs, its end.
func (j *bigJob) step(r *playedRow) {
	session := event.Origin{SessionID: fmt.Sprintf("s-%d-%d", r.index, r.attempt), ItemID: r.id()}
	turn := session
	turn.Turn = 1
	call := "c-" + session.SessionID
	emit := func(o event.Origin, bodies ...event.Body) {
		for _, b := range bodies {
			j.log.Emit(o, b)
		}
	}
	switch r.step++; r.step {
	case 1:
		emit(session, event.SessionStartedEvent{})
		emit(turn, event.TurnStartedEvent{Input: "prompt"},
			event.MessageEvent{MessageID: "m-" + session.SessionID, Role: "assistant", Text: "I look at " + r.id()},
			event.ToolCallStartEvent{ToolCallID: call, ToolName: "exec_command"},
			event.ToolCallEvent{ToolCallID: call, ToolName: "exec_command", Args: json.RawMessage(`{}`), Display: "run: go test ./billing"},
			event.ToolStatusEvent{ToolCallID: call, ToolName: "exec_command", Status: event.StatusPending},
			event.ToolDecisionEvent{ToolCallID: call, ToolName: "exec_command", Effect: "allow", DecidedBy: "default"},
			event.ToolStatusEvent{ToolCallID: call, ToolName: "exec_command", Status: event.StatusRunning},
			event.TerminalNewRunningEvent{ToolCallID: call, TerminalID: "t-" + call, Command: "go test ./billing"})
		r.at = r.at.Add(time.Duration(5+j.rnd.IntN(30)) * time.Second)
	case 2:
		emit(turn, event.TerminalAppendStringEvent{ToolCallID: call, TerminalID: "t-" + call, Delta: "ok\n"},
			event.TerminalCompletedEvent{ToolCallID: call, TerminalID: "t-" + call, ExitCode: ptr(0)},
			event.ToolStatusEvent{ToolCallID: call, ToolName: "exec_command", Status: event.StatusDone},
			event.ToolResultEvent{ToolCallID: call, ToolName: "exec_command", Display: "exit 0"},
			event.TurnFinishedEvent{Status: "completed"})
		emit(session, event.SessionFinishedEvent{Status: "completed"})
		r.at = r.at.Add(time.Duration(j.rnd.IntN(3000)) * time.Millisecond)
	default:
		j.end(r)
	}
}

func (j *bigJob) end(r *playedRow) {
	end := event.JobItemFinishedEvent{JobID: "triage", Index: r.index, Attempt: r.attempt, Status: "completed", DurationMS: j.now.Sub(r.began).Milliseconds()}
	switch n := j.rnd.IntN(100); {
	case n < 3:
		end.Status, end.Error = "failed", &event.Err{Code: "failed", Message: "no such ticket"}
	case n < 5:
		end.Status, end.DurationMS = "timeout", 600_013
	case n < 10:
		end.Status, end.WillRetry = "invalid_output", r.attempt < 3
	default:
		end.CostUSD = ptr(0.0078125) // a sum without rounding
		j.cost += *end.CostUSD
	}
	j.running = slices.DeleteFunc(j.running, func(o *playedRow) bool { return o == r })
	switch {
	case end.WillRetry:
		j.retried++
		j.queue = append(j.queue, &playedRow{index: r.index, attempt: r.attempt + 1})
	case end.Status == "completed":
		j.completed++
	default:
		j.failed++
		j.failedItems = append(j.failedItems, r.id())
	}
	j.log.Emit(event.Origin{ItemID: r.id()}, end)
}

// progress is told at most once a second.
func (j *bigJob) progress() {
	if j.now.Sub(j.told) < time.Second {
		return
	}
	j.told = j.now
	p := event.JobProgressEvent{
		JobID: "triage", Total: j.rows, Pending: len(j.queue), Running: len(j.running),
		Completed: j.completed, Failed: j.failed, CostUSD: ptr(j.cost),
	}
	if done := j.completed + j.failed; done > 0 {
		p.ETASeconds = ptr(j.now.Sub(j.began).Seconds() / float64(done) * float64(j.rows-done))
	}
	j.log.Emit(event.Origin{}, p)
}

var countsRow = regexp.MustCompile(`^│ (\d+) running · (\d+) ok(?: · (\d+) failed)? · (\d+) left`)

func TestAJobOfAThousandRowsIsOneFrame(t *testing.T) {
	told, events := playJob(t, 1000, 16)
	if told.failed <= maxFailures || told.retried == 0 {
		t.Fatalf("%d failed and %d were tried again, which tests nothing", told.failed, told.retried)
	}
	b := New(Show{})
	p := Painter{Style: NewStyle(false, false), Columns: 80}
	var history []string
	for n, e := range events {
		b.Take(e)
		history = append(history, print(p, b.ReadyAt(e.Time, b.Crowded(24)))...)
		if n%5 != 0 {
			continue
		}
		region := p.Region(b, e.Time, 24)
		if len(region) > 7 {
			t.Fatalf("the region has %d rows: %q", len(region), region)
		}
		for i, row := range region {
			if row == "" || i == 0 && len(b.jobs) > 0 && !strings.HasPrefix(row, "▸ job tickets.csv  ") {
				t.Fatalf("row %d is %q", i, row)
			}
			m := countsRow.FindStringSubmatch(row)
			sum := 0
			for _, n := range m[min(1, len(m)):] {
				v, _ := strconv.Atoi(n)
				sum += v
			}
			if m != nil && sum != 1000 {
				t.Fatalf("the rows add up to %d: %q", sum, row)
			}
		}
		if len(region) > 1 && countsRow.FindString(region[2]) == "" {
			t.Fatalf("there are no counts in %q", region)
		}
	}
	failures, frames := 0, 0
	for i, row := range history {
		switch {
		case strings.HasPrefix(row, "✗ row "):
			failures++
		case strings.HasPrefix(row, "✗ job tickets.csv  "):
			frames++
			want := fmt.Sprintf("%d ok · %d failed", told.completed, told.failed)
			if !strings.Contains(row, want) || told.completed+told.failed != 1000 {
				t.Errorf("got %q, want %q", row, want)
			}
			if want := fmt.Sprintf(" … %d more", told.failed-maxNamed); !strings.HasSuffix(history[i+2], want) || history[i+3] != "  run again: drover jobs retry triage" {
				t.Errorf("got %q, want %q at the end of the first", history[i+2:i+4], want)
			}
			if want := fmt.Sprintf("/min · $%.2f · results.csv", told.cost); !strings.HasSuffix(history[i+1], want) {
				t.Errorf("got %q, want %q at its end", history[i+1], want)
			}
		case strings.Contains(row, "exec_command"), strings.Contains(row, "I look at"):
			t.Errorf("what a row does is in history: %q", row)
		}
	}
	if failures != maxFailures || frames != 1 || len(history) != maxFailures+5 {
		t.Errorf("%d failed rows and %d frames in %d rows: %q", failures, frames, len(history), history)
	}
}

// TestWhereNothingIsDrawnAJobTellsOfEachTenthAndEachMinute is about formats
// without a region.
func TestWhereNothingIsDrawnAJobTellsOfEachTenthAndEachMinute(t *testing.T) {
	for _, workers := range []int{2, 64} {
		_, events := playJob(t, 1000, workers)
		b := New(Show{})
		var told []string
		lastDone, lastAt := -1, time.Time{}
		for _, e := range events {
			b.Take(e)
			j := b.jobs["triage"]
			due := j != nil && (lastDone < 0 || j.Done() >= lastDone+100 || e.Time.Sub(lastAt) >= time.Minute)
			got := b.Progress(e.Time)
			if _, ended := e.Body.(event.JobFinishedEvent); ended {
				break
			}
			if due != (len(got) == 1) {
				t.Fatalf("%s at %v: %d jobs, due %v", e.Body.Type(), e.Time, len(got), due)
			}
			for _, j := range got {
				lastDone, lastAt = j.Done(), e.Time
				told = append(told, Painter{Style: NewStyle(false, true), Columns: 80}.StillJob(j, e.Time))
			}
		}
		if want := "> job tickets.csv  0/1000, 0 running, 0 ok, 1000 left" + strings.Repeat(" ", 23) + "0s"; told[0] != want {
			t.Errorf("got %q, want %q", told[0], want)
		}
		if len(told) < 10 {
			t.Errorf("only %q", told)
		}
	}
}

// TestAJobIsSafeWithoutSomeOfItsEvents: whatever a reader has lost, and where
// its stream was cut.
func TestAJobIsSafeWithoutSomeOfItsEvents(t *testing.T) {
	_, events := playJob(t, 40, 4)
	rnd := rand.New(rand.NewPCG(5, 5))
	p := Painter{Style: NewStyle(false, false), Columns: 80}
	for range 50 {
		b := New(Show{})
		var history []string
		some := false
		for _, e := range events[:rnd.IntN(len(events)+1)] {
			for range []int{0, 1, 1, 1, 2}[rnd.IntN(5)] {
				b.Take(e)
				some = some || strings.HasPrefix(e.Body.Type(), "job.")
			}
			history = append(history, print(p, b.Ready())...)
			for _, row := range p.Region(b, e.Time, 24) {
				if term.Width(row) > p.width() {
					t.Fatalf("%q takes %d cells", row, term.Width(row))
				}
			}
		}
		b.End()
		history = append(history, print(p, b.Ready())...)
		frames := 0
		for _, row := range history {
			if row != "" && strings.Contains("✓✗!-", row[:min(len(row), len("✓"))]) && strings.Contains(row, " job ") || strings.HasPrefix(row, "! job ") {
				frames++
			}
		}
		if some && frames != 1 {
			t.Fatalf("%d frames: %q", frames, history)
		}
	}
}

// jobEvents are those of a job with one failure, in the middle of its work.
func jobEvents() []event.Event {
	item := func(seconds float64, id string, b event.Body) event.Event {
		e := at(seconds, b)
		e.SessionID, e.ItemID, e.Turn = "", id, 0
		if callOf(b) != "" {
			e.SessionID, e.Turn = "s-"+id, 1
		}
		return e
	}
	job := func(seconds float64, b event.Body) event.Event { return item(seconds, "", b) }
	return []event.Event{
		job(0, event.JobStartedEvent{JobID: "j", Total: 1000, Source: event.FileRef{Path: "/data/tickets.csv"}}),
		item(70, "acme-7803", event.JobItemStartedEvent{JobID: "j", Index: 396, Attempt: 1}),
		item(670, "acme-7803", event.JobItemFinishedEvent{JobID: "j", Index: 396, Attempt: 1, Status: "timeout", DurationMS: 600_021}),
		item(683, "acme-7822", event.JobItemStartedEvent{JobID: "j", Index: 408, Attempt: 1}),
		item(684, "acme-7822", event.ToolCallEvent{ToolCallID: "c", ToolName: "exec_command", Display: "run: go test ./billing"}),
		item(712, "acme-7823", event.JobItemStartedEvent{JobID: "j", Index: 409, Attempt: 2}),
		item(713, "acme-7823", event.ToolCallEvent{ToolCallID: "d", ToolName: "apply_patch"}),
		item(714, "acme-7824", event.JobItemStartedEvent{JobID: "j", Index: 410, Attempt: 1}),
		job(724, event.JobProgressEvent{JobID: "j", Total: 1000, Pending: 584, Running: 4, Completed: 395, Failed: 17, ETASeconds: ptr(1035.0), CostUSD: ptr(3.18)}),
	}
}

func region(columns, rows int, after float64, events []event.Event) []string {
	b := New(Show{})
	for _, e := range events {
		b.Take(e)
	}
	b.Ready()
	for _, j := range b.jobs {
		j.finished = 412
	}
	return Painter{Style: NewStyle(false, false), Columns: columns}.Region(b, start.Add(time.Duration(after*float64(time.Second))), rows)
}

func TestAJobShowsWhatMattersMost(t *testing.T) {
	full := []string{
		"▸ job tickets.csv  412/1000                                             12m04s",
		"│ [################------------------------]  41%   34.1/min   eta 17m15s",
		"│ 4 running · 395 ok · 17 failed · 584 left · $3.18",
		"│ ✗ 397 acme-7803  timed out after 10m",
		"│ ▸ 409 acme-7822  exec_command go test ./billing  41s",
		"│ ▸ 410 acme-7823  apply_patch  12s",
	}
	for _, tt := range []struct {
		rows int
		want []string
	}{
		{24, full},
		{12, []string{full[0], full[1], full[2], full[3]}},
		{9, []string{full[0], full[1], full[2]}},
		{6, []string{full[0], full[2]}},
		{3, full[:1]},
	} {
		if d := cmp.Diff(tt.want, region(80, tt.rows, 724, jobEvents())); d != "" {
			t.Errorf("%d rows: %s", tt.rows, d)
		}
	}
	narrow := []string{
		"▸ job tickets.csv  412/1000     12m04s",
		"│ 4 running · 395 ok · 17 failed · 58…",
		"│ ✗ 397 acme-7803  timed out after 10m",
		"│ ▸ 409 acme-7822  exec_command …  41s",
		"│ ▸ 410 acme-7823  apply_patch  12s",
	}
	if d := cmp.Diff(narrow, region(40, 24, 724, jobEvents())); d != "" {
		t.Error(d)
	}
}

func TestRateAndRestAreKnownOnceARowIsFinished(t *testing.T) {
	b := New(Show{})
	p := Painter{Style: NewStyle(false, false), Columns: 80}
	events := jobEvents()
	b.Take(events[0])
	bar := func(seconds float64) string {
		return strings.TrimLeft(p.Region(b, start.Add(time.Duration(seconds*float64(time.Second))), 24)[1], "│ [-]")
	}
	if got := bar(30); got != "0%   –   eta –" {
		t.Errorf("before: %q", got)
	}
	for _, e := range events {
		b.Take(e)
	}
	for _, seconds := range []float64{724, 725} { // the stream's word, not ours
		if got := bar(seconds); !strings.HasSuffix(got, "eta 17m15s") || !strings.Contains(got, "0.1/min") {
			t.Errorf("after: %q", got)
		}
	}
}

func TestARowThatIsTriedAgainCountsByItsLastAttempt(t *testing.T) {
	row := func(attempt int, seconds float64, end event.JobItemFinishedEvent) []event.Event {
		begin := at(seconds, event.JobItemStartedEvent{JobID: "j", Index: 4, Attempt: attempt})
		end.JobID, end.Index, end.Attempt = "j", 4, attempt
		done := at(seconds+1, end)
		begin.ItemID, done.ItemID = "r", "r"
		return []event.Event{begin, done}
	}
	events := slices.Concat([]event.Event{at(0, event.JobStartedEvent{JobID: "j", Total: 1})},
		row(1, 1, event.JobItemFinishedEvent{Status: "failed", WillRetry: true}),
		row(2, 3, event.JobItemFinishedEvent{Status: "failed"}), // somebody asks for one more
		row(3, 5, event.JobItemFinishedEvent{Status: "completed"}))
	want := []string{"x row 5 r  failed"}
	for n, counts := range map[int]string{2: "1 running, 0 ok, 0 left", 3: "0 running, 0 ok, 1 left", 5: "0 running, 0 ok, 1 failed, 0 left", 6: "1 running, 0 ok, 0 left", 7: "0 running, 1 ok, 0 left"} {
		b := New(Show{})
		for _, e := range events[:n] {
			b.Take(e)
		}
		p := Painter{Style: NewStyle(false, true), Columns: 80}
		if got := p.jobCounts(b.jobs["j"]); got != counts {
			t.Errorf("after %d events: %q, want %q", n, got, counts)
		}
	}
	events = append(events, at(8, event.JobFinishedEvent{JobID: "j", Status: "completed", Total: 1, Completed: 1}))
	if d := cmp.Diff(append(want, "+ job j  1 ok"+strings.Repeat(" ", 61)+"8.0s", "  7.5/min"), show(80, events...)); d != "" {
		t.Error(d)
	}
}

func TestTheLastFrameOfAJobSaysHowItEnded(t *testing.T) {
	events := jobEvents()
	tests := []struct {
		name    string
		columns int
		end     event.JobFinishedEvent
		want    []string
	}{
		{"all is well", 60, event.JobFinishedEvent{Status: "completed", Total: 1000, Completed: 1000, OutputPath: "results.csv"},
			[]string{"✓ job tickets.csv  1000 ok                          29m11s", "  0.0/min · $3.18 · results.csv"}},
		{"it was cancelled", 60, event.JobFinishedEvent{Status: "cancelled", Total: 1000, Completed: 400, Failed: 1},
			[]string{"- job tickets.csv  400 ok · 1 failed · 599 left     29m11s", "  0.0/min · $3.18",
				"  failed rows: 397 · run again: drover jobs retry j"}},
		{"a limit ended it", 60, event.JobFinishedEvent{Status: "limit", Total: 1000, Completed: 400, Skipped: 100},
			[]string{"✗ job tickets.csv  400 ok · 100 skipped · 500 left  29m11s", "  0.0/min · $3.18"}},
		{"there is little room", 40, event.JobFinishedEvent{Status: "partial", Total: 1000, Completed: 998, Failed: 2},
			[]string{"✗ job tickets.csv  998 ok · 2…  29m11s", "  0.0/min · $3.18", "  failed rows: 397 … 1 more", "  run again: drover jobs retry j"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := New(Show{})
			tt.end.JobID = "j"
			for _, e := range append(slices.Clone(events), at(1751, tt.end)) {
				b.Take(e)
			}
			got := print(Painter{Style: NewStyle(false, false), Columns: tt.columns}, b.Ready())
			if d := cmp.Diff(tt.want, got[1:]); d != "" { // after the failed row
				t.Error(d)
			}
		})
	}
	lost := show(80, at(1, event.JobFinishedEvent{JobID: "j", Status: "failed", Total: 2, Failed: 2, FailedItems: []string{"a\x1b[2J", "b"}}))
	if d := cmp.Diff(`  failed rows: a\e[2J, b, run again: drover jobs retry j`, lost[2]); d != "" {
		t.Error(d)
	}
	cut := show(60, events...)
	if d := cmp.Diff("! job tickets.csv  395 ok, 17 failed, 588 left      12m04s", cut[1]); d != "" {
		t.Error(d)
	}
}

// TestFailedRowsTakeOneRowEach: what a row's error says may be long, and comes
// from outside.
func TestFailedRowsTakeOneRowEach(t *testing.T) {
	e := at(1, event.JobItemFinishedEvent{JobID: "j", Index: 0, Attempt: 1, Status: "failed", Error: &event.Err{
		Message: "first\nsecond \x1b]52;c;eA==\x07" + strings.Repeat("世", 2000),
	}})
	e.ItemID = "a\u202eb"
	rows := show(60, e)
	want := `x row 1 a\u202eb  first\nsecond \e]52;c;eA==\x07`
	if !strings.HasPrefix(rows[0], want) || term.Width(rows[0]) > 58 || !strings.HasSuffix(rows[0], "...") {
		t.Errorf("got %q", rows)
	}
}

func BenchmarkJob(b *testing.B) {
	_, events := playJob(b, 1000, 16)
	for b.Loop() {
		board := New(Show{})
		for _, e := range events {
			board.Take(e)
			board.Ready()
		}
	}
	b.ReportMetric(float64(b.N*len(events))/b.Elapsed().Seconds(), "events/s")
}
