package tools

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// place is one file beneath a root, or with a nil root anywhere. rel is its real
// name: there was no link on the way when it was checked. One that is there now
// was put in since, and may lead to a protected folder, so it is not followed.
type place struct {
	root *os.Root
	rel  string
}

// errSwapped is what a link on the way of a place is answered with.
var errSwapped = errors.New("a folder on the way has been replaced meanwhile")

// within calls do with the folder that holds the place, and the name there. With
// mkdir missing folders are created.
func (p place) within(mkdir bool, do func(folder *os.Root, name string) error) error {
	folder := p.root
	parts := strings.Split(filepath.ToSlash(filepath.Clean(p.rel)), "/")
	defer func() {
		if folder != p.root {
			_ = folder.Close() // only opened to be looked into
		}
	}()
	for _, name := range parts[:len(parts)-1] {
		next, err := step(folder, name, mkdir)
		if err != nil {
			return err
		}
		if folder != p.root {
			_ = folder.Close() // as above
		}
		folder = next
	}
	return do(folder, parts[len(parts)-1])
}

// step opens a folder in another one, if it is one itself.
func step(folder *os.Root, name string, mkdir bool) (*os.Root, error) {
	info, err := folder.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) && mkdir {
		if err := folder.Mkdir(name, 0o777); err != nil && !errors.Is(err, fs.ErrExist) {
			return nil, err
		}
		info, err = folder.Lstat(name)
	}
	switch {
	case err != nil:
		return nil, err
	case info.Mode()&fs.ModeSymlink != 0:
		return nil, &fs.PathError{Op: "open", Path: name, Err: errSwapped}
	case !info.IsDir():
		return nil, &fs.PathError{Op: "open", Path: name, Err: syscall.ENOTDIR}
	}
	next, err := folder.OpenRoot(name)
	if err != nil {
		return nil, err
	}
	if now, err := next.Stat("."); err != nil || !os.SameFile(info, now) {
		_ = next.Close() // only opened to be looked at
		return nil, errors.Join(&fs.PathError{Op: "open", Path: name, Err: errSwapped}, err)
	}
	return next, nil
}

func (p place) stat() (info fs.FileInfo, err error) {
	if p.root == nil {
		return os.Lstat(p.rel)
	}
	err = p.within(false, func(folder *os.Root, name string) (err error) {
		info, err = folder.Lstat(name)
		return err
	})
	return info, err
}

func (p place) mkdirAll() error {
	if p.root == nil {
		return os.MkdirAll(p.rel, 0o777)
	}
	return p.within(true, func(folder *os.Root, name string) error {
		if name == "." {
			return nil
		}
		made, err := step(folder, name, true)
		if err != nil {
			return err
		}
		return made.Close()
	})
}

func (p place) remove() error {
	if p.root == nil {
		return os.Remove(p.rel)
	}
	return p.within(false, func(folder *os.Root, name string) error { return folder.Remove(name) })
}

// replace writes a temporary file beside the target and renames it, so that a
// reader sees the old bytes or the new ones and a full disk changes nothing.
func (p place) replace(data []byte, mode fs.FileMode) error {
	if p.root == nil {
		dir, name := filepath.Split(p.rel)
		if err := os.MkdirAll(filepath.Clean(dir), 0o777); err != nil {
			return err
		}
		folder, err := os.OpenRoot(filepath.Clean(dir))
		if err != nil {
			return err
		}
		return errors.Join(replaceIn(folder, name, data, mode), folder.Close())
	}
	return p.within(true, func(folder *os.Root, name string) error { return replaceIn(folder, name, data, mode) })
}

func replaceIn(folder *os.Root, name string, data []byte, mode fs.FileMode) error {
	var random [6]byte
	if _, err := rand.Read(random[:]); err != nil {
		return fmt.Errorf("name a temporary file: %w", err)
	}
	temp := "." + cutName(name) + "." + hex.EncodeToString(random[:])
	err := writeNew(folder, temp, data, mode)
	if err == nil {
		err = folder.Rename(temp, name)
	}
	if err != nil {
		return errors.Join(err, ignoreMissing(folder.Remove(temp)))
	}
	return nil
}

func writeNew(folder *os.Root, name string, data []byte, mode fs.FileMode) error {
	file, err := folder.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	_, err = file.Write(data)
	if info, statErr := file.Stat(); err == nil && statErr == nil && info.Mode().Perm() != mode && mode != 0o666 {
		// The umask must not take away what an existing file already had.
		err = file.Chmod(mode)
	}
	return errors.Join(err, file.Close())
}

// cutName keeps a temporary name below the length that file systems allow.
func cutName(name string) string {
	if len(name) > 200 {
		return name[:200]
	}
	return name
}

func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
