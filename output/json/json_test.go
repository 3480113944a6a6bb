package json

import (
	"bytes"
	"errors"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"drover/output/event"
)

func TestTheLastEventIsTheOnlyLine(t *testing.T) {
	var out bytes.Buffer
	log := event.New(event.Options{RunID: "run_1", Now: func() time.Time { return time.Date(2026, 9, 20, 10, 0, 0, 0, time.UTC) }})
	log.Attach(event.Attachment{Name: "json", Sink: New(&out), Level: event.Core})
	log.Emit(event.Origin{SessionID: "s"}, event.MessageEvent{MessageID: "m", Role: "assistant", Text: "hello"})
	log.Emit(event.Origin{SessionID: "s"}, event.RunFinishedEvent{Status: "failed", ExitCode: 4, Reason: "auth", Message: "a\nb"})
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	want := `{"v":1,"seq":2,"ts":"2026-09-20T10:00:00.000Z","type":"run.finished","run_id":"run_1","session_id":"s",` +
		`"status":"failed","exit_code":4,"reason":"auth","usage":{"input_tokens":0,"output_tokens":0},"duration_ms":0,"turns":0,"lines":1,"denials":[],"message":"a\nb"}` + "\n"
	if d := cmp.Diff(want, out.String()); d != "" {
		t.Error(d)
	}
	for _, err := range event.CheckStream(strings.NewReader(out.String())) {
		t.Error(err)
	}
}

type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, syscall.ENOSPC }

func TestAFullDiskIsReported(t *testing.T) {
	if err := New(fullDisk{}).Emit(event.Event{Body: event.RunFinishedEvent{}}); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("got %v", err)
	}
}
