package runner

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"drover/output/fault"
)

// repository makes a git repository with one commit of f and sub/g, and a file
// that is not committed.
func repository(t testing.TB) string {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed")
	}
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "sub"), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"f": "one\n", "sub/g": "two\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, args := range [][]string{
		{"init", "-q"}, {"add", "."},
		{"-c", "user.name=x", "-c", "user.email=x@example.com", "commit", "-q", "-m", "x"},
	} {
		if _, err := git(context.Background(), dir, args...); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "loose"), []byte("not committed\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

// isolated makes an isolation and removes what it needs at the end.
func isolated(t *testing.T, mode, src, dst string) *Isolation {
	t.Helper()
	i, err := Isolate(context.Background(), mode, src, dst)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = i.Close() })
	return i
}

func TestCopyIsWholeAndItsDiffSurvivesChangesOfTheSource(t *testing.T) {
	src := repository(t)
	i := isolated(t, "copy", src, filepath.Join(t.TempDir(), "copy"))
	if _, err := os.Stat(filepath.Join(i.Dir, "loose")); err != nil {
		t.Error(err)
	}
	if err := os.WriteFile(filepath.Join(i.Dir, "f"), []byte("changed\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(src, "f"), []byte("changed meanwhile\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	diff, files, err := i.Diff()
	if err != nil || len(files) != 1 || !strings.Contains(string(diff), "-one\n+changed\n") {
		t.Fatalf("%v, %v\n%s", files, err, diff)
	}
	if text, err := git(context.Background(), i.Dir, "status", "--porcelain"); err != nil || !strings.Contains(text, "M f") {
		t.Errorf("git in the copy: %q, %v", text, err)
	}
}

func TestWorktreeHoldsTheCommitAndIsTakenOutOfTheRepository(t *testing.T) {
	src := repository(t)
	t.Setenv("GIT_DIR", filepath.Join(t.TempDir(), "elsewhere"))
	dst := filepath.Join(t.TempDir(), "copy")
	i := isolated(t, "worktree", filepath.Join(src, "sub"), dst)
	if i.Dir != filepath.Join(dst, "sub") {
		t.Errorf("works in %s", i.Dir)
	}
	if _, err := os.Stat(filepath.Join(dst, "loose")); !os.IsNotExist(err) {
		t.Errorf("a file that is not committed is there: %v", err)
	}
	if err := os.WriteFile(filepath.Join(i.Dir, "g"), []byte("2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if diff, files, err := i.Diff(); err != nil || len(files) != 1 || !strings.Contains(string(diff), "-two\n+2\n") {
		t.Fatalf("%v, %v\n%s", files, err, diff)
	}
	// An agent that leads the worktree elsewhere must not lead the removal.
	if err := os.WriteFile(filepath.Join(dst, ".git"), []byte("gitdir: /nowhere\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := RemoveIsolation(context.Background(), dst); err != nil {
		t.Fatal(err)
	}
	text, err := git(context.Background(), src, "worktree", "list", "--porcelain")
	if err != nil || strings.Count(text, "worktree ") != 1 {
		t.Fatalf("%v\n%s", err, text)
	}
	if _, err := os.Stat(dst); !os.IsNotExist(err) {
		t.Errorf("the worktree is still there: %v", err)
	}
}

func TestHooksOfTheRepositoryDoNotRun(t *testing.T) {
	src := repository(t)
	ran := filepath.Join(t.TempDir(), "ran")
	hook := filepath.Join(src, ".git", "hooks", "post-checkout")
	if err := os.MkdirAll(filepath.Dir(hook), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(hook, []byte("#!/bin/sh\ntouch "+ran+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	isolated(t, "worktree", src, filepath.Join(t.TempDir(), "copy"))
	if _, err := os.Stat(ran); !os.IsNotExist(err) {
		t.Fatalf("the hook ran: %v", err)
	}
}

func TestIsolationThatCannotBeMadeSaysWhy(t *testing.T) {
	plain := t.TempDir()
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(plain, link); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(plain, "state"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, mode, src, dst string
		exit                 fault.Exit
		want                 string
	}{
		{"into itself", "copy", plain, filepath.Join(plain, "state", "copy"), fault.Environment, "lies inside it"},
		{"into itself by a link", "copy", link, filepath.Join(plain, "copy"), fault.Environment, "lies inside it"},
		{"missing", "copy", filepath.Join(plain, "none"), filepath.Join(t.TempDir(), "copy"), fault.Environment, "no such file"},
		{"no repository", "worktree", plain, filepath.Join(t.TempDir(), "copy"), fault.Environment, "not a git repository"},
		{"unknown", "clone", plain, "x", fault.Config, "not known"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := Isolate(context.Background(), c.mode, c.src, c.dst)
			f := fault.From(err)
			if f == nil || f.Exit != c.exit || f.Fix == "" || !strings.Contains(f.Error(), c.want) {
				t.Fatalf("got %+v", f)
			}
		})
	}
	i := isolated(t, "none", plain, "")
	if diff, files, err := i.Diff(); diff != nil || files != nil || err != nil || i.Dir != plain {
		t.Fatalf("%q, %v, %v, %s", diff, files, err, i.Dir)
	}
}
