package tools

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// A command that runs at the same time can put a link where a folder was when
// the path was checked.
func TestLinkSwappedInLeadsNowhere(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{".git/hooks", "a/b"} {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	hook := filepath.Join(dir, ".git", "hooks", "keep")
	if err := os.WriteFile(hook, []byte("mine"), 0o644); err != nil {
		t.Fatal(err)
	}
	files, err := OpenFiles(FilesOptions{Cwd: dir, Writable: []string{dir}})
	if err != nil {
		t.Fatal(err)
	}
	defer files.Close()
	checked, err := files.place("a/b/keep")
	if err != nil {
		t.Fatal(err)
	}
	folder, err := files.place("a/b/new")
	if err != nil {
		t.Fatal(err)
	}
	swap := func(name, target string) {
		if err := os.RemoveAll(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
			t.Skipf("no links here: %v", err)
		}
	}
	for _, c := range [][2]string{{"a/b", "../.git/hooks"}, {"a", ".git"}} {
		swap(c[0], c[1])
		if c[0] == "a" {
			if err := os.Symlink("hooks", filepath.Join(dir, ".git", "b")); err != nil {
				t.Fatal(err)
			}
		}
		if err := checked.replace([]byte("theirs"), 0o644); !errors.Is(err, errSwapped) {
			t.Errorf("replace: %v", err)
		}
		if err := checked.remove(); !errors.Is(err, errSwapped) {
			t.Errorf("remove: %v", err)
		}
		if _, err := checked.stat(); !errors.Is(err, errSwapped) {
			t.Errorf("stat: %v", err)
		}
		if err := folder.mkdirAll(); !errors.Is(err, errSwapped) {
			t.Errorf("mkdir: %v", err)
		}
	}
	entries, err := os.ReadDir(filepath.Dir(hook))
	if err != nil || len(entries) != 1 {
		t.Errorf("got %v, %v", entries, err)
	}
	if text, err := os.ReadFile(hook); string(text) != "mine" || err != nil {
		t.Errorf("got %q, %v", text, err)
	}
}
