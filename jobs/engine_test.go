package jobs

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/csv"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"drover/output/event"
	"drover/output/fault"
	"drover/runner"
	"drover/runner/model"
	"drover/tools"
	"drover/tools/policy"
)

// sink keeps the events of a job.
type sink struct {
	mu sync.Mutex
	bytes.Buffer
}

func (s *sink) Emit(e event.Event) error {
	line, err := event.AppendJSON(nil, e)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.Write(append(line, '\n'))
	return err
}

func (s *sink) Close() error { return nil }

func (s *sink) text() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.String()
}

// reports is a script whose agents report at once.
const reports = `{"tool_calls":[{"name":"report_agent_job_result","args":{"job_id":"${job_id}","item_id":"${item_id}","result":{"got":"${row.v}"}}}]}` + "\n"

// bench is a folder with a table of n rows, and what a job over it needs.
type bench struct {
	dir string
	n   int
	out *sink
}

func newBench(t *testing.T, script string, n int) (*bench, Options) {
	t.Helper()
	b := &bench{dir: t.TempDir(), n: n, out: &sink{}}
	table := "id,v\n"
	for i := range n {
		table += fmt.Sprintf("r%d,v%d\n", i, i)
	}
	for name, text := range map[string]string{"m.jsonl": script, "t.csv": table} {
		if err := os.WriteFile(filepath.Join(b.dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	opened, err := model.Open("script:m.jsonl", model.Config{BaseDir: b.dir, Getenv: func(string) string { return "" }})
	if err != nil {
		t.Fatal(err)
	}
	allowed, err := policy.Load(policy.Sources{Preset: "yolo", Yolo: true, Roots: policy.Roots{Workspace: b.dir, Writable: []string{b.dir}}})
	if err != nil {
		t.Fatal(err)
	}
	files, err := tools.OpenFiles(tools.FilesOptions{Cwd: b.dir, Writable: []string{b.dir}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = files.Close() })
	log := event.New(event.Options{RunID: "run_test"})
	log.Attach(event.Attachment{Name: "test", Sink: b.out, Level: event.Full})
	var mu sync.Mutex
	ids := 0
	return b, Options{
		Spec: Spec{Instruction: "do {v}", IDColumn: "id", Model: opened.ID, SourcePath: filepath.Join(b.dir, "t.csv"), OutputPath: filepath.Join(b.dir, "out.csv"),
			Format: "csv", ItemTimeoutMS: time.Minute.Milliseconds(), MaxAttempts: 3, Isolate: "none"},
		State: filepath.Join(b.dir, "state"), Concurrency: 4,
		Base: runner.Options{SessionID: "ses_parent", Model: opened, Tools: tools.All(), Policy: allowed, Files: files, Cwd: b.dir, Log: log,
			Limits: runner.Limits{Turns: 20}, Commands: tools.Commands{RunID: "run_test", Environ: os.Environ(), Grace: time.Second},
			Started: event.RunStartedEvent{Schema: event.SchemaID, Product: "drover", Version: "test", Cwd: b.dir, Policy: event.PolicyRef{Default: "allow"}, Capabilities: []string{}}},
		NewSessionID: func() string {
			mu.Lock()
			defer mu.Unlock()
			ids++
			return fmt.Sprintf("ses_%d", ids)
		},
	}
}

func open(t *testing.T, o Options) *Job {
	t.Helper()
	j, err := Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(j.Close)
	return j
}

// end runs the job to its end, however slow the machine is.
func end(t *testing.T, j *Job) runner.Outcome {
	t.Helper()
	ctx, cancel := context.WithTimeoutCause(t.Context(), 2*time.Minute, errors.New("the job does not end"))
	defer cancel()
	out := j.Run(ctx)
	if ctx.Err() != nil {
		t.Fatal(context.Cause(ctx))
	}
	return out
}

// statuses are those of the result, by the rows' ids; no row comes twice.
func (b *bench) statuses(t *testing.T) map[string]string {
	t.Helper()
	f, err := os.Open(filepath.Join(b.dir, "out.csv"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	records, err := csv.NewReader(f).ReadAll()
	if err != nil || len(records) != b.n+1 {
		t.Fatalf("the result has %d lines: %v", len(records), err)
	}
	at := map[string]int{}
	for i, name := range records[0] {
		at[name] = i
	}
	got := map[string]string{}
	for _, r := range records[1:] {
		got[r[at["item_id"]]] = r[at["status"]]
	}
	if len(got) != b.n {
		t.Fatalf("rows come twice: %v", got)
	}
	return got
}

func (b *bench) wantAll(t *testing.T, status string) {
	t.Helper()
	for id, got := range b.statuses(t) {
		if got != status {
			t.Errorf("row %s is %s, want %s", id, got, status)
		}
	}
}

func TestEachRowIsReportedOnce(t *testing.T) {
	b, o := newBench(t, reports, 30)
	out := end(t, open(t, o))
	if out.End.Exit != fault.Success {
		t.Errorf("exit %d: %+v", out.End.Exit, out.End.Err)
	}
	b.wantAll(t, "completed")
	if n := strings.Count(b.out.text(), `"type":"job.item.finished"`); n != 30 {
		t.Errorf("%d ends of rows in the stream", n)
	}
}

func TestRowsOfACrashAreRunAgainAndFinishedOnesAreNot(t *testing.T) {
	b, o := newBench(t, reports, 10)
	j := open(t, o)
	c := j.crew
	// Three rows are claimed when the process dies, and one is finished.
	for _, id := range []string{"r0", "r1", "r2"} {
		row, err := c.store.Claim(t.Context(), c.jobID, id, c.worker, false)
		if err != nil || row == nil {
			t.Fatal(row, err)
		}
		if id != "r1" {
			continue
		}
		row.Status, row.Result = "completed", []byte(`{"got":"before"}`)
		if err := c.store.Tx(t.Context(), func(tx *sql.Tx) error {
			_, err := c.store.Finish(t.Context(), tx, row, true)
			return err
		}); err != nil {
			t.Fatal(err)
		}
	}
	j.Close()
	if out := end(t, open(t, o)); out.End.Exit != fault.Success {
		t.Errorf("exit %d: %+v", out.End.Exit, out.End.Err)
	}
	b.wantAll(t, "completed")
	result, err := os.ReadFile(filepath.Join(b.dir, "out.csv"))
	if err != nil || !strings.Contains(string(result), "before") {
		t.Errorf("the finished row was run again: %v", err)
	}
	if n := strings.Count(b.out.text(), `"type":"job.item.started"`); n != 9 {
		t.Errorf("%d rows were begun, want 9", n)
	}
}

func TestRowWithWhichTenWorkersDiedIsNotTriedAgain(t *testing.T) {
	b, o := newBench(t, reports, 2)
	for range maxLost {
		j := open(t, o)
		if row, err := j.crew.store.Claim(t.Context(), j.crew.jobID, "r0", j.crew.worker, false); err != nil || row == nil {
			t.Fatal(row, err)
		}
		j.Close()
	}
	out := end(t, open(t, o))
	if out.End.Exit != fault.Partial {
		t.Errorf("exit %d", out.End.Exit)
	}
	if got := b.statuses(t); got["r0"] != "failed" || got["r1"] != "completed" {
		t.Errorf("got %v", got)
	}
	if !strings.Contains(b.out.text(), `"worker_lost"`) {
		t.Error("nothing says why")
	}
}

func TestRowsThatTheQueueHasLostAreRunAnyway(t *testing.T) {
	t.Parallel() // it waits for the job to be idle
	b, o := newBench(t, reports, 4)
	j := open(t, o)
	exec(t, j, "DELETE FROM river_job")
	if out := end(t, j); out.End.Exit != fault.Success {
		t.Errorf("exit %d: %+v", out.End.Exit, out.End.Err)
	}
	b.wantAll(t, "completed")
}

func TestRowsThatTheQueueHasTwiceAreRunOnce(t *testing.T) {
	b, o := newBench(t, reports, 6)
	j := open(t, o)
	if err := j.crew.store.Tx(t.Context(), func(tx *sql.Tx) error {
		_, err := tx.ExecContext(t.Context(), "INSERT INTO river_job (args, kind, max_attempts, metadata, priority, queue, state, scheduled_at, tags) SELECT args, kind, max_attempts, metadata, priority, queue, state, scheduled_at, tags FROM river_job")
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if out := end(t, j); out.End.Exit != fault.Success {
		t.Errorf("exit %d: %+v", out.End.Exit, out.End.Err)
	}
	b.wantAll(t, "completed")
	if n := strings.Count(b.out.text(), `"type":"job.item.started"`); n != 6 {
		t.Errorf("%d rows were begun, want 6", n)
	}
}

func TestRowsCancelledInTheQueueEndAsCancelled(t *testing.T) {
	t.Parallel() // it waits for the job to be idle
	b, o := newBench(t, reports, 2)
	j := open(t, o)
	exec(t, j, "UPDATE river_job SET state='cancelled', finalized_at=CURRENT_TIMESTAMP WHERE args->>'item'='r0'")
	end(t, j)
	if got := b.statuses(t); got["r0"] != "cancelled" || got["r1"] != "completed" {
		t.Errorf("got %v", got)
	}
}

func exec(t *testing.T, j *Job, query string) {
	t.Helper()
	if err := j.crew.store.Tx(t.Context(), func(tx *sql.Tx) error {
		_, err := tx.ExecContext(t.Context(), query)
		return err
	}); err != nil {
		t.Fatal(err)
	}
}

func TestJobThatDidNothingDoesNotSucceed(t *testing.T) {
	_, o := newBench(t, reports, 3)
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(&runner.Stop{Exit: fault.Interrupted, Reason: "sigint"})
	j := open(t, o)
	if out := j.Run(ctx); out.End.Exit != fault.Interrupted {
		t.Errorf("exit %d", out.End.Exit)
	}
}
