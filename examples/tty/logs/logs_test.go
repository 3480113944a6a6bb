package main

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"drover/output"
	"drover/output/event"
)

// maxCuts is how many ends a long log is given; a short one is cut at every line.
const maxCuts = 600

// TestEveryLogIsShownToItsEndWhereverItIsCut: at every line and at two hundred
// random bytes. What was running is incomplete, and nothing is left live.
func TestEveryLogIsShownToItsEndWhereverItIsCut(t *testing.T) {
	golden, err := os.ReadFile("../../../output/event/testdata/stream.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	logs := map[string][]byte{"golden": golden}
	for name := range scenes {
		var b bytes.Buffer
		if err := write(&b, name); err != nil {
			t.Fatal(err)
		}
		logs[name] = b.Bytes()
	}
	for name, log := range logs {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rnd := rand.New(rand.NewPCG(uint64(len(log)), 1))
			lines := bytes.SplitAfter(log, []byte("\n"))
			events := decoded(t, log)
			step := 1 + len(lines)/maxCuts
			for n := 0; n <= len(events); n += step {
				show(t, events[:n], nil)
			}
			for range 200 {
				i := rnd.IntN(len(lines))
				torn := lines[i][:rnd.IntN(len(lines[i])+1)]
				show(t, events[max(0, min(i, len(events))-rnd.IntN(200)):min(i, len(events))], torn)
			}
		})
	}
}

func decoded(t *testing.T, log []byte) []event.Event {
	t.Helper()
	var out []event.Event
	for r := event.NewReader(bytes.NewReader(log)); ; {
		e, err := r.Next()
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, e)
	}
}

// show renders events and what is left of the line after them.
func show(t *testing.T, events []event.Event, torn []byte) {
	t.Helper()
	var b bytes.Buffer
	sink, _, err := output.Open("lines", &b, output.Options{Width: 80, Agents: len(torn)%2 == 1})
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range events {
		if err := sink.Emit(e); err != nil {
			t.Fatal(err)
		}
	}
	for r := event.NewReader(bytes.NewReader(torn)); len(torn) > 0; {
		e, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil {
			err = sink.Emit(e)
		}
		if err != nil && !errors.Is(err, event.ErrTorn) {
			t.Fatalf("%q: %v", torn, err)
		}
	}
	if err := sink.Close(); err != nil {
		t.Fatal(err)
	}
	for row := range strings.Lines(b.String()) {
		if strings.HasPrefix(row, "◌") || strings.HasPrefix(row, "~ ") || strings.HasPrefix(row, "▸") && !strings.Contains(row, "still running") && !strings.HasPrefix(row, "▸ job") {
			t.Fatalf("%q is left live", row)
		}
	}
}
