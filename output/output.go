// Package output shows runs: it opens the formats and prints errors.
//
// A format is a sink in a package of its own; the table here is the one place
// that knows them all, and the help text is made from it. Formats see events
// and nothing else. This package decides nothing about runs; it writes only to
// the writers it is given and to the files it is told to open.
package output

import (
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"

	"github.com/mattn/go-isatty"

	"drover/output/event"
	"drover/output/fault"
	"drover/output/frame"
	"drover/output/internal/board"
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
	// Agents shows the calls of sub-agents one by one, Reasoning what the model
	// thinks.
	Agents, Reasoning bool
	// Clock is that of the run that is shown; nil is the system's.
	Clock Clock
}

// show is what is shown beside what everybody sees.
func (o Options) show() board.Show { return board.Show{Agents: o.Agents, Reasoning: o.Reasoning} }

// Clock tells the time of the run that is shown.
type Clock = frame.Clock

// Format is what there is to know of a format before it is opened.
type Format struct {
	// Name is what --format takes, Help one line without a full stop.
	Name, Help string
	// Level is how much of the stream the format wants; only jsonl shows it
	// all, and so may be given less or more.
	Level event.Level
	open  func(w io.Writer, o Options) (event.Sink, error)
}

// formats is in the order of the manual.
var formats = []Format{
	{"jsonl", "the event stream, one JSON object per line", event.Default,
		func(w io.Writer, _ Options) (event.Sink, error) { return jsonl.New(w), nil }},
	{"frames", "a region at the bottom of the terminal that follows the run", event.Full, openFrames},
	{"lines", "rows for people, printed once", event.Full,
		func(w io.Writer, o Options) (event.Sink, error) {
			return lines.New(w, lines.Options{Width: o.Width, Color: o.Color, ASCII: o.ASCII, Show: o.show()}), nil
		}},
	{"text", "the final answer only", event.Core,
		func(w io.Writer, _ Options) (event.Sink, error) { return text.New(w, cleaner(w)), nil }},
	{"json", "the last event only", event.Core,
		func(w io.Writer, _ Options) (event.Sink, error) { return json.New(w), nil }},
}

// openFrames draws on the terminal that w is.
func openFrames(w io.Writer, o Options) (event.Sink, error) {
	f, ok := w.(*os.File)
	if !ok || !IsTerminal(f) {
		return nil, noTerminal()
	}
	t, err := frame.NewTerminal(f)
	if err != nil {
		none := noTerminal()
		none.Why = "this terminal obeys no control sequences: " + err.Error()
		return nil, none
	}
	return frame.New(t, frame.Options{Color: o.Color, ASCII: o.ASCII, Show: o.show(), Clock: o.Clock}), nil
}

func noTerminal() *fault.Error {
	return &fault.Error{Code: "no_terminal", What: "frames cannot be shown", Why: "frames need a terminal", Fix: "use lines", Exit: fault.Usage}
}

// Formats returns the table of formats.
func Formats() []Format { return append([]Format(nil), formats...) }

// Names lists the formats in the order of the manual.
func Names() []string {
	var names []string
	for _, f := range formats {
		names = append(names, f.Name)
	}
	return names
}

// Open returns a format that writes to w, and the level of the stream that it
// wants. An unknown name is a fault of class Usage that lists the known ones, and
// so are frames where there is no terminal.
func Open(name string, w io.Writer, o Options) (event.Sink, event.Level, error) {
	f, err := find(name)
	if err != nil {
		return nil, 0, err
	}
	sink, err := f.open(w, o)
	return sink, f.Level, err
}

func find(name string) (Format, error) {
	for _, f := range formats {
		if f.Name == name {
			return f, nil
		}
	}
	return Format{}, &fault.Error{
		Code: "unknown_format", What: fmt.Sprintf("format %q is not known", name),
		Fix: "use one of: " + strings.Join(Names(), ", "), Exit: fault.Usage,
	}
}

// cleaner is what a text passes on its way to w: a terminal must not obey it.
func cleaner(w io.Writer) func(string) string {
	if f, ok := w.(*os.File); ok && IsTerminal(f) {
		return term.Text
	}
	return nil
}

// Auto is the format that stdout gets when none is chosen: JSON lines, unless
// it is a terminal. There it is frames, or lines where the terminal or the
// environment says that nothing can be drawn or that nobody is watching.
func Auto(stdout *os.File, getenv func(string) string) string {
	if !IsTerminal(stdout) {
		return "jsonl"
	}
	if kind := getenv("TERM"); runtime.GOOS != "windows" && (kind == "" || kind == "dumb") || InCI(getenv) {
		return "lines"
	}
	if !frame.CanDraw(stdout) {
		return "lines"
	}
	return "frames"
}

// InCI tells whether the variable CI says that nobody is watching: it is set
// to anything but nothing, 0 and false.
func InCI(getenv func(string) string) bool {
	switch strings.ToLower(getenv("CI")) {
	case "", "0", "false":
		return false
	}
	return true
}

// IsTerminal tells whether f is a terminal.
func IsTerminal(f *os.File) bool {
	return f != nil && (isatty.IsTerminal(f.Fd()) || isatty.IsCygwinTerminal(f.Fd()))
}

// SameTerminal tells whether both are one and the same terminal.
func SameTerminal(a, b *os.File) bool {
	if !IsTerminal(a) || !IsTerminal(b) {
		return false
	}
	of, err := a.Stat()
	if err != nil {
		return false
	}
	other, err := b.Stat()
	return err == nil && os.SameFile(of, other)
}

// ASCII tells whether f is a terminal that cannot be trusted with characters
// outside ASCII: the locale is not UTF-8, or it is the Linux console.
func ASCII(f *os.File, getenv func(string) string) bool {
	if !IsTerminal(f) {
		return false
	}
	if getenv("TERM") == "linux" {
		return true
	}
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if v := strings.ToLower(getenv(name)); v != "" {
			return !strings.Contains(v, "utf-8") && !strings.Contains(v, "utf8")
		}
	}
	return true
}

// PrintError prints an error for a person: one line, and the fix below it.
// Text from outside is cleaned first; line breaks of our own lists stay.
func PrintError(w io.Writer, e *fault.Error) {
	clean := fault.Error{What: Clean(e.What), Why: indented(e.Why), Fix: indented(e.Fix)}
	// There is nowhere left to tell that stderr cannot be written.
	_, _ = fmt.Fprintln(w, "drover: "+clean.Text())
}

// Clean makes untrusted text safe to print on one line.
func Clean(s string) string { return term.Label(s) }

func indented(s string) string { return strings.ReplaceAll(term.Lines(s), "\n", "\n  ") }
