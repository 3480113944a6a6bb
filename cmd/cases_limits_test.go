package cmd

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"drover/output/event"
)

// TestLimitEndsTheRunAndSaysWhatWasDone (github.com/openai/codex/issues/33294)
// has a model that calls a tool for ever.
func TestLimitEndsTheRunAndSaysWhatWasDone(t *testing.T) {
	t.Parallel()
	var forever []m
	for i := range 60 {
		r := calls(execCall(fmt.Sprintf("echo %d >> done.txt", i)))
		r["usage"] = m{"input_tokens": 90, "output_tokens": 10}
		forever = append(forever, r)
	}
	sleeping := []m{calls(execCall("echo x > done.txt; sleep 300"))}
	for _, c := range []struct {
		flag, value, limit string
		script             []m
		exit               int
		status             event.RunStatus
		turns              int
	}{
		{"--max-turns", "5", "turns", forever, 12, "limit", 5},
		{"--max-tool-calls", "3", "tool_calls", forever, 12, "limit", 0},
		{"--max-tokens", "1000", "tokens", forever, 13, "limit", 10},
		{"--timeout", "2s", "wall_s", sleeping, 14, "timeout", 1},
		{"--idle-timeout", "2s", "idle_s", sleeping, 14, "timeout", 1},
	} {
		t.Run(c.limit, func(t *testing.T) {
			t.Parallel()
			p := run(t, script(t, c.script...), c.flag, c.value, "go")
			stream := p.mustEnd(c.exit)
			end := lastLine(t, stream)
			reached := bodies[event.LimitReachedEvent](t, stream)
			if len(reached) != 1 || reached[0].Limit != c.limit || end.Reason != "limit_"+c.limit || end.Status != c.status {
				t.Errorf("reached %+v, reason %s, status %s", reached, end.Reason, end.Status)
			}
			if end.Error == nil || end.Error.Message == "" || !strings.Contains(p.stderr.String(), end.Error.Message) {
				t.Errorf("error %+v; stderr %s", end.Error, p.stderr.String())
			}
			done := strings.Count(p.tree(".")["done.txt"], "\n")
			if end.ToolCalls["exec_command"]+len(end.Incomplete) < done || done == 0 || end.Message != "" {
				t.Errorf("calls %v, %d were run; message %q", end.ToolCalls, done, end.Message)
			}
			if c.turns > 0 && end.Turns != c.turns {
				t.Errorf("%d turns, want %d", end.Turns, c.turns)
			}
		})
	}
}

const numberSchema = `{"type":"object","required":["n"],"properties":{"n":{"type":"number"}},"additionalProperties":false}`

// TestAnswerThatNeverMeetsItsSchema (github.com/anthropics/claude-code/issues/77026)
// ends the run with its own code and keeps what the model said.
func TestAnswerThatNeverMeetsItsSchema(t *testing.T) {
	t.Parallel()
	var answers []m
	for i := range 10 {
		answers = append(answers, says(fmt.Sprintf("It is number %d.", i)))
	}
	p := run(t, script(t, answers...), "--output-schema", "s.json", "go")
	p.lay(map[string]string{"s.json": numberSchema})
	end := lastLine(t, p.mustEnd(15))
	if end.Status != "invalid_output" || end.Reason != "invalid_output" || end.StructuredOutput != nil || end.StructuredError == "" {
		t.Errorf("got %+v", end)
	}
	if end.Turns >= 10 || end.Turns < 2 || end.Message != fmt.Sprintf("It is number %d.", end.Turns-1) {
		t.Errorf("%d turns, message %q", end.Turns, end.Message)
	}
}

// TestWorkSurvivesAWrongFinalAnswer (github.com/anthropics/claude-code/issues/75086)
// asks only for the final message again.
func TestWorkSurvivesAWrongFinalAnswer(t *testing.T) {
	t.Parallel()
	var responses []m
	for i := range 10 {
		responses = append(responses, calls(execCall(fmt.Sprintf("echo %d >> done.txt", i))))
	}
	responses = append(responses, says(`{"n":"four"}`), m{"expect": "does not match the JSON Schema", "text": `{"n":4}`})
	for _, r := range responses {
		r["usage"] = m{"input_tokens": 100, "output_tokens": 10}
	}
	p := run(t, script(t, responses...), "--output-schema", "s.json", "go")
	p.lay(map[string]string{"s.json": numberSchema})
	stream := p.mustEnd(0)
	end := lastLine(t, stream)
	if string(end.StructuredOutput) != `{"n":4}` || end.StructuredError != "" || end.Turns != 12 || end.ToolCalls["exec_command"] != 10 {
		t.Errorf("got %+v", end)
	}
	if n := strings.Count(p.tree(".")["done.txt"], "\n"); n != 10 {
		t.Errorf("the work was done %d times", n)
	}
	if end.Usage.InputTokens != 1200 || end.Usage.OutputTokens != 120 || end.CostUSD == nil {
		t.Errorf("usage %+v, cost %v", end.Usage, end.CostUSD)
	}
	var texts []string
	for _, e := range bodies[event.MessageEvent](t, stream) {
		texts = append(texts, e.Text)
	}
	if !strings.Contains(strings.Join(texts, "\n"), `{"n":"four"}`) {
		t.Errorf("the raw answer is gone: %q", texts)
	}
}

// TestSearchSaysWhatItHasNotSeen (github.com/anthropics/claude-code/issues/84161):
// no match is no proof while files are left out.
func TestSearchSaysWhatItHasNotSeen(t *testing.T) {
	t.Parallel()
	p := run(t, "", "-C", "work", "go")
	p.lay(map[string]string{
		"work/.gitignore": "build/\n", "work/build/out.log": "needle\n", "work/.hidden": "needle\n", "work/a.txt": "hay\n", "work/.git/HEAD": "ref: refs/heads/main\n",
		"model.jsonl": script(t, calls(m{"name": "search_in_files", "args": m{"query": "needle"}}),
			calls(m{"name": "search_in_files", "args": m{"query": "needle", "include_ignored": true, "include_hidden": true}}),
			calls(m{"name": "search_in_files", "args": m{"query": "needle", "path": "build"}}), says("Done.")),
	})
	results := bodies[event.ToolResultEvent](t, p.mustEnd(0))
	if first := results[0].Content; strings.Contains(first, "build/out.log") || !strings.Contains(first, "hidden") || !strings.Contains(first, "ignore") {
		t.Errorf("nothing says what was left out: %s", first)
	}
	if last := results[2].Content; !strings.Contains(last, "out.log:1: needle") {
		t.Errorf("a folder that is named is not searched: %s", last)
	}
}

// TestWalksEnd has links that lead in circles, a pipe and a socket.
func TestWalksEnd(t *testing.T) {
	t.Parallel()
	p := run(t, "", "-C", "work", "go")
	p.lay(map[string]string{
		"work/d/loop": "-> ..", "work/x/y": "-> ../y", "work/y/x": "-> ../x", "work/self": "-> self", "work/f.txt": "needle\n", "work/d/g.txt": "needle\n",
	})
	p.sh("mkfifo work/pipe work/d/pipe")
	p.lay(map[string]string{"model.jsonl": script(t, calls(m{"name": "search_in_files", "args": m{"query": "needle"}},
		m{"name": "list_dir", "args": m{"dir_path": filepath.Join(p.dir, "work"), "depth": 9}}, m{"name": "search_in_files", "args": m{"query": "needle", "path": "pipe"}}), says("Done."))})
	results := bodies[event.ToolResultEvent](t, p.mustEnd(0))
	slices.SortFunc(results, func(a, b event.ToolResultEvent) int { return strings.Compare(a.ToolCallID, b.ToolCallID) })
	if n := strings.Count(results[0].Content, "needle"); n != 2 {
		t.Errorf("%d matches: %s", n, results[0].Content)
	}
	for _, name := range []string{"f.txt", "g.txt", "loop", "self"} {
		if n := strings.Count(results[1].Content, name); n != 1 {
			t.Errorf("%s is listed %d times: %s", name, n, results[1].Content)
		}
	}
	if _, err := os.Stat(filepath.Join(p.dir, "work", "pipe")); err != nil {
		t.Error(err)
	}
}

// TestResultsComeInTheOrderOfTheCalls has the first call end last.
func TestResultsComeInTheOrderOfTheCalls(t *testing.T) {
	t.Parallel()
	p := run(t, script(t, calls(execCall("until [ -e go ]; do sleep 0.01; done; echo first"), execCall("echo second; touch go")),
		m{"expect": "(?s)first.*second", "text": "Done."}), "--out", "lines:rows.txt", "go")
	stream := p.mustEnd(0)
	results := bodies[event.ToolResultEvent](t, stream)
	if len(results) != 2 || !strings.Contains(results[0].Content, "second") {
		t.Errorf("the quicker call did not end first: %+v", results)
	}
	rows := p.tree(".")["rows.txt"]
	if first, second := strings.Index(rows, "until"), strings.Index(rows, "echo second"); first < 0 || second < first {
		t.Errorf("rows out of order:\n%s", rows)
	}
}

// TestRefusedAgainAndAgain ends a model that does not give up.
func TestRefusedAgainAndAgain(t *testing.T) {
	t.Parallel()
	var responses []m
	for i := range 20 {
		responses = append(responses, calls(execCall(fmt.Sprintf("rm -rf /tmp/x%d", i))))
	}
	end := lastLine(t, run(t, script(t, responses...), "--deny", "exec:rm", "go").mustEnd(10))
	if end.Reason != "max_denials" || len(end.Denials) != 5 {
		t.Errorf("reason %s, %d denials", end.Reason, len(end.Denials))
	}
}
