package tools

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"drover/tools/policy"
)

// localShell is shell in the form of an API that has a command tool of its own.
var localShell = nativeShell{limited{fallback: shellTimeout, Tool: New(Def[localShellInput]{
	Name:     "local_shell",
	Doc:      "Runs a program with its arguments and returns its output. No shell is involved unless you name one.",
	Command:  true,
	Reads:    true,
	Writes:   true,
	Runs:     true,
	Connects: true,
	Approval: "on-failure",
	Check:    localShellInput.check,
	Redirect: func(in localShellInput, env Env) (*Call, error) {
		return redirectPatch(in.Command, env.abs(in.WorkingDirectory), env)
	},
	Display: func(in localShellInput, _ Env) string { return "run: " + shownArgv(in.argv()) },
	Actions: func(in localShellInput, env Env) ([]policy.Action, error) {
		return []policy.Action{policy.Exec(env.abs(in.WorkingDirectory), in.argv()...)}, nil
	},
	Run: func(ctx context.Context, in localShellInput, env Env) (Result, error) {
		argv := in.argv()
		c := shellArgs{Workdir: in.WorkingDirectory, TimeoutMS: in.TimeoutMS}.command(env, shownArgv(argv), argv, shellExtra{})
		return c.runShell(ctx, env, "local_shell", jsonLayout)
	},
})}}

// nativeShell is a tool that one API offers by its kind alone.
type nativeShell struct{ limited }

// Spec describes the tool.
func (t nativeShell) Spec() Spec {
	s := t.limited.Spec()
	s.Kind = LocalShell
	return s
}

// localShellInput is the action of the API.
type localShellInput struct {
	Type             string            `json:"type,omitempty" jsonschema:"exec"`
	Command          []string          `json:"command" jsonschema:"The program and its arguments."`
	WorkingDirectory string            `json:"working_directory,omitempty" jsonschema:"Folder; default: the working folder."`
	TimeoutMS        uint              `json:"timeout_ms,omitempty" jsonschema:"Ends the command after this time; default: 10000."`
	Env              map[string]string `json:"env,omitempty" jsonschema:"Variables to set."`
	User             string            `json:"user,omitempty" jsonschema:"Leave it out."`
}

func (in localShellInput) check(Env) error {
	switch {
	case in.Type != "" && in.Type != "exec":
		return fmt.Errorf("the type %q is unknown; send exec", in.Type)
	case len(in.Command) == 0:
		return errors.New("command args are empty")
	case in.User != "":
		return errors.New("user is not offered: commands run as the user who started the run. Leave it out")
	case len(in.Env) > 0 && strings.Contains(in.Command[0], "="):
		return errors.New("a program whose name holds = cannot be given variables; leave env out")
	}
	for name, value := range in.Env {
		if !variableName().MatchString(name) || strings.Contains(value, "\x00") {
			return fmt.Errorf("env: %q is no name of a variable, or its value holds a zero byte", name)
		}
	}
	return nil
}

// argv is the command with its variables in front of it, so that the policy
// judges them as it judges the same words of a shell.
func (in localShellInput) argv() []string {
	if len(in.Env) == 0 {
		return in.Command
	}
	argv := []string{"env"}
	for _, name := range slices.Sorted(maps.Keys(in.Env)) {
		argv = append(argv, name+"="+in.Env[name])
	}
	return append(argv, in.Command...)
}
