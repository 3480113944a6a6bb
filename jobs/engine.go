package jobs

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver"

	"drover/jobs/store"
	"drover/output/event"
)

// rowArgs is an entry of the queue: a row to be worked on.
type rowArgs struct {
	Job  string `json:"job"`
	Item string `json:"item"`
}

// Kind is the entry's kind in the queue.
func (rowArgs) Kind() string { return "drover_row" }

// engine is a process at the queue. It hands entries to the crews of the jobs
// that the process has joined.
type engine struct {
	river.WorkerDefaults[rowArgs]
	store  *store.Store
	client *river.Client[*sql.Tx]
	id     string
	// started says that the queue runs.
	started bool

	// orphans are rows that this worker has and does not work on, by the latest
	// beat.
	orphans map[string]int

	mu    sync.Mutex
	crews map[string]*crew
}

const (
	// fetchEvery spaces the looks into the queue after a row has ended, pollEvery
	// those when nothing happens.
	fetchEvery = 5 * time.Millisecond
	pollEvery  = 500 * time.Millisecond
	// never is how long the queue itself waits before it takes a row from its
	// worker: drover knows better who lives, see store.Sweep.
	never = 10 * 365 * 24 * time.Hour
	// queueAttempts is as many as the queue can count. It does not decide how
	// often a row is tried.
	queueAttempts = 32000
)

// newEngine connects to the queue. It works on nothing before join.
func newEngine(s *store.Store, workerID string) (*engine, error) {
	e := &engine{store: s, id: workerID, crews: map[string]*crew{}}
	workers := river.NewWorkers()
	river.AddWorker(workers, river.Worker[rowArgs](e))
	client, err := river.NewClient(s.Driver(), &river.Config{
		ID: workerID, Workers: workers, Queues: map[string]river.QueueConfig{idleQueue: {MaxWorkers: 1}},
		Logger: store.Quiet(), MaxAttempts: queueAttempts, PollOnly: true,
		FetchCooldown: fetchEvery, FetchPollInterval: pollEvery,
		JobTimeout: -1, RescueStuckJobsAfter: never,
		CompletedJobRetentionPeriod: -1, CancelledJobRetentionPeriod: -1, DiscardedJobRetentionPeriod: -1,
	})
	if err != nil {
		return nil, fmt.Errorf("connect to the queue: %w", err)
	}
	e.client = client
	return e, nil
}

// idleQueue is a queue that nothing is ever put into: the client wants one, and
// the queues of jobs come and go.
const idleQueue = "drover-idle"

// join starts to work on the rows of the crew's job.
func (e *engine) join(ctx context.Context, c *crew) error {
	e.mu.Lock()
	e.crews[c.jobID] = c
	e.mu.Unlock()
	// The queue of the job comes after the start: one that is removed while the
	// client still starts would keep it from ever ending.
	if !e.started {
		// Whoever wants rows to end cancels the crews; the queue ends after them.
		if err := e.client.Start(context.WithoutCancel(ctx)); err != nil {
			return fmt.Errorf("start the queue: %w", err)
		}
		e.started = true
	}
	if err := e.client.Queues().Add(store.Queue(c.jobID), river.QueueConfig{MaxWorkers: c.gate.max}); err != nil {
		return fmt.Errorf("join the queue of job %s: %w", c.jobID, err)
	}
	return nil
}

// leave ends the work on a job: no row is begun any more, and those that are
// under way are waited for.
func (e *engine) leave(ctx context.Context, c *crew) {
	_ = e.client.Queues().Remove(ctx, store.Queue(c.jobID)) // it waits for the rows; if ctx ends first they end with the process
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.crews, c.jobID)
}

// stop ends the queue. Rows that are under way are waited for until ctx ends.
func (e *engine) stop(ctx context.Context) {
	if e.started {
		_ = e.client.Stop(ctx) // what is left is set free by the next process
		e.started = false
	}
}

func (e *engine) crew(jobID string) *crew {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.crews[jobID]
}

// Work is called by the queue with one row.
func (e *engine) Work(ctx context.Context, job *river.Job[rowArgs]) error {
	c := e.crew(job.Args.Job)
	if c == nil {
		return river.JobSnooze(drainPause)
	}
	settle := func(settleCtx context.Context, row *store.Row) (kept bool, err error) {
		// The queue's own values are in its context, also after it has ended.
		queue := context.WithoutCancel(ctx)
		err = e.store.Tx(queue, func(tx *sql.Tx) error {
			if kept, err = e.store.Finish(queue, tx, row, c.results != nil); err != nil {
				return err // not known; a connection that breaks is no lost claim
			}
			if !kept {
				return errClaimLost
			}
			_, err := river.JobCompleteTx[riverdriver.Driver[*sql.Tx]](queue, tx, job)
			return err
		})
		if errors.Is(err, errClaimLost) {
			return false, nil
		}
		return kept && err == nil, err
	}
	again, delay, err := c.work(ctx, settle, job.Args.Item)
	if err == nil && again {
		return river.JobSnooze(delay)
	}
	return err
}

// errClaimLost undoes the end of a row that another worker has.
var errClaimLost = errors.New("the row is another worker's")

// enqueue makes the queue hold exactly the rows of the job that are pending.
func (e *engine) enqueue(ctx context.Context, tx *sql.Tx, jobID string) error {
	return e.store.Requeue(ctx, tx, jobID, func(items []string) error {
		list := make([]river.InsertManyParams, len(items))
		for i, item := range items {
			list[i] = river.InsertManyParams{Args: rowArgs{Job: jobID, Item: item}, InsertOpts: &river.InsertOpts{Queue: store.Queue(jobID), MaxAttempts: queueAttempts, ScheduledAt: store.LongAgo()}}
		}
		_, err := e.client.InsertManyFastTx(ctx, tx, list)
		return err
	})
}

// heartbeat says that this process lives, until ctx ends, and takes the rows of
// those that do not. A database that was away is given time: the others have to
// get through, too, before anybody counts as dead.
func (e *engine) heartbeat(ctx context.Context, log *event.Log) {
	tick := time.NewTicker(beatEvery)
	defer tick.Stop()
	var since time.Time
	away := false
	for {
		err := e.beat(ctx)
		switch {
		case err != nil:
			since = time.Time{}
			if !away && ctx.Err() == nil {
				away = true
				log.Emit(event.Origin{}, event.NoticeEvent{Level: "warning", Code: "database_away", Message: "the job's database cannot be reached; it is tried again: " + firstSentence(err.Error())})
			}
		case since.IsZero():
			since = time.Now()
			if away {
				away = false
				log.Emit(event.Origin{}, event.NoticeEvent{Level: "info", Code: "database_back", Message: "the job's database answers again"})
			}
		case time.Since(since) > store.DeadAfter+beatEvery:
			_, _ = e.store.Sweep(ctx) // it is tried again at the next beat
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// beatEvery is the time between two heartbeats.
const beatEvery = 3 * time.Second

func (e *engine) beat(ctx context.Context) error {
	host, _ := os.Hostname() // only for people who look at the table
	ctx, cancel := context.WithTimeout(ctx, 2*beatEvery)
	defer cancel()
	e.mu.Lock()
	mine := map[*crew]map[string]*attempt{}
	for _, c := range e.crews {
		mine[c] = c.underWay()
	}
	e.mu.Unlock()
	if err := e.store.Beat(ctx, e.id, host, os.Getpid()); err != nil {
		return err
	}
	held, err := e.store.Held(ctx, e.id)
	if err != nil {
		return err
	}
	for c, rows := range mine {
		c.dropLost(rows, held)
	}
	return e.freeOrphans(ctx, held)
}

// freeOrphans gives rows back that the database says are this worker's and that
// it does not work on: what became of them was lost with a connection. A row
// must have been one at the last beat, too.
func (e *engine) freeOrphans(ctx context.Context, held map[string]int) error {
	found := map[string]int{}
	for key, attempt := range held {
		jobID, item, _ := strings.Cut(key, "\x00")
		if c := e.crew(jobID); c != nil && c.works(item) {
			continue
		}
		found[key] = attempt
		if e.orphans[key] != attempt {
			continue
		}
		if _, err := e.store.Release(ctx, &store.Row{JobID: jobID, ItemID: item, Worker: e.id, Attempt: attempt}, true); err != nil {
			return err
		}
	}
	e.orphans = found
	return nil
}

// workerID names this process at the queue.
func workerID(sessionID string) string {
	return "w-" + strings.TrimPrefix(sessionID, "ses_")
}
