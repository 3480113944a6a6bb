//go:build unix

package cmd

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/creack/pty"

	"drover/output/event"
)

// TestATerminalThatIsClosedIsAClosedOutput: its reader has gone away, as behind a
// pipe, and the run stops or goes on as it was told.
func TestATerminalThatIsClosedIsAClosedOutput(t *testing.T) {
	t.Parallel()
	for _, format := range []string{"frames", "lines"} {
		for _, c := range []struct {
			then string
			exit int
		}{{"stop", 141}, {"continue", 0}} {
			t.Run(format+", "+c.then, func(t *testing.T) {
				t.Parallel()
				p := run(t, script(t, calls(execCall("touch begun; until [ -e go ]; do echo on; sleep 0.05; done; echo more")), says("Done.\n")),
					"--format", format, "--out", "jsonl:run.jsonl", "--on-closed-output", c.then, "go")
				terminal, tty, err := pty.Open()
				if err != nil {
					t.Skip("no terminal to be had: ", err)
				}
				p.cmd.Stdout = tty
				if err := p.cmd.Start(); err != nil {
					t.Fatal(err)
				}
				_ = tty.Close() // the process has its own
				waitFor(t, "the command", func() bool {
					_, err := os.Stat(filepath.Join(p.dir, "begun"))
					return err == nil
				})
				_ = terminal.Close()
				if c.exit == 0 {
					p.lay(map[string]string{"go": ""})
				}
				exit := p.finish()
				stream, err := os.ReadFile(filepath.Join(p.dir, "run.jsonl"))
				if err != nil {
					t.Fatal(err)
				}
				p.check(stream, exit)
				if exit != c.exit {
					t.Errorf("exit %d, want %d; stderr: %s", exit, c.exit, p.stderr.String())
				}
				if r := bodies[event.ToolResultEvent](t, stream); c.exit == 0 && (len(r) != 1 || !strings.Contains(r[0].Content, "more")) {
					t.Errorf("the run did not go on: %s", bytes.TrimSpace(stream))
				}
			})
		}
	}
}
