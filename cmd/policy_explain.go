package cmd

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"drover/output/fault"
	"drover/tools"
	"drover/tools/policy"
)

func newPolicyExplainCmd(a *app) *cobra.Command {
	var o explainOptions
	c := &cobra.Command{
		Use:   "explain --exec CMD | --path ACCESS:FILE | --tool NAME --args JSON | --host HOST | --mcp SERVER/TOOL",
		Short: "Say what the policy decides about a call, by which rule and line",
		Long: `Judge one call under the policy that a run in this folder with these flags would have,
and print the verdict, what the call would do, and every rule that matches. Nothing is
run. A relative --path starts at the working folder. A word that is nowhere on PATH
counts as found, which is noted. Exit 0 for allow, 10 for deny, 11 for ask.`,
		Example: `  drover policy explain --exec 'git push --force'
  drover policy explain --policy ci.yaml --path write:src/a.go --path write:.env
  drover policy explain --tool spawn_agent --args '{"role":"reviewer"}' --agent /root/lead`,
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			a.run.set = c.Flags().Changed
			if err := o.check(); err != nil {
				return usageError(c, err)
			}
			return explainCall(a, &o)
		},
	}
	bindPolicyFlags(a, c)
	bindPlaceFlags(a, c)
	f := c.Flags()
	f.StringVar(&o.exec, "exec", "", "a script for the shell")
	f.StringArrayVar(&o.paths, "path", nil, "read:FILE, write:FILE or delete:FILE (repeatable: one call that touches them all)")
	f.StringVar(&o.tool, "tool", "", "a tool, with --args as its arguments")
	f.StringVar(&o.args, "args", "", "JSON arguments for --tool or --mcp")
	f.StringVar(&o.host, "host", "", "a host, as NAME or NAME:PORT")
	f.StringVar(&o.mcp, "mcp", "", "a tool of an MCP server, as SERVER/TOOL")
	f.StringVar(&o.agent, "agent", "", "the path of the agent that calls (default /root)")
	f.StringVar(&o.mode, "mode", "", "where the call is made: headless or tty (default headless)")
	f.StringVar(&o.format, "format", "text", "text or json")
	return c
}

type explainOptions struct {
	exec, tool, args, host, mcp, agent, mode, format string
	paths                                            []string

	test policy.Test
}

// check reads the flags into the call that they describe.
func (o *explainOptions) check() error {
	given := 0
	for _, set := range []bool{o.exec != "", len(o.paths) > 0, o.tool != "", o.host != "", o.mcp != ""} {
		if set {
			given++
		}
	}
	if given != 1 {
		return errors.New("give one call: --exec, --path, --tool, --host or --mcp")
	}
	if o.args != "" && o.tool == "" && o.mcp == "" {
		return errors.New("--args belongs to --tool or --mcp")
	}
	if o.args != "" && !json.Valid([]byte(o.args)) {
		return errors.New("--args is no JSON")
	}
	if server, tool, ok := strings.Cut(o.mcp, "/"); o.mcp != "" && (!ok || server == "" || tool == "") {
		return errors.New("--mcp is not SERVER/TOOL")
	}
	if strings.Contains(o.host, "/") {
		return errors.New("--host is a name or name:port, not a URL")
	}
	if o.agent != "" && !strings.HasPrefix(o.agent, "/") {
		return errors.New("--agent is a path such as /root/reviewer")
	}
	if o.mode != "" && o.mode != string(policy.ModeHeadless) && o.mode != string(policy.ModeTTY) {
		return errors.New("--mode is headless or tty")
	}
	if o.tool != "" && !policy.KnownTool(o.tool) && tools.Find(o.tool) == nil {
		return fmt.Errorf("there is no tool %q; see: drover tools list", o.tool)
	}
	o.test = policy.Test{Exec: o.exec, Tool: o.tool, Host: o.host, MCP: o.mcp, Agent: o.agent, Mode: policy.Mode(o.mode)}
	if o.args != "" {
		o.test.Args = json.RawMessage(o.args)
	}
	return o.readPaths()
}

func (o *explainOptions) readPaths() error {
	for _, text := range o.paths {
		access, name, _ := strings.Cut(text, ":")
		kind := policy.Kind(access)
		switch kind {
		case policy.KindRead, policy.KindWrite, policy.KindDelete:
		default:
			return fmt.Errorf("--path %s is not read:FILE, write:FILE or delete:FILE", text)
		}
		if name == "" {
			return fmt.Errorf("--path %s names no file", text)
		}
		if o.test.Paths == nil {
			o.test.Paths = map[policy.Kind][]string{}
		}
		o.test.Paths[kind] = append(o.test.Paths[kind], name)
	}
	return nil
}

// explained is a verdict as `policy explain --format json` prints it.
type explained struct {
	// Call is what was asked about, in words.
	Call string `json:"call"`
	policy.Explanation
	// Missing are the programs that were taken for found on PATH.
	Missing []string `json:"missing,omitempty"`
	SHA256  string   `json:"policy_sha256"`
}

func explainCall(a *app, o *explainOptions) error {
	if o.format != "text" && o.format != "json" {
		return unknownFormat(o.format, "text", "json")
	}
	j, err := a.judgingInForce()
	if err != nil {
		return err
	}
	call, err := j.call(o.test)
	if err != nil {
		return &fault.Error{Code: "invalid_call", What: fmt.Sprintf("the call of %s cannot be judged", o.test.Tool), Why: err.Error(),
			Fix: "see: drover tools show " + o.test.Tool, Exit: fault.Usage, Err: err}
	}
	e := j.explain(call, caseCall(o.test))
	if o.format == "json" {
		err = json.NewEncoder(a.stdout).Encode(e)
	} else {
		err = e.print(a.stdout)
	}
	if err != nil {
		return err
	}
	switch e.Effect {
	case policy.Deny:
		return exitWith{fault.Blocked}
	case policy.Ask:
		return exitWith{fault.NeedsInput}
	}
	return nil
}

func (j *judging) explain(call policy.Call, words string) *explained {
	e := &explained{Call: words, Explanation: j.policy.Explain(call), SHA256: j.policy.SHA256()}
	var programs []string
	for _, act := range e.Actions {
		if len(act.Argv) > 0 {
			programs = append(programs, act.Argv[0])
		}
	}
	e.Missing = j.path.absent(programs)
	return e
}

func (e *explained) print(w io.Writer) error {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintln(&b, clean(format, args...)) }
	line("%s: %s", e.Effect, e.Call)
	d := decided{By: e.DecidedBy, RuleID: e.RuleID, File: e.File, Line: e.Line}
	line("decided by %s%s", d.who(), because(e.Reason))
	switch e.Effect {
	case policy.Ask:
		line("without an answer it is refused (on_ask: %s, on_deny: %s)", e.OnAsk, e.OnDeny)
	case policy.Deny:
		line("on_deny: %s", e.OnDeny)
	default:
		e.printRights(line)
	}
	if len(e.Actions) > 0 {
		b.WriteByte('\n')
	}
	for i := range e.Actions {
		printAction(&e.Actions[i], line)
	}
	for _, name := range e.Missing {
		line("note: %q is nowhere on PATH here; it was taken for found", name)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// printRights says what the rules give the commands of an allowed call.
func (e *explained) printRights(line func(string, ...any)) {
	if e.Network {
		line("its commands have the network")
	}
	if e.Unsandboxed {
		line("its commands run outside the sandbox")
	}
	if e.TimeoutMS > 0 {
		line("its commands end after %v", time.Duration(e.TimeoutMS)*time.Millisecond)
	}
}

// printAction prints one action with every rule that matches it. The basis is
// told where no rule decided.
func printAction(a *policy.ExplainedAction, line func(string, ...any)) {
	where := ""
	if a.Real != "" {
		where = " (really " + a.Real + ")"
	}
	line("%-5s %s: %s%s", a.Effect, a.Kind, a.Action, where)
	switch {
	case a.RuleID != "":
	case a.Basis == "no_effect" && a.DecidedBy != "yolo":
		line("      it has no outside effect, and no rule stops it")
	case a.Basis == "known_safe":
		line("      by known_safe: it is known to only look")
	default:
		line("      by %s%s", basis(a), because(a.Reason))
	}
	for _, r := range a.Rules {
		note := ""
		switch {
		case r.Decides:
			note = "  <- decides" + because(a.Reason)
		case r.Possible:
			note = "  (may apply: the command cannot be fully read)"
		}
		line("      %-5s %s (%s, %s)%s", r.Effect, r.ID, place(r.File, r.Line), r.Layer, note)
	}
}

// basis is what decided where no rule did.
func basis(a *policy.ExplainedAction) string {
	if a.DecidedBy == "yolo" {
		return "--yolo"
	}
	return a.Basis
}
