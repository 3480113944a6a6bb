// Package result writes what has become of a job's rows: a table as CSV, exact
// JSON lines, and a JUnit report.
//
// A table is written by rename, so that a reader never sees half of one; lines
// are appended one by one while the job runs. The package knows nothing of
// queues and agents, and only writes to the files that it is given.
package result

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Item is a row with what has become of it.
type Item struct {
	// Index is the row's place in the table, from 0.
	Index            int
	ItemID, SourceID string
	// Status is pending, running or how the row ended.
	Status    string
	Attempts  int
	LastError string
	// Result is a JSON object, nil if there is none.
	Result                  json.RawMessage
	ReportedAt, CompletedAt time.Time
	// Values are the row's own, in the order of the table's header.
	Values []string
	// CostUSD is nil where it is not known.
	CostUSD                   *float64
	DurationMS                int64
	InputTokens, OutputTokens int64
	SessionID, Patch          string
	// ExitCode is nil for a row that has not ended.
	ExitCode *int
}

// Table is what the rows of a job have in common.
type Table struct {
	JobID, Name string
	Header      []string
	// FormulaSafe puts an apostrophe before cells that a spreadsheet would run.
	FormulaSafe bool
}

// added are the columns that follow the input's own.
var added = []string{"job_id", "item_id", "row_index", "source_id", "status", "attempt_count", "last_error", "result_json", "reported_at", "completed_at"}

// Columns are the header of the written table: the input's columns, then those
// of the job. One of the job's whose name the input has already gets the prefix
// drover_, as often as it takes.
func (t Table) Columns() []string {
	out := slices.Clone(t.Header)
	for _, name := range added {
		for slices.Contains(out, name) {
			name = "drover_" + name
		}
		out = append(out, name)
	}
	return out
}

// WriteCSV writes the table with a header, as RFC 4180 has it but for its line
// ends, which are \n. Every row has as many cells as the header.
func WriteCSV(w io.Writer, t Table, items iter.Seq2[Item, error]) error {
	out := csv.NewWriter(w)
	if err := out.Write(t.safe(t.Columns())); err != nil {
		return err
	}
	for it, err := range items {
		if err != nil {
			return err
		}
		cells := make([]string, len(t.Header), len(t.Header)+len(added))
		copy(cells, it.Values)
		cells = append(cells, t.JobID, it.ItemID, strconv.Itoa(it.Index), it.SourceID, it.Status, strconv.Itoa(it.Attempts),
			it.LastError, string(it.Result), stamp(it.ReportedAt), stamp(it.CompletedAt))
		if err := out.Write(t.safe(cells)); err != nil {
			return err
		}
	}
	out.Flush()
	return out.Error()
}

func stamp(at time.Time) string {
	if at.IsZero() {
		return ""
	}
	return at.UTC().Format(time.RFC3339)
}

// safe takes the danger out of cells that a spreadsheet would run.
func (t Table) safe(cells []string) []string {
	if !t.FormulaSafe {
		return cells
	}
	for i, cell := range cells {
		if formula(cell) {
			cells[i] = "'" + cell
		}
	}
	return cells
}

// formula tells whether a spreadsheet may run the cell: it begins with a sign
// that starts a formula, in whatever width, maybe behind what is not seen. A
// plain number is none.
func formula(cell string) bool {
	if cell == "" {
		return false
	}
	if strings.IndexByte("\t\r\n", cell[0]) >= 0 {
		return true
	}
	seen := strings.TrimLeftFunc(cell, func(r rune) bool {
		return unicode.IsSpace(r) || unicode.In(r, unicode.Cc, unicode.Cf)
	})
	first, _ := utf8.DecodeRuneInString(seen)
	return strings.ContainsRune("=+-@＝＋－＠", first) && !plainNumber(cell)
}

// plainNumber tells whether the cell is a decimal number, of any size. What Go
// reads as a number beyond that, such as -Inf, is none to a spreadsheet.
func plainNumber(cell string) bool {
	if strings.Trim(cell, "0123456789+-.eE") != "" {
		return false
	}
	_, err := strconv.ParseFloat(cell, 64)
	return err == nil || errors.Is(err, strconv.ErrRange)
}

// record is a line of the JSON lines.
type record struct {
	JobID        string          `json:"job_id"`
	ItemID       string          `json:"item_id"`
	RowIndex     int             `json:"row_index"`
	SourceID     *string         `json:"source_id"`
	Status       string          `json:"status"`
	AttemptCount int             `json:"attempt_count"`
	LastError    *string         `json:"last_error"`
	ExitCode     *int            `json:"exit_code,omitempty"`
	Result       json.RawMessage `json:"result"`
	ReportedAt   *string         `json:"reported_at"`
	CompletedAt  *string         `json:"completed_at"`
	CostUSD      *float64        `json:"cost_usd,omitempty"`
	InputTokens  int64           `json:"input_tokens,omitempty"`
	OutputTokens int64           `json:"output_tokens,omitempty"`
	DurationMS   int64           `json:"duration_ms,omitempty"`
	SessionID    string          `json:"session_id,omitempty"`
	Patch        string          `json:"patch,omitempty"`
	Row          json.RawMessage `json:"row"`
}

// Record writes one row as one line of JSON, with its values as they are.
func Record(w io.Writer, t Table, it Item) error {
	row, err := object(t.Header, it.Values)
	if err != nil {
		return err
	}
	r := record{JobID: t.JobID, ItemID: it.ItemID, RowIndex: it.Index, SourceID: orNull(it.SourceID), Status: it.Status, AttemptCount: it.Attempts,
		LastError: orNull(it.LastError), ExitCode: it.ExitCode, Result: it.Result, ReportedAt: orNull(stamp(it.ReportedAt)), CompletedAt: orNull(stamp(it.CompletedAt)),
		CostUSD: it.CostUSD, InputTokens: it.InputTokens, OutputTokens: it.OutputTokens, DurationMS: it.DurationMS, SessionID: it.SessionID, Patch: it.Patch, Row: row}
	if r.Result == nil {
		r.Result = json.RawMessage("null")
	}
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(r); err != nil {
		return fmt.Errorf("encode row %s: %w", it.ItemID, err)
	}
	return nil
}

func orNull(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// object is a JSON object with the columns in their order.
func object(header, values []string) (json.RawMessage, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	b.WriteByte('{')
	for i, name := range header {
		if i > 0 {
			b.WriteByte(',')
		}
		value := ""
		if i < len(values) {
			value = values[i]
		}
		if err := enc.Encode(name); err != nil {
			return nil, err
		}
		b.Truncate(b.Len() - 1)
		b.WriteByte(':')
		if err := enc.Encode(value); err != nil {
			return nil, err
		}
		b.Truncate(b.Len() - 1)
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// WriteJSONL writes all rows as JSON lines.
func WriteJSONL(w io.Writer, t Table, items iter.Seq2[Item, error]) error {
	for it, err := range items {
		if err != nil {
			return err
		}
		if err := Record(w, t, it); err != nil {
			return err
		}
	}
	return nil
}
