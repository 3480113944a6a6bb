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
	TTY             bool   `json:"tty,omitempty" jsonschema:"Run in a terminal that write_stdin types into."`
	YieldTimeMS     *uint  `json:"yield_time_ms,omitempty" jsonschema:"Wait for the end; default: 10000."`
	TimeoutMS       uint   `json:"timeout_ms,omitempty" jsonschema:"Ends the command after this time; default: none."`
	MaxOutputTokens uint   `json:"max_output_tokens,omitempty" jsonschema:"Cuts the output to fewer tokens than the default."`
	Shell           string `json:"shell,omitempty" jsonschema:"bash, zsh or sh."`
	Justification   string `json:"justification,omitempty" jsonschema:"Why, in a few words, for the log."`

	extra execExtra
}

// execExtra are arguments that models know from elsewhere and that are not
// offered.
type execExtra struct {
	Login *bool `json:"login"`
	escalation
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
	case in.TTY && env.Commands.Sessions == nil:
		return errors.New("tty is not offered: no session outlives a call here. Leave it out; the command then runs without a terminal, to its end, so use the program's non-interactive mode")
	}
	return in.extra.check(env)
}

func (x execExtra) check(env Env) error {
	if x.Login != nil && *x.Login && !env.Commands.AllowLogin {
		return errors.New("login shells are disabled by the config; leave login out")
	}
	return x.escalation.check(env)
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
	limit := env.Output.AtMost(tokens(in.MaxOutputTokens))
	c := command{
		text: in.Cmd, argv: in.argv(env), dir: env.abs(in.Workdir), description: in.Justification,
		timeout: env.limit(milliseconds(in.TimeoutMS)), forced: plainOutput, tty: in.TTY, output: limit,
	}
	var notes []string
	var r CommandResult
	var err error
	if s := env.Commands.Sessions; s == nil {
		r, err = c.run(ctx, env)
	} else {
		r, notes, err = c.runYielding(ctx, env, clampYield(in.YieldTimeMS, defaultYield, minYield, maxYield))
	}
	if err != nil {
		return startFailed("exec_command", c.argv, err)
	}
	return execResult(r, limit, notes), nil
}

// earlyExit is how long a command is awaited before it becomes a session.
const earlyExit = 150 * time.Millisecond

// runYielding runs the command until it is over or the time is up, and leaves
// it running in a session then. The end of ctx does not end it.
func (c command) runYielding(ctx context.Context, env Env, yield time.Duration) (r CommandResult, notes []string, err error) {
	began := time.Now()
	s := env.Commands.Sessions
	id, opened, err := s.start(c, env)
	if err != nil {
		return r, nil, err
	}
	opened.sleep(ctx, s, earlyExit)
	if !opened.isOver() {
		// It is in the table before the long wait, so that it is not lost if the
		// call is cut off.
		s.open(id, opened)
		opened.sleep(ctx, s, yield-time.Since(began))
	}
	if r = opened.report(s, id); r.over {
		return r, nil, nil
	}
	r.Duration = time.Since(began)
	if warning := crowded(s.rest(opened)); warning != "" {
		notes = append(notes, warning)
	}
	return r, notes, nil
}

// execResult is the result of a call that has run or watched a command. A
// command that still runs has a session instead of an exit code.
func execResult(r CommandResult, limit Limit, notes []string) Result {
	state := fmt.Sprintf("Process exited with code %d", r.ExitCode)
	if r.session > 0 {
		state = fmt.Sprintf("Process running with session ID %d", r.session)
	}
	lines := []string{
		"Chunk ID: " + randomHex(3),
		fmt.Sprintf("Wall time: %.4f seconds", r.Duration.Seconds()),
		state,
		fmt.Sprintf("Original token count: %d", (r.OutputBytes+bytesPerToken-1)/bytesPerToken),
	}
	lines = append(append(append(lines, r.notes()...), notes...), "Output:", limit.Formatted(r.Text))
	return r.failed(r.result(strings.Join(lines, "\n"), !limit.Fits(r.Text)))
}

// tokens is a number of tokens that a model names.
func tokens(n uint) int { return int(min(n, 1<<30)) }

// startFailed is the result for a command that could not be started, or the
// error if no other can be started either. Neither the command nor the error
// holds the environment.
func startFailed(tool string, argv []string, err error) (Result, error) {
	if endsRun(err) {
		return Result{}, err
	}
	res := Fail("not_started", fmt.Sprintf("%s failed for `%s`: %v", tool, display(quoteArgv(argv)), err))
	res.Display = firstLine(err.Error())
	return res, nil
}

// maxMilliseconds is about three years, which no run reaches; more would
// overflow a duration in the end.
const maxMilliseconds = 100_000_000_000

func milliseconds(n uint) time.Duration {
	return time.Duration(min(n, maxMilliseconds)) * time.Millisecond
}

// limited tells how long the calls of a command tool may take, and what they ask
// for beyond the sandbox.
type limited struct {
	Tool
	// fallback is the timeout of a call that names none.
	fallback time.Duration
}

// Prepare adds both to the calls that run a command.
func (t limited) Prepare(env Env, in Input) (*Call, error) {
	call, err := t.Tool.Prepare(env, in)
	if err != nil || len(call.Actions) == 0 || call.Actions[0].Kind != policy.KindExec {
		return call, err
	}
	var args struct {
		TimeoutMS uint `json:"timeout_ms"`
		Timeout   uint `json:"timeout"`
		wanted
	}
	if err := json.Unmarshal(call.Args, &args); err != nil {
		return call, nil // another tool's fields of these names
	}
	call.Timeout = env.limit(orDefault(args.TimeoutMS, args.Timeout, t.fallback))
	call.Wants = args.wants()
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
