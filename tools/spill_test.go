package tools

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"drover/output/event"
)

// shelf stands for the files of a session.
type shelf struct {
	files map[string]*bytes.Buffer
	// opened, finished and aborted count; full is the size at which writes fail.
	opened, finished, aborted int
	full                      int
	broken                    bool
}

func newShelf() *shelf { return &shelf{files: map[string]*bytes.Buffer{}, full: 1 << 30} }

func (s *shelf) open(name string) (ArtifactWriter, error) {
	if s.broken {
		return nil, errors.New("no place")
	}
	s.opened++
	s.files[name] = &bytes.Buffer{}
	return &shelved{s, name}, nil
}

// only is the content of the one file there is.
func (s *shelf) only(t *testing.T) string {
	t.Helper()
	if len(s.files) != 1 || s.finished != 1 || s.aborted != 0 {
		t.Fatalf("%d files, %d finished, %d aborted", len(s.files), s.finished, s.aborted)
	}
	for _, f := range s.files {
		return f.String()
	}
	return ""
}

type shelved struct {
	shelf *shelf
	name  string
}

func (w *shelved) Write(p []byte) (int, error) {
	f := w.shelf.files[w.name]
	if f.Len()+len(p) > w.shelf.full {
		return 0, errors.New("disk full")
	}
	return f.Write(p)
}

func (w *shelved) Finish() (event.Artifact, error) {
	w.shelf.finished++
	return event.Artifact{Path: "artifacts/" + w.name, Bytes: int64(w.shelf.files[w.name].Len())}, nil
}

func (w *shelved) Abort() {
	w.shelf.aborted++
	delete(w.shelf.files, w.name)
}

func TestOutputThatIsNotShownWholeIsKept(t *testing.T) {
	seq := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintln(&b, i+1)
		}
		return b.String()
	}
	// 1,000 lines go through memory alone, 100,000 do not.
	for _, lines := range []int{1000, 100_000} {
		for _, tool := range []Tool{execCommand, shellCommand, shellTool, checkCommand} {
			name := tool.Spec().Name
			t.Run(fmt.Sprint(name, lines), func(t *testing.T) {
				env, rec := commandEnv(t)
				env.Output = Limit{Tokens: 500}
				s := newShelf()
				env.Artifact = s.open
				cmd := fmt.Sprintf("seq %d", lines)
				args := []any{"cmd", cmd, "command", cmd}
				if name == "shell" {
					args[3] = []string{"seq", fmt.Sprint(lines)}
				}
				res := callJSON(t, t.Context(), tool, env, args...)
				if got := s.only(t); got != seq(lines) {
					t.Errorf("the file holds %d bytes", len(got))
				}
				if res.Artifact == nil || !res.Truncated || !strings.Contains(res.Text, "Note: full output: "+res.Artifact.Path) || res.IsError {
					t.Errorf("got %+v", res)
				}
				if end := rec.completed(t); end.Artifact == nil || *end.Artifact != *res.Artifact {
					t.Errorf("completed %+v", end)
				}
				if strings.Contains(res.Text, "dropped") || len(res.Text) > env.Output.Recorded().budget() {
					t.Errorf("%d bytes of text", len(res.Text))
				}
			})
		}
	}
}

func TestOutputThatIsShownWholeNeedsNoFile(t *testing.T) {
	env, _ := commandEnv(t)
	s := newShelf()
	env.Artifact, env.Output = s.open, Limit{Tokens: 50_000}
	for _, cmd := range []string{"true", "echo x", "seq 20000"} { // the last one is larger than what stays in memory
		res := callJSON(t, t.Context(), execCommand, env, "cmd", cmd)
		if res.Artifact != nil || strings.Contains(res.Text, "Note:") || len(s.files) != 0 || s.finished != 0 {
			t.Errorf("%s: %+v", cmd, s)
		}
	}
}

func TestOutputWithoutAPlaceIsCalledDropped(t *testing.T) {
	small, broken := newShelf(), newShelf()
	small.full, broken.broken = 100_000, true
	for name, open := range map[string]func(string) (ArtifactWriter, error){"none": nil, "broken": broken.open, "full": small.open} {
		for _, tool := range []Tool{execCommand, shellCommand} {
			env, rec := commandEnv(t)
			env.Artifact = open
			res := callJSON(t, t.Context(), tool, env, "cmd", "seq 100000", "command", "seq 100000")
			if res.Artifact != nil || !res.Truncated || !strings.Contains(res.Text, "what is not shown is dropped") || res.OutputBytes != 588895 {
				t.Errorf("%s: %.300s", name, res.Text)
			}
			if end := rec.completed(t); end.Artifact != nil || end.OutputBytes != 588895 {
				t.Errorf("%s: completed %+v", name, end)
			}
		}
	}
	if len(small.files) != 0 || small.aborted != 2 {
		t.Errorf("a file that could not be written is left: %+v", small)
	}
}

func TestFileOfAFloodIsBounded(t *testing.T) {
	file := &counter{}
	s := newSpill(func(string) (ArtifactWriter, error) { return file, nil }, 100)
	chunk := make([]byte, 1<<20)
	for range spillCap>>20 + 3 {
		s.write(chunk)
	}
	a, unkept := s.finish()
	if a == nil || !unkept || file.n != spillCap || a.Bytes != spillCap {
		t.Errorf("%+v, %v, wrote %d", a, unkept, file.n)
	}
	notes := CommandResult{Artifact: a, unkept: unkept}.lateNotes()
	if len(notes) != 1 || !strings.Contains(notes[0], "the first 268435456 bytes of the output: f") {
		t.Errorf("notes %q", notes)
	}
}

type counter struct{ n int64 }

func (c *counter) Write(p []byte) (int, error) {
	c.n += int64(len(p))
	return len(p), nil
}

func (c *counter) Finish() (event.Artifact, error) {
	return event.Artifact{Path: "f", Bytes: c.n}, nil
}

func (c *counter) Abort() {}

// github.com/indexable-inc/index/issues/1348: frames of a progress bar.
func TestFramesOfAProgressBarAreKeptOnlyInTheFile(t *testing.T) {
	env, _ := commandEnv(t)
	s := newShelf()
	env.Artifact = s.open
	res := callJSON(t, t.Context(), execCommand, env, "cmd", `for i in $(seq 5000); do printf '\rdownload %d%%' $((i/50)); done; echo`)
	if out := outputOf(t, res); out != "download 100%\n" || len(res.Text) > 1024 {
		t.Errorf("output %q", out)
	}
	if raw := s.only(t); strings.Count(raw, "\r") != 5000 {
		t.Errorf("%d frames in the file", strings.Count(raw, "\r"))
	}
}

func TestFileOfASessionHoldsWhatEveryPollShowed(t *testing.T) {
	env, _ := sessionEnv(t)
	s := newShelf()
	env.Artifact, env.Output = s.open, Limit{Tokens: 500}
	res, id := background(t, env, "seq 1 5000; until [ -e go ]; do sleep 0.02; done; seq 5001 10000")
	if !res.Truncated || res.Artifact != nil {
		t.Errorf("got %+v", res)
	}
	if err := os.WriteFile(filepath.Join(env.Cwd, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	last, _ := untilOver(t, env, id)
	if last.Artifact == nil || !strings.Contains(last.Text, "Note: full output: "+last.Artifact.Path) {
		t.Errorf("got %+v", last)
	}
	if got := s.only(t); !strings.HasPrefix(got, "1\n2\n") || !strings.HasSuffix(got, "\n5000\n5001\n5002\n"+got[strings.Index(got, "5003"):]) || !strings.HasSuffix(got, "\n10000\n") {
		t.Errorf("the file holds %d bytes", len(got))
	}
}

// TestOutputWithoutANewline is about time and memory: what a gigabyte costs.
func TestOutputWithoutANewline(t *testing.T) {
	size := int64(1 << 30)
	if testing.Short() {
		size = 64 << 20
	}
	env, rec := commandEnv(t)
	file := &counter{}
	env.Artifact = func(string) (ArtifactWriter, error) { return file, nil }
	began, before := time.Now(), allocated()
	res := callJSON(t, t.Context(), execCommand, env, "cmd", fmt.Sprintf("head -c %d /dev/zero | tr '\\0' x", size))
	grown := allocated() - before
	if res.OutputBytes != size || file.n != min(size, spillCap) || pooled && grown > 32<<20 {
		t.Errorf("%d bytes, %d in the file, allocated %d", res.OutputBytes, file.n, grown)
	}
	if told, dropped := rec.output(t); int64(len(told))+dropped != size || len(told) != terminalCap {
		t.Errorf("told %d, dropped %d", len(told), dropped)
	}
	if len(res.Text) > 50_000 || !strings.Contains(res.Text, "bytes omitted") && !strings.Contains(res.Text, "truncated") {
		t.Errorf("the model gets %d bytes", len(res.Text))
	}
	t.Logf("%d bytes in %v, %d allocated", size, time.Since(began), grown)
}
