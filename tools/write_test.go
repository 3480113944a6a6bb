package tools

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"drover/output/event"
	"drover/tools/policy"
)

func writeArgs(t *testing.T, path, content string) Input {
	t.Helper()
	args, err := json.Marshal(map[string]string{"path": path, "content": content})
	if err != nil {
		t.Fatal(err)
	}
	return Input{Text: string(args)}
}

func TestWriteCreatesAndOverwrites(t *testing.T) {
	env, events := toolEnv(t, map[string]string{"run.sh": "a\nb\n"})
	if err := os.Chmod(filepath.Join(env.Cwd, "run.sh"), 0o755); err != nil {
		t.Fatal(err)
	}
	made, old := filepath.Join(env.Cwd, "new dir/f.txt"), filepath.Join(env.Cwd, "run.sh")
	for _, c := range []struct{ path, content, want string }{
		{made, "hi", "Wrote " + made + ": 2 bytes, created."},
		{old, "a\nc\n", "Wrote " + old + ": 4 bytes, overwritten (4 bytes before)."},
	} {
		if res := callTool(t, writeFile, env, writeArgs(t, c.path, c.content)); res.IsError || res.Text != c.want {
			t.Errorf("error %v, got %q, want %q", res.IsError, res.Text, c.want)
		}
	}
	if diff := cmp.Diff(map[string]string{"new dir/f.txt": "hi", "run.sh": "a\nc\n"}, contents(t, env.Cwd)); diff != "" {
		t.Errorf("want - got +\n%s", diff)
	}
	if info, err := os.Stat(old); err != nil || info.Mode().Perm() != 0o755 {
		t.Errorf("mode %v, %v", info, err)
	}
	want := []event.Body{
		event.FileChangedEvent{ToolCallID: "c1", Path: "new dir/f.txt", Kind: "add", Added: 1, AfterSHA256: hexSum([]byte("hi")),
			Diff: "--- /dev/null\n+++ b/new dir/f.txt\t\n@@ -0,0 +1 @@\n+hi\n\\ No newline at end of file\n"},
		event.FileChangedEvent{ToolCallID: "c1", Path: "run.sh", Kind: "modify", Added: 1, Removed: 1, BeforeSHA256: hexSum([]byte("a\nb\n")), AfterSHA256: hexSum([]byte("a\nc\n")),
			Diff: "--- a/run.sh\n+++ b/run.sh\n@@ -1,2 +1,2 @@\n a\n-b\n+c\n"},
	}
	if diff := cmp.Diff(want, *events); diff != "" {
		t.Errorf("want - got +\n%s", diff)
	}
	call, err := writeFile.Prepare(env, writeArgs(t, made, ""))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]policy.Action{env.Files.WriteAction(made)}, call.Actions); diff != "" || call.Display != "write path: new dir/f.txt" {
		t.Errorf("display %q; want - got +\n%s", call.Display, diff)
	}
}

func TestWriteRefuses(t *testing.T) {
	env, events := toolEnv(t, map[string]string{"dir/f": "x"})
	makePipe(t, filepath.Join(env.Cwd, "pipe"))
	abs := func(name string) string { return filepath.Join(env.Cwd, name) }
	for _, c := range []struct{ name, path, content, want string }{
		{"relative path", "f.txt", "x", "path must be an absolute path"},
		{"too long", abs("f.txt"), strings.Repeat("ü", 32<<10) + "x", "content has 65537 bytes, more than the 65536 allowed; nothing was written: write the first part and append the rest with apply_patch"},
		{"folder", abs("dir"), "x", "cannot write " + abs("dir") + ": it is a folder"},
		{"pipe", abs("pipe"), "x", "cannot write " + abs("pipe") + ": it is not a regular file"},
		{"below a file", abs("dir/f/g"), "x", "cannot write " + abs("dir/f/g") + ": not a directory"},
		{"outside", abs("../f.txt"), "x", "cannot write " + filepath.Dir(env.Cwd) + "/f.txt: outside the writable folders"},
		{"protected", abs(".drover/policy.yaml"), "x", "cannot write " + abs(".drover/policy.yaml") + ": in a protected folder (.drover)"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if res := callTool(t, writeFile, env, writeArgs(t, c.path, c.content)); !res.IsError || res.Text != c.want {
				t.Errorf("error %v, got %q, want %q", res.IsError, res.Text, c.want)
			}
		})
	}
	if err := os.Remove(abs("pipe")); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{"dir/f": "x"}, contents(t, env.Cwd)); diff != "" || len(*events) > 0 {
		t.Errorf("events %v; want - got +\n%s", *events, diff)
	}
	if res := callTool(t, writeFile, env, writeArgs(t, abs("full"), strings.Repeat("x", 64<<10))); res.IsError {
		t.Errorf("64 KiB: %s", res.Text)
	}
}
