package patch

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func wrap(body string) string { return "*** Begin Patch\n" + body + "*** End Patch" }

func TestParseReadsEverySection(t *testing.T) {
	for _, c := range []struct {
		name, in string
		want     []Section
	}{
		{"add", wrap("*** Add File: a b.txt\n+one\n+\n++two\n"),
			[]Section{{Action: Add, Path: "a b.txt", Content: "one\n\n+two\n", Line: 2}}},
		{"add an empty file", wrap("*** Add File: a\n"), []Section{{Action: Add, Path: "a", Line: 2}}},
		{"delete", wrap("*** Delete File: a\n*** Delete File: b\n"),
			[]Section{{Action: Delete, Path: "a", Line: 2}, {Action: Delete, Path: "b", Line: 3}}},
		{"update", wrap("*** Update File: a\n@@ f()\n x\n-y\n+z\n"),
			[]Section{{Action: Update, Path: "a", Line: 2, Chunks: []Chunk{
				{Anchors: []string{"f()"}, Line: 3, Lines: []Line{{Keep, "x"}, {Remove, "y"}, {Insert, "z"}}}}}}},
		{"move and end of file", wrap("*** Update File: a\n*** Move to: b/c\n@@\n-y\n+z\n*** End of File\n"),
			[]Section{{Action: Update, Path: "a", MoveTo: "b/c", Line: 2, Chunks: []Chunk{
				{EndOfFile: true, Line: 4, Lines: []Line{{Remove, "y"}, {Insert, "z"}}}}}}},
		{"first chunk without header, blank lines between chunks", wrap("*** Update File: a\n x\n-y\n*** End of File\n\n \n@@\n+z\n"),
			[]Section{{Action: Update, Path: "a", Line: 2, Chunks: []Chunk{
				{EndOfFile: true, Line: 3, Lines: []Line{{Keep, "x"}, {Remove, "y"}}},
				{Line: 8, Lines: []Line{{Insert, "z"}}}}}}},
		{"an empty line is a blank context line", wrap("*** Update File: a\n@@\n x\n\n-y\n"),
			[]Section{{Action: Update, Path: "a", Line: 2, Chunks: []Chunk{
				{Line: 3, Lines: []Line{{Keep, "x"}, {Keep, ""}, {Remove, "y"}}}}}}},
		{"stacked headers", wrap("*** Update File: a\n@@ class B\n@@  \tdef run\n@@\n-y\n"),
			[]Section{{Action: Update, Path: "a", Line: 2, Chunks: []Chunk{
				{Anchors: []string{"class B", " \tdef run"}, Line: 3, Lines: []Line{{Remove, "y"}}}}}}},
		{"indented header", wrap("   *** Delete File: a  \n"), []Section{{Action: Delete, Path: "a", Line: 2}}},
		{"padded markers", "\n *** Begin Patch \n*** Delete File: a\n\t*** End Patch\n\n", []Section{{Action: Delete, Path: "a", Line: 2}}},
		{"here-document", "<<'EOF'\n" + wrap("*** Delete File: a\n") + "\nEOF\n", []Section{{Action: Delete, Path: "a", Line: 2}}},
		{"carriage returns", strings.ReplaceAll(wrap("*** Update File: a\n@@ f\n x\n\n-y\n+z\n*** Add File: b\n+q\n"), "\n", "\r\n"),
			[]Section{{Action: Update, Path: "a", Line: 2, Chunks: []Chunk{
				{Anchors: []string{"f"}, Line: 3, Lines: []Line{{Keep, "x"}, {Keep, ""}, {Remove, "y"}, {Insert, "z"}}}}},
				{Action: Add, Path: "b", Content: "q\n", Line: 8}}},
		{"no section", wrap(""), nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := Parse(c.in)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got.Sections); diff != "" {
				t.Errorf("want - got +\n%s", diff)
			}
		})
	}
}

func TestParseErrorNamesLineAndReason(t *testing.T) {
	const badLine = "Every line should start with ' ' (context line), '+' (added line), or '-' (removed line)"
	const validHeaders = "is not a valid hunk header. Valid hunk headers: '*** Add File: {path}', '*** Delete File: {path}', '*** Update File: {path}'"
	for _, c := range []struct {
		name, in string
		line     int
		msg      string
	}{
		{"nothing", "", 0, "The first line of the patch must be '*** Begin Patch'"},
		{"no begin", "bad", 0, "The first line of the patch must be '*** Begin Patch'"},
		{"no end", "*** Begin Patch\nbad", 0, "The last line of the patch must be '*** End Patch'"},
		{"begin alone", "*** Begin Patch", 0, "The last line of the patch must be '*** End Patch'"},
		{"here-document with mismatched quotes", "<<\"EOF'\n" + wrap("") + "\nEOF", 0, "The first line of the patch must be '*** Begin Patch'"},
		{"here-document without end marker", "<<EOF\n*** Begin Patch\n*** Delete File: a\nEOF", 0, "The last line of the patch must be '*** End Patch'"},
		{"unknown header", wrap("*** Frobnicate File: x\n"), 2, "'*** Frobnicate File: x' " + validHeaders},
		{"header without path", wrap("*** Add File: \n"), 2, "'*** Add File:' " + validHeaders},
		{"blank line after delete", wrap("*** Delete File: a\n\n"), 3, "'' " + validHeaders},
		{"update without chunks", wrap("*** Delete File: b\n*** Update File: a\n"), 3, "Update file hunk for path 'a' is empty"},
		{"update with only a move", wrap("*** Update File: a\n*** Move to: b\n"), 2, "Update file hunk for path 'a' is empty"},
		{"move to nowhere", wrap("*** Update File: a\n*** Move to:  \n x\n"), 3, "the move of 'a' names no destination"},
		{"header without body", wrap("*** Update File: a\n@@ f\n"), 4, "Update hunk does not contain any lines"},
		{"end marker without body", wrap("*** Update File: a\n@@\n*** End of File\n"), 4, "Update hunk does not contain any lines"},
		{"bad body", wrap("*** Update File: a\n@@\nbad\n"), 4, "Unexpected line found in update hunk: 'bad'. " + badLine},
		{"bad body without header", wrap("*** Update File: a\nbad\n"), 3, "Unexpected line found in update hunk: 'bad'. " + badLine},
		{"later chunk without header", wrap("*** Update File: a\n@@\n-x\nbad\n"), 5, "Expected update hunk to start with a @@ context marker, got: 'bad'"},
		{"invalid UTF-8", wrap("*** Add File: \xff\n"), 0, "the patch is not valid UTF-8"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := Parse(c.in)
			var pe *ParseError
			if !errors.As(err, &pe) {
				t.Fatalf("err = %v, want a ParseError", err)
			}
			if diff := cmp.Diff(ParseError{c.line, c.msg}, *pe); diff != "" {
				t.Errorf("want - got +\n%s", diff)
			}
		})
	}
}

func TestParseErrorHasTwoForms(t *testing.T) {
	for _, c := range []struct {
		err              ParseError
		tool, standalone string
	}{
		{ParseError{0, "m"}, "invalid patch: m", "Invalid patch: m"},
		{ParseError{7, "m"}, "invalid hunk at line 7, m", "Invalid patch hunk on line 7: m"},
	} {
		if got := c.err.Error(); got != c.tool {
			t.Errorf("tool form: got %q, want %q", got, c.tool)
		}
		if got := c.err.Standalone(); got != c.standalone {
			t.Errorf("standalone form: got %q, want %q", got, c.standalone)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		wrap("*** Add File: a\n+x\n*** Delete File: b\n*** Update File: c\n*** Move to: d\n@@ f\n@@\n x\n-y\n+z\n\n*** End of File\n@@\n+q\n"),
		"<<EOF\n" + wrap("*** Update File: c\n x\n") + "\nEOF",
		"*** Begin Patch\r\n*** Update File: c\r\n@@\r\n",
		"",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		p, err := Parse(text)
		if err != nil {
			var pe *ParseError
			if !errors.As(err, &pe) || pe.Msg == "" {
				t.Fatalf("error %v is no ParseError with a message", err)
			}
			return
		}
		last := 1
		for _, s := range p.Sections {
			if s.Path == "" || strings.ContainsAny(s.Path+s.MoveTo, "\n") || s.Line <= last {
				t.Fatalf("bad section %+v after line %d", s, last)
			}
			if s.Content != "" && !strings.HasSuffix(s.Content, "\n") || (s.Action == Update) != (len(s.Chunks) > 0) {
				t.Fatalf("bad content of section %+v", s)
			}
			last = s.Line
			for _, c := range s.Chunks {
				if len(c.Lines) == 0 || c.Line <= last {
					t.Fatalf("bad chunk %+v after line %d", c, last)
				}
				last = c.Line
			}
		}
	})
}
