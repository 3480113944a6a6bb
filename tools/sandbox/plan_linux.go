package sandbox

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"drover/output/fault"
)

// plan decides what commands see and write. It only looks; the helper acts.
func plan(o Options, r Rights) (*setup, []string, error) {
	s := &setup{network: o.Network || r.Network, faults: o.faults}
	var warnings []string
	if err := s.planRoots(o, r); err != nil {
		return nil, nil, err
	}
	s.planProtected(o, r)
	s.planPrivate(o.Environ)
	warnings = append(warnings, s.planSockets(o.Environ)...)
	warnings = append(warnings, s.planMasks(o, r)...)
	s.planPins()
	s.order()
	return s, warnings, nil
}

func (s *setup) add(kind placementKind, path string) {
	s.placements = append(s.placements, placement{kind, path})
}

// of returns the paths of one kind.
func (s *setup) of(kinds ...placementKind) []string {
	var out []string
	for _, p := range s.placements {
		if slices.Contains(kinds, p.kind) {
			out = append(out, p.path)
		}
	}
	return out
}

func (s *setup) planRoots(o Options, r Rights) error {
	for _, path := range o.Writable {
		real := realPath(path)
		if !exists(real) {
			return missing(path)
		}
		s.whole = s.whole || real == "/"
		s.add(writable, real)
	}
	for _, path := range r.Write {
		real := realPath(path)
		if exists(real) {
			s.whole = s.whole || real == "/"
			s.add(lifted, real)
			for _, dir := range gitFolders(real) {
				s.add(lifted, realPath(dir))
			}
			continue
		}
		// What lies below a root can be made there.
		if !belowAny(s.of(writable), real) {
			return missing(path)
		}
	}
	return nil
}

func missing(path string) error {
	return &fault.Error{
		Code: "writable_missing", What: fmt.Sprintf("make %q writable for commands", path), Why: "it does not exist",
		Fix: "create it first, or leave it out", Exit: fault.Environment,
	}
}

func (s *setup) planProtected(o Options, r Rights) {
	free := s.of(lifted)
	protect := func(path string) {
		if exists(path) && !slices.Contains(free, path) {
			s.add(protected, path)
		}
	}
	for _, path := range o.Protected {
		// The folder may be reached through a link, the name itself counts.
		named := filepath.Join(realPath(filepath.Dir(path)), filepath.Base(path))
		real := realPath(path)
		if real != named && belowAny(s.of(writable), named) && !belowAny(free, named) && exists(named) {
			s.add(linked, named)
		}
		protect(real)
		if slices.Contains(free, real) {
			continue
		}
		for _, dir := range gitFolders(real) {
			protect(realPath(dir))
		}
	}
}

// planPins pins the folders between a root and what is protected in it. A folder
// with a placement of its own cannot be moved anyway, and what lies in a layer
// or in a protected folder is not the real one.
func (s *setup) planPins() {
	placed := map[string]placementKind{}
	for _, p := range s.placements {
		placed[p.path] = max(placed[p.path], p.kind)
	}
	around := func(dir string) placementKind {
		for ; dir != "/"; dir = filepath.Dir(dir) {
			if _, found := placed[dir]; found {
				break
			}
		}
		return placed[dir]
	}
	for _, path := range s.of(protected, linked) {
		for dir := filepath.Dir(path); dir != "/"; dir = filepath.Dir(dir) {
			kind := around(dir)
			if _, own := placed[dir]; !own && (kind == writable || kind == lifted) {
				s.add(pinned, dir)
			}
		}
	}
}

// planPrivate plans the layers. A folder in another one needs none of its own,
// unless a root lies between them.
func (s *setup) planPrivate(environ []string) {
	roots := s.of(writable, lifted)
	var over, brief []string
	for _, path := range temporary(environ) {
		brief = append(brief, realPath(path))
	}
	over = append(over, brief...)
	for _, c := range caches(environ) {
		over = append(over, realPath(c.path))
	}
	slices.SortFunc(over, func(a, b string) int { return cmp.Or(depth(a)-depth(b), strings.Compare(a, b)) })
	if shm := realPath("/dev/shm"); isFolder(shm) && !slices.Contains(roots, shm) {
		s.add(empty, shm)
	}
	for _, path := range slices.Compact(over) {
		if path == "/" || !isFolder(path) || slices.Contains(roots, path) {
			continue
		}
		if around := innermost(s.of(layered, temporaryLayer, empty), path); around == "" || belowAny(roots, path) && len(innermost(roots, path)) > len(around) {
			kind := layered
			if slices.Contains(brief, path) {
				kind = temporaryLayer
			}
			s.add(kind, path)
		}
	}
}

// planSockets takes the sockets of other programs away: many of them run
// commands for whoever connects, as the service managers and containers do.
func (s *setup) planSockets(environ []string) (warnings []string) {
	env := lookup(environ)
	folders := []string{"/run", "/var/run"}
	if dir := env("XDG_RUNTIME_DIR"); filepath.IsAbs(dir) {
		folders = append(folders, dir)
	}
	for i := range folders {
		folders[i] = realPath(folders[i])
	}
	private := s.of(layered, temporaryLayer, empty, writable, lifted)
	for _, path := range outermost(folders) {
		if path != "/" && isFolder(path) && !belowAny(private, path) {
			s.add(deaf, path)
		}
	}
	hidden := s.of(deaf, layered, temporaryLayer, empty)
	listening, all := listeners()
	if !all {
		warnings = append(warnings, fmt.Sprintf("more than %d sockets of other programs: commands can reach some of them", maxListeners))
	}
	for _, path := range listening {
		// What listens in the workspace belongs to what is worked on.
		if !belowAny(private, path) && !belowAny(s.of(deaf), path) {
			s.add(masked, path)
		}
	}
	for _, path := range sockets(env) {
		if st, err := os.Stat(path); err == nil && st.Mode()&os.ModeSocket != 0 {
			if real := realPath(path); !belowAny(hidden, real) {
				s.add(masked, real)
			}
		}
	}
	return warnings
}

// sockets are where programs listen that serve whoever connects.
func sockets(env func(string) string) []string {
	out := []string{env("SSH_AUTH_SOCK")}
	for _, name := range []string{"DOCKER_HOST", "CONTAINER_HOST", "DBUS_SESSION_BUS_ADDRESS"} {
		_, path, _ := strings.Cut(env(name), "unix:")
		path, _, _ = strings.Cut(strings.TrimPrefix(path, "path="), ",")
		out = append(out, strings.TrimPrefix(path, "//"))
	}
	if home := env("HOME"); home != "" {
		for _, glob := range []string{
			".docker/run/*.sock", ".docker/desktop/*.sock", ".colima/*/*.sock", ".rd/*.sock", ".orbstack/run/*.sock",
			".gnupg/S.*", ".lima/*/sock/*.sock", ".local/share/containers/podman/machine/*.sock",
		} {
			found, _ := filepath.Glob(filepath.Join(escapeGlob(home), glob)) // the patterns are fine
			out = append(out, found...)
		}
	}
	return slices.DeleteFunc(out, func(path string) bool { return !filepath.IsAbs(path) })
}

func (s *setup) planMasks(o Options, r Rights) (warnings []string) {
	roots := o.Writable
	if o.Cwd != "" && !slices.Contains(roots, o.Cwd) {
		roots = append(slices.Clone(roots), o.Cwd)
	}
	paths, unfinished := denied(o.DenyRead, roots, lookup(o.Environ)("HOME"))
	var free []string
	for _, path := range r.Read {
		free = append(free, realPath(path))
	}
	for _, path := range paths {
		if !belowAny(free, path) {
			s.add(masked, path)
		}
	}
	for _, glob := range unfinished {
		warnings = append(warnings, fmt.Sprintf("deny_read %q: more than %d files, so commands may read some that it names", glob, maxLooked))
	}
	return warnings
}

// order sorts the placements so that what lies deeper is made later.
func (s *setup) order() {
	slices.SortFunc(s.placements, func(a, b placement) int {
		return cmp.Or(depth(a.path)-depth(b.path), strings.Compare(a.path, b.path), int(a.kind-b.kind))
	})
	s.placements = slices.Compact(s.placements)
}
