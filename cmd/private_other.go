//go:build !linux

package cmd

// keepPrivate does nothing: no other system shows a process's environment in a
// file.
func keepPrivate() {}
