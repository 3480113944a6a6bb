package tools

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"drover/tools/policy"
	"drover/tools/search"
)

// searchInFiles finds lines in the files below a folder.
var searchInFiles = New(Def[searchInput]{
	Name: "search_in_files",
	Doc: "Finds lines in files, as path:line: text. Prefer it to grep, rg and git grep. " +
		"Ignored files (.gitignore) are left out unless path or glob names them.",
	Parallel: true,
	Reads:    true,
	Approval: "never",
	Check:    checkSearch,
	Display:  displaySearch,
	Actions: func(in searchInput, env Env) ([]policy.Action, error) {
		return []policy.Action{env.Files.ReadAction(in.Path)}, nil
	},
	Run: runSearch,
})

type searchInput struct {
	Query        string `json:"query" jsonschema:"Text to find, case-sensitive."`
	Path         string `json:"path,omitempty" jsonschema:"Folder or file, default: working folder."`
	Glob         string `json:"glob,omitempty" jsonschema:"Files to search: *.rs, src/**/*.{ts,tsx}, !*_test.go."`
	Regex        bool   `json:"regex,omitempty" jsonschema:"Query is an RE2 pattern; ^ and $ match at lines, (?i) ignores case."`
	ContextLines int    `json:"context_lines,omitempty" jsonschema:"0 to 3."`
	MaxResults   int    `json:"max_results,omitempty" jsonschema:"Default 50, at most 200."`
}

const (
	defaultResults = 50
	maxResults     = 200
	maxContext     = 3
	// notesBytes is kept free of matches in a result, for what is said
	// behind them.
	notesBytes = 1000
)

func checkSearch(in searchInput, _ Env) error {
	if in.Query == "" {
		return errors.New("query is empty: send the text or the pattern to find; list_dir lists files by name")
	}
	return nil
}

func displaySearch(in searchInput, env Env) string {
	place := env.Files.Rel(in.Path)
	if info, err := os.Stat(env.Files.Abs(in.Path)); err == nil && info.IsDir() && place != "." {
		place = strings.TrimSuffix(place, "/") + "/"
	}
	return fmt.Sprintf("search: %q in %s", in.Query, place)
}

func runSearch(ctx context.Context, in searchInput, env Env) (Result, error) {
	limit := in.MaxResults
	if limit <= 0 {
		limit = defaultResults
	}
	limit = min(limit, maxResults)
	found, err := search.Search(ctx, search.Options{
		Root: env.Files.Abs(in.Path), Query: in.Query, Regex: in.Regex, Glob: in.Glob,
		ContextLines: min(max(in.ContextLines, 0), maxContext), MaxResults: limit,
		Environ: env.Commands.Environ, Skip: env.hidden(env.Files.Abs(in.Path)),
	})
	if ctx.Err() != nil {
		return Result{}, ctx.Err()
	}
	if err != nil {
		return searchFailure(in, env, err), nil
	}
	lines, shown := matchLines(found, env.Output.budget()-notesBytes)
	notes := searchNotes(in, env, found, shown)
	text := strings.Join(append(lines, notes...), "\n")
	return Result{
		Text: env.Output.Cut(text), OutputBytes: int64(len(text)), Display: matchCount(found, shown),
		Truncated: found.Capped || shown < found.Matches || !env.Output.Fits(text),
	}, nil
}

// matchLines writes matches as "path:line: text" and context as
// "path-line- text", with "--" between groups, in at most budget bytes. It
// returns how many matches that are.
func matchLines(found search.Result, budget int) (lines []string, shown int) {
	before := search.Line{}
	context := false
	for _, l := range found.Lines {
		context = context || !l.Match
	}
	for _, l := range found.Lines {
		mark := "-"
		if l.Match {
			mark = ":"
		}
		line := fmt.Sprintf("%s%s%d%s %s", safeName(l.Path), mark, l.Number, mark, l.Text)
		if context && len(lines) > 0 && (l.Path != before.Path || l.Number != before.Number+1) {
			line = "--\n" + line
		}
		if budget -= len(line) + 1; budget < 0 && shown > 0 {
			return lines, shown
		}
		if l.Match {
			shown++
		}
		lines, before = append(lines, line), l
	}
	return lines, shown
}

// searchNotes are the lines behind the matches: what was not searched, and
// that there is more.
func searchNotes(in searchInput, env Env, found search.Result, shown int) []string {
	var notes []string
	if found.Matches == 0 {
		notes = append(notes, "No matches found.")
		if in.Glob != "" && found.Files == 0 {
			notes = append(notes, fmt.Sprintf("The glob %q chose no file to search.", in.Glob))
		}
	}
	if left := leftOut(found.Skipped); left != "" {
		notes = append(notes, "Not searched: "+left+".")
	}
	if first := found.Skipped.Ignored; first != "" {
		first = env.Files.Rel(filepath.Join(env.Files.Abs(in.Path), first))
		notes = append(notes, fmt.Sprintf("To search what is ignored, name it in path (such as %q) or in glob.", first))
	}
	switch {
	case shown < found.Matches:
		notes = append(notes, fmt.Sprintf("Only the first %d matches are shown, because the output is long: narrow the query, path or glob.", shown))
	case found.Capped:
		notes = append(notes, fmt.Sprintf("Only the first %d matches are shown: narrow the query, path or glob, or raise max_results (at most %d).", shown, maxResults))
	}
	return notes
}

// leftOut lists what was not searched, with counts.
func leftOut(s search.Skipped) string {
	var parts []string
	for _, p := range []struct {
		n         int
		one, more string
	}{
		{s.IgnoredFiles, "ignored file", "ignored files"},
		{s.IgnoredFolders, "ignored folder", "ignored folders"},
		{s.Binary, "binary file", "binary files"},
		{s.TooLarge, fmt.Sprintf("file above %d MiB", search.MaxFileBytes>>20), fmt.Sprintf("files above %d MiB", search.MaxFileBytes>>20)},
		{s.Unreadable, "path that cannot be read", "paths that cannot be read"},
		{s.Links, "symbolic link", "symbolic links"},
		{s.Special, "pipe, socket or device", "pipes, sockets or devices"},
		{s.Hidden, "path that a rule hides", "paths that a rule hides"},
	} {
		if p.n > 0 {
			parts = append(parts, plural(p.n, p.one, p.more))
		}
	}
	return strings.Join(parts, ", ")
}

func plural(n int, one, more string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, more)
}

func matchCount(found search.Result, shown int) string {
	switch {
	case found.Matches == 0:
		return "no matches"
	case found.Capped || shown < found.Matches:
		return "first " + plural(shown, "match", "matches")
	}
	return plural(shown, "match", "matches")
}

// searchFailure says what to send instead.
func searchFailure(in searchInput, env Env, err error) Result {
	place := safeName(env.Files.Abs(in.Path))
	reason := strings.TrimPrefix(err.Error(), "bad query: ")
	switch {
	case errors.Is(err, search.ErrQuery):
		return Fail("bad_regex", safeText(fmt.Sprintf("query is no RE2 pattern: %s. Escape special characters with \\, "+
			"do without lookaround and backreferences, or send regex false to find the text as it is.", reason)))
	case errors.Is(err, search.ErrGlob):
		return Fail("bad_glob", safeText(fmt.Sprintf("%v. Send a glob such as *.go or src/**/*.py.", err)))
	case errors.Is(err, fs.ErrNotExist):
		return Fail("not_found", fmt.Sprintf("there is no %s: send the path of a folder or file that exists; list_dir shows what is in %s.",
			place, safeName(existing(filepath.Dir(env.Files.Abs(in.Path))))))
	}
	return Fail("unreadable", safeText(fmt.Sprintf("cannot search %s: %v. Send a folder or file that can be read.", place, plainError(err))))
}

// existing returns the nearest folder above that exists.
func existing(dir string) string {
	for ; filepath.Dir(dir) != dir; dir = filepath.Dir(dir) {
		if info, err := os.Stat(dir); err == nil && info.IsDir() {
			return dir
		}
	}
	return dir
}
