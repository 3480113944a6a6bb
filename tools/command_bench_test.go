//go:build linux

package tools

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"

	"drover/output/event"
)

func benchEnv(b *testing.B) Env {
	env, _ := commandEnv(b)
	env.Emit = func(event.Body) {}
	return env
}

func BenchmarkExecTrue(b *testing.B) {
	env := benchEnv(b)
	b.ReportAllocs()
	for b.Loop() {
		if res := callJSON(b, b.Context(), execCommand, env, "cmd", "true"); res.IsError {
			b.Fatal(res.Text)
		}
	}
}

// BenchmarkExec50MB reports also the highest resident size of the process, and
// what of it came with the benchmark.
func BenchmarkExec50MB(b *testing.B) {
	env := benchEnv(b)
	before := peakMB(b)
	b.SetBytes(50 << 20)
	b.ReportAllocs()
	for b.Loop() {
		res := callJSON(b, b.Context(), execCommand, env, "cmd", "head -c 52428800 /dev/zero | tr '\\0' x")
		if res.OutputBytes != 50<<20 {
			b.Fatal(res.OutputBytes)
		}
	}
	after := peakMB(b)
	b.ReportMetric(after, "peak-MB")
	b.ReportMetric(after-before, "grown-MB")
}

func BenchmarkEightSleepsOfOneSecond(b *testing.B) {
	env := benchEnv(b)
	for b.Loop() {
		var group sync.WaitGroup
		for range 8 {
			group.Go(func() { callJSON(b, b.Context(), execCommand, env, "cmd", "sleep 1") })
		}
		group.Wait()
	}
}

// peakMB is the highest resident size so far.
func peakMB(b *testing.B) float64 {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		b.Fatal(err)
	}
	var kb float64
	_, rest, _ := strings.Cut(string(status), "VmHWM:")
	if _, err := fmt.Sscan(rest, &kb); err != nil {
		b.Fatal(err)
	}
	return kb / 1024
}
