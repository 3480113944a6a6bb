package cmd

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"drover/output/event"
)

// jobServer is a model server whose answer to every row is its report, unless
// refuse has another one for the n-th request, which is about that row.
type jobServer struct {
	*httptest.Server
	mu sync.Mutex
	// asked are the rows in the order of the requests.
	asked []string
}

var aboutRow = regexp.MustCompile(`Job: ([0-9a-f]+)\\nItem: ([^\\"]+)\\n`)

func serveRows(t *testing.T, refuse func(n int, item string) exchange) *jobServer {
	t.Helper()
	s := &jobServer{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		request, err := io.ReadAll(r.Body)
		if err != nil {
			return // the client is gone: its row was ended
		}
		about := aboutRow.FindStringSubmatch(string(request))
		if about == nil {
			t.Errorf("a request is about no row: %.2000s", request)
			return
		}
		s.mu.Lock()
		n := len(s.asked)
		s.asked = append(s.asked, about[2])
		s.mu.Unlock()
		if e := refuse(n, about[2]); e != nil {
			e(rw, r)
			return
		}
		args, err := json.Marshal(m{"job_id": about[1], "item_id": about[2], "result": m{"n": 1}})
		if err != nil {
			t.Error(err)
		}
		usage := sse("", m{"id": "c", "choices": []any{}, "usage": m{"prompt_tokens": 100, "completion_tokens": 20}})
		body := chat("tool_calls", callDelta(0, "call_1", "report_agent_job_result", string(args)))
		streams(strings.Replace(body, "data: [DONE]", usage+"data: [DONE]", 1))(rw, r)
	}))
	t.Cleanup(s.Close)
	return s
}

// rows are the rows that the server was asked about so far.
func (s *jobServer) rows() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.asked)
}

// serverJob is a job of so many rows against a server, with lines of its
// provider's config.
func serverJob(t *testing.T, s *jobServer, rows int, config string, args ...string) *process {
	t.Helper()
	p := withServer(t, s.URL, "chat")
	p.addConfig(config)
	var table strings.Builder
	table.WriteString("id,q\n")
	for i := range rows {
		fmt.Fprintf(&table, "r%d,%d\n", i, i)
	}
	p.lay(map[string]string{"rows.csv": table.String()})
	return p.drover(append([]string{"jobs", "run", "rows.csv", "-o", "out.csv", "--id-column", "id", "--instruction", "Look at {q}",
		"-m", "local/some-model", "--yolo", "--sandbox", "off", "--format", "jsonl"}, args...)...)
}

// wantCompleted checks that so many rows are completed, and all have a status.
func (p *process) wantCompleted(rows, completed int) {
	p.t.Helper()
	got := map[string]int{}
	for _, status := range p.statuses() {
		status, _, _ = strings.Cut(status, ":")
		got[status]++
	}
	if n := got["completed"]; n != completed || len(p.lines("out.jsonl")) != rows {
		p.t.Errorf("rows by status: %v; %d of %d should be completed", got, completed, rows)
	}
}

// TestRateLimitInAFanOut (github.com/anthropics/claude-code/issues/68968): most
// answers are 429 for a while, and every row is done in the end.
func TestRateLimitInAFanOut(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var until time.Time
	s := serveRows(t, func(n int, _ string) exchange {
		mu.Lock()
		defer mu.Unlock()
		if n == 0 {
			until = time.Now().Add(3 * time.Second)
		}
		if n%5 < 3 && time.Now().Before(until) {
			return fails(429)
		}
		return nil
	})
	p := serverJob(t, s, 20, "", "--max-concurrency", "8")
	stream := p.mustEnd(0)
	p.wantCompleted(20, 20)
	if end := lastLine(t, stream); end.Usage.Retries < 1 || end.Usage.Retries != len(s.rows())-20 {
		t.Errorf("%d retries are counted in %d requests for 20 rows", end.Usage.Retries, len(s.rows()))
	}
}

// TestRateLimitThatStays costs only the rows that it hits; they can be tried
// again.
func TestRateLimitThatStays(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	limited := true
	s := serveRows(t, func(_ int, item string) exchange {
		mu.Lock()
		defer mu.Unlock()
		if limited && (item == "r2" || item == "r5") {
			return fails(429)
		}
		return nil
	})
	p := serverJob(t, s, 8, "    max_attempts: 1\n", "--max-attempts", "1")
	stream := p.mustEnd(20)
	p.wantCompleted(8, 6)
	for _, id := range []string{"r2", "r5"} {
		if got := p.statuses()[id]; !strings.HasPrefix(got, "failed: ") || !strings.Contains(got, "429") {
			t.Errorf("row %s is %s", id, got)
		}
	}
	if d := cmp.Diff([]string{"r2", "r5"}, slices.Sorted(slices.Values(jobEnd(t, stream).FailedItems))); d != "" {
		t.Error(d)
	}
	mu.Lock()
	limited = false
	mu.Unlock()
	p.drover("jobs", "retry").wantBegun(0, "r2", "r5")
	p.wantCompleted(8, 8)
}

// TestProviderThatIsDownForAWhile: the job waits and tries with one row at a
// time, which costs no row its attempts.
func TestProviderThatIsDownForAWhile(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var last time.Time
	up, failed := false, 0
	s := serveRows(t, func(n int, _ string) exchange {
		mu.Lock()
		defer mu.Unlock()
		// Who fails five rows and waits is waited for: the job has noticed.
		up = up || n >= 5 && time.Since(last) > 2*time.Second
		last = time.Now()
		if !up {
			failed++
			return fails(503)
		}
		return nil
	})
	p := serverJob(t, s, 30, "    max_attempts: 1\n", "--max-concurrency", "5")
	stream := p.mustEnd(0)
	p.wantCompleted(30, 30)
	if !noticed(t, stream, "provider_down") || !noticed(t, stream, "provider_back") {
		t.Errorf("notices %+v", bodies[event.NoticeEvent](t, stream))
	}
	mu.Lock()
	defer mu.Unlock()
	if n := len(s.rows()); n != 30+failed || failed > 15 {
		t.Errorf("%d requests, of which %d failed", n, failed)
	}
}

// TestKeyThatIsRefused ends the job after a few rows, and costs none of them its
// attempts.
func TestKeyThatIsRefused(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	refused := true
	s := serveRows(t, func(int, string) exchange {
		mu.Lock()
		defer mu.Unlock()
		if refused {
			return fails(401)
		}
		return nil
	})
	p := serverJob(t, s, 100, "", "--max-concurrency", "4")
	end := lastLine(t, p.mustEnd(21))
	if end.Reason != "auth" || !strings.Contains(end.Error.Message, "100 are left") {
		t.Errorf("the end is %+v", end.Error)
	}
	if n := len(s.rows()); n > 12 {
		t.Errorf("%d rows were tried", n)
	}
	for id, status := range p.statuses() {
		if !strings.HasPrefix(status, "pending") {
			t.Errorf("row %s is %s", id, status)
		}
	}
	mu.Lock()
	refused = false
	mu.Unlock()
	p.again().mustEnd(0)
	for _, l := range p.lines("out.jsonl") {
		if l.Status != "completed" || l.AttemptCount != 1 {
			t.Errorf("row %s is %s after %d attempts", l.ItemID, l.Status, l.AttemptCount)
		}
	}
}

// TestBudgetOfAJob holds over all its runs, and rows are left that it could not
// pay for.
func TestBudgetOfAJob(t *testing.T) {
	t.Parallel()
	s := serveRows(t, func(int, string) exchange { return nil })
	// A row costs 1.2 dollars.
	p := serverJob(t, s, 6, "    models:\n      some-model: {input_price: 10000, output_price: 10000}\n", "--max-concurrency", "1")
	stream := p.again("--max-cost", "3").mustEnd(20)
	end := lastLine(t, stream)
	if job := jobEnd(t, stream); job.Status != "limit" || end.Reason != "job_budget" || len(s.rows()) != 3 {
		t.Errorf("after %d requests the job's end is %+v, the run's %+v", len(s.rows()), job, end.Error)
	}
	if end.CostUSD == nil || *end.CostUSD < 3.59 || *end.CostUSD > 3.61 {
		t.Errorf("the cost is %v", end.CostUSD)
	}
	p.again("--max-cost", "3").wantBegun(20)
	if n := len(s.rows()); n != 3 {
		t.Errorf("%d requests after the second run", n)
	}
	p.mustEnd(0)
	p.wantCompleted(6, 6)
	if n := len(s.rows()); n > 7 {
		t.Errorf("%d requests for 6 rows", n)
	}
	if cost := p.jobState().CostUSD; cost == nil || *cost < 7.1 || *cost > 8.5 {
		t.Errorf("the job's cost is %v", cost)
	}
}

// TestBudgetOfAJobNeedsAPrice: nothing is sent.
func TestBudgetOfAJobNeedsAPrice(t *testing.T) {
	t.Parallel()
	s := serveRows(t, func(int, string) exchange { return nil })
	p := serverJob(t, s, 3, "", "--max-cost", "1")
	stream, exit := p.output()
	if end := lastLine(t, stream); exit != 3 && exit != 21 || end.Error == nil || !strings.Contains(end.Error.Message, "price") {
		t.Errorf("exit %d: %+v", exit, end.Error)
	}
	if n := len(s.rows()); n != 0 {
		t.Errorf("%d requests", n)
	}
}
