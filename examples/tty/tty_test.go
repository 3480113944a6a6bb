// Package tty checks frames in a real terminal. The checks are shell scripts,
// because that is how a person would try it; see run.sh.
package tty

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"drover/output/event"
)

// TestFramesInATerminal runs all checks. It takes minutes and needs tmux.
func TestFramesInATerminal(t *testing.T) {
	if os.Getenv("DROVER_TTY") == "" {
		t.Skip("it takes minutes: set DROVER_TTY=1 to run the checks in tmux")
	}
	if _, err := exec.LookPath("tmux"); err != nil {
		t.Fatal("DROVER_TTY is set, but tmux is missing: install it, such as with apt-get install tmux")
	}
	out, err := exec.Command("bash", "run.sh").CombinedOutput()
	t.Logf("%s", out)
	if err != nil {
		t.Error(err)
	}
}

// TestLogsAreStreams: what the checks play is what drover could have written,
// but for the two that are about broken streams.
func TestLogsAreStreams(t *testing.T) {
	out, err := exec.Command("go", "run", "./logs").CombinedOutput()
	_, list, found := strings.Cut(string(out), "one of: ")
	if !found {
		t.Fatalf("%v: %s", err, out)
	}
	list, _, _ = strings.Cut(list, "\n")
	for name := range strings.SplitSeq(list, ", ") {
		out, err := exec.Command("go", "run", "./logs", name).Output()
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		problems := event.CheckStream(strings.NewReader(string(out)))
		if broken := name == "odd" || name == "orphan"; broken != (len(problems) > 0) {
			t.Errorf("%s: %v", name, problems)
		}
	}
}
