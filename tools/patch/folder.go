package patch

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Folder is Files over the disk without confinement: what the program may touch
// is up to the user who runs it.
type Folder struct{}

// Lstat is os.Lstat.
func (Folder) Lstat(name string) (fs.FileInfo, error) { return os.Lstat(name) }

// ReadFile reads a regular file. Anything else is an error, because opening a
// pipe would wait for its writer.
func (Folder) ReadFile(name string) ([]byte, error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, &fs.PathError{Op: "read", Path: name, Err: errors.New("it is not a regular file")}
	}
	return os.ReadFile(name)
}

// WriteFile writes a temporary file beside the target and renames it.
func (Folder) WriteFile(name string, data []byte, perm fs.FileMode) error {
	target, err := linkTarget(name)
	if err != nil {
		return err
	}
	info, err := os.Stat(target)
	switch {
	case err == nil && !info.Mode().IsRegular():
		return &fs.PathError{Op: "write", Path: name, Err: errors.New("it is not a regular file")}
	case err == nil:
		perm = info.Mode() & (fs.ModePerm | fs.ModeSetuid | fs.ModeSetgid)
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	return replaceFile(target, data, perm)
}

// linkTarget follows the links at name. A link to nowhere yields the place it
// points to.
func linkTarget(name string) (string, error) {
	const maxLinks = 40
	for range maxLinks {
		info, err := os.Lstat(name)
		if err != nil || info.Mode()&fs.ModeSymlink == 0 {
			return name, nil
		}
		to, err := os.Readlink(name)
		if err != nil {
			return "", err
		}
		if !filepath.IsAbs(to) {
			to = filepath.Join(filepath.Dir(name), to)
		}
		name = to
	}
	return "", fmt.Errorf("follow %s: too many links", name)
}

// replaceFile makes target hold data with exactly perm, or the default mode.
func replaceFile(target string, data []byte, perm fs.FileMode) (err error) {
	temp := filepath.Join(filepath.Dir(target), ".patch-"+rand.Text())
	f, err := os.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			// The first error is the one to report; the stray file is all that
			// a second one could add.
			_ = os.Remove(temp)
		}
	}()
	_, err = f.Write(data)
	if err == nil && perm != 0 {
		err = f.Chmod(perm)
	}
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return err
	}
	return os.Rename(temp, target)
}

// Remove is os.Remove.
func (Folder) Remove(name string) error { return os.Remove(name) }

// MkdirAll is os.MkdirAll with the usual mode of new folders.
func (Folder) MkdirAll(name string) error { return os.MkdirAll(name, 0o777) }
