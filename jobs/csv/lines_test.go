package csv

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// objectsOf reads JSON lines twice, as a job does.
func objectsOf(t *testing.T, text string, o Options) ([]Row, *Table) {
	t.Helper()
	o.Format = "jsonl"
	first, err := Read(strings.NewReader(text), o, nil)
	if err != nil {
		t.Fatal(err)
	}
	o.Header = first.Header
	rows, second := rowsOf(t, text, o)
	if diff := cmp.Diff(first, second); diff != "" {
		t.Errorf("the second reading found something else: %s", diff)
	}
	return rows, second
}

func TestColumnsAreTheKeysInTheOrderInWhichTheyCome(t *testing.T) {
	rows, table := objectsOf(t, `{"z":"1","a":"2"}`+"\n"+`{"a":"3","late":"4","z":"5"}`+"\r\n"+`{}`+"\n", Options{})
	if diff := cmp.Diff([]string{"z", "a", "late"}, table.Header); diff != "" {
		t.Error(diff)
	}
	want := []Row{
		{Index: 0, Line: 1, ID: "row-1", Values: []string{"1", "2", ""}},
		{Index: 1, Line: 2, ID: "row-2", Values: []string{"5", "3", "4"}},
		{Index: 2, Line: 3, ID: "row-3", Values: []string{"", "", ""}},
	}
	if diff := cmp.Diff(want, rows); diff != "" {
		t.Error(diff)
	}
}

func TestValuesOfJSONLinesAreExact(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{`"text"`, "text"},
		{`"a\nb\u00e9\"\\"`, "a\nbé\"\\"},
		{`""`, ""},
		{`null`, ""},
		{`true`, "true"},
		{`1e400`, "1e400"},
		{`12345678901234567890`, "12345678901234567890"},
		{`-0.10`, "-0.10"},
		{`{ "b" : 1, "a" : [ 1, "x, y", null ] }`, `{"b":1,"a":[1,"x, y",null]}`},
		{`[]`, "[]"},
		{`"null"`, "null"},
	} {
		rows, _ := objectsOf(t, `{"v": `+c.in+`}`, Options{})
		if got := rows[0].Values[0]; got != c.want {
			t.Errorf("%s became %q, want %q", c.in, got, c.want)
		}
	}
}

func TestIDsOfJSONLines(t *testing.T) {
	rows, _ := objectsOf(t, "\ufeff"+`{"id":7,"q":"a"}`+"\n\n  \n"+`{"q":"b"}`+"\n"+`{"id":null,"q":"c"}`, Options{IDColumn: "id"})
	var got []string
	for _, r := range rows {
		got = append(got, fmt.Sprintf("%s|%s line %d", r.ID, r.SourceID, r.Line))
	}
	if diff := cmp.Diff([]string{"7|7 line 1", "row-2| line 4", "row-3| line 5"}, got); diff != "" {
		t.Error(diff)
	}
}

func TestBlankLinesOfJSONLinesAreCounted(t *testing.T) {
	_, table := objectsOf(t, "\n{\"a\":1}\n \t\r\n{\"a\":2}\n\n", Options{})
	if table.Rows != 2 || table.BlankCount != 3 || !cmp.Equal(table.Blank, []int{1, 3, 5}) {
		t.Errorf("got %+v", table)
	}
}

func TestMistakesInJSONLinesAreToldWithTheirLine(t *testing.T) {
	for _, c := range []struct{ name, text, code, want string }{
		{"torn last line", `{"a":1}` + "\n" + `{"a":2,"b":"to`, "jsonl_row", "line 2"},
		{"torn line that had the only id", `{"a":1}` + "\n" + `{"a":2,"id":`, "jsonl_row", "line 2"},
		{"array", `[1]`, "jsonl_row", "line 1: it is no JSON object"},
		{"text", "id,q\n1,a\n", "jsonl_row", "line 1: it is no JSON object"},
		{"duplicate keys", `{"a":1,"b":2,"a":3}`, "jsonl_row", `line 1: the key "a" comes twice`},
		{"duplicate keys in two spellings", `{"a":1,"\u0061":3}`, "jsonl_row", `line 1: the key "a" comes twice`},
		{"key without a name", `{"":1}`, "jsonl_row", "no name"},
		{"two objects", `{"a":1} {"a":2}`, "jsonl_row", "something follows the object"},
		{"comma at the end", `{"a":1,}`, "jsonl_row", "line 1"},
		{"no colon", `{"a" 1}`, "jsonl_row", "line 1"},
		{"broken value", `{"a":01}`, "jsonl_row", "line 1"},
		{"invalid UTF-8", "{\"a\":1}\n{\"a\":\"\xff\"}", "jsonl_row", "line 2: it is not UTF-8 text"},
		{"deep nesting", `{"a":` + strings.Repeat("[", 100000) + `}`, "jsonl_row", "line 1"},
		{"empty file", "", "csv_header", "no objects"},
		{"empty objects", "{}\n{}\n", "csv_header", "no objects"},
	} {
		t.Run(c.name, func(t *testing.T) {
			f, _ := mustFail(t, c.text, Options{Format: "jsonl", IDColumn: ""})
			if f.Code != c.code || !strings.Contains(f.Why, c.want) {
				t.Errorf("%s: %.200s, want %s with %q", f.Code, f.Why, c.code, c.want)
			}
		})
	}
}

func TestTornLineComesBeforeTheColumnThatItTookAlong(t *testing.T) {
	f, _ := mustFail(t, `{"q":1}`+"\n"+`{"q":2,"id":`, Options{Format: "jsonl", IDColumn: "id"})
	if f.Code != "jsonl_row" {
		t.Errorf("got %s: %v", f.Code, f)
	}
	f, _ = mustFail(t, `{"q":1,"Id":2}`, Options{Format: "jsonl", IDColumn: "id"})
	if f.Code != "csv_id_column" || !strings.Contains(f.Why, `did you mean "Id"?`) {
		t.Errorf("got %s: %v", f.Code, f)
	}
}

func TestDuplicateIDsOfJSONLinesAreRefused(t *testing.T) {
	text := `{"id":"x"}` + "\n" + `{"id":"y"}` + "\n" + `{"id":"x"}` + "\n"
	f, _ := mustFail(t, text, Options{Format: "jsonl", IDColumn: "id", Header: []string{"id"}})
	if f.Code != "csv_duplicate_id" || !strings.Contains(f.Why, `"x" in rows 1, 3`) {
		t.Errorf("got %s: %v", f.Code, f)
	}
}

func TestKeyThatTheFirstReadingDidNotSeeIsRefused(t *testing.T) {
	f, _ := mustFail(t, `{"a":1}`+"\n"+`{"b":1}`, Options{Format: "jsonl", Header: []string{"a"}})
	if f.Code != "jsonl_row" || !strings.Contains(f.Why, `line 2: the key "b" is new`) {
		t.Errorf("got %s: %v", f.Code, f)
	}
}

func TestValueAboveTheLimitCostsItsRowOnly(t *testing.T) {
	rows, _ := objectsOf(t, `{"a":"12345","b":"x"}`+"\n"+`{"a":"1234","b":[1,2,3]}`+"\n"+`{"a":"y"}`, Options{MaxCell: 4})
	want := []Row{
		{Index: 0, Line: 1, ID: "row-1", Values: []string{"", "x"}, TooBig: &TooBig{"a", 5}},
		{Index: 1, Line: 2, ID: "row-2", Values: []string{"1234", ""}, TooBig: &TooBig{"b", 7}},
		{Index: 2, Line: 3, ID: "row-3", Values: []string{"y", ""}},
	}
	if diff := cmp.Diff(want, rows); diff != "" {
		t.Error(diff)
	}
}

func TestLineBeyondEveryLimitIsRefusedByItsNumber(t *testing.T) {
	e := &endless{head: "{\"a\":1}\n{\"a\":\"", unit: []byte(strings.Repeat("x", 1<<16)), size: 2 * maxLine, tail: "\"}\n"}
	_, err := Read(e, Options{Format: "jsonl"}, nil)
	if err == nil || !strings.Contains(err.Error(), "line 2: it is longer than 64 MiB") {
		t.Errorf("got %v", err)
	}
	if e.size < maxLine/2 {
		t.Error("the line was read to its end")
	}
}
