package patch

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// applyAll parses, plans and applies text in dir.
func applyAll(files Files, dir, text string) ([]Change, error) {
	p, err := Parse(text)
	if err != nil {
		return nil, err
	}
	plan, err := NewPlan(p, Place{Files: files, Dir: dir})
	if err != nil {
		return nil, err
	}
	return plan.Changes, plan.Apply()
}

// TestBytesNotOwnedStay holds for the tool and for the program: each file is
// compared byte for byte.
func TestBytesNotOwnedStay(t *testing.T) {
	const classes = "class A:\n    def run(self):\n        return 1\n\nclass B(Base):\n    def run(self):\n        return 1\n"
	for _, c := range []struct {
		name, before, chunks, after string
		diff                        string // "": not compared
		lenient                     bool
	}{
		{name: "CR LF file, LF patch", before: "one\r\ntwo\r\nthree\r\n", chunks: "@@\n one\n-two\n+TWO\n three\n", after: "one\r\nTWO\r\nthree\r\n",
			diff: "@@ -1,3 +1,3 @@\n one\r\n-two\r\n+TWO\r\n three\r\n"},
		{name: "CR LF file with byte-order mark", before: bom + "one\r\ntwo\r\nthree\r\n", chunks: "@@\n one\n-two\n+TWO\n three\n", after: bom + "one\r\nTWO\r\nthree\r\n",
			diff: "@@ -1,3 +1,3 @@\n one\r\n-two\r\n+TWO\r\n three\r\n"},
		{name: "first line of a file with byte-order mark", before: bom + "one\n", chunks: "@@\n-one\n+ONE\n", after: bom + "ONE\n"},
		{name: "byte-order mark repeated in the patch", before: bom + "one\n", chunks: "@@\n-" + bom + "one\n+" + bom + "ONE\n", after: bom + "ONE\n", lenient: true},
		{name: "CR LF patch, LF file", before: "one\ntwo\n", chunks: "@@\r\n one\r\n-two\r\n+TWO\r\n", after: "one\nTWO\n"},
		{name: "lines added to a CR LF file", before: "one\r\ntwo\r\n", chunks: "@@\n one\n+1.5\n two\n", after: "one\r\n1.5\r\ntwo\r\n"},
		{name: "lines appended to a CR LF file", before: "one\r\n", chunks: "+two\n+three\n", after: "one\r\ntwo\r\nthree\r\n"},
		{name: "mixed endings, replaced lines keep theirs", before: "a\nb\r\nc\nd\r\n", chunks: "@@\n-b\n-c\n+B\n+C\n", after: "a\nB\r\nC\nd\r\n"},
		{name: "mixed endings, added line takes its neighbour's", before: "a\nb\r\nc\nd\r\n", chunks: "@@\n b\n+x\n c\n", after: "a\nb\r\nx\r\nc\nd\r\n"},
		{name: "mixed endings, line before the first", before: "a\r\nb\n", chunks: "@@\n+x\n a\n", after: "x\r\na\r\nb\n"},
		{name: "mixed endings, block repeated with one line changed", before: "a\r\nb\nc\r\n", chunks: "@@\n-a\n-b\n-c\n+a\n+x\n+y\n+b\n+c\n", after: "a\r\nx\r\ny\r\nb\nc\r\n",
			diff: "@@ -1,3 +1,5 @@\n a\r\n+x\r\n+y\r\n b\n c\r\n"},
		{name: "no final newline, change above", before: "alpha\nomega", chunks: "@@\n-alpha\n+ALPHA\n", after: "ALPHA\nomega",
			diff: "@@ -1,2 +1,2 @@\n-alpha\n+ALPHA\n omega\n\\ No newline at end of file\n"},
		{name: "no final newline, last line changed", before: "alpha\nomega", chunks: "@@\n-omega\n+OMEGA\n", after: "alpha\nOMEGA"},
		{name: "no final newline, only line changed", before: "omega", chunks: "@@\n-omega\n+OMEGA\n", after: "OMEGA"},
		{name: "no final newline, line appended", before: "alpha\nomega", chunks: "+end\n", after: "alpha\nomega\nend"},
		{name: "no final newline, line appended to CR LF", before: "alpha\r\nomega", chunks: "@@\n omega\n+end\n", after: "alpha\r\nomega\r\nend"},
		{name: "no final newline, last line removed", before: "a\nb\nc", chunks: "@@\n-c\n", after: "a\nb"},
		{name: "no final newline, blank line before the removed one", before: "a\n\nc", chunks: "@@\n-c\n", after: "a\n\n"},
		{name: "no final newline, newline asked for", before: "alpha\nomega", chunks: "@@\n omega\n+\n", after: "alpha\nomega\n"},
		{name: "no final newline, newline asked for in a changed line", before: "alpha\nomega", chunks: "@@\n-omega\n+OMEGA\n+\n", after: "alpha\nOMEGA\n"},
		{name: "two changes that meet at the end", before: "a\nb\nc", chunks: "@@\n-a\n+A\n b\n@@\n-c\n", after: "A\nb"},
		{name: "two final newlines", before: "a\nb\n\n", chunks: "@@\n-a\n+A\n", after: "A\nb\n\n"},
		{name: "blank lines only at the end stay", before: "a\n\n\n\n", chunks: "@@\n-a\n+A\n \n", after: "A\n\n\n\n"},
		{name: "line added to an empty file", before: "", chunks: "+a\n", after: "a\n"},
		{name: "blank old line at the end of the patch", before: "a\nb\n", chunks: "@@\n a\n-b\n+B\n\n", after: "a\nB\n"},
		{name: "blank context line without its space", before: "a\n\nb\nc\n", chunks: "@@\n a\n\n-b\n+B\n", after: "a\n\nB\nc\n"},
		{name: "nested anchors", before: classes, chunks: "@@ class B(Base):\n@@     def run(self):\n-        return 1\n+        return 2\n",
			after: strings.TrimSuffix(classes, "1\n") + "2\n"},
		{name: "nested anchors that are part of their lines", before: classes, chunks: "@@ class B\n@@ run\n-        return 1\n+        return 2\n",
			after: strings.TrimSuffix(classes, "1\n") + "2\n", lenient: true},
		{name: "look-alikes in the context keep their bytes", before: "say “hi” – now\u00a0ok\nx = 1\n", chunks: "@@\n say \"hi\" - now ok\n-x = 1\n+x = 2\n",
			after: "say “hi” – now\u00a0ok\nx = 2\n", lenient: true},
		{name: "white space in the context keeps its bytes", before: "\tif x {  \n\ty\n}\n", chunks: "@@\n   if x {\n-  y\n+  z\n", after: "\tif x {  \n  z\n}\n", lenient: true},
		{name: "trailing space in the context keeps its bytes", before: "a  \nb\n", chunks: "@@\n a\n-b\n+c\n", after: "a  \nc\n", lenient: true},
		{name: "exact place wins over an earlier loose one", before: "x \ny\nx\ny\n", chunks: "@@\n x\n-y\n+z\n", after: "x \ny\nx\nz\n"},
		{name: "end of file", before: "x\ny\nx\ny\n", chunks: "@@\n x\n-y\n+z\n*** End of File\n", after: "x\ny\nx\nz\n"},
		{name: "additions and a change at the end", before: "a\n\n", chunks: "+b\n@@\n a\n-\n+c\n", after: "a\nb\nc\n"},
		{name: "distant changes make two hunks", before: "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n", chunks: "@@\n-1\n+a\n+b\n@@\n-10\n", after: "a\nb\n2\n3\n4\n5\n6\n7\n8\n9\n",
			diff: "@@ -1,4 +1,5 @@\n-1\n+a\n+b\n 2\n 3\n 4\n@@ -7,4 +8,3 @@\n 7\n 8\n 9\n-10\n"},
		{name: "carriage return inside a line", before: "a\rb\nc\n", chunks: "@@\n-c\n+d\n", after: "a\rb\nd\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			text := wrap("*** Update File: f\n" + c.chunks)
			dir := tree{"f": c.before}.lay(t)
			changes, err := applyAll(Folder{}, dir, text)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tree{"f": c.after}, readTree(t, dir)); diff != "" {
				t.Errorf("plan: want - got +\n%s", diff)
			}
			if changes[0].Lenient != c.lenient {
				t.Errorf("lenient = %v", changes[0].Lenient)
			}
			if c.diff != "" {
				if diff := cmp.Diff("--- a/f\n+++ b/f\n"+c.diff, changes[0].Diff); diff != "" {
					t.Errorf("diff: want - got +\n%s", diff)
				}
			}
			dir = tree{"f": c.before}.lay(t)
			var out strings.Builder
			if code := Main(dir, []string{text}, nil, &out, &out); code != 0 {
				t.Fatalf("program: exit %d, %s", code, out.String())
			}
			if diff := cmp.Diff(tree{"f": c.after}, readTree(t, dir)); diff != "" {
				t.Errorf("program: want - got +\n%s", diff)
			}
		})
	}
}

// TestPlanRefuses holds for the tool: the error is as given and nothing changes.
func TestPlanRefuses(t *testing.T) {
	block := "begin\nwork\nend\n"
	classes := "class A\nrun\nbody\nclass B\nrun\nbody\n"
	for _, c := range []struct {
		name   string
		before tree
		patch  string
		want   string // DIR is the folder
	}{
		{"empty patch", nil, "", "No files were modified."},
		{"add onto a file", tree{"notes.md": "mine\n"}, "*** Add File: notes.md\n+x\n",
			"cannot add notes.md: DIR/notes.md already exists; *** Update File changes an existing file"},
		{"add onto a link that leads nowhere", tree{".env": "-> ../secret.env"}, "*** Add File: .env\n+x\n",
			"cannot add .env: DIR/.env already exists, as a symbolic link"},
		{"add onto a folder", tree{"d/": ""}, "*** Add File: d\n+x\n", "cannot add d: DIR/d already exists, as a folder"},
		{"add below a file", tree{"f": "x\n"}, "*** Add File: f/g\n+x\n", "cannot add f/g: not a directory"},
		{"move onto a file", tree{"old.go": "a\n", "new.go": "b\n"}, "*** Update File: old.go\n*** Move to: new.go\n@@\n-a\n+c\n",
			"cannot move old.go to new.go: DIR/new.go already exists; *** Update File changes an existing file"},
		{"move a link", tree{"f": "a\n", "l": "-> f"}, "*** Update File: l\n*** Move to: m\n@@\n-a\n+c\n", "cannot move l: it is a symbolic link"},
		{"delete two links", tree{"l": "-> f", "m": "-> f"}, "*** Delete File: l\n*** Delete File: m\n",
			"cannot delete m: a patch may delete one symbolic link at most"},
		{"second of three files does not match", tree{"a": "1\n", "b": "1\n2\n3\n", "c": "1\n"},
			"*** Update File: a\n@@\n-1\n+x\n*** Update File: b\n@@\n 1\n 2\n-tree\n+x\n*** Update File: c\n@@\n-1\n+x\n",
			"Failed to find expected lines in DIR/b:\n1\n2\ntree\nThe first line that does not match is \"tree\": line 3 of the file is \"3\"."},
		{"nothing matches", tree{"b": "1\n"}, "*** Update File: b\n@@\n-x\n+y\n",
			"Failed to find expected lines in DIR/b:\nx\nThe first line that does not match is \"x\": no line of the file is like it."},
		{"nothing matches after the chunk before", tree{"b": "1\n2\n"}, "*** Update File: b\n@@\n-2\n+y\n@@\n-1\n+y\n",
			"Failed to find expected lines in DIR/b:\n1\nThe first line that does not match is \"1\": no line after line 2 is like it."},
		{"file ends too early", tree{"b": "1\n2\n"}, "*** Update File: b\n@@\n 2\n-3\n+y\n",
			"Failed to find expected lines in DIR/b:\n2\n3\nThe first line that does not match is \"3\": the file ends after line 2."},
		{"lines are not at the end", tree{"b": "1\n2\n"}, "*** Update File: b\n@@\n-1\n+y\n*** End of File\n",
			"Failed to find expected lines in DIR/b:\n1\nThe lines stand at line 1, but not at the end of the file."},
		{"first anchor missing", tree{"f": classes}, "*** Update File: f\n@@ class C\n@@ run\n-body\n+x\n", "Failed to find context 'class C' in DIR/f"},
		{"second anchor missing", tree{"f": classes}, "*** Update File: f\n@@ class B\n@@ walk\n-body\n+x\n", "Failed to find context 'walk' in DIR/f"},
		{"anchor is part of a word", tree{"f": "subclass Bees\nx\n"}, "*** Update File: f\n@@ class B\n-x\n+y\n", "Failed to find context 'class B' in DIR/f"},
		{"update without chunks", tree{"f": "x\n"}, "*** Update File: f\n", "invalid hunk at line 2, Update file hunk for path 'f' is empty"},
		{"result equals the file", tree{"f": "x\n"}, "*** Update File: f\n@@\n-x\n+x\n", "no change: the section for f leaves the file as it is"},
		{"one section of two changes nothing", tree{"f": "x\n", "g": "x\n"}, "*** Update File: f\n@@\n-x\n+y\n*** Update File: g\n@@\n x\n",
			"no change: the section for g leaves the file as it is"},
		{"move onto itself without a change", tree{"f": "x\n"}, "*** Update File: f\n*** Move to: ./f\n@@\n x\n", "no change: the section for f leaves the file as it is"},
		{"identical blocks", tree{"f": block + "\n" + block}, "*** Update File: f\n@@\n begin\n-work\n+play\n end\n",
			"ambiguous context in DIR/f: the lines match at lines 1, 5; add context lines or an @@ header that only one place has:\nbegin\nwork\nend"},
		{"identical blocks below anchors that look the same", tree{"f": classes}, "*** Update File: f\n@@ run\n-body\n+x\n",
			"ambiguous context in DIR/f: the lines match at lines 3, 6; add context lines or an @@ header that only one place has:\nbody"},
		{"very many places", tree{"f": strings.Repeat("x\n", 50)}, "*** Update File: f\n@@\n-x\n+y\n",
			"ambiguous context in DIR/f: the lines match at lines 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 and maybe more; add context lines or an @@ header that only one place has:\nx"},
		{"same file twice", tree{"f": "x\ny\n"}, "*** Update File: f\n@@\n-x\n+y\n*** Update File: ./f\n@@\n-y\n+z\n",
			"./f is named twice in the patch (first as f); put all its changes into one section"},
		{"update of a file that the patch adds", nil, "*** Add File: f\n+x\n*** Update File: DIR/f\n@@\n-x\n+z\n",
			"DIR/f is named twice in the patch (first as f); put all its changes into one section"},
		{"file that is not UTF-8", tree{"f": "ok\nx\xe9\n"}, "*** Update File: f\n@@\n-ok\n+y\n",
			"DIR/f is not valid UTF-8 (first bad byte at offset 4), so a patch cannot update it"},
		{"delete a folder", tree{"d/f": "x\n"}, "*** Delete File: d\n", "Failed to delete file DIR/d: it is a folder"},
		{"update a folder", tree{"d/f": "x\n"}, "*** Update File: d\n@@\n-x\n", "Failed to read file to update DIR/d: it is a folder"},
		{"delete a missing file", nil, "*** Delete File: gone\n", "Failed to delete file DIR/gone: no such file or directory"},
		{"chunks that overlap at the end", tree{"f": "a\nb\n"}, "*** Update File: f\n@@\n-a\n-b\n+c\n@@\n-b\n+d\n*** End of File\n",
			"Failed to find expected lines in DIR/f:\nb\nThe first line that does not match is \"b\": no line after line 2 is like it."},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := c.before.lay(t)
			_, err := applyAll(Folder{}, dir, strings.ReplaceAll(wrap(c.patch), "DIR", dir))
			if err == nil {
				t.Fatal("no error")
			}
			if diff := cmp.Diff(strings.ReplaceAll(c.want, "DIR", dir), err.Error()); diff != "" {
				t.Errorf("want - got +\n%s", diff)
			}
			if c.before == nil {
				c.before = tree{}
			}
			if diff := cmp.Diff(c.before, readTree(t, dir)); diff != "" {
				t.Errorf("the folder changed: want - got +\n%s", diff)
			}
		})
	}
}

// TestPlanDescribesEachChange compares what the caller reports, and the tree.
func TestPlanDescribesEachChange(t *testing.T) {
	dir := tree{"docs/my notes (v2).md": "a\n", "naïve.md": "x\ny\n", "bin": "\xff\x00", "l": "-> bin", "f": "q\n"}.lay(t)
	abs := func(name string) string { return filepath.Join(dir, name) }
	changes, err := applyAll(Folder{}, dir, wrap("*** Update File: docs/my notes (v2).md\n@@\n-a\n+b\n"+
		"*** Add File: docs/naïve – файл.md\n+1\n+2\n"+
		"*** Update File: naïve.md\n*** Move to: docs/../docs/naïve.md\n@@\n x\n"+
		"*** Delete File: bin\n*** Delete File: l\n*** Update File: "+abs("f")+"\n@@\n-q\n"))
	if err != nil {
		t.Fatal(err)
	}
	want := []Change{
		{Kind: Modified, Spelled: "docs/my notes (v2).md", Path: "docs/my notes (v2).md", Abs: abs("docs/my notes (v2).md"), Before: []byte("a\n"), After: []byte("b\n"),
			Added: 1, Removed: 1, Diff: "--- a/docs/my notes (v2).md\t\n+++ b/docs/my notes (v2).md\t\n@@ -1 +1 @@\n-a\n+b\n"},
		{Kind: Added, Spelled: "docs/naïve – файл.md", Path: "docs/naïve – файл.md", Abs: abs("docs/naïve – файл.md"), After: []byte("1\n2\n"),
			Added: 2, Diff: "--- /dev/null\n+++ b/docs/naïve – файл.md\t\n@@ -0,0 +1,2 @@\n+1\n+2\n"},
		{Kind: Renamed, Spelled: "docs/../docs/naïve.md", Path: "docs/naïve.md", OldPath: "naïve.md", Abs: abs("docs/naïve.md"), OldAbs: abs("naïve.md"),
			Before: []byte("x\ny\n"), After: []byte("x\ny\n")},
		{Kind: Deleted, Spelled: "bin", Path: "bin", Abs: abs("bin"), Before: []byte("\xff\x00")},
		{Kind: Deleted, Spelled: "l", Path: "l", Abs: abs("l")},
		{Kind: Modified, Spelled: abs("f"), Path: "f", Abs: abs("f"), Before: []byte("q\n"), After: []byte{}, Removed: 1,
			Diff: "--- a/f\n+++ b/f\n@@ -1 +0,0 @@\n-q\n", Notes: []string{abs("f") + " is an empty file now; only *** Delete File removes it"}},
	}
	ignore := cmp.FilterPath(func(p cmp.Path) bool { return p.Last().String() == ".mode" || p.Last().String() == ".stat" }, cmp.Ignore())
	if diff := cmp.Diff(want, changes, ignore); diff != "" {
		t.Errorf("want - got +\n%s", diff)
	}
	after := tree{"docs/my notes (v2).md": "b\n", "docs/naïve – файл.md": "1\n2\n", "docs/naïve.md": "x\ny\n", "f": ""}
	if diff := cmp.Diff(after, readTree(t, dir)); diff != "" {
		t.Errorf("tree: want - got +\n%s", diff)
	}
	wantSummary := updatedFiles + "A docs/naïve – файл.md\nM docs/my notes (v2).md\nM docs/../docs/naïve.md\nM " + abs("f") + "\nD bin\nD l\n"
	if diff := cmp.Diff(wantSummary, Summary(changes)); diff != "" {
		t.Errorf("summary: want - got +\n%s", diff)
	}
}

func TestShownPathsStartAtTheBase(t *testing.T) {
	dir := tree{"sub/f": "a\n"}.lay(t)
	p, err := Parse(wrap("*** Update File: f\n@@\n-a\n+b\n*** Add File: ../g\n"))
	if err != nil {
		t.Fatal(err)
	}
	plan, err := NewPlan(p, Place{Files: Folder{}, Dir: filepath.Join(dir, "sub"), Base: dir})
	if err != nil {
		t.Fatal(err)
	}
	got := []string{plan.Changes[0].Path, plan.Changes[0].Spelled, plan.Changes[1].Path, plan.Changes[1].Spelled}
	if diff := cmp.Diff([]string{"sub/f", "f", "g", "../g"}, got); diff != "" {
		t.Errorf("want - got +\n%s", diff)
	}
}

func TestDiffOfWholeContents(t *testing.T) {
	for _, c := range []struct {
		name           string
		before, after  []byte
		want           string
		added, removed int
	}{
		{"new file", nil, []byte("a\nb"), "--- /dev/null\n+++ b/f\n@@ -0,0 +1,2 @@\n+a\n+b\n\\ No newline at end of file\n", 2, 0},
		{"changed line", []byte("a\nb\nc\n"), []byte("a\nB\nc\n"), "--- a/f\n+++ b/f\n@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n", 1, 1},
		{"changed ending", []byte("a\r\nb\r\n"), []byte("a\nb\r\n"), "--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n-a\r\n+a\n b\r\n", 1, 1},
		{"byte-order mark lost", []byte(bom + "a\n"), []byte("a\n"), "--- a/f\n+++ b/f\n@@ -1 +1 @@\n-" + bom + "a\n+a\n", 1, 1},
		{"final newline added", []byte("a\nb"), []byte("a\nb\n"), "--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n a\n-b\n\\ No newline at end of file\n+b\n", 1, 1},
		{"no change", []byte("a\n"), []byte("a\n"), "", 0, 0},
		{"binary", []byte("a\xff"), []byte("a\n"), "", 0, 0},
		{"new empty file", nil, []byte{}, "", 0, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, added, removed := Diff("f", c.before, c.after)
			if diff := cmp.Diff(c.want, got); diff != "" || added != c.added || removed != c.removed {
				t.Errorf("+%d -%d, want +%d -%d; want - got +\n%s", added, removed, c.added, c.removed, diff)
			}
		})
	}
}

func TestFileModesStay(t *testing.T) {
	dir := tree{"run.sh": "a\n", "move.sh": "a\n"}.lay(t)
	for _, name := range []string{"run.sh", "move.sh"} {
		if err := os.Chmod(filepath.Join(dir, name), 0o775); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := applyAll(Folder{}, dir, wrap("*** Update File: run.sh\n@@\n-a\n+b\n*** Update File: move.sh\n*** Move to: moved.sh\n@@\n-a\n+b\n")); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"run.sh", "moved.sh"} {
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm() != 0o775 {
			t.Errorf("%s has mode %v, want 0775", name, info.Mode())
		}
	}
}

// brittle fails one operation that changes the disk.
type brittle struct {
	Folder
	left int // how many operations are left until the failing one
}

var errDisk = errors.New("disk full")

func (b *brittle) step() error {
	b.left--
	if b.left == 0 {
		return errDisk
	}
	return nil
}

func (b *brittle) WriteFile(name string, data []byte, perm fs.FileMode) error {
	if err := b.step(); err != nil {
		return err
	}
	return b.Folder.WriteFile(name, data, perm)
}

func (b *brittle) Remove(name string) error {
	if err := b.step(); err != nil {
		return err
	}
	return b.Folder.Remove(name)
}

func (b *brittle) MkdirAll(name string) error {
	if err := b.step(); err != nil {
		return err
	}
	return b.Folder.MkdirAll(name)
}

func TestFailureInMidWriteRestoresEverything(t *testing.T) {
	before := tree{"a": "1\n", "b": "2\n", "c": "3\n", "keep/d": "4\n", "l": "-> a"}
	patch := wrap("*** Update File: a\n@@\n-1\n+x\n*** Add File: new/deep/f\n+x\n*** Add File: new/g\n+x\n" +
		"*** Update File: b\n*** Move to: other/b\n@@\n-2\n+x\n*** Delete File: l\n*** Delete File: c\n*** Delete File: keep/d\n")
	for step := 1; ; step++ {
		dir := before.lay(t)
		if err := os.Chmod(filepath.Join(dir, "c"), 0o751); err != nil {
			t.Fatal(err)
		}
		_, err := applyAll(&brittle{left: step}, dir, patch)
		if err == nil {
			if step < 9 {
				t.Fatalf("only %d steps failed", step-1)
			}
			return
		}
		if !errors.Is(err, errDisk) || !strings.Contains(err.Error(), "nothing was changed") {
			t.Errorf("step %d: %v", step, err)
		}
		if diff := cmp.Diff(before, readTree(t, dir)); diff != "" {
			t.Errorf("step %d: want - got +\n%s", step, diff)
		}
		if info, err := os.Stat(filepath.Join(dir, "c")); err != nil || info.Mode().Perm() != 0o751 {
			t.Errorf("step %d: c has mode %v, %v", step, info, err)
		}
	}
}

func TestFileChangedAfterPlanningIsNotOverwritten(t *testing.T) {
	for _, c := range []struct {
		name, patch string
		touch       tree
		want        string
	}{
		{"source changed", "*** Update File: f\n@@\n-x\n+y\n*** Add File: n\n+1\n", tree{"f": "longer\n"}, "f changed while"},
		{"destination appeared", "*** Update File: f\n@@\n-x\n+y\n*** Add File: n\n+1\n", tree{"f": "x\n", "n": "theirs\n"}, "n appeared while"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := tree{"f": "x\n"}.lay(t)
			p, err := Parse(wrap(c.patch))
			if err != nil {
				t.Fatal(err)
			}
			plan, err := NewPlan(p, Place{Files: Folder{}, Dir: dir})
			if err != nil {
				t.Fatal(err)
			}
			for name, content := range c.touch {
				if name == "f" && content == "x\n" {
					continue
				}
				if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if err := plan.Apply(); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("err = %v, want %q", err, c.want)
			}
			if diff := cmp.Diff(c.touch, readTree(t, dir)); diff != "" {
				t.Errorf("want - got +\n%s", diff)
			}
		})
	}
}

// caseless is a disk that ignores case, kept in one folder under lower-case
// names. It remembers the spelling of the last creation.
type caseless struct {
	Folder
	spelling map[string]string
}

func (c *caseless) fold(name string) string {
	return filepath.Join(filepath.Dir(name), strings.ToLower(filepath.Base(name)))
}

func (c *caseless) Lstat(name string) (fs.FileInfo, error) { return c.Folder.Lstat(c.fold(name)) }

func (c *caseless) ReadFile(name string) ([]byte, error) { return c.Folder.ReadFile(c.fold(name)) }

func (c *caseless) WriteFile(name string, data []byte, perm fs.FileMode) error {
	if _, err := c.Lstat(name); err != nil {
		c.spelling[c.fold(name)] = filepath.Base(name)
	}
	return c.Folder.WriteFile(c.fold(name), data, perm)
}

func (c *caseless) Remove(name string) error {
	delete(c.spelling, c.fold(name))
	return c.Folder.Remove(c.fold(name))
}

func TestRenameThatDiffersOnlyInCase(t *testing.T) {
	patch := wrap("*** Update File: readme\n*** Move to: README\n@@\n-x\n+y\n")
	t.Run("disk that minds case", func(t *testing.T) {
		dir := tree{"readme": "x\n"}.lay(t)
		if _, err := applyAll(Folder{}, dir, patch); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(tree{"README": "y\n"}, readTree(t, dir)); diff != "" {
			t.Errorf("want - got +\n%s", diff)
		}
	})
	t.Run("both names taken", func(t *testing.T) {
		before := tree{"readme": "x\n", "README": "other\n"}
		dir := before.lay(t)
		if _, err := applyAll(Folder{}, dir, patch); err == nil {
			t.Error("no error")
		}
		if diff := cmp.Diff(before, readTree(t, dir)); diff != "" {
			t.Errorf("want - got +\n%s", diff)
		}
	})
	t.Run("disk that ignores case", func(t *testing.T) {
		dir := tree{"readme": "x\n"}.lay(t)
		disk := &caseless{spelling: map[string]string{filepath.Join(dir, "readme"): "readme"}}
		changes, err := applyAll(disk, dir, patch)
		if err != nil {
			t.Fatal(err)
		}
		if changes[0].Kind != Renamed || fmt.Sprint(disk.spelling) != fmt.Sprintf("map[%s/readme:README]", dir) {
			t.Errorf("kind %s, spelling %v", changes[0].Kind, disk.spelling)
		}
		if diff := cmp.Diff(tree{"readme": "y\n"}, readTree(t, dir)); diff != "" {
			t.Errorf("want - got +\n%s", diff)
		}
	})
	t.Run("hard link is a file of its own", func(t *testing.T) {
		dir := tree{"readme": "x\n"}.lay(t)
		if err := os.Link(filepath.Join(dir, "readme"), filepath.Join(dir, "other")); err != nil {
			t.Skipf("this disk has no hard links: %v", err)
		}
		if _, err := applyAll(Folder{}, dir, strings.Replace(patch, "README", "other", 1)); err == nil {
			t.Error("no error")
		}
	})
}
