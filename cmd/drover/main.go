// Command drover runs coding agents where nobody is watching.
package main

import (
	"os"

	"drover/cmd"
	"drover/tools/sandbox"
)

func main() {
	sandbox.Main() // returns, unless this process is the helper that starts commands
	os.Exit(cmd.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
