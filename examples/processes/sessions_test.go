//go:build linux

package processes

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// stdin writes to the session whose id the script has captured; no chars only
// waits for output.
func stdin(chars string) m {
	return m{"name": "write_stdin", "args_raw": fmt.Sprintf(`{"session_id":${id},"chars":%q}`, chars)}
}

// remembers is a response that keeps the id of the session that has just been
// opened.
func remembers(response m) m {
	response["capture"] = m{"id": "running with session ID ([0-9]+)"}
	return response
}

// awaited is a command that ends once another one has made a file.
func awaited(file string) m {
	return command("until [ -e " + file + " ]; do sleep 0.05; : MARK; done; sleep 0.3")
}

// TestSessionsEndWithTheRun leaves sessions open at the final answer.
func TestSessionsEndWithTheRun(t *testing.T) {
	both(t, func(t *testing.T, in mode) {
		for name, script := range map[string]string{
			"sleeps":              "sleep 600.MARK",
			"reads":               "cat - MARK",
			"ignores signals":     "trap '' TERM HUP INT; while :; do sleep 0.1; : MARK; done",
			"jobs of a shell":     "set -m; sleep 600.MARK & (trap '' HUP TERM; sleep 600.MARK) & exec cat - MARK",
			"daemon":              "(setsid env -i sh -c 'cd /; trap \"\" HUP; sleep 600.MARK & :' &); sleep 600.MARK",
			"floods":              "exec yes MARK",
			"interactive shell":   "exec bash --norc -i -o emacs",
			"terminal is let go":  "exec setsid -w sh -c 'exec </dev/null >/dev/null 2>&1; sleep 600.MARK; :'",
			"stopped by its tty":  "set -m; cat - MARK & sleep 600.MARK",
			"a terminal in there": "script -qfc 'sleep 600.MARK' /dev/null; sleep 600.MARK",
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				d := newTrial(t, in, []m{calls(session("echo begun; touch begun; " + script)), remembers(calls(awaited("begun"))), says("Done.")})
				stream := d.start().end(0)
				if r := results(t, stream, 2)[0]; r.IsError || !strings.Contains(string(stream), `"delta":"begun`) {
					t.Errorf("result %q", r.Content)
				}
				if ends := terminals(t, stream); len(ends) != 2 {
					t.Errorf("%d ends of the session", len(ends))
				}
			})
		}
	})
}

func TestSixtyFourSessionsEndWithTheRun(t *testing.T) {
	both(t, func(t *testing.T, in mode) {
		var many []m
		for range 64 {
			many = append(many, session("echo begun; sleep 600.MARK"))
		}
		stream := newTrial(t, in, []m{calls(many...), says("Done.")}).start().endWithin(2*patience, 0)
		results(t, stream, 64)
		if ends := terminals(t, stream); len(ends) != 64 {
			t.Errorf("%d ends of sessions", len(ends))
		}
	})
}

// TestOutputOfAFinishedSessionIsNotLost (github.com/openai/codex/issues/18494).
func TestOutputOfAFinishedSessionIsNotLost(t *testing.T) {
	both(t, func(t *testing.T, in mode) {
		for _, chars := range []string{"", "x"} {
			t.Run(fmt.Sprintf("%q", chars), func(t *testing.T) {
				t.Parallel()
				d := newTrial(t, in, []m{
					calls(session("sleep 1; echo bye; touch said; exit 3; : MARK")), remembers(calls(awaited("said"))),
					calls(stdin(chars)), calls(stdin(chars)), calls(m{"name": "write_stdin", "args": m{"session_id": 12, "chars": chars}}), says("Done."),
				})
				got := slices.Delete(results(t, d.start().end(0), 5), 1, 2)
				if got[1].IsError || !strings.Contains(got[1].Content, "bye") || !strings.Contains(got[1].Content, "exited with code 3") {
					t.Errorf("the end of the session: %q", got[1].Content)
				}
				for _, r := range got[2:] {
					if !r.IsError || !strings.Contains(r.Content, "write_stdin failed: ") {
						t.Errorf("a session that is gone: %q", r.Content)
					}
				}
				if !strings.Contains(got[3].Content, "Unknown process id 12") {
					t.Errorf("a session that never was: %q", got[3].Content)
				}
			})
		}
	})
}

// TestTerminalHasAnEnd (github.com/creack/pty/issues/21): reading a terminal
// that nobody holds any more is no failure.
func TestTerminalHasAnEnd(t *testing.T) {
	both(t, func(t *testing.T, in mode) {
		stream := newTrial(t, in, []m{calls(session("echo hi")), says("Done.")}).start().end(0)
		r := results(t, stream, 1)[0]
		if r.IsError || !strings.Contains(r.Content, "exited with code 0") || !strings.Contains(r.Content, "hi") || strings.Contains(string(stream), "input/output error") {
			t.Errorf("result %q", r.Content)
		}
	})
}

// TestQueriesOfTheTerminalStayInside (github.com/anthropics/claude-code/issues/13345):
// a program that asks for the cursor gets an answer or none, and nobody else
// sees the question.
func TestQueriesOfTheTerminalStayInside(t *testing.T) {
	const ask = `printf '\033[6n'; if IFS= read -rs -t 2 -d R answer; then echo answered; else echo nothing; fi; : MARK`
	both(t, func(t *testing.T, in mode) {
		call := m{"name": "exec_command", "args": m{"cmd": ask, "tty": true}}
		stream := newTrial(t, in, []m{calls(call), says("Done.")}, "--tool-timeout", "15s").start().end(0)
		r := results(t, stream, 1)[0]
		if r.IsError || !strings.Contains(r.Content, "answered") && !strings.Contains(r.Content, "nothing") {
			t.Errorf("result %q", r.Content)
		}
		if strings.Contains(string(stream), "\x1b") {
			t.Error("a control sequence is on the stdout of drover")
		}
	})
}

// TestPagersDoNotStart (github.com/google-gemini/gemini-cli/issues/13590).
func TestPagersDoNotStart(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("this machine has no git: ", err)
	}
	both(t, func(t *testing.T, in mode) {
		call := m{"name": "exec_command", "args": m{"cmd": "git log; git -c core.pager=less diff HEAD~1; echo end of MARK", "tty": true, "yield_time_ms": 30_000}}
		d := newTrial(t, in, []m{calls(call), says("Done.")}, "--tool-timeout", "30s")
		const history = `git init -q .
commit() { git -c user.name=a -c user.email=a@b "$@"; }
commit commit -q --allow-empty -m first
parent=$(git rev-parse HEAD) tree=$(git rev-parse HEAD^{tree})
for i in $(seq 60); do parent=$(commit commit-tree -p $parent -m "line $i" $tree); done
git reset -q --hard $parent`
		c := exec.Command("sh", "-c", history)
		c.Dir = d.work
		if out, err := c.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		r := results(t, d.start().endWithin(2*patience, 0), 1)[0]
		if r.IsError || !strings.Contains(r.Content, "first") || !strings.Contains(r.Content, "end of "+d.mark) {
			t.Errorf("result %q", r.Content)
		}
	})
}

// TestCommandsFindStdinAtItsEnd holds although drover's own is an open pipe
// (github.com/anomalyco/opencode/issues/42773).
func TestCommandsFindStdinAtItsEnd(t *testing.T) {
	both(t, func(t *testing.T, in mode) {
		read, write, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _, _ = read.Close(), write.Close() }() // nothing was written
		d := newTrial(t, in, []m{calls(
			command("cat - ; echo end of MARK"), command("read x; echo got:$x; : MARK"), command("if [ -t 0 ]; then echo terminal; fi; head -c 1 | wc -c"),
		), says("Done.")}, "--tool-timeout", patience.String())
		d.cmd.Stdin = read
		for _, r := range results(t, d.start().end(0), 3) {
			want := []string{"end of " + d.mark, "got:\n", "\n0\n"}[callNumber(t, r)]
			if r.IsError || !strings.Contains(r.Content, want) {
				t.Errorf("no %q in %q", want, r.Content)
			}
		}
		_, _ = io.WriteString(write, "x") // it must still have a reader: the test
	})
}

// TestArtifactOfASession: what a session prints while nobody polls is in its
// file, also when the run ends it.
func TestArtifactOfASession(t *testing.T) {
	both(t, func(t *testing.T, in mode) {
		d := newTrial(t, in, []m{calls(session("echo head; head -c 3000000 /dev/zero | tr '\\0' x; touch printed; sleep 600.MARK")), remembers(calls(awaited("printed"))), says("Done.")})
		stream := d.start().end(0)
		d.wholeText(t, stream, terminals(t, stream)["call_1"])
	})
}
