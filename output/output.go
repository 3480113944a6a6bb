// Package output shows runs: it opens the formats and prints errors.
//
// A format is a sink in a package of its own; the table here is the one place
// that knows them all, and the help text is made from it. Formats see events
// and nothing else. This package decides nothing about runs; it writes only to
// the writers it is given.
package output

import (
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/mattn/go-isatty"

	"drover/output/event"
	"drover/output/fault"
	"drover/output/internal/term"
	"drover/output/json"
	"drover/output/jsonl"
	"drover/output/lines"
	"drover/output/text"
)

// Options say how a format for people looks; others ignore them.
type Options struct {
	// Width is that of the terminal, in cells; 0 means 80.
	Width int
	// Color uses colours, ASCII no character outside ASCII.
	Color, ASCII bool
}

// format is one row of the table.
type format struct {
	name, help string
	// level is how much of the stream the format wants.
	level event.Level
	open  func(w io.Writer, o Options) event.Sink
}

var formats = []format{
	{"jsonl", "the event stream, one JSON object per line", event.Default,
		func(w io.Writer, _ Options) event.Sink { return jsonl.New(w) }},
	{"lines", "rows for people, printed once", event.Full,
		func(w io.Writer, o Options) event.Sink { return lines.New(w, lines.Options(o)) }},
	{"text", "the final answer only", event.Core,
		func(w io.Writer, _ Options) event.Sink { return text.New(w) }},
	{"json", "the last event only", event.Core,
		func(w io.Writer, _ Options) event.Sink { return json.New(w) }},
}

// Names lists the formats in the order of the manual.
func Names() []string {
	var names []string
	for _, f := range formats {
		names = append(names, f.name)
	}
	return names
}

// Open returns a format that writes to w, and the level of the stream that it
// wants. An unknown name is a fault of class Usage.
func Open(name string, w io.Writer, o Options) (event.Sink, event.Level, error) {
	for _, f := range formats {
		if f.name == name {
			return f.open(w, o), f.level, nil
		}
	}
	return nil, 0, &fault.Error{
		Code: "unknown_format", What: fmt.Sprintf("format %q is not known", name),
		Fix: "use one of: " + strings.Join(Names(), ", "), Exit: fault.Usage,
	}
}

// Auto is the format that stdout gets when none is chosen: JSON lines, unless
// it is a terminal.
func Auto(stdout *os.File, _ func(string) string) string {
	if IsTerminal(stdout) {
		return "lines"
	}
	return "jsonl"
}

// IsTerminal tells whether f is a terminal.
func IsTerminal(f *os.File) bool {
	return f != nil && (isatty.IsTerminal(f.Fd()) || isatty.IsCygwinTerminal(f.Fd()))
}

// PrintError prints an error for a person: one line, and the fix below it.
// Text from outside is cleaned first.
func PrintError(w io.Writer, e *fault.Error) {
	clean := fault.Error{What: term.Label(e.What), Why: oneLine(e.Why), Fix: oneLine(e.Fix)}
	fmt.Fprintln(w, "drover: "+clean.Text())
}

// Clean makes one line of untrusted text safe to print.
func Clean(s string) string { return term.Label(s) }

// oneLine keeps the line breaks of our own lists and cleans each line.
func oneLine(s string) string {
	parts := strings.Split(s, "\n")
	for i, p := range parts {
		parts[i] = term.Label(p)
	}
	return strings.Join(parts, "\n  ")
}
