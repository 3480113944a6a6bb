package tools

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

func testFiles(t *testing.T) (*Files, string) {
	t.Helper()
	dir := t.TempDir()
	cwd := filepath.Join(dir, "work")
	if err := os.Mkdir(cwd, 0o755); err != nil {
		t.Fatal(err)
	}
	f, err := OpenFiles(FilesOptions{Cwd: cwd, Writable: []string{cwd}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	})
	return f, dir
}

func TestWritesStayBeneathTheRoots(t *testing.T) {
	f, dir := testFiles(t)
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(os.Mkdir(filepath.Join(dir, "other"), 0o755))
	must(os.Symlink(filepath.Join(dir, "other"), filepath.Join(dir, "work", "out")))
	must(os.Symlink("inside.txt", filepath.Join(dir, "work", "link")))
	must(os.Mkdir(filepath.Join(dir, "work", ".git"), 0o755))
	must(os.Symlink(".git", filepath.Join(dir, "work", "alias")))
	for _, c := range []struct {
		name, path string
		want       error
	}{
		{"plain", "a.txt", nil},
		{"new folders", "x/y/z.txt", nil},
		{"absolute inside", filepath.Join(dir, "work", "b.txt"), nil},
		{"through a link inside", "link", nil},
		{"climbing out", "../c.txt", ErrOutside},
		{"climbing out in the middle", "a/../../c.txt", ErrOutside},
		{"absolute outside", filepath.Join(dir, "c.txt"), ErrOutside},
		{"through a link outside", "out/c.txt", ErrOutside},
		{"a name that only begins like the root", filepath.Join(dir, "workshop.txt"), ErrOutside},
		{"protected", ".git/hooks/pre-commit", ErrProtected},
		{"protected, other case", ".GIT/config", ErrProtected},
		{"protected through a link", "alias/config", ErrProtected},
		{"protected before it exists", ".agents/x", ErrProtected},
		{"only begins like a protected one", ".github/x.yml", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := f.WriteFile(c.path, []byte("x"), 0)
			if !errors.Is(err, c.want) || (c.want == nil && err != nil) {
				t.Fatalf("err = %v, want %v", err, c.want)
			}
		})
	}
	if b, err := os.ReadFile(filepath.Join(dir, "work", "inside.txt")); err != nil || string(b) != "x" {
		t.Errorf("the link's target holds %q, %v", b, err)
	}
	if info, err := os.Lstat(filepath.Join(dir, "work", "link")); err != nil || info.Mode()&fs.ModeSymlink == 0 {
		t.Error("the link itself was replaced")
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "work", ".*.*")); len(left) != 0 {
		t.Errorf("temporary files left: %v", left)
	}
}

func TestModesAreKept(t *testing.T) {
	f, dir := testFiles(t)
	path := filepath.Join(dir, "work", "run.sh")
	if err := os.WriteFile(path, []byte("a"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, 0o775); err != nil {
		t.Fatal(err)
	}
	if err := f.WriteFile("run.sh", []byte("b"), 0); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o775 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
}

func TestRealNameOfWhatIsNotThere(t *testing.T) {
	f, dir := testFiles(t)
	work := filepath.Join(f.Real(dir), "work")
	for from, to := range map[string]string{"dangling": "gone/x", "loop": "loop", "up": ".."} {
		if err := os.Symlink(to, filepath.Join(dir, "work", from)); err != nil {
			t.Fatal(err)
		}
	}
	for in, want := range map[string]string{
		"dangling":                       work + "/gone/x",
		"new/file":                       work + "/new/file",
		"loop":                           filepath.Join(dir, "work", "loop"),
		filepath.Join("up", "work", "a"): work + "/a",
		"up/../else":                     filepath.Join(dir, "work", "else"),
	} {
		if got := f.Real(in); got != want {
			t.Errorf("Real(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestRemoveTakesTheLinkAndNotItsTarget(t *testing.T) {
	f, dir := testFiles(t)
	target := filepath.Join(dir, "outside.txt")
	if err := os.WriteFile(target, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(target, filepath.Join(dir, "work", "l")); err != nil {
		t.Fatal(err)
	}
	if err := f.Remove("l"); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(target); err != nil {
		t.Errorf("the target went with the link: %v", err)
	}
}
