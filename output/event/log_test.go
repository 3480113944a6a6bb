package event

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// failingSink fails with its nth event.
type failingSink struct {
	eventSink
	n      int
	closed int
}

var errFull = errors.New("no space left")

func (s *failingSink) Emit(e Event) error {
	if s.n--; s.n < 0 {
		return errFull
	}
	return s.eventSink.Emit(e)
}

func (s *failingSink) Close() error { s.closed++; return nil }

func TestEverySinkGetsItsLevelWithTheSameNumbers(t *testing.T) {
	full, core := story(Full), story(Core)
	if len(core.lines) >= len(full.lines) {
		t.Fatalf("%d lines at core, %d at full", len(core.lines), len(full.lines))
	}
	for _, line := range core.lines[:len(core.lines)-1] {
		if !slices.Contains(full.lines, line) {
			t.Errorf("only core has %s", line)
		}
	}
	for _, s := range []*lineSink{core, full} {
		if want := fmt.Sprintf(`"lines":%d,`, len(s.lines)); !strings.Contains(s.lines[len(s.lines)-1], want) {
			t.Errorf("%s is not in %s", want, s.lines[len(s.lines)-1])
		}
	}
}

func TestASinkThatFailsIsReportedOnceAndDoesNotStopTheOthers(t *testing.T) {
	log := New(Options{RunID: "r"})
	bad, good := &failingSink{n: 2}, &eventSink{}
	var failures []error
	log.Attach(Attachment{Name: "bad", Sink: bad, Failed: func(err error) {
		failures = append(failures, err)
		log.Emit(Origin{}, NoticeEvent{Level: "warning", Code: "output_lost"}) // the log is not locked
	}})
	log.Attach(Attachment{Name: "good", Sink: good})
	for range 5 {
		log.Emit(Origin{}, ErrorEvent{})
	}
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	if len(failures) != 1 || !errors.Is(failures[0], errFull) || len(bad.events) != 2 || len(good.events) != 6 || bad.closed != 1 {
		t.Errorf("%v, %d and %d events, closed %d times", failures, len(bad.events), len(good.events), bad.closed)
	}
}

func TestNothingIsEmittedAfterClose(t *testing.T) {
	log := New(Options{RunID: "r"})
	s := &failingSink{n: 10}
	log.Attach(Attachment{Sink: s})
	log.Emit(Origin{}, ErrorEvent{})
	for range 2 {
		if err := log.Close(); err != nil {
			t.Fatal(err)
		}
	}
	log.Emit(Origin{}, ErrorEvent{})
	if len(s.events) != 1 || s.closed != 1 {
		t.Errorf("%d events, closed %d times", len(s.events), s.closed)
	}
}

func TestSubscribersGetTheirTopicMasked(t *testing.T) {
	log := New(Options{RunID: "r", Redact: NewRedactor(testSecrets)})
	var calls, all []string
	log.Subscribe(TopicToolCalls, func(e Event) { calls = append(calls, e.Body.Type()) })
	log.Subscribe(TopicAll, func(e Event) { all = append(all, string(mustEncode(t, e))) })
	log.Emit(Origin{}, ToolStatusEvent{ToolCallID: "c", Progress: "canary123"})
	log.Emit(Origin{}, TerminalAppendStringEvent{TerminalID: "t", Delta: "x canary123 y"})
	if d := cmp.Diff([]string{"tool.status"}, calls); d != "" {
		t.Error(d)
	}
	if len(all) != 2 || strings.Contains(strings.Join(all, ""), "canary123") || log.Redactions() != 2 {
		t.Errorf("%d redactions in %q", log.Redactions(), all)
	}
}

func TestMaskedStreamsKeepTheGuarantees(t *testing.T) {
	var s lineSink
	log := storyLog()
	// The secrets are cut by the story's deltas: "go test", "tests.", "FAIL: TestReplay".
	log.opts.Redact = NewRedactor(map[string]string{"A": "go test ./...", "B": "the tests.", "C": "FAIL: TestReplay", "D": "*** End Patch"})
	log.Attach(Attachment{Sink: &s, Level: Full})
	tellStory(log)
	for _, err := range CheckStream(strings.NewReader(s.String())) {
		t.Error(err)
	}
	for _, secret := range []string{"go test ./...", "the tests.", "FAIL: TestReplay", "*** End Patch"} {
		if strings.Contains(s.String(), secret) {
			t.Errorf("%q is in the stream", secret)
		}
	}
}

func TestConcurrentProducersShareOneOrder(t *testing.T) {
	var s lineSink
	log := New(Options{RunID: "r", Redact: NewRedactor(testSecrets)})
	log.Attach(Attachment{Sink: &s, Level: Full})
	var group sync.WaitGroup
	for i := range 8 {
		group.Go(func() {
			for range 200 {
				id := fmt.Sprint(i)
				log.Emit(Origin{SessionID: id}, MessageDeltaEvent{MessageID: id, Delta: "canary12"})
				log.Emit(Origin{SessionID: id}, MessageDeltaEvent{MessageID: id, Delta: "3 "})
				_ = log.opts.Redact.String("canary123")
				_ = log.LastEmit()
			}
		})
	}
	group.Wait()
	r := NewReader(strings.NewReader(s.String()))
	for seq := range int64(len(s.lines)) {
		e, err := r.Next()
		if err != nil || e.Seq != seq+1 {
			t.Fatalf("event %d has seq %d, %v", seq+1, e.Seq, err)
		}
	}
	if got := strings.Count(s.String(), "[secret:API_TOKEN]"); got != 1600 || strings.Contains(s.String(), "canary") {
		t.Errorf("%d secrets are masked", got)
	}
}

// stuckSink holds up its writer until it is abandoned.
type stuckSink struct {
	eventSink
	entered, abandoned chan struct{}
}

func (s *stuckSink) Emit(Event) error {
	close(s.entered)
	<-s.abandoned
	return errFull
}

func TestAStuckSinkCanBeSeenAndGivenUp(t *testing.T) {
	log := New(Options{RunID: "r"})
	stuck, good := &stuckSink{entered: make(chan struct{}), abandoned: make(chan struct{})}, &eventSink{}
	log.Attach(Attachment{Name: "stuck", Sink: stuck, Abandon: func() { close(stuck.abandoned) }})
	log.Attach(Attachment{Name: "good", Sink: good})
	if log.Blocked() != 0 {
		t.Error("an idle log is blocked")
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		log.Emit(Origin{}, ErrorEvent{})
		log.Emit(Origin{}, ErrorEvent{})
	}()
	<-stuck.entered
	if log.Blocked() <= 0 || log.LastEmit().IsZero() {
		t.Error("the stuck write cannot be seen")
	}
	log.Abandon()
	<-done
	if log.Blocked() != 0 || len(good.events) != 2 {
		t.Errorf("blocked for %v, the other sink got %d events", log.Blocked(), len(good.events))
	}
}

func TestNothingFollowsTheLastEvent(t *testing.T) {
	log := New(Options{RunID: "r"})
	sink := &eventSink{}
	log.Attach(Attachment{Name: "all", Sink: sink, Level: Full})
	log.Attach(Attachment{Name: "bad", Sink: &failingSink{n: 0}, Failed: func(error) {
		log.Emit(Origin{}, NoticeEvent{Level: "warning", Code: "output_lost"})
	}})
	var group sync.WaitGroup
	firsts := make(chan bool, 8)
	for range 8 {
		group.Go(func() {
			log.Emit(Origin{}, HeartbeatEvent{WaitingOn: "none"})
			first, err := log.Finish(Origin{}, RunFinishedEvent{Status: "success"})
			if err != nil {
				t.Error(err)
			}
			firsts <- first
		})
	}
	group.Wait()
	close(firsts)
	n := 0
	for first := range firsts {
		if first {
			n++
		}
	}
	last := sink.events[len(sink.events)-1].Body
	if _, ok := last.(RunFinishedEvent); !ok || n != 1 {
		t.Errorf("%d ends, the last event is %s", n, last.Type())
	}
}
