package cmd

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"drover/cmd/config"
	"drover/output"
	"drover/output/fault"
	"drover/tools"
	"drover/tools/policy"
)

// bindPolicyFlags binds the flags that choose the policy in force.
func bindPolicyFlags(a *app, c *cobra.Command) {
	o, f := &a.run, c.Flags()
	f.StringVarP(&o.cwd, "cwd", "C", "", "working folder (default: the current one)")
	f.StringArrayVar(&o.policies, "policy", nil, "policy file (repeatable)")
	f.StringArrayVar(&o.allow, "allow", nil, "allow RULE (repeatable)")
	f.StringArrayVar(&o.ask, "ask", nil, "ask for RULE (repeatable)")
	f.StringArrayVar(&o.deny, "deny", nil, "deny RULE (repeatable)")
	f.BoolVar(&o.trustProject, "trust-project", false, "let the project's own policy and config allow things")
	f.BoolVar(&o.yolo, "yolo", false, "allow everything that no rule denies")
}

// bindPlaceFlags binds the flags that say where a call may write.
func bindPlaceFlags(a *app, c *cobra.Command) {
	o, f := &a.run, c.Flags()
	f.StringArrayVar(&o.addDirs, "add-dir", nil, "a further folder that may be written (repeatable)")
	f.StringVar(&o.sandbox, "sandbox", "", "read-only, workspace-write or off")
}

// assumedPath resolves bare words on PATH. Unlike in a run, a word that is
// nowhere on it counts as found: what a policy says of a program must not
// depend on whether this machine has it.
type assumedPath struct {
	look func(name string) string

	mu sync.Mutex
	// missing are the words that were taken for found.
	missing map[string]bool
	// functions are words that the script defines itself.
	functions map[string]bool
}

func newAssumedPath(path string) *assumedPath {
	return &assumedPath{look: lookPath(path), missing: map[string]bool{}, functions: map[string]bool{}}
}

// assumedDir is where programs that are not on PATH are taken to be; no rule
// means it.
const assumedDir = "/not-on-path/"

func (l *assumedPath) find(name string) string {
	if file := l.look(name); file != "" {
		return file
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	// Programs of git are looked for before its aliases: taking them for found
	// would hide an alias.
	if strings.HasPrefix(name, "git-") || strings.Contains(name, "/") || l.functions[name] {
		return ""
	}
	l.missing[name] = true
	return assumedDir + name
}

var functionHead = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?:function\s+([^\s(){};&|]+))|([^\s(){};&|]+)\s*\(\s*\)`)
})

// define forgets what was missing, and notes the functions of a script, which
// no program stands behind.
func (l *assumedPath) define(script string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	clear(l.missing)
	clear(l.functions)
	for _, m := range functionHead().FindAllStringSubmatch(script, -1) {
		l.functions[m[1]+m[2]] = true
	}
}

// absent returns those of the words that were taken for found.
func (l *assumedPath) absent(words []string) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var out []string
	for _, w := range words {
		if l.missing[w] && !slices.Contains(out, w) {
			out = append(out, w)
		}
	}
	return out
}

// judging is a policy and what the calls that it judges are prepared with.
type judging struct {
	policy *policy.Policy
	env    tools.Env
	path   *assumedPath
}

// newJudging loads a policy with bare words resolved as policy commands do.
func (a *app) newJudging(s policy.Sources, cfg *config.Config) (*judging, error) {
	j := &judging{path: newAssumedPath(a.getenv("PATH"))}
	s.Env.LookPath = j.path.find
	var err error
	if j.policy, err = policy.Load(s); err != nil {
		return nil, err
	}
	// Without a writable root no folder is opened: names are all that preparing
	// a call needs.
	files, err := tools.OpenFiles(tools.FilesOptions{Cwd: s.Roots.Workspace})
	if err != nil {
		return nil, fmt.Errorf("prepare calls: %w", err)
	}
	j.env = tools.Env{Cwd: s.Roots.Workspace, Files: files, Approval: j.policy.Approval(), Commands: tools.Commands{Environ: a.environ()}}
	if cfg != nil {
		j.env.Commands.Shell, j.env.Commands.AllowLogin = cfg.Shell, cfg.AllowLoginShell
	}
	return j, nil
}

// policyFile loads a file alone, as a run would load it with --policy.
func (a *app) policyFile(cwd string, files ...string) (*judging, error) {
	return a.newJudging(a.fileSources(cwd, files...), nil)
}

func (a *app) fileSources(cwd string, files ...string) policy.Sources {
	return policy.Sources{
		Flags: files,
		Roots: policy.Roots{Workspace: cwd, Writable: []string{cwd}, Home: a.getenv("HOME")},
		Env:   policy.Env{Real: policy.RealPath},
	}
}

// judgingInForce loads the policy that a run with the same flags would have.
func (a *app) judgingInForce() (*judging, error) {
	cwd, err := a.policyFolder()
	if err != nil {
		return nil, err
	}
	s, cfg, err := a.sourcesInForce(cwd)
	if err != nil {
		return nil, err
	}
	return a.newJudging(s, cfg)
}

func (a *app) sourcesInForce(cwd string) (policy.Sources, *config.Config, error) {
	if err := oneOf("sandbox", a.run.sandbox, []string{"", "read-only", "workspace-write", "off"}); err != nil {
		return policy.Sources{}, nil, err
	}
	cfg, err := a.loadConfig(&a.run, cwd)
	if err != nil {
		return policy.Sources{}, nil, err
	}
	return a.policySources(&a.run, mergeSettings(&a.run, nil, cfg), cwd), cfg, nil
}

// policyInForce loads the policy of a run with the same flags, exactly.
func (a *app) policyInForce() (*policy.Policy, error) {
	cwd, err := a.policyFolder()
	if err != nil {
		return nil, err
	}
	s, _, err := a.sourcesInForce(cwd)
	if err != nil {
		return nil, err
	}
	return policy.Load(s)
}

// policyFolder is the workspace that globs are relative to.
func (a *app) policyFolder() (string, error) {
	caller, err := os.Getwd()
	if err != nil {
		return "", &fault.Error{Code: "cwd", What: "the current folder cannot be used", Why: osReason(err), Exit: fault.Environment, Err: err}
	}
	return workingFolder(caller, &a.run, nil)
}

// call returns what a case describes. A tool that is built is asked for the
// actions of the call; of one that is not, the call itself is judged.
func (j *judging) call(t policy.Test) (policy.Call, error) {
	j.path.define(t.Exec)
	tool := tools.Find(t.Tool)
	if t.Tool == "" || tool == nil {
		return j.policy.CallOf(t), nil
	}
	c, err := j.prepare(tool, tools.Input{Text: string(t.Args)})
	c.Agent, c.Mode = t.Agent, t.Mode
	return c, err
}

// prepare asks a tool for the actions of a call.
func (j *judging) prepare(tool tools.Tool, in tools.Input) (policy.Call, error) {
	name := tool.Spec().Name
	env := j.env
	env.ToolName = name
	prepared, err := tool.Prepare(env, in)
	if err != nil {
		return policy.Call{Tool: name}, err
	}
	return policy.Call{Tool: name, Args: prepared.Args, Actions: prepared.Actions}, nil
}

// decided is who decided, as the JSON of the policy commands says it.
type decided struct {
	Effect policy.Effect `json:"effect"`
	// By is policy, default, sandbox, grant or yolo.
	By     string `json:"decided_by"`
	RuleID string `json:"rule_id,omitempty"`
	Layer  string `json:"layer,omitempty"`
	File   string `json:"file,omitempty"`
	Line   int    `json:"line,omitempty"`
	Reason string `json:"reason,omitempty"`
}

func decidedBy(v policy.Verdict) decided {
	return decided{Effect: v.Effect, By: v.DecidedBy, RuleID: v.RuleID, Layer: v.Layer, File: v.File, Line: v.Line, Reason: v.Reason}
}

// who names the decider in words.
func (d decided) who() string {
	switch {
	case d.RuleID != "":
		return fmt.Sprintf("rule %q (%s)", d.RuleID, place(d.File, d.Line))
	case d.By == "default":
		return "the default"
	case d.By == "sandbox":
		return "the sandbox"
	case d.By == "yolo":
		return "--yolo"
	}
	return "the " + d.By
}

// place is where a rule stands, as editors understand it.
func place(file string, line int) string {
	if line == 0 || strings.HasPrefix(file, "--") {
		return file
	}
	return fmt.Sprintf("%s:%d", file, line)
}

// clean makes the text of files and calls fit for a terminal.
func clean(format string, args ...any) string { return output.Clean(fmt.Sprintf(format, args...)) }

// sameFile tells whether two names lead to one file.
func sameFile(a, b string) bool {
	x, errX := filepath.Abs(a)
	y, errY := filepath.Abs(b)
	if errX == nil && errY == nil && x == y {
		return true
	}
	ia, errA := os.Stat(a)
	ib, errB := os.Stat(b)
	return errA == nil && errB == nil && os.SameFile(ia, ib)
}
