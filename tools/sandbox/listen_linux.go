package sandbox

import (
	"os"
	"slices"
	"strings"
)

// maxListeners bounds how many sockets are hidden, each by a mount. A desktop
// has a few hundred, most of them in folders that are hidden as a whole.
const maxListeners = 1024

// listeners returns the sockets in the tree that programs are bound to now, links
// resolved, and whether these are all. The kernel lists those of this network
// namespace; one of another, as that of the service that manages containers, is
// found by its being mounted.
func listeners() (paths []string, all bool) {
	text, _ := os.ReadFile("/proc/net/unix") // without it, only the known ones are hidden
	paths = boundSockets(string(text))
	if points, err := mountPoints("/"); err == nil {
		for _, p := range points {
			paths = append(paths, p.path)
		}
	}
	seen := map[string]bool{}
	paths = slices.DeleteFunc(paths, func(path string) bool {
		st, err := os.Lstat(path)
		again := seen[path]
		seen[path] = true
		return again || err != nil || st.Mode()&os.ModeSocket == 0 || realPath(path) != path
	})
	return paths[:min(len(paths), maxListeners)], len(paths) <= maxListeners
}

// boundSockets reads "ADDRESS COUNT PROTOCOL FLAGS TYPE STATE INODE PATH". The
// path is as the program gave it, and may hold blanks; an abstract name begins
// with @, and a relative one leads nowhere.
func boundSockets(text string) []string {
	var out []string
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		for range 7 {
			_, line, _ = strings.Cut(strings.TrimLeft(line, " "), " ")
		}
		if strings.HasPrefix(line, "/") {
			out = append(out, line)
		}
	}
	return out
}
