package result

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"iter"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// list is a sequence of items that ends with err, if there is one.
func list(err error, items ...Item) iter.Seq2[Item, error] {
	return func(yield func(Item, error) bool) {
		for _, it := range items {
			if !yield(it, nil) {
				return
			}
		}
		if err != nil {
			yield(Item{}, err)
		}
	}
}

func written(t *testing.T, table Table, items ...Item) string {
	t.Helper()
	var b bytes.Buffer
	if err := WriteCSV(&b, table, list(nil, items...)); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// cells reads a table back, strictly rectangular.
func cells(t *testing.T, text string) [][]string {
	t.Helper()
	rows, err := csv.NewReader(strings.NewReader(text)).ReadAll()
	if err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	return rows
}

var done = time.Date(2026, 3, 4, 5, 6, 7, 890, time.FixedZone("", 3600))

func TestColumnsFollowTheInputsOwnInTheirOrder(t *testing.T) {
	got := written(t, Table{JobID: "j1", Header: []string{"id", "q"}},
		Item{Index: 0, ItemID: "a", SourceID: "a", Status: "completed", Attempts: 2, Result: json.RawMessage(`{"x":"1, 2"}`), Values: []string{"a", "one"}, ReportedAt: done, CompletedAt: done},
		Item{Index: 1, ItemID: "row-2", Status: "failed", Attempts: 3, LastError: "no, \"never\"", Values: []string{"", "two\nlines"}})
	want := "id,q,job_id,item_id,row_index,source_id,status,attempt_count,last_error,result_json,reported_at,completed_at\n" +
		`a,one,j1,a,0,a,completed,2,,"{""x"":""1, 2""}",2026-03-04T04:06:07Z,2026-03-04T04:06:07Z` + "\n" +
		",\"two\nlines\",j1,row-2,1,,failed,3,\"no, \"\"never\"\"\",,,\n"
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestRowsAreRectangularWhateverTheyHold(t *testing.T) {
	table := Table{Header: []string{"a", "b", "c"}}
	rows := cells(t, written(t, table, Item{}, Item{Values: []string{"1"}}, Item{Values: []string{"1", "2", "3", "4", "5"}}))
	for i, row := range rows {
		if len(row) != len(table.Columns()) {
			t.Errorf("row %d has %d cells, want %d", i, len(row), len(table.Columns()))
		}
	}
	if got := rows[3][:4]; !cmp.Equal(got, []string{"1", "2", "3", ""}) {
		t.Errorf("cells beyond the header went into other columns: %q", got)
	}
}

func TestColumnsThatTheInputHasAlreadyStayUnique(t *testing.T) {
	got := Table{Header: []string{"status", "drover_status", "item_id"}}.Columns()
	want := []string{"status", "drover_status", "item_id", "job_id", "drover_item_id", "row_index", "source_id", "drover_drover_status",
		"attempt_count", "last_error", "result_json", "reported_at", "completed_at"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestCellsSurviveARoundTrip(t *testing.T) {
	for _, cell := range []string{"", " ", " x ", ",", `"`, `""`, "a\nb", "a\rb", "\x00", "a\x00b", "\ttab", "=1+1", `{"a":"x, y","b":[1,2]}`, `\.`, "héllo 世界", "a\n\n", "'x"} {
		rows := cells(t, written(t, Table{Header: []string{"q", "z"}}, Item{Values: []string{cell, "end"}}))
		if rows[1][0] != cell || rows[1][1] != "end" {
			t.Errorf("%q came back as %q, %q", cell, rows[1][0], rows[1][1])
		}
	}
	// A reader in Go makes LF of CR LF, so the bytes are looked at.
	if got := written(t, Table{Header: []string{"q"}}, Item{Values: []string{"a\r\nb"}}); !strings.Contains(got, "\"a\r\nb\"") {
		t.Errorf("CR LF inside a cell was changed: %q", got)
	}
}

func TestFormulasAreMadeTextOnRequest(t *testing.T) {
	for _, c := range []struct {
		name, cell string
		want       bool
	}{
		{"equals", `=HYPERLINK("http://x","y")`, true},
		{"at", "@SUM(1)", true},
		{"plus", "+cmd|' /C calc'!A0", true},
		{"minus", "-1+cmd", true},
		{"tab", "\t=1", true},
		{"tab before text", "\ttext", true},
		{"carriage return", "\r=1", true},
		{"newline", "\n=1", true},
		{"leading blanks", "  =1", true},
		{"no-break blank", "\u00a0=1", true},
		{"zero width", "\u200b=1", true},
		{"byte-order mark", "\ufeff=1", true},
		{"NUL", "\x00=1", true},
		{"full width", "＝1", true},
		{"full width at", "＠SUM(1)", true},
		{"full width plus", "＋1", true},
		{"full width minus", "－1", true},
		{"infinity", "-Inf", true},
		{"hexadecimal", "-0x1p-2", true},
		{"underscores", "+1_000", true},
		{"sign alone", "-", true},
		{"number with a blank", " -5", true},
		{"list item", "- milk", true},
		{"negative number", "-12.5", false},
		{"exponent", "+3e4", false},
		{"beyond a float", "-1e999", false},
		{"text", "a=b", false},
		{"empty", "", false},
		{"blanks", "   ", false},
		{"apostrophe", "'=1", false},
		{"JSON", `{"a":"=1"}`, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			want := c.cell
			if c.want {
				want = "'" + c.cell
			}
			it := Item{Values: []string{c.cell}, LastError: c.cell}
			rows := cells(t, written(t, Table{Header: []string{"q"}, FormulaSafe: true}, it))
			if rows[1][0] != want || rows[1][7] != want {
				t.Errorf("the input's cell is %q and the job's %q, want %q", rows[1][0], rows[1][7], want)
			}
			if it.Values[0] != c.cell {
				t.Error("the item itself was changed")
			}
			if rows := cells(t, written(t, Table{Header: []string{"q"}}, it)); rows[1][0] != c.cell {
				t.Errorf("without the switch it is %q", rows[1][0])
			}
		})
	}
}

func TestFormulasInColumnNamesAreMadeText(t *testing.T) {
	table := Table{Header: []string{"=cmd"}, FormulaSafe: true}
	if rows := cells(t, written(t, table)); rows[0][0] != "'=cmd" || table.Header[0] != "=cmd" {
		t.Errorf("written %q, table %q", rows[0][0], table.Header[0])
	}
}

func TestJSONCopyStaysExact(t *testing.T) {
	cost, code := 0.25, 3
	table := Table{JobID: "j1", Header: []string{"z", "a", "=f"}, FormulaSafe: true}
	var b bytes.Buffer
	err := WriteJSONL(&b, table, list(nil,
		Item{Index: 4, ItemID: "i", SourceID: "i", Status: "failed", Attempts: 1, LastError: "=1 <b>", Result: json.RawMessage(`{"n":12345678901234567890,"e":1e400,"t":"<&>"}`),
			ReportedAt: done, CompletedAt: done, Values: []string{"=HYPERLINK(1)", "a\r\nb\x00", "-x"}, CostUSD: &cost, DurationMS: 12, InputTokens: 5, OutputTokens: 6, SessionID: "s", ExitCode: &code, Patch: "p.patch"},
		Item{ItemID: "row-1", Status: "pending"}))
	if err != nil {
		t.Fatal(err)
	}
	want := `{"job_id":"j1","item_id":"i","row_index":4,"source_id":"i","status":"failed","attempt_count":1,"last_error":"=1 <b>","exit_code":3,` +
		`"result":{"n":12345678901234567890,"e":1e400,"t":"<&>"},"reported_at":"2026-03-04T04:06:07Z","completed_at":"2026-03-04T04:06:07Z",` +
		`"cost_usd":0.25,"input_tokens":5,"output_tokens":6,"duration_ms":12,"session_id":"s","patch":"p.patch",` +
		`"row":{"z":"=HYPERLINK(1)","a":"a\r\nb\u0000","=f":"-x"}}` + "\n" +
		`{"job_id":"j1","item_id":"row-1","row_index":0,"source_id":null,"status":"pending","attempt_count":0,"last_error":null,` +
		`"result":null,"reported_at":null,"completed_at":null,"row":{"z":"","a":"","=f":""}}` + "\n"
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Error(diff)
	}
}

func TestRecordIsOneLineHoweverTheResultIsWritten(t *testing.T) {
	var b bytes.Buffer
	if err := Record(&b, Table{}, Item{Result: json.RawMessage("{\n  \"a\": 1\n}"), LastError: "one\ntwo\u2028three"}); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(b.String(), "\n"); n != 1 {
		t.Errorf("%d line ends in %q", n, b.String())
	}
}

func TestResultThatIsNoJSONIsAnErrorWithTheRow(t *testing.T) {
	err := Record(&bytes.Buffer{}, Table{}, Item{ItemID: "bad", Result: json.RawMessage("{")})
	if err == nil || !strings.Contains(err.Error(), "bad") {
		t.Errorf("got %v", err)
	}
}

// shut takes nothing.
type shut struct{}

var errShut = errors.New("shut")

func (shut) Write([]byte) (int, error) { return 0, errShut }

func TestErrorsOfRowsAndWritersAreTold(t *testing.T) {
	broken := errors.New("the database is away")
	table := Table{Header: []string{"q"}}
	rows := list(broken, Item{ItemID: "a"})
	all := func() iter.Seq2[Item, error] { return rows }
	var b bytes.Buffer
	for name, got := range map[string]error{"csv": WriteCSV(&b, table, rows), "jsonl": WriteJSONL(&b, table, rows), "junit": WriteJUnit(&b, table, all)} {
		if !errors.Is(got, broken) {
			t.Errorf("%s: error of a row: got %v", name, got)
		}
	}
	rows = list(nil, Item{ItemID: "a"})
	for name, got := range map[string]error{"csv": WriteCSV(shut{}, table, rows), "jsonl": WriteJSONL(shut{}, table, rows), "junit": WriteJUnit(shut{}, table, all)} {
		if !errors.Is(got, errShut) {
			t.Errorf("%s: error of the writer: got %v", name, got)
		}
	}
}

func BenchmarkWriteCSV(b *testing.B) {
	table := Table{JobID: "j1", Header: []string{"id", "q"}, FormulaSafe: true}
	it := Item{ItemID: "item", SourceID: "item", Status: "completed", Attempts: 1, Result: json.RawMessage(`{"label":"x"}`), Values: []string{"item", "a question of some length"}, ReportedAt: done, CompletedAt: done}
	b.ReportAllocs()
	for b.Loop() {
		if err := WriteCSV(&bytes.Buffer{}, table, list(nil, it)); err != nil {
			b.Fatal(err)
		}
	}
}
