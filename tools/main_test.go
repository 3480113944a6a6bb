package tools

import (
	"os"
	"testing"

	"drover/tools/sandbox"
)

// TestMain lets the test binary be the helper that starts commands.
func TestMain(m *testing.M) {
	sandbox.Main()
	os.Exit(m.Run())
}
