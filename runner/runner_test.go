package runner

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"drover/output/event"
	"drover/output/fault"
	"drover/runner/model"
	"drover/tools"
	"drover/tools/policy"
)

// stream is a sink that keeps the lines.
type stream struct{ bytes.Buffer }

func (s *stream) Emit(e event.Event) error {
	line, err := event.AppendJSON(nil, e)
	s.Write(append(line, '\n'))
	return err
}

func (s *stream) Close() error { return nil }

// play runs a script to its end and checks the stream.
func play(t testing.TB, script string, change func(*Options)) (Outcome, string) {
	t.Helper()
	return playUnder(t.Context(), t, script, change)
}

func playUnder(ctx context.Context, t testing.TB, script string, change func(*Options)) (Outcome, string) {
	t.Helper()
	o, out := stage(t, script)
	log := o.Log
	if change != nil {
		change(&o)
	}
	outcome := Run(ctx, o)
	if _, err := Finish(log, outcome); err != nil {
		t.Fatal(err)
	}
	if o.Log != log {
		return outcome, "" // a benchmark's own log
	}
	for _, problem := range event.CheckStream(strings.NewReader(out.String())) {
		t.Errorf("stream: %v", problem)
	}
	if t.Failed() {
		t.Log(out.String())
	}
	return outcome, out.String()
}

// stage is what a run of a script needs, and the stream that it will write.
func stage(t testing.TB, script string) (Options, *stream) {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "m.jsonl"), []byte(script), 0o600); err != nil {
		t.Fatal(err)
	}
	opened, err := model.Open("script:m.jsonl", model.Config{BaseDir: dir, Getenv: func(string) string { return "" }})
	if err != nil {
		t.Fatal(err)
	}
	allowed, err := policy.Load(policy.Sources{Preset: "yolo", Yolo: true, Roots: policy.Roots{Workspace: dir, Writable: []string{dir}}})
	if err != nil {
		t.Fatal(err)
	}
	files, err := tools.OpenFiles(tools.FilesOptions{Cwd: dir, Writable: []string{dir}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = files.Close() })
	out := &stream{}
	log := event.New(event.Options{RunID: "run_test"})
	log.Attach(event.Attachment{Name: "test", Sink: out, Level: event.Full})
	return Options{
		SessionID: "ses_test", Prompt: "go", Model: opened, Tools: tools.All(), Policy: allowed, Files: files, Cwd: dir, Log: log,
		Limits:   Limits{Turns: 50},
		Commands: tools.Commands{RunID: "run_test", Environ: os.Environ(), Grace: time.Second},
		Started: event.RunStartedEvent{Schema: event.SchemaID, Product: "drover", Version: "test", Cwd: dir,
			Policy: event.PolicyRef{Default: "allow"}, Capabilities: []string{}},
	}, out
}

type syncInput struct {
	Name string `json:"name"`
}

// meeting is a pair of tools: calls of the parallel one wait until two are
// inside, calls of the serial one notice anybody else.
type meeting struct {
	mu      sync.Mutex
	inside  int
	most    int
	met     chan struct{}
	overlap bool
}

func (m *meeting) tools() []tools.Tool {
	enter := func(d int) int {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.inside += d
		m.most = max(m.most, m.inside)
		return m.inside
	}
	return []tools.Tool{
		tools.New(tools.Def[syncInput]{Name: "meet", Parallel: true, Run: func(ctx context.Context, in syncInput, _ tools.Env) (tools.Result, error) {
			if enter(1) == 2 {
				close(m.met)
			}
			defer enter(-1)
			select {
			case <-m.met:
				return tools.Result{Text: in.Name + " met"}, nil
			case <-time.After(200 * time.Millisecond):
				return tools.Result{Text: in.Name + " alone"}, nil
			}
		}}),
		tools.New(tools.Def[syncInput]{Name: "alone", Run: func(context.Context, syncInput, tools.Env) (tools.Result, error) {
			if enter(1) != 1 {
				m.overlap = true
			}
			defer enter(-1)
			return tools.Result{Text: "was alone"}, nil
		}}),
	}
}

func TestParallelCallsOverlap(t *testing.T) {
	m := &meeting{met: make(chan struct{})}
	out, _ := play(t, `{"tool_calls":[{"name":"meet","args":{"name":"a"}},{"name":"meet","args":{"name":"b"}}]}
{"expect":"a met\nb met","text":"Both met."}`, func(o *Options) { o.Tools = m.tools() })
	if out.End.Exit != fault.Success {
		t.Errorf("ended with %+v", out.End)
	}
}

func TestSerialCallRunsAlone(t *testing.T) {
	m := &meeting{met: make(chan struct{})}
	out, _ := play(t, `{"tool_calls":[{"name":"meet","args":{"name":"a"}},{"name":"alone","args":{"name":"x"}},{"name":"meet","args":{"name":"b"}}]}
{"expect":"a alone\nwas alone\nb alone","text":"Nobody met."}`, func(o *Options) { o.Tools = m.tools() })
	if out.End.Exit != fault.Success || m.overlap || m.most != 1 {
		t.Errorf("ended with %+v, overlap %v, most %d", out.End, m.overlap, m.most)
	}
}

func TestPanicOfAToolEndsTheRunInOrder(t *testing.T) {
	bomb := tools.New(tools.Def[syncInput]{Name: "bomb", Parallel: true, Run: func(context.Context, syncInput, tools.Env) (tools.Result, error) {
		panic("boom")
	}})
	out, lines := play(t, `{"tool_calls":[{"name":"bomb","args":{"name":"a"}}]}`+"\n", func(o *Options) { o.Tools = []tools.Tool{bomb} })
	if out.End.Exit != fault.Internal || !strings.Contains(lines, `"type":"error"`) || !strings.Contains(lines, `"reason":"crash"`) {
		t.Errorf("ended with %+v", out.End)
	}
}

func TestPanicOfTheModelEndsTheRunInOrder(t *testing.T) {
	out, _ := play(t, `{"text":"x"}`, func(o *Options) { o.Model.Provider = panicking{} })
	if out.End.Exit != fault.Internal {
		t.Errorf("ended with %+v", out.End)
	}
}

func TestPanicWhileCallsAreShownLeavesNoneOpen(t *testing.T) {
	bomb := tools.New(tools.Def[syncInput]{Name: "bomb", Display: func(in syncInput, _ tools.Env) string {
		if in.Name == "b" {
			panic("boom")
		}
		return in.Name
	}, Run: func(context.Context, syncInput, tools.Env) (tools.Result, error) { return tools.Result{}, nil }})
	out, lines := play(t, `{"tool_calls":[{"name":"bomb","args":{"name":"a"}},{"name":"bomb","args":{"name":"b"}}]}`+"\n", func(o *Options) { o.Tools = []tools.Tool{bomb} })
	if out.End.Exit != fault.Internal || strings.Count(lines, `"type":"tool.incomplete"`) != 2 {
		t.Errorf("ended with %+v", out.End)
	}
}

func TestCancelledCallsSaySo(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	slow := tools.New(tools.Def[syncInput]{Name: "slow", Run: func(ctx context.Context, _ syncInput, _ tools.Env) (tools.Result, error) {
		cancel(&Stop{Exit: fault.Terminated, Reason: "sigterm"})
		<-ctx.Done()
		return tools.Result{}, ctx.Err()
	}})
	out, lines := playUnder(ctx, t, `{"tool_calls":[{"name":"slow","args":{"name":"a"}},{"name":"slow","args":{"name":"b"}}]}`+"\n",
		func(o *Options) { o.Tools = []tools.Tool{slow} })
	if strings.Count(lines, `"type":"tool.incomplete"`) != 2 || !strings.Contains(lines, `"reason":"cancelled"`) || out.End.Exit != fault.Terminated {
		t.Errorf("ended with %+v", out.End)
	}
}

func TestAbortTexts(t *testing.T) {
	for tool, want := range map[string]string{
		"shell":         "Wall time: 1.5 seconds\naborted by user",
		"shell_command": "Wall time: 1.5 seconds\naborted by user",
		"exec_command":  "aborted by user after 1.5s",
	} {
		if got := abortText(tool, 1500*time.Millisecond); got != want {
			t.Errorf("%s: %q", tool, got)
		}
	}
	if got := abortText("list_dir", 0); got != "aborted by user after 0.1s" {
		t.Errorf("no time at all: %q", got)
	}
}

func TestMissingUsageIsEstimatedAndMarked(t *testing.T) {
	out, lines := play(t, `{"text":"`+strings.Repeat("word ", 100)+`"}`, nil)
	if !out.Usage.Estimated || out.Usage.InputTokens == 0 || out.Usage.OutputTokens != 125 || !strings.Contains(lines, `"estimated":true`) {
		t.Errorf("usage %+v", out.Usage)
	}
}

func TestBudgetHoldsWithoutUsage(t *testing.T) {
	call := `{"tool_calls":[{"name":"alone","args":{"name":"x%d"}}]}` + "\n"
	var script strings.Builder
	for i := range 40 {
		fmt.Fprintf(&script, call, i)
	}
	m := &meeting{}
	out, _ := play(t, script.String(), func(o *Options) { o.Tools, o.Limits.Tokens = m.tools(), 3000 })
	if out.End.Exit != fault.LimitSpend || out.Turns > 20 {
		t.Errorf("ended with %+v after %d turns", out.End, out.Turns)
	}
}

func TestCallIDsStayUnique(t *testing.T) {
	m := &meeting{}
	_, lines := play(t, `{"tool_calls":[{"id":"x","name":"alone","args":{"name":"a"}},{"id":"x","name":"alone","args":{"name":"b"}}]}
{"tool_calls":[{"id":"x","name":"alone","args":{"name":"c"}},{"id":"\u001b[31m","name":"alone","args":{"name":"d"}}]}
{"text":"Done."}`, func(o *Options) { o.Tools = m.tools() })
	for _, id := range []string{`"x"`, `"x_2"`, `"x_3"`, `"call_4"`} {
		if !strings.Contains(lines, `"tool_call_id":`+id) {
			t.Errorf("no call %s", id)
		}
	}
}

func TestAnswerThatMissesItsSchemaIsAskedForAgain(t *testing.T) {
	schema, err := CompileSchema("s.json", []byte(`{"type":"object","required":["n"],"properties":{"n":{"type":"integer"}}}`))
	if err != nil {
		t.Fatal(err)
	}
	with := func(o *Options) { o.Schema = schema }
	out, _ := play(t, "{\"text\":\"It is four.\"}\n{\"expect\":\"does not match\",\"text\":\"```json\\n{\\\"n\\\":4}\\n```\"}", with)
	if out.End.Exit != fault.Success || string(out.StructuredOutput) != `{"n":4}` {
		t.Errorf("ended with %+v, %s", out.End, out.StructuredOutput)
	}
	out, _ = play(t, strings.Repeat(`{"text":"It is four."}`+"\n", 5), with)
	if out.End.Exit != fault.InvalidOutput || out.Message != "It is four." || out.StructuredError == "" || out.Turns != maxSchemaTries {
		t.Errorf("ended with %+v, message %q, %d turns", out.End, out.Message, out.Turns)
	}
	for _, bad := range []string{`{`, `[]`, `{"type":7}`, `{"pattern":"(?=x)"}`} {
		if _, err := CompileSchema("s.json", []byte(bad)); fault.From(err) == nil || fault.From(err).Exit != fault.Config {
			t.Errorf("schema %s: %v", bad, err)
		}
	}
}

func TestRefusalOfTheModelIsNoSuccess(t *testing.T) {
	for _, finish := range []string{"refusal", "content_filter"} {
		out, _ := play(t, `{"text":"I will not.","finish":"`+finish+`"}`, nil)
		if out.End.Exit != fault.Model || out.End.Reason != finish || out.Message != "" {
			t.Errorf("%s: %+v, message %q", finish, out.End, out.Message)
		}
	}
}

func TestFirstRequestIsSmall(t *testing.T) {
	r := &run{Options: Options{Tools: tools.All(), Policy: mustPolicy(t), Cwd: "/home/somebody/src/project"}}
	r.chooseTools()
	size := len(systemPrompt(r))
	for _, o := range r.offered {
		size += len(o.Name) + len(o.Doc) + len(o.Schema) + len(o.Grammar)
	}
	if size > 11<<10 {
		t.Errorf("system prompt and tools have %d bytes", size)
	}
}

func mustPolicy(t *testing.T) *policy.Policy {
	t.Helper()
	p, err := policy.Load(policy.Sources{Roots: policy.Roots{Workspace: "/home/somebody/src/project"}})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestInstructionsComeFromTheRepositoryDown(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"AGENTS.md": "above", "repo/AGENTS.md": "root", "repo/a/b/AGENTS.md": strings.Repeat("x", 40<<10)} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "repo", ".git"), 0o755); err != nil {
		t.Fatal(err)
	}
	got, skipped := LoadInstructions(filepath.Join(dir, "repo", "a", "b"))
	if len(skipped) != 0 || len(got) != 2 || got[0].Text != "root" || got[1].Path != "a/b/AGENTS.md" {
		t.Fatalf("got %+v, %v", got, skipped)
	}
	if len(got[1].Text) > maxInstructions+100 || !strings.Contains(got[1].Text, "left out") {
		t.Errorf("the long file has %d bytes", len(got[1].Text))
	}
	// A link out of the repository is not followed.
	if err := os.Remove(filepath.Join(dir, "repo", "AGENTS.md")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(dir, "AGENTS.md"), filepath.Join(dir, "repo", "AGENTS.md")); err != nil {
		t.Fatal(err)
	}
	if got, skipped := LoadInstructions(filepath.Join(dir, "repo")); len(got) != 0 || len(skipped) != 1 || !strings.Contains(skipped[0], "escapes") {
		t.Errorf("a link out of the repository was read: %+v, %v", got, skipped)
	}
}

func TestInstructionsThatCannotBeReadStopNothing(t *testing.T) {
	for name, make := range map[string]func(path string) error{
		"plain file": func(path string) error { return syscall.Mkfifo(path, 0o600) },
		"not UTF-8":  func(path string) error { return os.WriteFile(path, []byte("\xff\xfe"), 0o600) },
		"too large": func(path string) error {
			return errors.Join(os.WriteFile(path, nil, 0o600), os.Truncate(path, 3<<30))
		},
		"AGENTS.md": func(path string) error { return os.Symlink("AGENTS.md", path) },
	} {
		dir := t.TempDir()
		if err := make(filepath.Join(dir, "AGENTS.md")); err != nil {
			t.Skip("cannot be made here: ", err)
		}
		if got, skipped := LoadInstructions(dir); len(got) != 0 || len(skipped) != 1 || !strings.Contains(skipped[0], name) {
			t.Errorf("%s: got %+v, %v", name, got, skipped)
		}
	}
}

func BenchmarkScriptTurn(b *testing.B) {
	m := &meeting{}
	var script strings.Builder
	for i := range b.N {
		fmt.Fprintf(&script, `{"tool_calls":[{"name":"alone","args":{"name":"x%d"}}],"usage":{"input_tokens":10,"output_tokens":5},"chunk":4096}`+"\n", i)
	}
	script.WriteString(`{"text":"Done."}`)
	b.ReportAllocs()
	play(b, script.String(), func(o *Options) {
		o.Tools, o.Limits.Turns = m.tools(), 0
		o.Log = event.New(event.Options{RunID: "run_test"})
		b.ResetTimer()
	})
}

type panicking struct{ model.Provider }

func (panicking) Name() string { return "panicking" }

// TestKnownWindowIsKept plays a conversation of outputs that do not fit a small
// window together.
func TestKnownWindowIsKept(t *testing.T) {
	wide := tools.New(tools.Def[syncInput]{Name: "wide", Run: func(_ context.Context, in syncInput, _ tools.Env) (tools.Result, error) {
		return tools.Result{Text: strings.Repeat(in.Name, 8000)}, nil
	}})
	script := `{"tool_calls":[{"name":"wide","args":{"name":"a"}}]}
{"tool_calls":[{"name":"wide","args":{"name":"b"}}]}
{"tool_calls":[{"name":"wide","args":{"name":"c"}}]}
{"text":"Done."}`
	for window, want := range map[int]bool{0: false, 100_000: false, 6000: true} {
		out, lines := play(t, script, func(o *Options) {
			o.Tools, o.Model.Info.ContextWindow = []tools.Tool{wide}, window
		})
		if out.End.Exit != fault.Success || strings.Contains(lines, `"type":"context.compacted"`) != want {
			t.Errorf("window %d: ended with %+v, shortened %v", window, out.End, !want)
		}
	}
}
