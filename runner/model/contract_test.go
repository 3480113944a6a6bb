package model

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// Every provider that reads a stream passes the tests of this file. A wire
// format says how it writes an answer; the tests write answers in every
// chunking, cut them everywhere, and look at what becomes of them.

// wire is one wire format.
type wire struct {
	name  string
	build func(endpoint) Provider
	// encode returns the events of an answer. Those from end on say that the
	// answer is complete.
	encode func(a answer) (events []string, end int)
	// failure is an event that reports an error in the middle of a stream.
	failure func(code, message string) string
	// silent are events that bring nothing.
	silent []string
}

var wires = []wire{chatWire, responsesWire, messagesWire}

// answer is what a model says, in the pieces in which it streams.
type answer struct {
	reasoning, text []string
	calls           []answerCall
	finish          FinishReason
	usage           *Usage
}

// answerCall is a call; args are the pieces of its arguments, of a freeform
// call those of its input.
type answerCall struct {
	id, name string
	args     []string
	freeform bool
}

// offeredTools are the tools of all requests of these tests.
var offeredTools = []Tool{{Name: "exec_command"}, {Name: "exec"}, {Name: "list_dir"}, {Name: "apply_patch", Freeform: true}}

// fullAnswer has everything, with characters of two to four bytes.
var fullAnswer = answer{
	reasoning: []string{"Ich überlege ", "– 考える 🙂"},
	text:      []string{"Grüße ", "文件 ", "🙂🏽\n", "\"quoted\" \\ and \u2028"},
	calls: []answerCall{
		{id: "call_a", name: "exec_command", args: []string{`{"cmd":`, `"echo ü文🙂`, ` \"x\""}`}},
		{id: "call_b", name: "list_dir", args: []string{`{}`}},
		{id: "call_c", name: "apply_patch", freeform: true, args: []string{"*** Begin Patch\n", "+a\t\"ü🙂\"\\\n", "*** End Patch\n"}},
		{id: "call_d", name: "exec_command", args: []string{`{"cmd":"ls"}`}},
	},
	finish: ToolCalls,
	usage:  &Usage{InputTokens: 120, OutputTokens: 30, CachedInputTokens: 20},
}

// result is what the answer must come to.
func (a answer) result() outcome {
	o := outcome{Text: strings.Join(a.text, ""), Reasoning: strings.Join(a.reasoning, ""), Finish: a.finish, Usage: a.usage}
	for _, c := range a.calls {
		o.Calls = append(o.Calls, playedCall{ID: c.id, Name: c.name, Args: strings.Join(c.args, ""), Freeform: c.freeform})
	}
	return o
}

// outcome is a stream put together.
type outcome struct {
	Text, Reasoning string
	Calls           []playedCall
	Finish          FinishReason
	Usage           *Usage
}

// checkContract fails the test if a stream breaks the contract of the package,
// and returns what it comes to.
func checkContract(t *testing.T, deltas []Delta, err error) outcome {
	t.Helper()
	c := &checker{t: t}
	var o outcome
	for _, d := range deltas {
		c.take(d, nil)
		switch d.Kind {
		case TextDelta:
			o.Text += d.Text
		case ReasoningDelta:
			o.Reasoning += d.Text
		case CallStart:
			o.Calls = append(o.Calls, playedCall{ID: d.ID, Name: d.Name, Freeform: d.Freeform})
		case CallArgs:
			o.Calls[d.Index].Args += d.Text
		case Finish:
			o.Finish, o.Usage = d.Reason, d.Usage
		}
	}
	if err != nil {
		c.take(Delta{}, err)
	}
	if !c.ended {
		t.Fatal("the stream has neither Finish nor an error")
	}
	return o
}

// ask sends a request and returns the stream.
func ask(ctx context.Context, p Provider) (deltas []Delta, err error) {
	req := &Request{Model: "m", System: "s", Items: []Item{user("hi")}, Tools: offeredTools, SessionID: "s"}
	for d, e := range p.Stream(ctx, req) {
		if e != nil {
			err = e
			continue
		}
		deltas = append(deltas, d)
	}
	return deltas, err
}

// keyOfTests is sent with every request and must never turn up in an error.
const keyOfTests = "sk-canary-0123456789abcdef"

// connect returns the provider of a server.
func (w wire) connect(t testing.TB, h http.HandlerFunc) Provider {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		// Only then does the server notice that its client has gone.
		if _, err := io.Copy(io.Discard, r.Body); err == nil {
			h(rw, r)
		}
	}))
	t.Cleanup(s.Close)
	client, err := newClient(clientOptions{getenv: func(string) string { return "" }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.CloseIdleConnections)
	return w.build(endpoint{Name: "test", BaseURL: s.URL + "/v1", Key: keyOfTests, KeyEnv: "TEST_KEY", Client: client,
		ReplayReasoning: "auto", secrets: []string{keyOfTests}})
}

// stream writes the pieces of a body, each at once.
func stream(pieces ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		w.(http.Flusher).Flush()
		for _, p := range pieces {
			if _, err := w.Write([]byte(p)); err != nil {
				return
			}
			w.(http.Flusher).Flush()
		}
	}
}

func joinEvents(events []string) string { return strings.Join(events, "\n\n") + "\n\n" }

// splittings are all the ways in which a stream may reach its reader.
var splittings = map[string]func(events []string) []string{
	"whole":     func(e []string) []string { return []string{joinEvents(e)} },
	"per event": func(e []string) []string { return strings.SplitAfter(joinEvents(e), "\n\n") },
	"per line":  func(e []string) []string { return strings.SplitAfter(joinEvents(e), "\n") },
	"single bytes": func(e []string) []string {
		var pieces []string
		for _, b := range []byte(joinEvents(e)) {
			pieces = append(pieces, string([]byte{b}))
		}
		return pieces
	},
	"seven bytes": func(e []string) []string {
		var pieces []string
		for p := range slices.Chunk([]byte(joinEvents(e)), 7) {
			pieces = append(pieces, string(p))
		}
		return pieces
	},
	"CR LF": func(e []string) []string { return []string{strings.ReplaceAll(joinEvents(e), "\n", "\r\n")} },
	"CR LF cut between": func(e []string) []string {
		return strings.SplitAfter(strings.ReplaceAll(joinEvents(e), "\n", "\r\n"), "\r")
	},
	"CR":              func(e []string) []string { return []string{strings.ReplaceAll(joinEvents(e), "\n", "\r")} },
	"byte order mark": func(e []string) []string { return []string{"\ufeff" + joinEvents(e)} },
	"comments": func(e []string) []string {
		return strings.SplitAfter(": hello\n\n:\n\n"+strings.ReplaceAll(joinEvents(e), "\n", "\n: keep-alive\n:\n"), "\n")
	},
	"no space behind the colon": func(e []string) []string {
		return []string{strings.ReplaceAll(joinEvents(e), "data: ", "data:")}
	},
	"several data lines": func(e []string) []string {
		return []string{strings.ReplaceAll(joinEvents(e), "data: {", "data: {\ndata:\ndata:  ")}
	},
	// Blanks between the tokens of JSON make a line as long as we like.
	"lines above 64 KiB": func(e []string) []string {
		return []string{strings.ReplaceAll(joinEvents(e), "data: {", "data: {"+strings.Repeat(" ", 65537))}
	},
	"lines of 1 MiB": func(e []string) []string {
		return []string{strings.Replace(joinEvents(e), "data: {", "data: {"+strings.Repeat(" ", 1<<20), 3)}
	},
}

func TestAnswerIsTheSameInEveryChunking(t *testing.T) {
	for _, w := range wires {
		events, _ := w.encode(fullAnswer)
		var between []string
		for _, e := range events {
			between = append(append(between, w.silent...), e)
		}
		for name, split := range splittings {
			for _, with := range []struct {
				name   string
				events []string
			}{{"", events}, {" with silent events", between}} {
				t.Run(w.name+" "+name+with.name, func(t *testing.T) {
					t.Parallel()
					deltas, err := ask(t.Context(), w.connect(t, stream(split(with.events)...)))
					got := checkContract(t, deltas, err)
					if err != nil {
						t.Fatal(err)
					}
					if diff := cmp.Diff(fullAnswer.result(), got); diff != "" {
						t.Errorf("answer (-want +got):\n%s", diff)
					}
				})
			}
		}
	}
}

func TestFinishReasonsAndUsage(t *testing.T) {
	call := []answerCall{{id: "a", name: "exec_command", args: []string{`{"cmd":"ls"}`}}}
	cutCall := []answerCall{{id: "a", name: "apply_patch", freeform: true, args: []string{"*** Begin Patch\n*** Delete"}}}
	usage := &Usage{InputTokens: 10, OutputTokens: 5}
	for _, c := range []struct {
		name string
		in   answer
		want outcome
	}{
		{"plain text", answer{text: []string{"hi"}, finish: Stop, usage: usage}, outcome{Text: "hi", Finish: Stop, Usage: usage}},
		{"no text at all", answer{finish: Stop, usage: usage}, outcome{Finish: Stop, Usage: usage}},
		{"no usage", answer{text: []string{"hi"}, finish: Stop}, outcome{Text: "hi", Finish: Stop}},
		{"usage of zeros", answer{text: []string{"hi"}, finish: Stop, usage: &Usage{}}, outcome{Text: "hi", Finish: Stop}},
		{"calls", answer{calls: call, finish: ToolCalls, usage: usage}, outcome{
			Calls: []playedCall{{ID: "a", Name: "exec_command", Args: `{"cmd":"ls"}`}}, Finish: ToolCalls, Usage: usage}},
		{"cut in a call, by chance valid JSON", answer{calls: call, finish: Length, usage: usage}, outcome{
			Calls: []playedCall{{ID: "a", Name: "exec_command", Args: `{"cmd":"ls"}`}}, Finish: Length, Usage: usage}},
		{"cut in a patch", answer{calls: cutCall, finish: Length, usage: usage}, outcome{
			Calls: []playedCall{{ID: "a", Name: "apply_patch", Args: "*** Begin Patch\n*** Delete", Freeform: true}}, Finish: Length, Usage: usage}},
		{"content filter", answer{text: []string{"hi"}, finish: ContentFilter, usage: usage}, outcome{Text: "hi", Finish: ContentFilter, Usage: usage}},
	} {
		for _, w := range wires {
			if w.name == "messages" && c.in.finish == ContentFilter {
				continue // this API has refusals instead
			}
			t.Run(c.name+" "+w.name, func(t *testing.T) {
				events, _ := w.encode(c.in)
				deltas, err := ask(t.Context(), w.connect(t, stream(joinEvents(events))))
				got := checkContract(t, deltas, err)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(c.want, got); diff != "" {
					t.Errorf("answer (-want +got):\n%s", diff)
				}
			})
		}
	}
}

// endings are the ways in which a connection ends in the middle.
var endings = map[string]func(w http.ResponseWriter){
	"clean close": func(http.ResponseWriter) {},
	"TCP reset": func(w http.ResponseWriter) {
		conn, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		_ = conn.(*net.TCPConn).SetLinger(0) // the test then sees a plain close
		_ = conn.Close()
	},
	"broken chunk": func(w http.ResponseWriter) { panic(http.ErrAbortHandler) },
}

func TestStreamCutAnywhereIsNoAnswer(t *testing.T) {
	for _, w := range wires {
		events, end := w.encode(fullAnswer)
		whole := joinEvents(events)
		incomplete := len(joinEvents(events[:end]))
		var offsets []int
		for at := 1; at < len(whole); at += 1 + len(whole)/60 {
			offsets = append(offsets, at)
		}
		// Between events, where nothing looks broken.
		for i := 1; i < len(events); i++ {
			offsets = append(offsets, len(joinEvents(events[:i])))
		}
		for how, finish := range endings {
			t.Run(w.name+" "+how, func(t *testing.T) {
				t.Parallel()
				for _, at := range offsets {
					p := w.connect(t, func(rw http.ResponseWriter, r *http.Request) {
						stream(whole[:at/2], whole[at/2:at])(rw, r)
						finish(rw)
					})
					deltas, err := ask(t.Context(), p)
					got := checkContract(t, deltas, err)
					if err == nil && at > incomplete {
						// Enough of the end was there.
						want := fullAnswer.result()
						if got.Usage == nil {
							want.Usage = nil
						}
						if diff := cmp.Diff(want, got); diff != "" {
							t.Errorf("cut at %d: %s", at, diff)
						}
						continue
					}
					var e *Error
					if !errors.As(err, &e) || !e.Retryable {
						t.Fatalf("cut at %d of %d: got %+v", at, len(whole), err)
					}
					if e.Kind != ErrCut && e.Kind != ErrMalformed && e.Kind != ErrConnect {
						t.Errorf("cut at %d: kind %s", at, e.Kind)
					}
				}
			})
		}
	}
}

func TestEndMarkerIsMissing(t *testing.T) {
	for _, w := range wires {
		events, end := w.encode(fullAnswer)
		deltas, err := ask(t.Context(), w.connect(t, stream(joinEvents(events[:end]))))
		checkContract(t, deltas, err)
		var e *Error
		if !errors.As(err, &e) || e.Kind != ErrCut || !e.Retryable {
			t.Errorf("%s: got %v", w.name, err)
		}
	}
}

func TestHalfClosedSilentStreamEndsByTheClock(t *testing.T) {
	for _, w := range wires {
		for _, cut := range []int{0, 2} {
			t.Run(fmt.Sprint(w.name, " after ", cut), func(t *testing.T) {
				t.Parallel()
				events, _ := w.encode(fullAnswer)
				head := joinEvents(events[:cut])
				if cut == 0 {
					head = ": hello\n\n"
				}
				p := w.connect(t, func(rw http.ResponseWriter, r *http.Request) {
					stream(head)(rw, r)
					// Pings are no content.
					for r.Context().Err() == nil {
						stream(": ping\n\n", joinEvents(w.silent))(rw, r)
						select {
						case <-r.Context().Done():
						case <-time.After(10 * time.Millisecond):
						}
					}
				})
				var deltas []Delta
				var err error
				clocks := Clocks{FirstByte: 150 * time.Millisecond, Idle: 150 * time.Millisecond}
				for d, e := range Watch(t.Context(), clocks, p, &Request{Model: "m", Items: []Item{user("hi")}}) {
					if err = e; e == nil {
						deltas = append(deltas, d)
					}
				}
				checkContract(t, deltas, err)
				var e *Error
				if !errors.As(err, &e) || e.Kind != ErrIdle && e.Kind != ErrFirstByte || !e.Retryable {
					t.Errorf("got %v", err)
				}
			})
		}
	}
}

func TestErrorInsideASuccessfulStream(t *testing.T) {
	for _, c := range []struct {
		code, message string
		kind          ErrorKind
		retryable     bool
	}{
		{"server_error", "The server had an error", ErrServer, true},
		{"context_length_exceeded", "Your input exceeds the context window", ErrContext, false},
		{"overloaded_error", "Overloaded", ErrOverloaded, true},
		{"rate_limit_exceeded", "Please try again in 2.5s.", ErrRate, true},
		{"insufficient_quota", "No money", ErrQuota, false},
		{"invalid_request_error", "tools.0: bad", ErrRequest, false},
	} {
		for _, w := range wires {
			for _, after := range []int{0, 3} {
				t.Run(fmt.Sprint(c.code, " ", w.name, " after ", after), func(t *testing.T) {
					events, _ := w.encode(fullAnswer)
					events = append(slices.Clone(events[:after]), w.failure(c.code, c.message+" "+keyOfTests))
					deltas, err := ask(t.Context(), w.connect(t, stream(joinEvents(events))))
					checkContract(t, deltas, err)
					var e *Error
					if !errors.As(err, &e) || e.Kind != c.kind || e.Retryable != c.retryable || !strings.Contains(e.Message, c.message) {
						t.Fatalf("got %+v", err)
					}
					if c.kind == ErrRate && e.RetryAfter != 2500*time.Millisecond {
						t.Errorf("wait %v", e.RetryAfter)
					}
					holdsNoKey(t, err)
				})
			}
		}
	}
}

// holdsNoKey looks for the key in everything that an error can be printed as.
func holdsNoKey(t *testing.T, err error) {
	t.Helper()
	f := Fault(err, "test/m")
	texts := []string{f.Text(), fmt.Sprintf("%+v", err)}
	for e := err; e != nil; e = errors.Unwrap(e) {
		texts = append(texts, e.Error())
	}
	for _, s := range texts {
		if strings.Contains(s, keyOfTests) || strings.Contains(s, keyOfTests[:14]) {
			t.Errorf("the key is in %q", s)
		}
	}
}

func TestSuccessWithoutAnAnswer(t *testing.T) {
	for _, w := range wires {
		for name, c := range map[string]struct {
			body, says string
			kind       ErrorKind
		}{
			"empty body":       {"", "empty", ErrMalformed},
			"blank body":       {"\n\n  \n", "empty", ErrMalformed},
			"only comments":    {": hi\n\n: hi\n\n", "no answer", ErrMalformed},
			"web page":         {"<!DOCTYPE html><html><head><title>Sign in</title></head></html>", "Sign in", ErrMalformed},
			"plain text":       {"upstream went away", "upstream went away", ErrMalformed},
			"lone error event": {"event: error\ndata: {\"error\":{\"message\":\"busy\"}}\n\n", "busy", ErrServer},
			"error as a body":  {`{"error":{"message":"no backend","code":502}}`, "no backend", ErrServer},
			"list with error":  {`[{"error":{"code":503,"message":"no backend","status":"UNAVAILABLE"}}]`, "no backend", ErrOverloaded},
			"broken JSON":      {"data: {\"choices\":[{\n\n", "no JSON", ErrMalformed},
		} {
			t.Run(w.name+" "+name, func(t *testing.T) {
				deltas, err := ask(t.Context(), w.connect(t, stream(c.body)))
				checkContract(t, deltas, err)
				var e *Error
				if !errors.As(err, &e) || e.Kind != c.kind || !e.Retryable || !strings.Contains(e.Message, c.says) {
					t.Errorf("got %+v", err)
				}
			})
		}
	}
}

func TestEventBeyondTheLimitIsATypedError(t *testing.T) {
	for _, w := range wires {
		t.Run(w.name, func(t *testing.T) {
			t.Parallel()
			events, end := w.encode(fullAnswer)
			huge := strings.Replace(events[end-1], "data: {", "data: {"+strings.Repeat(" ", maxEventBytes), 1)
			deltas, err := ask(t.Context(), w.connect(t, stream(joinEvents(append(slices.Clone(events[:end-1]), huge)))))
			checkContract(t, deltas, err)
			var e *Error
			if !errors.As(err, &e) || e.Kind != ErrTooLarge || e.Retryable || !strings.Contains(e.Message, "16 MiB") {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestRefusedRequests(t *testing.T) {
	body := func(v any) string {
		b, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	said := body(map[string]any{"error": map[string]any{"message": "key " + keyOfTests + " is bad", "type": "x"}})
	for _, c := range []struct {
		status    int
		header    string
		body      string
		kind      ErrorKind
		retryable bool
		wait      time.Duration
	}{
		{400, "", said, ErrRequest, false, 0},
		{401, "", said, ErrAuth, false, 0},
		{403, "", said, ErrAuth, false, 0},
		{404, "", said, ErrNotFound, false, 0},
		{408, "", "", ErrServer, true, 0},
		{409, "", "", ErrServer, true, 0},
		{425, "", "", ErrServer, true, 0},
		{422, "", said, ErrRequest, false, 0},
		{429, "Retry-After: 7", said, ErrRate, true, 7 * time.Second},
		{429, "", body(map[string]any{"error": map[string]any{"code": "insufficient_quota", "message": "m"}}), ErrQuota, false, 0},
		{500, "", "oops", ErrServer, true, 0},
		{502, "", "<html><h1>Bad gateway</h1></html>", ErrServer, true, 0},
		{503, "retry-after-ms: 1500", "", ErrOverloaded, true, 1500 * time.Millisecond},
		{504, "", "", ErrServer, true, 0},
		{529, "", "", ErrOverloaded, true, 0},
		{529, "Retry-After: 3", `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`, ErrOverloaded, true, 3 * time.Second},
	} {
		for _, w := range wires {
			t.Run(fmt.Sprint(c.status, " ", c.header, " ", w.name), func(t *testing.T) {
				requests := 0
				p := w.connect(t, func(rw http.ResponseWriter, r *http.Request) {
					requests++
					if name, value, ok := strings.Cut(c.header, ": "); ok {
						rw.Header().Set(name, value)
					}
					rw.Header().Set("X-Request-Id", "req-1")
					rw.WriteHeader(c.status)
					_, _ = rw.Write([]byte(c.body)) // a client that is gone shows in the test
				})
				deltas, err := ask(t.Context(), p)
				checkContract(t, deltas, err)
				var e *Error
				if !errors.As(err, &e) || e.Kind != c.kind || e.Retryable != c.retryable || e.RetryAfter != c.wait || e.Status != c.status {
					t.Fatalf("got %+v", err)
				}
				if requests != 1 || e.RequestID != "req-1" || e.Message == "" || len(deltas) != 0 {
					t.Errorf("%d requests, %d deltas, error %+v", requests, len(deltas), e)
				}
				holdsNoKey(t, err)
			})
		}
	}
}

func TestCancelledRequestEndsSoon(t *testing.T) {
	why := errors.New("enough")
	for _, w := range wires {
		events, _ := w.encode(fullAnswer)
		for _, n := range []int{-1, 0, 4} {
			t.Run(fmt.Sprint(w.name, " ", n), func(t *testing.T) {
				ctx, cancel := context.WithCancelCause(t.Context())
				defer cancel(nil)
				p := w.connect(t, func(rw http.ResponseWriter, r *http.Request) {
					if n >= 0 {
						stream(events[:n]...)(rw, r)
					}
					cancel(why)
					<-r.Context().Done()
				})
				deltas, err := ask(ctx, p)
				checkContract(t, deltas, err)
				var e *Error
				if !errors.As(err, &e) || e.Kind != ErrCancelled || !errors.Is(err, why) || e.Retryable {
					t.Errorf("got %+v", err)
				}
			})
		}
	}
}

func TestReaderThatLeavesEndsTheRequest(t *testing.T) {
	for _, w := range wires {
		t.Run(w.name, func(t *testing.T) {
			events, end := w.encode(fullAnswer)
			gone := make(chan struct{})
			p := w.connect(t, func(rw http.ResponseWriter, r *http.Request) {
				stream(joinEvents(events[:end]))(rw, r)
				<-r.Context().Done()
				close(gone)
			})
			for d, err := range p.Stream(t.Context(), &Request{Model: "m", Items: []Item{user("hi")}}) {
				if err != nil {
					t.Fatal(err)
				}
				if d.Kind == TextDelta {
					break
				}
			}
			select {
			case <-gone:
			case <-time.After(10 * time.Second):
				t.Error("the server still writes")
			}
		})
	}
}

func TestOneConnectionServesManyTurns(t *testing.T) {
	for _, w := range wires {
		t.Run(w.name, func(t *testing.T) {
			events, _ := w.encode(fullAnswer)
			seen := map[string]bool{}
			p := w.connect(t, func(rw http.ResponseWriter, r *http.Request) {
				seen[r.RemoteAddr] = true
				stream(strings.SplitAfter(joinEvents(events), "\n\n")...)(rw, r)
			})
			for range 5 {
				if _, err := ask(t.Context(), p); err != nil {
					t.Fatal(err)
				}
			}
			if len(seen) != 1 {
				t.Errorf("%d connections for 5 turns", len(seen))
			}
		})
	}
}

func TestBusyServerIsAskedAgainUntilItAnswers(t *testing.T) {
	for _, w := range wires {
		events, end := w.encode(fullAnswer)
		for name, refuse := range map[string]http.HandlerFunc{
			"529": func(rw http.ResponseWriter, r *http.Request) { rw.WriteHeader(529) },
			"529 with a wait": func(rw http.ResponseWriter, r *http.Request) {
				rw.Header().Set("retry-after-ms", "5")
				rw.WriteHeader(529)
			},
			"cut":                 stream(joinEvents(events[:end])),
			"nothing":             stream(""),
			"broken connection":   func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
			"error in the stream": stream(w.failure("server_error", "sorry")),
		} {
			t.Run(w.name+" "+name, func(t *testing.T) {
				requests := 0
				p := w.connect(t, func(rw http.ResponseWriter, r *http.Request) {
					if requests++; requests <= 2 {
						refuse(rw, r)
						return
					}
					stream(joinEvents(events))(rw, r)
				})
				limiter := &Limiter{}
				retry := &Retry{MaxAttempts: 3, Base: time.Millisecond, Cap: time.Millisecond, Limiter: limiter}
				retries := 0
				for {
					if err := limiter.Wait(t.Context()); err != nil {
						t.Fatal(err)
					}
					deltas, err := ask(t.Context(), p)
					got := checkContract(t, deltas, err)
					if err == nil {
						if diff := cmp.Diff(fullAnswer.result(), got); diff != "" {
							t.Error(diff)
						}
						break
					}
					var e *Error
					if !errors.As(err, &e) {
						t.Fatal(err)
					}
					retries++
					delay, again := retry.Next(e, retries)
					if !again || delay > time.Second {
						t.Fatalf("after %d attempts: %+v, wait %v", retries, e, delay)
					}
				}
				if retries != 2 || requests != 3 {
					t.Errorf("%d retries, %d requests", retries, requests)
				}
			})
		}
	}
}
