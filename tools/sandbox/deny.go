package sandbox

import (
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

// maxLooked bounds how many names are looked at to find the files that globs
// name. A workspace has fewer, a disk more.
const maxLooked = 200_000

// denied returns the files and folders that globs name now, links resolved, and
// the globs for which not everything could be looked through. Relative globs
// count from every root. What a glob names only later is no business of the
// sandbox: the mount of a file that does not exist has no place.
func denied(globs, roots []string, home string) (paths, unfinished []string) {
	s := denySearch{left: maxLooked, seen: map[string]bool{}}
	for _, glob := range globs {
		s.cut = false
		for _, full := range fullGlobs(glob, roots, home) {
			s.search(full)
		}
		if s.cut {
			unfinished = append(unfinished, glob)
		}
	}
	return s.found, unfinished
}

func fullGlobs(glob string, roots []string, home string) []string {
	slash := strings.HasSuffix(glob, "/")
	switch {
	case glob == "~" || strings.HasPrefix(glob, "~/"):
		if home == "" {
			return nil
		}
		glob = escapeGlob(home) + glob[1:]
	case !filepath.IsAbs(glob):
		var out []string
		for _, root := range roots {
			out = append(out, fullGlobs(escapeGlob(root)+"/"+glob, nil, home)...)
		}
		return out
	}
	glob = filepath.Clean(glob)
	if slash && glob != "/" {
		glob += "/**"
	}
	return []string{glob}
}

func escapeGlob(name string) string {
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`, "{", `\{`).Replace(name)
}

// unescapeGlob undoes escapeGlob.
func unescapeGlob(glob string) string {
	var b strings.Builder
	for i := 0; i < len(glob); i++ {
		if glob[i] == '\\' && i+1 < len(glob) {
			i++
		}
		b.WriteByte(glob[i])
	}
	return b.String()
}

type denySearch struct {
	found []string
	seen  map[string]bool
	left  int
	cut   bool
}

func (s *denySearch) add(path string) {
	if real, err := filepath.EvalSymlinks(path); err == nil && !s.seen[real] && real != "/" {
		s.seen[real] = true
		s.found = append(s.found, real)
	}
}

// search finds what one absolute glob names. A folder whose whole content is
// named is found itself.
func (s *denySearch) search(glob string) {
	whole, all := strings.CutSuffix(glob, "/**")
	base, rest := doublestar.SplitPattern(glob)
	if all {
		base, rest = doublestar.SplitPattern(whole)
	}
	base = unescapeGlob(base)
	if !strings.ContainsAny(rest, `*?[{\`) {
		s.add(filepath.Join(base, rest))
		return
	}
	real, err := filepath.EvalSymlinks(base)
	if err != nil {
		return // nothing is there
	}
	_ = filepath.WalkDir(real, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return fs.SkipDir // what the user cannot list, commands cannot either
		}
		if s.left--; s.left < 0 {
			s.cut = true
			return fs.SkipAll
		}
		name := filepath.Join(base, strings.TrimPrefix(path, real))
		if matches(glob, name) && path != real || all && d.IsDir() && matches(whole, name) {
			s.add(path)
			if d.IsDir() {
				return fs.SkipDir
			}
		}
		return nil
	})
}

func matches(glob, name string) bool {
	ok, err := doublestar.Match(glob, name)
	return ok && err == nil
}
