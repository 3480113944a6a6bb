package approver

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"

	"drover/output/event"
)

// Output is how a program ended and what it printed.
type Output struct {
	// ExitCode is -1 when a signal ended the program, whose name is Signal.
	ExitCode int
	Signal   string
	// TimedOut says that its time was over.
	TimedOut bool
	// Stdout and Stderr are bounded; Cut says that there was more.
	Stdout, Stderr string
	Cut            bool
}

// Exec runs the approver's program to its end with input on its standard input.
type Exec func(ctx context.Context, input []byte) (Output, error)

// exitDeny is the exit code of a program that says no in its stderr.
const exitDeny = 2

type command struct{ exec Exec }

// Command asks by starting a program for each request. It reads the request as
// one line and answers with one line and exit code 0, or says no with exit code
// 2 and the reason on stderr. Everything else is an error.
func Command(exec Exec) Approver { return command{exec} }

// By returns approver.
func (command) By() event.Decider { return "approver" }

// Close does nothing: programs end with their request.
func (command) Close() error { return nil }

// Ask runs the program once.
func (c command) Ask(ctx context.Context, e event.Event) (Answer, error) {
	line, err := event.AppendJSON(nil, e)
	if err != nil {
		return Answer{}, fmt.Errorf("encode the request: %w", err)
	}
	out, err := c.exec(ctx, append(line, '\n'))
	switch {
	case ctx.Err() != nil:
		return Answer{}, context.Cause(ctx)
	case err != nil:
		return Answer{}, fmt.Errorf("the approver could not be started: %w", err)
	case out.TimedOut:
		return Answer{}, errors.New("the approver did not end in time")
	case out.ExitCode == exitDeny:
		return Answer{CorrelationID: requestID(e), Scope: "once", Reason: firstOf(strings.TrimSpace(out.Stderr), "the approver gave no reason")}, nil
	case out.Signal != "":
		return Answer{}, fmt.Errorf("the approver was ended by %s", out.Signal)
	case out.ExitCode != 0:
		return Answer{}, fmt.Errorf("the approver failed with exit code %d", out.ExitCode)
	case out.Cut:
		return Answer{}, errors.New("the approver printed too much")
	}
	return commandAnswer(out.Stdout, e)
}

// commandAnswer reads the one line that a program may print.
func commandAnswer(stdout string, e event.Event) (Answer, error) {
	text := bytes.TrimSpace([]byte(stdout))
	if len(text) == 0 {
		return Answer{}, errors.New("the approver printed no answer")
	}
	a, err := ParseAnswer(text)
	switch {
	case err != nil:
		return Answer{}, fmt.Errorf("the answer of the approver cannot be read: %w", err)
	case a.CorrelationID != requestID(e):
		return Answer{}, errors.New("the approver answered another request")
	case !a.answers(e):
		return Answer{}, errors.New("the approver's answer has the type of another request")
	}
	return a, nil
}

func firstOf(s, fallback string) string {
	if s == "" {
		return fallback
	}
	return cut(s, maxReason)
}
