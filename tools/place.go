package tools

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// place is one file beneath a root, or with a nil root anywhere.
type place struct {
	root *os.Root
	rel  string
}

func (p place) stat() (fs.FileInfo, error) {
	if p.root == nil {
		return os.Lstat(p.rel)
	}
	return p.root.Lstat(p.rel)
}

func (p place) mkdirAll() error {
	if p.root == nil {
		return os.MkdirAll(p.rel, 0o777)
	}
	return p.root.MkdirAll(p.rel, 0o777)
}

func (p place) remove() error {
	if p.root == nil {
		return os.Remove(p.rel)
	}
	return p.root.Remove(p.rel)
}

// replace writes a temporary file beside the target and renames it, so that a
// reader sees the old bytes or the new ones and a full disk changes nothing.
func (p place) replace(data []byte, mode fs.FileMode) error {
	dir, base := filepath.Split(p.rel)
	dir = filepath.Clean(dir)
	if err := (place{root: p.root, rel: dir}).mkdirAll(); err != nil {
		return err
	}
	var random [6]byte
	if _, err := rand.Read(random[:]); err != nil {
		return fmt.Errorf("name a temporary file: %w", err)
	}
	temp := place{root: p.root, rel: filepath.Join(dir, "."+cutName(base)+"."+hex.EncodeToString(random[:]))}
	if err := temp.write(data, mode); err != nil {
		return errors.Join(err, ignoreMissing(temp.remove()))
	}
	if err := temp.rename(p); err != nil {
		return errors.Join(err, ignoreMissing(temp.remove()))
	}
	return nil
}

func (p place) write(data []byte, mode fs.FileMode) error {
	flags := os.O_WRONLY | os.O_CREATE | os.O_EXCL
	var file *os.File
	var err error
	if p.root == nil {
		file, err = os.OpenFile(p.rel, flags, mode)
	} else {
		file, err = p.root.OpenFile(p.rel, flags, mode)
	}
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

func (p place) rename(to place) error {
	if p.root == nil {
		return os.Rename(p.rel, to.rel)
	}
	return p.root.Rename(p.rel, to.rel)
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
