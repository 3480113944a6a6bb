package output

import (
	"bufio"
	"errors"
	"os"
	"strings"
	"syscall"
	"testing"

	"drover/output/event"
	"drover/output/fault"
)

func TestOutputWithoutAReaderCanBeGivenUp(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	sink, _, err := Open("jsonl", w, Options{})
	if err != nil {
		t.Fatal(err)
	}
	guarded := Guard(sink, w)
	log := event.New(event.Options{RunID: "r"})
	var failed error
	log.Attach(event.Attachment{Name: "pipe", Sink: guarded, Abandon: Abandon(guarded), Failed: func(err error) { failed = err }})
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range 100 {
			log.Emit(event.Origin{SessionID: "s"}, event.MessageEvent{MessageID: "m", Role: "user", Text: strings.Repeat("x", 10_000)})
		}
	}()
	// The first line is there; nobody reads the rest.
	if _, err := bufio.NewReaderSize(r, 16).ReadByte(); err != nil {
		t.Fatal(err)
	}
	Abandon(guarded)()
	<-done
	if err := log.Close(); err != nil || !errors.Is(failed, ErrAbandoned) {
		t.Errorf("close: %v, the sink failed with %v", err, failed)
	}
}

func TestPipeWithoutAReaderIsRefused(t *testing.T) {
	path := t.TempDir() + "/fifo"
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Skip("no pipes with names here: ", err)
	}
	_, _, err := OpenFile("jsonl", path, Options{})
	var f *fault.Error
	if !errors.As(err, &f) || f.Exit != fault.Usage || !strings.Contains(f.Why, "nobody reads") {
		t.Errorf("got %v", err)
	}
	// Devices work as before.
	for _, device := range []string{"/dev/null", "/dev/stderr"} {
		sink, _, err := OpenFile("jsonl", device, Options{})
		if err != nil {
			t.Errorf("%s: %v", device, err)
			continue
		}
		if err := sink.Close(); err != nil {
			t.Error(err)
		}
	}
}

func BenchmarkGuard(b *testing.B) {
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		b.Fatal(err)
	}
	defer null.Close()
	plain, _, err := Open("jsonl", null, Options{})
	if err != nil {
		b.Fatal(err)
	}
	guarded := Guard(plain, null)
	e := event.Event{Body: event.MessageDeltaEvent{MessageID: "msg_1", Delta: "some words"}}
	for name, sink := range map[string]event.Sink{"plain": plain, "guarded": guarded} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if err := sink.Emit(e); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
