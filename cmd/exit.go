package cmd

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"drover/output/event"
	"drover/output/fault"
	"drover/runner"
	"drover/runner/session"
)

// asFault gives every error a class. What comes from the flag parser without
// one is a usage error.
func asFault(err error) *fault.Error {
	var f *fault.Error
	if errors.As(err, &f) {
		return f
	}
	return &fault.Error{
		Code: "usage", What: "the command line cannot be read", Why: err.Error(),
		Fix: "see: drover --help", Exit: fault.Usage, Err: err,
	}
}

// loneFinish writes the last line of a run that could not start.
func (a *app) loneFinish(stop runner.Stop) {
	log := event.New(event.Options{RunID: session.NewRunID(), Redact: a.redact})
	if err := a.attachFormats(log, nil); err != nil {
		// The chosen format itself is what is wrong: fall back to the default.
		a.run.format = "auto"
		if err := a.attachFormats(log, nil); err != nil {
			return
		}
	}
	if _, err := runner.Finish(log, runner.Outcome{End: stop}); err != nil {
		fmt.Fprintf(a.stderr, "drover: %s\n", a.redact.String(err.Error()))
	}
}

func newExitCodesCmd(a *app) *cobra.Command {
	var format string
	c := &cobra.Command{
		Use: "exit-codes", Short: "Print the exit codes and what they mean", Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error { return printExitCodes(a, format) },
	}
	c.Flags().StringVar(&format, "format", "text", "text or json")
	return c
}

func printExitCodes(a *app, format string) error {
	switch format {
	case "json":
		return json.NewEncoder(a.stdout).Encode(fault.Table())
	case "text":
		w := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
		fmt.Fprintln(w, "CODE\tNAME\tSTATUS\tWHEN\tRETRY HELPS")
		for _, r := range fault.Table() {
			fmt.Fprintf(w, "%d\t%s\t%s\t%s\t%s\n", r.Code, r.Name, r.Status, r.When, r.Retry)
		}
		return w.Flush()
	}
	return unknownFormat(format, "text", "json")
}

// unknownFormat is the error for a --format that a command does not have.
func unknownFormat(got string, known ...string) error {
	return &fault.Error{
		Code: "usage", What: fmt.Sprintf("format %q is not known", got),
		Fix: "use one of: " + strings.Join(known, ", "), Exit: fault.Usage,
	}
}
