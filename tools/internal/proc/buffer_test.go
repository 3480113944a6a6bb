package proc

import (
	"bytes"
	"testing"
)

func TestBufferKeepsHeadAndTail(t *testing.T) {
	// A text in which every position looks different from its neighbours.
	text := make([]byte, 4*HeadTail+123)
	for i := range text {
		text[i] = byte(i*7 + i/251)
	}
	for _, total := range []int{0, 1, HeadTail - 1, HeadTail, HeadTail + 1, 2*HeadTail - 1, 2 * HeadTail, 2*HeadTail + 1, 3 * HeadTail, len(text)} {
		for _, chunk := range []int{1009, 64 << 10, HeadTail, len(text)} {
			var b Buffer
			for rest := text[:total]; len(rest) > 0; {
				n := min(chunk, len(rest))
				b.Write(rest[:n])
				rest = rest[n:]
			}
			head, tail := b.Parts()
			wantHead := text[:min(total, HeadTail)]
			wantTail := text[max(len(wantHead), total-HeadTail):total]
			if !bytes.Equal(head, wantHead) || !bytes.Equal(tail, wantTail) {
				t.Errorf("total %d in chunks of %d: wrong bytes kept", total, chunk)
			}
			if want := int64(total - len(wantHead) - len(wantTail)); b.Omitted() != want || b.Total() != int64(total) {
				t.Errorf("total %d in chunks of %d: omitted %d, want %d", total, chunk, b.Omitted(), want)
			}
		}
	}
}

func BenchmarkBuffer50MB(b *testing.B) {
	chunk := make([]byte, 64<<10)
	b.SetBytes(50 << 20)
	b.ReportAllocs()
	for b.Loop() {
		var buf Buffer
		for range 50 << 20 / len(chunk) {
			buf.Write(chunk)
		}
	}
}
