package event

import (
	"bytes"
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
