package csv

import (
	"encoding/csv"
	"encoding/json"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

// reference reads a table with encoding/csv alone, without blank rows.
func reference(text string, limit int) (rows []Row, err error) {
	r := csv.NewReader(strings.NewReader(text))
	r.FieldsPerRecord = -1
	for {
		record, err := r.Read()
		if err == io.EOF {
			return rows, nil
		}
		if err != nil {
			return nil, err
		}
		if line, _ := r.FieldPos(0); !blankRow(record, limit) {
			rows = append(rows, Row{Line: line, Values: record})
		}
	}
}

// refusable tells whether a table may be refused for more than its quotes.
func refusable(rows []Row) bool {
	if len(rows) == 0 {
		return true
	}
	known := map[string]bool{}
	for _, name := range rows[0].Values {
		if known[name] || strings.TrimSpace(name) == "" || len(name) > 1<<10 || strings.Contains(name, "\r") {
			return true
		}
		known[name] = true
	}
	if len(known) == 1 && strings.ContainsAny(rows[0].Values[0], ";\t|") {
		return true
	}
	for _, r := range rows {
		if len(r.Values) != len(rows[0].Values) {
			return true
		}
		for _, cell := range r.Values {
			if !utf8.ValidString(cell) {
				return true
			}
		}
	}
	return false
}

// FuzzRead holds the reader against encoding/csv: the same rows on the same
// lines, and cells above the limit with the sizes that they have there.
func FuzzRead(f *testing.F) {
	for _, s := range []string{
		"a,b\n1,2\n", "a,b\r\n\"x\r\ny\",\"say \"\"hi\"\"\"\r\n", "a,b\n1,\"never\n", "a,b\n1,x\"y\n2,\"\n", "a,b\n\"x\"y,z\n1,2\n",
		"a\n\n \n,\nx\n", "a,b\n\"\"\"\"\"\"\"\",1\n2,\"\r\r\r\"\n", "a,b\n\"long long\nlong long\",x\n1,2\n3,4", "a,b\n1,\"x\"\ry\n", "a,b\n\"abcdefgh\",\"\n\n\n\"\n1,2",
	} {
		f.Add(s, uint8(4))
		f.Add(s, uint8(0))
	}
	f.Fuzz(func(t *testing.T, text string, limit uint8) {
		if strings.Contains(text, "\r\r\n") || strings.HasSuffix(text, "\r") || strings.HasPrefix(text, "\ufeff") {
			t.Skip("what is dropped here encoding/csv takes for text")
		}
		if len(text) > 1 && ((text[0] == 0) != (text[1] == 0) || text[:2] == "\xff\xfe" || text[:2] == "\xfe\xff") {
			t.Skip("UTF-16")
		}
		max := int(limit)
		if max == 0 {
			max = DefaultMaxCell
		}
		var rows []Row
		each := func(r Row) error { rows = append(rows, r); return nil }
		table, err := Read(strings.NewReader(text), Options{MaxCell: max}, each)
		want, bad := reference(text, max)
		if err == nil && bad != nil {
			t.Fatalf("read without an error, where encoding/csv says %v", bad)
		}
		big := false
		for i, r := range want {
			for j, cell := range r.Values {
				if len(cell) > max {
					big = true
					if want[i].Values[j] = ""; i > 0 && want[i].TooBig == nil && j < len(want[0].Values) {
						want[i].TooBig = &TooBig{want[0].Values[j], int64(len(cell))}
					}
				}
			}
		}
		if err != nil {
			if bad == nil && !big && !refusable(want) {
				t.Fatalf("refused: %v", err)
			}
			return
		}
		for i, r := range rows {
			rows[i] = Row{Line: r.Line, Values: r.Values, TooBig: r.TooBig}
		}
		if diff := cmp.Diff(want[0].Values, table.Header); diff != "" {
			t.Fatal(diff)
		}
		if diff := cmp.Diff(want[1:], append([]Row{}, rows...)); diff != "" {
			t.Fatal(diff)
		}
		var slow []Row
		if _, err := Read(iotest.OneByteReader(strings.NewReader(text)), Options{MaxCell: max}, func(r Row) error {
			slow = append(slow, Row{Line: r.Line, Values: r.Values, TooBig: r.TooBig})
			return nil
		}); err != nil || !cmp.Equal(rows, slow) {
			t.Fatalf("byte by byte: %v, %s", err, cmp.Diff(rows, slow))
		}
	})
}

// FuzzLines has every line that is read hold what encoding/json finds in it.
func FuzzLines(f *testing.F) {
	for _, s := range []string{
		`{"a":1}`, `{"a":"x","b":[1,{"c":null}]}` + "\n" + `{"b":"y"}`, `{"a":1,"a":2}`, `{"a":`, "{}\n\n{\"a\":\"\\ud800\"}", `{"a":1e400} `, "\ufeff{\"a\":\"b\"}",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		o := Options{Format: "jsonl"}
		table, err := Read(strings.NewReader(text), o, nil)
		if err != nil {
			return
		}
		o.Header = table.Header
		n := 0
		_, err = Read(strings.NewReader(text), o, func(r Row) error {
			n++
			if len(r.Values) != len(table.Header) {
				t.Fatalf("%d values for %d columns", len(r.Values), len(table.Header))
			}
			line := strings.TrimPrefix(strings.Split(text, "\n")[r.Line-1], "\ufeff")
			var object map[string]any
			if err := json.Unmarshal([]byte(line), &object); err != nil && !strings.Contains(err.Error(), "number") {
				t.Fatalf("%q was read, where encoding/json says %v", line, err)
			}
			for i, name := range table.Header {
				if s, ok := object[name].(string); ok && s != r.Values[i] {
					t.Fatalf("%s is %q, want %q", name, r.Values[i], s)
				}
			}
			return nil
		})
		if err != nil || n != table.Rows {
			t.Fatalf("%d of %d rows in the second reading: %v", n, table.Rows, err)
		}
	})
}
