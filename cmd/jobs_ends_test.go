package cmd

import (
	"bufio"
	"bytes"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
)

// TestJobRowThatKillsItsWorker is given up after a while, and the other rows are
// done.
func TestJobRowThatKillsItsWorker(t *testing.T) {
	t.Parallel()
	// The process writes its number before it becomes drover.
	p := job(t, script(t, calls(execCall("[ ${item_id} != bad ] || kill -9 $(cat pid)")), calls(reportCall)), "id,q\nbad,0\nb,1\nc,2\n", "--max-concurrency", "1")
	for kills := 0; ; kills++ {
		n := p.again()
		n.cmd.Args = append([]string{"sh", "-c", `echo $$ >pid; exec "$@"`, "sh", n.cmd.Path}, n.cmd.Args[1:]...)
		n.cmd.Path = "/bin/sh"
		var out bytes.Buffer
		n.cmd.Stdout = &out
		if err := n.cmd.Start(); err != nil {
			t.Fatal(err)
		}
		exit := n.finish()
		if exit >= 0 {
			n.check(out.Bytes(), exit)
			if exit != 20 || kills != 10 {
				t.Errorf("exit %d after %d kills", exit, kills)
			}
			break
		}
		if kills > 20 {
			t.Fatal("the row is tried for ever")
		}
	}
	p.wantStatuses(map[string]string{"bad": "failed: 10 workers died while they worked on this row; it is not tried again", "b": "completed", "c": "completed"})
}

// TestJobRowsThatAreEnded: each limit and refusal has its own status, and the
// rows that fit are completed.
func TestJobRowsThatAreEnded(t *testing.T) {
	t.Parallel()
	first := m{"name": "report_agent_job_result", "args": m{"job_id": "${job_id}", "item_id": "${row.q}", "result": m{}}}
	for name, c := range map[string]struct {
		flags []string
		want  string
	}{
		"turns":    {[]string{"--max-turns", "1"}, "limit: "},
		"calls":    {[]string{"--max-tool-calls", "1"}, "limit: "},
		"refused":  {[]string{"--deny", "exec:touch", "--on-deny", "fail"}, "blocked: "},
		"too late": {[]string{"--item-timeout", "5s"}, "timeout: worker exceeded max runtime of 5s"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := job(t, script(t, calls(first), calls(execCall("touch x; sleep 300"))), "id,q\nfine,fine\nbad,nobody\n", c.flags...)
			p.mustEnd(20)
			got := p.statuses()
			if got["fine"] != "completed" || !strings.HasPrefix(got["bad"], c.want) || got["bad"] == c.want+": " {
				t.Errorf("statuses %v", got)
			}
		})
	}
}

// TestJobRetryOfSomeStatuses runs those rows and what is left, with further flags.
func TestJobRetryOfSomeStatuses(t *testing.T) {
	t.Parallel()
	first := m{"name": "report_agent_job_result", "args": m{"job_id": "${job_id}", "item_id": "${row.q}", "result": m{}}}
	p := job(t, script(t, calls(first), calls(execCall("[ ${item_id} = silent ] || [ -e fast ] || sleep 300")), says("Hm."), says("Hm.")),
		"id,q\nfine,fine\nslow,x\nsilent,x\n", "--item-timeout", "5s")
	p.mustEnd(20)
	p.wantStatuses(map[string]string{"fine": "completed", "slow": "timeout: worker exceeded max runtime of 5s", "silent": unreported})
	p.lay(map[string]string{"fast": "", "other.jsonl": script(t, calls(reportCall))})
	p.drover("jobs", "retry", "--status", "timeout", "--item-timeout", "1m").wantBegun(20, "slow")
	p.wantStatuses(map[string]string{"fine": "completed", "slow": unreported, "silent": unreported})
	// Another model needs a word.
	p.drover("jobs", "retry", "-m", "script:other.jsonl").mustEnd(2)
	p.drover("jobs", "retry", "-m", "script:other.jsonl", "--as-is").wantBegun(0, "silent", "slow")
	if out, exit := p.drover("jobs", "retry", "--status", "nonsense").plain(); exit != 2 {
		t.Errorf("exit %d: %s", exit, out)
	}
	if out, exit := p.drover("jobs", "status", "no-such-job").plain(); exit != 8 {
		t.Errorf("exit %d: %s", exit, out)
	}
}

// TestJobWhoseReaderGoesAway ends with 141 and can be continued.
func TestJobWhoseReaderGoesAway(t *testing.T) {
	t.Parallel()
	var table strings.Builder
	table.WriteString("id,q\n")
	for i := range 300 {
		fmt.Fprintf(&table, "r%d,%d\n", i, i)
	}
	p := job(t, script(t, m{"delay_ms": 20, "tool_calls": []any{reportCall}}), table.String(), "--max-concurrency", "2")
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := bufio.NewReader(out).ReadBytes('\n'); err != nil {
		t.Fatal(err)
	}
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
	if exit := p.finish(); exit != 141 || strings.Count(p.stderr.String(), "\n") > 1 {
		t.Errorf("exit %d: %s", exit, p.stderr.String())
	}
	if s := p.jobState(); s.Active || s.Running != 0 || s.Completed+s.Pending != 300 {
		t.Errorf("the status is %+v", s)
	}
	p.again().mustEnd(0)
	p.wantCompleted(300, 300)
	for _, l := range p.lines("out.jsonl") {
		if l.AttemptCount != 1 {
			t.Errorf("row %s had %d attempts", l.ItemID, l.AttemptCount)
		}
	}
}

// TestJobWhoseDatabaseIsNone: the error names the file, the list passes over it,
// and --restart begins anew.
func TestJobWhoseDatabaseIsNone(t *testing.T) {
	t.Parallel()
	p := job(t, script(t, calls(reportCall)), "id,q\na,1\n")
	p.mustEnd(0)
	files, err := filepath.Glob(filepath.Join(p.dir, ".state", "drover", "jobs", "*", "job.db"))
	if err != nil || len(files) != 1 {
		t.Fatalf("databases %v, %v", files, err)
	}
	p.sh("rm -f .state/drover/jobs/*/job.db-* && head -c 8192 /dev/urandom >" + files[0])
	end := lastLine(t, p.again().mustEnd(7))
	if end.Reason != "job_database" || !strings.Contains(end.Error.Message, filepath.Dir(files[0])) {
		t.Errorf("the end is %+v", end.Error)
	}
	if out, exit := p.drover("jobs", "list").plain(); exit != 0 {
		t.Errorf("list: exit %d: %s", exit, out)
	}
	p.again("--restart").wantBegun(0, "a")
}

// TestJobFromStandardInputIsRetried without its table, which is gone.
func TestJobFromStandardInputIsRetried(t *testing.T) {
	t.Parallel()
	report := m{"name": "report_agent_job_result", "args_raw": `{"job_id":"${job_id}","item_id":"${item_id}","result":{"n":${row.q}}}`}
	p := job(t, script(t, calls(report), says("No."), says("No.")), "")
	n := p.drover(append([]string{"jobs", "run", "-"}, p.cmd.Args[4:]...)...)
	n.cmd.Stdin = strings.NewReader("id,q\na,1\nb,{\n")
	n.wantBegun(20, "a", "b")
	p.lay(map[string]string{"other.jsonl": script(t, calls(reportCall))})
	p.drover("jobs", "retry", "-m", "script:other.jsonl", "--as-is").wantBegun(0, "b")
	p.wantStatuses(map[string]string{"a": "completed", "b": "completed"})
}
