package jobs

import (
	"fmt"
	"sync"

	"drover/output/event"
	"drover/output/fault"
	"drover/runner"
)

// budget is the money of a whole job, shared by its rows.
type budget struct {
	max float64

	mu sync.Mutex
	// settled is what finished attempts have cost, flying what the present ones
	// have so far.
	settled, flying float64
}

// row returns what a row's agent asks before it spends more, and what settles
// its account.
func (b *budget) row() (ask func(cost float64) *runner.Stop, settle func(cost float64)) {
	last := 0.0
	ask = func(cost float64) *runner.Stop {
		b.mu.Lock()
		b.flying += cost - last
		last = cost
		spent := b.settled + b.flying
		b.mu.Unlock()
		if b.max > 0 && spent >= b.max {
			return b.stop(spent)
		}
		return nil
	}
	settle = func(cost float64) {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.flying, b.settled, last = b.flying-last, b.settled+cost, 0
	}
	return ask, settle
}

// spent tells what the job has cost, and whether that is all that it may.
func (b *budget) spent() (cost float64, over bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	cost = b.settled + b.flying
	return cost, b.max > 0 && cost >= b.max
}

// set replaces what finished attempts have cost: other workers spend, too.
func (b *budget) set(settled float64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.settled = settled
}

// reasonBudget marks the end of a row that the job could not pay for.
const reasonBudget = "job_budget"

func (b *budget) stop(spent float64) *runner.Stop {
	return &runner.Stop{Exit: fault.LimitSpend, Reason: reasonBudget, Err: &event.Err{
		Code: reasonBudget, Message: fmt.Sprintf("the job has spent its budget: $%.4f of $%.4f", spent, b.max),
		Fix: "run the job again with a higher --max-cost: finished rows are not paid again",
	}}
}
