package tools

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"drover/output/event"
)

// sessionEnv is commandEnv with a table of sessions, which is closed before
// anybody looks for what is left.
func sessionEnv(t testing.TB) (Env, *recorder) {
	t.Helper()
	env, rec := commandEnv(t)
	env.Commands.Sessions = NewSessions(context.Background())
	t.Cleanup(env.Commands.Sessions.Close)
	return env, rec
}

var sessionLine = regexp.MustCompile(`(?m)^Process running with session ID (\d+)$`)

// sessionOf is the session that a result names.
func sessionOf(t testing.TB, res Result) int {
	t.Helper()
	found := sessionLine.FindStringSubmatch(res.Text)
	if found == nil {
		t.Fatalf("no session in:\n%s", res.Text)
	}
	id, err := strconv.Atoi(found[1])
	if err != nil || data(t, res).SessionID != id || res.ExitCode != nil || res.IsError {
		t.Fatalf("session %d of %+v", id, res)
	}
	return id
}

// background starts a command that is not over at once.
func background(t testing.TB, env Env, cmd string, more ...any) (Result, int) {
	t.Helper()
	res := callJSON(t, t.Context(), execCommand, env, append([]any{"cmd", cmd, "yield_time_ms", 250}, more...)...)
	return res, sessionOf(t, res)
}

// untilOver polls a session to its end and returns the last result and all
// outputs.
func untilOver(t testing.TB, env Env, id int) (res Result, output string) {
	t.Helper()
	for deadline := time.Now().Add(2 * commandPatience); ; {
		res = callJSON(t, t.Context(), writeStdin, env, "session_id", id)
		output += outputOf(t, res)
		if data(t, res).SessionID == 0 {
			return res, output
		}
		if time.Now().After(deadline) {
			t.Fatalf("session %d does not end", id)
		}
	}
}

func TestLongCommandBecomesASession(t *testing.T) {
	env, rec := sessionEnv(t)
	res, id := background(t, env, "echo one; until [ -e go ]; do sleep 0.02; done; echo two; exit 3")
	want := regexp.MustCompile(`^Chunk ID: [0-9a-f]{6}\nWall time: \d+\.\d{4} seconds\nProcess running with session ID \d{4,5}\nOriginal token count: 1\nOutput:\none\n$`)
	if !want.MatchString(res.Text) || res.Display != fmt.Sprintf("running in session %d, 1 line", id) || res.OutputBytes != 4 {
		t.Errorf("got %+v", res)
	}
	if err := os.WriteFile(filepath.Join(env.Cwd, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	last, out := untilOver(t, env, id)
	d := data(t, last)
	if out != "two\n" || *last.ExitCode != 3 || !d.SessionClosed || last.IsError || strings.Contains(last.Text, "session ID") || last.OutputBytes != 4 {
		t.Errorf("got %+v", last)
	}
	res = callJSON(t, t.Context(), writeStdin, env, "session_id", id)
	if want := fmt.Sprintf("write_stdin failed: Unknown process id %d", id); res.Text != want || !res.IsError {
		t.Errorf("a poll after the end: %+v", res)
	}
	env.Commands.Sessions.Close()
	if told, dropped := rec.output(t); told != "one\ntwo\n" || dropped != 0 {
		t.Errorf("told %q", told)
	}
	if end := rec.completed(t); *end.ExitCode != 3 || end.OutputBytes != 8 || end.ToolCallID != "c1" {
		t.Errorf("completed %+v", end)
	}
}

func TestShortCommandLeavesNoSession(t *testing.T) {
	env, rec := sessionEnv(t)
	res := callJSON(t, t.Context(), execCommand, env, "cmd", "echo hi; exit 2")
	if *res.ExitCode != 2 || outputOf(t, res) != "hi\n" || data(t, res).SessionClosed || len(env.Commands.Sessions.table) != 0 {
		t.Errorf("got %+v", res)
	}
	if end := rec.completed(t); *end.ExitCode != 2 {
		t.Errorf("completed %+v", end)
	}
	res = callJSON(t, t.Context(), execCommand, env, "cmd", "true", "workdir", "/nowhere")
	if res.Code != "not_started" || len(env.Commands.Sessions.table) != 0 {
		t.Errorf("a failed start: %+v, %v", res, env.Commands.Sessions.table)
	}
}

// github.com/openai/codex/issues/18494: the end of a session got lost.
func TestEndThatNobodySawIsToldToWhoeverWrites(t *testing.T) {
	for _, args := range [][]any{{}, {"tty", true}} {
		env, _ := sessionEnv(t)
		_, id := background(t, env, "sleep 0.4; echo bye; exit 3", args...)
		opened := env.Commands.Sessions.use(id)
		select {
		case <-opened.over:
		case <-time.After(commandPatience):
			t.Fatal("it does not end")
		}
		res := callJSON(t, t.Context(), writeStdin, env, "session_id", id, "chars", "x")
		d := data(t, res)
		if strings.TrimSpace(outputOf(t, res)) != "bye" || *res.ExitCode != 3 || !d.SessionClosed || !strings.Contains(res.Text, "nothing was written") {
			t.Errorf("%v: %+v", args, res)
		}
	}
}

func TestOnlyASessionWithATerminalTakesInput(t *testing.T) {
	env, _ := sessionEnv(t)
	_, id := background(t, env, "sleep 300")
	res := callJSON(t, t.Context(), writeStdin, env, "session_id", id, "chars", "x")
	if !res.IsError || res.Code != "no_terminal" || !strings.HasPrefix(res.Text, "write_stdin failed: ") || !strings.Contains(res.Text, "tty=true") {
		t.Errorf("got %+v", res)
	}
	if env.Commands.Sessions.use(id) == nil {
		t.Error("the session is gone")
	}
}

func TestConversationInATerminal(t *testing.T) {
	env, rec := sessionEnv(t)
	res, id := background(t, env, `read -p 'name? ' -r name; echo "hello $name"; read -r _; echo never`, "tty", true)
	if out := outputOf(t, res); out != "name? " {
		t.Errorf("output %q", out)
	}
	res = callJSON(t, t.Context(), writeStdin, env, "session_id", id, "chars", "drover\n", "yield_time_ms", 2000)
	if out := outputOf(t, res); out != "drover\nhello drover\n" {
		t.Errorf("output %q", out)
	}
	res = callJSON(t, t.Context(), writeStdin, env, "session_id", id, "chars", "\x03", "yield_time_ms", 20000)
	if d := data(t, res); d.SessionID != 0 || !d.SessionClosed || strings.Contains(res.Text, "never") {
		t.Errorf("got %+v", res)
	}
	start := rec.events[0].(event.TerminalNewRunningEvent)
	if !start.TTY {
		t.Errorf("started %+v", start)
	}
	var typed []string
	for _, e := range rec.events {
		if e, ok := e.(event.TerminalAppendStringEvent); ok && e.Stream != "tty" {
			t.Errorf("stream %q", e.Stream)
		}
		if e, ok := e.(event.TerminalInputEvent); ok {
			typed = append(typed, e.Text)
		}
	}
	if want := []string{"drover\n", "\x03"}; !slices.Equal(typed, want) {
		t.Errorf("typed %q", typed)
	}
}

func TestEndOfTheRunEndsAllSessions(t *testing.T) {
	env, rec := sessionEnv(t)
	const n = 12
	for i := range n {
		background(t, env, fmt.Sprintf("trap 'rm lock%d; exit' TERM; touch lock%d; while :; do sleep 0.05; done", i, i), "tty", i%2 == 0)
	}
	background(t, env, "trap '' TERM HUP; while :; do sleep 1; done")
	began := time.Now()
	env.Commands.Sessions.Close()
	if took := time.Since(began); took > commandPatience {
		t.Errorf("took %v", took)
	}
	rec.output(t) // every terminal has started and completed once
	if left, err := filepath.Glob(filepath.Join(env.Cwd, "lock*")); err != nil || len(left) > 0 {
		t.Errorf("exit traps have not run: %v, %v", left, err)
	}
	res := callJSON(t, t.Context(), execCommand, env, "cmd", "true")
	if res.Code != "not_started" || !strings.Contains(res.Text, "the run ends") {
		t.Errorf("after the end: %+v", res)
	}
	env.Commands.Sessions.Close() // once more does nothing
}

func TestTableEvictsEndedSessionsFirstAndNoneOfTheLastEight(t *testing.T) {
	env, _ := sessionEnv(t)
	s := env.Commands.Sessions
	ids := make([]int, maxSessions)
	var all sync.WaitGroup
	var warned atomic.Int32
	limit := make(chan struct{}, 16)
	for i := range ids {
		all.Go(func() {
			limit <- struct{}{}
			defer func() { <-limit }()
			res, id := background(t, env, "read -r line", "tty", true)
			ids[i] = id
			if strings.Contains(res.Text, "Warning: ") {
				warned.Add(1)
			}
		})
	}
	all.Wait()
	if t.Failed() {
		return
	}
	if n := warned.Load(); n != maxSessions-manySessions+1 {
		t.Errorf("%d warnings", n)
	}
	for _, id := range ids { // the order of use
		s.rest(s.use(id))
	}
	finish := func(id int) {
		opened := s.use(id)
		s.rest(opened)
		if _, err := opened.process.Write(t.Context(), []byte("x\n")); err != nil {
			t.Fatal(err)
		}
		select {
		case <-opened.over:
		case <-time.After(commandPatience):
			t.Fatal("it does not end")
		}
	}
	open := func() {
		res, _ := background(t, env, "sleep 300")
		if !strings.Contains(res.Text, "Warning: 64 command sessions are open") {
			t.Errorf("no warning in:\n%s", res.Text)
		}
	}
	isOpen := func(id int) bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.table[id] != nil
	}
	// 10 has ended but is among the last used, so the oldest running one goes.
	finish(ids[10])
	victim := s.table[ids[0]]
	open()
	if isOpen(ids[0]) || !isOpen(ids[10]) {
		t.Errorf("oldest is open %v, protected %v", isOpen(ids[0]), isOpen(ids[10]))
	}
	select {
	case <-victim.over:
	case <-time.After(commandPatience):
		t.Error("the evicted command still runs")
	}
	for _, id := range ids[50:] { // now 10 is used long ago, but later than 1
		s.rest(s.use(id))
	}
	open()
	if isOpen(ids[10]) || !isOpen(ids[1]) {
		t.Errorf("ended is open %v, running %v", isOpen(ids[10]), isOpen(ids[1]))
	}
}

// TestCommandsThatACallWaitsForAreNeverTooMany: a model may ask for more
// commands at once than there are places for sessions.
func TestCommandsThatACallWaitsForAreNeverTooMany(t *testing.T) {
	env, _ := sessionEnv(t)
	_, resting := background(t, env, "sleep 300")
	var all sync.WaitGroup
	for i := range maxSessions + 20 {
		all.Go(func() {
			res := callJSON(t, t.Context(), execCommand, env, "cmd", "until [ -e go ]; do sleep 0.2; done; echo ok", "yield_time_ms", 30_000)
			if out := outputOf(t, res); out != "ok\n" || *res.ExitCode != 0 {
				t.Errorf("command %d: %s", i, res.Text)
			}
		})
	}
	s := env.Commands.Sessions
	for deadline := time.Now().Add(commandPatience); ; time.Sleep(10 * time.Millisecond) {
		s.mu.Lock()
		n := 0
		for _, o := range s.table {
			if o != nil {
				n++
			}
		}
		s.mu.Unlock()
		if n > maxSessions+20 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("only %d sessions are open", n)
		}
	}
	if err := os.WriteFile(filepath.Join(env.Cwd, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	all.Wait()
	opened := s.use(resting)
	if opened == nil || opened.isOver() {
		t.Fatal("the session that rested was ended")
	}
	s.rest(opened)
}

func TestIDsAreFreeAndInTheirRange(t *testing.T) {
	s := NewSessions(t.Context())
	seen := map[int]bool{}
	for range 500 {
		id, err := s.reserve()
		if err != nil || id < 1000 || id > 99_999 || seen[id] {
			t.Fatalf("id %d, %v", id, err)
		}
		seen[id] = true
		s.live.Done()
	}
	if s.use(1000) != nil || s.use(-1) != nil {
		t.Error("a reserved or impossible id is a session")
	}
	for id := range seen {
		if s.use(id) != nil {
			t.Error("a reserved id is a session")
		}
	}
}

func TestTypingIsShownWithoutWhatIsTyped(t *testing.T) {
	env, _ := sessionEnv(t)
	for args, want := range map[string]string{
		`{"session_id":4242}`:                      "wait: session 4242",
		`{"session_id":4242,"chars":"password\n"}`: "type: 9 bytes into session 4242",
	} {
		call, err := writeStdin.Prepare(env, Input{Text: args})
		if err != nil || call.Display != want || len(call.Actions) != 0 {
			t.Errorf("%s: %+v, %v", args, call, err)
		}
	}
	for _, args := range []string{`{}`, `{"session_id":"1"}`, `{"session_id":3000000000}`, `{"session_id":1.5}`} {
		if _, err := writeStdin.Prepare(env, Input{Text: args}); err == nil {
			t.Errorf("%s is accepted", args)
		}
	}
	env.Commands.Sessions = nil
	if res := callJSON(t, t.Context(), writeStdin, env, "session_id", -7); res.Text != "write_stdin failed: Unknown process id -7" {
		t.Errorf("without sessions: %+v", res)
	}
}

func TestWaitsAreClamped(t *testing.T) {
	ms := func(n uint) *uint { return &n }
	s := NewSessions(t.Context())
	short := &Sessions{MaxPoll: time.Second}
	long := &Sessions{MaxPoll: time.Hour}
	tests := []struct {
		name string
		got  time.Duration
		want time.Duration
	}{
		{"command, absent", clampYield(nil, defaultYield, minYield, maxYield), 10 * time.Second},
		{"command, zero", clampYield(ms(0), defaultYield, minYield, maxYield), 250 * time.Millisecond},
		{"command, huge", clampYield(ms(1<<62), defaultYield, minYield, maxYield), 30 * time.Second},
		{"typing, absent", stdinInput{Chars: "x"}.yield(s), 250 * time.Millisecond},
		{"typing, short", stdinInput{Chars: "x", YieldTimeMS: ms(1)}.yield(s), 250 * time.Millisecond},
		{"typing, between", stdinInput{Chars: "x", YieldTimeMS: ms(700)}.yield(s), 700 * time.Millisecond},
		{"typing, long", stdinInput{Chars: "x", YieldTimeMS: ms(60_000)}.yield(s), 30 * time.Second},
		{"poll, absent", stdinInput{}.yield(s), 5 * time.Second},
		{"poll, between", stdinInput{YieldTimeMS: ms(60_000)}.yield(s), time.Minute},
		{"poll, long", stdinInput{YieldTimeMS: ms(1 << 40)}.yield(s), 5 * time.Minute},
		{"poll, limit too low", stdinInput{YieldTimeMS: ms(60_000)}.yield(short), 5 * time.Second},
		{"poll, higher limit", stdinInput{YieldTimeMS: ms(1 << 40)}.yield(long), time.Hour},
	}
	for _, tt := range tests {
		if tt.got != tt.want {
			t.Errorf("%s: %v, want %v", tt.name, tt.got, tt.want)
		}
	}
}
