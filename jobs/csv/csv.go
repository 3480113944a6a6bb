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
	"strconv"
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
	maxName     = 1 << 10
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
	seen  map[[16]byte]int32
	twice []repeated
	// more says that there are more such ids than twice holds.
	more     bool
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
func (t *reading) table(src *bufio.Reader) error {
	cells := &cellLimit{src: src, max: int64(t.o.MaxCell), delimiter: ',', line: 1}
	r := csv.NewReader(cells)
	r.FieldsPerRecord, r.ReuseRecord = -1, true
	if d := t.o.Delimiter; d != 0 {
		if d >= utf8.RuneSelf || strings.ContainsRune("\"\r\n\x00", d) {
			return t.fail("csv_delimiter", fmt.Sprintf("%q cannot stand between cells", d), `use one ASCII character: ',', ';', '\t' or '|'`)
		}
		r.Comma, cells.delimiter = d, byte(d)
	}
	next := 1 // the line on which the next record should begin
	for number := 1; ; {
		record, err := r.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			if stop := t.malformed(err, number, cells, r.InputOffset()); stop != nil {
				return stop
			}
			number++
			continue
		}
		line, _ := r.FieldPos(0)
		t.skipped(next, line, cells)
		next = line + 1
		for _, cell := range record {
			next += strings.Count(cell, "\n")
		}
		if blankRow(record, t.o.MaxCell) {
			t.blank(cells.begin(line))
			continue
		}
		if number == 1 {
			err = t.header(record, cells.begin(line))
		} else {
			err = t.row(record, number, r, cells)
		}
		if err != nil {
			return err
		}
		number++
	}
	if t.found.Header == nil {
		return t.fail("csv_header", "csv input must include a header row", "write the names of the columns into the first line")
	}
	return nil
}

// skipped counts the empty lines between two records, which the reader of CSV
// passes over.
func (t *reading) skipped(from, to int, cells *cellLimit) {
	to = cells.begin(to)
	for line := from + cells.shift; line < to; line++ {
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
// so that one look shows more than one mistake, but not without a header.
func (t *reading) malformed(err error, number int, cells *cellLimit, offset int64) error {
	var p *csv.ParseError
	if !errors.As(err, &p) {
		return t.unreadable(err)
	}
	start := cells.begin(p.StartLine)
	line := cells.begin(p.Line)
	var what string
	switch opened := cells.unclosed(offset); {
	case opened > 0:
		what = fmt.Sprintf("row %d opens a quote that is never closed (line %d)", number, opened)
	case errors.Is(p.Err, csv.ErrQuote):
		what = fmt.Sprintf("row %d: a quote inside a quoted cell is not doubled (line %d, column %d)", number, line, p.Column)
	case errors.Is(p.Err, csv.ErrBareQuote):
		what = fmt.Sprintf("row %d: a quote stands in a cell that is not quoted (line %d, column %d)", number, line, p.Column)
	default:
		what = fmt.Sprintf("row %d: %v (line %d, column %d)", number, p.Err, line, p.Column)
	}
	if start != line {
		what += fmt.Sprintf("; the row begins on line %d, and may have swallowed others", start)
	}
	if number == 1 {
		return t.fail("csv_header", what, "write the header as CSV: double the quotes inside a quoted name")
	}
	return t.note("csv_row", what)
}

// note remembers a problem of a row; when there are enough it returns them. All
// that are told have the code of the first.
func (t *reading) note(code, text string) error {
	if t.code == "" {
		t.code = code
	}
	t.problems = append(t.problems, text)
	if len(t.problems) >= maxProblems {
		return t.problem()
	}
	return nil
}

// header checks the names of the columns.
func (t *reading) header(record []string, line int) error {
	names := append([]string(nil), record...)
	for i, name := range names {
		switch {
		case !utf8.ValidString(name):
			return t.fail("csv_encoding", fmt.Sprintf("line %d is not UTF-8 text", line), "convert it: iconv -f WINDOWS-1252 -t UTF-8 FILE > NEW")
		case strings.Contains(name, "\r"):
			return t.fail("csv_header", "there are carriage returns in it, do its lines end with CR alone?", "convert the line ends to LF")
		case strings.TrimSpace(name) == "":
			return t.fail("csv_header", fmt.Sprintf("column %d of the header has no name", i+1), "name every column in the first line")
		case len(name) > min(maxName, t.o.MaxCell):
			return t.fail("csv_header", fmt.Sprintf("the name of column %d has more than %d bytes", i+1, min(maxName, t.o.MaxCell)), "is the first line a header?")
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
func (t *reading) row(record []string, number int, r *csv.Reader, cells *cellLimit) error {
	line, _ := r.FieldPos(0)
	line = cells.begin(line)
	if len(record) != len(t.found.Header) {
		return t.note("csv_row", fmt.Sprintf("csv row %d has %d fields but header has %d (line %d)", number, len(record), len(t.found.Header), line))
	}
	row := Row{Line: line, Values: make([]string, len(record))}
	for i, cell := range record {
		if len(cell) > t.o.MaxCell {
			size := cells.next()
			if row.TooBig == nil {
				row.TooBig = &TooBig{Column: t.found.Header[i], Bytes: size}
			}
			continue
		}
		if !utf8.ValidString(cell) {
			at, _ := r.FieldPos(i)
			at += cells.shift + strings.Count(cell[:validPrefix(cell)], "\n")
			return t.note("csv_encoding", fmt.Sprintf("row %d, column %s: it is not UTF-8 text (line %d)", number, quoted(t.found.Header[i]), at))
		}
		row.Values[i] = cell
	}
	return t.hand(row, number)
}

// validPrefix is how many bytes of s come before the first that is not UTF-8.
func validPrefix(s string) int {
	for i, r := range s {
		if r == utf8.RuneError && !strings.HasPrefix(s[i:], "\ufffd") {
			return i
		}
	}
	return len(s)
}

// blankRow tells whether no cell holds anything. What a cell above the limit
// holds is not known, so that its row is none.
func blankRow(record []string, limit int) bool {
	for _, cell := range record {
		if len(cell) > limit || strings.TrimSpace(cell) != "" {
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
		return t.note(t.rowCode(), fmt.Sprintf("row %d: its id is no short line of text (line %d)", number, row.Line))
	}
	sum := sha256.Sum256([]byte(row.ID))
	key := [16]byte(sum[:16])
	if at, ok := t.seen[key]; ok {
		t.again(row.ID, int(at), number)
		return nil
	}
	t.seen[key] = int32(number)
	if len(t.problems) > 0 || len(t.twice) > 0 {
		return nil
	}
	return t.each(row)
}

// repeated is an id that comes more than once, with the numbers of its rows.
type repeated struct {
	id   string
	rows []string
}

// again remembers an id that has come before.
func (t *reading) again(id string, first, number int) {
	for i := range t.twice {
		if r := &t.twice[i]; r.id == id {
			if len(r.rows) < maxTwice {
				r.rows = append(r.rows, strconv.Itoa(number))
			} else if len(r.rows) == maxTwice {
				r.rows = append(r.rows, "…")
			}
			return
		}
	}
	if len(t.twice) < maxTwice {
		t.twice = append(t.twice, repeated{id, []string{strconv.Itoa(first), strconv.Itoa(number)}})
	} else {
		t.more = true
	}
}

// problem is the error for all that was found, nil if nothing was.
func (t *reading) problem() error {
	if len(t.problems) > 0 {
		return t.fail(t.code, strings.Join(t.problems, "; "), "correct the table; nothing was sent to a model")
	}
	if len(t.twice) == 0 {
		return nil
	}
	var list []string
	for _, r := range t.twice {
		list = append(list, fmt.Sprintf("%s in rows %s", quoted(r.id), strings.Join(r.rows, ", ")))
	}
	if t.more {
		list = append(list, "and others")
	}
	return t.fail("csv_duplicate_id", "ids come more than once: "+strings.Join(list, "; "), "make the ids unique, or leave --id-column out")
}

// rowCode is the code of what is wrong with a row.
func (t *reading) rowCode() string {
	if t.o.Format == "jsonl" {
		return "jsonl_row"
	}
	return "csv_row"
}

func (t *reading) fail(code, why, fix string) error {
	return &fault.Error{Code: code, What: fmt.Sprintf("the table %q cannot be used", t.o.Name), Why: why, Fix: fix, Exit: fault.Config}
}

func (t *reading) unreadable(err error) error {
	return &fault.Error{Code: "csv_unreadable", What: fmt.Sprintf("the table %q cannot be read", t.o.Name), Why: err.Error(), Exit: fault.Environment, Err: err}
}
