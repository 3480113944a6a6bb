package tree

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"drover/output/event"
)

// fill writes files given as path and content in turn. A content that begins
// with "->" is a link, one that begins with "x!" an executable.
func fill(t testing.TB, dir string, files ...string) {
	t.Helper()
	for i := 0; i < len(files); i += 2 {
		path := filepath.Join(dir, files[i])
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if target, ok := strings.CutPrefix(files[i+1], "->"); ok {
			if err := os.Symlink(target, path); err != nil {
				t.Fatal(err)
			}
			continue
		}
		mode := fs.FileMode(0o644)
		if strings.HasPrefix(files[i+1], "x!") {
			mode = 0o755
		}
		if err := os.WriteFile(path, []byte(files[i+1]), mode); err != nil {
			t.Fatal(err)
		}
	}
}

// list describes a tree: path to kind, executable bit and content.
func list(t testing.TB, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			if d.Name() == ".git" {
				return filepath.SkipDir
			}
			return err
		}
		rel, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		if info.Mode()&fs.ModeSymlink != 0 {
			target, err := os.Readlink(path)
			out[rel] = "->" + target
			return err
		}
		data, err := os.ReadFile(path)
		out[rel] = fmt.Sprintf("%v %q", info.Mode()&0o100 != 0, data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func copied(t testing.TB, src string) (dst string) {
	t.Helper()
	dst = filepath.Join(t.TempDir(), "copy")
	if _, err := Copy(context.Background(), src, dst); err != nil {
		t.Fatal(err)
	}
	return dst
}

func taken(t testing.TB, dir string) *Snapshot {
	t.Helper()
	s, err := Take(context.Background(), dir, dir+".base")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func diffOf(t testing.TB, s *Snapshot) ([]byte, []event.ChangedFile) {
	t.Helper()
	patch, changed, err := s.Diff(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return patch, changed
}

// apply runs git apply in dir.
func apply(t testing.TB, dir string, patch []byte, args ...string) {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed")
	}
	cmd := exec.Command("git", append([]string{"apply", "--whitespace=nowarn"}, args...)...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CEILING_DIRECTORIES="+filepath.Dir(dir), "GIT_CONFIG_GLOBAL="+os.DevNull)
	cmd.Stdin = bytes.NewReader(patch)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("git apply: %v\n%s\n%s", err, out, patch)
	}
}

func TestCopyKeepsModesTimesAndLinks(t *testing.T) {
	src := t.TempDir()
	outside := filepath.Join(t.TempDir(), "outside")
	fill(t, src, "a/f", "text", "a/run", "x!echo", "in", "->a/f", "out", "->"+outside, "gone", "->nowhere", ".git/HEAD", "ref", "empty", "")
	old := time.Date(2001, 2, 3, 4, 5, 6, 789, time.UTC)
	for _, p := range []string{"a/f", "a"} {
		if err := os.Chtimes(filepath.Join(src, p), old, old); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(filepath.Join(src, "a"), 0o555); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Join(src, "empty"), 0o400); err != nil {
		t.Fatal(err)
	}
	dst := copied(t, src)
	if d := cmp.Diff(list(t, src), list(t, dst)); d != "" {
		t.Errorf("(-source +copy):\n%s", d)
	}
	for _, p := range []string{".", "a", "a/f", "a/run", "empty", ".git", ".git/HEAD"} {
		want, err := os.Lstat(filepath.Join(src, p))
		if err != nil {
			t.Fatal(err)
		}
		got, err := os.Lstat(filepath.Join(dst, p))
		if err != nil || got.Mode() != want.Mode() || !got.ModTime().Equal(want.ModTime()) {
			t.Errorf("%s: got %v %v, want %v %v (%v)", p, got.Mode(), got.ModTime(), want.Mode(), want.ModTime(), err)
		}
	}
	if err := os.WriteFile(filepath.Join(dst, "a/f"), []byte("changed"), 0o644); err != nil {
		t.Fatal(err)
	}
	if got := list(t, src)["a/f"]; got != `false "text"` {
		t.Errorf("a change of the copy reached the original: %s", got)
	}
	if err := Remove(dst); err != nil {
		t.Error(err)
	}
	if err := Remove(dst); err != nil {
		t.Errorf("removing nothing: %v", err)
	}
}

func TestGitFileThatLeadsOutIsNotCopied(t *testing.T) {
	src := t.TempDir()
	fill(t, src, ".git", "gitdir: /elsewhere/.git/worktrees/x\n", "sub/.git", "gitdir: ../modules/sub\n", "modules/sub/HEAD", "x",
		"link/.git", "->../../outside", "up/.git", "gitdir: ../../up\n")
	dst := filepath.Join(t.TempDir(), "copy")
	skipped, err := Copy(context.Background(), src, dst)
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(skipped)
	if d := cmp.Diff([]string{".git", "link/.git", "up/.git"}, skipped); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if _, err := os.Lstat(filepath.Join(dst, "sub/.git")); err != nil {
		t.Error(err)
	}
}

func TestCopyThatCannotBeMadeSaysWhy(t *testing.T) {
	src := t.TempDir()
	fill(t, src, "f", "x")
	if _, err := Copy(context.Background(), filepath.Join(src, "none"), filepath.Join(t.TempDir(), "c")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("missing source: %v", err)
	}
	if _, err := Copy(context.Background(), src, src); !errors.Is(err, fs.ErrExist) {
		t.Errorf("existing copy: %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := Copy(ctx, src, filepath.Join(t.TempDir(), "c")); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

func TestDiffAppliedToTheOriginalGivesTheChangedTree(t *testing.T) {
	big := strings.Repeat("line of text\n", 3000)
	src := t.TempDir()
	fill(t, src, "keep", "same\n", "edit", "one\ntwo\nthree\n", "crlf", "a\r\nb\r\n", "noeol", "a\nb", "eol", "a\nb\n", "gone", "bye\n", "gone-empty", "",
		"script", "#!/bin/sh\n", "unrun", "x!\n", "bin", "a\x00b", "gone.bin", "\x00", "to-link", "text\n", "to-file", "->keep", "move-link", "->keep",
		"dir/f", "in dir\n", "dir/g", "too\n", "file", "to be a folder\n", "big", big, "latin", "\xe4\n", "blanked", "x\n",
		"with space", "a\n", "tab\tname", "a\n", "quo\"te\\", "a\n", "ümläut", "a\n", "a/b/c/deep", "deep\n", ".gitignore", "ignored\n")
	work := copied(t, src)
	s := taken(t, work)

	edit := func(path, text string) { fill(t, work, path, text) }
	remove := func(path string) {
		if err := os.RemoveAll(filepath.Join(work, path)); err != nil {
			t.Fatal(err)
		}
	}
	for _, p := range []string{"gone", "gone-empty", "gone.bin", "to-link", "to-file", "move-link", "dir", "file"} {
		remove(p)
	}
	edit("edit", "one\n2\nthree\nfour\n")
	edit("crlf", "a\r\nB\r\n")
	edit("noeol", "a\nb\n")
	edit("eol", "a\nb")
	edit("bin", "a\x00c"+big)
	edit("to-link", "->/abs/olute")
	edit("to-file", "now text")
	edit("move-link", "->big")
	edit("dir", "was a folder\n")
	edit("file/inside", "was a file\n")
	edit("big", strings.Replace(big, "line", "LINE", 1)+"end\n")
	edit("latin", "\xf6\n")
	edit("blanked", "")
	edit("with space", "b\n")
	edit("tab\tname", "b\n")
	edit("quo\"te\\", "b\n")
	edit("ümläut", "b\n")
	edit("new/empty", "")
	edit("new/ü \"x\"", "x!new\n")
	edit("new/bin", strings.Repeat("\x00\xff12345", 500))
	edit("new/link", "->../keep")
	edit("ignored", "by git, but not by the diff\n")
	edit(".git/HEAD", "not shown")
	edit("sub/.git", "not shown")
	for p, mode := range map[string]fs.FileMode{"script": 0o755, "unrun": 0o600} {
		if err := os.Chmod(filepath.Join(work, p), mode); err != nil {
			t.Fatal(err)
		}
	}

	patch, changed := diffOf(t, s)
	fresh := copied(t, src)
	apply(t, fresh, patch)
	want := list(t, work)
	delete(want, "sub/.git")
	if d := cmp.Diff(want, list(t, fresh)); d != "" {
		t.Errorf("(-changed tree +patched tree):\n%s", d)
	}
	apply(t, fresh, patch, "-R")
	if d := cmp.Diff(list(t, src), list(t, fresh)); d != "" {
		t.Errorf("backwards (-source +patched tree):\n%s", d)
	}
	kinds := map[string]event.FileKind{}
	for _, c := range changed {
		kinds[c.Path] = c.Kind
	}
	for p, kind := range map[string]event.FileKind{"edit": "modify", "gone": "delete", "new/empty": "add", "script": "modify", "to-link": "modify", "dir": "add", "dir/f": "delete", "keep": "", ".git/HEAD": ""} {
		if kinds[p] != kind {
			t.Errorf("%s is %q, want %q", p, kinds[p], kind)
		}
	}
	if len(changed) != 30 {
		t.Errorf("%d files changed: %v", len(changed), changed)
	}
}

func TestUnchangedTreeHasNoDiff(t *testing.T) {
	src := t.TempDir()
	fill(t, src, "a", "x", "b", "->a", "c", "\x00")
	s := taken(t, src)
	now := time.Now()
	if err := os.Chtimes(filepath.Join(src, "a"), now, now); err != nil {
		t.Fatal(err)
	}
	if patch, changed := diffOf(t, s); len(patch) != 0 || changed != nil {
		t.Fatalf("%q, %v", patch, changed)
	}
	if _, err := os.Lstat(src + ".base"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the snapshot left a file: %v", err)
	}
}

func TestEditRightAfterTheSnapshotWithTheSameSizeAndTimeIsSeen(t *testing.T) {
	src := t.TempDir()
	fill(t, src, "a", "old")
	path := filepath.Join(src, "a")
	info, err := os.Lstat(path)
	if err != nil {
		t.Fatal(err)
	}
	s := taken(t, src)
	if err := os.WriteFile(path, []byte("new"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(path, info.ModTime(), info.ModTime()); err != nil {
		t.Fatal(err)
	}
	if _, changed := diffOf(t, s); len(changed) != 1 {
		t.Fatalf("changed: %v", changed)
	}
}

func TestLargeFileIsNamedAndTheRestStillApplies(t *testing.T) {
	src := t.TempDir()
	fill(t, src, "a", "a\n", "m-large", strings.Repeat("x", maxShown+1), "n-large", strings.Repeat("x", maxShown+1), "z", "z\n")
	work := copied(t, src)
	s := taken(t, work)
	fill(t, work, "a", "b\n", "m-large", strings.Repeat("y", maxShown+1), "n-large", strings.Repeat("x", maxShown+1), "new", strings.Repeat("y", maxShown+1), "z", "Z\n")
	patch, changed := diffOf(t, s)
	want := []event.ChangedFile{{Path: "a", Kind: "modify"}, {Path: "m-large", Kind: "modify"}, {Path: "new", Kind: "add"}, {Path: "z", Kind: "modify"}}
	if d := cmp.Diff(want, changed); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	for _, line := range []string{"drover: m-large is left out of this diff: it was too large to show\n", "drover: new is left out of this diff: it is too large to show\n"} {
		if !bytes.Contains(patch, []byte(line)) {
			t.Errorf("%q is missing", line)
		}
	}
	fresh := copied(t, src)
	apply(t, fresh, patch)
	if got := list(t, fresh); got["a"] != `false "b\n"` || got["z"] != `false "Z\n"` {
		t.Errorf("patched: a %s, z %s", got["a"], got["z"])
	}
}

// TestRandomChangesApply makes many small trees and changes, from a fixed seed.
func TestRandomChangesApply(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	names := []string{"a", "b", "d/a", "d/b", "d/e/f", "x y", "ß"}
	contents := []string{"", "a", "a\n", "a\nb\nc\n", "b\nc\nd", "x!run\n", "\x00\x01", "->a", "->d/none", strings.Repeat("a\nb\n", 40), "\\ No newline at end of file\n", "--- a\n+++ b\n@@ -1 +1 @@\n"}
	change := func(dir string) {
		for _, name := range names {
			if rnd.IntN(2) == 0 {
				continue
			}
			if err := os.RemoveAll(filepath.Join(dir, name)); err != nil {
				t.Fatal(err)
			}
			if rnd.IntN(4) > 0 {
				fill(t, dir, name, contents[rnd.IntN(len(contents))])
			}
		}
	}
	for n := range 40 {
		src := t.TempDir()
		change(src)
		work := copied(t, src)
		s := taken(t, work)
		change(work)
		patch, changed := diffOf(t, s)
		if len(changed) == 0 {
			continue
		}
		apply(t, src, patch)
		if d := cmp.Diff(list(t, work), list(t, src)); d != "" {
			t.Fatalf("tree %d (-changed +patched):\n%s\n%s", n, d, patch)
		}
	}
}

func TestSnapshotOfOneCopyServesForAnother(t *testing.T) {
	src := t.TempDir()
	fill(t, src, "a", "one\n", "d/run", "x!", "link", "->a", "large", strings.Repeat("x", maxShown+1), ".git/HEAD", "x")
	first, second := copied(t, src), copied(t, src)
	s := taken(t, first)
	at, err := s.At(context.Background(), second)
	if err != nil || at == nil {
		t.Fatal(at, err)
	}
	if patch, changed := diffOf(t, at); changed != nil {
		t.Errorf("an unchanged copy: %v\n%s", changed, patch)
	}
	fill(t, first, "a", "not two\n")
	fill(t, second, "a", "two\n", "large", strings.Repeat("y", maxShown+1), "new", "x")
	patch, changed := diffOf(t, at)
	if len(changed) != 3 || !bytes.Contains(patch, []byte("-one\n+two\n")) {
		t.Errorf("%v\n%s", changed, patch)
	}
	if err := at.Close(); err != nil {
		t.Error(err)
	}
	if patch, _ := diffOf(t, s); !bytes.Contains(patch, []byte("-one\n+not two\n")) {
		t.Errorf("after the other was closed:\n%s", patch)
	}
}

func TestSnapshotDoesNotServeForAnotherTree(t *testing.T) {
	src := t.TempDir()
	fill(t, src, "a", "one\n", "link", "->a", "run", "x!")
	s := taken(t, src)
	for name, change := range map[string]func(dir string) error{
		"more":   func(dir string) error { return os.WriteFile(filepath.Join(dir, "b"), nil, 0o600) },
		"fewer":  func(dir string) error { return os.Remove(filepath.Join(dir, "a")) },
		"longer": func(dir string) error { return os.WriteFile(filepath.Join(dir, "a"), []byte("three\n"), 0o600) },
		"mode":   func(dir string) error { return os.Chmod(filepath.Join(dir, "run"), 0o600) },
		"link": func(dir string) error {
			return errors.Join(os.Remove(filepath.Join(dir, "link")), os.Symlink("b", filepath.Join(dir, "link")))
		},
		"kind": func(dir string) error {
			return errors.Join(os.Remove(filepath.Join(dir, "a")), os.Symlink("run", filepath.Join(dir, "a")))
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := copied(t, src)
			if err := change(dir); err != nil {
				t.Fatal(err)
			}
			if at, err := s.At(context.Background(), dir); at != nil || err != nil {
				t.Errorf("%v, %v", at, err)
			}
		})
	}
}

func BenchmarkCopyAndTake(b *testing.B) {
	src := b.TempDir()
	for n := range 2000 {
		fill(b, src, fmt.Sprintf("d%d/f%d", n%50, n), strings.Repeat("some line of text\n", 400))
	}
	base := b.TempDir()
	n := 0
	for b.Loop() {
		n++
		dst := filepath.Join(base, fmt.Sprint(n))
		if _, err := Copy(context.Background(), src, dst); err != nil {
			b.Fatal(err)
		}
		s, err := Take(context.Background(), dst, dst+".base")
		if err != nil {
			b.Fatal(err)
		}
		if _, changed, err := s.Diff(context.Background()); err != nil || len(changed) > 0 {
			b.Fatal(changed, err)
		}
		_ = s.Close()
	}
}
