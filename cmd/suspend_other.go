//go:build !unix

package cmd

import "drover/output"

// watchStops does nothing: there is no signal that stops a process.
func watchStops(output.Screen) (end func()) { return func() {} }
