package cmd

import (
	"encoding/xml"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"drover/output/event"
)

// untouched runs a job that must be refused before anything is begun, and checks
// that it has changed no file.
func (p *process) untouched(exit int, reason string) event.RunFinishedEvent {
	p.t.Helper()
	before := p.files()
	stream := p.mustEnd(exit)
	end := lastLine(p.t, stream)
	if end.Reason != reason {
		p.t.Errorf("the reason is %s, want %s: %+v", end.Reason, reason, end.Error)
	}
	if got := begun(p.t, stream); len(got) > 0 {
		p.t.Errorf("rows were begun: %q", got)
	}
	if d := cmp.Diff(before, p.files()); d != "" {
		p.t.Errorf("files (-before +after):\n%s", d)
	}
	return end
}

// files are the files of the user in the folder.
func (p *process) files() map[string]string {
	p.t.Helper()
	out := p.tree(".")
	for name := range out {
		if strings.HasPrefix(name, ".state") || strings.HasPrefix(name, ".config") {
			delete(out, name)
		}
	}
	return out
}

// TestOutputThatWouldEatAFile: the table is not overwritten, however its path is
// written, and neither is what no job has written.
func TestOutputThatWouldEatAFile(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		files map[string]string
		flags []string
	}{
		"the table":                    {nil, []string{"-o", "rows.csv"}},
		"the table, in other words":    {nil, []string{"-o", "./here/../rows.csv"}},
		"a link to the table":          {map[string]string{"link.csv": "-> rows.csv"}, []string{"-o", "link.csv"}},
		"a folder's link":              {nil, []string{"-o", "here/rows.csv"}},
		"the lines would be the table": {map[string]string{"rows.jsonl": `{"id":"a","q":"1"}` + "\n"}, []string{"-o", "rows.csv", "rows.jsonl"}},
		"the report is the table":      {nil, []string{"--junit", "rows.csv"}},
		"the report is the output":     {nil, []string{"--junit", "out.csv"}},
		"the report is the lines":      {nil, []string{"--junit", "out.jsonl"}},
		"lines of somebody else":       {map[string]string{"out.jsonl": `{"name":"mine"}` + "\n"}, nil},
		"notes beside it":              {map[string]string{"out.jsonl": "my notes\n"}, nil},
		"a folder":                     {map[string]string{"out.csv/": ""}, nil},
		"a device":                     {nil, []string{"-o", "/dev/null"}},
		"a file as a folder":           {nil, []string{"-o", "model.jsonl/out.csv"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := job(t, script(t, calls(reportCall)), "id,q\na,1\n")
			p.lay(map[string]string{"here": "-> ."})
			p.lay(c.files)
			if i := slices.Index(c.flags, "rows.jsonl"); i >= 0 {
				p.cmd.Args[3], c.flags = "rows.jsonl", c.flags[:i]
			}
			end := p.again(c.flags...).untouched(2, "output_path")
			if end.Error.Fix == "" {
				t.Errorf("no way out is told: %+v", end.Error)
			}
		})
	}
}

// TestOutputInAFolderThatCannotBeWritten is told before anything is paid.
func TestOutputInAFolderThatCannotBeWritten(t *testing.T) {
	t.Parallel()
	if os.Geteuid() == 0 {
		p := job(t, script(t, calls(reportCall)), "id,q\na,1\n", "-o", "/proc/out.csv")
		p.untouched(2, "output_path")
		return // who is root can write every other folder
	}
	p := job(t, script(t, calls(reportCall)), "id,q\na,1\n", "-o", "closed/out.csv")
	p.lay(map[string]string{"closed/": ""})
	if err := os.Chmod(filepath.Join(p.dir, "closed"), 0o500); err != nil {
		t.Fatal(err)
	}
	p.untouched(2, "output_path")
}

// TestExportDoesNotEatTheTable: what was exported can be exported again.
func TestExportDoesNotEatTheTable(t *testing.T) {
	t.Parallel()
	p := job(t, script(t, calls(reportCall)), "id,q\na,1\n")
	p.mustEnd(0)
	before := p.files()
	p.lay(map[string]string{"link.csv": "-> rows.csv"})
	for _, out := range []string{"rows.csv", "link.csv"} {
		if _, exit := p.drover("jobs", "export", "-o", out).plain(); exit != 2 {
			t.Errorf("%s: exit %d", out, exit)
		}
	}
	p.sh("rm link.csv")
	if d := cmp.Diff(before, p.files()); d != "" {
		t.Errorf("files (-before +after):\n%s", d)
	}
	for range 2 {
		if _, exit := p.drover("jobs", "export", "--format", "jsonl", "-o", "copy.jsonl").plain(); exit != 0 {
			t.Errorf("exit %d", exit)
		}
	}
	if now := p.files(); now["copy.jsonl"] != now["out.jsonl"] {
		t.Errorf("the export is %s, the lines are %s", now["copy.jsonl"], now["out.jsonl"])
	}
}

// TestFormulaInTheOutput (github.com/knostic/OpenAnt/pull/83): with the switch no
// cell starts a formula, and the lines stay exact.
func TestFormulaInTheOutput(t *testing.T) {
	t.Parallel()
	dangerous := []string{`=HYPERLINK("http://x","y")`, "@SUM(1)", "+1+cmd", "-1+cmd", "\tx", "\rx", "=1"}
	var table strings.Builder
	table.WriteString("id,q\n")
	for i, cell := range append(slices.Clone(dangerous), "-5", "plain") {
		fmt.Fprintf(&table, "r%d,\"%s\"\n", i, strings.ReplaceAll(cell, `"`, `""`))
	}
	p := job(t, script(t, calls(reportCall)), table.String(), "--formula-safe")
	p.mustEnd(0)
	for i, row := range p.columns("out.csv", "q") {
		if i < len(dangerous) != strings.HasPrefix(row[0], "'") {
			t.Errorf("the cell is %q", row[0])
		}
	}
	for i, l := range p.lines("out.jsonl") {
		if i < len(dangerous) && l.Row["q"] != dangerous[i] {
			t.Errorf("the line has %q, want %q", l.Row["q"], dangerous[i])
		}
	}
	// Without the switch cells are as they are.
	p.again("--formula-safe=false", "-o", "plain.csv").mustEnd(0)
	for i, row := range p.columns("plain.csv", "q") {
		if i < len(dangerous) && row[0] != dangerous[i] {
			t.Errorf("the cell is %q, want %q", row[0], dangerous[i])
		}
	}
}

// TestJUnitOfAJob is read by servers that know nothing of drover.
func TestJUnitOfAJob(t *testing.T) {
	t.Parallel()
	report := m{"name": "report_agent_job_result", "args_raw": `{"job_id":"${job_id}","item_id":"${item_id}","result":{"n":${row.q}}}`}
	p := job(t, script(t, calls(report), says("No."), says("No.")), "id,q\na,1\nb,{\n", "--junit", "reports/rows.xml")
	p.mustEnd(20)
	var suites struct {
		Suites []struct {
			Tests    int `xml:"tests,attr"`
			Failures int `xml:"failures,attr"`
			Cases    []struct {
				Name    string `xml:"name,attr"`
				Failure *struct {
					Message string `xml:"message,attr"`
				} `xml:"failure"`
			} `xml:"testcase"`
		} `xml:"testsuite"`
	}
	if err := xml.Unmarshal([]byte(p.files()["reports/rows.xml"]), &suites); err != nil || len(suites.Suites) != 1 {
		t.Fatalf("%v: %s", err, p.files()["reports/rows.xml"])
	}
	s := suites.Suites[0]
	if s.Tests != 2 || s.Failures != 1 || len(s.Cases) != 2 || s.Cases[0].Failure != nil || s.Cases[1].Failure == nil {
		t.Errorf("the report is %s", p.files()["reports/rows.xml"])
	}
}
