package cmd

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"drover/cmd/config"
	"drover/output/fault"
	"drover/runner"
	"drover/runner/model"
	"drover/runner/textfile"
	"drover/tools"
	"drover/tools/policy"
)

// settings are what flags, task file and config come to: flag before variable
// before task before config before default. Variables are part of the config
// here, but outrank the task; config.Config says which came from one.
type settings struct {
	model            string
	addDirs          []string
	sandbox, isolate string
	ephemeral        bool
	network          bool
	onAsk, onDeny    string
	approvals        approvals
	limits           runner.Limits
	checks           []string
	checkRetries     int
	labels           map[string]string
	answers          map[string]string
	dynamic          dynamicTools
	mode             runner.Mode
	output           tools.Limit
	inlinePolicy     []byte
	inlinePolicyName string
	policies         []string
}

func mergeSettings(o *runOptions, task *runner.Task, cfg *config.Config) settings {
	if task == nil {
		task = &runner.Task{}
	}
	t, env := task.Limits, cfg.Env
	s := settings{
		model:     cmp.Or(o.model, env.Model, task.Model, cfg.Model),
		addDirs:   append(append([]string(nil), task.AddDirs...), absolute(o.addDirs)...),
		sandbox:   cmp.Or(o.sandbox, env.Sandbox, task.Sandbox, cfg.Sandbox, "workspace-write"),
		isolate:   cmp.Or(o.isolate, task.Isolate),
		mode:      cmp.Or(runner.Mode(o.mode), task.Mode, runner.ModeDefault),
		ephemeral: o.ephemeral || cfg.Ephemeral,
		onAsk:     cmp.Or(o.onAsk, cfg.OnAsk), onDeny: cmp.Or(o.onDeny, cfg.OnDeny),
		limits: runner.Limits{
			Turns:     cmp.Or(o.maxTurns, env.MaxTurns, t.Turns, cfg.MaxTurns, runner.DefaultTurns),
			ToolCalls: cmp.Or(o.maxToolCalls, env.MaxToolCalls, t.ToolCalls, cfg.MaxToolCalls),
			Tokens:    cmp.Or(o.maxTokens, env.MaxTokens, t.Tokens, cfg.MaxTokens),
			CostUSD:   cmp.Or(o.maxCost, env.MaxCost, t.CostUSD, cfg.MaxCost),
			Wall:      cmp.Or(o.timeout, env.Timeout, t.Wall, cfg.Timeout),
			Idle:      cmp.Or(o.idleTimeout, env.IdleTimeout, t.Idle, cfg.IdleTimeout),
			Tool:      cmp.Or(o.toolTimeout, env.ToolTimeout, t.Tool, cfg.ToolTimeout),
			Denials:   cmp.Or(o.maxDenials, env.MaxDenials, t.Denials, cfg.MaxDenials), OutputBytes: t.OutputBytes,
			LoopWarn: cmp.Or(t.LoopWarn, cfg.LoopWarn), LoopStop: cmp.Or(t.LoopStop, cfg.LoopStop),
		},
		checks:       append(append([]string(nil), task.Checks...), o.checks...),
		checkRetries: task.CheckRetries,
		labels:       map[string]string{},
		policies:     o.policies,
	}
	s.network = cfg.Network
	if task.NetworkGiven && !cfg.NetworkFromEnv {
		s.network = task.Network
	}
	if o.set("network") {
		s.network = o.network
	}
	if o.set("check-retries") {
		s.checkRetries = o.checkRetries
	}
	for _, m := range []map[string]string{task.Labels, o.labels} {
		for k, v := range m {
			s.labels[k] = v
		}
	}
	if n := cfg.ToolOutputTokenLimit; n > 0 {
		s.output = tools.Limit{Tokens: n}
	}
	s.inlinePolicy, s.inlinePolicyName = task.PolicyInline, o.file
	if task.PolicyFile != "" {
		s.policies = append([]string{task.PolicyFile}, s.policies...)
	}
	return s
}

// absolute makes paths of the command line absolute; they are relative to the
// caller's folder, not to the run's.
func absolute(paths []string) []string {
	var out []string
	for _, p := range paths {
		if abs, err := filepath.Abs(p); err == nil {
			p = abs
		}
		out = append(out, p)
	}
	return out
}

// writable are the folders that may be written.
func (s settings) writable(cwd string) []string {
	if s.sandbox == "read-only" {
		return nil
	}
	return append([]string{cwd}, s.addDirs...)
}

func (a *app) loadConfig(o *runOptions, cwd string) (*config.Config, error) {
	if o.trustProject {
		if err := a.refusePlanted(cwd); err != nil {
			return nil, err
		}
	}
	cfg, err := config.Load(config.Options{Getenv: a.getenv, Environ: a.environ(), Cwd: cwd, TrustProject: o.trustProject})
	if err == nil {
		// From here on the errors are masked with what the config names, too.
		a.redactor(redactNames(cfg, &model.OpenedModel{}, a.environ()))
	}
	return cfg, err
}

// userPolicy is the user's policy file, "" without a home: a relative name
// would be a file of the current folder, which may be anybody's.
func userPolicy(getenv func(string) string) string {
	home := config.Home(getenv)
	if home == "" {
		return ""
	}
	return filepath.Join(home, "policy.yaml")
}

func (a *app) loadPolicy(o *runOptions, s settings, cwd string) (*policy.Policy, error) {
	return policy.Load(a.policySources(o, s, cwd))
}

// policySources are the files, flags and folders that the policy of a run in
// the folder is made of.
func (a *app) policySources(o *runOptions, s settings, cwd string) policy.Sources {
	home := a.getenv("HOME")
	// Which folders the policy adds is not known yet, so that drover's own files
	// are protected wherever they are. Outside of the roots nothing is written.
	around := []string{"/"}
	if s.sandbox == "off" {
		around = s.writable(cwd)
	}
	// The copy of an isolated run lies in the state folder and is written.
	steering := slices.DeleteFunc(a.steering(around, s), func(path string) bool { return liesBelow([]string{path}, cwd) })
	return policy.Sources{
		Managed: "/etc/drover/policy.yaml", Flags: s.policies,
		User: userPolicy(a.getenv), TTY: s.approvals.tty, Generated: generatedPolicy(a.getenv),
		Project: filepath.Join(cwd, ".drover", "policy.yaml"), TrustProject: o.trustProject,
		Inline: s.inlinePolicy, InlineName: s.inlinePolicyName,
		Allow: o.allow, Ask: o.ask, Deny: o.deny, Yolo: o.yolo, Tools: s.dynamic.names,
		OnAsk: policy.OnAsk(s.onAsk), OnDeny: policy.OnDeny(s.onDeny), MaxDenials: s.limits.Denials,
		Roots: policy.Roots{Workspace: cwd, Writable: s.writable(cwd), Home: home, Unrestricted: s.sandbox == "off",
			Protected: steering, Private: a.private(s)},
		Env: policy.Env{LookPath: lookPath(a.getenv("PATH")), Real: policy.RealPath},
	}
}

// openFiles opens the folders that the file tools may write.
func openFiles(cwd string, s settings, pol *policy.Policy) (*tools.Files, error) {
	lifted := pol.Unprotected()
	writable := s.writable(cwd)
	if len(writable) > 0 {
		writable = append(writable, pol.AddDirs()...)
	}
	files, err := tools.OpenFiles(tools.FilesOptions{
		Cwd: cwd, Writable: writable, Unrestricted: s.sandbox == "off",
		Lifted: func(path string) bool {
			return slices.ContainsFunc(lifted, func(dir string) bool { return path == dir || strings.HasPrefix(path, dir+"/") })
		},
	})
	if err != nil {
		return nil, &fault.Error{Code: "workspace", What: fmt.Sprintf("the working folder %q cannot be used", cwd), Why: err.Error(), Exit: fault.Environment, Err: err}
	}
	return files, nil
}

// lookPath resolves bare words on the PATH that commands will get.
func lookPath(path string) func(string) string {
	dirs := filepath.SplitList(path)
	return func(name string) string {
		for _, dir := range dirs {
			if dir == "" || !filepath.IsAbs(dir) {
				continue
			}
			full := filepath.Join(dir, name)
			if info, err := os.Stat(full); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
				return full
			}
		}
		return ""
	}
}

// maxSchema is far above what a model could be told to follow.
const maxSchema = 4 << 20

// loadSchema reads the output schema of the flag or the task.
func loadSchema(o *runOptions, task *runner.Task) (*runner.Schema, error) {
	name, raw := o.outputSchema, json.RawMessage(nil)
	if name == "" && task != nil {
		name, raw = task.SchemaFile, task.SchemaInline
	}
	if name == "" && raw == nil {
		return nil, nil
	}
	if raw == nil {
		data, err := textfile.Plain(name, maxSchema)
		if err != nil {
			return nil, &fault.Error{Code: "schema_unreadable", What: fmt.Sprintf("output schema %q cannot be read", name), Why: osReason(err), Exit: fault.Config, Err: err}
		}
		raw = data
	}
	return runner.CompileSchema(cmp.Or(name, o.file), raw)
}
