package store

import (
	"io"
	"log/slog"
)

// version is that of the tables below.
const version = "1"

// quiet is for libraries that log: what matters is an error or an event.
var quiet = slog.New(slog.NewTextHandler(io.Discard, &slog.HandlerOptions{Level: slog.LevelError + 1}))

// Quiet is a logger that logs nothing.
func Quiet() *slog.Logger { return quiet }

// tables are the same for both databases. Times are milliseconds since 1970 by
// the clock of the database, so that machines need not agree on one.
var tables = []string{
	`CREATE TABLE IF NOT EXISTS drover_meta (name text PRIMARY KEY, value text NOT NULL)`,
	`CREATE TABLE IF NOT EXISTS drover_job (
		id text PRIMARY KEY, name text NOT NULL, spec text NOT NULL, header text NOT NULL, source_sha256 text NOT NULL,
		total bigint NOT NULL, status text NOT NULL, control text NOT NULL, error text NOT NULL,
		created_at bigint NOT NULL, started_at bigint NOT NULL, finished_at bigint NOT NULL)`,
	`CREATE TABLE IF NOT EXISTS drover_row (
		job_id text NOT NULL, item_id text NOT NULL, idx bigint NOT NULL, source_id text NOT NULL, sha256 text NOT NULL,
		problem text NOT NULL, status text NOT NULL, attempt bigint NOT NULL, lost bigint NOT NULL, worker text NOT NULL,
		told bigint NOT NULL, error text NOT NULL, result text NOT NULL, exit_code bigint NOT NULL, session_id text NOT NULL,
		cost_usd double precision, input_tokens bigint NOT NULL, output_tokens bigint NOT NULL, duration_ms bigint NOT NULL,
		patch text NOT NULL, generation bigint NOT NULL, started_at bigint NOT NULL, reported_at bigint NOT NULL, completed_at bigint NOT NULL,
		PRIMARY KEY (job_id, item_id))`,
	`CREATE INDEX IF NOT EXISTS drover_row_idx ON drover_row (job_id, idx)`,
	`CREATE INDEX IF NOT EXISTS drover_row_status ON drover_row (job_id, status, told)`,
	// What a row holds is apart: it may be large, and a row changes often.
	`CREATE TABLE IF NOT EXISTS drover_input (
		job_id text NOT NULL, item_id text NOT NULL, cells text NOT NULL, PRIMARY KEY (job_id, item_id))`,
	`CREATE TABLE IF NOT EXISTS drover_worker (
		id text PRIMARY KEY, host text NOT NULL, pid bigint NOT NULL, started_at bigint NOT NULL, heartbeat bigint NOT NULL)`,
}
