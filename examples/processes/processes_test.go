//go:build linux

// Package processes tests what becomes of the processes of a run: the built
// binary plays scripted models whose commands fork, hide, refuse to die and
// kill what watches them. After every run the stream is whole, the exit code is
// right, and nothing that the run has started is left.
//
// Every test runs in the default sandbox and without one. DROVER_BINARY names a
// binary to test instead of one built from this module, DROVER_STORM the rounds
// of the test that kills drover at random moments.
package processes

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// binary is the drover under test.
var binary string

func TestMain(m *testing.M) {
	// Where hangups are ignored, as under nohup, a program inherits that, unless
	// somebody wants to be told of them.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP)
	flag.Parse()
	dir, err := os.MkdirTemp("", "drover-processes")
	if err == nil {
		err = build(dir)
	}
	if err == nil {
		// The tests wait for processes more than they compute.
		err = flag.Set("test.parallel", strconv.Itoa(8*runtime.GOMAXPROCS(0)))
	}
	code := 1
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	} else {
		code = m.Run()
		if left := helpersLeft(); len(left) > 0 {
			fmt.Fprintf(os.Stderr, "processes of drover itself are left: %v\n", left)
			code = 1
		}
	}
	_ = os.RemoveAll(dir) // a folder for temporary files
	os.Exit(code)
}

// build makes the binary, unless the caller has one.
func build(dir string) error {
	if binary = os.Getenv("DROVER_BINARY"); binary != "" {
		abs, err := filepath.Abs(binary)
		binary = abs
		return err
	}
	binary = filepath.Join(dir, "drover")
	if out, err := exec.Command("go", "build", "-o", binary, "drover/cmd/drover").CombinedOutput(); err != nil {
		return fmt.Errorf("build drover: %w\n%s", err, out)
	}
	return nil
}

// mode is the value of --sandbox; empty is the default.
type mode string

// both runs a test in the default sandbox and without one.
func both(t *testing.T, test func(t *testing.T, in mode)) {
	t.Parallel()
	t.Run("sandbox", func(t *testing.T) {
		t.Parallel()
		if why := noSandbox(); why != "" {
			t.Skip("this machine has no sandbox: ", why)
		}
		test(t, "")
	})
	t.Run("off", func(t *testing.T) {
		t.Parallel()
		test(t, "off")
	})
}

// noSandbox says why the default sandbox cannot be had here; empty if it can.
var noSandbox = sync.OnceValue(func() string {
	dir, err := os.MkdirTemp("", "drover-probe")
	if err != nil {
		return err.Error()
	}
	defer func() { _ = os.RemoveAll(dir) }() // a folder for temporary files
	model := filepath.Join(dir, "model.jsonl")
	if err := os.WriteFile(model, []byte(`{"text":"Done."}`+"\n"), 0o600); err != nil {
		return err.Error()
	}
	cmd := exec.Command(binary, "run", "--model", "script:"+model, "--ephemeral", "go")
	cmd.Env = append(cleanEnv(), "XDG_STATE_HOME="+dir, "XDG_CONFIG_HOME="+dir)
	cmd.Dir = dir
	var exit *exec.ExitError
	if _, err := cmd.Output(); errors.As(err, &exit) && exit.ExitCode() == 7 {
		return string(exit.Stderr)
	}
	return "" // whatever else is wrong, the tests tell
})

// cleanEnv is the environment without what an outer drover has put there.
func cleanEnv() []string {
	var out []string
	for _, kv := range os.Environ() {
		if !strings.HasPrefix(kv, "DROVER_") && !strings.HasPrefix(kv, "XDG_") {
			out = append(out, kv)
		}
	}
	return out
}
