package sandbox

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// isBelow tells whether path is folder or lies in it. Both are clean.
func isBelow(folder, path string) bool {
	if folder == "/" || folder == path {
		return true
	}
	return len(path) > len(folder) && path[len(folder)] == '/' && path[:len(folder)] == folder
}

func belowAny(folders []string, path string) bool {
	return slices.ContainsFunc(folders, func(f string) bool { return isBelow(f, path) })
}

// depth counts the names of a path.
func depth(path string) int {
	if path == "/" {
		return 0
	}
	return strings.Count(path, "/")
}

// realPath resolves the symbolic links in a path, as far as it exists.
func realPath(path string) string {
	path = filepath.Clean(path)
	real, err := filepath.EvalSymlinks(path)
	if err == nil {
		return real
	}
	if path == "/" || !errors.Is(err, fs.ErrNotExist) {
		return path
	}
	return filepath.Join(realPath(filepath.Dir(path)), filepath.Base(path))
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

func isFolder(path string) bool {
	st, err := os.Stat(path)
	return err == nil && st.IsDir()
}

// gitFolders returns where a .git file leads: the folder of the worktree, and
// the one it shares with others. A .git that is a folder leads nowhere.
func gitFolders(path string) []string {
	text, err := readShort(path)
	if err != nil {
		return nil
	}
	dir, ok := strings.CutPrefix(text, "gitdir:")
	if !ok {
		return nil
	}
	dir = from(filepath.Dir(path), dir)
	out := []string{dir}
	if text, err := readShort(filepath.Join(dir, "commondir")); err == nil {
		out = append(out, from(dir, text))
	}
	return out
}

func from(base, path string) string {
	path = strings.TrimSpace(path)
	if !filepath.IsAbs(path) {
		path = filepath.Join(base, path)
	}
	return filepath.Clean(path)
}

// readShort reads a small file. A large one is none of git's.
func readShort(path string) (string, error) {
	st, err := os.Stat(path)
	if err != nil {
		return "", err
	}
	if !st.Mode().IsRegular() || st.Size() > 64<<10 {
		return "", fs.ErrInvalid
	}
	b, err := os.ReadFile(path)
	return string(b), err
}

// innermost returns the longest of the folders around a path.
func innermost(folders []string, path string) string {
	best := ""
	for _, f := range folders {
		if isBelow(f, path) && len(f) > len(best) {
			best = f
		}
	}
	return best
}
