package output

import (
	"io"

	"drover/output/event"
	"drover/output/frame"
)

// Question is a request to a person as ordinary lines, and QuestionOptions say
// how it looks.
type (
	Question        = frame.Question
	QuestionOptions = frame.QuestionOptions
)

// NewQuestion lays out a request of type tool.approval.requested or
// input.requested. Everything in it is cleaned.
func NewQuestion(e event.Event, o QuestionOptions) Question { return frame.NewQuestion(e, o) }

// Screen is what a format that draws on a terminal offers beside taking events.
type Screen interface {
	// Hold takes what is drawn off the terminal until release is called; w
	// prints ordinary lines meanwhile, which stay.
	Hold() (w io.Writer, release func())
	// Suspend is Hold before the process is stopped, Resume ends that.
	Suspend()
	Resume()
	// Write prints ordinary lines above what is drawn.
	io.Writer
}
