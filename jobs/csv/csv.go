// Package csv reads the tables that jobs work on: CSV as RFC 4180 has it, with
// the delimiter that the user names, or JSON lines.
//
// Read goes through a table once, in memory that is bounded by one row, and
// refuses what would make a job do the wrong thing: a row that is too short, an
// id that comes twice, a quote that swallows rows. Nothing is guessed. Problems
// of the header come before those of rows, with the number of the row (the
// header is row 1) or of the line in the file. The package reads and does
// nothing else.
package csv

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/csv"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"

	"drover/output/fault"
)

// DefaultMaxCell is how many bytes a cell may have.
const DefaultMaxCell = 8 << 20

// Options say how a table is read.
type Options struct {
	// Name is what errors call the table.
	Name string
	// Format is csv or jsonl; "" is csv.
	Format string
	// Delimiter separates cells, an ASCII character; 0 is a comma.
	Delimiter rune
	// IDColumn names the column of the rows' ids, "" if they have none.
	IDColumn string
	// MaxCell bounds a cell in bytes; 0 is DefaultMaxCell.
	MaxCell int
	// Header are the columns as a first reading found them; the second reading
	// of JSON lines needs them.
	Header []string
}

// Row is one row of a table.
type Row struct {
	// Index counts the rows from 0, without blank ones; Line is where the row
	// begins in the file, from 1.
	Index, Line int
	// ID is the value of the id column, or row-N where that is blank. SourceID is
	// the value itself.
	ID, SourceID string
	// Values are as many as the header has columns.
	Values []string
	// TooBig is the first cell that is above the limit, nil if none is. Its value
	// is "".
	TooBig *TooBig
}

// TooBig is a cell above the limit.
type TooBig struct {
	Column string
	Bytes  int64
}

// Table is what a reading has found.
type Table struct {
	Header []string
	Rows   int
	// Blank are lines with blank rows, which are no rows; at most 100 are kept,
	// BlankCount counts all.
	Blank      []int
	BlankCount int
	// SHA256 is the hash of the bytes.
	SHA256 string
}

const (
	maxBlank    = 100
	maxProblems = 5
	maxTwice    = 10
	maxID       = 256
)

// Read reads the whole table and calls each with every row; nil only checks. An
// error of each ends the reading and is returned as it is. Errors of the table
// are faults of class Config.
func Read(r io.Reader, o Options, each func(Row) error) (*Table, error) {
	if o.MaxCell == 0 {
		o.MaxCell = DefaultMaxCell
	}
	if each == nil {
		each = func(Row) error { return nil }
	}
	sum := sha256.New()
	t := &reading{o: o, each: each, sum: sum, seen: map[[16]byte]int32{}}
	src := bufio.NewReaderSize(io.TeeReader(r, sum), 64<<10)
	err := t.begin(src)
	if err == nil {
		if o.Format == "jsonl" {
			err = t.lines(src)
		} else {
			err = t.table(src)
		}
	}
	if err == nil {
		err = t.problem()
	}
	if err != nil {
		return nil, err
	}
	// What the reader of the table left is part of the bytes, too.
	if _, err := io.Copy(io.Discard, src); err != nil {
		return nil, t.unreadable(err)
	}
	t.found.SHA256 = hex.EncodeToString(sum.Sum(nil))
	return &t.found, nil
}

// reading is one pass through a table.
type reading struct {
	o     Options
	each  func(Row) error
	sum   hash.Hash
	found Table
	// id is the index of the id column, -1 for none.
	id int
	// seen are the hashes of the ids with the numbers of their rows.
	seen     map[[16]byte]int32
	twice    []string
	problems []string
	code     string
}

// begin takes a byte-order mark off and refuses other encodings.
func (t *reading) begin(src *bufio.Reader) error {
	head, err := src.Peek(4)
	if err != nil && !errors.Is(err, io.EOF) {
		return t.unreadable(err)
	}
	switch {
	case bytes.HasPrefix(head, []byte("\xef\xbb\xbf")):
		_, _ = src.Discard(3) // they are there
	case bytes.HasPrefix(head, []byte("\xff\xfe")), bytes.HasPrefix(head, []byte("\xfe\xff")),
		len(head) >= 2 && (head[0] == 0) != (head[1] == 0):
		return t.fail("csv_encoding", "it looks like UTF-16", "convert it: iconv -f UTF-16 -t UTF-8 FILE > NEW")
	}
	return nil
}

// table reads CSV.
func (t *reading) table(src io.Reader) error {
	cells := &cellLimit{src: bufio.NewReaderSize(src, 64<<10), max: int64(t.o.MaxCell), delimiter: ','}
	r := csv.NewReader(cells)
	r.FieldsPerRecord, r.ReuseRecord = -1, true
	if t.o.Delimiter != 0 {
		r.Comma, cells.delimiter = t.o.Delimiter, byte(t.o.Delimiter)
	}
	first := true
	next := 1 // the line on which the next record should begin
	for number := 1; ; number++ {
		record, err := r.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			if stop := t.malformed(err); stop != nil {
				return stop
			}
			next = 0 // where the next record begins is not known
			continue
		}
		line, _ := r.FieldPos(0)
		t.skipped(next, line)
		next = line + 1
		for _, cell := range record {
			next += strings.Count(cell, "\n")
		}
		if first {
			if err := t.header(record, line); err != nil {
				return err
			}
			first = false
			continue
		}
		if err := t.row(record, line, number, cells); err != nil {
			return err
		}
	}
	if first && len(t.problems) == 0 {
		return t.fail("csv_header", "csv input must include a header row", "write the names of the columns into the first line")
	}
	return nil
}

// skipped counts the empty lines between two records, which the reader of CSV
// passes over.
func (t *reading) skipped(from, to int) {
	if from == 0 {
		return
	}
	for line := from; line < to; line++ {
		t.blank(line)
	}
}

func (t *reading) blank(line int) {
	t.found.BlankCount++
	if len(t.found.Blank) < maxBlank {
		t.found.Blank = append(t.found.Blank, line)
	}
}

// malformed notes what is wrong with a record. The reading goes on for a while,
// so that one look shows more than one mistake.
func (t *reading) malformed(err error) error {
	var p *csv.ParseError
	if !errors.As(err, &p) {
		return t.unreadable(err)
	}
	switch {
	case errors.Is(p.Err, csv.ErrQuote) && p.Line > p.StartLine:
		t.note("csv_row", fmt.Sprintf("line %d: a quote is opened that is never closed", p.StartLine))
	case errors.Is(p.Err, csv.ErrQuote):
		t.note("csv_row", fmt.Sprintf("line %d, column %d: a quote inside a quoted cell is not doubled", p.Line, p.Column))
	case errors.Is(p.Err, csv.ErrBareQuote):
		t.note("csv_row", fmt.Sprintf("line %d, column %d: a quote stands in a cell that is not quoted", p.Line, p.Column))
	default:
		t.note("csv_row", fmt.Sprintf("line %d, column %d: %v", p.Line, p.Column, p.Err))
	}
	if len(t.problems) >= maxProblems {
		return t.problem()
	}
	return nil
}

// note remembers a problem of a row. All that are told have one code.
func (t *reading) note(code, text string) {
	if len(t.problems) < maxProblems {
		t.problems = append(t.problems, text)
		if t.code == "" {
			t.code = code
		}
	}
}

// header checks the names of the columns.
func (t *reading) header(record []string, line int) error {
	names := append([]string(nil), record...)
	for i, name := range names {
		switch {
		case !utf8.ValidString(name):
			return t.fail("csv_encoding", fmt.Sprintf("line %d is not UTF-8 text", line), "convert it: iconv -f WINDOWS-1252 -t UTF-8 FILE > NEW")
		case strings.Contains(name, "\r"):
			return t.fail("csv_header", "its lines end with CR alone", "convert the line ends to LF")
		case strings.TrimSpace(name) == "":
			return t.fail("csv_header", fmt.Sprintf("column %d of the header has no name", i+1), "name every column in the first line")
		case len(name) > 1<<10:
			return t.fail("csv_header", fmt.Sprintf("the name of column %d has %d bytes", i+1, len(name)), "is the first line a header?")
		}
	}
	if len(names) == 1 && t.o.Delimiter == 0 {
		for _, other := range []struct{ sign, flag string }{{";", ";"}, {"\t", `\t`}, {"|", "|"}} {
			if strings.Contains(names[0], other.sign) {
				return t.fail("csv_delimiter", fmt.Sprintf("only one column, header contains %q", other.sign), "name the delimiter: --delimiter '"+other.flag+"'")
			}
		}
	}
	return t.columns(names)
}

// columns takes the names of the columns, of either format.
func (t *reading) columns(names []string) error {
	known := map[string]bool{}
	for _, name := range names {
		if known[name] {
			return t.fail("csv_header", fmt.Sprintf("csv header %s is duplicated", quoted(name)), "give every column a name of its own")
		}
		known[name] = true
	}
	t.found.Header, t.id = names, -1
	if t.o.IDColumn == "" {
		return nil
	}
	for i, name := range names {
		if name == t.o.IDColumn {
			t.id = i
			return nil
		}
	}
	why := fmt.Sprintf("it has no column %s for the ids", quoted(t.o.IDColumn))
	if near := near(t.o.IDColumn, names); near != "" {
		why += fmt.Sprintf(", did you mean %s?", quoted(near))
	}
	var list []string
	for _, name := range names[:min(len(names), 20)] {
		list = append(list, quoted(name))
	}
	return t.fail("csv_id_column", why, "use one of "+strings.Join(list, ", "))
}

func near(got string, known []string) string {
	plain := func(s string) string { return strings.ToLower(strings.TrimSpace(s)) }
	for _, k := range known {
		if plain(k) == plain(got) {
			return k
		}
	}
	return fault.Nearest(got, known)
}

// quoted shows a name with its blanks, shortened.
func quoted(s string) string {
	if len(s) > 80 {
		s = strings.ToValidUTF8(s[:80], "") + "…"
	}
	return fmt.Sprintf("%q", s)
}

// row checks one record and hands it on. number counts the header as 1.
func (t *reading) row(record []string, line, number int, cells *cellLimit) error {
	if blankRow(record) {
		t.blank(line)
		return nil
	}
	if len(record) != len(t.found.Header) {
		t.note("csv_row", fmt.Sprintf("csv row %d has %d fields but header has %d (line %d)", number, len(record), len(t.found.Header), line))
		if len(t.problems) >= maxProblems {
			return t.problem()
		}
		return nil
	}
	row := Row{Line: line, Values: make([]string, len(record))}
	for i, cell := range record {
		if len(cell)-strings.Count(cell, "\r") > t.o.MaxCell {
			size := cells.next()
			if row.TooBig == nil {
				row.TooBig = &TooBig{Column: t.found.Header[i], Bytes: size}
			}
			continue
		}
		if !utf8.ValidString(cell) {
			t.note("csv_encoding", fmt.Sprintf("line %d, column %s: it is not UTF-8 text", line, quoted(t.found.Header[i])))
			if len(t.problems) >= maxProblems {
				return t.problem()
			}
		}
		row.Values[i] = cell
	}
	return t.hand(row, number)
}

func blankRow(record []string) bool {
	for _, cell := range record {
		if strings.TrimSpace(cell) != "" {
			return false
		}
	}
	return true
}

// hand gives the row its id and hands it on.
func (t *reading) hand(row Row, number int) error {
	row.Index = t.found.Rows
	t.found.Rows++
	if t.id >= 0 {
		row.SourceID = row.Values[t.id]
	}
	row.ID = row.SourceID
	if strings.TrimSpace(row.ID) == "" {
		row.ID = fmt.Sprintf("row-%d", row.Index+1)
	}
	if len(row.ID) > maxID || strings.ContainsFunc(row.ID, unicode.IsControl) {
		t.note("csv_row", fmt.Sprintf("row %d: its id is no short line of text", number))
		return nil
	}
	sum := sha256.Sum256([]byte(row.ID))
	key := [16]byte(sum[:16])
	if at, ok := t.seen[key]; ok {
		if len(t.twice) < maxTwice {
			t.twice = append(t.twice, fmt.Sprintf("%s in rows %d and %d", quoted(row.ID), at, number))
		}
		return nil
	}
	t.seen[key] = int32(number)
	if len(t.problems) > 0 || len(t.twice) > 0 {
		return nil
	}
	return t.each(row)
}

// problem is the error for all that was found, nil if nothing was.
func (t *reading) problem() error {
	switch {
	case len(t.problems) > 0:
		return t.fail(t.code, strings.Join(t.problems, "; "), "correct the table; nothing was sent to a model")
	case len(t.twice) > 0:
		return t.fail("csv_duplicate_id", "ids come more than once: "+strings.Join(t.twice, "; "), "make the ids unique, or leave --id-column out")
	}
	return nil
}

func (t *reading) fail(code, why, fix string) error {
	return &fault.Error{Code: code, What: fmt.Sprintf("the table %q cannot be used", t.o.Name), Why: why, Fix: fix, Exit: fault.Config}
}

func (t *reading) unreadable(err error) error {
	return &fault.Error{Code: "csv_unreadable", What: fmt.Sprintf("the table %q cannot be read", t.o.Name), Why: err.Error(), Exit: fault.Environment, Err: err}
}
