package sandbox

import (
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"
)

// A service listens wherever it likes, not only where services usually do.
func TestSocketsAnywhereAreRefused(t *testing.T) {
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("no python3")
	}
	base, err := os.MkdirTemp("/opt", "drover-test-")
	if err != nil {
		base, err = os.MkdirTemp(".", "s") // below no folder that has a layer
	}
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(base)
	if base, err = filepath.Abs(base); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(base, "s")
	listener, err := net.Listen("unix", path)
	if err != nil {
		t.Skipf("no socket at %q: %v", path, err)
	}
	defer listener.Close()
	connect := `python3 -c 'import socket; s = socket.socket(socket.AF_UNIX); s.connect("` + path + `")'`
	w := newWorld(t, nil)
	if out, st := w.sh(connect); st.Code == 0 {
		t.Errorf("connected: %s", out)
	}
	inside := newWorld(t, func(_ *world, o *Options) { o.Writable = append(o.Writable, base) })
	if out, st := inside.sh(connect); st.Code != 0 {
		t.Errorf("a socket in a writable folder: %s", out)
	}
}

// What is protected may lie deep in a root. Its folder cannot be moved away to
// put another one in its place.
func TestFoldersAroundTheProtectedStay(t *testing.T) {
	w := newWorld(t, func(w *world, o *Options) {
		if err := os.MkdirAll(filepath.Join(w.work, "a", "b", "own"), 0o755); err != nil {
			t.Fatal(err)
		}
		w.write("work/a/b/own/policy", "mine")
		o.Protected = append(o.Protected, filepath.Join(w.work, "a", "b", "own"))
	})
	out, _ := w.sh("mv a gone; mv a/b a/gone; mv --exchange a/b c; mkdir -p a/b/own; echo theirs > a/b/own/policy; echo x > a/x; echo x > a/b/x; mv a/x a/b/y; ls a a/b")
	if text, err := os.ReadFile(filepath.Join(w.work, "a", "b", "own", "policy")); string(text) != "mine" || err != nil {
		t.Errorf("got %q, %v\n%s", text, err, out)
	}
	for _, name := range []string{"a/b/x", "a/b/y"} {
		if !exists(filepath.Join(w.work, name)) {
			t.Errorf("%s cannot be written:\n%s", name, out)
		}
	}
}

// The terminals of the machine are no place for commands to write to, and what
// the user's programs share by number is none of their business.
func TestTerminalsAndSharedMemoryAreTheirOwn(t *testing.T) {
	ours, theirs, err := pty.Open()
	if err != nil {
		t.Skipf("no terminal: %v", err)
	}
	defer ours.Close()
	defer theirs.Close()
	memory, err := unix.SysvShmGet(unix.IPC_PRIVATE, 4096, unix.IPC_CREAT|0o600)
	if err != nil {
		t.Skipf("no shared memory: %v", err)
	}
	defer unix.SysvShmCtl(memory, unix.IPC_RMID, nil)
	for _, f := range []faults{0, noUserNamespaces, noUserNamespaces | noBubblewrap} {
		w := newWorld(t, func(_ *world, o *Options) { o.faults = f })
		if out, st := w.sh("echo x > " + theirs.Name()); st.Code == 0 {
			t.Errorf("wrote to a terminal: %s", out)
		}
		exe, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		copyFile(t, exe, filepath.Join(w.work, "attach"))
		if out, _ := w.run(w.box, "./attach", "probe-memory", strconv.Itoa(memory)); out != "EINVAL" && out != "EPERM" {
			t.Errorf("attached memory: %q", out)
		}
	}
}

// Root can change what belongs to root, were it not for the mount.
func TestDeviceFilesKeepTheirModes(t *testing.T) {
	w := newWorld(t, nil)
	out, st := w.sh("chmod 666 /dev/null && touch /dev/zero")
	if st.Code == 0 {
		t.Errorf("changed: %s", out)
	}
	if out, st := w.sh("echo x > /dev/null && head -c 2 /dev/zero | wc -c"); out != "2" || st.Code != 0 {
		t.Errorf("devices: %q %+v", out, st)
	}
}

// attachMemory prints what becomes of attaching shared memory.
func attachMemory(id string) int {
	n, err := strconv.Atoi(id)
	if err != nil {
		return 2
	}
	var errno syscall.Errno
	if _, err := unix.SysvShmAttach(n, 0, 0); !errors.As(err, &errno) {
		return 1
	}
	_, _ = os.Stdout.WriteString(unix.ErrnoName(errno))
	return 0
}

// Tools for many repositories make .git a link. Another one in its place would
// be obeyed by git as well.
func TestLinkToProtectedFolderStays(t *testing.T) {
	w := newWorld(t, func(w *world, _ *Options) {
		git := filepath.Join(w.work, ".git")
		if err := os.Rename(git, filepath.Join(w.work, "repository")); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink("repository", git); err != nil {
			t.Fatal(err)
		}
	})
	out, _ := w.sh(`cat .git/config; rm -f .git; mv .git gone; ln -sfn other .git; ln -sf other .git; mkdir other; mv -T other .git; mv --exchange other .git
echo x > .git/config; echo x > repository/config; mv repository gone; echo x > new; ls -d .git/hooks`)
	target, err := os.Readlink(filepath.Join(w.work, ".git"))
	if target != "repository" || err != nil {
		t.Errorf(".git leads to %q, %v\n%s", target, err, out)
	}
	if text, err := os.ReadFile(filepath.Join(w.work, ".git", "config")); string(text) != "config" || err != nil {
		t.Errorf("the config is %q, %v\n%s", text, err, out)
	}
	if !exists(filepath.Join(w.work, "new")) || !strings.HasPrefix(out, "config") || !strings.HasSuffix(out, ".git/hooks") {
		t.Errorf("the workspace cannot be used:\n%s", out)
	}
}
