package cmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"drover/output"
	"drover/output/event"
	"drover/output/fault"
	"drover/runner"
	"drover/runner/textfile"
	"drover/tools/sandbox"
)

// runOptions are the flags of run as given; set tells which were.
type runOptions struct {
	set func(flag string) bool
	// has tells whether this version has a flag.
	has func(flag string) bool

	file, promptFile, model, cwd       string
	addDirs, policies                  []string
	allow, ask, deny                   []string
	trustProject, yolo, network        bool
	onAsk, onDeny, sandbox, isolate    string
	approvals                          approvalOptions
	maxDenials, maxTurns, maxToolCalls int
	maxTokens                          int64
	maxCost                            float64
	timeout, idleTimeout, toolTimeout  time.Duration
	checks                             []string
	checkRetries                       int
	outputSchema                       string
	format, events, color              string
	out                                []string
	lastMessage                        string
	ascii, ephemeral                   bool
	show                               string
	params, labels                     pairs
	onClosedOutput                     string
	answers                            []string
	mode                               string
	dryRun                             bool
	args                               []string
}

func newRunCmd(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "run [PROMPT | -] [-f TASK.yaml]",
		Short: "Run one agent to its end",
		Long:  "Run one agent to its end.\n\nThe prompt is the argument, --prompt-file, the task file's prompt, or - for standard\ninput, which is read in no other case. Standard output carries the chosen format and\nnothing else: JSON lines, unless it is a terminal. The exit code tells how the run\nended; see: drover exit-codes",
		Args: func(c *cobra.Command, args []string) error {
			if err := cobra.MaximumNArgs(1)(c, args); err != nil {
				return usageError(c, errors.New("more than one prompt was given; quote it"))
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			a.run.args = args
			a.run.set = c.Flags().Changed
			a.run.has = func(flag string) bool { return c.Flags().Lookup(flag) != nil }
			return a.runRun(c.Context())
		},
	}
	a.run.bind(c.Flags())
	return c
}

func (o *runOptions) bind(f *pflag.FlagSet) {
	f.StringVarP(&o.file, "file", "f", "", "task file (YAML)")
	f.StringVar(&o.promptFile, "prompt-file", "", "read the prompt from a file, or - for standard input")
	f.StringVarP(&o.model, "model", "m", "", "model: provider/model or script:FILE")
	f.StringVarP(&o.cwd, "cwd", "C", "", "working folder (default: the current one)")
	f.StringArrayVar(&o.addDirs, "add-dir", nil, "a further folder that may be written (repeatable)")
	f.StringArrayVar(&o.policies, "policy", nil, "policy file (repeatable)")
	f.StringArrayVar(&o.allow, "allow", nil, "allow RULE: exec:WORDS, read:GLOB, write:GLOB, delete:GLOB, host:HOST, mcp:SERVER/TOOL or tool:NAME (repeatable)")
	f.StringArrayVar(&o.ask, "ask", nil, "ask for RULE (repeatable)")
	f.StringArrayVar(&o.deny, "deny", nil, "deny RULE (repeatable)")
	f.BoolVar(&o.trustProject, "trust-project", false, "let the project's own policy and config allow things")
	f.StringVar(&o.onAsk, "on-ask", "", "what becomes of an ask: deny, fail, defer (end the run, to be taken up later) or approver")
	o.approvals.bind(f)
	f.StringVar(&o.onDeny, "on-deny", "", "whether a refusal counts: continue, report or fail")
	f.IntVar(&o.maxDenials, "max-denials", 0, "end the run at this many refusals (default 5)")
	f.StringVar(&o.sandbox, "sandbox", "", "read-only, workspace-write or off (default workspace-write)")
	f.StringVar(&o.isolate, "isolate", "", "work in a copy of the folder and keep what changed as a patch: none, copy or worktree (default none)")
	f.BoolVar(&o.network, "network", false, "give commands the network")
	f.BoolVar(&o.yolo, "yolo", false, "allow everything that no rule denies")
	f.StringVar(&o.format, "format", "auto", "what stdout carries: "+formatNames())
	f.StringArrayVar(&o.out, "out", nil, "a further output, FORMAT:FILE (repeatable)")
	f.StringVar(&o.events, "events", "default", "how much of the stream stdout gets: core, default or full")
	f.StringVarP(&o.lastMessage, "output-last-message", "o", "", "write the final answer to a file")
	f.StringVar(&o.outputSchema, "output-schema", "", "JSON Schema file that the final answer must match")
	f.StringArrayVar(&o.checks, "check", nil, "command that must succeed after the final answer (repeatable)")
	f.IntVar(&o.checkRetries, "check-retries", 0, "how often a failed check goes back to the agent")
	f.IntVar(&o.maxTurns, "max-turns", 0, "limit of model responses (default 200)")
	f.IntVar(&o.maxToolCalls, "max-tool-calls", 0, "limit of tool calls")
	f.Int64Var(&o.maxTokens, "max-tokens", 0, "limit of input and output tokens together")
	f.Float64Var(&o.maxCost, "max-cost", 0, "limit of cost in US dollars")
	f.DurationVar(&o.timeout, "timeout", 0, "limit of the whole run, such as 10m")
	f.DurationVar(&o.idleTimeout, "idle-timeout", 0, "end the run when nothing happens for this long")
	f.DurationVar(&o.toolTimeout, "tool-timeout", 0, "end any command after this long")
	f.StringVar(&o.color, "color", "auto", "colour on a terminal: auto, always or never")
	f.BoolVar(&o.ascii, "ascii", false, "use no characters outside ASCII for people's formats")
	f.StringVar(&o.show, "show", "", "what people's formats show in addition: agents, reasoning or all")
	f.BoolVar(&o.ephemeral, "ephemeral", false, "keep no session file")
	f.Var(&o.params, "param", "a parameter of the task file, KEY=VALUE (repeatable)")
	f.Var(&o.labels, "label", "a label for run.started, KEY=VALUE (repeatable)")
	f.StringVar(&o.mode, "mode", "", "default, or plan: change nothing and end with a plan (default \"default\")")
	f.BoolVar(&o.dryRun, "dry-run", false, "judge and report what would change something, and do none of it; what only reads is run")
	f.StringArrayVar(&o.answers, "answer", nil, "an answer for the agent's question ID, ID=LABEL (repeatable)")
	f.StringVar(&o.onClosedOutput, "on-closed-output", "stop", "when the reader of stdout goes away: stop or continue")
}

// checkValues refuses flag values that only a list allows.
func (o *runOptions) checkValues() error {
	for _, v := range []struct {
		flag, got string
		known     []string
	}{
		{"on-ask", o.onAsk, []string{"", "deny", "fail", "defer", "approver"}},
		{"on-deny", o.onDeny, []string{"", "continue", "report", "fail"}},
		{"sandbox", o.sandbox, []string{"", "read-only", "workspace-write", "off"}},
		{"isolate", o.isolate, []string{"", "none", "copy", "worktree"}},
		{"mode", o.mode, []string{"", "default", "plan"}},
		{"format", o.format, append([]string{"auto"}, output.Names()...)},
		{"events", o.events, []string{"core", "default", "full"}},
		{"color", o.color, []string{"auto", "always", "never"}},
		{"show", o.show, shown},
		{"on-closed-output", o.onClosedOutput, []string{"stop", "continue"}},
	} {
		if err := oneOf(v.flag, v.got, v.known); err != nil {
			return err
		}
	}
	for _, check := range o.checks {
		if strings.TrimSpace(check) == "" {
			return &fault.Error{Code: "usage", What: "--check cannot be used", Why: "it is empty",
				Fix: "give the command, or leave --check out", Exit: fault.Usage}
		}
	}
	for _, n := range []struct {
		flag string
		bad  bool
	}{
		{"max-denials", o.maxDenials < 0}, {"max-turns", o.maxTurns < 0}, {"max-tool-calls", o.maxToolCalls < 0},
		{"max-tokens", o.maxTokens < 0}, {"max-cost", o.maxCost < 0}, {"timeout", o.timeout < 0},
		{"idle-timeout", o.idleTimeout < 0}, {"tool-timeout", o.toolTimeout < 0}, {"check-retries", o.checkRetries < 0},
		{"approval-timeout", o.approvals.timeout < 0},
	} {
		if n.bad {
			return &fault.Error{Code: "usage", What: "--" + n.flag + " cannot be used", Why: "it is negative",
				Fix: "give a positive value, or leave it out for the default", Exit: fault.Usage}
		}
	}
	return nil
}

func oneOf(flag, got string, known []string) error {
	for _, k := range known {
		if got == k {
			return nil
		}
	}
	if known[0] == "" {
		known = known[1:]
	}
	return &fault.Error{Code: "usage", What: fmt.Sprintf("--%s cannot be used", flag), Why: fmt.Sprintf("%q is not one of its values", got),
		Fix: "use one of: " + strings.Join(known, ", "), Exit: fault.Usage}
}

// runRun runs one agent. It returns an error only for a run that could not
// start; after that the outcome speaks, and the error is the exit code.
func (a *app) runRun(ctx context.Context) (err error) {
	return a.runWith(ctx, func(_ context.Context, p *prepared) (work, error) {
		return func(ctx context.Context) runner.Outcome { return runner.Run(ctx, p.options) }, nil
	})
}

// work is what a run does between its first and its last line.
type work func(ctx context.Context) runner.Outcome

// runWith prepares a run, lets open find out what is to be done, and does it.
// What open returns an error for has not begun.
func (a *app) runWith(ctx context.Context, open func(ctx context.Context, p *prepared) (work, error)) (err error) {
	o := &a.run
	if err := o.checkValues(); err != nil {
		return err
	}
	if o.sandbox != string(sandbox.Off) {
		a.early = sandbox.StartEarly() // while the rest is read
		defer a.early.Close()
	}
	ctx, s := a.handleSignals(ctx, patienceWithPrepare, a.loneFinish)
	defer s.stop()
	p, err := a.prepare(ctx, s, o)
	if err != nil {
		return err
	}
	defer p.release()
	keepPrivate()
	do, err := open(ctx, p)
	if stop := s.cause(); stop != nil && do == nil {
		err = stop
	}
	if err != nil {
		p.release()
		a.forget(p.session, p.newSession)
		return err
	}
	s.begin(p)
	if a.screen != nil {
		defer watchStops(a.screen)()
	}
	wall := p.options.Limits.Wall
	if a.job != nil {
		wall = a.job.maxRuntime
	}
	if wall > 0 {
		// The runner keeps the limit; after the agent's end, too, no reader is
		// waited for any longer.
		defer time.AfterFunc(wall, s.arm).Stop()
	}
	outcome := a.guardedRun(ctx, p, do)
	ran := outcome
	p.outcome.Store(&ran)
	a.conclude(p, &outcome)
	if code := p.lateFailure(outcome.End.Exit); code != fault.Success {
		// Nobody may be reading stderr either.
		within(patienceWhenHurried, func() { a.explain(outcome, p.gaveUp.Load()) })
		return exitWith{code}
	}
	return nil
}

// lateFailure is the exit code when the last line itself did not get through.
func (p *prepared) lateFailure(code fault.Exit) fault.Exit {
	if p.failed.Load() != nil && fault.Environment.Before(code) {
		return fault.Environment
	}
	if p.closedOutput.Load() && p.stopOnClosed && fault.ClosedOutput.Before(code) {
		return fault.ClosedOutput
	}
	if stop := p.stopping.cause(); p.gaveUp.Load() && code == fault.Success {
		if stop != nil {
			return stop.Exit
		}
		return fault.Timeout
	}
	return code
}

// guardedRun runs the agent and turns a panic outside the loop into its end.
func (a *app) guardedRun(ctx context.Context, p *prepared, do work) (out runner.Outcome) {
	defer func() {
		if r := recover(); r != nil {
			out = runner.Outcome{SessionID: p.options.SessionID, End: runner.Stop{
				Exit: fault.Internal, Reason: "panic",
				Err: &event.Err{Code: "panic", Message: fmt.Sprint("drover has a bug: ", r), Fix: "report it with the session file"},
			}}
		}
	}()
	return do(ctx)
}

// conclude does what comes between the agent's end and the last line, then
// writes that line.
func (a *app) conclude(p *prepared, out *runner.Outcome) {
	p.endProcesses() // whoever reads the last line finds nothing running
	p.collectDiff(out)
	if path := a.run.lastMessage; path != "" {
		if err := writeLastMessage(p.stopping.ending, path, p.redact.String(out.Message)); err != nil {
			out.Fail(runner.StopFor(err))
		}
	}
	if p.closedOutput.Load() && p.stopOnClosed {
		out.Fail(&runner.Stop{Exit: fault.ClosedOutput, Reason: "closed_output"})
	}
	final := *out
	p.outcome.Store(&final)
	first, err := runner.Finish(p.log, final)
	if !first {
		select {} // the process is being ended
	}
	a.finished = true
	if err != nil && !p.closedOutput.Load() {
		fmt.Fprintf(a.stderr, "drover: close the output: %s\n", p.redact.String(err.Error()))
	}
}

// explain says on stderr in one line why a run did not succeed, so that a CI
// log is enough to know.
func (a *app) explain(out runner.Outcome, gaveUp bool) {
	if gaveUp {
		fmt.Fprintln(a.stderr, "drover: standard output is cut: its reader did not read when the run was to end")
	}
	if out.End.Exit == fault.ClosedOutput || out.End.Err == nil {
		return
	}
	f := &fault.Error{What: "the run ended with " + out.End.Exit.Name(), Why: out.End.Err.Message, Fix: out.End.Err.Fix}
	a.printError(f)
}

// prompt finds the task: the argument, a file, standard input or the task
// file. Bytes are kept as they are.
func (a *app) prompt(ctx context.Context, o *runOptions, task *runner.Task) (text string, source event.PromptSource, err error) {
	given := 0
	if len(o.args) > 0 {
		given++
		text, source = o.args[0], "arg"
	}
	if o.promptFile != "" {
		given++
	}
	if given > 1 {
		return "", "", &fault.Error{Code: "usage", What: "the prompt is given twice", Why: "as an argument and with --prompt-file",
			Fix: "leave one of them out", Exit: fault.Usage}
	}
	switch {
	case source == "arg" && text == "-", o.promptFile == "-":
		text, err = interruptible(ctx, func() (string, error) { return readPrompt(a.stdin, "standard input") })
		source = "stdin"
	case o.promptFile != "":
		text, err = interruptible(ctx, func() (string, error) { return readPromptFile(o.promptFile) })
		source = "file"
	case source == "" && task != nil && task.Prompt != "":
		text, source = task.Prompt, "file"
	}
	if err != nil {
		return "", "", err
	}
	if source == "arg" && !utf8.ValidString(text) {
		return "", "", &fault.Error{Code: "prompt_unreadable", What: "the prompt cannot be used", Why: "it is not UTF-8 text",
			Fix: "set a UTF-8 locale, or give the prompt with --prompt-file", Exit: fault.Usage}
	}
	if strings.TrimSpace(text) == "" {
		return "", "", &fault.Error{Code: "no_prompt", What: "there is no prompt", Why: emptyPromptWhy(source),
			Fix: "give it as an argument, with --prompt-file FILE, in a task file (-f), or as - to read standard input", Exit: fault.Usage}
	}
	return text, source, nil
}

func emptyPromptWhy(source event.PromptSource) string {
	if source == "" {
		return "standard input is only read when the prompt is -"
	}
	return "it is empty"
}

// maxPrompt is far above what any model reads, and below what could fill the
// memory by accident.
const maxPrompt = 64 << 20

func readPromptFile(path string) (string, error) {
	f, err := textfile.Open(path)
	if err != nil {
		return "", &fault.Error{Code: "prompt_unreadable", What: fmt.Sprintf("prompt file %q cannot be read", path), Why: osReason(err), Exit: fault.Usage, Err: err}
	}
	defer f.Close()
	return readPrompt(f, fmt.Sprintf("prompt file %q", path))
}

func readPrompt(r io.Reader, name string) (string, error) {
	data, err := io.ReadAll(io.LimitReader(r, maxPrompt+1))
	bad := func(why, fix string, err error) error {
		return &fault.Error{Code: "prompt_unreadable", What: "the prompt from " + name + " cannot be used", Why: why, Fix: fix, Exit: fault.Usage, Err: err}
	}
	switch {
	case err != nil:
		return "", bad(osReason(err), "", err)
	case len(data) > maxPrompt:
		return "", bad("it is larger than 64 MiB", "let the agent read the data from a file", nil)
	case !utf8.Valid(data):
		return "", bad("it is not UTF-8 text", "convert it, for example with iconv", nil)
	}
	return string(data), nil
}

// osReason is the part of a file error that does not repeat the path.
func osReason(err error) string {
	var pathErr *os.PathError
	if errors.As(err, &pathErr) {
		return pathErr.Err.Error()
	}
	return err.Error()
}

// checkLastMessage finds out before the run that the file for the final answer
// cannot be written. It does not touch the file: it may hold the last one.
func checkLastMessage(path string) error {
	if path == "" {
		return nil
	}
	dir := filepath.Dir(path)
	info, err := os.Stat(path)
	why := ""
	if err == nil && info.IsDir() {
		why = "it is a folder"
	} else if info, err := os.Stat(dir); err != nil {
		why = fmt.Sprintf("its folder %q: %s", dir, osReason(err))
	} else if !info.IsDir() {
		why = fmt.Sprintf("%q is not a folder", dir)
	}
	if why == "" {
		return nil
	}
	return &fault.Error{Code: "last_message", What: fmt.Sprintf("the final answer cannot be written to %q", path), Why: why,
		Fix: "name a file in a folder that exists", Exit: fault.Usage}
}

// writeLastMessage writes the final answer. Once ctx has ended, a reader of a
// pipe is not waited for any longer.
func writeLastMessage(ctx context.Context, path, text string) error {
	if text != "" && !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	f, err := output.Create(path, 0o666)
	if err == nil {
		stop := context.AfterFunc(ctx, func() {
			_ = f.SetWriteDeadline(time.Now().Add(patienceWithReader)) // a plain file needs none
		})
		_, err = f.WriteString(text)
		stop()
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		return &fault.Error{Code: "last_message", What: fmt.Sprintf("the final answer cannot be written to %q", path), Why: osReason(err), Exit: fault.Environment, Err: err}
	}
	return nil
}
