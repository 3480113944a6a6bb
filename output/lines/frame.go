package lines

import (
	"strings"
	"time"

	"drover/output/event"
	"drover/output/internal/term"
)

type state int

// The states of a frame. Only what is final is printed.
const (
	open state = iota
	done
	failed
	denied
	cancelled
	incomplete
)

// frame is one call.
type frame struct {
	id, name, display string
	state             state
	started, ended    time.Time
	took              time.Duration
	output            *term.Discipline
	// command says that the call ran one; exitCode is nil after a signal.
	command  bool
	exitCode *int
	signal   string
	timedOut bool
	// rule, decidedBy and reason are those of the decision.
	rule, decidedBy, reason string
	result                  event.ToolResultEvent
	plan                    []event.PlanItem
	// minutes is for how long it was said to be still running.
	minutes int
}

func (f *frame) finish(r event.ToolResultEvent, now time.Time) {
	if f.state != open {
		return
	}
	f.result, f.ended = r, now
	f.took = time.Duration(r.DurationMS) * time.Millisecond
	switch {
	case r.Denied:
		f.state = denied
	case r.IsError:
		f.state = failed
	default:
		f.state = done
	}
	if r.Error != nil && r.Error.Code == "timeout" {
		f.timedOut = true
	}
	if f.name == "" {
		f.name = r.ToolName
	}
}

// preview is the display without its verb, which the tool's name repeats.
func (f *frame) preview() string {
	verb, rest, ok := strings.Cut(f.display, ": ")
	if ok && len(verb) <= 20 && !strings.ContainsAny(verb, "`\"'/=") {
		return rest
	}
	if f.display == f.name {
		return ""
	}
	return f.display
}

// tail is what must be seen below the row: the end of the output of a command
// that failed, the text of an error, the reason of a refusal, the plan.
func (f *frame) tail() (lines []string, earlier int) {
	const most = 5
	switch {
	case f.state == denied:
		if f.reason != "" {
			return []string{term.Label(f.reason)}, 0
		}
		return nil, 0
	case f.state == done && !f.badExit():
		return nil, 0
	}
	lines, total := f.output.Tail(most)
	if total == 0 && f.state == failed {
		for line := range strings.Lines(f.result.Content) {
			total++
			if len(lines) < most {
				lines = append(lines, term.Label(strings.TrimSuffix(line, "\n")))
			}
		}
		return lines, 0
	}
	return lines, total - len(lines)
}

func (f *frame) badExit() bool {
	return f.command && (f.exitCode == nil || *f.exitCode != 0)
}
