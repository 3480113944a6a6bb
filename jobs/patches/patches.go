// Package patches compares the diffs that the rows of a job have left and tells
// which of them cannot all be applied. It reads unified diffs in git's format,
// renders nothing, applies nothing and touches no file.
//
// Two rows are in conflict where git apply --3way could not merge them: where
// the lines they change overlap or touch in the file before, where they add the
// same file with different contents, or where one removes what another changes.
// Rows that make the same change are not in conflict. Conflicts does the work;
// FileName gives a row's patch its file.
package patches

import (
	"cmp"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
)

// Named is the diff of one row.
type Named struct {
	// Item is the row's id.
	Item string
	// Diff is a unified diff, with paths that begin with one folder more than
	// those of the tree (a/ and b/).
	Diff []byte
}

// Conflict is one place in which rows cannot all be applied.
type Conflict struct {
	// Path is the file, with slashes. It is untrusted text.
	Path string
	// Items are the ids of the rows, two or more, in the order of the patches.
	Items []string
	// Why says what they do, as the end of a sentence about them.
	Why string
}

// maxErrors bounds how many patches that cannot be read are told of.
const maxErrors = 10

// Conflicts returns the conflicts between all patches, in the order of the
// paths. A patch that cannot be read is left out, and so is one that comes with
// an error; the error names the first ten of them, and the conflicts between the
// others are returned all the same. What is held in memory grows with the number
// of changed places, not with what is in them.
func Conflicts(patches iter.Seq2[Named, error]) ([]Conflict, error) {
	c := &collection{paths: map[string]*file{}, numbers: map[string]int{}}
	var failed []error
	for p, err := range patches {
		var changes []change
		if err == nil {
			changes, err = parse(p.Diff)
		}
		if err == nil {
			c.add(p.Item, changes)
		} else if len(failed) < maxErrors {
			failed = append(failed, fmt.Errorf("read patch of row %q: %w", p.Item, err))
		}
	}
	return c.conflicts(), errors.Join(failed...)
}

// collection is what all patches do, by path.
type collection struct {
	paths map[string]*file
	// items are the rows in the order of their patches, numbers the way back.
	items   []string
	numbers map[string]int
}

// file is what rows do to one path. A row is given by its number.
type file struct {
	// added, gone, whole and modes tell for each row what becomes of the file;
	// rows with the same value do the same.
	added, gone, whole, modes map[int]sum
	// bases are the ids of the contents that rows began with.
	bases   map[int]string
	regions []owned
}

// owned is a region with its row.
type owned struct {
	region
	item int
}

func (c *collection) file(path string) *file {
	f := c.paths[path]
	if f == nil {
		f = &file{}
		c.paths[path] = f
	}
	return f
}

// set adds to a map that may not be there yet: most files need one of five.
func set[V any](m *map[int]V, item int, v V) {
	if *m == nil {
		*m = map[int]V{}
	}
	(*m)[item] = v
}

func (c *collection) add(item string, changes []change) {
	n, ok := c.numbers[item]
	if !ok {
		n = len(c.items)
		c.items, c.numbers[item] = append(c.items, item), n
	}
	for i := range changes {
		ch := &changes[i]
		if ch.content == (sum{}) && ch.opaque {
			ch.content = hashOf("unknown", item) // like nobody else's
		}
		if ch.old != "" {
			c.addOld(n, ch)
		}
		if ch.now != "" && (ch.old != ch.now || ch.copied) {
			set(&c.file(ch.now).added, n, ch.made())
		}
	}
	// A file that is deleted and added again, as another kind, is replaced.
	for i := range changes {
		f := c.paths[changes[i].now]
		if f == nil {
			continue
		}
		made, added := f.added[n]
		if _, gone := f.gone[n]; gone && added {
			delete(f.added, n)
			delete(f.gone, n)
			set(&f.whole, n, made)
		}
	}
}

// addOld notes what a change does to the path it begins with.
func (c *collection) addOld(n int, ch *change) {
	if ch.copied {
		return // the original stays as it is
	}
	f := c.file(ch.old)
	if ch.base != "" {
		set(&f.bases, n, ch.base)
	}
	switch {
	case ch.now != ch.old:
		set(&f.gone, n, hashOf("to", ch.now))
		return
	case ch.opaque:
		set(&f.whole, n, ch.content)
	}
	for _, r := range ch.regions {
		f.regions = append(f.regions, owned{r, n})
	}
	if ch.mode != "" {
		set(&f.modes, n, hashOf("mode", ch.mode))
	}
}

// conflicts compares what the rows do.
func (c *collection) conflicts() []Conflict {
	var out []Conflict
	for _, path := range slices.Sorted(maps.Keys(c.paths)) {
		f := c.paths[path]
		for _, found := range f.conflicts() {
			out = append(out, c.conflict(path, found))
		}
		if len(f.added) > 0 {
			if found, ok := c.below(path, f); ok {
				out = append(out, c.conflict(path, found))
			}
		}
	}
	return out
}

// found is a conflict with rows by their numbers, in any order.
type found struct {
	items []int
	why   string
}

func (c *collection) conflict(path string, f found) Conflict {
	slices.Sort(f.items)
	out := Conflict{Path: path, Why: f.why}
	for _, n := range slices.Compact(f.items) {
		out.Items = append(out.Items, c.items[n])
	}
	return out
}

// below finds rows that add a file in a folder which others add as a file.
func (c *collection) below(path string, f *file) (found, bool) {
	for i, r := range path {
		if r != '/' {
			continue
		}
		above := c.paths[path[:i]]
		if above == nil {
			continue
		}
		if items := rowsOf(above.added, f.added); len(items) > max(len(above.added), len(f.added)) {
			return found{items, fmt.Sprintf("some add the file, and others a file instead of its folder %s", path[:i])}, true
		}
	}
	return found{}, false
}

// conflicts compares what the rows do to one file.
func (f *file) conflicts() (out []found) {
	report := func(why string, items []int) {
		if len(items) > 1 {
			out = append(out, found{items, why})
		}
	}
	content := rowsOf(f.whole)
	for _, r := range f.regions {
		content = append(content, r.item)
	}
	slices.Sort(content)
	content = slices.Compact(content)
	changing := union(content, rowsOf(f.modes))

	if kinds(f.added) > 1 {
		report("they add it with different contents", rowsOf(f.added))
	}
	if before := union(changing, rowsOf(f.gone)); len(f.added) > 0 && len(before) > 0 {
		report("some add it, for others it was there before", union(rowsOf(f.added), before))
	}
	switch {
	case len(f.gone) > 0 && len(changing) > 0:
		report("some delete or rename it, others change it", union(changing, rowsOf(f.gone)))
	case kinds(f.gone) > 1:
		report("they delete it, or rename it differently", rowsOf(f.gone))
	}
	switch {
	case kinds(f.bases) > 1 && len(content) > 0:
		report("they began with different contents of it", union(content, rowsOf(f.bases)))
	case kinds(f.whole) > 1, len(f.whole) > 0 && len(content) > len(f.whole):
		report("they change the whole of it differently", content)
	default:
		out = append(out, f.overlaps()...)
	}
	if kinds(f.modes) > 1 {
		report("they give it different modes", rowsOf(f.modes))
	}
	return out
}

// overlaps finds the places in which changed lines overlap or touch. Regions of
// one row never touch each other, so that a place with two different regions
// is one in which rows differ.
func (f *file) overlaps() (out []found) {
	regions := f.regions
	slices.SortFunc(regions, func(a, b owned) int {
		return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(a.end, b.end), cmp.Compare(a.item, b.item))
	})
	for i := 0; i < len(regions); {
		place, differ := regions[i].region, false
		next := i + 1
		for ; next < len(regions) && regions[next].start <= place.end; next++ {
			differ = differ || regions[next].region != regions[i].region
			place.end = max(place.end, regions[next].end)
		}
		if differ {
			var items []int
			for _, r := range regions[i:next] {
				items = append(items, r.item)
			}
			// A patch that nobody has checked may hold a line twice.
			if slices.Max(items) > slices.Min(items) {
				out = append(out, found{items, whereOf(place)})
			}
		}
		i = next
	}
	return out
}

func whereOf(r region) string {
	switch r.end - r.start {
	case 0:
		if r.start == 0 {
			return "they insert different lines at its beginning"
		}
		return fmt.Sprintf("they insert different lines after line %d", r.start)
	case 1:
		return fmt.Sprintf("they differ at line %d", r.end)
	}
	return fmt.Sprintf("they differ at lines %d to %d", r.start+1, r.end)
}

// kinds is how many different values there are, up to two.
func kinds[V comparable](m map[int]V) int {
	n := 0
	var first V
	for _, v := range m {
		if n == 0 {
			n, first = 1, v
		} else if v != first {
			return 2
		}
	}
	return n
}

// rowsOf are the rows in any of the maps.
func rowsOf[V any](ms ...map[int]V) []int {
	var out []int
	for _, m := range ms {
		out = slices.AppendSeq(out, maps.Keys(m))
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func union(a, b []int) []int {
	out := slices.Concat(a, b)
	slices.Sort(out)
	return slices.Compact(out)
}
