//go:build unix && !linux

package proc

// Direct returns the Launcher that starts commands right below drover.
func Direct() Launcher { return direct{} }
