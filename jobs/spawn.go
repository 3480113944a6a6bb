package jobs

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"drover/jobs/store"
	"drover/output/event"
	"drover/output/fault"
	"drover/runner"
	"drover/tools"
	"drover/tools/policy"
)

// SpawnTool is the name of the tool by which an agent starts a job.
const SpawnTool = "spawn_agents_on_csv"

// spawnConcurrency bounds how many rows a job of an agent works on at once.
const spawnConcurrency = 64

// spawnInput are the arguments of the tool.
type spawnInput struct {
	CSVPath           string         `json:"csv_path" jsonschema:"The table, a CSV file with a header."`
	Instruction       string         `json:"instruction" jsonschema:"What to do with each row; {column} stands for its value, {{ and }} for braces."`
	IDColumn          string         `json:"id_column,omitempty" jsonschema:"The column with the ids of the rows."`
	OutputCSVPath     string         `json:"output_csv_path,omitempty" jsonschema:"Where the result goes; beside the table if absent."`
	OutputSchema      map[string]any `json:"output_schema,omitempty" jsonschema:"A JSON Schema that each result must match."`
	MaxConcurrency    *int           `json:"max_concurrency,omitempty" jsonschema:"How many rows are worked on at once, 16 if absent, at most 64."`
	MaxWorkers        *int           `json:"max_workers,omitempty" jsonschema:"Another name of max_concurrency."`
	MaxRuntimeSeconds *int           `json:"max_runtime_seconds,omitempty" jsonschema:"The job ends after so many seconds."`
}

// NewSpawnTool returns the tool spawn_agents_on_csv. options are what the rows
// depend on: those of the agent that calls it; nil is a tool that no agent calls.
func NewSpawnTool(options func() Options) tools.Tool {
	return tools.New(tools.Def[spawnInput]{
		Name:   SpawnTool,
		Doc:    "Runs one agent for every row of a CSV file and waits for all of them. Each agent reports one JSON object; the result is a CSV file with the rows and what was reported.",
		Hidden: true, Reads: true, Writes: true, Approval: "never",
		Check:   checkSpawn,
		Display: func(in spawnInput, env tools.Env) string { return "run agents on: " + env.Files.Rel(in.CSVPath) },
		Actions: func(in spawnInput, env tools.Env) ([]policy.Action, error) {
			actions := []policy.Action{env.Files.ReadAction(in.CSVPath)}
			if in.OutputCSVPath == "" {
				// Its name is known only later; its folder is what counts.
				return append(actions, env.Files.WriteAction(defaultOutput(in.CSVPath, "00000000"))), nil
			}
			return append(actions, env.Files.WriteAction(in.OutputCSVPath), env.Files.WriteAction(linesPath(in.OutputCSVPath))), nil
		},
		Run: func(ctx context.Context, in spawnInput, env tools.Env) (tools.Result, error) {
			if options == nil {
				return tools.Fail("no_agent", SpawnTool+" works with the model and the policy of an agent; on the command line use: drover jobs run"), nil
			}
			return spawn(ctx, options(), in, env)
		},
	})
}

func checkSpawn(in spawnInput, env tools.Env) error {
	if strings.TrimSpace(in.Instruction) == "" {
		return errors.New("instruction must be non-empty")
	}
	if n := in.MaxRuntimeSeconds; n != nil && *n < 1 {
		return errors.New("max_runtime_seconds must be >= 1")
	}
	for _, n := range []*int{in.MaxConcurrency, in.MaxWorkers} {
		if n != nil && *n < 1 {
			return errors.New("max_concurrency must be >= 1")
		}
	}
	if in.OutputCSVPath != "" && env.Files.Real(in.OutputCSVPath) == env.Files.Real(in.CSVPath) {
		return errors.New("output_csv_path is the table itself, which would be lost")
	}
	return nil
}

// concurrency is how many rows the agent may have worked on at once.
func (in spawnInput) concurrency() int {
	n := DefaultConcurrency
	if in.MaxWorkers != nil {
		n = *in.MaxWorkers
	}
	if in.MaxConcurrency != nil {
		n = *in.MaxConcurrency
	}
	return min(n, spawnConcurrency)
}

// spawn runs the job and waits for its end. The result lies in the state folder
// until then, where no command of an agent can reach it.
func spawn(ctx context.Context, o Options, in spawnInput, env tools.Env) (tools.Result, error) {
	table, err := env.Files.ReadFile(in.CSVPath)
	if err != nil {
		return tools.Fail("csv_unreadable", fmt.Sprintf("failed to read csv input %s: %s", in.CSVPath, reason(err))), nil
	}
	scratch, err := os.MkdirTemp(o.State, "job-*")
	if err != nil {
		return tools.Fail("job_failed", "the state folder cannot be used: "+reason(err)), nil
	}
	defer os.RemoveAll(scratch)
	o.Source = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(table)), nil }
	o.Fresh, o.Concurrency = true, in.concurrency()
	o.Spec = Spec{Instruction: in.Instruction, IDColumn: in.IDColumn, Model: o.Base.Model.ID, Format: "csv", Isolate: "none",
		SourcePath:    env.Files.Abs(in.CSVPath),
		ItemTimeoutMS: DefaultItemTimeout.Milliseconds(), MaxAttempts: DefaultAttempts}
	o.WriteTo = filepath.Join(scratch, "result.csv")
	if in.OutputCSVPath != "" {
		o.Spec.OutputPath = env.Files.Abs(in.OutputCSVPath)
	}
	if in.MaxRuntimeSeconds != nil {
		o.MaxRuntime = time.Duration(*in.MaxRuntimeSeconds) * time.Second
	}
	if in.OutputSchema != nil {
		if o.Spec.OutputSchema, err = json.Marshal(in.OutputSchema); err != nil {
			return tools.Fail("invalid_schema", "output_schema: "+err.Error()), nil
		}
	}
	if left, limited := env.MoneyLeft(); limited {
		o.MaxCostUSD = max(left, 1e-9)
	}
	job, err := Open(ctx, o)
	if err != nil {
		return refusedJob(err), nil
	}
	defer job.Close()
	out := job.Run(ctx)
	env.Charge(tools.Spent{Usage: out.Usage, ByModel: out.UsageByModel, Turns: out.Turns, ToolCalls: out.ToolCalls, Denials: out.Denials})
	if ctx.Err() != nil {
		return tools.Result{}, context.Cause(ctx)
	}
	return job.answer(ctx, env, out)
}

// refusedJob is the result of a job that was not begun.
func refusedJob(err error) tools.Result {
	f := fault.From(err)
	text := f.Why
	if text == "" {
		text = f.What
	}
	if f.Fix != "" {
		text += "; " + f.Fix
	}
	return tools.Fail(f.Code, text)
}

// spawnAnswer is what the agent reads.
type spawnAnswer struct {
	JobID            string            `json:"job_id"`
	Status           event.JobStatus   `json:"status"`
	OutputCSVPath    string            `json:"output_csv_path"`
	TotalItems       int               `json:"total_items"`
	CompletedItems   int               `json:"completed_items"`
	FailedItems      int               `json:"failed_items"`
	JobError         *string           `json:"job_error"`
	FailedItemErrors []failedItemError `json:"failed_item_errors"`
}

type failedItemError struct {
	ItemID    string  `json:"item_id"`
	SourceID  *string `json:"source_id"`
	LastError string  `json:"last_error"`
}

// maxItemErrors is how many failed rows the agent is told of.
const maxItemErrors = 5

// answer puts the result where the agent wants it and says how the job ended.
func (j *Job) answer(ctx context.Context, env tools.Env, out runner.Outcome) (tools.Result, error) {
	c := j.crew
	n := c.snapshot()
	path := c.spec.OutputPath
	a := spawnAnswer{JobID: c.jobID, Status: j.ended, OutputCSVPath: path, TotalItems: j.total, CompletedItems: n.completed, FailedItems: n.failed}
	if err := j.handOver(env, path); err != nil {
		text := "auto-export failed: " + reason(err)
		a.Status, a.JobError = "failed", &text
	} else if out.End.Err != nil && j.ended != "partial" {
		a.JobError = &out.End.Err.Message
	}
	rows, err := c.store.Page(context.WithoutCancel(ctx), c.jobID, -1, maxItemErrors, false, failedStatuses...)
	if err != nil {
		return tools.Fail("job_failed", fmt.Sprintf("agent job %s failed: %v", c.jobID, err)), nil
	}
	for _, row := range rows {
		a.FailedItemErrors = append(a.FailedItemErrors, itemError(row))
	}
	text, err := json.Marshal(a)
	if err != nil {
		return tools.Result{}, fmt.Errorf("encode the end of job %s: %w", c.jobID, err)
	}
	return tools.Result{Text: string(text), Structured: a, IsError: false,
		Display: fmt.Sprintf("%s, %d/%d rows", a.Status, n.completed, j.total)}, nil
}

func itemError(row *store.Row) failedItemError {
	f := failedItemError{ItemID: row.ItemID, LastError: row.Error}
	if row.SourceID != "" {
		f.SourceID = &row.SourceID
	}
	return f
}

// handOver writes the files of the result through the bounds of the agent.
func (j *Job) handOver(env tools.Env, path string) error {
	for _, f := range []struct{ from, to string }{
		{j.crew.opts.WriteTo, path}, {linesPath(j.crew.opts.WriteTo), linesPath(path)},
	} {
		data, err := os.ReadFile(f.from)
		if err != nil {
			return err
		}
		if _, err := env.Files.Mkdir(filepath.Dir(f.to)); err != nil {
			return err
		}
		e := event.FileChangedEvent{ToolCallID: env.CallID, Path: env.Files.Rel(f.to), Kind: "modify"}
		if _, err := env.Files.Lstat(f.to); errors.Is(err, fs.ErrNotExist) {
			e.Kind = "add"
		}
		if err := env.Files.WriteFile(f.to, data, 0); err != nil {
			return err
		}
		env.Emit(e)
	}
	return nil
}
