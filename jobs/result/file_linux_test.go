package result

import (
	"errors"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// childPath names the file of a process that may not write more than sizeLimit
// bytes into one.
const (
	childPath = "DROVER_TEST_APPENDER"
	sizeLimit = 4096
)

// TestLineThatAFullDiskHasCutIsTakenBack stands for a full disk with a limit on
// the size of files, which a process of its own has: both let a part of a line
// through.
func TestLineThatAFullDiskHasCutIsTakenBack(t *testing.T) {
	if path := os.Getenv(childPath); path != "" {
		appendBeyond(t, path)
		return
	}
	path := filepath.Join(t.TempDir(), "out.jsonl")
	cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$")
	cmd.Env = append(os.Environ(), childPath+"="+path)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if got := content(t, path); got != "first\nlast\n" {
		t.Errorf("the file has %d bytes and ends with %q", len(got), got[max(0, len(got)-20):])
	}
}

func appendBeyond(t *testing.T, path string) {
	signal.Ignore(syscall.SIGXFSZ)
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: sizeLimit, Max: sizeLimit}); err != nil {
		t.Fatal(err)
	}
	a, err := OpenAppender(path)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	if err := a.Append([]byte("first\n")); err != nil {
		t.Fatal(err)
	}
	if err := a.Append([]byte(strings.Repeat("x", sizeLimit) + "\n")); !errors.Is(err, syscall.EFBIG) {
		t.Fatalf("a line beyond the limit: got %v, want %v", err, syscall.EFBIG)
	}
	if err := a.Append([]byte("last\n")); err != nil {
		t.Fatal(err)
	}
}
