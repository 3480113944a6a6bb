package runner

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"drover/output/event"
	"drover/output/fault"
	"drover/runner/internal/tree"
)

// Isolation is the place in which a run works instead of the folder it was
// started for.
type Isolation struct {
	// Mode is none, copy or worktree.
	Mode string
	// Source is the folder the run was started for, Dir the one in which it
	// works. Both are absolute.
	Source, Dir string
	// Skipped are paths in Source that a copy does not have: sockets, pipes,
	// devices, and a .git that leads to another folder.
	Skipped []string

	snapshot *tree.Snapshot
}

// recordSuffix is added to the folder's name for a file beside it that says
// what must be done to remove it. It lies beside the folder because an agent
// can change everything inside.
const recordSuffix = ".json"

// isolationRecord is the content of that file.
type isolationRecord struct {
	Mode   string `json:"mode"`
	Source string `json:"source"`
}

// Isolate makes a place to work in. Mode none is src itself. Mode copy copies
// the whole of src to dst, with everything that git would ignore. Mode worktree
// makes a git worktree of src's HEAD at dst: what is not committed is not in it;
// if src lies deeper in its repository, Dir is the same folder of the worktree.
// dst must not exist; its parent must, and must not lie in src for a copy.
// Errors are faults of class Environment, or Config for an unknown mode.
//
// Diff compares with the state right after the copy, whose contents are kept in
// a file without a name until Close. That costs once more the size of the
// folder, but the diff is true even if src changes during the run.
func Isolate(ctx context.Context, mode, src, dst string) (*Isolation, error) {
	i := &Isolation{Mode: mode, Source: src, Dir: src}
	var err error
	switch mode {
	case "", "none":
		i.Mode = "none"
		return i, nil
	case "copy":
		err = i.copyTo(ctx, dst)
	case "worktree":
		err = i.addWorktree(ctx, dst)
	default:
		return nil, &fault.Error{Code: "isolate", What: fmt.Sprintf("isolate %q is not known", mode),
			Fix: "use one of: none, copy, worktree", Exit: fault.Config}
	}
	if err == nil {
		i.snapshot, err = tree.Take(ctx, i.Dir, dst+".base")
	}
	if err != nil {
		// The first error is the one that is told; what is left goes with the
		// session.
		_ = RemoveIsolation(context.WithoutCancel(ctx), dst)
		return nil, isolateFault(src, err)
	}
	return i, nil
}

func isolateFault(src string, err error) error {
	f := &fault.Error{}
	if errors.As(err, &f) {
		return f
	}
	return &fault.Error{Code: "isolate", What: fmt.Sprintf("folder %q cannot be isolated", src), Why: err.Error(),
		Fix: "use isolate: none, or run in a folder that can be copied", Exit: fault.Environment, Err: err}
}

// Diff returns what has changed in the place since it was made, as a patch for
// git apply and as a list. Mode none has no diff. See tree.Snapshot.Diff for
// what a patch cannot show.
func (i *Isolation) Diff() ([]byte, []event.ChangedFile, error) {
	if i.snapshot == nil {
		return nil, nil, nil
	}
	// The run is over, and with it its context; a diff must be had all the same.
	return i.snapshot.Diff(context.Background())
}

// Close frees what Diff needs. The place itself stays.
func (i *Isolation) Close() error {
	if i.snapshot == nil {
		return nil
	}
	return i.snapshot.Close()
}

func (i *Isolation) copyTo(ctx context.Context, dst string) error {
	src, err := filepath.EvalSymlinks(i.Source)
	if err != nil {
		return fmt.Errorf("find folder: %w", err)
	}
	parent, err := filepath.EvalSymlinks(filepath.Dir(dst))
	if err != nil {
		return fmt.Errorf("find place of the copy: %w", err)
	}
	if rel, err := filepath.Rel(src, parent); err == nil && filepath.IsLocal(rel) {
		return &fault.Error{Code: "isolate", What: fmt.Sprintf("folder %q cannot be copied", i.Source),
			Why: "drover's state folder, where the copy would be, lies inside it",
			Fix: "set XDG_STATE_HOME to a folder outside, or run in a sub-folder", Exit: fault.Environment}
	}
	if err := writeRecord(dst, isolationRecord{Mode: "copy", Source: src}); err != nil {
		return err
	}
	i.Dir = dst
	i.Skipped, err = tree.Copy(ctx, src, dst)
	return err
}

func (i *Isolation) addWorktree(ctx context.Context, dst string) error {
	top, err := git(ctx, i.Source, "rev-parse", "--show-toplevel")
	if err != nil {
		return &fault.Error{Code: "isolate", What: fmt.Sprintf("a worktree of %q cannot be made", i.Source), Why: err.Error(),
			Fix: "use isolate: copy, or run in a git repository with git installed", Exit: fault.Environment, Err: err}
	}
	prefix, err := git(ctx, i.Source, "rev-parse", "--show-prefix")
	if err != nil {
		return err
	}
	if err := writeRecord(dst, isolationRecord{Mode: "worktree", Source: top}); err != nil {
		return err
	}
	if _, err := git(ctx, top, "worktree", "add", "--detach", "--quiet", dst, "HEAD"); err != nil {
		return &fault.Error{Code: "isolate", What: fmt.Sprintf("a worktree of %q cannot be made", top), Why: err.Error(),
			Fix: "use isolate: copy", Exit: fault.Environment, Err: err}
	}
	i.Dir = filepath.Join(dst, filepath.FromSlash(prefix))
	if _, err := os.Stat(i.Dir); err != nil {
		return fmt.Errorf("find folder in the last commit: %w", err)
	}
	return nil
}

func writeRecord(dst string, r isolationRecord) error {
	data, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("encode isolation record: %w", err)
	}
	if err := os.WriteFile(dst+recordSuffix, data, 0o600); err != nil {
		return fmt.Errorf("write isolation record: %w", err)
	}
	return nil
}

// RemoveIsolation undoes what Isolate did at dst outside of it: a worktree is
// taken out of its repository. The folder of a copy stays, for whoever removes
// the session. Where there was no isolation it does nothing.
func RemoveIsolation(ctx context.Context, dst string) error {
	data, err := os.ReadFile(dst + recordSuffix)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read isolation record: %w", err)
	}
	var r isolationRecord
	if err := json.Unmarshal(data, &r); err != nil {
		return fmt.Errorf("read isolation record: %w", err)
	}
	if r.Mode != "worktree" {
		return nil
	}
	if _, err := os.Stat(r.Source); errors.Is(err, fs.ErrNotExist) {
		return nil // the repository is gone, and its list of worktrees with it
	}
	// The folder's own .git is not asked for the repository: an agent may have
	// changed it, and git obeys the config that it leads to. What is left in the
	// folder goes first, so that git has nothing to refuse.
	if err := tree.Remove(dst); err != nil {
		return fmt.Errorf("remove worktree: %w", err)
	}
	if _, err := git(ctx, r.Source, "worktree", "prune"); err != nil {
		return fmt.Errorf("remove worktree: %w", err)
	}
	return nil
}

// gitWait bounds how long git may keep its output open after its end.
const gitWait = 5 * time.Second

// git runs git in dir and returns its output without the last newline. It runs
// no hook, asks nobody, and is not led elsewhere by variables that git sets for
// its own hooks.
func git(ctx context.Context, dir string, args ...string) (string, error) {
	args = append([]string{"-c", "core.hooksPath=" + os.DevNull, "-c", "core.fsmonitor=false"}, args...)
	cmd := exec.CommandContext(ctx, "git", args...)
	cmd.Dir = dir
	cmd.WaitDelay = gitWait
	for _, entry := range os.Environ() {
		if !strings.HasPrefix(entry, "GIT_") {
			cmd.Env = append(cmd.Env, entry)
		}
	}
	cmd.Env = append(cmd.Env, "GIT_TERMINAL_PROMPT=0", "LC_ALL=C")
	var out, problem bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &problem
	if err := cmd.Run(); err != nil {
		if text := strings.TrimSpace(problem.String()); text != "" {
			return "", fmt.Errorf("git: %s", cutTo(firstLine(text), 300))
		}
		return "", fmt.Errorf("run git: %w", err)
	}
	return strings.TrimSuffix(out.String(), "\n"), nil
}
