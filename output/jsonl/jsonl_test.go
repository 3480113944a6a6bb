package jsonl

import (
	"bytes"
	"errors"
	"io"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"drover/output/event"
)

// writes records every call of Write by itself.
type writes struct {
	calls []string
	err   error
	short bool
}

func (w *writes) Write(p []byte) (int, error) {
	if w.err != nil {
		return 0, w.err
	}
	w.calls = append(w.calls, string(p))
	if w.short {
		return len(p) - 1, nil
	}
	return len(p), nil
}

func deltaEvent(seq int64, text string) event.Event {
	return event.Event{
		Seq: seq, RunID: "run_1", Time: time.Date(2026, 9, 20, 10, 0, 0, 1e6, time.UTC),
		Origin: event.Origin{SessionID: "ses_a", Turn: 1},
		Body:   event.MessageDeltaEvent{MessageID: "msg_1", Delta: text},
	}
}

func TestEveryLineIsOneWrite(t *testing.T) {
	var w writes
	s := New(&w)
	for i, text := range []string{"a\nb", "ä\u2028"} {
		if err := s.Emit(deltaEvent(int64(i+1), text)); err != nil {
			t.Fatal(err)
		}
	}
	want := []string{
		`{"v":1,"seq":1,"ts":"2026-09-20T10:00:00.001Z","type":"message.delta","run_id":"run_1","session_id":"ses_a","turn":1,"message_id":"msg_1","delta":"a\nb"}` + "\n",
		`{"v":1,"seq":2,"ts":"2026-09-20T10:00:00.001Z","type":"message.delta","run_id":"run_1","session_id":"ses_a","turn":1,"message_id":"msg_1","delta":"ä\u2028"}` + "\n",
	}
	if d := cmp.Diff(want, w.calls); d != "" {
		t.Error(d)
	}
}

func TestErrorsOfTheWriterCanBeRecognised(t *testing.T) {
	for _, want := range []error{syscall.EPIPE, syscall.ENOSPC, io.ErrClosedPipe} {
		s := New(&writes{err: &os.PathError{Op: "write", Path: "out", Err: want}})
		if err := s.Emit(deltaEvent(1, "x")); !errors.Is(err, want) {
			t.Errorf("got %v, want it to wrap %v", err, want)
		}
	}
	if err := New(&writes{short: true}).Emit(deltaEvent(1, "x")); !errors.Is(err, io.ErrShortWrite) {
		t.Errorf("a short write gave %v", err)
	}
}

func TestOneHugeLineDoesNotKeepItsMemory(t *testing.T) {
	s := New(io.Discard).(*sink)
	if err := s.Emit(deltaEvent(1, string(bytes.Repeat([]byte("x"), 1<<20)))); err != nil {
		t.Fatal(err)
	}
	if cap(s.buf) > keptBuffer {
		t.Errorf("the buffer keeps %d bytes", cap(s.buf))
	}
}

func BenchmarkDelta(b *testing.B) {
	s := New(io.Discard)
	e := deltaEvent(1, "a chunk of text, as models send it")
	b.ReportAllocs()
	for b.Loop() {
		if err := s.Emit(e); err != nil {
			b.Fatal(err)
		}
	}
}
