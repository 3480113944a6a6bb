//go:build linux

package processes

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"drover/output/event"
)

// maxGrowth is how much more memory, in KiB, a drover may take for a command
// that prints without end than for one that prints nothing.
const maxGrowth = 24 << 10

// peak runs a trial to its end and returns the most memory that drover has
// taken, in KiB.
func (d *trial) peak(t *testing.T, want int) (kib int64, stream []byte) {
	t.Helper()
	d.start()
	watched := make(chan struct{})
	go func() { // it ends with the stream, and is awaited below
		defer close(watched)
		for {
			// Unlike the peak that wait reports, this one begins at the exec.
			kib = max(kib, status(d.cmd.Process.Pid, "VmHWM"))
			select {
			case <-d.read:
				return
			case <-time.After(5 * time.Millisecond):
			}
		}
	}()
	stream = d.endWithin(2*patience, want)
	<-watched
	return kib, stream
}

// TestFloodsStayOutOfMemory (github.com/anthropics/claude-code/issues/11155).
func TestFloodsStayOutOfMemory(t *testing.T) {
	const size = 100_000_000
	for name, c := range map[string]struct {
		script string
		args   []string
		least  int64
	}{
		"100 MB without a newline": {fmt.Sprintf("printf head; head -c %d /dev/zero | tr '\\0' x; printf tail", size), nil, size + 8},
		"flood until the timeout":  {"echo head; yes MARK", []string{"--tool-timeout", toolTimeout.String()}, 128 << 10}, // as much as a busy machine manages
	} {
		t.Run(name, func(t *testing.T) {
			both(t, func(t *testing.T, in mode) {
				idle, _ := newTrial(t, in, []m{calls(command("true")), says("Done.")}).peak(t, 0)
				d := newTrial(t, in, []m{calls(m{"name": "exec_command", "args": m{"cmd": c.script, "yield_time_ms": 30_000}}), says("Done.")}, c.args...)
				kib, stream := d.peak(t, 0)
				if kib-idle > maxGrowth {
					t.Errorf("the peak is %d KiB, %d more than without output", kib, kib-idle)
				}
				t.Logf("peak %d KiB, idle %d KiB", kib, idle)
				r := results(t, stream, 1)[0]
				if r.OutputBytes < c.least || !r.Truncated || len(r.Content) > event.MaxLine || !strings.Contains(r.Content, "head") {
					t.Errorf("%d bytes, truncated %v, the model reads %d: %.300s", r.OutputBytes, r.Truncated, len(r.Content), r.Content)
				}
				end := terminals(t, stream)[r.ToolCallID]
				if end.OutputBytes != r.OutputBytes {
					t.Errorf("the terminal has printed %d bytes, the result says %d", end.OutputBytes, r.OutputBytes)
				}
				d.wholeText(t, stream, end)
			})
		})
	}
}

// maxArtifact is how much of an output its file holds at most.
const maxArtifact = 256 << 20

// plenty is more than the stream carries of any command in a second or two.
const plenty = 8 << 20

// wholeText checks the file that has what the stream leaves out.
func (d *trial) wholeText(t *testing.T, stream []byte, end event.TerminalCompletedEvent) {
	t.Helper()
	var dropped int64
	for _, e := range bodies[event.TerminalAppendStringEvent](t, stream) {
		dropped += e.DroppedBytes
	}
	if end.OutputBytes > plenty && dropped == 0 {
		t.Error("the stream does not tell that output is left out")
	}
	a, size := end.Artifact, end.OutputBytes
	if a == nil {
		t.Fatal("the whole output is nowhere")
	}
	path := a.Path
	if !filepath.IsAbs(path) {
		files, err := filepath.Glob(filepath.Join(d.base, "state", "drover", "sessions", "*", path))
		if err != nil || len(files) != 1 {
			t.Fatalf("the artifact %q: %v, %v", path, files, err)
		}
		path = files[0]
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }() // only read from
	info, err := f.Stat()
	// A fast machine floods more than a file may hold.
	if err != nil || info.Size() != a.Bytes || a.Bytes != min(size, maxArtifact) {
		t.Errorf("the artifact has %d bytes, it is said to have %d, the command has printed %d; %v", info.Size(), a.Bytes, size, err)
	}
	if info.Mode().Perm()&0o077 != 0 {
		t.Errorf("the artifact has mode %v", info.Mode())
	}
	begin := make([]byte, 4)
	if _, err := io.ReadFull(f, begin); err != nil || !bytes.Equal(begin, []byte("head")) {
		t.Errorf("the artifact begins with %q, %v", begin, err)
	}
}
