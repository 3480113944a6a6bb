package event

import (
	"maps"
	"slices"
)

// checkedJob is a list job as far as its stream has told of it.
type checkedJob struct {
	total    int
	finished bool
	// attempts is the latest attempt at each row, open those that are under way.
	attempts map[string]int
	open     map[string]bool
}

// job checks that a job begins once and ends once, that each attempt at a row
// does, and that the counts are about all rows.
func (c *Checker) job(e Event) {
	switch b := e.Body.(type) {
	case JobStartedEvent:
		if c.jobs[b.JobID] != nil {
			c.fail("job %s has started before", b.JobID)
			return
		}
		if c.jobs == nil {
			c.jobs = map[string]*checkedJob{}
		}
		if b.Skipped < 0 || b.Skipped > b.Total {
			c.fail("%d rows of %d are skipped", b.Skipped, b.Total)
		}
		c.jobs[b.JobID] = &checkedJob{total: b.Total, attempts: map[string]int{}, open: map[string]bool{}}
	case JobItemStartedEvent:
		if j := c.openJob(b.JobID); j != nil {
			c.itemStarted(j, e.ItemID, b.Attempt)
		}
	case JobItemFinishedEvent:
		j := c.openJob(b.JobID)
		switch {
		case j == nil:
		case !j.open[e.ItemID] || j.attempts[e.ItemID] != b.Attempt:
			c.fail("attempt %d at row %s is not open", b.Attempt, e.ItemID)
		default:
			delete(j.open, e.ItemID)
		}
	case JobProgressEvent:
		if j := c.openJob(b.JobID); j != nil {
			if b.Total != j.total {
				c.fail("the job has %d rows, at its start it had %d", b.Total, j.total)
			}
			c.counts(b.Total, b.Pending, b.Running, b.Completed, b.Failed, b.Skipped)
		}
	case JobFinishedEvent:
		if j := c.openJob(b.JobID); j != nil {
			c.jobFinished(j, b)
		}
	}
}

func (c *Checker) openJob(id string) *checkedJob {
	j := c.jobs[id]
	if j == nil || j.finished {
		c.fail("job %s is not open", id)
		return nil
	}
	return j
}

func (c *Checker) itemStarted(j *checkedJob, item string, attempt int) {
	switch {
	case j.open[item]:
		c.fail("row %s is still open", item)
	case attempt <= j.attempts[item]:
		c.fail("attempt %d at row %s follows attempt %d", attempt, item, j.attempts[item])
	}
	j.attempts[item], j.open[item] = attempt, true
}

// counts checks that all rows are counted, once each.
func (c *Checker) counts(total int, parts ...int) {
	sum := 0
	for _, n := range parts {
		if n < 0 {
			c.fail("a count is %d", n)
		}
		sum += n
	}
	if sum != total {
		c.fail("the rows add up to %d, there are %d", sum, total)
	}
}

func (c *Checker) jobFinished(j *checkedJob, b JobFinishedEvent) {
	j.finished = true
	for _, item := range slices.Sorted(maps.Keys(j.open)) {
		c.fail("row %s is still open", item)
	}
	if b.Total != j.total {
		c.fail("the job has %d rows, at its start it had %d", b.Total, j.total)
	}
	done := b.Completed + b.Failed + b.Skipped
	switch {
	case min(b.Completed, b.Failed, b.Skipped) < 0 || done > b.Total:
		c.fail("%d rows of %d are finished", done, b.Total)
	case b.Status == "completed" && (b.Failed > 0 || done != b.Total):
		c.fail("a job that is completed has %d rows of %d, %d of them failed", done, b.Total, b.Failed)
	}
	if n := len(b.FailedItems); !b.Truncated && n != b.Failed && n > 0 {
		c.fail("%d rows failed, %d are named", b.Failed, n)
	}
}

// openJobs are the jobs without an end.
func (c *Checker) openJobs() []string {
	var out []string
	for id, j := range c.jobs {
		if !j.finished {
			out = append(out, id)
		}
	}
	slices.Sort(out)
	return out
}
