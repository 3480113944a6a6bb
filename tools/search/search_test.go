package search

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func folderWith(tb testing.TB, files map[string]string) string {
	tb.Helper()
	dir := tb.TempDir()
	write(tb, dir, files)
	return dir
}

// shown writes lines as grep does.
func shown(r Result) []string {
	var out []string
	for i, l := range r.Lines {
		mark := "-"
		if l.Match {
			mark = ":"
		}
		if i > 0 && !(r.Lines[i-1].Path == l.Path && r.Lines[i-1].Number == l.Number-1) {
			out = append(out, "--")
		}
		out = append(out, fmt.Sprintf("%s%s%d%s %s", l.Path, mark, l.Number, mark, l.Text))
	}
	return out
}

func TestFindsLines(t *testing.T) {
	numbers := "one\ntwo\nthree\nfour\nfive\nsix\nseven\neight\nnine\nten\n"
	for _, c := range []struct {
		name, text string
		o          Options
		want       []string
	}{
		{"literal", "a.b\naxb\n", Options{Query: "a.b"}, []string{"f:1: a.b"}},
		{"regex", "a.b\naxb\n", Options{Query: "a.b", Regex: true}, []string{"f:1: a.b", "f:2: axb"}},
		{"no end of line at the end", "x\nlast", Options{Query: "last"}, []string{"f:2: last"}},
		{"two on a line", "ab ab\nab\n", Options{Query: "ab"}, []string{"f:1: ab ab", "f:2: ab"}},
		{"first and last byte", "a\nb", Options{Query: "[ab]", Regex: true}, []string{"f:1: a", "f:2: b"}},
		{"empty match, empty lines", "\n\nx", Options{Query: "y*", Regex: true}, []string{"f:1: ", "f:2: ", "f:3: x"}},
		{"anchors are those of lines", "ab\nb\nba\n", Options{Query: "^b$", Regex: true}, []string{"f:2: b"}},
		{"anchors and a flag", "AB\nB\n", Options{Query: "(?i)^b$", Regex: true}, []string{"f:2: B"}},
		{"anchor before CR", "ab\r\nb\r\n", Options{Query: "b$", Regex: true}, []string{"f:1: ab", "f:2: b"}},
		{"anchor without a text", "ab\r\n\r\n", Options{Query: "^$", Regex: true}, []string{"f:2: "}},
		{"class does not cross lines", "a\nb\na c\n", Options{Query: `a\s[bc]`, Regex: true}, []string{"f:3: a c"}},
		{"no case", "Straße\nSTRASSE\nkelvin \u212a\n", Options{Query: "(?i)k$|strasse", Regex: true}, []string{"f:2: STRASSE", "f:3: kelvin \u212a"}},
		{"alternatives", "foo\nfar\nbar\n", Options{Query: "foo|far", Regex: true}, []string{"f:1: foo", "f:2: far"}},
		{"byte order mark", "\xef\xbb\xbfone\n", Options{Query: "^one", Regex: true}, []string{"f:1: one"}},
		{"bytes that are not UTF-8", "a\xff\xfeb\n", Options{Query: "a"}, []string{"f:1: a\uFFFDb"}},
		{"context", numbers, Options{Query: "five", ContextLines: 2}, []string{"f-3- three", "f-4- four", "f:5: five", "f-6- six", "f-7- seven"}},
		{"context at both ends", numbers, Options{Query: "one|ten", Regex: true, ContextLines: 1}, []string{"f:1: one", "f-2- two", "--", "f-9- nine", "f:10: ten"}},
		{"context that overlaps", numbers, Options{Query: "t[wh]|six", Regex: true, ContextLines: 1},
			[]string{"f-1- one", "f:2: two", "f:3: three", "f-4- four", "f-5- five", "f:6: six", "f-7- seven"}},
		{"over lines", "a\nb\nc\na\r\nb\n", Options{Query: "a\nb"}, []string{"f:1: a", "f:2: b", "--", "f:4: a", "f:5: b"}},
		{"over lines with CR", "a\nb\r\nc", Options{Query: "b\r\nc"}, []string{"f:2: b", "f:3: c"}},
		{"pattern over lines", "f(\n  x)\ng(y)\n", Options{Query: `\((?s:.)*?\)`, Regex: true}, []string{"f:1: f(", "f:2:   x)", "f:3: g(y)"}},
		{"pattern over lines with context", numbers, Options{Query: `four\nfive`, Regex: true, ContextLines: 1}, []string{"f-3- three", "f:4: four", "f:5: five", "f-6- six"}},
		{"many on one line, over lines", strings.Repeat("a", 100) + "\na\n", Options{Query: `(?s:a)|\n\n`, Regex: true, MaxResults: 2}, []string{"f:1: " + strings.Repeat("a", 100), "f:2: a"}},
		{"start of the text", "a\na\n", Options{Query: `\Aa`, Regex: true}, []string{"f:1: a"}},
		{"end of the text", "a\na", Options{Query: `a\z`, Regex: true}, []string{"f:2: a"}},
		{"nothing behind the last line", "a\n", Options{Query: `(?s:.*)`, Regex: true}, []string{"f:1: a"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.o.Root = folderWith(t, map[string]string{"f": c.text})
			if diff := cmp.Diff(c.want, shown(search(t, c.o))); diff != "" {
				t.Errorf("want - got +\n%s", diff)
			}
		})
	}
}

func TestResultsAreTheFirstInOrder(t *testing.T) {
	files := map[string]string{}
	for _, name := range []string{"a-b/x", "a.txt", "a/x", "a/b/x", "a0", "b/x", "z", "z/../c/d/e/f"} {
		files[name] = "hit 1\nmiss\nhit 2\n"
	}
	root := folderWith(t, files)
	all := shown(search(t, Options{Root: root, Query: "hit"}))
	order := []string{"a-b/x", "a.txt", "a/b/x", "a/x", "a0", "b/x", "c/d/e/f", "z"}
	if diff := cmp.Diff(order, paths(search(t, Options{Root: root, Query: "hit"}))); diff != "" {
		t.Errorf("want - got +\n%s", diff)
	}
	for limit := 1; limit <= 17; limit++ {
		for _, workers := range []int{1, 7} {
			r := search(t, Options{Root: root, Query: "hit", MaxResults: limit, Workers: workers})
			var got []string
			for _, line := range shown(r) {
				if line != "--" {
					got = append(got, line)
				}
			}
			var want []string
			for _, line := range all {
				if line != "--" && len(want) < limit {
					want = append(want, line)
				}
			}
			if diff := cmp.Diff(want, got); diff != "" || r.Matches != min(limit, 16) || r.Capped != (limit < 16) {
				t.Errorf("limit %d: %d matches, capped %v; want - got +\n%s", limit, r.Matches, r.Capped, diff)
			}
		}
	}
}

func TestCapKeepsTheContextOfTheLastMatch(t *testing.T) {
	root := folderWith(t, map[string]string{"f": "a\nhit\nb\nhit\nc\nd\nhit\n", "g": "x\nhit\n"})
	for limit, want := range map[int][]string{
		1: {"f-1- a", "f:2: hit", "f-3- b"},
		2: {"f-1- a", "f:2: hit", "f-3- b", "f:4: hit", "f-5- c"},
		3: {"f-1- a", "f:2: hit", "f-3- b", "f:4: hit", "f-5- c", "f-6- d", "f:7: hit"},
		4: {"f-1- a", "f:2: hit", "f-3- b", "f:4: hit", "f-5- c", "f-6- d", "f:7: hit", "--", "g-1- x", "g:2: hit"},
	} {
		r := search(t, Options{Root: root, Query: "hit", ContextLines: 1, MaxResults: limit})
		if diff := cmp.Diff(want, shown(r)); diff != "" || r.Capped != (limit < 4) {
			t.Errorf("limit %d: capped %v; want - got +\n%s", limit, r.Capped, diff)
		}
	}
}

func TestSaysWhatWasLeftOut(t *testing.T) {
	root := folderWith(t, map[string]string{
		".gitignore": "*.log\nbuild/\n", "a.log": "x", "b.log": "x", "build/x": "x", "sub/build/x": "x",
		".hidden": "x", "nul": "x\x00", "late": strings.Repeat("x", binaryBytes) + "\x00", ".git/x": "x", "secret/x": "x", "deep/secret": "x", "plain": "x",
	})
	if err := os.Symlink("plain", filepath.Join(root, "link")); err != nil {
		t.Fatal(err)
	}
	large, err := os.Create(filepath.Join(root, "large"))
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(large.Truncate(1<<30), large.Close()); err != nil {
		t.Fatal(err)
	}
	r := search(t, Options{Root: root, Query: "x", Skip: func(abs string) bool {
		if !strings.HasPrefix(abs, root+string(filepath.Separator)) {
			t.Errorf("asked about %s", abs)
		}
		return filepath.Base(abs) == "secret"
	}})
	if diff := cmp.Diff([]string{".hidden", "late", "plain"}, paths(r)); diff != "" {
		t.Errorf("want - got +\n%s", diff)
	}
	want := Skipped{IgnoredFiles: 2, IgnoredFolders: 2, Ignored: "a.log", Binary: 1, TooLarge: 1, Links: 1, Hidden: 2}
	if diff := cmp.Diff(want, r.Skipped); diff != "" {
		t.Errorf("want - got +\n%s", diff)
	}
	if r.Files != 4 {
		t.Errorf("%d files", r.Files)
	}
}

func TestIgnoredFilesAreSearchedWhenNamed(t *testing.T) {
	root := folderWith(t, map[string]string{
		".git/HEAD": "ref: x", ".gitignore": "*.log\nbuild/\n", "a.log": "x", "deep/a.log": "x", "b.log": "x",
		"build/x.go": "x", "build/.gitignore": "*", "build/sub/y.log": "x", "deep/build/x.go": "x", "plain.go": "x", "deep/plain.go": "x",
	})
	for _, c := range []struct {
		at, glob string
		want     []string
	}{
		{"", "", []string{"deep/plain.go", "plain.go"}},
		{"", "*.log", nil},
		{"", "a.log", []string{"a.log", "deep/a.log"}},
		{"", "deep/a.log", []string{"deep/a.log"}},
		{"", "**/a.log", []string{"a.log", "deep/a.log"}},
		{"", "./a.log", []string{"a.log"}},
		{"", root + "/a.log", []string{"a.log"}},
		{"", "build/**", []string{"build/sub/y.log", "build/x.go"}},
		{"", "build/", []string{"build/sub/y.log", "build/x.go"}},
		{"", "{build,other}/*.go", []string{"build/x.go"}},
		{"", "**/build/**/*.go", []string{"build/x.go", "deep/build/x.go"}},
		{"", "*/build/*", []string{"deep/build/x.go"}},
		{"", "**/*.go", []string{"deep/plain.go", "plain.go"}},
		{"", "/*.go", []string{"plain.go"}},
		{"", "!*.go", nil},
		{"", "!deep/**", []string{"plain.go"}},
		{"", "*.{go,log}", []string{"deep/plain.go", "plain.go"}},
		{"build", "", []string{"sub/y.log", "x.go"}},
		{"build/sub", "", []string{"y.log"}},
		{"build/x.go", "", []string{"x.go"}},
		{"a.log", "", []string{"a.log"}},
		{"deep", "", []string{"plain.go"}},
		{"deep/build", "", []string{"x.go"}},
	} {
		t.Run(c.at+" "+c.glob, func(t *testing.T) {
			got := paths(search(t, Options{Root: filepath.Join(root, c.at), Query: "x", Glob: c.glob}))
			if diff := cmp.Diff(c.want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("want - got +\n%s", diff)
			}
		})
	}
}

func TestRepositoryInsideHasItsOwnRules(t *testing.T) {
	root := folderWith(t, map[string]string{
		".git/HEAD": "x", ".gitignore": "*.log\n/skipped/\n", "inner/.git/HEAD": "x", "inner/.git/info/exclude": "own\n", "inner/a.log": "x", "inner/own": "x", "own": "x",
		"skipped/.git/HEAD": "x", "skipped/f": "x", "empty/.git/": "", "empty/a.log": "x",
	})
	if diff := cmp.Diff([]string{"inner/a.log", "own"}, paths(search(t, Options{Root: root, Query: "x"}))); diff != "" {
		t.Errorf("want - got +\n%s", diff)
	}
}

func TestLongLinesAreCutAroundTheMatch(t *testing.T) {
	long := strings.Repeat("é", 600)
	root := folderWith(t, map[string]string{"f": long + "needle" + long + "\nneedle" + long + "\n" + long + "needle\n" + strings.Repeat("needle", 200) + "\n"})
	r := search(t, Options{Root: root, Query: "needle"})
	for i, edges := range [][2]bool{{true, true}, {false, true}, {true, false}, {false, true}} {
		text := r.Lines[i].Text
		body, note, _ := strings.Cut(text, " [line of ")
		if !strings.Contains(body, "needle") || !utf8.ValidString(text) || !strings.HasSuffix(note, " bytes cut]") || len(body) > MaxLineBytes+2*len("…") ||
			strings.Contains(body, "\uFFFD") || strings.HasPrefix(body, "…") != edges[0] || strings.HasSuffix(body, "…") != edges[1] {
			t.Errorf("line %d: %q", i+1, text)
		}
	}
}

func TestRefuses(t *testing.T) {
	root := folderWith(t, map[string]string{"f": "x"})
	for _, c := range []struct {
		name string
		o    Options
		want error
	}{
		{"empty query", Options{Root: root}, ErrQuery},
		{"broken pattern", Options{Root: root, Query: "(", Regex: true}, ErrQuery},
		{"pattern that would escape its group", Options{Root: root, Query: "a)|(b", Regex: true}, ErrQuery},
		{"lookahead", Options{Root: root, Query: "(?=x)", Regex: true}, ErrQuery},
		{"broken glob", Options{Root: root, Query: "x", Glob: "[a"}, ErrGlob},
		{"glob of nothing", Options{Root: root, Query: "x", Glob: "!"}, ErrGlob},
		{"missing folder", Options{Root: filepath.Join(root, "gone"), Query: "x"}, fs.ErrNotExist},
		{"file as folder", Options{Root: filepath.Join(root, "f", "g"), Query: "x"}, syscall.ENOTDIR},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := Search(t.Context(), c.o)
			if !errors.Is(err, c.want) {
				t.Errorf("err = %v, want %v", err, c.want)
			}
			var path *fs.PathError
			if byRoot := !errors.Is(err, ErrQuery) && !errors.Is(err, ErrGlob); byRoot != errors.As(err, &path) {
				t.Errorf("err = %v, with a path: %v", err, !byRoot)
			}
		})
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	for _, root := range []string{root, filepath.Join(root, "f")} {
		if _, err := Search(ctx, Options{Root: root, Query: "x"}); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: err = %v", root, err)
		}
	}
}
