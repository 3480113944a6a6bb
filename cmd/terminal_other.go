//go:build !unix

package cmd

// terminalName is the terminal that the process belongs to.
const terminalName = "CONIN$"
