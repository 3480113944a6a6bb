// Package search finds lines in the files below a folder.
//
// Search walks the tree with several workers, leaves out what git ignores
// (without running git), what is binary and what is too large, and returns the
// first matching lines in the order of path and line together with counts of
// what it left out. The answer does not depend on the number of workers or on
// timing: the walk is ordered, so that it can stop as soon as no file that is
// left could sort before the results, which makes the common search, one with
// more results than anybody wants, a matter of a few files.
//
// Patterns run in linear time. Before a pattern runs, the text that every
// match must contain is looked for, and then only that line is tried.
//
// Search only reads. It opens regular files alone, follows no links below its
// root and knows nothing of tools and policy: Options.Skip hides paths.
package search

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
)

// Options say what to search, and where.
type Options struct {
	// Root is the folder or the single file to search, absolute. A link at
	// its end is followed.
	Root string
	// Query is the text to find, or with Regex a pattern in Go's syntax in
	// which ^ and $ match at lines.
	Query string
	Regex bool
	// Glob chooses files; empty means all. Without a slash it is compared
	// with names, else with paths below Root; "!" in front inverts it.
	//
	// Ignored files and folders are left out unless Root is or lies in an
	// ignored folder, is the file itself, or Glob names them: one of its
	// parts, without wildcards, is their name. In a folder that was reached
	// so, nothing is ignored.
	Glob string
	// ContextLines is how many lines to add before and after each match.
	ContextLines int
	// MaxResults bounds the matching lines; 0 means no bound.
	MaxResults int
	// Skip hides a path and what is below it; nil hides nothing. The path is
	// absolute, below Root as given. It is called concurrently.
	Skip func(abs string) bool
	// Environ is KEY=VALUE as git would see it; it says where the user's own
	// ignore file is.
	Environ []string
	// Workers is how many files are read at a time; 0 chooses.
	Workers int
}

// Result is what a search found.
type Result struct {
	// Lines are ordered by path, then number.
	Lines []Line
	// Matches is the number of matching lines among Lines.
	Matches int
	// Capped says that there are more than MaxResults matching lines. The
	// counts then cover only the paths up to the last match.
	Capped bool
	// Files is the number of files that were searched.
	Files int
	// Skipped counts what was left out although Glob would have allowed it.
	Skipped Skipped
}

// Line is one line of a file.
type Line struct {
	// Path is relative to Root with forward slashes; of a Root that is a
	// file it is the name.
	Path string
	// Number counts from 1.
	Number int
	// Text is the line without its end, valid UTF-8, and shortened around
	// the match if it is very long.
	Text string
	// Match tells a matching line from one of its context.
	Match bool
}

// Skipped counts paths that were not searched. A folder counts once, whatever
// is in it.
type Skipped struct {
	// IgnoredFiles and IgnoredFolders are left out by ignore files.
	IgnoredFiles, IgnoredFolders int
	// Ignored is the first of these, relative to Root; folders end in "/".
	Ignored string
	// Binary files have a NUL in their first 8 KiB.
	Binary int
	// TooLarge files have more than MaxFileBytes.
	TooLarge int
	// Unreadable files and folders could not be opened or read.
	Unreadable int
	// Links are symbolic links; a file that one leads to is searched under
	// its own name if that is below Root.
	Links int
	// Special are pipes, sockets and devices.
	Special int
	// Hidden are the paths that Options.Skip hides.
	Hidden int
}

// Errors of Search that callers branch on. Those of a Root that cannot be
// searched wrap a *fs.PathError.
var (
	// ErrQuery is an empty query or a pattern that does not parse.
	ErrQuery = errors.New("bad query")
	// ErrGlob is a glob that does not parse.
	ErrGlob = errors.New("bad glob")
)

// Search finds Options.Query. It fails if the options are wrong or Root cannot
// be searched, or with the context's error.
func Search(ctx context.Context, o Options) (Result, error) {
	m, err := newMatcher(o)
	if err != nil {
		return Result{}, err
	}
	root, err := filepath.EvalSymlinks(filepath.Clean(o.Root))
	if err != nil {
		return Result{}, rootError(o.Root, err)
	}
	g, err := newGlob(o.Glob, filepath.Clean(o.Root), root)
	if err != nil {
		return Result{}, err
	}
	info, err := os.Stat(root)
	if err != nil {
		return Result{}, rootError(o.Root, err)
	}
	w := newWalker(o, root, m, g)
	switch {
	case info.IsDir():
		err = w.walk(ctx)
	case info.Mode().IsRegular():
		err = w.single(ctx)
	default:
		err = rootError(o.Root, errSpecial)
	}
	if err != nil {
		return Result{}, err
	}
	return w.found.result(), nil
}

// rootError makes sure that the error of a root is a *fs.PathError that names
// it.
func rootError(root string, err error) error {
	var path *fs.PathError
	if !errors.As(err, &path) {
		err = &fs.PathError{Op: "open", Path: root, Err: err}
	}
	return fmt.Errorf("search: %w", err)
}

// workers is how many files are read at a time.
func (o Options) workers() int {
	if o.Workers > 0 {
		return o.Workers
	}
	return min(runtime.GOMAXPROCS(0), 32)
}
