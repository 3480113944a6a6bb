//go:build linux

package proc

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// launcher stands for a helper: it starts commands itself and says that another
// process did.
type launcher struct {
	pid  int
	got  Launch
	lose bool
	err  error
	// nonblocking are the descriptors that no program expects.
	nonblocking []int
}

func (l *launcher) Launch(x Launch) (Child, error) {
	l.got = x
	for i, f := range x.Files {
		raw, err := f.SyscallConn()
		if err != nil {
			return nil, err
		}
		err = raw.Control(func(fd uintptr) {
			if flags, err := unix.FcntlInt(fd, unix.F_GETFL, 0); err != nil || flags&unix.O_NONBLOCK != 0 {
				l.nonblocking = append(l.nonblocking, i)
			}
		})
		if err != nil {
			return nil, err
		}
	}
	if l.err != nil {
		return nil, l.err
	}
	child, err := direct{}.Launch(x)
	if err == nil && l.lose {
		child = lostChild{child}
	}
	return child, err
}

func (l *launcher) Pid() int { return l.pid }

// lostChild is a child whose helper dies at once.
type lostChild struct{ Child }

func (c lostChild) Wait() (Status, error) { return Status{}, ErrGone }

func TestLauncherGetsTheWholeCommand(t *testing.T) {
	l := &launcher{pid: os.Getpid()}
	got := run(t, t.Context(), "echo out; echo err >&2; exit 3", func(s *Spec) { s.Launcher = l; s.Env = testEnv("A=1") })
	if got.Code != 3 || got.stdout != "out\n" || got.stderr != "err\n" || got.Lost {
		t.Errorf("got %+v", got)
	}
	if l.got.Argv[0] != "bash" || l.got.Dir == "" || l.got.TTY || !slices.Contains(l.got.Env, "A=1") {
		t.Errorf("launched %+v", l.got)
	}
	if !slices.ContainsFunc(l.got.Env, func(kv string) bool { return strings.HasPrefix(kv, markVar+"=") }) {
		t.Error("the command has no mark")
	}
	for _, change := range []func(*Spec){func(s *Spec) { s.TTY = true }, func(s *Spec) { s.Input = []byte("x") }, func(s *Spec) { s.Merge = true }} {
		run(t, t.Context(), "true", func(s *Spec) { s.Launcher = l; change(s) })
	}
	if l.nonblocking != nil {
		t.Errorf("descriptors %v do not block", l.nonblocking)
	}
	for _, dir := range []string{"", "."} {
		if _, err := Run(t.Context(), Spec{Argv: []string{"true"}, Env: testEnv(), Dir: dir, Launcher: l}); err != nil || !strings.HasPrefix(l.got.Dir, "/") {
			t.Errorf("folder %q is launched as %q, %v", dir, l.got.Dir, err)
		}
	}
}

// What a launcher starts lives below its helper, which is no part of any
// command, even if it looks like one.
func TestHelperIsNotEndedWithACommand(t *testing.T) {
	helper, err := Start(t.Context(), Spec{Argv: []string{"sleep", "300"}, Env: testEnv(), Timeout: 2 * patience})
	if err != nil {
		t.Fatal(err)
	}
	all, ok := listProcesses()
	if !ok {
		t.Fatal("no processes")
	}
	k := newKin(helper.Pid(), "none", helper.Pid())
	if got := k.choose(all); len(got) != 0 {
		t.Errorf("the helper is among %v", got)
	}
	if got := closure(all, map[int]bool{os.Getpid(): true}, helper.Pid()); slices.ContainsFunc(got, func(m member) bool { return m.pid == helper.Pid() }) {
		t.Errorf("the helper is among the children %v", got)
	}
	got := run(t, t.Context(), "sleep 300 & echo up", func(s *Spec) { s.Launcher = &launcher{pid: helper.Pid()} })
	if got.Ended != 1 || got.stdout != "up\n" {
		t.Errorf("got %+v", got)
	}
	select {
	case <-helper.Exited():
		t.Error("the helper was ended")
	default:
	}
	_ = helper.child.(directChild).os.Kill()
	helper.Wait()
}

func TestCommandOfADeadHelperIsLostAndEnded(t *testing.T) {
	got := run(t, t.Context(), "echo up; sleep 300 & sleep 300", func(s *Spec) {
		s.Launcher, s.Grace = &launcher{lose: true}, 500*time.Millisecond
	})
	if !got.Lost || got.Code != -1 || got.TimedOut || got.took > patience {
		t.Errorf("got %+v", got)
	}
}

func TestErrorOfALauncherIsPassedOn(t *testing.T) {
	fds := openDescriptors(t)
	for range 3 {
		_, err := Start(t.Context(), Spec{Argv: []string{"true"}, Env: testEnv(), Launcher: &launcher{err: ErrGone}, Input: []byte("x")})
		if !errors.Is(err, ErrGone) {
			t.Errorf("got %v", err)
		}
	}
	if now := openDescriptors(t); now > fds {
		t.Errorf("descriptors: %d, then %d", fds, now)
	}
}
