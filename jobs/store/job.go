package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"drover/output/fault"
)

// Job is a list job as the database has it.
type Job struct {
	ID, Name string
	// Spec is what the engine needs to know about the job, as JSON.
	Spec json.RawMessage
	// Header are the names of the columns; SourceSHA256 is the hash of the table.
	Header       []string
	SourceSHA256 string
	Total        int
	// Status is pending, running, or how the job ended.
	Status string
	// Control is what somebody has asked for: "", "stop" or "cancel".
	Control string
	// Error is why the job ended early, "" if it did not.
	Error string
	// Zero is not yet.
	CreatedAt, StartedAt, FinishedAt time.Time
}

// Open tells whether the job has rows that may still be worked on.
func (j *Job) Open() bool { return j.Status == "pending" || j.Status == "running" }

const jobColumns = "id, name, spec, header, source_sha256, total, status, control, error, created_at, started_at, finished_at"

func scanJob(row interface{ Scan(...any) error }) (*Job, error) {
	j := &Job{}
	var header, spec string
	var created, started, finished int64
	if err := row.Scan(&j.ID, &j.Name, &spec, &header, &j.SourceSHA256, &j.Total, &j.Status, &j.Control, &j.Error, &created, &started, &finished); err != nil {
		return nil, err
	}
	j.Spec = json.RawMessage(spec)
	if err := json.Unmarshal([]byte(header), &j.Header); err != nil {
		return nil, fmt.Errorf("read the header of job %s: %w", j.ID, err)
	}
	j.CreatedAt, j.StartedAt, j.FinishedAt = fromMillis(created), fromMillis(started), fromMillis(finished)
	return j, nil
}

// Job returns the job of that id, or nil.
func (s *Store) Job(ctx context.Context, id string) (*Job, error) {
	j, err := scanJob(s.db.QueryRowContext(ctx, s.sql("SELECT "+jobColumns+" FROM drover_job WHERE id=?1"), id))
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	return j, err
}

// Jobs returns all jobs, the newest first.
func (s *Store) Jobs(ctx context.Context) ([]*Job, error) {
	rows, err := s.db.QueryContext(ctx, "SELECT "+jobColumns+" FROM drover_job ORDER BY created_at DESC, id")
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var out []*Job
	for rows.Next() {
		j, err := scanJob(rows)
		if err != nil {
			return nil, err
		}
		out = append(out, j)
	}
	return out, rows.Err()
}

// PutJob creates the job or replaces what is known of it. Its times but for the
// first are kept.
func (s *Store) PutJob(ctx context.Context, tx *sql.Tx, j *Job) error {
	header, err := json.Marshal(j.Header)
	if err != nil {
		return err
	}
	_, err = s.exec(ctx, tx, `INSERT INTO drover_job (`+jobColumns+`) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, '', '', NOW(), 0, 0)
		ON CONFLICT (id) DO UPDATE SET name=excluded.name, spec=excluded.spec, header=excluded.header, source_sha256=excluded.source_sha256,
		total=excluded.total, status=excluded.status, control='', error=''`,
		j.ID, j.Name, string(j.Spec), string(header), j.SourceSHA256, j.Total, j.Status)
	return err
}

// Begin says that the job is being run.
func (s *Store) Begin(ctx context.Context, id string) error {
	_, err := s.exec(ctx, s.db, "UPDATE drover_job SET status='running', control='', error='', finished_at=0, started_at=CASE WHEN started_at=0 THEN NOW() ELSE started_at END WHERE id=?1", id)
	return err
}

// End says how the job ended. A job with the status pending can be continued.
func (s *Store) End(ctx context.Context, id, status, why string) error {
	_, err := s.exec(ctx, s.db, "UPDATE drover_job SET status=?2, error=?3, control='', finished_at=CASE WHEN ?2='pending' THEN 0 ELSE NOW() END WHERE id=?1", id, status, text(why))
	return err
}

// Ask asks those who run the job to stop or cancel it. It tells whether the job
// is open.
func (s *Store) Ask(ctx context.Context, id, control string) (bool, error) {
	n, err := s.exec(ctx, s.db, "UPDATE drover_job SET control=?2 WHERE id=?1 AND status IN ('pending', 'running')", id, control)
	return n == 1, err
}

// Control returns what somebody has asked for, and the job's status.
func (s *Store) Control(ctx context.Context, id string) (control, status string, err error) {
	err = s.db.QueryRowContext(ctx, s.sql("SELECT control, status FROM drover_job WHERE id=?1"), id).Scan(&control, &status)
	if errors.Is(err, sql.ErrNoRows) {
		return "cancel", "", nil // it was removed
	}
	return control, status, err
}

// Remove removes a job with its rows from a shared database. Its entries in the
// queue go, too.
func (s *Store) Remove(ctx context.Context, id string) error {
	return s.Tx(ctx, func(tx *sql.Tx) error {
		for _, q := range []string{
			"DELETE FROM drover_input WHERE job_id=?1", "DELETE FROM drover_row WHERE job_id=?1",
			"DELETE FROM drover_job WHERE id=?1",
		} {
			if _, err := s.exec(ctx, tx, q, id); err != nil {
				return err
			}
		}
		_, err := s.exec(ctx, tx, "DELETE FROM river_job WHERE queue=?1", Queue(id))
		return err
	})
}

// Queue is the name of a job's queue.
func Queue(id string) string { return "drover-" + id }

func fromMillis(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}

// unknownJob is the error for an id that no job has.
func unknownJob(id string) error {
	return &fault.Error{Code: "job_unknown", What: fmt.Sprintf("there is no job %q", id), Fix: "see: drover jobs list", Exit: fault.Session}
}
