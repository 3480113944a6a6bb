// Package store keeps list jobs in a database: SQLite in one file, or
// PostgreSQL where several machines share a job.
//
// It holds three things: what a job is (Job), its rows with what became of them
// (Row), and the processes that work on it (workers, with heartbeats). River's
// own tables, which say what is to be done next, lie in the same database, so
// that a row and its place in the queue change in one transaction. Every change
// of a row is conditional on the state that the caller believes in; that is what
// makes a report count once. The package runs no agent and emits no event.
package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver "pgx"
	"github.com/riverqueue/river/riverdriver"
	"github.com/riverqueue/river/riverdriver/riverdatabasesql"
	"github.com/riverqueue/river/riverdriver/riversqlite"
	"github.com/riverqueue/river/rivermigrate"
	_ "modernc.org/sqlite" // the driver "sqlite"

	"drover/output/fault"
)

// FileName is the database of an embedded job, in the job's folder.
const FileName = "job.db"

// Store is an open database. Its methods are safe for concurrent use.
type Store struct {
	db *sql.DB
	// postgres tells the two dialects apart.
	postgres bool
	// dir is the folder of an embedded job, "" for PostgreSQL.
	dir  string
	lock *os.File
}

// OpenFolder opens the database in the folder of an embedded job. With work set
// it makes both if they are not there, and takes the folder's lock, which
// one process has at a time: with it comes the right to run rows, and rows that
// a dead process left running are set free. Without it the job can be looked at
// and asked to stop. Errors are faults of class Environment, or Session when
// another process has the lock.
func OpenFolder(ctx context.Context, dir string, work bool) (*Store, error) {
	s := &Store{dir: dir}
	if work {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, stateFault(dir, err)
		}
		var err error
		if s.lock, err = takeLock(filepath.Join(dir, "lock")); err != nil {
			return nil, lockFault(dir, err)
		}
	} else if _, err := os.Stat(filepath.Join(dir, FileName)); err != nil {
		return nil, stateFault(dir, err)
	}
	if err := s.openFile(ctx); err != nil {
		_ = s.Close() // the first error is the one that is told
		return nil, stateFault(dir, err)
	}
	return s, nil
}

// Forget removes the database in the folder of an embedded job, also one that
// cannot be read. The lock keeps a job that is being run from being forgotten.
// Errors are as those of OpenFolder.
func Forget(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return stateFault(dir, err)
	}
	lock, err := takeLock(lockPath(dir))
	if err != nil {
		return lockFault(dir, err)
	}
	defer lock.Close()
	for _, suffix := range []string{"", "-wal", "-shm", "-journal"} {
		if err := os.Remove(filepath.Join(dir, FileName+suffix)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return stateFault(dir, err)
		}
	}
	return nil
}

// openFile opens the SQLite file. One connection serves all: SQLite has one
// writer anyway, and waiting in line here is cheaper than waiting for its lock.
// Not every commit waits for the disk, only those of Tx do: what was reported
// once must survive a power cut, while a claim that is lost costs nothing.
func (s *Store) openFile(ctx context.Context) error {
	q := url.Values{"_txlock": {"immediate"}, "_pragma": {
		"busy_timeout(20000)", "journal_mode(WAL)", "synchronous(NORMAL)", "foreign_keys(OFF)", "wal_autocheckpoint(2000)",
	}}
	name := (&url.URL{Scheme: "file", Opaque: (&url.URL{Path: filepath.Join(s.dir, FileName)}).EscapedPath(), RawQuery: q.Encode()}).String()
	db, err := sql.Open("sqlite", name)
	if err != nil {
		return err
	}
	db.SetMaxOpenConns(1)
	s.db = db
	if s.lock == nil {
		return s.db.PingContext(ctx)
	}
	if err := s.migrate(ctx); err != nil {
		return err
	}
	return s.setFree(ctx)
}

// setFree gives the rows of a process that is dead back to the queue. Whoever
// has the lock knows that no other process runs any.
func (s *Store) setFree(ctx context.Context) error {
	return s.Tx(ctx, func(tx *sql.Tx) error {
		for _, q := range []string{
			"UPDATE drover_row SET status='pending', lost=lost+1, worker='' WHERE status='running'",
			// What was to wait need not: nobody remembers why.
			"UPDATE river_job SET state='available', scheduled_at='2000-01-01 00:00:00' WHERE state IN ('running', 'scheduled', 'retryable') OR state='available' AND scheduled_at>datetime('now', 'subsec')",
			"DELETE FROM river_leader",
		} {
			if _, err := tx.ExecContext(ctx, q); err != nil {
				return err
			}
		}
		return nil
	})
}

// OpenPostgres connects to a PostgreSQL database, as given by a postgres:// URL,
// and brings its tables up to date. Errors are faults of class Environment; the
// password of the URL is in none of them.
func OpenPostgres(ctx context.Context, address string) (*Store, error) {
	db, err := sql.Open("pgx", address)
	if err != nil {
		return nil, postgresFault(address, err)
	}
	db.SetMaxOpenConns(24)
	db.SetConnMaxIdleTime(time.Minute)
	s := &Store{db: db, postgres: true}
	if err := s.migrate(ctx); err != nil {
		_ = s.Close() // the first error is the one that is told
		return nil, postgresFault(address, err)
	}
	return s, nil
}

// Embedded tells whether the store is the file of one job.
func (s *Store) Embedded() bool { return !s.postgres }

// Dir is the folder of an embedded job, "" for PostgreSQL.
func (s *Store) Dir() string { return s.dir }

// Close closes the database and gives the lock back.
func (s *Store) Close() error {
	var err error
	if s.db != nil {
		err = s.db.Close()
	}
	if s.lock != nil {
		err = errors.Join(err, s.lock.Close())
	}
	return err
}

// LongAgo is when rows that may run at once are due. It is no time of day: a
// clock that is set back would else keep them waiting.
func LongAgo() time.Time { return time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC) }

// Driver is River's driver for the database.
func (s *Store) Driver() riverdriver.Driver[*sql.Tx] {
	if s.postgres {
		return riverdatabasesql.New(s.db)
	}
	return riversqlite.New(s.db)
}

// Tx runs do in a transaction. When it returns nil, what do has changed, and
// everything that was committed before, is on the disk.
func (s *Store) Tx(ctx context.Context, do func(tx *sql.Tx) error) error {
	conn, err := s.db.Conn(ctx)
	if err != nil {
		return fmt.Errorf("begin transaction: %w", err)
	}
	defer conn.Close()
	if !s.postgres {
		if _, err := conn.ExecContext(ctx, "PRAGMA synchronous=FULL"); err != nil {
			return fmt.Errorf("begin transaction: %w", err)
		}
		defer conn.ExecContext(context.WithoutCancel(ctx), "PRAGMA synchronous=NORMAL") //nolint:errcheck // the next commit is only slower
	}
	tx, err := conn.BeginTx(ctx, nil)
	if err != nil {
		return fmt.Errorf("begin transaction: %w", err)
	}
	if err := do(tx); err != nil {
		_ = tx.Rollback() // why it failed is known
		return err
	}
	if err := tx.Commit(); err != nil {
		return fmt.Errorf("commit: %w", err)
	}
	return nil
}

// migrate creates and updates the tables. Several processes may start at once
// on PostgreSQL: one migrates, the others wait.
func (s *Store) migrate(ctx context.Context) error {
	if s.postgres {
		conn, err := s.db.Conn(ctx)
		if err != nil {
			return err
		}
		defer conn.Close()
		if _, err := conn.ExecContext(ctx, "SELECT pg_advisory_lock(7013141)"); err != nil {
			return err
		}
		defer conn.ExecContext(context.WithoutCancel(ctx), "SELECT pg_advisory_unlock(7013141)") //nolint:errcheck // the lock ends with the connection
	}
	if current, err := s.current(ctx); err == nil && current {
		return nil
	}
	m, err := rivermigrate.New(s.Driver(), &rivermigrate.Config{Logger: quiet})
	if err != nil {
		return fmt.Errorf("prepare the queue: %w", err)
	}
	if _, err := m.Migrate(ctx, rivermigrate.DirectionUp, nil); err != nil {
		return fmt.Errorf("create the queue: %w", err)
	}
	for _, q := range tables {
		if _, err := s.db.ExecContext(ctx, s.sql(q)); err != nil {
			return fmt.Errorf("create tables: %w", err)
		}
	}
	_, err = s.db.ExecContext(ctx, s.sql("INSERT INTO drover_meta (name, value) VALUES ('version', ?1) ON CONFLICT (name) DO UPDATE SET value=excluded.value"), version)
	return err
}

// current tells whether the tables are those of this version.
func (s *Store) current(ctx context.Context) (bool, error) {
	var got string
	err := s.db.QueryRowContext(ctx, "SELECT value FROM drover_meta WHERE name='version'").Scan(&got)
	if err == nil && got > version {
		return false, fmt.Errorf("the database is of a newer drover (version %s, this one knows %s)", got, version)
	}
	return err == nil && got == version, err
}

var placeholder = regexp.MustCompile(`\?(\d+)`)

// sql writes a query in the dialect of the database.
func (s *Store) sql(query string) string {
	if !s.postgres {
		return strings.ReplaceAll(query, "NOW()", "CAST(unixepoch('subsec')*1000 AS INTEGER)")
	}
	query = strings.ReplaceAll(query, "NOW()", "CAST(extract(epoch from clock_timestamp())*1000 AS bigint)")
	return placeholder.ReplaceAllString(query, "$$$1")
}

// exec runs a statement and returns how many rows it has changed.
func (s *Store) exec(ctx context.Context, on execer, query string, args ...any) (int64, error) {
	res, err := on.ExecContext(ctx, s.sql(query), args...)
	if err != nil {
		return 0, err
	}
	return res.RowsAffected()
}

// text is what both databases take as text: what agents and tools say may be no
// UTF-8, or hold zeros, which PostgreSQL refuses.
func text(s string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\ufffd"), "\x00", "\ufffd")
}

// path is a file's name as the database takes it. A name that is no UTF-8 is only
// kept where the rows are read on the same machine.
func (s *Store) path(name string) string {
	if !s.postgres {
		return name
	}
	return text(name)
}

// execer is a database or a transaction.
type execer interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

func stateFault(dir string, err error) error {
	f := &fault.Error{}
	if errors.As(err, &f) {
		return err
	}
	if errors.Is(err, fs.ErrNotExist) {
		return &fault.Error{Code: "job_unknown", What: "there is no such job", Why: "it has no database in " + dir,
			Fix: "see: drover jobs list", Exit: fault.Session, Err: err}
	}
	return &fault.Error{Code: "job_database", What: fmt.Sprintf("the database of the job in %q cannot be used", dir), Why: err.Error(),
		Fix: "make room or permissions in the state folder (XDG_STATE_HOME), then start the job again: finished rows are kept; a database that is broken is forgotten with --restart", Exit: fault.Environment, Err: err}
}

func lockFault(dir string, err error) error {
	if !errors.Is(err, errLocked) {
		return stateFault(dir, err)
	}
	return &fault.Error{Code: "job_locked", What: "the job is being run by another drover", Why: "it holds the lock in " + dir,
		Fix: "wait for it, watch it with: drover jobs status, or end it with: drover jobs stop", Exit: fault.Session, Err: err}
}

func postgresFault(address string, err error) error {
	f := &fault.Error{}
	if errors.As(err, &f) {
		return err
	}
	why := err.Error()
	if u, parseErr := url.Parse(address); parseErr == nil && u.User != nil {
		if secret, ok := u.User.Password(); ok && secret != "" {
			why = strings.ReplaceAll(why, secret, "***")
		}
	}
	return &fault.Error{Code: "job_database", What: "the database of --engine cannot be used", Why: why,
		Fix: "check that the server runs and that the user may create tables", Exit: fault.Environment, Err: err}
}
