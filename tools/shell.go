package tools

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"drover/tools/policy"
)

// The limits of shell and shell_command.
const (
	// shellTimeout ends a command that names no timeout.
	shellTimeout = 10 * time.Second
	// shellTimeoutCode is the exit code that a timeout is reported as.
	shellTimeoutCode = 124
	// shellLinger is how long the output of descendants is awaited.
	shellLinger = 2 * time.Second
)

// shellTool runs an argument vector, without a shell of its own.
var shellTool = limited{fallback: shellTimeout, Tool: New(Def[shellInput]{
	Name:     "shell",
	Doc:      "Runs a program with its arguments and returns its output. No shell is involved unless you name one: [\"bash\", \"-c\", \"…\"].",
	Parallel: true,
	Command:  true,
	Reads:    true,
	Writes:   true,
	Runs:     true,
	Connects: true,
	Approval: "on-failure",
	Check: func(in shellInput, env Env) error {
		if len(in.Command) == 0 {
			return errors.New("command args are empty")
		}
		return in.extra.check(env)
	},
	Redirect: func(in shellInput, env Env) (*Call, error) {
		return redirectPatch(in.Command, env.abs(in.Workdir), env)
	},
	Display: func(in shellInput, _ Env) string { return "run: " + shownArgv(in.Command) },
	Actions: func(in shellInput, env Env) ([]policy.Action, error) {
		return []policy.Action{policy.Exec(env.abs(in.Workdir), in.Command...)}, nil
	},
	Run: func(ctx context.Context, in shellInput, env Env) (Result, error) {
		c := in.shellArgs.command(env, shownArgv(in.Command), in.Command, in.extra)
		return c.runShell(ctx, env, "shell", jsonLayout)
	},
})}

// shellCommand runs a script in the session's shell.
var shellCommand = limited{fallback: shellTimeout, Tool: New(Def[shellCommandInput]{
	Name:     "shell_command",
	Doc:      "Runs a shell script and returns its output.",
	Parallel: true,
	Command:  true,
	Reads:    true,
	Writes:   true,
	Runs:     true,
	Connects: true,
	Approval: "on-failure",
	Check: func(in shellCommandInput, env Env) error {
		if strings.TrimSpace(in.Command) == "" {
			return errors.New("command is empty; send the script to run")
		}
		return in.extra.check(env)
	},
	Redirect: func(in shellCommandInput, env Env) (*Call, error) {
		return redirectPatch(in.argv(env), env.abs(in.Workdir), env)
	},
	Display: func(in shellCommandInput, _ Env) string { return "run: " + in.Command },
	Actions: func(in shellCommandInput, env Env) ([]policy.Action, error) {
		return []policy.Action{policy.Exec(env.abs(in.Workdir), in.argv(env)...)}, nil
	},
	Run: func(ctx context.Context, in shellCommandInput, env Env) (Result, error) {
		c := in.shellArgs.command(env, in.Command, in.argv(env), in.extra)
		return c.runShell(ctx, env, "shell_command", textLayout)
	},
})}

// shellArgs are the arguments that both tools have.
type shellArgs struct {
	Workdir       string `json:"workdir,omitempty" jsonschema:"Folder; default: the working folder."`
	TimeoutMS     uint   `json:"timeout_ms,omitempty" jsonschema:"Ends the command after this time; default: 10000."`
	Justification string `json:"justification,omitempty" jsonschema:"Why, in a few words, for the log."`
}

type shellInput struct {
	Command []string `json:"command" jsonschema:"The program and its arguments."`
	shellArgs

	extra shellExtra
}

type shellCommandInput struct {
	Command string `json:"command" jsonschema:"Script for the shell."`
	shellArgs

	extra shellExtra
}

// shellExtra are arguments that are understood but not offered.
type shellExtra struct {
	Timeout uint `json:"timeout"`
	execExtra
}

// UnmarshalJSON reads also what is not offered.
func (in *shellInput) UnmarshalJSON(b []byte) error {
	type offered shellInput
	if err := json.Unmarshal(b, (*offered)(in)); err != nil {
		return err
	}
	return json.Unmarshal(b, &in.extra)
}

// UnmarshalJSON reads also what is not offered.
func (in *shellCommandInput) UnmarshalJSON(b []byte) error {
	type offered shellCommandInput
	if err := json.Unmarshal(b, (*offered)(in)); err != nil {
		return err
	}
	return json.Unmarshal(b, &in.extra)
}

func (in shellCommandInput) argv(env Env) []string {
	return env.Commands.shellArgv("", in.Command, in.extra.login(env))
}

func (a shellArgs) command(env Env, text string, argv []string, extra shellExtra) command {
	return command{
		text: text, argv: argv, dir: env.abs(a.Workdir), description: a.Justification, split: true, linger: shellLinger,
		timeout: env.limit(orDefault(a.TimeoutMS, extra.Timeout, shellTimeout)),
	}
}

// shownArgv is a command as people read it: the script of a shell by itself.
func shownArgv(argv []string) string {
	if len(argv) == 3 && shellKind(argv[0]) != "" && (argv[1] == "-c" || argv[1] == "-lc") {
		return argv[2]
	}
	return quoteArgv(argv)
}

// layout is the text of a result: the exit code as reported, and the output.
// Notes follow the output, since the lines before it are fixed.
type layout func(code int, took time.Duration, output string, notes []string, limit Limit) string

// runShell runs the command and reports it the way both tools do: whatever is
// not exit code 0 is an error.
func (c command) runShell(ctx context.Context, env Env, tool string, lay layout) (Result, error) {
	r, err := c.run(ctx, env)
	if err != nil {
		return startFailed(tool, c.argv, err)
	}
	failure, output := "", r.Text
	switch {
	case r.TimedOut:
		failure, r.ExitCode = "timeout", shellTimeoutCode
		output = fmt.Sprintf("command timed out after %d milliseconds\n%s", r.Duration.Milliseconds(), output)
	case r.Canceled:
		failure = "cancelled"
	case r.Lost:
		failure = "lost"
	case r.Signal != "":
		failure = "signal"
	case r.ExitCode != 0:
		failure = "exit_code"
	}
	text := lay(r.ExitCode, r.Duration, output, r.lateNotes(), env.Output)
	if failure == "signal" {
		text = "execution error: the command was ended by signal " + r.Signal + "\n" + text
	}
	res := r.result(text, !env.Output.Fits(output))
	res.IsError, res.Code = failure != "", failure
	return res, nil
}

// noted puts notes below an output.
func noted(output string, notes []string) string {
	if len(notes) == 0 {
		return output
	}
	if output != "" && !strings.HasSuffix(output, "\n") {
		output += "\n"
	}
	return output + strings.Join(notes, "\n") + "\n"
}

func jsonLayout(code int, took time.Duration, output string, notes []string, limit Limit) string {
	type metadata struct {
		ExitCode        int     `json:"exit_code"`
		DurationSeconds float64 `json:"duration_seconds"`
	}
	room := limit.Recorded().budget()
	for {
		var out bytes.Buffer
		enc := json.NewEncoder(&out)
		enc.SetEscapeHTML(false)
		err := enc.Encode(struct {
			Output   string   `json:"output"`
			Metadata metadata `json:"metadata"`
		}{noted(limit.Formatted(output), notes), metadata{code, tenths(took)}})
		if err != nil {
			return output // a struct of strings and numbers always encodes
		}
		text := strings.TrimSuffix(out.String(), "\n")
		// Escapes make the text longer, and one that is cut again as it enters
		// the history would be no JSON any more.
		if len(text) <= room || limit.budget() == 1 {
			return text
		}
		limit = Limit{Bytes: max(1, limit.budget()*room/(len(text)+room/10))}
	}
}

func textLayout(code int, took time.Duration, output string, notes []string, limit Limit) string {
	head := fmt.Sprintf("Exit code: %d\nWall time: %s seconds\n", code, strconv.FormatFloat(tenths(took), 'f', -1, 64))
	cut := limit.Cut(output)
	if lines := lineCount(output); lines != lineCount(cut) {
		head += fmt.Sprintf("Total output lines: %d\n", lines)
	}
	return head + "Output:\n" + noted(cut, notes)
}

func tenths(d time.Duration) float64 { return math.Round(d.Seconds()*10) / 10 }
