package session

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"drover/output/event"
	"drover/output/fault"
)

func TestListTellsHowEachSessionEnded(t *testing.T) {
	state := t.TempDir()
	start := func(n int, id string) *Session {
		s := create(t, state, id)
		emit(t, s, n, event.RunStartedEvent{Cwd: "/x", Model: "m"})
		emit(t, s, n, event.SessionStartedEvent{Model: "p/m"})
		emit(t, s, n, event.MessageEvent{Role: "user", Text: "\n  Fix it. \nMore."})
		return s
	}
	done := start(100, "ses_done")
	emit(t, done, 101, event.RunFinishedEvent{Status: "blocked", ExitCode: 10, Message: strings.Repeat("m", nearTail)})
	if err := done.Keep("after the end"); err != nil {
		t.Fatal(err)
	}
	closed(t, done)
	closed(t, start(200, "ses_crashed"))
	start(300, "ses_running")
	again := start(400, "ses_again")
	emit(t, again, 401, event.RunFinishedEvent{Status: "success"})
	emit(t, again, 402, event.RunStartedEvent{})
	closed(t, again)
	if err := os.Mkdir(Dir(state, "ses_empty"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(Dir(state, "ses_empty"), epoch, epoch); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(state, sessionsName, "stray"), nil, 0o600); err != nil {
		t.Fatal(err)
	}

	got, err := List(state)
	if err != nil {
		t.Fatal(err)
	}
	ten := 10
	want := []Info{
		{ID: "ses_again", Status: "crashed"},
		{ID: "ses_running", Status: "running"},
		{ID: "ses_crashed", Status: "crashed"},
		{ID: "ses_done", Status: "blocked", ExitCode: &ten},
	}
	for i := range want {
		want[i].Cwd, want[i].Model, want[i].Prompt = "/x", "p/m", "Fix it."
		want[i].Dir = Dir(state, want[i].ID)
		if i < len(got) && got[i].Bytes == 0 {
			t.Errorf("%s has no size", got[i].ID)
		}
	}
	want = append(want, Info{ID: "ses_empty", Dir: Dir(state, "ses_empty"), Status: "crashed", Problem: "open log: no such file or directory"})
	if d := cmp.Diff(want, got, cmpopts.IgnoreFields(Info{}, "Bytes", "Started")); d != "" {
		t.Fatalf("(-want +got):\n%s", d)
	}
}

func TestLastAndPrefixesNameSessions(t *testing.T) {
	state := t.TempDir()
	_, err := Resolve(state, "last")
	wantExit(t, err, "session_not_found", fault.Session)
	for n, id := range []string{"ses_ab1", "ses_ab2", "ses_b"} {
		s := create(t, state, id)
		emit(t, s, 10-n, event.RunStartedEvent{})
		closed(t, s)
	}
	for _, c := range []struct{ in, want string }{
		{"last", "ses_ab1"}, {"ses_b", "ses_b"}, {"ses_ab2", "ses_ab2"},
		{"ses_ab", ""}, {"nothing", ""},
	} {
		got, err := Resolve(state, c.in)
		if got != c.want || (err == nil) != (c.want != "") {
			t.Errorf("%s: got %q, %v", c.in, got, err)
		}
	}
	_, err = Resolve(state, "../x")
	wantExit(t, err, "session_id", fault.Session)
}

func TestRemoveDeletesReadOnlyTreesAndAsksFirst(t *testing.T) {
	state := t.TempDir()
	closed(t, create(t, state, "ses_a"))
	deep := filepath.Join(Dir(state, "ses_a"), "work", "mod")
	if err := os.MkdirAll(deep, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(deep, "f"), nil, 0o444); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(deep, 0o555); err != nil {
		t.Fatal(err)
	}
	no := errors.New("no")
	if err := Remove(state, "ses_a", func(string) error { return no }); !errors.Is(err, no) {
		t.Fatalf("got %v", err)
	}
	asked := ""
	if err := Remove(state, "ses_a", func(dir string) error { asked = dir; return nil }); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(Dir(state, "ses_a")); !os.IsNotExist(err) || asked != Dir(state, "ses_a") {
		t.Fatalf("left behind: %v, asked for %q", err, asked)
	}
	wantExit(t, Remove(state, "ses_a", nil), "session_not_found", fault.Session)
}

func TestArtifactNamesAreCleanedAndNeverShared(t *testing.T) {
	state := t.TempDir()
	s := create(t, state, "ses_a")
	dir := filepath.Join(Dir(state, "ses_a"), artifactsName)
	for _, c := range []struct{ name, want string }{
		{"out.txt", "out.txt"}, {"out.txt", "out-2.txt"}, {"../../etc/passwd", "_.._etc_passwd"},
		{"", "artifact"}, {"..", "artifact-2"}, {"call\n1", "call_1"}, {strings.Repeat("n", 300), strings.Repeat("n", 100)},
	} {
		a, err := s.Artifact(c.name, []byte("data"))
		if err != nil {
			t.Fatal(err)
		}
		want := event.Artifact{Path: filepath.Join(dir, c.want), Bytes: 4,
			SHA256: "3a6eb0790f39ac87c94f3856b2dd2c5d110e6811602261a9a923d3bb23adc8b7"}
		if d := cmp.Diff(want, a); d != "" {
			t.Errorf("%q (-want +got):\n%s", c.name, d)
		}
	}
	w, err := s.ArtifactWriter("gone")
	if err != nil {
		t.Fatal(err)
	}
	w.Abort()
	if _, err := os.Lstat(filepath.Join(dir, "gone")); !os.IsNotExist(err) {
		t.Errorf("an aborted artifact is left behind: %v", err)
	}
}

func TestArtifactsOfASessionShareTheirLimit(t *testing.T) {
	s := create(t, t.TempDir(), "ses_a")
	open := func() *ArtifactWriter {
		w, err := s.ArtifactWriter("out")
		if err != nil {
			t.Fatal(err)
		}
		w.limit = 10
		return w
	}
	first, second := open(), open()
	if _, err := first.Write([]byte("1234567")); err != nil {
		t.Fatal(err)
	}
	if _, err := second.Write([]byte("12345")); !errors.Is(err, errArtifactsFull) {
		t.Errorf("beyond the limit: %v", err)
	}
	if _, err := second.Finish(); !errors.Is(err, errArtifactsFull) {
		t.Errorf("an artifact that is not whole: %v", err)
	}
	first.Abort()
	third := open()
	if _, err := third.Write([]byte("1234567890")); err != nil {
		t.Errorf("what was deleted still counts: %v", err)
	}
	if a, err := third.Finish(); err != nil || a.Bytes != 10 {
		t.Errorf("got %+v, %v", a, err)
	}
}
