package sandbox

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// whole runs a test at each level that promises everything: in namespaces of
// drover's own, and in those that bubblewrap makes.
func whole(t *testing.T, test func(t *testing.T, f faults)) {
	t.Run(string(LevelNamespaces), func(t *testing.T) { test(t, 0) })
	t.Run(string(LevelBubblewrap), func(t *testing.T) {
		needBubblewrap(t)
		test(t, noUserNamespaces)
	})
}

// needBubblewrap skips a test where bubblewrap is not there, or may not do its
// work either.
func needBubblewrap(t *testing.T) {
	t.Helper()
	if wrapper() == "" {
		t.Skip("bubblewrap is not installed")
	}
	if out, err := exec.Command(wrapper(), "--ro-bind", "/", "/", "true").CombinedOutput(); err != nil {
		t.Skipf("bubblewrap does not work here: %v, %s", err, out)
	}
}

func TestWithoutUserNamespacesBubblewrapMakesThem(t *testing.T) {
	needBubblewrap(t)
	w := newWorld(t, func(w *world, o *Options) {
		o.faults = noUserNamespaces
		if err := os.Symlink(".git", filepath.Join(w.work, ".agents")); err != nil {
			t.Fatal(err)
		}
		o.Protected = append(o.Protected, filepath.Join(w.work, ".agents"))
	})
	info := w.box.Info()
	if info.Level != LevelBubblewrap || !strings.Contains(strings.Join(info.Warnings, "\n"), "bubblewrap makes them") {
		t.Fatalf("info: %+v", info)
	}
	out, st := w.sh(`set -e
echo in > in; cat in; echo tmp > /tmp/a; cat /tmp/a; echo shm > /dev/shm/a; cat /dev/shm/a
mkdir -p "${XDG_CACHE_HOME:-$HOME/.cache}/x"; echo cached; id -u; cat /proc/self/status | grep -c NoNewPrivs:.1`)
	want := "in\ntmp\nshm\ncached\n" + uid() + "\n1"
	if out != want || st.Code != 0 {
		t.Errorf("got %q %+v, want %q", out, st, want)
	}
	if exists("/tmp/a") || exists("/dev/shm/a") || exists(filepath.Join(w.home, ".cache", "x")) {
		t.Error("private folders are not private")
	}
	if out, _ := w.sh("cat /tmp/a"); out != "tmp" {
		t.Errorf("the next command sees %q", out)
	}
}

// TestArgumentsOfBubblewrap: what is deeper comes later, so that it lies on top.
func TestArgumentsOfBubblewrap(t *testing.T) {
	base := t.TempDir()
	for _, dir := range []string{"work/.git", "layers", "tmp", "secret"} {
		if err := os.MkdirAll(filepath.Join(base, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	in := func(name string) string { return filepath.Join(base, name) }
	if err := os.WriteFile(in("work/.env"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	s := &setup{level: LevelBubblewrap, layers: in("layers")}
	s.add(layered, in("cache"))
	s.add(empty, in("tmp"))
	s.add(empty, in("absent"))
	s.add(masked, in("secret"))
	s.add(writable, in("work"))
	s.add(protected, in("work/.git"))
	s.add(protected, in("work/.drover"))
	s.add(masked, in("work/.env"))
	s.add(linked, in("work/.agents"))
	w, err := s.wrap("/opt/drover")
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"--unshare-ipc", "--ro-bind", "/", "/", "--dev", "/dev", "--ro-bind", "/opt/drover", "/dev/drover-sandbox",
		"--bind", in("layers/private1"), in("tmp"), "--ro-bind", in("layers/folder"), in("secret"),
		"--bind", in("work"), in("work"), "--ro-bind", in("work/.git"), in("work/.git"), "--ro-bind", in("layers/file"), in("work/.env"),
		"--chdir", "/", "--", "/dev/drover-sandbox", "set-up",
	}
	if d := cmp.Diff(want, w.args); d != "" {
		t.Error(d)
	}
	if !slices.Equal(w.refused, []string{in("cache")}) || !slices.Equal(w.open, []string{in("work/.agents")}) ||
		!slices.Equal(s.private, []string{in("tmp"), in("work")}) {
		t.Errorf("refused %q, open %q, written %q", w.refused, w.open, s.private)
	}
}

func uid() string { return strconv.Itoa(os.Geteuid()) }
