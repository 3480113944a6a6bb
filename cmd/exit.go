package cmd

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"drover/output/event"
	"drover/output/fault"
	"drover/runner"
	"drover/runner/session"
)

// asFault gives every error a class. What a command's own work returns has one
// already, see classify; what comes from cobra without one is a usage error.
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

// classify makes every command return errors that have a class.
func classify(c *cobra.Command) {
	if work := c.RunE; work != nil {
		c.RunE = func(c *cobra.Command, args []string) error { return classified(work(c, args)) }
	}
	for _, sub := range c.Commands() {
		classify(sub)
	}
}

// classified gives an error of a command's work its class. The commands leave
// only the errors of writing their product without one.
func classified(err error) error {
	var (
		f     *fault.Error
		quiet exitWith
		stop  *runner.Stop
		write *os.PathError
	)
	switch {
	case err == nil, errors.As(err, &f), errors.As(err, &quiet), errors.As(err, &stop):
		return err
	case errors.Is(err, syscall.EPIPE):
		return exitWith{fault.ClosedOutput}
	case errors.As(err, &write) && write.Op == "write":
		return outputFailed(err)
	}
	return fault.From(err)
}

// outputFailed is the error of a stdout that cannot be written.
func outputFailed(err error) *fault.Error {
	return &fault.Error{Code: "output_failed", What: "standard output cannot be written", Why: osReason(err), Exit: fault.Environment}
}

// watchedOut keeps the first error of what cobra prints, which cobra drops.
type watchedOut struct {
	w      io.Writer
	failed error
}

func (o *watchedOut) Write(b []byte) (int, error) {
	n, err := o.w.Write(b)
	if err != nil && o.failed == nil {
		o.failed = err
	}
	return n, err
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
