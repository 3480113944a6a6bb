//go:build unix

package cmd

import (
	"os"
	"os/signal"
	"syscall"

	"drover/output"
)

// watchStops takes the screen off the terminal when the process is stopped, as
// by Ctrl-Z, and puts it back when it goes on. It returns what ends that.
func watchStops(screen output.Screen) (end func()) {
	if signal.Ignored(syscall.SIGTSTP) {
		return func() {} // whoever started drover does not want it stopped
	}
	stops, goes := make(chan os.Signal, 1), make(chan os.Signal, 1)
	signal.Notify(stops, syscall.SIGTSTP)
	signal.Notify(goes, syscall.SIGCONT)
	done := make(chan struct{})
	go func() { // ends with end
		defer signal.Stop(goes)
		defer signal.Stop(stops)
		for {
			select {
			case <-done:
				return
			case <-goes: // after a SIGSTOP that nobody could see coming
				screen.Suspend()
				screen.Resume()
			case <-stops:
				screen.Suspend()
				stopHere(goes, done)
				screen.Resume()
			}
		}
	}()
	return func() { close(done) }
}

// stopHere stops the process and returns when it goes on. It is stopped by
// SIGSTOP: a Go program that has once been told of SIGTSTP never gets back the
// default action of that signal.
func stopHere(goes chan os.Signal, done chan struct{}) {
	select {
	case <-goes: // an old one
	default:
	}
	if syscall.Kill(os.Getpid(), syscall.SIGSTOP) != nil {
		return
	}
	select {
	case <-goes:
	case <-done:
	}
}
