package tree

import (
	"io/fs"
	"os"
	"path/filepath"
)

// Remove deletes a folder with everything in it, also folders that nobody may
// write to. It follows no link. A folder that is not there is no error.
func Remove(dir string) error {
	if err := os.RemoveAll(dir); err == nil {
		return nil
	}
	// The modes are opened from the outside in: WalkDir reads a folder after it
	// has been visited.
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			return os.Chmod(path, 0o700)
		}
		return nil
	})
	if err != nil {
		return err
	}
	return os.RemoveAll(dir)
}
