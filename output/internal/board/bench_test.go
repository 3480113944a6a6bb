package board

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"drover/output/event"
)

// BenchmarkTakeText is one line that grows and grows.
func BenchmarkTakeText(b *testing.B) {
	board := New(Show{})
	e := at(1, event.MessageDeltaEvent{MessageID: "m", Delta: "a chunk of text, as models send it "})
	for b.Loop() {
		board.Take(e)
		board.Ready()
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "events/s")
}

func BenchmarkTakeOutput(b *testing.B) {
	board := New(Show{})
	board.Take(at(0, call))
	e := at(1, event.TerminalAppendStringEvent{ToolCallID: "c", TerminalID: "t", Delta: strings.Repeat("x", 98) + "\r\n"})
	for b.Loop() {
		board.Take(e)
		board.Ready()
		board.Minutes(e.Time)
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "events/s")
}

// BenchmarkIntake is what a loud command costs: 200,000 pieces of 100 bytes, and
// nobody looks.
func BenchmarkIntake(b *testing.B) {
	e := at(1, event.TerminalAppendStringEvent{ToolCallID: "c", TerminalID: "t", Delta: strings.Repeat("x", 98) + "\r\n"})
	for b.Loop() {
		board := New(Show{})
		board.Take(at(0, call))
		for range 200_000 {
			board.Take(e)
		}
	}
}

// BenchmarkRegion lays out 40 items; with thousands behind one that runs long it
// must not take longer.
func BenchmarkRegion(b *testing.B) {
	for _, n := range []int{40, 4000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			board := crowd(n, rand.New(rand.NewPCG(1, 1)))
			p := Painter{Style: NewStyle(true, false), Columns: 120}
			for b.Loop() {
				p.Region(board, start.Add(time.Minute), 50)
			}
		})
	}
}

// BenchmarkRegionText is one line of a megabyte without an end.
func BenchmarkRegionText(b *testing.B) {
	board := New(Show{})
	board.Take(at(1, event.MessageDeltaEvent{MessageID: "m", Delta: strings.Repeat("words ", 1<<20/6)}))
	p := Painter{Style: NewStyle(true, false), Columns: 120}
	for b.Loop() {
		p.Region(board, start.Add(time.Minute), 50)
	}
}
