package cmd

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"drover/jobs"
	"drover/output/event"
	"drover/output/fault"
	"drover/runner/model"
	"drover/runner/session"
	"drover/tools"
	"drover/tools/patch"
	"drover/tools/policy"
)

func newToolsCmd(a *app) *cobra.Command {
	return group("tools", "List, show and call the built-in tools",
		newToolsListCmd(a), newToolsShowCmd(a), newToolsCallCmd(a))
}

// toolRow is one tool as `tools list --format json` prints it.
type toolRow struct {
	Name     string `json:"name"`
	Kind     string `json:"kind"`
	Parallel bool   `json:"parallel"`
	Offered  bool   `json:"offered"`
	Reads    bool   `json:"reads"`
	Writes   bool   `json:"writes"`
	Shell    bool   `json:"shell"`
	Network  bool   `json:"network"`
	Stage    string `json:"stage"`
	Approval string `json:"approval"`
}

func newToolsListCmd(a *app) *cobra.Command {
	var format string
	c := &cobra.Command{Use: "list", Short: "List the tools, what they touch and their default approval", Args: noArgs,
		RunE: func(*cobra.Command, []string) error { return listTools(a, format) }}
	c.Flags().StringVar(&format, "format", "text", "text or json")
	return c
}

func listTools(a *app, format string) error {
	var rows []toolRow
	for _, t := range catalogue() {
		s := t.Spec()
		rows = append(rows, toolRow{Name: s.Name, Kind: string(s.Kind), Parallel: s.Parallel, Offered: s.Offered,
			Reads: s.Reads, Writes: s.Writes, Shell: s.Runs, Network: s.Connects, Stage: "stable", Approval: s.Approval})
	}
	switch format {
	case "json":
		return json.NewEncoder(a.stdout).Encode(rows)
	case "text":
		w := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
		fmt.Fprintln(w, "NAME\tKIND\tPARALLEL\tREAD\tWRITE\tSHELL\tNETWORK\tAPPROVAL")
		for _, r := range rows {
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", r.Name, r.Kind, yes(r.Parallel), yes(r.Reads), yes(r.Writes), yes(r.Shell), yes(r.Network), r.Approval)
		}
		return w.Flush()
	}
	return unknownFormat(format, "text", "json")
}

func yes(b bool) string {
	if b {
		return "yes"
	}
	return "-"
}

func newToolsShowCmd(a *app) *cobra.Command {
	return &cobra.Command{Use: "show NAME", Short: "Show a tool as the model sees it", Args: exactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			t, err := findTool(args[0])
			if err != nil {
				return err
			}
			s := t.Spec()
			if _, err := fmt.Fprintf(a.stdout, "%s (%s)\n\n%s\n\n", s.Name, s.Kind, s.Doc); err != nil {
				return err
			}
			if s.Grammar != "" {
				_, err := fmt.Fprintln(a.stdout, s.Grammar)
				return err
			}
			indented, err := json.MarshalIndent(s.Schema, "", "  ")
			if err != nil {
				return fmt.Errorf("encode schema of %s: %w", s.Name, err)
			}
			_, err = fmt.Fprintln(a.stdout, string(indented))
			return err
		}}
}

// catalogue are all built-in tools, those of list jobs included.
func catalogue() []tools.Tool {
	return append(tools.All(), jobs.NewSpawnTool(nil), jobs.NewReportTool())
}

func findTool(name string) (tools.Tool, error) {
	for _, t := range catalogue() {
		if t.Spec().Name == name {
			return t, nil
		}
	}
	if t := tools.Find(name); t != nil {
		return t, nil
	}
	return nil, &fault.Error{Code: "unknown_tool", What: fmt.Sprintf("there is no tool %q", name), Fix: "see: drover tools list", Exit: fault.Usage}
}

func newToolsCallCmd(a *app) *cobra.Command {
	o := &a.run
	c := &cobra.Command{
		Use:   "call NAME",
		Short: "Call one tool with the input on stdin",
		Long:  "Call one tool. Its input is read from standard input: JSON arguments, or the text itself\nfor a freeform tool. The call is judged by the policy like an agent's. The result is\nprinted to standard output as it is: secrets are masked in error messages only. Exit 0, 1 if the tool reports an error, 2 for a wrong\ncommand line, 10 if the policy refuses.\n\napply_patch is called in its standalone form: it overwrites, takes the first match, and\napplies its files in order.",
		Args:  exactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			o.set = c.Flags().Changed
			return callTool(c.Context(), a, args[0])
		},
	}
	f := c.Flags()
	f.StringVarP(&o.cwd, "cwd", "C", "", "working folder (default: the current one)")
	f.StringArrayVar(&o.policies, "policy", nil, "policy file (repeatable)")
	f.StringArrayVar(&o.allow, "allow", nil, "allow RULE (repeatable)")
	f.StringArrayVar(&o.deny, "deny", nil, "deny RULE (repeatable)")
	f.StringVar(&o.sandbox, "sandbox", "", "read-only, workspace-write or off")
	f.BoolVar(&o.yolo, "yolo", false, "allow everything that no rule denies")
	return c
}

// callTool calls one tool. A signal ends the call and what it has started.
func callTool(ctx context.Context, a *app, name string) (err error) {
	t, err := findTool(name)
	if err != nil {
		return err
	}
	if err := oneOf("sandbox", a.run.sandbox, []string{"", "read-only", "workspace-write", "off"}); err != nil {
		return err
	}
	ctx, stopping := a.handleSignals(ctx, patienceWithCall, nil)
	defer stopping.stop()
	defer func() {
		if stop := stopping.cause(); stop != nil {
			err = stop
		}
	}()
	caller, err := os.Getwd()
	if err != nil {
		return fmt.Errorf("find the current folder: %w", err)
	}
	cwd, err := workingFolder(caller, &a.run, nil)
	if err != nil {
		return err
	}
	cfg, err := a.loadConfig(&a.run, cwd)
	if err != nil {
		return err
	}
	s := mergeSettings(&a.run, nil, cfg)
	pol, err := a.loadPolicy(&a.run, s, cwd)
	if err != nil {
		return err
	}
	input, err := interruptible(ctx, a.readInput)
	if err != nil {
		return err
	}
	files, err := openFiles(cwd, s, pol)
	if err != nil {
		return err
	}
	defer files.Close()
	box, err := a.openSandbox(ctx, s, pol, cwd, "")
	if err != nil {
		return err
	}
	defer box.Close(graceOfCommands)
	env := tools.Env{Cwd: cwd, Files: files, CallID: "call_1", ToolName: name, Output: s.output, Emit: func(event.Body) {},
		Judge: func(a policy.Action) policy.Verdict {
			return pol.Decide(policy.Call{Tool: name, Actions: []policy.Action{a}})
		},
		Commands: tools.Commands{RunID: session.NewRunID(), Environ: a.environ(), Remove: append(model.KeyNames(cfg.Providers), cfg.Redact...), Environment: cfg.ShellEnvironment,
			Shell: cfg.Shell, AllowLogin: cfg.AllowLoginShell, Timeout: s.limits.Tool, Grace: graceOfCommands, Sandbox: box}}
	stopping.runID.Store(&env.Commands.RunID)
	defer tools.Sweep(env.Commands.RunID)
	return a.judgeAndCall(ctx, t, env, pol, string(input))
}

// readInput reads the input of a tool from standard input. Half of it would be
// another input, so too much of it is an error.
func (a *app) readInput() ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(a.stdin, maxPrompt+1))
	why := ""
	switch {
	case err != nil:
		why = osReason(err)
	case len(data) > maxPrompt:
		why = "it is larger than 64 MiB"
	default:
		return data, nil
	}
	return nil, &fault.Error{Code: "input_unreadable", What: "the tool's input cannot be read", Why: why, Exit: fault.Usage, Err: err}
}

func (a *app) judgeAndCall(ctx context.Context, t tools.Tool, env tools.Env, pol *policy.Policy, input string) error {
	spec := t.Spec()
	call, err := t.Prepare(env, tools.Input{Text: input, Freeform: spec.Kind == tools.Freeform})
	if err == nil {
		if err := judge(pol, spec.Name, call.Args, call.Actions); err != nil {
			return err
		}
	}
	if spec.Name == "apply_patch" && (err == nil || !isPatch(input)) {
		// The form that scripts know: exit 0, 1 or 2, its own messages, and
		// nothing is checked before the first file but the policy.
		var messages bytes.Buffer
		code := patch.Main(env.Cwd, nil, strings.NewReader(input), a.stdout, &messages)
		_, _ = a.stderr.Write(a.redact.Bytes(messages.Bytes())) // there is nowhere left to tell of it
		return exitCode(code)
	}
	if err != nil {
		if _, err := fmt.Fprintln(a.stdout, err); err != nil {
			return err
		}
		return exitWith{fault.Failed}
	}
	res, err := call.Run(ctx, env)
	if err != nil {
		return fmt.Errorf("call %s: %w", spec.Name, err)
	}
	if _, err := fmt.Fprintln(a.stdout, res.Text); err != nil {
		return err
	}
	if res.IsError {
		return exitWith{fault.Failed}
	}
	return nil
}

// isPatch tells whether there is anything in the input that could be applied.
// What is a patch and was not judged must not be.
func isPatch(input string) bool {
	p, err := patch.Parse(input)
	return err == nil && len(p.Sections) > 0
}

// exitCode is the error that ends the process with a code; 0 is none.
func exitCode(code int) error {
	if code == 0 {
		return nil
	}
	return exitWith{fault.Exit(code)}
}

// judge asks the policy and returns the refusal as an error.
func judge(pol *policy.Policy, tool string, args json.RawMessage, actions []policy.Action) error {
	v := pol.Decide(policy.Call{Tool: tool, Args: args, Actions: actions})
	if v.Effect == policy.Allow {
		return nil
	}
	why := "by the policy's default"
	if v.RuleID != "" {
		why = "by the rule " + v.RuleID
	}
	if v.Reason != "" {
		why += ": " + v.Reason
	}
	return &fault.Error{Code: "denied", What: tool + " is refused", Why: why, Fix: "allow it in a policy file, or with --allow RULE", Exit: fault.Blocked}
}
