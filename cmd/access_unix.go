//go:build unix

package cmd

import "golang.org/x/sys/unix"

// writable tells whether files can be made in a folder, without making one.
func writable(dir string) bool { return unix.Access(dir, unix.W_OK|unix.X_OK) == nil }
