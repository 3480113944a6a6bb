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

func TestSearchShowsLinesAndContext(t *testing.T) {
	env, _ := toolEnv(t, map[string]string{
		"a.go": "one\nfunc Make\nthree\n", "runner/b.go": "func Make() {\r\n}\r\n", "runner/c.txt": "func make\nx\ny\nfunc Make\n", "od\nd": "func Make",
	})
	for _, c := range []struct {
		name, args string
		want       []string
	}{
		{"defaults", `{"query":"func Make"}`, []string{"a.go:2: func Make", `"od\nd":1: func Make`, "runner/b.go:1: func Make() {", "runner/c.txt:4: func Make"}},
		{"below a folder", `{"query":"func Make","path":"runner"}`, []string{"b.go:1: func Make() {", "c.txt:4: func Make"}},
		{"in one file", `{"query":"func Make","path":"runner/b.go"}`, []string{"b.go:1: func Make() {"}},
		{"absolute path", `{"query":"func Make","path":"` + env.Cwd + `/runner"}`, []string{"b.go:1: func Make() {", "c.txt:4: func Make"}},
		{"glob", `{"query":"func Make","glob":"*.go"}`, []string{"a.go:2: func Make", "runner/b.go:1: func Make() {"}},
		{"glob with folders", `{"query":"func Make","glob":"runner/**/*.{go,rs}"}`, []string{"runner/b.go:1: func Make() {"}},
		{"text is no pattern", `{"query":"func.Make"}`, []string{"No matches found."}},
		{"pattern", `{"query":"(?i)^FUNC.make$","regex":true}`, []string{"a.go:2: func Make", `"od\nd":1: func Make`, "runner/c.txt:1: func make", "runner/c.txt:4: func Make"}},
		{"context", `{"query":"func Make","glob":"*.{go,txt}","context_lines":1}`, []string{
			"a.go-1- one", "a.go:2: func Make", "a.go-3- three", "--", "runner/b.go:1: func Make() {", "runner/b.go-2- }", "--", "runner/c.txt-3- y", "runner/c.txt:4: func Make",
		}},
		{"context of two groups", `{"query":"func","path":"runner/c.txt","context_lines":1}`, []string{"c.txt:1: func make", "c.txt-2- x", "c.txt-3- y", "c.txt:4: func Make"}},
		{"too much context is clamped", `{"query":"func Make","path":"runner/c.txt","context_lines":99}`, []string{"c.txt-1- func make", "c.txt-2- x", "c.txt-3- y", "c.txt:4: func Make"}},
		{"less than none is none", `{"query":"func Make","path":"runner/c.txt","context_lines":-1,"max_results":-5}`, []string{"c.txt:4: func Make"}},
		{"cap", `{"query":"func Make","max_results":1}`, []string{"a.go:2: func Make", "Only the first 1 matches are shown: narrow the query, path or glob, or raise max_results (at most 200)."}},
		{"no file", `{"query":"x","glob":"*.rs"}`, []string{"No matches found.", `The glob "*.rs" chose no file to search.`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			res := callTool(t, searchInFiles, env, Input{Text: c.args})
			if diff := cmp.Diff(c.want, strings.Split(res.Text, "\n")); diff != "" || res.IsError || res.Truncated != (c.name == "cap") {
				t.Errorf("error %v, truncated %v; want - got +\n%s", res.IsError, res.Truncated, diff)
			}
		})
	}
}

func TestSearchSaysWhatItLeftOutAndHowToSearchIt(t *testing.T) {
	env, _ := toolEnv(t, map[string]string{
		".gitignore": "build/\n*.log\n", "build/out.txt": "the secret word", "sub/a.log": "the secret word", ".hidden": "nothing", "image": "\x00",
	})
	if err := os.Symlink("build", filepath.Join(env.Cwd, "link")); err != nil {
		t.Fatal(err)
	}
	makePipe(t, filepath.Join(env.Cwd, "pipe"))
	res := callTool(t, searchInFiles, env, Input{Text: `{"query":"secret word"}`})
	want := []string{
		"No matches found.",
		"Not searched: 1 ignored file, 1 ignored folder, 1 binary file, 1 symbolic link, 1 pipe, socket or device.",
		`To search what is ignored, name it in path (such as "build") or in glob.`,
	}
	if diff := cmp.Diff(want, strings.Split(res.Text, "\n")); diff != "" {
		t.Errorf("want - got +\n%s", diff)
	}
	for args, want := range map[string]string{
		`{"query":"secret word","path":"build"}`:              "out.txt:1: the secret word",
		`{"query":"secret word","glob":"build/**"}`:           "build/out.txt:1: the secret word",
		`{"query":"secret word","path":"sub","glob":"a.log"}`: "a.log:1: the secret word",
		`{"query":"secret word","path":"sub/a.log"}`:          "a.log:1: the secret word",
		`{"query":"nothing","path":"./","glob":"**/.hid*"}`:   ".hidden:1: nothing",
		`{"query":"build/","glob":".gitignore","path":"."}`:   ".gitignore:1: build/",
		`{"query":"word","glob":"*.log"}`:                     "No matches found.\nThe glob \"*.log\" chose no file to search.\nNot searched: 1 ignored file, 1 ignored folder.\nTo search what is ignored, name it in path (such as \"build\") or in glob.",
	} {
		first, _, _ := strings.Cut(callTool(t, searchInFiles, env, Input{Text: args}).Text, "\nNot searched: 1 ignored folder")
		if first != want {
			t.Errorf("%s: got %q, want %q", args, first, want)
		}
	}
}

func TestSearchRefuses(t *testing.T) {
	env, _ := toolEnv(t, map[string]string{"f": "x"})
	makePipe(t, filepath.Join(env.Cwd, "pipe"))
	for _, c := range []struct{ name, args, want string }{
		{"no query", `{}`, "failed to parse function arguments: missing field `query`"},
		{"empty query", `{"query":""}`, "query is empty: send the text"},
		{"broken pattern", `{"query":"a(","regex":true}`, "missing closing ): `a(`. Escape special characters with \\, do without lookaround and backreferences, or send regex false"},
		{"lookahead", `{"query":"(?!x)","regex":true}`, "do without lookaround"},
		{"broken glob", `{"query":"x","glob":"{a"}`, "Send a glob such as *.go or src/**/*.py."},
		{"missing folder", `{"query":"x","path":"gone/deep"}`, "there is no " + env.Cwd + "/gone/deep: send the path of a folder or file that exists; list_dir shows what is in " + env.Cwd + "."},
		{"file as folder", `{"query":"x","path":"f/g"}`, "cannot search " + env.Cwd + "/f/g: not a directory"},
		{"pipe", `{"query":"x","path":"pipe"}`, "cannot search " + env.Cwd + "/pipe: not a regular file"},
	} {
		t.Run(c.name, func(t *testing.T) {
			res := callTool(t, searchInFiles, env, Input{Text: c.args})
			if !res.IsError || !strings.Contains(res.Text, c.want) {
				t.Errorf("error %v: %q does not say %q", res.IsError, res.Text, c.want)
			}
		})
	}
}

func TestSearchStaysWithinTheOutput(t *testing.T) {
	env, _ := toolEnv(t, map[string]string{"f": strings.Repeat("hit "+strings.Repeat("ü", 100)+"\n", 300), ".gitignore": "x/", "x/": ""})
	env.Output = Limit{Bytes: 5000}
	res := callTool(t, searchInFiles, env, Input{Text: `{"query":"hit","max_results":1000}`})
	lines := strings.Split(res.Text, "\n")
	last := fmt.Sprintf("Only the first %d matches are shown, because the output is long: narrow the query, path or glob.", len(lines)-1)
	if lines[len(lines)-1] != last || !res.Truncated || len(res.Text) > 5000 || len(lines) < 15 || res.Display != fmt.Sprintf("first %d matches", len(lines)-1) {
		t.Errorf("%d bytes, %q: %s", len(res.Text), res.Display, lines[len(lines)-1])
	}
	env.Output = Limit{}
	res = callTool(t, searchInFiles, env, Input{Text: `{"query":"hit","max_results":1000}`})
	if got := strings.Count(res.Text, "\nf:"); got != maxResults-1 && !strings.Contains(res.Text, "output is long") {
		t.Errorf("%d matches", got+1)
	}
}

func TestSearchDeclaresReadAndStopsWhenCancelled(t *testing.T) {
	env, _ := toolEnv(t, map[string]string{"runner/f": "x", "g": "x"})
	for path, want := range map[string]string{"runner": "runner/", "runner/": "runner/", "": ".", "g": "g", "gone": "gone", env.Cwd: "."} {
		args, err := json.Marshal(searchInput{Query: `a "b"`, Path: path})
		if err != nil {
			t.Fatal(err)
		}
		call, err := searchInFiles.Prepare(env, Input{Text: string(args)})
		if err != nil {
			t.Fatal(err)
		}
		if want = `search: "a \"b\"" in ` + want; call.Display != want {
			t.Errorf("display %q, want %q", call.Display, want)
		}
		if diff := cmp.Diff([]policy.Action{env.Files.ReadAction(path)}, call.Actions); diff != "" {
			t.Errorf("want - got +\n%s", diff)
		}
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		if _, err := call.Run(ctx, env); path != "gone" && !errors.Is(err, context.Canceled) {
			t.Errorf("err = %v", err)
		}
	}
}

func TestSearchDescriptionIsShort(t *testing.T) {
	spec := searchInFiles.Spec()
	var schema struct {
		Properties map[string]struct{ Description string }
		Required   []string
	}
	if err := json.Unmarshal(spec.Schema, &schema); err != nil {
		t.Fatal(err)
	}
	size := len(spec.Doc)
	for _, p := range schema.Properties {
		size += len(p.Description)
	}
	if size >= 700 || len(spec.Doc)+len(spec.Schema) > 1300 || len(schema.Properties) != 6 || cmp.Diff([]string{"query"}, schema.Required) != "" || !utf8.ValidString(spec.Doc) {
		t.Errorf("%d bytes of text, %d in all: %s", size, len(spec.Doc)+len(spec.Schema), spec.Schema)
	}
	for _, tool := range []string{"grep", "rg", "git grep"} {
		if !strings.Contains(spec.Doc, tool) {
			t.Errorf("%s is not mentioned: %s", tool, spec.Doc)
		}
	}
}
