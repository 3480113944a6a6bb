package patch

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"strings"
	"unicode/utf8"
)

// Main is the program: it applies the patch that is its only argument, or comes
// on stdin when there is none, to files below dir. It returns the exit code: 0
// when all is applied, 1 when something failed, 2 for a wrong call. Unlike a
// Plan it overwrites on Add and move, takes the first place that fits, and
// leaves the sections before a failure on disk.
func Main(dir string, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	text, code, err := input(args, stdin)
	if err == nil {
		var summary string
		if summary, err = run(text, dir); err == nil {
			_, err = io.WriteString(stdout, summary)
		}
		code = 1
	}
	if err == nil {
		return 0
	}
	// There is no better place to report that stderr is gone.
	_, _ = fmt.Fprintln(stderr, err)
	return code
}

// input finds the text of the patch. The code goes with the error.
func input(args []string, stdin io.Reader) (text string, code int, err error) {
	switch len(args) {
	case 0:
		data, err := io.ReadAll(stdin)
		if err != nil {
			return "", 1, fmt.Errorf("Error: Failed to read PATCH from stdin: %w", err)
		}
		if len(data) == 0 {
			return "", 2, errors.New("Usage: apply_patch 'PATCH'\n       apply_patch < PATCH")
		}
		text = string(data)
	case 1:
		text = args[0]
	default:
		return "", 2, errors.New("Error: apply_patch accepts exactly one argument.")
	}
	if !utf8.ValidString(text) {
		return "", 1, errors.New("Error: apply_patch requires a UTF-8 PATCH argument.")
	}
	return text, 0, nil
}

// run applies text section by section and returns the summary.
func run(text, dir string) (string, error) {
	patch, err := Parse(text)
	if err != nil {
		var pe *ParseError
		if errors.As(err, &pe) {
			return "", errors.New(pe.Standalone())
		}
		return "", err
	}
	if len(patch.Sections) == 0 {
		return "", ErrEmpty
	}
	where := Place{Files: Folder{}, Dir: dir}
	var done []Change
	for _, s := range patch.Sections {
		c := where.change(s)
		if err := where.applyNow(&c, s); err != nil {
			return "", err
		}
		done = append(done, c)
	}
	return Summary(done), nil
}

// applyNow does one section on the disk as the sections before it left it.
func (p Place) applyNow(c *Change, s Section) error {
	if c.Kind != Added {
		if err := p.load(c); err != nil {
			return err
		}
	}
	if c.Kind == Deleted {
		if err := p.Files.Remove(c.Abs); err != nil {
			return fmt.Errorf("Failed to delete file %s: %w", c.Abs, reason(err))
		}
		return nil
	}
	if err := c.fill(s, false); err != nil {
		return err
	}
	if c.Kind == Renamed {
		return p.moveNow(c)
	}
	return p.writeNow(c.Abs, c.After, 0)
}

// moveNow replaces what is at the destination. A link there is replaced itself:
// it may lead to the source.
func (p Place) moveNow(c *Change) error {
	if at, err := p.Files.Lstat(c.Abs); err == nil {
		switch {
		case at.IsDir():
			return fmt.Errorf("Failed to write file %s: it is a folder", c.Abs)
		case c.sameEntry(at):
			// The same entry under another spelling: removed first, so that the
			// new spelling stays.
			if err := p.Files.Remove(c.OldAbs); err != nil {
				return fmt.Errorf("Failed to remove original %s: %w", c.OldAbs, reason(err))
			}
			return p.writeNow(c.Abs, c.After, c.mode)
		case at.Mode()&fs.ModeSymlink != 0:
			if err := p.Files.Remove(c.Abs); err != nil {
				return fmt.Errorf("Failed to write file %s: %w", c.Abs, reason(err))
			}
		}
	}
	if err := p.writeNow(c.Abs, c.After, c.mode); err != nil {
		return err
	}
	if err := p.Files.Remove(c.OldAbs); err != nil {
		return fmt.Errorf("Failed to remove original %s: %w", c.OldAbs, reason(err))
	}
	return nil
}

func (p Place) writeNow(name string, data []byte, mode fs.FileMode) error {
	err := p.Files.MkdirAll(filepath.Dir(name))
	if err == nil {
		err = p.Files.WriteFile(name, data, mode)
	}
	if err != nil {
		return fmt.Errorf("Failed to write file %s: %w", name, reason(err))
	}
	return nil
}

// Summary lists changes as the program prints them on success: added, then
// updated and moved, then deleted files, with paths as the patch spells them.
func Summary(changes []Change) string {
	var added, modified, deleted strings.Builder
	for _, c := range changes {
		switch c.Kind {
		case Added:
			fmt.Fprintf(&added, "A %s\n", c.Spelled)
		case Deleted:
			fmt.Fprintf(&deleted, "D %s\n", c.Spelled)
		default:
			fmt.Fprintf(&modified, "M %s\n", c.Spelled)
		}
	}
	return "Success. Updated the following files:\n" + added.String() + modified.String() + deleted.String()
}
