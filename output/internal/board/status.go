package board

import (
	"time"

	"drover/output/event"
)

// Status is about a run as a whole.
type Status struct {
	// Open says that the run has begun and has not ended.
	Open bool
	// Began is when the first event was made, Turn the latest one.
	Began time.Time
	Turn  int
	// Coming to Failed count calls of the root session: those that the model is
	// still writing, those that run or wait for an answer, those that went well,
	// and the others.
	Coming, Running, Done, Failed int
	Tokens                        int64
	CostUSD                       float64
	// PlanDone of Plan steps are completed.
	PlanDone, Plan int
	// Background counts commands that have outlived their calls.
	Background int
	// Waiting is since when only the model is awaited, Thinking since when it
	// tells what it thinks; they are zero at other times.
	Waiting, Thinking time.Time
	// Retry is the time of the provider's next try, zero if none is pending; it
	// is the number Try of Tries.
	Retry      time.Time
	Try, Tries int
}

// take follows an event. What is said of calls is counted by the board.
func (s *Status) take(e event.Event) {
	if !s.Open {
		s.Open, s.Began, s.Waiting = true, e.Time, e.Time
	}
	if e.Replayed {
		return
	}
	if e.ParentSessionID == "" && e.ItemID == "" {
		s.Turn = max(s.Turn, e.Turn)
		s.await(e)
	}
	switch b := e.Body.(type) {
	case event.UsageEvent:
		s.Tokens += b.InputTokens + b.OutputTokens
		if b.CostUSD != nil {
			s.CostUSD += *b.CostUSD
		}
	case event.PlanUpdatedEvent:
		if e.ParentSessionID == "" {
			s.Plan, s.PlanDone = len(b.Items), 0
			for _, it := range b.Items {
				if it.Status == "completed" {
					s.PlanDone++
				}
			}
		}
	case event.RunFinishedEvent:
		s.Open = false
	}
}

// await tells what is waited for.
func (s *Status) await(e event.Event) {
	switch b := e.Body.(type) {
	case event.ProviderRetryEvent:
		s.Retry = e.Time.Add(time.Duration(b.DelayMS) * time.Millisecond)
		s.Try, s.Tries = b.Attempt+1, b.MaxAttempts
	case event.ReasoningDeltaEvent, event.ReasoningEvent:
		s.Retry = time.Time{}
		if s.Thinking.IsZero() {
			s.Thinking = e.Time
		}
	case event.MessageDeltaEvent, event.MessageEvent, event.ToolCallStartEvent, event.ToolCallArgsDeltaEvent,
		event.ToolCallEvent, event.TurnFinishedEvent:
		s.Retry, s.Thinking, s.Waiting = time.Time{}, time.Time{}, e.Time
	case event.TurnStartedEvent, event.ToolResultEvent, event.ToolIncompleteEvent:
		s.Thinking, s.Waiting = time.Time{}, e.Time
	}
}

// count adds a call that has its end.
func (s *Status) count(f *Frame) {
	switch {
	case f.agent || f.noCall:
	case f.State == Done && !f.BadExit():
		s.Done++
	default:
		s.Failed++
	}
}

// Open tells whether the run has begun and has not ended.
func (b *Board) Open() bool { return b.status.Open }

// Status returns what is to be said of the run as a whole.
func (b *Board) Status() Status {
	s := b.status
	for _, l := range b.order {
		for _, it := range l.items {
			switch f := it.frame; {
			case f == nil || f.agent || f.noCall:
			case f.State.Final():
				s.count(f)
			case f.State < Awaiting:
				s.Coming++
			default:
				s.Running++
			}
		}
	}
	for _, t := range b.terminals {
		if f := b.frames[t.call]; f == nil || f.State.Final() {
			s.Background++
		}
	}
	return s
}
