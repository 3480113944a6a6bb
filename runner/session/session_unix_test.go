//go:build unix

package session

import (
	"errors"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"

	"drover/output/event"
)

// TestModesHoldUnderAnyUmask runs the mode test in the way a loose or a
// strict umask of the caller would. It must not run in parallel with others.
func TestModesHoldUnderAnyUmask(t *testing.T) {
	for _, mask := range []int{0, 0o022, 0o077, 0o777} {
		old := syscall.Umask(mask)
		state := filepath.Join(os.TempDir(), NewID())
		s, err := Create(state, "ses_a")
		var art event.Artifact
		if err == nil {
			art, err = s.Artifact("a", nil)
		}
		syscall.Umask(old)
		if err != nil {
			t.Fatalf("umask %o: %v", mask, err)
		}
		for path, want := range map[string]os.FileMode{
			state: 0o700, Dir(state, "ses_a"): 0o700, filepath.Join(Dir(state, "ses_a"), logName): 0o600, art.Path: 0o600,
		} {
			info, err := os.Lstat(path)
			if err != nil || info.Mode().Perm() != want {
				t.Errorf("umask %o: %s is %v, %v", mask, path, info.Mode(), err)
			}
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if err := os.RemoveAll(state); err != nil {
			t.Error(err)
		}
	}
}

// TestFullDiskLeavesWholeLinesAndAnError lets the kernel refuse the second half
// of a line, as a full disk does. It must not run in parallel with others.
func TestFullDiskLeavesWholeLinesAndAnError(t *testing.T) {
	state := t.TempDir()
	s := create(t, state, "ses_a")
	emit(t, s, 1, event.RunStartedEvent{})
	whole := s.size

	signal.Ignore(syscall.SIGXFSZ)
	defer signal.Reset(syscall.SIGXFSZ)
	var old syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &old); err != nil {
		t.Fatal(err)
	}
	small := old
	small.Cur = uint64(whole) + 20
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &small); err != nil {
		t.Skipf("the limit of file sizes cannot be set: %v", err)
	}
	first := s.Emit(line(2, event.MessageEvent{Text: "does not fit"}))
	second := s.Keep("nor this")
	_, artifact := s.Artifact("a", make([]byte, whole+100))
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &old); err != nil {
		t.Fatal(err)
	}
	if !errors.Is(first, syscall.EFBIG) || !errors.Is(second, syscall.EFBIG) || !errors.Is(artifact, syscall.EFBIG) {
		t.Errorf("got %v, then %v, then %v", first, second, artifact)
	}
	if err := s.Close(); !errors.Is(err, syscall.EFBIG) {
		t.Errorf("close: %v", err)
	}
	if got, damage := readAll(t, state, "ses_a"); len(got) != 1 || damage != nil {
		t.Errorf("records %v, damage %v", got, damage)
	}
	left, err := os.ReadDir(filepath.Join(Dir(state, "ses_a"), artifactsName))
	if err != nil || len(left) != 0 {
		t.Errorf("artifacts left behind: %v, %v", left, err)
	}
}
