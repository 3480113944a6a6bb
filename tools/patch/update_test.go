package patch

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// FuzzUpdateKeepsWhatThePatchDoesNotName checks every update that fits: bytes
// between the edits are the file's own, removed lines were marked as removed and
// added lines as added. Only the newline of a last line may come or go with its
// neighbour.
func FuzzUpdateKeepsWhatThePatchDoesNotName(f *testing.F) {
	for _, seed := range [][2]string{
		{"one\r\ntwo\r\nthree\r\n", "@@\n one\n-two\n+TWO\n+more\n three\n"},
		{"a\n\nb", "@@ a\n-b\n"},
		{bom + "x “y”\nz\n\n", "@@\n x \"y\"\n-z\n+q\n+\n*** End of File\n"},
		{"a\nb\na\nb\n", "@@ a\n@@ b\n a\n-b\n@@\n+end\n"},
		{"a\nb\r\nc", "@@\n-a\n-b\n-c\n+a\n+c\n+d\n"},
		{"", "+a\n"},
		{"a\n\n", "+b\n@@\n a\n-\n+c\n"},
	} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, before, chunks string) {
		p, err := Parse(wrap("*** Update File: f\n" + chunks))
		if err != nil || len(p.Sections) != 1 || p.Sections[0].Action != Update {
			return
		}
		doc, err := newDocument("f", []byte(before))
		if err != nil {
			return
		}
		for _, strict := range []bool{true, false} {
			u, err := update(doc, p.Sections[0].Chunks, strict)
			if err != nil {
				continue
			}
			checkOwnership(t, doc, p.Sections[0].Chunks, u)
		}
	})
}

func checkOwnership(t *testing.T, doc *document, chunks []Chunk, u *updated) {
	t.Helper()
	named := map[Op]map[string]bool{Insert: {}, Remove: {}}
	for _, c := range chunks {
		for _, l := range c.Lines {
			ops := []Op{l.Op}
			if l.Op == Keep && l.Text == "" {
				ops = []Op{Insert, Remove} // a blank last line may stand for either
			}
			for _, op := range ops {
				if named[op] != nil {
					named[op][lookAlike.key(l.Text)] = true
				}
			}
		}
	}
	rest, found := strings.CutPrefix(string(u.after), doc.bom)
	if !found && len(u.after) > 0 {
		t.Fatal("the byte-order mark is gone")
	}
	at := 0
	keep := func(lines []line) {
		for _, l := range lines {
			if rest, found = strings.CutPrefix(rest, l.body+l.eol); !found {
				t.Fatalf("kept line %q is not in the result %q", l.body+l.eol, u.after)
			}
		}
	}
	for _, e := range u.edits {
		keep(doc.lines[at:e.lo])
		at = e.hi
		// In the last edit of a file without final newline a line may stand only
		// because its ending changes.
		neighbour := map[string]bool{}
		if e.hi == len(doc.lines) && !ended(doc.raw) {
			for _, l := range e.lines {
				neighbour[l.body] = slices.ContainsFunc(doc.lines[e.lo:e.hi], func(old line) bool { return old.body == l.body })
			}
		}
		for _, l := range doc.lines[e.lo:e.hi] {
			if !named[Remove][lookAlike.key(l.body)] && !neighbour[l.body] {
				t.Fatalf("line %q was removed, but the patch does not say so", l.body)
			}
		}
		for _, l := range e.lines {
			if !named[Insert][lookAlike.key(l.body)] && !neighbour[l.body] {
				t.Fatalf("line %q was added, but the patch does not say so", l.body)
			}
			if rest, found = strings.CutPrefix(rest, l.body+l.eol); !found {
				t.Fatalf("added line %q is not in the result %q", l.body+l.eol, u.after)
			}
		}
	}
	keep(doc.lines[at:])
	if rest != "" {
		t.Fatalf("the result has %q at its end, from nowhere", rest)
	}
	if ended(doc.raw) && len(u.after) > 0 && !ended(string(u.after)) {
		t.Fatal("the final newline is gone")
	}
}

func ended(s string) bool { return strings.HasSuffix(s, "\n") }

// BenchmarkUpdate parses a patch with three chunks and plans it for a file of
// 10,000 lines.
func BenchmarkUpdate(b *testing.B) {
	var file strings.Builder
	for i := range 10_000 {
		fmt.Fprintf(&file, "\tvalue[%d] = compute(%d) // line\n", i, i)
	}
	before := []byte(file.String())
	for _, bench := range []struct{ name, indent string }{{"exact", "\t"}, {"lenient", "    "}} {
		var text strings.Builder
		text.WriteString("*** Begin Patch\n*** Update File: f\n")
		for _, i := range []int{100, 5_000, 9_900} {
			for j, op := range []string{" ", "-", " "} {
				fmt.Fprintf(&text, "%s%svalue[%d] = compute(%d) // line\n", op, bench.indent, i+j, i+j)
			}
			fmt.Fprintf(&text, "+\tchanged[%d]\n@@\n", i)
		}
		patch := strings.TrimSuffix(text.String(), "@@\n") + "*** End Patch\n"
		b.Run(bench.name, func(b *testing.B) {
			b.SetBytes(int64(len(before)))
			b.ReportAllocs()
			for b.Loop() {
				p, err := Parse(patch)
				if err != nil {
					b.Fatal(err)
				}
				doc, err := newDocument("f", before)
				if err != nil {
					b.Fatal(err)
				}
				u, err := update(doc, p.Sections[0].Chunks, true)
				if err != nil || len(u.edits) != 6 {
					b.Fatalf("%v, edits %v", err, u)
				}
				if text, _, _ := doc.diff(u.edits); text == "" {
					b.Fatal("no diff")
				}
			}
		})
	}
}
