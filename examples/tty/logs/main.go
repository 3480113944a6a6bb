// Command logs prints the event streams that the checks in the folder above
// play on a terminal, with `drover events render --play`. They are made here
// and not recorded, so that each shows one thing, always in the same way.
package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
)

func main() {
	if len(os.Args) != 2 || scenes[os.Args[1]] == nil {
		fmt.Fprintf(os.Stderr, "usage: logs NAME\nNAME is one of: %s\n", strings.Join(names(), ", "))
		os.Exit(2)
	}
	w := bufio.NewWriter(os.Stdout)
	err := write(w, os.Args[1])
	if err == nil {
		err = w.Flush()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "logs:", err)
		os.Exit(1)
	}
}

// write prints one scene.
func write(w io.Writer, name string) error {
	f := start(w)
	scenes[name](f)
	return f.err
}

func names() []string {
	var out []string
	for name := range scenes {
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}
