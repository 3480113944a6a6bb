package search

import (
	"bytes"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"
)

// BenchmarkSearchLiteral and BenchmarkSearchRegex measure whole searches of the
// standard library, without a bound on the results, beside the tools that
// people would use instead.
func BenchmarkSearchLiteral(b *testing.B) {
	for _, query := range []string{"runtime.GC", "func ", "no such text anywhere"} {
		b.Run(query, func(b *testing.B) { compareTools(b, Options{Query: query}, "-F") })
	}
}

func BenchmarkSearchRegex(b *testing.B) {
	for _, query := range []string{`func.*Context`, `[A-Z]\w+Error\b`, `(TODO|FIXME)\(\w+\)`, `(?i)deadlock\w+`} {
		b.Run(query, func(b *testing.B) { compareTools(b, Options{Query: query, Regex: true}, "-E") })
	}
}

// BenchmarkSearchFirst measures the common search, which stops early.
func BenchmarkSearchFirst(b *testing.B) {
	for b.Loop() {
		search(b, Options{Root: filepath.Join(runtime.GOROOT(), "src"), Query: "func ", MaxResults: 50})
	}
}

func compareTools(b *testing.B, o Options, grepFlag string) {
	o.Root = filepath.Join(runtime.GOROOT(), "src")
	b.Run("drover", func(b *testing.B) {
		for b.Loop() {
			search(b, o)
		}
	})
	rgFlags := []string{"-n", "--no-heading", "--color=never"}
	if !o.Regex {
		rgFlags = append(rgFlags, "-F")
	}
	b.Run("rg", func(b *testing.B) { runTool(b, "rg", append(rgFlags, "--", o.Query, o.Root)...) })
	b.Run("grep", func(b *testing.B) { runTool(b, "grep", "-rnI", grepFlag, "--", o.Query, o.Root) })
}

func runTool(b *testing.B, name string, args ...string) {
	path, err := exec.LookPath(name)
	if err != nil {
		b.Skip(name + " is not installed")
	}
	for b.Loop() {
		var out bytes.Buffer
		cmd := exec.Command(path, args...)
		cmd.Stdout = &out
		// Exit status 1 is "nothing found".
		if err := cmd.Run(); err != nil && cmd.ProcessState.ExitCode() != 1 {
			b.Fatal(err)
		}
	}
}

func search(tb testing.TB, o Options) Result {
	tb.Helper()
	r, err := Search(tb.Context(), o)
	if err != nil {
		tb.Fatal(err)
	}
	return r
}
