package search

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
)

// walker visits a tree with several workers. Its stack holds what is still to
// be visited, the first path in order on top, so that the paths visited at any
// time are nearly those that sort first. A general parallel walk visits
// folders in any order and could not stop early.
type walker struct {
	options Options
	// root is Options.Root after links; prefix is root with a separator.
	root, prefix string
	matcher      *matcher
	glob         glob
	env          environment
	found        collection
	large        sync.Mutex
	tree         *tree

	mu      sync.Mutex
	waiting *sync.Cond
	stack   []visit
	busy    int
	err     error
}

// visit is a path to visit, absolute.
type visit struct {
	path string
	// folder is set for a folder.
	folder bool
	// rules are those of the folder above; open is set where nothing is
	// ignored.
	rules *rules
	open  bool
}

func newWalker(o Options, root string, m *matcher, g glob) *walker {
	w := &walker{
		options: o, root: root, prefix: under(root, ""), matcher: m, glob: g, env: newEnvironment(o.Environ),
		found: collection{max: o.MaxResults, context: o.ContextLines},
	}
	w.waiting = sync.NewCond(&w.mu)
	return w
}

// walk searches the folder root.
func (w *walker) walk(ctx context.Context) (err error) {
	if w.tree, err = openTree(w.root); err != nil {
		return rootError(w.root, err)
	}
	defer w.tree.close()
	r, ignored := rulesAbove(w.root, w.env)
	w.stack = []visit{{path: w.root, folder: true, rules: r, open: ignored}}
	var workers sync.WaitGroup
	for range w.options.workers() {
		workers.Go(func() { w.work(ctx) })
	}
	workers.Wait()
	return w.err
}

// single searches the file root, even if it is ignored.
func (w *walker) single(ctx context.Context) error {
	r := reader{large: &w.large}
	name := filepath.Base(w.options.Root)
	if w.options.Skip != nil && w.options.Skip(w.options.Root) {
		w.found.skip(name, skipHidden)
		return nil
	}
	f, size, err := open(w.root)
	if err != nil {
		return rootError(w.root, err)
	}
	w.search(ctx, &r, f, size, name)
	return ctx.Err()
}

func (w *walker) work(ctx context.Context) {
	defer func() {
		if p := recover(); p != nil {
			w.fail(fmt.Errorf("search: worker: %v", p))
		}
	}()
	r := reader{large: &w.large}
	for v, ok := w.next(ctx, false); ok; v, ok = w.next(ctx, true) {
		if v.folder {
			w.enter(ctx, v)
			continue
		}
		rel := v.path[len(w.prefix):]
		if w.found.beyond(filepath.ToSlash(rel)) {
			continue
		}
		f, size, err := w.tree.file(rel)
		if err != nil {
			w.unread(filepath.ToSlash(rel), err)
			continue
		}
		w.search(ctx, &r, f, size, filepath.ToSlash(rel))
	}
}

// next takes the first path from the stack; done says that the one taken
// before is dealt with. It returns false when there is nothing left.
func (w *walker) next(ctx context.Context, done bool) (visit, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if done {
		w.busy--
	}
	for len(w.stack) == 0 && w.busy > 0 && w.err == nil {
		w.waiting.Wait()
	}
	if err := ctx.Err(); err != nil && w.err == nil {
		w.err = err
	}
	if len(w.stack) == 0 || w.err != nil {
		w.waiting.Broadcast()
		return visit{}, false
	}
	last := len(w.stack) - 1
	v := w.stack[last]
	w.stack[last] = visit{}
	w.stack = w.stack[:last]
	w.busy++
	return v, true
}

// push adds the paths of one folder, in order.
func (w *walker) push(list []visit) {
	if len(list) == 0 {
		return
	}
	slices.Reverse(list)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stack = append(w.stack, list...)
	w.waiting.Broadcast()
}

func (w *walker) fail(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err == nil {
		w.err = err
	}
	w.waiting.Broadcast()
}

// enter reads a folder.
func (w *walker) enter(ctx context.Context, v visit) {
	rel := ""
	if v.path != w.root {
		if rel = filepath.ToSlash(v.path[len(w.prefix):]) + "/"; w.found.beyond(rel) {
			return
		}
	}
	entries, err := w.readFolder(rel)
	if err != nil && v.path == w.root {
		w.fail(rootError(w.root, err))
		return
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		w.found.skip(rel, skipUnreadable)
	}
	if !v.open {
		v.rules = w.rulesIn(v, entries)
	}
	list := make([]visit, 0, len(entries))
	for _, e := range entries {
		if ctx.Err() != nil {
			return // the next look at the stack ends the search
		}
		if next, ok := w.choose(v, rel, e); ok {
			list = append(list, next)
		}
	}
	slices.SortFunc(list, func(a, b visit) int { return compare(a, b) })
	w.push(list)
}

// compare orders the paths of one folder as their contents sort: a folder
// counts as if it ended in "/".
func compare(a, b visit) int {
	if a.folder == b.folder && !a.folder {
		return strings.Compare(a.path, b.path)
	}
	n := min(len(a.path), len(b.path))
	if c := strings.Compare(a.path[:n], b.path[:n]); c != 0 {
		return c
	}
	return cmp.Compare(a.at(n), b.at(n))
}

// at is the byte at n of the path, with "/" behind a folder.
func (v visit) at(n int) int {
	switch {
	case n < len(v.path):
		return int(v.path[n])
	case v.folder:
		return '/'
	}
	return -1
}

// readFolder returns the entries it could read, unordered, even with an error.
func (w *walker) readFolder(rel string) ([]fs.DirEntry, error) {
	f, err := w.tree.folder(filepath.FromSlash(cmp.Or(strings.TrimSuffix(rel, "/"), ".")))
	if err != nil {
		return nil, err
	}
	entries, err := f.ReadDir(-1)
	return entries, errors.Join(err, f.Close())
}

// rulesIn returns the rules that hold in a folder.
func (w *walker) rulesIn(v visit, entries []fs.DirEntry) *rules {
	r := v.rules
	ignore := false
	for _, e := range entries {
		switch e.Name() {
		case ".git":
			if v.path == w.root {
				break // rulesAbove has found it
			}
			if repo, ok := repositoryAt(v.path); ok {
				r = repo.rules(w.env)
			}
		case ".gitignore":
			ignore = e.Type().IsRegular()
		}
	}
	if ignore {
		r = r.with(w.readIgnore(v.path), v.path)
	}
	return r
}

// readIgnore reads the ignore file of a folder below root.
func (w *walker) readIgnore(dir string) []byte {
	f, _, err := w.tree.file(under(dir, ".gitignore")[len(w.prefix):])
	if err != nil {
		return nil
	}
	return f.ignoreText()
}

// choose decides about one entry of a folder whose path below root is rel.
func (w *walker) choose(v visit, rel string, e fs.DirEntry) (visit, bool) {
	name := e.Name()
	next := visit{path: under(v.path, name), folder: e.IsDir(), rules: v.rules, open: v.open}
	rel += name
	if name == ".git" || next.folder && !w.glob.mayHold(rel) || !next.folder && !w.glob.match(rel, name) {
		return visit{}, false
	}
	key := rel
	if next.folder {
		key += "/"
	}
	if w.found.beyond(key) {
		return visit{}, false
	}
	if !next.open && next.rules.ignored(next.path, next.folder) {
		if !w.glob.names(rel, name) {
			kind := skipIgnoredFile
			if next.folder {
				kind = skipIgnoredFolder
			}
			w.found.skip(key, kind)
			return visit{}, false
		}
		next.open = true
	}
	switch {
	case w.options.Skip != nil && w.options.Skip(under(w.options.Root, rel)):
		w.found.skip(key, skipHidden)
		return visit{}, false
	case next.folder, e.Type().IsRegular():
		return next, true
	case e.Type()&fs.ModeSymlink != 0:
		w.found.skip(key, skipLink)
	default:
		w.found.skip(key, skipSpecial)
	}
	return visit{}, false
}

// search looks through one file and closes it.
func (w *walker) search(ctx context.Context, r *reader, f file, size int64, rel string) {
	found := fileLines{path: rel}
	err := r.read(f, size, func(data []byte) {
		found.lines, found.matches = w.matcher.lines(ctx, data, rel)
	})
	if err != nil {
		w.unread(rel, err)
		return
	}
	w.found.saw(rel)
	if found.matches > 0 {
		w.found.add(found)
	}
}

// unread notes why a file was not searched.
func (w *walker) unread(rel string, err error) {
	switch {
	case errors.Is(err, fs.ErrNotExist): // gone since its folder was read
	case errors.Is(err, errBinary):
		w.found.skip(rel, skipBinary)
	case errors.Is(err, errTooLarge):
		w.found.skip(rel, skipTooLarge)
	case errors.Is(err, errSpecial):
		w.found.skip(rel, skipSpecial)
	case errors.Is(err, syscall.ELOOP):
		w.found.skip(rel, skipLink)
	default:
		w.found.skip(rel, skipUnreadable)
	}
}
