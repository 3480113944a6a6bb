//go:build linux

package proc

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// patience is the deadline for anything that must happen, on a busy machine.
const patience = 20 * time.Second

// childVar makes the test binary act as a drover that runs one command, for
// tests in which drover itself dies.
const childVar = "PROC_TEST_CHILD"

func TestMain(m *testing.M) {
	if os.Getenv(reaperVar) != "" {
		reapAndEnd()
		os.Exit(0)
	}
	if script := os.Getenv(childVar); script != "" {
		_, err := Run(context.Background(), Spec{Argv: []string{"bash", "-c", script}, Env: testEnv()})
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func testEnv(extra ...string) []string {
	return append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME")}, extra...)
}

type outcome struct {
	Result
	stdout, stderr string
	took           time.Duration
}

// run runs a script and fails the test when anything with its run id is left.
func run(t *testing.T, ctx context.Context, script string, change func(*Spec)) outcome {
	t.Helper()
	var out [2]Buffer
	s := Spec{
		Argv: []string{"bash", "-c", script}, Dir: t.TempDir(), Env: testEnv(), RunID: newMark(),
		Output: func(s Stream, b []byte) { out[s].Write(b) },
	}
	if change != nil {
		change(&s)
	}
	start := time.Now()
	res, err := Run(ctx, s)
	if err != nil {
		t.Fatalf("Run(%q): %v", script, err)
	}
	took := time.Since(start)
	if left := (marked{[]byte(RunIDVar + "=" + s.RunID + "\x00")}).living(); len(left) > 0 {
		t.Errorf("processes left by %q: %v", script, left)
	}
	stdout, _ := out[Stdout].Parts()
	stderr, _ := out[Stderr].Parts()
	return outcome{res, string(stdout), string(stderr), took}
}

func TestOutputAndCodeOfACommand(t *testing.T) {
	tests := []struct {
		name, script   string
		code           int
		signal         string
		stdout, stderr string
		wantBytes      int64
	}{
		{name: "both streams", script: "echo out; echo err >&2; exit 3", code: 3, stdout: "out\n", stderr: "err\n", wantBytes: 8},
		{name: "signal", script: "kill -KILL $$", code: -1, signal: "SIGKILL"},
		{name: "input is at its end", script: "cat; read x; echo got:$x", stdout: "got:\n", wantBytes: 5},
		{name: "zero bytes", script: `printf 'a\0b'`, stdout: "a\x00b", wantBytes: 3},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := run(t, t.Context(), tt.script, nil)
			if got.Code != tt.code || got.Signal != tt.signal || got.stdout != tt.stdout || got.stderr != tt.stderr || got.Bytes != tt.wantBytes {
				t.Errorf("got %+v", got)
			}
		})
	}
}

func TestMergedOutputKeepsTheOrderOfWriting(t *testing.T) {
	var want strings.Builder
	for i := range 200 {
		fmt.Fprintf(&want, "%d\n", i)
	}
	got := run(t, t.Context(), "for i in $(seq 0 2 198); do echo $i; echo $((i+1)) >&2; done", func(s *Spec) { s.Merge = true })
	if diff := cmp.Diff(want.String(), got.stdout); diff != "" {
		t.Errorf("order differs (-want +got):\n%s", diff)
	}
}

func TestEnvironmentIsRebuilt(t *testing.T) {
	t.Setenv("PROC_TEST_CANARY", "canary")
	got := run(t, t.Context(), "env", func(s *Spec) {
		s.Env = testEnv("A=1", RunIDVar+"=outer")
		s.RunID = "inner"
	})
	if strings.Contains(got.stdout, "canary") || strings.Contains(got.stdout, "outer") {
		t.Errorf("environment of the parent came through:\n%s", got.stdout)
	}
	for _, want := range []string{"A=1\n", RunIDVar + "=inner\n"} {
		if !strings.Contains(got.stdout, want) {
			t.Errorf("no %q in:\n%s", want, got.stdout)
		}
	}
	got = run(t, t.Context(), "env", func(s *Spec) { s.Argv = []string{"/usr/bin/env"}; s.Env = nil; s.RunID = "" })
	if strings.Contains(got.stdout, "PATH=") {
		t.Errorf("an empty environment was filled:\n%s", got.stdout)
	}
}

func TestNoDescriptorIsInherited(t *testing.T) {
	// A descriptor as drover might get it from its caller: not sealed.
	var fds [2]int
	if err := syscall.Pipe(fds[:]); err != nil {
		t.Fatal(err)
	}
	defer syscall.Close(fds[0])
	defer syscall.Close(fds[1])
	sealDescriptors() // what the thread does before its first child
	got := run(t, t.Context(), "ls /proc/$$/fd; readlink /proc/$$/fd/0", nil)
	if want := "0\n1\n2\n/dev/null\n"; got.stdout != want {
		t.Errorf("descriptors: got %q, want %q", got.stdout, want)
	}
}

// The shapes in which waiting for a command blocks although its time is over:
// what holds the pipe is not what was killed.
func TestTimeoutHoldsForEveryShape(t *testing.T) {
	scripts := []string{
		"sleep 60", "sleep 60; true", "(sleep 60)", "sleep 60 | cat", "sleep 60 & wait",
		"nohup sleep 60 &", "setsid sleep 60", "setsid -w sleep 60", "setsid sleep 60 & sleep 60",
		"(sleep 300; echo late) & echo started; sleep 300",
		"trap '' TERM; sleep 60", "trap '' TERM; while :; do sleep 1; done",
		"(trap '' TERM; sleep 60) & sleep 60",
		"timeout 300 sleep 60", "timeout 300 sleep 60 & sleep 60",
		"set -m; sleep 60 & sleep 60", "( (sleep 60 &) & )", "sh -c '(setsid sleep 60 &) &' ; sleep 60",
		"kill -STOP $$", "exec 1>&- 2>&-; sleep 60", "env -i setsid sleep 60 & sleep 60",
		"while :; do :; done", "yes",
	}
	var all sync.WaitGroup
	for _, script := range scripts {
		all.Go(func() {
			got := run(t, t.Context(), script, func(s *Spec) { s.Timeout, s.Grace = time.Second, 500*time.Millisecond })
			if got.took > patience {
				t.Errorf("%q took %v", script, got.took)
			}
			if got.Survivors != 0 {
				t.Errorf("%q: %d processes could not be ended", script, got.Survivors)
			}
			if strings.Contains(script, "echo started") && (got.stdout != "started\n" || !got.TimedOut) {
				t.Errorf("%q: stdout %q, timed out %v", script, got.stdout, got.TimedOut)
			}
		})
	}
	all.Wait()
}

func TestCancelEndsTheCommand(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var once sync.Once
	got := run(t, ctx, "echo up; sleep 300", func(s *Spec) {
		s.Output = func(Stream, []byte) { once.Do(cancel) }
	})
	if !got.Canceled || got.TimedOut || got.Code != -1 || got.Signal != "SIGTERM" || got.took > patience {
		t.Errorf("got %+v", got)
	}
	if _, err := Start(ctx, Spec{Argv: []string{"true"}}); !errors.Is(err, context.Canceled) {
		t.Errorf("start after the end: %v", err)
	}
}

func TestExitTrapsRunWithinTheGrace(t *testing.T) {
	tests := []struct{ name, script string }{
		{"timeout", "trap 'rm -r lockdir; echo cleaned' EXIT; mkdir lockdir; sleep 300"},
		{"trap takes a while", "trap 'sleep 0.3; rm -r lockdir; echo cleaned' EXIT; mkdir lockdir; sleep 300"},
		{"left behind", "mkdir lockdir; (trap 'rm -r lockdir; echo cleaned; exit' TERM; touch ready; while :; do sleep 0.05; done) & until [ -e ready ]; do :; done"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			got := run(t, t.Context(), tt.script, func(s *Spec) { s.Dir, s.Timeout, s.Grace = dir, time.Second, patience })
			if _, err := os.Stat(filepath.Join(dir, "lockdir")); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("lockdir: %v", err)
			}
			if got.stdout != "cleaned\n" {
				t.Errorf("stdout of the trap: %q", got.stdout)
			}
		})
	}
}

func TestBackgroundChildrenEndWithTheirCommand(t *testing.T) {
	for range 20 {
		got := run(t, t.Context(), "sleep 1000 & echo $!", nil)
		var pid int
		if _, err := fmt.Sscan(got.stdout, &pid); err != nil {
			t.Fatalf("output %q: %v", got.stdout, err)
		}
		if p, ok := statProcess(pid); ok && !p.zombie {
			t.Errorf("process %d still runs", pid)
		}
		if got.Code != 0 || got.Ended != 1 || got.Abandoned || got.TimedOut {
			t.Errorf("got %+v", got)
		}
	}
}

func TestLateOutputOfDescendantsIsAwaited(t *testing.T) {
	got := run(t, t.Context(), "(sleep 0.2; echo late) & echo now", func(s *Spec) { s.Linger = patience })
	if got.stdout != "now\nlate\n" {
		t.Errorf("got %+v", got)
	}
}

func TestPipeHeldByAnUnknownProcessIsAbandoned(t *testing.T) {
	// The holder has left the session and dropped the marks before the command
	// ends, as a daemon that cleans its environment does.
	dir := t.TempDir()
	got := run(t, t.Context(),
		"(env -i /usr/bin/setsid -f /bin/sh -c 'echo $$ > pid; exec /bin/sleep 300'); until [ -s pid ]; do :; done; echo up",
		func(s *Spec) { s.Dir = dir })
	b, err := os.ReadFile(filepath.Join(dir, "pid"))
	if err != nil {
		t.Fatal(err)
	}
	var pid int
	if _, err := fmt.Sscan(string(b), &pid); err != nil {
		t.Fatal(err)
	}
	defer syscall.Kill(pid, syscall.SIGKILL)
	if got.stdout != "up\n" || !got.Abandoned || got.took > patience {
		t.Errorf("got %+v", got)
	}
}

func TestSweepFindsProcessesThatLeftTheirSession(t *testing.T) {
	runID := newMark()
	// Started past Run, so that no command's own clean-up gets them.
	for range 3 {
		c, err := os.StartProcess("/usr/bin/setsid", []string{"setsid", "-w", "sleep", "300"}, &os.ProcAttr{
			Env: testEnv(RunIDVar + "=" + runID), Sys: &syscall.SysProcAttr{Setpgid: true},
		})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Wait()
	}
	if n, err := Sweep(t.Context(), runID+"0", 0); n != 0 || err != nil {
		t.Errorf("sweep of another run: %d, %v", n, err)
	}
	n, err := Sweep(t.Context(), runID, 0)
	if n < 3 || err != nil {
		t.Errorf("sweep: %d, %v", n, err)
	}
	if left := (marked{[]byte(RunIDVar + "=" + runID + "\x00")}).living(); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

// golang.org/issue/27505: a parent-death signal fires when the thread that
// started the child ends.
func TestCommandsOutliveTheThreadsAroundThem(t *testing.T) {
	stop := make(chan struct{})
	var threads sync.WaitGroup
	for range 4 {
		threads.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				ended := make(chan struct{})
				go func() { // never unlocked, so its thread ends with it
					runtime.LockOSThread()
					close(ended)
				}()
				<-ended
				runtime.Gosched()
			}
		})
	}
	var commands sync.WaitGroup
	for range 200 {
		commands.Go(func() {
			got := run(t, t.Context(), "sleep 1; echo ok", nil)
			if got.stdout != "ok\n" || got.Code != 0 {
				t.Errorf("got %+v", got)
			}
		})
	}
	commands.Wait()
	close(stop)
	threads.Wait()
}

func TestCommandsEndWhenDroverIsKilled(t *testing.T) {
	dir := t.TempDir()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	child, err := os.StartProcess(self, []string{self}, &os.ProcAttr{
		Dir: dir, Env: testEnv(childVar + "=echo $$ > pid; while :; do date >> beat; sleep 0.1; done"),
	})
	if err != nil {
		t.Fatal(err)
	}
	var pid int
	waitFor(t, "the first beat", func() bool {
		b, err := os.ReadFile(filepath.Join(dir, "pid"))
		_, statErr := os.Stat(filepath.Join(dir, "beat"))
		n, _ := fmt.Sscan(string(b), &pid)
		return err == nil && statErr == nil && n == 1
	})
	if err := child.Kill(); err != nil {
		t.Fatal(err)
	}
	if _, err := child.Wait(); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "the end of the command", func() bool {
		p, ok := statProcess(pid)
		return !ok || p.zombie
	})
}

// waitFor polls a fact about other processes, which cannot be waited for.
func waitFor(t *testing.T, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(patience)
	for !ok() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("waited in vain for %s", what)
		}
	}
}

func TestStartErrorsNameTheCauseAndNoSecret(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string, mode fs.FileMode) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), mode); err != nil {
			t.Fatal(err)
		}
	}
	write("plain", "x", 0o644)
	write("script", "#!/nowhere/interpreter\n", 0o755)
	tests := []struct {
		name string
		argv []string
		dir  string
		is   error
		want string
	}{
		{"missing program", []string{"no-such-program"}, dir, ErrNotFound, `start "no-such-program": program not found in PATH`},
		{"missing file", []string{"./none"}, dir, fs.ErrNotExist, `start "./none": no such file or directory`},
		{"not executable", []string{"./plain"}, dir, fs.ErrPermission, `start "./plain": permission denied`},
		{"missing interpreter", []string{"./script"}, dir, fs.ErrNotExist, `interpreter`},
		{"missing folder", []string{"true"}, dir + "/none", fs.ErrNotExist, `folder "` + dir + `/none": no such file`},
		{"folder is a file", []string{"true"}, dir + "/plain", syscall.ENOTDIR, `not a directory`},
		{"zero byte", []string{"true", "a\x00b"}, dir, syscall.EINVAL, `zero byte`},
		{"too long", []string{"true", strings.Repeat("x", 1<<20)}, dir, syscall.E2BIG, `too long`},
		{"no program", nil, dir, nil, "no program named"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := Run(t.Context(), Spec{Argv: tt.argv, Dir: tt.dir, Env: testEnv("API_TOKEN=canary123")})
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Fatalf("got %v, want %q in it", err, tt.want)
			}
			if tt.is != nil && !errors.Is(err, tt.is) {
				t.Errorf("%v is not %v", err, tt.is)
			}
			if strings.Contains(fmt.Sprintf("%+v %#v", err, err), "canary123") || len(err.Error()) > 500 {
				t.Errorf("error tells too much: %.300v", err)
			}
		})
	}
}

func TestProgramIsLookedUpInItsOwnPath(t *testing.T) {
	dir := t.TempDir()
	bin := filepath.Join(dir, "bin")
	if err := os.Mkdir(bin, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(bin, "mine"), []byte("#!/bin/sh\necho mine\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{bin, "/nowhere::bin", "bin"} {
		var out bytes.Buffer
		_, err := Run(t.Context(), Spec{
			Argv: []string{"mine"}, Dir: dir, Env: []string{"PATH=" + path},
			Output: func(_ Stream, b []byte) { out.Write(b) },
		})
		if err != nil || out.String() != "mine\n" {
			t.Errorf("PATH %q: %q, %v", path, out.String(), err)
		}
	}
}

func TestSlowReaderLosesNothing(t *testing.T) {
	// The command is long over when its output is taken.
	gate := make(chan struct{})
	var got bytes.Buffer
	p, err := Start(t.Context(), Spec{
		Argv: []string{"bash", "-c", "head -c 30000 /dev/zero; sleep 0.1; head -c 30000 /dev/zero"}, Env: testEnv(),
		Output: func(_ Stream, b []byte) { <-gate; got.Write(b) },
	})
	if err != nil {
		t.Fatal(err)
	}
	<-p.exited
	after := time.AfterFunc(10*DefaultLinger, func() { close(gate) })
	defer after.Stop()
	if res := p.Wait(); got.Len() != 60000 || res.Abandoned || res.Bytes != 60000 {
		t.Errorf("got %d bytes, %+v", got.Len(), res)
	}
}

func TestNothingLeaksOverManyCommands(t *testing.T) {
	once := func() { run(t, t.Context(), "echo x; sleep 1000 &", nil) }
	once()
	fds, goroutines := openDescriptors(t), runtime.NumGoroutine()
	for range 30 {
		once()
	}
	if now := openDescriptors(t); now > fds {
		t.Errorf("descriptors: %d, then %d", fds, now)
	}
	waitFor(t, "the goroutines to end", func() bool { return runtime.NumGoroutine() <= goroutines })
	for range 10 {
		if _, err := Run(t.Context(), Spec{Argv: []string{"/dev/null/x"}}); err == nil {
			t.Fatal("no error")
		}
		if _, err := Run(t.Context(), Spec{Argv: []string{"true"}, Dir: "/nowhere", Env: testEnv()}); err == nil {
			t.Fatal("no error")
		}
	}
	if now := openDescriptors(t); now > fds {
		t.Errorf("descriptors after failed starts: %d, then %d", fds, now)
	}
}

func openDescriptors(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}

func FuzzParseStat(f *testing.F) {
	f.Add([]byte("7 (a) b) S 1 2 3 4"))
	f.Add([]byte("7 (x) Z 1 2"))
	f.Add([]byte(")"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if p, ok := parseStat(7, b); ok && p.pid != 7 {
			t.Errorf("pid %d", p.pid)
		}
	})
}

func TestGroupStandsInForProc(t *testing.T) {
	p, err := Start(t.Context(), Spec{Argv: []string{"sleep", "300"}, Env: testEnv(), Timeout: 100 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	if got := groupOf(p.Pid()); len(got) != 1 || got[0].group != p.Pid() {
		t.Errorf("a running command: %v", got)
	}
	p.Wait()
	if got := groupOf(p.Pid()); got != nil {
		t.Errorf("after its end: %v", got)
	}
}
