package screen

import (
	"strings"
	"testing"

	"github.com/charmbracelet/x/vt"
	"github.com/google/go-cmp/cmp"
)

func TestTheScreenTakesNothingElse(t *testing.T) {
	for _, bad := range []string{
		"\x1b]0;title\x07", "\x1bP", "\x1bc", "\x1b7", "\x1b[2J", "\x1b[3J", "\x1b[H", "\x1b[1;1H", "\x1b[?1049h", "\x1b[6n",
		"\a", "\t", "\x7f", "\u009b2J", "\xff", "\x1b[4m", "\x1b[38;5;1m", "\x1b[5A", "\x1b[2K", "\x1b",
		"text", "\x1b[?7l\r", "\x1b[?25l\r", "\x1b[?2026h\r", "\x1b[31m\r",
	} {
		s := New(20, 5)
		if _, err := s.Write([]byte(bad)); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
}

// TestTheScreenIsLikeAnother compares it with an emulator that knows everything.
func TestTheScreenIsLikeAnother(t *testing.T) {
	for _, text := range []string{
		"a\r\nb\r\n", strings.Repeat("0123456789", 5) + "\r\n", strings.Repeat("x", 20) + "\r\nnext\r\n",
		"one\r\ntwo\r\nthree\r\n\x1b[2A\x1b[K\r", "\x1b[?7l" + strings.Repeat("y", 30) + "\x1b[?7h\r",
		"世界世界 a\r\n", "a\r\nb\r\nc\x1b[1A\x1b[J\r", "abc\r\x1b[C\x1b[J\r", strings.Repeat("line\r\n", 9),
		"\x1b[1;33mbold\x1b[m\r\n",
	} {
		s := New(20, 5)
		if _, err := s.Write([]byte(text)); err != nil {
			t.Errorf("%q: %v", text, err)
			continue
		}
		e := vt.NewEmulator(20, 5)
		if _, err := e.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
		var want []string
		for l := range strings.SplitSeq(e.String(), "\n") {
			want = append(want, strings.TrimRight(l, " "))
		}
		if d := cmp.Diff(want, s.Text()); d != "" {
			t.Errorf("%q: %s", text, d)
		}
	}
}

func TestWrappedRowsAreJoinedAboveTheCursor(t *testing.T) {
	s := New(10, 3)
	if _, err := s.Write([]byte("0123456789abc\r\nx\r\n" + strings.Repeat("y", 10) + "\r\nz\r\n")); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]string{"0123456789abc", "x", "yyyyyyyyyy", "z"}, s.Above()); d != "" {
		t.Error(d)
	}
}
