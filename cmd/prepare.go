package cmd

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"drover/cmd/config"
	"drover/output/event"
	"drover/output/fault"
	"drover/runner"
	"drover/runner/approver"
	"drover/runner/model"
	"drover/runner/session"
	"drover/tools"
	"drover/tools/policy"
	"drover/tools/sandbox"
)

// prepared is a run that is ready to start: everything that can be wrong with
// what the user gave has been found by now, before the first model call.
type prepared struct {
	options runner.Options
	log     *event.Log
	redact  *event.Redactor
	session *session.Session
	// dryRun says that nothing is done.
	dryRun bool
	// newSession says that the session was created for this run.
	newSession bool
	files      *tools.Files
	sandbox    *sandbox.Sandbox
	// asker answers requests, nil if nobody does.
	asker approver.Approver
	copy  *runner.Isolation
	// stopping ends the run.
	stopping     *stopping
	closedOutput atomic.Bool
	// stopOnClosed says that a closed stdout ends the run.
	stopOnClosed bool
	// failed is why stdout cannot be written, if its reader is still there.
	failed atomic.Pointer[fault.Error]
	// gaveUp says that the reader of stdout did not read when the run was to end.
	gaveUp atomic.Bool
	// outcome is how the run ended, as soon as that is known.
	outcome atomic.Pointer[runner.Outcome]
}

// graceOfCommands is the time between TERM and KILL.
const graceOfCommands = 2 * time.Second

// inputs are what the user gave, read and checked.
type inputs struct {
	task   *runner.Task
	prompt string
	source event.PromptSource
	cwd    string
	// caller is the folder of whoever called drover.
	caller   string
	config   *config.Config
	settings settings
	policy   *policy.Policy
	schema   *runner.Schema
	model    *model.OpenedModel
}

// readInputs reads everything that a run depends on, in the order in which the
// exit codes rank: usage, config, auth. It changes nothing.
func (a *app) readInputs(ctx context.Context, o *runOptions) (in inputs, err error) {
	if in.task, err = interruptible(ctx, func() (*runner.Task, error) { return loadTask(o) }); err != nil {
		return in, err
	}
	if in.prompt, in.source, err = a.prompt(ctx, o, in.task); err != nil {
		return in, err
	}
	if in.caller, err = os.Getwd(); err != nil {
		return in, &fault.Error{Code: "cwd", What: "the current folder cannot be used", Why: osReason(err), Exit: fault.Environment, Err: err}
	}
	if in.cwd, err = workingFolder(in.caller, o, in.task); err != nil {
		return in, err
	}
	if in.config, err = a.loadConfig(o, in.cwd); err != nil {
		return in, err
	}
	in.settings = mergeSettings(o, in.task, in.config)
	if in.settings.answers, err = mergeAnswers(o.answers, in.task); err != nil {
		return in, err
	}
	if in.settings.dynamic, err = a.dynamicTools(in.task); err != nil {
		return in, err
	}
	a.showAs(in.config)
	if err := a.settleApprovals(o, in.config, &in.settings); err != nil {
		return in, err
	}
	if in.policy, err = a.loadPolicy(o, in.settings, in.cwd); err != nil {
		return in, err
	}
	if in.schema, err = loadSchema(o, in.task); err != nil {
		return in, err
	}
	if in.model, err = interruptible(ctx, func() (*model.OpenedModel, error) {
		return a.openModel(in.settings.model, in.config, in.caller)
	}); err != nil {
		return in, err
	}
	if err := checkLastMessage(o.lastMessage); err != nil {
		return in, err
	}
	return in, checkCostLimit(in.settings.limits, in.model)
}

// prepare reads the inputs and opens what the run needs. When it is stopped it
// returns the stop as its error.
func (a *app) prepare(ctx context.Context, s *stopping, o *runOptions) (_ *prepared, err error) {
	p := &prepared{stopOnClosed: o.onClosedOutput == "stop", stopping: s, dryRun: o.dryRun}
	defer func() {
		if stop := s.cause(); stop != nil {
			err = stop
		}
		if err != nil {
			p.release()
			a.forget(p.session, p.newSession)
		}
	}()
	in, err := a.readInputs(ctx, o)
	if err != nil {
		return nil, err
	}
	if a.job != nil {
		a.job.isolate, in.settings.isolate = in.settings.isolate, "none" // its rows work elsewhere
		a.job.inputs = in
	}
	if err := a.openSession(ctx, p, o, in.settings, in.cwd); err != nil {
		return nil, err
	}
	if p.copy != nil {
		// The policy's workspace is the folder in which the agent works.
		in.cwd = p.copy.Dir
		if in.policy, err = a.loadPolicy(o, in.settings, in.cwd); err != nil {
			return nil, err
		}
	}
	if p.files, err = openFiles(in.cwd, in.settings, in.policy); err != nil {
		return nil, err
	}
	if p.sandbox, err = a.openSandbox(ctx, in.settings, in.policy, in.cwd, p.layers()); err != nil {
		return nil, err
	}
	a.early.Close() // a run without a sandbox does not take it
	secrets := redactNames(in.config, in.model, a.environ())
	if a.job != nil {
		addPassword(secrets, a.job.engine)
	}
	p.redact = a.redactor(in.settings.dynamic.withSecrets(secrets))
	if err := a.openLog(p); err != nil {
		return nil, err
	}
	p.options = a.runnerOptions(p, in)
	p.options.Stopped = s.arm
	a.addSpawnTool(p)
	if err := a.addHooks(p, in); err != nil {
		return nil, err
	}
	if err := a.openApprover(p, in); err != nil {
		return nil, err
	}
	s.runID.Store(&p.options.Commands.RunID)
	var skipped []string
	p.options.Instructions, skipped = runner.LoadInstructions(in.cwd)
	for _, text := range skipped {
		p.options.Notices = append(p.options.Notices, event.NoticeEvent{Level: "warning", Code: "instructions_skipped", Message: text})
	}
	return p, nil
}

// runnerOptions hands everything to the runner.
func (a *app) runnerOptions(p *prepared, in inputs) runner.Options {
	s := in.settings
	return runner.Options{
		SessionID: p.session.ID(), Prompt: in.prompt, Model: in.model, Tools: append(tools.All(), s.dynamic.tools...), Shell: in.model.Info.Shell,
		Policy: in.policy, Files: p.files, Cwd: in.cwd, Limits: withDenials(s.limits, in.policy),
		Checks: s.checks, CheckRetries: s.checkRetries, Mode: s.mode, DryRun: a.run.dryRun, Answers: s.answers, Schema: in.schema, Output: s.output, Log: p.log, Keep: p.session.Keep, OpenArtifact: p.openArtifact,
		Commands: a.commands(in.config, s, in.model, p), Notices: append(p.notices(in), sandboxNotices(p.sandbox.Info(), s, in.policy)...),
		Mask: p.redact.String,
		Started: event.RunStartedEvent{
			Schema: event.SchemaID, Product: "drover", Version: Version, Cwd: in.cwd, PromptSource: in.source,
			Policy: policyRef(in.policy), Labels: s.labels, Capabilities: []string{"args_delta", "terminal", "usage", "artifacts"},
			Sandbox: sandboxRef(p.sandbox.Info()),
		},
	}
}

// notices are what a reader of the stream should know from the start.
func (p *prepared) notices(in inputs) []event.NoticeEvent {
	s := in.settings
	list := []event.NoticeEvent{}
	if s.mode == runner.ModePlan && (len(s.checks) > 0 || in.schema != nil) {
		list = append(list, event.NoticeEvent{Level: "warning", Code: "plan_unchecked",
			Message: "plan mode runs no checks and applies no output schema: its answer is a plan"})
	}
	if in.schema != nil && in.schema.Loose() != "" && !in.model.Free {
		list = append(list, event.NoticeEvent{Level: "info", Code: "schema_loose",
			Message: "the provider is not held to the output schema, the answer is only checked afterwards: " + in.schema.Loose()})
	}
	if p.dryRun && len(s.checks) > 0 {
		list = append(list, event.NoticeEvent{Level: "warning", Code: "dry_run_unchecked",
			Message: "a dry run runs no checks: nothing was done that they could look at"})
	}
	if p.copy != nil && len(p.copy.Skipped) > 0 {
		list = append(list, event.NoticeEvent{Level: "warning", Code: "copy_incomplete",
			Message: "not copied: " + strings.Join(p.copy.Skipped, ", ")})
	}
	for _, text := range in.policy.Notices() {
		list = append(list, event.NoticeEvent{Level: "warning", Code: "policy", Message: text})
	}
	for _, w := range in.config.Warnings {
		list = append(list, event.NoticeEvent{Level: "warning", Code: "config", Message: w})
	}
	return list
}

// withDenials takes the limit of refusals from the policy, which has seen the
// flags and the files.
func withDenials(l runner.Limits, pol *policy.Policy) runner.Limits {
	l.Denials = cmp.Or(pol.MaxDenials(), runner.DefaultDenials)
	return l
}

// showAs takes the format and the colour from the config where no flag says.
func (a *app) showAs(cfg *config.Config) {
	if !a.run.set("format") && cfg.Format != "" {
		a.run.format = cfg.Format
	}
	if !a.run.set("color") && cfg.Color != "" {
		a.run.color = cfg.Color
	}
}

// release gives back what prepare opened. It may be called twice.
func (p *prepared) release() {
	if p.asker != nil {
		_ = p.asker.Close() // what is left of a socket is removed by the next run
		p.asker = nil
	}
	if p.log != nil {
		_ = p.log.Close() // conclude has reported the error if there was one
	}
	if p.files != nil {
		_ = p.files.Close() // handles that were only read from at the end
		p.files = nil
	}
	if p.copy != nil {
		_ = p.copy.Close() // what the diff was made from; the copy itself stays
	}
	if p.session != nil {
		_ = p.session.Close() // the log has closed it, unless it never got that far
	}
	p.endProcesses()
	if p.sandbox != nil {
		p.sandbox.Close(graceOfCommands) // what commands left in folders of their own goes, too
	}
}

// forget removes the session that was made for a run which could not start:
// nothing is in it, and a list would call it crashed.
func (a *app) forget(s *session.Session, created bool) {
	if created {
		_ = removeSession(context.Background(), session.StateDir(a.getenv), s.ID()) // why the run cannot start matters more
	}
}

// endProcesses ends every process that the run may have left. It may be called
// twice.
func (p *prepared) endProcesses() {
	if p.sandbox != nil {
		p.sandbox.End(graceOfCommands)
	}
	if id := p.options.Commands.RunID; id != "" {
		tools.Sweep(id)
	}
}

// collectDiff puts what an isolated run changed beside its session.
func (p *prepared) collectDiff(out *runner.Outcome) {
	if p.copy == nil {
		return
	}
	diff, files, err := p.copy.Diff()
	if err != nil {
		out.Fail(runner.StopFor(&fault.Error{Code: "diff", What: "the diff of the copy cannot be made", Why: err.Error(), Exit: fault.Environment, Err: err}))
		return
	}
	if len(files) > 0 {
		out.FilesChanged = files
	}
	artifact, err := p.session.Artifact("diff.patch", diff)
	if err != nil {
		out.Fail(runner.StopFor(&fault.Error{Code: "diff", What: "the diff of the copy cannot be written", Why: err.Error(), Exit: fault.Environment, Err: err}))
		return
	}
	out.Artifacts = append(out.Artifacts, artifact)
}

func loadTask(o *runOptions) (*runner.Task, error) {
	if o.file == "" {
		if len(o.params) > 0 {
			return nil, &fault.Error{Code: "usage", What: "--param cannot be used", Why: "there is no task file that declares parameters",
				Fix: "give the task file with -f", Exit: fault.Usage}
		}
		return nil, nil
	}
	return runner.LoadTask(o.file, o.params)
}

// workingFolder is where the agent works: -C relative to the caller, a task's
// cwd relative to its file.
func workingFolder(caller string, o *runOptions, task *runner.Task) (string, error) {
	dir := caller
	switch {
	case o.cwd != "":
		dir = absFrom(caller, o.cwd)
	case task != nil && task.Cwd != "":
		dir = absFrom(caller, task.Cwd)
	}
	info, err := os.Stat(dir)
	if err == nil && !info.IsDir() {
		err = &os.PathError{Op: "stat", Path: dir, Err: fmt.Errorf("it is not a folder")}
	}
	if err != nil {
		return "", &fault.Error{Code: "cwd", What: fmt.Sprintf("the working folder %q cannot be used", dir), Why: osReason(err),
			Fix: "create it, or name another one with -C", Exit: fault.Usage, Err: err}
	}
	return dir, nil
}

func absFrom(base, path string) string {
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(base, path)
}

func (a *app) openModel(id string, cfg *config.Config, caller string) (*model.OpenedModel, error) {
	if id == "" && a.job != nil && a.job.worker {
		return &model.OpenedModel{Provider: perJob{}, Model: "job", ID: "job"}, nil
	}
	if id == "" {
		return nil, &fault.Error{Code: "no_model", What: "no model is given",
			Fix: "name one with --model provider/model, DROVER_MODEL, or model: in the config", Exit: fault.Config}
	}
	return model.Open(id, model.Config{
		Providers: cfg.Providers, Getenv: a.getenv, BaseDir: caller, UserAgent: "drover/" + Version,
	})
}

// checkCostLimit refuses a budget that nobody could keep: an unknown price is
// not zero.
func checkCostLimit(l runner.Limits, m *model.OpenedModel) error {
	if l.CostUSD == 0 || m.Provider == (perJob{}) {
		return nil
	}
	if _, known := m.Prices(); known {
		return nil
	}
	provider, name, _ := strings.Cut(m.ID, "/")
	return &fault.Error{Code: "unknown_price", What: "the limit of cost cannot be kept", Why: fmt.Sprintf("the price of the model %q is not known", m.ID),
		Fix: fmt.Sprintf("set input_price and output_price (dollars per million tokens) under providers: %s: models: %s: in the config, or use --max-tokens", provider, name), Exit: fault.Config}
}

// openSession creates the session's folder, and in it the copy of an isolated
// run. An ephemeral session lives in a temporary folder that goes with the run.
func (a *app) openSession(ctx context.Context, p *prepared, o *runOptions, s settings, cwd string) (err error) {
	state := session.StateDir(a.getenv)
	if s.ephemeral {
		if s.isolate != "" && s.isolate != "none" {
			return &fault.Error{Code: "usage", What: "an isolated run cannot be ephemeral", Why: "its copy is kept with the session",
				Fix: "leave out --ephemeral, or use --isolate none", Exit: fault.Usage}
		}
		p.session = session.Ephemeral(session.NewID())
		return nil
	}
	if p.session, err = session.Create(state, session.NewID()); err != nil {
		return err
	}
	p.newSession = true
	p.stopping.created.Store(p.session)
	if s.isolate == "" || s.isolate == "none" {
		return nil
	}
	p.copy, err = runner.Isolate(ctx, s.isolate, cwd, filepath.Join(p.session.Dir(), copyName))
	return err
}

// openLog makes the log with its sinks: the session first, so that an event is
// on disk before anybody else has read it.
func (a *app) openLog(p *prepared) error {
	p.log = event.New(event.Options{RunID: session.NewRunID(), Redact: p.redact, Artifacts: p.session.Artifact})
	if !p.session.IsEphemeral() {
		p.log.Attach(event.Attachment{Name: "session", Sink: p.session, Level: event.Full, Failed: func(err error) {
			p.notice("session_lost", "the session file cannot be written any more: "+err.Error())
		}})
	}
	p.log.Subscribe(event.TopicPlumbing, a.rememberPlanted)
	return a.attachFormats(p.log, p)
}

func (p *prepared) notice(code, text string) {
	p.log.Emit(event.Origin{SessionID: p.options.SessionID}, event.NoticeEvent{Level: "warning", Code: code, Message: text})
}

func (p *prepared) stop(s *runner.Stop) { p.stopping.cancel(s) }

// layers is the folder for the private layers of the commands: beside the
// session, and gone with the run.
func (p *prepared) layers() string {
	if p.session.IsEphemeral() {
		return ""
	}
	return filepath.Join(p.session.Dir(), "layers")
}

func (a *app) commands(cfg *config.Config, s settings, m *model.OpenedModel, p *prepared) tools.Commands {
	remove := append(append(model.KeyNames(cfg.Providers), cfg.Redact...), engineVar)
	for name := range m.Secrets {
		remove = append(remove, name)
	}
	remove = append(remove, s.dynamic.variables...)
	slices.Sort(remove)
	return tools.Commands{
		RunID: p.log.RunID(), SessionID: p.session.ID(), Environ: a.environ(), Remove: remove,
		Environment: cfg.ShellEnvironment, Shell: cfg.Shell, AllowLogin: cfg.AllowLoginShell,
		Timeout: s.limits.Tool, Grace: graceOfCommands, Sandbox: p.sandbox, MaxPoll: cfg.MaxPoll,
	}
}

func policyRef(p *policy.Policy) event.PolicyRef {
	ref := event.PolicyRef{Default: string(p.Default()), OnAsk: string(p.OnAsk()), OnDeny: string(p.OnDeny()), SHA256: p.SHA256(), Preset: p.PresetName()}
	for _, l := range p.Layers() {
		ref.Layers = append(ref.Layers, event.FileRef{Path: l.Path, Layer: event.Layer(l.Layer), SHA256: l.SHA256})
	}
	return ref
}
