package patch

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// tree is a folder: relative paths with their contents. A name that ends in a
// slash is an empty folder; a content that starts with "-> " is a link.
type tree map[string]string

func (want tree) lay(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range want {
		path := filepath.Join(dir, name)
		err := os.MkdirAll(filepath.Dir(path), 0o755)
		switch target, link := strings.CutPrefix(content, "-> "); {
		case err != nil:
		case strings.HasSuffix(name, "/"):
			err = os.MkdirAll(path, 0o755)
		case link:
			err = os.Symlink(target, path)
		default:
			err = os.WriteFile(path, []byte(content), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func readTree(t *testing.T, dir string) tree {
	t.Helper()
	got := tree{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == dir {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		switch {
		case d.IsDir():
			entries, err := os.ReadDir(path)
			if len(entries) == 0 {
				got[name+"/"] = ""
			}
			return err
		case d.Type()&fs.ModeSymlink != 0:
			target, err := os.Readlink(path)
			got[name] = "-> " + target
			return err
		}
		data, err := os.ReadFile(path)
		got[name] = string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return got
}

const updatedFiles = "Success. Updated the following files:\n"

// TestProgram runs the program on a folder and compares the whole tree, what it
// prints and its exit code. DIR stands for the folder.
func TestProgram(t *testing.T) {
	for _, c := range []struct {
		name   string
		before tree
		patch  string
		after  tree // nil: unchanged
		stdout string
		stderr string
	}{
		{name: "add a file", patch: wrap("*** Add File: bar.md\n+first line\n+second line\n"),
			after: tree{"bar.md": "first line\nsecond line\n"}, stdout: "A bar.md\n"},
		{name: "add, delete and update in one patch", before: tree{"edit.txt": "one\ntwo\n", "old.txt": "bye\n"},
			patch:  wrap("*** Add File: sub/new.txt\n+hello\n*** Delete File: old.txt\n*** Update File: edit.txt\n@@\n-two\n+TWO\n"),
			after:  tree{"sub/new.txt": "hello\n", "edit.txt": "one\nTWO\n"},
			stdout: "A sub/new.txt\nM edit.txt\nD old.txt\n"},
		{name: "two chunks in file order", before: tree{"f": "a\nb\nc\nd\n"},
			patch: wrap("*** Update File: f\n@@\n-b\n+B\n@@\n-d\n+D\n"),
			after: tree{"f": "a\nB\nc\nD\n"}, stdout: "M f\n"},
		{name: "move into folders that do not exist", before: tree{"old/name.txt": "from\n", "old/other.txt": "stays\n"},
			patch: wrap("*** Update File: old/name.txt\n*** Move to: new/deep/name.txt\n@@\n-from\n+to\n"),
			after: tree{"new/deep/name.txt": "to\n", "old/other.txt": "stays\n"}, stdout: "M new/deep/name.txt\n"},
		{name: "empty patch", before: tree{"f": "x\n"}, patch: wrap(""), stderr: "No files were modified.\n"},
		{name: "old line missing", before: tree{"f": "one\ntwo\n"}, patch: wrap("*** Update File: f\n@@\n-three\n+3\n"),
			stderr: "Failed to find expected lines in DIR/f:\nthree\n"},
		{name: "second chunk missing", before: tree{"f": "one\ntwo\n"}, patch: wrap("*** Update File: f\n@@\n-two\n+2\n@@\n-one\n+1\n"),
			stderr: "Failed to find expected lines in DIR/f:\none\n"},
		{name: "context header missing", before: tree{"f": "one\ntwo\n"}, patch: wrap("*** Update File: f\n@@ zero\n-two\n+2\n"),
			stderr: "Failed to find context 'zero' in DIR/f\n"},
		{name: "delete a missing file", before: tree{"f": "x\n"}, patch: wrap("*** Delete File: gone\n"),
			stderr: "Failed to delete file DIR/gone: no such file or directory\n"},
		{name: "update without chunks", before: tree{"f": "x\n"}, patch: wrap("*** Update File: f\n"),
			stderr: "Invalid patch hunk on line 2: Update file hunk for path 'f' is empty\n"},
		{name: "update a missing file", before: tree{"f": "x\n"}, patch: wrap("*** Update File: gone\n@@\n-a\n+b\n"),
			stderr: "Failed to read file to update DIR/gone: no such file or directory\n"},
		{name: "move overwrites", before: tree{"a": "from\n", "b/c": "existing\n"},
			patch: wrap("*** Update File: a\n*** Move to: b/c\n@@\n-from\n+new\n"),
			after: tree{"b/c": "new\n"}, stdout: "M b/c\n"},
		{name: "add overwrites", before: tree{"f": "old\n"}, patch: wrap("*** Add File: f\n+new\n"),
			after: tree{"f": "new\n"}, stdout: "A f\n"},
		{name: "delete a folder", before: tree{"dir/f": "x\n"}, patch: wrap("*** Delete File: dir\n"),
			stderr: "Failed to delete file DIR/dir: it is a folder\n"},
		{name: "unknown header", before: tree{"f": "x\n"}, patch: wrap("*** Rename File: f\n"),
			stderr: "Invalid patch hunk on line 2: '*** Rename File: f' is not a valid hunk header. Valid hunk headers: '*** Add File: {path}', '*** Delete File: {path}', '*** Update File: {path}'\n"},
		{name: "whole file replaced", before: tree{"f": "no newline\n"}, patch: wrap("*** Update File: f\n@@\n-no newline\n+first\n+second\n"),
			after: tree{"f": "first\nsecond\n"}, stdout: "M f\n"},
		{name: "earlier sections stay after a failure", before: tree{"f": "x\n"},
			patch: wrap("*** Add File: made\n+hello\n*** Update File: gone\n@@\n-a\n+b\n"),
			after: tree{"f": "x\n", "made": "hello\n"}, stderr: "Failed to read file to update DIR/gone: no such file or directory\n"},
		{name: "chunk of additions goes to the end", before: tree{"f": "one\ntwo\n"}, patch: wrap("*** Update File: f\n@@\n+three\n+four\n"),
			after: tree{"f": "one\ntwo\nthree\nfour\n"}, stdout: "M f\n"},
		{name: "additions below a header go to the end too", before: tree{"f": "one\ntwo\n"}, patch: wrap("*** Update File: f\n@@ one\n+three\n"),
			after: tree{"f": "one\ntwo\nthree\n"}, stdout: "M f\n"},
		{name: "additions go before a final blank line", before: tree{"f": "one\n\n"}, patch: wrap("*** Update File: f\n+two\n"),
			after: tree{"f": "one\ntwo\n\n"}, stdout: "M f\n"},
		{name: "indented section header", before: tree{"f": "old\n"}, patch: wrap("  *** Update File: f\n@@\n-old\n+new\n"),
			after: tree{"f": "new\n"}, stdout: "M f\n"},
		{name: "space around the markers", before: tree{"f": "old\n"},
			patch: " *** Begin Patch\n*** Update File: f\n@@\n-old\n+new\n*** End Patch ",
			after: tree{"f": "new\n"}, stdout: "M f\n"},
		{name: "space at the inner sides of the markers", before: tree{"f": "old\n"},
			patch: "*** Begin Patch \n*** Update File: f\n@@\n-old\n+new\n *** End Patch",
			after: tree{"f": "new\n"}, stdout: "M f\n"},
		{name: "non-ASCII text", before: tree{"f": "línea uno\nÜber Größe 日本\n"}, patch: wrap("*** Update File: f\n@@\n línea uno\n-Über Größe 日本\n+Über Größe 中国 ✅\n"),
			after: tree{"f": "línea uno\nÜber Größe 中国 ✅\n"}, stdout: "M f\n"},
		{name: "delete a file", before: tree{"f": "x\n", "keep": "y\n"}, patch: wrap("*** Delete File: f\n"),
			after: tree{"keep": "y\n"}, stdout: "D f\n"},
		{name: "removal between context lines", before: tree{"f": "one\ntwo\nthree\n"}, patch: wrap("*** Update File: f\n@@\n one\n-two\n three\n"),
			after: tree{"f": "one\nthree\n"}, stdout: "M f\n"},
		{name: "end of file marker", before: tree{"f": "x\ny\nx\ny\n"}, patch: wrap("*** Update File: f\n@@\n x\n-y\n+z\n*** End of File\n"),
			after: tree{"f": "x\ny\nx\nz\n"}, stdout: "M f\n"},
		{name: "end of file marker elsewhere", before: tree{"f": "x\ny\n"}, patch: wrap("*** Update File: f\n@@\n-x\n*** End of File\n"),
			stderr: "Failed to find expected lines in DIR/f:\nx\n"},
		{name: "first of several places", before: tree{"f": "x\ny\nx\ny\n"}, patch: wrap("*** Update File: f\n@@\n-x\n+z\n"),
			after: tree{"f": "z\ny\nx\ny\n"}, stdout: "M f\n"},
		{name: "sections build on each other", patch: wrap("*** Add File: f\n+one\n*** Update File: f\n@@\n-one\n+two\n"),
			after: tree{"f": "two\n"}, stdout: "A f\nM f\n"},
		{name: "here-document", before: tree{"f": "x\n"}, patch: "<<'EOF'\n" + wrap("*** Delete File: f\n") + "\nEOF",
			after: tree{}, stdout: "D f\n"},
		{name: "absolute path", patch: wrap("*** Add File: DIR/sub/f\n+x\n"), after: tree{"sub/f": "x\n"}, stdout: "A DIR/sub/f\n"},
		{name: "change that is none", before: tree{"f": "x\n"}, patch: wrap("*** Update File: f\n@@\n x\n"), after: tree{"f": "x\n"}, stdout: "M f\n"},
		{name: "move onto itself", before: tree{"f": "x\n"}, patch: wrap("*** Update File: f\n*** Move to: ./f\n@@\n-x\n+y\n"),
			after: tree{"f": "y\n"}, stdout: "M f\n"},
		{name: "move onto a link to the source", before: tree{"f": "x\n", "l": "-> f"}, patch: wrap("*** Update File: f\n*** Move to: l\n@@\n-x\n+y\n"),
			after: tree{"l": "y\n"}, stdout: "M l\n"},
		{name: "update through a link", before: tree{"f": "x\n", "l": "-> f"}, patch: wrap("*** Update File: l\n@@\n-x\n+y\n"),
			after: tree{"f": "y\n", "l": "-> f"}, stdout: "M l\n"},
		{name: "file that is not UTF-8", before: tree{"f": "x\n\xff\n"}, patch: wrap("*** Update File: f\n@@\n-x\n+y\n"),
			stderr: "DIR/f is not valid UTF-8 (first bad byte at offset 2), so a patch cannot update it\n"},
		{name: "all lines removed", before: tree{"f": "x\ny\n"}, patch: wrap("*** Update File: f\n@@\n-x\n-y\n"), after: tree{"f": ""}, stdout: "M f\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := c.before.lay(t)
			var stdout, stderr bytes.Buffer
			code := Main(dir, []string{strings.ReplaceAll(c.patch, "DIR", dir)}, nil, &stdout, &stderr)
			if c.after == nil {
				c.after = c.before
			}
			if c.after == nil {
				c.after = tree{}
			}
			wantCode, wantOut := 0, updatedFiles+strings.ReplaceAll(c.stdout, "DIR", dir)
			if c.stderr != "" {
				wantCode, wantOut = 1, ""
			}
			if diff := cmp.Diff(c.after, readTree(t, dir)); diff != "" {
				t.Errorf("tree: want - got +\n%s", diff)
			}
			if diff := cmp.Diff(wantOut, stdout.String()); diff != "" {
				t.Errorf("stdout: want - got +\n%s", diff)
			}
			if diff := cmp.Diff(strings.ReplaceAll(c.stderr, "DIR", dir), stderr.String()); diff != "" {
				t.Errorf("stderr: want - got +\n%s", diff)
			}
			if code != wantCode {
				t.Errorf("exit code %d, want %d", code, wantCode)
			}
		})
	}
}

type brokenReader struct{}

func (brokenReader) Read([]byte) (int, error) { return 0, errors.New("gone") }

func TestProgramTakesOneArgumentOrStdin(t *testing.T) {
	patch := wrap("*** Add File: f\n+x\n")
	for _, c := range []struct {
		name, stdin string
		args        []string
		code        int
		made        bool
	}{
		{"argument", "", []string{patch}, 0, true},
		{"stdin", patch, nil, 0, true},
		{"empty stdin", "", nil, 2, false},
		{"two arguments", patch, []string{patch, patch}, 2, false},
		{"argument that is not UTF-8", "", []string{patch + "\xff"}, 1, false},
		{"argument that is no patch", "", []string{"hello"}, 1, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			var stdout, stderr bytes.Buffer
			code := Main(dir, c.args, strings.NewReader(c.stdin), &stdout, &stderr)
			_, err := os.Stat(filepath.Join(dir, "f"))
			if code != c.code || (err == nil) != c.made || (stderr.Len() > 0) == c.made {
				t.Errorf("code %d, file made %v, stderr %q; want code %d, made %v", code, err == nil, stderr.String(), c.code, c.made)
			}
		})
	}
	var stderr bytes.Buffer
	if code := Main(t.TempDir(), nil, brokenReader{}, &stderr, &stderr); code != 1 || !strings.Contains(stderr.String(), "gone") {
		t.Errorf("broken stdin: code %d, %q", code, stderr.String())
	}
}
