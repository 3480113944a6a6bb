package runner

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"drover/runner/internal/tree"
)

// frozenName is the folder below an Isolator's in which it keeps the copy that
// the places are made from. No place can have this name.
const frozenName = ".source"

// Isolator makes many places to work in from one state of a folder. It is safe
// for concurrent use.
//
// All places begin alike, whatever happens to the folder meanwhile: copies are
// made from a copy that was made first, worktrees from the commit that was HEAD
// at the beginning. The contents that the diffs need are kept once, not for
// each place. A copy shares nothing with the folder or with another copy, but
// for blocks that the file system itself shares until one of them is written.
type Isolator struct {
	mode, src, dir string
	repo           *gitRepo
	skipped        []string

	// mu guards base: the first worktree is read, the others are only compared.
	mu   sync.Mutex
	base *tree.Snapshot
}

// NewIsolator prepares places for src directly below dir, which is created and
// must not lie in src. Mode none makes all places src itself. Errors are those
// of Isolate. What an earlier process has left in dir is not removed; see
// CleanIsolated.
func NewIsolator(ctx context.Context, mode, src, dir string) (*Isolator, error) {
	m := &Isolator{mode: mode, src: src, dir: dir}
	var err error
	switch mode {
	case "", "none":
		m.mode = "none"
		return m, nil
	case "copy", "worktree":
		err = os.MkdirAll(dir, 0o700)
	default:
		return nil, unknownMode(mode)
	}
	if err == nil && mode == "worktree" {
		m.repo, err = openRepository(ctx, src)
	}
	if err == nil && mode == "copy" {
		err = m.freeze(ctx)
	}
	if err != nil {
		return nil, isolateFault(src, err)
	}
	return m, nil
}

// freeze makes the copy that all others are made from.
func (m *Isolator) freeze(ctx context.Context) error {
	frozen := filepath.Join(m.dir, frozenName)
	i := &Isolation{Mode: "copy", Source: m.src}
	err := i.copyFrom(ctx, m.src, frozen)
	if err == nil {
		m.skipped = i.Skipped
		m.base, err = tree.Take(ctx, frozen, frozen+scratchSuffix)
	}
	if err != nil && i.place != "" {
		// The first error is the one that is told; the record leads to the rest.
		_ = removePlace(context.WithoutCancel(ctx), frozen, "")
	}
	return err
}

// Isolate makes a place in the folder name below the Isolator's, which must not
// exist. A name is one part of a path, does not begin with a dot and does not
// end with .json, .base or .new, which are files beside places. Errors are
// faults of class Environment; nothing is left of a place that failed.
func (m *Isolator) Isolate(ctx context.Context, name string) (*Isolation, error) {
	i := &Isolation{Mode: m.mode, Source: m.src, Dir: m.src}
	if m.mode == "none" {
		return i, nil
	}
	if !isPlaceName(name) {
		return nil, isolateFault(m.src, fmt.Errorf("make place: the name %q cannot be used", name))
	}
	dst := filepath.Join(m.dir, name)
	err := m.fill(ctx, i, dst)
	if err == nil {
		i.snapshot, err = m.snapshot(ctx, i.Dir, dst+scratchSuffix)
	}
	if err != nil {
		if i.place != "" {
			err = errors.Join(err, i.Remove(ctx))
		}
		return nil, isolateFault(m.src, err)
	}
	return i, nil
}

func isPlaceName(name string) bool {
	for _, suffix := range []string{recordSuffix, newSuffix, scratchSuffix} {
		if strings.HasSuffix(strings.ToLower(name), suffix) {
			return false
		}
	}
	return name != "" && name[0] != '.' && !strings.ContainsAny(name, `/\`) && filepath.IsLocal(name)
}

// fill makes the folder of a place.
func (m *Isolator) fill(ctx context.Context, i *Isolation, dst string) error {
	if m.repo != nil {
		return i.addWorktree(ctx, m.repo, dst)
	}
	err := i.copyFrom(ctx, filepath.Join(m.dir, frozenName), dst)
	i.Skipped = m.skipped
	return err
}

// snapshot remembers a new place. The first worktree becomes the base of the
// others; a place that is not like the base, for whatever reason, gets a
// snapshot of its own.
func (m *Isolator) snapshot(ctx context.Context, dir, scratch string) (*tree.Snapshot, error) {
	base, err := m.baseFrom(ctx, dir, scratch)
	if err != nil {
		return nil, err
	}
	s, err := base.At(ctx, dir)
	if s != nil || err != nil {
		return s, err
	}
	return tree.Take(ctx, dir, scratch)
}

func (m *Isolator) baseFrom(ctx context.Context, dir, scratch string) (*tree.Snapshot, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.base != nil {
		return m.base, nil
	}
	var err error
	m.base, err = tree.Take(ctx, dir, scratch)
	return m.base, err
}

// Close removes what the Isolator itself keeps. The places stay, but have no
// diff any more.
func (m *Isolator) Close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	var failed []error
	if m.base != nil {
		failed = append(failed, m.base.Close())
	}
	if m.mode == "copy" {
		failed = append(failed, removePlace(context.Background(), filepath.Join(m.dir, frozenName), ""))
	}
	return errors.Join(failed...)
}
