// Package approver asks somebody outside drover whether a call may run: a
// command that is started for each request, a program on a descriptor or a
// socket, or the person at the terminal.
//
// It carries requests out and answers in, and nothing else: when to ask, how
// long to wait, and what an answer is worth is for the runner to say. It fails
// closed: whatever is wrong with an approver is an error of Ask, and an error
// is no yes.
package approver

import (
	"context"

	"drover/output/event"
)

// Approver answers requests. Ask may be called by many goroutines.
type Approver interface {
	// Ask puts a request, an event of type tool.approval.requested or
	// input.requested, and returns its answer. It ends with ctx. An error means
	// that there is none; its text is for the model and the log.
	Ask(ctx context.Context, request event.Event) (Answer, error)
	// By is who decides through this approver.
	By() event.Decider
	// Close gives up what the approver holds. Requests that are open fail.
	Close() error
}

// Notice tells of something that is wrong with an answer and that no request
// waits for: a code and a sentence.
type Notice func(code, text string)

// Codes of notices.
const (
	// CodeBrokenAnswer is a line that is no answer.
	CodeBrokenAnswer = "approval_unreadable"
	// CodeUnknownAnswer is an answer to no open request.
	CodeUnknownAnswer = "approval_unknown"
	// CodeClient is a client that was refused or dropped.
	CodeClient = "approval_client"
)

// maxNotices is how many notices one channel gives; what writes nonsense
// without end must not fill the log.
const maxNotices = 50

// requestID is the correlation id of a request.
func requestID(e event.Event) string {
	switch b := e.Body.(type) {
	case event.ToolApprovalRequestEvent:
		return b.CorrelationID
	case event.InputRequestedEvent:
		return b.CorrelationID
	}
	return ""
}
