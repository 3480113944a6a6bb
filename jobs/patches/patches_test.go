package patches

import (
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// rows are diffs given as id and text in turn.
func rows(list ...string) iter.Seq2[Named, error] {
	return func(yield func(Named, error) bool) {
		for i := 0; i < len(list); i += 2 {
			if !yield(Named{Item: list[i], Diff: []byte(list[i+1])}, nil) {
				return
			}
		}
	}
}

func conflictsOf(t *testing.T, list ...string) []Conflict {
	t.Helper()
	out, err := Conflicts(rows(list...))
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// edit is a patch of path with the changed lines of a hunk and no context.
func edit(path string, start, old int, lines ...string) string {
	at := start
	if old == 0 {
		at--
	}
	var b strings.Builder
	fmt.Fprintf(&b, "diff --git a/%s b/%s\n--- a/%s\n+++ b/%s\n@@ -%d,%d +%d,%d @@\n", path, path, path, path, at, old, start, len(lines))
	for range old {
		b.WriteString("-old\n")
	}
	for _, line := range lines {
		b.WriteString("+" + line + "\n")
	}
	return b.String()
}

func TestConflictNamesEveryRowOfAPlaceInOrder(t *testing.T) {
	got := conflictsOf(t,
		"r3", edit("f", 10, 3, "x")+edit("g", 1, 1, "g"),
		"r1", edit("f", 12, 2, "y"),
		"r2", edit("f", 30, 1, "z"),
		"r4", edit("f", 30, 1, "z"), // the same change
		"r5", edit("f", 14, 1, "touches"),
		"r6", edit("f", 16, 1, "does not touch"),
		"r7", edit("f", 41, 0, "one"),
		"r8", edit("f", 41, 0, "two"),
		"r9", edit("g", 1, 1, "G"),
	)
	want := []Conflict{
		{"f", []string{"r3", "r1", "r5"}, "they differ at lines 10 to 14"},
		{"f", []string{"r7", "r8"}, "they insert different lines after line 40"},
		{"g", []string{"r3", "r9"}, "they differ at line 1"},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

func TestWhatRowsDoToWholeFiles(t *testing.T) {
	added := func(path, text string) string {
		return fmt.Sprintf("diff --git a/%[1]s b/%[1]s\nnew file mode 100644\n--- /dev/null\n+++ b/%[1]s\n@@ -0,0 +1 @@\n+%[2]s\n", path, text)
	}
	deleted := "diff --git a/f b/f\ndeleted file mode 100644\n--- a/f\n+++ /dev/null\n@@ -1,2 +0,0 @@\n-a\n-b\n"
	renamed := func(to string) string {
		return "diff --git a/f b/" + to + "\nsimilarity index 100%\nrename from f\nrename to " + to + "\n"
	}
	copied := "diff --git a/f b/n\nsimilarity index 100%\ncopy from f\ncopy to n\n"
	mode := func(m string) string { return "diff --git a/f b/f\nold mode 100600\nnew mode " + m + "\n" }
	binary := func(text string) string {
		return "diff --git a/f b/f\nGIT binary patch\nliteral 3\n" + text + "\n\nliteral 3\nKcmZ\n\n"
	}
	identified := func(old, now string) string {
		return "diff --git a/f b/f\nindex " + strings.Repeat(old, 40) + ".." + strings.Repeat(now, 40) + " 100644\nBinary files a/f and b/f differ\n"
	}
	based := func(old string, line int) string {
		return strings.Replace(edit("f", line, 1, "x"), "\n", "\nindex "+strings.Repeat(old, 40)+".."+strings.Repeat("9", 40)+" 100644\n", 1)
	}
	replaced := strings.Replace(deleted+"diff --git a/f b/f\nnew file mode 120000\n--- /dev/null\n+++ b/f\n@@ -0,0 +1 @@\n+target\n\\ No newline at end of file\n", "", "", 1)
	unshown := "drover: f is left out of this diff: it is too large to show\n"
	for _, c := range []struct{ name, a, b, want string }{
		{"different files are added", added("n", "x"), added("n", "y"), "n: they add it with different contents"},
		{"the same file is added", added("n", "x"), added("n", "x"), ""},
		{"the same file is added with another mode", added("n", "x"), strings.Replace(added("n", "x"), "644", "755", 1), "n: they add it with different contents"},
		{"a file and a folder", added("n", "x"), added("n/x", "x"), "n/x: some add the file, and others a file instead of its folder n"},
		{"a file beside a folder", added("n.x", "x"), added("n/x", "x"), ""},
		{"added and changed", added("f", "x"), edit("f", 1, 1, "y"), "f: some add it, for others it was there before"},
		{"deleted and changed", deleted, edit("f", 1, 1, "y"), "f: some delete or rename it, others change it"},
		{"deleted twice", deleted, deleted, ""},
		{"deleted and renamed", deleted, renamed("n"), "f: they delete it, or rename it differently"},
		{"deleted and made executable", deleted, mode("100755"), "f: some delete or rename it, others change it"},
		{"renamed and changed", renamed("n"), edit("f", 9, 1, "y"), "f: some delete or rename it, others change it"},
		{"renamed differently", renamed("n"), renamed("m"), "f: they delete it, or rename it differently"},
		{"renamed alike", renamed("n"), renamed("n"), ""},
		{"renamed to what another adds", renamed("n"), added("n", "x"), "n: they add it with different contents"},
		{"copied and changed", copied, edit("f", 9, 1, "y"), ""},
		{"copied to what another adds", copied, added("n", "x"), "n: they add it with different contents"},
		{"modes differ", mode("100755"), mode("100700"), "f: they give it different modes"},
		{"modes are alike", mode("100755"), mode("100755"), ""},
		{"mode and lines", mode("100755"), edit("f", 1, 1, "y"), ""},
		{"binary contents differ", binary("KcmY"), binary("KcmX"), "f: they change the whole of it differently"},
		{"binary contents are alike", binary("KcmY"), binary("KcmY"), ""},
		{"binary and lines", binary("KcmY"), edit("f", 1, 1, "y"), "f: they change the whole of it differently"},
		{"known by their ids", identified("1", "2"), identified("1", "3"), "f: they change the whole of it differently"},
		{"alike by their ids", identified("1", "2"), identified("1", "2"), ""},
		{"a link instead of the file", replaced, edit("f", 1, 1, "y"), "f: they change the whole of it differently"},
		{"a link instead of the file, twice", replaced, replaced, ""},
		{"not shown", unshown, edit("f", 1, 1, "y"), "f: they change the whole of it differently"},
		{"not shown twice", unshown, unshown, "f: they change the whole of it differently"},
		{"other beginnings", based("1", 1), based("2", 50), "f: they began with different contents of it"},
		{"the same beginning", based("1", 1), based("1", 50), ""},
		{"other files", edit("f", 1, 1, "x"), edit("F", 1, 1, "y"), ""},
		{"the end of the last line", edit("f", 1, 1, "x"), edit("f", 1, 1, "x") + "\\ No newline at end of file\n", "f: they differ at line 1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, list := range [][]string{{"1", c.a, "2", c.b}, {"1", c.b, "2", c.a}} {
				var got []string
				for _, f := range conflictsOf(t, list...) {
					if !slices.Equal(f.Items, []string{"1", "2"}) {
						t.Errorf("rows %v", f.Items)
					}
					got = append(got, f.Path+": "+f.Why)
				}
				if d := cmp.Diff(c.want, strings.Join(got, "; ")); d != "" {
					t.Errorf("(-want +got):\n%s", d)
				}
			}
		})
	}
}

func TestNamesAreReadAsGitWritesThem(t *testing.T) {
	for _, c := range []struct{ header, path string }{
		{"diff --git a/x b/y b/x b/y\nold mode 100644\nnew mode 100755\n", "x b/y"},
		{"diff --git \"a/t\\tq\\\"\\303\\274\" \"b/t\\tq\\\"\\303\\274\"\nnew mode 100755\n", "t\tq\"ü"},
		{"--- a/two words\t\n+++ b/two words\t\n@@ -1 +1 @@\n-a\n+b\n", "two words"},
		{"--- old/f\t2001-01-01 00:00:00\n+++ new/f\t2001-01-01 00:00:00\n@@ -1 +1 @@\n-a\n+b\n", "f"},
		{"drover: \"t\\tx\" is left out of this diff: it cannot be read\n", "t\tx"},
		{"drover: a is left out of this diff: b is left out of this diff: it cannot be read\n", "a is left out of this diff: b"},
	} {
		changes, err := parse([]byte("Some text before.\n" + c.header + "-- \n2.0\n"))
		if err != nil || len(changes) != 1 || changes[0].old != c.path || changes[0].now != c.path {
			t.Errorf("%q: %+v, %v", c.header, changes, err)
		}
	}
	// A line of a file that looks like a header is a line.
	changes, err := parse([]byte("--- a/f\n+++ b/f\n@@ -1,3 +1,3 @@\n--- a/g\n+++ b/g\n x\n\n"))
	if err != nil || len(changes) != 1 || changes[0].old != "f" {
		t.Errorf("%+v, %v", changes, err)
	}
}

func TestPatchesThatCannotBeReadAreNamedAndTheRestIsCompared(t *testing.T) {
	lost := errors.New("it is gone")
	bad := []string{
		"--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n-a\n", "--- a/f\n+++ b/f\n@@ -x +1 @@\n", "--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\n-b\n+c\n",
		"--- a/f\n+++ b/f\n@@ -1 +1 @@\n*a\n", "--- f\n+++ f\n@@ -1 +1 @@\n-a\n+b\n", "@@ -1 +1 @@\n-a\n+b\n",
		"diff --git a/f b/f\nGIT binary patch\nnothing\n", "diff --git a/f b/f\n--- a/f\n", "diff --git a b\n", "--- \"a/f\n+++ b/f\n",
		"--- /dev/null\n+++ /dev/null\n", "--- a/f\n+++ b/f\n@@ -0,1 +1 @@\n-a\n+b\n", "diff --git a/f b/g\nrename from \"\\9\"\n",
	}
	for _, text := range bad {
		if changes, err := parse([]byte(text)); err == nil {
			t.Errorf("%q is read as %+v", text, changes)
		}
	}
	got, err := Conflicts(func(yield func(Named, error) bool) {
		_ = yield(Named{Item: "1", Diff: []byte(edit("f", 1, 1, "x"))}, nil) &&
			yield(Named{Item: "2", Diff: []byte(edit("g", 1, 1, "x") + bad[0])}, nil) &&
			yield(Named{Item: "3"}, lost) &&
			yield(Named{Item: "4", Diff: []byte(edit("f", 1, 1, "y") + edit("g", 1, 1, "y"))}, nil)
	})
	if d := cmp.Diff([]Conflict{{"f", []string{"1", "4"}, "they differ at line 1"}}, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if !errors.Is(err, lost) || !strings.Contains(err.Error(), `row "2"`) {
		t.Errorf("error %v", err)
	}
}

func TestFileNamesAreSafeAndDistinct(t *testing.T) {
	ids := []string{"row-1", "ROW-1", "Row-1", "a/b", "a\\b", "a:b", "a b", "..", ".", "", "-rf", ".git", "con", "CON", "con.txt", "nul", "a.", "a", "a.json",
		"a.base", "ü", "u\u0308", "\x00", "\xff", "\xfe", strings.Repeat("x", 120), strings.Repeat("x", 121), strings.Repeat("x", 5000), strings.Repeat("ü", 90), "a\nb"}
	for _, id := range slices.Clone(ids) {
		ids = append(ids, FileName(id)) // what looks like a name of another row
	}
	seen := map[string]string{}
	for _, id := range ids {
		name := FileName(id)
		if name == "" || len(name) > 120 || strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") != "" ||
			strings.HasPrefix(name, ".") || strings.HasPrefix(name, "-") || strings.HasSuffix(name, ".") || deviceName.MatchString(name) {
			t.Errorf("%q is named %q", id, name)
		}
		if other, taken := seen[strings.ToLower(name)]; taken && other != id {
			t.Errorf("%q and %q are both named %q", id, other, name)
		}
		seen[strings.ToLower(name)] = id
	}
	for _, id := range []string{"row-1", "17", "a_b"} {
		if FileName(id) != id {
			t.Errorf("%q is named %q", id, FileName(id))
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(edit("f", 3, 2, "x", "y") + edit("g", 1, 0, "z")))
	f.Add([]byte("diff --git a/f b/g\nsimilarity index 90%\nrename from f\nrename to g\nindex 1..2 100644\n--- a/f\n+++ b/g\n@@ -1 +1 @@\n-a\n+b\n\\ No newline at end of file\n"))
	f.Add([]byte("diff --git \"a/\\303\\274\" \"b/\\303\\274\"\nnew file mode 100644\nGIT binary patch\nliteral 3\nKcmY\n\nliteral 0\nHcmV\n\n"))
	f.Add([]byte("drover: \"a\\tb\" is left out of this diff: it is too large to show\n"))
	f.Fuzz(func(t *testing.T, diff []byte) {
		changes, err := parse(diff)
		if err != nil {
			return
		}
		shown := true
		for _, c := range changes {
			if c.old == "" && c.now == "" {
				t.Fatalf("no name: %+v", c)
			}
			for _, r := range c.regions {
				if r.start < 0 || r.end < r.start {
					t.Fatalf("region %+v", r)
				}
			}
			shown = shown && (!c.opaque || c.content != sum{})
		}
		found, err := Conflicts(rows("1", string(diff), "2", string(diff)))
		if err != nil {
			t.Fatal(err)
		}
		if one, _ := Conflicts(rows("1", string(diff))); len(one) > 0 {
			t.Fatalf("a row is in conflict with itself: %v", one)
		}
		if shown && len(found) > 0 && wellFormed(changes) {
			t.Fatalf("the same patch is in conflict: %v", found)
		}
	})
}

// wellFormed tells whether a patch names no path twice and changes its lines in
// their order, as git's do.
func wellFormed(changes []change) bool {
	seen := map[string]bool{}
	for _, c := range changes {
		if c.copied || seen[c.old] || seen[c.now] {
			return false
		}
		for i := 1; i < len(c.regions); i++ {
			if c.regions[i].start <= c.regions[i-1].end {
				return false
			}
		}
		if c.old != "" {
			seen[c.old] = true
		}
		if c.now != "" {
			seen[c.now] = true
		}
	}
	return true
}

func BenchmarkConflicts(b *testing.B) {
	const patches = 10000
	diffs := make([]string, 0, 2*patches)
	size := 0
	for n := range patches {
		text := edit(fmt.Sprintf("dir/f%d", n%500), 10*(n/500)+1, 2, "some line of text", "another line of text") + edit("all", 3*n+1, 1, "x")
		size += len(text)
		diffs = append(diffs, fmt.Sprint(n), text)
	}
	b.SetBytes(int64(size))
	b.ReportAllocs()
	for b.Loop() {
		if got, err := Conflicts(rows(diffs...)); err != nil || len(got) > 0 {
			b.Fatal(len(got), err)
		}
	}
}
