package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// memory is what a process and its helpers have held at most, in bytes; zero
// where the system does not tell.
type memory struct {
	// peak is the largest resident set of the process since its exec.
	peak int64
	// own and helpers count a shared page by its share. Helpers are the
	// descendants that run the same program.
	own, helpers int64
}

// watchMemory looks at a process until the returned function is called.
func watchMemory(pid int) (stop func() memory) {
	end, done := make(chan struct{}), make(chan memory, 1)
	go func() { // stop awaits it
		var most memory
		for every := time.NewTicker(20 * time.Millisecond); ; {
			most.peak = max(most.peak, kibField(pid, "status", "VmHWM:"))
			most.own = max(most.own, kibField(pid, "smaps_rollup", "Pss:"))
			sum := int64(0)
			for _, helper := range helpersOf(pid) {
				sum += kibField(helper, "smaps_rollup", "Pss:")
			}
			most.helpers = max(most.helpers, sum)
			select {
			case <-end:
				every.Stop()
				done <- most
				return
			case <-every.C:
			}
		}
	}()
	return func() memory { close(end); return <-done }
}

// kibField reads a line such as "Pss: 12 kB" of a file of /proc, in bytes; 0 if
// there is none.
func kibField(pid int, file, name string) int64 {
	data, _ := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), file)) // it may be gone
	_, rest, _ := strings.Cut(string(data), "\n"+name)
	fields := strings.Fields(rest)
	if len(fields) == 0 {
		return 0
	}
	n, _ := strconv.ParseInt(fields[0], 10, 64) // the kernel prints numbers
	return n * 1024
}

// helpersOf returns the descendants of a process that run its program.
func helpersOf(pid int) (found []int) {
	self, err := os.Readlink(filepath.Join("/proc", strconv.Itoa(pid), "exe"))
	if err != nil {
		return nil
	}
	files, _ := filepath.Glob("/proc/[0-9]*/stat") // the pattern is right
	parents := map[int]int{}
	for _, name := range files {
		stat, err := os.ReadFile(name)
		end := bytes.LastIndexByte(stat, ')')
		if err != nil || end < 0 {
			continue
		}
		child, _ := strconv.Atoi(filepath.Base(filepath.Dir(name))) // digits, by the pattern
		parent, _ := strconv.Atoi(strings.Fields(string(stat[end+1:]))[1])
		parents[child] = parent
	}
	for child := range parents {
		for at := parents[child]; at > 1; at = parents[at] {
			if exe, err := os.Readlink(filepath.Join("/proc", strconv.Itoa(child), "exe")); at == pid && err == nil && exe == self {
				found = append(found, child)
			}
		}
	}
	return found
}
