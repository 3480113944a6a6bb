package tools

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"drover/output/event"
	"drover/tools/policy"
)

// toolEnv is an environment over a temporary folder with the given files, and
// the events that are emitted there.
func toolEnv(t *testing.T, files map[string]string) (Env, *[]event.Body) {
	t.Helper()
	f, dir := testFiles(t)
	cwd := filepath.Join(dir, "work")
	for name, content := range files {
		path := filepath.Join(cwd, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	var events []event.Body
	return Env{Cwd: cwd, Files: f, CallID: "c1", Emit: func(b event.Body) { events = append(events, b) }}, &events
}

// callTool prepares and runs one call; a refusal of the arguments is a failed
// result.
func callTool(t *testing.T, tool Tool, env Env, in Input) Result {
	t.Helper()
	call, err := tool.Prepare(env, in)
	if err != nil {
		return Result{Text: err.Error(), IsError: true}
	}
	res, err := call.Run(context.Background(), env)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

// contents are all files below dir; links are shown as "-> target".
func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	got := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		if d.Type()&fs.ModeSymlink != 0 {
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

func freeform(body string) Input {
	return Input{Freeform: true, Text: "*** Begin Patch\n" + body + "*** End Patch\n"}
}

func TestPatchReportsFilesAndEvents(t *testing.T) {
	env, events := toolEnv(t, map[string]string{"a.go": "one\r\ntwo\r\n", "old.txt": "bye\n", "m.txt": "“x”\ny\n", "e.txt": "x\n"})
	in := freeform("*** Update File: a.go\n@@\n-two\n+TWO\n+three\n*** Add File: docs/my notes.md\n+hi\n" +
		"*** Update File: m.txt\n*** Move to: " + env.Cwd + "/sub/m.txt\n@@\n \"x\"\n-y\n+z\n*** Update File: ./e.txt\n-x\n*** Delete File: old.txt\n")
	call, err := applyPatch.Prepare(env, in)
	if err != nil {
		t.Fatal(err)
	}
	const display = "patch: a.go +2 −1, docs/my notes.md +1 −0, m.txt → sub/m.txt +1 −1, e.txt +0 −1, old.txt deleted"
	if call.Display != display {
		t.Errorf("display %q, want %q", call.Display, display)
	}
	abs := func(name string) string { return filepath.Join(env.Files.Real("."), name) }
	wantActions := []policy.Action{
		policy.Write(abs("a.go"), abs("a.go")), policy.Write(abs("docs/my notes.md"), abs("docs/my notes.md")),
		policy.Delete(abs("m.txt"), abs("m.txt")), policy.Write(abs("sub/m.txt"), abs("sub/m.txt")),
		policy.Write(abs("e.txt"), abs("e.txt")), policy.Delete(abs("old.txt"), abs("old.txt")),
	}
	if diff := cmp.Diff(wantActions, call.Actions); diff != "" {
		t.Errorf("actions: want - got +\n%s", diff)
	}
	if got := string(call.Args); !strings.HasPrefix(got, `{"input":"*** Begin Patch\n`) {
		t.Errorf("args %s", got)
	}
	res, err := call.Run(context.Background(), env)
	if err != nil {
		t.Fatal(err)
	}
	wantText := "Exit code: 0\nWall time: 0 seconds\nOutput:\nSuccess. Updated the following files:\nA docs/my notes.md\nM a.go\nM " + env.Cwd + "/sub/m.txt\nM ./e.txt\nD old.txt\n" +
		"Note: " + env.Cwd + "/sub/m.txt matched only when spaces or typographic punctuation were disregarded; lines that the patch keeps were left as they are.\n" +
		"Note: ./e.txt is an empty file now; only *** Delete File removes it.\n"
	if diff := cmp.Diff(wantText, res.Text); diff != "" || res.IsError {
		t.Errorf("error %v; want - got +\n%s", res.IsError, diff)
	}
	wantFiles := map[string]string{"a.go": "one\r\nTWO\r\nthree\r\n", "docs/my notes.md": "hi\n", "sub/m.txt": "“x”\nz\n", "e.txt": ""}
	if diff := cmp.Diff(wantFiles, contents(t, env.Cwd)); diff != "" {
		t.Errorf("files: want - got +\n%s", diff)
	}
	wantEvents := []event.Body{
		event.FileChangedEvent{ToolCallID: "c1", Path: "a.go", Kind: "modify", Added: 2, Removed: 1, BeforeSHA256: hexSum([]byte("one\r\ntwo\r\n")), AfterSHA256: hexSum([]byte("one\r\nTWO\r\nthree\r\n")),
			Diff: "--- a/a.go\n+++ b/a.go\n@@ -1,2 +1,3 @@\n one\r\n-two\r\n+TWO\r\n+three\r\n"},
		event.FileChangedEvent{ToolCallID: "c1", Path: "docs/my notes.md", Kind: "add", Added: 1, AfterSHA256: hexSum([]byte("hi\n")),
			Diff: "--- /dev/null\n+++ b/docs/my notes.md\t\n@@ -0,0 +1 @@\n+hi\n"},
		event.FileChangedEvent{ToolCallID: "c1", Path: "sub/m.txt", OldPath: "m.txt", Kind: "rename", Added: 1, Removed: 1, Lenient: true,
			BeforeSHA256: hexSum([]byte("“x”\ny\n")), AfterSHA256: hexSum([]byte("“x”\nz\n")), Diff: "--- a/m.txt\n+++ b/sub/m.txt\n@@ -1,2 +1,2 @@\n “x”\n-y\n+z\n"},
		event.FileChangedEvent{ToolCallID: "c1", Path: "e.txt", Kind: "modify", Removed: 1, BeforeSHA256: hexSum([]byte("x\n")), AfterSHA256: hexSum(nil),
			Diff: "--- a/e.txt\n+++ b/e.txt\n@@ -1 +0,0 @@\n-x\n"},
		event.FileChangedEvent{ToolCallID: "c1", Path: "old.txt", Kind: "delete", Removed: 1, BeforeSHA256: hexSum([]byte("bye\n")),
			Diff: "--- a/old.txt\n+++ /dev/null\n@@ -1 +0,0 @@\n-bye\n"},
	}
	if diff := cmp.Diff(wantEvents, *events); diff != "" {
		t.Errorf("events: want - got +\n%s", diff)
	}
}

func TestPatchFailuresChangeNothing(t *testing.T) {
	const good = "*** Add File: good.txt\n+x\n"
	for _, c := range []struct{ name, body, want string }{
		{"empty patch", "", "patch rejected: empty patch"},
		{"no patch", "hello\n", "apply_patch verification failed: invalid hunk at line 2, 'hello' is not a valid hunk header. Valid hunk headers: '*** Add File: {path}', '*** Delete File: {path}', '*** Update File: {path}'"},
		{"second file does not match", good + "*** Update File: a.txt\n@@\n-nine\n+x\n", "apply_patch verification failed: Failed to find expected lines in CWD/a.txt:\nnine\nThe first line that does not match is \"nine\": no line of the file is like it."},
		{"file exists", good + "*** Add File: a.txt\n+x\n", "apply_patch verification failed: cannot add a.txt: CWD/a.txt already exists; *** Update File changes an existing file"},
		{"link exists", good + "*** Add File: .env\n+x\n", "apply_patch verification failed: cannot add .env: CWD/.env already exists, as a symbolic link"},
		{"no change", good + "*** Update File: a.txt\n@@\n one\n", "apply_patch verification failed: no change: the section for a.txt leaves the file as it is"},
		{"climbing out", good + "*** Add File: ../out.txt\n+x\n", "patch rejected: write PARENT/out.txt: outside the writable folders"},
		{"climbing out in the middle", good + "*** Add File: b/../../out.txt\n+x\n", "patch rejected: write PARENT/out.txt: outside the writable folders"},
		{"absolute outside", good + "*** Add File: PARENT/x/out.txt\n+x\n", "patch rejected: write PARENT/x/out.txt: outside the writable folders"},
		{"delete outside", good + "*** Delete File: ../secret.env\n", "patch rejected: write PARENT/secret.env: outside the writable folders"},
		{"move from outside", good + "*** Update File: ../secret.env\n*** Move to: mine\n@@\n key\n", "patch rejected: write PARENT/secret.env: outside the writable folders"},
		{"update through a link that leads out", good + "*** Update File: .env\n@@\n-key\n+x\n", "patch rejected: write .env: outside the writable folders"},
		{"protected folder", good + "*** Add File: .git/hooks/pre-commit\n+x\n", "patch rejected: write .git/hooks/pre-commit: in a protected folder (.git)"},
		{"pipe", good + "*** Update File: pipe\n@@\n-x\n", "apply_patch verification failed: Failed to read file to update CWD/pipe: it is not a regular file"},
		{"missing file with an odd name", good + "*** Delete File: bad\ufffd\n", "apply_patch verification failed: Failed to delete file CWD/bad\ufffd: no such file or directory"},
	} {
		t.Run(c.name, func(t *testing.T) {
			env, events := toolEnv(t, map[string]string{"a.txt": "one\ntwo\n", "../secret.env": "key\n"})
			if err := os.Symlink("../secret.env", filepath.Join(env.Cwd, ".env")); err != nil {
				t.Fatal(err)
			}
			makePipe(t, filepath.Join(env.Cwd, "pipe"))
			parent := filepath.Dir(env.Cwd)
			fill := strings.NewReplacer("CWD", env.Cwd, "PARENT", parent)
			res := callTool(t, applyPatch, env, freeform(fill.Replace(c.body)))
			if diff := cmp.Diff(fill.Replace(c.want), res.Text); diff != "" || !res.IsError {
				t.Errorf("error %v; want - got +\n%s", res.IsError, diff)
			}
			if err := os.Remove(filepath.Join(env.Cwd, "pipe")); err != nil {
				t.Fatal(err)
			}
			want := map[string]string{"work/a.txt": "one\ntwo\n", "secret.env": "key\n", "work/.env": "-> ../secret.env"}
			if diff := cmp.Diff(want, contents(t, parent)); diff != "" || len(*events) > 0 {
				t.Errorf("events %v; files: want - got +\n%s", *events, diff)
			}
		})
	}
}

func TestPatchThatCannotBeWrittenIsUndone(t *testing.T) {
	env, events := toolEnv(t, map[string]string{"a.txt": "one\n"})
	// The folder of the second file is to be a file that the first section adds.
	res := callTool(t, applyPatch, env, freeform("*** Update File: a.txt\n@@\n-one\n+two\n*** Add File: x\n+1\n*** Add File: x/y\n+2\n"))
	if !res.IsError || !strings.HasPrefix(res.Text, "Exit code: 1\nWall time: 0 seconds\nOutput:\n") || !strings.Contains(res.Text, "nothing was changed") {
		t.Errorf("error %v, %q", res.IsError, res.Text)
	}
	if diff := cmp.Diff(map[string]string{"a.txt": "one\n"}, contents(t, env.Cwd)); diff != "" || len(*events) > 0 {
		t.Errorf("events %v; files: want - got +\n%s", *events, diff)
	}
}

func TestPatchAsFunctionCall(t *testing.T) {
	env, _ := toolEnv(t, nil)
	res := callTool(t, applyPatch, env, Input{Text: `{"input":"*** Begin Patch\n*** Add File: f\n+x\n*** End Patch"}`})
	if diff := cmp.Diff(map[string]string{"f": "x\n"}, contents(t, env.Cwd)); diff != "" || res.IsError {
		t.Errorf("%q; want - got +\n%s", res.Text, diff)
	}
	res = callTool(t, applyPatch, env, Input{Text: `{"patch":"x"}`})
	if want := "failed to parse function arguments: missing field `input`"; res.Text != want {
		t.Errorf("got %q, want %q", res.Text, want)
	}
	if got, want := string(applyPatch.Spec().Schema), `"input"`; !strings.Contains(got, want) {
		t.Errorf("schema %s", got)
	}
}

func TestPatchInsideAShellCommandIsThePatchTool(t *testing.T) {
	env, _ := toolEnv(t, map[string]string{"sub/f": "x\n"})
	script := "cd 'sub' && apply_patch <<'EOF'\n*** Begin Patch\n*** Update File: f\n@@\n-x\n+y\n*** End Patch\nEOF\n"
	call, err := redirectPatch([]string{"bash", "-lc", script}, env.Cwd, env)
	if err != nil || call == nil {
		t.Fatal(call, err)
	}
	path := filepath.Join(env.Files.Real("."), "sub", "f")
	if diff := cmp.Diff([]policy.Action{policy.Write(path, path)}, call.Actions); diff != "" || call.Display != "patch: sub/f +1 −1" {
		t.Errorf("display %q; actions: want - got +\n%s", call.Display, diff)
	}
	res, err := call.Run(context.Background(), env)
	if err != nil || !strings.HasPrefix(res.Text, "Warning: apply_patch was requested through the shell. Use the apply_patch tool instead.\nExit code: 0\n") || !strings.HasSuffix(res.Text, "M f\n") {
		t.Errorf("%v, %q", err, res.Text)
	}
	if diff := cmp.Diff(map[string]string{"sub/f": "y\n"}, contents(t, env.Cwd)); diff != "" {
		t.Errorf("files: want - got +\n%s", diff)
	}
	for _, c := range []struct {
		name string
		argv []string
		want string
	}{
		{"ordinary command", []string{"bash", "-lc", "ls"}, ""},
		{"patch without a call", []string{"bash", "-lc", "*** Begin Patch\n*** Delete File: f\n*** End Patch"}, "apply_patch verification failed: patch detected without an explicit call"},
		{"broken patch", []string{"apply_patch", "x"}, "apply_patch verification failed: invalid patch: The first line of the patch must be '*** Begin Patch'"},
	} {
		call, err := redirectPatch(c.argv, env.Cwd, env)
		if call != nil || (err == nil) != (c.want == "") || err != nil && !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%s: call %v, err %v", c.name, call, err)
		}
	}
}

func TestDisplayOfManyFilesSaysHowManyAreLeftOut(t *testing.T) {
	env, _ := toolEnv(t, nil)
	var body strings.Builder
	for range 40 {
		body.WriteString("*** Add File: " + strings.Repeat("d", 20) + "\n+x\n")
	}
	call, err := applyPatch.Prepare(env, freeform(body.String()))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasSuffix(call.Display, " and 35 more") || len(call.Display) > 200 {
		t.Errorf("%d bytes: %q", len(call.Display), call.Display)
	}
}

// TestDescriptionsStaySmall guards the size of the first request.
func TestDescriptionsStaySmall(t *testing.T) {
	for _, c := range []struct {
		tool Tool
		max  int
	}{{applyPatch, 2000}, {writeFile, 500}, {updatePlan, 500}, {listDir, 500}} {
		s := c.tool.Spec()
		n := len(s.Doc) + len(s.Schema) + len(s.Grammar)
		if s.Kind == Freeform {
			n = len(s.Doc) + max(len(s.Grammar), len(s.Schema))
		}
		if n > c.max {
			t.Errorf("%s takes %d bytes, more than %d: %s", s.Name, n, c.max, s.Schema)
		}
	}
}
