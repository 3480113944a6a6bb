//go:build linux

package tools

import (
	"fmt"
	"os"
	"runtime"
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

// BenchmarkExecTrueConfined is the same in the sandbox.
func BenchmarkExecTrueConfined(b *testing.B) {
	env := benchEnv(b)
	confine(b, &env)
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
func peakMB(b *testing.B) float64 { return statusKB(b, "VmHWM:") / 1024 }

func statusKB(b *testing.B, name string) float64 {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		b.Fatal(err)
	}
	var kb float64
	_, rest, _ := strings.Cut(string(status), name)
	if _, err := fmt.Sscan(rest, &kb); err != nil {
		b.Fatal(err)
	}
	return kb
}

// BenchmarkIdleSessions reports what a session costs drover that says nothing:
// resident memory, of which most is the threads that wait for processes, and
// memory of the heap with its stacks.
func BenchmarkIdleSessions(b *testing.B) {
	for _, mode := range []struct{ tty, confined bool }{{}, {tty: true}, {true, true}} {
		b.Run(fmt.Sprintf("tty=%v,confined=%v", mode.tty, mode.confined), func(b *testing.B) {
			const n = 60
			for b.Loop() {
				env := benchEnv(b)
				if mode.confined {
					confine(b, &env)
				}
				env.Commands.Sessions = NewSessions(b.Context())
				before, heapBefore := residentKB(b), heapBytes()
				var group sync.WaitGroup
				for range n {
					group.Go(func() {
						callJSON(b, b.Context(), execCommand, env, "cmd", "echo up; exec sleep 300", "tty", mode.tty, "yield_time_ms", 250)
					})
				}
				group.Wait()
				b.ReportMetric((residentKB(b)-before)*1024/n, "resident-B/session")
				b.ReportMetric((heapBytes()-heapBefore)/n, "heap-B/session")
				b.ReportMetric(residentKB(b)/1024, "resident-MB")
				env.Commands.Sessions.Close()
			}
		})
	}
}

// heapBytes is what is in use after a collection.
func heapBytes() float64 {
	runtime.GC()
	runtime.GC() // the pools are emptied by the second one
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapInuse + m.StackInuse)
}

func residentKB(b *testing.B) float64 { return statusKB(b, "VmRSS:") }
