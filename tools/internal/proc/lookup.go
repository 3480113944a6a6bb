//go:build unix

package proc

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// ErrNotFound says that no program of that name is in the PATH of the command.
var ErrNotFound = errors.New("program not found in PATH")

// LookPath finds a program in the PATH that env holds, the way execvp does.
// Relative entries of PATH count from dir. A name with a slash is returned as
// it is. The error wraps ErrNotFound or fs.ErrPermission.
func LookPath(name, dir string, env []string) (string, error) { return lookUp(name, dir, env) }

func lookUp(name, dir string, env []string) (string, error) {
	if strings.Contains(name, "/") {
		// The child has changed its folder before it executes a relative name,
		// so the kernel resolves it where we would.
		full := name
		if !filepath.IsAbs(full) {
			full = filepath.Join(dir, full)
		}
		return name, explain(name, executable(full))
	}
	err := fs.ErrNotExist
	for entry := range strings.SplitSeq(pathOf(env), ":") {
		if entry == "" {
			entry = "."
		}
		full := filepath.Join(entry, name)
		if !filepath.IsAbs(entry) {
			full = filepath.Join(dir, full)
		}
		switch e := executable(full); {
		case e == nil:
			return full, nil
		case errors.Is(e, fs.ErrPermission):
			err = fs.ErrPermission
		}
	}
	return "", explain(name, err)
}

func explain(name string, err error) error {
	switch {
	case err == nil:
		return nil
	case strings.Contains(name, "/"):
		return fmt.Errorf("start %q: %w", name, underlying(err))
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("start %q: the file in PATH is not executable: %w", name, err)
	}
	return fmt.Errorf("start %q: %w", name, ErrNotFound)
}

func executable(path string) error {
	st, err := os.Stat(path)
	switch {
	case err != nil:
		return err
	case st.IsDir() || st.Mode()&0o111 == 0:
		return fs.ErrPermission
	}
	return nil
}

// pathOf returns the PATH of an environment, the last one if there are several,
// or what the C library uses without one.
func pathOf(env []string) string {
	for i := len(env) - 1; i >= 0; i-- {
		if v, ok := strings.CutPrefix(env[i], "PATH="); ok {
			return v
		}
	}
	return "/usr/bin:/bin"
}
