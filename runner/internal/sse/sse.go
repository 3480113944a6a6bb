// Package sse reads server-sent events.
//
// A Reader takes bytes apart into Events as the WHATWG event stream format
// defines them: lines end with LF, CR or CR LF, comments are skipped, several
// data lines are joined. It knows nothing of HTTP and of what the data mean, it
// never reconnects, and it starts no goroutine.
package sse

import (
	"bytes"
	"errors"
	"fmt"
	"io"
)

// ErrTooLarge is the error of an event whose data, or of a line that, is beyond
// the reader's limit.
var ErrTooLarge = errors.New("event too large")

// readSize is how much is read at once: about what one wake-up of a fast stream
// brings.
const readSize = 32 << 10

// maxTypes bounds the event types that are remembered to save allocations.
const maxTypes = 64

// Event is one event.
type Event struct {
	// Type is the value of the event field, "" if there was none.
	Type string
	// Data are the data lines, joined by LF. They are valid until the next
	// call of Next.
	Data []byte
	// ID is the last id that the stream has set.
	ID string
}

// Reader reads events from a stream. Its buffers are reused: a stream of events
// of ordinary size allocates nothing.
type Reader struct {
	src io.Reader
	max int
	err error

	// buf[pos:end] is read and not consumed; buf[pos:scanned] holds no end of
	// a line.
	buf               []byte
	pos, scanned, end int
	// skipLF says that a CR ended the last line: an LF that follows is its
	// second half.
	skipLF bool
	begun  bool

	// data are the data of the open event. While they are one line they stay
	// where they were read and shared is set.
	data    []byte
	shared  bool
	hasData bool
	typ, id string
	types   map[string]string
	// spare is the buffer of data that had to be copied.
	spare []byte
}

// NewReader returns a reader of src. maxEvent bounds the data of one event and
// each line, in bytes.
func NewReader(src io.Reader, maxEvent int) *Reader {
	return &Reader{src: src, max: maxEvent, types: map[string]string{}}
}

// Next returns the next event that has data or a type. At the end of the stream
// it returns io.EOF, and in the middle of an event io.ErrUnexpectedEOF together
// with what came of it. Other errors are those of the source, or wrap
// ErrTooLarge.
func (r *Reader) Next() (Event, error) {
	r.data, r.hasData, r.shared, r.typ = nil, false, false, ""
	for {
		line, err := r.line()
		if err != nil {
			return r.broken(line, err)
		}
		if len(line) > 0 {
			if err := r.field(line); err != nil {
				return Event{}, r.fail(err)
			}
			continue
		}
		if r.hasData || r.typ != "" {
			return Event{Type: r.typ, Data: r.data, ID: r.id}, nil
		}
	}
}

func (r *Reader) fail(err error) error {
	r.err = err
	r.pos, r.scanned, r.end = 0, 0, 0
	return err
}

// broken ends the stream in the middle of a line or between two.
func (r *Reader) broken(rest []byte, err error) (Event, error) {
	if err != io.EOF {
		return Event{}, err
	}
	if len(rest) > 0 && rest[0] != ':' {
		if err := r.field(rest); err != nil {
			return Event{}, r.fail(err)
		}
	} else if !r.hasData && r.typ == "" {
		return Event{}, io.EOF
	}
	return Event{Type: r.typ, Data: r.data, ID: r.id}, io.ErrUnexpectedEOF
}

// line returns the next line without its end. At the end of the stream it
// returns io.EOF and the unfinished line. The bytes are valid until the next
// call.
func (r *Reader) line() ([]byte, error) {
	for {
		if r.skipLF && r.pos < r.end {
			r.skipLF = false
			if r.buf[r.pos] == '\n' {
				r.pos++
				r.scanned = r.pos
			}
		}
		if n := lineEnd(r.buf[r.scanned:r.end]); n >= 0 {
			at := r.scanned + n
			if at-r.pos > r.maxLine() {
				return nil, r.fail(r.lineTooLarge())
			}
			line := r.buf[r.pos:at]
			r.skipLF = r.buf[at] == '\r'
			r.pos = at + 1
			r.scanned = r.pos
			return r.first(line), nil
		}
		r.scanned = r.end
		if r.end-r.pos > r.maxLine() {
			return nil, r.fail(r.lineTooLarge())
		}
		if r.err != nil {
			rest := r.first(r.buf[r.pos:r.end])
			r.pos = r.end
			return rest, r.err
		}
		r.fill()
	}
}

// maxLine bounds every line, also those that are skipped: a comment without end
// would fill the memory all the same.
func (r *Reader) maxLine() int { return r.max + len("data: ") }

func (r *Reader) lineTooLarge() error {
	return fmt.Errorf("read line: %w: more than %d bytes", ErrTooLarge, r.max)
}

// first cuts the byte order mark that a stream may begin with.
func (r *Reader) first(line []byte) []byte {
	if r.begun {
		return line
	}
	r.begun = true
	return bytes.TrimPrefix(line, []byte("\xef\xbb\xbf"))
}

// lineEnd returns the index of the first CR or LF, or -1.
func lineEnd(b []byte) int {
	n := bytes.IndexByte(b, '\n')
	if n >= 0 {
		b = b[:n]
	}
	if cr := bytes.IndexByte(b, '\r'); cr >= 0 {
		return cr
	}
	return n
}

// fill reads once. It reads no more than readSize, so that looking for the end
// of a line never looks twice at much.
func (r *Reader) fill() {
	if r.shared {
		// The open event's data would move.
		r.spare = append(r.spare[:0], r.data...)
		r.data, r.shared = r.spare, false
	}
	if r.pos > 0 {
		copy(r.buf, r.buf[r.pos:r.end])
		r.end -= r.pos
		r.scanned -= r.pos
		r.pos = 0
	}
	if len(r.buf)-r.end < readSize {
		grown := make([]byte, max(2*len(r.buf), readSize+r.end))
		copy(grown, r.buf[:r.end])
		r.buf = grown
	}
	for range 100 {
		n, err := r.src.Read(r.buf[r.end : r.end+readSize])
		r.end += n
		r.err = err
		if n > 0 || err != nil {
			return
		}
	}
	r.err = io.ErrNoProgress
}

// field takes one line that is not blank.
func (r *Reader) field(line []byte) error {
	name, value, _ := bytes.Cut(line, []byte(":"))
	value = bytes.TrimPrefix(value, []byte(" "))
	switch string(name) {
	case "data":
		return r.addData(value)
	case "event":
		r.typ = r.intern(value)
	case "id":
		if bytes.IndexByte(value, 0) < 0 && string(value) != r.id {
			r.id = string(value)
		}
	}
	return nil
}

func (r *Reader) addData(value []byte) error {
	size := len(value)
	if r.hasData {
		size += len(r.data) + 1
	}
	if size > r.max {
		return fmt.Errorf("read event: %w: more than %d bytes", ErrTooLarge, r.max)
	}
	if !r.hasData {
		r.data, r.hasData, r.shared = value, true, true
		return nil
	}
	if r.shared {
		r.spare = append(r.spare[:0], r.data...)
		r.data, r.shared = r.spare, false
	}
	r.data = append(append(r.data, '\n'), value...)
	r.spare = r.data
	return nil
}

// intern returns value as a string without allocating for the few types that
// a stream repeats.
func (r *Reader) intern(value []byte) string {
	if s, ok := r.types[string(value)]; ok {
		return s
	}
	s := string(value)
	if len(r.types) < maxTypes {
		r.types[s] = s
	}
	return s
}
