package sandbox

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"drover/output/fault"
	"drover/tools/internal/proc"
	"github.com/creack/pty"
	"golang.org/x/sys/unix"
)

func TestStartErrorsAreThoseOfProcesses(t *testing.T) {
	w := newWorld(t, nil)
	w.write("work/plain", "no program")
	w.write("work/script", "#!/no/such/interpreter\n")
	if err := os.Chmod(w.path("work/script"), 0o755); err != nil {
		t.Fatal(err)
	}
	launch := func(dir string, argv ...string) error {
		_, err := w.box.Launcher().Launch(proc.Launch{Argv: argv, Dir: dir, Env: w.environ})
		return err
	}
	for _, c := range []struct {
		name, dir string
		argv      []string
		is        error
		says      string
	}{
		{"no program", w.work, []string{"no-such-program"}, proc.ErrNotFound, "program not found in PATH"},
		{"no file", w.work, []string{"./absent"}, fs.ErrNotExist, `start "./absent"`},
		{"not executable", w.work, []string{"./plain"}, fs.ErrPermission, "permission denied"},
		{"no interpreter", w.work, []string{"./script"}, fs.ErrNotExist, "interpreter"},
		{"no folder", w.path("absent"), []string{"true"}, fs.ErrNotExist, "folder"},
		{"long argument", w.work, []string{"true", strings.Repeat("x", 3<<20)}, syscall.E2BIG, "too long"},
		{"zero byte", w.work, []string{"true", "a\x00b"}, syscall.EINVAL, "zero byte"},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := launch(c.dir, c.argv...)
			if !errors.Is(err, c.is) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("got %v, want %v that says %q", err, c.is, c.says)
			}
		})
	}
}

func TestStatusSaysHowACommandEnded(t *testing.T) {
	w := newWorld(t, nil)
	for script, want := range map[string]proc.Status{
		"exit 3": {Code: 3}, "true": {}, "kill -KILL $$": {Code: -1, Signal: "SIGKILL"},
	} {
		if _, st := w.sh(script); st != want {
			t.Errorf("%s: got %+v, want %+v", script, st, want)
		}
	}
}

func TestArgumentsAndEnvironmentArriveAsTheyAre(t *testing.T) {
	w := newWorld(t, nil)
	odd := "a\xff\n\"b'\x01 ü"
	w.environ = append(w.environ, "ODD="+odd)
	out, _ := w.run(w.box, "sh", "-c", `printf '%s|%s' "$1" "$ODD"`, "sh", odd)
	if out != odd+"|"+odd {
		t.Errorf("got %q", out)
	}
	big := strings.Repeat("y", 100_000)
	argv := []string{"sh", "-c", `shift; printf '%s' "$*" | wc -c`, "sh"}
	for range 10 {
		argv = append(argv, big)
	}
	if out, _ := w.run(w.box, argv...); strings.TrimSpace(out) != "900008" {
		t.Errorf("a million bytes of arguments: %q", out)
	}
}

func TestManyCommandsAtOnce(t *testing.T) {
	w := newWorld(t, nil)
	const many = 200
	gate := filepath.Join(w.work, "gate")
	if err := unix.Mkfifo(gate, 0o600); err != nil {
		t.Fatal(err)
	}
	children := make([]proc.Child, many)
	var start sync.WaitGroup
	for i := range many {
		start.Go(func() {
			ch, err := w.box.Launcher().Launch(proc.Launch{
				Argv: []string{"sh", "-c", "read x < gate; exit " + strconv.Itoa(i%100)}, Dir: w.work, Env: w.environ,
			})
			if err != nil {
				t.Errorf("launch %d: %v", i, err)
			}
			children[i] = ch
		})
	}
	start.Wait()
	// All of them are alive now, and none has kept another from starting.
	f, err := os.OpenFile(gate, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteString(strings.Repeat("\n", many)); err != nil {
		t.Fatal(err)
	}
	for i, ch := range children {
		if ch == nil {
			continue
		}
		if st, err := ch.Wait(); err != nil || st.Code != i%100 {
			t.Errorf("command %d: %+v %v", i, st, err)
		}
	}
}

func TestTerminalOfItsOwn(t *testing.T) {
	w := newWorld(t, nil)
	master, slave, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer master.Close()
	ch, err := w.box.Launcher().Launch(proc.Launch{
		Argv: []string{"sh", "-c", `test -t 0 && echo tty > /dev/tty && ps -o sid= -p $$ | tr -d ' ' && echo pid $$`},
		Dir:  w.work, Env: w.environ, Files: [3]*os.File{slave, slave, slave}, TTY: true,
	})
	slave.Close()
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	buf := make([]byte, 1024)
	for {
		n, err := master.Read(buf)
		out.Write(buf[:n])
		if err != nil {
			break
		}
	}
	st, err := ch.Wait()
	text := strings.ReplaceAll(out.String(), "\r", "")
	pid := strconv.Itoa(ch.Pid())
	if want := "tty\n" + pid + "\npid " + pid + "\n"; text != want || st.Code != 0 || err != nil {
		t.Errorf("got %q %+v %v, want %q", text, st, err, want)
	}
}

func TestKillingEverybodySparesTheHelper(t *testing.T) {
	if landlockABI() < 6 {
		t.Skip("this kernel has no scopes")
	}
	w := newWorld(t, nil)
	if os.Geteuid() == 0 {
		// Also as another user would; nobody outside may be hit.
		t.Log("as root")
	}
	w.sh("kill -9 -1")
	if out, st := w.sh("echo still here"); out != "still here" || st.Code != 0 {
		t.Errorf("after kill -9 -1: %q %+v", out, st)
	}
}

func TestLostHelperIsToldAndNothingRunsWithoutIt(t *testing.T) {
	w := newWorld(t, nil)
	ch, err := w.box.Launcher().Launch(proc.Launch{Argv: []string{"sleep", "1000"}, Dir: w.work, Env: w.environ})
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.Kill(w.box.Launcher().Pid(), unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if _, err := ch.Wait(); !errors.Is(err, proc.ErrGone) {
		t.Errorf("wait: %v", err)
	}
	_, err = w.box.Launcher().Launch(proc.Launch{Argv: []string{"true"}, Dir: w.work, Env: w.environ})
	var f *fault.Error
	if !errors.As(err, &f) || f.Exit != fault.Environment || f.Code != "sandbox_lost" || !errors.Is(err, proc.ErrGone) {
		t.Errorf("launch: %v", err)
	}
	waitGone(t, ch.Pid())
}

func TestStoppedHelperIsContinued(t *testing.T) {
	w := newWorld(t, nil)
	if err := unix.Kill(w.box.Launcher().Pid(), unix.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	if out, _ := w.sh("echo on"); out != "on" {
		t.Errorf("got %q", out)
	}
}

func TestCloseEndsWhatIsLeft(t *testing.T) {
	for _, mode := range []Mode{WorkspaceWrite, Off} {
		t.Run(string(mode), func(t *testing.T) {
			w := newWorld(t, func(_ *world, o *Options) { o.Mode = mode })
			// One that ignores TERM and has left its session, and its parent.
			out, _ := w.sh(`setsid sh -c 'trap "" TERM; echo $$ > pid; while :; do sleep 1; done' > /dev/null 2>&1 < /dev/null & while ! test -s pid; do sleep 0.01; done; cat pid`)
			pid, err := strconv.Atoi(out)
			if err != nil {
				t.Fatal(err)
			}
			if n := w.box.Close(50 * time.Millisecond); n < 1 {
				t.Errorf("ended %d", n)
			}
			waitGone(t, pid)
			if _, err := w.box.Launcher().Launch(proc.Launch{Argv: []string{"true"}, Dir: w.work}); !errors.Is(err, proc.ErrGone) {
				t.Errorf("launch after close: %v", err)
			}
			if _, err := w.box.With(Rights{Network: true}); err == nil {
				t.Error("a closed sandbox got more rights")
			}
		})
	}
}

// When drover is killed, so is everything it has started.
func TestNothingSurvivesDrover(t *testing.T) {
	if dir := os.Getenv("SANDBOX_TEST_DIE"); dir != "" {
		s, err := Open(context.Background(), Options{Mode: Mode(os.Getenv("SANDBOX_TEST_MODE")), Cwd: dir, Writable: []string{dir}, Environ: os.Environ()})
		if err != nil {
			t.Fatal(err)
		}
		_, err = s.Launcher().Launch(proc.Launch{
			Argv: []string{"sh", "-c", `setsid sh -c 'trap "" TERM; echo $$ > pid; while :; do sleep 1; done' & sleep 1000`},
			Dir:  dir, Env: os.Environ(),
		})
		if err != nil {
			t.Fatal(err)
		}
		_, _ = os.Stdin.Read(make([]byte, 1)) // until the test kills this process
		return
	}
	for _, mode := range []Mode{WorkspaceWrite, Off} {
		t.Run(string(mode), func(t *testing.T) {
			dir := t.TempDir()
			exe, err := os.Executable()
			if err != nil {
				t.Fatal(err)
			}
			r, wr, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			defer wr.Close()
			p, err := os.StartProcess(exe, []string{exe, "-test.run=^TestNothingSurvivesDrover$"}, &os.ProcAttr{
				Env: append(os.Environ(), "SANDBOX_TEST_DIE="+dir, "SANDBOX_TEST_MODE="+string(mode)), Files: []*os.File{r, os.Stdout, os.Stderr},
			})
			r.Close()
			if err != nil {
				t.Fatal(err)
			}
			pid := 0
			for deadline := time.Now().Add(60 * time.Second); pid == 0 && time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
				b, _ := os.ReadFile(filepath.Join(dir, "pid"))
				pid, _ = strconv.Atoi(strings.TrimSpace(string(b)))
			}
			if pid == 0 {
				t.Error("the command did not start")
			}
			_ = p.Kill()
			_, _ = p.Wait()
			if pid != 0 {
				waitGone(t, pid)
			}
		})
	}
}

// waitGone waits until a process is no more.
func waitGone(t *testing.T, pid int) {
	t.Helper()
	for deadline := time.Now().Add(60 * time.Second); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
		if err != nil || bytes.Contains(b, []byte(") Z ")) {
			return
		}
	}
	t.Errorf("process %d is left", pid)
}

func TestOrphansAreReaped(t *testing.T) {
	w := newWorld(t, nil)
	w.sh("for i in 1 2 3 4 5 6 7 8; do (sleep 0.01 &) ; done; sleep 0.3")
	helper := w.box.Launcher().Pid()
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		out, _ := w.sh("ps -o stat=,ppid= -A | grep -c \"^Z.* " + strconv.Itoa(helper) + "$\"")
		if strings.TrimSpace(out) == "0" {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("zombies are left: %s", out)
		}
	}
}

func TestDroverStaysPrivate(t *testing.T) {
	old, err := unix.PrctlRetInt(unix.PR_GET_DUMPABLE, 0, 0, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Prctl(unix.PR_SET_DUMPABLE, uintptr(old), 0, 0, 0) }()
	w := newWorld(t, nil)
	if level := w.box.Info().Level; level != LevelNamespaces {
		t.Errorf("level %s", level)
	}
	if now, _ := unix.PrctlRetInt(unix.PR_GET_DUMPABLE, 0, 0, 0, 0); now != 0 {
		t.Errorf("dumpable is %d afterwards", now)
	}
	if got := w.probed(w.box); got["parent-environ"] != "EACCES" || got["parent-root"] != "EACCES" {
		t.Errorf("got %q", got)
	}
}

// TestTheFirstThreadStartsNoCommand: which thread a goroutine gets is chance, so it
// is tried until it happens that the spawner gets the first one.
func TestTheFirstThreadStartsNoCommand(t *testing.T) {
	if landlockABI() < 6 {
		t.Skip("this kernel has no scopes")
	}
	for range 20 {
		w := newWorld(t, nil)
		out, _ := w.sh("kill -0 $PPID && echo reached; true")
		if strings.Contains(out, "reached") {
			t.Fatal("a command can signal the helper")
		}
	}
}
