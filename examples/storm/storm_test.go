// Package storm kills list jobs at random moments, again and again, and counts
// whether every row is there exactly once at the end.
//
// A small storm over the embedded database is part of every test run.
// DROVER_STORM=1 makes it 2,000 rows and 30 kills, and DROVER_POSTGRES, a
// postgres:// URL, adds one with three workers on that database.
package storm

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"drover/cmd"
	"drover/tools/sandbox"
)

func TestMain(m *testing.M) {
	sandbox.Main() // returns, unless this process is the helper of a run
	if os.Getenv("STORM_IS_DROVER") != "" {
		os.Exit(cmd.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
	}
	os.Exit(m.Run())
}

// storm is one job that is killed again and again.
type storm struct {
	*testing.T
	dir, engine string
	rows        int
	random      *rand.Rand
	// settled is how often the ledger had each row when its result was on disk.
	settled map[string]int
	// streams are the files with what the coordinators printed.
	streams []string
}

// script writes each row into the ledger and reports it. The ledger is how a
// row's side effects are counted; a line of it is one write.
const script = `{"tool_calls":[{"name":"exec_command","args":{"cmd":"echo ${item_id} >> ledger","yield_time_ms":10000}}]}
{"delay_ms":%d,"tool_calls":[{"name":"report_agent_job_result","args":{"job_id":"${job_id}","item_id":"${item_id}","result":{"got":"${row.word}"}}}]}
`

func newStorm(t *testing.T, rows, delay int, engine string) *storm {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	s := &storm{T: t, dir: t.TempDir(), engine: engine, rows: rows, random: rand.New(rand.NewPCG(seed, 1)), settled: map[string]int{}}
	var b strings.Builder
	b.WriteString("id,word\n")
	for i := range rows {
		fmt.Fprintf(&b, "item-%d,\"word, number %d\"\n", i, i)
	}
	s.put("rows.csv", b.String())
	s.put("model.jsonl", fmt.Sprintf(script, delay))
	return s
}

func (s *storm) put(name, text string) {
	s.Helper()
	if err := os.WriteFile(filepath.Join(s.dir, name), []byte(text), 0o644); err != nil {
		s.Fatal(err)
	}
}

// drover starts drover with its streams in files.
func (s *storm) drover(stdout string, args ...string) *exec.Cmd {
	s.Helper()
	c := exec.Command(os.Args[0], args...)
	c.Dir = s.dir
	c.Env = append(os.Environ(), "STORM_IS_DROVER=1", "HOME="+s.dir, "XDG_STATE_HOME="+filepath.Join(s.dir, "state"))
	out, err := os.Create(filepath.Join(s.dir, stdout))
	if err != nil {
		s.Fatal(err)
	}
	defer out.Close()
	errs, err := os.OpenFile(filepath.Join(s.dir, "stderr"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		s.Fatal(err)
	}
	defer errs.Close()
	c.Stdout, c.Stderr = out, errs
	if err := c.Start(); err != nil {
		s.Fatal(err)
	}
	return c
}

// coordinator starts or continues the job.
func (s *storm) coordinator(output string) *exec.Cmd {
	name := fmt.Sprintf("stream-%d", len(s.streams))
	s.streams = append(s.streams, name)
	args := []string{"jobs", "run", "rows.csv", "--id-column", "id", "--instruction", "Say {word}", "-o", output,
		"-m", "script:model.jsonl", "--yolo", "--sandbox", "off", "--format", "jsonl"}
	if s.engine != "" {
		args = append(args, "--engine", s.engine, "--name", s.dir)
	}
	return s.drover(name, args...)
}

func (s *storm) worker(n int) *exec.Cmd {
	return s.drover(fmt.Sprintf("worker-%d-%d", n, s.random.Int64()), "jobs", "worker", "--engine", s.engine, "--yolo", "--sandbox", "off", "--format", "jsonl")
}

// look reads which results are on disk, and how often the ledger has their rows.
func (s *storm) look() {
	ledger := s.ledger()
	for _, id := range s.reported() {
		if _, known := s.settled[id]; !known {
			s.settled[id] = ledger[id]
		}
	}
}

// reported are the rows of the JSON lines, without a line that a kill has torn.
func (s *storm) reported() []string {
	data, err := os.ReadFile(filepath.Join(s.dir, "out.jsonl"))
	if err != nil {
		return nil
	}
	var out []string
	for line := range bytes.Lines(data) {
		var r struct {
			ItemID string `json:"item_id"`
			Status string `json:"status"`
		}
		if bytes.HasSuffix(line, []byte("\n")) && json.Unmarshal(line, &r) == nil && r.Status == "completed" {
			out = append(out, r.ItemID)
		}
	}
	return out
}

func (s *storm) ledger() map[string]int {
	data, err := os.ReadFile(filepath.Join(s.dir, "ledger"))
	if err != nil {
		return map[string]int{}
	}
	out := map[string]int{}
	for _, id := range strings.Fields(string(data)) {
		out[id]++
	}
	return out
}

// results are the columns of a result that do not depend on time.
func (s *storm) results(file string) [][]string {
	s.Helper()
	f, err := os.Open(filepath.Join(s.dir, file))
	if err != nil {
		s.Fatal(err)
	}
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil {
		s.Fatal(err)
	}
	keep := []string{"id", "word", "item_id", "row_index", "source_id", "status", "last_error", "result_json"}
	var out [][]string
	for _, row := range rows {
		var cells []string
		for i, name := range rows[0] {
			if slices.Contains(keep, name) {
				cells = append(cells, row[i])
			}
		}
		out = append(out, cells)
	}
	return out
}

// verify checks the end of the storm.
func (s *storm) verify() {
	s.Helper()
	s.look()
	ledger := s.ledger()
	for i := range s.rows {
		id := fmt.Sprintf("item-%d", i)
		if ledger[id] < 1 {
			s.Errorf("%s was never worked on", id)
		}
		if at, ok := s.settled[id]; !ok {
			s.Errorf("%s has no result", id)
		} else if at != ledger[id] {
			s.Errorf("%s was finished and run again: the ledger has it %d times, it had it %d times", id, ledger[id], at)
		}
	}
	if got := s.reported(); len(got) != s.rows {
		s.Errorf("%d lines of JSON for %d rows", len(got), s.rows)
	}
	for id, n := range s.finishes() {
		if n > 1 {
			s.Errorf("%s is told to be completed %d times", id, n)
		}
	}
	quiet := newStorm(s.T, s.rows, 0, "")
	if err := quiet.coordinator("out.csv").Wait(); err != nil {
		s.Fatalf("the undisturbed run: %v", err)
	}
	if d := cmp.Diff(quiet.results("out.csv"), s.results("out.csv")); d != "" {
		s.Errorf("result (-undisturbed +storm):\n%s", d)
	}
}

// finishes counts how often the streams tell that a row is completed.
func (s *storm) finishes() map[string]int {
	out := map[string]int{}
	for _, name := range s.streams {
		f, err := os.Open(filepath.Join(s.dir, name))
		if err != nil {
			s.Fatal(err)
		}
		lines := bufio.NewReader(f)
		for {
			line, err := lines.ReadBytes('\n')
			if err != nil {
				break
			}
			if !bytes.Contains(line, []byte(`"job.item.finished"`)) {
				continue
			}
			var e struct {
				ItemID    string `json:"item_id"`
				Status    string `json:"status"`
				WillRetry bool   `json:"will_retry"`
			}
			if json.Unmarshal(line, &e) == nil && e.Status == "completed" && !e.WillRetry {
				out[e.ItemID]++
			}
		}
		_ = f.Close() // it was only read
	}
	return out
}

func (s *storm) stderr() string {
	data, _ := os.ReadFile(filepath.Join(s.dir, "stderr")) // for a message
	return string(data)
}

// between is a random time.
func (s *storm) between(low, high time.Duration) time.Duration {
	return low + time.Duration(s.random.Int64N(int64(high-low)))
}

func full() bool { return os.Getenv("DROVER_STORM") != "" }

func TestEmbeddedJobIsKilledAndResumedAgainAndAgain(t *testing.T) {
	rows, kills, delay, shortest, longest := 200, 6, 450, 100*time.Millisecond, 700*time.Millisecond
	if full() {
		rows, kills, delay, shortest, longest = 2000, 30, 350, 300*time.Millisecond, 1800*time.Millisecond
	}
	s := newStorm(t, rows, delay, "")
	for n := range kills {
		c := s.coordinator("out.csv")
		ended := make(chan error, 1)
		go func() { ended <- c.Wait() }()
		select {
		case err := <-ended:
			if err != nil {
				t.Fatalf("run %d failed: %v\n%s", n, err, s.stderr())
			}
			t.Fatalf("the job was done after %d kills: the rows must take longer", n)
		case <-time.After(s.between(shortest, longest)):
		}
		_ = c.Process.Kill() // it may have ended
		<-ended
		s.look()
	}
	t.Logf("%d of %d rows are finished after %d kills", len(s.settled), rows, kills)
	if err := s.coordinator("out.csv").Wait(); err != nil {
		t.Fatalf("the last run: %v\n%s", err, s.stderr())
	}
	s.verify()
}

func TestWorkersOfASharedJobAreKilledAtRandom(t *testing.T) {
	engine := os.Getenv("DROVER_POSTGRES")
	if engine == "" {
		t.Skip("DROVER_POSTGRES is not set: there is no PostgreSQL server to work with; the embedded storm has the same engine")
	}
	rows, kills, delay := 300, 8, 60
	if full() {
		rows, kills, delay = 2000, 30, 150
	}
	s := newStorm(t, rows, delay, engine)
	crew := map[int]*exec.Cmd{0: s.coordinator("out.csv")}
	for n := 1; n <= 3; n++ {
		crew[n] = s.worker(n)
	}
	for range kills {
		time.Sleep(s.between(200*time.Millisecond, 1200*time.Millisecond))
		victim := s.random.IntN(len(crew))
		_ = crew[victim].Process.Kill() // it may have ended
		_ = crew[victim].Wait()         // it was killed
		s.look()
		if victim == 0 {
			crew[0] = s.coordinator("out.csv")
		} else {
			crew[victim] = s.worker(victim)
		}
	}
	t.Logf("%d of %d rows are finished after %d kills", len(s.settled), rows, kills)
	if err := crew[0].Wait(); err != nil {
		t.Errorf("the coordinator: %v\n%s", err, s.stderr())
	}
	for _, n := range slices.Sorted(maps.Keys(crew)) {
		if n > 0 {
			_ = crew[n].Process.Signal(os.Interrupt) // it may have ended
			_ = crew[n].Wait()
		}
	}
	s.verify()
}

// TestDatabaseThatIsAwayForTwentySecondsCostsNoRow stops the server in mid-job,
// as a machine that fails does, and starts it again. DROVER_POSTGRES_CONTROL
// names the folder of the server for examples/jobs-postgres/postgres.sh.
func TestDatabaseThatIsAwayForTwentySecondsCostsNoRow(t *testing.T) {
	engine, folder := os.Getenv("DROVER_POSTGRES"), os.Getenv("DROVER_POSTGRES_CONTROL")
	if engine == "" || folder == "" {
		t.Skip("DROVER_POSTGRES and DROVER_POSTGRES_CONTROL are not set: there is no PostgreSQL server to stop")
	}
	address, err := url.Parse(engine)
	if err != nil {
		t.Fatal(err)
	}
	control := func(action string) {
		t.Helper()
		out, err := exec.Command("../jobs-postgres/postgres.sh", action, folder, address.Port()).CombinedOutput()
		if err != nil {
			t.Fatalf("%s the server: %v\n%s", action, err, out)
		}
	}
	s := newStorm(t, 400, 300, engine)
	coordinator, worker := s.coordinator("out.csv"), s.worker(1)
	time.Sleep(3 * time.Second)
	control("stop")
	time.Sleep(20 * time.Second)
	if n := len(s.reported()); n == 0 || n == s.rows {
		t.Errorf("%d of %d rows are reported while the server is away: the job is not in its middle", n, s.rows)
	}
	control("start")
	if err := coordinator.Wait(); err != nil {
		t.Errorf("the coordinator: %v\n%s", err, s.stderr())
	}
	_ = worker.Process.Signal(os.Interrupt) // it may have ended
	_ = worker.Wait()
	s.verify()
}
