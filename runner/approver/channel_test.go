//go:build unix

package approver

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"drover/output/event"
	"drover/output/fault"
)

// notices collects what a channel reports.
type notices struct {
	mu   sync.Mutex
	list []string
}

func (n *notices) add(code, text string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.list = append(n.list, code+": "+text)
}

func (n *notices) has(text string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return strings.Contains(strings.Join(n.list, "\n"), text)
}

// eventually waits for something that another goroutine does.
func eventually(t *testing.T, what string, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !done(); {
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain for %s", what)
		}
		time.Sleep(time.Millisecond)
	}
}

type answered struct {
	Answer
	err error
}

func ask(t *testing.T, a Approver, id string) <-chan answered {
	t.Helper()
	done := make(chan answered, 1)
	go func() {
		got, err := a.Ask(t.Context(), request(id))
		done <- answered{got, err}
	}()
	return done
}

func TestAnswersOfADescriptorFindTheirRequests(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	var told notices
	a, err := Descriptor(dup(t, r), told.add)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	first, second := ask(t, a, "one"), ask(t, a, "two")
	eventually(t, "both requests", func() bool { return len(a.(*descriptor).desk.pending()) == 2 })
	// Blank lines and carriage returns are tolerated; what is no answer, and
	// what answers nothing, is told and ends nothing.
	lines := "\n\r\n" + "go ahead\n" + yes("three") + "\n" + strings.Repeat("x", maxAnswer+10) + "\n" +
		`{"v":1,"type":"input.response","correlation_id":"one","answer":"x"}` + "\n" + yes("two") + "\r\n" + yes("two") + "\n" + yes("one") + "\n"
	if _, err := io.WriteString(w, lines); err != nil {
		t.Fatal(err)
	}
	for _, got := range []answered{<-first, <-second} {
		if got.err != nil || !got.Approved {
			t.Errorf("got %+v", got)
		}
	}
	for _, text := range []string{"it is no JSON object", `"three" was passed over: there is no such request`, "longer than", "its type is not that of the request", `"two" was passed over: it came too late or twice`} {
		eventually(t, "the notice: "+text, func() bool { return told.has(text) })
	}
	// The end of the channel is no yes, now and later.
	third := ask(t, a, "four")
	eventually(t, "the request", func() bool { return len(a.(*descriptor).desk.pending()) == 1 })
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if got := <-third; !errors.Is(got.err, errNobody) {
		t.Errorf("got %+v", got)
	}
	if got := <-ask(t, a, "five"); !errors.Is(got.err, errNobody) {
		t.Errorf("got %+v", got)
	}
}

// dup returns a descriptor of its own, which the test's file does not close.
func dup(t *testing.T, f *os.File) int {
	t.Helper()
	defer f.Close()
	fd, err := syscall.Dup(int(f.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	return fd
}

func TestASocketOnADescriptorGetsTheRequests(t *testing.T) {
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	var told notices
	a, err := Descriptor(fds[0], told.add)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	other := os.NewFile(uintptr(fds[1]), "other end")
	defer other.Close()
	done := ask(t, a, "one")
	line, err := bufio.NewReader(other).ReadBytes('\n')
	if err != nil {
		t.Fatal(err)
	}
	if e, err := event.Decode(line); err != nil || e.Seq != 7 || requestID(e) != "one" {
		t.Errorf("the request is %s, %v", line, err)
	}
	if _, err := io.WriteString(other, yes("one")+"\n"); err != nil {
		t.Fatal(err)
	}
	if got := <-done; got.err != nil || !got.Approved {
		t.Errorf("got %+v", got)
	}
}

func TestDescriptorsThatCannotAnswerAreUsageErrors(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	dir, err := os.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	for fd, want := range map[int]string{0: "standard streams", 2: "standard streams", -1: "standard streams", 9999: "not open", int(w.Fd()): "only open for writing", int(dir.Fd()): "a folder"} {
		_, err := Descriptor(fd, nil)
		var f *fault.Error
		if !errors.As(err, &f) || f.Exit != fault.Usage || !strings.Contains(f.Why, want) {
			t.Errorf("%d: %v, want %q", fd, err, want)
		}
	}
}

func TestTheWaitEndsWithItsContext(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	a, err := Descriptor(dup(t, r), func(string, string) {})
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	late := errors.New("late")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(late)
	if _, err := a.Ask(ctx, request("one")); !errors.Is(err, late) {
		t.Errorf("got %v", err)
	}
}

func listen(t *testing.T, ours func(int) bool, told *notices) (Approver, string) {
	t.Helper()
	dir, err := os.MkdirTemp("", "drover") // the path of a socket has to be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	path := filepath.Join(dir, "s")
	a, err := Socket(path, ours, told.add)
	if err != nil {
		t.Fatal(err)
	}
	return a, path
}

func dial(t *testing.T, path string) (net.Conn, *bufio.Reader) {
	t.Helper()
	conn, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn, bufio.NewReader(conn)
}

func TestEveryClientOfASocketGetsTheRequests(t *testing.T) {
	var told notices
	a, path := listen(t, nil, &told)
	if info, err := os.Lstat(path); err != nil || info.Mode().Perm() != 0o600 || info.Mode()&os.ModeSocket == 0 {
		t.Fatalf("%v, %v", info, err)
	}
	early, fromEarly := dial(t, path)
	eventually(t, "the client", func() bool { s := a.(*socket); s.mu.Lock(); defer s.mu.Unlock(); return len(s.clients) == 1 })
	done := ask(t, a, "one")
	if line, err := fromEarly.ReadString('\n'); err != nil || !strings.Contains(line, `"correlation_id":"one"`) {
		t.Fatalf("the early client got %q, %v", line, err)
	}
	// A client that comes later gets what is still open.
	late, fromLate := dial(t, path)
	if line, err := fromLate.ReadString('\n'); err != nil || !strings.Contains(line, `"correlation_id":"one"`) {
		t.Fatalf("the late client got %q, %v", line, err)
	}
	// A client that goes away ends nothing.
	if err := early.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(late, yes("one")+"\n"); err != nil {
		t.Fatal(err)
	}
	if got := <-done; got.err != nil || !got.Approved {
		t.Errorf("got %+v", got)
	}
	// Nobody removes the socket of another.
	if _, err := Socket(path, nil, told.add); err == nil || !strings.Contains(err.Error(), "another process listens") {
		t.Errorf("a second one: %v", err)
	}
	waiting := ask(t, a, "two")
	eventually(t, "the request", func() bool { return len(a.(*socket).desk.pending()) == 1 })
	if err := a.Close(); err != nil {
		t.Error(err)
	}
	if got := <-waiting; !errors.Is(got.err, errNobody) {
		t.Errorf("got %+v", got)
	}
	if _, err := os.Lstat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the socket is still there: %v", err)
	}
}

func TestAProcessOfTheRunCannotAnswerOnTheSocket(t *testing.T) {
	var told notices
	a, path := listen(t, func(pid int) bool { return pid == os.Getpid() }, &told)
	defer a.Close()
	_, from := dial(t, path)
	if runtime.GOOS != "linux" {
		t.Skip("this system does not tell who connects")
	}
	if _, err := from.ReadByte(); !errors.Is(err, io.EOF) {
		t.Errorf("the connection is open: %v", err)
	}
	eventually(t, "the notice", func() bool { return told.has("answer its own requests") })
}

func TestOldSocketsAreReplacedAndFilesAreNot(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Socket(file, nil, nil); err == nil || !strings.Contains(err.Error(), "it is no socket") {
		t.Errorf("got %v", err)
	}
	if data, err := os.ReadFile(file); err != nil || string(data) != "precious" {
		t.Errorf("the file holds %q, %v", data, err)
	}
	if _, err := Socket("@everybody", nil, nil); err == nil || !strings.Contains(err.Error(), "keeps others out") {
		t.Errorf("got %v", err)
	}
	if _, err := Socket(filepath.Join(dir, "missing", "s"), nil, nil); err == nil {
		t.Error("a missing folder is no error")
	}
	var told notices
	a, path := listen(t, nil, &told)
	s := a.(*socket)
	_ = s.listener.Close() // as if the process had died
	again, err := Socket(path, nil, told.add)
	if err != nil {
		t.Fatal(err)
	}
	// The old one does not remove what is not its own.
	_ = a.Close() // its listener is closed already
	if _, err := os.Lstat(path); err != nil {
		t.Error(err)
	}
	if err := again.Close(); err != nil {
		t.Error(err)
	}
}

func TestAClientThatDoesNotReadHoldsNobodyUp(t *testing.T) {
	var told notices
	a, path := listen(t, nil, &told)
	defer a.Close()
	dial(t, path)
	eventually(t, "the client", func() bool { s := a.(*socket); s.mu.Lock(); defer s.mu.Unlock(); return len(s.clients) == 1 })
	big := request("x")
	body := big.Body.(event.ToolApprovalRequestEvent)
	body.Display = strings.Repeat("x", 64<<10)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for i := range 2 * maxQueue {
		body.CorrelationID = fmt.Sprint("x", i)
		big.Body = body
		if _, err := a.Ask(ctx, big); !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
	}
	if !told.has("it does not read") {
		t.Error("the client was not dropped")
	}
}
