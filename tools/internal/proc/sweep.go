//go:build unix

package proc

import (
	"context"
	"fmt"
	"time"
)

// Sweep ends every process that carries the run id in its environment, whatever
// session it moved to: TERM, grace (0 means DefaultGrace), KILL. The end of ctx
// skips the grace. It returns how many were ended, and an error when some did
// not go. It does not touch drover itself.
func Sweep(ctx context.Context, runID string, grace time.Duration) (int, error) {
	return SweepVar(ctx, RunIDVar, runID, grace)
}

// SweepVar is Sweep for the processes that carry NAME=value in their environment.
func SweepVar(ctx context.Context, name, value string, grace time.Duration) (int, error) {
	if value == "" {
		return 0, nil
	}
	if grace <= 0 {
		grace = DefaultGrace
	}
	e := end(ctx, marked{[]byte(name + "=" + value + "\x00")}, grace)
	if e.survivors > 0 {
		return e.ended, fmt.Errorf("end processes of %s=%s: %d are still there", name, value, e.survivors)
	}
	return e.ended, nil
}
