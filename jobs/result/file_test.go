package result

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// says writes text.
func says(text string) func(io.Writer) error {
	return func(w io.Writer) error {
		_, err := io.WriteString(w, text)
		return err
	}
}

func content(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// names are those in a folder.
func names(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, e := range entries {
		out = append(out, e.Name())
	}
	return out
}

func put(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestReplaceMakesTheFoldersAbove(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a", "b", "out.csv")
	if err := Replace(path, says("new")); err != nil {
		t.Fatal(err)
	}
	if got := content(t, path); got != "new" {
		t.Errorf("got %q", got)
	}
	if got := names(t, filepath.Dir(path)); !cmp.Equal(got, []string{"out.csv"}) {
		t.Errorf("the folder holds %q", got)
	}
}

func TestReadersSeeTheOldFileUntilTheNewOneIsWhole(t *testing.T) {
	path := filepath.Join(t.TempDir(), "out.csv")
	put(t, path, "old")
	err := Replace(path, func(w io.Writer) error {
		// More than any buffer, so that something has reached the disk.
		if err := says(strings.Repeat("x", 1<<20))(w); err != nil {
			return err
		}
		if got := content(t, path); got != "old" {
			t.Errorf("while it is written a reader sees %d bytes", len(got))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := content(t, path); len(got) != 1<<20 {
		t.Errorf("%d bytes were written", len(got))
	}
}

func TestFailedWriteLeavesTheOldFileAndNothingBeside(t *testing.T) {
	path := filepath.Join(t.TempDir(), "out.csv")
	put(t, path, "old")
	broken := errors.New("the database is away")
	err := Replace(path, func(w io.Writer) error {
		if err := says(strings.Repeat("x", 1<<20))(w); err != nil {
			return err
		}
		return broken
	})
	if !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
	if got := content(t, path); got != "old" {
		t.Errorf("the old file is %q", got)
	}
	if got := names(t, filepath.Dir(path)); !cmp.Equal(got, []string{"out.csv"}) {
		t.Errorf("the folder holds %q", got)
	}
}

func TestTemporaryFileOfAKilledWriterIsNoObstacle(t *testing.T) {
	path := filepath.Join(t.TempDir(), "out.csv")
	old, err := create(path, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer old.Close()
	if err := Replace(path, says("new")); err != nil {
		t.Fatal(err)
	}
	if got := content(t, path); got != "new" {
		t.Errorf("got %q", got)
	}
}

func TestReplaceKeepsTheModeOfTheFile(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("modes are those of POSIX")
	}
	path := filepath.Join(t.TempDir(), "out.csv")
	put(t, path, "old")
	for _, mode := range []fs.FileMode{0o600, 0o664, 0o640} {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		if err := Replace(path, says("new")); err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm() != mode {
			t.Errorf("%v became %v", mode, info.Mode().Perm())
		}
	}
}

func link(t *testing.T, to, path string) {
	t.Helper()
	if err := os.Symlink(to, path); err != nil {
		t.Skipf("links cannot be made here: %v", err)
	}
}

func TestReplaceWritesThroughALinkThatStays(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "real"), 0o755); err != nil {
		t.Fatal(err)
	}
	target, path := filepath.Join(dir, "real", "target.csv"), filepath.Join(dir, "out.csv")
	put(t, target, "old")
	link(t, filepath.Join("real", "target.csv"), path)
	if err := Replace(path, says("new")); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Lstat(path); err != nil || info.Mode()&fs.ModeSymlink == 0 {
		t.Errorf("the link is gone: %v, %v", info, err)
	}
	if got := content(t, target); got != "new" {
		t.Errorf("its target is %q", got)
	}
	if got := names(t, filepath.Dir(target)); !cmp.Equal(got, []string{"target.csv"}) {
		t.Errorf("the folder of the target holds %q", got)
	}
}

func TestReplaceRefusesWhatIsNoFile(t *testing.T) {
	dir := t.TempDir()
	folder, dangling, toFolder := filepath.Join(dir, "folder"), filepath.Join(dir, "dangling"), filepath.Join(dir, "to-folder")
	if err := os.Mkdir(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	link(t, "nowhere", dangling)
	link(t, "folder", toFolder)
	before := names(t, dir)
	cases := map[string]string{folder: "not a regular file", toFolder: "not a regular file", dangling: "follow the link"}
	if runtime.GOOS != "windows" {
		cases[os.DevNull] = "not a regular file"
	}
	for path, want := range cases {
		wrote := false
		err := Replace(path, func(io.Writer) error { wrote = true; return nil })
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", filepath.Base(path), err, want)
		}
		if wrote {
			t.Errorf("%s: the rows were read for nothing", filepath.Base(path))
		}
	}
	if diff := cmp.Diff(before, names(t, dir)); diff != "" {
		t.Error(diff)
	}
}

func TestAppenderAddsLinesToAFileThatIsThere(t *testing.T) {
	path := filepath.Join(t.TempDir(), "out.jsonl")
	put(t, path, "one\n")
	for _, line := range []string{"two\n", "three\n"} {
		a, err := OpenAppender(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := a.Append([]byte(line)); err != nil {
			t.Fatal(err)
		}
		// The line is there before the file is closed.
		if got := content(t, path); !strings.HasSuffix(got, line) {
			t.Errorf("got %q", got)
		}
		if err := a.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if got := content(t, path); got != "one\ntwo\nthree\n" {
		t.Errorf("got %q", got)
	}
}

func TestFilesOfKilledWritersAreRemoved(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "out[1].csv")
	for _, name := range []string{"out[1].csv", "out[1].csv.77-0.tmp", "out[1].csv.a-b.tmp", "out1.csv.77-0.tmp"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := Clean(path); err != nil {
		t.Fatal(err)
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 3 {
		t.Errorf("left are %v, %v", left, err)
	}
}
