package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"drover/tools/internal/proc"
	"golang.org/x/sys/unix"
)

// Some systems refuse user namespaces to programs but for a few, of which
// bubblewrap is one. It then builds the tree that commands see, from arguments
// that are made here, and starts the helper in it, which gives all other rights
// up itself.

// wrappers are where bubblewrap is looked for: folders that only the
// administrator writes, and not PATH, which a project may have set.
var wrappers = []string{"/usr/bin/bwrap", "/usr/local/bin/bwrap", "/bin/bwrap"}

// wrapper returns the program of bubblewrap, "" if it is not installed.
func wrapper() string {
	for _, path := range wrappers {
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return path
		}
	}
	return ""
}

// bubble is how bubblewrap is told about a setup.
type bubble struct {
	// args are its arguments.
	args []string
	// refused are the folders that get no layer.
	refused []string
	// open are links that cannot be kept from being replaced.
	open []string
}

// spawnWrapped starts the helper in a tree that bubblewrap makes. The folder of
// the layers belongs to this helper alone.
func spawnWrapped(program string, attr *os.ProcAttr, s *setup) (*os.Process, error) {
	if program == ownProgram { // which for bubblewrap is its own
		self, err := os.Executable()
		if err != nil {
			return nil, err
		}
		program = self
	}
	w, err := s.wrap(program)
	if err != nil {
		return nil, err
	}
	s.unlayered, s.open = w.refused, w.open
	said, err := os.OpenFile(s.said(), os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, err
	}
	defer func() { _ = said.Close() }() // lent
	attr.Files[2] = said
	return proc.StartHelper(wrapper(), append([]string{"bwrap"}, w.args...), attr)
}

// said is the file that holds what bubblewrap complains about.
func (s *setup) said() string { return filepath.Join(s.layers, "said") }

// wrapperError is why the helper in bubblewrap does not answer: usually that it
// was refused what drover was refused.
func (s *setup) wrapperError(err error) error {
	text, _ := os.ReadFile(s.said()) // nothing was said
	line, _, _ := strings.Cut(strings.TrimSpace(string(text)), "\n")
	if line == "" {
		line = err.Error()
	}
	return &brokenError{text: "bubblewrap: " + line, unsupported: true}
}

// wrap makes what the tree needs below the layers folder, and the arguments. The
// placements are in order of depth.
func (s *setup) wrap(program string) (*bubble, error) {
	w := &bubble{args: []string{"--unshare-ipc"}}
	w.add("--ro-bind", "/", "/")
	if s.whole {
		w.args = []string{"--unshare-ipc", "--bind", "/", "/"}
	}
	// The program may lie where commands have a folder of their own.
	helper := "/dev/" + helperName
	w.add("--dev", "/dev", "--ro-bind", program, helper)
	file, folder := filepath.Join(s.layers, "file"), filepath.Join(s.layers, "folder")
	if err := errors.Join(os.WriteFile(file, nil, 0o000), os.Mkdir(folder, 0o000)); err != nil {
		return nil, fmt.Errorf("prepare bubblewrap: %w", err)
	}
	for i, p := range s.placements {
		if err := w.place(s, i, p, file, folder); err != nil {
			return nil, err
		}
	}
	w.add("--chdir", "/", "--", helper, lifeSetUp)
	return w, nil
}

func (w *bubble) add(args ...string) { w.args = append(w.args, args...) }

func (w *bubble) place(s *setup, i int, p placement, file, folder string) error {
	info, err := os.Lstat(p.path)
	there := err == nil
	switch p.kind {
	case layered:
		w.refused = append(w.refused, p.path) // left as it is, read-only
	case temporaryLayer, empty:
		if !there {
			return nil
		}
		private := filepath.Join(s.layers, "private"+strconv.Itoa(i))
		if err := errors.Join(os.Mkdir(private, 0o700), unix.Chmod(private, 0o1777)); err != nil {
			return fmt.Errorf("make private folder: %w", err)
		}
		w.add("--bind", private, p.path)
		s.private = append(s.private, p.path)
		if p.kind == temporaryLayer {
			w.refused = append(w.refused, p.path)
		}
	case deaf:
		w.maskSockets(p.path, file, folder)
	case writable, lifted, pinned:
		w.add("--bind", p.path, p.path)
		s.private = append(s.private, p.path)
	case protected:
		if there {
			w.add("--ro-bind", p.path, p.path)
		}
	case linked:
		w.open = append(w.open, p.path) // it would mount what the link leads to
	case masked:
		if !there {
			return nil
		}
		source := file
		if info.IsDir() {
			source = folder
		}
		w.add("--ro-bind", source, p.path)
	}
	return nil
}

// maskSockets hides the sockets of a folder one by one.
func (w *bubble) maskSockets(root, file, folder string) {
	sockets, many := socketsBelow(root)
	if many {
		w.add("--ro-bind", folder, root)
		return
	}
	for _, path := range sockets {
		w.add("--ro-bind", file, path)
	}
}

// socketsBelow finds the sockets of a folder; many says that there are more than
// can be hidden one by one.
func socketsBelow(root string) (sockets []string, many bool) {
	_ = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return fs.SkipDir // what the user cannot list, commands cannot either
		}
		if d.IsDir() && strings.Count(path[len(root):], "/") >= socketDepth {
			return fs.SkipDir
		}
		if d.Type()&fs.ModeSocket != 0 {
			sockets = append(sockets, path)
		}
		return nil
	})
	return sockets, len(sockets) > socketCount
}
