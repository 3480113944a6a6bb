// Package examples runs every .txtar file of this folder as a test: the real
// binary, scripted models, no network.
package examples

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"drover/cmd"
	"drover/cmd/config"
	"drover/output/event"
	"drover/runner"
	"drover/runner/model"
	"drover/tools/sandbox"
)

func TestMain(m *testing.M) {
	sandbox.Main() // returns, unless this process is the helper of a run
	testscript.Main(m, map[string]func(){"drover": drover})
}

// drover is the binary. Every run also writes its stream to a file, which the
// test checks at its end: no example can pass with a stream that breaks a
// promise.
func drover() {
	args := os.Args[1:]
	if dir := os.Getenv("EXAMPLE_STREAMS"); dir != "" && len(args) > 0 && (args[0] == "run" || args[0] == "jobs" && len(args) > 1 && args[1] == "run") && !slices.Contains(args, "--dry-run") {
		f, err := os.CreateTemp(dir, "run-*.jsonl")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(99)
		}
		args = append(args, "--out", "jsonl:"+f.Name())
	}
	os.Exit(cmd.Main(args, os.Stdin, os.Stdout, os.Stderr))
}

func TestExamples(t *testing.T) {
	home, err := os.UserHomeDir()
	if err != nil {
		t.Fatal(err)
	}
	quickstart, err := filepath.Abs("quickstart")
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir:                 ".",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(env *testscript.Env) error {
			streams := filepath.Join(env.WorkDir, ".streams")
			if err := os.Mkdir(streams, 0o700); err != nil {
				return err
			}
			env.Setenv("EXAMPLE_STREAMS", streams)
			env.Setenv("XDG_STATE_HOME", filepath.Join(env.WorkDir, ".state"))
			env.Setenv("XDG_CONFIG_HOME", filepath.Join(env.WorkDir, ".config"))
			env.Setenv("QUICKSTART", quickstart)
			env.Setenv("TERM", "dumb")
			// The go command in an example uses the caches of the real home.
			for _, name := range []string{"GOCACHE", "GOMODCACHE", "GOPATH", "GOFLAGS", "GOPROXY"} {
				if v := os.Getenv(name); v != "" {
					env.Setenv(name, v)
				}
			}
			if os.Getenv("GOCACHE") == "" {
				env.Setenv("GOCACHE", filepath.Join(home, ".cache", "go-build"))
			}
			if os.Getenv("GOPATH") == "" {
				env.Setenv("GOPATH", filepath.Join(home, "go"))
			}
			env.Defer(func() { checkStreams(t, streams) })
			return nil
		},
	})
}

// checkStreams checks every stream that an example has written.
func checkStreams(t *testing.T, dir string) {
	files, err := filepath.Glob(filepath.Join(dir, "*.jsonl"))
	if err != nil {
		t.Error(err)
	}
	for _, name := range files {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Error(err)
			continue
		}
		if len(data) == 0 {
			continue // a run that was killed, or whose --out was refused
		}
		for _, problem := range event.CheckStream(strings.NewReader(string(data))) {
			t.Errorf("%s: %v\n%s", filepath.Base(name), problem, data)
		}
	}
}

// TestProviderExamplesLoad keeps the files that need a real server readable.
func TestProviderExamplesLoad(t *testing.T) {
	task, err := runner.LoadTask(filepath.Join("providers", "local.yaml"), nil)
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(task.Cwd); err != nil || !info.IsDir() {
		t.Errorf("its folder %s: %v", task.Cwd, err)
	}
	home, err := filepath.Abs("providers")
	if err != nil {
		t.Fatal(err)
	}
	cfg, err := config.Load(config.Options{Getenv: func(string) string { return "" }, ConfigHome: home})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := model.Open(cfg.Model, model.Config{Providers: cfg.Providers}); err != nil {
		t.Errorf("the model of the example: %v", err)
	}
	if _, err := model.Open(task.Model, model.Config{}); err != nil {
		t.Errorf("the model of the task: %v", err)
	}
}
