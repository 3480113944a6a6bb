package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
)

// Loader brings the rows of a table into a job, in one transaction.
type Loader struct {
	s          *Store
	jobID      string
	generation int64
	find       *sql.Stmt
	add        *sql.Stmt
	input      *sql.Stmt
	move       *sql.Stmt
	reset      *sql.Stmt
	// Added, Changed, Kept and Removed count rows.
	Added, Changed, Kept, Removed int
	fresh                         bool
}

// Load prepares to bring rows into the job. Rows that the job has already are
// kept with what became of them if they have not changed, and are new rows if
// they have; those that are not brought are removed by Finish.
func (s *Store) Load(ctx context.Context, tx *sql.Tx, jobID string) (*Loader, error) {
	l := &Loader{s: s, jobID: jobID}
	var latest sql.NullInt64
	if err := tx.QueryRowContext(ctx, s.sql("SELECT max(generation) FROM drover_row WHERE job_id=?1"), jobID).Scan(&latest); err != nil {
		return nil, err
	}
	l.fresh, l.generation = !latest.Valid, latest.Int64+1
	for _, q := range []struct {
		to    **sql.Stmt
		query string
	}{
		{&l.find, "SELECT sha256, status FROM drover_row WHERE job_id=?1 AND item_id=?2"},
		{&l.add, `INSERT INTO drover_row (job_id, item_id, idx, source_id, sha256, problem, generation, status, attempt, lost, worker, told, error, result,
			exit_code, session_id, input_tokens, output_tokens, duration_ms, patch, started_at, reported_at, completed_at)
			VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, 'pending', 0, 0, '', 0, '', '', 0, '', 0, 0, 0, '', 0, 0, 0)`},
		{&l.input, "INSERT INTO drover_input (job_id, item_id, cells) VALUES (?1, ?2, ?3) ON CONFLICT (job_id, item_id) DO UPDATE SET cells=excluded.cells"},
		{&l.move, "UPDATE drover_row SET idx=?3, generation=?4 WHERE job_id=?1 AND item_id=?2"},
		{&l.reset, `UPDATE drover_row SET idx=?3, source_id=?4, sha256=?5, problem=?6, generation=?7, status='pending', attempt=0, lost=0, worker='', told=0,
			error='', result='', reported_at=0, completed_at=0 WHERE job_id=?1 AND item_id=?2`},
	} {
		var err error
		if *q.to, err = tx.PrepareContext(ctx, s.sql(q.query)); err != nil {
			return nil, fmt.Errorf("prepare to load rows: %w", err)
		}
	}
	return l, nil
}

// Add brings one row.
func (l *Loader) Add(ctx context.Context, r *Row) error {
	if !l.fresh {
		var sha, status string
		err := l.find.QueryRowContext(ctx, l.jobID, r.ItemID).Scan(&sha, &status)
		switch {
		case err == nil && sha == r.SHA256:
			l.Kept++
			_, err = l.move.ExecContext(ctx, l.jobID, r.ItemID, r.Index, l.generation)
			return err
		case err == nil:
			l.Changed++
			if _, err := l.reset.ExecContext(ctx, l.jobID, r.ItemID, r.Index, r.SourceID, r.SHA256, r.Problem, l.generation); err != nil {
				return err
			}
			return l.cells(ctx, r)
		case !errors.Is(err, sql.ErrNoRows):
			return err
		}
	}
	l.Added++
	if _, err := l.add.ExecContext(ctx, l.jobID, r.ItemID, r.Index, r.SourceID, r.SHA256, r.Problem, l.generation); err != nil {
		return err
	}
	return l.cells(ctx, r)
}

func (l *Loader) cells(ctx context.Context, r *Row) error {
	cells, err := json.Marshal(r.Cells)
	if err != nil {
		return err
	}
	_, err = l.input.ExecContext(ctx, l.jobID, r.ItemID, string(cells))
	return err
}

// Finish removes the rows that were not brought.
func (l *Loader) Finish(ctx context.Context, tx *sql.Tx) error {
	if l.fresh {
		return nil
	}
	if _, err := l.s.exec(ctx, tx, "DELETE FROM drover_input WHERE job_id=?1 AND item_id IN (SELECT item_id FROM drover_row WHERE job_id=?1 AND generation<>?2)", l.jobID, l.generation); err != nil {
		return err
	}
	n, err := l.s.exec(ctx, tx, "DELETE FROM drover_row WHERE job_id=?1 AND generation<>?2", l.jobID, l.generation)
	l.Removed = int(n)
	return err
}
