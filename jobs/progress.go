package jobs

import (
	"math"
	"time"

	"drover/output/event"
)

// progress tells how far a job is, at most once a second.
type progress struct {
	job   *Job
	began time.Time
	last  time.Time
	told  counts
}

func (p *progress) tell(forced bool) {
	c := p.job.crew
	now := time.Now()
	n := c.snapshot()
	if n == p.told && !p.last.IsZero() || !forced && now.Sub(p.last) < progressEvery {
		return
	}
	p.last, p.told = now, n
	e := event.JobProgressEvent{JobID: c.jobID, Total: p.job.total, Running: max(0, n.running),
		Completed: n.completed, Failed: n.failed, Skipped: n.skipped}
	e.Pending = e.Total - e.Running - e.Completed - e.Failed - e.Skipped
	c.mu.Lock()
	done := c.totals.finished
	c.mu.Unlock()
	if done > 0 {
		left := float64(e.Pending + e.Running)
		eta := math.Round(left / (float64(done) / now.Sub(p.began).Seconds()))
		e.ETASeconds = &eta
	}
	if spent, _ := c.budget.spent(); spent > 0 {
		e.CostUSD = &spent
	}
	c.log.Emit(event.Origin{}, e)
}
