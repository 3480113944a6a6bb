package sandbox

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSeatbeltProfileNamesPathsByParameterAlone(t *testing.T) {
	s := &seatbelt{
		writable: []string{"/w", `/odd") (allow default) ("`}, protected: []string{"/w/sub/.git"},
		lifted: []string{"/w/sub/.git/x"}, masked: []string{"/w/.env"},
	}
	text, parameters := s.profile()
	for _, path := range []string{"/w", "allow default", ".git", ".env"} {
		if strings.Contains(strings.TrimPrefix(text, seatbeltBase), path) {
			t.Errorf("%q is in the text", path)
		}
	}
	want := []string{
		"-DWRITABLE_0=/w", `-DWRITABLE_1=/odd") (allow default) ("`, "-DPROTECTED_0=/w/sub/.git",
		"-DABOVE_0=/w", "-DABOVE_1=/w/sub", "-DLIFTED_0=/w/sub/.git/x", "-DMASKED_0=/w/.env",
	}
	if diff := cmp.Diff(want, parameters); diff != "" {
		t.Error(diff)
	}
	const rules = `(allow file-write* (subpath (param "WRITABLE_0")))
(allow file-write* (subpath (param "WRITABLE_1")))
(deny file-write* (subpath (param "PROTECTED_0")))
(deny file-write-unlink (literal (param "ABOVE_0")))
(deny file-write-unlink (literal (param "ABOVE_1")))
(allow file-write* (subpath (param "LIFTED_0")))
(deny file-read* file-write* (subpath (param "MASKED_0")))
`
	if diff := cmp.Diff(seatbeltBase+rules, text); diff != "" {
		t.Error(diff)
	}
}

func TestSeatbeltProfileIsClosedByDefault(t *testing.T) {
	closed, _ := (&seatbelt{}).profile()
	if !strings.Contains(closed, "(deny default)") || strings.Contains(closed, "network") {
		t.Errorf("got %s", closed)
	}
	open, _ := (&seatbelt{network: true}).profile()
	if !strings.Contains(open, "(allow network*)") {
		t.Errorf("got %s", open)
	}
	for _, text := range []string{closed, open} {
		if strings.Count(text, "(") != strings.Count(text, ")") {
			t.Error("the parentheses do not match")
		}
	}
}

func TestSeatbeltArgumentsEndBeforeTheCommand(t *testing.T) {
	got := (&seatbelt{writable: []string{"/w"}}).arguments([]string{"/bin/sh", "-c", "x"})
	if got[0] != sandboxExec || got[1] != "-p" || got[3] != "-DWRITABLE_0=/w" {
		t.Errorf("got %q", got)
	}
	if diff := cmp.Diff([]string{"--", "/bin/sh", "-c", "x"}, got[4:]); diff != "" {
		t.Error(diff)
	}
}
