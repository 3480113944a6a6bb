package patch

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// ErrEmpty is the error for a patch without sections.
var ErrEmpty = errors.New("No files were modified.")

// Plan is a patch that was verified against the disk and not yet written.
type Plan struct {
	// Changes are the effects in the order of the patch's sections.
	Changes []Change

	files Files
}

// NewPlan verifies every section of p against the disk as it is now and computes
// the new contents, writing nothing. It refuses whatever could lose data or hit
// the wrong place: a file named twice, an Add or a move onto something that
// exists, a chunk that fits several places, a section that changes nothing, a
// file that is not UTF-8.
func NewPlan(p *Patch, at Place) (*Plan, error) {
	if len(p.Sections) == 0 {
		return nil, ErrEmpty
	}
	plan := &Plan{files: at.Files}
	v := verifier{Place: at, named: map[string]string{}}
	for _, s := range p.Sections {
		c, err := v.section(s)
		if err != nil {
			return nil, err
		}
		plan.Changes = append(plan.Changes, c)
	}
	return plan, nil
}

// Abs is the absolute, clean form of a path in a patch.
func (p Place) Abs(spelled string) string {
	if filepath.IsAbs(spelled) {
		return filepath.Clean(spelled)
	}
	return filepath.Join(p.Dir, spelled)
}

// rel is the form of an absolute path that is shown.
func (p Place) rel(abs string) string {
	base := cmp.Or(p.Base, p.Dir)
	for _, from := range []string{base, cmp.Or(p.Real, base)} {
		if rel, err := filepath.Rel(from, abs); err == nil && filepath.IsLocal(rel) {
			return filepath.ToSlash(rel)
		}
	}
	return filepath.ToSlash(abs)
}

// change starts the Change for the section s.
func (p Place) change(s Section) Change {
	abs := p.Abs(s.Path)
	c := Change{Spelled: s.Path, Path: p.rel(abs), Abs: abs}
	switch s.Action {
	case Add:
		c.Kind = Added
	case Delete:
		c.Kind = Deleted
	default:
		c.Kind = Modified
		// Moving a file onto itself is an ordinary update.
		if to := p.Abs(s.MoveTo); s.MoveTo != "" && to != abs {
			c.Kind, c.Spelled = Renamed, s.MoveTo
			c.OldPath, c.OldAbs, c.Path, c.Abs = c.Path, abs, p.rel(to), to
		}
	}
	return c
}

// source is the file whose content the change starts from.
func (c *Change) source() string {
	if c.Kind == Renamed {
		return c.OldAbs
	}
	return c.Abs
}

// load reads the file that c starts from and checks that it is one.
func (p Place) load(c *Change) error {
	verb := "read file to update"
	if c.Kind == Deleted {
		verb = "delete file"
	}
	name := c.source()
	info, err := p.Files.Lstat(name)
	if err != nil {
		return fmt.Errorf("Failed to %s %s: %w", verb, name, reason(err))
	}
	if info.IsDir() {
		return fmt.Errorf("Failed to %s %s: it is a folder", verb, name)
	}
	c.stat, c.mode = info, info.Mode()&(fs.ModePerm|fs.ModeSetuid|fs.ModeSetgid)
	if c.Kind == Deleted && !info.Mode().IsRegular() {
		return nil
	}
	if c.Before, err = p.Files.ReadFile(name); err != nil {
		return fmt.Errorf("Failed to %s %s: %w", verb, name, reason(err))
	}
	return nil
}

// reason is err without the operation and paths that the message already names.
func reason(err error) error {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return pe.Err
	}
	var le *os.LinkError
	if errors.As(err, &le) {
		return le.Err
	}
	return err
}

// fill computes the new content and the diff of c, whose source is loaded.
func (c *Change) fill(s Section, strict bool) error {
	switch c.Kind {
	case Added:
		c.After = []byte(s.Content)
		lines := splitLines(s.Content)
		c.show(&document{}, []edit{{lines: lines}})
	case Deleted:
		if d, err := newDocument(c.Abs, c.Before); err == nil {
			c.show(d, []edit{{hi: len(d.lines)}})
		}
	default:
		d, err := newDocument(c.source(), c.Before)
		if err != nil {
			return err
		}
		u, err := update(d, s.Chunks, strict)
		if err != nil {
			return err
		}
		c.After, c.Lenient, c.Notes = u.after, u.lenient, u.notes
		if len(c.After) == 0 && len(c.Before) > 0 {
			c.Notes = append(c.Notes, c.Spelled+" is an empty file now; only *** Delete File removes it")
		}
		c.show(d, u.edits)
	}
	return nil
}

// show sets the diff of c. A file without lines has no hunks.
func (c *Change) show(d *document, edits []edit) {
	if len(edits) == 1 && edits[0].lo == edits[0].hi && len(edits[0].lines) == 0 {
		return
	}
	body, added, removed := d.diff(edits)
	if body == "" {
		return
	}
	from, to := c.Path, c.Path
	switch c.Kind {
	case Added:
		from = ""
	case Deleted:
		to = ""
	case Renamed:
		from = c.OldPath
	}
	c.Diff, c.Added, c.Removed = fileHeader(from, to)+body, added, removed
}

// verifier checks the sections of one patch.
type verifier struct {
	Place
	named map[string]string // absolute path to the spelling that named it first
	links int               // links to be deleted
}

func (v *verifier) section(s Section) (Change, error) {
	c := v.change(s)
	if err := v.name(c.Abs, c.Spelled); err != nil {
		return c, err
	}
	if c.Kind == Renamed {
		if err := v.name(c.OldAbs, s.Path); err != nil {
			return c, err
		}
	}
	if c.Kind == Added {
		if err := v.vacant(&c, "add "+s.Path); err != nil {
			return c, err
		}
		return c, c.fill(s, true)
	}
	if err := v.load(&c); err != nil {
		return c, err
	}
	if err := v.link(&c, s); err != nil {
		return c, err
	}
	if c.Kind == Renamed {
		if err := v.vacant(&c, "move "+s.Path+" to "+s.MoveTo); err != nil {
			return c, err
		}
	}
	if err := c.fill(s, true); err != nil {
		return c, err
	}
	if c.Kind == Modified && c.Diff == "" {
		return c, fmt.Errorf("no change: the section for %s leaves the file as it is", s.Path)
	}
	return c, nil
}

// name takes note that a section touches abs. Every section is verified against
// the disk before the patch, so a second one could not build on the first.
func (v *verifier) name(abs, spelled string) error {
	if first, ok := v.named[abs]; ok {
		return fmt.Errorf("%s is named twice in the patch (first as %s); put all its changes into one section", spelled, first)
	}
	v.named[abs] = spelled
	return nil
}

// vacant wants nothing at the destination of c, not even a link to nowhere.
func (v *verifier) vacant(c *Change, intent string) error {
	info, err := v.Files.Lstat(c.Abs)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("cannot %s: %w", intent, reason(err))
	case c.sameEntry(info):
		return nil
	case info.Mode()&fs.ModeSymlink != 0:
		return fmt.Errorf("cannot %s: %s already exists, as a symbolic link", intent, c.Abs)
	case info.IsDir():
		return fmt.Errorf("cannot %s: %s already exists, as a folder", intent, c.Abs)
	}
	return fmt.Errorf("cannot %s: %s already exists; *** Update File changes an existing file", intent, c.Abs)
}

// sameEntry reports whether at, found under the new name of a move, is the
// source itself under another case, on a file system that ignores case.
func (c *Change) sameEntry(at fs.FileInfo) bool {
	return c.Kind == Renamed && os.SameFile(at, c.stat) && strings.EqualFold(c.Abs, c.OldAbs)
}

// link refuses what could not be undone: a moved link, and the removal of more
// than one link, since Files cannot create a link again.
func (v *verifier) link(c *Change, s Section) error {
	if c.stat.Mode()&fs.ModeSymlink == 0 {
		return nil
	}
	if c.Kind == Renamed {
		return fmt.Errorf("cannot move %s: it is a symbolic link", s.Path)
	}
	if c.Kind == Deleted {
		if v.links++; v.links > 1 {
			return fmt.Errorf("cannot delete %s: a patch may delete one symbolic link at most", s.Path)
		}
	}
	return nil
}

// unchanged reports whether a file still is as it was when it was verified.
func unchanged(now, then fs.FileInfo) bool {
	return now.Size() == then.Size() && now.Mode() == then.Mode() &&
		now.ModTime().Truncate(time.Microsecond).Equal(then.ModTime().Truncate(time.Microsecond))
}
