package frame

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"drover/output/event"
	"drover/output/internal/screen"
)

var start = time.Date(2026, 9, 20, 10, 0, 0, 0, time.UTC)

// clock is one that a test moves.
type clock struct{ now time.Time }

func (c *clock) Now() time.Time                 { return c.now }
func (c *clock) Wait(t time.Time) time.Duration { return t.Sub(c.now) }

// fake is a terminal in memory.
type fake struct {
	*screen.Screen
	size       Size
	background bool
	err        error
}

func (f *fake) Write(p []byte) (int, error) {
	if f.err != nil {
		return 0, f.err
	}
	return f.Screen.Write(p)
}

func (f *fake) Size() (Size, error)       { return f.size, nil }
func (f *fake) Foreground() bool          { return !f.background }
func (f *fake) Changed() <-chan os.Signal { return nil }
func (f *fake) Close()                    {}

func (f *fake) resize(cols, rows int) {
	f.size = Size{cols, rows}
	f.Resize(cols, rows)
}

// stage is a renderer without its goroutine, whose time a test moves.
type stage struct {
	t    *testing.T
	term *fake
	now  *clock
	*Renderer
	// next is when the renderer wants to look again.
	next time.Time
}

func newStage(t *testing.T, cols, rows int) *stage {
	c := &clock{start}
	f := &fake{Screen: screen.New(max(1, cols), max(1, rows)), size: Size{cols, rows}}
	return &stage{t: t, term: f, now: c, Renderer: newRenderer(f, Options{ASCII: true, Clock: c}, c.Now), next: start}
}

// pass lets time pass, as the loop of the renderer would.
func (s *stage) pass(d time.Duration) {
	s.t.Helper()
	for until := s.now.now.Add(d); ; {
		select {
		case <-s.wake:
			s.next = s.now.now
		default:
		}
		if s.next.After(until) {
			s.now.now = until
			break
		}
		if s.next.After(s.now.now) {
			s.now.now = s.next
		}
		wait := s.step()
		if wait <= 0 {
			s.t.Fatalf("the renderer looks again at once")
		}
		s.next = s.now.now.Add(wait)
	}
	if err := s.term.Screen.Err(); err != nil {
		s.t.Fatal(err)
	}
}

func (s *stage) emit(bodies ...event.Body) {
	s.t.Helper()
	for _, b := range bodies {
		e := event.Event{Time: s.now.now, RunID: "r", Origin: event.Origin{SessionID: "s", Turn: 1}, Body: b}
		if err := s.Emit(e); err != nil {
			s.t.Fatal(err)
		}
	}
}

func (s *stage) wantRegion(rows ...string) {
	s.t.Helper()
	if got := s.term.Region(); strings.Join(got, "\n") != strings.Join(rows, "\n") {
		s.t.Fatalf("the region is\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(rows, "\n"))
	}
}

func (s *stage) wantAbove(rows ...string) {
	s.t.Helper()
	if got := s.term.Above(); strings.Join(got, "\n") != strings.Join(rows, "\n") {
		s.t.Fatalf("the history is\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(rows, "\n"))
	}
}

// The events of one call.
func begin(id string) event.Body {
	return event.ToolCallStartEvent{ToolCallID: id, ToolName: "exec_command"}
}
func called(id, what string) event.Body {
	return event.ToolCallEvent{ToolCallID: id, ToolName: "exec_command", Display: "run: " + what}
}
func runs(id string) event.Body {
	return event.ToolStatusEvent{ToolCallID: id, ToolName: "exec_command", Status: event.StatusRunning}
}
func prints(id, text string) event.Body {
	return event.TerminalAppendStringEvent{ToolCallID: id, TerminalID: "t" + id, Delta: text}
}
func exits(id string, code int) event.Body {
	return event.TerminalCompletedEvent{ToolCallID: id, TerminalID: "t" + id, ExitCode: &code}
}
func ends(id string) event.Body {
	return event.ToolResultEvent{ToolCallID: id, ToolName: "exec_command"}
}

func TestACallIsSeenFromItsFirstByteToItsEnd(t *testing.T) {
	s := newStage(t, 60, 24)
	s.emit(event.RunStartedEvent{}, event.TurnStartedEvent{}, begin("1"))
	s.pass(0)
	s.wantRegion(" . exec_command                                     pending", "   turn 1, 0s")
	s.emit(event.ToolCallArgsDeltaEvent{ToolCallID: "1", Delta: `{"cmd":"go te`})
	s.pass(pause)
	s.wantRegion(` ~ exec_command  {"cmd":"go te                         13 B`, "   turn 1, 0s")
	s.emit(called("1", "go test"), runs("1"), prints("1", "one\ntwo\r"))
	s.pass(3200 * time.Millisecond)
	s.wantRegion(" > exec_command  go test                                 3s", " | one", " | two", "   turn 1, 1 running, 3s")
	s.emit(exits("1", 0), ends("1"))
	s.pass(pause)
	s.wantAbove()
	s.wantRegion(" + exec_command  go test                       exit 0, 3.2s", "   turn 1, waiting for the model  0s, 1 done, 3s")
	// Nothing comes behind it; after a second it goes all the same.
	s.pass(time.Second)
	s.wantAbove("+ exec_command  go test                       exit 0, 3.2s")
	s.wantRegion("   turn 1, waiting for the model  1s, 1 done, 4s")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s.wantRegion()
}

func TestAtMostTenPaintsASecond(t *testing.T) {
	s := newStage(t, 80, 24)
	s.emit(event.RunStartedEvent{}, called("1", "make"), runs("1"))
	s.pass(0)
	before := s.term.Writes
	for i := range 10_000 {
		s.emit(prints("1", fmt.Sprintf("line %d\n", i)))
		s.pass(time.Second / 10_000)
	}
	if n := s.term.Writes - before; n < 9 || n > 11 {
		t.Errorf("%d paints in a second", n)
	}
	s.pass(pause)
	if got := s.term.Region(); got[len(got)-2] != " | line 9999" {
		t.Errorf("the last state is %q", got)
	}
}

func TestASecondWithoutNewsCostsLittle(t *testing.T) {
	s := newStage(t, 80, 24)
	s.emit(event.RunStartedEvent{}, called("1", "make"), runs("1"), prints("1", "a\nb\nc\nd\n"))
	s.pass(10 * time.Second)
	writes, bytes := s.term.Writes, s.term.Bytes
	s.pass(10 * time.Second)
	if n := s.term.Writes - writes; n > 10 {
		t.Errorf("%d paints in ten seconds", n)
	}
	if n := (s.term.Bytes - bytes) / 10; n > 300 {
		t.Errorf("%d bytes a second", n)
	}
	s.emit(event.RunFinishedEvent{Status: "success"})
	s.pass(time.Second)
	writes = s.term.Writes
	s.pass(time.Minute)
	if n := s.term.Writes - writes; n != 0 {
		t.Errorf("%d paints of a run that has ended", n)
	}
}

func TestNothingIsDrawnWhileTheSizeChanges(t *testing.T) {
	s := newStage(t, 80, 24)
	s.emit(event.RunStartedEvent{}, called("1", "make"), runs("1"))
	s.pass(time.Second)
	for i := range 20 { // a drag of two seconds
		s.term.resize(79-i, 24)
		s.emit(prints("1", "more\n"))
		s.pass(pause)
		s.wantRegion()
	}
	s.pass(500 * time.Millisecond)
	if got := s.term.Region(); len(got) != 7 || len(got[0]) > 60-1 {
		t.Errorf("after the drag there is %q", got)
	}
	// A drag without end is not waited for.
	seen := false
	for i := range 40 {
		s.term.resize(60+i, 24)
		s.emit(prints("1", "more\n"))
		s.pass(pause)
		seen = seen || len(s.term.Region()) > 0
	}
	if !seen {
		t.Error("nothing was drawn for four seconds")
	}
	s.wantAbove()
}

func TestATerminalOfAnySizeTakesARun(t *testing.T) {
	rnd := rand.New(rand.NewPCG(8, 9))
	for range 60 {
		s := newStage(t, rnd.IntN(500), rnd.IntN(200))
		for n := range 60 {
			id := fmt.Sprint(rnd.IntN(12))
			s.emit([]event.Body{
				begin(id), called(id, "a command"), runs(id), prints(id, "text\n"), exits(id, 1), ends(id),
				event.MessageDeltaEvent{MessageID: "m" + id, Delta: "some words and\nmore"}, event.TurnFinishedEvent{},
			}[rnd.IntN(8)])
			if n%7 == 0 {
				s.term.resize(1+rnd.IntN(500), 1+rnd.IntN(200))
			}
			s.pass(time.Duration(rnd.IntN(900)) * time.Millisecond)
			size := s.term.size
			if got := s.term.Region(); len(got) > max(1, min(size.Rows/3, 12)) {
				t.Fatalf("%v: the region has %d rows", size, len(got))
			}
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		s.wantRegion()
	}
}

func TestAShellsBackgroundIsNotDrawnOn(t *testing.T) {
	s := newStage(t, 60, 24)
	s.term.background = true
	s.emit(event.RunStartedEvent{}, event.MessageDeltaEvent{MessageID: "m", Delta: "hello\nrest"})
	s.pass(3 * time.Second)
	if s.term.Writes != 0 {
		t.Error("something was drawn")
	}
	s.term.background = false
	s.pass(time.Second)
	s.wantAbove("hello")
}

func TestAHeldTerminalBelongsToWhoHoldsIt(t *testing.T) {
	s := newStage(t, 60, 24)
	s.emit(event.RunStartedEvent{}, called("1", "make"), runs("1"), event.MessageDeltaEvent{MessageID: "m", Delta: "x"})
	s.pass(time.Second)
	w, release := s.Hold()
	s.wantRegion()
	fmt.Fprint(w, "? a question\r\n")
	s.emit(exits("1", 0), ends("1"))
	s.pass(5 * time.Second)
	s.wantRegion()
	fmt.Fprint(w, "an answer\r\n")
	release()
	release() // once is enough
	s.pass(pause)
	s.wantAbove("? a question", "an answer", "+ exec_command  make                          exit 0, 1.0s")
	if _, err := fmt.Fprint(s.Renderer, "a warning\r\n"); err != nil {
		t.Fatal(err)
	}
	s.pass(pause)
	s.wantAbove("? a question", "an answer", "+ exec_command  make                          exit 0, 1.0s", "a warning")
	s.Suspend()
	s.wantRegion()
	s.Resume()
	s.pass(pause)
	if len(s.term.Region()) == 0 {
		t.Error("nothing is drawn after it goes on")
	}
}

// TestTheEndOfARunLeavesAnOpenQuestionAsItIs: it is the trail of what was asked.
func TestTheEndOfARunLeavesAnOpenQuestionAsItIs(t *testing.T) {
	term := &fake{Screen: screen.New(60, 24), size: Size{60, 24}}
	r := New(term, Options{ASCII: true})
	if err := r.Emit(event.Event{Body: event.RunStartedEvent{}}); err != nil {
		t.Fatal(err)
	}
	w, _ := r.Hold()
	fmt.Fprint(w, "? a question\r\n\r")
	// The strict screen wants a cursor at rest; a prompt would leave it behind.
	if err := r.Emit(event.Event{Body: event.NoticeEvent{Level: "warning", Message: "late"}}); err != nil {
		t.Fatal(err)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(term.Above(), "|"); got != "? a question||! late" {
		t.Errorf("the history is %q", got)
	}
}

func TestATerminalThatIsGoneIsAnError(t *testing.T) {
	s := newStage(t, 60, 24)
	s.emit(event.RunStartedEvent{})
	s.term.err = io.ErrClosedPipe
	s.pass(time.Second)
	for _, err := range []error{s.Emit(event.Event{Body: event.NoticeEvent{}}), s.Close(), s.Close()} {
		if !errors.Is(err, io.ErrClosedPipe) {
			t.Errorf("got %v", err)
		}
	}
}

// slow is a terminal that takes nothing while it is stuck.
type slow struct {
	fake
	mu    sync.Mutex
	stuck sync.Mutex
}

func (s *slow) Write(p []byte) (int, error) {
	s.stuck.Lock()
	defer s.stuck.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.fake.Write(p)
}

// TestATerminalThatTakesNothingHoldsTheRunUpOnlyInTheEnd: events are taken on,
// in order, until very much waits; then whoever emits waits too.
func TestATerminalThatTakesNothingHoldsTheRunUpOnlyInTheEnd(t *testing.T) {
	term := &slow{fake: fake{Screen: screen.New(80, 24), size: Size{80, 24}}}
	r := New(term, Options{ASCII: true})
	term.stuck.Lock()
	lines := func(from, n int) event.Event {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, "line %d\n", from+i)
		}
		return event.Event{Origin: event.Origin{SessionID: "s"}, Body: event.MessageDeltaEvent{MessageID: "m", Delta: b.String()}}
	}
	for i := range maxBacklog / 100 {
		if err := r.Emit(lines(100*i, 100)); err != nil {
			t.Fatal(err)
		}
	}
	for writing := false; !writing; {
		r.mu.Lock()
		writing = r.writing
		r.mu.Unlock()
		runtime.Gosched()
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := range 30 {
			if err := r.Emit(lines(maxBacklog+maxBacklog*i/10, maxBacklog/10)); err != nil {
				t.Error(err)
			}
		}
	}()
	select {
	case <-done:
		t.Error("memory grows without end")
	case <-time.After(300 * time.Millisecond):
	}
	term.stuck.Unlock()
	<-done
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	for i, l := range term.Above() {
		if l != fmt.Sprintf("line %d", i) {
			t.Fatalf("row %d is %q", i, l)
		}
	}
	if n := len(term.Above()); n != 4*maxBacklog {
		t.Errorf("%d lines are there", n)
	}
}

// TestATerminalThatIsGivenUpIsNotWaitedFor, neither by who emits nor by Close.
func TestATerminalThatIsGivenUpIsNotWaitedFor(t *testing.T) {
	term := &slow{fake: fake{Screen: screen.New(80, 24), size: Size{80, 24}}}
	r := New(term, Options{ASCII: true})
	term.stuck.Lock()
	defer term.stuck.Unlock()
	closed := make(chan error)
	go func() {
		e := event.Event{Origin: event.Origin{SessionID: "s"}, Body: event.MessageDeltaEvent{MessageID: "m", Delta: strings.Repeat("line\n", maxBacklog)}}
		for r.Emit(e) == nil {
		}
		closed <- r.Close()
	}()
	given := errors.New("given up")
	r.Abandon(given)
	r.Abandon(given)
	if err := <-closed; !errors.Is(err, given) {
		t.Errorf("got %v", err)
	}
}

// BenchmarkOutputEvents is what following a noisy command costs.
func BenchmarkOutputEvents(b *testing.B) {
	r := newRenderer(&fake{Screen: screen.New(80, 24), size: Size{80, 24}}, Options{}, time.Now)
	e := event.Event{Origin: event.Origin{SessionID: "s"}, Body: prints("1", strings.Repeat("x", 99)+"\n")}
	_ = r.Emit(event.Event{Origin: event.Origin{SessionID: "s"}, Body: called("1", "make")})
	b.ReportAllocs()
	for b.Loop() {
		if err := r.Emit(e); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkLayout is a paint of 40 running calls.
func BenchmarkLayout(b *testing.B) {
	s := newScene(Options{Color: true})
	for i := range 40 {
		id := fmt.Sprint(i)
		for _, body := range []event.Body{called(id, "go test ./..."), runs(id), prints(id, "some output\nand more\n")} {
			s.take(event.Event{Time: start, Origin: event.Origin{SessionID: "s"}, Body: body})
		}
	}
	for b.Loop() {
		s.rows(start, Size{80, 24})
	}
}
