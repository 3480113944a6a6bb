package cmd

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"drover/output/event"
)

// This file holds what the tests of list jobs in jobs_*_test.go share, and what
// becomes of rows whose agents misbehave.

// reportCall reports the row's column q.
var reportCall = m{"name": "report_agent_job_result", "args": m{"job_id": "${job_id}", "item_id": "${item_id}", "result": m{"got": "${row.q}"}}}

// job is a list job over table in a folder of its own, without a sandbox. Flags
// in args win over those that every job here has.
func job(t *testing.T, script, table string, args ...string) *process {
	t.Helper()
	p := newProcess(t, script, append([]string{"jobs", "run", "rows.csv", "-o", "out.csv", "--id-column", "id", "--instruction", "Look at {q}",
		"-m", "script:model.jsonl", "--yolo", "--sandbox", "off", "--format", "jsonl"}, args...)...)
	p.lay(map[string]string{"rows.csv": table})
	return p
}

// drover is another drover in the folder of the process.
func (p *process) drover(args ...string) *process {
	p.t.Helper()
	n := &process{t: p.t, dir: p.dir, cmd: exec.Command(p.cmd.Path, args...)}
	n.cmd.Dir, n.cmd.Env, n.cmd.Stderr = p.dir, p.cmd.Env, &n.stderr
	return n
}

// again is the same command once more, with further flags.
func (p *process) again(args ...string) *process {
	p.t.Helper()
	return p.drover(append(slices.Clone(p.cmd.Args[1:]), args...)...)
}

// jobLine is a line of the JSON lines beside a result.
type jobLine struct {
	ItemID       string            `json:"item_id"`
	RowIndex     int               `json:"row_index"`
	Status       string            `json:"status"`
	AttemptCount int               `json:"attempt_count"`
	LastError    *string           `json:"last_error"`
	Result       json.RawMessage   `json:"result"`
	Row          map[string]string `json:"row"`
}

// lines reads JSON lines of a result.
func (p *process) lines(file string) []jobLine {
	p.t.Helper()
	data, err := os.ReadFile(filepath.Join(p.dir, file))
	if err != nil {
		p.t.Fatal(err)
	}
	var out []jobLine
	for line := range bytes.Lines(data) {
		var l jobLine
		if err := json.Unmarshal(line, &l); err != nil {
			p.t.Fatalf("%s: %v: %s", file, err, line)
		}
		out = append(out, l)
	}
	return out
}

// columns reads columns of a result, without the header, which must be the
// number of cells in every row.
func (p *process) columns(file string, names ...string) [][]string {
	p.t.Helper()
	data, err := os.ReadFile(filepath.Join(p.dir, file))
	if err != nil {
		p.t.Fatal(err)
	}
	rows, err := csv.NewReader(bytes.NewReader(data)).ReadAll() // it refuses ragged rows
	if err != nil {
		p.t.Fatalf("%s: %v", file, err)
	}
	out := [][]string{}
	for _, row := range rows[1:] {
		var cells []string
		for _, name := range names {
			i := slices.Index(rows[0], name)
			if i < 0 {
				p.t.Fatalf("%s has no column %s: %q", file, name, rows[0])
			}
			cells = append(cells, row[i])
		}
		out = append(out, cells)
	}
	return out
}

// statuses are the statuses of the rows in out.csv by their ids, with the last
// error where there is one. The JSON lines must tell the same.
func (p *process) statuses() map[string]string {
	p.t.Helper()
	out := map[string]string{}
	for _, row := range p.columns("out.csv", "item_id", "status", "last_error") {
		if _, twice := out[row[0]]; twice {
			p.t.Errorf("%s is in the result twice", row[0])
		}
		out[row[0]] = row[1]
		if row[2] != "" {
			out[row[0]] += ": " + row[2]
		}
	}
	lines := map[string]string{}
	for _, l := range p.lines("out.jsonl") {
		lines[l.ItemID] = l.Status
		if l.LastError != nil {
			lines[l.ItemID] += ": " + *l.LastError
		}
	}
	if d := cmp.Diff(out, lines); d != "" {
		p.t.Errorf("the lines tell something else (-csv +jsonl):\n%s", d)
	}
	return out
}

func (p *process) wantStatuses(want map[string]string) {
	p.t.Helper()
	if d := cmp.Diff(want, p.statuses()); d != "" {
		p.t.Errorf("statuses (-want +got):\n%s", d)
	}
}

// begun are the rows of which the stream tells that they were begun, sorted.
func begun(t *testing.T, stream []byte) []string {
	t.Helper()
	out := []string{}
	for line := range bytes.Lines(stream) {
		var e struct {
			Type   string `json:"type"`
			ItemID string `json:"item_id"`
		}
		if err := json.Unmarshal(line, &e); err != nil {
			t.Fatal(err)
		}
		if e.Type == "job.item.started" {
			out = append(out, e.ItemID)
		}
	}
	slices.Sort(out)
	return out
}

func jobEnd(t *testing.T, stream []byte) event.JobFinishedEvent {
	t.Helper()
	all := bodies[event.JobFinishedEvent](t, stream)
	if len(all) != 1 {
		t.Fatalf("%d ends of a job", len(all))
	}
	return all[0]
}

// noticed tells whether the stream has a notice with the code.
func noticed(t *testing.T, stream []byte, code string) bool {
	t.Helper()
	return slices.ContainsFunc(bodies[event.NoticeEvent](t, stream), func(n event.NoticeEvent) bool { return n.Code == code })
}

// startedUntil starts the process and reads its stream until it has the text.
func (p *process) startedUntil(text string) *reading {
	p.t.Helper()
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		p.t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { _ = p.cmd.Process.Kill() }) // of a test that failed
	r := &reading{process: p, out: bufio.NewReader(out)}
	for !strings.Contains(r.all.String(), text) {
		line, err := r.out.ReadBytes('\n')
		r.all.Write(line)
		if err != nil {
			p.t.Fatalf("the stream ended early: %v\n%.4000s\n%s", err, r.all.String(), p.stderr.String())
		}
	}
	return r
}

// end reads the stream to its end, and checks it.
func (r *reading) end(want int) []byte {
	r.t.Helper()
	stream, exit := r.rest()
	r.check(stream, exit)
	if exit != want {
		r.t.Fatalf("exit %d, want %d; stderr: %s\n%.4000s", exit, want, r.stderr.String(), stream)
	}
	return stream
}

const unreported = "failed: worker finished without calling report_agent_job_result"

// TestJobRowsThatReportWrongly: what is no report of the row counts for nothing,
// and the other rows are not touched.
func TestJobRowsThatReportWrongly(t *testing.T) {
	t.Parallel()
	report := m{"name": "report_agent_job_result", "args_raw": `{"job_id":"${row.job}${job_id}","item_id":"${row.as}","result":${row.q}}`}
	p := job(t, script(t, calls(report), says("I am done."), says("Really.")), `id,job,as,q
plain,,plain,"{""n"":1}"
foreign,,plain,"{""n"":2}"
other-job,x,other-job,"{""n"":3}"
text,,text,"""done"""
list,,list,[1]
null,,null,null
broken,,broken,{
nested,,nested,"{""a"":{""b"":[1,2,{""c"":""x, y""}]}}"
`)
	stream := p.mustEnd(20)
	p.wantStatuses(map[string]string{"plain": "completed", "nested": "completed",
		"foreign": unreported, "other-job": unreported, "text": unreported, "list": unreported, "null": unreported, "broken": unreported})
	refused, wrong := 0, 0
	for _, r := range bodies[event.ToolResultEvent](t, stream) {
		switch r.Content {
		case `{"accepted":false}`:
			refused++
		case "result must be a JSON object":
			wrong++
		}
	}
	if refused != 2 || wrong != 3 {
		t.Errorf("%d reports are not accepted and %d are no objects, want 2 and 3", refused, wrong)
	}
	for _, row := range p.columns("out.csv", "item_id", "result_json") {
		if want := map[string]string{"plain": `{"n":1}`, "nested": `{"a":{"b":[1,2,{"c":"x, y"}]}}`}[row[0]]; row[1] != want {
			t.Errorf("the result of %s is %s, want %s", row[0], row[1], want)
		}
	}
	if end := jobEnd(t, stream); end.Status != "partial" || end.Completed != 2 || end.Failed != 6 || len(end.FailedItems) != 6 {
		t.Errorf("the job's end is %+v", end)
	}
}

// TestJobRowThatReportsTwice keeps its first report.
func TestJobRowThatReportsTwice(t *testing.T) {
	t.Parallel()
	second := m{"name": "report_agent_job_result", "args": m{"job_id": "${job_id}", "item_id": "${item_id}", "result": m{"got": "other"}}}
	p := job(t, script(t, calls(reportCall, second), calls(second), says("Done.")), "id,q\na,1\n")
	stream := p.mustEnd(0)
	var answers []string
	for _, r := range bodies[event.ToolResultEvent](t, stream) {
		answers = append(answers, r.Content)
	}
	if d := cmp.Diff([]string{`{"accepted":true}`, `{"accepted":false}`}, answers); d != "" {
		t.Errorf("answers (-want +got):\n%s", d)
	}
	if d := cmp.Diff([][]string{{"completed", `{"got":"1"}`}}, p.columns("out.csv", "status", "result_json")); d != "" {
		t.Error(d)
	}
}

// TestJobRowsWhoseAgentsBreak: a script that ends, does not fit, or is cut is the
// row's failure alone.
func TestJobRowsWhoseAgentsBreak(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		script, want string
	}{
		"script ends":     {script(t, calls(execCall("true"))), "failed: "},
		"script mismatch": {script(t, calls(execCall("echo ${row.q}")), m{"expect": "never said", "text": "x"}), "failed: "},
		"stream cut":      {script(t, m{"text": "I begin", "cut": true}), "failed: "},
		"server error":    {script(t, m{"error": m{"status": 400, "message": "bad request"}}), "failed: "},
		"says nothing":    {script(t, says(" ")), "failed: worker finished without calling report_agent_job_result"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := job(t, c.script, "id,q\na,1\nb,2\n", "--max-attempts", "1")
			stream := p.mustEnd(21)
			for id, got := range p.statuses() {
				if !strings.HasPrefix(got, c.want) || got == "failed: " {
					t.Errorf("row %s: %s", id, got)
				}
			}
			if end := jobEnd(t, stream); end.Status != "failed" || end.Failed != 2 {
				t.Errorf("the job's end is %+v", end)
			}
		})
	}
}

// TestJobRowThatFloods: megabytes from its command, its model and in its report
// leave the other rows alone.
func TestJobRowThatFloods(t *testing.T) {
	t.Parallel()
	big := strings.Repeat("word ", 100_000)
	p := job(t, script(t, m{"text": "${row.say}", "chunk": 100_000, "tool_calls": []any{execCall("${row.cmd}")}}, calls(reportCall)),
		"id,q,cmd,say\nloud,"+big+",yes | head -c 30000000,"+big+"\nquiet,2,true,hm\n")
	stream := p.mustEnd(0)
	p.wantStatuses(map[string]string{"loud": "completed", "quiet": "completed"})
	if len(stream) > 16<<20 {
		t.Errorf("the stream has %d bytes", len(stream))
	}
	for _, l := range p.lines("out.jsonl") {
		if l.ItemID == "loud" && (len(l.Result) < len(big) || l.Row["q"] != big) {
			t.Errorf("the result has %d bytes", len(l.Result))
		}
	}
}

// TestJobRowStuckPastItsLimit (github.com/openai/codex/pull/27586) is ended with
// its processes, also those that ignore SIGTERM, and the job goes on.
func TestJobRowStuckPastItsLimit(t *testing.T) {
	t.Parallel()
	first := m{"name": "report_agent_job_result", "args": m{"job_id": "${job_id}", "item_id": "${row.as}", "result": m{}}}
	p := job(t, script(t, calls(first), calls(execCall("trap '' TERM; (trap '' TERM; sleep 300) & sleep 300")), says("x"), says("x")),
		"id,q,as\n1,a,1\n2,b,2\n3,c,another\n4,d,4\n5,e,5\n", "--item-timeout", "6s")
	stream := p.mustEnd(20) // it looks for processes that are left
	p.wantStatuses(map[string]string{"1": "completed", "2": "completed", "4": "completed", "5": "completed", "3": "timeout: worker exceeded max runtime of 6s"})
	if end := jobEnd(t, stream); end.Status != "partial" || end.Failed != 1 {
		t.Errorf("the job's end is %+v", end)
	}
}

// TestJobDeadline ends what is under way and keeps the rest for the next run.
func TestJobDeadline(t *testing.T) {
	t.Parallel()
	p := job(t, script(t, calls(execCall("[ -e fast ] || sleep 300")), calls(reportCall)), "id,q\na,1\nb,2\nc,3\n", "--max-concurrency", "1")
	stream := p.again("--max-runtime", "5s").mustEnd(21)
	if end := jobEnd(t, stream); end.Status != "failed" || lastLine(t, stream).Reason != "job_deadline" {
		t.Errorf("the job's end is %+v", end)
	}
	p.wantStatuses(map[string]string{"a": "timeout: worker exceeded max runtime of 5s", "b": "pending", "c": "pending"})
	p.lay(map[string]string{"fast": ""})
	stream = p.mustEnd(20)
	if d := cmp.Diff([]string{"b", "c"}, begun(t, stream)); d != "" {
		t.Errorf("the next run begins (-want +got):\n%s", d)
	}
	stream = p.drover("jobs", "retry", "--failed").mustEnd(0)
	if d := cmp.Diff([]string{"a"}, begun(t, stream)); d != "" {
		t.Errorf("the retry begins (-want +got):\n%s", d)
	}
	p.wantStatuses(map[string]string{"a": "completed", "b": "completed", "c": "completed"})
}

// TestJobWithTooManyFailures ends early, and can be continued.
func TestJobWithTooManyFailures(t *testing.T) {
	t.Parallel()
	p := job(t, script(t, says("No."), says("No.")), "id,q\na,1\nb,2\nc,3\nd,4\n", "--max-concurrency", "1", "--max-failures", "2")
	end := lastLine(t, p.mustEnd(21))
	if end.Reason != "max_failures" || !strings.Contains(end.Error.Message, "2 rows have failed") {
		t.Errorf("the end is %+v", end)
	}
	p.wantStatuses(map[string]string{"a": unreported, "b": unreported, "c": "pending", "d": "pending"})
	stream := p.again("--max-failures", "0").mustEnd(21)
	if d := cmp.Diff([]string{"c", "d"}, begun(t, stream)); d != "" {
		t.Errorf("the next run begins (-want +got):\n%s", d)
	}
}

// TestJobThatARowEnds: a report with stop ends the job, and rows that are left
// are there for the next run.
func TestJobThatARowEnds(t *testing.T) {
	t.Parallel()
	stop := m{"name": "report_agent_job_result", "args_raw": `{"job_id":"${job_id}","item_id":"${item_id}","result":{},"stop":${row.q}}`}
	p := job(t, script(t, calls(stop)), "id,q\na,false\nb,true\nc,false\nd,false\n", "--max-concurrency", "1")
	stream := p.mustEnd(20)
	if end := jobEnd(t, stream); end.Status != "cancelled" || end.Completed != 2 {
		t.Errorf("the job's end is %+v", end)
	}
	p.wantStatuses(map[string]string{"a": "completed", "b": "completed", "c": "pending", "d": "pending"})
	if d := cmp.Diff([]string{"c", "d"}, begun(t, p.again().mustEnd(0))); d != "" {
		t.Errorf("the next run begins (-want +got):\n%s", d)
	}
}

// TestJobSchema: a result that misses the schema goes back to the agent, at most
// three times, and the row says so.
func TestJobSchema(t *testing.T) {
	t.Parallel()
	wrong := m{"name": "report_agent_job_result", "args_raw": `{"job_id":"${job_id}","item_id":"${item_id}","result":{"n":${row.q}}}`}
	right := m{"name": "report_agent_job_result", "args": m{"job_id": "${job_id}", "item_id": "${item_id}", "result": m{"n": 7}}}
	p := job(t, script(t, calls(wrong), calls(wrong), calls(m{"name": "report_agent_job_result", "args_raw": `{"job_id":"${job_id}","item_id":"${item_id}","result":{"n":${row.third}}}`}), calls(right)),
		"id,q,third\nfine,1,2\nrepaired,\"\"\"x\"\"\",2\nnever,\"\"\"x\"\"\",true\n", "--output-schema", "schema.json")
	p.lay(map[string]string{"schema.json": `{"type":"object","required":["n"],"properties":{"n":{"type":"integer"}}}`})
	p.mustEnd(20)
	got := map[string]string{}
	for _, row := range p.columns("out.csv", "item_id", "status", "result_json") {
		got[row[0]] = row[1] + row[2]
	}
	if d := cmp.Diff(map[string]string{"fine": `completed{"n":1}`, "repaired": `completed{"n":2}`, "never": "invalid_output"}, got); d != "" {
		t.Errorf("rows (-want +got):\n%s", d)
	}
}
