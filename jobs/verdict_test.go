package jobs

import (
	"testing"
	"time"

	"drover/output/event"
	"drover/output/fault"
	"drover/runner"
)

func TestVerdictOnARow(t *testing.T) {
	c := &crew{spec: &Spec{MaxAttempts: 3}}
	done := &report{result: []byte(`{}`)}
	for _, v := range []struct {
		name      string
		end       fault.Exit
		reason    string
		report    *report
		attempt   int
		probe     bool
		status    event.JobItemStatus
		again     bool
		uncounted bool
		hopeless  bool
	}{
		{name: "reported", end: fault.Success, report: done, status: "completed"},
		{name: "not reported", end: fault.Success, status: "failed"},
		{name: "never matched the schema", end: fault.Success, report: &report{problem: "n is missing"}, status: "invalid_output"},
		{name: "reported, and a check failed", end: fault.Failed, report: done, status: "failed"},
		{name: "reported, but a refusal counts", end: fault.Blocked, report: done, status: "blocked"},
		{name: "provider down", end: fault.Provider, attempt: 1, status: "failed", again: true},
		{name: "provider down at the last attempt", end: fault.Provider, attempt: 3, status: "failed"},
		{name: "provider still down, tried by a probe", end: fault.Provider, attempt: 3, probe: true, status: "failed", again: true, uncounted: true},
		{name: "key refused", end: fault.Auth, attempt: 1, status: "failed", again: true, uncounted: true, hopeless: true},
		{name: "item timeout", end: fault.Timeout, reason: "limit_wall_s", status: "timeout"},
		{name: "turns", end: fault.LimitTurns, status: "limit"},
		{name: "job out of money", end: fault.LimitSpend, reason: reasonBudget, status: "limit", again: true, uncounted: true},
		{name: "its own tokens", end: fault.LimitSpend, reason: "limit_tokens", status: "limit"},
		{name: "interrupted", end: fault.Interrupted, reason: "sigint", status: "cancelled", again: true, uncounted: true},
		{name: "job cancelled", end: fault.Interrupted, reason: reasonCancel, status: "cancelled"},
		{name: "said nothing", end: fault.Incomplete, reason: "empty_answer", status: "failed"},
		{name: "a bug", end: fault.Internal, reason: "panic", status: "failed"},
		{name: "model refused", end: fault.Model, attempt: 1, status: "failed"},
	} {
		t.Run(v.name, func(t *testing.T) {
			rep := v.report
			if rep == nil {
				rep = &report{}
			}
			out := runner.Outcome{End: runner.Stop{Exit: v.end, Reason: v.reason}}
			got := c.judge(max(1, v.attempt), v.probe, out, rep, time.Minute)
			if got.status != v.status || got.again != v.again || got.uncounted != v.uncounted || got.hopeless != v.hopeless {
				t.Errorf("got %+v", got)
			}
			if got.status != "completed" && got.err == nil {
				t.Error("nothing says why")
			}
		})
	}
}

func TestWaitBetweenAttemptsGrowsAndIsBounded(t *testing.T) {
	for attempt := 1; attempt < 40; attempt++ {
		if d := backoff(attempt); d < retryBase/2 || d > retryCap {
			t.Errorf("attempt %d waits %v", attempt, d)
		}
	}
}

func TestBudgetIsSharedByAllRows(t *testing.T) {
	b := &budget{max: 1}
	first, settleFirst := b.row()
	second, _ := b.row()
	if stop := first(0.4); stop != nil {
		t.Fatal(stop)
	}
	if stop := second(0.5); stop != nil {
		t.Fatal(stop)
	}
	if stop := first(0.5); stop == nil || stop.Exit != fault.LimitSpend || stop.Reason != reasonBudget {
		t.Errorf("a dollar is spent, and nobody says so: %v", stop)
	}
	settleFirst(0.5)
	if spent, over := b.spent(); spent != 1 || !over {
		t.Errorf("spent %v, over %v", spent, over)
	}
}
