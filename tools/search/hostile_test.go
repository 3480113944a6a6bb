package search

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func link(t *testing.T, target, name string) {
	t.Helper()
	if err := os.Symlink(target, name); err != nil {
		t.Fatal(err)
	}
}

func TestLinksThatLoopAreNotFollowed(t *testing.T) {
	root := folderWith(t, map[string]string{"a/f": "x", "b/f": "x"})
	link(t, "..", filepath.Join(root, "a", "up"))
	link(t, "../b", filepath.Join(root, "a", "across"))
	link(t, "../a", filepath.Join(root, "b", "across"))
	link(t, "self", filepath.Join(root, "self"))
	link(t, "a/f", filepath.Join(root, "same"))
	r := search(t, Options{Root: root, Query: "x"})
	if diff := cmp.Diff([]string{"a/f", "b/f"}, paths(r)); diff != "" || r.Skipped != (Skipped{Links: 5}) {
		t.Errorf("%+v; want - got +\n%s", r.Skipped, diff)
	}
	through := search(t, Options{Root: filepath.Join(root, "a", "up", "a"), Query: "x"})
	if diff := cmp.Diff([]string{"f"}, paths(through)); diff != "" {
		t.Errorf("want - got +\n%s", diff)
	}
}

// Skip is called between the reading of a folder and the opening of what is in
// it, so that a test can change the tree at that moment.
func TestTreeThatChangesDuringTheWalk(t *testing.T) {
	outside := folderWith(t, map[string]string{"f": "secret x", "sub/f": "secret x"})
	root := folderWith(t, map[string]string{
		"gone/f": "x", "gone-file": "x", "linked/f": "x", "linked-file": "x", "deep/linked/f": "x", "deep/z": "x", "plain": "x", "file-now": "x", "folder-now/f": "x",
	})
	replace := func(name string, with func(path string) error) error {
		path := filepath.Join(root, name)
		return errors.Join(os.RemoveAll(path), with(path))
	}
	to := func(target string) func(string) error {
		return func(path string) error { return os.Symlink(filepath.Join(outside, target), path) }
	}
	var once sync.Once
	r := search(t, Options{Root: root, Query: "x", Workers: 1, Skip: func(abs string) bool {
		if filepath.Base(abs) != "z" {
			return false
		}
		once.Do(func() {
			err := errors.Join(
				os.RemoveAll(filepath.Join(root, "gone")), os.Remove(filepath.Join(root, "gone-file")),
				replace("linked", to("")), replace("linked-file", to("f")), replace("deep/linked", to("sub")),
				replace("file-now", func(path string) error { return os.Mkdir(path, 0o755) }),
				replace("folder-now", func(path string) error { return os.WriteFile(path, []byte("x"), 0o644) }),
			)
			if err != nil {
				t.Error(err)
			}
		})
		return false
	}})
	// "deep/" comes first, so that the rest is still to be opened.
	if diff := cmp.Diff([]string{"deep/z", "plain"}, paths(r)); diff != "" {
		t.Errorf("%+v; want - got +\n%s", r.Skipped, diff)
	}
	left := r.Skipped.Links + r.Skipped.Special + r.Skipped.Unreadable
	if left != 5 {
		t.Errorf("%+v", r.Skipped)
	}
}

func TestOnlyWhatIsBeneathIsOpened(t *testing.T) {
	outside := folderWith(t, map[string]string{"f": "x"})
	root := folderWith(t, map[string]string{"sub/f": "x"})
	link(t, outside, filepath.Join(root, "out"))
	link(t, filepath.Join(outside, "f"), filepath.Join(root, "out-file"))
	opened, err := openTree(root)
	if err != nil {
		t.Fatal(err)
	}
	defer opened.close()
	for name, way := range map[string]*tree{"quick": opened, "portable": {root: opened.root}} {
		t.Run(name, func(t *testing.T) {
			if f, size, err := way.file("sub/f"); err != nil || size != 1 {
				t.Errorf("%d bytes, %v", size, err)
			} else {
				f.close()
			}
			for _, rel := range []string{"out/f", "out-file", "sub", "../x", "gone"} {
				if f, _, err := way.file(rel); err == nil {
					f.close()
					t.Errorf("%s was opened", rel)
				}
			}
			if f, err := way.folder("sub"); err != nil {
				t.Error(err)
			} else if names, err := f.Readdirnames(-1); err != nil || len(names) != 1 || f.Close() != nil {
				t.Errorf("%q, %v", names, err)
			}
			for _, rel := range []string{"out", "sub/f", "..", "gone"} {
				if f, err := way.folder(rel); err == nil {
					t.Errorf("%s was opened, %v", rel, f.Close())
				}
			}
		})
	}
}

func TestFileThatGrowsWhileItIsRead(t *testing.T) {
	root := folderWith(t, map[string]string{"f": "first x\n"})
	path := filepath.Join(root, "f")
	stop := make(chan struct{})
	var writer sync.WaitGroup
	writer.Go(func() {
		f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
		if err != nil {
			t.Error(err)
			return
		}
		defer f.Close()
		for i := 0; i < 1000; i++ {
			select {
			case <-stop:
				return
			default:
			}
			if _, err := f.Write(bytes.Repeat([]byte("more x\n"), 1000)); err != nil {
				t.Error(err)
				return
			}
		}
	})
	for range 20 {
		r := search(t, Options{Root: root, Query: "first"})
		if len(r.Lines) != 1 || r.Lines[0].Text != "first x" {
			t.Errorf("%+v", r)
		}
	}
	close(stop)
	writer.Wait()
}

func TestLargeFiles(t *testing.T) {
	half := strings.Repeat("filler\n", keptBytes/7)
	root := folderWith(t, map[string]string{
		"a": half + "needle\n", "b": half + half + half + "needle", "c": "\x00" + half + "needle", "d": strings.Repeat("n", keptBytes), "e": strings.Repeat("n", keptBytes-1) + "needle",
	})
	r := search(t, Options{Root: root, Query: "needle"})
	if diff := cmp.Diff([]string{"a", "b", "e"}, paths(r)); diff != "" || r.Skipped != (Skipped{Binary: 1}) || r.Files != 4 {
		t.Errorf("%d files, %+v; want - got +\n%s", r.Files, r.Skipped, diff)
	}
	if n := r.Lines[1].Number; n != 3*(keptBytes/7)+1 {
		t.Errorf("line %d", n)
	}
}

func TestPatternOnALongTextStopsWithTheContext(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	long := append(bytes.Repeat([]byte("x"), 4<<20), "needle"...)
	for _, query := range []string{`[m-o]eedle`, `(?s)x.*needle`} {
		m, err := newMatcher(Options{Query: query, Regex: true})
		if err != nil {
			t.Fatal(err)
		}
		if lines, _ := m.lines(ctx, bytes.Clone(long), "f"); lines != nil {
			t.Errorf("%s went on to the end", query)
		}
		if lines, _ := m.lines(t.Context(), bytes.Clone(long), "f"); len(lines) != 1 {
			t.Errorf("%s found %d lines", query, len(lines))
		}
	}
}

// Patterns that are slow in a careless matcher end, here within far more time
// than they need.
func TestHostilePatternsEnd(t *testing.T) {
	name := strings.Repeat("a", 250)
	deep := strings.Repeat("a/", 60) + name
	stars := strings.Repeat("*a", 60) + "b"
	root := folderWith(t, map[string]string{
		deep: "x", ".gitignore": strings.Repeat(stars+"\n"+strings.Repeat("**/a/", 30)+"b\n/"+strings.Repeat("*/", 50)+"b\n", 50),
		".git/HEAD": "x", ".git/config": strings.Repeat("[include]\npath=config\n", 200),
	})
	start := time.Now()
	for _, glob := range []string{stars, strings.Repeat("**/a*/", 30) + "b", "{" + strings.Repeat("a,", 63) + "b}", deep} {
		r := search(t, Options{Root: root, Query: "x", Glob: glob})
		if want := glob == deep; (r.Matches == 1) != want {
			t.Errorf("%s: %d matches", glob, r.Matches)
		}
	}
	if _, err := Search(t.Context(), Options{Root: root, Query: "x", Glob: strings.Repeat("{,}", 40)}); !errors.Is(err, ErrGlob) {
		t.Errorf("err = %v", err)
	}
	if took := time.Since(start); took > time.Minute {
		t.Errorf("took %v", took)
	}
}

func TestManyFilesInOneFolder(t *testing.T) {
	files := map[string]string{}
	for i := range 3000 {
		files[fmt.Sprintf("f%04d", i)] = "x\n"
	}
	root := folderWith(t, files)
	if r := search(t, Options{Root: root, Query: "x"}); r.Matches != 3000 || r.Files != 3000 {
		t.Errorf("%d matches in %d files", r.Matches, r.Files)
	}
	for _, workers := range []int{1, 2, 16} {
		r := search(t, Options{Root: root, Query: "x", MaxResults: 10, Workers: workers})
		if r.Lines[9].Path != "f0009" || len(r.Lines) != 10 || !r.Capped || r.Files != 11 {
			t.Errorf("%d workers: %d files, %+v", workers, r.Files, r.Lines)
		}
	}
}

// A path may be longer than the system takes in one piece.
func TestPathThatIsTooLong(t *testing.T) {
	dir := folderWith(t, map[string]string{"f": "x"})
	at, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	name := strings.Repeat("d", 250)
	for range 20 {
		if err := at.Mkdir(name, 0o755); err != nil {
			t.Skip("the file system refuses deep folders: ", err)
		}
		next, err := at.OpenRoot(name)
		if err := errors.Join(err, at.Close()); err != nil {
			t.Fatal(err)
		}
		at = next
	}
	if err := at.Close(); err != nil {
		t.Fatal(err)
	}
	r := search(t, Options{Root: dir, Query: "x"})
	if r.Matches != 1 || r.Skipped != (Skipped{Unreadable: 1}) {
		t.Errorf("%+v", r)
	}
}

func TestUnreadablePathsAreCounted(t *testing.T) {
	root := folderWith(t, map[string]string{"closed/f": "x", "secret": "x", "plain": "x"})
	for _, name := range []string{"closed", "secret"} {
		path := filepath.Join(root, name)
		if err := os.Chmod(path, 0); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = os.Chmod(path, 0o700) }) // else the folder cannot be removed
	}
	if _, err := os.ReadFile(filepath.Join(root, "secret")); err == nil {
		t.Skip("this user may read everything")
	}
	r := search(t, Options{Root: root, Query: "x"})
	if diff := cmp.Diff([]string{"plain"}, paths(r)); diff != "" || r.Skipped != (Skipped{Unreadable: 2}) {
		t.Errorf("%+v; want - got +\n%s", r.Skipped, diff)
	}
	if _, err := Search(t.Context(), Options{Root: filepath.Join(root, "closed"), Query: "x"}); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("err = %v", err)
	}
}
