package runner

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/jsonschema-go/jsonschema"

	"drover/output/fault"
)

// watched adds hooks to a run.
func watched(t *testing.T, hooks ...Hook) func(*Options) {
	t.Helper()
	for i := range hooks {
		if err := hooks[i].Check(); err != nil {
			t.Fatal(err)
		}
	}
	return func(o *Options) { o.Hooks = hooks }
}

// callScript makes one call and ends.
func callScript(name, args string) string {
	return fmt.Sprintf(`{"tool_calls":[{"name":%q,"args":%s}]}`, name, args) + "\n" + `{"text":"Done."}`
}

func TestMatchersNameWholeTools(t *testing.T) {
	for _, c := range []struct {
		matcher string
		names   []string
		want    bool
	}{
		{"", commandNames, true},
		{"*", patchNames, true},
		{"Bash", commandNames, true},
		{"Bas", commandNames, false},
		{"exec_command", commandNames, true},
		{"Bash|Edit", patchNames, true},
		{"Edit|Bash", writeNames, false},
		{"Write", patchNames, true},
		{"Write", writeNames, true},
		{"apply_.*", patchNames, true},
		{"bash", commandNames, false},
	} {
		h := Hook{Event: PreToolUse, Command: "true", Matcher: c.matcher}
		if err := h.Check(); err != nil {
			t.Fatal(err)
		}
		if got := h.matches(c.names); got != c.want {
			t.Errorf("%q and %v: %v", c.matcher, c.names, got)
		}
	}
}

func TestAnswersOfHooks(t *testing.T) {
	specific := func(s string) string { return `{"hookSpecificOutput":` + s + `}` }
	for _, c := range []struct {
		name string
		at   HookEvent
		text string
		want hookAnswer
		bad  string
	}{
		{"nothing", PreToolUse, " \n", hookAnswer{}, ""},
		{"empty object", StopEvent, "{}", hookAnswer{}, ""},
		{"deny", PreToolUse, specific(`{"hookEventName":"PreToolUse","permissionDecision":"deny","permissionDecisionReason":"no"}`), hookAnswer{block: true, reason: "no"}, ""},
		{"ask", PreToolUse, specific(`{"permissionDecision":"ask"}`), hookAnswer{ask: true}, ""},
		{"allow", PreToolUse, specific(`{"permissionDecision":"allow"}`), hookAnswer{allow: true}, ""},
		{"old block", PreToolUse, `{"decision":"block","reason":"no"}`, hookAnswer{block: true, reason: "no"}, ""},
		{"old approve", PreToolUse, `{"decision":"approve"}`, hookAnswer{allow: true}, ""},
		{"stop", PostToolUse, `{"continue":false,"stopReason":"enough"}`, hookAnswer{stop: true, reason: "enough"}, ""},
		{"go on", PostToolUse, `{"continue":true,"suppressOutput":true,"systemMessage":"hm"}`, hookAnswer{message: "hm"}, ""},
		{"input", PreToolUse, specific(`{"updatedInput":{"command":"x"}}`), hookAnswer{input: json.RawMessage(`{"command":"x"}`)}, ""},
		{"no input", PreToolUse, specific(`{"updatedInput":null}`), hookAnswer{}, ""},
		{"context", SessionStart, specific(`{"additionalContext":"x"}`), hookAnswer{context: "x"}, ""},
		{"plain context", SessionStart, "the branch is frozen\n", hookAnswer{context: "the branch is frozen"}, ""},

		{"text", PreToolUse, "ok", hookAnswer{}, "no JSON object"},
		{"list", PreToolUse, "[]", hookAnswer{}, "no JSON object"},
		{"cut", PreToolUse, `{"decision":"blo`, hookAnswer{}, "unexpected EOF"},
		{"two", PreToolUse, `{} {"decision":"block"}`, hookAnswer{}, "something follows"},
		{"misspelt key", PreToolUse, `{"desicion":"block"}`, hookAnswer{}, "desicion"},
		{"misspelt value", PreToolUse, `{"decision":"blocked"}`, hookAnswer{}, `"blocked" is not known`},
		{"misspelt permission", PreToolUse, specific(`{"permissionDecision":"denied"}`), hookAnswer{}, `"denied" is not one of`},
		{"other event", PostToolUse, specific(`{"hookEventName":"PreToolUse"}`), hookAnswer{}, "this is PostToolUse"},
		{"too late", PostToolUse, specific(`{"permissionDecision":"deny"}`), hookAnswer{}, "no meaning"},
		{"approve a result", PostToolUse, `{"decision":"approve"}`, hookAnswer{}, "not known"},
		{"decide a start", SessionStart, `{"decision":"block"}`, hookAnswer{}, "no meaning"},
		{"empty decision", PreToolUse, `{"decision":""}`, hookAnswer{}, "the decision is empty"},
		{"empty permission", PreToolUse, specific(`{"permissionDecision":""}`), hookAnswer{}, "the permissionDecision is empty"},
		{"no decision", PreToolUse, `{"decision":null,"hookSpecificOutput":null}`, hookAnswer{}, ""},
		{"two decisions", PreToolUse, specific(`{"permissionDecision":"deny","permissionDecision":"allow"}`), hookAnswer{}, `"permissionDecision" occurs twice`},
		{"two parts", PreToolUse, `{"hookSpecificOutput":{"permissionDecision":"deny"},"hookSpecificOutput":null}`, hookAnswer{}, "occurs twice"},
		{"another spelling", PreToolUse, `{"decision":"block","Decision":"approve"}`, hookAnswer{}, `"Decision" is not known`},
		{"another spelling inside", PreToolUse, specific(`{"PermissionDecision":"deny"}`), hookAnswer{}, `"PermissionDecision" is not known`},
		{"two inputs", PreToolUse, specific(`{"updatedInput":{"command":"ls","command":"rm -r x"}}`), hookAnswer{}, `"command" occurs twice`},
		{"bytes that are no text", PreToolUse, "{\"decision\":\"block\",\"reason\":\"caf\xe9\"}", hookAnswer{block: true, reason: "caf\uFFFD"}, ""},
		{"input that is none", PreToolUse, specific(`{"updatedInput":"rm"}`), hookAnswer{}, "no object"},
		{"wrong type", PreToolUse, `{"continue":"no"}`, hookAnswer{}, "cannot unmarshal"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := readHookAnswer(c.at, c.text)
			if (err != nil) != (c.bad != "") || err != nil && !strings.Contains(err.Error(), c.bad) {
				t.Fatalf("error %v, want %q", err, c.bad)
			}
			if err == nil {
				if d := cmp.Diff(c.want, got, cmp.AllowUnexported(hookAnswer{})); d != "" {
					t.Errorf("(-want +got):\n%s", d)
				}
			}
		})
	}
}

func TestPayloadAndAnswersMatchTheSchema(t *testing.T) {
	var s jsonschema.Schema
	if err := json.Unmarshal(HookSchema(), &s); err != nil {
		t.Fatal(err)
	}
	answer := s.Defs["answer"].Properties
	for _, c := range []struct {
		keys  []string
		known map[string]*jsonschema.Schema
	}{{answerKeys, answer}, {specificKeys, answer["hookSpecificOutput"].Properties}} {
		if d := cmp.Diff(slices.Sorted(maps.Keys(c.known)), slices.Sorted(slices.Values(c.keys))); d != "" {
			t.Errorf("keys of an answer (-schema +reader):\n%s", d)
		}
	}
	payload := &jsonschema.Schema{Ref: "#/$defs/payload", Defs: s.Defs}
	resolved, err := payload.Resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	say := Hook{Command: "cat >> " + dir + "/$$.json"}
	var hooks []Hook
	for _, at := range HookEvents() {
		h := say
		h.Event = at
		hooks = append(hooks, h)
	}
	play(t, strings.Join([]string{
		`{"tool_calls":[{"name":"exec_command","args":{"cmd":"echo a"}},{"name":"shell","args":{"command":["echo","a b"]}}]}`,
		`{"tool_calls":[{"name":"apply_patch","input":"*** Begin Patch\n*** Add File: x\n+a\n*** End Patch"},{"name":"list_dir","args":{"dir_path":"/"}}]}`,
		`{"text":"Done."}`}, "\n"), watched(t, hooks...))
	files, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil || len(files) != 8 {
		t.Fatalf("%d payloads, %v", len(files), err)
	}
	seen := map[string]int{}
	for _, name := range files {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		var value map[string]any
		if err := json.Unmarshal(data, &value); err != nil {
			t.Fatal(err)
		}
		if err := resolved.Validate(value); err != nil {
			t.Errorf("%s: %v", data, err)
		}
		if value["run_id"] != "run_test" || value["session_id"] != "ses_test" || value["agent"] != "/root" {
			t.Errorf("payload %s", data)
		}
		input, _ := value["tool_input"].(map[string]any)
		seen[fmt.Sprint(value["hook_event_name"], " ", value["tool_name"], " ", input["command"])]++
	}
	patch := "*** Begin Patch\n*** Add File: x\n+a\n*** End Patch"
	want := map[string]int{
		"SessionStart <nil> <nil>": 1, "Stop <nil> <nil>": 1,
		"PreToolUse Bash echo a": 1, "PostToolUse Bash echo a": 1, "PreToolUse Bash echo 'a b'": 1, "PostToolUse Bash echo 'a b'": 1,
		"PreToolUse apply_patch " + patch: 1, "PostToolUse apply_patch " + patch: 1,
	}
	if d := cmp.Diff(want, seen); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

func TestHooksSeeNoProviderKeysAndNoSecrets(t *testing.T) {
	change := watched(t, Hook{Event: PostToolUse, Command: `env | grep -q LOCAL_KEY && exit 2; cat | grep -q canary && exit 2; exit 0`, OnError: HookDeny})
	out, stream := play(t, callScript("exec_command", `{"cmd":"echo canary"}`), func(o *Options) {
		change(o)
		o.Commands.Environ = append(o.Commands.Environ, "LOCAL_KEY=1")
		o.Commands.Remove = []string{"LOCAL_KEY"}
		o.Mask = func(s string) string { return strings.ReplaceAll(s, "canary", "[secret:X]") }
	})
	// The input is judged and has to be told as it is; only the result is masked.
	if out.End.Exit != fault.Success || !strings.Contains(stream, `"outcome":"blocked"`) {
		t.Errorf("the input of the call should be told: %s", stream)
	}
	_, stream = play(t, callScript("exec_command", `{"cmd":"echo can''ary"}`), func(o *Options) {
		change(o)
		o.Commands.Environ = append(o.Commands.Environ, "LOCAL_KEY=1")
		o.Commands.Remove = []string{"LOCAL_KEY"}
		o.Mask = func(s string) string { return strings.ReplaceAll(s, "canary", "[secret:X]") }
	})
	if strings.Contains(stream, `"outcome":"blocked"`) || !strings.Contains(stream, `"outcome":"ok"`) {
		t.Errorf("a hook saw what it must not see: %s", stream)
	}
}

func TestRewrittenInputsReachEveryTool(t *testing.T) {
	for _, c := range []struct{ tool, args, input, answer, want string }{
		{"exec_command", `{"cmd":"touch a"}`, "", `{"command":"touch b"}`, "b"},
		{"shell", `{"command":["touch","a"]}`, "", `{"command":"touch b && touch c"}`, "b c"},
		{"shell_command", `{"command":"touch a"}`, "", `{"command":"touch b"}`, "b"},
		{"apply_patch", "", "*** Begin Patch\n*** Add File: a\n+x\n*** End Patch", `{"command":"*** Begin Patch\n*** Add File: b\n+x\n*** End Patch"}`, "b"},
		{"exec_command", `{"cmd":"touch a"}`, "", `{"command":"touch a"}`, "a"},
		{"exec_command", `{"cmd":"touch a"}`, "", `{"command":"touch b","timeout":1}`, ""},
		{"exec_command", `{"cmd":"touch a"}`, "", `{"command":["touch","b"]}`, ""},
		{"exec_command", `{"cmd":"touch a"}`, "", `{"command":""}`, ""},
		{"apply_patch", "", "*** Begin Patch\n*** Add File: a\n+x\n*** End Patch", `{"command":"nonsense"}`, ""},
	} {
		t.Run(c.tool+" "+c.answer, func(t *testing.T) {
			var dir string
			call := fmt.Sprintf(`{"name":%q,"args":%s}`, c.tool, c.args)
			if c.input != "" {
				call = fmt.Sprintf(`{"name":%q,"input":%q}`, c.tool, c.input)
			}
			answer := filepath.Join(t.TempDir(), "answer")
			if err := os.WriteFile(answer, []byte(`{"hookSpecificOutput":{"updatedInput":`+c.answer+`}}`), 0o600); err != nil {
				t.Fatal(err)
			}
			change := watched(t, Hook{Event: PreToolUse, Command: "cat '" + answer + "'"})
			out, _ := play(t, `{"tool_calls":[`+call+`]}`+"\n"+`{"text":"Done."}`, func(o *Options) {
				change(o)
				dir = o.Cwd
			})
			entries, err := os.ReadDir(dir)
			if err != nil {
				t.Fatal(err)
			}
			var names []string
			for _, e := range entries {
				if e.Name() != "m.jsonl" {
					names = append(names, e.Name())
				}
			}
			if got := strings.Join(names, " "); got != c.want {
				t.Errorf("made %q, want %q", got, c.want)
			}
			if wantDenied := c.want == ""; wantDenied != (out.End.Exit == fault.Blocked) {
				t.Errorf("ended with %+v", out.End)
			}
		})
	}
}

func TestHooksOfOneMomentRunSideBySide(t *testing.T) {
	dir := t.TempDir()
	wait := func(mine, other string) Hook {
		return Hook{Event: PreToolUse, Timeout: 20 * time.Second,
			Command: fmt.Sprintf("touch %[1]s/%[2]s; until test -e %[1]s/%[3]s; do sleep 0.01; done", dir, mine, other)}
	}
	out, _ := play(t, callScript("exec_command", `{"cmd":"true"}`), watched(t, wait("a", "b"), wait("b", "a")))
	if out.End.Exit != fault.Success {
		t.Errorf("ended with %+v", out.End)
	}
}

func TestNothingOfAHookIsLeft(t *testing.T) {
	dir := t.TempDir()
	pid := filepath.Join(dir, "pid")
	out, _ := play(t, callScript("exec_command", `{"cmd":"true"}`), watched(t, Hook{Event: PreToolUse, Command: "sleep 300 >/dev/null 2>&1 & echo $! > " + pid}))
	data, err := os.ReadFile(pid)
	if err != nil || out.End.Exit != fault.Success {
		t.Fatalf("%v, ended with %+v", err, out.End)
	}
	if stat, err := os.ReadFile("/proc/" + strings.TrimSpace(string(data)) + "/stat"); err == nil && !strings.Contains(string(stat), ") Z ") {
		t.Errorf("the child of the hook still runs: %s", stat)
	}
}

func TestFloodOfAHookIsAFailure(t *testing.T) {
	out, stream := play(t, callScript("exec_command", `{"cmd":"true"}`), watched(t, Hook{Event: PreToolUse, Command: "head -c 3000000 /dev/zero | tr '\\0' x"}))
	if out.End.Exit != fault.Blocked || !strings.Contains(stream, "printed more than an answer can hold") {
		t.Errorf("ended with %+v", out.End)
	}
}

func TestEndOfTheRunEndsItsHooks(t *testing.T) {
	for _, at := range HookEvents() {
		t.Run(string(at), func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			begun := filepath.Join(t.TempDir(), "begun")
			go func() { // ends when the hook has begun, or with the test
				for ctx.Err() == nil {
					if _, err := os.Stat(begun); err == nil {
						cancel(&Stop{Exit: fault.Interrupted, Reason: "interrupted"})
						return
					}
					time.Sleep(5 * time.Millisecond)
				}
			}()
			out, _ := playUnder(ctx, t, callScript("exec_command", `{"cmd":"true"}`),
				watched(t, Hook{Event: at, Command: "touch " + begun + "; sleep 300"}))
			if out.End.Exit != fault.Interrupted {
				t.Errorf("ended with %+v", out.End)
			}
		})
	}
}

func TestProgramThatWasChangedIsNotRun(t *testing.T) {
	program := filepath.Join(t.TempDir(), "guard.sh")
	if err := os.WriteFile(program, []byte("#!/bin/sh\nexit 0 # other\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	change := watched(t, Hook{Event: PreToolUse, Command: program, Program: program,
		ProgramSHA256: "306c6ca7407560340797866e077e053627ad409277d1b9da58106fce4cf717cb"})
	out, stream := play(t, callScript("exec_command", `{"cmd":"true"}`), change)
	if out.End.Exit != fault.Blocked || !strings.Contains(stream, "guard.sh was changed") {
		t.Errorf("ended with %+v", out.End)
	}
}

func TestHookThatStopsEndsTheRun(t *testing.T) {
	answer := `echo '{"continue":false,"stopReason":"enough"}'`
	for at, want := range map[HookEvent]fault.Exit{PreToolUse: fault.Blocked, PostToolUse: fault.Failed, StopEvent: fault.Failed, SessionStart: fault.Blocked} {
		t.Run(string(at), func(t *testing.T) {
			out, stream := play(t, callScript("exec_command", `{"cmd":"true"}`), watched(t, Hook{Event: at, Command: answer}))
			if out.End.Exit != want || !strings.Contains(out.End.Err.Message, "enough") {
				t.Errorf("ended with %+v: %+v", out.End, out.End.Err)
			}
			if turns := strings.Count(stream, `"type":"turn.started"`); at != StopEvent && turns > 1 {
				t.Errorf("%d turns", turns)
			}
		})
	}
}

func TestFailedHookOfTheStartNeedsTheEnvironment(t *testing.T) {
	out, stream := play(t, `{"text":"Done."}`, watched(t, Hook{Event: SessionStart, Command: "exit 1", OnError: HookDeny}))
	if out.End.Exit != fault.Environment || out.End.Reason != "hook_failed" || strings.Contains(stream, "turn.started") {
		t.Errorf("ended with %+v", out.End)
	}
	out, _ = play(t, `{"text":"Done."}`, watched(t, Hook{Event: SessionStart, Command: "exit 1"}))
	if out.End.Exit != fault.Success {
		t.Errorf("ended with %+v", out.End)
	}
}

// TestAFailedHookComesToWhatItsEntrySays fails in three ways, at each moment.
func TestAFailedHookComesToWhatItsEntrySays(t *testing.T) {
	refused := map[HookEvent]fault.Exit{SessionStart: fault.Environment, PreToolUse: fault.Blocked, PostToolUse: fault.Success, StopEvent: fault.Failed}
	for at, want := range refused {
		for _, on := range []OnHookError{"", HookDeny, HookReport, HookIgnore} {
			for _, command := range []string{"exit 3", "kill -9 $$", `echo '{"decision":'`} {
				t.Run(fmt.Sprint(at, " ", on, " ", command), func(t *testing.T) {
					if at == SessionStart && strings.HasPrefix(command, "echo") {
						command = `echo '{"decision":"block"}'` // other text is context
					}
					out, stream := play(t, callScript("exec_command", `{"cmd":"echo the-output"}`), watched(t, Hook{Event: at, Command: command, OnError: on}))
					denied := on == HookDeny || on == "" && at == PreToolUse
					exit := fault.Success
					if denied {
						exit = want
					}
					told := strings.Contains(stream, `"code":"hook_failed","message":"the `+string(at)+` hook`)
					if out.End.Exit != exit || told != (on == HookReport || on == "" && at != PreToolUse) {
						t.Errorf("ended with %+v, told %v", out.End, told)
					}
					if !strings.Contains(stream, `"outcome":"error"`) || strings.Contains(stream, `"decision":"deny"`) != denied {
						t.Errorf("hook.finished says otherwise:\n%s", stream)
					}
					if shown := strings.Contains(stream, `Output:\nthe-output`); denied == shown && at != StopEvent {
						t.Errorf("the result is shown: %v", shown)
					}
				})
			}
		}
	}
}

// FuzzHookAnswer checks that no text makes a hook say two things, or anything at
// all where an error is due.
func FuzzHookAnswer(f *testing.F) {
	for _, text := range []string{"", "{}", "x", `{"decision":"block","reason":"no"}`, `{"hookSpecificOutput":{"permissionDecision":"ask","updatedInput":{}}}`, `{"continue":false}`, "{}{}"} {
		for i := range HookEvents() {
			f.Add(i, text)
		}
	}
	f.Fuzz(func(t *testing.T, n int, text string) {
		events := HookEvents()
		at := events[(n%len(events)+len(events))%len(events)]
		a, err := readHookAnswer(at, text)
		if err != nil {
			return
		}
		if at != PreToolUse && (a.ask || a.allow || a.input != nil) {
			t.Errorf("%s: %q decides a call", at, text)
		}
		if a.input != nil && !json.Valid(a.input) {
			t.Errorf("%q has an input that is no JSON", text)
		}
	})
}

// TestBackgroundCommandIsTold looks at a command that goes on after its call:
// its hook is started at its end, with the call that started it.
func TestBackgroundCommandIsTold(t *testing.T) {
	dir := t.TempDir()
	gate := filepath.Join(dir, "gate")
	_, stream := play(t, strings.Join([]string{
		fmt.Sprintf(`{"tool_calls":[{"id":"first","name":"exec_command","args":{"cmd":"until test -e %s; do sleep 0.02; done; echo over","yield_time_ms":250}}]}`, gate),
		fmt.Sprintf(`{"expect":"session ID (?P<x>[0-9]+)","capture":{"n":"session ID ([0-9]+)"},"tool_calls":[{"name":"exec_command","args":{"cmd":"touch %s"}}]}`, gate),
		`{"tool_calls":[{"name":"write_stdin","args_raw":"{\"session_id\":${n},\"chars\":\"\",\"yield_time_ms\":20000}"}]}`,
		`{"text":"Done."}`}, "\n"), watched(t, Hook{Event: PostToolUse, Command: "cat > " + dir + "/$$.json"}))
	files, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil || len(files) != 2 {
		t.Fatalf("%d payloads, %v\n%s", len(files), err, stream)
	}
	found := false
	for _, name := range files {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		var p hookPayload
		if err := json.Unmarshal(data, &p); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(p.ToolInput), "until test") {
			continue
		}
		found = true
		if p.ToolName != "Bash" || p.ToolUseID != "first" || p.ToolResponse == nil || !strings.Contains(p.ToolResponse.Content, "over") {
			t.Errorf("got %s", data)
		}
	}
	if !found {
		t.Errorf("the end of the command was not told:\n%s", stream)
	}
}
