package jobs

import (
	"time"

	"drover/output/event"
	"drover/runner"
)

// totals are what the rows that this process worked on have used.
type totals struct {
	usage     event.Usage
	byModel   map[string]event.Usage
	turns     int
	toolCalls map[string]int
	apiTime   time.Duration
	denials   []event.Denial
	cost      float64
	// priced says that the cost of something is known.
	priced   bool
	basis    event.CostBasis
	finished int
	// output is why the result could not be written, nil if it could.
	output *runner.Stop
}

// maxDenials is how many refusals of rows the last line of the run names.
const maxDenials = 100

// add adds what an attempt has used.
func (t *totals) add(out runner.Outcome) {
	more := totals{usage: out.Usage, byModel: out.UsageByModel, turns: out.Turns, toolCalls: out.ToolCalls, apiTime: out.APITime, denials: out.Denials}
	if out.Usage.Calls > 0 {
		more.basis = out.CostBasis
		if out.CostUSD != nil {
			more.cost, more.priced = *out.CostUSD, true
		}
	}
	t.merge(more)
}

// merge adds what others have used.
func (t *totals) merge(o totals) {
	t.usage.Add(o.usage)
	t.turns += o.turns
	t.apiTime += o.apiTime
	t.finished += o.finished
	for name, n := range o.toolCalls {
		if t.toolCalls == nil {
			t.toolCalls = map[string]int{}
		}
		t.toolCalls[name] += n
	}
	for id, u := range o.byModel {
		if t.byModel == nil {
			t.byModel = map[string]event.Usage{}
		}
		sum := t.byModel[id]
		sum.Add(u)
		t.byModel[id] = sum
	}
	if room := maxDenials - len(t.denials); room > 0 {
		t.denials = append(t.denials, o.denials[:min(room, len(o.denials))]...)
	}
	if o.basis != "" {
		t.basis = o.basis
	}
	t.cost, t.priced = t.cost+o.cost, t.priced || o.priced
}

// outcome is the part of a run's outcome that the totals know.
func (t *totals) outcome(sessionID string, took time.Duration) runner.Outcome {
	out := runner.Outcome{SessionID: sessionID, Usage: t.usage, UsageByModel: t.byModel, Turns: t.turns,
		ToolCalls: t.toolCalls, APITime: t.apiTime, Denials: t.denials, Duration: took, CostBasis: t.basis}
	if t.priced {
		cost := t.cost
		out.CostUSD = &cost
	}
	return out
}
