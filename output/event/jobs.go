package event

import "encoding/json"

// This file holds the events of list jobs. The row that an event is about is in
// the envelope, as item_id, like that of every event of the row's own run.

// JobStartedEvent says that a list job begins, or goes on.
type JobStartedEvent struct {
	JobID string `json:"job_id"`
	// Total is how many rows the job has, those that are done already included.
	Total int `json:"total"`
	// Source is the table that the rows come from.
	Source      FileRef `json:"source"`
	IDColumn    string  `json:"id_column,omitempty"`
	OutputPath  string  `json:"output_path,omitempty"`
	Concurrency int     `json:"concurrency,omitempty"`
	// Resumed says that rows were worked on before; Skipped counts those that
	// will not be again.
	Resumed bool `json:"resumed,omitempty"`
	Skipped int  `json:"skipped,omitempty"`
}

// JobItemStartedEvent says that a row is worked on.
type JobItemStartedEvent struct {
	JobID string `json:"job_id"`
	// Index is the row's place in the source, from 0; Attempt counts from 1.
	Index       int    `json:"index"`
	Attempt     int    `json:"attempt"`
	InputSHA256 string `json:"input_sha256,omitempty"`
}

// JobItemFinishedEvent is the outcome of one attempt at a row.
type JobItemFinishedEvent struct {
	JobID    string        `json:"job_id"`
	Index    int           `json:"index"`
	Attempt  int           `json:"attempt"`
	Status   JobItemStatus `json:"status"`
	ExitCode *int          `json:"exit_code,omitempty"`
	// Result is what the row's agent has reported.
	Result json.RawMessage `json:"result,omitempty"`
	Error  *Err            `json:"error,omitempty"`
	// WillRetry says that this outcome is not the row's last one.
	WillRetry  bool      `json:"will_retry,omitempty"`
	Usage      *Usage    `json:"usage,omitempty"`
	CostUSD    *float64  `json:"cost_usd,omitempty"`
	DurationMS int64     `json:"duration_ms,omitempty"`
	Truncated  bool      `json:"truncated,omitempty"`
	Artifact   *Artifact `json:"artifact,omitempty"`
}

// JobProgressEvent counts the rows of a job; together they are all rows. It
// comes at most once a second.
type JobProgressEvent struct {
	JobID     string `json:"job_id"`
	Total     int    `json:"total"`
	Pending   int    `json:"pending"`
	Running   int    `json:"running"`
	Completed int    `json:"completed"`
	Failed    int    `json:"failed"`
	Skipped   int    `json:"skipped,omitempty"`
	// ETASeconds is how long the rest will take; it is not there before a row
	// is finished.
	ETASeconds *float64 `json:"eta_seconds,omitempty"`
	CostUSD    *float64 `json:"cost_usd,omitempty"`
}

// JobFinishedEvent holds the totals of a job.
type JobFinishedEvent struct {
	JobID      string    `json:"job_id"`
	Status     JobStatus `json:"status"`
	Total      int       `json:"total"`
	Completed  int       `json:"completed"`
	Failed     int       `json:"failed"`
	Skipped    int       `json:"skipped,omitempty"`
	OutputPath string    `json:"output_path,omitempty"`
	// FailedItems are the ids of rows that failed for good, in the order of the
	// source.
	FailedItems []string `json:"failed_items,omitempty"`
	Truncated   bool     `json:"truncated,omitempty"`
}

// JobItemStatus is how an attempt at a row ended: completed, failed, blocked,
// timeout, invalid_output, limit, cancelled or skipped.
type JobItemStatus string

// JobStatus is how a job ended: completed, partial, failed, cancelled or limit.
type JobStatus string

// Type returns "job.started".
func (JobStartedEvent) Type() string { return "job.started" }

// Type returns "job.item.started".
func (JobItemStartedEvent) Type() string { return "job.item.started" }

// Type returns "job.item.finished".
func (JobItemFinishedEvent) Type() string { return "job.item.finished" }

// Type returns "job.progress".
func (JobProgressEvent) Type() string { return "job.progress" }

// Type returns "job.finished".
func (JobFinishedEvent) Type() string { return "job.finished" }
