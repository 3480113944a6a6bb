package runner

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"drover/output/fault"
	"drover/runner/internal/tree"
	"drover/runner/textfile"
)

// Whatever a repository says in its config, its attributes or its hooks, no
// program of it runs here: an agent may have written all of them before. What
// git would change in a file by a filter stays as it is committed.

const (
	// gitWait bounds how long git may keep its output open after its end.
	gitWait = 5 * time.Second
	// gitTries is how often a worktree is tried: two gits that come and go in
	// one repository can take the folder for worktrees away from each other.
	gitTries = 4
	// gitPause is the time before the second try; it doubles.
	gitPause = 25 * time.Millisecond
	// maxAttributes bounds a .gitattributes file that is looked at, in bytes.
	maxAttributes = 1 << 20
)

// gitRepo is a git repository at one commit.
type gitRepo struct {
	// top is the folder of its files, prefix the way from there to the folder
	// that was asked for, common the folder in which git keeps everything.
	top, prefix, common string
	commit              string
	// off are the flags of programsOff for top.
	off []string

	// once guards missing, which is the same for all worktrees of a commit.
	once    sync.Once
	missing []string
}

// openRepository finds the repository that src lies in.
func openRepository(ctx context.Context, src string) (*gitRepo, error) {
	r := &gitRepo{}
	for _, q := range []struct {
		to   *string
		args []string
	}{
		{&r.top, []string{"rev-parse", "--show-toplevel"}},
		{&r.prefix, []string{"rev-parse", "--show-prefix"}},
		{&r.common, []string{"rev-parse", "--git-common-dir"}},
		{&r.commit, []string{"rev-parse", "--verify", "--quiet", "HEAD^{commit}"}},
	} {
		out, err := git(ctx, src, q.args...)
		if err != nil {
			why := err.Error()
			if q.to == &r.commit {
				why = "it has no commit yet"
			}
			return nil, &fault.Error{Code: "isolate", What: fmt.Sprintf("a worktree of %q cannot be made", src), Why: why,
				Fix: "use isolate: copy, or run in a git repository with a commit and git installed", Exit: fault.Environment, Err: err}
		}
		*q.to = out
	}
	if !filepath.IsAbs(r.common) {
		r.common = filepath.Join(src, r.common)
	}
	var err error
	if r.off, err = programsOff(ctx, r.top); err != nil {
		return nil, err
	}
	return r, nil
}

// addWorktree makes a worktree at dst and returns the folder in which git keeps
// its state. Any number may be made at the same time. What an attempt leaves
// behind goes with the place.
func (r *gitRepo) addWorktree(ctx context.Context, dst string) (admin string, err error) {
	pause := gitPause
	for try := 1; ; try++ {
		// Without a checkout no hook can run, and the filters can be asked for in
		// the worktree itself: its config may include what that of the repository
		// does not.
		_, err = git(ctx, r.top, append(slices.Clone(r.off), "worktree", "add", "--detach", "--no-checkout", "--quiet", dst, r.commit)...)
		if err == nil || try == gitTries || ctx.Err() != nil {
			break
		}
		if err := errors.Join(tree.Remove(dst), dropAdmin(r.common, dst)); err != nil {
			return "", err
		}
		if err := wait(ctx, pause); err != nil {
			return "", err
		}
		pause *= 2
	}
	if err != nil {
		return "", err
	}
	if admin, err = adminOf(dst); err != nil {
		return "", err
	}
	off, err := programsOff(ctx, dst)
	if err != nil {
		return admin, err
	}
	_, err = git(ctx, dst, append(off, "reset", "--hard", "--quiet", "--no-recurse-submodules")...)
	return admin, err
}

func wait(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// programsOff returns the flags with which git passes over every filter and
// hook that the config at dir names.
func programsOff(ctx context.Context, dir string) ([]string, error) {
	out, err := git(ctx, dir, "config", "-z", "--name-only", "--get-regexp", `^(filter|hook)\.`)
	exit := &exec.ExitError{}
	if errors.As(err, &exit) && exit.ExitCode() == 1 {
		return nil, nil // there is none
	}
	if err != nil {
		return nil, err
	}
	var sections, flags []string
	for key := range strings.SplitSeq(strings.TrimSuffix(out, "\x00"), "\x00") {
		if dot := strings.LastIndexByte(key, '.'); dot > 0 {
			sections = append(sections, key[:dot])
		}
	}
	slices.Sort(sections)
	for _, section := range slices.Compact(sections) {
		if strings.Contains(section, "=") {
			// The flag would be read as another one.
			return nil, fmt.Errorf("turn off git's %q: the name holds an equals sign", section)
		}
		values := []string{".enabled=false"}
		if strings.HasPrefix(section, "filter.") {
			values = []string{".smudge=", ".clean=", ".process=", ".required=false"}
		}
		for _, value := range values {
			flags = append(flags, "-c", section+value)
		}
	}
	return flags, nil
}

// adminOf reads from a new worktree where git keeps its state.
func adminOf(dst string) (string, error) {
	data, err := textfile.Plain(filepath.Join(dst, ".git"), maxAttributes)
	if err != nil {
		return "", fmt.Errorf("read worktree: %w", err)
	}
	path, ok := strings.CutPrefix(strings.TrimSuffix(string(data), "\n"), "gitdir: ")
	if !ok {
		return "", errors.New("read worktree: its .git names no folder")
	}
	return within(dst, path), nil
}

// within is a path that may be relative to a folder.
func within(dir, path string) string {
	path = filepath.FromSlash(path)
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(dir, path)
}

var filterAttribute = regexp.MustCompile(`(?m)^[^#\n]*[ \t]filter=([^ \t\r\n]+)`)

// lacking names what a worktree does not have of what the repository tells of:
// the contents of submodules, and what filters would make of files.
func (r *gitRepo) lacking(ctx context.Context, dst string) []string {
	r.once.Do(func() {
		// Both files are untrusted and may be anything; what cannot be read is
		// not told of.
		if _, err := textfile.Plain(filepath.Join(dst, ".gitmodules"), maxAttributes); err == nil {
			out, _ := git(ctx, dst, "config", "-z", "--file", ".gitmodules", "--get-regexp", `^submodule\..*\.path$`)
			for entry := range strings.SplitSeq(out, "\x00") {
				if _, path, ok := strings.Cut(entry, "\n"); ok {
					r.missing = append(r.missing, path+" (submodule)")
				}
			}
		}
		attributes, _ := textfile.Plain(filepath.Join(dst, ".gitattributes"), maxAttributes)
		var names []string
		for _, m := range filterAttribute.FindAllSubmatch(attributes, -1) {
			names = append(names, string(m[1]))
		}
		slices.Sort(names)
		for _, name := range slices.Compact(names) {
			if name == "lfs" {
				name += ", Git LFS"
			}
			r.missing = append(r.missing, "contents made by a filter ("+name+")")
		}
	})
	return slices.Clone(r.missing)
}

// git runs git in dir and returns its output without the last newline. It runs
// no hook, asks nobody, reaches no other repository (which a clone without all
// contents would do by the programs its config names), and is not led elsewhere
// by variables that git sets for its own hooks. An exec.ExitError is wrapped.
func git(ctx context.Context, dir string, args ...string) (string, error) {
	args = append([]string{"-c", "core.hooksPath=" + os.DevNull, "-c", "core.fsmonitor=false", "-c", "submodule.recurse=false",
		"-c", "gc.auto=0", "-c", "maintenance.auto=false"}, args...)
	cmd := exec.CommandContext(ctx, "git", args...)
	cmd.Dir = dir
	cmd.WaitDelay = gitWait
	for _, entry := range os.Environ() {
		if !strings.HasPrefix(entry, "GIT_") {
			cmd.Env = append(cmd.Env, entry)
		}
	}
	cmd.Env = append(cmd.Env, "GIT_TERMINAL_PROMPT=0", "GIT_ALLOW_PROTOCOL=none", "GIT_NO_LAZY_FETCH=1", "GIT_OPTIONAL_LOCKS=0", "LC_ALL=C")
	var out, problem bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &problem
	if err := cmd.Run(); err != nil {
		if text := strings.TrimSpace(problem.String()); text != "" {
			return "", &gitError{text: cutTo(firstLine(text), 300), err: err}
		}
		return "", fmt.Errorf("run git: %w", err)
	}
	return strings.TrimSuffix(out.String(), "\n"), nil
}

// gitError is what git has said before it failed.
type gitError struct {
	text string
	err  error
}

func (e *gitError) Error() string { return "git: " + e.text }
func (e *gitError) Unwrap() error { return e.err }
