package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
)

// Row is a row of a job with what became of it.
type Row struct {
	JobID, ItemID, SourceID string
	// Index is the row's place in the table, from 0.
	Index  int
	SHA256 string
	// Problem is why the row cannot be run at all, "" if it can.
	Problem string
	// Status is pending, running, or how the row ended.
	Status string
	// Attempt counts from 1 once the row was begun; Lost counts the processes
	// that died with it.
	Attempt, Lost int
	Worker        string
	Error         string
	// Result is what the row's agent has reported, nil if nothing.
	Result    json.RawMessage
	ExitCode  int
	SessionID string
	// CostUSD is of all attempts together, nil if it is not known.
	CostUSD                   *float64
	InputTokens, OutputTokens int64
	DurationMS                int64
	Patch                     string
	ReportedAt, CompletedAt   time.Time
	// Cells are the values in the order of the header; nil where they were not
	// asked for.
	Cells []string
}

// final are the statuses with which a row has ended.
const final = "('completed', 'failed', 'blocked', 'timeout', 'invalid_output', 'limit', 'cancelled', 'skipped')"

const rowColumns = `r.job_id, r.item_id, r.source_id, r.idx, r.sha256, r.problem, r.status, r.attempt, r.lost, r.worker, r.error, r.result,
	r.exit_code, r.session_id, r.cost_usd, r.input_tokens, r.output_tokens, r.duration_ms, r.patch, r.reported_at, r.completed_at`

func scanRow(rows interface{ Scan(...any) error }, more ...any) (*Row, error) {
	r := &Row{}
	var result string
	var reported, completed int64
	to := []any{&r.JobID, &r.ItemID, &r.SourceID, &r.Index, &r.SHA256, &r.Problem, &r.Status, &r.Attempt, &r.Lost, &r.Worker, &r.Error, &result,
		&r.ExitCode, &r.SessionID, &r.CostUSD, &r.InputTokens, &r.OutputTokens, &r.DurationMS, &r.Patch, &reported, &completed}
	if err := rows.Scan(append(to, more...)...); err != nil {
		return nil, err
	}
	if result != "" {
		r.Result = json.RawMessage(result)
	}
	r.ReportedAt, r.CompletedAt = fromMillis(reported), fromMillis(completed)
	return r, nil
}

// Claim makes the row the worker's own if it is pending, and counts the attempt.
// A row that is not pending is nobody's to claim: nil. After an error it is not
// known whether the row was claimed; with again set, one that is the worker's own
// already is returned as it was claimed then. The worker must not set it while
// it works on the row.
func (s *Store) Claim(ctx context.Context, jobID, itemID, worker string, again bool) (*Row, error) {
	r := &Row{JobID: jobID, ItemID: itemID, Worker: worker, Status: "running"}
	claimable := "status='pending'"
	if again {
		claimable = "(status='pending' OR status='running' AND worker=?3)"
	}
	err := s.db.QueryRowContext(ctx, s.sql(`UPDATE drover_row SET status='running', attempt=attempt+CASE status WHEN 'pending' THEN 1 ELSE 0 END, worker=?3, told=0, started_at=NOW()
		WHERE job_id=?1 AND item_id=?2 AND `+claimable+` RETURNING idx, source_id, sha256, problem, attempt, lost`),
		jobID, itemID, worker).Scan(&r.Index, &r.SourceID, &r.SHA256, &r.Problem, &r.Attempt, &r.Lost)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("claim row %s: %w", itemID, err)
	}
	var cells string
	err = s.db.QueryRowContext(ctx, s.sql("SELECT cells FROM drover_input WHERE job_id=?1 AND item_id=?2"), jobID, itemID).Scan(&cells)
	if err == nil {
		err = json.Unmarshal([]byte(cells), &r.Cells)
	}
	if err != nil {
		return nil, fmt.Errorf("read row %s: %w", itemID, err)
	}
	return r, nil
}

// Finish stores how a row ended, if the attempt is still the caller's; if not,
// it changes nothing and returns false. told says that the stream of the job
// tells of it already.
func (s *Store) Finish(ctx context.Context, tx *sql.Tx, r *Row, told bool) (bool, error) {
	seen := 0
	if told {
		seen = 1
	}
	n, err := s.exec(ctx, tx, `UPDATE drover_row SET status=?5, error=?6, result=?7, exit_code=?8, session_id=?9,
		cost_usd=CASE WHEN cost_usd IS NULL AND CAST(?10 AS double precision) IS NULL THEN NULL ELSE COALESCE(cost_usd, 0)+COALESCE(CAST(?10 AS double precision), 0) END,
		input_tokens=input_tokens+?11, output_tokens=output_tokens+?12, duration_ms=?13, patch=?14, told=?15,
		reported_at=CASE WHEN ?7='' THEN 0 ELSE NOW() END, completed_at=NOW()
		WHERE job_id=?1 AND item_id=?2 AND status='running' AND worker=?3 AND attempt=?4`,
		r.JobID, r.ItemID, r.Worker, r.Attempt, r.Status, text(r.Error), text(string(r.Result)), r.ExitCode, text(r.SessionID),
		r.CostUSD, r.InputTokens, r.OutputTokens, r.DurationMS, s.path(r.Patch), seen)
	return n == 1, err
}

// Release gives a row back to be tried again. With uncounted set the attempt
// does not count. It returns false if the attempt is not the caller's any more.
func (s *Store) Release(ctx context.Context, r *Row, uncounted bool) (bool, error) {
	back := 0
	if uncounted {
		back = 1
	}
	n, err := s.exec(ctx, s.db, `UPDATE drover_row SET status='pending', worker='', attempt=attempt-?5, error=?6,
		cost_usd=CASE WHEN cost_usd IS NULL AND CAST(?7 AS double precision) IS NULL THEN NULL ELSE COALESCE(cost_usd, 0)+COALESCE(CAST(?7 AS double precision), 0) END,
		input_tokens=input_tokens+?8, output_tokens=output_tokens+?9
		WHERE job_id=?1 AND item_id=?2 AND status='running' AND worker=?3 AND attempt=?4`,
		r.JobID, r.ItemID, r.Worker, r.Attempt, back, text(r.Error), r.CostUSD, r.InputTokens, r.OutputTokens)
	return n == 1, err
}

// Kept tells whether the end of the attempt, or that it was given back, is in
// the database already. It is for callers of Finish and Release who got an
// error before, and do not know what it has undone.
func (s *Store) Kept(ctx context.Context, r *Row, released bool) (bool, error) {
	query := "SELECT count(*) FROM drover_row WHERE job_id=?1 AND item_id=?2 AND worker=?3 AND attempt=?4 AND status IN " + final
	args := []any{r.JobID, r.ItemID, r.Worker, r.Attempt}
	if released { // whoever claims it next changes the worker
		query, args = "SELECT count(*) FROM drover_row WHERE job_id=?1 AND item_id=?2 AND worker='' AND status='pending'", args[:2]
	}
	var n int
	err := s.db.QueryRowContext(ctx, s.sql(query), args...).Scan(&n)
	return n == 1, err
}

// Counts returns how many rows of the job have each status.
func (s *Store) Counts(ctx context.Context, jobID string) (map[string]int, error) {
	rows, err := s.db.QueryContext(ctx, s.sql("SELECT status, count(*) FROM drover_row WHERE job_id=?1 GROUP BY status"), jobID)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	out := map[string]int{}
	for rows.Next() {
		var status string
		var n int
		if err := rows.Scan(&status, &n); err != nil {
			return nil, err
		}
		out[status] = n
	}
	return out, rows.Err()
}

// Cost is what the rows have cost so far in US dollars, nil if that is known of
// none.
func (s *Store) Cost(ctx context.Context, jobID string) (cost *float64, err error) {
	err = s.db.QueryRowContext(ctx, s.sql("SELECT sum(cost_usd) FROM drover_row WHERE job_id=?1"), jobID).Scan(&cost)
	return cost, err
}

// Page returns rows in the order of the table: those behind the index after, at
// most limit, with their cells if cells is set. status limits them to rows with
// one of the given statuses; none means all.
func (s *Store) Page(ctx context.Context, jobID string, after, limit int, cells bool, status ...string) ([]*Row, error) {
	query := "SELECT " + rowColumns + ", '' FROM drover_row r WHERE r.job_id=?1 AND r.idx>?2"
	if cells {
		query = "SELECT " + rowColumns + ", i.cells FROM drover_row r JOIN drover_input i ON i.job_id=r.job_id AND i.item_id=r.item_id WHERE r.job_id=?1 AND r.idx>?2"
	}
	if len(status) > 0 {
		query += " AND r.status IN ('" + strings.Join(status, "', '") + "')"
	}
	return s.rows(ctx, query+" ORDER BY r.idx LIMIT ?3", jobID, after, limit)
}

// Untold returns rows that have ended in other processes and of which the stream
// of the job does not tell yet, at most limit.
func (s *Store) Untold(ctx context.Context, jobID string, limit int) ([]*Row, error) {
	return s.rows(ctx, "SELECT "+rowColumns+", '' FROM drover_row r WHERE r.job_id=?1 AND r.told=0 AND r.status IN "+final+" ORDER BY r.completed_at, r.idx LIMIT ?2", jobID, limit)
}

// Told says that the stream of the job tells of the row's end.
func (s *Store) Told(ctx context.Context, r *Row) error {
	_, err := s.exec(ctx, s.db, "UPDATE drover_row SET told=1 WHERE job_id=?1 AND item_id=?2 AND attempt=?3 AND status IN "+final, r.JobID, r.ItemID, r.Attempt)
	return err
}

// AllTold says so of all rows that have ended.
func (s *Store) AllTold(ctx context.Context, jobID string) error {
	_, err := s.exec(ctx, s.db, "UPDATE drover_row SET told=1 WHERE job_id=?1 AND told=0 AND status IN "+final, jobID)
	return err
}

func (s *Store) rows(ctx context.Context, query string, args ...any) ([]*Row, error) {
	rows, err := s.db.QueryContext(ctx, s.sql(query), args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var out []*Row
	for rows.Next() {
		var cells string
		r, err := scanRow(rows, &cells)
		if err != nil {
			return nil, err
		}
		if cells != "" {
			if err := json.Unmarshal([]byte(cells), &r.Cells); err != nil {
				return nil, fmt.Errorf("read row %s: %w", r.ItemID, err)
			}
		}
		out = append(out, r)
	}
	return out, rows.Err()
}

// Drop ends all rows that are pending with the status, such as cancelled.
func (s *Store) Drop(ctx context.Context, jobID, status, why string) error {
	return s.Tx(ctx, func(tx *sql.Tx) error {
		if _, err := s.exec(ctx, tx, "UPDATE drover_row SET status=?2, error=?3, completed_at=NOW(), told=1 WHERE job_id=?1 AND status='pending'", jobID, status, why); err != nil {
			return err
		}
		return s.clearQueue(ctx, tx, jobID)
	})
}

// DropTaken ends rows that are pending although somebody has cancelled their
// entries in the queue, as the web UI does.
func (s *Store) DropTaken(ctx context.Context, jobID, status, why string) error {
	_, err := s.exec(ctx, s.db, `UPDATE drover_row SET status=?2, error=?3, completed_at=NOW(), told=0 WHERE job_id=?1 AND status='pending'
		AND item_id IN (SELECT args->>'item' FROM river_job WHERE queue=?4 AND state IN ('cancelled', 'discarded'))`, jobID, status, why, Queue(jobID))
	return err
}

// Again makes rows that ended with one of the statuses pending, as if they had
// never been tried. It returns how many. What they have cost stays.
func (s *Store) Again(ctx context.Context, tx *sql.Tx, jobID string, status ...string) (int64, error) {
	return s.exec(ctx, tx, `UPDATE drover_row SET status='pending', attempt=0, lost=0, worker='', told=0, error='', result='', reported_at=0, completed_at=0
		WHERE job_id=?1 AND status IN ('`+strings.Join(status, "', '")+"')", jobID)
}

// clearQueue takes what is not running out of the job's queue.
func (s *Store) clearQueue(ctx context.Context, tx *sql.Tx, jobID string) error {
	_, err := s.exec(ctx, tx, "DELETE FROM river_job WHERE queue=?1 AND state IN ('available', 'scheduled', 'retryable', 'pending', 'cancelled', 'discarded')", Queue(jobID))
	return err
}

// Requeue makes the queue hold exactly the rows that are pending: put is called
// with them, in their order, after the rest was taken out.
func (s *Store) Requeue(ctx context.Context, tx *sql.Tx, jobID string, put func(items []string) error) error {
	if err := s.clearQueue(ctx, tx, jobID); err != nil {
		return err
	}
	for after := -1; ; {
		items, last, err := s.pendingItems(ctx, tx, jobID, after)
		if err != nil {
			return err
		}
		if len(items) == 0 {
			// What has a time is put in as scheduled, though the time is long past.
			_, err := s.exec(ctx, tx, "UPDATE river_job SET state='available' WHERE queue=?1 AND state='scheduled'", Queue(jobID))
			return err
		}
		if err := put(items); err != nil {
			return err
		}
		after = last
	}
}

// queueBatch is how many rows go into the queue at once.
const queueBatch = 1000

func (s *Store) pendingItems(ctx context.Context, tx *sql.Tx, jobID string, after int) (items []string, last int, err error) {
	rows, err := tx.QueryContext(ctx, s.sql("SELECT item_id, idx FROM drover_row WHERE job_id=?1 AND idx>?2 AND status='pending' ORDER BY idx LIMIT ?3"), jobID, after, queueBatch)
	if err != nil {
		return nil, 0, err
	}
	defer rows.Close()
	for rows.Next() {
		var item string
		if err := rows.Scan(&item, &last); err != nil {
			return nil, 0, err
		}
		items = append(items, item)
	}
	return items, last, rows.Err()
}

// Queued is how many entries of the job's queue are still to be worked on or are
// being worked on.
func (s *Store) Queued(ctx context.Context, jobID string) (n int, err error) {
	err = s.db.QueryRowContext(ctx, s.sql("SELECT count(*) FROM river_job WHERE queue=?1 AND state IN ('available', 'scheduled', 'retryable', 'running', 'pending')"), Queue(jobID)).Scan(&n)
	return n, err
}
