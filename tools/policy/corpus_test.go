package policy

import (
	"bytes"
	"context"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"
)

// The corpus in testdata/corpus says what becomes of commands under a few
// policies, and why: what a shell does with them. Each entry is judged; those
// that are marked as canaries are then run by a real shell, without a policy,
// in a throw-away folder whose programs are spies, to prove that the reason is
// true: what is refused there really runs or writes what a rule names, and
// what is allowed does not.

// corpusGroup is a list of entries that share what they do not say themselves.
type corpusGroup struct {
	About  string
	Policy string
	Expect Effect
	Canary bool
	// Shell runs the canaries; absent is bash.
	Shell string
	Cases []corpusCase
}

type corpusCase struct {
	// Cmd is a script for a shell, Argv a vector of its own. In both @W@ is
	// the workspace.
	Cmd  string
	Argv []string
	// Why is what the shell does with it.
	Why    string
	Expect Effect
	Canary *bool
	// Needs are programs without which the canary cannot run.
	Needs []string
}

// minCorpus is what the corpus may not shrink below.
const minCorpus = 1000

func readCorpus(t testing.TB) []corpusGroup {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("testdata", "corpus", "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var all []corpusGroup
	entries := 0
	for _, name := range files {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		dec := yaml.NewDecoder(bytes.NewReader(data))
		dec.KnownFields(true)
		var groups []corpusGroup
		if err := dec.Decode(&groups); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for i := range groups {
			groups[i].About = strings.TrimSuffix(filepath.Base(name), ".yaml") + "/" + groups[i].About
			entries += len(groups[i].Cases)
		}
		all = append(all, groups...)
	}
	if entries < minCorpus {
		t.Fatalf("the corpus has %d entries, want at least %d", entries, minCorpus)
	}
	return all
}

// corpusPolicy loads a policy of the corpus, or a preset, for a workspace.
func corpusPolicy(t testing.TB, name, workspace string) *Policy {
	t.Helper()
	s := Sources{
		Roots: Roots{Workspace: workspace, Writable: []string{workspace}, Home: filepath.Join(filepath.Dir(workspace), "home")},
		Env:   Env{Real: RealPath},
	}
	file := filepath.Join("testdata", "corpus", "policies", name+".yaml")
	switch data, err := os.ReadFile(file); {
	case err == nil:
		s.Inline, s.Yolo = data, name == "yolo"
	case slices.Contains(Presets(), name):
		s.Preset = name
	default:
		t.Fatal(err)
	}
	p, err := Load(s)
	if err != nil {
		t.Fatalf("load %s: %v", name, err)
	}
	return p
}

func TestCorpusIsDecidedAsItsReasonsSay(t *testing.T) {
	for _, g := range readCorpus(t) {
		t.Run(g.About, func(t *testing.T) {
			t.Parallel()
			workspace := corpusWorkspace(t)
			p := corpusPolicy(t, g.Policy, workspace)
			for _, c := range g.Cases {
				if c.Why == "" || c.Cmd == "" && c.Argv == nil {
					t.Fatalf("%q is not complete", c.Cmd)
				}
				call := Call{Tool: "exec_command", Actions: []Action{corpusAction(c, workspace)}}
				want := g.Expect
				if c.Expect != "" {
					want = c.Expect
				}
				if v := p.Decide(call); v.Effect != want {
					t.Errorf("%q (%s): got %s by %s %q (%s), want %s", c.Cmd+strings.Join(c.Argv, " "), c.Why, v.Effect, v.DecidedBy, v.RuleID, v.Reason, want)
				}
			}
		})
	}
}

func corpusAction(c corpusCase, workspace string) Action {
	if c.Argv != nil {
		return Exec(workspace, c.Argv...)
	}
	return Exec(workspace, "bash", "-c", strings.ReplaceAll(c.Cmd, "@W@", workspace))
}

func TestCorpusReasonsAreTrueInARealShell(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the reasons are about the shells and tools of Linux")
	}
	if testing.Short() {
		t.Skip("runs some hundred shells")
	}
	spies := newSpies(t)
	for _, g := range readCorpus(t) {
		t.Run(g.About, func(t *testing.T) {
			t.Parallel()
			bin := spies.install(t)
			for _, c := range g.Cases {
				if !g.Canary && c.Canary == nil || c.Canary != nil && !*c.Canary {
					continue
				}
				if reachesOut(c.Cmd) {
					t.Errorf("%q names a program or a folder of this machine", c.Cmd)
					continue
				}
				if missing := spies.missing(c.Needs); missing != "" {
					t.Logf("%q is not run: there is no %s", c.Cmd, missing)
					continue
				}
				want := g.Expect
				if c.Expect != "" {
					want = c.Expect
				}
				got, log := spies.run(t, bin, g, c)
				if want == Allow && got != Allow || want != Allow && got == Allow {
					t.Errorf("%q (%s): a shell really did something that is %s, want %s:\n%s", c.Cmd, c.Why, got, want, log)
				}
			}
		})
	}
}

// corpusFiles are the files of a workspace. That of secrets is recognised in
// the output of whatever reads it.
var corpusFiles = map[string]string{
	"a.txt": "alpha\nbeta\n", "b.txt": "b\n", "two words.txt": "x\n", "list": "a.txt\nb.txt\n", "package.json": `{"a":{"b":1}}`,
	"src/main.go": "package main\n", "out/x": "x\n", "sub/a.txt": "a\n", "secrets/key": "SECRET-KEY\n", "config/app.yaml": "a: 1\n",
	"deploy/plan": "p\n", "x.sh": "echo x\n", "Makefile": "test build:\n\t@:\n",
}

// corpusWorkspace makes a workspace and returns its real name.
func corpusWorkspace(t *testing.T) string {
	t.Helper()
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	workspace := filepath.Join(base, "place")
	for name, text := range corpusFiles {
		file := filepath.Join(workspace, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, dir := range []string{"../home", "secrets/empty", "sub/empty"} {
		if err := os.MkdirAll(filepath.Join(workspace, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for link, to := range map[string]string{"link": "secrets", "out/link": "../sub"} {
		if err := os.Symlink(to, filepath.Join(workspace, link)); err != nil {
			t.Fatal(err)
		}
	}
	return workspace
}

// spies are programs that only tell that they ran, and a few real ones that do
// nothing outside the folder they are in.
type spies struct{ real map[string]string }

// spyNames are the programs that never really run.
var spyNames = strings.Fields(`git rm curl sudo doas npm go docker touch python3 gh ssh rsync zip vim less man
	gdb sqlite3 jq rg nonesuch gits`)

// realNames are the programs that do.
var realNames = strings.Fields(`awk base64 bash cat cp cut date dd diff ed env find grep head install ln ls make mkdir mv nice nohup
	printf rev rmdir sed seq setsid sh shred sleep sort split stdbuf tail tar tee timeout tr truncate uniq unlink wc xargs`)

func newSpies(t *testing.T) spies {
	t.Helper()
	s := spies{real: map[string]string{}}
	for _, name := range realNames {
		if file, err := exec.LookPath(name); err == nil {
			s.real[name] = file
		}
	}
	if s.real["bash"] == "" || s.real["sh"] == "" {
		t.Skip("there is no shell")
	}
	return s
}

func (s spies) missing(names []string) string {
	for _, name := range names {
		if s.real[name] == "" {
			return name
		}
	}
	return ""
}

// run runs an entry without a policy, with the programs of bin, and returns
// the strictest thing that the policy says about what really happened.
func (s spies) run(t *testing.T, bin string, g corpusGroup, c corpusCase) (strictest Effect, log string) {
	t.Helper()
	workspace := corpusWorkspace(t)
	before := snapshot(t, workspace)
	shell := g.Shell
	if shell == "" {
		shell = "bash"
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	base := filepath.Dir(workspace)
	cmd := exec.CommandContext(ctx, filepath.Join(bin, shell), "-c", strings.ReplaceAll(c.Cmd, "@W@", workspace))
	cmd.Dir = workspace
	cmd.Env = []string{"PATH=" + bin, "HOME=" + filepath.Join(base, "home"), "LC_ALL=C", "TMPDIR=" + base}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second
	// How the command ends does not matter, only what it did until then. Its
	// children hold the output, so that none of them is left either.
	out, _ := cmd.CombinedOutput()
	if ctx.Err() != nil {
		t.Errorf("%q did not end", c.Cmd)
	}
	p := corpusPolicy(t, g.Policy, workspace)
	strictest = Allow
	note := func(a Action, what string) {
		v := p.Decide(Call{Tool: "exec_command", Actions: []Action{a}})
		log += string(v.Effect) + ": " + what + "\n"
		if v.Effect.stricter(strictest) {
			strictest = v.Effect
		}
	}
	for _, line := range s.told(t, bin) {
		note(Exec(line[0], line[1:]...), strings.Join(line[1:], " "))
	}
	after := snapshot(t, workspace)
	for _, name := range slices.Sorted(maps.Keys(after)) {
		if before[name] != after[name] {
			note(p.located(KindWrite, workspace, name), "wrote "+name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(before)) {
		if _, ok := after[name]; !ok {
			note(p.located(KindDelete, workspace, name), "deleted "+name)
		}
	}
	if key := strings.TrimSpace(corpusFiles["secrets/key"]); strings.Contains(string(out), key) {
		note(p.located(KindRead, workspace, "secrets/key"), "printed secrets/key")
	}
	return strictest, log + "output: " + string(out)
}

// install returns a folder with the programs. Each spy appends its folder, its
// name and its words to the log beside the folder; it is a script, so that it
// knows its name whatever it is called.
func (s spies) install(t *testing.T) (bin string) {
	t.Helper()
	base := t.TempDir()
	bin = filepath.Join(base, "bin")
	if err := os.Mkdir(bin, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, file := range s.real {
		if err := os.Symlink(file, filepath.Join(bin, name)); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range spyNames {
		script := "#!" + s.real["sh"] + "\nout=\"$(pwd -P)\"\nfor w in " + name + " \"$@\"; do out=\"$out\x1f$w\"; done\n" +
			"printf '%s\\036' \"$out\" >> '" + filepath.Join(base, "log") + "'\n"
		if err := os.WriteFile(filepath.Join(bin, name), []byte(script), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return bin
}

// told returns what the spies wrote: a folder and the words of a command each,
// since it was last asked.
func (s spies) told(t *testing.T, bin string) (lines [][]string) {
	t.Helper()
	log := filepath.Join(filepath.Dir(bin), "log")
	data, err := os.ReadFile(log)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	if err := os.RemoveAll(log); err != nil {
		t.Fatal(err)
	}
	for line := range strings.SplitSeq(string(data), "\x1e") {
		if line != "" {
			lines = append(lines, strings.Split(line, "\x1f"))
		}
	}
	return lines
}

// snapshot returns the files of a folder with what they hold, and folders and
// links with what they are.
func snapshot(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(dir, name)
		if err != nil {
			return err
		}
		switch {
		case d.Type()&fs.ModeSymlink != 0:
			to, err := os.Readlink(name)
			files[rel] = "-> " + to
			return err
		case d.Type().IsRegular():
			data, err := os.ReadFile(name)
			files[rel] = "= " + string(data)
			return err
		}
		files[rel] = d.Type().String()
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// reachesOut tells whether a script could run a real program instead of a spy
// or touch a file outside of its folder: it names a folder of the system, or
// starts a login shell, which sets PATH anew.
func reachesOut(script string) bool {
	words := strings.FieldsFunc(script, func(r rune) bool { return strings.ContainsRune(" \t\n'\"`=<>&|;(){}:,", r) })
	return slices.ContainsFunc(words, func(word string) bool {
		if strings.HasPrefix(word, "-") {
			return isCluster(word) && strings.Contains(word, "l") && strings.Contains(word, "c") || word == "--login"
		}
		return slices.ContainsFunc([]string{"/bin", "/sbin", "/usr", "/etc", "/opt", "/var", "/tmp", "/home", "/root", "/proc", "/sys"},
			func(dir string) bool { return word == dir || strings.HasPrefix(word, dir+"/") })
	})
}
