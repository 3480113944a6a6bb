package cmd

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"drover/output/event"
)

// This file holds what the end-to-end tests in cases_*_test.go share: scripts
// written as Go values, folders as maps, streams as events.

// script encodes model responses, one a line.
func script(t *testing.T, responses ...m) string {
	t.Helper()
	var b strings.Builder
	for _, r := range responses {
		line, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		b.Write(append(line, '\n'))
	}
	return b.String()
}

// calls is a response that makes the given calls.
func calls(c ...m) m {
	list := make([]any, len(c))
	for i := range c {
		list[i] = c[i]
	}
	return m{"tool_calls": list}
}

func execCall(command string) m { return m{"name": "exec_command", "args": m{"cmd": command}} }

func patchCall(body string) m {
	return m{"name": "apply_patch", "input": "*** Begin Patch\n" + body + "*** End Patch"}
}

func says(text string) m { return m{"text": text} }

// lay writes files into the process's folder, "-> target" being a link and a
// name with a slash at its end a folder.
func (p *process) lay(files map[string]string) {
	p.t.Helper()
	for name, content := range files {
		path := filepath.Join(p.dir, name)
		dir := filepath.Dir(path)
		if strings.HasSuffix(name, "/") {
			dir = path
		}
		if err := os.MkdirAll(dir, 0o755); err != nil {
			p.t.Fatal(err)
		}
		target, link := strings.CutPrefix(content, "-> ")
		var err error
		switch {
		case dir == path:
		case link:
			err = os.Symlink(target, path)
		default:
			err = os.WriteFile(path, []byte(content), 0o644)
		}
		if err != nil {
			p.t.Fatal(err)
		}
	}
}

// tree reads all files below a folder of the process in the form of lay.
func (p *process) tree(dir string) map[string]string {
	p.t.Helper()
	got := map[string]string{}
	root := filepath.Join(p.dir, dir)
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		if d.Type()&fs.ModeSymlink != 0 {
			target, err := os.Readlink(path)
			got[name] = "-> " + target
			return err
		}
		data, err := os.ReadFile(path)
		got[name] = string(data)
		return err
	})
	if err != nil {
		p.t.Fatal(err)
	}
	return got
}

// plain runs the process in a format that is no stream and returns all of
// stdout.
func (p *process) plain() (stdout []byte, exit int) {
	p.t.Helper()
	var out bytes.Buffer
	p.cmd.Stdout = &out
	if err := p.cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	exit = p.finish()
	return out.Bytes(), exit
}

// mustEnd runs the process to its end, which must come with the exit code.
func (p *process) mustEnd(want int) []byte {
	p.t.Helper()
	stdout, exit := p.output()
	if exit != want {
		p.t.Fatalf("exit %d, want %d; stderr: %s\n%.4000s", exit, want, p.stderr.String(), stdout)
	}
	return stdout
}

// bodies returns the events of one type in a stream, in order.
func bodies[T event.Body](t *testing.T, stream []byte) []T {
	t.Helper()
	var found []T
	for line := range bytes.Lines(stream) {
		e, err := event.Decode(bytes.TrimSuffix(line, []byte("\n")))
		if err != nil {
			t.Fatal(err)
		}
		if b, ok := e.Body.(T); ok {
			found = append(found, b)
		}
	}
	return found
}

// result returns the only result in a stream.
func result(t *testing.T, stream []byte) event.ToolResultEvent {
	t.Helper()
	all := bodies[event.ToolResultEvent](t, stream)
	if len(all) != 1 {
		t.Fatalf("%d results, want 1:\n%.4000s", len(all), stream)
	}
	return all[0]
}

// together runs processes at the same time: most of what they do is wait, and
// parallel tests are only as many as there are processors.
type together []waiting

type waiting struct {
	name  string
	p     *process
	out   *bytes.Buffer
	check func(t *testing.T, stream []byte, exit int)
}

// start starts a process whose end is awaited by finish.
func (g *together) start(name string, p *process, check func(t *testing.T, stream []byte, exit int)) {
	p.t.Helper()
	w := waiting{name, p, &bytes.Buffer{}, check}
	p.cmd.Stdout = w.out
	if err := p.cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	*g = append(*g, w)
}

// finish awaits every process and checks its stream, each in a test of its own.
func (g together) finish(t *testing.T) {
	for _, w := range g {
		t.Run(w.name, func(t *testing.T) {
			w.p.t = t
			exit := w.p.finish()
			w.p.check(w.out.Bytes(), exit)
			w.check(t, w.out.Bytes(), exit)
		})
	}
}
