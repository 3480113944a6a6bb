package tree

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"

	"drover/output/event"
)

// maxDiff bounds a whole diff in bytes; files behind it are only named.
const maxDiff = 64 << 20

// Diff returns everything that has changed since the snapshot, as a patch for
// git apply -p1 and as a list in the order of the paths. A file that cannot be
// shown, because it or the diff is too large or it cannot be read, is in the
// list, and a line between the patches says so. Files that are neither plain
// nor links are named by such a line only.
func (s *Snapshot) Diff(ctx context.Context) ([]byte, []event.ChangedFile, error) {
	now := map[string]entry{}
	d := &differ{s: s}
	err := walk(ctx, s.dir, func(rel, path string, info fs.FileInfo) error {
		e, ok, err := describe(path, info)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case ok:
			now[rel] = e
		case err == nil:
			d.leaveOut(rel, "it is neither a file nor a link")
		}
		return err
	})
	if err != nil {
		return nil, nil, fmt.Errorf("read changed tree: %w", err)
	}
	paths := slices.Collect(maps.Keys(s.entries))
	for rel := range now {
		if _, ok := s.entries[rel]; !ok {
			paths = append(paths, rel)
		}
	}
	slices.Sort(paths)
	for _, rel := range paths {
		if ctx.Err() != nil {
			return nil, nil, ctx.Err()
		}
		old, before := s.entries[rel]
		e, after := now[rel]
		if err := d.compare(rel, side{old, before}, side{e, after}); err != nil {
			return nil, nil, err
		}
	}
	return d.out.Bytes(), d.changed, nil
}

// differ collects a diff.
type differ struct {
	s       *Snapshot
	out     bytes.Buffer
	changed []event.ChangedFile
}

// side is a path before or after, if it is there.
type side struct {
	entry
	there bool
}

func (d *differ) compare(rel string, old, now side) error {
	kind := event.FileKind("modify")
	switch {
	case !old.there:
		kind = "add"
	case !now.there:
		kind = "delete"
	default:
		same, err := d.s.unchanged(d.path(rel), old.entry, now.entry)
		if err == nil && same && old.exec == now.exec {
			return nil
		}
		if err != nil && !errors.Is(err, fs.ErrPermission) {
			return fmt.Errorf("compare file: %w", err)
		}
	}
	d.changed = append(d.changed, event.ChangedFile{Path: rel, Kind: kind})
	if d.out.Len() >= maxDiff {
		d.leaveOut(rel, "the diff is too large")
		return nil
	}
	before, after, why, err := d.contents(rel, old, now)
	if err != nil {
		return err
	}
	if why != "" {
		d.leaveOut(rel, why)
		return nil
	}
	if old.there && now.there && old.link != now.link {
		// A file that became a link, or the other way round, is two changes.
		writePatch(&d.out, rel, version{mode: old.mode(), data: before}, version{})
		writePatch(&d.out, rel, version{}, version{mode: now.mode(), data: after})
		return nil
	}
	writePatch(&d.out, rel, version{mode: old.mode(), data: before}, version{mode: now.mode(), data: after})
	return nil
}

// contents reads both sides. why is not empty if one cannot be shown.
func (d *differ) contents(rel string, old, now side) (before, after []byte, why string, err error) {
	if old.there {
		data, kept, err := d.s.content(old.entry)
		if err != nil {
			return nil, nil, "", err
		}
		if !kept {
			return nil, nil, "it was too large to show", nil
		}
		before = data
	}
	switch {
	case !now.there:
	case now.link:
		after = []byte(now.target)
	case now.size > maxShown:
		return nil, nil, "it is too large to show", nil
	default:
		after, err = readWhole(d.path(rel))
		if errors.Is(err, fs.ErrPermission) {
			return nil, nil, "it cannot be read", nil
		}
		if err == nil && len(after) > maxShown {
			return nil, nil, "it is too large to show", nil
		}
	}
	return before, after, "", err
}

func readWhole(path string) ([]byte, error) {
	f, err := openPlain(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxShown+1))
	if err != nil {
		return nil, fmt.Errorf("read file: %w", err)
	}
	return data, nil
}

func (d *differ) path(rel string) string { return filepath.Join(d.s.dir, filepath.FromSlash(rel)) }

// leaveOut writes a line that git passes over.
func (d *differ) leaveOut(rel, why string) {
	fmt.Fprintf(&d.out, "drover: %s is left out of this diff: %s\n", quote(rel), why)
}

// mode is the mode in which git sees a side; empty is not there.
func (s side) mode() string {
	switch {
	case !s.there:
		return ""
	case s.link:
		return "120000"
	case s.exec:
		return "100755"
	}
	return "100644"
}
