package sandbox

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"drover/tools/internal/proc"
)

// world is a workspace, a folder outside of it, and a sandbox around.
type world struct {
	t               *testing.T
	work, out, home string
	environ         []string
	box             *Sandbox
}

// newWorld opens a sandbox. change may be nil.
func newWorld(t *testing.T, change func(w *world, o *Options)) *world {
	t.Helper()
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, work: filepath.Join(base, "work"), out: filepath.Join(base, "out"), home: filepath.Join(base, "home")}
	for _, dir := range []string{w.work, w.out, w.home, filepath.Join(w.home, ".cache"), filepath.Join(w.work, ".git", "hooks")} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	w.write("out/file", "outside")
	w.write("work/.git/config", "config")
	w.environ = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + w.home}
	o := Options{
		Mode: WorkspaceWrite, Cwd: w.work, Writable: []string{w.work},
		Protected: []string{filepath.Join(w.work, ".git"), filepath.Join(w.work, ".drover")},
		Layers:    filepath.Join(base, "layers"), Environ: w.environ,
	}
	if change != nil {
		change(w, &o)
	}
	w.box, err = Open(context.Background(), o)
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	t.Cleanup(func() {
		w.box.Close(time.Second)
		if _, err := os.Lstat(o.Layers); o.Layers != "" && err == nil {
			t.Errorf("the layers are left")
		}
	})
	return w
}

func (w *world) path(name string) string { return filepath.Join(filepath.Dir(w.work), name) }

func (w *world) write(name, text string) {
	w.t.Helper()
	if err := os.WriteFile(w.path(name), []byte(text), 0o644); err != nil {
		w.t.Fatal(err)
	}
}

// sh runs a script in the workspace and returns what it printed, both outputs,
// and how it ended.
func (w *world) sh(script string) (string, proc.Status) {
	w.t.Helper()
	return w.shIn(w.box, script)
}

func (w *world) shIn(s *Sandbox, script string) (string, proc.Status) {
	w.t.Helper()
	return w.run(s, "sh", "-c", script)
}

func (w *world) run(s *Sandbox, argv ...string) (string, proc.Status) {
	w.t.Helper()
	r, out, err := os.Pipe()
	if err != nil {
		w.t.Fatal(err)
	}
	defer r.Close()
	ch, err := s.Launcher().Launch(proc.Launch{
		Argv: argv, Dir: w.work, Env: append(w.environ, s.Environ()...), Files: [3]*os.File{nil, out, out},
	})
	out.Close()
	if err != nil {
		w.t.Fatalf("launch: %v", err)
	}
	text := make(chan string, 1)
	go func() { b, _ := io.ReadAll(r); text <- string(b) }()
	st, err := ch.Wait()
	if err != nil {
		w.t.Fatalf("wait: %v", err)
	}
	return strings.TrimSpace(<-text), st
}

func TestCommandsWriteTheWorkspaceAlone(t *testing.T) {
	w := newWorld(t, nil)
	t.Logf("info: %+v environ: %q", w.box.Info(), w.box.Environ())
	out, st := w.sh("echo a > new && mkdir -p d/e && mv new d/e/ && cat d/e/new && echo b > /dev/null && : > /dev/stderr")
	if out != "a" || st.Code != 0 {
		t.Errorf("inside: %q %+v", out, st)
	}
	out, st = w.sh("echo x > ../out/file; echo x > ../out/new; echo x >> .git/config; mv .git gone; rm -rf .git; mount; cat /proc/self/status | grep -E 'Cap|Seccomp|NoNew'; ls -la /tmp | head -3")
	t.Logf("%s", out)
	if b, _ := os.ReadFile(w.path("out/file")); string(b) != "outside" {
		t.Errorf("outside was changed: %q", b)
	}
}
