//go:build !linux

package sandbox

import "time"

// Main is the helper of Linux. It returns at once: there is none here.
func Main() {}

// openDirect bounds nothing: commands are started by drover itself.
func openDirect() *box {
	return &box{
		info:    Info{Mode: Off, Level: LevelNone, Network: true},
		environ: []string{"DROVER_SANDBOX_LEVEL=" + string(LevelNone)},
		close:   func(time.Duration) int { return 0 },
	}
}
