package session

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"drover/output/event"
	"drover/output/fault"
)

// maxLine bounds one line of a log in bytes. Events stay far below; private
// records can hold what a provider sent.
const maxLine = 64 << 20

// Damage is a stretch of a log that holds no record, such as a line that a
// crash has cut. The zero value is no damage.
type Damage struct {
	// Offset is where it starts in the log, in bytes from 0; Bytes is its length.
	Offset, Bytes int64
}

// Record is one line of a log.
type Record struct {
	// Offset is where the line starts in the log.
	Offset int64
	// Type is the event's type. It is empty for a private record.
	Type string
	// Kept is the value of a private record; nil for an event.
	Kept json.RawMessage
	// Line is the line without its newline, valid until the next call.
	Line []byte
}

// Reader reads a log from its start. It takes no lock: a log that grows can be
// read up to its last whole line.
type Reader struct {
	file   *os.File
	buf    *bufio.Reader
	line   []byte
	offset int64
	damage []Damage
}

// OpenReader opens the log of a session for reading. Its errors are faults: of
// class Session if there is no such session, else of class Environment.
func OpenReader(state, id string) (*Reader, error) {
	if err := checkID(id); err != nil {
		return nil, err
	}
	f, err := os.Open(filepath.Join(Dir(state, id), logName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, notFound(id)
	}
	if err != nil {
		return nil, stateError(id, err)
	}
	return newReader(f), nil
}

func newReader(f *os.File) *Reader {
	return &Reader{file: f, buf: bufio.NewReaderSize(f, 64<<10)}
}

// Close closes the log.
func (r *Reader) Close() error { return r.file.Close() }

// Damage returns what Next has passed over so far, in order.
func (r *Reader) Damage() []Damage { return r.damage }

// Next returns the next record, or io.EOF behind the last one. Lines that are
// no records are passed over, see Damage.
func (r *Reader) Next() (Record, error) {
	for {
		start := r.offset
		err := r.readLine()
		if err != nil && !errors.Is(err, io.EOF) {
			return Record{}, fmt.Errorf("read session log: %w", err)
		}
		if r.offset == start {
			return Record{}, io.EOF
		}
		// A last line without its newline can be whole: only the newline is
		// missing then.
		if rec, ok := parse(r.line); ok {
			rec.Offset = start
			return rec, nil
		}
		r.damage = append(r.damage, Damage{Offset: start, Bytes: r.offset - start})
	}
}

// readLine reads one line into r.line, without its newline. Of a line over
// maxLine it keeps nothing, which parse then refuses.
func (r *Reader) readLine() error {
	r.line = r.line[:0]
	tooLong := false
	for {
		part, err := r.buf.ReadSlice('\n')
		r.offset += int64(len(part))
		tooLong = tooLong || len(r.line)+len(part) > maxLine
		if tooLong {
			r.line = r.line[:0]
		} else {
			r.line = append(r.line, part...)
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if n := len(r.line); n > 0 && r.line[n-1] == '\n' {
			r.line = r.line[:n-1]
		}
		return err
	}
}

// parse tells what kind of record a line is; false is none.
func parse(line []byte) (Record, bool) {
	var head struct {
		Type   string          `json:"type"`
		Record string          `json:"record"`
		Data   json.RawMessage `json:"data"`
	}
	if len(line) == 0 || line[0] != '{' || json.Unmarshal(line, &head) != nil {
		return Record{}, false
	}
	switch {
	case head.Record == "keep" && head.Type == "" && head.Data != nil:
		return Record{Kept: head.Data, Line: line}, true
	case head.Record == "" && head.Type != "":
		return Record{Type: head.Type, Line: line}, true
	}
	// A kind of record that a later version writes is left alone.
	return Record{Line: line}, head.Record != ""
}

// repair reads the whole log, cuts off what follows the last record, and ends
// that record with a newline if only this was missing. Damage before the last
// record is left as it is: readers pass over it.
func (s *Session) repair() (Damage, error) {
	r := newReader(s.file)
	var end int64
	for first := true; ; first = false {
		rec, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return Damage{}, stateError(s.id, err)
		}
		if v := lineVersion(rec); first && v > event.Version {
			return Damage{}, &fault.Error{Code: "session_version", What: fmt.Sprintf("session %q cannot be opened", s.id),
				Why: fmt.Sprintf("its log has version %d, this drover knows %d", v, event.Version),
				Fix: "use the drover that wrote it, or a newer one", Exit: fault.Session}
		}
		end = r.offset
	}
	if end == 0 {
		return Damage{}, &fault.Error{Code: "session_empty", What: fmt.Sprintf("session %q cannot be opened", s.id),
			Why: "its log holds no whole line", Fix: "remove it: drover sessions rm " + s.id, Exit: fault.Session}
	}
	return s.cutAt(end, r.offset)
}

// lineVersion is the version that an event's line names; 0 is none.
func lineVersion(rec Record) int {
	var head struct {
		V int `json:"v"`
	}
	if rec.Type == "" || json.Unmarshal(rec.Line, &head) != nil {
		return 0
	}
	return head.V
}

// cutAt makes the log end with the record that ends at end.
func (s *Session) cutAt(end, size int64) (Damage, error) {
	var torn Damage
	if end < size {
		torn = Damage{Offset: end, Bytes: size - end}
		if err := s.file.Truncate(end); err != nil {
			return Damage{}, stateError(s.id, fmt.Errorf("cut torn line: %w", err))
		}
	}
	s.size = end
	var last [1]byte
	if _, err := s.file.ReadAt(last[:], end-1); err != nil {
		return Damage{}, stateError(s.id, fmt.Errorf("read session log: %w", err))
	}
	if last[0] != '\n' {
		if _, err := s.file.Write([]byte{'\n'}); err != nil {
			return Damage{}, stateError(s.id, fmt.Errorf("end last line: %w", err))
		}
		s.size++
	}
	s.dirty = true
	return torn, nil
}
