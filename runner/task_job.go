package runner

import (
	"time"

	"drover/runner/strict"
)

// TaskJob is the part of a task file that makes it a list job: the prompt is the
// instruction for each row. What the file leaves out is zero. Paths are absolute.
type TaskJob struct {
	// Source is the table; Output is where the result goes.
	Source, Output string
	// Format is csv or jsonl; Delimiter is one character.
	Format, Delimiter string
	IDColumn, Name    string
	// MaxConcurrency is how many rows are worked on at once.
	MaxConcurrency int
	// MaxRuntime is the job's deadline, ItemTimeout that of one row.
	MaxRuntime, ItemTimeout time.Duration
	MaxAttempts             int
	MaxFailures             int
	PatchDir, JUnit         string
	FormulaSafe             bool
}

// readJob reads the key job.
func (t *Task) readJob(v strict.Value) error {
	if v.IsNull() {
		return nil
	}
	t.Job = &TaskJob{}
	return v.Each(t.jobKeys(t.Job))
}

func (t *Task) jobKeys(j *TaskJob) strict.Keys {
	text := func(to *string) func(strict.Value) error {
		return func(v strict.Value) (err error) { *to, err = v.Filled(); return err }
	}
	count := func(to *int) func(strict.Value) error {
		return func(v strict.Value) error {
			n, err := v.Int(1)
			*to = int(min(n, 1<<31-1))
			return err
		}
	}
	length := func(to *time.Duration) func(strict.Value) error {
		return func(v strict.Value) (err error) { *to, err = v.Duration(); return err }
	}
	return strict.Keys{
		"source": t.pathInto(&j.Source), "output": t.pathInto(&j.Output), "format": choiceInto(&j.Format, "csv", "jsonl"),
		"delimiter": text(&j.Delimiter), "id_column": text(&j.IDColumn), "name": text(&j.Name),
		"max_concurrency": count(&j.MaxConcurrency), "max_runtime": length(&j.MaxRuntime), "item_timeout": length(&j.ItemTimeout),
		"max_attempts": count(&j.MaxAttempts), "max_failures": count(&j.MaxFailures),
		"patch_dir": t.pathInto(&j.PatchDir), "junit": t.pathInto(&j.JUnit),
		"formula_safe": func(v strict.Value) (err error) { j.FormulaSafe, err = v.Bool(); return err },
	}
}
