package jobs

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"drover/output/event"
	"drover/output/fault"
	"drover/runner"
)

// Run works on the job until no row is left, or until something ends it, and
// writes the result. It emits run.started, unless an agent has started the job,
// and the events of the job and of its rows; run.finished is the caller's. A ctx
// that is cancelled with a *runner.Stop as its cause ends the rows, which can be
// continued later.
func (j *Job) Run(ctx context.Context) runner.Outcome {
	c := j.crew
	began := time.Now()
	if c.opts.ParentSession == "" {
		runner.Announce(c.announced())
	}
	if stopped := c.opts.Base.Stopped; stopped != nil {
		defer context.AfterFunc(ctx, stopped)()
	}
	c.begin(ctx)
	defer c.cancel(nil)
	c.log.Emit(event.Origin{}, event.JobStartedEvent{JobID: c.jobID, Total: j.total,
		Source: event.FileRef{Path: c.spec.SourcePath, SHA256: j.table.SHA256}, IDColumn: c.spec.IDColumn,
		OutputPath: c.spec.OutputPath, Concurrency: c.opts.Concurrency, Resumed: j.resumed, Skipped: j.before.completed + j.before.failed + j.before.skipped})
	j.tellBlank()
	stop := j.work(ctx)
	status := j.conclude(ctx, stop)
	j.ended = status
	final := c.snapshot()
	c.log.Emit(event.Origin{}, event.JobFinishedEvent{JobID: c.jobID, Status: status, Total: j.total,
		Completed: final.completed, Failed: final.failed, Skipped: final.skipped, OutputPath: c.spec.OutputPath, FailedItems: j.failedItems()})
	return j.outcome(stop, final, time.Since(began))
}

// tellBlank says which lines of the table are no rows.
func (j *Job) tellBlank() {
	if n := j.table.BlankCount; n > 0 {
		j.crew.log.Emit(event.Origin{}, event.NoticeEvent{Level: "info", Code: "blank_rows", Message: fmt.Sprintf("%d blank rows of the table were left out", n),
			Details: map[string]any{"lines": j.table.Blank}})
	}
}

// work runs rows until the job ends, and returns why if that was early.
func (j *Job) work(ctx context.Context) *runner.Stop {
	c := j.crew
	if c.results == nil {
		r, err := openResults(ctx, c.store, c.jobID, c.spec, cmp.Or(c.opts.WriteTo, c.spec.OutputPath), c.header, j.name)
		if err != nil {
			return unlessEnded(ctx, databaseOrOutput(err))
		}
		c.results = r
	}
	if j.done {
		return nil
	}
	removePlaces(ctx, c)
	defer c.places.close(c)
	if err := c.store.Begin(ctx, c.jobID); err != nil {
		return unlessEnded(ctx, databaseStop(err))
	}
	if err := c.store.AllTold(ctx, c.jobID); err != nil {
		return unlessEnded(ctx, databaseStop(err))
	}
	if !c.store.Embedded() {
		// Before it has rows: to the other workers it would be dead.
		if err := j.engine.beat(ctx); err != nil {
			return unlessEnded(ctx, databaseStop(err))
		}
		defer func() { _ = c.store.Leave(context.WithoutCancel(ctx), c.worker) }() // else it counts as alive for a while
	}
	defer c.log.Subscribe(event.TopicPlumbing, c.listen)()
	beating, endBeat := context.WithCancel(context.WithoutCancel(ctx))
	beat := make(chan struct{})
	go func() { // ends with endBeat
		defer close(beat)
		if !c.store.Embedded() {
			j.engine.heartbeat(beating, c.log)
		}
	}()
	defer func() { endBeat(); <-beat }()
	if c.opts.Concurrency > 0 {
		if err := j.engine.join(ctx, c); err != nil {
			return unlessEnded(ctx, databaseStop(err))
		}
	}
	stop := j.watch(ctx)
	j.wind(stop)
	return stop
}

// unlessEnded is the stop, or why ctx has ended: what is cut off then is no
// fault of the disk or the database.
func unlessEnded(ctx context.Context, stop *runner.Stop) *runner.Stop {
	if ctx.Err() != nil {
		return stopOf(ctx)
	}
	return stop
}

// listen tells the gate when the provider complains.
func (c *crew) listen(e event.Event) {
	if r, ok := e.Body.(event.ProviderRetryEvent); ok && (r.ErrorKind == "rate_limit" || r.ErrorKind == "overloaded") {
		c.gate.complain()
	}
}

const (
	// lookEvery spaces the looks at what others have done to the job.
	lookEvery = 500 * time.Millisecond
	// progressEvery is the promised rate of job.progress.
	progressEvery = time.Second
)

// watch follows the job until it ends, and returns why if that is early.
func (j *Job) watch(ctx context.Context) *runner.Stop {
	c := j.crew
	var deadline <-chan time.Time
	if d := c.opts.MaxRuntime; d > 0 {
		t := time.NewTimer(d)
		defer t.Stop()
		deadline = t.C
	}
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	p := &progress{job: j, began: time.Now()}
	p.tell(true)
	defer p.tell(true)
	for idle := 0; ; {
		if n := c.snapshot(); n.pending <= 0 && n.running <= 0 && j.reallyDone(ctx) {
			return nil
		}
		if spent, over := c.budget.spent(); over {
			return c.budget.stop(spent)
		}
		select {
		case <-ctx.Done():
			return stopOf(ctx)
		case <-c.draining.Done():
			return stopOf(c.draining)
		case <-deadline:
			return deadlineStop(c.opts.MaxRuntime)
		case <-c.wake:
			idle = 0
		case <-tick.C:
			if stop := j.look(ctx); stop != nil {
				return stop
			}
			if idle++; idle%10 == 0 { // nothing has happened for five seconds
				j.findLost(ctx)
			}
		}
		p.tell(false)
	}
}

func stopOf(ctx context.Context) *runner.Stop {
	var stop *runner.Stop
	if errors.As(context.Cause(ctx), &stop) {
		return stop
	}
	return &runner.Stop{Exit: fault.Interrupted, Reason: "cancelled"}
}

func deadlineStop(d time.Duration) *runner.Stop {
	return &runner.Stop{Exit: fault.Timeout, Reason: reasonDeadline, Err: &event.Err{Code: reasonDeadline,
		Message: "the job exceeded its max runtime of " + d.String(), Fix: "run it again to go on with the rows that are left"}}
}

// look reads what others have done: asked for an end, or finished rows.
func (j *Job) look(ctx context.Context) *runner.Stop {
	c := j.crew
	control, _, err := c.store.Control(ctx, c.jobID)
	if err != nil {
		return nil // the heartbeat tells of a database that is away
	}
	switch control {
	case "stop":
		return &runner.Stop{Exit: fault.Partial, Reason: "job_stopped", Err: &event.Err{Code: "job_stopped",
			Message: "the job was asked to stop", Fix: "run it again to go on with the rows that are left"}}
	case "cancel":
		return &runner.Stop{Exit: fault.Partial, Reason: reasonCancel, Err: &event.Err{Code: reasonCancel, Message: "the job was cancelled"}}
	}
	if c.store.Embedded() {
		return nil
	}
	j.tellOthers(ctx)
	if by, err := c.store.Counts(ctx, c.jobID); err == nil {
		c.mu.Lock()
		c.counts = counted(by)
		c.mu.Unlock()
	}
	if cost, err := c.store.Cost(ctx, c.jobID); err == nil && cost != nil {
		c.budget.set(*cost)
	}
	c.countFailures(c.snapshot().failed)
	return nil
}

// tellOthers tells of rows that other workers have finished.
func (j *Job) tellOthers(ctx context.Context) {
	c := j.crew
	for {
		rows, err := c.store.Untold(ctx, c.jobID, pageSize)
		if err != nil || len(rows) == 0 {
			return
		}
		for _, row := range rows {
			if err := c.store.Told(ctx, row); err != nil {
				return
			}
			j.tellOther(ctx, row.ItemID, row.Index)
		}
	}
}

func (j *Job) tellOther(ctx context.Context, itemID string, index int) {
	c := j.crew
	page, err := c.store.Page(ctx, c.jobID, index-1, 1, true)
	if err != nil || len(page) == 0 || page[0].ItemID != itemID {
		return
	}
	row := page[0]
	if c.results != nil {
		c.results.append(c, row)
	}
	c.mu.Lock()
	number := c.number(row)
	c.mu.Unlock()
	code := row.ExitCode
	e := event.JobItemFinishedEvent{JobID: c.jobID, Index: row.Index, Attempt: number, Status: event.JobItemStatus(row.Status),
		ExitCode: &code, Result: row.Result, CostUSD: row.CostUSD, DurationMS: row.DurationMS}
	if row.Error != "" {
		e.Error = &event.Err{Code: row.Status, Message: row.Error}
	}
	o := event.Origin{ItemID: row.ItemID}
	c.log.Emit(o, event.JobItemStartedEvent{JobID: c.jobID, Index: row.Index, Attempt: number, InputSHA256: row.SHA256})
	c.log.Emit(o, e)
	c.mu.Lock()
	c.totals.finished++
	c.mu.Unlock()
}

// reallyDone asks the database whether no row is left: the counts of this
// process know little of what others do.
func (j *Job) reallyDone(ctx context.Context) bool {
	c := j.crew
	by, err := c.store.Counts(ctx, c.jobID)
	if err != nil {
		return false
	}
	n := counted(by)
	c.mu.Lock()
	c.counts = n
	c.mu.Unlock()
	if n.pending > 0 || n.running > 0 {
		return false
	}
	if !c.store.Embedded() {
		j.tellOthers(ctx)
	}
	return true
}

// findLost looks after rows that are pending although the queue does not hold
// them. In the web UI somebody has cancelled them; what went missing otherwise,
// such as with a broken connection, is put in again.
func (j *Job) findLost(ctx context.Context) {
	c := j.crew
	if j.reallyDone(ctx) {
		return
	}
	queued, err := c.store.Queued(ctx, c.jobID)
	if err != nil || queued > 0 {
		return
	}
	if n := c.snapshot(); n.running > 0 || n.pending <= 0 {
		return
	}
	if err := c.store.DropTaken(ctx, c.jobID, "cancelled", "the row was taken out of the queue"); err != nil {
		return // it is tried again, as is what follows
	}
	_ = c.store.Tx(ctx, func(tx *sql.Tx) error { return j.engine.enqueue(ctx, tx, c.jobID) })
	if c.store.Embedded() {
		j.tellOthers(ctx)
	}
	j.reallyDone(ctx)
}

// wind ends what is under way, in the way that the reason asks for.
func (j *Job) wind(stop *runner.Stop) {
	c := j.crew
	patience := context.Background()
	if stop != nil {
		c.drain(stop)
		switch stop.Reason {
		case "job_stopped", reasonWorker, "max_failures":
			// Rows that are under way are finished.
		case reasonCancel:
			c.cancel(&runner.Stop{Exit: fault.Interrupted, Reason: reasonCancel, Err: stop.Err})
		default:
			c.cancel(stop)
		}
	}
	j.engine.leave(patience, c)
	j.engine.stop(patience)
}

// conclude writes the result and how the job ended, and returns that.
func (j *Job) conclude(ctx context.Context, stop *runner.Stop) event.JobStatus {
	c := j.crew
	ctx = context.WithoutCancel(ctx)
	if stop != nil && stop.Reason == reasonCancel {
		_ = c.store.Drop(ctx, c.jobID, "cancelled", "the job was cancelled") // the counts below tell
	}
	if by, err := c.store.Counts(ctx, c.jobID); err == nil {
		c.mu.Lock()
		c.counts = counted(by)
		c.mu.Unlock()
	}
	if !c.store.Embedded() {
		j.tellOthers(ctx)
	}
	final := c.snapshot()
	status := j.status(stop, final)
	if c.results != nil {
		if _, err := persist(ctx, c.store, func(ctx context.Context) (struct{}, error) {
			return struct{}{}, c.results.finish(ctx, c.store, c.opts.JUnit)
		}); err != nil {
			c.totals.output = databaseOrOutput(err)
			c.log.Emit(event.Origin{}, event.ErrorEvent{Code: "output_failed", Message: c.totals.output.Err.Message})
		}
	}
	c.tellConflicts(ctx)
	kept, why := string(status), ""
	if final.pending+final.running > 0 && (stop == nil || stop.Reason != reasonCancel) {
		kept = "pending"
	}
	if stop != nil {
		why = stop.Reason
		if stop.Err != nil {
			why = stop.Err.Message
		}
	}
	_ = c.store.End(ctx, c.jobID, kept, why) // the rows are what counts
	return status
}

// status is how the job ended.
func (j *Job) status(stop *runner.Stop, n counts) event.JobStatus {
	switch {
	case stop != nil && stop.Exit == fault.LimitSpend && n.completed < j.total:
		return "limit"
	case stop != nil && (stop.Reason == reasonCancel || stop.Reason == reasonWorker || stop.Exit == fault.Interrupted || stop.Exit == fault.Terminated || stop.Exit == fault.ClosedOutput):
		return "cancelled"
	case n.completed == j.total:
		return "completed"
	case n.completed == 0:
		return "failed"
	}
	return "partial"
}

// failedItems are the ids of the rows that failed for good.
func (j *Job) failedItems() []string {
	c := j.crew
	var out []string
	for after := -1; len(out) < maxFailedItems; {
		page, err := c.store.Page(context.Background(), c.jobID, after, pageSize, false, failedStatuses...)
		if err != nil || len(page) == 0 {
			break
		}
		for _, row := range page {
			after = row.Index
			out = append(out, row.ItemID)
		}
	}
	return out
}

// maxFailedItems is how many rows the last event of a job names at most; the
// event itself is cut where a line has no room.
const maxFailedItems = 10000

var failedStatuses = []string{"failed", "blocked", "timeout", "invalid_output", "limit"}

// outcome is the end of the run that was the job.
func (j *Job) outcome(stop *runner.Stop, n counts, took time.Duration) runner.Outcome {
	c := j.crew
	c.mu.Lock()
	defer c.mu.Unlock()
	t := &c.totals
	out := t.outcome(c.opts.Base.SessionID, took)
	out.End = runner.Stop{Exit: fault.Success, Reason: "completed"}
	rest := j.total - n.completed
	switch {
	case rest > 0 && n.completed == 0:
		out.End = runner.Stop{Exit: fault.JobFailed, Reason: "job_failed", Err: &event.Err{Code: "job_failed", Message: "no row is completed" + whatElse(n),
			Fix: "read last_error in " + c.spec.OutputPath + ", then: drover jobs retry " + c.jobID}}
	case rest > 0:
		out.End = runner.Stop{Exit: fault.Partial, Reason: "job_partial", Err: &event.Err{Code: "job_partial",
			Message: fmt.Sprintf("%d of %d rows are completed", n.completed, j.total) + whatElse(n), Fix: "run again: drover jobs retry " + c.jobID}}
	}
	if stop != nil {
		if stop.Err != nil && rest > 0 {
			out.End.Err = &event.Err{Code: stop.Err.Code, Message: stop.Err.Message + "; " + out.End.Err.Message, Fix: stop.Err.Fix}
			out.End.Reason = stop.Reason
		}
		switch stop.Exit {
		case fault.Interrupted, fault.Terminated, fault.ClosedOutput:
			out.End = *stop
		case fault.Environment:
			out.Fail(stop)
		}
	}
	if t.output != nil {
		out.Fail(t.output)
	}
	return out
}

func whatElse(n counts) string {
	s := ""
	if n.failed > 0 {
		s += fmt.Sprintf(", %d failed", n.failed)
	}
	if n.skipped > 0 {
		s += fmt.Sprintf(", %d were cancelled", n.skipped)
	}
	if left := n.pending + n.running; left > 0 {
		s += fmt.Sprintf(", %d are left", left)
	}
	return s
}

func databaseOrOutput(err error) *runner.Stop {
	var f *fault.Error
	if errors.As(err, &f) {
		return runner.StopFor(err)
	}
	return &runner.Stop{Exit: fault.Environment, Reason: "output_failed", Err: &event.Err{Code: "output_failed",
		Message: "the result cannot be written: " + err.Error(), Fix: "make room, then: drover jobs export"}}
}
