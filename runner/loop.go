package runner

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/charmbracelet/x/ansi"

	"drover/output/event"
	"drover/output/fault"
	"drover/runner/model"
	"drover/tools"
)

// session is one conversation between an agent and its model. One goroutine
// owns it.
type session struct {
	*run
	id, agent string
	// parent is the session that has started this one; nil is the root.
	parent  *session
	started time.Time
	system  string
	// history is what the model sees, oldest first; historyBytes is its size,
	// for estimates where a provider counts no tokens.
	history      []model.Item
	historyBytes int
	// turn counts model responses from 1; 0 is outside a turn.
	turn int
	// commands are the commands that outlive their call.
	commands *tools.Sessions
	// closed is the latest turn that was finished, and live are the calls of
	// the present one.
	closed int
	live   []*call
	// messages counts texts, for their ids.
	messages int

	checkTries, schemaTries int
	// stopBlocks counts how often hooks have sent the final answer back.
	stopBlocks int
	background background
	cutRow     int
	// answers are what was allowed for longer than one call.
	answers answers
	// outside is held alone by a call that leaves the sandbox.
	outside sync.RWMutex
	repeats repeats
}

// loop asks the model, does what it asks for, and asks again, until it gives
// a final answer or something ends the run. nil is success.
func (s *session) loop(ctx context.Context) *Stop {
	for input := event.TurnInput("prompt"); ; {
		if stop := s.mayTakeTurn(ctx); stop != nil {
			return stop
		}
		s.turn++
		s.emit(event.TurnStartedEvent{Input: input})
		next, stop := s.takeTurn(ctx)
		s.finishTurn(stop)
		if stop != nil || next == "" {
			return stop
		}
		input = next
	}
}

// takeTurn is one model response with its calls. It returns what the next
// turn answers, or "" after the final answer.
func (s *session) takeTurn(ctx context.Context) (next event.TurnInput, stop *Stop) {
	resp, stop := s.respond(ctx)
	if stop != nil {
		return "", stop
	}
	s.add(resp.items...)
	if resp.finish != model.Length {
		s.cutRow = 0
	}
	switch resp.finish {
	case model.Length:
		return s.cutByLength(resp)
	case model.ContentFilter, model.Refusal:
		return "", &Stop{Exit: fault.Model, Reason: string(resp.finish), Err: &event.Err{
			Code: string(resp.finish), Message: "the model refused to answer or its answer was filtered",
		}}
	}
	if len(resp.calls) == 0 {
		return s.finalAnswer(ctx, resp.text)
	}
	results, stop := s.runCalls(ctx, resp.calls)
	s.add(results...)
	if stop == nil && slices.ContainsFunc(resp.calls, func(c *call) bool { return c.last }) {
		return s.runChecks(ctx) // there is nothing left to ask the model
	}
	if stop == nil {
		stop = s.spentStop()
	}
	return "tool_results", stop
}

// maxCuts is how many responses in a row may be cut by their length.
const maxCuts = 3

// cutByLength answers a response that hit its output limit. None of its calls
// was run: half an argument can look whole.
func (s *session) cutByLength(resp *response) (event.TurnInput, *Stop) {
	s.cutRow++
	if s.cutRow >= maxCuts {
		return "", &Stop{Exit: fault.Model, Reason: "length", Err: &event.Err{
			Code: "length", Message: "the model's responses were cut by their output limit, three times in a row",
			Fix: "raise max_output_tokens of the model in the config, or ask for less at once",
		}}
	}
	s.say("user", cutText(resp))
	return "retry", nil
}

// finalAnswer accepts the model's answer, or sends it back: because it does
// not match the schema, or because a check fails.
func (s *session) finalAnswer(ctx context.Context, text string) (event.TurnInput, *Stop) {
	s.answer(text)
	if !visible(text) {
		return "", &Stop{Exit: fault.Incomplete, Reason: "empty_answer", Err: &event.Err{
			Code: "empty_answer", Message: "the model ended without calls and without an answer",
		}}
	}
	if s.Row != nil && s.Row.Missing != nil {
		if missing := s.Row.Missing(); missing != "" {
			s.say("user", missing)
			return "retry", nil
		}
	}
	if s.Mode != ModePlan {
		if next, stop := s.matchSchema(text); next != "" || stop != nil {
			return next, stop
		}
	}
	if next, stop := s.stopHooks(ctx, text); next != "" || stop != nil {
		return next, stop
	}
	if s.Mode == ModePlan {
		return "", s.proposePlan(text)
	}
	// The answer is kept, but a run that is out of budget is no success.
	if stop := s.spentStop(); stop != nil {
		return "", stop
	}
	next, stop := s.runChecks(ctx)
	if stop == nil {
		stop = s.spentStop() // checks spend output, too
	}
	return next, stop
}

// visible tells whether a reader would see anything of a text.
func visible(text string) bool {
	return strings.ContainsFunc(ansi.Strip(text), func(r rune) bool {
		return unicode.IsGraphic(r) && !unicode.IsSpace(r) && !unicode.Is(unicode.M, r) && !strings.ContainsRune(blanks, r)
	})
}

// blanks are letters and symbols without a look.
const blanks = "\u115f\u1160\u2800\u3164\uffa0"

// finishTurn closes the turn's line; after it no call of the turn is open.
func (s *session) finishTurn(stop *Stop) {
	e := event.TurnFinishedEvent{Status: "completed"}
	if stop != nil {
		e.Status, e.StopReason, e.Error = "failed", stop.Reason, stop.Err
		switch stop.Exit {
		case fault.Interrupted, fault.Terminated, fault.ClosedOutput, fault.Timeout:
			e.Status = "interrupted"
		case fault.LimitTurns, fault.LimitSpend, fault.Blocked, fault.NeedsInput, fault.InvalidOutput:
			e.Status = "completed"
		}
	}
	s.emit(e)
	s.closed, s.live = s.turn, nil
}

// emit reports an event of this session.
func (s *session) emit(b event.Body) { s.tell(s.origin(), b) }

// origin is whose the session's events are. From any line of a child the tree
// can be rebuilt.
func (s *session) origin() event.Origin {
	o := event.Origin{SessionID: s.id, Turn: s.turn, ItemID: s.itemID()}
	if s.parent != nil {
		o.ParentSessionID, o.Agent = s.parent.id, s.agent
	}
	return o
}

// add appends items to the history.
func (s *session) add(items ...model.Item) {
	for _, it := range items {
		s.historyBytes += len(it.Text) + len(it.Args) + len(it.Opaque)
	}
	s.history = append(s.history, items...)
}

// say puts a message into the history and the stream.
func (s *session) say(role event.Role, text string) {
	s.add(model.Item{Kind: model.UserMessage, Text: text})
	s.emit(event.MessageEvent{MessageID: s.messageID(), Role: role, Text: text})
}
