package config

import (
	"encoding/json"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"drover/runner"
	"drover/tools/sandbox"
)

const someHooks = `hooks:
  PreToolUse:
    - matcher: "Bash|Edit"
      hooks:
        - {type: command, command: ./check.sh, timeout: 5, name: guard}
        - {command: audit, on_error: ignore, network: true, write: [log], timeout: 1m}
  Stop:
    - hooks: [{command: test -f done, sandbox: "off"}]
`

func TestHooksOfTheUserAreRead(t *testing.T) {
	w := newWorld(t, someHooks, "")
	got := w.mustLoad(t)
	file := filepath.Join(w.home, "drover", fileName)
	want := []runner.Hook{
		{Event: runner.PreToolUse, Name: "guard", Matcher: "Bash|Edit", Command: "./check.sh", Timeout: 5 * time.Second, OnError: runner.HookDeny, File: file, Line: 5},
		{Event: runner.PreToolUse, Name: "audit", Matcher: "Bash|Edit", Command: "audit", Timeout: time.Minute, OnError: runner.HookIgnore, File: file, Line: 6,
			Rights: sandbox.Rights{Network: true, Write: []string{filepath.Join(filepath.Dir(file), "log")}}},
		{Event: runner.StopEvent, Name: "test -f done", Command: "test -f done", Timeout: time.Minute, OnError: runner.HookReport, File: file, Line: 8, Rights: sandbox.Rights{Off: true}},
	}
	if d := cmp.Diff(want, got.Hooks, cmpopts.IgnoreUnexported(runner.Hook{})); d != "" {
		t.Fatalf("(-want +got):\n%s", d)
	}
}

func TestHooksOfAProjectNeedTrust(t *testing.T) {
	w := newWorld(t, someHooks, "hooks:\n  SessionStart:\n    - hooks: [{command: touch canary}]\n")
	got := w.mustLoad(t)
	if len(got.Hooks) != 3 {
		t.Errorf("got %d hooks", len(got.Hooks))
	}
	if len(got.Warnings) != 1 || !strings.Contains(got.Warnings[0], "hooks is left out: only a trusted project may set it") {
		t.Errorf("warnings %q", got.Warnings)
	}
	w.trust = true
	got = w.mustLoad(t)
	if len(got.Hooks) != 4 || got.Hooks[3].Command != "touch canary" || got.Warnings != nil {
		t.Errorf("got %+v, warnings %q", got.Hooks, got.Warnings)
	}
}

func TestWrongHooksNameTheirPlace(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"event", "hooks:\n  PreTooluse: []", `line 2: hooks: unknown key "PreTooluse", did you mean "PreToolUse"?`},
		{"key of a hook", "hooks:\n  Stop:\n    - hooks:\n        - {comand: x}", `line 4: hooks.Stop[0].hooks[0]: unknown key "comand", did you mean "command"?`},
		{"key of a group", "hooks:\n  Stop:\n    - {hook: []}", `line 3: hooks.Stop[0]: unknown key "hook"`},
		{"no hooks", "hooks:\n  Stop:\n    - {hooks: []}", "line 3: hooks.Stop[0]: it has no hooks"},
		{"no command", "hooks:\n  Stop:\n    - hooks: [{name: x}]", "it has no command"},
		{"type", "hooks:\n  Stop:\n    - hooks: [{type: prompt, command: x}]", `"prompt" is not one of command`},
		{"matcher", "hooks:\n  PreToolUse:\n    - {matcher: '(', hooks: [{command: x}]}", "line 3: hooks.PreToolUse[0]: its matcher is no regular expression"},
		{"matcher without a tool", "hooks:\n  Stop:\n    - {hooks: [{command: x}], matcher: Bash}", "Stop has no tool that a matcher could match"},
		{"timeout", "hooks:\n  Stop:\n    - hooks: [{command: x, timeout: 0}]", `"0" is no number of seconds`},
		{"unit", "hooks:\n  Stop:\n    - hooks: [{command: x, timeout: soon}]", `"soon" is not a duration`},
		{"on_error", "hooks:\n  Stop:\n    - hooks: [{command: x, on_error: allow}]", `"allow" is not one of deny, report, ignore`},
		{"shape", "hooks: [x]", "it must be a mapping of keys"},
		{"group", "hooks: {Stop: [x]}", "it must be a mapping with hooks"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := newWorld(t, c.text, "").load()
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("got  %v\nwant %s", err, c.want)
			}
		})
	}
}

func TestSchemaKnowsTheKeysOfHooks(t *testing.T) {
	type object struct{ Properties map[string]json.RawMessage }
	var s struct {
		Properties struct{ Hooks object }
		Defs       map[string]object `json:"$defs"`
	}
	if err := json.Unmarshal(Schema(), &s); err != nil {
		t.Fatal(err)
	}
	var events []string
	for _, at := range runner.HookEvents() {
		events = append(events, string(at))
	}
	for name, c := range map[string]struct {
		loader []string
		schema object
	}{
		"events": {events, s.Properties.Hooks},
		"group":  {slices.Collect(maps.Keys(hookGroupKeys(nil, nil))), s.Defs["hook_group"]},
		"hook":   {slices.Collect(maps.Keys(hookKeys(&runner.Hook{}))), s.Defs["hook"]},
	} {
		slices.Sort(c.loader)
		if d := cmp.Diff(c.loader, slices.Sorted(maps.Keys(c.schema.Properties))); d != "" {
			t.Errorf("%s (-loader +schema):\n%s", name, d)
		}
	}
}
