package cmd

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// gate is a command that waits until a file named after its row is there. The
// agent waits for it as long as it can.
var gate = m{"name": "exec_command", "args": m{"cmd": "while [ ! -e go-${item_id} ]; do sleep 0.05; done", "yield_time_ms": 30000}}

// jobState is what jobs status tells.
func (p *process) jobState() jobRow {
	p.t.Helper()
	out, exit := p.drover("jobs", "status", "--format", "json").plain()
	var r jobRow
	if err := json.Unmarshal(out, &r); err != nil || exit != 0 {
		p.t.Fatalf("status: exit %d, %v: %s", exit, err, out)
	}
	return r
}

// TestJobIsLookedAtWhileItRuns: status, list and export tell the truth, nobody
// else gets the job or its output, and stop lets rows end that are under way.
func TestJobIsLookedAtWhileItRuns(t *testing.T) {
	t.Parallel()
	p := job(t, script(t, calls(gate), calls(reportCall)), "id,q\na,1\nb,2\nc,3\nd,4\n", "--max-concurrency", "2")
	p.lay(map[string]string{"go-a": ""})
	r := p.startedUntil(`"completed":1`)
	waitFor(t, "the next rows", func() bool { return p.jobState().Running == 2 })
	if s := p.jobState(); s.Total != 4 || s.Completed != 1 || s.Pending != 1 || !s.Active {
		t.Errorf("the status is %+v", s)
	}
	list, _ := p.drover("jobs", "list").plain()
	if !bytes.Contains(list, []byte("running")) || !bytes.Contains(list, []byte("rows.csv")) {
		t.Errorf("the list is %s", list)
	}
	if code := func() int { _, e := p.drover("jobs", "export", "-o", "now.csv").plain(); return e }(); code != 0 {
		t.Errorf("export ends with %d", code)
	}
	if d := cmp.Diff([][]string{{"a", "completed"}, {"b", "running"}, {"c", "running"}, {"d", "pending"}}, p.columns("now.csv", "item_id", "status")); d != "" {
		t.Errorf("the export (-want +got):\n%s", d)
	}
	p.lay(map[string]string{"other.csv": "id,q\nz,1\n"})
	for what, other := range map[string]*process{
		"the same job": p.again(), "a retry": p.drover("jobs", "retry"), "its restart": p.again("--restart"),
		"another job on its output": p.again("--name", "other"), "a table whose lines are the same file": p.again("--name", "third", "-o", "out.tsv"),
	} {
		if end := lastLine(t, other.mustEnd(8)); end.Reason != "job_locked" {
			t.Errorf("%s: %+v", what, end)
		}
	}
	if out, exit := p.drover("jobs", "stop").plain(); exit != 0 || !bytes.Contains(out, []byte("asked to stop")) {
		t.Errorf("stop: exit %d: %s", exit, out)
	}
	looks := 0
	waitFor(t, "the wish to arrive", func() bool { looks++; return looks > 120 }) // a job looks every half second
	p.lay(map[string]string{"go-b": "", "go-c": ""})
	if end := lastLine(t, r.end(20)); end.Reason != "job_stopped" {
		t.Errorf("the end is %+v", end)
	}
	p.lay(map[string]string{"go-d": ""})
	p.wantStatuses(map[string]string{"a": "completed", "b": "completed", "c": "completed", "d": "pending"})
	if d := cmp.Diff([]string{"d"}, begun(t, p.again().mustEnd(0))); d != "" {
		t.Errorf("the next run begins (-want +got):\n%s", d)
	}
}

// TestJobThatIsCancelled ends its rows, and whoever runs it again gets them all.
func TestJobThatIsCancelled(t *testing.T) {
	t.Parallel()
	p := job(t, script(t, calls(gate), calls(reportCall)), "id,q\na,1\nb,2\nc,3\n", "--max-concurrency", "2")
	p.lay(map[string]string{"go-a": ""})
	r := p.startedUntil(`"completed":1`)
	if out, exit := p.drover("jobs", "cancel").plain(); exit != 0 || !bytes.Contains(out, []byte("asked to cancel")) {
		t.Errorf("cancel: exit %d: %s", exit, out)
	}
	if end := jobEnd(t, r.end(20)); end.Status != "cancelled" || end.Completed != 1 || end.Skipped != 2 {
		t.Errorf("the job's end is %+v", end)
	}
	for id, got := range p.statuses() {
		if want := map[bool]string{true: "completed", false: "cancelled: "}[id == "a"]; !strings.HasPrefix(got, want) {
			t.Errorf("row %s is %s", id, got)
		}
	}
	if s := p.jobState(); s.Status != "cancelled" || s.Active {
		t.Errorf("the status is %+v", s)
	}
	p.lay(map[string]string{"go-b": "", "go-c": ""})
	if d := cmp.Diff([]string{"b", "c"}, begun(t, p.again().mustEnd(0))); d != "" {
		t.Errorf("the next run begins (-want +got):\n%s", d)
	}
}

// TestJobThatNobodyRunsIsCancelled: a killed drover leaves no row that says for
// ever that it is running.
func TestJobThatNobodyRunsIsCancelled(t *testing.T) {
	t.Parallel()
	p := job(t, script(t, calls(gate), calls(reportCall)), "id,q\na,1\nb,2\n", "--max-concurrency", "1")
	r := p.startedUntil(`"job.item.started"`)
	r.signal(syscall.SIGKILL)
	_ = p.cmd.Wait() // killed on purpose
	if s := p.jobState(); s.Active || s.Running+s.Pending != 2 {
		t.Errorf("after the kill: %+v", s)
	}
	if out, exit := p.drover("jobs", "cancel").plain(); exit != 0 || !bytes.Contains(out, []byte("is cancelled")) {
		t.Errorf("cancel: exit %d: %s", exit, out)
	}
	if s := p.jobState(); s.Status != "cancelled" || s.Skipped != 2 || s.Running != 0 {
		t.Errorf("after the cancel: %+v", s)
	}
}

// TestJobThatIsInterrupted ends with the code of the signal and can be continued.
func TestJobThatIsInterrupted(t *testing.T) {
	t.Parallel()
	for sig, want := range map[syscall.Signal]int{syscall.SIGINT: 130, syscall.SIGTERM: 143} {
		t.Run(fmt.Sprint(want), func(t *testing.T) {
			t.Parallel()
			p := job(t, script(t, calls(gate), calls(reportCall)), "id,q\na,1\nb,2\nc,3\n", "--max-concurrency", "2")
			p.lay(map[string]string{"go-a": ""})
			r := p.startedUntil(`"completed":1`)
			r.signal(sig)
			stream := r.end(want)
			if end := jobEnd(t, stream); end.Status != "cancelled" {
				t.Errorf("the job's end is %+v", end)
			}
			p.lay(map[string]string{"go-b": "", "go-c": ""})
			stream = p.again().mustEnd(0)
			if d := cmp.Diff([]string{"b", "c"}, begun(t, stream)); d != "" {
				t.Errorf("the next run begins (-want +got):\n%s", d)
			}
			for _, l := range p.lines("out.jsonl") {
				if l.Status != "completed" || l.AttemptCount != 1 {
					t.Errorf("row %+v", l)
				}
			}
		})
	}
}
