//go:build unix

package tree

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestPipesAreNeverOpened(t *testing.T) {
	src := t.TempDir()
	fill(t, src, "a", "x\n")
	pipe := func(path string) {
		if err := syscall.Mkfifo(path, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	pipe(filepath.Join(src, "pipe"))
	work := filepath.Join(t.TempDir(), "copy")
	skipped, err := Copy(context.Background(), src, work)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]string{"pipe"}, skipped); d != "" {
		t.Error(d)
	}
	s := taken(t, work)
	if err := os.Remove(filepath.Join(work, "a")); err != nil {
		t.Fatal(err)
	}
	pipe(filepath.Join(work, "a"))
	patch, changed := diffOf(t, s)
	if len(changed) != 1 || changed[0].Kind != "delete" {
		t.Errorf("changed %v", changed)
	}
	if !bytes.Contains(patch, []byte("drover: a is left out of this diff: it is neither a file nor a link\n")) {
		t.Errorf("patch %s", patch)
	}
}
