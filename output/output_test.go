package output

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/creack/pty"
	"github.com/google/go-cmp/cmp"

	"drover/output/event"
	"drover/output/fault"
)

func TestEveryFormatOfTheTableShowsAnAnswer(t *testing.T) {
	for _, f := range Formats() {
		if f.Name == "frames" {
			continue // see below: they need a terminal
		}
		var out bytes.Buffer
		sink, level, err := Open(f.Name, &out, Options{})
		if err != nil {
			t.Fatal(err)
		}
		log := event.New(event.Options{RunID: "r"})
		log.Attach(event.Attachment{Name: f.Name, Sink: sink, Level: level})
		log.Emit(event.Origin{SessionID: "s"}, event.MessageEvent{MessageID: "m", Role: "assistant", Text: "the answer"})
		log.Emit(event.Origin{SessionID: "s"}, event.RunFinishedEvent{Status: "success", Message: "the answer"})
		if err := log.Close(); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(out.String(), "the answer") || !strings.HasSuffix(out.String(), "\n") {
			t.Errorf("%s printed %q", f.Name, out.String())
		}
		if f.Help == "" || strings.HasSuffix(f.Help, ".") {
			t.Errorf("%s has the help %q", f.Name, f.Help)
		}
	}
	if d := cmp.Diff([]string{"jsonl", "frames", "lines", "text", "json"}, Names()); d != "" {
		t.Error(d)
	}
}

func TestFramesNeedATerminal(t *testing.T) {
	_, _, err := Open("frames", &bytes.Buffer{}, Options{})
	file := filepath.Join(t.TempDir(), "out")
	if err := os.WriteFile(file, []byte("kept"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, _, fileErr := OpenFile("frames", file, Options{})
	if kept, err := os.ReadFile(file); err != nil || string(kept) != "kept" {
		t.Errorf("the file holds %q, %v", kept, err)
	}
	for _, err := range []error{err, fileErr} {
		var f *fault.Error
		if !errors.As(err, &f) || f.Exit != fault.Usage || f.Why != "frames need a terminal" || f.Fix != "use lines" {
			t.Errorf("got %v", err)
		}
	}
	master, tty, err := pty.Open()
	if err != nil {
		t.Skip("no terminal to be had: ", err)
	}
	defer master.Close()
	sink, _, err := Open("frames", tty, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := sink.Emit(event.Event{Body: event.MessageEvent{MessageID: "m", Role: "assistant", Text: "the answer"}}); err != nil {
		t.Fatal(err)
	}
	if err := sink.Close(); err != nil {
		t.Fatal(err)
	}
	tty.Close()
	shown := make([]byte, 1000)
	n, err := master.Read(shown)
	if !bytes.Contains(shown[:n], []byte("\rthe answer\r")) {
		t.Errorf("the terminal shows %q, %v", shown[:n], err)
	}
}

func TestUnknownFormatsAreUsageErrors(t *testing.T) {
	file := filepath.Join(t.TempDir(), "out")
	_, _, err := Open("fancy", os.Stderr, Options{})
	_, _, fileErr := OpenFile("fancy", file, Options{})
	for _, err := range []error{err, fileErr} {
		var f *fault.Error
		if !errors.As(err, &f) || f.Exit != fault.Usage || !strings.Contains(f.Text(), `"fancy"`) || !strings.Contains(f.Fix, "jsonl, frames, lines, text, json") {
			t.Errorf("got %v", err)
		}
	}
	if _, err := os.Stat(file); err == nil {
		t.Error("the file was created all the same")
	}
}

func TestStdoutGetsJSONLinesUnlessItIsATerminal(t *testing.T) {
	master, terminal, err := pty.Open()
	if err != nil {
		t.Skipf("no terminal to be had: %v", err)
	}
	defer master.Close()
	defer terminal.Close()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	if err := pty.Setsize(master, &pty.Winsize{Rows: 24, Cols: 97}); err != nil {
		t.Fatal(err)
	}
	for _, env := range []string{"", "1"} {
		getenv := func(string) string { return env }
		if got := []string{Auto(w, getenv), Auto(terminal, getenv), Auto(nil, getenv)}; !slices.Equal(got, []string{"jsonl", "lines", "jsonl"}) {
			t.Errorf("with an environment of %q: %q", env, got)
		}
	}
	if got := []int{Width(w), Width(terminal), Width(nil)}; !slices.Equal(got, []int{0, 97, 0}) {
		t.Errorf("widths are %d", got)
	}
	for want, envs := range map[bool][]map[string]string{
		false: {{"LANG": "de_DE.UTF-8"}, {"LC_ALL": "C.utf8", "LANG": "C"}, {"LC_CTYPE": "en_US.UTF-8", "TERM": "xterm"}},
		true:  {{}, {"LANG": "C"}, {"LC_ALL": "POSIX", "LANG": "en_US.UTF-8"}, {"LANG": "en_US.UTF-8", "TERM": "linux"}},
	} {
		for _, env := range envs {
			getenv := func(name string) string { return env[name] }
			if got := ASCII(terminal, getenv); got != want || ASCII(w, getenv) {
				t.Errorf("with %v a terminal gets ASCII: %v", env, got)
			}
		}
	}
	// On a terminal even the answer is cleaned.
	sink, _, err := Open("text", terminal, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := sink.Emit(event.Event{Body: event.RunFinishedEvent{Message: "a\x1b]52;c;eA==\ab"}}); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, 100)
	n, err := master.Read(got)
	if err != nil || string(got[:n]) != "ab\r\n" {
		t.Errorf("the terminal got %q, %v", got[:n], err)
	}
}

func TestErrorsArePrintedClean(t *testing.T) {
	tests := []struct {
		err  fault.Error
		want string
	}{
		{fault.Error{What: "it failed"}, "drover: it failed\n"},
		{fault.Error{What: `file "a.yaml" cannot be used`, Why: "line 3: x", Fix: "remove it"}, "drover: file \"a.yaml\" cannot be used: line 3: x\n  fix: remove it\n"},
		{fault.Error{What: "\x1b[2J\n", Why: "one\ntwo\x07", Fix: "a\nb\u202e"}, "drover: \\e[2J\\n: one\n  two\\x07\n  fix: a\n  b\\u202e\n"},
	}
	for _, tt := range tests {
		var out bytes.Buffer
		PrintError(&out, &tt.err)
		if d := cmp.Diff(tt.want, out.String()); d != "" {
			t.Error(d)
		}
	}
}

func emitted(t *testing.T, name, path string) error {
	t.Helper()
	sink, _, err := OpenFile(name, path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	return errors.Join(sink.Emit(event.Event{Body: event.RunFinishedEvent{Message: "new"}}), sink.Close())
}

func TestFilesAreReplacedAndPrivate(t *testing.T) {
	path := filepath.Join(t.TempDir(), "out.txt")
	if err := os.WriteFile(path, []byte("something older and longer"), 0o666); err != nil {
		t.Fatal(err)
	}
	if err := emitted(t, "text", path); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(path)
	if err != nil || string(got) != "new\n" {
		t.Errorf("got %q, %v", got, err)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the mode is %v, %v", info.Mode(), err)
	}
}

func TestFilesThatCannotBeWrittenAreUsageErrors(t *testing.T) {
	dir := t.TempDir()
	for path, want := range map[string]string{
		filepath.Join(dir, "missing", "out"): "no such file or directory",
		dir:                                  "is a directory",
		"-":                                  "standard output carries one format",
	} {
		_, _, err := OpenFile("jsonl", path, Options{})
		var f *fault.Error
		if !errors.As(err, &f) || f.Exit != fault.Usage || !strings.Contains(f.Why, want) {
			t.Errorf("%s: got %v", path, err)
		}
	}
}

func TestAFullDiskIsReportedToWhoAttachedTheFile(t *testing.T) {
	const full = "/dev/full"
	if _, err := os.Stat(full); err != nil {
		t.Skipf("no %s on this system", full)
	}
	if err := emitted(t, "text", full); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("got %v", err)
	}
	sink, level, err := OpenFile("jsonl", full, Options{})
	if err != nil {
		t.Fatal(err)
	}
	var failures []error
	var other bytes.Buffer
	second, _, err := Open("jsonl", &other, Options{})
	if err != nil {
		t.Fatal(err)
	}
	log := event.New(event.Options{RunID: "r"})
	log.Attach(event.Attachment{Name: "jsonl:full", Sink: sink, Level: level, Failed: func(err error) { failures = append(failures, err) }})
	log.Attach(event.Attachment{Name: "jsonl", Sink: second, Level: level})
	log.Emit(event.Origin{}, event.NoticeEvent{Level: "info"})
	log.Emit(event.Origin{}, event.NoticeEvent{Level: "info"})
	if len(failures) != 1 || !errors.Is(failures[0], syscall.ENOSPC) {
		t.Errorf("got %v", failures)
	}
	if n := strings.Count(other.String(), "\n"); n != 2 {
		t.Errorf("the other output has %d lines", n)
	}
}
