package result

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// Replace writes a file by rename: whoever reads it sees the old one or the new
// one and nothing between. Folders above it are created. The mode of a file that
// is there is kept, and a link to one stays a link. When write fails nothing has
// changed.
func Replace(path string, write func(w io.Writer) error) (err error) {
	target, mode, err := place(path)
	if err != nil {
		return err
	}
	dir := filepath.Dir(target)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	f, err := create(target, mode)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = f.Close()           // the first error is told
			_ = os.Remove(f.Name()) // as above
		}
	}()
	b := bufio.NewWriterSize(f, 64<<10)
	if err := write(b); err != nil {
		return err
	}
	if err := b.Flush(); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	return os.Rename(f.Name(), target)
}

// Clean removes what writers of path that were killed have left beside it. Nobody
// else may be writing it meanwhile.
func Clean(path string) error {
	left, err := filepath.Glob(escape(path) + ".*-*.tmp")
	if err != nil {
		return err
	}
	for _, name := range left {
		if unfinished.MatchString(strings.TrimPrefix(name, path)) {
			err = errors.Join(err, os.Remove(name))
		}
	}
	return err
}

var unfinished = regexp.MustCompile(`^\.[0-9]+-[0-9]+\.tmp$`)

// escape keeps a path from being a pattern.
func escape(path string) string {
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`).Replace(path)
}

// create makes the new file beside the old one. The umask applies to a mode that
// nobody has chosen.
func create(target string, mode fs.FileMode) (*os.File, error) {
	for n := 0; ; n++ {
		name := fmt.Sprintf("%s.%d-%d.tmp", target, os.Getpid(), n)
		f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
		if errors.Is(err, fs.ErrExist) && n < 100 {
			continue
		}
		if err != nil || mode == 0 {
			return f, err
		}
		if err := f.Chmod(mode); err != nil {
			_ = f.Close()       // the first error is told
			_ = os.Remove(name) // as above
			return nil, err
		}
		return f, nil
	}
}

// place is the file that a path leads to, with its mode, 0 for a new one.
func place(path string) (string, fs.FileMode, error) {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return path, 0, nil
	}
	if err != nil {
		return "", 0, err
	}
	if info.Mode()&fs.ModeSymlink != 0 {
		if path, err = filepath.EvalSymlinks(path); err != nil {
			return "", 0, fmt.Errorf("follow the link: %w", err)
		}
		if info, err = os.Stat(path); err != nil {
			return "", 0, err
		}
	}
	if !info.Mode().IsRegular() {
		return "", 0, fmt.Errorf("%s is not a regular file", path)
	}
	return path, info.Mode().Perm(), nil
}

// Appender appends whole lines to a file, of which it is the only writer. It is
// not for concurrent use.
type Appender struct{ f *os.File }

// OpenAppender opens the file at path for appending.
func OpenAppender(path string) (*Appender, error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o666)
	if err != nil {
		return nil, err
	}
	return &Appender{f}, nil
}

// Append writes one line, which must end with a newline, in one call. The part
// of a line that a full disk has taken is taken back: the next line would go on
// in it otherwise.
func (a *Appender) Append(line []byte) error {
	n, err := a.f.Write(line)
	if err == nil || n == 0 {
		return err
	}
	end, seek := a.f.Seek(0, io.SeekEnd)
	if seek != nil {
		return errors.Join(err, seek)
	}
	return errors.Join(err, a.f.Truncate(end-int64(n)))
}

// Close closes the file.
func (a *Appender) Close() error { return a.f.Close() }
