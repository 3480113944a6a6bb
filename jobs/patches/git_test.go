package patches

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// scratch is a repository with one commit.
type scratch struct {
	t   *testing.T
	dir string
}

func newScratch(t *testing.T) *scratch {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed")
	}
	s := &scratch{t, t.TempDir()}
	s.must("init", "-q")
	return s
}

func (s *scratch) run(stdin []byte, args ...string) ([]byte, error) {
	cmd := exec.Command("git", append([]string{"-c", "user.name=x", "-c", "user.email=x@example.com", "-c", "gc.auto=0"}, args...)...)
	cmd.Dir, cmd.Stdin = s.dir, bytes.NewReader(stdin)
	for _, entry := range os.Environ() {
		if !strings.HasPrefix(entry, "GIT_") {
			cmd.Env = append(cmd.Env, entry)
		}
	}
	cmd.Env = append(cmd.Env, "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_NOSYSTEM=1", "LC_ALL=C")
	return cmd.Output()
}

func (s *scratch) must(args ...string) []byte {
	s.t.Helper()
	out, err := s.run(nil, args...)
	if err != nil {
		s.t.Fatalf("git %v: %v", args, err)
	}
	return out
}

// tree is a state of the folder: path to content; one that begins with "x!" is
// an executable, one with "->" a link.
type tree map[string]string

// write makes the folder what the tree says.
func (s *scratch) write(files tree) {
	s.t.Helper()
	s.must("rm", "-rfq", "--ignore-unmatch", ".")
	s.must("clean", "-fdxq")
	for name, text := range files {
		path := filepath.Join(s.dir, filepath.FromSlash(name))
		err := os.MkdirAll(filepath.Dir(path), 0o755)
		if target, ok := strings.CutPrefix(text, "->"); ok && err == nil {
			err = os.Symlink(target, path)
		} else if err == nil {
			mode := os.FileMode(0o644)
			if strings.HasPrefix(text, "x!") {
				mode = 0o755
			}
			err = os.WriteFile(path, []byte(text), mode)
		}
		if err != nil {
			s.t.Fatal(err)
		}
	}
	s.must("add", "-A", ".")
}

// commit makes a tree the base of all patches.
func (s *scratch) commit(files tree) {
	s.t.Helper()
	s.write(files)
	s.must("commit", "-q", "--allow-empty", "-m", "x")
}

// diff is what git says has changed from the base to a tree.
func (s *scratch) diff(files tree) []byte {
	s.t.Helper()
	s.write(files)
	return s.must("diff", "--cached", "--binary", "--full-index", "-M", "HEAD")
}

// merges tells whether git can apply one patch after the other.
func (s *scratch) merges(a, b []byte) bool {
	s.t.Helper()
	s.must("reset", "-q", "--hard", "HEAD")
	if out, err := s.run(a, "apply", "--index", "--whitespace=nowarn"); err != nil {
		s.t.Fatalf("the first patch alone: %v\n%s\n%s", err, out, a)
	}
	_, err := s.run(b, "apply", "--3way", "--whitespace=nowarn")
	return err == nil
}

func lines(from, to int, changed map[int]string) string {
	var b strings.Builder
	for n := from; n <= to; n++ {
		if text, ok := changed[n]; ok {
			b.WriteString(text)
		} else {
			fmt.Fprintf(&b, "line %d\n", n)
		}
	}
	return b.String()
}

func TestVerdictIsThatOfGit(t *testing.T) {
	s := newScratch(t)
	text := lines(1, 20, nil)
	base := tree{"f": text, "bin": "a\x00b" + text, "dir/g": "one\ntwo\n", "one": "1\n", "keep": "k\n", "noeol": "a\nb"}
	s.commit(base)
	// with is the base with other files; an empty content is none.
	with := func(list ...string) tree {
		out := tree{}
		for name, text := range base {
			out[name] = text
		}
		for i := 0; i < len(list); i += 2 {
			out[list[i]] = list[i+1]
			if list[i+1] == "" {
				delete(out, list[i])
			}
		}
		return out
	}
	edited := func(n int, text string) string { return lines(1, 20, map[int]string{n: text}) }
	for _, c := range []struct {
		name     string
		a, b     tree
		conflict bool
	}{
		{"far apart", with("f", edited(3, "x\n")), with("f", edited(15, "y\n")), false},
		{"a line between", with("f", edited(3, "x\n")), with("f", edited(5, "y\n")), false},
		{"touching", with("f", edited(3, "x\n")), with("f", edited(4, "y\n")), true},
		{"the same line", with("f", edited(3, "x\n")), with("f", edited(3, "y\n")), true},
		{"the same insertion place", with("f", edited(3, "x\nline 3\n")), with("f", edited(3, "y\nline 3\n")), true},
		{"insertion beside a change", with("f", edited(3, "x\nline 3\n")), with("f", edited(3, "y\n")), true},
		{"insertion apart", with("f", edited(3, "x\nline 3\n")), with("f", edited(4, "y\n")), false},
		{"deletion and change", with("f", edited(3, "")), with("f", edited(3, "y\n")), true},
		{"beginning and end", with("f", edited(1, "x\n")), with("f", edited(20, "y\n")), false},
		{"the end without a newline", with("noeol", "a\nb\n"), with("noeol", "a\nc"), true},
		{"binary", with("bin", "a\x00c"), with("bin", "a\x00d"), true},
		{"binary and another file", with("bin", "a\x00c"), with("f", edited(1, "x\n")), false},
		{"deleted and changed", with("f", ""), with("f", edited(1, "x\n")), true},
		{"deleted and another file", with("f", ""), with("one", "2\n"), false},
		{"added differently", with("n", "x\n"), with("n", "y\n"), true},
		{"added beside", with("n", "x\n"), with("m", "y\n"), false},
		{"a file and a folder", with("n", "x\n"), with("n/x", "y\n"), true},
		{"executable and changed", with("one", "x!"), with("one", "2\n"), true},
		{"link and changed", with("one", "->keep"), with("one", "2\n"), true},
		{"renamed and changed", with("f", "", "moved", text), with("f", edited(1, "x\n")), true},
		{"renamed differently", with("f", "", "moved", text), with("f", "", "other", text), true},
		{"a folder that becomes a file", with("dir/g", "", "dir", "file\n"), with("dir/g", "one\n2\n"), true},
	} {
		t.Run(c.name, func(t *testing.T) {
			s.t = t
			a, b := s.diff(c.a), s.diff(c.b)
			// A rename of a changed file can be applied, a change of a renamed one not.
			if merges := s.merges(a, b) && s.merges(b, a); merges == c.conflict {
				t.Errorf("git merges both ways: %v, this table says conflict: %v", merges, c.conflict)
			}
			for _, pair := range [][2][]byte{{a, b}, {b, a}} {
				got := conflictsOf(t, "1", string(pair[0]), "2", string(pair[1]))
				if (len(got) > 0) != c.conflict {
					t.Errorf("conflicts %+v, want any: %v\n%s\n%s", got, c.conflict, a, b)
				}
			}
		})
	}
}

// TestVerdictIsThatOfGitForRandomEdits edits one text in two ways, from a fixed
// seed.
func TestVerdictIsThatOfGitForRandomEdits(t *testing.T) {
	s := newScratch(t)
	base := lines(1, 30, nil)
	s.commit(tree{"f": base})
	rnd := rand.New(rand.NewPCG(3, 4))
	variant := func() tree {
		changed := map[int]string{}
		for range 1 + rnd.IntN(3) {
			n := 1 + rnd.IntN(30)
			changed[n] = []string{"", "x\n", "y\n", fmt.Sprintf("x\nline %d\n", n), fmt.Sprintf("line %d\ny\nz\n", n)}[rnd.IntN(5)]
		}
		return tree{"f": lines(1, 30, changed)}
	}
	conflicts := 0
	for n := range 60 {
		a, b := s.diff(variant()), s.diff(variant())
		if len(a) == 0 || len(b) == 0 || bytes.Equal(a, b) {
			continue
		}
		merges := s.merges(a, b)
		got := conflictsOf(t, "1", string(a), "2", string(b))
		if merges == (len(got) > 0) {
			t.Errorf("pair %d: git merges: %v, conflicts: %+v\n%s\n%s", n, merges, got, a, b)
		}
		if !merges {
			conflicts++
		}
	}
	if conflicts < 10 || conflicts > 50 {
		t.Errorf("%d conflicts: the edits show little", conflicts)
	}
}
