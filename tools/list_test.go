package tools

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"drover/tools/policy"
)

func listArgs(t *testing.T, dir, rest string) Input {
	t.Helper()
	path, err := json.Marshal(dir)
	if err != nil {
		t.Fatal(err)
	}
	return Input{Text: `{"dir_path":` + string(path) + rest + `}`}
}

func TestListShowsLevelsMarksAndPages(t *testing.T) {
	env, _ := toolEnv(t, map[string]string{
		"entry.txt": "", ".hidden": "", "nested/child.txt": "", "nested/deeper/leaf.txt": "", "nested-x": "", "nested.txt": "",
	})
	if err := os.Symlink("nested", filepath.Join(env.Cwd, "link")); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(env.Cwd, "void"), 0o755); err != nil {
		t.Fatal(err)
	}
	makePipe(t, filepath.Join(env.Cwd, "pipe"))
	for _, c := range []struct {
		name, dir, rest string
		want            []string
	}{
		{"defaults", "", "", []string{".hidden", "entry.txt", "link@", "nested/", "nested-x", "nested.txt", "  child.txt", "  deeper/", "pipe?", "void/"}},
		{"one level", "", `,"depth":1`, []string{".hidden", "entry.txt", "link@", "nested/", "nested-x", "nested.txt", "pipe?", "void/"}},
		{"three levels from below", "nested", `,"depth":3`, []string{"child.txt", "deeper/", "  leaf.txt"}},
		{"through a link", "link", `,"depth":1`, []string{"child.txt", "deeper/"}},
		{"first page", "", `,"limit":2`, []string{".hidden", "entry.txt", "More than 2 entries found"}},
		{"page that starts below its parent", "", `,"offset":7,"limit":2`, []string{"  child.txt", "  deeper/", "More than 2 entries found"}},
		{"last page", "", `,"offset":10,"limit":2`, []string{"void/"}},
		{"page that ends with the list", "", `,"offset":9,"limit":2`, []string{"pipe?", "void/"}},
		{"largest numbers", "", `,"offset":11,"limit":18446744073709551615,"depth":18446744073709551615`, []string{"void/"}},
		{"empty folder, any offset", "void", `,"offset":7`, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := filepath.Join(env.Cwd, c.dir)
			res := callTool(t, listDir, env, listArgs(t, dir, c.rest))
			if diff := cmp.Diff(append([]string{"Absolute path: " + dir}, c.want...), strings.Split(res.Text, "\n")); diff != "" || res.IsError {
				t.Errorf("error %v; want - got +\n%s", res.IsError, diff)
			}
		})
	}
}

func TestListRefuses(t *testing.T) {
	env, _ := toolEnv(t, map[string]string{"f": ""})
	for _, c := range []struct{ name, dir, rest, want string }{
		{"offset first", "rel", `,"offset":0,"limit":0,"depth":0`, "offset must be a 1-indexed entry number"},
		{"then limit", "rel", `,"limit":0,"depth":0`, "limit must be greater than zero"},
		{"then depth", "rel", `,"depth":0`, "depth must be greater than zero"},
		{"then the path", "rel", "", "dir_path must be an absolute path"},
		{"offset too large", env.Cwd, `,"offset":2`, "offset exceeds directory entry count"},
		{"missing folder", env.Cwd + "/gone", "", "failed to read directory: open " + env.Cwd + "/gone: no such file or directory"},
		{"missing folder with an odd name", env.Cwd + "/a\x1b", "", "failed to read directory: open " + env.Cwd + "/a\x1b: no such file or directory"},
	} {
		t.Run(c.name, func(t *testing.T) {
			res := callTool(t, listDir, env, listArgs(t, c.dir, c.rest))
			if !res.IsError || res.Text != c.want {
				t.Errorf("error %v, got %q, want %q", res.IsError, res.Text, c.want)
			}
		})
	}
	t.Run("file", func(t *testing.T) {
		res := callTool(t, listDir, env, listArgs(t, env.Cwd+"/f", ""))
		if !res.IsError || !strings.HasPrefix(res.Text, "failed to read directory: ") || !strings.HasSuffix(res.Text, "not a directory") {
			t.Errorf("error %v, %q", res.IsError, res.Text)
		}
	})
}

func TestListKeepsOddNamesReadable(t *testing.T) {
	env, _ := toolEnv(t, map[string]string{"bad\xff": "", "new\nline": "", "esc\x1b[31m": "", `"quoted"`: "", "naïve – файл.md": "", "a b": ""})
	res := callTool(t, listDir, env, listArgs(t, env.Cwd, ""))
	want := []string{"Absolute path: " + env.Cwd, `"\"quoted\""`, "a b", `"bad\xff"`, `"esc\x1b[31m"`, "naïve – файл.md", `"new\nline"`}
	if diff := cmp.Diff(want, strings.Split(res.Text, "\n")); diff != "" || !utf8.ValidString(res.Text) {
		t.Errorf("want - got +\n%s", diff)
	}
}

func TestListDeclaresReadAndStopsWhenCancelled(t *testing.T) {
	env, _ := toolEnv(t, map[string]string{"f": ""})
	call, err := listDir.Prepare(env, listArgs(t, env.Cwd, ""))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]policy.Action{env.Files.ReadAction(env.Cwd)}, call.Actions); diff != "" || call.Display != "list ." {
		t.Errorf("display %q; want - got +\n%s", call.Display, diff)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := call.Run(ctx, env); !errors.Is(err, context.Canceled) {
		t.Errorf("err = %v", err)
	}
}

func TestLongNamesAreCutOnACharacter(t *testing.T) {
	if got := cutBytes(strings.Repeat("x", 499) + "ü"); got != strings.Repeat("x", 499) {
		t.Errorf("%d bytes", len(got))
	}
	if got := cutBytes(strings.Repeat("x", 500)); len(got) != 500 {
		t.Errorf("%d bytes", len(got))
	}
}

func BenchmarkListDir(b *testing.B) {
	dir := b.TempDir()
	for i := range 50 {
		sub := filepath.Join(dir, fmt.Sprint("sub", i))
		if err := os.Mkdir(sub, 0o755); err != nil {
			b.Fatal(err)
		}
		for j := range 20 {
			if err := os.WriteFile(filepath.Join(sub, fmt.Sprint("file", j)), nil, 0o644); err != nil {
				b.Fatal(err)
			}
		}
	}
	files, err := OpenFiles(FilesOptions{Cwd: dir})
	if err != nil {
		b.Fatal(err)
	}
	in := listDirInput{DirPath: dir}
	for b.Loop() {
		if res, err := runListDir(context.Background(), in, Env{Cwd: dir, Files: files}); err != nil || res.IsError {
			b.Fatal(err, res.Text)
		}
	}
}
