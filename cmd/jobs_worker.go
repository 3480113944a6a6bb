package cmd

import (
	"cmp"
	"context"
	"iter"

	"github.com/spf13/cobra"

	"drover/jobs"
	"drover/output/fault"
	"drover/runner"
	"drover/runner/model"
	"drover/runner/session"
	"drover/tools"
)

func newJobsWorkerCmd(a *app) *cobra.Command {
	o := &jobOptions{}
	var jobID string
	var once bool
	c := &cobra.Command{
		Use:   "worker --engine postgres://…",
		Short: "Work on the rows of jobs that others have begun, from any machine",
		Long:  "Work on the rows of the jobs in a database that several machines share, until a signal\nends it. A job brings its instruction, model and schema; what its agents may do is decided\nhere: policy, sandbox, hooks, checks, keys and the working folder are those of this\ncommand, whatever the database says.",
		Args:  noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			a.takeFlags(c.Flags())
			return a.runWorker(c.Context(), o, jobID, once)
		},
	}
	f := c.Flags()
	bindRun(a, f)
	bindEngine(a, &o.engine, f)
	f.IntVar(&o.maxConcurrency, "max-concurrency", 0, "how many rows are worked on at once, at most 1000 (default 16)")
	f.StringVar(&jobID, "job", "", "work on this job only, given by its whole id")
	f.BoolVar(&once, "once", false, "end when no job is open")
	return c
}

// runWorker works on jobs of a shared database.
func (a *app) runWorker(ctx context.Context, o *jobOptions, jobID string, once bool) error {
	engine, err := a.engineOf(o.engine)
	if err != nil {
		return err
	}
	if engine == "" {
		return &fault.Error{Code: "usage", What: "there is nothing to join", Why: "the database of the jobs is not given", Fix: "name it with --engine postgres://…", Exit: fault.Usage}
	}
	if o.maxConcurrency < 0 || o.maxConcurrency > jobs.MaxConcurrency {
		return &fault.Error{Code: "usage", What: "--max-concurrency cannot be used", Why: "it is not between 1 and 1000", Exit: fault.Usage}
	}
	a.job, o.worker = o, true
	a.run.args = []string{"work on the rows of jobs"} // each row brings its own
	return a.runWith(ctx, func(_ context.Context, p *prepared) (work, error) {
		state, err := a.stateDir()
		if err != nil {
			return nil, err
		}
		opts := jobs.WorkerOptions{Engine: engine, JobID: jobID, Once: once, For: a.jobModel(p, o.inputs),
			Options: jobs.Options{State: state, Engine: engine, Concurrency: cmp.Or(o.maxConcurrency, jobs.DefaultConcurrency), Base: p.options,
				NewSessionID: session.NewID, Relocate: a.relocate(o.inputs), Sweep: tools.SweepSession}}
		return func(ctx context.Context) runner.Outcome {
			out, err := jobs.Work(ctx, opts)
			if err != nil {
				out.End = *runner.StopFor(err)
			}
			return out
		}, nil
	})
}

// jobModel returns what opens the model of a job, unless the worker has one of
// its own.
func (a *app) jobModel(p *prepared, in inputs) func(context.Context, *jobs.Spec) (runner.Options, error) {
	return func(_ context.Context, s *jobs.Spec) (runner.Options, error) {
		o := p.options
		if a.run.model != "" || s.Model == o.Model.ID {
			return o, nil
		}
		m, err := a.openModel(s.Model, in.config, in.caller)
		if err != nil {
			return o, err
		}
		o.Model = m
		return o, nil
	}
}

// perJob stands for the models of a worker that has none of its own: each job
// names one.
type perJob struct{}

// Name is what run.started says.
func (perJob) Name() string { return "job" }

// Stream is never called: every row has the model of its job.
func (perJob) Stream(context.Context, *model.Request) iter.Seq2[model.Delta, error] {
	return func(yield func(model.Delta, error) bool) {
		yield(model.Delta{}, &model.Error{Kind: model.ErrNotFound, Message: "the job names no model"})
	}
}
