package sandbox

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"drover/tools/internal/proc"
)

func TestNothingRunsAfterEndAndNoLayerIsLeftAfterClose(t *testing.T) {
	w := newWorld(t, nil)
	ch, err := w.box.Launcher().Launch(proc.Launch{Argv: []string{"sleep", "600"}, Dir: w.work, Env: w.environ})
	if err != nil {
		t.Fatal(err)
	}
	if out, st := w.sh("mkdir -p /tmp/a/b && for i in 1 2 3 4 5 6 7 8 9; do echo x > /tmp/a/b/$i; done && chmod 0 /tmp/a"); st.Code != 0 {
		t.Fatalf("fill the layer: %q %+v", out, st)
	}
	if n := w.box.End(50 * time.Millisecond); n != 1 {
		t.Errorf("ended %d processes, want 1", n)
	}
	if st, err := ch.Wait(); err == nil && st.Code == 0 {
		t.Errorf("the command has ended well: %+v", st)
	}
	if _, err := w.box.Launcher().Launch(proc.Launch{Argv: []string{"true"}, Dir: w.work, Env: w.environ}); err == nil {
		t.Error("a command has started after the end")
	}
	if _, err := w.box.With(Rights{Network: true}); err == nil {
		t.Error("a sandbox with more rights has opened after the end")
	}
	if n := w.box.Close(time.Second); n != 0 {
		t.Errorf("closing ended %d processes once more", n)
	}
	if _, err := os.Lstat(w.path("layers")); err == nil {
		t.Error("the layers are there after Close")
	}
}

func TestLayersOfAKilledRunAreNotSeenAgain(t *testing.T) {
	w := newWorld(t, func(_ *world, o *Options) {
		next := filepath.Join(o.Layers, strconv.FormatInt(boxes.Load()+1, 10))
		for i := range 8 {
			old := filepath.Join(next, "layer"+strconv.Itoa(i)+".upper")
			if err := os.MkdirAll(old, 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(old, "of-a-killed-run"), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	})
	if out, _ := w.sh("ls /tmp/of-a-killed-run /var/tmp/of-a-killed-run $HOME/.cache/of-a-killed-run 2>/dev/null"); out != "" {
		t.Errorf("a command sees what one of another run has left: %q", out)
	}
}

func TestEarlyHelperEndsUnlessItIsTaken(t *testing.T) {
	var none *Early
	none.Close()
	e := StartEarly()
	if e == nil {
		t.Skip("this system refuses user namespaces")
	}
	process := e.helper.process
	e.Close()
	e.Close()
	if err := process.Signal(os.Kill); err == nil {
		t.Error("the helper has not been ended and reaped")
	}

	e = StartEarly()
	w := newWorld(t, func(_ *world, o *Options) { o.Early = e })
	if h := e.take(); h != nil {
		h.end()
		t.Error("the helper that waits was not taken")
	}
	e.Close()
	if out, st := w.sh("echo fine"); out != "fine" || st.Code != 0 {
		t.Errorf("after Close the sandbox says %q %+v", out, st)
	}
}
