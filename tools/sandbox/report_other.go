//go:build !linux

package sandbox

import (
	"context"
	"runtime"
)

// Probe tries what this system offers.
func Probe(context.Context) Report {
	r := Report{OS: runtime.GOOS, Arch: runtime.GOARCH, Level: LevelNone}
	if runtime.GOOS == "darwin" && exists(sandboxExec) {
		r.Seatbelt, r.Level = true, LevelSeatbelt
		return r
	}
	r.Hints = []string{"there is no sandbox for this system: commands run with --sandbox off alone"}
	return r
}
