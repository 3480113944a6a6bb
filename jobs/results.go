package jobs

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"iter"
	"path/filepath"
	"strings"
	"sync"

	"drover/jobs/result"
	"drover/jobs/store"
	"drover/output/event"
)

// results are the files of a job's result. Every row that has ended is appended
// to a file of JSON lines at once; the table is written at the end, by rename.
type results struct {
	path  string
	lines string
	table result.Table

	mu   sync.Mutex
	out  *result.Appender
	lost bool
}

// linesPath is where the JSON lines beside a table lie.
func linesPath(output string) string {
	ext := filepath.Ext(output)
	if strings.EqualFold(ext, ".csv") || strings.EqualFold(ext, ".tsv") {
		output = strings.TrimSuffix(output, ext)
	}
	return output + ".jsonl"
}

// openResults makes the file of lines hold exactly the rows that have ended: a
// kill may have cut it, or kept a row from it.
func openResults(ctx context.Context, s *store.Store, jobID string, spec *Spec, path string, header []string, name string) (*results, error) {
	r := &results{path: path, lines: linesPath(path),
		table: result.Table{JobID: jobID, Name: name, Header: header, FormulaSafe: spec.FormulaSafe}}
	for _, file := range []string{r.path, r.lines} {
		if err := result.Clean(realPath(file)); err != nil {
			return nil, fmt.Errorf("clean up beside %s: %w", file, err)
		}
	}
	if err := r.writeLines(ctx, s, true); err != nil {
		return nil, err
	}
	var err error
	r.out, err = result.OpenAppender(r.lines)
	return r, err
}

// append adds a row that has ended. A disk that is full costs the line and not
// the row: the file is written once more at the end.
func (r *results) append(c *crew, row *store.Row) {
	var b bytes.Buffer
	err := result.Record(&b, r.table, item(row))
	r.mu.Lock()
	defer r.mu.Unlock()
	if err == nil && r.out != nil {
		err = r.out.Append(b.Bytes())
	}
	if err != nil && !r.lost {
		r.lost = true
		c.log.Emit(event.Origin{}, event.NoticeEvent{Level: "warning", Code: "results_late", Message: "results cannot be appended to " + r.lines + "; they are kept in the job's database: " + err.Error()})
	}
}

// finish writes the files in the order of the table, the unfinished rows too.
func (r *results) finish(ctx context.Context, s *store.Store, junit string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.out != nil {
		_ = r.out.Close() // the file is replaced
		r.out = nil
	}
	if err := r.writeLines(ctx, s, false); err != nil {
		return err
	}
	if err := result.Replace(r.path, func(w io.Writer) error {
		return result.WriteCSV(w, r.table, items(ctx, s, r.table.JobID, false))
	}); err != nil {
		return fmt.Errorf("write %s: %w", r.path, err)
	}
	if junit == "" {
		return nil
	}
	return result.Replace(junit, func(w io.Writer) error {
		return result.WriteJUnit(w, r.table, func() iter.Seq2[result.Item, error] { return items(ctx, s, r.table.JobID, false) })
	})
}

func (r *results) writeLines(ctx context.Context, s *store.Store, ended bool) error {
	err := result.Replace(r.lines, func(w io.Writer) error {
		return result.WriteJSONL(w, r.table, items(ctx, s, r.table.JobID, ended))
	})
	if err != nil {
		return fmt.Errorf("write %s: %w", r.lines, err)
	}
	return nil
}

// pageSize is how many rows are in memory at once; rows may be megabytes.
const pageSize = 200

// items are the rows of a job in the order of the table, or those that have
// ended.
func items(ctx context.Context, s *store.Store, jobID string, ended bool) iter.Seq2[result.Item, error] {
	return func(yield func(result.Item, error) bool) {
		for after := -1; ; {
			page, err := s.Page(ctx, jobID, after, pageSize, true)
			if err != nil {
				yield(result.Item{}, err)
				return
			}
			for _, row := range page {
				after = row.Index
				if ended && (row.Status == "pending" || row.Status == "running") {
					continue
				}
				if !yield(item(row), nil) {
					return
				}
			}
			if len(page) < pageSize {
				return
			}
		}
	}
}

// item is a row as the files of the result show it.
func item(row *store.Row) result.Item {
	it := result.Item{
		Index: row.Index, ItemID: row.ItemID, SourceID: row.SourceID, Status: row.Status, Attempts: row.Attempt,
		LastError: row.Error, Result: row.Result, ReportedAt: row.ReportedAt, CompletedAt: row.CompletedAt, Values: row.Cells,
		CostUSD: row.CostUSD, DurationMS: row.DurationMS, InputTokens: row.InputTokens, OutputTokens: row.OutputTokens,
		SessionID: row.SessionID, Patch: row.Patch,
	}
	if row.Status != "pending" && row.Status != "running" {
		code := row.ExitCode
		it.ExitCode = &code
	}
	return it
}
