package jobs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"runtime/debug"
	"sync"
	"time"

	"drover/jobs/store"
	"drover/jobs/template"
	"drover/output/event"
	"drover/output/fault"
	"drover/runner"
	"drover/tools"
)

// crew is what one process does for one job: it works on rows that the queue
// hands out, as many at a time as the gate lets through.
type crew struct {
	opts     Options
	spec     *Spec
	jobID    string
	header   []string
	template *template.Template
	schema   *runner.Schema
	report   tools.Spec
	store    *store.Store
	worker   string
	log      *event.Log
	gate     *gate
	budget   *budget
	// results are the files of the result, nil in a process that writes none.
	results *results

	places places

	// ctx ends when agents must end; its cause is a *runner.Stop. draining ends
	// earlier, when no further row is to be begun.
	ctx      context.Context
	cancel   context.CancelCauseFunc
	draining context.Context
	drain    context.CancelCauseFunc

	mu     sync.Mutex
	counts counts
	totals totals
	// taken are the rows that this process claims or works on; rows are their
	// attempts that are under way.
	taken map[string]bool
	rows  map[string]*attempt
	// told are the latest numbers of attempts in the stream, by the rows that are
	// tried again: the database gives a number once more if the attempt did not
	// count.
	told map[string]int
	// hopeless counts failures in a row that every other row would share.
	hopeless int
	// wake is signalled when a row has ended.
	wake        chan struct{}
	unsubscribe func()
}

// attempt is one attempt at a row that is under way.
type attempt struct {
	number int
	cancel context.CancelCauseFunc
}

// counts are how many rows have which status.
type counts struct{ pending, running, completed, failed, skipped int }

func (c *counts) of(status event.JobItemStatus) *int {
	switch status {
	case "completed":
		return &c.completed
	case "cancelled", "skipped":
		return &c.skipped
	}
	return &c.failed
}

// newCrew makes a crew that works on nothing yet.
func newCrew(o Options, spec *Spec, jobID string, header []string) *crew {
	return &crew{opts: o, spec: spec, jobID: jobID, header: header, log: o.Base.Log, gate: newGate(max(1, o.Concurrency)),
		budget: &budget{max: o.MaxCostUSD}, taken: map[string]bool{}, rows: map[string]*attempt{}, told: map[string]int{}, wake: make(chan struct{}, 1)}
}

// begin makes the crew ready to run agents until ctx ends.
func (c *crew) begin(ctx context.Context) {
	c.ctx, c.cancel = context.WithCancelCause(ctx)
	c.draining, c.drain = context.WithCancelCause(c.ctx)
}

// work does what the queue asks for: one attempt at one row. Its error tells the
// queue what to do next.
func (c *crew) work(ctx context.Context, settle func(ctx context.Context, r *store.Row) (bool, error), itemID string) (again bool, delay time.Duration, err error) {
	probe, err := c.gate.enter(c.draining)
	if err != nil {
		return true, drainPause, nil
	}
	if spent, over := c.budget.spent(); over {
		c.gate.leave(probe, unknown)
		c.drain(c.budget.stop(spent))
		return true, drainPause, nil
	}
	if !c.take(itemID) {
		// The queue holds the row twice, or has given it to others meanwhile and
		// back: one attempt after the other.
		c.gate.leave(probe, unknown)
		return true, drainPause, nil
	}
	defer c.untake(itemID)
	row, err := c.claim(itemID)
	if row == nil || err != nil {
		c.gate.leave(probe, unknown)
		c.broken(err)
		return err != nil, drainPause, nil
	}
	c.began(row)
	v, out, rep := c.attempt(ctx, row, probe)
	if closed, opened := c.gate.leave(probe, v.provider); closed || opened {
		c.tellGate(closed, v.err)
	}
	c.fill(row, v, out, rep)
	kept, err := c.keep(row, v, settle)
	if err != nil {
		c.broken(err)
	}
	c.ended(row, v, out, kept && err == nil)
	if err != nil {
		return true, drainPause, nil // what the database has is not known: it may still be to do
	}
	return v.again && kept, v.delay, nil
}

// take reserves a row for one attempt of this process, and tells whether none is
// under way.
func (c *crew) take(itemID string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.taken[itemID] {
		return false
	}
	c.taken[itemID] = true
	return true
}

// works tells whether this process claims or works on the row.
func (c *crew) works(itemID string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.taken[itemID]
}

func (c *crew) untake(itemID string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.taken, itemID)
}

// claimTimeout bounds one try to claim a row.
const claimTimeout = time.Minute

// claim makes the row this worker's own. It is nil if it is not to be worked on.
// The end of the job does not cut a claim off: nobody would know whose the row
// is.
func (c *crew) claim(itemID string) (*store.Row, error) {
	again := false
	return persist(c.ctx, c.store, func(ctx context.Context) (*store.Row, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), claimTimeout)
		defer cancel()
		row, err := c.store.Claim(ctx, c.jobID, itemID, c.worker, again)
		again = again || err != nil
		return row, err
	})
}

// keep brings the end of an attempt into the database. It returns false if the
// row is not this worker's own any more. A connection that breaks may have kept
// what it did not answer to.
func (c *crew) keep(row *store.Row, v verdict, settle func(context.Context, *store.Row) (bool, error)) (bool, error) {
	unsure := false
	return persist(context.WithoutCancel(c.ctx), c.store, func(ctx context.Context) (kept bool, err error) {
		if v.again {
			kept, err = c.store.Release(ctx, row, v.uncounted)
		} else {
			kept, err = settle(ctx, row)
		}
		if err == nil && !kept && unsure {
			kept, err = c.store.Kept(ctx, row, v.again)
		}
		unsure = unsure || err != nil
		return kept, err
	})
}

// drainPause keeps a row that cannot be begun now from coming back at once.
const drainPause = 5 * time.Second

// broken ends the job because its database cannot be used.
func (c *crew) broken(err error) {
	if err == nil || c.draining.Err() != nil {
		return
	}
	c.drain(databaseStop(err))
}

// persist does something on the database, again and again for a while: it may be
// away for a minute. A file beside it that cannot be written is no reason to
// wait.
func persist[T any](ctx context.Context, s *store.Store, do func(ctx context.Context) (T, error)) (T, error) {
	began, wait, patience := time.Now(), 50*time.Millisecond, patienceWithServer
	if s.Embedded() {
		patience = patienceWithFile
	}
	for {
		v, err := do(ctx)
		var path *fs.PathError
		if err == nil || errors.As(err, &path) || time.Since(began) > patience {
			return v, err
		}
		select {
		case <-ctx.Done():
			return v, err
		case <-time.After(wait):
		}
		wait = min(2*wait, 2*time.Second)
	}
}

// How long a database may be away: a server comes back, a disk that is full
// mostly stays so.
const (
	patienceWithServer = 5 * time.Minute
	patienceWithFile   = 4 * time.Second
)

func databaseStop(err error) *runner.Stop {
	return &runner.Stop{Exit: fault.Environment, Reason: "job_database", Err: &event.Err{
		Code: "job_database", Message: "the job's database cannot be used: " + err.Error(),
		Fix: "make it available (room on the disk, a running server), then run the job again: finished rows are kept",
	}}
}

// attempt runs the row's agent.
func (c *crew) attempt(queue context.Context, row *store.Row, probe bool) (v verdict, out runner.Outcome, rep *report) {
	rep = &report{jobID: c.jobID, itemID: row.ItemID, schema: c.schema, spec: c.report}
	switch {
	case row.Problem != "":
		return verdict{provider: unknown}.fail("failed", fault.Config, "row_unusable", row.Problem), out, rep
	case row.Lost >= maxLost:
		v = lostTooOften(row.Lost)
		v.provider = unknown
		return v, out, rep
	}
	ctx, cancel := context.WithCancelCause(c.ctx)
	defer cancel(nil)
	c.mu.Lock()
	c.rows[row.ItemID] = &attempt{number: row.Attempt, cancel: cancel}
	c.mu.Unlock()
	// The web UI can cancel a row.
	defer context.AfterFunc(queue, func() {
		if c.ctx.Err() == nil {
			cancel(&runner.Stop{Exit: fault.Interrupted, Reason: reasonCancel, Err: &event.Err{Code: reasonCancel, Message: "the row was cancelled"}})
		}
	})()
	ask, settle := c.budget.row()
	o := c.agent(row, rep, ask)
	began := time.Now()
	out, patch := c.run(ctx, o, row)
	row.DurationMS, row.Patch = time.Since(began).Milliseconds(), patch
	rep.close()
	if out.CostUSD != nil {
		settle(*out.CostUSD)
	} else {
		settle(0)
	}
	if c.opts.Sweep != nil && len(out.ToolCalls) > 0 {
		c.opts.Sweep(o.SessionID)
	}
	row.SessionID = o.SessionID
	limit := o.Limits.Wall
	if out.End.Reason == reasonDeadline {
		limit = c.opts.MaxRuntime
	}
	// A worker that died says nothing about the provider.
	return c.judge(row.Attempt-row.Lost, probe, out, rep, limit), out, rep
}

// announced are the options as run.started tells them.
func (c *crew) announced() runner.Options {
	o := c.opts.Base
	o.Tools = append(withoutSpawn(o.Tools), &report{spec: c.report})
	o.Limits.CostUSD = c.opts.MaxCostUSD
	return o
}

// withoutSpawn are the tools of a row: one row does not start jobs of its own.
func withoutSpawn(list []tools.Tool) []tools.Tool {
	out := make([]tools.Tool, 0, len(list)+1)
	for _, t := range list {
		if t.Spec().Name != SpawnTool {
			out = append(out, t)
		}
	}
	return out
}

// agent are the options of the row's agent.
func (c *crew) agent(row *store.Row, rep *report, ask func(float64) *runner.Stop) runner.Options {
	o := c.opts.Base
	o.SessionID, o.Prompt = c.opts.NewSessionID(), c.prompt(row.ItemID, row.Cells)
	o.Tools = append(withoutSpawn(o.Tools), rep)
	o.Schema, o.Notices, o.Keep, o.Stopped = nil, nil, nil, nil
	o.Commands.SessionID = o.SessionID
	limit := time.Duration(c.spec.ItemTimeoutMS) * time.Millisecond
	if o.Limits.Wall == 0 || limit < o.Limits.Wall {
		o.Limits.Wall = limit
	}
	o.Limits.CostUSD = 0 // the job's budget, see Row.Budget
	c.mu.Lock()
	number := c.number(row)
	c.mu.Unlock()
	o.Row = &runner.Row{ItemID: row.ItemID, Index: row.Index, Attempt: number,
		Values: c.scriptValues(row.ItemID, row.Cells), Budget: ask, Missing: rep.missing}
	return o
}

// run runs the agent, in a place of its own where rows are isolated. A panic is
// the row's end and not the job's.
func (c *crew) run(ctx context.Context, o runner.Options, row *store.Row) (out runner.Outcome, patch string) {
	defer func() {
		if p := recover(); p != nil {
			c.log.Emit(event.Origin{ItemID: row.ItemID}, event.ErrorEvent{Code: "panic", Message: fmt.Sprint("drover has a bug: ", p),
				Details: map[string]any{"stack": string(debug.Stack())}})
			out.End = runner.Stop{Exit: fault.Internal, Reason: "panic", Err: &event.Err{Code: "panic", Message: fmt.Sprint("drover has a bug: ", p)}}
		}
	}()
	place, err := c.isolate(ctx, &o, row)
	if err != nil {
		out.End = *runner.StopFor(err)
		return out, ""
	}
	defer place.remove()
	out = runner.Run(ctx, o)
	patch, err = place.keepDiff()
	if err != nil {
		out.Fail(runner.StopFor(err))
	}
	return out, patch
}

// fill puts what has become of the attempt into the row.
func (c *crew) fill(row *store.Row, v verdict, out runner.Outcome, rep *report) {
	row.Status, row.ExitCode = string(v.status), int(v.exit)
	row.Error = ""
	if v.err != nil {
		row.Error = v.err.Message
	}
	rep.mu.Lock()
	row.Result = rep.result
	rep.mu.Unlock()
	// The database and the files of the result are outputs like the stream.
	row.Error, row.Result = c.mask(row.Error), c.maskJSON(row.Result)
	row.CostUSD, row.InputTokens, row.OutputTokens = out.CostUSD, out.Usage.InputTokens, out.Usage.OutputTokens
	if out.Usage.Calls == 0 {
		row.CostUSD = nil
	}
	if rep.stop && v.status == "completed" && c.draining.Err() == nil {
		c.drain(&runner.Stop{Exit: fault.Partial, Reason: reasonWorker, Err: &event.Err{
			Code: reasonWorker, Message: "cancelled by worker request", Fix: "row " + row.ItemID + " reported with stop; run the job again to go on with the rest"}})
	}
}

// mask takes the secrets of the run out of a text.
func (c *crew) mask(text string) string {
	if c.opts.Base.Mask == nil {
		return text
	}
	return c.opts.Base.Mask(text)
}

// maskJSON takes the secrets out of a JSON object. Where a secret is no text in
// it, such as a number, what is left would be no JSON, and becomes text.
func (c *crew) maskJSON(raw json.RawMessage) json.RawMessage {
	if raw == nil {
		return nil
	}
	masked := json.RawMessage(c.mask(string(raw)))
	if json.Valid(masked) {
		return masked
	}
	return json.RawMessage(`{"redacted":` + quote(string(masked)) + `}`)
}

// reasonWorker marks a job that the agent of a row has ended.
const reasonWorker = "worker_request"

// began tells that a row is worked on.
func (c *crew) began(row *store.Row) {
	c.mu.Lock()
	c.counts.pending--
	c.counts.running++
	number := c.number(row)
	c.mu.Unlock()
	c.log.Emit(event.Origin{ItemID: row.ItemID}, event.JobItemStartedEvent{JobID: c.jobID, Index: row.Index, Attempt: number, InputSHA256: row.SHA256})
}

// number is that of the row's present attempt in the stream, where no number
// comes twice. c.mu is held.
func (c *crew) number(row *store.Row) int { return max(row.Attempt, c.told[row.ItemID]+1) }

// ended tells how an attempt ended, after the database knows it. kept says
// that the row was still this worker's own.
func (c *crew) ended(row *store.Row, v verdict, out runner.Outcome, kept bool) {
	if !kept {
		v.status, v.again, v.exit = "cancelled", true, fault.Interrupted
		v.err = &event.Err{Code: reasonLost, Message: "the row was given to another worker meanwhile; this attempt counts for nothing"}
	}
	e := event.JobItemFinishedEvent{JobID: c.jobID, Index: row.Index, Status: v.status,
		Result: row.Result, Error: v.err, WillRetry: v.again, CostUSD: row.CostUSD, DurationMS: row.DurationMS}
	if !kept || v.again {
		e.Result = nil
	}
	code := int(v.exit)
	e.ExitCode = &code
	if out.Usage.Calls > 0 {
		usage := out.Usage
		e.Usage = &usage
	}
	c.mu.Lock()
	e.Attempt = c.number(row)
	if v.again {
		c.told[row.ItemID] = e.Attempt
	} else {
		delete(c.told, row.ItemID)
	}
	delete(c.rows, row.ItemID)
	c.counts.running--
	if v.again {
		c.counts.pending++
	} else {
		*c.counts.of(v.status)++
		c.totals.finished++
	}
	c.totals.add(out)
	c.judgeHopeless(v)
	failed := c.counts.failed
	c.mu.Unlock()
	if !v.again && c.results != nil {
		c.results.append(c, row)
	}
	c.log.Emit(event.Origin{ItemID: row.ItemID}, e)
	c.countFailures(failed)
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// countFailures ends the job at as many failed rows as the user allows.
func (c *crew) countFailures(failed int) {
	if m := c.opts.MaxFailures; m > 0 && failed >= m && c.draining.Err() == nil {
		c.drain(&runner.Stop{Exit: fault.Partial, Reason: "max_failures", Err: &event.Err{Code: "max_failures",
			Message: fmt.Sprintf("%d rows have failed, which is the limit", failed), Fix: "see what they have in common, then: drover jobs retry"}})
	}
}

// maxHopeless is how many rows in a row may fail for a reason that every other
// one shares, such as a key that is refused.
const maxHopeless = 3

// judgeHopeless ends the job where no row can succeed. c.mu is held.
func (c *crew) judgeHopeless(v verdict) {
	if !v.hopeless {
		if v.provider == answered {
			c.hopeless = 0
		}
		return
	}
	if c.hopeless++; c.hopeless >= maxHopeless && c.draining.Err() == nil {
		c.drain(&runner.Stop{Exit: v.exit, Reason: v.err.Code, Err: v.err})
	}
}

// tellGate says that the provider is down, or back.
func (c *crew) tellGate(closed bool, why *event.Err) {
	n := event.NoticeEvent{Level: "info", Code: "provider_back", Message: "the provider answers again; the job goes on"}
	if closed {
		n = event.NoticeEvent{Level: "warning", Code: "provider_down", Message: fmt.Sprintf("%d rows in a row failed at the provider; one row at a time tries whether it is back", downLimit)}
		if why != nil {
			n.Message += ": " + firstSentence(why.Message)
		}
	}
	c.log.Emit(event.Origin{}, n)
}

// snapshot returns the counts as they are.
func (c *crew) snapshot() counts {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.counts
}

// underWay are the attempts that this process is making.
func (c *crew) underWay() map[string]*attempt {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.rows)
}

// dropLost ends those of the attempts that are not this worker's any more, by
// what the database said later that it holds.
func (c *crew) dropLost(mine map[string]*attempt, held map[string]int) {
	for item, a := range mine {
		if held[c.jobID+"\x00"+item] != a.number {
			a.cancel(&runner.Stop{Exit: fault.Interrupted, Reason: reasonLost, Err: &event.Err{Code: reasonLost, Message: "the row was given to another worker"}})
		}
	}
}

// compiled makes what the spec says ready for use.
func (c *crew) compiled() error {
	var err error
	if c.template, err = template.Parse(c.spec.Instruction, c.header); err != nil {
		return err
	}
	if len(c.spec.OutputSchema) > 0 {
		if c.schema, err = runner.CompileSchema("output schema", c.spec.OutputSchema); err != nil {
			return err
		}
	}
	c.report = ReportSpec(c.spec.OutputSchema)
	return nil
}

func decodeSpec(raw json.RawMessage) (*Spec, error) {
	s := &Spec{}
	if err := json.Unmarshal(raw, s); err != nil {
		return nil, fmt.Errorf("read the job's description: %w", err)
	}
	return s, nil
}
