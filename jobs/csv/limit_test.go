package csv

import (
	"bufio"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
)

func TestCellOfMegabytesCostsItsRowOnly(t *testing.T) {
	var b strings.Builder
	b.WriteString("id,q,r\n")
	for i := range 12 {
		size := 10
		switch i {
		case 3:
			size = 200 << 10
		case 7:
			size = 9 << 20
		}
		fmt.Fprintf(&b, "%d,\"%s\",end\n", i, strings.Repeat("x", size))
	}
	rows, _ := rowsOf(t, b.String(), Options{IDColumn: "id"})
	for i, r := range rows {
		switch {
		case r.ID != fmt.Sprint(i) || r.Values[2] != "end":
			t.Errorf("row %d is %q, %q", i, r.ID, r.Values[2])
		case i == 7:
			if r.TooBig == nil || *r.TooBig != (TooBig{"q", 9 << 20}) || r.Values[1] != "" {
				t.Errorf("the cell of 9 MB: %+v, value of %d bytes", r.TooBig, len(r.Values[1]))
			}
		case r.TooBig != nil:
			t.Errorf("row %d is too big: %+v", i, r.TooBig)
		case i == 3 && len(r.Values[1]) != 200<<10:
			t.Errorf("the cell of 200 kB has %d bytes", len(r.Values[1]))
		}
	}
	if len(rows) != 12 {
		t.Errorf("%d rows", len(rows))
	}
}

func TestCellsAtTheLimit(t *testing.T) {
	// The limit is 4 bytes.
	for _, c := range []struct {
		name, row string
		// values of the row's two cells; too is the first that is too big.
		values []string
		too    *TooBig
	}{
		{"at the limit", "abcd,z", []string{"abcd", "z"}, nil},
		{"one above", "abcde,z", []string{"", "z"}, &TooBig{"a", 5}},
		{"quoted at the limit", `"abcd",z`, []string{"abcd", "z"}, nil},
		{"quoted one above", `"abcde",z`, []string{"", "z"}, &TooBig{"a", 5}},
		{"delimiters beyond the limit", `"abc,,,,,",z`, []string{"", "z"}, &TooBig{"a", 8}},
		{"doubled quotes count once", `"a""b""",z`, []string{`a"b"`, "z"}, nil},
		{"doubled quote across the limit", `"abcd""",z`, []string{"", "z"}, &TooBig{"a", 5}},
		{"doubled quote behind the limit", `"abcde""f""",z`, []string{"", "z"}, &TooBig{"a", 8}},
		{"only doubled quotes", `"""""""""""",z`, []string{"", "z"}, &TooBig{"a", 5}},
		{"quoted quotes at the limit", `"""""""""",z`, []string{`""""`, "z"}, nil},
		{"CR LF is one byte", "\"a\r\nb\n\",z", []string{"a\nb\n", "z"}, nil},
		{"CR LF beyond the limit", "\"abcd\r\n\r\ne\",z", []string{"", "z"}, &TooBig{"a", 7}},
		{"flood of CR", "\"" + strings.Repeat("\r", 1000) + "\",z", []string{"", "z"}, &TooBig{"a", 1000}},
		{"CR where it is cut", "x,abcd\refg", []string{"x", ""}, &TooBig{"b", 8}},
		{"both cells", `abcdef,"ghijklmn"`, []string{"", ""}, &TooBig{"a", 6}},
		{"the last cell", `a,"ghi""jklmn"`, []string{"a", ""}, &TooBig{"b", 9}},
		{"blank cells beyond the limit", "x,         ", []string{"x", ""}, &TooBig{"b", 9}},
		{"characters of many bytes", "é世,z", []string{"", "z"}, &TooBig{"a", 5}},
	} {
		t.Run(c.name, func(t *testing.T) {
			lines := strings.Count(c.row, "\n")
			// Behind it comes a row of its kind, whose size must not be mixed up.
			text := "a,b\n" + c.row + "\n" + "1,abcdefghijklmnopqrstuvwxyz\n2,y\n" + c.row
			for name, in := range map[string]io.Reader{"whole": strings.NewReader(text), "byte by byte": iotest.OneByteReader(strings.NewReader(text))} {
				var rows []Row
				if _, err := Read(in, Options{MaxCell: 4}, func(r Row) error { rows = append(rows, r); return nil }); err != nil {
					t.Fatalf("%s: %v", name, err)
				}
				want := []Row{
					{Index: 0, Line: 2, ID: "row-1", Values: c.values, TooBig: c.too},
					{Index: 1, Line: 3 + lines, ID: "row-2", Values: []string{"1", ""}, TooBig: &TooBig{"b", 26}},
					{Index: 2, Line: 4 + lines, ID: "row-3", Values: []string{"2", "y"}},
					{Index: 3, Line: 5 + lines, ID: "row-4", Values: c.values, TooBig: c.too},
				}
				if diff := cmp.Diff(want, rows); diff != "" {
					t.Errorf("%s: %s", name, diff)
				}
			}
		})
	}
}

func TestSmallReadsGetTheSameBytes(t *testing.T) {
	// A quote that was held back comes before the byte that follows it.
	text := "a,b\n\"abcdefgh\",z\n\"abcdefgh\"\n\"abcdefgh\"\"\",\"ij\"\r\n1,\"klmnop\""
	limited := func() *cellLimit {
		return &cellLimit{src: bufio.NewReader(strings.NewReader(text)), max: 4, delimiter: ',', line: 1}
	}
	whole, err := io.ReadAll(limited())
	if err != nil {
		t.Fatal(err)
	}
	single, err := io.ReadAll(iotest.OneByteReader(limited()))
	if err != nil {
		t.Fatal(err)
	}
	want := "a,b\n\"abcde\",z\n\"abcde\"\n\"abcde\",\"ij\"\n1,\"klmno\""
	if string(whole) != want || string(single) != want {
		t.Errorf("at once %q, byte by byte %q, want %q", whole, single, want)
	}
}

func TestTextBehindBlanksBeyondTheLimitIsNoBlankRow(t *testing.T) {
	rows, table := rowsOf(t, "a,b\n ,\""+strings.Repeat(" ", 50)+"text\"\nx,123456\n", Options{MaxCell: 4})
	want := []Row{
		{Index: 0, Line: 2, ID: "row-1", Values: []string{" ", ""}, TooBig: &TooBig{"b", 54}},
		{Index: 1, Line: 3, ID: "row-2", Values: []string{"x", ""}, TooBig: &TooBig{"b", 6}},
	}
	if diff := cmp.Diff(want, rows); diff != "" || table.BlankCount != 0 {
		t.Errorf("%d blank rows: %s", table.BlankCount, diff)
	}
}

func TestLinesAreRightBehindACellThatWasCut(t *testing.T) {
	long := "\"" + strings.Repeat("line\r\n", 100) + "\""
	text := "a,b\n1," + long + "\n\n,\n2," + long + "\n"
	rows, table := rowsOf(t, text+"3,c\n", Options{MaxCell: 20})
	if rows[1].Line != 105 || rows[2].Line != 206 || !cmp.Equal(table.Blank, []int{103, 104}) {
		t.Errorf("rows on lines %d and %d, blank %v", rows[1].Line, rows[2].Line, table.Blank)
	}
	for _, c := range []struct{ name, text, want string }{
		{"ragged", "3\n", "csv row 4 has 1 fields but header has 2 (line 206)"},
		{"stray quote", "3,x\"y\n", "row 4: a quote stands in a cell that is not quoted (line 206, column 4)"},
		{"open quote", "3,\"x\n4,y\n", "row 4 opens a quote that is never closed (line 206)"},
		{"invalid UTF-8", "3,\"x\n\xff\"\n", "(line 207)"},
	} {
		if f, _ := mustFail(t, text+c.text, Options{MaxCell: 20}); !strings.Contains(f.Why, c.want) {
			t.Errorf("%s: %q is not in %q", c.name, c.want, f.Why)
		}
	}
}

func TestOpenQuoteOfACellThatWasCutIsTold(t *testing.T) {
	f, _ := mustFail(t, "a,b\n1,x\n2,\""+strings.Repeat("swallowed\n", 100), Options{MaxCell: 20})
	if want := "row 3 opens a quote that is never closed (line 3)"; !strings.Contains(f.Why, want) {
		t.Errorf("%q is not in %q", want, f.Why)
	}
}

// endless gives head, then a unit again and again, then tail.
type endless struct {
	head, tail string
	unit       []byte
	size       int64
}

func (e *endless) Read(p []byte) (n int, err error) {
	switch {
	case e.head != "":
		n = copy(p, e.head)
		e.head = e.head[n:]
	case e.size > 0:
		n = copy(p, e.unit[:min(int64(len(e.unit)), e.size)])
		e.size -= int64(n)
	case e.tail != "":
		n = copy(p, e.tail)
		e.tail = e.tail[n:]
	default:
		return 0, io.EOF
	}
	return n, nil
}

func TestMemoryStaysFlatForACellOfAnySize(t *testing.T) {
	const size, limit, most = 8 << 20, 64 << 10, 2 << 20
	broken := map[string]bool{"after a quote": true, "stray quote": true, "never closed": true}
	for name, e := range map[string]endless{
		"quoted":         {"a,b\n1,\"", "\"\n2,y\n", []byte(strings.Repeat("text\n", 10000)), size},
		"plain":          {"a,b\n1,", "\n2,y\n", []byte(strings.Repeat("x", 50000)), size},
		"doubled quotes": {"a,b\n1,\"", "\"\n2,y\n", []byte(strings.Repeat("\"", 50000)), size},
		"CR":             {"a,b\n1,\"", "\"\n2,y\n", []byte(strings.Repeat("\r", 50000)), size},
		"CR outside":     {"a,b\n1,x", "\n2,y\n", []byte(strings.Repeat("\r", 50000)), size},
		"empty lines":    {"a,b\n1,x", "\n2,y\n", []byte(strings.Repeat("\n", 50000)), size},
		"after a quote":  {"a,b\n1,\"x\"", "\n2,y\n", []byte(strings.Repeat("z", 50000)), size},
		"stray quote":    {"a,b\n1,x\"", "\n2,y\n", []byte(strings.Repeat("z", 50000)), size},
		"never closed":   {"a,b\n1,\"", "", []byte(strings.Repeat("z\n", 25000)), size},
	} {
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			last := ""
			_, err := Read(&e, Options{MaxCell: limit}, func(r Row) error { last = r.Values[1]; return nil })
			runtime.ReadMemStats(&after)
			if got := after.TotalAlloc - before.TotalAlloc; got > most {
				t.Errorf("%d bytes were allocated, at most %d are right", got, most)
			}
			if err == nil && last != "y" {
				t.Errorf("the row behind it is %q", last)
			}
			if broken[name] != (err != nil) {
				t.Errorf("error %v", err)
			}
		})
	}
}
