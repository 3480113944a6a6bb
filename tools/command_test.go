package tools

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"drover/output/event"
	"drover/tools/policy"
)

// commandPatience is the deadline for what must happen, on a busy machine.
const commandPatience = 20 * time.Second

// recorder collects the events of calls.
type recorder struct {
	mu     sync.Mutex
	events []event.Body
	at     []time.Time
	// discard keeps no output.
	discard bool
}

func (r *recorder) emit(b event.Body) {
	if _, ok := b.(event.TerminalAppendStringEvent); ok && r.discard {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events, r.at = append(r.events, b), append(r.at, time.Now())
}

// output joins the deltas and checks that they are well formed and come after
// the start and before the end of their terminal.
func (r *recorder) output(t *testing.T) (text string, dropped int64) {
	t.Helper()
	var b strings.Builder
	state := map[string]string{}
	for _, e := range r.events {
		switch e := e.(type) {
		case event.TerminalNewRunningEvent:
			state[e.TerminalID] += "started "
		case event.TerminalCompletedEvent:
			state[e.TerminalID] += "completed"
		case event.TerminalAppendStringEvent:
			if state[e.TerminalID] != "started " {
				t.Errorf("output of a terminal that is %q", state[e.TerminalID])
			}
			if line, _ := json.Marshal(e); len(line) >= 64<<10 {
				t.Errorf("an event of %d bytes", len(line))
			}
			delta := []byte(e.Delta)
			if e.Encoding == "base64" {
				var err error
				if delta, err = base64.StdEncoding.DecodeString(e.Delta); err != nil {
					t.Error(err)
				}
			}
			b.Write(delta)
			dropped += e.DroppedBytes
		}
	}
	for id, s := range state {
		if s != "started completed" {
			t.Errorf("terminal %s went through %q", id, s)
		}
	}
	return b.String(), dropped
}

func (r *recorder) completed(t *testing.T) event.TerminalCompletedEvent {
	t.Helper()
	e, ok := r.events[len(r.events)-1].(event.TerminalCompletedEvent)
	if !ok {
		t.Fatalf("last event is %T", r.events[len(r.events)-1])
	}
	return e
}

// commandEnv is an environment for commands in an empty folder. When the test
// ends, no process of it may be left.
func commandEnv(t testing.TB) (Env, *recorder) {
	t.Helper()
	r := &recorder{}
	env := Env{
		Cwd: t.TempDir(), CallID: "c1", Emit: r.emit,
		Commands: Commands{
			RunID: "run-" + randomHex(8), SessionID: "session-1", Environ: os.Environ(),
			Shell: "/bin/bash", Grace: time.Second,
		},
	}
	t.Cleanup(func() {
		if n := Sweep(env.Commands.RunID); n > 0 {
			t.Errorf("%d processes were left", n)
		}
	})
	return env, r
}

// callJSON calls a tool with arguments given as alternating names and values.
func callJSON(t testing.TB, ctx context.Context, tool Tool, env Env, args ...any) Result {
	t.Helper()
	call, err := tool.Prepare(env, Input{Text: jsonArgs(args...)})
	if err != nil {
		return Result{Text: err.Error(), IsError: true, Code: "refused"}
	}
	res, err := call.Run(ctx, env)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

func jsonArgs(args ...any) string {
	m := map[string]any{}
	for i := 0; i < len(args); i += 2 {
		m[args[i].(string)] = args[i+1]
	}
	b, err := json.Marshal(m)
	if err != nil {
		panic(err)
	}
	return string(b)
}

// outputOf is what stands below "Output:".
func outputOf(t testing.TB, res Result) string {
	t.Helper()
	_, out, ok := strings.Cut(res.Text, "\nOutput:\n")
	if !ok {
		t.Fatalf("no output in:\n%s", res.Text)
	}
	return out
}

func data(t testing.TB, res Result) commandData {
	t.Helper()
	d, ok := res.Structured.(commandData)
	if !ok {
		t.Fatalf("structured result is %T", res.Structured)
	}
	return d
}

func TestExecLayoutAndEvents(t *testing.T) {
	env, rec := commandEnv(t)
	call, err := execCommand.Prepare(env, Input{Text: jsonArgs("cmd", "echo out;\necho err >&2; exit 3", "justification", "to see", "yield_time_ms", 5, "workdir", "")})
	if err != nil {
		t.Fatal(err)
	}
	argv := []string{"/bin/bash", "-c", "echo out;\necho err >&2; exit 3"}
	if diff := cmp.Diff([]policy.Action{policy.Exec(env.Cwd, argv...)}, call.Actions); diff != "" {
		t.Errorf("actions (-want +got):\n%s", diff)
	}
	if want := "run: echo out; echo err >&2; exit 3"; call.Display != want || call.Timeout != 0 {
		t.Errorf("display %q, timeout %v", call.Display, call.Timeout)
	}
	res, err := call.Run(t.Context(), env)
	if err != nil {
		t.Fatal(err)
	}
	want := regexp.MustCompile(`^Chunk ID: [0-9a-f]{6}\nWall time: \d+\.\d{4} seconds\nProcess exited with code 3\nOriginal token count: 2\nOutput:\nout\nerr\n$`)
	if !want.MatchString(res.Text) || res.IsError || *res.ExitCode != 3 || res.Display != "exit 3, 2 lines" || res.OutputBytes != 8 {
		t.Errorf("got %+v", res)
	}
	if out, _ := rec.output(t); out != "out\nerr\n" {
		t.Errorf("deltas %q", out)
	}
	start := rec.events[0].(event.TerminalNewRunningEvent)
	wantStart := event.TerminalNewRunningEvent{
		ToolCallID: "c1", TerminalID: start.TerminalID, Command: argv[2], Description: "to see", Argv: argv, Cwd: env.Cwd,
	}
	if diff := cmp.Diff(wantStart, start); diff != "" {
		t.Errorf("started (-want +got):\n%s", diff)
	}
	if end := rec.completed(t); !end.IsError || *end.ExitCode != 3 || end.OutputBytes != 8 || end.Signal != "" || end.TerminalID != start.TerminalID {
		t.Errorf("completed %+v", end)
	}
}

func TestExecRefusesWhatIsNotOffered(t *testing.T) {
	env, rec := commandEnv(t)
	tests := []struct {
		name string
		args string
		want string
	}{
		{"tty without sessions", `{"cmd":"true","tty":true}`, "no session outlives a call here"},
		{"login", `{"cmd":"true","login":true}`, "login shells are disabled by the config"},
		{"escalation", `{"cmd":"true","sandbox_permissions":"require_escalated"}`, "no approval policy is set"},
		{"permissions", `{"cmd":"true","additional_permissions":{}}`, "additional_permissions"},
		{"permissions with the mode", `{"cmd":"true","sandbox_permissions":"with_additional_permissions","additional_permissions":{}}`, "exec_permission_approvals"},
		{"permissions with escalation", `{"cmd":"true","sandbox_permissions":"require_escalated","additional_permissions":{}}`, "leave it out"},
		{"unknown mode", `{"cmd":"true","sandbox_permissions":"all"}`, "is unknown"},
		{"prefix that is no list", `{"cmd":"true","prefix_rule":"git"}`, "failed to parse function arguments"},
		{"empty", `{"cmd":" "}`, "cmd is empty"},
		{"missing", `{}`, "failed to parse function arguments: missing field `cmd`"},
		{"argv", `{"cmd":["ls"]}`, "failed to parse function arguments: field `cmd`: expected string, got array"},
		{"negative", `{"cmd":"true","timeout_ms":-1}`, "failed to parse function arguments: field `timeout_ms`"},
		{"fraction", `{"cmd":"true","timeout_ms":1.5}`, "failed to parse function arguments: field `timeout_ms`"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := execCommand.Prepare(env, Input{Text: tt.args}); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q in it", err, tt.want)
			}
		})
	}
	if len(rec.events) > 0 {
		t.Errorf("events %v", rec.events)
	}
	for _, args := range []string{`{"cmd":"true","tty":false,"login":false,"sandbox_permissions":"use_default"}`, `{"cmd":"true","prefix_rule":["true"],"additional_permissions":null}`} {
		if _, err := execCommand.Prepare(env, Input{Text: args}); err != nil {
			t.Errorf("%s: %v", args, err)
		}
	}
	spec := execCommand.Spec()
	if size := len(spec.Doc) + len(spec.Schema); size >= 1150 {
		t.Errorf("description and schema have %d bytes", size)
	}
	for _, word := range []string{"login", "sandbox", "prefix_rule"} {
		if strings.Contains(string(spec.Schema), word) {
			t.Errorf("the schema offers %s", word)
		}
	}
}

func TestLoginShellWhenAllowed(t *testing.T) {
	env, _ := commandEnv(t)
	env.Commands.AllowLogin = true
	for args, want := range map[string]string{`{"cmd":"x"}`: "-lc", `{"cmd":"x","login":false}`: "-c"} {
		call, err := execCommand.Prepare(env, Input{Text: args})
		if err != nil || call.Actions[0].Argv[1] != want {
			t.Errorf("%s: %v, %v", args, call.Actions, err)
		}
	}
}

// The pipe of the shell outlives it, in a process that holds it.
func TestTimeoutEndsTheCommandAndItsChildren(t *testing.T) {
	env, rec := commandEnv(t)
	start := time.Now()
	res := callJSON(t, t.Context(), execCommand, env, "cmd", "(sleep 300; echo late) & echo started; sleep 300", "timeout_ms", 500)
	if took := time.Since(start); took > commandPatience {
		t.Errorf("took %v", took)
	}
	if out := outputOf(t, res); out != "started\n" {
		t.Errorf("output %q", out)
	}
	if !res.IsError || res.Code != "timeout" || !data(t, res).TimedOut || !strings.Contains(res.Text, "timed out after 500ms") || !strings.Contains(res.Text, "exited with code -1") {
		t.Errorf("got %+v", res)
	}
	if end := rec.completed(t); !end.TimedOut || !end.IsError || end.ExitCode != nil || end.Signal != "SIGTERM" {
		t.Errorf("completed %+v", end)
	}
}

func TestStricterTimeoutWins(t *testing.T) {
	env, _ := commandEnv(t)
	env.Commands.Timeout = 300 * time.Millisecond
	for _, tool := range []Tool{execCommand, shellCommand, shellTool, checkCommand} {
		args := []any{"cmd", "sleep 60", "command", "sleep 60", "timeout_ms", 50_000}
		if tool.Spec().Name == "shell" {
			args[3] = []string{"sleep", "60"}
		}
		call, err := tool.Prepare(env, Input{Text: jsonArgs(args...)})
		if err != nil {
			t.Fatal(err)
		}
		if call.Timeout != env.Commands.Timeout {
			t.Errorf("%s: timeout %v", tool.Spec().Name, call.Timeout)
		}
		if res, err := call.Run(t.Context(), env); err != nil || !data(t, res).TimedOut || !res.IsError || res.Code != "timeout" {
			t.Errorf("%s: %+v, %v", tool.Spec().Name, res, err)
		}
	}
}

func TestBackgroundChildrenEndWithTheCall(t *testing.T) {
	env, _ := commandEnv(t)
	for range 20 {
		res := callJSON(t, t.Context(), execCommand, env, "cmd", "sleep 1000 & echo $!")
		pid := strings.TrimSpace(outputOf(t, res))
		if stat, err := os.ReadFile("/proc/" + pid + "/stat"); err == nil && !strings.Contains(string(stat), ") Z ") {
			t.Errorf("process %s still runs", pid)
		}
		if res.IsError || !strings.Contains(res.Text, "1 background processes of the command were ended") {
			t.Errorf("got:\n%s", res.Text)
		}
	}
}

func TestCancelledCommandIsOverWhenTheCallReturns(t *testing.T) {
	env, rec := commandEnv(t)
	ctx, cancel := context.WithCancel(t.Context())
	emit := env.Emit
	env.Emit = func(b event.Body) {
		emit(b)
		if _, ok := b.(event.TerminalAppendStringEvent); ok {
			cancel()
		}
	}
	callJSON(t, ctx, execCommand, env, "cmd", "trap 'rm -r lockdir; exit' TERM; mkdir lockdir; echo up; while :; do sleep 0.05; done")
	if end := rec.completed(t); !end.IsError || end.TimedOut {
		t.Errorf("completed %+v", end)
	}
	if _, err := os.Stat(filepath.Join(env.Cwd, "lockdir")); !os.IsNotExist(err) {
		t.Errorf("the exit trap has not run: %v", err)
	}
}

func TestCommandsGetNoInput(t *testing.T) {
	env, _ := commandEnv(t)
	for cmd, want := range map[string]string{"cat": "", "read x; echo got:$x": "got:\n", "readlink /proc/self/fd/0": "/dev/null\n"} {
		res := callJSON(t, t.Context(), execCommand, env, "cmd", cmd, "timeout_ms", 20_000)
		if got := outputOf(t, res); got != want || data(t, res).TimedOut {
			t.Errorf("%q: %q", cmd, got)
		}
	}
}

func TestHugeOutputInBoundedMemory(t *testing.T) {
	env, rec := commandEnv(t)
	const size = 100_000_000
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	res := callJSON(t, t.Context(), execCommand, env, "cmd", "printf head; head -c 100000000 /dev/zero | tr '\\0' x; printf tail")
	runtime.ReadMemStats(&after)
	if grown := after.TotalAlloc - before.TotalAlloc; pooled && grown > 20<<20 {
		t.Errorf("allocated %d bytes", grown)
	}
	out := outputOf(t, res)
	d := data(t, res)
	if !strings.Contains(out, "\nheadx") || !strings.HasSuffix(out, "xtail") || d.OutputBytes != size+8 || d.OmittedBytes != size+8-1<<20 || !res.Truncated {
		t.Errorf("got %+v with an output of %d bytes", d, len(out))
	}
	if len(out) > 41_000 || !strings.Contains(out, "tokens truncated…") {
		t.Errorf("the model gets %d bytes", len(out))
	}
	told, dropped := rec.output(t)
	if len(told) != terminalCap || int64(len(told))+dropped != size+8 {
		t.Errorf("told %d bytes, dropped %d", len(told), dropped)
	}
	if end := rec.completed(t); !end.Truncated || end.OutputBytes != size+8 {
		t.Errorf("completed %+v", end)
	}
}

func TestMaxOutputTokensOnlyLowers(t *testing.T) {
	env, _ := commandEnv(t)
	env.Output = Limit{Tokens: 1000}
	for tokens, want := range map[int]int{100: 400, 5000: 4000, 0: 4000} {
		out := outputOf(t, callJSON(t, t.Context(), execCommand, env, "cmd", "seq 10000", "max_output_tokens", tokens))
		if len(out) < want || len(out) > want+100 {
			t.Errorf("%d tokens: %d bytes, want about %d", tokens, len(out), want)
		}
		if !strings.HasPrefix(out, "Total output lines: 10000\n\n1\n2\n") || !strings.HasSuffix(out, "\n10000\n") {
			t.Errorf("output begins %.40q", out)
		}
	}
}

func TestBytesThatAreNoText(t *testing.T) {
	env, rec := commandEnv(t)
	res := callJSON(t, t.Context(), execCommand, env, "cmd", `printf 'ok\n\351\377\000\nafter\n'`)
	if got, want := outputOf(t, res), "ok\n\\xe9\\xff\\x00\nafter\n"; got != want || !data(t, res).Binary || !strings.Contains(res.Text, "Note: the output is not all text") {
		t.Errorf("got %q", res.Text)
	}
	if told, _ := rec.output(t); told != "ok\n\xe9\xff\x00\nafter\n" {
		t.Errorf("deltas %q", told)
	}
	res = callJSON(t, t.Context(), execCommand, env, "cmd", "head -c 4096 /bin/ls; echo; echo after")
	if out := outputOf(t, res); !strings.HasSuffix(out, "after\n") || !strings.Contains(out, "bytes of binary data]") || len(out) > 2000 {
		t.Errorf("got %q", out)
	}
}

func TestProgressIsReducedToItsLastState(t *testing.T) {
	env, _ := commandEnv(t)
	res := callJSON(t, t.Context(), execCommand, env, "cmd", `for i in $(seq 0 4999); do printf '\rdownload %3d%%' $((i/50)); done; printf '\rdownload 100%%\nnext\n'`)
	if got, want := outputOf(t, res), "download 100%\nnext\n"; got != want {
		t.Errorf("got %.200q", got)
	}
	if res.OutputBytes < 50_000 || len(res.Text) > 1000 {
		t.Errorf("%d bytes became %d", res.OutputBytes, len(res.Text))
	}
}

func TestCharactersAreNotSplitBetweenEvents(t *testing.T) {
	env, rec := commandEnv(t)
	res := callJSON(t, t.Context(), execCommand, env, "cmd", `for b in d0 96 e4 b8 ad f0 9f 98 80 0a; do printf "\x$b"; sleep 0.06; done; printf '\xe4\xb8'`)
	const text = "Ж中😀\n"
	if got, want := outputOf(t, res), text+`\xe4\xb8`; got != want {
		t.Errorf("model: %q, want %q", got, want)
	}
	var deltas int
	for _, e := range rec.events {
		if e, ok := e.(event.TerminalAppendStringEvent); ok {
			deltas++
			if strings.ContainsRune(e.Delta, '\ufffd') || e.Encoding != "" && e.Delta != base64.StdEncoding.EncodeToString([]byte("\xe4\xb8")) {
				t.Errorf("delta %+v", e)
			}
		}
	}
	if told, _ := rec.output(t); told != text+"\xe4\xb8" || deltas < 3 {
		t.Errorf("told %q in %d deltas", told, deltas)
	}
}

func TestOutputEventsKeepTheirRate(t *testing.T) {
	env, rec := commandEnv(t)
	start := time.Now()
	callJSON(t, t.Context(), execCommand, env, "cmd", "for i in $(seq 100); do echo $i; sleep 0.003; done; seq 20000")
	took := time.Since(start)
	small := 0
	for _, e := range rec.events {
		if e, ok := e.(event.TerminalAppendStringEvent); ok {
			if len(e.Delta) > terminalChunk {
				t.Errorf("a delta of %d bytes", len(e.Delta))
			}
			if len(e.Delta) < terminalChunk-utf8Max {
				small++
			}
		}
	}
	if most := int(took/terminalPause) + 2; small > most {
		t.Errorf("%d small deltas in %v", small, took)
	}
	told, _ := rec.output(t)
	if n := strings.Count(told, "\n"); n != 20100 {
		t.Errorf("%d lines", n)
	}
}

const utf8Max = 4

func TestStreamsAreNamedWhenKeptApart(t *testing.T) {
	env, rec := commandEnv(t)
	callJSON(t, t.Context(), shellCommand, env, "command", "echo out; echo err >&2")
	got := map[event.Stream]string{}
	for _, e := range rec.events {
		if e, ok := e.(event.TerminalAppendStringEvent); ok {
			got[e.Stream] += e.Delta
		}
	}
	if diff := cmp.Diff(map[event.Stream]string{"stdout": "out\n", "stderr": "err\n"}, got); diff != "" {
		t.Errorf("streams (-want +got):\n%s", diff)
	}
}

func TestEnvironmentOfCommands(t *testing.T) {
	env, _ := commandEnv(t)
	env.Commands.Environ = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=/home/x", "OPENAI_API_KEY=canary1", "MY_TOKEN=canary2", "PAGER=less",
		"GIT_PAGER=delta", "LANG=de_DE.UTF-8", "KEEP=1", "DROVER_RUN_ID=outer", "TERM=xterm",
	}
	env.Commands.Remove = []string{"OPENAI_API_KEY"}
	env.Commands.Environment = ShellEnvironment{Set: map[string]string{"OPENAI_API_KEY": "canary3", "ADDED": "2"}}
	vars := func(tool Tool, args ...any) map[string]string {
		res := callJSON(t, t.Context(), tool, env, args...)
		got := map[string]string{}
		for line := range strings.Lines(outputOf(t, res)) {
			name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "=")
			got[name] = value
		}
		delete(got, "DROVER_COMMAND_MARK")
		for _, name := range []string{"_", "SHLVL", "OLDPWD"} { // bash's own
			delete(got, name)
		}
		return got
	}
	common := map[string]string{
		"PATH": os.Getenv("PATH"), "HOME": "/home/x", "MY_TOKEN": "canary2", "KEEP": "1", "ADDED": "2",
		"PAGER": "less", "GIT_PAGER": "delta", "LANG": "de_DE.UTF-8", "TERM": "xterm",
		"DROVER_THREAD_ID": "session-1", "DROVER_RUN_ID": env.Commands.RunID, "PWD": env.Cwd,
	}
	if diff := cmp.Diff(common, vars(shellCommand, "command", "env")); diff != "" {
		t.Errorf("shell_command (-want +got):\n%s", diff)
	}
	for name, value := range plainOutput {
		common[name] = value
	}
	if diff := cmp.Diff(common, vars(execCommand, "cmd", "env")); diff != "" {
		t.Errorf("exec_command (-want +got):\n%s", diff)
	}
}

func TestFailedStartTellsNoSecret(t *testing.T) {
	env, rec := commandEnv(t)
	env.Commands.Environ = append(env.Commands.Environ, "API_TOKEN=canary123")
	tests := []struct {
		name string
		res  Result
		want string
	}{
		{"folder", callJSON(t, t.Context(), execCommand, env, "cmd", "echo hi", "workdir", "none"), `exec_command failed for ` + "`/bin/bash -c 'echo hi'`: start \"/bin/bash\": folder \"" + env.Cwd + `/none": no such file or directory`},
		{"program", callJSON(t, t.Context(), shellTool, env, "command", []string{"no-such-program", "a b"}), "shell failed for `no-such-program 'a b'`: start \"no-such-program\": program not found in PATH"},
		{"zero byte", callJSON(t, t.Context(), execCommand, env, "cmd", "echo a\x00b"), "zero byte"},
		{"too long", callJSON(t, t.Context(), execCommand, env, "cmd", "echo "+strings.Repeat("x", 1<<20)), "too long"},
		{"timeout", callJSON(t, t.Context(), execCommand, env, "cmd", "sleep 60", "timeout_ms", 100), "timed out"},
	}
	for _, tt := range tests {
		if !tt.res.IsError || !strings.Contains(tt.res.Text, tt.want) || len(tt.res.Text) > 1000 {
			t.Errorf("%s: %+v", tt.name, tt.res)
		}
		if strings.Contains(fmt.Sprintf("%+v %+v", tt.res, rec.events), "canary123") {
			t.Errorf("%s: the environment shows", tt.name)
		}
	}
}

func TestPatchInAShellCommandIsTheTool(t *testing.T) {
	env, _ := toolEnv(t, map[string]string{"a.txt": "one\n"})
	env.Commands = Commands{Shell: "/bin/bash", Environ: os.Environ()}
	script := "apply_patch <<'EOF'\n*** Begin Patch\n*** Update File: a.txt\n@@\n-one\n+two\n*** End Patch\nEOF\n"
	for _, tool := range []Tool{execCommand, shellCommand, shellTool} {
		args := []any{"cmd", script, "command", script}
		if tool.Spec().Name == "shell" {
			args[3] = []string{"bash", "-lc", script}
		}
		if err := os.WriteFile(filepath.Join(env.Cwd, "a.txt"), []byte("one\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		call, err := tool.Prepare(env, Input{Text: jsonArgs(args...)})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]policy.Action{env.Files.WriteAction("a.txt")}, call.Actions); diff != "" || call.Timeout != 0 {
			t.Errorf("%s: timeout %v, actions (-want +got):\n%s", tool.Spec().Name, call.Timeout, diff)
		}
		if _, err := call.Run(t.Context(), env); err != nil {
			t.Fatal(err)
		}
		if got := contents(t, env.Cwd)["a.txt"]; got != "two\n" {
			t.Errorf("%s: a.txt is %q", tool.Spec().Name, got)
		}
	}
	for _, cmd := range []string{script + "echo done\n", "echo x | cat; " + script} {
		call, err := execCommand.Prepare(env, Input{Text: jsonArgs("cmd", cmd)})
		if err != nil || call.Actions[0].Kind != policy.KindExec {
			t.Errorf("%q is not a command: %v", cmd, err)
		}
	}
}

func TestShellOrderCodeAndError(t *testing.T) {
	env, _ := commandEnv(t)
	res := callJSON(t, t.Context(), shellTool, env, "command", []string{"bash", "-c", "echo err >&2; echo out; exit 7"})
	want := regexp.MustCompile(`^\{"output":"out\\nerr\\n","metadata":\{"exit_code":7,"duration_seconds":\d+(\.\d)?\}\}$`)
	if !want.MatchString(res.Text) || !res.IsError || res.Code != "exit_code" || *res.ExitCode != 7 {
		t.Errorf("shell: %+v", res)
	}
	res = callJSON(t, t.Context(), shellCommand, env, "command", "echo err >&2; echo out")
	want = regexp.MustCompile(`^Exit code: 0\nWall time: \d+(\.\d)? seconds\nOutput:\nout\nerr\n$`)
	if !want.MatchString(res.Text) || res.IsError {
		t.Errorf("shell_command: %+v", res)
	}
	if res := callJSON(t, t.Context(), shellTool, env, "command", []string{}); res.Text != "command args are empty" {
		t.Errorf("no args: %+v", res)
	}
	if res := callJSON(t, t.Context(), shellTool, env, "command", []string{"printf", "%s|", "a b", "$HOME", "*"}); !strings.Contains(res.Text, `"output":"a b|$HOME|*|"`) {
		t.Errorf("a shell was involved: %s", res.Text)
	}
	res = callJSON(t, t.Context(), shellCommand, env, "command", "echo x; kill -KILL $$")
	if !res.IsError || !strings.HasPrefix(res.Text, "execution error: the command was ended by signal SIGKILL\nExit code: -1\n") || *res.ExitCode != -1 {
		t.Errorf("signal: %+v", res)
	}
}

func TestShellTimeoutIs124(t *testing.T) {
	env, _ := commandEnv(t)
	call, err := shellTool.Prepare(env, Input{Text: `{"command":["true"]}`})
	if err != nil || call.Timeout != 10*time.Second {
		t.Errorf("default timeout: %v, %v", call.Timeout, err)
	}
	res := callJSON(t, t.Context(), shellCommand, env, "command", "echo before; sleep 60", "timeout", 200)
	want := regexp.MustCompile(`^Exit code: 124\nWall time: \S+ seconds\nOutput:\ncommand timed out after \d+ milliseconds\nbefore\n$`)
	if !want.MatchString(res.Text) || !res.IsError || res.Code != "timeout" || *res.ExitCode != 124 {
		t.Errorf("got %+v", res)
	}
}

func TestShellDoesNotWaitForAGrandchild(t *testing.T) {
	env, _ := commandEnv(t)
	start := time.Now()
	res := callJSON(t, t.Context(), shellCommand, env, "command", "sleep 300 & echo now; (sleep 0.3; echo soon) &", "timeout_ms", 60_000)
	if took := time.Since(start); res.IsError || outputOf(t, res) != "now\nsoon\n" || took > commandPatience {
		t.Errorf("after %v: %+v", took, res)
	}
}

func TestShellResultStaysJSONWhateverItHolds(t *testing.T) {
	env, _ := commandEnv(t)
	env.Output = Limit{Tokens: 1000}
	res := callJSON(t, t.Context(), shellTool, env, "command", []string{"bash", "-c", `yes '"\"' | head -n 5000`})
	var got struct{ Output string }
	if err := json.Unmarshal([]byte(env.Output.Recorded().Cut(res.Text)), &got); err != nil || len(got.Output) < 500 || !res.Truncated {
		t.Errorf("%d bytes of output: %v", len(got.Output), err)
	}
}

func TestCheckFailsUnlessTheCodeIsZero(t *testing.T) {
	env, rec := commandEnv(t)
	if res := callJSON(t, t.Context(), checkCommand, env, "cmd", "echo fine"); res.IsError || *res.ExitCode != 0 || outputOf(t, res) != "fine\n" {
		t.Errorf("got %+v", res)
	}
	if res := callJSON(t, t.Context(), checkCommand, env, "cmd", "exit 3"); !res.IsError || *res.ExitCode != 3 {
		t.Errorf("got %+v", res)
	}
	if start := rec.events[0].(event.TerminalNewRunningEvent); start.Description != "check: echo fine" {
		t.Errorf("description %q", start.Description)
	}
	if checkCommand.Spec().Offered {
		t.Error("check is offered")
	}
}

func TestCommandsRunBesideEachOther(t *testing.T) {
	// Each waits for a file of the next, so that one after the other never ends.
	env, _ := commandEnv(t)
	var group sync.WaitGroup
	const n = 8
	for i := range n {
		group.Go(func() {
			cmd := fmt.Sprintf("touch f%d; until [ -e f%d ]; do sleep 0.01; done", i, (i+1)%n)
			if res := callJSON(t, t.Context(), execCommand, env, "cmd", cmd, "timeout_ms", 20_000); res.IsError {
				t.Errorf("command %d: %s", i, res.Text)
			}
		})
	}
	group.Wait()
}

func TestTheShellIsOneTheAgentDidNotWrite(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"bash", "fish"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	c := Commands{Shell: "/bin/bash", Environ: []string{"PATH=/usr/bin:/bin", "SHELL=/bin/sh"}}
	tests := map[string]string{
		"": "/bin/bash", "bash": "/bin/bash", "/bin/sh": "/bin/sh", "sh": "/usr/bin/sh", "/usr/bin/bash": "/usr/bin/bash",
		dir + "/bash": "/bin/bash", "./bash": "/bin/bash", "fish": "/bin/sh", "python3": "/bin/sh", "/bin/bash/": "/bin/bash",
	}
	for named, want := range tests {
		if got := c.shellArgv(named, "x", false)[0]; got != want {
			t.Errorf("%q: %s, want %s", named, got, want)
		}
	}
	for configured, want := range map[string]string{dir + "/fish": loginShell(), "sh": "/usr/bin/sh"} {
		c.Shell = configured
		if got := c.sessionShell(); got != want && shellKind(want) != "" {
			t.Errorf("configured %q: %s, want %s", configured, got, want)
		}
	}
}

// allocated counts all bytes that were ever allocated.
func allocated() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.TotalAlloc
}
