package sandbox

import (
	"os"
	"testing"
)

// TestMain lets the test binary be its own helper, and the program that probes
// the sandbox from inside.
func TestMain(m *testing.M) {
	Main()
	if len(os.Args) > 1 && os.Args[1] == "probe" {
		os.Exit(probe(os.Args[2:]))
	}
	if len(os.Args) == 3 && os.Args[1] == "probe-memory" {
		os.Exit(attachMemory(os.Args[2]))
	}
	os.Exit(m.Run())
}
