package cmd

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/creack/pty"

	"drover/output/event"
)

// TestStdoutCarriesTheFormatAndNothingElse gives a first run in an empty home
// everything that could make it talk (github.com/google-gemini/gemini-cli/pull/26264).
func TestStdoutCarriesTheFormatAndNothingElse(t *testing.T) {
	t.Parallel()
	for format, want := range map[string]string{"jsonl": "", "text": "Done.\n", "json": "", "lines": ""} {
		t.Run(format, func(t *testing.T) {
			t.Parallel()
			p := run(t, script(t, calls(execCall("echo from-a-child; echo to-stderr >&2")), says("Done.")), "--format", format, "--debug", "--check", "echo from-a-check", "go")
			p.cmd.Env = append(p.cmd.Env, "HOME="+p.dir, "DEBUG=1", "GODEBUG=http2debug=1", "DROVER_TIMOUT=1m", "DROVER_LOG=debug")
			p.lay(map[string]string{".drover/config.yaml": "max_turns: 100000\nmodel: openai/gpt-5\n", ".drover/policy.yaml": "version: 1\ndefault: allow\n"})
			stdout, exit := p.plain()
			if exit != 0 {
				t.Fatalf("exit %d: %s", exit, p.stderr.String())
			}
			switch format {
			case "jsonl":
				p.check(stdout, exit)
			case "json":
				if bytes.Count(stdout, []byte("\n")) != 1 || lastLine(t, stdout).Message != "Done." {
					t.Errorf("stdout %q", stdout)
				}
			case "text":
				if string(stdout) != want {
					t.Errorf("stdout %q", stdout)
				}
			case "lines":
				if bytes.Contains(stdout, []byte("\x1b")) || bytes.Contains(stdout, []byte("{\"")) {
					t.Errorf("stdout %q", stdout)
				}
			}
			told := p.stderr.String() + string(stdout)
			if format != "json" && format != "text" {
				for _, warning := range []string{"DROVER_TIMEOUT", "max_turns"} {
					if !strings.Contains(told, warning) {
						t.Errorf("nobody is told of %s; stderr %q", warning, p.stderr.String())
					}
				}
			}
		})
	}
}

// TestNoChildHasStdoutOfDrover looks at what every kind of child has open
// (github.com/earendil-works/pi/issues/2482).
func TestNoChildHasStdoutOfDrover(t *testing.T) {
	t.Parallel()
	look := "for f in /proc/self/fd/* /proc/$$/fd/*; do readlink $f; done | grep -q stdout.jsonl && touch canary; echo noise"
	p := run(t, script(t, calls(execCall(look), execCall("("+look+") & wait")), says("Done.")), "--check", look, "go")
	out, err := os.Create(filepath.Join(p.dir, "stdout.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	p.cmd.Stdout = out
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	exit := p.finish()
	stream, err := os.ReadFile(out.Name())
	if err != nil {
		t.Fatal(err)
	}
	if end := p.check(stream, exit); exit != 0 || len(end.Checks) != 1 {
		t.Errorf("exit %d, checks %v", exit, end.Checks)
	}
	if _, err := os.Stat(filepath.Join(p.dir, "canary")); err == nil {
		t.Error("a child has drover's stdout open")
	}
}

// TestCharactersOfCommandsAreWhole reads output that comes byte by byte
// (github.com/google-antigravity/antigravity-cli/issues/800).
func TestCharactersOfCommandsAreWhole(t *testing.T) {
	t.Parallel()
	p := run(t, script(t, calls(execCall(`for b in d0 96 e4 b8 ad f0 9f 98 80 0a; do printf "\x$b"; sleep 0.06; done; printf '\xe4\xb8'`)), says("Done.")), "go")
	stream := p.mustEnd(0)
	var got []byte
	for _, e := range bodies[event.TerminalAppendStringEvent](t, stream) {
		if strings.ContainsRune(e.Delta, '\ufffd') {
			t.Errorf("half a character in %q", e.Delta)
		}
		got = append(got, deltaBytes(t, e)...)
	}
	if string(got) != "Ж中😀\n\xe4\xb8" {
		t.Errorf("joined %q", got)
	}
	if r := result(t, stream); !strings.HasSuffix(r.Content, "Ж中😀\n\\xe4\\xb8") {
		t.Errorf("the model reads %q", r.Content)
	}
}

func deltaBytes(t *testing.T, e event.TerminalAppendStringEvent) []byte {
	t.Helper()
	if e.Encoding != "base64" {
		return []byte(e.Delta)
	}
	b, err := base64.StdEncoding.DecodeString(e.Delta)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestNamesThatAreNoTextKeepTheStreamReadable has a byte that is not UTF-8 in
// a file, a folder and a variable (github.com/ben-challis/greenlight/pull/702).
func TestNamesThatAreNoTextKeepTheStreamReadable(t *testing.T) {
	t.Parallel()
	const odd = "bad\xffname"
	p := run(t, "", "-C", "wo\xferk", "go")
	work := filepath.Join(p.dir, "wo\xferk")
	p.lay(map[string]string{
		"wo\xferk/" + odd: "needle\n",
		"model.jsonl": script(t, calls(execCall("ls; cat bad*; echo \"$ODD\""),
			patchCall("*** Delete File: bad\ufffdname\n"),
			m{"name": "search_in_files", "args": m{"query": "needle"}}), says("Done.")),
	})
	p.cmd.Env = append(p.cmd.Env, "ODD=x\xffy", "ODD_TOKEN=secret\xffsecret")
	stream := p.mustEnd(0)
	results := bodies[event.ToolResultEvent](t, stream)
	if len(results) != 3 || !strings.Contains(results[0].Content, `bad\xffname`) || !strings.Contains(results[0].Content, `x\xffy`) {
		t.Fatalf("results %+v", results)
	}
	if !results[1].IsError || !strings.Contains(results[2].Content, "needle") || !strings.Contains(results[2].Content, `\xff`) {
		t.Errorf("results %+v", results[1:])
	}
	var told []byte
	for _, e := range bodies[event.TerminalAppendStringEvent](t, stream) {
		told = append(told, deltaBytes(t, e)...)
	}
	if want := odd + "\nneedle\nx\xffy\n"; string(told) != want {
		t.Errorf("the events tell %q, want %q", told, want)
	}
	if _, err := os.Stat(filepath.Join(work, odd)); err != nil {
		t.Error(err)
	}
}

// TestEventsAreReadableWhenTheyHappen reads a pipe while the model thinks, and
// then kills drover (github.com/anthropics/claude-code/issues/25669).
func TestEventsAreReadableWhenTheyHappen(t *testing.T) {
	t.Parallel()
	p := run(t, script(t, calls(execCall("echo one")), m{"text": "never said", "delay_ms": 600_000}), "go")
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	patience := time.AfterFunc(30*time.Second, func() { _ = p.cmd.Process.Kill() })
	defer patience.Stop()
	r := bufio.NewReader(out)
	var seen []string
	for turns := 0; turns < 2; {
		line, err := r.ReadBytes('\n')
		if err != nil {
			t.Fatalf("after %v: %v", seen, err)
		}
		e, err := event.Decode(bytes.TrimSuffix(line, []byte("\n")))
		if err != nil {
			t.Fatal(err)
		}
		seen = append(seen, e.Body.Type())
		if e.Body.Type() == "turn.started" {
			turns++
		}
	}
	if all := strings.Join(seen, " "); !strings.Contains(all, "terminal.completed") || !strings.Contains(all, "tool.result") {
		t.Errorf("before the second turn came only %v", seen)
	}
	if err := p.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	rest, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	_ = p.cmd.Wait() // killed on purpose
	if len(rest) > 0 && rest[len(rest)-1] != '\n' {
		t.Errorf("half a line: %q", rest)
	}
	// The session holds what was read, and at most more.
	if session := bodies[event.ToolResultEvent](t, p.sessionFile()); len(session) != 1 {
		t.Errorf("%d results in the session", len(session))
	}
}

// TestLinesHaveAMaximum sends what is larger than any line through every type
// of event (github.com/QwenLM/qwen-code/issues/9298). The bounds are checked
// with the stream.
func TestLinesHaveAMaximum(t *testing.T) {
	t.Parallel()
	var patch strings.Builder
	patch.WriteString("*** Add File: big.txt\n")
	for i := range 5000 {
		fmt.Fprintf(&patch, "+line %d %s\n", i, strings.Repeat("ü", 20))
	}
	for _, c := range []struct {
		name   string
		script []m
		exit   int
		check  func(t *testing.T, p *process, stream []byte)
	}{
		{"result of 5 MB", []m{calls(execCall("head -c 5000000 /dev/zero | tr '\\0' x")), says("Done.")}, 0,
			func(t *testing.T, p *process, stream []byte) {
				r := result(t, stream)
				if !r.Truncated || r.OutputBytes != 5_000_000 {
					t.Errorf("truncated %v, %d bytes", r.Truncated, r.OutputBytes)
				}
			}},
		{"answer of 300 KB", []m{says(strings.Repeat("wörd \"x\" ", 30_000))}, 0,
			func(t *testing.T, p *process, stream []byte) {
				if end := lastLine(t, stream); end.Message != strings.Repeat("wörd \"x\" ", 30_000) {
					t.Errorf("the answer has %d bytes", len(end.Message))
				}
			}},
		{"answer of 3 MB", []m{says(strings.Repeat("wörd \x01", 400_000))}, 0,
			func(t *testing.T, p *process, stream []byte) {
				all := bodies[event.MessageEvent](t, stream)
				last, end := all[len(all)-1], lastLine(t, stream)
				if !last.Truncated || last.Artifact == nil || !end.Truncated {
					t.Errorf("message truncated %v, artifact %v, last line truncated %v", last.Truncated, last.Artifact, end.Truncated)
				}
				if last.Artifact != nil && last.Artifact.Bytes != 400_000*7 {
					t.Errorf("the artifact has %d bytes", last.Artifact.Bytes)
				}
			}},
		{"patch of 200 KB", []m{calls(patchCall(patch.String())), says("Done.")}, 0,
			func(t *testing.T, p *process, stream []byte) {
				changed := bodies[event.FileChangedEvent](t, stream)
				if len(changed) != 1 || changed[0].Added != 5000 || !changed[0].Truncated || changed[0].Artifact == nil {
					t.Fatalf("changed %.300v", changed)
				}
				if got := strings.Count(p.tree(".")["big.txt"], "\n"); got != 5000 {
					t.Errorf("the file has %d lines", got)
				}
			}},
		{"patch of 2 MB", []m{calls(patchCall("*** Add File: big.txt\n+" + strings.Repeat("y", 2<<20) + "\n")), says("Done.")}, 0,
			func(t *testing.T, p *process, stream []byte) {
				if c := bodies[event.ToolCallEvent](t, stream); len(c) != 1 || !c[0].Truncated || c[0].Artifact == nil {
					t.Errorf("calls %.300v", c)
				}
				if got := len(p.tree(".")["big.txt"]); got != 2<<20+1 {
					t.Errorf("the file has %d bytes", got)
				}
			}},
		{"broken arguments of 2 MB", []m{calls(m{"name": "exec_command", "args_raw": `{"cmd":"` + strings.Repeat("z", 2<<20)}), says("Done.")}, 0,
			func(t *testing.T, p *process, stream []byte) {
				if c := bodies[event.ToolCallEvent](t, stream); len(c) != 1 || c[0].ArgsError == "" || !c[0].Truncated {
					t.Errorf("calls %.300v", c)
				}
			}},
		{"command of 300 KB", []m{calls(execCall("echo " + strings.Repeat("a", 300_000))), says("Done.")}, 0,
			func(t *testing.T, p *process, stream []byte) {
				if r := result(t, stream); !r.IsError || !strings.Contains(r.Content, "too long") || len(r.Content) > 1000 {
					t.Errorf("result %.300q", r.Content)
				}
			}},
		{"error of a provider of 2 MB", []m{{"error": m{"status": 400, "message": strings.Repeat("bad ", 500_000)}}}, 5,
			func(t *testing.T, p *process, stream []byte) {}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			for _, r := range c.script {
				r["chunk"] = 1 << 17 // also a delta that no line can hold
			}
			p := run(t, script(t, c.script...), "--events", "full", "go")
			c.check(t, p, p.mustEnd(c.exit))
		})
	}
}

// TestFailureOfTheProviderIsSaidOnce holds the last line against the error
// (github.com/anthropics/claude-code/issues/79500).
func TestFailureOfTheProviderIsSaidOnce(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, code string
		status     int
		body       string
		exit, http int
	}{
		{"refused key", "auth", 401, `{"error":{"message":"bad key"}}`, 4, 401},
		{"always 500", "server_error", 500, `{"error":{"message":"oops"}}`, 5, 500},
		{"refused request", "bad_request", 400, `{"error":{"message":"tools.0: bad schema"}}`, 5, 400},
		{"error in the middle", "server_error", 200, sse("", m{"choices": []any{m{"index": 0, "delta": m{"content": "The answer is"}}}}) +
			sse("", m{"error": m{"message": "broken", "code": "server_error"}}), 5, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
				rw.Header().Set("X-Request-Id", "req-42")
				rw.Header().Set("Content-Type", "text/event-stream")
				rw.WriteHeader(c.status)
				_, _ = io.WriteString(rw, c.body) // a client that is gone shows in the test
			}))
			t.Cleanup(server.Close)
			p := withServer(t, server.URL, "chat", "hi")
			p.addConfig("    max_attempts: 1\n")
			end := lastLine(t, p.mustEnd(c.exit))
			if end.Error == nil {
				t.Fatalf("no error: %+v", end)
			}
			if end.Error.Code != c.code || end.Error.HTTPStatus != c.http || end.Reason != c.code || end.Message != "" || end.Status != "failed" {
				t.Errorf("got %+v, error %+v", end, end.Error)
			}
			if c.http > 0 && !strings.Contains(end.Error.Message, "req-42") {
				t.Errorf("no request id in %q", end.Error.Message)
			}
			if strings.Contains(p.stderr.String(), "The answer is") {
				t.Errorf("stderr %s", p.stderr.String())
			}
		})
	}
}

// TestFormatDoesNotChangeTheExitCode runs the same failures in every format
// and at a terminal (github.com/earendil-works/pi/issues/9089).
func TestFormatDoesNotChangeTheExitCode(t *testing.T) {
	t.Parallel()
	refusing := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		http.Error(rw, `{"error":{"message":"bad key"}}`, http.StatusUnauthorized)
	}))
	t.Cleanup(refusing.Close)
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	for _, c := range []struct {
		name, url, model string
		exit             int
	}{
		{"invalid key", refusing.URL, "", 4}, {"unknown model", refusing.URL, "nope/none", 3}, {"refused connection", gone.URL, "", 5},
	} {
		for _, format := range []string{"jsonl", "json", "lines", "text", "terminal", "pipe"} {
			t.Run(c.name+" "+format, func(t *testing.T) {
				t.Parallel()
				args := []string{"hi"}
				if format != "terminal" && format != "pipe" {
					args = append(args, "--format", format)
				}
				if c.model != "" {
					args = append(args, "--model", c.model)
				}
				p := withServer(t, c.url, "chat", args...)
				p.addConfig("    max_attempts: 1\n")
				var exit int
				if format == "terminal" {
					exit = p.atTerminal()
				} else {
					_, exit = p.plain()
				}
				if exit != c.exit {
					t.Errorf("exit %d, want %d; stderr %s", exit, c.exit, p.stderr.String())
				}
			})
		}
	}
}

// atTerminal runs the process with a terminal as stdout.
func (p *process) atTerminal() int {
	p.t.Helper()
	terminal, tty, err := pty.Open()
	if err != nil {
		p.t.Skip("no terminal to be had: ", err)
	}
	defer terminal.Close()
	p.cmd.Stdout = tty
	p.cmd.Env = append(p.cmd.Env, "TERM=xterm")
	err = p.cmd.Start()
	tty.Close()
	if err != nil {
		p.t.Fatal(err)
	}
	read := make(chan struct{})
	go func() { // ends with the terminal, when the process has ended
		_, _ = io.Copy(io.Discard, terminal)
		close(read)
	}()
	exit := p.finish()
	<-read
	return exit
}

// TestSlowModelIsWaitedFor (github.com/anomalyco/opencode/issues/14551): the
// process never ends while its loop is pending.
func TestSlowModelIsWaitedFor(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		select {
		case <-time.After(time.Second):
		case <-r.Context().Done():
		}
		rw.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(rw, encodeChat(turnOfTask{text: "At last."}, 0)) // a client that is gone shows in the test
	}))
	t.Cleanup(server.Close)
	p := withServer(t, server.URL, "chat", "hi")
	if end := lastLine(t, p.mustEnd(0)); end.Message != "At last." {
		t.Errorf("message %q", end.Message)
	}
}
