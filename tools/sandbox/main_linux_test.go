package sandbox

import (
	"os"
	"testing"
)

// TestMain lets the test binary be its own helper.
func TestMain(m *testing.M) {
	Main()
	os.Exit(m.Run())
}
