//go:build linux

package proc

import (
	"bytes"
	"strings"
	"testing"
)

func TestInputIsReadToItsEnd(t *testing.T) {
	large := bytes.Repeat([]byte("0123456789abcde\n"), 1<<16)
	for name, input := range map[string][]byte{"small": []byte(`{"a":1}`), "empty": {}, "larger than a pipe": large} {
		got := run(t, t.Context(), "cat", func(s *Spec) { s.Input = input })
		if got.Code != 0 || got.stdout != string(input) && !strings.Contains(name, "larger") || got.Bytes != int64(len(input)) {
			t.Errorf("%s: %+v", name, got.Result)
		}
	}
}

func TestInputThatNobodyReadsHoldsNothingUp(t *testing.T) {
	large := make([]byte, 1<<20)
	got := run(t, t.Context(), "echo done; exit 3", func(s *Spec) { s.Input = large })
	if got.Code != 3 || got.stdout != "done\n" || got.Signal != "" {
		t.Errorf("got %+v, %q", got.Result, got.stdout)
	}
}
