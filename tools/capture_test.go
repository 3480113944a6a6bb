package tools

import (
	"bytes"
	"testing"

	"drover/tools/internal/proc"
)

func TestWhatHasOnlyBegunWaitsForTheNextPoll(t *testing.T) {
	tests := []struct {
		name string
		b    string
		want int
	}{
		{"text", "abc", 0},
		{"nothing", "", 0},
		{"whole character", "€", 0},
		{"two of three bytes", "a\xe2\x82", 2},
		{"one of four bytes", "a\xf0", 1},
		{"a byte that starts nothing", "a\xff", 0},
		{"lone escape", "a\x1b", 1},
		{"escape without its end", "a\x1b[31", 4},
		{"whole escape", "a\x1b[31m", 0},
		{"title without its end", "\x1b]0;title", 9},
		{"title with its end", "\x1b]0;title\a", 0},
		{"title with half of its end", "\x1b]0;title\x1b", 1},
		{"escape that never ends", "\x1b[" + string(bytes.Repeat([]byte("1"), 100)), 0},
		{"character in a title", "\x1b]0;\xe2\x82", 6},
	}
	for _, tt := range tests {
		if got := unfinished([]byte(tt.b)); got != tt.want {
			t.Errorf("%s: %d, want %d", tt.name, got, tt.want)
		}
	}
}

func FuzzDrain(f *testing.F) {
	f.Add([]byte("a\xe2\x82\xacb\x1b[31mred\x1b]0;t\a"), byte(3))
	f.Add([]byte("\x1b\x1b\x1b"), byte(1))
	f.Add([]byte("\xff\xfe\xf0\x9f\x98\x80"), byte(2))
	f.Fuzz(func(t *testing.T, b []byte, size byte) {
		var m merged
		var got []byte
		var total int64
		take := func(end bool) {
			head, tail, n, omitted := m.drain(end)
			if omitted != 0 || int64(len(head)+len(tail)) != n {
				t.Fatalf("%d and %d bytes of %d, %d omitted", len(head), len(tail), n, omitted)
			}
			got = append(append(got, head...), tail...)
			total += n
		}
		for rest := b; len(rest) > 0; {
			n := min(int(size)+1, len(rest))
			m.take(proc.Stdout, rest[:n])
			rest = rest[n:]
			take(false)
		}
		take(true)
		if !bytes.Equal(got, b) || total != int64(len(b)) {
			t.Errorf("got %q of %q", got, b)
		}
	})
}

func TestExcerptKeepsTheEnds(t *testing.T) {
	text := make([]byte, 5*excerptHalf+77)
	for i := range text {
		text[i] = byte(i*7 + i/251)
	}
	for _, total := range []int{0, 1, excerptHalf, excerptHalf + 1, 2*excerptHalf - 1, 2 * excerptHalf, 3*excerptHalf + 5, len(text)} {
		for _, chunk := range []int{1, 1009, 3 * excerptHalf} {
			var e excerpt
			for rest := text[:total]; len(rest) > 0; {
				n := min(chunk, len(rest))
				e.write(rest[:n])
				rest = rest[n:]
			}
			head := min(total, excerptHalf)
			want := string(text[:head]) + string(text[max(head, total-excerptHalf):total])
			if e.text() != want {
				t.Errorf("%d bytes in chunks of %d: %d bytes kept, want %d", total, chunk, len(e.text()), len(want))
			}
		}
	}
}
