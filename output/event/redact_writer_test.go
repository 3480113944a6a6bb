package event

import (
	"bytes"
	"io"
	"testing"
)

func TestASecretSplitOverWritesIsMasked(t *testing.T) {
	const secret, text = "canary-secret-123", "before canary-secret-123 after \xff\x00 canary-secret-123"
	r := NewRedactor(map[string]string{"API_TOKEN": secret})
	want := "before [secret:API_TOKEN] after \xff\x00 [secret:API_TOKEN]"
	for size := 1; size <= len(text); size++ {
		var out bytes.Buffer
		w := r.Writer(&out)
		for rest := text; rest != ""; {
			n := min(size, len(rest))
			if _, err := w.Write([]byte(rest[:n])); err != nil {
				t.Fatal(err)
			}
			rest = rest[n:]
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if out.String() != want {
			t.Fatalf("in pieces of %d: %q", size, out.String())
		}
	}
}

// hidden has no WriteString, like a file that counts what it is given.
type hidden struct{ io.Writer }

// Most output has nothing to mask.
func BenchmarkMaskedWriter(b *testing.B) {
	chunk := bytes.Repeat([]byte("0123456789 some output of a command\n"), 1800)
	w := NewRedactor(map[string]string{"API_TOKEN": "canary-secret-123"}).Writer(hidden{io.Discard})
	b.SetBytes(int64(len(chunk)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := w.Write(chunk); err != nil {
			b.Fatal(err)
		}
	}
}
