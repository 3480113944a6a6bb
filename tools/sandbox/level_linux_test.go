package sandbox

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"drover/output/fault"
)

func TestWithoutUserNamespacesLandlockBoundsWrites(t *testing.T) {
	if landlockABI() < minLandlock {
		t.Skip("this kernel has no Landlock to fall back to")
	}
	w := newWorld(t, func(_ *world, o *Options) { o.faults = noUserNamespaces | noBubblewrap })
	info := w.box.Info()
	if info.Level != LevelLandlock || len(info.Warnings) == 0 || !strings.Contains(info.Warnings[0], ".git") {
		t.Errorf("info: %+v", info)
	}
	out, _ := w.sh(`echo in > in && cat in; echo x > ../out/file; echo x > ../out/new; rm -f ../out/file; ln -s ../out d; echo x > d/new
echo tmp > $TMPDIR/a && cat $TMPDIR/a; mkdir -p "$XDG_CACHE_HOME" && echo c > "$XDG_CACHE_HOME/c" && cat "$XDG_CACHE_HOME/c"; echo x > /tmp/new-file`)
	if b, _ := os.ReadFile(w.path("out/file")); string(b) != "outside" || exists(w.path("out/new")) || exists("/tmp/new-file") {
		t.Errorf("outside was changed: %q\n%s", b, out)
	}
	if !strings.HasPrefix(out, "in\n") || !strings.Contains(out, "\ntmp\nc\n") {
		t.Errorf("got %q", out)
	}
	if exists(filepath.Join(w.home, ".cache", "c")) {
		t.Error("the real cache was written")
	}
	got := w.probed(w.box)
	for name, result := range map[string]string{
		"tcp": "EPERM", "udp": "EPERM", "abstract": "refused", "signal-parent": "EPERM", "parent-environ": "EACCES",
		"parent-root": "EACCES", "mount": "EPERM", "unshare-user": "EPERM", "io-uring": "EPERM",
	} {
		if got[name] != result {
			t.Errorf("%s: got %q, want %q", name, got[name], result)
		}
	}
}

func TestDenyReadWithoutUserNamespacesIsRefused(t *testing.T) {
	dir := t.TempDir()
	_, err := Open(context.Background(), Options{
		Mode: WorkspaceWrite, Cwd: dir, Writable: []string{dir}, DenyRead: []string{"**/.env"}, faults: noUserNamespaces | noBubblewrap,
	})
	wantUnavailable(t, err, "deny_read")
}

func TestNoSandboxAtAllIsAnError(t *testing.T) {
	dir := t.TempDir()
	_, err := Open(context.Background(), Options{
		Mode: WorkspaceWrite, Cwd: dir, Writable: []string{dir}, faults: noUserNamespaces | noBubblewrap | noLandlock,
	})
	wantUnavailable(t, err, "user namespaces")
}

func wantUnavailable(t *testing.T, err error, says string) {
	t.Helper()
	var f *fault.Error
	if !errors.As(err, &f) || f.Code != "sandbox_unavailable" || f.Exit != fault.Environment {
		t.Fatalf("got %v", err)
	}
	if !strings.Contains(f.Why, says) || !strings.Contains(f.Fix, "--sandbox off") || !strings.Contains(f.Fix, "drover doctor") {
		t.Errorf("why %q, fix %q", f.Why, f.Fix)
	}
}

func TestHelperThatDoesNotWorkIsNoSandbox(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"fails": "exit 127", "succeeds": "exit 0", "talks": "echo hello >&3; sleep 1"} {
		t.Run(name, func(t *testing.T) {
			helper := filepath.Join(t.TempDir(), "helper")
			if err := os.WriteFile(helper, []byte("#!/bin/sh\n"+text+"\n"), 0o755); err != nil {
				t.Fatal(err)
			}
			_, err := Open(context.Background(), Options{Mode: WorkspaceWrite, Cwd: dir, Writable: []string{dir}, Helper: helper})
			wantUnavailable(t, err, "")
		})
	}
	_, err := Open(context.Background(), Options{Mode: Off, Cwd: dir, Helper: filepath.Join(dir, "absent")})
	wantUnavailable(t, err, "no such file")
}

func TestCanceledOpenLeavesNothing(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	dir := t.TempDir()
	layers := filepath.Join(dir, "layers")
	_, err := Open(ctx, Options{Mode: WorkspaceWrite, Cwd: dir, Writable: []string{dir}, Layers: layers})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if left, _ := os.ReadDir(layers); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

func TestWithoutLandlockAWarningIsGiven(t *testing.T) {
	w := newWorld(t, func(_ *world, o *Options) { o.faults = noLandlock })
	if info := w.box.Info(); info.Level != LevelNamespaces || !strings.Contains(strings.Join(info.Warnings, " "), "Landlock") {
		t.Errorf("info: %+v", info)
	}
	before := w.snapshot()
	w.sh("echo x > ../out/file; echo x > .git/config; mv .git gone; head -c 1 /dev/[sv]da")
	if after := w.snapshot(); after != before {
		t.Errorf("changed:\n%s", after)
	}
}

func TestWithoutOverlaysFoldersArePrivate(t *testing.T) {
	w := newWorld(t, func(_ *world, o *Options) { o.faults = noOverlay })
	if info := w.box.Info(); info.Level != LevelNamespaces || !strings.Contains(strings.Join(info.Warnings, " "), "no private layer for") {
		t.Errorf("info: %+v", info)
	}
	out, _ := w.sh(`f=$(mktemp) && echo a > $f && cat $f && mkdir -p ../home/.cache && echo c > ../home/.cache/c && cat ../home/.cache/c; echo x > ../out/file`)
	if !strings.HasPrefix(out, "a\nc") || exists(filepath.Join(w.home, ".cache", "c")) {
		t.Errorf("got %q", out)
	}
	if b, _ := os.ReadFile(w.path("out/file")); string(b) != "outside" {
		t.Errorf("outside: %q", b)
	}
	if got := w.probed(w.box); got["path-socket"] != "refused" {
		t.Errorf("a socket outside: %q", got["path-socket"])
	}
}

func TestOldKernelsRemountOneByOne(t *testing.T) {
	w := newWorld(t, func(_ *world, o *Options) { o.faults = noSetattr })
	if info := w.box.Info(); info.Level != LevelNamespaces {
		t.Errorf("info: %+v", info)
	}
	before := w.snapshot()
	out, _ := w.sh("echo x > ../out/file; echo x > .git/config; rm -rf .git; echo x > /usr/x; echo a > a && cat a")
	if after := w.snapshot(); after != before || !strings.HasSuffix(out, "\na") {
		t.Errorf("changed:\n%s\n%s", after, out)
	}
}

func TestLayersInMemory(t *testing.T) {
	w := newWorld(t, func(_ *world, o *Options) { o.Layers = "" })
	if out, st := w.sh("f=$(mktemp) && echo a > $f && cat $f"); out != "a" || st.Code != 0 {
		t.Errorf("got %q", out)
	}
}

func TestProtectedFolderThatAppearsIsTold(t *testing.T) {
	w := newWorld(t, nil)
	if got := w.box.Appeared(); len(got) != 0 {
		t.Errorf("before: %q", got)
	}
	w.sh("mkdir .drover")
	if got := w.box.Appeared(); len(got) != 1 || got[0] != filepath.Join(w.work, ".drover") {
		t.Errorf("after: %q", got)
	}
	if got := w.box.Appeared(); len(got) != 0 {
		t.Errorf("again: %q", got)
	}
}

func TestPathsHaveToBeAbsolute(t *testing.T) {
	if _, err := Open(context.Background(), Options{Mode: WorkspaceWrite, Writable: []string{"rel"}}); err == nil {
		t.Error("a relative root was taken")
	}
	if _, err := Open(context.Background(), Options{Mode: "other"}); err == nil {
		t.Error("a mode that does not exist was taken")
	}
	_, err := Open(context.Background(), Options{Mode: WorkspaceWrite, Writable: []string{filepath.Join(t.TempDir(), "absent")}})
	var f *fault.Error
	if !errors.As(err, &f) || f.Code != "writable_missing" {
		t.Errorf("a missing root: %v", err)
	}
}

func TestSetsOfRightsShareASandbox(t *testing.T) {
	w := newWorld(t, nil)
	a, err := w.box.With(Rights{Write: []string{w.path("out"), w.home}})
	if err != nil {
		t.Fatal(err)
	}
	b, err := w.box.With(Rights{Write: []string{w.home, w.path("out")}})
	if err != nil || a != b {
		t.Errorf("the same rights made another sandbox, %v", err)
	}
	if same, err := w.box.With(Rights{}); same != w.box || err != nil {
		t.Errorf("no rights made another sandbox, %v", err)
	}
	off, err := a.With(Rights{Off: true})
	if err != nil {
		t.Fatal(err)
	}
	if direct, err := w.box.With(Rights{Off: true, Network: true}); direct != off || err != nil {
		t.Errorf("off and network is not off, %v", err)
	}
	if out, _ := w.shIn(off, "echo x > ../out/by-off && cat ../out/by-off && echo $DROVER_SANDBOX_LEVEL"); out != "x\nnone" {
		t.Errorf("off: %q", out)
	}
}
