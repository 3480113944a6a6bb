package sandbox

import (
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// makeTree makes files, and folders where a name ends in a slash.
func makeTree(t *testing.T, names ...string) string {
	t.Helper()
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		path := filepath.Join(base, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(name, "/") {
			err = os.MkdirAll(path, 0o755)
		} else {
			err = os.WriteFile(path, nil, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return base
}

func TestDeeperPlacementsComeLaterAndNarrowOnesWin(t *testing.T) {
	s := &setup{}
	s.add(masked, "/w/.git/config")
	s.add(lifted, "/w/.git")
	s.add(protected, "/w/.git")
	s.add(writable, "/w")
	s.add(writable, "/w")
	s.add(temporaryLayer, "/tmp")
	s.order()
	want := []placement{{temporaryLayer, "/tmp"}, {writable, "/w"}, {protected, "/w/.git"}, {lifted, "/w/.git"}, {masked, "/w/.git/config"}}
	if diff := cmp.Diff(want, s.placements, cmp.AllowUnexported(placement{})); diff != "" {
		t.Error(diff)
	}
}

func TestCachesInTheWorkspaceHaveLayersAndNestedOnesNone(t *testing.T) {
	base := makeTree(t, "home/.cache/go-build/", "home/go/pkg/mod/", "other/mod/")
	s := &setup{}
	s.add(writable, filepath.Join(base, "home"))
	s.planPrivate([]string{"HOME=" + base + "/home", "GOCACHE=" + base + "/home/.cache/go-build", "npm_config_cache=" + base + "/other"})
	got := s.of(layered)
	want := []string{base + "/home/.cache", base + "/home/go/pkg/mod"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("layers: %s", diff)
	}
	if got := s.of(temporaryLayer); !slices.Contains(got, "/tmp") {
		t.Errorf("temporary folders: %q", got)
	}
}

func TestPrivateFoldersAreRealAndNotNested(t *testing.T) {
	base := makeTree(t, "home/.cache/", "home/.npm/")
	got := Private([]string{"HOME=" + base + "/home", "TMPDIR=" + base})
	if !slices.Contains(got, "/tmp") || slices.Contains(got, base+"/home/.cache") {
		t.Errorf("got %q: the temporary folder holds the caches", got)
	}
}

func TestVariablesMoveCachesThatCannotBeWritten(t *testing.T) {
	base := makeTree(t, "home/.npm/", "home/go/pkg/mod/", "home/.gradle/", "gotmp/", "written/")
	environ := []string{"HOME=" + base + "/home", "GOTMPDIR=" + base + "/gotmp", "GOCACHE=" + base + "/written"}
	got := substitutes(environ, "/p", func(path string) bool { return path == base+"/written" })
	for _, want := range []string{
		"XDG_CACHE_HOME=/p/xdg_cache_home", "npm_config_cache=/p/npm_config_cache", "GOTMPDIR=",
		"GRADLE_USER_HOME=/p/gradle_user_home", "GRADLE_RO_DEP_CACHE=" + base + "/home/.gradle/caches",
	} {
		if !slices.Contains(got, want) {
			t.Errorf("%q is missing in %q", want, got)
		}
	}
	for _, kv := range got {
		if strings.HasPrefix(kv, "GOCACHE=") || strings.HasPrefix(kv, "GOMODCACHE=") {
			t.Errorf("%q: it can be used as it is", kv)
		}
	}
}

func TestDenyGlobsNameFilesAndWholeFolders(t *testing.T) {
	base := makeTree(t, "w/a.key", "w/sub/b.key", "w/sub/c.txt", "w/secrets/x", "w/odd[1]/k", "home/.ssh/id", "o/p")
	if err := os.Symlink(filepath.Join(base, "o", "p"), filepath.Join(base, "w", "link.key")); err != nil {
		t.Fatal(err)
	}
	rel := func(paths []string) []string {
		out := []string{}
		for _, p := range paths {
			out = append(out, strings.TrimPrefix(p, base+"/"))
		}
		slices.Sort(out)
		return out
	}
	for glob, want := range map[string][]string{
		"*.key":                  {"o/p", "w/a.key"},
		"**/*.key":               {"o/p", "w/a.key", "w/sub/b.key"},
		"secrets/**":             {"w/secrets"},
		"secrets/":               {"w/secrets"},
		"**/sub/**":              {"w/sub"},
		"~/.ssh/**":              {"home/.ssh"},
		"~/.ssh/id":              {"home/.ssh/id"},
		base + "/o/*":            {"o/p"},
		base + "/absent/**":      {},
		`odd\[1\]/k`:             {"w/odd[1]/k"},
		base + `/w/odd\[1\]/*`:   {"w/odd[1]/k"},
		base + "/w/{sub,nope}/*": {"w/sub/b.key", "w/sub/c.txt"},
	} {
		paths, unfinished := denied([]string{glob}, []string{filepath.Join(base, "w")}, filepath.Join(base, "home"))
		if diff := cmp.Diff(want, rel(paths)); diff != "" || len(unfinished) > 0 {
			t.Errorf("%s: %s %q", glob, diff, unfinished)
		}
	}
}

func TestSocketsOfServicesAreFound(t *testing.T) {
	dir, err := os.MkdirTemp("/tmp", "sb")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	agent := filepath.Join(dir, "agent")
	l, err := net.Listen("unix", agent)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	got := sockets(lookup([]string{"SSH_AUTH_SOCK=" + agent, "DOCKER_HOST=unix:///d.sock", "CONTAINER_HOST=tcp://h:1", "DBUS_SESSION_BUS_ADDRESS=unix:path=/bus,guid=1"}))
	if diff := cmp.Diff([]string{agent, "/d.sock", "/bus"}, got); diff != "" {
		t.Error(diff)
	}
	// Outside of every private folder it is masked.
	s := &setup{}
	s.planSockets([]string{"SSH_AUTH_SOCK=" + agent})
	if !slices.Contains(s.of(masked), agent) {
		t.Errorf("got %v", s.placements)
	}
}

func TestMountLinesAreRead(t *testing.T) {
	p, ok := parseMount(`36 35 98:0 /mnt1 /a\040b\134 ro,noexec,relatime master:1 - ext4 /dev/x rw`)
	if want := (mountPoint{`/a b\`, unix.MS_RDONLY | unix.MS_NOEXEC | unix.MS_RELATIME}); !ok || p != want {
		t.Errorf("got %+v, want %+v", p, want)
	}
	if _, ok := parseMount("short line"); ok {
		t.Error("a short line was read")
	}
}

// The filter is run by an interpreter, for calls that cannot be made here.
func TestFilterDecidesByTheHalfThatTheKernelReads(t *testing.T) {
	run := func(network bool, arch, call uint32, args ...uint64) uint32 {
		t.Helper()
		prog, err := assemble(network)
		if err != nil {
			t.Skip(err)
		}
		vm, err := bpf.NewVM(prog)
		if err != nil {
			t.Fatal(err)
		}
		// The interpreter is made for packets, whose words are big-endian.
		data := make([]byte, 64)
		put := func(at int, v uint32) {
			data[at], data[at+1], data[at+2], data[at+3] = byte(v>>24), byte(v>>16), byte(v>>8), byte(v)
		}
		put(dataCall, call)
		put(dataArch, arch)
		for i, a := range args {
			put(dataArgs+8*i, uint32(a))
			put(dataArgs+8*i+4, uint32(a>>32))
		}
		got, err := vm.Run(data)
		if err != nil {
			t.Fatal(err)
		}
		return uint32(got)
	}
	const high = 1 << 32
	for _, c := range []struct {
		name    string
		network bool
		arch    uint32
		call    uint32
		args    []uint64
		want    uint32
	}{
		{"ordinary", false, audit, unix.SYS_READ, nil, answerPermit},
		{"other architecture", true, audit + 1, unix.SYS_READ, nil, answerKill},
		{"tcp", false, audit, unix.SYS_SOCKET, []uint64{unix.AF_INET}, answerRefuse},
		{"tcp with a high half", false, audit, unix.SYS_SOCKET, []uint64{high | unix.AF_INET}, answerRefuse},
		{"unix", false, audit, unix.SYS_SOCKET, []uint64{unix.AF_UNIX}, answerPermit},
		{"tcp with network", true, audit, unix.SYS_SOCKET, []uint64{unix.AF_INET6}, answerPermit},
		{"packet with network", true, audit, unix.SYS_SOCKET, []uint64{unix.AF_PACKET}, answerRefuse},
		{"pair of another family", true, audit, unix.SYS_SOCKETPAIR, []uint64{unix.AF_TIPC}, answerRefuse},
		{"thread", false, audit, unix.SYS_CLONE, []uint64{unix.CLONE_VM | unix.CLONE_THREAD}, answerPermit},
		{"user namespace", false, audit, unix.SYS_CLONE, []uint64{unix.CLONE_NEWUSER | unix.CLONE_NEWNS}, answerRefuse},
		{"typing", false, audit, unix.SYS_IOCTL, []uint64{0, high | unix.TIOCSTI}, answerRefuse},
		{"size of a terminal", false, audit, unix.SYS_IOCTL, []uint64{0, unix.TIOCGWINSZ}, answerPermit},
		{"ptrace", true, audit, unix.SYS_PTRACE, nil, answerRefuse},
		{"clone3", true, audit, unix.SYS_CLONE3, nil, answerAbsent},
	} {
		if got := run(c.network, c.arch, c.call, c.args...); got != c.want {
			t.Errorf("%s: got %#x, want %#x", c.name, got, c.want)
		}
	}
}
