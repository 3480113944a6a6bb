package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/creack/pty"
)

// scenario is one kind of work. Its model name tells the server what to play.
type scenario struct {
	name, model string
	// turns is how many commands are run one after another.
	turns int
	// processes run at once.
	processes int
	// first also measures the time to the first event.
	first bool
	// args are further arguments for drover.
	args []string
	// against, if set, are those of a second drover, which then stands in the
	// place of the floor.
	against []string
	// memory also measures what drover and its helpers hold at a time.
	memory bool
	// terminal is frames on a terminal, against JSON lines into a file; what
	// counts is the time of the processors.
	terminal bool
	// rows is a list job of so many rows, against one process for each; what
	// counts is the time of the processors.
	rows int
}

// off is drover without a sandbox; without it drover runs in its default one.
var off = []string{"--sandbox", "off"}

var scenarios = []scenario{
	{name: "hello", model: "hello", first: true},
	{name: "hello-off", model: "hello", first: true, args: off},
	{name: "hello-sandbox/off", model: "hello", against: off},
	{name: "turns", model: "turns-50", turns: 50},
	{name: "turns-off", model: "turns-50", turns: 50, args: off},
	{name: "turns-sandbox/off", model: "turns-50", turns: 50, against: off},
	{name: "parallel", model: "parallel-8"},
	{name: "sessions", model: "sessions-100", memory: true},
	{name: "sessions-off", model: "sessions-100", args: off, memory: true},
	{name: "chunks", model: "chunks-20000"},
	{name: "output", model: "output-50000000"},
	{name: "hello-frames/file", model: "hello", terminal: true, first: true},
	{name: "turns-frames/file", model: "turns-50", terminal: true},
	{name: "chunks-frames/file", model: "chunks-20000", terminal: true},
	{name: "output-frames/file", model: "output-50000000", terminal: true},
	{name: "processes", model: "turns-5", processes: 20},
	{name: "job/processes", rows: 200},
}

type bench struct {
	binary, temp, url, api string
	runs                   int
	config, work           string
}

// setUp writes the config that names the loopback server.
func (b *bench) setUp() error {
	base := b.url
	if b.api != "messages" {
		base += "/v1"
	}
	b.work = filepath.Join(b.temp, "work")
	if err := os.Mkdir(b.work, 0o700); err != nil {
		return err
	}
	b.config = filepath.Join(b.temp, "config")
	if err := os.MkdirAll(filepath.Join(b.config, "drover"), 0o700); err != nil {
		return err
	}
	text := fmt.Sprintf("providers:\n  bench: {api: %s, base_url: %q}\n", b.api, base)
	return os.WriteFile(filepath.Join(b.config, "drover", "config.yaml"), []byte(text), 0o600)
}

// sample is what one scenario cost, over all runs.
type sample struct {
	wall, first, cpu []time.Duration
	// peak is the most memory of one process, own and helpers the most that
	// drover and all its helpers took at a time, shared pages by their share.
	peak, own, helpers []int64
}

func (s sample) wallMS() float64  { return ms(median(s.wall)) }
func (s sample) firstMS() float64 { return ms(median(s.first)) }
func (s sample) peakMB() float64  { return megabytes(s.peak) }

func megabytes(v []int64) float64 { return float64(median(v)) / 1e6 }

func (s *sample) add(t sample) {
	s.wall = append(s.wall, t.wall...)
	s.first = append(s.first, t.first...)
	s.cpu = append(s.cpu, t.cpu...)
	s.peak = append(s.peak, t.peak...)
	s.own = append(s.own, t.own...)
	s.helpers = append(s.helpers, t.helpers...)
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

func median[T int64 | time.Duration](v []T) T {
	if len(v) == 0 {
		return 0
	}
	v = slices.Clone(v)
	slices.Sort(v)
	return v[len(v)/2]
}

// measure runs pairs: floor, drover, floor, drover.
func (b *bench) measure(s scenario) (floor, drover sample, err error) {
	self, err := os.Executable()
	if err != nil {
		return floor, drover, err
	}
	left := []string{self, "floor", "--url", b.url, "--model", s.model}
	if s.against != nil {
		left = b.argv(s.model, s.against)
	}
	right := b.argv(s.model, s.args)
	if s.terminal {
		left, right = b.argv(s.model, nil), b.argv(s.model, []string{"--format", "frames"})
	}
	if s.rows > 0 {
		if left, right, err = b.job(s.rows); err != nil {
			return floor, drover, err
		}
	}
	for i := range b.runs + 1 {
		for _, side := range []struct {
			into *sample
			argv []string
		}{{&floor, left}, {&drover, right}} {
			one, err := b.runSide(side.argv, s)
			if err != nil {
				return floor, drover, err
			}
			if i > 0 { // the first pair warms up
				side.into.add(one)
			}
		}
	}
	return floor, drover, nil
}

// argv is the command line of a drover.
func (b *bench) argv(model string, args []string) []string {
	return append([]string{b.binary, "run", "go", "--model", "bench/" + model, "--yolo", "--format", "jsonl"}, args...)
}

// job lays out a table, and returns the command lines that work on its rows: one
// process for each, sixteen at once, and a list job.
func (b *bench) job(rows int) (processes, job []string, err error) {
	var table strings.Builder
	table.WriteString("id\n")
	for i := range rows {
		fmt.Fprintf(&table, "%d\n", i)
	}
	report := `{"tool_calls":[{"name":"report_agent_job_result","args":{"job_id":"${job_id}","item_id":"${item_id}","result":{"ok":true}}}]}`
	for name, text := range map[string]string{"rows.csv": table.String(), "row.jsonl": report + "\n", "one.jsonl": `{"text":"Done."}` + "\n"} {
		if err := os.WriteFile(filepath.Join(b.temp, name), []byte(text), 0o600); err != nil {
			return nil, nil, err
		}
	}
	at := func(name string) string { return filepath.Join(b.temp, name) }
	processes = []string{"sh", "-c", fmt.Sprintf(`seq %d | xargs -P 16 -I{} "$0" run 'row {}' --model "script:$1" --format jsonl`, rows), b.binary, at("one.jsonl")}
	job = []string{b.binary, "jobs", "run", at("rows.csv"), "--restart", "--instruction", "row {id}", "-o", at("out.csv"), "--model", "script:" + at("row.jsonl"), "--format", "jsonl"}
	return processes, job, nil
}

// runSide runs the processes of a scenario at once; the wall time is that of
// all of them, the peak the largest.
func (b *bench) runSide(argv []string, s scenario) (sample, error) {
	var mu sync.Mutex
	var total sample
	var failed error
	var group sync.WaitGroup
	began := time.Now()
	for range max(1, s.processes) {
		group.Go(func() {
			one, err := b.runOne(argv, s)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				failed = err
			}
			total.add(one)
		})
	}
	group.Wait()
	total.wall = []time.Duration{time.Since(began)}
	if len(total.peak) > 0 {
		total.peak = []int64{slices.Max(total.peak)}
	}
	return total, failed
}

// runOne runs a process to its end and reads its output through a pipe.
func (b *bench) runOne(argv []string, s scenario) (one sample, err error) {
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Dir = b.work
	cmd.Env = append(os.Environ(), "XDG_CONFIG_HOME="+b.config, "XDG_STATE_HOME="+filepath.Join(b.temp, "state"))
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, release, err := b.stdout(cmd, s.terminal)
	if err != nil {
		return one, err
	}
	defer release()
	began := time.Now()
	if err := cmd.Start(); err != nil {
		return one, err
	}
	release()
	held := func() memory { return memory{} }
	if s.memory {
		held = watchMemory(cmd.Process.Pid)
	}
	r := bufio.NewReaderSize(out, 1<<16)
	_, readErr := r.Peek(1)
	one.first = []time.Duration{time.Since(began)}
	if readErr == nil {
		_, _ = io.Copy(io.Discard, r) // a broken pipe shows in Wait
	}
	most := held()
	if err := cmd.Wait(); err != nil {
		return one, fmt.Errorf("%s: %w: %s", filepath.Base(argv[0]), err, stderr.String())
	}
	if usage, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
		one.peak = []int64{usage.Maxrss * 1024}
		one.cpu = []time.Duration{cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()}
	}
	if most.peak > 0 {
		// Unlike the other one, this peak does not begin with that of bench.
		one.peak = []int64{most.peak}
	}
	one.own, one.helpers = []int64{most.own}, []int64{most.helpers}
	return one, nil
}

// stdout gives a process its standard output, and returns where to read it: a
// pipe, or for frames a terminal. With terminal, JSON lines go into a file, of
// which nothing is read. release closes what is the process's own.
func (b *bench) stdout(cmd *exec.Cmd, terminal bool) (r io.Reader, release func(), err error) {
	frames := slices.Contains(cmd.Args, "frames")
	switch {
	case frames:
		master, tty, err := pty.Open()
		if err != nil {
			return nil, nil, err
		}
		if err := pty.Setsize(tty, &pty.Winsize{Cols: 80, Rows: 24}); err != nil {
			return nil, nil, err
		}
		cmd.Stdout = tty
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true, Ctty: 1}
		return master, sync.OnceFunc(func() { _ = tty.Close() }), nil
	case terminal:
		file, err := os.Create(filepath.Join(b.temp, "stream.jsonl"))
		if err != nil {
			return nil, nil, err
		}
		cmd.Stdout = file
		return strings.NewReader(""), sync.OnceFunc(func() { _ = file.Close() }), nil
	}
	out, err := cmd.StdoutPipe()
	return out, func() {}, err
}
