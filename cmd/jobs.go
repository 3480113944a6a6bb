package cmd

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"drover/jobs"
	"drover/output"
	"drover/output/fault"
	"drover/runner"
	"drover/runner/session"
	"drover/tools"
)

// jobOptions are the flags of jobs run as given.
type jobOptions struct {
	source, output, instruction, instructionFile string
	idColumn, delimiter, inputFormat, name       string
	engine                                       string
	maxConcurrency, maxAttempts, maxFailures     int
	maxRuntime, itemTimeout                      time.Duration
	restart, asIs, coordinator, formulaSafe      bool
	patchDir, junit                              string
	// jobID names a job that is there, and retry the statuses of rows that are
	// run again.
	jobID string
	retry []string
	// worker says that the jobs are other people's.
	worker bool
	// isolate is where rows work; the run itself works in no copy.
	isolate string
	// inputs are what the run was prepared from, for rows that work elsewhere.
	inputs inputs
}

func newJobsCmd(a *app) *cobra.Command {
	return group("jobs", "Run one agent for every row of a table",
		newJobsRunCmd(a), newJobsStatusCmd(a), newJobsListCmd(a), newJobsExportCmd(a), newJobsRetryCmd(a),
		newJobsStopCmd(a), newJobsCancelCmd(a), newJobsWorkerCmd(a), newJobsUICmd(a))
}

func newJobsRunCmd(a *app) *cobra.Command {
	o := &jobOptions{}
	c := &cobra.Command{
		Use:   "run TABLE | - [-f TASK.yaml]",
		Short: "Run one agent for every row of a table, or go on with that",
		Long:  "Run one agent for every row of a CSV file (or of JSON lines), and write what they report\nbeside the rows. Run the same command again to go on after a kill, a reboot or a limit:\nrows that have ended are not run again. The flags of run apply to every row. Exit 0 if\nevery row is completed, 20 if some are, 21 if none is.",
		Args: func(c *cobra.Command, args []string) error {
			if err := cobra.MaximumNArgs(1)(c, args); err != nil {
				return usageError(c, errors.New("more than one table was given"))
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) > 0 {
				o.source = args[0]
			}
			a.takeFlags(c.Flags())
			return a.runJob(c.Context(), o, c.Flags())
		},
	}
	bindJob(a, o, c.Flags())
	return c
}

// takeFlags remembers which flags were given.
func (a *app) takeFlags(f *pflag.FlagSet) {
	a.run.set = f.Changed
	a.run.has = func(flag string) bool { return f.Lookup(flag) != nil }
}

// notForRows are flags of run that a job has no use for.
var notForRows = map[string]bool{"output-last-message": true, "prompt-file": true, "mode": true, "answer": true, "ephemeral": true}

// bindRun binds the flags of run that apply to rows.
func bindRun(a *app, f *pflag.FlagSet) {
	all := pflag.NewFlagSet("", pflag.ContinueOnError)
	a.run.bind(all)
	all.VisitAll(func(flag *pflag.Flag) {
		if notForRows[flag.Name] {
			return
		}
		switch flag.Name {
		case "max-cost":
			flag.Usage = "limit of the cost of the whole job, over all its runs, in US dollars"
		case "isolate":
			flag.Usage = "give each row a folder of its own and keep its diff as a patch: none, copy or worktree (default none)"
		case "dry-run":
			flag.Usage = "check everything, print the first prompts and what they would cost at least, and run nothing"
		}
		f.AddFlag(flag)
	})
}

func bindJob(a *app, o *jobOptions, f *pflag.FlagSet) {
	bindRun(a, f)
	f.StringVarP(&o.output, "output", "o", "", "where the result goes (default TABLE.agent-job-ID.csv beside the table)")
	f.StringVar(&o.instruction, "instruction", "", "what to do with each row; {column} stands for its value, {{ and }} for braces")
	f.StringVar(&o.instructionFile, "instruction-file", "", "read the instruction from a file")
	f.StringVar(&o.idColumn, "id-column", "", "the column with the ids of the rows (default: rows are numbered)")
	f.StringVar(&o.delimiter, "delimiter", "", `the character between cells, such as ';' or '\t' (default ',')`)
	f.StringVar(&o.inputFormat, "input-format", "", "csv or jsonl (default by the name of the table)")
	f.StringVar(&o.name, "name", "", "the job's name, by which it is known instead of by its paths")
	bindEngine(a, &o.engine, f)
	f.IntVar(&o.maxConcurrency, "max-concurrency", 0, "how many rows are worked on at once, at most 1000 (default 16)")
	f.DurationVar(&o.maxRuntime, "max-runtime", 0, "deadline of the job, such as 8h")
	f.DurationVar(&o.itemTimeout, "item-timeout", 0, "limit of one row (default 30m)")
	f.IntVar(&o.maxAttempts, "max-attempts", 0, "how often a row is tried where the provider was at fault (default 3)")
	f.IntVar(&o.maxFailures, "max-failures", 0, "end the job at this many failed rows")
	f.BoolVar(&o.restart, "restart", false, "forget what the job has done and begin anew")
	f.BoolVar(&o.asIs, "as-is", false, "go on although instruction, model or schema changed; finished rows are kept")
	f.BoolVar(&o.coordinator, "coordinator", false, "work on no row here: workers do (with --engine)")
	f.BoolVar(&o.formulaSafe, "formula-safe", false, "put ' before cells of the result that a spreadsheet would run")
	f.StringVar(&o.patchDir, "patch-dir", "", "where the diffs of isolated rows go (default OUTPUT.patches)")
	f.StringVar(&o.junit, "junit", "", "write a JUnit report, too")
}

func bindEngine(a *app, to *string, f *pflag.FlagSet) {
	f.StringVar(to, "engine", "", "postgres:// URL of the database that several machines share (default: a file in the state folder; DROVER_ENGINE)")
}

// engineVar is the variable with the URL of the database. No command gets it.
const engineVar = "DROVER_ENGINE"

// engineOf is the engine of the flag or the variable.
func (a *app) engineOf(flag string) (string, error) {
	engine := cmp.Or(flag, a.getenv(engineVar))
	if engine == "" || strings.HasPrefix(engine, "postgres://") || strings.HasPrefix(engine, "postgresql://") {
		return engine, nil
	}
	return "", &fault.Error{Code: "usage", What: "--engine cannot be used", Why: "it is no postgres:// URL", Fix: "write it like postgres://user@host/database, or leave it out", Exit: fault.Usage}
}

// fromTask takes what the flags leave out from the task file.
func (o *jobOptions) fromTask(t *runner.TaskJob) {
	if t == nil {
		return
	}
	o.source, o.output = cmp.Or(o.source, t.Source), cmp.Or(o.output, t.Output)
	o.idColumn, o.delimiter, o.inputFormat, o.name = cmp.Or(o.idColumn, t.IDColumn), cmp.Or(o.delimiter, t.Delimiter), cmp.Or(o.inputFormat, t.Format), cmp.Or(o.name, t.Name)
	o.maxConcurrency, o.maxAttempts, o.maxFailures = cmp.Or(o.maxConcurrency, t.MaxConcurrency), cmp.Or(o.maxAttempts, t.MaxAttempts), cmp.Or(o.maxFailures, t.MaxFailures)
	o.maxRuntime, o.itemTimeout = cmp.Or(o.maxRuntime, t.MaxRuntime), cmp.Or(o.itemTimeout, t.ItemTimeout)
	o.patchDir, o.junit, o.formulaSafe = cmp.Or(o.patchDir, t.PatchDir), cmp.Or(o.junit, t.JUnit), o.formulaSafe || t.FormulaSafe
}

// check refuses values that cannot be meant.
func (o *jobOptions) check() error {
	bad := func(flag, why, fix string) error {
		return &fault.Error{Code: "usage", What: "--" + flag + " cannot be used", Why: why, Fix: fix, Exit: fault.Usage}
	}
	for _, n := range []struct {
		flag     string
		negative bool
	}{
		{"max-concurrency", o.maxConcurrency < 0}, {"max-attempts", o.maxAttempts < 0}, {"max-failures", o.maxFailures < 0},
		{"max-runtime", o.maxRuntime < 0}, {"item-timeout", o.itemTimeout < 0},
	} {
		if n.negative {
			return bad(n.flag, "it is negative", "give a positive value, or leave it out for the default")
		}
	}
	switch {
	case o.maxConcurrency > jobs.MaxConcurrency:
		return bad("max-concurrency", fmt.Sprintf("%d is more than %d", o.maxConcurrency, jobs.MaxConcurrency), "use more machines: --engine postgres://…")
	case o.coordinator && o.engine == "":
		return bad("coordinator", "nobody else could work on the rows", "give the database of the workers with --engine")
	case o.restart && o.asIs:
		return bad("as-is", "--restart is given, too", "leave one of them out")
	}
	if err := oneOf("input-format", o.inputFormat, []string{"", "csv", "jsonl"}); err != nil {
		return err
	}
	if o.delimiter == `\t` {
		o.delimiter = "\t"
	}
	if o.delimiter != "" && (utf8.RuneCountInString(o.delimiter) != 1 || o.delimiter[0] >= utf8.RuneSelf || strings.ContainsAny(o.delimiter, "\"\r\n\x00")) {
		return bad("delimiter", fmt.Sprintf("%q is not one ASCII character that can stand between cells", o.delimiter), `use ';', '\t', '|' or another one`)
	}
	if o.source == "" {
		return &fault.Error{Code: "usage", What: "there is no table", Fix: "name a CSV file, - for standard input, or job: {source: …} in the task file", Exit: fault.Usage}
	}
	return nil
}

// runJob runs a job from its flags.
func (a *app) runJob(ctx context.Context, o *jobOptions, flags *pflag.FlagSet) error {
	if err := a.readInstruction(o); err != nil {
		return err
	}
	a.job = o
	return a.runWith(ctx, func(ctx context.Context, p *prepared) (work, error) {
		options, err := a.jobOf(p, o, flags)
		if err != nil {
			return nil, err
		}
		if a.run.dryRun {
			return nil, a.previewJob(p, options)
		}
		job, err := jobs.Open(ctx, options)
		if err != nil {
			return nil, err
		}
		return func(ctx context.Context) runner.Outcome {
			defer job.Close()
			return job.Run(ctx)
		}, nil
	})
}

// readInstruction makes the instruction the prompt of the run.
func (a *app) readInstruction(o *jobOptions) error {
	switch {
	case o.instruction != "" && o.instructionFile != "":
		return &fault.Error{Code: "usage", What: "the instruction is given twice", Why: "with --instruction and --instruction-file", Fix: "leave one of them out", Exit: fault.Usage}
	case o.instructionFile == "-":
		return &fault.Error{Code: "usage", What: "--instruction-file cannot be used", Why: "standard input is for the table", Fix: "name a file", Exit: fault.Usage}
	case o.instructionFile != "":
		a.run.promptFile = o.instructionFile
	case a.run.set("instruction"):
		if strings.TrimSpace(o.instruction) == "" || o.instruction == "-" {
			return &fault.Error{Code: "no_instruction", What: "instruction must be non-empty", Fix: "say what is to be done with each row, for example --instruction 'Triage {title}'", Exit: fault.Usage}
		}
		a.run.args = []string{o.instruction}
	}
	return nil
}

// jobOf are the job's options.
func (a *app) jobOf(p *prepared, o *jobOptions, flags *pflag.FlagSet) (jobs.Options, error) {
	var err error
	if t := o.inputs.task; t != nil {
		o.fromTask(t.Job)
	}
	if o.engine, err = a.engineOf(o.engine); err != nil {
		return jobs.Options{}, err
	}
	if err := o.check(); err != nil {
		return jobs.Options{}, err
	}
	state, err := a.stateDir()
	if err != nil {
		return jobs.Options{}, err
	}
	opts := jobs.Options{
		Spec: jobs.Spec{
			Instruction: o.inputs.prompt, IDColumn: o.idColumn, Model: p.options.Model.ID, SourcePath: absolutePath(o.source), OutputPath: absolutePath(o.output),
			Format: cmp.Or(o.inputFormat, formatOf(o.source)), Delimiter: o.delimiter,
			ItemTimeoutMS: cmp.Or(o.itemTimeout, jobs.DefaultItemTimeout).Milliseconds(), MaxAttempts: cmp.Or(o.maxAttempts, jobs.DefaultAttempts),
			Isolate: o.isolate, FormulaSafe: o.formulaSafe, Cwd: o.inputs.caller,
		},
		Name: o.name, JobID: o.jobID, Retry: o.retry, State: state, Engine: o.engine, Restart: o.restart, AsIs: o.asIs,
		Concurrency: cmp.Or(o.maxConcurrency, jobs.DefaultConcurrency), MaxRuntime: o.maxRuntime, MaxCostUSD: p.options.Limits.CostUSD, MaxFailures: o.maxFailures,
		Base: p.options, NewSessionID: session.NewID, Relocate: a.relocate(o.inputs), Sweep: tools.SweepSession,
		PatchDir: absolutePath(o.patchDir), JUnit: absolutePath(o.junit),
	}
	if o.engine == "" {
		opts.Spec.Flags = jobFlags(flags) // a shared database is read by others
	}
	if o.inputs.schema != nil {
		opts.Spec.OutputSchema = o.inputs.schema.Raw
	}
	if o.coordinator {
		opts.Concurrency = 0
	}
	if o.source == "-" {
		opts.Source = func() (io.ReadCloser, error) { return io.NopCloser(a.stdin), nil }
	}
	return opts, nil
}

// formatOf is the format that the name of a table says.
func formatOf(name string) string {
	switch strings.ToLower(filepath.Ext(name)) {
	case ".jsonl", ".ndjson":
		return "jsonl"
	}
	return "csv"
}

func absolutePath(path string) string {
	if path == "" || path == "-" {
		return path
	}
	return absolute([]string{path})[0]
}

// relocate returns what makes an agent work in another folder: with a policy and
// a sandbox of its own, so that rows cannot touch each other.
func (a *app) relocate(in inputs) func(context.Context, runner.Options, string) (runner.Options, func(), error) {
	return func(ctx context.Context, o runner.Options, dir string) (runner.Options, func(), error) {
		pol, err := a.loadPolicy(&a.run, in.settings, dir)
		if err != nil {
			return o, nil, err
		}
		files, err := openFiles(dir, in.settings, pol)
		if err != nil {
			return o, nil, err
		}
		box, err := a.openSandbox(ctx, in.settings, pol, dir, "")
		if err != nil {
			_ = files.Close() // nothing was written
			return o, nil, err
		}
		o.Cwd, o.Policy, o.Files, o.Commands.Sandbox = dir, pol, files, box
		o.Limits = withDenials(o.Limits, pol)
		o.Instructions, _ = runner.LoadInstructions(dir)
		return o, func() {
			box.End(graceOfCommands)
			_ = files.Close() // handles that are not needed any more
			box.Close(graceOfCommands)
		}, nil
	}
}

// previewed is how many prompts a dry run prints.
const previewed = 3

// preview is what a dry run prints of one row with --format json or jsonl, and
// previewTotal of all rows.
type preview struct {
	ItemID string `json:"item_id"`
	Index  int    `json:"index"`
	Prompt string `json:"prompt"`
}

type previewTotal struct {
	Rows      int `json:"rows"`
	BlankRows int `json:"blank_rows"`
	// PromptTokens is an estimate, CostUSD what they cost at least; nil is not
	// known.
	PromptTokens int64    `json:"prompt_tokens"`
	CostUSD      *float64 `json:"cost_usd"`
}

// previewJob prints the first prompts and what all of them would cost at least.
func (a *app) previewJob(p *prepared, o jobs.Options) error {
	machine := a.run.format == "json" || a.run.format == "jsonl"
	enc := json.NewEncoder(a.stdout)
	enc.SetEscapeHTML(false)
	var bytes int64
	var failed error
	table, err := jobs.Check(o, func(index int, itemID, prompt string) {
		bytes += int64(len(prompt))
		if index >= previewed {
			return
		}
		row := preview{p.redact.String(itemID), index, p.redact.String(prompt)}
		if machine {
			failed = errors.Join(failed, enc.Encode(row))
		} else {
			_, err := fmt.Fprintf(a.stdout, "--- row %d, item %s\n%s\n\n", index+1, output.Clean(row.ItemID), cleanLines(row.Prompt))
			failed = errors.Join(failed, err)
		}
	})
	if err := errors.Join(err, failed); err != nil {
		return err
	}
	t := previewTotal{Rows: table.Rows, BlankRows: table.BlankCount, PromptTokens: (bytes + 3) / 4}
	cost := 0.0
	if prices, known := p.options.Model.Prices(); known {
		cost = float64(t.PromptTokens) * prices.Input / 1e6
		t.CostUSD = &cost
	}
	if machine {
		err = enc.Encode(t)
	} else {
		err = t.print(a.stdout, p.options.Model.ID)
	}
	return errors.Join(err, errPreview)
}

// cleanLines makes untrusted text of several lines safe to print.
func cleanLines(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = output.Clean(line)
	}
	return strings.Join(lines, "\n")
}

func (t previewTotal) print(w io.Writer, model string) error {
	price := "; the price of " + model + " is not known"
	if t.CostUSD != nil {
		price = fmt.Sprintf(", at least $%.4f; instructions, tools, answers and further turns come on top", *t.CostUSD)
	}
	_, err := fmt.Fprintf(w, "%d rows, %d blank rows left out; the prompts are about %d tokens in all%s\n", t.Rows, t.BlankRows, t.PromptTokens, price)
	return err
}

// errPreview ends a run that has only looked.
var errPreview = exitWith{fault.Success}

// jobFlags are the flags as given, for a later run of the same job.
func jobFlags(f *pflag.FlagSet) []string {
	var out []string
	f.Visit(func(flag *pflag.Flag) {
		switch flag.Name {
		case "restart", "as-is", "engine", "format", "out", "events", "show", "color", "ascii", "debug", "status", "max-runtime", "dry-run":
			return // about one run and not about the job
		}
		if list, ok := flag.Value.(pflag.SliceValue); ok {
			for _, v := range list.GetSlice() {
				out = append(out, "--"+flag.Name+"="+v)
			}
			return
		}
		out = append(out, "--"+flag.Name+"="+flag.Value.String())
	})
	return out
}

// addSpawnTool gives the agent the tool that starts jobs. A run that does not
// call it opens no database.
func (a *app) addSpawnTool(p *prepared) {
	state, err := a.stateDir()
	if err != nil || a.job != nil {
		return // without a state folder no job can be kept
	}
	p.options.Tools = append(p.options.Tools, jobs.NewSpawnTool(func() jobs.Options {
		return jobs.Options{State: state, Base: p.options, NewSessionID: session.NewID, Sweep: tools.SweepSession, ParentSession: p.options.SessionID}
	}))
}
