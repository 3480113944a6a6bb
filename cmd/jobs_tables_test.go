package cmd

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"unicode/utf16"

	"github.com/google/go-cmp/cmp"

	"drover/output/event"
)

// tasks are what the rows' agents were asked to do, in the order of the table.
func tasks(t *testing.T, stream []byte) []string {
	t.Helper()
	byItem := map[string]string{}
	index := map[int]string{}
	for line := range bytes.Lines(stream) {
		var e struct {
			Type, Role, Text string
			ItemID           string `json:"item_id"`
			Index            int
		}
		if err := json.Unmarshal(line, &e); err != nil {
			t.Fatal(err)
		}
		switch {
		case e.Type == "message" && e.Role == "user":
			_, rest, _ := strings.Cut(e.Text, "\nTask:\n")
			byItem[e.ItemID], _, _ = strings.Cut(rest, "\n\nThe row:")
		case e.Type == "job.item.started":
			index[e.Index] = e.ItemID
		}
	}
	out := []string{}
	for i := range len(index) {
		out = append(out, byItem[index[i]])
	}
	return out
}

// TestTablesThatAreRead holds the odd forms that tables have.
func TestTablesThatAreRead(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		table string
		flags []string
		want  []string
	}{
		// github.com/Clever/csvlint/issues/37, github.com/golang/go/issues/9588
		"byte-order mark":   {"\ufeff\"id\",\"q\"\n1,a\n", nil, []string{"1: a"}},
		"CR LF":             {"id,q\r\n1,\"a\r\nb\"\r\n2,c\r\n", nil, []string{"1: a\nb", "2: c"}},
		"no line feed last": {"id,q\n1,a\n2,b", nil, []string{"1: a", "2: b"}},
		// github.com/typeiii/jquery-csv/issues/142
		"semicolons": {"id;q\n1;\"a;b\"\n2;1,5\n", []string{"--delimiter", ";"}, []string{"1: a;b", "2: 1,5"}},
		"tabs":       {"id\tq\n1\ta,b\n", []string{"--delimiter", `\t`}, []string{"1: a,b"}},
		// github.com/aliostad/SuperBenchmarker/issues/17
		"JSON in a cell":         {"id,q\n1,\"{\"\"a\"\":\"\"x, y\"\",\"\"b\"\":[1,2]}\"\n", nil, []string{`1: {"a":"x, y","b":[1,2]}`}},
		"braces in values, once": {"id,q\n1,{id}\n2,{{q}}\n", nil, []string{"1: {id}", "2: {{q}}"}},
		// github.com/backblaze-labs/genblaze/issues/88, github.com/FlowiseAI/Flowise/issues/968
		"braces in the instruction": {"id,q\n1,a\n", []string{"--instruction", `Answer like {"label": "x"} for {q}. Lone } and {{ and {{q}} { }`},
			[]string{`Answer like {"label": "x"} for a. Lone } and { and {q} { }`}},
		"JSON lines":                 {`{"id":"1","q":"a"}` + "\n\n" + `{"q":{"n":[1,2]},"id":2}` + "\n", []string{"--input-format", "jsonl"}, []string{"1: a", `2: {"n":[1,2]}`}},
		"names with blanks and dots": {"id,q, City Name.x\n1,a,Rome\n", []string{"--instruction", "{ City Name.x}"}, []string{"Rome"}},
		"the job's own columns":      {"id,q,status,job_id\n1,a,open,7\n", []string{"--instruction", "{status} {job_id}"}, []string{"open 7"}},
		"ids that are missing":       {"id,q\n,a\n7,b\n", []string{"--instruction", "{q}"}, []string{"a", "b"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := job(t, script(t, calls(m{"name": "report_agent_job_result", "args": m{"job_id": "${job_id}", "item_id": "${item_id}", "result": m{"got": m{"q": "${row.q}"}}}})),
				c.table, append([]string{"--instruction", "{id}: {q}"}, c.flags...)...)
			stream := p.mustEnd(0)
			if d := cmp.Diff(c.want, tasks(t, stream)); d != "" {
				t.Errorf("tasks (-want +got):\n%s", d)
			}
			for _, row := range p.columns("out.csv", "q", "result_json") {
				var r struct{ Got struct{ Q string } }
				if err := json.Unmarshal([]byte(row[1]), &r); err != nil || r.Got.Q != row[0] {
					t.Errorf("the result of %q is %q, %v", row[0], row[1], err)
				}
			}
		})
	}
}

// TestBlankRowsAreNoRows (github.com/datarobot/batch-scoring/pull/125,
// github.com/mjordan/islandora_workbench/issues/440): they cost nothing, and are
// told with their lines.
func TestBlankRowsAreNoRows(t *testing.T) {
	t.Parallel()
	p := job(t, script(t, calls(reportCall)), "id,q,r\n1,a,x\n2,b,y\r\r\n\n,,\n   \n3,c,z")
	stream := p.mustEnd(0)
	if d := cmp.Diff([]string{"1", "2", "3"}, begun(t, stream)); d != "" {
		t.Errorf("rows (-want +got):\n%s", d)
	}
	for _, n := range bodies[event.NoticeEvent](t, stream) {
		if n.Code == "blank_rows" {
			if got := fmt.Sprint(n.Details["lines"]); got != "[4 5 6]" || !strings.Contains(n.Message, "3 blank rows") {
				t.Errorf("the notice is %q with lines %s", n.Message, got)
			}
			return
		}
	}
	t.Error("no notice tells of blank rows")
}

// TestTableWithoutRows is a job that is done, with a result that has a header.
func TestTableWithoutRows(t *testing.T) {
	t.Parallel()
	for name, table := range map[string]string{"header": "id,q\n", "header without its end": "id,q", "header and blank rows": "id,q\n\n,\n"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := job(t, script(t, calls(reportCall)), table)
			if end := jobEnd(t, p.mustEnd(0)); end.Total != 0 || end.Status != "completed" {
				t.Errorf("the job's end is %+v", end)
			}
			if got := p.files()["out.csv"]; !strings.HasPrefix(got, "id,q,job_id,") || strings.Count(got, "\n") != 1 {
				t.Errorf("the result is %q", got)
			}
			if got := p.files()["out.jsonl"]; got != "" {
				t.Errorf("the lines are %q", got)
			}
		})
	}
}

// TestTablesThatAreRefused: one message for the one real cause, with a way out,
// before anything is sent (github.com/alphagov/notifications-admin/pull/646).
func TestTablesThatAreRefused(t *testing.T) {
	t.Parallel()
	utf16le := "\xff\xfe"
	for _, u := range utf16.Encode([]rune("id,q\n1,a\n")) {
		utf16le += string([]byte{byte(u), byte(u >> 8)})
	}
	var quotes strings.Builder
	quotes.WriteString("id,q\n")
	for i := 2; i <= 101; i++ {
		cell := map[int]string{11: `a "b" c`, 21: `"never closed`}[i]
		fmt.Fprintf(&quotes, "%d,%s\n", i, cell)
	}
	ragged := "id,q,City \n1,a\n1,b\n2,c,d,e\n"
	for name, c := range map[string]struct {
		table, reason string
		flags         []string
		want          []string
		not           string
	}{
		"empty file":          {"", "csv_header", nil, []string{"must include a header row"}, ""},
		"UTF-16":              {utf16le, "csv_encoding", nil, []string{"UTF-16", "iconv"}, ""},
		"not UTF-8":           {"id,q\n1,a\n2,caf\xe9\n", "csv_encoding", nil, []string{"line 3"}, ""},
		"a column twice":      {"id,q,q\n1,a,b\n", "csv_header", nil, []string{`"q" is duplicated`}, ""},
		"no id column":        {ragged, "csv_id_column", []string{"--id-column", "ID"}, []string{`did you mean "id"?`}, "row 2"},
		"semicolons, no flag": {"id;q\n1;a\n", "csv_delimiter", nil, []string{"only one column, header contains", "--delimiter ';'"}, ""},
		"tabs, no flag":       {"id\tq\n1\ta\n", "csv_delimiter", nil, []string{`--delimiter '\t'`}, ""},
		"column of the task":  {"id,q,City \n1,a,b\n", "template_column", []string{"--instruction", "{city}"}, []string{"{city}", "did you mean {City }?", `"q"`}, ""},
		"ragged rows":         {ragged, "csv_row", nil, []string{"row 2 has 2 fields but header has 3", "row 4 has 4 fields"}, ""},
		"ids twice":           {"id,q\n1,a\n2,b\n1,c\n2,d\n", "csv_duplicate_id", nil, []string{`"1" in rows 2, 4`, `"2" in rows 3, 5`}, ""},
		"malformed quotes":    {quotes.String(), "csv_row", nil, []string{"line 11, column", "line 21"}, ""},
		"no JSON":             {"{\"id\":1}\nnope\n", "jsonl_row", []string{"--input-format", "jsonl"}, []string{"line 2"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := job(t, script(t, calls(reportCall)), c.table, c.flags...)
			end := p.untouched(3, c.reason)
			told := end.Error.Message + "; " + end.Error.Fix
			for _, want := range c.want {
				if !strings.Contains(told, want) {
					t.Errorf("%q is missing in %s", want, told)
				}
			}
			if c.not != "" && strings.Contains(told, c.not) {
				t.Errorf("%q is in %s", c.not, told)
			}
		})
	}
}

// TestHugeCells (github.com/simonw/csv-diff/issues/41,
// github.com/wireservice/csvkit/issues/812): a cell above the limit is its row's
// failure, named by row and column, and no event holds it.
func TestHugeCells(t *testing.T) {
	t.Parallel()
	var table strings.Builder
	table.WriteString("id,q\nlarge," + strings.Repeat("word ", 40_000) + "\nhuge,\"" + strings.Repeat("much too long, ", 1_400_000) + "\"\n")
	want := map[string]string{"large": "completed", "huge": `failed: line 3, column "q": the cell has 21000000 bytes, more than the 8388608 allowed`}
	for i := range 10 {
		fmt.Fprintf(&table, "r%d,%d\n", i, i)
		want[fmt.Sprint("r", i)] = "completed"
	}
	p := job(t, script(t, calls(m{"name": "report_agent_job_result", "args": m{"job_id": "${job_id}", "item_id": "${item_id}", "result": m{}}})), table.String())
	stream := p.mustEnd(20)
	p.wantStatuses(want)
	if bytes.Contains(stream, []byte("much too long")) {
		t.Error("the huge cell is in the stream")
	}
	if len(stream) > 4<<20 {
		t.Errorf("the stream has %d bytes", len(stream))
	}
	if kib := p.cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss; !raceEnabled && kib > 250<<10 {
		t.Errorf("the peak of memory is %d KiB", kib)
	}
	// It stays so when the job is run again, and the row can be repaired.
	p.again().wantBegun(20)
	data := strings.Replace(table.String(), strings.Repeat("much too long, ", 1_400_000), "short", 1)
	if err := os.WriteFile(filepath.Join(p.dir, "rows.csv"), []byte(data), 0o644); err != nil {
		t.Fatal(err)
	}
	p.again().wantBegun(0, "huge")
}

// TestFlagsOfAJobThatCannotBeMeant are refused with a way out.
func TestFlagsOfAJobThatCannotBeMeant(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		flags []string
		want  string
	}{
		"two characters":   {[]string{"--delimiter", ";;"}, "--delimiter"},
		"no ASCII":         {[]string{"--delimiter", "·"}, "--delimiter"},
		"a quote":          {[]string{"--delimiter", `"`}, "--delimiter"},
		"no such format":   {[]string{"--input-format", "xlsx"}, "jsonl"},
		"negative":         {[]string{"--max-failures", "-1"}, "--max-failures"},
		"too many":         {[]string{"--max-concurrency", "1001"}, "1000"},
		"both":             {[]string{"--restart", "--as-is"}, "--as-is"},
		"nothing to do":    {[]string{"--instruction", "  "}, "instruction must be non-empty"},
		"nobody works":     {[]string{"--coordinator"}, "--engine"},
		"no such database": {[]string{"--engine", "mysql://x"}, "postgres://"},
		"no instruction":   {[]string{"--instruction", "", "--instruction-file", "nope.txt"}, "nope.txt"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := job(t, script(t, calls(reportCall)), "id,q\n1,a\n", c.flags...)
			before := p.files()
			stream, exit := p.output()
			told, err := json.Marshal(lastLine(t, stream).Error)
			if err != nil || exit != 2 || !strings.Contains(string(told), c.want) {
				t.Errorf("exit %d: %s", exit, told)
			}
			if d := cmp.Diff(before, p.files()); d != "" {
				t.Errorf("files (-before +after):\n%s", d)
			}
		})
	}
	p := job(t, script(t, calls(reportCall)), "id,q\n1,a\n")
	p.sh("rm rows.csv")
	if end := p.untouched(2, "source_unreadable"); !strings.Contains(end.Error.Message, "rows.csv") {
		t.Errorf("the end is %+v", end.Error)
	}
}
