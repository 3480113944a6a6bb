package sandbox

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// cache is a folder in which a tool keeps what it can make anew.
type cache struct {
	path string
	// name is the variable that moves it elsewhere; empty if there is none.
	name string
	// lone is set if the tool still works while the folder is read-only, and
	// would miss what is in it.
	lone bool
}

// caches returns where the tools of a user keep their caches, whether the
// folders exist or not. Temporary folders are not among them.
func caches(environ []string) []cache {
	env := lookup(environ)
	home := env("HOME")
	var out []cache
	add := func(c cache, parts ...string) {
		c.path = filepath.Join(parts...)
		if filepath.IsAbs(c.path) && c.path != "/" && c.path != home {
			out = append(out, c)
		}
	}
	// moved adds a folder that a variable names, or else one below the home.
	moved := func(name string, lone bool, below ...string) {
		if dir := env(name); dir != "" && dir != "off" {
			add(cache{name: name, lone: lone}, dir)
		} else if home != "" && len(below) > 0 {
			add(cache{name: name, lone: lone}, append([]string{home}, below...)...)
		}
	}
	moved("XDG_CACHE_HOME", false, ".cache")
	moved("GOCACHE", false)
	moved("GOTMPDIR", false)
	if gopath, _, _ := strings.Cut(env("GOPATH"), string(filepath.ListSeparator)); gopath != "" && env("GOMODCACHE") == "" {
		add(cache{name: "GOMODCACHE", lone: true}, gopath, "pkg", "mod")
	} else {
		moved("GOMODCACHE", true, "go", "pkg", "mod")
	}
	moved("npm_config_cache", false, ".npm")
	moved("YARN_CACHE_FOLDER", false, ".yarn", "berry", "cache")
	moved("PIP_CACHE_DIR", false)
	moved("UV_CACHE_DIR", false)
	moved("CCACHE_DIR", false, ".ccache")
	moved("NUGET_PACKAGES", true, ".nuget", "packages")
	moved("GRADLE_USER_HOME", false, ".gradle")
	moved("DENO_DIR", false)
	if home == "" {
		return out
	}
	cargo := env("CARGO_HOME")
	if cargo == "" {
		cargo = filepath.Join(home, ".cargo")
	}
	add(cache{lone: true}, cargo, "registry")
	add(cache{lone: true}, cargo, "git")
	for _, name := range []string{
		".m2/repository", ".ivy2", ".sbt", ".local/share/pnpm/store", ".bun/install/cache", ".composer/cache",
		".pub-cache", ".konan", ".stack", ".cabal/packages", ".mix", ".hex", ".node-gyp", "Library/Caches",
	} {
		add(cache{lone: true}, home, name)
	}
	return out
}

// temporary returns the folders for temporary files.
func temporary(environ []string) []string {
	out := []string{"/tmp", "/var/tmp"}
	if dir := lookup(environ)("TMPDIR"); filepath.IsAbs(dir) {
		out = append(out, filepath.Clean(dir))
	}
	return out
}

// Private returns the folders that commands see through a layer of their own:
// what they write there is seen by commands alone, and is gone with the sandbox.
// They are the folders for temporary files and the caches of the user to whom
// the environment belongs, links resolved, none below another.
func Private(environ []string) []string {
	all := append(temporary(environ), "/dev/shm")
	for _, c := range caches(environ) {
		all = append(all, c.path)
	}
	for i, path := range all {
		all[i] = realPath(path)
	}
	all = slices.DeleteFunc(all, func(path string) bool { return path == "/" || !isFolder(path) })
	return outermost(all)
}

// outermost drops what lies below another path.
func outermost(paths []string) []string {
	slices.Sort(paths)
	paths = slices.Compact(paths)
	var out []string
	for _, path := range paths {
		if !belowAny(out, path) {
			out = append(out, path)
		}
	}
	return out
}

// lookup reads an environment; the last of several values counts.
func lookup(environ []string) func(string) string {
	return func(name string) string {
		for i := len(environ) - 1; i >= 0; i-- {
			if v, ok := strings.CutPrefix(environ[i], name+"="); ok {
				return v
			}
		}
		return ""
	}
}

// substitutes are the variables that move caches elsewhere that commands cannot
// write, into a private folder. A command could write a folder that does not
// exist as little as one that gets no layer.
func substitutes(environ []string, folder string, written func(path string) bool) []string {
	var out []string
	for _, c := range caches(environ) {
		path := realPath(c.path)
		there := isFolder(path)
		if c.name == "" || there && written(path) || there && c.lone || !there && written(filepath.Dir(path)) {
			continue
		}
		private := filepath.Join(folder, strings.ToLower(c.name))
		if c.name == "GOTMPDIR" {
			private = "" // it would have to exist; empty is TMPDIR
		}
		out = append(out, c.name+"="+private)
		if c.name == "GRADLE_USER_HOME" && there {
			out = append(out, "GRADLE_RO_DEP_CACHE="+filepath.Join(path, "caches"))
		}
	}
	return out
}

// makePrivate makes a folder that only the user can look into.
func makePrivate(path string) error { return os.MkdirAll(path, 0o700) }
