//go:build linux

package tools

import (
	"context"
	"encoding/base64"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"drover/output/event"
)

// The shapes in which a command holds on to what it has, in a session with a
// timeout: every one ends with the same kind of result, and nothing is left.
func TestNastyCommandsEndAtTheirTimeout(t *testing.T) {
	scripts := []string{
		"sleep 60", "sleep 60; true", "(sleep 60)", "sleep 60 | cat", "sleep 60 & wait", "setsid -w sleep 60",
		"(sleep 300; echo late) & echo started; sleep 300",
		"trap '' TERM HUP; sleep 60", "trap '' TERM HUP; while :; do sleep 1; done",
		"( (sleep 60 &) & ); sleep 60", "sh -c '(setsid sleep 60 &) &'; sleep 60", "env -i setsid sleep 60 & sleep 60",
		"yes", "exec 1>&- 2>&-; sleep 60", "kill -STOP $$", "while :; do :; done",
		"for i in $(seq 40); do (while :; do sleep 1; done) & done; wait",
		// It forks while it is being ended, but not without end: no limit holds
		// for root.
		"f() { sleep 0.2; if [ $1 -gt 0 ]; then for i in 1 2 3; do f $(($1 - 1)) & done; fi; sleep 30; }; f 5; sleep 60",
	}
	for _, mode := range []struct{ tty, confined bool }{{}, {tty: true}, {confined: true}, {true, true}} {
		tty := mode.tty
		env, rec := sessionEnv(t)
		if mode.confined {
			confine(t, &env)
		}
		env.Commands.Timeout, env.Commands.Grace = time.Second, 500*time.Millisecond
		rec.discard = true // some of them flood
		var all sync.WaitGroup
		for _, script := range scripts {
			all.Go(func() {
				began := time.Now()
				res := callJSON(t, t.Context(), execCommand, env, "cmd", script, "tty", tty, "yield_time_ms", 30_000)
				if took := time.Since(began); took > 2*commandPatience {
					t.Errorf("%q took %v", script, took)
				}
				if d := data(t, res); !d.TimedOut || !res.IsError || res.Code != "timeout" || d.SessionID != 0 || !strings.Contains(res.Text, "timed out after 1s") {
					t.Errorf("%q: %.400s", script, res.Text)
				}
				if strings.Contains(script, "echo started") && !strings.HasPrefix(outputOf(t, res), "started") {
					t.Errorf("partial output %q", outputOf(t, res))
				}
			})
		}
		all.Wait()
	}
}

func TestTimeoutEndsASessionBetweenTwoPolls(t *testing.T) {
	for name, limit := range map[string]func(*Env) []any{
		"of the run":    func(e *Env) []any { e.Commands.Timeout = 600 * time.Millisecond; return []any{"timeout_ms", 60_000} },
		"of the policy": func(e *Env) []any { e.Timeout = 600 * time.Millisecond; return nil },
		"of the call":   func(*Env) []any { return []any{"timeout_ms", 600} },
	} {
		t.Run(name, func(t *testing.T) {
			env, rec := sessionEnv(t)
			more := limit(&env)
			_, id := background(t, env, "echo up; sleep 300", more...)
			res, _ := untilOver(t, env, id)
			if d := data(t, res); !d.TimedOut || !d.SessionClosed || res.Code != "timeout" || *res.ExitCode != -1 {
				t.Errorf("got %+v", res)
			}
			env.Commands.Sessions.Close()
			if end := rec.completed(t); !end.TimedOut || !end.IsError || end.Signal == "" {
				t.Errorf("completed %+v", end)
			}
		})
	}
}

func TestCallThatIsCutOffLeavesItsSession(t *testing.T) {
	env, rec := sessionEnv(t)
	ctx, cancel := context.WithCancel(t.Context())
	emit := env.Emit
	env.Emit = func(b event.Body) {
		emit(b)
		if _, ok := b.(event.TerminalAppendStringEvent); ok {
			cancel()
		}
	}
	began := time.Now()
	res := callJSON(t, ctx, execCommand, env, "cmd", "echo up; until [ -e go ]; do sleep 0.02; done; echo done", "yield_time_ms", 30_000)
	id := sessionOf(t, res)
	if took := time.Since(began); took > commandPatience {
		t.Errorf("took %v", took)
	}
	if err := os.WriteFile(filepath.Join(env.Cwd, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	last, out := untilOver(t, env, id)
	if *last.ExitCode != 0 || !strings.HasSuffix(outputOf(t, res)+out, "done\n") {
		t.Errorf("got %+v", last)
	}
	env.Commands.Sessions.Close()
	rec.output(t)
}

// A pager asks for keys that nobody presses; github.com/google-gemini/gemini-cli/issues/13590.
func TestPagersDoNotStartInATerminal(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("no git")
	}
	env, _ := sessionEnv(t)
	env.Commands.Environ = append(env.Commands.Environ, "PAGER=less", "GIT_PAGER=less", "MANPAGER=less", "LESS=")
	setup := `git init -q . && git config user.email a@b && git config user.name a && git config core.pager less
		for i in $(seq 200); do printf 'commit refs/heads/main\ncommitter a <a@b> %d +0000\ndata 2\nx\n' $((1700000000+i)); done | git fast-import --quiet && git checkout -q main`
	res := callJSON(t, t.Context(), execCommand, env, "cmd", setup, "yield_time_ms", 30_000)
	if *res.ExitCode != 0 {
		t.Fatalf("got %s", res.Text)
	}
	for _, cmd := range []string{"git log", "git diff HEAD~100", "git --paginate show"} {
		res = callJSON(t, t.Context(), execCommand, env, "cmd", cmd, "tty", true, "yield_time_ms", 30_000)
		if res.ExitCode == nil || *res.ExitCode != 0 {
			t.Errorf("%s: %.300s", cmd, res.Text)
		}
	}
}

func TestQueryOfTheTerminalStaysInTheStream(t *testing.T) {
	env, rec := sessionEnv(t)
	res := callJSON(t, t.Context(), execCommand, env, "cmd", `printf 'before\033[6n\033[c'; read -rs -t 0.3 -d R x || echo silence`, "tty", true, "yield_time_ms", 30_000)
	if out := outputOf(t, res); out != "beforesilence\n" {
		t.Errorf("output %q", out)
	}
	if told, _ := rec.output(t); !strings.Contains(told, "\x1b[6n") {
		t.Errorf("told %q", told)
	}
}

func TestProgramThatDoesNotReadDoesNotHoldTheCallUp(t *testing.T) {
	env, _ := sessionEnv(t)
	_, id := background(t, env, "stty raw -echo; sleep 300", "tty", true)
	began := time.Now()
	res := callJSON(t, t.Context(), writeStdin, env, "session_id", id, "chars", strings.Repeat("x", 1<<20))
	if took := time.Since(began); took > commandPatience {
		t.Errorf("took %v", took)
	}
	if res.IsError || !strings.Contains(res.Text, "of 1048576 bytes were written") || data(t, res).SessionID != id {
		t.Errorf("got %.300s", res.Text)
	}
}

func TestCharactersAreNotSplitBetweenPolls(t *testing.T) {
	env, _ := sessionEnv(t)
	res, id := background(t, env, `printf 'a\xe2\x82'; until [ -e go ]; do sleep 0.02; done; printf '\xacb\033[3'; until [ -e on ]; do sleep 0.02; done; printf '1mred\xe2\x82'`)
	texts := []string{outputOf(t, res)}
	touch(t, env, "go")
	awaitOutput(t, env, id, 7) // two bytes held back and five new ones
	texts = append(texts, env.Commands.Sessions.use(id).report(env.Commands.Sessions, id).Text)
	touch(t, env, "on")
	_, last := untilOver(t, env, id)
	texts = append(texts, last)
	if got := strings.Join(texts, "|"); got != `a|€b|red\xe2\x82` {
		t.Errorf("got %q", got)
	}
}

func TestOutputBetweenPollsIsBounded(t *testing.T) {
	env, rec := sessionEnv(t)
	rec.discard = true
	_, id := background(t, env, "until [ -e go ]; do sleep 0.02; done; printf head; head -c 3000000 /dev/zero | tr '\\0' x; printf tail; touch written; until [ -e on ]; do sleep 0.02; done; echo rest")
	touch(t, env, "go")
	awaitFile(t, env, "written")
	// The terminal of the stream is written before the buffer is.
	awaitOutput(t, env, id, 3_000_008)
	opened := env.Commands.Sessions.use(id)
	res := opened.report(env.Commands.Sessions, id)
	if res.OutputBytes != 3_000_008 || res.OmittedBytes != 3_000_008-1<<20 || !strings.HasPrefix(res.Text, "headx") || !strings.HasSuffix(res.Text, "xtail") {
		t.Errorf("%d bytes, %d omitted", res.OutputBytes, res.OmittedBytes)
	}
	touch(t, env, "on")
	last, out := untilOver(t, env, id)
	if out != "rest\n" || last.OutputBytes != 5 || data(t, last).OmittedBytes != 0 {
		t.Errorf("got %+v", last)
	}
}

func touch(t *testing.T, env Env, name string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(env.Cwd, name), nil, 0o600); err != nil {
		t.Fatal(err)
	}
}

func awaitFile(t *testing.T, env Env, name string) {
	t.Helper()
	eventually(t, name, func() bool {
		_, err := os.Stat(filepath.Join(env.Cwd, name))
		return err == nil
	})
}

func awaitOutput(t *testing.T, env Env, id int, size int64) {
	t.Helper()
	out := env.Commands.Sessions.use(id).out.(*merged)
	eventually(t, "the output", func() bool {
		out.mu.Lock()
		defer out.mu.Unlock()
		return out.buf.Total() == size
	})
}

// eventually polls a fact about other processes, which cannot be waited for.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(commandPatience)
	for !ok() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("waited in vain for %s", what)
		}
	}
}

func TestSessionsAreUsedBySeveralCallsAtOnce(t *testing.T) {
	env, rec := sessionEnv(t)
	_, id := background(t, env, "while read -r x; do echo \"got $x\"; [ \"$x\" = end ] && exit 4; done", "tty", true)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() { callJSON(t, t.Context(), writeStdin, env, "session_id", id, "chars", "a\n") })
		all.Go(func() { callJSON(t, t.Context(), execCommand, env, "cmd", "echo other") })
	}
	all.Wait()
	res := callJSON(t, t.Context(), writeStdin, env, "session_id", id, "chars", "end\n", "yield_time_ms", 30_000)
	if res.ExitCode == nil || *res.ExitCode != 4 {
		t.Errorf("got %+v", res)
	}
	env.Commands.Sessions.Close()
	if told, _ := rec.output(t); strings.Count(told, "got a") != 8 {
		t.Errorf("told %q", told)
	}
}

func TestBytesThatAreNoTextComeAsBase64FromATerminalToo(t *testing.T) {
	env, rec := sessionEnv(t)
	res := callJSON(t, t.Context(), execCommand, env, "cmd", `printf 'ok\n\351\377\000\nafter\n'`, "tty", true)
	if out := outputOf(t, res); out != "ok\n\\xe9\\xff\\x00\nafter\n" || !data(t, res).Binary {
		t.Errorf("output %q", out)
	}
	for _, e := range rec.events {
		if e, ok := e.(event.TerminalAppendStringEvent); ok && e.Encoding == "base64" {
			if _, err := base64.StdEncoding.DecodeString(e.Delta); err != nil {
				t.Error(err)
			}
			return
		}
	}
	t.Error("no base64")
}
