//go:build linux

package processes

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"drover/output/event"
)

// What a command must come to.
const (
	itEnds     = "ends by itself"
	itTimesOut = "times out"
	either     = "either" // it depends on the shell
)

// shape is a command that does something nasty with processes. It prints begun
// first, but for those whose exact words matter.
type shape struct {
	name, script string
	outcome      string
	// content is what else the result must match.
	content string
	files   map[string]string
}

// waiting are the shapes in which something else than the shell holds the pipe
// (github.com/golang/go/issues/23019, github.com/openai/codex/issues/4337).
var waiting = []shape{
	{name: "sleep", script: "sleep 600.MARK", outcome: itTimesOut},
	{name: "not the last command", script: "sleep 600.MARK; true", outcome: itTimesOut},
	{name: "subshell", script: "(sleep 600.MARK)", outcome: itTimesOut},
	{name: "pipeline", script: "sleep 600.MARK | cat", outcome: itTimesOut},
	{name: "waited for", script: "sleep 600.MARK & wait", outcome: itTimesOut},
	{name: "nohup", script: "nohup sleep 600.MARK &", outcome: itEnds},
	{name: "setsid", script: "setsid sleep 600.MARK", outcome: either},
	{name: "late writer", script: "(sleep 600.MARK; echo late) & echo begun; sleep 600.MARK", outcome: itTimesOut},
}

func TestCommandEndsWhoeverHoldsItsPipe(t *testing.T) {
	both(t, func(t *testing.T, in mode) {
		var all []m
		for _, s := range waiting {
			all = append(all, command(s.script), command("echo begun; "+s.script))
		}
		d := newTrial(t, in, []m{calls(all...), says("Done.")}, "--tool-timeout", toolTimeout.String())
		stream := d.start().end(0)
		got := results(t, stream, len(all))
		ends := terminals(t, stream)
		for i, call := range got {
			s := waiting[callNumber(t, call)/2]
			s.name = fmt.Sprintf("%s, call %d", s.name, i)
			if callNumber(t, call)%2 == 1 {
				s.content = "(?m)^begun$"
			}
			s.check(t, call, ends[call.ToolCallID])
			if strings.Contains(call.Content, "late") {
				t.Errorf("%s: %s", s.name, call.Content)
			}
		}
	})
}

// callNumber is the place of a call in the script, from 0.
func callNumber(t *testing.T, r event.ToolResultEvent) int {
	t.Helper()
	var n int
	if _, err := fmt.Sscanf(r.ToolCallID, "call_%d", &n); err != nil {
		t.Fatalf("call id %q: %v", r.ToolCallID, err)
	}
	return n - 1
}

// terminals are the ends of the commands of a stream, by call; each has one.
func terminals(t *testing.T, stream []byte) map[string]event.TerminalCompletedEvent {
	t.Helper()
	ends := map[string]event.TerminalCompletedEvent{}
	for _, e := range bodies[event.TerminalCompletedEvent](t, stream) {
		if _, twice := ends[e.ToolCallID]; twice {
			t.Errorf("the command of %s ended twice", e.ToolCallID)
		}
		ends[e.ToolCallID] = e
	}
	return ends
}

// check compares what has become of a call with what must become of it.
func (s shape) check(t *testing.T, r event.ToolResultEvent, end event.TerminalCompletedEvent) {
	t.Helper()
	if s.outcome != either && end.TimedOut != (s.outcome == itTimesOut) || r.IsError != end.TimedOut {
		t.Errorf("%s: timed out %v, error %v: %s", s.name, end.TimedOut, r.IsError, r.Content)
	}
	if end.TimedOut && (!strings.Contains(r.Content, "timed out") || !strings.Contains(string(r.Structured), `"timed_out":true`)) {
		t.Errorf("%s: the model reads %q; structured %s", s.name, r.Content, r.Structured)
	}
	if !regexp.MustCompile(s.content).MatchString(r.Content) {
		t.Errorf("%s: no %s in %q", s.name, s.content, r.Content)
	}
	if took := time.Duration(end.DurationMS) * time.Millisecond; took > patience {
		t.Errorf("%s: took %v", s.name, took)
	}
}

// printing prints a few megabytes a second without end.
const printing = "while :; do printf '%65536s' MARK; sleep 0.01; done"

// hiding are the shapes that leave the session, the environment or the parent
// by which they could be found, that do not die when asked to, or that are many.
var hiding = []shape{
	{name: "ignores TERM", outcome: itTimesOut, script: "trap '' TERM; echo begun; while :; do sleep 0.1; : MARK; done"},
	{name: "ignored TERM is inherited", outcome: itTimesOut, script: "trap '' TERM HUP INT; echo begun; exec sleep 600.MARK"},
	{name: "comes back on TERM", outcome: itTimesOut, script: "exec sh ./again.sh MARK", files: map[string]string{
		"again.sh": "trap 'setsid sh ./again.sh MARK & exit' TERM\necho begun\nwhile :; do sleep 0.05; done\n",
	}},
	{name: "goes from process to process", outcome: itEnds, script: "echo begun; sh ./hop.sh MARK 0", files: map[string]string{
		"hop.sh": `[ "$2" -lt 600 ] || exit 0` + "\n" + `setsid env -i /bin/sh ./hop.sh MARK $(($2 + 1)) >/dev/null 2>&1 </dev/null &` + "\n",
	}},
	{name: "marks gone and forked twice", outcome: itEnds, script: "(setsid env -i sh -c 'cd /; sleep 600.MARK & sleep 600.MARK &' &) ; echo begun"},
	{name: "marks gone and forked twice, while the command runs", outcome: itTimesOut, script: "(setsid env -i sh -c 'cd /; sleep 600.MARK & sleep 600.MARK &' &) ; echo begun; sleep 600.MARK"},
	{name: "daemon without descriptors", outcome: itEnds, script: "setsid sh -c 'exec 0<&- 1>&- 2>&-; cd /; for n in 3 4 5 6 7 8 9; do eval \"exec $n>&-\"; done; trap \"\" HUP; sleep 600.MARK; :' & echo begun"},
	{name: "keeps stdout open after the exit", outcome: itEnds, content: "exited with code 3", script: "(sleep 600.MARK &) ; echo begun; exit 3"},
	{name: "closes its stdout and goes on", outcome: itTimesOut, script: "echo begun; exec >&- 2>&-; sleep 600.MARK"},
	{name: "stops itself", outcome: itTimesOut, script: "sleep 600.MARK & kill -STOP $!; echo begun; kill -STOP $$; : MARK"},
	{name: "200 children", outcome: itTimesOut, script: "echo begun; for i in $(seq 200); do sleep 600.MARK & done; wait"},
	{name: "a tree of children", outcome: itTimesOut, script: "f() { if [ $1 -gt 0 ]; then f $(($1 - 1)) & f $(($1 - 1)) & fi; sleep 600.MARK; }; echo begun; f 5 & wait"},
	{name: "kills its group", outcome: itEnds, content: "exited with code -1", script: "sleep 600.MARK & echo begun; kill -KILL 0; : MARK"},
	{name: "kills its group but for one", outcome: itEnds, script: "setsid sleep 600.MARK & echo begun; sleep 0.2; kill -KILL 0; : MARK"},
	{name: "traps that never end", outcome: itTimesOut, script: "trap 'sleep 600.MARK' EXIT TERM; echo begun; sleep 600.MARK"},
	{name: "prints and ignores TERM", outcome: itTimesOut, script: "echo begun; trap '' TERM; " + printing},
}

func TestNothingOfACommandIsLeft(t *testing.T) {
	both(t, func(t *testing.T, in mode) {
		for _, s := range hiding {
			t.Run(s.name, func(t *testing.T) {
				t.Parallel()
				d := newTrial(t, in, []m{calls(command(s.script)), says("Done.")}, "--tool-timeout", toolTimeout.String())
				for name, text := range s.files {
					d.lay(name, text)
				}
				stream := d.start().end(0)
				r := results(t, stream, 1)[0]
				s.check(t, r, terminals(t, stream)[r.ToolCallID])
				if !strings.Contains(r.Content, "begun") {
					t.Errorf("what it had printed is lost: %s", r.Content)
				}
			})
		}
	})
}

// TestBackgroundJobsDoNotPileUp (github.com/anthropics/claude-code/issues/82433)
// looks at the processes below drover all the time.
func TestBackgroundJobsDoNotPileUp(t *testing.T) {
	both(t, func(t *testing.T, in mode) {
		var responses []m
		for i := range 20 {
			responses = append(responses, calls(command(fmt.Sprintf("sleep 1000.MARK & echo pid $! of call %d", i))))
		}
		d := newTrial(t, in, append(responses, says("Done."))).start()
		most := 0
		watched := make(chan struct{})
		go func() { // it ends with the stream, and is awaited below
			defer close(watched)
			for {
				select {
				case <-d.read:
					return
				case <-time.After(20 * time.Millisecond):
				}
				dead := 0
				for _, e := range below(d.cmd.Process.Pid) {
					if e.dead() {
						dead++
					}
				}
				most = max(most, dead)
			}
		}()
		stream := d.end(0)
		<-watched
		if most > 8 {
			t.Errorf("%d defunct processes at a time", most)
		}
		for _, r := range results(t, stream, 20) {
			if !regexp.MustCompile(`(?m)^pid \d+ of call \d+$`).MatchString(r.Content) || r.IsError {
				t.Errorf("result %q", r.Content)
			}
		}
	})
}

func TestManyCommandsAtOnceAllSucceed(t *testing.T) {
	both(t, func(t *testing.T, in mode) {
		var many []m
		for range 200 {
			many = append(many, command("sleep 1; echo ok; : MARK"))
		}
		stream := newTrial(t, in, []m{calls(many...), says("Done.")}).start().endWithin(2*patience, 0)
		for _, r := range results(t, stream, 200) {
			if r.IsError || !strings.HasSuffix(r.Content, "Output:\nok\n") {
				t.Fatalf("result %q", r.Content)
			}
		}
	})
}

// TestCommandKillsItsParent: whoever has started the command may be gone, the
// run still comes to an end and leaves nothing. What has become of the run is
// told by the stream, unless drover itself was killed.
func TestCommandKillsItsParent(t *testing.T) {
	both(t, func(t *testing.T, in mode) {
		for name, script := range map[string]string{
			"KILL":              "echo begun; kill -KILL $PPID; sleep 600.MARK",
			"TERM":              "echo begun; kill -TERM $PPID; sleep 600.MARK",
			"STOP":              "echo begun; kill -STOP $PPID; sleep 600.MARK",
			"KILL by a child":   "sleep 600.MARK & (sleep 600.MARK; :) & (setsid -f sh -c \"sleep 0.2; kill -KILL $PPID; sleep 600.MARK\"); echo begun; sleep 600.MARK",
			"KILL by a daemon":  "(setsid env -i PARENT=$PPID sh -c 'sleep 0.2; kill -KILL $PARENT; sleep 600.MARK' &); echo begun; sleep 600.MARK",
			"KILL of all above": "echo begun; p=$PPID; while [ \"$p\" -gt 1 ]; do [ \"$(readlink /proc/$p/exe)\" = BINARY ] || break; q=$(sed 's/.*) . \\([0-9]*\\) .*/\\1/' /proc/$p/stat); kill -KILL $p; p=$q; done; sleep 600.MARK",
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				if in == "off" && (name == "STOP" || name == "KILL by a daemon") {
					t.Skip("without a sandbox nothing keeps a command from stopping what watches it, or from getting away afterwards")
				}
				d := newTrial(t, in, []m{calls(command(script)), says("Done.")}, "--tool-timeout", toolTimeout.String()).start()
				exit := d.wait(patience)
				d.noneLeft(t, forsaken)
				<-d.read
				if exit >= 0 {
					if end := checkStream(t, []byte(d.stdout.String())); end.ExitCode != exit {
						t.Errorf("exit %d, the stream says %d", exit, end.ExitCode)
					}
				} else if in != "off" {
					t.Errorf("a command in the sandbox has killed drover")
				}
			})
		}
	})
}
