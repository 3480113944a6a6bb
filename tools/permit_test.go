package tools

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"drover/output/event"
	"drover/tools/sandbox"
)

// permitFilesIn opens a folder as the workspace.
func permitFilesIn(t testing.TB, dir string) *Files {
	t.Helper()
	files, err := OpenFiles(FilesOptions{Cwd: dir, Writable: []string{dir}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = files.Close() })
	return files
}

func TestPermissionsAreReadStrictly(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(dir, filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	files := permitFilesIn(t, dir)
	for _, c := range []struct {
		args  string
		want  sandbox.Rights
		wrong string
	}{
		{args: `{"permissions":{"network":{"enabled":true}},"reason":"r","later":1}`, want: sandbox.Rights{Network: true}},
		{args: `{"permissions":{"file_system":{"read":["/etc"],"write":["sub","./sub","link/sub"]}}}`,
			want: sandbox.Rights{Read: []string{"/etc"}, Write: []string{filepath.Join(dir, "sub")}}},
		{args: `{"permissions":{}}`, wrong: "request_permissions requires at least one permission"},
		{args: `{"permissions":{"network":{"enabled":false},"file_system":{"read":[]}}}`, wrong: "request_permissions requires at least one permission"},
		{args: `{"permissions":{"shell":true}}`, wrong: "shell"},
		{args: `{"permissions":{"network":{"enabled":true,"hosts":["x"]}}}`, wrong: "hosts"},
		{args: `{"permissions":{"file_system":{"writes":["/x"]}}}`, wrong: "writes"},
		{args: `{"permissions":{"file_system":{"write":[""]}}}`, wrong: "is no path"},
		{args: `{"permissions":{"file_system":{"write":["a\u0000b"]}}}`, wrong: "is no path"},
	} {
		got, _, err := ReadPermissions([]byte(c.args), files)
		if c.wrong != "" {
			if err == nil || !strings.Contains(err.Error(), c.wrong) {
				t.Errorf("%s: %+v, %v", c.args, got, err)
			}
			if _, err := requestPermissions.Prepare(Env{Files: files, Cwd: dir}, Input{Text: c.args}); err == nil {
				t.Errorf("%s can be called", c.args)
			}
			continue
		}
		if d := cmp.Diff(c.want, got); err != nil || d != "" {
			t.Errorf("%s: %v %s", c.args, err, d)
		}
	}
}

func TestPermissionsSayWhatWasGranted(t *testing.T) {
	dir := t.TempDir()
	files := permitFilesIn(t, dir)
	for _, c := range []struct {
		name    string
		granted sandbox.Rights
		err     error
		want    string
		failed  bool
	}{
		{name: "all", granted: sandbox.Rights{Network: true, Write: []string{"/x"}}, want: `{"permissions":{"network":{"enabled":true},"file_system":{"write":["/x"]}},"scope":"turn"}`},
		{name: "nothing", want: `{"permissions":{"network":null,"file_system":null},"scope":"turn"}`},
		{name: "refused", err: errors.New("no need"), want: "no need", failed: true},
	} {
		call, err := requestPermissions.Prepare(Env{Files: files, Cwd: dir}, Input{Text: `{"permissions":{"network":{"enabled":true}}}`})
		if err != nil {
			t.Fatal(err)
		}
		res, err := call.Run(t.Context(), Env{Files: files, Emit: func(event.Body) {},
			Permit: func(context.Context, sandbox.Rights, string) (sandbox.Rights, string, error) {
				return c.granted, "turn", c.err
			}})
		if err != nil || res.Text != c.want || res.IsError != c.failed {
			t.Errorf("%s: %+v, %v", c.name, res, err)
		}
	}
	if spec := requestPermissions.Spec(); !spec.Asks || !spec.Permits || len(spec.Doc)+len(spec.Schema) > 1200 {
		t.Errorf("the tool takes %d bytes of every request", len(spec.Doc)+len(spec.Schema))
	}
}

func TestGrantedPlacesCanBeWrittenAndNothingBeside(t *testing.T) {
	dir, beside := t.TempDir(), t.TempDir()
	files := permitFilesIn(t, dir)
	in := func(name string) string { return filepath.Join(beside, name) }
	if err := files.WriteFile(in("folder/f"), []byte("x"), 0); !errors.Is(err, ErrOutside) {
		t.Fatalf("before: %v", err)
	}
	if err := os.Mkdir(in("folder"), 0o755); err != nil {
		t.Fatal(err)
	}
	for range 2 { // twice is once
		if err := files.AddWritable(in("folder")); err != nil {
			t.Fatal(err)
		}
	}
	if err := files.AddWritable(in("single")); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]error{
		"folder/f": nil, "folder/deep/f": nil, "single": nil, "single2": ErrOutside, "f": ErrOutside,
		"folder/.git/config": ErrProtected, "folder2/f": ErrOutside,
	} {
		if err := files.WriteFile(in(name), []byte("x"), 0); !errors.Is(err, want) || (err == nil) != (want == nil) {
			t.Errorf("%s: %v, want %v", name, err, want)
		}
	}
	if err := files.AddWritable(in("missing/deep")); err == nil {
		t.Error("a file in a folder that does not exist was added")
	}
	// A link that leads out of what was granted leads nowhere.
	if err := os.Symlink(dir+"-other", in("folder/out")); err != nil {
		t.Fatal(err)
	}
	if err := files.WriteFile(in("folder/out"), []byte("x"), 0); err == nil {
		t.Error("a link led out")
	}
}

func FuzzReadPermissions(f *testing.F) {
	f.Add([]byte(`{"permissions":{"network":{"enabled":true},"file_system":{"read":["/a"],"write":["b"]}},"reason":"r"}`))
	f.Add([]byte(`{"permissions":null}`))
	files := permitFilesIn(f, f.TempDir())
	f.Fuzz(func(t *testing.T, args []byte) {
		r, _, err := ReadPermissions(args, files)
		if err != nil {
			return
		}
		if !r.Network && len(r.Read)+len(r.Write) == 0 || r.Off {
			t.Errorf("%q became %+v", args, r)
		}
		for _, p := range append(r.Read, r.Write...) {
			if !filepath.IsAbs(p) {
				t.Errorf("%q is not absolute", p)
			}
		}
	})
}
