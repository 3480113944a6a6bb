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
	"sync"
	"syscall"
	"time"
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
}

var scenarios = []scenario{
	{name: "hello", model: "hello", first: true},
	{name: "turns", model: "turns-50", turns: 50},
	{name: "parallel", model: "parallel-8"},
	{name: "chunks", model: "chunks-20000"},
	{name: "output", model: "output-50000000"},
	{name: "processes", model: "turns-5", processes: 20},
}

type bench struct {
	binary, temp, url, api string
	runs                   int
	config                 string
}

// setUp writes the config that names the loopback server.
func (b *bench) setUp() error {
	base := b.url
	if b.api != "messages" {
		base += "/v1"
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
	wall, first []time.Duration
	peak        []int64
}

func (s sample) wallMS() float64  { return ms(median(s.wall)) }
func (s sample) firstMS() float64 { return ms(median(s.first)) }
func (s sample) peakMB() float64  { return float64(median(s.peak)) / 1e6 }

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
	for i := range b.runs + 1 {
		for _, side := range []struct {
			into *sample
			argv []string
		}{
			{&floor, []string{self, "floor", "--url", b.url, "--model", s.model}},
			{&drover, []string{b.binary, "run", "go", "--model", "bench/" + s.model, "--yolo", "--format", "jsonl"}},
		} {
			one, err := b.runSide(side.argv, max(1, s.processes))
			if err != nil {
				return floor, drover, err
			}
			if i == 0 {
				continue // the warm-up pair
			}
			side.into.wall = append(side.into.wall, one.wall...)
			side.into.first = append(side.into.first, one.first...)
			side.into.peak = append(side.into.peak, one.peak...)
		}
	}
	return floor, drover, nil
}

// runSide runs n processes at once; the wall time is that of all of them, the
// peak the largest.
func (b *bench) runSide(argv []string, n int) (sample, error) {
	var mu sync.Mutex
	var total sample
	var failed error
	var group sync.WaitGroup
	began := time.Now()
	for range n {
		group.Go(func() {
			first, peak, err := b.runOne(argv)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				failed = err
			}
			total.first = append(total.first, first)
			total.peak = append(total.peak, peak)
		})
	}
	group.Wait()
	total.wall = []time.Duration{time.Since(began)}
	total.peak = []int64{slices.Max(total.peak)}
	return total, failed
}

// runOne runs a process to its end and reads its output through a pipe.
func (b *bench) runOne(argv []string) (first time.Duration, peak int64, err error) {
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Dir = b.temp
	cmd.Env = append(os.Environ(), "XDG_CONFIG_HOME="+b.config, "XDG_STATE_HOME="+filepath.Join(b.temp, "state"))
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return 0, 0, err
	}
	began := time.Now()
	if err := cmd.Start(); err != nil {
		return 0, 0, err
	}
	r := bufio.NewReaderSize(out, 1<<16)
	_, readErr := r.Peek(1)
	first = time.Since(began)
	if readErr == nil {
		_, _ = io.Copy(io.Discard, r) // a broken pipe shows in Wait
	}
	if err := cmd.Wait(); err != nil {
		return 0, 0, fmt.Errorf("%s: %w: %s", filepath.Base(argv[0]), err, stderr.String())
	}
	usage, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage)
	if ok {
		peak = usage.Maxrss * 1024
	}
	return first, peak, nil
}
