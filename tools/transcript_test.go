package tools

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestReadableOutput(t *testing.T) {
	tests := []struct {
		name, in, want string
		binary         bool
	}{
		{name: "plain", in: "a\tb\nc", want: "a\tb\nc"},
		{name: "empty", in: "", want: ""},
		{name: "unicode", in: "Ж中😀\n", want: "Ж中😀\n"},
		{name: "CR LF", in: "a\r\nb\r\n", want: "a\nb\n"},
		{name: "progress", in: "10%\r20%\r100%\ndone\n", want: "100%\ndone\n"},
		{name: "progress without an end", in: "10%\r20%\r", want: "20%"},
		{name: "shorter frame over a longer one", in: "12345\rab\n", want: "ab345\n"},
		{name: "erased line", in: "12345\r\x1b[Kab\n", want: "ab\n"},
		{name: "erased whole line", in: "12345\x1b[2K\rab\n", want: "ab\n"},
		{name: "colours", in: "\x1b[1;31mred\x1b[0m \x1b]8;;http://x\x07link\x1b]8;;\x1b\\\n", want: "red link\n"},
		{name: "unfinished sequence", in: "a\x1b[12", want: "a"},
		{name: "overstrike", in: "_\bb_\bo\n", want: "bo\n"},
		{name: "bad bytes", in: "ok\n\xe9\xff\x00\nafter\n", want: "ok\n\\xe9\\xff\\x00\nafter\n", binary: true},
		{name: "half a character", in: "a\xe4\xb8", want: "a\\xe4\\xb8", binary: true},
		{name: "many bad bytes", in: "a\n" + strings.Repeat("\x00\xff", 50) + "\nb\n", want: "a\n[101 bytes of binary data]\nb\n", binary: true},
		{name: "short lines between binary ones", in: strings.Repeat("\x01", 20) + "\nx\n" + strings.Repeat("\x01", 20) + "\nend\nof it\n", want: "[44 bytes of binary data]\nend\nof it\n", binary: true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, binary := readable([]byte(tt.in), nil, 0)
			if got != tt.want || binary != tt.binary {
				t.Errorf("got %q (binary %v), want %q (%v)", got, binary, tt.want, tt.binary)
			}
			if len(tt.in) > 1 {
				// Where nothing is missing, the place of the seam plays no part.
				if split, _ := readable([]byte(tt.in[:1]), []byte(tt.in[1:]), 0); split != got {
					t.Errorf("in two parts: %q", split)
				}
			}
		})
	}
}

func TestOmittedBytesAreCounted(t *testing.T) {
	got, binary := readable([]byte("head\xe4\xb8"), []byte("\xad\x80tail"), 96)
	if want := "head\n[100 bytes omitted]\ntail"; got != want || binary {
		t.Errorf("got %q, want %q", got, want)
	}
}

func FuzzReadable(f *testing.F) {
	f.Add([]byte("a\rb\x1b[K\b\xff\n"), []byte("x"), 0)
	f.Add([]byte("\x1b]0;title"), []byte("\x07"), 5)
	f.Fuzz(func(t *testing.T, head, tail []byte, omitted int) {
		got, _ := readable(head, tail, int64(max(0, omitted)))
		if !utf8.ValidString(got) || strings.ContainsFunc(got, func(r rune) bool { return r < ' ' && r != '\n' && r != '\t' || r == 0x7f }) {
			t.Errorf("not plain text: %q", got)
		}
		if len(got) > 5*(len(head)+len(tail))+200 {
			t.Errorf("%d bytes became %d", len(head)+len(tail), len(got))
		}
	})
}

func BenchmarkReadablePlain(b *testing.B) {
	text := []byte(strings.Repeat("a line of plain output\n", 1<<20/23))
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		readable(text, nil, 0)
	}
}

func BenchmarkReadableProgress(b *testing.B) {
	text := []byte(strings.Repeat("\rdownload 12%", 1<<20/13))
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		readable(text, nil, 0)
	}
}
