package cmd

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"drover/output/fault"
)

const recorded = "../output/event/testdata/stream.jsonl"

// events runs drover events with arguments and a stdin inside the test.
func events(t *testing.T, stdin string, args ...string) (exit int, stdout, stderr string) {
	t.Helper()
	dir := t.TempDir()
	var files [3]*os.File
	for i, name := range []string{"stdin", "stdout", "stderr"} {
		path := filepath.Join(dir, name)
		if i == 0 {
			if err := os.WriteFile(path, []byte(stdin), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		files[i] = f
	}
	exit = Main(append([]string{"events"}, args...), files[0], files[1], files[2])
	out, err := os.ReadFile(files[1].Name())
	if err != nil {
		t.Fatal(err)
	}
	errs, err := os.ReadFile(files[2].Name())
	if err != nil {
		t.Fatal(err)
	}
	return exit, string(out), string(errs)
}

func readRecorded(t *testing.T) string {
	t.Helper()
	data, err := os.ReadFile(recorded)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestValidateSaysWhatIsWrongAndWhere(t *testing.T) {
	good := readRecorded(t)
	exit, stdout, stderr := events(t, "", "validate", recorded)
	if exit != 0 || stderr != "" || stdout != recorded+": valid, 92 lines\n" {
		t.Errorf("exit %d, %q, %q", exit, stdout, stderr)
	}
	exit, stdout, stderr = events(t, strings.Replace(good, `"level":"info"`, `"level":"\u001b[2J"`, 1), "validate", "-")
	if exit != int(fault.Failed) || stdout != "-: 1 problem in 92 lines\n" || !strings.HasPrefix(stderr, "-: line 3 (notice): ") || strings.Contains(stderr, "\x1b") {
		t.Errorf("exit %d, %q, %q", exit, stdout, stderr)
	}
	exit, stdout, _ = events(t, good+"rest", "validate", "-")
	if exit != int(fault.Failed) || !strings.HasSuffix(stdout, "problems in 93 lines\n") {
		t.Errorf("exit %d, %q", exit, stdout)
	}
}

func TestRenderShowsARecordedRun(t *testing.T) {
	want, err := os.ReadFile("../output/lines/testdata/80.txt")
	if err != nil {
		t.Fatal(err)
	}
	exit, stdout, stderr := events(t, "", "render", recorded)
	if d := cmp.Diff(string(want), stdout); exit != 0 || stderr != "" || d != "" {
		t.Errorf("exit %d, %q, %s", exit, stderr, d)
	}
	exit, stdout, _ = events(t, readRecorded(t), "render", "--format", "jsonl", "-")
	if d := cmp.Diff(readRecorded(t), stdout); exit != 0 || d != "" {
		t.Errorf("exit %d, %s", exit, d)
	}
	if _, stdout, _ = events(t, "", "render", "--ascii", "--color", "always", recorded); !strings.Contains(stdout, "\x1b[33mx\x1b[m") {
		t.Errorf("no coloured ASCII in %q", stdout)
	}
}

func TestRenderShowsAStreamThatWasCutOff(t *testing.T) {
	good := readRecorded(t)
	for cut := 200; cut < len(good); cut += len(good) / 40 {
		exit, stdout, stderr := events(t, good[:cut], "render", "-")
		if exit != 0 || strings.Contains(stdout, "▸ exec_command") || stderr != "" && !strings.Contains(stderr, "the last line is torn") {
			t.Errorf("cut at %d: exit %d, %q, %q", cut, exit, stdout, stderr)
		}
	}
}

func TestRenderPassesOverLinesThatAreNoEvents(t *testing.T) {
	exit, stdout, stderr := events(t, "warning: \x1b[2J\n"+readRecorded(t), "render", "-")
	if exit != int(fault.Failed) || !strings.HasPrefix(stderr, "-: line 1: ") || strings.Contains(stderr, "\x1b") || !strings.Contains(stdout, "apply_patch") {
		t.Errorf("exit %d, %q, %q", exit, stdout, stderr)
	}
}

func TestStreamsThatCannotBeReadAreUsageErrors(t *testing.T) {
	for _, args := range [][]string{
		{"validate", "missing.jsonl"}, {"render", "missing.jsonl"}, {"render", t.TempDir()}, {"render"}, {"validate", "a", "b"},
		{"render", "--format", "fancy", recorded}, {"render", "--color", "blue", recorded}, {},
	} {
		exit, stdout, stderr := events(t, "", args...)
		if exit != int(fault.Usage) || stdout != "" || !strings.HasPrefix(stderr, "drover: ") {
			t.Errorf("%q: exit %d, %q, %q", args, exit, stdout, stderr)
		}
	}
}
