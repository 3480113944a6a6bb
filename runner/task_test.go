package runner

import (
	"encoding/json"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"drover/output/fault"
	"drover/runner/strict"
	"drover/tools"
)

// taskFile writes a task with further files, given as name and text in turn.
func taskFile(t *testing.T, text string, more ...string) (path string) {
	t.Helper()
	dir := t.TempDir()
	for i := 0; i < len(more); i += 2 {
		if err := os.WriteFile(filepath.Join(dir, more[i]), []byte(more[i+1]), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	path = filepath.Join(dir, "task.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestTaskFileIsReadWhole(t *testing.T) {
	path := taskFile(t, `version: 1
prompt: "Make ${pkg} pass ${n} times, not $${pkg}."
params: {pkg: ./..., n: 1}
model: script:model.jsonl
cwd: workspace
isolate: copy
policy:
  default: deny
  rules: []
sandbox: workspace-write
network: false
limits: {turns: 20, tool_calls: 9, tokens: 1000, cost_usd: 1.5, wall: 10m, idle: 90s, tool: 1m, denials: 2, output_bytes: 4096}
checks: ["go test ./...", "go vet ./..."]
check_retries: 2
output_schema: {type: object, properties: {b: {}, a: {}}}
labels: {Team: a, n: 1}
add_dirs: [../more, /abs]
mode: default
answers: {target: staging, n: 3}
tools:
  - name: deploy
    description: Deploys.
    parameters: {type: object, properties: {env: {type: string}}, required: [env]}
    command: [./deploy.sh, -n, 1]
    timeout: 30s
  - {name: status, description: Asks., url: "https://example.com/status", headers: {Authorization: STATUS_TOKEN}}
`)
	got, err := LoadTask(path, map[string]string{"n": "${pkg}"})
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Dir(path)
	want := &Task{
		Path: path, Prompt: "Make ./... pass ${pkg} times, not ${pkg}.", Model: "script:" + filepath.Join(dir, "model.jsonl"),
		Cwd: filepath.Join(dir, "workspace"), Isolate: "copy", Sandbox: "workspace-write", NetworkGiven: true,
		PolicyInline: []byte(blanked(got.PolicyInline) + "  default: deny\n  rules: []\n"),
		Limits: Limits{Turns: 20, ToolCalls: 9, Tokens: 1000, CostUSD: 1.5, Wall: 10 * time.Minute, Idle: 90 * time.Second,
			Tool: time.Minute, Denials: 2, OutputBytes: 4096},
		Checks: []string{"go test ./...", "go vet ./..."}, CheckRetries: 2,
		Mode:         ModeDefault,
		Answers:      map[string]string{"target": "staging", "n": "3"},
		SchemaInline: json.RawMessage(`{"type":"object","properties":{"b":{},"a":{}}}`),
		Labels:       map[string]string{"Team": "a", "n": "1"},
		AddDirs:      []string{filepath.Join(filepath.Dir(dir), "more"), "/abs"},
		Tools: []tools.Dynamic{
			{Name: "deploy", Doc: "Deploys.", Command: []string{filepath.Join(dir, "deploy.sh"), "-n", "1"}, Timeout: 30 * time.Second,
				Parameters: json.RawMessage(`{"type":"object","properties":{"env":{"type":"string"}},"required":["env"]}`)},
			{Name: "status", Doc: "Asks.", URL: "https://example.com/status", Headers: map[string]string{"Authorization": "STATUS_TOKEN"}},
		},
	}
	if d := cmp.Diff(want, got, cmpopts.IgnoreUnexported(Task{})); d != "" {
		t.Fatalf("(-want +got):\n%s", d)
	}
	if n := strings.Count(blanked(got.PolicyInline), "\n"); n != 7 {
		t.Fatalf("the policy begins after %d lines, want 7", n)
	}
}

// blanked returns the blank text before an inline policy.
func blanked(policy []byte) string {
	text := string(policy)
	return text[:strings.LastIndex(text[:strings.Index(text, "default")], "\n")+1]
}

func TestPathsOfATaskAreRelativeToItsFile(t *testing.T) {
	path := taskFile(t, "version: 1\npolicy: p.yaml\noutput_schema: s.json\nmodel: ollama/x\nprompt_file: p.md\n", "p.md", "\ufeffLine\r\n  ${}")
	_, err := LoadTask(path, nil)
	if err == nil || !strings.Contains(err.Error(), "line 2 of the prompt: ${ is no parameter") {
		t.Fatalf("got %v", err)
	}
	if err := os.WriteFile(filepath.Join(filepath.Dir(path), "p.md"), []byte("\ufeffLine\r\n  $${} \n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Chdir(filepath.Dir(path))
	got, err := LoadTask("task.yaml", nil)
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Dir(got.Path)
	want := &Task{Path: got.Path, Prompt: "Line\r\n  ${} \n", Model: "ollama/x", PolicyFile: filepath.Join(dir, "p.yaml"), SchemaFile: filepath.Join(dir, "s.json")}
	if d := cmp.Diff(want, got, cmpopts.IgnoreUnexported(Task{})); d != "" || !filepath.IsAbs(dir) {
		t.Fatalf("(-want +got):\n%s", d)
	}
}

func TestLargePromptFileIsKeptByteForByte(t *testing.T) {
	text := strings.Repeat("ä line\r\n", 40000)
	got, err := LoadTask(taskFile(t, "version: 1\nprompt_file: p\n", "p", text), nil)
	if err != nil || got.Prompt != text {
		t.Fatalf("%v, %d bytes of %d", err, len(got.Prompt), len(text))
	}
}

func TestTaskThatCannotBeUsedSaysWhy(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"typo", "version: 1\npromt: x", `line 2: unknown key "promt", did you mean "prompt"?`},
		{"no version", "prompt: x", "it has no version; begin it with the line version: 1"},
		{"empty", "", "it has no version"},
		{"version", "version: 2", "line 1: version: version 2 is not known"},
		{"two prompts", "version: 1\nprompt: x\nprompt_file: y", "line 3: prompt_file: prompt is given too"},
		{"blank prompt", "version: 1\nprompt: ' '", "line 2: prompt: it is empty"},
		{"unknown parameter", "version: 1\nprompt: |\n  a\n  ${pkt}\nparams: {pkg: x}", "line 2: prompt: line 2 of the prompt: ${pkt} is unknown: params declares no pkt, did you mean pkg?"},
		{"shell syntax", "version: 1\nprompt: 'a ${HOME:-x} b'", "${HOME:-x is no parameter; write $${ for a literal ${"},
		{"open parameter", "version: 1\nprompt: 'a ${x'", "${x is no parameter"},
		{"parameter without value", "version: 1\nparams: {pkg: }", "params.pkg: the parameter has no value; give it with --param pkg=…"},
		{"parameter name", "version: 1\nparams: {1a: x}", "a parameter's name consists of"},
		{"zero turns", "version: 1\nlimits: {turns: 0}", "line 2: limits.turns: 0 is too small"},
		{"negative wall", "version: 1\nlimits:\n  wall: -1s", "line 3: limits.wall: -1s is too small"},
		{"unit", "version: 1\nlimits: {wall: 10}", "has no unit"},
		{"limit typo", "version: 1\nlimits: {turn: 3}", `line 2: limits: unknown key "turn", did you mean "turns"?`},
		{"isolate", "version: 1\nisolate: yes", `"yes" is not one of none, copy, worktree`},
		{"agents", "version: 1\nlimits: {agents: 3}", "limits.agents: this version of drover has no sub-agents; leave the key out"},
		{"mode", "version: 1\nmode: plans", `line 2: mode: "plans" is not one of default, plan, did you mean "plan"?`},
		{"empty answer", "version: 1\nanswers: {a: ' '}", "line 2: answers.a: it is empty"},
		{"answer list", "version: 1\nanswers: [a]", "line 2: answers: it must be a mapping of keys, not a list"},
		{"tool without a description", "version: 1\ntools: [{name: x, command: [x]}]", "line 2: tools[0]: it has no description"},
		{"tool of drover", "version: 1\ntools: [{name: spawn_agent, description: x, command: [x]}]", `drover has a tool "spawn_agent" itself`},
		{"tool by another name", "version: 1\ntools: [{name: applypatch, description: x, command: [x]}]", `drover has a tool "applypatch" itself`},
		{"tool name", "version: 1\ntools: [{name: 'a b', description: x, command: [x]}]", "the name consists of"},
		{"tool twice", "version: 1\ntools: [{name: a, description: x, command: [x]}, {name: a, description: y, url: 'https://y'}]", `line 2: tools[1]: there are two tools "a"`},
		{"tool that does nothing", "version: 1\ntools: [{name: a, description: x}]", "it has neither command nor url"},
		{"tool that does two things", "version: 1\ntools: [{name: a, description: x, command: [x], url: 'https://y'}]", "it has both command and url"},
		{"tool without a program", "version: 1\ntools: [{name: a, description: x, command: []}]", "tools[0].command: it names no program"},
		{"tool key", "version: 1\ntools: [{name: a, desciption: x}]", `unknown key "desciption", did you mean "description"?`},
		{"tool parameters", "version: 1\ntools: [{name: a, description: x, command: [x], parameters: {type: object, properties: {b: {type: text}}}}]", `tools[0].parameters: JSON has no type "text"`},
		{"tool arguments that are no object", "version: 1\ntools: [{name: a, description: x, command: [x], parameters: {type: array}}]", "with type: object"},
		{"tool address", "version: 1\ntools: [{name: a, description: x, url: 'http://example.com'}]", "the url must begin with https://"},
		{"tool address with a password", "version: 1\ntools: [{name: a, description: x, url: 'https://u:p@example.com'}]", "the url holds a user or a password"},
		{"secret in a header", "version: 1\ntools: [{name: a, description: x, url: 'https://y', headers: {Authorization: Bearer abc}}]", "must be the name of an environment variable"},
		{"job", "version: 1\njob: {sorce: x}", `unknown key "sorce", did you mean "source"?`},
		{"missing prompt file", "version: 1\nprompt_file: nope.md", `prompt file "nope.md" cannot be used: no such file or directory`},
		{"latin-1", "version: 1\nprompt: \xe4", "line 2: it is not UTF-8 text"},
		{"policy list", "version: 1\npolicy: [a]", "line 2: policy: it must be text, not a list"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := LoadTask(taskFile(t, c.text), nil)
			var f *fault.Error
			if !errors.As(err, &f) || f.Exit != fault.Config || f.Code != "task_invalid" {
				t.Fatalf("got %v", err)
			}
			if !strings.Contains(f.Error(), c.want) {
				t.Errorf("got  %s\nwant %s", f.Error(), c.want)
			}
		})
	}
	_, err := LoadTask(filepath.Join(t.TempDir(), "missing.yaml"), nil)
	if f := fault.From(err); f.Exit != fault.Config || !strings.Contains(f.Error(), "no such file") {
		t.Fatalf("got %v", err)
	}
}

func TestParameterThatIsNotDeclaredIsAUsageError(t *testing.T) {
	path := taskFile(t, "version: 1\nprompt: x\nparams: {b: 1, a: }\n")
	_, err := LoadTask(path, map[string]string{"c": "1", "a": ""})
	if f := fault.From(err); f.Exit != fault.Usage || f.Fix != "its parameters are: a, b" {
		t.Fatalf("got %+v", err)
	}
	if _, err := LoadTask(path, map[string]string{"a": ""}); err != nil {
		t.Fatal(err)
	}
}

func TestTaskSchemaKnowsTheKeysOfTheLoader(t *testing.T) {
	var schema struct {
		Properties map[string]struct{ Properties map[string]any }
	}
	if err := json.Unmarshal(TaskSchema(), &schema); err != nil {
		t.Fatal(err)
	}
	if _, err := CompileSchema("task", TaskSchema()); err != nil {
		t.Fatal(err)
	}
	var task Task
	known := []string{"version", "prompt", "prompt_file", "params", "policy"}
	for _, group := range []strict.Keys{task.runKeys(), task.checkKeys()} {
		known = slices.AppendSeq(known, maps.Keys(group))
	}
	slices.Sort(known)
	if d := cmp.Diff(known, slices.Sorted(maps.Keys(schema.Properties))); d != "" {
		t.Errorf("keys (-loader +schema):\n%s", d)
	}
	var defs struct {
		Defs map[string]struct{ Properties map[string]any } `json:"$defs"`
	}
	if err := json.Unmarshal(TaskSchema(), &defs); err != nil {
		t.Fatal(err)
	}
	tool := slices.Sorted(maps.Keys(task.toolKeys(&tools.Dynamic{})))
	if d := cmp.Diff(tool, slices.Sorted(maps.Keys(defs.Defs["tool"].Properties))); d != "" {
		t.Errorf("keys of a tool (-loader +schema):\n%s", d)
	}
	job := slices.Sorted(maps.Keys(task.jobKeys(&TaskJob{})))
	if d := cmp.Diff(job, slices.Sorted(maps.Keys(schema.Properties["job"].Properties))); d != "" {
		t.Errorf("keys of a job (-loader +schema):\n%s", d)
	}
	limits := slices.Sorted(maps.Keys(task.Limits.keys()))
	if d := cmp.Diff(limits, slices.Sorted(maps.Keys(schema.Properties["limits"].Properties))); d != "" {
		t.Errorf("limits (-loader +schema):\n%s", d)
	}
}

// FuzzLoadTask checks that any file is read or refused with a fault of class
// Config, and that no budget of a task that was read is negative.
func FuzzLoadTask(f *testing.F) {
	f.Add([]byte("version: 1\nprompt: a ${b} $${c}\nparams: {b: 1}\nlimits: {turns: 1, wall: 1s}\n"))
	f.Add([]byte("version: 1\npolicy: {default: deny}\noutput_schema: {type: object}\nchecks: [a]\n"))
	path := filepath.Join(f.TempDir(), "task.yaml")
	f.Fuzz(func(t *testing.T, data []byte) {
		if strings.Contains(string(data), "prompt_file") {
			t.Skip("prompt_file names files of the machine that runs this")
		}
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		task, err := LoadTask(path, nil)
		if err != nil {
			if fault.From(err).Exit != fault.Config {
				t.Fatalf("got %v", err)
			}
			return
		}
		l := task.Limits
		if l.Turns < 0 || l.ToolCalls < 0 || l.Tokens < 0 || l.CostUSD < 0 || l.Wall < 0 || l.Denials < 0 || task.CheckRetries < 0 {
			t.Fatalf("limits %+v", l)
		}
	})
}
