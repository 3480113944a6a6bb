package tools

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"drover/tools/policy"
)

// Files is the file system as the file tools may touch it. Reading is left to
// the policy; writing happens only beneath the writable roots, through handles
// that were opened when the run began, so that a link swapped in between the
// check and the write leads nowhere.
type Files struct {
	// cwd is the session's folder as given, real the same after symlinks.
	cwd, real string
	// mu guards roots, to which what was granted is added.
	mu           sync.RWMutex
	roots        []fileRoot
	unrestricted bool
	lifted       func(path string) bool
}

type fileRoot struct {
	// written is the folder as given, real the same after symlinks.
	written, real string
	handle        *os.Root
	// file is the name of the one file below handle that may be written, real
	// then being that file; empty is everything.
	file string
}

// FilesOptions say where a run may write.
type FilesOptions struct {
	// Cwd is the session's folder.
	Cwd string
	// Writable are the roots below which files may be written; none means
	// that nothing may.
	Writable []string
	// Unrestricted lifts the roots (the sandbox is off); the policy alone
	// decides then.
	Unrestricted bool
	// Lifted tells that a rule lifts the protection of a path in a protected
	// folder; nil lifts none.
	Lifted func(path string) bool
}

// Protected are the folders below a writable root that stay read-only: they
// steer git, drover and other agents.
var Protected = []string{".git", ".drover", ".agents"}

// Errors of Files that callers branch on.
var (
	// ErrOutside is a write outside the writable roots.
	ErrOutside = errors.New("outside the writable folders")
	// ErrProtected is a write into a protected folder.
	ErrProtected = errors.New("in a protected folder")
)

// OpenFiles opens the writable roots.
func OpenFiles(o FilesOptions) (*Files, error) {
	f := &Files{cwd: o.Cwd, real: policy.RealPath(o.Cwd), unrestricted: o.Unrestricted, lifted: o.Lifted}
	for _, dir := range o.Writable {
		real, err := filepath.EvalSymlinks(dir)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("open writable folder: %w", err), f.Close())
		}
		handle, err := os.OpenRoot(real)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("open writable folder: %w", err), f.Close())
		}
		f.roots = append(f.roots, fileRoot{written: filepath.Clean(dir), real: real, handle: handle})
	}
	return f, nil
}

// AddWritable adds a folder, or a file, to what may be written; a missing one is
// taken for a file. Protected names below it stay read-only. What may be
// written already is not added again.
func (f *Files) AddWritable(path string) error {
	real := f.Real(path)
	root := fileRoot{written: f.Abs(path), real: real}
	dir := real
	if info, err := os.Stat(real); err != nil || !info.IsDir() {
		dir, root.file = filepath.Dir(real), filepath.Base(real)
	}
	handle, err := os.OpenRoot(dir)
	if err != nil {
		return fmt.Errorf("open writable folder: %w", err)
	}
	root.handle = handle
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, r := range f.roots {
		if r.real == root.real && r.file == root.file {
			return handle.Close()
		}
	}
	f.roots = append(f.roots, root)
	return nil
}

// Close closes the roots.
func (f *Files) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	var errs []error
	for _, r := range f.roots {
		errs = append(errs, r.handle.Close())
	}
	return errors.Join(errs...)
}

// Abs returns path as an absolute, cleaned path; a relative one is taken from
// the session's folder.
func (f *Files) Abs(path string) string {
	if !filepath.IsAbs(path) {
		path = filepath.Join(f.cwd, path)
	}
	return filepath.Clean(path)
}

// Rel returns path as people should see it: relative to the session's folder
// if it lies below, with forward slashes.
func (f *Files) Rel(path string) string {
	abs := f.Abs(path)
	for _, dir := range []string{f.cwd, f.real} {
		if rel, ok := below(dir, abs); ok {
			return filepath.ToSlash(rel)
		}
	}
	return filepath.ToSlash(abs)
}

// Real returns the absolute path after all symlinks, as the policy sees it.
func (f *Files) Real(path string) string { return policy.RealPath(f.Abs(path)) }

// ReadAction, WriteAction and DeleteAction are the actions of touching path,
// under its written and its real name.
func (f *Files) ReadAction(path string) policy.Action {
	return policy.Read(f.Abs(path), f.Real(path))
}

// WriteAction is the action of creating or changing path.
func (f *Files) WriteAction(path string) policy.Action {
	return policy.Write(f.Abs(path), f.Real(path))
}

// DeleteAction is the action of removing path. A link is removed itself, so
// only its folder is resolved.
func (f *Files) DeleteAction(path string) policy.Action {
	abs := f.Abs(path)
	return policy.Delete(abs, filepath.Join(f.Real(filepath.Dir(abs)), filepath.Base(abs)))
}

// ReadFile reads a whole file.
func (f *Files) ReadFile(path string) ([]byte, error) { return os.ReadFile(f.Abs(path)) }

// Lstat describes a file without following a link at its end.
func (f *Files) Lstat(path string) (fs.FileInfo, error) { return os.Lstat(f.Abs(path)) }

// ReadDir lists a folder.
func (f *Files) ReadDir(path string) ([]fs.DirEntry, error) { return os.ReadDir(f.Abs(path)) }

// WriteFile replaces or creates a file as a whole, with a temporary file and a
// rename, creating missing folders. A link at path is followed within the
// roots. An existing file keeps its mode; a new one gets 0666 less the umask
// if mode is 0.
func (f *Files) WriteFile(path string, data []byte, mode fs.FileMode) error {
	place, err := f.place(path)
	if err != nil {
		return err
	}
	if mode == 0 {
		mode = 0o666
	}
	if info, err := place.stat(); err == nil {
		if info.IsDir() {
			return &fs.PathError{Op: "write", Path: path, Err: errors.New("is a directory")}
		}
		mode = info.Mode().Perm()
	}
	return place.replace(data, mode)
}

// Mkdir creates a folder and its missing parents and returns the ones it
// created, outermost first.
func (f *Files) Mkdir(path string) (created []string, err error) {
	abs := f.Abs(path)
	for dir := abs; ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(dir); err == nil || filepath.Dir(dir) == dir {
			break
		}
		created = append([]string{dir}, created...)
	}
	place, err := f.place(path)
	if err != nil {
		return nil, err
	}
	return created, place.mkdirAll()
}

// Remove removes a file, a link or an empty folder.
func (f *Files) Remove(path string) error {
	abs := f.Abs(path)
	place, err := f.placeReal(abs, filepath.Join(f.Real(filepath.Dir(abs)), filepath.Base(abs)))
	if err != nil {
		return err
	}
	return place.remove()
}

// place finds where a write to path goes, or refuses it.
func (f *Files) place(path string) (place, error) {
	abs := f.Abs(path)
	return f.placeReal(abs, f.Real(abs))
}

func (f *Files) placeReal(abs, real string) (place, error) {
	f.mu.RLock()
	roots := f.roots // it only grows, and what is in it stays
	f.mu.RUnlock()
	for _, r := range roots {
		rel, ok := below(r.real, real)
		if !ok || r.file != "" && rel != "." {
			continue
		}
		if r.file != "" {
			return place{root: r.handle, rel: r.file}, nil
		}
		if name := protectedIn(rel); name != "" && (f.lifted == nil || !f.lifted(abs)) {
			return place{}, &fs.PathError{Op: "write", Path: f.Rel(abs), Err: fmt.Errorf("%w (%s)", ErrProtected, name)}
		}
		return place{root: r.handle, rel: rel}, nil
	}
	if f.unrestricted {
		return place{rel: real}, nil
	}
	return place{}, &fs.PathError{Op: "write", Path: f.Rel(abs), Err: ErrOutside}
}

// protectedIn returns the protected folder that a path below a root lies in.
// Names are compared without case, because some file systems do so.
func protectedIn(rel string) string {
	first, _, _ := strings.Cut(filepath.ToSlash(rel), "/")
	for _, p := range Protected {
		if strings.EqualFold(first, p) {
			return p
		}
	}
	return ""
}

// below returns abs relative to dir if it is dir or lies below it.
func below(dir, abs string) (string, bool) {
	if abs == dir {
		return ".", true
	}
	rest, ok := strings.CutPrefix(abs, strings.TrimSuffix(dir, "/")+"/")
	return rest, ok
}
