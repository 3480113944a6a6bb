package policy

import (
	"errors"
	"path"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

// Roots are the folders of a run.
type Roots struct {
	// Workspace is the absolute folder that relative globs are relative to.
	Workspace string
	// Writable are the absolute folders that may be written: the workspace
	// and the added folders. It is empty in read-only mode.
	Writable []string
	// Private are folders that commands see through a private layer: what a
	// command redirects there never reaches the real one. The workspace and the
	// writable folders are none, though they may lie below one.
	Private []string
	// Protected are further absolute folders that are treated like .git, such
	// as the one that a .git file points to.
	Protected []string
	// Home is what ~ stands for.
	Home string
	// Unrestricted says that the sandbox is off, so that no place is outside
	// the writable roots.
	Unrestricted bool
}

// Env is how a policy asks about the world.
type Env struct {
	// LookPath resolves a bare word on the run's fixed PATH to an absolute
	// file, or to an empty string. If it is nil every bare word is found.
	LookPath func(name string) string
	// Real returns the name of an absolute path after symbolic links, also of
	// one that does not exist yet or is not cleaned. RealPath is such a
	// function. If it is nil paths are taken as written.
	Real func(path string) string
}

// foldCase is set where file systems usually ignore case: there a deny rule
// must not care about it.
const foldCase = runtime.GOOS == "darwin" || runtime.GOOS == "windows"

// protectedNames are the folders under each root that nobody writes without
// a rule that names them.
var protectedNames = []string{".git", ".drover", ".agents"}

// maxGlob bounds a glob, because matching takes time with its length.
const maxGlob = 1024

// pathGlob is one glob of a path rule.
type pathGlob struct {
	// text is the glob as written.
	text string
	// relative globs are matched below the workspace.
	relative bool
	// forms are the glob to match, and for an absolute one the same with its
	// folder's real name.
	forms []string
}

// rootSet is Roots with every root in all its names.
type rootSet struct {
	workspace []string
	writable  []string
	private   []string
	protected []string
	lifted    []string
	home      string
	free      bool
	real      func(string) string
}

func newRootSet(r Roots, env Env, addDirs []string) rootSet {
	s := rootSet{home: clean(r.Home), free: r.Unrestricted, real: env.Real}
	s.workspace = s.names(clean(r.Workspace))
	for _, dir := range r.Writable {
		s.writable = append(s.writable, s.names(clean(dir))...)
	}
	if len(r.Writable) > 0 {
		for _, dir := range addDirs {
			s.writable = append(s.writable, s.names(clean(dir))...)
		}
	}
	for _, dir := range r.Private {
		s.private = append(s.private, s.names(clean(dir))...)
	}
	for _, root := range append(append([]string(nil), s.workspace...), s.writable...) {
		for _, name := range protectedNames {
			s.protected = append(s.protected, join(root, name))
		}
	}
	for _, dir := range r.Protected {
		s.protected = append(s.protected, s.names(clean(dir))...)
	}
	return s
}

// names returns a path and, if it differs, its real name.
func (s *rootSet) names(name string) []string {
	if name == "" {
		return nil
	}
	if s.real != nil {
		if real := clean(s.real(name)); real != "" && real != name {
			return []string{name, real}
		}
	}
	return []string{name}
}

// newPathGlob checks and prepares a glob.
func (s *rootSet) newPathGlob(text string) (pathGlob, error) {
	if len(text) > maxGlob {
		return pathGlob{}, errors.New("is too long")
	}
	if text == "" {
		return pathGlob{}, errors.New("is empty")
	}
	if !doublestar.ValidatePattern(text) {
		return pathGlob{}, errors.New("is no glob")
	}
	g := pathGlob{text: text}
	full := strings.TrimSuffix(text, "/")
	if full != text {
		full += "/**"
	}
	switch {
	case text == "~" || strings.HasPrefix(text, "~/"):
		if s.home == "" {
			// Without a home there is nothing below it.
			return g, nil
		}
		full = escapeGlob(s.home) + full[1:]
	case strings.HasPrefix(text, "~"):
		return pathGlob{}, errors.New("names the home of another user")
	case !filepath.IsAbs(filepath.FromSlash(full)):
		return relativeGlob(g, full)
	}
	full = path.Clean(full)
	g.forms = append(g.forms, full)
	base, rest := doublestar.SplitPattern(full)
	if s.real != nil && strings.HasPrefix(base, "/") && !strings.Contains(base, `\`) {
		if real := clean(s.real(base)); real != base && real != "" {
			g.forms = append(g.forms, path.Join(escapeGlob(real), rest))
		}
	}
	return g, nil
}

func relativeGlob(g pathGlob, full string) (pathGlob, error) {
	full = path.Clean(full)
	if full == ".." || strings.HasPrefix(full, "../") || strings.Contains(full, "/../") {
		return pathGlob{}, errors.New("leaves the workspace; write an absolute path")
	}
	g.relative = true
	g.forms = []string{full}
	return g, nil
}

func escapeGlob(name string) string {
	return escape(name, `\*?[{`)
}

// matchPath tells whether the globs match an action's path. To be sure, both
// the written and the real name must match; for a suspicion either will do.
func (s *rootSet) matchPath(globs []pathGlob, a *Action, suspicious bool) bool {
	written := s.matchName(globs, clean(a.Path), suspicious)
	if written == suspicious || a.Real == "" || a.Real == a.Path {
		return written
	}
	return s.matchName(globs, clean(a.Real), suspicious)
}

func (s *rootSet) matchName(globs []pathGlob, name string, suspicious bool) bool {
	for _, g := range globs {
		if s.matchGlob(g, name, suspicious) {
			return true
		}
	}
	return false
}

func (s *rootSet) matchGlob(g pathGlob, name string, suspicious bool) bool {
	fold := foldCase && suspicious
	for _, form := range g.forms {
		if !g.relative {
			if globMatch(form, name, fold) {
				return true
			}
			continue
		}
		for _, root := range s.workspace {
			if rel, ok := relativeTo(root, name, fold); ok && globMatch(form, rel, fold) {
				return true
			}
		}
	}
	return false
}

func globMatch(glob, name string, fold bool) bool {
	if fold {
		glob, name = strings.ToLower(glob), strings.ToLower(name)
	}
	ok, err := doublestar.Match(glob, name)
	return ok && err == nil
}

// inWorkspace tells whether all names of the path are below the workspace.
func (s *rootSet) inWorkspace(a *Action) bool { return s.allBelow(s.workspace, a) }

func (s *rootSet) allBelow(roots []string, a *Action) bool {
	if !belowAny(roots, clean(a.Path)) {
		return false
	}
	return a.Real == "" || belowAny(roots, clean(a.Real))
}

// isPrivate tells whether all names of the path are below a private folder, and
// none is in a place where what is written stays.
func (s *rootSet) isPrivate(a *Action) bool {
	if len(s.private) == 0 || !s.allBelow(s.private, a) {
		return false
	}
	for _, name := range [2]string{a.Path, a.Real} {
		if name = clean(name); name != "" && (belowAny(s.workspace, name) || belowAny(s.writable, name)) {
			return false
		}
	}
	return true
}

// protectedBy returns the protected folder that the path is in, or an empty
// string.
func (s *rootSet) protectedBy(a *Action) string {
	for _, dir := range s.protected {
		for _, name := range [2]string{a.Path, a.Real} {
			if name == "" {
				continue
			}
			if _, ok := relativeTo(dir, clean(name), foldCase); ok {
				return dir
			}
		}
	}
	return ""
}

// names tells whether a glob spells the protected folder out, as ".git/**"
// does and "**" does not.
func (g pathGlob) spells(dir string) bool {
	base := path.Base(dir)
	for part := range strings.SplitSeq(g.text, "/") {
		if part == base {
			return true
		}
	}
	return false
}

func belowAny(roots []string, name string) bool {
	for _, root := range roots {
		if below(root, name) {
			return true
		}
	}
	return false
}

// below tells whether name is root or inside it.
func below(root, name string) bool {
	_, ok := relativeTo(root, name, false)
	return ok
}

// relativeTo returns name relative to root; the root itself is ".".
func relativeTo(root, name string, fold bool) (string, bool) {
	if len(name) < len(root) {
		return "", false
	}
	head := name[:len(root)]
	if head != root && !(fold && strings.EqualFold(head, root)) {
		return "", false
	}
	rest := name[len(root):]
	switch {
	case rest == "":
		return ".", true
	case root == "/":
		return rest, true
	case rest[0] == '/':
		return rest[1:], true
	}
	return "", false
}

func join(dir, name string) string {
	if name != "" && name[0] == '/' {
		return path.Clean(name)
	}
	return path.Join(dir, name)
}

// clean returns a path in the form that is compared: cleaned, with slashes.
func clean(name string) string {
	if name == "" {
		return ""
	}
	return path.Clean(filepath.ToSlash(name))
}
