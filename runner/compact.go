package runner

import (
	"drover/output/event"
	"drover/runner/model"
)

// droppedOutput stands for a result that was dropped to make room.
const droppedOutput = "[drover dropped this output: the conversation was longer than the model's context window; run the tool again if you need it]"

// shrink makes room in a conversation that the model found too long: it drops
// the older half of the tool outputs that are still whole, and so in a few
// steps all of them. It tells whether there was anything to drop.
func (s *session) shrink() bool {
	var whole []int
	for i, it := range s.history {
		if it.Kind == model.ToolResult && len(it.Text) > 2*len(droppedOutput) {
			whole = append(whole, i)
		}
	}
	if len(whole) == 0 {
		return false
	}
	before := s.contextTokens()
	for _, i := range whole[:(len(whole)+1)/2] {
		s.historyBytes += len(droppedOutput) - len(s.history[i].Text)
		s.history[i].Text = droppedOutput
	}
	s.emit(event.ContextCompactedEvent{Trigger: "auto", TokensBefore: before, TokensAfter: s.contextTokens()})
	return true
}

// windowShare is how much of the window a conversation may fill: the rest is
// for the tools, the answer, and the error of the estimate.
const windowShare = 0.8

// fitWindow shortens a conversation before it is sent, where the model's window
// is known. What does not fit even so is for the provider to refuse.
func (s *session) fitWindow() {
	window := s.Model.Info.ContextWindow
	for window > 0 && float64(s.contextTokens()) > windowShare*float64(window) && s.shrink() {
	}
}

// contextTokens estimates the size of a request.
func (s *session) contextTokens() int64 { return int64(tokens(len(s.system) + s.historyBytes)) }
