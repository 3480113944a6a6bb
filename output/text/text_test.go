package text

import (
	"bytes"
	"errors"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"drover/output/event"
)

func TestOnlyTheAnswerIsPrinted(t *testing.T) {
	tests := []struct {
		name  string
		clean func(string) string
		body  event.Body
		want  string
	}{
		{"an answer", nil, event.RunFinishedEvent{Message: "All tests pass."}, "All tests pass.\n"},
		{"an answer with its newline", nil, event.RunFinishedEvent{Message: "one\ntwo\n"}, "one\ntwo\n"},
		{"no answer", nil, event.RunFinishedEvent{Status: "failed", ExitCode: 4, Error: &event.Err{Message: "no key"}}, ""},
		{"anything else", nil, event.MessageEvent{Role: "assistant", Text: "I begin."}, ""},
		{"as the model wrote it", nil, event.RunFinishedEvent{Message: "a\x1b[31m"}, "a\x1b[31m\n"},
		{"cleaned", func(s string) string { return strings.ToUpper(s) }, event.RunFinishedEvent{Message: "a"}, "A\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var out bytes.Buffer
			s := New(&out, tt.clean)
			if err := errors.Join(s.Emit(event.Event{Body: tt.body}), s.Close()); err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(tt.want, out.String()); d != "" {
				t.Error(d)
			}
		})
	}
}

type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, syscall.ENOSPC }

func TestAFullDiskIsReported(t *testing.T) {
	if err := New(fullDisk{}, nil).Emit(event.Event{Body: event.RunFinishedEvent{Message: "x"}}); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("got %v", err)
	}
}
