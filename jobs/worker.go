package jobs

import (
	"context"
	"fmt"
	"time"

	"drover/jobs/store"
	"drover/output/event"
	"drover/output/fault"
	"drover/runner"
)

// WorkerOptions say how a process works on the jobs of a shared database.
type WorkerOptions struct {
	// Engine is the postgres:// URL.
	Engine string
	// Options are as for a job of one's own; Base is what the agents of all jobs
	// depend on, but for what For changes.
	Options Options
	// For returns what the rows of a job depend on.
	For func(ctx context.Context, s *Spec) (runner.Options, error)
	// JobID limits the worker to one job; "" takes all.
	JobID string
	// Once ends the worker when no job is open.
	Once bool
}

// Work joins the open jobs of the database and works on their rows until ctx
// ends, or with Once until no job is open. It emits run.started, the events of
// the rows that it works on and how the jobs stand; run.finished is the caller's.
func Work(ctx context.Context, o WorkerOptions) (runner.Outcome, error) {
	s, err := store.OpenPostgres(ctx, o.Engine)
	if err != nil {
		return runner.Outcome{}, err
	}
	defer s.Close()
	w := &crewed{o: o, store: s, crews: map[string]*member{}, began: time.Now()}
	if w.engine, err = newEngine(s, workerID(o.Options.Base.SessionID)); err != nil {
		return runner.Outcome{}, err
	}
	if err := w.engine.beat(ctx); err != nil { // before it has rows: to others it would be dead
		return runner.Outcome{}, fmt.Errorf("join the workers: %w", err)
	}
	runner.Announce(o.Options.Base)
	beating, end := context.WithCancel(context.WithoutCancel(ctx))
	beat := make(chan struct{})
	go func() { // ends with end
		defer close(beat)
		w.engine.heartbeat(beating, o.Options.Base.Log)
	}()
	w.run(ctx)
	w.engine.stop(context.Background())
	end()
	<-beat
	_ = s.Leave(context.Background(), w.engine.id) // else it counts as dead after a while
	return w.outcome(ctx), nil
}

// crewed is a worker with the jobs that it has joined.
type crewed struct {
	o      WorkerOptions
	store  *store.Store
	engine *engine
	crews  map[string]*member
	began  time.Time
	totals totals
	// refused are jobs that this worker cannot work on.
	refused map[string]bool
}

// member is one job that the worker has joined.
type member struct {
	*crew
	job  *Job
	told *progress
}

// run joins and leaves jobs until the worker is to end.
func (w *crewed) run(ctx context.Context) {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		open := w.look(ctx)
		if w.o.Once && open == 0 {
			for id, m := range w.crews {
				w.leave(id, m, controlStop("stop"))
			}
			return
		}
		select {
		case <-ctx.Done():
			for id, m := range w.crews {
				w.leave(id, m, stopOf(ctx))
			}
			return
		case <-tick.C:
		}
	}
}

// look brings the worker in line with what the database says, and returns how
// many jobs are open. While the database is away nothing changes.
func (w *crewed) look(ctx context.Context) int {
	list, err := w.store.Jobs(ctx)
	if err != nil {
		return 1
	}
	open, seen, ended := 0, map[string]bool{}, map[string]string{}
	for _, j := range list {
		ended[j.ID] = j.Status
		if j.Status != "running" || w.o.JobID != "" && j.ID != w.o.JobID || w.refused[j.ID] {
			continue
		}
		seen[j.ID] = true
		m := w.crews[j.ID]
		switch {
		case j.Control != "":
			if m != nil {
				w.leave(j.ID, m, controlStop(j.Control))
			}
		case m == nil:
			w.join(ctx, j)
			open++
		case m.draining.Err() != nil:
			w.giveUp(ctx, j.ID, m)
		case w.count(ctx, m):
			open++
		}
	}
	for id, m := range w.crews {
		switch {
		case seen[id]:
		case ended[id] == "cancelled":
			w.leave(id, m, controlStop("cancel"))
		default:
			w.leave(id, m, controlStop("stop"))
		}
	}
	return open
}

// giveUp leaves a job that this worker can do nothing more for, such as where
// its key is refused: it would only keep rows from others. A row that asks for
// the end of the job asks all workers.
func (w *crewed) giveUp(ctx context.Context, id string, m *member) {
	stop := stopOf(m.draining)
	if ctx.Err() != nil {
		return // the worker itself ends
	}
	if stop.Reason == reasonWorker {
		if _, err := w.store.Ask(ctx, id, "stop"); err != nil {
			return // it is tried again
		}
		w.leave(id, m, controlStop("stop"))
		return
	}
	w.refuse(id)
	message := stop.Reason
	if stop.Err != nil {
		message = stop.Err.Message
	}
	w.o.Options.Base.Log.Emit(event.Origin{}, event.NoticeEvent{Level: "warning", Code: "job_refused", Message: "this worker does no more rows of job " + id + ": " + message})
	w.leave(id, m, stop)
}

func (w *crewed) refuse(id string) {
	if w.refused == nil {
		w.refused = map[string]bool{}
	}
	w.refused[id] = true
}

func controlStop(control string) *runner.Stop {
	if control == "cancel" {
		return &runner.Stop{Exit: fault.Interrupted, Reason: reasonCancel, Err: &event.Err{Code: reasonCancel, Message: "the job was cancelled"}}
	}
	return &runner.Stop{Exit: fault.Partial, Reason: "job_stopped", Err: &event.Err{Code: "job_stopped", Message: "the job was asked to stop"}}
}

// join begins to work on a job.
func (w *crewed) join(ctx context.Context, j *store.Job) {
	spec, err := decodeSpec(j.Spec)
	if err == nil {
		err = w.joinSpec(ctx, j, spec)
	}
	if err == nil {
		return
	}
	w.refuse(j.ID)
	f := fault.From(err)
	w.o.Options.Base.Log.Emit(event.Origin{}, event.NoticeEvent{Level: "warning", Code: "job_refused", Message: "job " + j.ID + " cannot be worked on here: " + f.Error()})
}

func (w *crewed) joinSpec(ctx context.Context, j *store.Job, spec *Spec) error {
	opts := w.o.Options
	opts.Spec, opts.PatchDir = *spec, spec.PatchDir
	base, err := w.o.For(ctx, spec)
	if err != nil {
		return err
	}
	opts.Base = base
	c := newCrew(opts, &opts.Spec, j.ID, j.Header)
	c.store, c.worker = w.store, w.engine.id
	if err := c.compiled(); err != nil {
		return err
	}
	c.begin(ctx)
	m := &member{crew: c, job: &Job{crew: c, engine: w.engine, name: j.Name, total: j.Total}}
	m.told = &progress{job: m.job, began: time.Now()}
	by, err := w.store.Counts(ctx, j.ID)
	if err != nil {
		c.cancel(nil)
		return nil // the database is away; the next look tries again
	}
	c.counts = counted(by)
	c.log.Emit(event.Origin{}, event.JobStartedEvent{JobID: j.ID, Total: j.Total, Source: event.FileRef{Path: spec.SourcePath, SHA256: j.SourceSHA256},
		IDColumn: spec.IDColumn, OutputPath: spec.OutputPath, Concurrency: opts.Concurrency, Resumed: true, Skipped: j.Total - c.counts.pending - c.counts.running})
	m.unsubscribe = c.log.Subscribe(event.TopicPlumbing, c.listen)
	w.crews[j.ID] = m
	return w.engine.join(ctx, c)
}

// count reads how far the job is, and tells whether rows are left. A job whose
// rows have all ended is open until its coordinator says so, who may be dead.
func (w *crewed) count(ctx context.Context, m *member) bool {
	by, err := w.store.Counts(ctx, m.jobID)
	if err != nil {
		return true
	}
	n := counted(by)
	m.mu.Lock()
	m.counts = n
	m.mu.Unlock()
	m.told.tell(false)
	return n.pending+n.running > 0
}

// leave ends the work on a job.
func (w *crewed) leave(id string, m *member, stop *runner.Stop) {
	delete(w.crews, id)
	m.drain(stop)
	switch {
	case stop.Reason == "job_stopped":
	default:
		m.cancel(stop)
	}
	w.engine.leave(context.Background(), m.crew)
	m.places.close(m.crew)
	m.unsubscribe()
	by, err := w.store.Counts(context.Background(), id)
	if err == nil {
		m.counts = counted(by)
	}
	n := m.snapshot()
	status := m.job.status(nil, n)
	if n.pending+n.running > 0 {
		status = "partial"
	}
	m.log.Emit(event.Origin{}, event.JobFinishedEvent{JobID: id, Status: status, Total: m.job.total, Completed: n.completed, Failed: n.failed, Skipped: n.skipped})
	w.totals.merge(m.totals)
}

// outcome is the end of the worker's run.
func (w *crewed) outcome(ctx context.Context) runner.Outcome {
	out := w.totals.outcome(w.o.Options.Base.SessionID, time.Since(w.began))
	out.End = runner.Stop{Exit: fault.Success, Reason: "completed"}
	if ctx.Err() != nil {
		out.End = *stopOf(ctx)
	}
	return out
}
