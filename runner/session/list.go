package session

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

const (
	// headRecords is how far the prompt is looked for from the start of a log.
	headRecords = 64
	// nearTail and farTail are how far the last event is looked for from the
	// end: first there where it nearly always is, then beyond the longest event.
	nearTail = 64 << 10
	farTail  = 2 << 20
	// promptBytes bounds the first line of the prompt.
	promptBytes = 200
)

// Info is what a list says of one session. What a broken log does not tell is
// zero.
type Info struct {
	// ID names the session, Dir is its folder.
	ID, Dir string
	// Started is when its first event was made, or else when its folder last
	// changed.
	Started time.Time
	// Model is the id of the model, Cwd the folder of the run.
	Model, Cwd string
	// Status is that of the last run in the session: a status of run.finished,
	// running while somebody writes to it, or crashed.
	Status string
	// ExitCode is that of the last run; nil without a status of run.finished.
	ExitCode *int
	// Prompt is the first line of the prompt, at most 200 bytes. It is text
	// from outside: clean it before it reaches a terminal.
	Prompt string
	// Bytes is the size of the log and of its artifacts.
	Bytes int64
	// Problem says why the log cannot be read; it is empty for a good one.
	Problem string
}

// List returns all sessions, newest first. A session that cannot be read is in
// the list, with its problem. Its error is a fault of class Environment.
func List(state string) ([]Info, error) {
	entries, err := os.ReadDir(filepath.Join(state, sessionsName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, stateError("", err)
	}
	var infos []Info
	for _, e := range entries {
		if e.IsDir() && checkID(e.Name()) == nil {
			infos = append(infos, inspect(Dir(state, e.Name()), e.Name()))
		}
	}
	slices.SortStableFunc(infos, func(a, b Info) int {
		if n := b.Started.Compare(a.Started); n != 0 {
			return n
		}
		return strings.Compare(b.ID, a.ID)
	})
	return infos, nil
}

// Resolve returns the id of a session that exists: id itself, the only id that
// starts with it, or for "last" the one that started last. Its errors are
// faults of class Session, or Environment.
func Resolve(state, id string) (string, error) {
	if id == "last" {
		infos, err := List(state)
		if err != nil {
			return "", err
		}
		if len(infos) == 0 {
			return "", notFound("last")
		}
		return infos[0].ID, nil
	}
	if err := checkID(id); err != nil {
		return "", err
	}
	if info, err := os.Lstat(Dir(state, id)); err == nil && info.IsDir() {
		return id, nil
	}
	entries, err := os.ReadDir(filepath.Join(state, sessionsName))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", stateError(id, err)
	}
	var found []string
	for _, e := range entries {
		if e.IsDir() && strings.HasPrefix(e.Name(), id) && checkID(e.Name()) == nil {
			found = append(found, e.Name())
		}
	}
	if len(found) != 1 {
		return "", notFound(id)
	}
	return found[0], nil
}

// inspect reads as much of a session as its Info needs.
func inspect(dir, id string) Info {
	info := Info{ID: id, Dir: dir, Status: "crashed"}
	if st, err := os.Lstat(dir); err == nil {
		info.Started = st.ModTime()
	}
	f, err := os.OpenFile(filepath.Join(dir, logName), os.O_RDWR, 0)
	if err != nil {
		info.Problem = problem(err)
		return info
	}
	defer f.Close()
	size, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		info.Problem = problem(err)
		return info
	}
	info.Bytes = size + folderBytes(filepath.Join(dir, artifactsName))
	if err := info.readHead(f); err != nil {
		info.Problem = problem(err)
	}
	info.readTail(f, size)
	if info.ExitCode == nil && errors.Is(tryLock(f, shared), errLocked) {
		info.Status = "running"
	}
	return info
}

// problem is an error without the path, which the reader of a list knows.
func problem(err error) string {
	var p *fs.PathError
	if errors.As(err, &p) {
		return fmt.Sprintf("%s log: %v", p.Op, p.Err)
	}
	return err.Error()
}

// head are the fields of the first events that a list shows.
type head struct {
	TS    time.Time `json:"ts"`
	Model string    `json:"model"`
	Cwd   string    `json:"cwd"`
	Role  string    `json:"role"`
	Text  string    `json:"text"`
}

// readHead finds the first event and the prompt.
func (i *Info) readHead(f *os.File) error {
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return fmt.Errorf("read session log: %w", err)
	}
	r := newReader(f)
	for n := range headRecords {
		rec, err := r.Next()
		if errors.Is(err, io.EOF) {
			if n == 0 {
				return errors.New("the log holds no whole line")
			}
			return nil
		}
		if err != nil {
			return err
		}
		if i.noteHead(rec, n == 0) {
			return nil
		}
	}
	return nil
}

// noteHead takes what it can from one of the first records, and tells whether
// it was the prompt.
func (i *Info) noteHead(rec Record, first bool) bool {
	var h head
	if rec.Type == "" || json.Unmarshal(rec.Line, &h) != nil {
		return false
	}
	if first && !h.TS.IsZero() {
		i.Started = h.TS
	}
	switch rec.Type {
	case "run.started", "session.started":
		// session.started has the whole id of the model, run.started the folder.
		if h.Model != "" {
			i.Model = h.Model
		}
		if i.Cwd == "" {
			i.Cwd = h.Cwd
		}
	case "message":
		if h.Role == "user" {
			i.Prompt = firstLine(h.Text)
			return true
		}
	}
	return false
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	line = strings.TrimRight(line, " \t\r")
	if len(line) > promptBytes {
		line = strings.ToValidUTF8(line[:promptBytes-len("…")], "") + "…"
	}
	return line
}

// readTail finds out how the last run ended: its last event is run.finished,
// or it did not end.
func (i *Info) readTail(f *os.File, size int64) {
	for _, window := range []int64{nearTail, farTail} {
		from := max(0, size-window)
		data := make([]byte, size-from)
		n, err := f.ReadAt(data, from)
		if err != nil && !errors.Is(err, io.EOF) {
			i.Problem = problem(err)
			return
		}
		if i.noteTail(data[:n]) {
			return
		}
	}
}

// noteTail looks for the last event in the end of a log, and tells whether it
// has seen enough.
func (i *Info) noteTail(data []byte) bool {
	for len(data) > 0 {
		data = bytes.TrimSuffix(data, []byte{'\n'})
		at := bytes.LastIndexByte(data, '\n') + 1
		rec, ok := parse(data[at:])
		switch {
		case !ok:
			// A torn line belongs to a run that did not end, unless it is torn
			// only by the window.
			return at > 0
		case rec.Type != "":
			i.noteEnd(rec)
			return true
		}
		data = data[:at]
	}
	return false
}

func (i *Info) noteEnd(rec Record) {
	var end struct {
		Status   string `json:"status"`
		ExitCode int    `json:"exit_code"`
	}
	if rec.Type == "run.finished" && json.Unmarshal(rec.Line, &end) == nil && end.Status != "" {
		i.Status, i.ExitCode = end.Status, &end.ExitCode
	}
}

// folderBytes sums the files of one folder; what cannot be read counts nothing.
func folderBytes(dir string) int64 {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return 0
	}
	var sum int64
	for _, e := range entries {
		if info, err := e.Info(); err == nil && info.Mode().IsRegular() {
			sum += info.Size()
		}
	}
	return sum
}
