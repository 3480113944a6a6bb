// Package session keeps a run on disk: the event stream at full detail, the
// artifacts that its lines name, and what only the provider needs back.
//
// A session is one folder below <state>/sessions, readable by its owner alone,
// whatever the umask says:
//
//	<id>/events.jsonl   one line per event, append-only, one writer
//	<id>/artifacts/     what a line could not hold
//
// Session is the writer and an event.Sink; Reader reads a log again, also one
// that a crash has cut; List, Resolve and Remove manage the folders. A line is
// either an event or a private record, {"record":"keep","data":…}, which readers
// of the event stream skip and which never leaves the folder. What a resumed run
// makes of the lines is the business of the runner. This package writes to the
// disk and to nothing else.
package session

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"drover/output/event"
	"drover/output/fault"
	"drover/runner/internal/tree"
)

const (
	logName       = "events.jsonl"
	artifactsName = "artifacts"
	sessionsName  = "sessions"

	// syncEvery spaces the syncs at turn ends. Only a crash of the machine can
	// cost what was written in between; a crash of the process costs nothing.
	syncEvery = time.Second
)

// StateDir returns the folder of everything drover keeps: drover below
// XDG_STATE_HOME, or below ~/.local/state. It need not exist. Without either
// variable it is empty, which Create refuses.
func StateDir(getenv func(string) string) string {
	// The XDG specification has relative paths ignored.
	if dir := getenv("XDG_STATE_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "drover")
	}
	if home := getenv("HOME"); filepath.IsAbs(home) {
		return filepath.Join(home, ".local", "state", "drover")
	}
	return ""
}

// Session is a log that is open for writing. Its methods are safe for
// concurrent use.
type Session struct {
	id, dir string
	// ephemeral sessions have no file; their dir is made for the first artifact.
	ephemeral bool

	mu   sync.Mutex
	file *os.File
	// size is the length of the log up to the last whole line.
	size int64
	buf  []byte
	// broken is the first error; nothing is written after it.
	broken error
	closed bool
	// synced is when the latest sync began, by the events' own clock.
	synced time.Time
	dirty  bool
	// syncing is closed when the sync in the background, if any, has ended.
	syncing chan struct{}

	// held is how many bytes the artifacts written through it hold.
	held atomic.Int64
}

// ID returns the session's id.
func (s *Session) ID() string { return s.id }

// Dir returns the session's folder, absolute if the state folder is. It is
// empty for an ephemeral session.
func (s *Session) Dir() string {
	if s.ephemeral {
		return ""
	}
	return s.dir
}

// IsEphemeral tells whether the session keeps nothing.
func (s *Session) IsEphemeral() bool { return s.ephemeral }

// Ephemeral returns a session that keeps nothing: Emit and Keep do nothing,
// artifacts live in a temporary folder until Close.
func Ephemeral(id string) *Session { return &Session{id: id, ephemeral: true} }

// Create makes the folder of a new session and locks its log. The errors are
// faults: of class Session if the id is taken or is not one, else of class
// Environment.
func Create(state, id string) (*Session, error) {
	if err := checkID(id); err != nil {
		return nil, err
	}
	if state == "" {
		return nil, stateError(id, errors.New("neither XDG_STATE_HOME nor HOME is an absolute path"))
	}
	dir := Dir(state, id)
	for _, d := range []string{state, filepath.Dir(dir)} {
		if err := privateDir(d); err != nil {
			return nil, stateError(id, err)
		}
	}
	if err := os.Mkdir(dir, 0o700); errors.Is(err, fs.ErrExist) {
		return nil, &fault.Error{Code: "session_exists", What: fmt.Sprintf("session %q cannot be created", id),
			Why: "its folder is already there", Exit: fault.Session, Err: err}
	} else if err != nil {
		return nil, stateError(id, err)
	}
	s, err := begin(id, dir)
	if err != nil {
		_ = os.RemoveAll(dir) // the folder is ours and empty; the first error is the one that is told
		return nil, stateError(id, err)
	}
	return s, nil
}

// begin fills a new session folder.
func begin(id, dir string) (*Session, error) {
	if err := privateDir(dir); err != nil {
		return nil, err
	}
	if err := privateDir(filepath.Join(dir, artifactsName)); err != nil {
		return nil, err
	}
	f, err := createPrivate(filepath.Join(dir, logName), os.O_RDWR|os.O_APPEND)
	if err != nil {
		return nil, err
	}
	if err := lock(f); err != nil {
		_ = f.Close() // the lock's error is the one that is told
		return nil, fmt.Errorf("lock session log: %w", err)
	}
	return &Session{id: id, dir: dir, file: f}, nil
}

// Open locks the log of an earlier session and goes on behind its last whole
// line. What a crash left behind that line is cut off first, and returned. The
// errors are faults: of class Session if there is no such session, somebody
// else has it open, it holds no whole line, or its version is unknown; else of
// class Environment.
func Open(state, id string) (*Session, Damage, error) {
	if err := checkID(id); err != nil {
		return nil, Damage{}, err
	}
	dir := Dir(state, id)
	f, err := os.OpenFile(filepath.Join(dir, logName), os.O_RDWR|os.O_APPEND, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, Damage{}, notFound(id)
	}
	if err != nil {
		return nil, Damage{}, stateError(id, err)
	}
	s := &Session{id: id, dir: dir, file: f}
	torn, err := s.takeOver()
	if err != nil {
		_ = f.Close() // the first error is the one that is told
		return nil, Damage{}, err
	}
	return s, torn, nil
}

// takeOver locks an existing log and repairs it.
func (s *Session) takeOver() (Damage, error) {
	if err := lock(s.file); errors.Is(err, errLocked) {
		return Damage{}, lockedError(s.id)
	} else if err != nil {
		return Damage{}, stateError(s.id, fmt.Errorf("lock session log: %w", err))
	}
	// Somebody may have removed the session between the opening and the lock.
	if !isAt(s.file, filepath.Join(s.dir, logName)) {
		return Damage{}, notFound(s.id)
	}
	if err := s.file.Chmod(0o600); err != nil {
		return Damage{}, stateError(s.id, err)
	}
	return s.repair()
}

// isAt tells whether the open file is still the one at path.
func isAt(f *os.File, path string) bool {
	open, err := f.Stat()
	if err != nil {
		return false
	}
	there, err := os.Lstat(path)
	return err == nil && os.SameFile(open, there)
}

// Emit appends one event. After an error the log holds whole lines only, and
// takes no more.
func (s *Session) Emit(e event.Event) error {
	if s.ephemeral {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	line, err := event.AppendJSON(s.buf[:0], e)
	if err != nil {
		return fmt.Errorf("encode event: %w", err)
	}
	if err := s.writeLocked(line); err != nil {
		return err
	}
	if _, ok := e.Body.(event.TurnFinishedEvent); ok {
		s.syncSoonLocked(e.Time)
	}
	if s.synced.IsZero() {
		s.synced = e.Time
	}
	return nil
}

// keepRecord is a line that is no event.
type keepRecord struct {
	Record string `json:"record"`
	Data   any    `json:"data"`
}

// Keep appends a private record: what a provider needs back and nobody else
// should see. record is encoded as JSON.
func (s *Session) Keep(record any) error {
	if s.ephemeral {
		return nil
	}
	line, err := json.Marshal(keepRecord{Record: "keep", Data: record})
	if err != nil {
		return fmt.Errorf("encode record: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.writeLocked(line)
}

// writeLocked appends one line with one write. If that fails half-way, the
// half is taken back, so that the next reader finds whole lines.
func (s *Session) writeLocked(line []byte) error {
	if s.closed {
		return fmt.Errorf("write session log: %w", os.ErrClosed)
	}
	if s.broken != nil {
		return s.broken
	}
	if n := len(line); n == 0 || line[n-1] != '\n' {
		line = append(line, '\n')
	}
	s.buf = line
	if n, err := s.file.Write(line); err != nil {
		if n > 0 {
			if cut := s.file.Truncate(s.size); cut != nil {
				err = errors.Join(err, cut)
			}
		}
		s.broken = fmt.Errorf("write session log: %w", err)
		return s.broken
	}
	s.size += int64(len(line))
	s.dirty = true
	return nil
}

// syncSoonLocked begins a sync in the background, so that a run does not wait
// for the disk. Close waits for it.
func (s *Session) syncSoonLocked(now time.Time) {
	if s.synced.IsZero() || now.Sub(s.synced) < syncEvery || s.syncing != nil {
		return
	}
	s.synced, s.dirty = now, false
	done := make(chan struct{})
	s.syncing = done
	go func() { // Close waits for it
		err := s.file.Sync()
		s.mu.Lock()
		defer s.mu.Unlock()
		if err != nil && s.broken == nil {
			s.broken = fmt.Errorf("sync session log: %w", err)
		}
		s.syncing = nil
		close(done)
	}()
}

// Close brings the log to the disk and unlocks it. It returns the first error
// that the log has met. Of an ephemeral session it deletes the artifacts. It may
// be called twice.
func (s *Session) Close() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	s.closed = true
	waiting := s.syncing
	s.mu.Unlock()
	if waiting != nil {
		<-waiting
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ephemeral {
		if s.dir == "" {
			return nil
		}
		return tree.Remove(s.dir)
	}
	err := s.broken
	if err == nil && s.dirty {
		if err = s.file.Sync(); err != nil {
			err = fmt.Errorf("sync session log: %w", err)
		}
	}
	// Closing the file drops its lock.
	if closing := s.file.Close(); err == nil && closing != nil {
		err = fmt.Errorf("close session log: %w", closing)
	}
	return err
}

// Dir returns the folder of a session. It need not exist; id must be valid.
func Dir(state, id string) string { return filepath.Join(state, sessionsName, id) }

// privateDir makes dir with its parents, or tightens it, to mode 0700.
func privateDir(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("create state folder: %w", err)
	}
	if err := os.Chmod(dir, 0o700); err != nil {
		return fmt.Errorf("protect state folder: %w", err)
	}
	return nil
}

// createPrivate creates a file that must not exist, with mode 0600.
func createPrivate(path string, flags int) (*os.File, error) {
	f, err := os.OpenFile(path, flags|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, fmt.Errorf("create session file: %w", err)
	}
	if err := f.Chmod(0o600); err != nil {
		_ = f.Close() // the first error is the one that is told
		return nil, fmt.Errorf("protect session file: %w", err)
	}
	return f, nil
}

// checkID refuses what cannot be the name of a session folder.
func checkID(id string) error {
	ok := id != "" && len(id) <= 128 && id[0] != '-'
	for _, r := range id {
		ok = ok && (r == '_' || r == '-' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z')
	}
	if ok {
		return nil
	}
	return &fault.Error{Code: "session_id", What: fmt.Sprintf("%q is not a session id", shorten(id)),
		Why: "an id consists of letters, digits, _ and -", Fix: "see: drover sessions list", Exit: fault.Session}
}

func shorten(s string) string {
	if len(s) > 60 {
		return strings.ToValidUTF8(s[:60], "") + "…"
	}
	return s
}

func notFound(id string) error {
	return &fault.Error{Code: "session_not_found", What: fmt.Sprintf("session %q is not there", id),
		Fix: "see: drover sessions list", Exit: fault.Session}
}

func lockedError(id string) error {
	return &fault.Error{Code: "session_locked", What: fmt.Sprintf("session %q cannot be opened", id),
		Why: "another drover is writing to it", Fix: "wait until that run has ended, or fork the session", Exit: fault.Session, Retryable: true}
}

func stateError(id string, err error) error {
	return &fault.Error{Code: "state_folder", What: fmt.Sprintf("session %q cannot be kept", id), Why: err.Error(),
		Fix: "set XDG_STATE_HOME to a folder that can be written, or use --ephemeral", Exit: fault.Environment, Err: err}
}
