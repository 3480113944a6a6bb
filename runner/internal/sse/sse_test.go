package sse

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
)

// slice is an io.Reader of pieces.
type slice struct {
	pieces [][]byte
	err    error
}

func (s *slice) Read(p []byte) (int, error) {
	for len(s.pieces) > 0 && len(s.pieces[0]) == 0 {
		s.pieces = s.pieces[1:]
	}
	if len(s.pieces) == 0 {
		if s.err != nil {
			return 0, s.err
		}
		return 0, io.EOF
	}
	n := copy(p, s.pieces[0])
	s.pieces[0] = s.pieces[0][n:]
	return n, nil
}

type seen struct{ Type, Data, ID string }

// all reads a stream to its end. The event that an error came with is the last.
func all(r io.Reader, limit int) (events []seen, err error) {
	s := NewReader(r, limit)
	for {
		ev, err := s.Next()
		if err == nil || len(ev.Data) > 0 {
			events = append(events, seen{ev.Type, string(ev.Data), ev.ID})
		}
		if err != nil {
			return events, err
		}
	}
}

// cuts are ways to take a stream apart.
var cuts = map[string]func([]byte) io.Reader{
	"whole":  func(b []byte) io.Reader { return bytes.NewReader(b) },
	"bytes":  func(b []byte) io.Reader { return iotest.OneByteReader(bytes.NewReader(b)) },
	"halves": func(b []byte) io.Reader { return iotest.HalfReader(bytes.NewReader(b)) },
	"EOF with data": func(b []byte) io.Reader {
		return iotest.DataErrReader(bytes.NewReader(b))
	},
	"after each line": func(b []byte) io.Reader {
		return &slice{pieces: bytes.SplitAfter(b, []byte("\n"))}
	},
	"after each CR": func(b []byte) io.Reader {
		return &slice{pieces: bytes.SplitAfter(b, []byte("\r"))}
	},
}

func TestEventsAreTheSameInEveryChunking(t *testing.T) {
	long := strings.Repeat("x", 65537)
	mega := strings.Repeat("é", 1<<19)
	for _, c := range []struct {
		name, in string
		want     []seen
		err      error
	}{
		{"LF", "data: a\n\ndata: b\n\n", []seen{{Data: "a"}, {Data: "b"}}, io.EOF},
		{"CR LF", "data: a\r\n\r\ndata: b\r\n\r\n", []seen{{Data: "a"}, {Data: "b"}}, io.EOF},
		{"CR", "data: a\r\rdata: b\r\r", []seen{{Data: "a"}, {Data: "b"}}, io.EOF},
		{"mixed ends", "data: a\r\n\ndata: b\r\r\ndata: c\n\r", []seen{{Data: "a"}, {Data: "b"}, {Data: "c"}}, io.EOF},
		{"no space", "data:a\nevent:t\n\n", []seen{{Type: "t", Data: "a"}}, io.EOF},
		{"only one space goes", "data:  a \n\n", []seen{{Data: " a "}}, io.EOF},
		{"several lines", "data: a\ndata\ndata:\ndata: b\n\n", []seen{{Data: "a\n\n\nb"}}, io.EOF},
		{"several long lines", "data: " + long + "\ndata: " + long + "\n\n", []seen{{Data: long + "\n" + long}}, io.EOF},
		{"comments", ": hi\n\n:\n\ndata: a\n: in between\n:\ndata: b\n\n: bye\n\n", []seen{{Data: "a\nb"}}, io.EOF},
		{"type and id", "event: x\nid: 7\ndata: a\n\ndata: b\n\nid\ndata: c\n\n", []seen{{"x", "a", "7"}, {"", "b", "7"}, {"", "c", ""}}, io.EOF},
		{"id with NUL", "id: a\x00\ndata: a\n\n", []seen{{Data: "a"}}, io.EOF},
		{"byte order mark", "\ufeffdata: a\n\n", []seen{{Data: "a"}}, io.EOF},
		{"only one byte order mark", "\ufeff\ufeffdata: a\n\ndata: b\n\n", []seen{{Data: "b"}}, io.EOF},
		{"unknown fields", "retry: 5\nfoo: bar\nfoo\n DATA: x\ndata: a\n\n", []seen{{Data: "a"}}, io.EOF},
		{"empty data", "data\n\ndata:\n\n", []seen{{}, {}}, io.EOF},
		{"type without data", "event: error\n\n", []seen{{Type: "error"}}, io.EOF},
		{"blank lines", "\n\r\n\n\ndata: a\n\n\n\n", []seen{{Data: "a"}}, io.EOF},
		{"nothing", "", nil, io.EOF},
		{"65537 bytes", "data: " + long + "\n\n", []seen{{Data: long}}, io.EOF},
		{"1 MiB", "data: " + mega + "\n\ndata: b\n\n", []seen{{Data: mega}, {Data: "b"}}, io.EOF},
		{"characters", "data: ü文🙂\n\n", []seen{{Data: "ü文🙂"}}, io.EOF},
		{"no blank line at the end", "data: a\n\ndata: b\n", []seen{{Data: "a"}, {Data: "b"}}, io.ErrUnexpectedEOF},
		{"no end of the last line", "data: a\n\ndata: b", []seen{{Data: "a"}, {Data: "b"}}, io.ErrUnexpectedEOF},
		{"cut in a name", "data: a\n\nda", []seen{{Data: "a"}}, io.ErrUnexpectedEOF},
		{"cut in a comment", "data: a\n\n: wait", []seen{{Data: "a"}}, io.EOF},
		{"cut after a type", "data: a\n\nevent: x\n", []seen{{Data: "a"}}, io.ErrUnexpectedEOF},
	} {
		for name, cut := range cuts {
			if name == "bytes" && len(c.in) > 1<<18 {
				continue
			}
			t.Run(c.name+" "+name, func(t *testing.T) {
				got, err := all(cut([]byte(c.in)), 16<<20)
				if !errors.Is(err, c.err) {
					t.Errorf("error %v, want %v", err, c.err)
				}
				if diff := cmp.Diff(c.want, got); diff != "" {
					t.Errorf("events (-want +got):\n%.2000s", diff)
				}
			})
		}
	}
}

func TestLineThatIsCompleteIsNotWaitedBehind(t *testing.T) {
	// The second half of CR LF must not hold an event back.
	for _, in := range []string{"data: a\r\r", "data: a\r\n\r", "data: a\n\n"} {
		pr, pw := io.Pipe()
		go func() { // ends when the pipe is closed below
			_, _ = io.WriteString(pw, in)
		}()
		ev, err := NewReader(pr, 100).Next()
		if err != nil || string(ev.Data) != "a" {
			t.Errorf("%q: got %q, %v", in, ev.Data, err)
		}
		_ = pr.Close()
	}
}

func TestEventsBeyondTheLimitAreRefused(t *testing.T) {
	for _, c := range []struct {
		name, in string
		large    bool
	}{
		{"just fits", "data: " + strings.Repeat("x", 100) + "\n\n", false},
		{"line", "data:" + strings.Repeat("x", 101) + "\n\n", true},
		{"comment", ":" + strings.Repeat("x", 1000) + "\n\n", true},
		{"line without end", strings.Repeat("x", 1000), true},
		{"sum of lines", strings.Repeat("data: 123456789\n", 11) + "\n", true},
		{"many small events", strings.Repeat("data: 123456789\n\n", 100), false},
		{"many blank data lines", strings.Repeat("data\n", 102) + "\n", true},
	} {
		for name, cut := range cuts {
			t.Run(c.name+" "+name, func(t *testing.T) {
				r := NewReader(cut([]byte(c.in)), 100)
				var err error
				for err == nil {
					_, err = r.Next()
				}
				if errors.Is(err, ErrTooLarge) != c.large {
					t.Errorf("got %v", err)
				}
				if _, again := r.Next(); again == nil {
					t.Error("the reader goes on after its end")
				}
			})
		}
	}
}

func TestErrorOfTheSourceIsPassedOn(t *testing.T) {
	broken := errors.New("reset")
	got, err := all(&slice{pieces: [][]byte{[]byte("data: a\n\ndata: b\n")}, err: broken}, 100)
	if err != broken || len(got) != 1 {
		t.Errorf("got %v, %v", got, err)
	}
	if _, err := all(iotest.ErrReader(broken), 100); err != broken {
		t.Errorf("got %v", err)
	}
	if _, err := all(stuck{}, 100); err != io.ErrNoProgress {
		t.Errorf("got %v", err)
	}
}

type stuck struct{}

func (stuck) Read([]byte) (int, error) { return 0, nil }

func FuzzChunking(f *testing.F) {
	for _, s := range []string{
		"data: a\n\ndata: b\n\n", "\ufeffevent: x\r\ndata: a\r\r\n:c\rid: 1\n\n", "data\ndata: é\n\ndata: b", "\r\n\r\r\n", "event: e\n\n",
	} {
		f.Add([]byte(s), uint16(1))
		f.Add([]byte(s), uint16(0x35a7))
	}
	f.Fuzz(func(t *testing.T, data []byte, seed uint16) {
		const limit = 64
		want, wantErr := all(bytes.NewReader(data), limit)
		s := &slice{}
		for rest, x := data, uint32(seed)|1; len(rest) > 0; {
			x = x*1664525 + 1013904223
			n := min(len(rest), int(x>>24)%9)
			s.pieces = append(s.pieces, rest[:n:n])
			rest = rest[n:]
		}
		got, err := all(s, limit)
		if fmt.Sprint(err) != fmt.Sprint(wantErr) || !cmp.Equal(want, got) {
			t.Fatalf("got %q, %v\nwant %q, %v", got, err, want, wantErr)
		}
		for _, e := range got {
			if len(e.Data) > limit+len("data: ") || strings.ContainsAny(e.Data, "\r") {
				t.Fatalf("event %q", e)
			}
		}
	})
}

func BenchmarkReader(b *testing.B) {
	for _, c := range []struct {
		name, event string
	}{
		{"small", `data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"content":"word "},"finish_reason":null}]}` + "\n\n"},
		{"typed", "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"word \"}}\n\n"},
		{"1 MiB", "data: " + strings.Repeat("x", 1<<20) + "\n\n"},
	} {
		b.Run(c.name, func(b *testing.B) {
			n := max(1, 20000/len(c.event))
			stream := []byte(strings.Repeat(c.event, n))
			src := bytes.NewReader(nil)
			loop := &endless{stream: stream, src: src}
			r := NewReader(loop, 16<<20)
			b.SetBytes(int64(len(c.event)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := r.Next(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// endless repeats a stream.
type endless struct {
	stream []byte
	src    *bytes.Reader
}

func (e *endless) Read(p []byte) (int, error) {
	if e.src.Len() == 0 {
		e.src.Reset(e.stream)
	}
	return e.src.Read(p)
}
