package approver

import (
	"context"
	"errors"
	"strings"
	"testing"
)

func TestACommandIsBelievedOnlyWhenEverythingIsRight(t *testing.T) {
	for _, c := range []struct {
		name   string
		out    Output
		err    error
		yes    bool
		reason string
		wrong  string
	}{
		{name: "yes", out: Output{Stdout: yes("one") + "\r\n\n"}, yes: true},
		{name: "no", out: Output{Stdout: `{"v":1,"type":"tool.approval.response","correlation_id":"one","approved":false,"reason":"r"}`}, reason: "r"},
		{name: "exit 2", out: Output{ExitCode: 2, Stdout: yes("one"), Stderr: "not now\n"}, reason: "not now"},
		{name: "exit 2 in silence", out: Output{ExitCode: 2}, reason: "gave no reason"},
		{name: "exit 1", out: Output{ExitCode: 1, Stdout: yes("one")}, wrong: "exit code 1"},
		{name: "a signal", out: Output{ExitCode: -1, Signal: "SIGKILL", Stdout: yes("one")}, wrong: "SIGKILL"},
		{name: "too late", out: Output{ExitCode: -1, TimedOut: true}, wrong: "in time"},
		{name: "not started", err: errors.New("no such file"), wrong: "could not be started: no such file"},
		{name: "nothing", out: Output{Stdout: " \n"}, wrong: "no answer"},
		{name: "garbage", out: Output{Stdout: "OK " + yes("one")}, wrong: "no JSON object"},
		{name: "two answers", out: Output{Stdout: yes("one") + "\n" + yes("one")}, wrong: "something follows"},
		{name: "another request", out: Output{Stdout: yes("two")}, wrong: "another request"},
		{name: "another kind", out: Output{Stdout: `{"v":1,"type":"input.response","correlation_id":"one","answer":"yes"}`}, wrong: "type of another request"},
		{name: "too much", out: Output{Stdout: yes("one"), Cut: true}, wrong: "too much"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var input string
			a := Command(func(_ context.Context, in []byte) (Output, error) { input = string(in); return c.out, c.err })
			got, err := a.Ask(t.Context(), request("one"))
			if c.wrong != "" {
				if err == nil || !strings.Contains(err.Error(), c.wrong) || got.Approved {
					t.Errorf("got %+v, %v", got, err)
				}
				return
			}
			if err != nil || got.Approved != c.yes || !strings.Contains(got.Reason, c.reason) {
				t.Errorf("got %+v, %v", got, err)
			}
			if strings.Count(input, "\n") != 1 || !strings.Contains(input, `"correlation_id":"one"`) {
				t.Errorf("the program got %q", input)
			}
		})
	}
}

func TestAStoppedCommandIsNoAnswer(t *testing.T) {
	late := errors.New("late")
	ctx, cancel := context.WithCancelCause(t.Context())
	a := Command(func(context.Context, []byte) (Output, error) { cancel(late); return Output{Stdout: yes("one")}, nil })
	if got, err := a.Ask(ctx, request("one")); !errors.Is(err, late) {
		t.Errorf("got %+v, %v", got, err)
	}
}
