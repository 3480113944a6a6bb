package cmd

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/creack/pty"

	"drover/output/event"
)

// This file drives the ways to answer that need two processes or a terminal.

const askPolicy = "version: 1\ndefault: deny\nrules:\n  - {id: touching, effect: ask, argv: [touch]}\n  - {id: rest, effect: allow, argv: [[sh, nc, perl, python3]]}\n"

// approvals is a run whose agent wants to touch a file, with a policy that asks.
func approvalsRun(t *testing.T, args ...string) *process {
	t.Helper()
	p := newProcess(t, script(t, calls(execCall("touch built")), says("Built.")),
		append([]string{"run", "--model", "script:model.jsonl", "--policy", "policy.yaml", "--sandbox", "off"}, append(args, "build it")...)...)
	p.lay(map[string]string{"policy.yaml": askPolicy})
	return p
}

func answerLine(id string, more string) string {
	return fmt.Sprintf(`{"v":1,"type":"tool.approval.response","correlation_id":%q,"approved":true%s}`+"\n", id, more)
}

// requestID reads the request in a line of the stream.
func requestID(t *testing.T, line []byte) string {
	t.Helper()
	e, err := event.Decode(bytes.TrimSuffix(line, []byte("\n")))
	if err != nil {
		t.Fatalf("%v in %s", err, line)
	}
	b, ok := e.Body.(event.ToolApprovalRequestEvent)
	if !ok {
		t.Fatalf("got %s, want a request", e.Body.Type())
	}
	return b.CorrelationID
}

func TestAProgramOnASocketAnswers(t *testing.T) {
	t.Parallel()
	dir, err := os.MkdirTemp("", "drover") // the path of a socket has to be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	path := filepath.Join(dir, "s")
	p := approvalsRun(t, "--approvals-socket", path)
	var out bytes.Buffer
	p.cmd.Stdout = &out
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var conn net.Conn
	waitFor(t, "the socket", func() bool { conn, err = net.Dial("unix", path); return err == nil })
	defer conn.Close()
	if info, err := os.Lstat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	line, err := bufio.NewReader(conn).ReadBytes('\n')
	if err != nil {
		t.Fatal(err)
	}
	// Noise ends nothing.
	if _, err := io.WriteString(conn, "hello\r\n\r\n"+answerLine("ap_0", "")+answerLine(requestID(t, line), `,"reason":"over the socket"`)); err != nil {
		t.Fatal(err)
	}
	exit := p.finish()
	p.check(out.Bytes(), exit)
	if exit != 0 || !bytes.Contains(out.Bytes(), []byte("over the socket")) || !bytes.Contains(out.Bytes(), []byte(`"code":"approval_unknown"`)) ||
		!bytes.Contains(out.Bytes(), []byte(`"code":"approval_unreadable"`)) {
		t.Errorf("exit %d: %s\n%s", exit, p.stderr.String(), out.String())
	}
	if !bytes.Contains(out.Bytes(), line) {
		t.Errorf("the request is no line of the stream: %s", line)
	}
	if _, err := os.Lstat(path); !os.IsNotExist(err) {
		t.Errorf("the socket is left: %v", err)
	}
}

// TestTheFirstAnswerCounts among several clients, of which one sends a line
// without an end and one says nothing at all.
func TestTheFirstAnswerCounts(t *testing.T) {
	t.Parallel()
	for _, first := range []bool{true, false} {
		dir, err := os.MkdirTemp("", "drover") // the path of a socket has to be short
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = os.RemoveAll(dir) })
		path := filepath.Join(dir, "s")
		p := approvalsRun(t, "--approvals-socket", path)
		var out bytes.Buffer
		p.cmd.Stdout = &out
		if err := p.cmd.Start(); err != nil {
			t.Fatal(err)
		}
		client := func() net.Conn {
			var conn net.Conn
			waitFor(t, "the socket", func() bool { conn, err = net.Dial("unix", path); return err == nil })
			t.Cleanup(func() { _ = conn.Close() })
			return conn
		}
		client() // it says nothing
		endless := client()
		if _, err := endless.Write(bytes.Repeat([]byte("x"), 3<<20)); err != nil {
			t.Fatal(err)
		}
		one, other := client(), client()
		line, err := bufio.NewReader(one).ReadBytes('\n')
		if err != nil {
			t.Fatal(err)
		}
		if again, err := bufio.NewReader(other).ReadBytes('\n'); err != nil || !bytes.Equal(line, again) {
			t.Errorf("the other client got %s, %v", again, err)
		}
		id := requestID(t, line)
		answers := []string{answerLine(id, ""), fmt.Sprintf(`{"v":1,"type":"tool.approval.response","correlation_id":%q,"approved":false}`+"\n", id)}
		if !first {
			answers[0], answers[1] = answers[1], answers[0]
		}
		// In one write, so that their order is known, and since the run may be over
		// before a second one.
		if _, err := io.WriteString(one, answers[0]+answers[1]); err != nil {
			t.Fatal(err)
		}
		exit := p.finish()
		p.check(out.Bytes(), exit)
		if want := map[bool]int{true: 0, false: 10}[first]; exit != want || !bytes.Contains(out.Bytes(), []byte("it came too late or twice")) ||
			!bytes.Contains(out.Bytes(), []byte("the line is longer than")) {
			t.Errorf("the first says %v: exit %d: %s", first, exit, out.String())
		}
	}
}

func TestAnswersComeOnADescriptor(t *testing.T) {
	t.Parallel()
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	syscall.CloseOnExec(fds[0])
	ours, theirs := os.NewFile(uintptr(fds[0]), "ours"), os.NewFile(uintptr(fds[1]), "theirs")
	defer ours.Close()
	p := approvalsRun(t, "--approvals-fd", "3")
	p.cmd.ExtraFiles = []*os.File{theirs}
	var out bytes.Buffer
	p.cmd.Stdout = &out
	err = p.cmd.Start()
	theirs.Close()
	if err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(ours).ReadBytes('\n')
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(ours, answerLine(requestID(t, line), "")); err != nil {
		t.Fatal(err)
	}
	exit := p.finish()
	if end := p.check(out.Bytes(), exit); exit != 0 || end.Message != "Built." {
		t.Errorf("exit %d: %s", exit, out.String())
	}
}

// TestAnswersComeOnAPipe takes the requests from the stream.
func TestAnswersComeOnAPipe(t *testing.T) {
	t.Parallel()
	for _, answers := range []bool{true, false} {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		p := approvalsRun(t, "--approvals-fd", "3", "--approval-timeout", "1m")
		p.cmd.ExtraFiles = []*os.File{r}
		stdout, err := p.cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		err = p.cmd.Start()
		r.Close()
		if err != nil {
			t.Fatal(err)
		}
		var all bytes.Buffer
		lines := bufio.NewReader(io.TeeReader(stdout, &all))
		for {
			line, err := lines.ReadBytes('\n')
			if err != nil {
				break
			}
			if !bytes.Contains(line, []byte(`"type":"tool.approval.requested"`)) {
				continue
			}
			if answers {
				if _, err := io.WriteString(w, answerLine(requestID(t, line), "")); err != nil {
					t.Fatal(err)
				}
			}
			// The end of the channel is no yes.
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
		}
		exit := p.finish()
		p.check(all.Bytes(), exit)
		if want := map[bool]int{true: 0, false: 10}[answers]; exit != want {
			t.Errorf("answered %v: exit %d: %s", answers, exit, all.String())
		}
	}
}

// TestTheAgentCannotAnswerItself has a command of the agent use the channels.
func TestTheAgentCannotAnswerItself(t *testing.T) {
	t.Parallel()
	perl := "perl"
	if _, err := os.Stat("/usr/bin/perl"); err != nil {
		t.Skip("no perl here")
	}
	dir, err := os.MkdirTemp("", "drover")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	path := filepath.Join(dir, "s")
	// It connects, even from a process that has cut its ties, and shows what it
	// gets.
	client := fmt.Sprintf(`%s -MIO::Socket::UNIX -e 'if (fork) { wait; exit } use POSIX; POSIX::setsid(); %%ENV=(); my $s=IO::Socket::UNIX->new(Peer=>"%s") or exit; $s->timeout(2); my $l=<$s>; print defined $l ? "GOT $l" : "refused"'`, perl, path)
	p := newProcess(t, script(t, calls(execCall(client), execCall("touch built")), says("Done.")),
		"run", "--model", "script:model.jsonl", "--policy", "policy.yaml", "--sandbox", "off", "--approvals-socket", path, "--approval-timeout", "2s", "go")
	p.lay(map[string]string{"policy.yaml": askPolicy})
	out, exit := p.output()
	if exit != 10 || bytes.Contains(out, []byte("GOT {")) || !bytes.Contains(out, []byte("tried to answer its own requests")) {
		t.Errorf("exit %d: %s\n%s", exit, p.stderr.String(), out)
	}
}

// TestTheAgentCannotReplaceTheApprover runs without the sandbox that keeps the
// program as it is.
func TestTheAgentCannotReplaceTheApprover(t *testing.T) {
	t.Parallel()
	const yes = `id=$(sed 's/.*"correlation_id":"\([^"]*\)".*/\1/'); echo "{\"v\":1,\"type\":\"tool.approval.response\",\"correlation_id\":\"$id\",\"approved\":true}"`
	for name, change := range map[string]string{"write": "cp yes.sh ask.sh", "rename": "sh -c 'cp yes.sh x; mv x ask.sh'", "remove": "rm ask.sh", "leave": "true"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newProcess(t, script(t, calls(execCall(change)), calls(execCall("touch built")), says("Done.")),
				"run", "--model", "script:model.jsonl", "--policy", "policy.yaml", "--sandbox", "off", "--approver", "sh ask.sh", "go")
			p.lay(map[string]string{"policy.yaml": "version: 1\ndefault: allow\nrules: [{id: touching, effect: ask, argv: [touch]}]\n",
				"ask.sh": "echo not today >&2; exit 2\n", "yes.sh": yes + "\n"})
			stream := p.mustEnd(10)
			if _, built := p.tree(".")["built"]; built {
				t.Error("the agent has answered itself")
			}
			want := map[bool]string{true: "not today", false: "was changed during the run"}[name == "leave"]
			if got := bodies[event.ToolApprovalResponseEvent](t, stream); len(got) != 1 || got[0].Approved || !strings.Contains(got[0].Reason, want) {
				t.Errorf("got %+v", got)
			}
		})
	}
}

// TestTheAgentDoesNotInheritTheChannel looks for the descriptor in a command,
// and in the helper that started it.
func TestTheAgentDoesNotInheritTheChannel(t *testing.T) {
	t.Parallel()
	for _, sandbox := range []string{"off", "workspace-write"} {
		fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
		if err != nil {
			t.Fatal(err)
		}
		syscall.CloseOnExec(fds[0])
		theirs := os.NewFile(uintptr(fds[1]), "theirs")
		p := newProcess(t, script(t, calls(execCall("ls -l /proc/self/fd /proc/$PPID/fd; true")), says("Done.")),
			"run", "--model", "script:model.jsonl", "--policy", "policy.yaml", "--sandbox", sandbox, "--approvals-fd", "3", "go")
		p.lay(map[string]string{"policy.yaml": "version: 1\ndefault: allow\n"})
		p.cmd.ExtraFiles = []*os.File{theirs}
		link, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", fds[1]))
		if err != nil {
			t.Skip("no list of descriptors here: ", err)
		}
		out, exit := p.output()
		theirs.Close()
		_ = syscall.Close(fds[0]) // it was only there to keep the other end open
		if text := result(t, out).Content; exit != 0 || !strings.Contains(text, "->") || strings.Contains(text, link) {
			t.Errorf("sandbox %s: exit %d, %s in\n%s", sandbox, exit, link, text)
		}
	}
}

// lockedBuffer is written by one goroutine and read by another.
type lockedBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *lockedBuffer) Write(data []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(data)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// person is a terminal with somebody at it.
type person struct {
	*process
	terminal, tty *os.File
	seen          *lockedBuffer
}

func atDesk(t *testing.T, p *process, stdin, stderr bool) *person {
	t.Helper()
	terminal, tty, err := pty.Open()
	if err != nil {
		t.Skip("no terminal to be had: ", err)
	}
	t.Cleanup(func() { _ = terminal.Close() })
	who := &person{process: p, terminal: terminal, tty: tty, seen: &lockedBuffer{}}
	if stdin {
		p.cmd.Stdin = tty
	}
	if stderr {
		p.cmd.Stderr = tty
	}
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true, Ctty: 3}
	p.cmd.ExtraFiles = []*os.File{tty}
	go func() { _, _ = io.Copy(who.seen, terminal) }() // ends with the terminal
	return who
}

func TestThePersonAtTheTerminalIsAsked(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, typed string
		exit        int
		decided     string
	}{
		{"yes", "y\n", 0, `"effect":"allow","decided_by":"tty"`},
		{"no", "n not today\n", 10, `"decided_by":"tty","rule_id":"touching","reason":"not today"`},
		{"interrupt", "\x03", 130, ""},
	} {
		p := approvalsRun(t, "--format", "lines", "--out", "jsonl:run.jsonl")
		who := atDesk(t, p, true, true)
		// Typed too early: it is no answer.
		if _, err := io.WriteString(who.terminal, "y\n"); err != nil {
			t.Fatal(err)
		}
		if err := p.cmd.Start(); err != nil {
			t.Fatal(err)
		}
		who.tty.Close()
		waitFor(t, "the question", func() bool { return strings.Contains(who.seen.String(), "[N]o: ") })
		if !strings.Contains(who.seen.String(), "command  touch built") {
			t.Errorf("%s: the screen shows %q", c.name, who.seen.String())
		}
		if _, err := io.WriteString(who.terminal, c.typed); err != nil {
			t.Fatal(err)
		}
		exit := p.finish()
		stream, err := os.ReadFile(filepath.Join(p.dir, "run.jsonl"))
		if err != nil {
			t.Fatal(err)
		}
		p.check(stream, exit)
		if exit != c.exit || !bytes.Contains(stream, []byte(c.decided)) {
			t.Errorf("%s: exit %d\n%s", c.name, exit, stream)
		}
	}
}

// TestNobodyIsAskedWithoutAWholeTerminal: a terminal at one end is not enough,
// and a machine-readable output never asks.
func TestNobodyIsAskedWithoutAWholeTerminal(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name          string
		stdin, stderr bool
		format        string
	}{
		{"stdin is no terminal", false, true, "lines"},
		{"stderr is no terminal", true, false, "lines"},
		{"jsonl", true, true, "jsonl"},
	} {
		p := approvalsRun(t, "--format", c.format, "--out", "jsonl:run.jsonl")
		who := atDesk(t, p, c.stdin, c.stderr)
		if err := p.cmd.Start(); err != nil {
			t.Fatal(err)
		}
		who.tty.Close()
		exit := p.finish()
		stream, err := os.ReadFile(filepath.Join(p.dir, "run.jsonl"))
		if err != nil {
			t.Fatal(err)
		}
		p.check(stream, exit)
		if exit != 10 || bytes.Contains(stream, []byte("tool.approval.requested")) {
			t.Errorf("%s: exit %d\n%s", c.name, exit, stream)
		}
	}
}

func TestGeneratedRulesArePrivateAndWhole(t *testing.T) {
	t.Parallel()
	p := approvalsRun(t, "--approver", "sh yes.sh", "--allow-policy-writes")
	p.lay(map[string]string{"yes.sh": `id=$(sed 's/.*"correlation_id":"\([^"]*\)".*/\1/')
echo "{\"v\":1,\"type\":\"tool.approval.response\",\"correlation_id\":\"$id\",\"approved\":true,\"scope\":\"always\"}"
`})
	p.cmd.Args = append([]string{"sh", "-c", `umask 0; exec "$0" "$@"`, p.cmd.Path}, p.cmd.Args[1:]...)
	p.cmd.Path = "/bin/sh"
	stdout, exit := p.output()
	file := filepath.Join(p.dir, ".config", "drover", generatedName)
	info, err := os.Stat(file)
	if exit != 0 || err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("exit %d, %v, %v\n%s", exit, info, err, stdout)
	}
	resolved := bodies[event.ToolApprovalResponseEvent](t, stdout)
	data, err := os.ReadFile(file)
	if err != nil || len(resolved) != 1 || resolved[0].Scope != "always" || !bytes.Contains(data, []byte(resolved[0].CorrelationID)) {
		t.Errorf("%v, %+v, %s", err, resolved, data)
	}
	kept, err := os.ReadFile(p.sessionPath())
	if err != nil {
		t.Fatal(err)
	}
	var found bool
	for line := range bytes.Lines(kept) {
		var record struct {
			Data struct {
				Kind string          `json:"kind"`
				Rule json.RawMessage `json:"rule"`
			} `json:"data"`
		}
		if json.Unmarshal(line, &record) == nil && record.Data.Kind == "grant" && len(record.Data.Rule) > 0 {
			found = true
		}
	}
	if !found {
		t.Errorf("the session keeps no grant:\n%s", kept)
	}
}

func (p *process) sessionPath() string {
	p.t.Helper()
	files, err := filepath.Glob(filepath.Join(p.dir, ".state", "drover", "sessions", "*", "events.jsonl"))
	if err != nil || len(files) != 1 {
		p.t.Fatalf("session files: %v, %v", files, err)
	}
	return files[0]
}
