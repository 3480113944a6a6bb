package cmd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"drover/jobs"
	"drover/jobs/store"
	"drover/output/fault"
)

// jobRow is a job as `jobs list` and `jobs status` print it with --format json.
type jobRow struct {
	ID        string     `json:"id"`
	Name      string     `json:"name"`
	Status    string     `json:"status"`
	Source    string     `json:"source"`
	Output    string     `json:"output_path"`
	Total     int        `json:"total"`
	Pending   int        `json:"pending"`
	Running   int        `json:"running"`
	Completed int        `json:"completed"`
	Failed    int        `json:"failed"`
	Skipped   int        `json:"skipped"`
	CostUSD   *float64   `json:"cost_usd,omitempty"`
	Error     string     `json:"error,omitempty"`
	Created   time.Time  `json:"created"`
	Started   *time.Time `json:"started,omitempty"`
	Finished  *time.Time `json:"finished,omitempty"`
	// Active says that a drover works on it now.
	Active bool `json:"active"`
	// ByStatus counts the rows by their own status.
	ByStatus map[string]int `json:"by_status"`
	Failures []failedRow    `json:"failed_items,omitempty"`
}

type failedRow struct {
	ItemID string `json:"item_id"`
	Status string `json:"status"`
	Error  string `json:"last_error"`
}

func newJobsListCmd(a *app) *cobra.Command {
	var format, engine string
	c := &cobra.Command{Use: "list", Short: "List the jobs, newest first", Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error { return a.listJobs(c.Context(), engine, format) }}
	c.Flags().StringVar(&format, "format", "text", "text or json")
	bindEngine(a, &engine, c.Flags())
	return c
}

func (a *app) listJobs(ctx context.Context, engine, format string) error {
	rows := []jobRow{}
	err := a.eachJob(ctx, engine, func(s *store.Store, j *store.Job) error {
		row, err := describeJob(ctx, s, j)
		if err == nil {
			rows = append(rows, row)
		}
		return err
	})
	if err != nil {
		return err
	}
	sort.SliceStable(rows, func(i, k int) bool { return rows[i].Created.After(rows[k].Created) })
	switch format {
	case "json":
		return json.NewEncoder(a.stdout).Encode(rows)
	case "text":
	default:
		return unknownFormat(format, "text", "json")
	}
	if len(rows) == 0 {
		return nil
	}
	t := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "ID\tCREATED\tSTATUS\tROWS\tOK\tFAILED\tLEFT\tTABLE")
	for _, r := range rows {
		fmt.Fprintf(t, "%s\t%s\t%s\t%d\t%d\t%d\t%d\t%s\n", r.ID, r.Created.Local().Format("2006-01-02 15:04"), r.state(), r.Total, r.Completed, r.Failed, r.Pending+r.Running, cell(r.Source, 60))
	}
	return t.Flush()
}

// state is the status as people read it: a job that nobody runs is not running.
func (r jobRow) state() string {
	if r.Active && (r.Status == "pending" || r.Status == "running") {
		return "running"
	}
	if r.Status == "running" {
		return "interrupted"
	}
	return r.Status
}

// eachJob calls do with every job of the engine. A database that cannot be read
// is passed over: it is a job of a newer version, or none.
func (a *app) eachJob(ctx context.Context, engine string, do func(s *store.Store, j *store.Job) error) error {
	engine, err := a.engineOf(engine)
	if err != nil {
		return err
	}
	if engine != "" {
		s, err := store.OpenPostgres(ctx, engine)
		if err != nil {
			return err
		}
		defer s.Close()
		return eachIn(ctx, s, do)
	}
	state, err := a.stateDir()
	if err != nil {
		return err
	}
	found, err := filepath.Glob(filepath.Join(state, "jobs", "*", store.FileName))
	if err != nil {
		return fmt.Errorf("list jobs: %w", err)
	}
	for _, path := range found {
		s, err := store.OpenFolder(ctx, filepath.Dir(path), false)
		if err != nil {
			continue
		}
		err = eachIn(ctx, s, do)
		_ = s.Close() // it was only read
		if err != nil {
			return err
		}
	}
	return nil
}

func eachIn(ctx context.Context, s *store.Store, do func(s *store.Store, j *store.Job) error) error {
	list, err := s.Jobs(ctx)
	if err != nil {
		if s.Embedded() {
			return nil // a job that was never begun
		}
		return fmt.Errorf("list jobs: %w", err)
	}
	for _, j := range list {
		if err := do(s, j); err != nil {
			return err
		}
	}
	return nil
}

func describeJob(ctx context.Context, s *store.Store, j *store.Job) (jobRow, error) {
	spec := jobs.Spec{}
	if err := json.Unmarshal(j.Spec, &spec); err != nil {
		return jobRow{}, fmt.Errorf("read job %s: %w", j.ID, err)
	}
	by, err := s.Counts(ctx, j.ID)
	if err != nil {
		return jobRow{}, fmt.Errorf("count the rows of job %s: %w", j.ID, err)
	}
	r := jobRow{ID: j.ID, Name: j.Name, Status: j.Status, Source: spec.SourcePath, Output: spec.OutputPath, Total: j.Total, Error: j.Error,
		Created: j.CreatedAt, ByStatus: by}
	for status, n := range by {
		switch status {
		case "pending":
			r.Pending += n
		case "running":
			r.Running += n
		case "completed":
			r.Completed += n
		case "cancelled", "skipped":
			r.Skipped += n
		default:
			r.Failed += n
		}
	}
	if r.CostUSD, err = s.Cost(ctx, j.ID); err != nil {
		return r, fmt.Errorf("read the cost of job %s: %w", j.ID, err)
	}
	for _, t := range []struct {
		from time.Time
		to   **time.Time
	}{{j.StartedAt, &r.Started}, {j.FinishedAt, &r.Finished}} {
		if !t.from.IsZero() {
			at := t.from
			*t.to = &at
		}
	}
	if s.Embedded() {
		r.Active = store.Locked(s.Dir())
	} else if n, err := s.Workers(ctx); err == nil {
		r.Active = n > 0 && j.Open()
	}
	return r, nil
}

// findJob finds a job by its id, the beginning of it, its name, or "last". The
// caller closes the store.
func (a *app) findJob(ctx context.Context, engine, name string) (*store.Store, *store.Job, error) {
	type found struct {
		id, dir string
		created time.Time
	}
	var hits, all []found
	err := a.eachJob(ctx, engine, func(s *store.Store, j *store.Job) error {
		f := found{j.ID, s.Dir(), j.CreatedAt}
		all = append(all, f)
		if j.ID == name || j.Name == name || len(name) >= 4 && strings.HasPrefix(j.ID, name) {
			hits = append(hits, f)
		}
		return nil
	})
	if err != nil {
		return nil, nil, err
	}
	if name == "last" && len(all) > 0 {
		sort.Slice(all, func(i, k int) bool { return all[i].created.After(all[k].created) })
		hits = all[:1]
	}
	switch {
	case len(hits) == 0:
		return nil, nil, &fault.Error{Code: "job_unknown", What: fmt.Sprintf("there is no job %q", name), Fix: "see: drover jobs list", Exit: fault.Session}
	case len(hits) > 1:
		return nil, nil, &fault.Error{Code: "job_ambiguous", What: fmt.Sprintf("more than one job is meant by %q", name), Fix: "give more of the id; see: drover jobs list", Exit: fault.Usage}
	}
	engine, _ = a.engineOf(engine) // eachJob has checked it
	var s *store.Store
	if engine != "" {
		s, err = store.OpenPostgres(ctx, engine)
	} else {
		s, err = store.OpenFolder(ctx, hits[0].dir, false)
	}
	if err != nil {
		return nil, nil, err
	}
	j, err := s.Job(ctx, hits[0].id)
	if err == nil && j == nil {
		err = &fault.Error{Code: "job_unknown", What: fmt.Sprintf("there is no job %q", name), Exit: fault.Session}
	}
	if err != nil {
		_ = s.Close() // it was only read
		return nil, nil, err
	}
	return s, j, nil
}

// jobCmd is a command about one job, the latest if none is named.
func jobCmd(a *app, use, short string, bind func(*pflag.FlagSet), do func(ctx context.Context, s *store.Store, j *store.Job) error) *cobra.Command {
	var engine string
	c := &cobra.Command{Use: use + " [JOB]", Short: short,
		Args: func(c *cobra.Command, args []string) error {
			if err := cobra.MaximumNArgs(1)(c, args); err != nil {
				return usageError(c, err)
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			name := "last"
			if len(args) > 0 {
				name = args[0]
			}
			s, j, err := a.findJob(c.Context(), engine, name)
			if err != nil {
				return err
			}
			defer s.Close()
			return do(c.Context(), s, j)
		}}
	bindEngine(a, &engine, c.Flags())
	if bind != nil {
		bind(c.Flags())
	}
	return c
}

func newJobsStatusCmd(a *app) *cobra.Command {
	var format string
	return jobCmd(a, "status", "Show how far a job is", func(f *pflag.FlagSet) { f.StringVar(&format, "format", "text", "text or json") },
		func(ctx context.Context, s *store.Store, j *store.Job) error { return a.jobStatus(ctx, s, j, format) })
}

// namedFailures is how many failed rows the status names.
const namedFailures = 20

func (a *app) jobStatus(ctx context.Context, s *store.Store, j *store.Job, format string) error {
	r, err := describeJob(ctx, s, j)
	if err != nil {
		return err
	}
	failed, err := s.Page(ctx, j.ID, -1, namedFailures, false, "failed", "blocked", "timeout", "invalid_output", "limit")
	if err != nil {
		return fmt.Errorf("read the failed rows: %w", err)
	}
	for _, row := range failed {
		r.Failures = append(r.Failures, failedRow{row.ItemID, row.Status, row.Error})
	}
	switch format {
	case "json":
		return json.NewEncoder(a.stdout).Encode(r)
	case "text":
	default:
		return unknownFormat(format, "text", "json")
	}
	t := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "job\t%s (%s)\n", r.ID, cell(r.Name, 60))
	fmt.Fprintf(t, "status\t%s\n", r.state())
	fmt.Fprintf(t, "table\t%s\n", cell(r.Source, 200))
	fmt.Fprintf(t, "result\t%s\n", cell(r.Output, 200))
	fmt.Fprintf(t, "rows\t%d: %d completed, %d failed, %d cancelled, %d running, %d left\n", r.Total, r.Completed, r.Failed, r.Skipped, r.Running, r.Pending)
	if r.CostUSD != nil {
		fmt.Fprintf(t, "cost\t$%.4f\n", *r.CostUSD)
	}
	if r.Error != "" {
		fmt.Fprintf(t, "ended\t%s\n", cell(r.Error, 200))
	}
	for _, f := range r.Failures {
		fmt.Fprintf(t, "%s\t%s: %s\n", f.Status, cell(f.ItemID, 40), cell(f.Error, 120))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	if more := r.Failed - len(r.Failures); more > 0 {
		_, err = fmt.Fprintf(a.stdout, "… and %d more; see last_error in the result\n", more)
	}
	return err
}

func newJobsExportCmd(a *app) *cobra.Command {
	var format, out string
	return jobCmd(a, "export", "Write the result of a job as it is now, to standard output or a file", func(f *pflag.FlagSet) {
		f.StringVar(&format, "format", "csv", "csv, jsonl or junit")
		f.StringVarP(&out, "output", "o", "", "the file (default: standard output)")
	}, func(ctx context.Context, s *store.Store, j *store.Job) error {
		if err := oneOf("format", format, []string{"csv", "jsonl", "junit"}); err != nil {
			return err
		}
		return jobs.Export(ctx, s, j, format, absolutePath(out), a.stdout)
	})
}

func newJobsStopCmd(a *app) *cobra.Command {
	return jobCmd(a, "stop", "Ask a job to end after the rows that are under way; it can be continued", nil,
		func(ctx context.Context, s *store.Store, j *store.Job) error { return a.askJob(ctx, s, j, "stop") })
}

func newJobsCancelCmd(a *app) *cobra.Command {
	return jobCmd(a, "cancel", "End a job and the rows that are under way, and run none of the others", nil,
		func(ctx context.Context, s *store.Store, j *store.Job) error { return a.askJob(ctx, s, j, "cancel") })
}

// askJob asks whoever runs the job to end it. A job that nobody runs is ended
// here.
func (a *app) askJob(ctx context.Context, s *store.Store, j *store.Job, control string) error {
	if !j.Open() {
		_, err := fmt.Fprintf(a.stdout, "job %s has ended already: %s\n", j.ID, j.Status)
		return err
	}
	r, err := describeJob(ctx, s, j)
	if err != nil {
		return err
	}
	if !r.Active {
		if control == "stop" {
			_, err := fmt.Fprintf(a.stdout, "nobody runs job %s now\n", j.ID)
			return err
		}
		if err := cancelIdle(ctx, s, j.ID); err != nil {
			return fmt.Errorf("cancel job %s: %w", j.ID, err)
		}
		_, err := fmt.Fprintf(a.stdout, "job %s is cancelled\n", j.ID)
		return err
	}
	if _, err := s.Ask(ctx, j.ID, control); err != nil {
		return fmt.Errorf("ask job %s: %w", j.ID, err)
	}
	_, err = fmt.Fprintf(a.stdout, "job %s was asked to %s\n", j.ID, control)
	return err
}

// cancelIdle ends a job that nobody runs. Rows may still be those of a process
// that was killed: whoever has the folder's lock sets them free.
func cancelIdle(ctx context.Context, s *store.Store, id string) error {
	if s.Embedded() {
		own, err := store.OpenFolder(ctx, s.Dir(), true)
		if err != nil {
			return err
		}
		defer own.Close()
		s = own
	}
	if err := s.Drop(ctx, id, "cancelled", "the job was cancelled"); err != nil {
		return err
	}
	return s.End(ctx, id, "cancelled", "the job was cancelled")
}

func newJobsRetryCmd(a *app) *cobra.Command {
	o := &jobOptions{}
	var status []string
	c := &cobra.Command{
		Use:   "retry [JOB]",
		Short: "Run the failed rows of a job again, and those that are left",
		Long:  "Run the failed rows of a job again, and those that are left, with the flags that the job\nwas begun with; flags given here come on top. Rows that are completed are not run again.\n--status names which rows are tried again (default: all that are neither completed nor\nleft).",
		Args: func(c *cobra.Command, args []string) error {
			if err := cobra.MaximumNArgs(1)(c, args); err != nil {
				return usageError(c, err)
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			name := "last"
			if len(args) > 0 {
				name = args[0]
			}
			return a.retryJob(c.Context(), o, c.Flags(), name, status)
		},
	}
	bindJob(a, o, c.Flags())
	c.Flags().StringSliceVar(&status, "status", nil, "rows with these statuses: failed, blocked, timeout, invalid_output, limit, cancelled")
	c.Flags().Bool("failed", true, "rows that failed, whatever the reason; this is what it does anyway")
	return c
}

// retryable are the statuses of rows that can be tried again.
var retryable = []string{"failed", "blocked", "timeout", "invalid_output", "limit", "cancelled", "skipped"}

// retryJob runs a job again with the flags that it was begun with.
func (a *app) retryJob(ctx context.Context, o *jobOptions, given *pflag.FlagSet, name string, status []string) error {
	for _, st := range status {
		if err := oneOf("status", st, retryable); err != nil {
			return err
		}
	}
	s, j, err := a.findJob(ctx, o.engine, name)
	if err != nil {
		return err
	}
	embedded := s.Embedded()
	_ = s.Close() // it is opened anew
	spec := jobs.Spec{}
	if err := json.Unmarshal(j.Spec, &spec); err != nil {
		return fmt.Errorf("read job %s: %w", j.ID, err)
	}
	flags, o, err := a.flagsAgain(o, given, spec, embedded)
	if err != nil {
		return err
	}
	if o.name == "" && !strings.HasPrefix(j.Name, "agent-job-") {
		o.name = j.Name
	}
	o.source, o.output = spec.SourcePath, spec.OutputPath
	o.retry = retryable
	if len(status) > 0 {
		o.retry = status
	}
	o.jobID = j.ID
	a.takeFlags(flags)
	return a.runJob(ctx, o, flags)
}

// flagsAgain lays the given flags over those that the job was begun with. What a
// shared database says is not believed: the flags decide what rows may do, and
// everybody who can write the database could set them.
func (a *app) flagsAgain(o *jobOptions, given *pflag.FlagSet, spec jobs.Spec, believed bool) (*pflag.FlagSet, *jobOptions, error) {
	again := &jobOptions{}
	type flag struct{ name, value string }
	var overrides []flag
	given.Visit(func(f *pflag.Flag) {
		list, ok := f.Value.(pflag.SliceValue)
		if !ok {
			overrides = append(overrides, flag{f.Name, f.Value.String()})
			return
		}
		for _, v := range list.GetSlice() {
			overrides = append(overrides, flag{f.Name, v})
		}
	})
	a.run = runOptions{} // the flags that were given are bound to it
	flags := pflag.NewFlagSet("retry", pflag.ContinueOnError)
	bindJob(a, again, flags)
	stored := spec.Flags
	if !believed {
		stored = nil
		again.instruction = spec.Instruction
	} else if len(stored) == 0 { // an agent has begun it
		stored = []string{"--instruction=" + spec.Instruction, "--id-column=" + spec.IDColumn, "--model=" + spec.Model}
	} else if err := os.Chdir(spec.Cwd); err != nil && spec.Cwd != "" {
		return nil, nil, &fault.Error{Code: "cwd", What: "the job cannot be continued", Why: "the folder that it was begun in cannot be used: " + osReason(err), Exit: fault.Environment, Err: err}
	}
	if err := flags.Parse(stored); err != nil {
		return nil, nil, fmt.Errorf("read the flags of the job: %w", err)
	}
	var failed error
	for _, f := range overrides {
		if flags.Lookup(f.name) != nil { // others are of retry itself
			failed = errors.Join(failed, flags.Set(f.name, f.value))
		}
	}
	if again.instruction != "" && !believed {
		failed = errors.Join(failed, flags.Set("instruction", again.instruction))
	}
	return flags, again, failed
}
