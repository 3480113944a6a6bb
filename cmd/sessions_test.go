package cmd

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"drover/output/event"
	"drover/output/fault"
	"drover/runner"
	"drover/runner/session"
)

// stateWith makes a state folder with finished sessions of the given ids, the
// first one an hour old, each later one a day older.
func stateWith(t *testing.T, ids ...string) (state string) {
	t.Helper()
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	state = session.StateDir(os.Getenv)
	for n, id := range ids {
		s, err := session.Create(state, id)
		if err != nil {
			t.Fatal(err)
		}
		at := time.Now().Add(-time.Hour - time.Duration(n)*24*time.Hour)
		for seq, b := range []event.Body{
			event.RunStartedEvent{Cwd: "/x", Model: "m"},
			event.MessageEvent{MessageID: "m1", Role: "user", Text: "Repair \x1b[31mit\x1b[0m\a now.\nMore."},
			event.RunFinishedEvent{Status: "success", Reason: "completed", Denials: []event.Denial{}},
		} {
			if err := s.Emit(event.Event{Seq: int64(seq + 1), Time: at, RunID: "run_a", Origin: event.Origin{SessionID: id}, Body: b}); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.Keep("private canary"); err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return state
}

// sessions runs drover sessions with arguments inside the test.
func sessions(t *testing.T, args ...string) (exit int, stdout, stderr string) {
	t.Helper()
	dir := t.TempDir()
	var files [2]*os.File
	for i, name := range []string{"stdout", "stderr"} {
		f, err := os.Create(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		files[i] = f
	}
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	a := &app{stdin: null, stdout: files[0], stderr: files[1], getenv: os.Getenv, environ: os.Environ}
	c := newSessionsCmd(a)
	c.SilenceErrors, c.SilenceUsage = true, true
	c.SetArgs(args)
	if err := c.ExecuteContext(t.Context()); err != nil {
		exit = int(asFault(err).Exit)
	}
	var texts [2]string
	for i, f := range files {
		data, err := os.ReadFile(f.Name())
		if err != nil {
			t.Fatal(err)
		}
		texts[i] = string(data)
	}
	return exit, texts[0], texts[1]
}

func TestSessionsAreListedWithoutControlCharacters(t *testing.T) {
	stateWith(t, "ses_b", "ses_a")
	exit, text, _ := sessions(t, "list")
	if exit != 0 || strings.ContainsAny(text, "\x1b\a") || strings.Count(text, "\n") != 3 || strings.Index(text, "ses_b") > strings.Index(text, "ses_a") {
		t.Fatalf("exit %d:\n%q", exit, text)
	}
	exit, text, _ = sessions(t, "list", "--format", "json")
	var rows []sessionRow
	if err := json.Unmarshal([]byte(text), &rows); err != nil || exit != 0 || len(rows) != 2 {
		t.Fatalf("exit %d, %v: %s", exit, err, text)
	}
	if r := rows[0]; r.ID != "ses_b" || r.Status != "success" || r.ExitCode == nil || r.Cwd != "/x" {
		t.Errorf("row %+v", r)
	}
	if exit, _, _ := sessions(t, "list", "--format", "xml"); exit != int(fault.Usage) {
		t.Errorf("unknown format: exit %d", exit)
	}
}

func TestSessionIsShownWithoutItsPrivateRecords(t *testing.T) {
	state := stateWith(t, "ses_b", "ses_a")
	log, err := os.OpenFile(filepath.Join(session.Dir(state, "ses_b"), "events.jsonl"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := log.WriteString(`{"v":1,"ty`); err != nil {
		t.Fatal(err)
	}
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	exit, text, stderr := sessions(t, "show", "last", "--format", "jsonl")
	if exit != 0 || strings.Contains(text, "canary") || strings.Count(text, "\n") != 3 {
		t.Errorf("exit %d:\n%s", exit, text)
	}
	if !strings.Contains(stderr, "10 bytes at offset") {
		t.Errorf("the torn line is not reported: %s", stderr)
	}
	exit, text, _ = sessions(t, "show", "ses_a")
	if exit != 0 || !strings.Contains(text, "success") || strings.ContainsAny(text, "\x1b\a") || strings.Contains(text, "canary") {
		t.Errorf("exit %d:\n%q", exit, text)
	}
	if exit, _, _ := sessions(t, "show", "nope"); exit != int(fault.Session) {
		t.Errorf("missing session: exit %d", exit)
	}
}

func TestSessionsAreRemoved(t *testing.T) {
	state := stateWith(t, "ses_a", "ses_b", "ses_c", "ses_d")
	left := func() string {
		infos, err := session.List(state)
		if err != nil {
			t.Fatal(err)
		}
		var ids []string
		for _, i := range infos {
			ids = append(ids, i.ID)
		}
		return strings.Join(ids, " ")
	}
	for _, c := range []struct {
		args string
		exit fault.Exit
		left string
	}{
		{"", fault.Usage, "ses_a ses_b ses_c ses_d"},
		{"--all ses_a", fault.Usage, "ses_a ses_b ses_c ses_d"},
		{"--older-than soon", fault.Usage, "ses_a ses_b ses_c ses_d"},
		{"ses_a nope", fault.Session, "ses_a ses_b ses_c ses_d"},
		{"../ses_a", fault.Session, "ses_a ses_b ses_c ses_d"},
		{"--older-than 3d", fault.Success, "ses_a ses_b ses_c"},
		{"ses_a ses_a", fault.Success, "ses_b ses_c"},
	} {
		exit, _, stderr := sessions(t, append([]string{"rm"}, strings.Fields(c.args)...)...)
		if exit != int(c.exit) || left() != c.left {
			t.Fatalf("rm %s: exit %d, left %q, stderr %s", c.args, exit, left(), stderr)
		}
	}
	open, _, err := session.Open(state, "ses_c")
	if err != nil {
		t.Fatal(err)
	}
	defer open.Close()
	if exit, _, _ := sessions(t, "rm", "ses_c"); exit != int(fault.Session) {
		t.Errorf("a running session by id: exit %d", exit)
	}
	exit, _, stderr := sessions(t, "rm", "--all")
	if exit != 0 || left() != "ses_c" || !strings.Contains(stderr, "session ses_c is kept") {
		t.Errorf("exit %d, left %q, stderr %s", exit, left(), stderr)
	}
}

func TestCopyGoesWithItsSession(t *testing.T) {
	state := stateWith(t, "ses_a")
	src := t.TempDir()
	if err := os.WriteFile(filepath.Join(src, "f"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	i, err := runner.Isolate(t.Context(), "copy", src, filepath.Join(session.Dir(state, "ses_a"), copyName))
	if err != nil {
		t.Fatal(err)
	}
	if err := i.Close(); err != nil {
		t.Fatal(err)
	}
	if exit, _, stderr := sessions(t, "rm", "last"); exit != 0 {
		t.Fatalf("exit %d, stderr %s", exit, stderr)
	}
	if _, err := os.Lstat(i.Dir); !os.IsNotExist(err) {
		t.Errorf("the copy is left: %v", err)
	}
	if _, err := os.Lstat(filepath.Join(src, "f")); err != nil {
		t.Error(err)
	}
}
