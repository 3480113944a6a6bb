package jobs

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"drover/jobs/store"
	"drover/output/event"
	"drover/output/fault"
	"drover/runner"
)

// begun is a crew with one open job, without a queue.
func begun(t *testing.T, script string, rows int) (*bench, *crew) {
	t.Helper()
	b, o := newBench(t, script, rows)
	j := open(t, o)
	j.crew.begin(t.Context())
	t.Cleanup(func() { j.crew.cancel(nil) })
	return b, j.crew
}

func (c *crew) finishRow(ctx context.Context, row *store.Row) (kept bool, err error) {
	err = c.store.Tx(ctx, func(tx *sql.Tx) (err error) {
		kept, err = c.store.Finish(ctx, tx, row, true)
		return err
	})
	return kept, err
}

func TestEndWhoseAnswerWasLostCounts(t *testing.T) {
	b, c := begun(t, reports, 1)
	tries := 0
	again, _, err := c.work(t.Context(), func(ctx context.Context, row *store.Row) (bool, error) {
		kept, err := c.finishRow(ctx, row)
		if tries++; tries == 1 && err == nil {
			return false, errors.New("the connection was closed")
		}
		return kept, err
	}, "r0")
	if again || err != nil || tries != 2 {
		t.Errorf("again %v, %v, %d tries", again, err, tries)
	}
	if n := c.snapshot(); n.completed != 1 || n.pending != 0 || n.running != 0 {
		t.Errorf("counted %+v", n)
	}
	if strings.Contains(b.out.text(), reasonLost) {
		t.Error("the row counts as lost")
	}
}

func TestReportOfARowThatWasGivenAwayIsDiscarded(t *testing.T) {
	b, c := begun(t, reports, 1)
	again, _, err := c.work(t.Context(), func(ctx context.Context, row *store.Row) (bool, error) {
		// Others have taken it for dead and begun the row themselves.
		if err := c.store.Tx(ctx, func(tx *sql.Tx) error {
			_, err := tx.ExecContext(ctx, "UPDATE drover_row SET worker='other', attempt=attempt+1")
			return err
		}); err != nil {
			return false, err
		}
		return c.finishRow(ctx, row)
	}, "r0")
	if again || err != nil {
		t.Errorf("again %v, %v", again, err)
	}
	_, last, _ := strings.Cut(b.out.text(), `"type":"job.item.finished"`)
	if !strings.Contains(last, reasonLost) || !strings.Contains(last, `"status":"cancelled"`) || strings.Contains(last, `"exit_code":0`) {
		t.Errorf("the stream does not tell that it counts for nothing: %s", last)
	}
	by, err := c.store.Counts(t.Context(), c.jobID)
	if err != nil || by["running"] != 1 {
		t.Errorf("%v, %v", by, err)
	}
}

func TestRowIsNotWorkedOnTwiceByOneProcess(t *testing.T) {
	_, c := begun(t, reports, 1)
	again, delay, err := c.work(t.Context(), func(ctx context.Context, row *store.Row) (bool, error) {
		if again, delay, err := c.work(ctx, nil, "r0"); !again || delay == 0 || err != nil {
			t.Errorf("the second entry: again %v after %v, %v", again, delay, err)
		}
		return c.finishRow(ctx, row)
	}, "r0")
	if again || err != nil {
		t.Errorf("again %v after %v, %v", again, delay, err)
	}
}

// shared is a job on PostgreSQL that this process does not work on, or skips.
func shared(t *testing.T, rows int) (*bench, Options) {
	t.Helper()
	engine := os.Getenv("DROVER_POSTGRES")
	if engine == "" {
		t.Skip("DROVER_POSTGRES is not set: there is no server")
	}
	b, o := newBench(t, reports, rows)
	o.Engine, o.Concurrency = engine, 0
	return b, o
}

// startWorker begins to work on the job as another machine would, with a model
// that plays the script. It ends by itself.
func startWorker(t *testing.T, o Options, jobID, name, script string) (*sink, func()) {
	t.Helper()
	_, w := newBench(t, script, 0)
	w.Concurrency = 3
	w.Base.SessionID = fmt.Sprintf("ses_%s%d", name, time.Now().UnixNano())
	w.NewSessionID = func() string { return o.NewSessionID() + name }
	out := &sink{}
	log := event.New(event.Options{RunID: "run_" + name})
	log.Attach(event.Attachment{Name: "test", Sink: out, Level: event.Full})
	w.Base.Log = log
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	done := make(chan struct{})
	go func() { // ends with the job, or with ctx
		defer close(done)
		defer cancel()
		if _, err := Work(ctx, WorkerOptions{Engine: o.Engine, Options: w, JobID: jobID, Once: true,
			For: func(context.Context, *Spec) (runner.Options, error) { return w.Base, nil }}); err != nil {
			t.Error(err)
		}
		if ctx.Err() != nil {
			t.Errorf("worker %s does not end", name)
		}
	}()
	return out, func() { <-done }
}

func TestWorkersShareTheRowsOfAJob(t *testing.T) {
	b, o := shared(t, 40)
	j := open(t, o)
	defer func() { _ = j.crew.store.Remove(context.Background(), j.ID()) }()
	if err := j.crew.store.Begin(t.Context(), j.ID()); err != nil {
		t.Fatal(err)
	}
	first, endFirst := startWorker(t, o, j.ID(), "a", reports)
	second, endSecond := startWorker(t, o, j.ID(), "b", reports)
	if out := end(t, j); out.End.Exit != fault.Success {
		t.Errorf("exit %d: %+v", out.End.Exit, out.End.Err)
	}
	endFirst()
	endSecond()
	b.wantAll(t, "completed")
	if n := strings.Count(first.text()+second.text(), `"type":"job.item.started"`); n != 40 {
		t.Errorf("%d rows were begun, want 40", n)
	}
}

func TestWorkerThatCannotWorkLeavesTheRowsToOthers(t *testing.T) {
	b, o := shared(t, 12)
	j := open(t, o)
	defer func() { _ = j.crew.store.Remove(context.Background(), j.ID()) }()
	if err := j.crew.store.Begin(t.Context(), j.ID()); err != nil {
		t.Fatal(err)
	}
	refused, endRefused := startWorker(t, o, j.ID(), "x", `{"error":{"status":401,"message":"the key is refused"}}`+"\n")
	endRefused() // although the job is open
	if !strings.Contains(refused.text(), "job_refused") {
		t.Errorf("nothing says that the worker has given up:\n%s", refused.text())
	}
	_, endHealthy := startWorker(t, o, j.ID(), "y", reports)
	if out := end(t, j); out.End.Exit != fault.Success {
		t.Errorf("exit %d: %+v", out.End.Exit, out.End.Err)
	}
	endHealthy()
	b.wantAll(t, "completed")
}

func TestRowOnAWorkerEndsTheWholeJob(t *testing.T) {
	_, o := shared(t, 200)
	j := open(t, o)
	defer func() { _ = j.crew.store.Remove(context.Background(), j.ID()) }()
	if err := j.crew.store.Begin(t.Context(), j.ID()); err != nil {
		t.Fatal(err)
	}
	_, endWorker := startWorker(t, o, j.ID(), "a", strings.Replace(reports, `"result":`, `"stop":true,"result":`, 1))
	out := end(t, j)
	endWorker()
	if out.End.Exit != fault.Partial || out.End.Reason != "job_stopped" {
		t.Errorf("exit %d: %+v", out.End.Exit, out.End)
	}
}
