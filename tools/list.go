package tools

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"drover/tools/policy"
)

// listDir reports the entries of a folder, sorted by path.
var listDir = New(Def[listDirInput]{
	Name:     "list_dir",
	Doc:      "Lists a folder, sorted by path. Marks: / folder, @ link, ? other. Odd names are quoted with escapes.",
	Parallel: true,
	Reads:    true,
	Approval: "never",
	Check:    checkListDir,
	Display:  func(in listDirInput, env Env) string { return "list " + env.Files.Rel(in.DirPath) },
	Actions: func(in listDirInput, env Env) ([]policy.Action, error) {
		return []policy.Action{env.Files.ReadAction(in.DirPath)}, nil
	},
	Run: runListDir,
})

type listDirInput struct {
	DirPath string `json:"dir_path" jsonschema:"Absolute path."`
	Offset  *uint  `json:"offset,omitempty" jsonschema:"First entry, from 1."`
	Limit   *uint  `json:"limit,omitempty" jsonschema:"Default 25."`
	Depth   *uint  `json:"depth,omitempty" jsonschema:"Levels, default 2."`
}

func checkListDir(in listDirInput, _ Env) error {
	zero := func(n *uint) bool { return n != nil && *n == 0 }
	switch {
	case zero(in.Offset):
		return errors.New("offset must be a 1-indexed entry number")
	case zero(in.Limit):
		return errors.New("limit must be greater than zero")
	case zero(in.Depth):
		return errors.New("depth must be greater than zero")
	case !filepath.IsAbs(in.DirPath):
		return errors.New("dir_path must be an absolute path")
	}
	return nil
}

func runListDir(ctx context.Context, in listDirInput, env Env) (Result, error) {
	value := func(n *uint, fallback uint) uint {
		if n == nil {
			return fallback
		}
		return *n
	}
	entries, err := collect(ctx, env, in.DirPath, value(in.Depth, 2))
	if ctx.Err() != nil {
		return Result{}, ctx.Err()
	}
	if err != nil {
		return Fail("unreadable", safeText("failed to read directory: "+err.Error())), nil
	}
	lines := []string{"Absolute path: " + safeName(in.DirPath)}
	if len(entries) == 0 {
		return Result{Text: lines[0], Display: "empty"}, nil
	}
	slices.SortFunc(entries, func(a, b dirEntry) int { return strings.Compare(a.key, b.key) })
	total, offset, limit := uint(len(entries)), value(in.Offset, 1), value(in.Limit, 25)
	if offset > total {
		return Fail("bad_offset", "offset exceeds directory entry count"), nil
	}
	page := entries[offset-1:]
	more := uint(len(page)) > limit
	if more {
		page = page[:limit]
	}
	for _, e := range page {
		lines = append(lines, strings.Repeat("  ", e.level)+safeName(e.name)+e.mark)
	}
	if more {
		lines = append(lines, fmt.Sprintf("More than %d entries found", len(page)))
	}
	text := strings.Join(lines, "\n")
	return Result{
		Text: env.Output.Cut(text), OutputBytes: int64(len(text)), Truncated: more || !env.Output.Fits(text),
		Display: fmt.Sprintf("%d of %d entries", len(page), total),
	}, nil
}

// dirEntry is one line of the listing.
type dirEntry struct {
	// key orders entries by their whole relative path, so that "a.txt" stands
	// between the folder "a" and its children.
	key   string
	name  string
	mark  string
	level int
}

// collect reads dir and the folders below it, down to depth levels.
func collect(ctx context.Context, env Env, dir string, depth uint) ([]dirEntry, error) {
	type folder struct {
		rel   string
		level int
	}
	var out []dirEntry
	leftOut := env.unnamed(dir)
	for todo := []folder{{}}; len(todo) > 0; todo = todo[1:] {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		at := todo[0]
		children, err := env.Files.ReadDir(filepath.Join(dir, at.rel))
		if err != nil {
			return nil, err
		}
		for _, c := range children {
			rel := filepath.Join(at.rel, c.Name())
			if leftOut(filepath.Join(dir, rel)) {
				continue
			}
			out = append(out, dirEntry{
				key: cutBytes(strings.ReplaceAll(rel, `\`, "/")), name: cutBytes(c.Name()), mark: mark(c.Type()), level: at.level,
			})
			if c.IsDir() && uint(at.level)+1 < depth {
				todo = append(todo, folder{rel, at.level + 1})
			}
		}
	}
	return out, nil
}

func mark(t fs.FileMode) string {
	switch {
	case t.IsDir():
		return "/"
	case t&fs.ModeSymlink != 0:
		return "@"
	case t.IsRegular():
		return ""
	}
	return "?"
}

// cutBytes keeps names and sort keys within 500 bytes, on a character boundary.
func cutBytes(s string) string {
	const most = 500
	if len(s) <= most {
		return s
	}
	cut := most
	for cut > 0 && !utf8.RuneStart(s[cut]) {
		cut--
	}
	return s[:cut]
}

// safeName returns a name as it is when every character can be shown, and else
// as a quoted Go string, from which the exact bytes can be read. A name that
// starts with a quote is quoted too, so that the two forms cannot be confused.
func safeName(name string) string {
	if strings.HasPrefix(name, `"`) || !utf8.ValidString(name) || strings.ContainsFunc(name, func(r rune) bool {
		return !unicode.IsPrint(r) && r != ' '
	}) {
		return strconv.Quote(name)
	}
	return name
}

// safeText keeps the bytes of a message that are not UTF-8 readable: each
// becomes an escape such as \xff.
func safeText(text string) string {
	if utf8.ValidString(text) {
		return text
	}
	var b strings.Builder
	for len(text) > 0 {
		r, size := utf8.DecodeRuneInString(text)
		if r == utf8.RuneError && size == 1 {
			fmt.Fprintf(&b, `\x%02x`, text[0])
		} else {
			b.WriteString(text[:size])
		}
		text = text[size:]
	}
	return b.String()
}
