//go:build linux

package proc

import (
	"context"
	"errors"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// typist is a command in a terminal of its own.
type typist struct {
	*Process
	t  *testing.T
	mu sync.Mutex
	// seen is everything that was printed.
	seen strings.Builder
}

func startTyping(t *testing.T, script string, change func(*Spec)) *typist {
	t.Helper()
	ty := &typist{t: t}
	s := Spec{
		Argv: []string{"bash", "--norc", "-c", script}, Dir: t.TempDir(), Env: testEnv("TERM=dumb"), TTY: true, Timeout: 2 * patience,
		Output: func(_ Stream, b []byte) {
			ty.mu.Lock()
			defer ty.mu.Unlock()
			ty.seen.Write(b)
		},
	}
	if change != nil {
		change(&s)
	}
	var err error
	if ty.Process, err = Start(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	return ty
}

func (ty *typist) output() string {
	ty.mu.Lock()
	defer ty.mu.Unlock()
	return ty.seen.String()
}

// await waits until the output holds a text.
func (ty *typist) await(text string) {
	ty.t.Helper()
	waitFor(ty.t, text, func() bool { return strings.Contains(ty.output(), text) })
}

func (ty *typist) send(text string) {
	ty.t.Helper()
	ctx, cancel := context.WithTimeout(ty.t.Context(), patience)
	defer cancel()
	if n, err := ty.Write(ctx, []byte(text)); n != len(text) || err != nil {
		ty.t.Fatalf("typing %q: %d, %v", text, n, err)
	}
}

// github.com/creack/pty/issues/21: the end of a terminal reads as an error.
func TestEndOfATerminalIsNoError(t *testing.T) {
	ty := startTyping(t, "echo hi", nil)
	if res := ty.Wait(); res.Code != 0 || res.Abandoned || res.Lost || ty.output() != "hi\r\n" {
		t.Errorf("got %+v, %q", res, ty.output())
	}
}

func TestWhatIsTypedReachesTheCommand(t *testing.T) {
	ty := startTyping(t, `tty >/dev/null && echo terminal; read -r line; echo "got:$line"; cat; echo "end"`, nil)
	ty.await("terminal")
	ty.send("first\n")
	ty.await("got:first\r\n")
	ty.send("second\n")
	ty.await("second\r\nsecond\r\n") // its echo, then what cat says
	ty.send("\x04")                  // the end of the input
	if res := ty.Wait(); res.Code != 0 || !strings.HasSuffix(ty.output(), "end\r\n") {
		t.Errorf("got %+v, %q", res, ty.output())
	}
	if _, err := ty.Write(t.Context(), []byte("late")); !errors.Is(err, ErrEnded) {
		t.Errorf("typing after the end: %v", err)
	}
}

func TestTypedInterruptIsASignal(t *testing.T) {
	ty := startTyping(t, `trap 'echo interrupted; exit 7' INT; echo up; while :; do sleep 0.05; done`, nil)
	ty.await("up")
	ty.send("\x03")
	if res := ty.Wait(); res.Code != 7 || !strings.Contains(ty.output(), "interrupted") {
		t.Errorf("got %+v, %q", res, ty.output())
	}
}

func TestSizeOfTheTerminal(t *testing.T) {
	ty := startTyping(t, `while :; do stty size; sleep 0.02; done`, nil)
	ty.await("24 80\r\n")
	for _, tt := range []struct {
		rows, cols int
		want       string
	}{{50, 132, "50 132"}, {0, 0, "1 1"}, {-3, 70000, "1 1000"}, {1 << 20, 1 << 40, "1000 1000"}} {
		if err := ty.Resize(tt.rows, tt.cols); err != nil {
			t.Fatal(err)
		}
		ty.await(tt.want + "\r\n")
	}
	ty.send("\x03")
	ty.Wait()
	if err := ty.Resize(10, 10); err == nil {
		t.Error("no error after the end")
	}
}

func TestProgramThatDoesNotReadHoldsNoWriterUp(t *testing.T) {
	ty := startTyping(t, "stty raw -echo; echo up; sleep 300", nil)
	ty.await("up")
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	n, err := ty.Write(ctx, make([]byte, 1<<20))
	if !errors.Is(err, context.DeadlineExceeded) || n >= 1<<20 {
		t.Errorf("wrote %d, %v", n, err)
	}
	// The next write has a time of its own, and still no reader.
	again, cancelAgain := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancelAgain()
	if _, err := ty.Write(again, make([]byte, 1<<20)); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("second write: %v", err)
	}
	if err := unix.Kill(ty.Pid(), unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	ty.Wait()
}

func TestTerminalLastsWhileTheCommandDoes(t *testing.T) {
	// It has closed the terminal and opens it again: neither end nor hang-up.
	ty := startTyping(t, "exec 0<&- 1>&- 2>&-; sleep 0.3; exec 1>/dev/tty; echo again", nil)
	if res := ty.Wait(); res.Code != 0 || ty.output() != "again\r\n" {
		t.Errorf("got %+v, %q", res, ty.output())
	}
}

func TestTerminalOfEveryShapeEnds(t *testing.T) {
	scripts := []string{
		"trap '' TERM HUP; sleep 60", "trap '' TERM HUP; while :; do sleep 1; done", "nohup sleep 60 & sleep 60",
		"setsid sleep 60", "(setsid sleep 60 &) ; sleep 60", "yes", "cat", "exec 0<&- 1>&- 2>&-; sleep 60", "kill -STOP $$",
	}
	var all sync.WaitGroup
	for _, script := range scripts {
		all.Go(func() {
			got := run(t, t.Context(), script, func(s *Spec) {
				s.TTY, s.Timeout, s.Grace = true, time.Second, 500*time.Millisecond
			})
			if got.took > patience || got.Survivors != 0 || !got.TimedOut && !strings.Contains(script, "setsid sleep 60") {
				t.Errorf("%q: %+v", script, got)
			}
		})
	}
	all.Wait()
}

func TestQueryOfTheCursorIsBounded(t *testing.T) {
	// github.com/anthropics/claude-code/issues/13345: nobody answers.
	ty := startTyping(t, `printf '\033[6n'; if read -rs -t 0.3 -d R reply; then echo answered; else echo silence; fi`, nil)
	if res := ty.Wait(); res.Code != 0 || ty.output() != "\x1b[6nsilence\r\n" {
		t.Errorf("got %+v, %q", res, ty.output())
	}
}

func TestOnlyATerminalTakesInput(t *testing.T) {
	p, err := Start(t.Context(), Spec{Argv: []string{"true"}, Env: testEnv()})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Write(t.Context(), []byte("x")); !errors.Is(err, ErrNoTerminal) {
		t.Errorf("write: %v", err)
	}
	if err := p.Resize(1, 1); !errors.Is(err, ErrNoTerminal) {
		t.Errorf("resize: %v", err)
	}
	p.Wait()
}

func TestTerminalsLeaveNoDescriptor(t *testing.T) {
	once := func() { startTyping(t, "echo x", nil).Wait() }
	once()
	fds := openDescriptors(t)
	for range 20 {
		once()
	}
	for range 5 {
		if _, err := Start(t.Context(), Spec{Argv: []string{"/dev/null/x"}, TTY: true}); err == nil {
			t.Fatal("no error")
		}
	}
	if now := openDescriptors(t); now > fds {
		t.Errorf("descriptors: %d, then %d", fds, now)
	}
	if _, err := os.Stat("/dev/ptmx"); err != nil {
		t.Fatal(err)
	}
}
