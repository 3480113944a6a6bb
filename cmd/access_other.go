//go:build !unix

package cmd

import "os"

// writable tells whether files can be made in a folder, as far as its mode says.
func writable(dir string) bool {
	info, err := os.Stat(dir)
	return err == nil && info.Mode().Perm()&0o200 != 0
}
