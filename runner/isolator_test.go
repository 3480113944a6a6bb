package runner

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sync/errgroup"

	"drover/output/fault"
)

// put writes a file with the folders above it.
func put(t testing.TB, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// commitAll commits everything in dir.
func commitAll(t testing.TB, dir string) {
	t.Helper()
	for _, args := range [][]string{{"add", "."}, {"-c", "user.name=x", "-c", "user.email=x@example.com", "commit", "-q", "-m", "x"}} {
		if _, err := git(context.Background(), dir, args...); err != nil {
			t.Fatal(err)
		}
	}
}

// worktreesOf are the paths that git itself knows of.
func worktreesOf(t testing.TB, dir string) []string {
	t.Helper()
	text, err := git(context.Background(), dir, "worktree", "list", "--porcelain")
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for line := range strings.SplitSeq(text, "\n") {
		if path, ok := strings.CutPrefix(line, "worktree "); ok {
			out = append(out, path)
		}
	}
	return out
}

func names(t testing.TB, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	var out []string
	for _, e := range entries {
		out = append(out, e.Name())
	}
	return out
}

func isolator(t testing.TB, mode, src, dir string) *Isolator {
	t.Helper()
	m, err := NewIsolator(context.Background(), mode, src, dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.Close() })
	return m
}

func TestManyPlacesAtOnceBeginAlikeAndLeaveNothing(t *testing.T) {
	for _, mode := range []string{"copy", "worktree"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			src := repository(t)
			dir := filepath.Join(t.TempDir(), "places")
			m := isolator(t, mode, filepath.Join(src, "sub"), dir)
			put(t, filepath.Join(src, "sub", "g"), "changed meanwhile\n")
			commitAll(t, src)
			group, ctx := errgroup.WithContext(t.Context())
			group.SetLimit(16)
			for n := range 64 {
				group.Go(func() error { return editAndRemove(ctx, m, n) })
			}
			if err := group.Wait(); err != nil {
				t.Fatal(err)
			}
			if err := m.Close(); err != nil {
				t.Error(err)
			}
			if d := cmp.Diff([]string(nil), names(t, dir)); d != "" {
				t.Errorf("left behind (-want +got):\n%s", d)
			}
			if d := cmp.Diff([]string(nil), names(t, filepath.Join(src, ".git", "worktrees"))); d != "" {
				t.Errorf("left in the repository (-want +got):\n%s", d)
			}
			if got, err := os.ReadFile(filepath.Join(src, "sub", "g")); err != nil || string(got) != "changed meanwhile\n" {
				t.Errorf("a place changed the source: %q, %v", got, err)
			}
		})
	}
}

// editAndRemove does what a row does: it changes its place and leaves a diff.
func editAndRemove(ctx context.Context, m *Isolator, n int) error {
	i, err := m.Isolate(ctx, fmt.Sprintf("row-%d", n))
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(i.Dir, "g"), fmt.Appendf(nil, "row %d\n", n), 0o600); err != nil {
		return err
	}
	diff, files, err := i.Diff()
	if err != nil {
		return err
	}
	if want := fmt.Sprintf("-two\n+row %d\n", n); len(files) != 1 || !strings.Contains(string(diff), want) {
		return fmt.Errorf("row %d: files %v, diff:\n%s", n, files, diff)
	}
	return i.Remove(ctx)
}

func TestWhatAKilledProcessLeavesIsCleanedAndNothingElse(t *testing.T) {
	src := repository(t)
	top := t.TempDir()
	dir := filepath.Join(top, "places")
	// The places are not closed: the process is dead.
	for _, mode := range []string{"copy", "worktree"} {
		m, err := NewIsolator(context.Background(), mode, src, dir)
		if err != nil {
			t.Fatal(err)
		}
		for n := range 3 {
			i, err := m.Isolate(context.Background(), fmt.Sprintf("%s-%d", mode, n))
			if err != nil {
				t.Fatal(err)
			}
			put(t, filepath.Join(i.Dir, "deep", "er", "f"), "x")
			if err := os.Chmod(filepath.Join(i.Dir, "deep"), 0o500); err != nil {
				t.Fatal(err)
			}
		}
	}
	// Git was killed in between, the record is half-written, the folder of a
	// worktree is gone with its record, a snapshot has its name still.
	if err := writeRecord(filepath.Join(dir, "half"), isolationRecord{Mode: "worktree", Source: src}); err != nil {
		t.Fatal(err)
	}
	admin := filepath.Join(src, ".git", "worktrees")
	put(t, filepath.Join(admin, "half1", "locked"), "initializing")
	put(t, filepath.Join(dir, "later.json.new"), `{"mo`)
	put(t, filepath.Join(dir, "copy-1.base"), "contents")
	for _, path := range []string{"worktree-2.json", "worktree-2/deep/er"} {
		if err := os.Chmod(filepath.Join(dir, filepath.Dir(path)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.RemoveAll(filepath.Join(dir, path)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.RemoveAll(filepath.Join(dir, "worktree-2")); err != nil {
		t.Fatal(err)
	}
	// All of this is somebody else's.
	put(t, filepath.Join(dir, "job.json"), `{"mode": "copy"}`)
	put(t, filepath.Join(dir, "list.json"), `[1]`)
	put(t, filepath.Join(dir, "job", "f"), "x")
	put(t, filepath.Join(dir, "notes.base"), "x")
	for _, path := range []string{"mine", "unmounted", "places/kept"} {
		if _, err := git(context.Background(), src, "worktree", "add", "--detach", "--quiet", filepath.Join(top, path)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.RemoveAll(filepath.Join(top, "unmounted")); err != nil {
		t.Fatal(err)
	}

	if err := CleanIsolated(context.Background(), src, dir); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]string{"job", "job.json", "kept", "list.json", "notes.base"}, names(t, dir)); d != "" {
		t.Errorf("places (-want +got):\n%s", d)
	}
	if d := cmp.Diff([]string{"kept", "mine", "unmounted"}, names(t, admin)); d != "" {
		t.Errorf("git's worktrees (-want +got):\n%s", d)
	}
	if err := CleanIsolated(context.Background(), src, dir); err != nil {
		t.Errorf("cleaning what is clean: %v", err)
	}
	if err := CleanIsolated(context.Background(), filepath.Join(top, "none"), filepath.Join(top, "none")); err != nil {
		t.Errorf("cleaning what is not there: %v", err)
	}
}

func TestNoProgramOfTheRepositoryRuns(t *testing.T) {
	src := repository(t)
	ran := filepath.Join(t.TempDir(), "ran")
	program := filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(program, []byte("#!/bin/sh\necho \"$0 $*\" >> "+ran+"\ncat\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	put(t, filepath.Join(src, ".gitattributes"), "f filter=smudged\ng filter=long\n")
	commitAll(t, src)
	hooks := filepath.Join(t.TempDir(), "hooks")
	if err := os.Mkdir(hooks, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, hook := range []string{"post-checkout", "post-index-change", "reference-transaction", "pre-auto-gc"} {
		if err := os.Symlink(program, filepath.Join(hooks, hook)); err != nil {
			t.Fatal(err)
		}
	}
	// What only a worktree includes is not in the repository's own config.
	included := filepath.Join(t.TempDir(), "included")
	put(t, included, fmt.Sprintf("[filter \"smudged\"]\n\tsmudge = %s smudge\n\tclean = %s clean\n\trequired = true\n", program, program))
	config := fmt.Sprintf("[core]\n\thooksPath = %s\n\tfsmonitor = %s\n[filter \"long\"]\n\tprocess = %s process\n\trequired = true\n"+
		"[includeIf \"gitdir:**/worktrees/**\"]\n\tpath = %s\n[hook \"x\"]\n\tcommand = %s\n\tevent = post-index-change\n"+
		"[alias]\n\tworktree = !%s\n\treset = !%s\n", hooks, program, program, included, program, program, program)
	f, err := os.OpenFile(filepath.Join(src, ".git", "config"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteString(config); err != nil {
		t.Fatal(err)
	}
	m := isolator(t, "worktree", src, filepath.Join(t.TempDir(), "places"))
	i, err := m.Isolate(t.Context(), "row")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(i.Dir, "sub", "g")); err != nil {
		t.Error(err)
	}
	want := []string{"contents made by a filter (long)", "contents made by a filter (smudged)"}
	if d := cmp.Diff(want, i.Skipped); d != "" {
		t.Errorf("skipped (-want +got):\n%s", d)
	}
	if err := i.Remove(t.Context()); err != nil {
		t.Error(err)
	}
	if text, err := os.ReadFile(ran); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("programs of the repository ran: %v\n%s", err, text)
	}
	// Git itself would have run some; that it fails over the answers is well.
	_, _ = git(t.Context(), src, "-c", "core.fsmonitor="+program, "-c", "core.hooksPath="+hooks, "worktree", "add", "--detach", filepath.Join(t.TempDir(), "w"))
	text, err := os.ReadFile(ran)
	for _, want := range []string{"smudge", "reference-transaction"} {
		if !strings.Contains(string(text), want) {
			t.Errorf("%s does not run without protection either: %v\n%s", want, err, text)
		}
	}
	if _, err := f.WriteString("[filter \"a=b\"]\n\tsmudge = " + program + "\n"); err != nil {
		t.Fatal(err)
	}
	if _, err := NewIsolator(t.Context(), "worktree", src, t.TempDir()); fault.From(err) == nil || !strings.Contains(err.Error(), "equals sign") {
		t.Errorf("a filter that cannot be turned off: %v", err)
	}
}

func TestSubmodulesAndLargeFilesAreNamed(t *testing.T) {
	src := repository(t)
	put(t, filepath.Join(src, ".gitmodules"), "[submodule \"a b\"]\n\tpath = libs/a b\n\turl = ../a\n")
	put(t, filepath.Join(src, ".gitattributes"), "# x filter=no\n*.bin filter=lfs diff=lfs -text\n*.iso\tfilter=lfs\n")
	commitAll(t, src)
	m := isolator(t, "worktree", src, t.TempDir())
	for _, name := range []string{"one", "two"} {
		i, err := m.Isolate(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff([]string{"libs/a b (submodule)", "contents made by a filter (lfs, Git LFS)"}, i.Skipped); d != "" {
			t.Errorf("%s (-want +got):\n%s", name, d)
		}
	}
}

func TestPlaceThatAnAgentHasSpoiledIsRemoved(t *testing.T) {
	for _, mode := range []string{"copy", "worktree"} {
		t.Run(mode, func(t *testing.T) {
			src := repository(t)
			dir := t.TempDir()
			other := filepath.Join(t.TempDir(), "other")
			put(t, filepath.Join(other, "f"), "x")
			m := isolator(t, mode, src, dir)
			i, err := m.Isolate(t.Context(), "row")
			if err != nil {
				t.Fatal(err)
			}
			if err := os.RemoveAll(filepath.Join(i.Dir, ".git")); err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink(other, filepath.Join(i.Dir, ".git")); err != nil {
				t.Fatal(err)
			}
			if err := os.Chmod(filepath.Join(i.Dir, "sub"), 0); err != nil {
				t.Fatal(err)
			}
			if err := i.Remove(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := i.Remove(t.Context()); err != nil {
				t.Errorf("removing it again: %v", err)
			}
			if _, err := os.Stat(filepath.Join(other, "f")); err != nil {
				t.Errorf("a link was followed: %v", err)
			}
			if got := worktreesOf(t, src); len(got) != 1 {
				t.Errorf("git still knows %v", got)
			}
		})
	}
}

func TestPlacesThatCannotBeMadeSayWhyAndLeaveNothing(t *testing.T) {
	src := repository(t)
	dir := t.TempDir()
	m := isolator(t, "worktree", src, dir)
	put(t, filepath.Join(dir, "taken"), "x")
	for _, name := range []string{"", ".", "..", ".source", "row.json", "row.BASE", "row.json.new", "a/b", `a\b`, "taken"} {
		if _, err := m.Isolate(t.Context(), name); fault.From(err) == nil || fault.From(err).Exit != fault.Environment {
			t.Errorf("%q: %v", name, err)
		}
	}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := m.Isolate(cancelled, "late"); err == nil {
		t.Error("a place was made although the context had ended")
	}
	if d := cmp.Diff([]string{"taken"}, names(t, dir)); d != "" {
		t.Errorf("left behind (-want +got):\n%s", d)
	}
	if got := worktreesOf(t, src); len(got) != 1 {
		t.Errorf("git knows %v", got)
	}
	empty := t.TempDir()
	if _, err := git(t.Context(), empty, "init", "-q"); err != nil {
		t.Fatal(err)
	}
	if _, err := NewIsolator(t.Context(), "worktree", empty, t.TempDir()); err == nil || !strings.Contains(err.Error(), "no commit") {
		t.Errorf("a repository without a commit: %v", err)
	}
	if _, err := NewIsolator(t.Context(), "clone", empty, t.TempDir()); fault.From(err) == nil || fault.From(err).Exit != fault.Config {
		t.Errorf("an unknown mode: %v", err)
	}
	i, err := isolator(t, "none", src, filepath.Join(dir, "none")).Isolate(t.Context(), "row")
	if err != nil || i.Dir != src || i.Remove(t.Context()) != nil {
		t.Errorf("no isolation: %+v, %v", i, err)
	}
	if _, err := os.Stat(filepath.Join(src, "f")); err != nil {
		t.Errorf("the source was removed: %v", err)
	}
}

// BenchmarkPlaces makes and removes 500 places of a repository with 300 files
// of 6 KB in 30 folders, 16 at a time.
func BenchmarkPlaces(b *testing.B) {
	src := b.TempDir()
	if _, err := git(context.Background(), src, "init", "-q"); err != nil {
		b.Skip(err)
	}
	for n := range 300 {
		put(b, filepath.Join(src, fmt.Sprint(n%30), "g"+fmt.Sprint(n)), strings.Repeat("some line of text\n", 340))
	}
	put(b, filepath.Join(src, "g"), "two\n")
	commitAll(b, src)
	const rows = 500
	run := func(b *testing.B, one func(ctx context.Context, n int) error) {
		group, ctx := errgroup.WithContext(context.Background())
		group.SetLimit(16)
		for n := range rows {
			group.Go(func() error { return one(ctx, n) })
		}
		if err := group.Wait(); err != nil {
			b.Fatal(err)
		}
	}
	for _, mode := range []string{"copy", "worktree"} {
		b.Run(mode+"/shared", func(b *testing.B) {
			for b.Loop() {
				m, err := NewIsolator(context.Background(), mode, src, filepath.Join(b.TempDir(), "places"))
				if err != nil {
					b.Fatal(err)
				}
				run(b, func(ctx context.Context, n int) error { return editAndRemove(ctx, m, n) })
				_ = m.Close()
			}
			b.ReportMetric(float64(b.Elapsed().Milliseconds())/float64(b.N*rows), "ms/row")
		})
		b.Run(mode+"/single", func(b *testing.B) {
			for b.Loop() {
				dir := b.TempDir()
				run(b, func(ctx context.Context, n int) error {
					i, err := Isolate(ctx, mode, src, filepath.Join(dir, fmt.Sprint(n)))
					if err != nil {
						return err
					}
					_, _, err = i.Diff()
					return errors.Join(err, i.Remove(ctx))
				})
			}
			b.ReportMetric(float64(b.Elapsed().Milliseconds())/float64(b.N*rows), "ms/row")
		})
	}
}
