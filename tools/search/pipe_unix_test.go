//go:build unix

package search

import (
	"net"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// A pipe is never opened: nobody writes to it, so that reading would last.
func TestPipesAndSocketsAreNotOpened(t *testing.T) {
	root := folderWith(t, map[string]string{"f": "x"})
	for _, name := range []string{"pipe", ".gitignore"} {
		if err := syscall.Mkfifo(filepath.Join(root, name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	socket, err := net.Listen("unix", filepath.Join(root, "s"))
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	done := make(chan Result, 1)
	go func() { // the test waits for it below
		r, err := Search(t.Context(), Options{Root: root, Query: "x"})
		if err != nil {
			t.Error(err)
		}
		done <- r
	}()
	select {
	case r := <-done:
		if r.Matches != 1 || r.Skipped != (Skipped{Special: 3}) {
			t.Errorf("%+v", r)
		}
	case <-time.After(time.Minute):
		t.Fatal("the search waits")
	}
	opened, err := openTree(root)
	if err != nil {
		t.Fatal(err)
	}
	defer opened.close()
	for name, way := range map[string]*tree{"quick": opened, "portable": {root: opened.root}} {
		if _, _, err := way.file("pipe"); err == nil {
			t.Errorf("%s: the pipe was opened", name)
		}
	}
}
