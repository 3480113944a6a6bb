// Command drover runs coding agents where nobody is watching.
package main

import (
	"os"

	"drover/cmd"
)

func main() {
	os.Exit(cmd.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
