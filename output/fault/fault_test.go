package fault

import (
	"errors"
	"fmt"
	"testing"
)

func TestEveryCodeHasARowAndARank(t *testing.T) {
	ranked := 0
	for _, group := range precedence {
		ranked += len(group)
	}
	if len(table) != ranked {
		t.Fatalf("table has %d rows, precedence %d codes", len(table), ranked)
	}
	seen := map[string]bool{}
	for _, r := range Table() {
		if r.When == "" || r.Status == "" || r.Retry == "" || seen[r.Name] {
			t.Errorf("row %+v is incomplete or doubled", r)
		}
		seen[r.Name] = true
		if rank(r.Code) == len(precedence) {
			t.Errorf("code %d has no rank", r.Code)
		}
	}
}

func TestStrictestEndWins(t *testing.T) {
	for _, c := range []struct {
		first, second Exit
		before        bool
	}{
		{Config, Internal, true},
		{ClosedOutput, Interrupted, true},
		{Timeout, Blocked, true},
		{Blocked, Failed, true},
		{Failed, Blocked, false},
		{Terminated, Interrupted, false},
		{Model, Provider, false},
		{Failed, Success, true},
	} {
		if got := c.first.Before(c.second); got != c.before {
			t.Errorf("%v before %v = %v, want %v", c.first, c.second, got, c.before)
		}
	}
}

func TestErrorKeepsItsClassThroughWrapping(t *testing.T) {
	inner := &Error{Code: "x", What: "w", Why: "y", Fix: "f", Exit: Config}
	got := From(fmt.Errorf("load: %w", inner))
	if got != inner || got.Text() != "w: y\n  fix: f" {
		t.Fatalf("got %+v, text %q", got, got.Text())
	}
	if plain := From(errors.New("boom")); plain.Exit != Failed || plain.Error() != "boom" {
		t.Fatalf("plain error became %+v", plain)
	}
	if From(nil) != nil {
		t.Fatal("nil became an error")
	}
}

func TestNearestForgivesWhatFingersDo(t *testing.T) {
	known := []string{"argv", "args", "path", "max_turns"}
	for got, want := range map[string]string{
		"argz": "argv", "agrv": "argv", "Path": "path", "max-turns": "max_turns", "wholly different": "", "": "",
	} {
		if near := Nearest(got, known); near != want {
			t.Errorf("Nearest(%q) = %q, want %q", got, near, want)
		}
	}
}
