package search

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// maxIgnoreBytes bounds an ignore file; the rest of a longer one is not read.
const maxIgnoreBytes = 4 << 20

// rules are the patterns of one ignore file and, through up, those that are
// asked when none of them matches: the files of the folders above, then the
// exclude file of the repository, then that of the user.
type rules struct {
	up *rules
	// base is where a path relative to the folder of the file starts within
	// an absolute path.
	base     int
	patterns []pattern
	// fold compares without case, for this file and those below it.
	fold bool
}

// ignored tells whether a path is ignored. The folders above it are not looked
// at: who walks does not enter an ignored folder.
func (r *rules) ignored(abs string, dir bool) bool {
	name := abs[strings.LastIndexByte(abs, filepath.Separator)+1:]
	for ; r != nil; r = r.up {
		path := filepath.ToSlash(abs[r.base:])
		for i := len(r.patterns) - 1; i >= 0; i-- {
			if p := &r.patterns[i]; p.match(path, name, dir) {
				return !p.negated
			}
		}
	}
	return false
}

// with returns the rules that also hold the patterns of an ignore file, whose
// paths are relative to the folder dir.
func (r *rules) with(text []byte, dir string) *rules {
	next := &rules{up: r, base: len(under(dir, "")), fold: r != nil && r.fold}
	next.patterns = parsePatterns(text, next.fold)
	if len(next.patterns) == 0 {
		return r
	}
	return next
}

func parsePatterns(text []byte, fold bool) []pattern {
	var out []pattern
	text = bytes.TrimPrefix(text, []byte("\xef\xbb\xbf"))
	for len(text) > 0 {
		var line []byte
		line, text, _ = bytes.Cut(text, []byte("\n"))
		if p, ok := parsePattern(string(bytes.TrimSuffix(line, []byte("\r"))), fold); ok {
			out = append(out, p)
		}
	}
	return out
}

// under joins a cleaned folder and a name without the cost of cleaning.
func under(dir, name string) string {
	if strings.HasSuffix(dir, string(filepath.Separator)) {
		return dir + name
	}
	return dir + string(filepath.Separator) + name
}

// readIgnore reads an ignore or configuration file; one that cannot be read is
// empty, as it is to git. Only regular files are opened.
func readIgnore(path string) []byte {
	f, _, err := open(path)
	if err != nil {
		return nil
	}
	return f.ignoreText()
}

func (f file) ignoreText() []byte {
	defer f.close()
	text, err := io.ReadAll(io.LimitReader(f, maxIgnoreBytes))
	if err != nil {
		return nil
	}
	return text
}

// repository is where git keeps its own ignore rules.
type repository struct {
	// top is the folder that holds ".git".
	top string
	// common is the folder with info/exclude and config: ".git", or for a
	// linked work tree that of the main one.
	common string
}

// repositoryAt returns the repository whose top is dir.
func repositoryAt(dir string) (repository, bool) {
	git := under(dir, ".git")
	info, err := os.Stat(git)
	if err != nil {
		return repository{}, false
	}
	if !info.IsDir() {
		to, ok := strings.CutPrefix(string(readIgnore(git)), "gitdir: ")
		if !ok {
			return repository{}, false
		}
		git = resolve(dir, strings.TrimRight(to, "\r\n"))
	}
	if _, err := os.Lstat(under(git, "HEAD")); err != nil {
		return repository{}, false
	}
	common := git
	if to := strings.TrimRight(string(readIgnore(under(git, "commondir"))), "\r\n"); to != "" {
		common = resolve(git, to)
	}
	return repository{top: dir, common: common}, true
}

// repositoryAbove returns the repository that dir lies in.
func repositoryAbove(dir string) (repository, bool) {
	for {
		if repo, ok := repositoryAt(dir); ok {
			return repo, true
		}
		up := filepath.Dir(dir)
		if up == dir {
			return repository{}, false
		}
		dir = up
	}
}

// rules returns the rules that hold in the whole repository.
func (r repository) rules(env environment) *rules {
	config := env.gitConfig(under(r.common, "config"))
	base := &rules{base: len(under(r.top, "")), fold: config.isTrue("core.ignorecase")}
	if path := env.excludesFile(config, r.top); path != "" {
		base.patterns = parsePatterns(readLinked(path), base.fold)
	}
	return base.with(readLinked(filepath.Join(r.common, "info", "exclude")), r.top)
}

// readLinked reads a file that may be a link, unlike an ignore file inside a
// work tree.
func readLinked(path string) []byte {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return nil
	}
	return readIgnore(real)
}

func resolve(dir, path string) string {
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(dir, path)
}

// rulesAbove returns the rules that hold for a folder because of the folders
// above it, and whether they ignore the folder itself or one above it.
func rulesAbove(dir string, env environment) (r *rules, ignored bool) {
	repo, ok := repositoryAbove(dir)
	if !ok {
		return nil, false
	}
	r = repo.rules(env)
	at := repo.top
	rest := strings.TrimPrefix(dir[len(repo.top):], string(filepath.Separator))
	for rest != "" {
		r = r.with(readIgnore(under(at, ".gitignore")), at)
		var name string
		name, rest, _ = strings.Cut(rest, string(filepath.Separator))
		if name == ".git" {
			return nil, true // git's own files know no rules
		}
		if at = under(at, name); r.ignored(at, true) {
			return nil, true
		}
	}
	return r, false
}
