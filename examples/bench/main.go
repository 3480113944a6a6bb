// Command bench measures whole drover processes against a model server on the
// loopback interface.
//
// Every scenario is run with drover and with a floor: a minimal client that
// does the same HTTP and the same commands with no agent around it. Runs are
// paired and alternate, and the medians are printed with their ratio, so that
// a busy machine disturbs both alike. Nothing here judges: a number is for a
// person to read. In a scenario whose name ends in sandbox/off the place of the
// floor is taken by a drover without a sandbox.
//
//	go run ./examples/bench                 # all scenarios, 5 pairs each
//	go run ./examples/bench --runs 1 --only hello,turns
//	go run ./examples/bench --api messages --drover ./drover
package main

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"text/tabwriter"
)

func main() {
	if len(os.Args) > 1 && os.Args[1] == "floor" {
		os.Exit(floorMain(os.Args[2:]))
	}
	if err := benchMain(); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func benchMain() error {
	runs := flag.Int("runs", 5, "pairs of runs per scenario, after one warm-up pair")
	only := flag.String("only", "", "scenarios to run, by name, separated by commas")
	api := flag.String("api", "chat", "API that the loopback server is asked with: responses, chat or messages")
	binary := flag.String("drover", "", "drover binary (default: built from this module)")
	flag.Parse()

	temp, err := os.MkdirTemp("", "drover-bench")
	if err != nil {
		return err
	}
	defer os.RemoveAll(temp)
	if *binary == "" {
		*binary = filepath.Join(temp, "drover")
		build := exec.Command("go", "build", "-o", *binary, "./cmd/drover")
		build.Stderr = os.Stderr
		if err := build.Run(); err != nil {
			return fmt.Errorf("build drover: %w", err)
		}
	}
	if *binary, err = filepath.Abs(*binary); err != nil {
		return err
	}
	server, err := startServer()
	if err != nil {
		return err
	}
	defer server.Close()
	b := &bench{binary: *binary, temp: temp, url: server.URL, api: *api, runs: *runs}
	if err := b.setUp(); err != nil {
		return err
	}
	return b.report(strings.Split(*only, ","))
}

// report runs the scenarios and prints one row each.
func (b *bench) report(only []string) error {
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "scenario\tfloor\tdrover\tratio\tfloor peak\tdrover peak\t")
	for _, s := range scenarios {
		if only[0] != "" && !contains(only, s.name) {
			continue
		}
		floor, drover, err := b.measure(s)
		if err != nil {
			return fmt.Errorf("scenario %s: %w", s.name, err)
		}
		fmt.Fprintf(w, "%s\t%.1f ms\t%.1f ms\t%.2f\t%.1f MB\t%.1f MB\t\n", s.name,
			floor.wallMS(), drover.wallMS(), drover.wallMS()/floor.wallMS(), floor.peakMB(), drover.peakMB())
		if s.first {
			fmt.Fprintf(w, "%s to first event\t\t%.1f ms\t\t\t\t\n", s.name, drover.firstMS())
		}
		if s.terminal || s.rows > 0 {
			left, right := median(floor.cpu), median(drover.cpu)
			fmt.Fprintf(w, "%s processors\t%.1f ms\t%.1f ms\t%.2f\t\t\t\n", s.name, ms(left), ms(right), float64(right)/float64(left))
		}
		if s.memory && drover.peakMB() > 0 {
			fmt.Fprintf(w, "%s at a time, drover\t\t\t\t\t%.1f MB\t\n", s.name, megabytes(drover.own))
			fmt.Fprintf(w, "%s at a time, its helpers\t\t\t\t\t%.1f MB\t\n", s.name, megabytes(drover.helpers))
		}
		if s.turns > 1 {
			fmt.Fprintf(w, "%s per turn\t%.2f ms\t%.2f ms\t\t\t\t\n", s.name, floor.wallMS()/float64(s.turns), drover.wallMS()/float64(s.turns))
		}
	}
	return w.Flush()
}

func contains(list []string, s string) bool {
	for _, x := range list {
		if x == s {
			return true
		}
	}
	return false
}
