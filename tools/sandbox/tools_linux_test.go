package sandbox

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func need(t *testing.T, program string) {
	t.Helper()
	if _, err := exec.LookPath(program); err != nil {
		t.Skipf("there is no %s here", program)
	}
}

func TestGitReadsAndIsToldWhyItDoesNotWrite(t *testing.T) {
	need(t, "git")
	w := newWorld(t, func(w *world, o *Options) {
		_ = os.RemoveAll(filepath.Join(w.work, ".git"))
		w.write("work/a", "one\n")
		for _, args := range [][]string{{"init", "-q"}, {"add", "a"}, {"-c", "user.name=n", "-c", "user.email=e@x.example", "commit", "-qm", "first"}} {
			cmd := exec.Command("git", args...)
			cmd.Dir, cmd.Env = w.work, w.environ
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("git %q: %v %s", args, err, out)
			}
		}
	})
	out, st := w.sh("echo two >> a && git status --short && git diff | grep '^[+]two' && git log --oneline | wc -l")
	if out != "M a\n+two\n1" || st.Code != 0 {
		t.Errorf("got %q %+v", out, st)
	}
	out, st = w.sh("git add a")
	got := w.box.Refusals(Ended{ExitCode: st.Code, Output: out, Dir: w.work})
	if len(got) != 1 || got[0].Target != filepath.Join(w.work, ".git", "index.lock") || !strings.HasPrefix(got[0].Reason, ".git is protected") {
		t.Errorf("%q gave %+v", out, got)
	}
	more, err := w.box.With(Rights{Write: []string{filepath.Join(w.work, ".git")}})
	if err != nil {
		t.Fatal(err)
	}
	if out, st := w.shIn(more, "git add a && git -c user.name=n -c user.email=e@x.example commit -qm second && git log --oneline | wc -l"); out != "2" || st.Code != 0 {
		t.Errorf("with the right: %q", out)
	}
}

func TestGoBuildsWithTheCacheOfTheUser(t *testing.T) {
	need(t, "go")
	if testing.Short() {
		t.Skip("it builds a program")
	}
	w := newWorld(t, nil)
	w.write("work/go.mod", "module example.com/hello\n\ngo 1.26\n")
	w.write("work/main.go", "package main\n\nimport \"fmt\"\n\nfunc main() { fmt.Println(\"hello\") }\n")
	w.write("work/main_test.go", "package main\n\nimport (\"os\"; \"testing\")\n\nfunc TestIt(t *testing.T) { if err := os.WriteFile(t.TempDir()+\"/x\", nil, 0o600); err != nil { t.Fatal(err) } }\n")
	w.environ = append(w.environ, "GOFLAGS=-mod=mod -buildvcs=false", "GOPROXY=off", "GOTOOLCHAIN=local", "CGO_ENABLED=0")
	out, st := w.sh("go build -o hello . && ./hello && go test . && go vet .")
	if !strings.HasPrefix(out, "hello\nok") || st.Code != 0 {
		t.Errorf("got %q %+v", out, st)
	}
	if left, _ := os.ReadDir(filepath.Join(w.home, ".cache")); len(left) > 0 {
		t.Errorf("the real cache was written: %v", left)
	}
}

func TestPythonRuns(t *testing.T) {
	need(t, "python3")
	w := newWorld(t, nil)
	out, st := w.sh(`python3 -c 'import tempfile,multiprocessing as m; q=m.Queue(); q.put(1); print(q.get()); f=tempfile.NamedTemporaryFile(); print(f.name[:5])
try: open("/usr/x","w")
except OSError as e: print(e)'`)
	if st.Code != 0 && strings.Contains(out, "not executable") {
		t.Skip("this user has no python3")
	}
	if !strings.HasPrefix(out, "1\n/tmp/") {
		t.Errorf("got %q %+v", out, st)
	}
}

func TestRootWorksWithFilesOfOthers(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can have files of others")
	}
	w := newWorld(t, func(w *world, _ *Options) {
		w.write("work/theirs", "x")
		for _, path := range []string{w.work, w.path("work/theirs")} {
			if err := os.Chown(path, 12345, 12345); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Chmod(w.path("work/theirs"), 0o600); err != nil {
			t.Fatal(err)
		}
	})
	out, st := w.sh("stat -c %u theirs && echo y >> theirs && cat theirs && chown 54321 theirs && echo n > new && chown 12345 new")
	if out != "12345\nxy" || st.Code != 0 {
		t.Errorf("got %q %+v", out, st)
	}
	info, err := os.Stat(w.path("work/theirs"))
	if err != nil || info.Sys().(*syscall.Stat_t).Uid != 54321 {
		t.Errorf("owner: %+v %v", info, err)
	}
}

func TestFilesCanBeMovedAndLinkedInTheWorkspace(t *testing.T) {
	w := newWorld(t, nil)
	out, st := w.sh("mkdir -p a/b c && echo x > a/b/f && mv a/b c/ && ln c/b/f hard && ln -s hard soft && cat soft && rm -r c && mkfifo p && truncate -s 0 hard && chmod 600 hard && touch -d 2001-01-01 hard && rm -rf *")
	if out != "x" || st.Code != 0 {
		t.Errorf("got %q %+v", out, st)
	}
}
