package textfile

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

func fifo(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "fifo")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Skip("no pipes with names here: ", err)
	}
	return path
}

func TestWhatIsNoPlainFileIsRefusedAtOnce(t *testing.T) {
	dir := t.TempDir()
	sparse := filepath.Join(dir, "sparse")
	if err := os.WriteFile(sparse, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(sparse, 3<<30); err != nil {
		t.Skip("no sparse files here: ", err)
	}
	for path, want := range map[string]error{
		fifo(t): ErrNotPlain, dir: ErrNotPlain, "/dev/zero": ErrNotPlain, sparse: ErrTooLarge,
		filepath.Join(dir, "missing"): os.ErrNotExist,
	} {
		if data, err := Plain(path, 1<<10); !errors.Is(err, want) {
			t.Errorf("%s: %d bytes, %v", path, len(data), err)
		}
	}
	if err := os.WriteFile(sparse, []byte("text"), 0o600); err != nil {
		t.Fatal(err)
	}
	if data, err := Plain(sparse, 4); err != nil || string(data) != "text" {
		t.Errorf("got %q, %v", data, err)
	}
}

func TestLinkThatLeavesTheFolderIsNotFollowed(t *testing.T) {
	dir := t.TempDir()
	if err := os.Symlink("/etc/passwd", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	if data, err := PlainIn(root, "link", 1<<20); err == nil {
		t.Errorf("got %d bytes", len(data))
	}
}

func TestPipeMayHaveItsWriterLater(t *testing.T) {
	path := fifo(t)
	r, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	want := strings.Repeat("a line\n", 100_000)
	wrote := make(chan error, 1)
	go func() { wrote <- os.WriteFile(path, []byte(want), 0o600) }()
	got, err := io.ReadAll(r)
	if err != nil || string(got) != want {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	if err := <-wrote; err != nil {
		t.Error(err)
	}
}

func TestPipeWithoutAWriterIsGivenUp(t *testing.T) {
	r, err := Open(fifo(t))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	r.(*pipe).wait = 2 * time.Millisecond
	if _, err := io.ReadAll(r); !errors.Is(err, ErrNoWriter) {
		t.Errorf("got %v", err)
	}
}
