package tools

import (
	"context"
	_ "embed" // for the description
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"drover/tools/policy"
)

//go:embed exec.md
var execDoc string

// execCommand runs a script in a shell. A failing script is a result like any
// other; only one that could not be started, or was cut off, is an error.
var execCommand = limited{Tool: New(Def[execInput]{
	Name:     "exec_command",
	Doc:      execDoc,
	Parallel: true,
	Command:  true,
	Reads:    true,
	Writes:   true,
	Runs:     true,
	Connects: true,
	Approval: "on-failure",
	Check:    execInput.check,
	Redirect: func(in execInput, env Env) (*Call, error) {
		return redirectPatch(in.argv(env), env.abs(in.Workdir), env)
	},
	Display: func(in execInput, _ Env) string { return "run: " + in.Cmd },
	Actions: func(in execInput, env Env) ([]policy.Action, error) {
		return []policy.Action{policy.Exec(env.abs(in.Workdir), in.argv(env)...)}, nil
	},
	Run: runExec,
})}

type execInput struct {
	Cmd             string `json:"cmd" jsonschema:"Script for the shell."`
	Workdir         string `json:"workdir,omitempty" jsonschema:"Folder; default: the working folder."`
	TimeoutMS       uint   `json:"timeout_ms,omitempty" jsonschema:"Ends the command after this time; default: none."`
	MaxOutputTokens uint   `json:"max_output_tokens,omitempty" jsonschema:"Cuts the output to fewer tokens than the default."`
	Shell           string `json:"shell,omitempty" jsonschema:"bash, zsh or sh."`
	Justification   string `json:"justification,omitempty" jsonschema:"Why, in a few words, for the log."`

	extra execExtra
}

// execExtra are arguments that models know from elsewhere and that are not
// offered.
type execExtra struct {
	Login                 *bool           `json:"login"`
	TTY                   bool            `json:"tty"`
	SandboxPermissions    string          `json:"sandbox_permissions"`
	AdditionalPermissions json.RawMessage `json:"additional_permissions"`
}

// UnmarshalJSON reads also what is not offered.
func (in *execInput) UnmarshalJSON(b []byte) error {
	type offered execInput
	if err := json.Unmarshal(b, (*offered)(in)); err != nil {
		return err
	}
	return json.Unmarshal(b, &in.extra)
}

func (in execInput) check(env Env) error {
	switch {
	case strings.TrimSpace(in.Cmd) == "":
		return errors.New("cmd is empty; send the script to run")
	case in.extra.TTY:
		return errors.New("tty is not offered: there are no PTY sessions here. Leave it out; the command then runs without a terminal, to its end, so use the program's non-interactive mode")
	}
	return in.extra.check(env)
}

func (x execExtra) check(env Env) error {
	switch {
	case x.Login != nil && *x.Login && !env.Commands.AllowLogin:
		return errors.New("login shells are disabled by the config; leave login out")
	case x.SandboxPermissions != "" && x.SandboxPermissions != "use_default":
		return fmt.Errorf("sandbox_permissions %q is not offered: the policy alone decides what a command may do. Leave it out", x.SandboxPermissions)
	case len(x.AdditionalPermissions) > 0 && string(x.AdditionalPermissions) != "null":
		return errors.New("additional_permissions is not offered: the policy alone decides what a command may do. Leave it out")
	}
	return nil
}

// login tells whether to start a login shell: as asked, else if allowed at all.
func (x execExtra) login(env Env) bool {
	if x.Login != nil {
		return *x.Login
	}
	return env.Commands.AllowLogin
}

func (in execInput) argv(env Env) []string {
	return env.Commands.shellArgv(in.Shell, in.Cmd, in.extra.login(env))
}

func runExec(ctx context.Context, in execInput, env Env) (Result, error) {
	c := command{
		text: in.Cmd, argv: in.argv(env), dir: env.abs(in.Workdir), description: in.Justification,
		timeout: env.Commands.limit(milliseconds(in.TimeoutMS)), forced: plainOutput,
	}
	r, err := c.run(ctx, env)
	if err != nil {
		return startFailed("exec_command", c.argv, err), nil
	}
	limit := env.Output.AtMost(int(min(in.MaxOutputTokens, 1<<30)))
	head := []string{
		"Chunk ID: " + randomHex(3),
		fmt.Sprintf("Wall time: %.4f seconds", r.Duration.Seconds()),
		fmt.Sprintf("Process exited with code %d", r.ExitCode),
		fmt.Sprintf("Original token count: %d", (r.OutputBytes+bytesPerToken-1)/bytesPerToken),
	}
	head = append(append(head, r.notes(c.timeout)...), "Output:", limit.Formatted(r.Text))
	res := r.result(strings.Join(head, "\n"), !limit.Fits(r.Text))
	if r.TimedOut {
		res.IsError, res.Code = true, "timeout"
	}
	return res, nil
}

// startFailed is the result for a command that could not be started. Neither
// the command nor the error holds the environment.
func startFailed(tool string, argv []string, err error) Result {
	res := Fail("not_started", fmt.Sprintf("%s failed for `%s`: %v", tool, display(quoteArgv(argv)), err))
	res.Display = firstLine(err.Error())
	return res
}

// maxMilliseconds is about three years, which no run reaches; more would
// overflow a duration in the end.
const maxMilliseconds = 100_000_000_000

func milliseconds(n uint) time.Duration {
	return time.Duration(min(n, maxMilliseconds)) * time.Millisecond
}

// limited tells how long the calls of a command tool may take.
type limited struct {
	Tool
	// fallback is the timeout of a call that names none.
	fallback time.Duration
}

// Prepare adds the timeout to the calls that run a command.
func (t limited) Prepare(env Env, in Input) (*Call, error) {
	call, err := t.Tool.Prepare(env, in)
	if err != nil || len(call.Actions) == 0 || call.Actions[0].Kind != policy.KindExec {
		return call, err
	}
	var args struct {
		TimeoutMS uint `json:"timeout_ms"`
		Timeout   uint `json:"timeout"`
	}
	if err := json.Unmarshal(call.Args, &args); err != nil {
		args.TimeoutMS, args.Timeout = 0, 0 // another tool's field of that name
	}
	call.Timeout = env.Commands.limit(orDefault(args.TimeoutMS, args.Timeout, t.fallback))
	return call, nil
}

// orDefault is the timeout that a call names, under either name.
func orDefault(timeoutMS, timeout uint, fallback time.Duration) time.Duration {
	switch {
	case timeoutMS > 0:
		return milliseconds(timeoutMS)
	case timeout > 0:
		return milliseconds(timeout)
	}
	return fallback
}
