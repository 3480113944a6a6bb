package cmd

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"drover/output/event"
)

// wantBegun runs the command to its end, which must begin these rows and no
// others.
func (p *process) wantBegun(exit int, items ...string) []byte {
	p.t.Helper()
	stream := p.mustEnd(exit)
	if items == nil {
		items = []string{}
	}
	if d := cmp.Diff(items, begun(p.t, stream)); d != "" {
		p.t.Errorf("rows that were begun (-want +got):\n%s", d)
	}
	return stream
}

// TestFinishedJobRunAgain runs nothing, gives the same exit code, and writes the
// result again if it is lost.
func TestFinishedJobRunAgain(t *testing.T) {
	t.Parallel()
	for want, table := range map[int]string{0: "id,q\na,1\nb,2\n", 20: "id,q\na,1\nb,{\n", 21: "id,q\na,{\n"} {
		t.Run(fmt.Sprint(want), func(t *testing.T) {
			t.Parallel()
			report := m{"name": "report_agent_job_result", "args_raw": `{"job_id":"${job_id}","item_id":"${item_id}","result":{"n":${row.q}}}`}
			p := job(t, script(t, calls(report), says("No."), says("No.")), table)
			p.mustEnd(want)
			before := p.tree(".")
			for _, file := range []string{"out.csv", "out.jsonl"} {
				if err := os.Remove(filepath.Join(p.dir, file)); err != nil {
					t.Fatal(err)
				}
				stream := p.again().wantBegun(want)
				if started := bodies[event.JobStartedEvent](t, stream); len(started) != 1 || !started[0].Resumed || started[0].Skipped != started[0].Total {
					t.Errorf("the start is %+v", started)
				}
				for _, result := range []string{"out.csv", "out.jsonl"} {
					if now, err := os.ReadFile(filepath.Join(p.dir, result)); err != nil || string(now) != before[result] {
						t.Errorf("%s was %s and is %s, %v", result, before[result], now, err)
					}
				}
			}
		})
	}
}

// TestTableThatChangesBetweenRuns: new and changed rows run, rows that are gone
// leave the result, and the others are not paid again.
func TestTableThatChangesBetweenRuns(t *testing.T) {
	t.Parallel()
	p := job(t, script(t, calls(reportCall)), "id,q\na,1\nb,2\nc,3\n")
	p.mustEnd(0)
	p.lay(map[string]string{"rows.csv": "id,q\nd,4\nc,3\nb,two\n"})
	p.again().wantBegun(0, "b", "d")
	want := [][]string{{"d", "4", "0", "completed", `{"got":"4"}`}, {"c", "3", "1", "completed", `{"got":"3"}`}, {"b", "two", "2", "completed", `{"got":"two"}`}}
	if d := cmp.Diff(want, p.columns("out.csv", "id", "q", "row_index", "status", "result_json")); d != "" {
		t.Errorf("the result (-want +got):\n%s", d)
	}
	// Other columns are other rows.
	p.lay(map[string]string{"rows.csv": "id,q,more\nd,4,x\nc,3,y\n"})
	p.again().wantBegun(0, "c", "d")
	if d := cmp.Diff([][]string{{"d", "x"}, {"c", "y"}}, p.columns("out.csv", "id", "more")); d != "" {
		t.Errorf("the result (-want +got):\n%s", d)
	}
	p.lay(map[string]string{"rows.csv": "id,q,more\n"})
	if stream := p.again().wantBegun(0); jobEnd(t, stream).Total != 0 {
		t.Errorf("the end is %+v", jobEnd(t, stream))
	}
	if rows := p.columns("out.csv", "id"); len(rows) != 0 {
		t.Errorf("rows that are gone are in the result: %q", rows)
	}
}

// TestJobWhoseOrderChanges asks what to do with rows that were finished under
// another instruction, model or schema.
func TestJobWhoseOrderChanges(t *testing.T) {
	t.Parallel()
	for name, flags := range map[string][]string{
		"the instruction":   {"--instruction", "Look well at {q}"},
		"the model":         {"-m", "script:other.jsonl"},
		"the output schema": {"--output-schema", "schema.json"},
		"the id column":     {"--id-column", "q"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := job(t, script(t, calls(reportCall)), "id,q\na,x\nb,y\n")
			p.lay(map[string]string{"schema.json": `{"type":"object"}`, "other.jsonl": script(t, calls(reportCall))})
			p.mustEnd(0)
			if end := lastLine(t, p.again(flags...).mustEnd(2)); end.Reason != "job_changed" || !strings.Contains(end.Error.Message, name+" changed") ||
				!strings.Contains(end.Error.Fix, "--restart") || !strings.Contains(end.Error.Fix, "--as-is") {
				t.Errorf("the end is %+v", end.Error)
			}
			if name != "the id column" {
				p.again(append(flags, "--as-is")...).wantBegun(0)
				p.again(flags...).wantBegun(0) // it is the job's own now
			}
			want := []string{"a", "b"}
			if name == "the id column" {
				want = []string{"x", "y"}
			}
			p.again(append(flags, "--restart")...).wantBegun(0, want...)
		})
	}
}

// TestJobFromStandardInput is known by its bytes.
func TestJobFromStandardInput(t *testing.T) {
	t.Parallel()
	const table = "id,q\na,1\nb,2\n"
	p := job(t, script(t, calls(reportCall)), "")
	stdin := func(table string, args ...string) *process {
		n := p.drover(append([]string{"jobs", "run", "-"}, append(p.cmd.Args[4:], args...)...)...)
		n.cmd.Stdin = strings.NewReader(table)
		return n
	}
	preview, exit := stdin(table, "--dry-run", "--format", "text").plain()
	if exit != 0 || !bytes.Contains(preview, []byte("Look at 2")) || !bytes.Contains(preview, []byte("2 rows")) {
		t.Errorf("a dry run: exit %d: %s", exit, preview)
	}
	stdin(table).wantBegun(0, "a", "b")
	stdin(table).wantBegun(0)
	stdin(table+"c,3\n").wantBegun(0, "a", "b", "c") // another table is another job
	left, err := filepath.Glob(filepath.Join(p.dir, ".state", "drover", "jobs", "stdin-*"))
	if err != nil || len(left) > 0 {
		t.Errorf("copies of standard input are left: %v, %v", left, err)
	}
}

// TestRowsWithEqualTextEachRun (github.com/NousResearch/hermes-agent/issues/86523):
// what is done is known by the row and not by its text, also after a kill.
func TestRowsWithEqualTextEachRun(t *testing.T) {
	t.Parallel()
	var table strings.Builder
	var all []string
	table.WriteString("id,q\n")
	for i := range 10 {
		fmt.Fprintf(&table, "r%d,text %d\n", i, i/3)
		all = append(all, fmt.Sprint("r", i))
	}
	p := job(t, script(t, calls(execCall("echo ${item_id} >> ledger; [ ${item_id} != r4 ] || [ -e go ] || sleep 300")), calls(reportCall)), table.String(), "--max-concurrency", "1")
	r := p.startedUntil(`"index":4`)
	r.signal(syscall.SIGKILL)
	_ = p.cmd.Wait() // killed on purpose
	p.lay(map[string]string{"go": ""})
	p.again().wantBegun(0, all[4:]...)
	p.wantLedger(all, map[string]int{"r4": 2})
}

// wantLedger checks how often each row's command ran: once, or as often as more
// says at most.
func (p *process) wantLedger(items []string, more map[string]int) {
	p.t.Helper()
	data, err := os.ReadFile(filepath.Join(p.dir, "ledger"))
	if err != nil {
		p.t.Fatal(err)
	}
	got := map[string]int{}
	for _, id := range strings.Fields(string(data)) {
		got[id]++
	}
	for _, id := range items {
		if n := got[id]; n < 1 || n > max(1, more[id]) {
			p.t.Errorf("%s ran %d times", id, n)
		}
	}
}

// TestKillWhileResultsAreWritten (github.com/miclaldogan/bantzv2/issues/511):
// the lines of a killed job may be cut at any byte, or gone, and the job goes on
// from what its database knows.
func TestKillWhileResultsAreWritten(t *testing.T) {
	t.Parallel()
	p := job(t, script(t, calls(execCall("echo ${item_id} >> ledger; [ ${item_id} != c ] || [ -e go ] || sleep 300")), calls(reportCall)), "id,q\na,1\nb,\"two\nlines\"\nc,3\nd,4\n", "--max-concurrency", "1")
	r := p.startedUntil(`"index":2`)
	r.signal(syscall.SIGKILL)
	_ = p.cmd.Wait() // killed on purpose
	r.noChildren(r.all.Bytes())
	whole, err := os.ReadFile(filepath.Join(p.dir, "out.jsonl"))
	if err != nil || bytes.Count(whole, []byte("\n")) != 2 {
		t.Fatalf("the lines are %s, %v", whole, err)
	}
	if _, err := os.Stat(filepath.Join(p.dir, "out.csv")); err == nil {
		t.Error("half of a table is there")
	}
	p.lay(map[string]string{"go": ""})
	p.sh("cp -r .state kept")
	last := bytes.IndexByte(whole, '\n') + 1
	cuts := []int{0, last - 1, len(whole) - 1, len(whole)}
	for at := last; at < len(whole); at += 23 {
		cuts = append(cuts, at)
	}
	var first string
	for _, at := range cuts {
		p.sh("rm -rf .state ledger out.csv && cp -r kept .state")
		if err := os.WriteFile(filepath.Join(p.dir, "out.jsonl"), whole[:at], 0o644); err != nil {
			t.Fatal(err)
		}
		p.again().wantBegun(0, "c", "d")
		p.wantLedger([]string{"c", "d"}, nil)
		var rows []string
		for _, l := range p.lines("out.jsonl") {
			rows = append(rows, fmt.Sprint(l.ItemID, l.Status, string(l.Result)))
		}
		for _, cells := range p.columns("out.csv", "id", "q", "status", "result_json") {
			rows = append(rows, fmt.Sprintf("%q", cells))
		}
		if got := strings.Join(rows, "\n"); first == "" {
			first = got
		} else if got != first {
			t.Errorf("cut at %d (-first +now):\n%s", at, cmp.Diff(first, got))
		}
	}
	if n := strings.Count(first, "completed"); n != 8 {
		t.Errorf("the result is:\n%s", first)
	}
}

// TestJobKilledAgainAndAgain: whatever is killed when, every row is reported
// exactly once and a row that is finished does not run again.
func TestJobKilledAgainAndAgain(t *testing.T) {
	t.Parallel()
	const rows = 200
	var table strings.Builder
	table.WriteString("id,q\n")
	all := map[string]string{}
	for i := range rows {
		fmt.Fprintf(&table, "r%d,%d\n", i, i)
		all[fmt.Sprint("r", i)] = "completed"
	}
	p := job(t, script(t, m{"delay_ms": 5, "tool_calls": []any{reportCall}}), table.String(), "--max-concurrency", "4")
	finished := map[string]int{}
	for round := 1; ; round++ {
		n := p.again()
		if round > 5 {
			count(t, n.mustEnd(0), finished)
			break
		}
		r := n.startedUntil(`"job.item.finished"`)
		for range 10 * round { // another moment in every round
			line, err := r.out.ReadBytes('\n')
			r.all.Write(line)
			if err != nil {
				t.Fatal(err)
			}
		}
		r.signal(syscall.SIGKILL)
		_, _ = r.all.ReadFrom(r.out) // what it wrote before the kill
		_ = n.cmd.Wait()             // killed on purpose
		count(t, r.all.Bytes()[:bytes.LastIndexByte(r.all.Bytes(), '\n')+1], finished)
	}
	p.wantStatuses(all)
	for id, n := range finished {
		if n > 1 {
			t.Errorf("%s was finished %d times", id, n)
		}
	}
	order := p.columns("out.csv", "id")
	if got := slices.Collect(maps.Keys(all)); len(order) != len(got) || order[0][0] != "r0" || order[rows-1][0] != fmt.Sprint("r", rows-1) {
		t.Errorf("%d rows, from %q to %q", len(order), order[0], order[len(order)-1])
	}
}

// count counts how often each row is told to be completed.
func count(t *testing.T, stream []byte, into map[string]int) {
	t.Helper()
	for line := range bytes.Lines(stream) {
		if !bytes.Contains(line, []byte(`"type":"job.item.finished"`)) || !bytes.Contains(line, []byte(`"status":"completed"`)) {
			continue
		}
		_, rest, _ := bytes.Cut(line, []byte(`"item_id":"`))
		id, _, _ := bytes.Cut(rest, []byte(`"`))
		into[string(id)]++
	}
}

// TestTwoJobsOnOneOutput: a job that can be continued does not lose its output to
// another, in whatever way the path is written.
func TestTwoJobsOnOneOutput(t *testing.T) {
	t.Parallel()
	p := job(t, script(t, calls(gate), calls(reportCall)), "id,q\na,1\nb,2\n", "--max-concurrency", "1")
	p.lay(map[string]string{"go-a": "", "other.csv": "id,q\nz,1\n", "go-z": "", "here": "-> ."})
	r := p.startedUntil(`"completed":1`)
	r.signal(syscall.SIGINT)
	r.end(130)
	before := p.tree(".")["out.csv"]
	for _, out := range []string{"out.csv", "./here/out.csv", "out.tsv"} {
		other := p.drover("jobs", "run", "other.csv", "-o", out, "--instruction", "x", "-m", "script:model.jsonl", "--yolo", "--sandbox", "off")
		if end := lastLine(t, other.mustEnd(2)); end.Reason != "output_path" || !strings.Contains(end.Error.Message, "which is not finished") {
			t.Errorf("%s: %+v", out, end)
		}
	}
	if now := p.tree(".")["out.csv"]; now != before {
		t.Errorf("the output was %s and is %s", before, now)
	}
	p.lay(map[string]string{"go-b": ""})
	p.again().wantBegun(0, "b")
	// A finished job's output is free.
	p.drover("jobs", "run", "other.csv", "-o", "out.csv", "--id-column", "id", "--instruction", "x", "-m", "script:model.jsonl", "--yolo", "--sandbox", "off").wantBegun(0, "z")
}

// TestFullDiskUnderAResult: the rows are kept in the database, and the result is
// written once there is room.
func TestFullDiskUnderAResult(t *testing.T) {
	t.Parallel()
	if err := exec.Command("unshare", "-Urm", "mount", "-t", "tmpfs", "none", "/mnt").Run(); err != nil {
		t.Skipf("no file system of a limited size can be made: %v", err)
	}
	p := job(t, script(t, calls(reportCall)), "id,q\na,1\nb,2\n", "-o", "small/out.csv")
	p.lay(map[string]string{"small/": ""})
	inside := func(before string) *process {
		path, err := exec.LookPath("unshare")
		if err != nil {
			t.Skip(err)
		}
		n := p.again()
		n.cmd.Args = append([]string{"unshare", "-Urm", "sh", "-c", "mount -t tmpfs -o size=64k none small && " + before + `; exec "$@"`, "sh", n.cmd.Path}, n.cmd.Args[1:]...)
		n.cmd.Path = path
		return n
	}
	stream := inside("head -c 65536 /dev/zero >small/full 2>/dev/null").mustEnd(7)
	if end := lastLine(t, stream); end.Reason != "output_failed" || !strings.Contains(end.Error.Message, "no space left") {
		t.Errorf("the end is %+v", end)
	}
	p.again().wantBegun(0) // on another disk
	if d := cmp.Diff([][]string{{"a", "completed"}, {"b", "completed"}}, p.columns("small/out.csv", "id", "status")); d != "" {
		t.Errorf("the result (-want +got):\n%s", d)
	}
}

// TestFullDiskUnderTheDatabase ends the job with an error, and rows that were
// stored are kept.
func TestFullDiskUnderTheDatabase(t *testing.T) {
	t.Parallel()
	if err := exec.Command("unshare", "-Urm", "mount", "-t", "tmpfs", "none", "/mnt").Run(); err != nil {
		t.Skipf("no file system of a limited size can be made: %v", err)
	}
	p := job(t, script(t, calls(execCall("[ ${item_id} != b ] || [ -e once ] || { touch once; head -c 20000000 /dev/zero > .state/full 2>/dev/null; }; true")), calls(reportCall)),
		"id,q\na,1\nb,2\nc,3\n", "--max-concurrency", "1")
	p.lay(map[string]string{".state/": ""})
	path, err := exec.LookPath("unshare")
	if err != nil {
		t.Skip(err)
	}
	// Afterwards there is room again, on the same file system.
	again := strings.Join(p.cmd.Args[1:], "\x00")
	p.cmd.Args = append([]string{"unshare", "-Urm", "sh", "-c",
		`mount -t tmpfs -o size=4m none .state && { "$@" >first; echo $? >code; rm -f .state/full; exec "$@"; }`, "sh", p.cmd.Path}, strings.Split(again, "\x00")...)
	p.cmd.Path = path
	stream := p.mustEnd(0)
	tree := p.tree(".")
	if code := strings.TrimSpace(tree["code"]); code != "7" {
		t.Fatalf("the first run ended with %s: %s", code, tree["first"])
	}
	if end := lastLine(t, []byte(tree["first"])); end.Error == nil || !strings.Contains(end.Error.Message, "full") {
		t.Errorf("the first end is %+v", end)
	}
	if got := begun(t, stream); slices.Contains(got, "a") || !slices.Contains(got, "c") {
		t.Errorf("the second run begins %q", got)
	}
	p.wantStatuses(map[string]string{"a": "completed", "b": "completed", "c": "completed"})
}
