package tools

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"drover/tools/policy"
)

// checkCommand runs a command that must succeed after the final answer. The
// runner calls it under its name; it is not offered.
var checkCommand = limited{Tool: New(Def[checkInput]{
	Name:     "check",
	Doc:      "Runs a command that must succeed.",
	Hidden:   true,
	Reads:    true,
	Writes:   true,
	Runs:     true,
	Connects: true,
	Approval: "on-failure",
	Check: func(in checkInput, _ Env) error {
		if strings.TrimSpace(in.Cmd) == "" {
			return errors.New("cmd is empty; send the command to run")
		}
		return nil
	},
	Display: func(in checkInput, _ Env) string { return "check: " + in.Cmd },
	Actions: func(in checkInput, env Env) ([]policy.Action, error) {
		return []policy.Action{policy.Exec(env.Cwd, env.Commands.shellArgv("", in.Cmd, false)...)}, nil
	},
	Run: runCheck,
})}

type checkInput struct {
	Cmd string `json:"cmd" jsonschema:"Script for the shell."`
}

func runCheck(ctx context.Context, in checkInput, env Env) (Result, error) {
	r, err := RunCommand(ctx, env, in.Cmd, CommandOptions{Description: display("check: " + in.Cmd)})
	if err != nil {
		return startFailed("check", env.Commands.shellArgv("", in.Cmd, false), err)
	}
	lines := []string{fmt.Sprintf("Process exited with code %d", r.ExitCode)}
	lines = append(append(lines, r.notes()...), "Output:", env.Output.Formatted(r.Text))
	res := r.failed(r.result(strings.Join(lines, "\n"), !env.Output.Fits(r.Text)))
	if r.ExitCode != 0 && !res.IsError {
		res.IsError, res.Code = true, "exit_code"
	}
	return res, nil
}
