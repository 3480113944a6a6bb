// Package frame shows a run on a terminal: each call is a frame in a small
// region at the bottom, drawn again while it changes, and moved once and for
// ever into the terminal's own scrollback when it is final.
//
// What is final and in which order is decided in output/internal/board. Here
// the board becomes rows (layout.go), rows become bytes (paint.go), and bytes
// reach the terminal at a calm rate and at the right size (render.go).
// Questions to the person at the terminal are in prompt.go. The package uses
// no alternate screen, no raw mode and no query; it sends nothing but the few
// control sequences that paint.go lists.
package frame

import (
	"time"

	"drover/output/internal/board"
)

// Size is that of a terminal, in cells.
type Size struct{ Columns, Rows int }

// Options say how a run is shown.
type Options struct {
	// Color uses a few SGR sequences, ASCII no character outside ASCII.
	Color, ASCII bool
	// Show adds what is not shown by default.
	Show board.Show
	// Clock is the time that elapsed times are counted against; nil is the
	// system's clock. A recorded run that is played has its own.
	Clock Clock
}

// Clock tells the time of the run that is shown.
type Clock interface {
	// Now is the time of the run.
	Now() time.Time
	// Wait is how long to wait, in real time, until the run's time is t; it is
	// not positive if that has passed.
	Wait(t time.Time) time.Duration
}
