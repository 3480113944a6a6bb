package cmd

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"drover/output/event"
)

const mark = "\ufeff"

// TestPatchesKeepEveryByteTheyDoNotOwn plays patches through whole runs and
// compares the files byte for byte. The links are reports of the same symptom
// in comparable tools.
func TestPatchesKeepEveryByteTheyDoNotOwn(t *testing.T) {
	t.Parallel()
	const classes = "class A:\n    def run(self):\n        return 1\n\nclass B:\n    def run(self):\n        return 1\n"
	for _, c := range []struct {
		name          string
		before, after map[string]string
		patch         string
		// changed are the file.changed events: kind, path, lines, leniency.
		changed []string
		// says must be in the result.
		says string
	}{
		{ // github.com/openai/codex/issues/4003
			name: "LF patch, CR LF file", before: map[string]string{"a.txt": "one\r\ntwo\r\nthree\r\n"},
			patch: "*** Update File: a.txt\n@@\n one\n-two\n+TWO\n three\n",
			after: map[string]string{"a.txt": "one\r\nTWO\r\nthree\r\n"}, changed: []string{"modify a.txt +1 -1"},
		}, {
			name: "byte-order mark", before: map[string]string{"a.txt": mark + "one\r\ntwo\r\nthree\r\n"},
			patch: "*** Update File: a.txt\n@@\n one\n-two\n+TWO\n three\n",
			after: map[string]string{"a.txt": mark + "one\r\nTWO\r\nthree\r\n"}, changed: []string{"modify a.txt +1 -1"},
		}, { // github.com/openai/codex/issues/7640
			name: "no final newline, change above", before: map[string]string{"f": "alpha\nomega"},
			patch: "*** Update File: f\n@@\n-alpha\n+ALPHA\n omega\n",
			after: map[string]string{"f": "ALPHA\nomega"}, changed: []string{"modify f +1 -1"},
		}, {
			name: "no final newline, change of the last line", before: map[string]string{"f": "alpha\nomega"},
			patch: "*** Update File: f\n@@\n-omega\n+OMEGA\n",
			after: map[string]string{"f": "alpha\nOMEGA"}, changed: []string{"modify f +1 -1"},
		}, {
			name: "final newline asked for", before: map[string]string{"f": "alpha\nomega"},
			patch: "*** Update File: f\n@@\n omega\n+\n",
			after: map[string]string{"f": "alpha\nomega\n"}, changed: []string{"modify f +1 -1"},
		}, { // github.com/openai/codex/pull/2596
			name: "nested anchors", before: map[string]string{"f": classes},
			patch: "*** Update File: f\n@@ class B\n@@ run\n-        return 1\n+        return 2\n",
			after: map[string]string{"f": strings.TrimSuffix(classes, "1\n") + "2\n"}, changed: []string{"modify f +1 -1 lenient"},
		}, { // github.com/deer-flow/llm-space/pull/174
			name: "blank context line without its space", before: map[string]string{"f": "a\n\nb\nc\n"},
			patch: "*** Update File: f\n@@\n a\n\n-b\n+B\n c\n",
			after: map[string]string{"f": "a\n\nB\nc\n"}, changed: []string{"modify f +1 -1"},
		}, { // github.com/vybestack/llxprt-code/issues/3033
			name: "every line removed", before: map[string]string{"f": "a\nb\n"},
			patch: "*** Update File: f\n@@\n-a\n-b\n",
			after: map[string]string{"f": ""}, changed: []string{"modify f +0 -2"}, says: "f is an empty file now; only *** Delete File removes it",
		}, { // github.com/anthropics/claude-code/issues/26141
			name: "look-alikes in the context", before: map[string]string{"f": "say “hi” – now\u00a0ok\nx = 1\n"},
			patch: "*** Update File: f\n@@\n say \"hi\" - now ok\n-x = 1\n+x = 2\n",
			after: map[string]string{"f": "say “hi” – now\u00a0ok\nx = 2\n"}, changed: []string{"modify f +1 -1 lenient"},
		}, { // github.com/Gitlawb/zero/pull/956
			name: "absolute path inside", before: map[string]string{},
			patch: "*** Add File: WORK/in.txt\n+1\n*** Add File: ./in2.txt\n+2\n*** Add File: d/../in3.txt\n+3\n",
			after: map[string]string{"in.txt": "1\n", "in2.txt": "2\n", "in3.txt": "3\n"}, changed: []string{"add in.txt +1 -0", "add in2.txt +1 -0", "add in3.txt +1 -0"},
		}, { // github.com/openai/codex/pull/15035
			name: "CR LF patch, LF file", before: map[string]string{"f": "one\ntwo\n"},
			patch: "*** Update File: f\r\n@@\r\n one\r\n-two\r\n+TWO\r\n",
			after: map[string]string{"f": "one\nTWO\n"}, changed: []string{"modify f +1 -1"},
		}, { // github.com/libgit2/libgit2/issues/6294
			name: "blanks and other scripts in paths", before: map[string]string{"docs/my notes (v2).md": "a\n", "top – файл.md": "x\n"},
			patch: "*** Update File: docs/my notes (v2).md\n@@\n-a\n+b\n*** Add File: docs/naïve – файл.md\n+1\n" +
				"*** Update File: top – файл.md\n*** Move to: docs/top – файл.md\n@@\n-x\n+y\n",
			after:   map[string]string{"docs/my notes (v2).md": "b\n", "docs/naïve – файл.md": "1\n", "docs/top – файл.md": "y\n"},
			changed: []string{"modify docs/my notes (v2).md +1 -1", "add docs/naïve – файл.md +1 -0", "rename docs/top – файл.md +1 -1 from top – файл.md"},
		}, {
			name: "move to a name that differs in case", before: map[string]string{"old.go": "a\n"},
			patch: "*** Update File: old.go\n*** Move to: Old.go\n@@\n-a\n+b\n",
			after: map[string]string{"Old.go": "b\n"}, changed: []string{"rename Old.go +1 -1 from old.go"},
		}, {
			name: "move onto itself", before: map[string]string{"old.go": "a\n"},
			patch: "*** Update File: old.go\n*** Move to: ./old.go\n@@\n-a\n+b\n",
			after: map[string]string{"old.go": "b\n"}, changed: []string{"modify old.go +1 -1"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p, stream := playPatch(t, c.before, c.patch)
			if diff := cmp.Diff(c.after, p.tree("work")); diff != "" {
				t.Errorf("files: want - got +\n%s", diff)
			}
			var changed []string
			for _, e := range bodies[event.FileChangedEvent](t, stream) {
				line := fmt.Sprintf("%s %s +%d -%d", e.Kind, e.Path, e.Added, e.Removed)
				if e.Lenient {
					line += " lenient"
				}
				if e.OldPath != "" {
					line += " from " + e.OldPath
				}
				changed = append(changed, line)
				if added, removed := countDiff(e.Diff); added != e.Added || removed != e.Removed {
					t.Errorf("the diff of %s has +%d -%d, the event says +%d -%d:\n%s", e.Path, added, removed, e.Added, e.Removed, e.Diff)
				}
			}
			if diff := cmp.Diff(c.changed, changed); diff != "" {
				t.Errorf("file.changed: want - got +\n%s", diff)
			}
			if r := result(t, stream); r.IsError || !strings.Contains(r.Content, c.says) {
				t.Errorf("result %q, want %q in it", r.Content, c.says)
			}
			if end := lastLine(t, stream); end.ExitCode != 0 || len(end.FilesChanged) != len(c.changed) {
				t.Errorf("exit %d, files_changed %v", end.ExitCode, end.FilesChanged)
			}
		})
	}
}

// playPatch runs an agent that applies one patch in the folder work. Beside
// that folder lies secret.env.
func playPatch(t *testing.T, before map[string]string, patch string) (*process, []byte) {
	t.Helper()
	p := run(t, "", "-C", "work", "go")
	work := p.dir + "/work"
	p.lay(map[string]string{"work/": "", "secret.env": "key\n", "model.jsonl": strings.ReplaceAll(
		script(t, calls(patchCall(patch)), says("Done.")), "WORK", work)})
	for name, content := range before {
		p.lay(map[string]string{"work/" + name: content})
	}
	stream, _ := p.output()
	if got := p.tree(".")["secret.env"]; got != "key\n" {
		t.Errorf("the file outside holds %q", got)
	}
	return p, stream
}

func countDiff(diff string) (added, removed int) {
	for line := range strings.Lines(diff) {
		switch {
		case strings.HasPrefix(line, "+++"), strings.HasPrefix(line, "---"):
		case strings.HasPrefix(line, "+"):
			added++
		case strings.HasPrefix(line, "-"):
			removed++
		}
	}
	return added, removed
}

// TestPatchThatCannotBeAppliedChangesNothing expects an error that says what
// is wrong, an untouched folder, and a run that goes on.
func TestPatchThatCannotBeAppliedChangesNothing(t *testing.T) {
	t.Parallel()
	const block = "begin\nwork\nend\n"
	const good = "*** Add File: good.txt\n+x\n"
	for _, c := range []struct {
		name   string
		before map[string]string
		patch  string
		says   []string
		// exit is 10 where the policy refuses before the tool is asked.
		exit int
	}{
		// github.com/openai/codex/issues/25399
		{"add over a file", map[string]string{"notes.md": "mine\n"}, "*** Add File: notes.md\n+x\n", []string{"notes.md already exists"}, 0},
		{"add over a link", map[string]string{".env": "-> ../secret.env"}, "*** Add File: .env\n+x\n", nil, 10},
		{"add over a link that stays inside", map[string]string{".env": "-> env", "env": "a\n"}, "*** Add File: .env\n+x\n", []string{".env already exists, as a symbolic link"}, 0},
		// github.com/can1357/oh-my-pi/issues/4023
		{"move onto a file", map[string]string{"old.go": "a\n", "new.go": "b\n"}, "*** Update File: old.go\n*** Move to: new.go\n@@\n-a\n+c\n", []string{"new.go already exists"}, 0},
		{"move onto a folder", map[string]string{"old.go": "a\n", "d/x": "b\n"}, "*** Update File: old.go\n*** Move to: d\n@@\n-a\n+c\n", []string{"d already exists, as a folder"}, 0},
		// github.com/anomalyco/opencode/issues/34311
		{"second of three files does not match", map[string]string{"a": "1\n", "b": "1\n2\n3\n", "c": "1\n"},
			"*** Update File: a\n@@\n-1\n+x\n*** Update File: b\n@@\n 1\n 2\n-tree\n+x\n*** Update File: c\n@@\n-1\n+x\n",
			[]string{"work/b", `The first line that does not match is "tree": line 3`}, 0},
		// github.com/openai/codex/pull/2596
		{"outer anchor missing", map[string]string{"f": "class A\nrun\nx\n"}, "*** Update File: f\n@@ class B\n@@ run\n-x\n+y\n", []string{"class B"}, 0},
		{"inner anchor missing", map[string]string{"f": "class A\nrun\nx\n"}, "*** Update File: f\n@@ class A\n@@ walk\n-x\n+y\n", []string{"walk"}, 0},
		// github.com/vybestack/llxprt-code/issues/3033
		{"update without hunks", map[string]string{"f": "x\n"}, "*** Update File: f\n", []string{"is empty"}, 0},
		{"result equals the input", map[string]string{"f": "x\n"}, "*** Update File: f\n@@\n-x\n+x\n", []string{"no change"}, 0},
		// github.com/peaktwilight/pwnkit/pull/275
		{"same block twice", map[string]string{"f": block + "\n" + block}, "*** Update File: f\n@@\n begin\n-work\n+play\n end\n", []string{"ambiguous", "lines 1, 5"}, 0},
		// github.com/PlatformNetwork/bounty-challenge/issues/15916
		{"climbing out", nil, good + "*** Add File: ../out.txt\n+x\n", nil, 10},
		{"climbing out in the middle", nil, good + "*** Add File: a/../../out.txt\n+x\n", nil, 10},
		{"absolute outside", nil, good + "*** Add File: /etc/drover-canary\n+x\n", nil, 10},
		{"third file outside", map[string]string{"a": "1\n"}, good + "*** Update File: a\n@@\n-1\n+2\n*** Delete File: ../secret.env\n", nil, 10},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p, stream := playPatch(t, c.before, c.patch)
			want := c.before
			if want == nil {
				want = map[string]string{}
			}
			if diff := cmp.Diff(want, p.tree("work")); diff != "" {
				t.Errorf("files: want - got +\n%s", diff)
			}
			r, end := result(t, stream), lastLine(t, stream)
			for _, says := range c.says {
				if !strings.Contains(r.Content, says) {
					t.Errorf("result %q, want %q in it", r.Content, says)
				}
			}
			if !r.IsError || r.Denied != (c.exit == 10) || end.ExitCode != c.exit || end.Message != "Done." {
				t.Errorf("error %v, denied %v, exit %d, message %q: %s", r.IsError, r.Denied, end.ExitCode, end.Message, r.Content)
			}
			if changed := bodies[event.FileChangedEvent](t, stream); len(changed) > 0 {
				t.Errorf("file.changed %+v", changed)
			}
		})
	}
}
