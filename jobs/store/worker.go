package store

import (
	"context"
	"database/sql"
	"time"
)

// DeadAfter is how long a worker may be silent before its rows are given to
// others.
const DeadAfter = 20 * time.Second

// Beat says that the worker lives. Times are those of the database.
func (s *Store) Beat(ctx context.Context, id, host string, pid int) error {
	_, err := s.exec(ctx, s.db, `INSERT INTO drover_worker (id, host, pid, started_at, heartbeat) VALUES (?1, ?2, ?3, NOW(), NOW())
		ON CONFLICT (id) DO UPDATE SET heartbeat=excluded.heartbeat`, id, host, pid)
	return err
}

// Leave takes a worker that has ended in order out of the list.
func (s *Store) Leave(ctx context.Context, id string) error {
	_, err := s.exec(ctx, s.db, "DELETE FROM drover_worker WHERE id=?1", id)
	return err
}

// Sweep gives the rows of workers that have been silent for too long back to the
// queue, and returns how many there were. What such a worker reports later is
// refused, because the row is not its own any more.
func (s *Store) Sweep(ctx context.Context) (rows int64, err error) {
	if !s.postgres {
		return 0, nil // the lock says who lives
	}
	const alive = "SELECT id FROM drover_worker WHERE heartbeat > NOW()-?1"
	silent := DeadAfter.Milliseconds()
	err = s.Tx(ctx, func(tx *sql.Tx) error {
		if rows, err = s.exec(ctx, tx, "UPDATE drover_row SET status='pending', lost=lost+1, worker='' WHERE status='running' AND worker NOT IN ("+alive+")", silent); err != nil {
			return err
		}
		n, err := s.exec(ctx, tx, `UPDATE river_job SET state='available' WHERE state='running' AND queue LIKE 'drover-%'
			AND attempted_by[array_length(attempted_by, 1)] NOT IN (`+alive+")", silent)
		if rows == 0 {
			rows = n
		}
		return err
	})
	return rows, err
}

// Held returns which of the rows that the worker has claimed are still its own.
func (s *Store) Held(ctx context.Context, worker string) (map[string]int, error) {
	rows, err := s.db.QueryContext(ctx, s.sql("SELECT job_id, item_id, attempt FROM drover_row WHERE worker=?1 AND status='running'"), worker)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	out := map[string]int{}
	for rows.Next() {
		var job, item string
		var attempt int
		if err := rows.Scan(&job, &item, &attempt); err != nil {
			return nil, err
		}
		out[job+"\x00"+item] = attempt
	}
	return out, rows.Err()
}

// Workers is how many workers live.
func (s *Store) Workers(ctx context.Context) (n int, err error) {
	err = s.db.QueryRowContext(ctx, s.sql("SELECT count(*) FROM drover_worker WHERE heartbeat > NOW()-?1"), DeadAfter.Milliseconds()).Scan(&n)
	return n, err
}
