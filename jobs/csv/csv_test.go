package csv

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/google/go-cmp/cmp"

	"drover/output/fault"
)

// rowsOf reads a table that must be right.
func rowsOf(t *testing.T, text string, o Options) ([]Row, *Table) {
	t.Helper()
	var rows []Row
	table, err := Read(strings.NewReader(text), o, func(r Row) error {
		rows = append(rows, r)
		return nil
	})
	if err != nil {
		t.Fatalf("%v in %.200q", err, text)
	}
	if table.Rows != len(rows) {
		t.Errorf("%d rows were handed out, the table says %d", len(rows), table.Rows)
	}
	return rows, table
}

// valuesOf are the header and the values of a table that must be right.
func valuesOf(t *testing.T, text string, o Options) [][]string {
	t.Helper()
	rows, table := rowsOf(t, text, o)
	out := [][]string{table.Header}
	for _, r := range rows {
		out = append(out, r.Values)
	}
	return out
}

// mustFail reads a table that must not be right, and returns the error and how
// many rows were handed out before the mistake.
func mustFail(t *testing.T, text string, o Options) (f *fault.Error, rows int) {
	t.Helper()
	table, err := Read(strings.NewReader(text), o, func(Row) error { rows++; return nil })
	if table != nil || !errors.As(err, &f) {
		t.Fatalf("got table %v, error %v, want a fault, for %.200q", table, err, text)
	}
	if f.Exit != fault.Config {
		t.Errorf("the class is %v, want %v", f.Exit, fault.Config)
	}
	return f, rows
}

func TestMistakesAreToldWithTheirPlace(t *testing.T) {
	for _, c := range []struct {
		name, text string
		o          Options
		code       string
		// want are parts of the text.
		want []string
	}{
		{"empty file", "", Options{}, "csv_header", []string{"must include a header row"}},
		{"blank lines only", "\r\n\n , \n", Options{}, "csv_header", []string{"must include a header row"}},
		{"byte-order mark only", "\ufeff", Options{}, "csv_header", []string{"must include a header row"}},
		{"column without a name", "id,,q\n", Options{}, "csv_header", []string{"column 2", "no name"}},
		{"duplicate header", "id,q,id\n1,2,3\n", Options{}, "csv_header", []string{`csv header "id" is duplicated`}},
		{"header of a kilobyte", "id," + strings.Repeat("x", 2000) + "\n", Options{}, "csv_header", []string{"column 2", "more than 1024 bytes"}},
		{"header beyond the limit of a cell", "id," + strings.Repeat("x", 5000) + "\n", Options{MaxCell: 4000}, "csv_header", []string{"column 2"}},
		{"header beyond a small limit", "id,abcdef\n1,2\n", Options{MaxCell: 4}, "csv_header", []string{"column 2", "more than 4 bytes"}},
		{"header with a stray quote", "id,q \"x\"\n1,2\n3,4\n", Options{IDColumn: "id"}, "csv_header", []string{"line 1, column 6"}},
		{"header with an open quote", "id,\"q\n1,2\n", Options{IDColumn: "id"}, "csv_header", []string{"row 1 opens a quote that is never closed (line 1)"}},
		{"header before rows", "City ,q\n1\n2,\"\n", Options{IDColumn: "city"}, "csv_id_column", []string{`no column "city"`, `did you mean "City "?`}},
		{"id column far from any", "a,b\n1,2\n", Options{IDColumn: "identifier"}, "csv_id_column", []string{`no column "identifier"`}},
		{"semicolons", "id;q\n1;a\n", Options{}, "csv_delimiter", []string{"only one column", `";"`}},
		{"tabs", "id\tq\n1\ta\n", Options{}, "csv_delimiter", []string{"only one column", `"\t"`}},
		{"bars", "id|q\n1|a\n", Options{}, "csv_delimiter", []string{"only one column", `"|"`}},
		{"delimiter that is a quote", "a\n", Options{Delimiter: '"'}, "csv_delimiter", []string{"cannot stand between cells"}},
		{"delimiter beyond ASCII", "a§b\n", Options{Delimiter: '§'}, "csv_delimiter", []string{"cannot stand between cells"}},
		{"lines that end with CR alone", "id,q\r1,a\r2,b\r", Options{}, "csv_header", []string{"CR alone"}},
		{"ragged rows", "a,b\n1,2\n1\n\n,\n1,2,3\n", Options{}, "csv_row", []string{"csv row 3 has 1 fields but header has 2 (line 3)", "csv row 4 has 3 fields but header has 2 (line 6)"}},
		{"ragged row behind lines in a cell", "a,b\n\"x\r\ny\nz\",2\n1\n", Options{}, "csv_row", []string{"csv row 3 has 1 fields", "(line 5)"}},
		{"text behind a closing quote", "a,b\n1,\"x\"y\n", Options{}, "csv_row", []string{"row 2: a quote inside a quoted cell is not doubled (line 2, column 5)"}},
		{"CR behind a closing quote", "a,b\n1,\"x\"\ry\n", Options{}, "csv_row", []string{"row 2", "line 2"}},
		{"open quote on the last line", "a,b\n1,2\n3,\"", Options{}, "csv_row", []string{"row 3 opens a quote that is never closed (line 3)"}},
		{"open quote in a row of many lines", "a,b\n\"x\ny\",\"z\n1,2\n", Options{}, "csv_row", []string{"row 2 opens a quote that is never closed (line 3)", "row begins on line 2"}},
		{"open quote that a later cell closes", "a,b\n1,\"x\n2,y\n3,\"z\"\n", Options{}, "csv_row", []string{"line 4, column 3", "row begins on line 2", "swallowed"}},
		{"invalid UTF-8", "a,b\n1,2\n\"x\ny\",\"one\ntwo \xff\"\n", Options{}, "csv_encoding", []string{`row 3, column "b"`, "not UTF-8", "(line 5)"}},
		{"invalid UTF-8 in the header", "a,\xe9\n1,2\n", Options{}, "csv_encoding", []string{"line 1"}},
		{"duplicate ids", "id,q\nx,1\ny,2\nx,3\n,4\nx,5\ny,6\n", Options{IDColumn: "id"}, "csv_duplicate_id", []string{`"x" in rows 2, 4, 6`, `"y" in rows 3, 7`}},
		{"made id against a real one", "id,q\nrow-2,1\n,2\n", Options{IDColumn: "id"}, "csv_duplicate_id", []string{`"row-2" in rows 2, 3`}},
		{"real id against a made one", "id,q\n ,1\nrow-1,2\n", Options{IDColumn: "id"}, "csv_duplicate_id", []string{`"row-1" in rows 2, 3`}},
		{"id with a control character", "id\na\n\"b\nc\"\n", Options{IDColumn: "id"}, "csv_row", []string{"row 3", "its id"}},
		{"id with an escape", "id\nb\x1b[31m\n", Options{IDColumn: "id"}, "csv_row", []string{"row 2", "its id"}},
		{"long id", "id\n" + strings.Repeat("x", 257) + "\n", Options{IDColumn: "id"}, "csv_row", []string{"row 2", "its id"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			f, _ := mustFail(t, c.text, c.o)
			if f.Code != c.code {
				t.Errorf("code %s, want %s: %v", f.Code, c.code, f)
			}
			for _, want := range c.want {
				if !strings.Contains(f.Why, want) {
					t.Errorf("%q is not in %q", want, f.Why)
				}
			}
			if f.Fix == "" {
				t.Error("nothing is said about what to do")
			}
		})
	}
}

func TestByteOrderMarkBeforeAQuotedHeaderIsDropped(t *testing.T) {
	rows, table := rowsOf(t, "\ufeff\"id\",\"q\"\n\"a\",\"b\"\n", Options{IDColumn: "id"})
	if !cmp.Equal(table.Header, []string{"id", "q"}) || rows[0].ID != "a" {
		t.Errorf("header %q, rows %+v", table.Header, rows)
	}
}

func TestUTF16IsRefusedWithTheCommandThatConvertsIt(t *testing.T) {
	units := utf16.Encode([]rune("id,q\n1,é\n"))
	for _, big := range []bool{false, true} {
		for _, mark := range []bool{false, true} {
			var b []byte
			add := func(u uint16) {
				if big {
					b = append(b, byte(u>>8), byte(u))
				} else {
					b = append(b, byte(u), byte(u>>8))
				}
			}
			if mark {
				add(0xfeff)
			}
			for _, u := range units {
				add(u)
			}
			for _, format := range []string{"csv", "jsonl"} {
				f, rows := mustFail(t, string(b), Options{Format: format})
				if f.Code != "csv_encoding" || !strings.Contains(f.Why, "UTF-16") || !strings.Contains(f.Fix, "iconv") || rows != 0 {
					t.Errorf("big %v, mark %v, %s: %s: %v (%s)", big, mark, format, f.Code, f, f.Fix)
				}
			}
		}
	}
}

func TestBlankRowsAreNoTasksAndAreCounted(t *testing.T) {
	// The quoted cell takes lines 2 to 4.
	text := "id,q\r\n1,\"a\r\nb\nc\"\r\n2,x\r\n\r\r\n\n,\n   \n,  \n3,y\n\" \",\"\"\n\n4,z"
	rows, table := rowsOf(t, text, Options{IDColumn: "id"})
	var got []string
	for _, r := range rows {
		got = append(got, fmt.Sprintf("%d %s line %d", r.Index, r.ID, r.Line))
	}
	if diff := cmp.Diff([]string{"0 1 line 2", "1 2 line 5", "2 3 line 11", "3 4 line 14"}, got); diff != "" {
		t.Error(diff)
	}
	// The empty line at 13 is between rows, that at 6 and 7 too.
	if diff := cmp.Diff([]int{6, 7, 8, 9, 10, 12, 13}, table.Blank); diff != "" || table.BlankCount != 7 {
		t.Errorf("%d blank rows: %s", table.BlankCount, diff)
	}
}

func TestBlankRowsBeforeTheHeaderAreSkipped(t *testing.T) {
	rows, table := rowsOf(t, "\n,,\nid,q\n1,a\n", Options{IDColumn: "id"})
	if len(rows) != 1 || rows[0].Line != 4 || !cmp.Equal(table.Blank, []int{1, 2}) {
		t.Errorf("rows %+v, blank %v", rows, table.Blank)
	}
}

func TestManyBlankRowsTakeNoMemory(t *testing.T) {
	_, table := rowsOf(t, "q\na\n"+strings.Repeat("\n", 5000)+"b\n", Options{})
	if table.BlankCount != 5000 || len(table.Blank) != maxBlank || table.Blank[0] != 3 {
		t.Errorf("%d counted, %d kept", table.BlankCount, len(table.Blank))
	}
}

func TestLineEndsOfAnyKindGiveTheSameRows(t *testing.T) {
	want := [][]string{{"id", "q"}, {"1", "a"}, {"2", "b \"c\""}}
	for _, end := range []string{"\n", "\r\n", "\r\r\n", "\r\r\r\n"} {
		for _, last := range []string{"", end} {
			text := strings.Join([]string{"id,q", "1,a", `2,"b ""c"""`}, end) + last
			if diff := cmp.Diff(want, valuesOf(t, text, Options{})); diff != "" {
				t.Errorf("%q: %s", end, diff)
			}
		}
	}
}

func TestSemicolonsAndTabsByTheirFlag(t *testing.T) {
	want := [][]string{{"id", "q", "price"}, {"1", "a;b\tc|d", "1,50"}}
	for _, d := range []string{";", "\t", "|"} {
		text := strings.Join([]string{"id", "q", "price"}, d) + "\n" + strings.Join([]string{"1", "\"a;b\tc|d\"", "1,50"}, d) + "\n"
		if diff := cmp.Diff(want, valuesOf(t, text, Options{Delimiter: rune(d[0])})); diff != "" {
			t.Errorf("%q: %s", d, diff)
		}
	}
	// Who names the comma means one column.
	if got := valuesOf(t, "a;b\n1;2\n", Options{Delimiter: ','}); !cmp.Equal(got, [][]string{{"a;b"}, {"1;2"}}) {
		t.Errorf("got %q", got)
	}
}

func TestHeaderOnlyIsATableWithoutRows(t *testing.T) {
	for _, text := range []string{"id,q", "id,q\n", "id,q\r\n\r\n"} {
		if rows, table := rowsOf(t, text, Options{IDColumn: "id"}); len(rows) != 0 || len(table.Header) != 2 {
			t.Errorf("%q: %d rows, header %q", text, len(rows), table.Header)
		}
	}
}

func TestHeaderNamesStayAsWritten(t *testing.T) {
	rows, table := rowsOf(t, " id ,City \n1,x\n", Options{IDColumn: " id "})
	if !cmp.Equal(table.Header, []string{" id ", "City "}) || rows[0].ID != "1" {
		t.Errorf("header %q, rows %+v", table.Header, rows)
	}
}

func TestRowsWithEqualTextStayApart(t *testing.T) {
	rows, _ := rowsOf(t, "id,q\na,same\n,same\n\" \",same\n b ,same\n", Options{IDColumn: "id"})
	var got []string
	for _, r := range rows {
		got = append(got, r.ID+"|"+r.SourceID)
	}
	if diff := cmp.Diff([]string{"a|a", "row-2|", "row-3| ", " b | b "}, got); diff != "" {
		t.Error(diff)
	}
}

func TestTwoMalformedRowsAreToldAtOnce(t *testing.T) {
	var b strings.Builder
	b.WriteString("id,q\n")
	for row := 2; row <= 100; row++ {
		switch row {
		case 10:
			fmt.Fprintf(&b, "%d,a \"b\" c\n", row)
		case 20:
			fmt.Fprintf(&b, "%d,\"never closed\n", row)
		default:
			fmt.Fprintf(&b, "%d,text\n", row)
		}
	}
	f, rows := mustFail(t, b.String(), Options{IDColumn: "id"})
	for _, want := range []string{"row 10: a quote stands in a cell that is not quoted (line 10, column 6)", "row 20 opens a quote that is never closed (line 20)"} {
		if !strings.Contains(f.Why, want) {
			t.Errorf("%q is not in %q", want, f.Why)
		}
	}
	if f.Code != "csv_row" || rows != 8 {
		t.Errorf("code %s; %d rows were handed out, of which 8 are before the first mistake", f.Code, rows)
	}
}

func TestMistakeInALineDoesNotHideThoseBehindIt(t *testing.T) {
	// The line's second mistake, an open quote, does not reach the next line.
	f, _ := mustFail(t, "a,b\n1,x \"y\" z,\"w\n1\n2,\"v\n", Options{})
	for _, want := range []string{"row 2: a quote stands", "csv row 3 has 1 fields", "row 4 opens a quote that is never closed (line 4)"} {
		if !strings.Contains(f.Why, want) {
			t.Errorf("%q is not in %q", want, f.Why)
		}
	}
}

func TestOpenQuoteAtTheEndIsNotTakenForAnEarlierMistake(t *testing.T) {
	// The carriage return at the end has the whole table read before its first row
	// is looked at.
	f, _ := mustFail(t, "a,b\n1,x\"y\n2,\"z\r", Options{})
	for _, want := range []string{"row 2: a quote stands in a cell that is not quoted (line 2, column 4)", "row 3 opens a quote that is never closed (line 3)"} {
		if !strings.Contains(f.Why, want) {
			t.Errorf("%q is not in %q", want, f.Why)
		}
	}
}

func TestOnlySomeOfManyMistakesAreTold(t *testing.T) {
	f, _ := mustFail(t, "a,b\n"+strings.Repeat("1\n", 1000), Options{})
	if n := strings.Count(f.Why, "csv row"); n != maxProblems {
		t.Errorf("%d are told, want %d", n, maxProblems)
	}
	var b strings.Builder
	b.WriteString("id,q\n")
	for i := range 100 {
		fmt.Fprintf(&b, "id-%d,a\nid-%d,b\n", i, i)
	}
	f, _ = mustFail(t, b.String(), Options{IDColumn: "id"})
	if n := strings.Count(f.Why, " in rows "); n != maxTwice || !strings.Contains(f.Why, "others") {
		t.Errorf("%d are told, want %d and a word about others: %s", n, maxTwice, f.Why)
	}
	f, _ = mustFail(t, "id,q\n"+strings.Repeat("x,1\n", 5000), Options{IDColumn: "id"})
	if len(f.Why) > 200 {
		t.Errorf("an id that comes 5000 times takes %d bytes", len(f.Why))
	}
}

func TestErrorOfTheCallerIsReturnedAsItIs(t *testing.T) {
	stop, calls := errors.New("stop"), 0
	_, err := Read(strings.NewReader("q\na\nb\n"), Options{}, func(Row) error { calls++; return stop })
	if err != stop || calls != 1 {
		t.Errorf("got %v after %d calls", err, calls)
	}
}

// torn fails behind its text.
type torn struct{ text io.Reader }

var errTorn = errors.New("input/output error")

func (r torn) Read(p []byte) (int, error) {
	n, err := r.text.Read(p)
	if err == io.EOF {
		err = errTorn
	}
	return n, err
}

func TestSourceThatFailsIsAFaultOfTheEnvironment(t *testing.T) {
	for _, c := range []struct{ format, text string }{
		{"csv", ""}, {"csv", "q\na\n"}, {"csv", "q\n\"a"}, {"jsonl", ""}, {"jsonl", "{\"q\":1}\n"}, {"jsonl", "{\"q\":1}"},
	} {
		_, err := Read(torn{strings.NewReader(c.text)}, Options{Format: c.format}, nil)
		var f *fault.Error
		if !errors.As(err, &f) || f.Exit != fault.Environment || f.Code != "csv_unreadable" || !errors.Is(f.Err, errTorn) {
			t.Errorf("%s %q: got %v", c.format, c.text, err)
		}
	}
}

func TestHashIsThatOfTheBytes(t *testing.T) {
	for _, c := range []struct{ format, text string }{
		{"csv", "q\na\n"}, {"csv", "\ufeffq\r\na\r\n\r\n"}, {"csv", "q\n" + strings.Repeat("x", 200<<10)}, {"jsonl", "{\"q\":1}\n\n"},
	} {
		table, err := Read(strings.NewReader(c.text), Options{Format: c.format, MaxCell: 100}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if want := fmt.Sprintf("%x", sha256.Sum256([]byte(c.text))); table.SHA256 != want {
			t.Errorf("%.20q: got %s, want %s", c.text, table.SHA256, want)
		}
	}
}
