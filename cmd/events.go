package cmd

import (
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"drover/output"
	"drover/output/event"
	"drover/output/fault"
)

func newEventsCmd(a *app) *cobra.Command {
	return group("events", "Check a recorded event stream, or show it", newEventsValidateCmd(a), newEventsRenderCmd(a))
}

func newEventsValidateCmd(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "validate FILE | -",
		Short: "Check the stream of one run against the schema and all guarantees",
		Long:  "Check the stream of one run: every line against the schema, and the stream as a whole\nagainst what drover guarantees (order, pairing, totals, line lengths). Problems go to\nstandard error with their lines. Exit 0 if there are none, 1 if there are.",
		Args:  exactArgs(1),
		RunE:  func(_ *cobra.Command, args []string) error { return validateEvents(a, args[0]) },
	}
}

// openStream opens a recorded stream; - is standard input.
func (a *app) openStream(path string) (io.ReadCloser, error) {
	if path == "-" {
		return io.NopCloser(a.stdin), nil
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, &fault.Error{Code: "input_unreadable", What: fmt.Sprintf("event stream %q cannot be read", path), Why: osReason(err), Exit: fault.Usage, Err: err}
	}
	return f, nil
}

// lineCounter counts the lines that are read through it.
type lineCounter struct {
	io.Reader
	lines int
	open  bool
}

func (c *lineCounter) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	for _, b := range p[:n] {
		c.open = b != '\n'
		if !c.open {
			c.lines++
		}
	}
	return n, err
}

// count includes a last line without a newline.
func (c *lineCounter) count() string {
	n := c.lines
	if c.open {
		n++
	}
	if n == 1 {
		return "1 line"
	}
	return fmt.Sprintf("%d lines", n)
}

func validateEvents(a *app, path string) error {
	f, err := a.openStream(path)
	if err != nil {
		return err
	}
	defer f.Close()
	src := &lineCounter{Reader: f}
	problems := event.CheckStream(src)
	name := output.Clean(path)
	for _, p := range problems {
		fmt.Fprintf(a.stderr, "%s: %s\n", name, output.Clean(p.Error()))
	}
	verdict := "valid, " + src.count()
	if len(problems) == 1 {
		verdict = "1 problem in " + src.count()
	} else if len(problems) > 1 {
		verdict = fmt.Sprintf("%d problems in %s", len(problems), src.count())
	}
	if _, err := fmt.Fprintf(a.stdout, "%s: %s\n", name, verdict); err != nil {
		return unwritten(err)
	}
	if len(problems) > 0 {
		return exitWith{fault.Failed}
	}
	return nil
}

// unwritten is the error of a product that stdout did not take.
func unwritten(err error) error {
	return &fault.Error{Code: "output_failed", What: "standard output cannot be written", Why: osReason(err), Exit: fault.Environment, Err: err}
}

// unread is the error of a stream that was opened and cannot be read.
func unread(err error) error {
	return &fault.Error{Code: "input_unreadable", What: "the event stream cannot be read", Why: osReason(err), Exit: fault.Usage, Err: err}
}
