package cmd

import (
	"bufio"
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"
)

// initLine is a line of GODEBUG=inittrace=1.
var initLine = regexp.MustCompile(`^init (\S+) @\S+ ms, (\S+) ms clock`)

// TestNoPackageTakesLongToStart measures what the packages do before main. The
// best of several runs counts, because a busy machine only ever adds.
func TestNoPackageTakesLongToStart(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector makes package initialisation several times slower")
	}
	binary := filepath.Join(t.TempDir(), "drover")
	if out, err := exec.Command("go", "build", "-o", binary, "./drover").CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	best := map[string]float64{}
	for range 7 {
		cmd := exec.Command(binary, "version")
		cmd.Env = append(os.Environ(), "GODEBUG=inittrace=1")
		var trace bytes.Buffer
		cmd.Stderr = &trace
		if err := cmd.Run(); err != nil {
			t.Fatal(err)
		}
		for lines := bufio.NewScanner(&trace); lines.Scan(); {
			m := initLine.FindStringSubmatch(lines.Text())
			if m == nil {
				continue
			}
			ms, err := strconv.ParseFloat(m[2], 64)
			if err != nil {
				t.Fatal(err)
			}
			if old, ok := best[m[1]]; !ok || ms < old {
				best[m[1]] = ms
			}
		}
	}
	if len(best) == 0 {
		t.Fatal("the trace names no package")
	}
	sum := 0.0
	for pkg, ms := range best {
		sum += ms
		if ms > 2 {
			t.Errorf("package %s takes %.2f ms before main", pkg, ms)
		}
	}
	if sum > 10 {
		t.Errorf("all packages take %.2f ms before main", sum)
	}
}
