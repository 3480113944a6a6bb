package sandbox

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// probed runs the probe inside and returns its lines by name.
func (w *world) probed(s *Sandbox) map[string]string {
	w.t.Helper()
	abstract, err := net.Listen("unix", "@"+strings.ReplaceAll(w.work, "/", "-"))
	if err != nil {
		w.t.Fatal(err)
	}
	defer abstract.Close()
	// The name of a socket is short.
	short, err := os.MkdirTemp("/tmp", "sb")
	if err != nil {
		w.t.Fatal(err)
	}
	defer os.RemoveAll(short)
	named, err := net.Listen("unix", filepath.Join(short, "socket"))
	if err != nil {
		w.t.Fatal(err)
	}
	defer named.Close()
	exe, err := os.Executable()
	if err != nil {
		w.t.Fatal(err)
	}
	// The folder of the test may be hidden.
	inside := filepath.Join(w.work, "probe")
	if !exists(inside) && os.Link(exe, inside) != nil {
		copyFile(w.t, exe, inside)
	}
	out, st := w.run(s, "./probe", "probe", "parent="+strconv.Itoa(os.Getpid()),
		"abstract="+abstract.Addr().String(), "path-socket="+named.Addr().String())
	if st.Code != 0 {
		w.t.Fatalf("probe: %+v\n%s", st, out)
	}
	got := map[string]string{}
	for line := range strings.Lines(out) {
		name, result, _ := strings.Cut(strings.TrimSpace(line), " ")
		got[name] = result
	}
	return got
}

func TestSystemCallsThatLeadOutAreRefused(t *testing.T) { whole(t, systemCalls) }

func systemCalls(t *testing.T, f faults) {
	w := newWorld(t, func(_ *world, o *Options) { o.faults = f })
	got := w.probed(w.box)
	want := map[string]string{
		"unix": "ok", "tcp": "EPERM", "tcp6": "EPERM", "udp": "EPERM", "raw": "EPERM", "packet": "EPERM",
		"netlink": "EPERM", "vsock": "EPERM", "alg": "EPERM", "high-family": "EPERM",
		"abstract": "refused", "path-socket": "refused",
		"signal-parent": "EPERM", "signal-helper": "EPERM", "ptrace-parent": "EPERM", "ptrace-helper": "EPERM",
		"vm-read-parent": "EPERM", "getfd-parent": "EPERM",
		"parent-mem": "EACCES", "parent-environ": "EACCES", "parent-root": "EACCES", "parent-cwd": "EACCES",
		"parent-fd": "EACCES", "helper-mem": "EACCES", "helper-fd": "EACCES",
		"io-uring": "EPERM", "bpf": "EPERM", "userfaultfd": "EPERM", "keyctl": "EPERM", "kcmp": "EPERM", "perf": "EPERM",
		"mount": "EPERM", "remount": "EPERM", "umount": "EPERM", "fsopen": "EPERM", "open-tree": "EPERM",
		"mount-setattr": "EPERM", "chroot": "EPERM", "unshare-user": "EPERM", "unshare-mount": "EPERM",
		"clone-user": "EPERM", "clone3": "ENOSYS", "setns": "EPERM", "tiocsti": "EPERM", "tiocsti-high": "EPERM",
		"open-by-handle": "EPERM", "bounding-dac-read-search": "0 <nil>", "bounding-sys-admin": "0 <nil>",
		"descriptors": "0,1,2,",
	}
	if runtime.GOARCH == "amd64" {
		want["x32"] = "ENOSYS"
	}
	for name, result := range want {
		if got[name] != result {
			t.Errorf("%s: got %q, want %q", name, got[name], result)
		}
	}
}

func TestNetworkOpensOrdinarySocketsAlone(t *testing.T) {
	w := newWorld(t, nil)
	open, err := w.box.With(Rights{Network: true})
	if err != nil {
		t.Fatal(err)
	}
	got := w.probed(open)
	for name, result := range map[string]string{
		"tcp": "ok", "tcp6": "ok", "udp": "ok", "netlink": "ok", "packet": "EPERM", "vsock": "EPERM", "alg": "EPERM",
		"abstract": "refused", "path-socket": "refused", "parent-mem": "EACCES", "mount": "EPERM",
	} {
		if got[name] != result {
			t.Errorf("%s: got %q, want %q", name, got[name], result)
		}
	}
	if !open.Info().Network || w.box.Info().Network {
		t.Errorf("network: %v, and without the right %v", open.Info().Network, w.box.Info().Network)
	}
}

// Each script tries to change what is not the workspace's. Whatever it says, the
// outside must be as it was.
func TestNothingOutsideIsChanged(t *testing.T) { whole(t, outside) }

func outside(t *testing.T, f faults) {
	scripts := map[string]string{
		"write":              `echo x > ../out/file`,
		"append":             `echo x >> ../out/file`,
		"new file":           `echo x > ../out/new`,
		"new folder":         `mkdir ../out/dir`,
		"remove":             `rm -f ../out/file`,
		"move out":           `echo x > a; mv a ../out/new`,
		"move in":            `mv ../out/file here`,
		"symbolic link":      `ln -s ../out/file link; echo x > link; cp /etc/hostname link`,
		"folder link":        `ln -s ../out dir; echo x > dir/new; rm -f dir/file`,
		"hard link out":      `ln ../out/file hard && echo x > hard`,
		"hard link in":       `echo x > a; ln a ../out/new`,
		"mode":               `chmod 777 ../out/file`,
		"time":               `touch -d 2001-01-01 ../out/file`,
		"truncate":           `truncate -s 0 ../out/file`,
		"owner":              `chown 1:1 ../out/file`,
		"named pipe":         `mkfifo ../out/pipe`,
		"protected file":     `echo x > .git/config`,
		"protected hook":     `echo x > .git/hooks/post-commit`,
		"protected folder":   `mv .git gone; mkdir .git; echo x > .git/config`,
		"protected by link":  `ln -s .git g; echo x > g/config; mkdir g/new`,
		"protected hard":     `ln .git/config hard && echo x > hard`,
		"rename over":        `echo x > a; mv -f a .git/config`,
		"remove protected":   `rm -rf .git`,
		"exchange protected": `mkdir other; echo x > other/config; mv --exchange other .git`,
		"proc root":          `echo x > /proc/self/root` + "$OUT/file",
		"proc cwd":           `cd ../out; echo x > /proc/self/cwd/file`,
		"parent root":        `echo x > /proc/$PPID/root$OUT/file`,
		"background":         `(sleep 0.01; echo x > ../out/new) & wait`,
	}
	w := newWorld(t, func(_ *world, o *Options) { o.faults = f })
	before := w.snapshot()
	for name, script := range scripts {
		t.Run(name, func(t *testing.T) {
			out, _ := w.sh("OUT=" + w.path("out") + "\n" + script)
			if after := w.snapshot(); after != before {
				t.Errorf("changed:\n%s\nbefore:\n%s\noutput: %s", after, before, out)
			}
			if left, err := os.ReadDir(w.work); err == nil {
				for _, e := range left {
					if e.Name() != ".git" {
						_ = os.RemoveAll(filepath.Join(w.work, e.Name()))
					}
				}
			}
		})
	}
}

// snapshot describes what must not change: names, modes, owners, times, content.
func (w *world) snapshot() string {
	w.t.Helper()
	var b strings.Builder
	for _, root := range []string{w.path("out"), filepath.Join(w.work, ".git")} {
		_ = filepath.Walk(root, func(path string, st os.FileInfo, err error) error {
			if err != nil {
				b.WriteString(path + " " + err.Error() + "\n")
				return nil
			}
			text := ""
			if st.Mode().IsRegular() {
				content, _ := os.ReadFile(path)
				text = string(content)
			}
			owner := st.Sys().(*syscall.Stat_t)
			b.WriteString(path + " " + st.Mode().String() + " " + strconv.Itoa(int(owner.Uid)) + " " + st.ModTime().String() + " " + text + "\n")
			return nil
		})
	}
	return b.String()
}

func TestPrivateLayersHideTheRealFolders(t *testing.T) {
	var caches string
	w := newWorld(t, func(w *world, o *Options) {
		// A cache that lies in the workspace has a layer, too.
		caches = filepath.Join(w.work, "cache")
		if err := os.MkdirAll(caches, 0o755); err != nil {
			t.Fatal(err)
		}
		w.write("work/cache/warm", "warm")
		o.Environ = append(o.Environ, "XDG_CACHE_HOME="+caches)
		w.environ = o.Environ
	})
	name := "drover-sandbox-test-" + strconv.Itoa(os.Getpid())
	out, st := w.sh(`set -e
cat cache/warm; echo new > cache/warm; cat cache/warm; echo x > cache/new
for d in /tmp /var/tmp /dev/shm; do echo private > $d/` + name + `; cat $d/` + name + `; done`)
	if want := "warmnew\nprivate\nprivate\nprivate"; out != want || st.Code != 0 {
		t.Errorf("inside: got %q %+v, want %q", out, st, want)
	}
	for _, dir := range []string{"/tmp", "/var/tmp", "/dev/shm"} {
		if exists(filepath.Join(dir, name)) {
			t.Errorf("%s was written", dir)
			_ = os.Remove(filepath.Join(dir, name))
		}
	}
	if b, _ := os.ReadFile(filepath.Join(caches, "warm")); string(b) != "warm" || exists(filepath.Join(caches, "new")) {
		t.Errorf("the cache was written: %q", b)
	}
	if out, _ := w.sh("cat cache/new /tmp/" + name); out != "x\nprivate" {
		t.Errorf("the next command sees %q", out)
	}
}

func TestDenyReadHidesFiles(t *testing.T) { whole(t, hidesRead) }

func hidesRead(t *testing.T, f faults) {
	w := newWorld(t, func(w *world, o *Options) {
		o.faults = f
		for _, name := range []string{"work/.env", "work/sub/.env", "out/secret", "home/.ssh/id"} {
			if err := os.MkdirAll(filepath.Dir(w.path(name)), 0o755); err != nil {
				t.Fatal(err)
			}
			w.write(name, "SECRET")
		}
		o.DenyRead = []string{"**/.env", w.path("out/secret"), "~/.ssh/**"}
	})
	out, _ := w.sh(`cat .env sub/.env ../out/secret ../home/.ssh/id; ls ../home/.ssh; mv sub other; cat other/.env; ln .env hard; cat hard; echo x > .env`)
	if strings.Contains(out, "SECRET") || strings.Contains(out, "id\n") {
		t.Errorf("read: %q", out)
	}
	for _, name := range []string{"work/.env", "work/other/.env"} {
		if b, err := os.ReadFile(w.path(name)); err != nil || string(b) != "SECRET" {
			t.Errorf("%s is %q outside, %v", name, b, err)
		}
	}
	if f != 0 {
		return // the folder is below /tmp, where there is nothing without layers
	}
	lifted, err := w.box.With(Rights{Read: []string{w.path("out/secret")}})
	if err != nil {
		t.Fatal(err)
	}
	if out, _ := w.shIn(lifted, "cat ../out/secret; cat .env"); !strings.HasPrefix(out, "SECRET") || strings.Count(out, "SECRET") != 1 {
		t.Errorf("with the right to read one: %q", out)
	}
}

func TestRightToWriteLiftsAProtection(t *testing.T) { whole(t, lifts) }

func lifts(t *testing.T, f faults) {
	w := newWorld(t, func(_ *world, o *Options) { o.faults = f })
	more, err := w.box.With(Rights{Write: []string{filepath.Join(w.work, ".git"), w.path("out")}})
	if err != nil {
		t.Fatal(err)
	}
	if out, st := w.shIn(more, "echo x > .git/index && echo y > ../out/file"); st.Code != 0 {
		t.Errorf("with the right: %q", out)
	}
	if out, st := w.sh("echo x > .git/other"); st.Code == 0 {
		t.Errorf("without the right: %q", out)
	}
	if _, err := w.box.With(Rights{Write: []string{w.path("absent/file")}}); err == nil {
		t.Error("a folder that does not exist became writable")
	}
}

func TestReadOnlyWritesPrivateFoldersAlone(t *testing.T) { whole(t, readsOnly) }

func readsOnly(t *testing.T, f faults) {
	w := newWorld(t, func(_ *world, o *Options) { o.Mode, o.faults = ReadOnly, f })
	out, st := w.sh("f=$(mktemp) && echo x > $f && cat $f; (echo y > /usr/y) 2>/dev/null || echo refused; echo y > y")
	if out != "x\nrefused" || st.Code != 0 || exists(filepath.Join(w.work, "y")) {
		t.Errorf("got %q %+v", out, st)
	}
}

func TestWorktreesSharedFolderIsProtected(t *testing.T) {
	w := newWorld(t, func(w *world, o *Options) {
		main, tree := filepath.Join(w.work, "main"), filepath.Join(w.work, "tree")
		for _, dir := range []string{filepath.Join(main, ".git", "worktrees", "tree"), tree} {
			if err := os.MkdirAll(dir, 0o755); err != nil {
				t.Fatal(err)
			}
		}
		w.write("work/tree/.git", "gitdir: ../main/.git/worktrees/tree\n")
		w.write("work/main/.git/worktrees/tree/commondir", "../..\n")
		o.Protected = []string{filepath.Join(tree, ".git")}
	})
	out, _ := w.sh("echo x > tree/.git; echo x > main/.git/config; echo x > main/.git/worktrees/tree/HEAD")
	if strings.Count(out, "Read-only file system") != 3 {
		t.Errorf("got %q", out)
	}
}

func TestDevicesAreNoWayOut(t *testing.T) {
	w := newWorld(t, nil)
	out, _ := w.sh("for d in /dev/null /dev/zero /dev/urandom; do head -c 1 $d > /dev/null || echo no $d; done; echo x > /dev/null || echo no null")
	if out != "" {
		t.Errorf("ordinary devices: %q", out)
	}
	out, _ = w.sh("mknod node b 8 0; for d in /dev/*; do test -b $d && head -c 1 $d && echo read $d; done; true")
	if strings.Contains(out, "read /dev/") || exists(filepath.Join(w.work, "node")) {
		t.Errorf("block devices: %q", out)
	}
}

// A program of the 32-bit architecture makes its calls under other numbers.
func TestForeignArchitecturesAreEnded(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		t.Skip("no second architecture is known to run here")
	}
	w := newWorld(t, nil)
	if err := os.WriteFile(w.path("work/exit32"), exit32(), 0o755); err != nil {
		t.Fatal(err)
	}
	off, err := w.box.With(Rights{Off: true})
	if err != nil {
		t.Fatal(err)
	}
	if _, st := w.run(off, "./exit32"); st.Code != 0 {
		t.Skipf("this kernel runs no 32-bit programs: %+v", st)
	}
	if _, st := w.run(w.box, "./exit32"); st.Signal != "SIGSYS" {
		t.Errorf("inside: %+v", st)
	}
}

// exit32 is a whole 32-bit program: mov eax, 1; xor ebx, ebx; int 0x80.
func exit32() []byte {
	code := []byte{0xb8, 1, 0, 0, 0, 0x31, 0xdb, 0xcd, 0x80}
	elf := make([]byte, 84, 84+len(code))
	copy(elf, "\x7fELF\x01\x01\x01")
	put := func(at int, values ...uint32) {
		for i, v := range values {
			for j := range 4 {
				elf[at+4*i+j] = byte(v >> (8 * j))
			}
		}
	}
	const base = 0x08048000
	put(16, 3<<16|2, 1, base+84, 52, 0, 0, 32<<16|52, 1)
	put(52, 1, 0, base, base, uint32(84+len(code)), uint32(84+len(code)), 5, 0x1000)
	return append(elf, code...)
}

func TestSetuidProgramsGiveNothing(t *testing.T) {
	w := newWorld(t, nil)
	out, _ := w.sh("grep -E '^(NoNewPrivs|CapEff)' /proc/self/status; for p in su sudo mount passwd; do p=$(command -v $p) && test -u $p && echo setuid; done")
	if !strings.Contains(out, "NoNewPrivs:\t1") {
		t.Errorf("got %q", out)
	}
	if _, err := exec.LookPath("passwd"); err == nil && os.Geteuid() != 0 {
		if out, st := w.sh("passwd -d root"); st.Code == 0 {
			t.Errorf("passwd: %q", out)
		}
	}
	// A copy that the workspace holds gives nothing, either.
	if out, _ := w.sh("cp /bin/cat c && chmod u+s c && ./c /proc/self/status | grep -E '^Uid'"); strings.Count(out, strconv.Itoa(os.Geteuid())) < 4 {
		t.Errorf("got %q", out)
	}
}
