// Package jobs runs one agent for every row of a table, so that each row is
// reported exactly once whatever is killed when.
//
// Open reads and checks everything (table, template, output path, what is known
// of the job from before) before the first paid call, and Run works on the rows
// until none is left or something ends the job. The queue is River, on the
// database of jobs/store; crew.go is what happens to one row, run.go the life
// of the job, engine.go the seam to River. An agent is a run of package runner
// inside this process; its tool report_agent_job_result (report.go) is the only
// way to a result. The package writes the database and the files of the result,
// and tells everything else as events.
package jobs

import (
	"context"
	"encoding/json"
	"io"
	"time"

	"drover/runner"
)

// Limits and defaults of a job.
const (
	DefaultConcurrency = 16
	MaxConcurrency     = 1000
	DefaultItemTimeout = 30 * time.Minute
	DefaultAttempts    = 3
)

// Spec is what makes a job the job that it is. It is kept with the job, and a
// worker on another machine knows the job by it.
type Spec struct {
	// Instruction is the template of each row's task.
	Instruction string `json:"instruction"`
	// IDColumn names the column with the rows' ids; "" numbers them.
	IDColumn string `json:"id_column,omitempty"`
	// Model is the id of the model.
	Model string `json:"model"`
	// OutputSchema is what each result must match; nil is any object.
	OutputSchema json.RawMessage `json:"output_schema,omitempty"`
	// SourcePath and OutputPath are absolute; "-" is standard input.
	SourcePath string `json:"source_path"`
	OutputPath string `json:"output_path"`
	// Format is csv or jsonl; Delimiter is one character, "" for a comma.
	Format    string `json:"format"`
	Delimiter string `json:"delimiter,omitempty"`
	// ItemTimeoutMS bounds one attempt at a row, MaxAttempts how often a row is
	// tried where the provider was at fault.
	ItemTimeoutMS int64 `json:"item_timeout_ms"`
	MaxAttempts   int   `json:"max_attempts"`
	// Isolate is none, copy or worktree.
	Isolate string `json:"isolate,omitempty"`
	// PatchDir is where the diffs of isolated rows go, on the machine of the
	// worker.
	PatchDir string `json:"patch_dir,omitempty"`
	// FormulaSafe keeps spreadsheets from running cells of the result.
	FormulaSafe bool `json:"formula_safe,omitempty"`
	// Flags are those of the command line that shaped the rows, Cwd the folder
	// that it was given in: a later run of the job begins with them.
	Flags []string `json:"flags,omitempty"`
	Cwd   string   `json:"cwd,omitempty"`
}

// Options say what job to open and how to run it.
type Options struct {
	Spec Spec
	// Name makes the job known by it instead of by its paths.
	Name string
	// Source opens the table; it is read twice. Nil opens SourcePath.
	Source func() (io.ReadCloser, error)
	// State is drover's state folder. Engine is a postgres:// URL, "" for the
	// embedded database below State.
	State, Engine string
	// Fresh makes a new job even if there is one for the same paths. Restart
	// forgets what that one has done; AsIs continues it although its
	// instruction, model or schema has changed.
	Fresh, Restart, AsIs bool
	// JobID names a job that is there; "" finds it by name or paths. Retry are
	// the statuses of rows that are run again.
	JobID string
	Retry []string
	// Concurrency is how many rows this process works on at once; 0 leaves the
	// rows to other workers.
	Concurrency int
	// MaxRuntime is the deadline of this run of the job, 0 for none; MaxCostUSD
	// the budget over all its runs, 0 for none; MaxFailures ends the job at that
	// many failed rows, 0 for none.
	MaxRuntime  time.Duration
	MaxCostUSD  float64
	MaxFailures int
	// Base is what every row's agent depends on but for its prompt.
	Base runner.Options
	// NewSessionID names the session of a row.
	NewSessionID func() string
	// Relocate changes the options for an agent that works in another folder,
	// and returns what undoes it. It is only called where rows are isolated.
	Relocate func(ctx context.Context, o runner.Options, dir string) (runner.Options, func(), error)
	// Sweep ends the processes that a row has left behind; nil leaves them.
	Sweep func(sessionID string)
	// WriteTo is where the result is written instead of to OutputPath, for an
	// agent that moves it there itself; "" is OutputPath.
	WriteTo string
	// PatchDir keeps each row's diff where rows are isolated; "" is beside the
	// output.
	PatchDir string
	// JUnit is a file for a report that CI servers read; "" writes none.
	JUnit string
	// ParentSession is the session whose agent has started the job, "" if none.
	ParentSession string
}

// changed names what has changed since the job was begun, of what its finished
// rows depend on.
func (s *Spec) changed(was *Spec) []string {
	var out []string
	for _, c := range []struct {
		name    string
		differs bool
	}{
		{"the instruction", s.Instruction != was.Instruction},
		{"the model", s.Model != was.Model},
		{"the output schema", !sameJSON(s.OutputSchema, was.OutputSchema)},
		{"the id column", s.IDColumn != was.IDColumn},
	} {
		if c.differs {
			out = append(out, c.name)
		}
	}
	return out
}

func sameJSON(a, b json.RawMessage) bool {
	var x, y any
	if len(a) == 0 || len(b) == 0 {
		return len(a) == len(b)
	}
	if json.Unmarshal(a, &x) != nil || json.Unmarshal(b, &y) != nil {
		return string(a) == string(b)
	}
	p, errP := json.Marshal(x)
	q, errQ := json.Marshal(y)
	return errP == nil && errQ == nil && string(p) == string(q)
}
