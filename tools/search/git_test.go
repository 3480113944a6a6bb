package search

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// gitRepo is a repository in which git itself says what it ignores.
type gitRepo struct {
	t   *testing.T
	dir string
	env []string
}

func newGitRepo(t *testing.T) *gitRepo {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed: nothing to compare with")
	}
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	g := &gitRepo{t: t, dir: filepath.Join(dir, "repo"), env: []string{
		"HOME=" + filepath.Join(dir, "home"), "PATH=" + os.Getenv("PATH"), "GIT_CONFIG_NOSYSTEM=1", "LC_ALL=C",
	}}
	write(t, dir, map[string]string{"home/": "", "repo/": ""})
	g.git("init", "-q", ".")
	return g
}

func (g *gitRepo) git(args ...string) string {
	g.t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir, cmd.Env = g.dir, g.env
	out, err := cmd.Output()
	if err != nil {
		g.t.Fatalf("git %s: %v", strings.Join(args, " "), err)
	}
	return string(out)
}

// listed are the files that git does not ignore.
func (g *gitRepo) listed() []string {
	out := strings.Split(strings.TrimSuffix(g.git("ls-files", "-co", "--exclude-standard", "-z"), "\x00"), "\x00")
	slices.Sort(out)
	return out
}

// searched are the files that Search does not ignore: each holds "content".
func (g *gitRepo) searched() []string {
	return paths(search(g.t, Options{Root: g.dir, Query: "content", Environ: g.env}))
}

func paths(r Result) []string {
	var out []string
	for _, l := range r.Lines {
		if l.Match {
			out = append(out, l.Path)
		}
	}
	return slices.Compact(out)
}

// write creates files below dir; a name that ends in "/" is a folder.
func write(tb testing.TB, dir string, files map[string]string) {
	tb.Helper()
	for name, text := range files {
		path := filepath.Join(dir, name)
		folder := filepath.Dir(path)
		if strings.HasSuffix(name, "/") {
			folder = path
		}
		if err := os.MkdirAll(folder, 0o755); err != nil {
			tb.Fatal(err)
		}
		if folder == path {
			continue
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			tb.Fatal(err)
		}
	}
}

// trickyPatterns is one ignore file for each case, beside the same tree.
var trickyPatterns = []string{
	"*.log", "*.log\n!keep.log", "!keep.log\n*.log", "/top.txt", "top.txt", "sub/top.txt", "/sub/*.txt",
	"sub/", "sub/*", "sub/**", "**/deep", "**/deep/**", "/**/deep", "sub/**/deep", "sub/**/x.txt", "a**/x.txt", "s**/x.txt", "**b/x.txt",
	"s*b/x.txt", "sub/*/x.txt", "*/x.txt", "*/*/x.txt", "**", "*", "*\n!*/", "*\n!*/\n!*.txt", "/*\n!/sub", "/*\n!/sub\n/sub/*\n!/sub/deep",
	"sub\n!sub/x.txt", "[ab].txt", "[!ab].txt", "[^ab].txt", "[a-c].txt", "[]x].txt", "[!]x].txt", "[a-].txt", "[]-a].txt", "[[:digit:]].txt",
	"[[:alpha:]-]*.txt", "[[:nope:]].txt", "[[:x].txt", "[a", "[", `[\]].txt`, `[\a-\c].txt`, "[z-a].txt", "x.txt[", "?.txt", "??.txt", "é.txt", "?é.txt", "??\u00e9",
	`\#hash`, "#hash", `\!bang`, "!bang", "\\!bang\n!!bang", "spaced\\ ", "spaced ", "spaced  ", "spaced\\  ", "spaced\\", " lead", "in side.txt", "tab\t", "crlf.txt\r\nx.txt\r\n",
	"\ufeffx.txt", "foo\\*bar", "foo*bar", "foo\\", "\\f\\o\\o*", "/", "//top.txt", "sub//x.txt", "./top.txt", "sub/./x.txt", "../top.txt", "sub/deep/", "deep/", "/deep/",
	"top.txt/", "link/", "link", "sub/deep\n!sub/deep/x.txt", "**/", "/**", "/**/", "sub/**/", "**/sub/**/x.txt", "**/**/x.txt", "a\x00b", "*.t?t", "*.[t]xt", "***.txt", "s***b/x.txt", "sub/***",
	"sub/**deep/x.txt", "sub/**\\/x.txt", "**/deep\\/x.txt", "*[.]txt", "*x*t", "UPPER.TXT", "upper.txt", "[A-Z]*.TXT", ".*", ".hid*\n!.hidden", "*hidden", "x.txt\n\n\n  \n#", "!*", "!/sub/\n/sub/",
	"/sub[/]x.txt", "sub?x.txt", "sub[!a]x.txt", "**sub/deep/x.txt", "/*/**/x.txt", "x.txt ", "x.txt\t", "*/", "!*/\n*",
}

// trickyFiles are the paths of the tree; all are tried with all patterns.
var trickyFiles = []string{
	"top.txt", "x.txt", "a.txt", "b.txt", "].txt", "-.txt", "1.txt", "[.txt", "[:x.txt", "é.txt", "aé.txt", "keep.log", "err.log", "sub/top.txt", "sub/x.txt", "sub/keep.log",
	"sub/deep/x.txt", "sub/deep/deeper/x.txt", "sub/deep/.hidden", "subb/x.txt", "ab/x.txt", "a/b/x.txt", "a/x.txt", "deep/x.txt", "deep/sub/x.txt", "#hash", "!bang", "!!bang", "spaced", "spaced ", "spaced  ",
	" lead", "in side.txt", "tab", "tab\t", "crlf.txt", "x.txt\r", "foo*bar", "fooxbar", `foo\`, `foo\bar`, "foo", ".hidden", ".hid", "UPPER.TXT", "upper.txt", "new\nline.txt", "z/top.txt/x.txt",
}

func TestIgnoresWhatGitIgnores(t *testing.T) {
	g := newGitRepo(t)
	files := map[string]string{}
	for i, pattern := range trickyPatterns {
		folder := fmt.Sprintf("case%03d/", i)
		for _, f := range trickyFiles {
			files[folder+f] = "content\n"
		}
		files[folder+".gitignore"] = pattern
	}
	write(t, g.dir, files)
	for i := range trickyPatterns {
		if err := os.Symlink("sub", filepath.Join(g.dir, fmt.Sprintf("case%03d", i), "link")); err != nil {
			t.Fatal(err)
		}
	}
	want := map[string][]string{}
	for _, path := range g.listed() {
		folder, rest, _ := strings.Cut(path, "/")
		if rest != ".gitignore" && rest != "link" {
			want[folder] = append(want[folder], rest)
		}
	}
	got := map[string][]string{}
	for _, path := range g.searched() {
		folder, rest, _ := strings.Cut(path, "/")
		got[folder] = append(got[folder], rest)
	}
	for i, pattern := range trickyPatterns {
		folder := fmt.Sprintf("case%03d", i)
		if diff := cmp.Diff(want[folder], got[folder]); diff != "" {
			t.Errorf("pattern %q: - git + search\n%s", pattern, diff)
		}
	}
}

func TestAsksEveryIgnoreFileThatGitAsks(t *testing.T) {
	g := newGitRepo(t)
	write(t, g.dir, map[string]string{
		"../home/.gitconfig":       "[user]\n\tname = \"a ; b\" # c\n[include]\n\tpath = more.cfg\n[core]\n\tpager = x\n",
		"../home/more.cfg":         "[CORE]\n\texcludesFile = ~/globally \\\nignored # why\n",
		"../home/globally ignored": "*.global\n!not.global\n*.shared\n",
		".git/info/exclude":        "*.private\n!kept.shared\n/sub/*.both\n",
		".gitignore":               "*.top\n!important.private\nbuild/\n/sub/inner/*.x\n",
		"sub/.gitignore":           "!again.top\n*.sub\n!*.both\n/inner/only.txt\n",
		"sub/inner/.gitignore":     "!only.txt\n!kept.x\n",
		"build/.gitignore":         "!*\n",
		"build/out.txt":            "content", "sub/build/out.txt": "content", "sub/inner/build": "content",
		"a.global": "content", "not.global": "content", "sub/b.global": "content", "c.shared": "content", "kept.shared": "content",
		"a.private": "content", "important.private": "content", "sub/important.private": "content",
		"a.top": "content", "sub/again.top": "content", "again.top": "content", "a.sub": "content", "sub/a.sub": "content",
		"sub/a.both": "content", "sub/inner/only.txt": "content", "sub/inner/kept.x": "content", "sub/inner/gone.x": "content", "plain": "content",
	})
	compareListed(t, g)

	t.Run("from a folder inside", func(t *testing.T) {
		got := paths(search(t, Options{Root: filepath.Join(g.dir, "sub", "inner"), Query: "content", Environ: g.env}))
		if diff := cmp.Diff([]string{"build", "kept.x", "only.txt"}, got); diff != "" {
			t.Errorf("want - got +\n%s", diff)
		}
	})
	t.Run("the default file", func(t *testing.T) {
		write(t, g.dir, map[string]string{"../home/.gitconfig": "", "../home/.config/git/ignore": "plain\n*.top\n"})
		compareListed(t, g)
	})
	t.Run("without case", func(t *testing.T) {
		g.git("config", "core.ignorecase", "true")
		write(t, g.dir, map[string]string{"PLAIN": "content", "A.Top": "content", "Build/x": "content", "sub/aXb": "content", "sub/axb": "content",
			"sub/.gitignore": "A[X]b\n[[:upper:]]*.txt\n[A-C]?.md\n", "sub/lower.txt": "content", "sub/b1.md": "content", "sub/B1.md": "content"})
		compareListed(t, g)
	})
}

func TestLinkedWorkTreeAsksTheMainOne(t *testing.T) {
	g := newGitRepo(t)
	write(t, g.dir, map[string]string{"f": "content", ".git/info/exclude": "*.private\n"})
	g.git("add", "f")
	g.git("-c", "user.name=n", "-c", "user.email=e", "commit", "-q", "-m", "m")
	g.git("worktree", "add", "-q", "../linked")
	g.dir = filepath.Join(filepath.Dir(g.dir), "linked")
	write(t, g.dir, map[string]string{"a.private": "content", "b": "content"})
	compareListed(t, g)
}

func compareListed(t *testing.T, g *gitRepo) {
	t.Helper()
	want := slices.DeleteFunc(g.listed(), func(path string) bool { return filepath.Base(path) == ".gitignore" })
	if diff := cmp.Diff(want, g.searched()); diff != "" {
		t.Errorf("- git + search\n%s", diff)
	}
}

// Random ignore files over a random tree, many folders for one call of git.
func TestIgnoresWhatGitIgnoresAtRandom(t *testing.T) {
	g := newGitRepo(t)
	random := rand.New(rand.NewPCG(1, 2))
	pick := func(from []string, most int) string {
		var b strings.Builder
		for range 1 + random.IntN(most) {
			b.WriteString(from[random.IntN(len(from))])
		}
		return b.String()
	}
	names := []string{"a", "b", "aa", "ab", "ba", "a.b", "b.a", "-", "[", "a b", `\`, "A", "aab", "bab"}
	bits := []string{"a", "b", "a", "b", "*", "**", "?", "/", "/", "[ab]", "[!a]", "[^b-]", "[a-b]", ".", " ", `\`, "!", "#", "[", "]", "[[:alpha:]]", "-", "**/", "/**", "A"}
	patterns := map[string]string{}
	for i := range 150 {
		folder := fmt.Sprintf("r%03d/", i)
		files := map[string]string{}
		for range 1 + random.IntN(3) {
			for _, dir := range []string{"", "a/", "b/"} {
				if random.IntN(3) > 0 && dir != "" {
					continue
				}
				files[folder+dir+".gitignore"] += pick(bits, 6) + "\n"
			}
		}
		for name, text := range files {
			patterns[folder] += fmt.Sprintf("%s: %q ", name, text)
		}
		for range 20 {
			path := names[random.IntN(len(names))]
			for range random.IntN(4) {
				path = []string{"a", "b", "ab", "a b"}[random.IntN(4)] + "/d" + path
			}
			files[folder+path] = "content\n"
		}
		for _, path := range []string{"a/a", "a/b/a", "b/b", "b/a/ab"} {
			files[folder+path+".f"] = "content\n"
		}
		writeWhatFits(t, g.dir, files)
	}
	want, got := map[string][]string{}, map[string][]string{}
	for _, path := range g.listed() {
		if filepath.Base(path) != ".gitignore" {
			want[path[:5]] = append(want[path[:5]], path[5:])
		}
	}
	for _, path := range g.searched() {
		got[path[:5]] = append(got[path[:5]], path[5:])
	}
	for folder, text := range patterns {
		if diff := cmp.Diff(want[folder], got[folder]); diff != "" {
			t.Errorf("%s: - git + search\n%s", text, diff)
		}
	}
}

// writeWhatFits leaves out files whose folder would have the name of a file.
func writeWhatFits(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if os.MkdirAll(filepath.Dir(path), 0o755) != nil {
			continue
		}
		if info, err := os.Stat(path); err == nil && info.IsDir() {
			continue
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
