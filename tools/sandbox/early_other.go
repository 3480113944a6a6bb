//go:build !linux

package sandbox

// waiting does not exist here: commands need no helper.
type waiting struct{}

func startWaiting() *waiting { return nil }

func (*waiting) end() {}
