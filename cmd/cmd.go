// Package cmd is the command line: flags, environment, wiring and the exit
// code.
//
// Every command is one file with a constructor newXCmd that binds flags to an
// options struct, and a function that does the work and returns an error. Main
// prints that error, in one place, and turns it into the exit code. What goes
// to stdout is a command's product: for run the chosen format and nothing
// else. Diagnostics go to stderr.
package cmd

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"drover/cmd/config"
	"drover/output"
	"drover/output/event"
	"drover/output/fault"
	"drover/runner"
	"drover/runner/model"
	"drover/tools/sandbox"
)

// Version is drover's version. A release sets it with -ldflags.
var Version = "0.1.0-dev"

// app is what every command shares: the three streams and the environment.
type app struct {
	stdin, stdout, stderr *os.File
	getenv                func(string) string
	environ               func() []string
	// debug prints the chain of causes below an error.
	debug bool
	// finished says that the stream on stdout already has its last line.
	finished bool
	// redact masks the secrets of the run in what goes to stderr.
	redact *event.Redactor
	// badHelp is why the help that was asked for does not exist.
	badHelp error
	// early is a helper that waits for the sandbox of a run; nil is none.
	early *sandbox.Early
	// screen is the format on stdout if it draws there, and nil otherwise.
	screen output.Screen
	// terminal is the one that the process belongs to, once it was needed.
	terminal *os.File
	// job are the flags of the list job that the run is, nil if it is none.
	job *jobOptions
	// run are the flags of run, as far as they could be read: the last line of
	// a run that could not start goes where they say.
	run runOptions
}

// exitWith ends the process with a code but without a message: the command has
// already said what there is to say.
type exitWith struct{ code fault.Exit }

func (e exitWith) Error() string { return e.code.Name() }

// Main runs the command line and returns the exit code of the process.
func Main(args []string, stdin, stdout, stderr *os.File) int {
	a := &app{stdin: stdin, stdout: stdout, stderr: stderr, getenv: os.Getenv, environ: os.Environ}
	// Anything may fail before the settings are read; until then the names of
	// variables have to do.
	a.redactor(redactNames(config.Early(a.getenv), &model.OpenedModel{}, a.environ()))
	root := newRootCmd(a)
	root.SetArgs(args)
	root.SetIn(stdin)
	out := &watchedOut{w: stdout}
	root.SetOut(out)
	root.SetErr(stderr)
	root.InitDefaultCompletionCmd()
	classify(root)
	err := root.ExecuteContext(context.Background())
	if err == nil {
		err = a.badHelp
	}
	if err == nil && out.failed != nil {
		err = classified(out.failed)
	}
	if err == nil {
		return int(fault.Success)
	}
	var quiet exitWith
	if errors.As(err, &quiet) {
		return int(quiet.code)
	}
	var stop *runner.Stop
	if errors.As(err, &stop) {
		if isRun(args) && !a.finished {
			within(patienceWithReader, func() { a.loneFinish(*stop) })
		}
		return int(stop.Exit)
	}
	f := asFault(err)
	a.printError(f)
	if a.debug && f.Err != nil {
		fmt.Fprintf(stderr, "  cause: %s\n", output.Clean(a.redact.String(f.Err.Error())))
	}
	if isRun(args) && !a.finished {
		a.loneFinish(*runner.StopFor(f))
	}
	return int(f.Exit)
}

// isRun tells whether the command line asks for a run, whose stream must have
// a last line whatever goes wrong.
func isRun(args []string) bool {
	var words []string
	for _, arg := range args {
		if !strings.HasPrefix(arg, "-") {
			words = append(words, arg)
		}
	}
	switch {
	case len(words) > 0 && words[0] == "run":
		return true
	case len(words) > 1 && words[0] == "jobs":
		return words[1] == "run" || words[1] == "retry" || words[1] == "worker"
	}
	return false
}

func newRootCmd(a *app) *cobra.Command {
	var version bool
	root := &cobra.Command{
		Use:           "drover",
		Short:         "Run coding agents where nobody is watching",
		Long:          "drover runs coding agents where nobody is watching: in CI, or behind\nanother program. Every action is decided by a policy file, every step is one\nevent in a JSONL stream, and the exit code tells the truth.",
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if version {
				return printVersion(a, "text")
			}
			return c.Help()
		},
	}
	root.Flags().BoolVar(&version, "version", false, "print the version")
	root.PersistentFlags().BoolVar(&a.debug, "debug", false, "print the chain of causes below an error")
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error { return usageError(c, err) })
	root.AddCommand(commands(a)...)
	root.SetHelpCommand(newHelpCmd())
	help := root.HelpFunc()
	root.SetHelpFunc(func(c *cobra.Command, args []string) {
		if c.HasSubCommands() {
			if a.badHelp = noArgs(c, c.Flags().Args()); a.badHelp != nil {
				return
			}
		}
		help(c, args)
	})
	return root
}

// newHelpCmd is cobra's command but for its exit code when there is no such
// command.
func newHelpCmd() *cobra.Command {
	return &cobra.Command{
		Use: "help [COMMAND]", Short: "Show the help of a command",
		RunE: func(c *cobra.Command, args []string) error {
			topic, rest, err := c.Root().Find(args)
			if err != nil {
				return usageError(c, err)
			}
			if topic.HasSubCommands() {
				if err := noArgs(topic, rest); err != nil {
					return err
				}
			}
			return topic.Help()
		},
	}
}

// usageError is the error of a command line that cannot be read.
func usageError(c *cobra.Command, err error) error {
	return &fault.Error{
		Code: "usage", What: "the command line cannot be read", Why: err.Error(),
		Fix: "see: " + c.CommandPath() + " --help", Exit: fault.Usage, Err: err,
	}
}

// noArgs and exactArgs refuse stray arguments with the right exit code.
func noArgs(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	if c.HasSubCommands() {
		why := fmt.Sprintf("unknown command %q", args[0])
		if near := c.SuggestionsFor(args[0]); len(near) > 0 {
			why += fmt.Sprintf(", did you mean %q?", near[0])
		}
		return usageError(c, errors.New(why))
	}
	return usageError(c, fmt.Errorf("unexpected argument %q", args[0]))
}

func exactArgs(n int) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if err := cobra.ExactArgs(n)(c, args); err != nil {
			return usageError(c, err)
		}
		return nil
	}
}

// group is a command that only holds others.
func group(use, short string, subs ...*cobra.Command) *cobra.Command {
	c := &cobra.Command{Use: use, Short: short, Args: noArgs, RunE: func(c *cobra.Command, _ []string) error {
		return usageError(c, errors.New("a sub-command is missing"))
	}}
	c.AddCommand(subs...)
	return c
}
