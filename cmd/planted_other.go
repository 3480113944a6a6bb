//go:build !linux

package cmd

// identify knows no folder: only on Linux does a sandbox tell what appeared.
func identify(string) (plantedFolder, bool) { return plantedFolder{}, false }
