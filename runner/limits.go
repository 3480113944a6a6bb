package runner

import (
	"context"
	"fmt"
	"time"

	"drover/output/event"
	"drover/output/fault"
	"drover/tools"
)

// Limits are the budgets of a run; zero is none. They count what sub-agents
// spend, too.
type Limits struct {
	Turns, ToolCalls int
	// Tokens is the sum of input and output tokens of all responses.
	Tokens  int64
	CostUSD float64
	// Wall bounds the whole run, Idle the time in which nothing happens, Tool
	// one command.
	Wall, Idle, Tool time.Duration
	// Denials ends the run at that many refused calls.
	Denials int
	// OutputBytes bounds the output of all tools together.
	OutputBytes int64
	// LoopWarn and LoopStop are how often the same call with the same result is
	// made before the model is told, and before the run ends; 0 is
	// DefaultLoopWarn and DefaultLoopStop.
	LoopWarn, LoopStop int
}

// DefaultTurns and DefaultDenials hold where nothing else is said.
const (
	DefaultTurns   = 200
	DefaultDenials = 5
)

// warnAt is the share of a budget at which a limit.warning is emitted.
const warnAt = 0.8

func (l Limits) event() event.Limits {
	return event.Limits{
		Turns: l.Turns, ToolCalls: l.ToolCalls, Tokens: l.Tokens, CostUSD: l.CostUSD,
		WallS: l.Wall.Seconds(), IdleS: l.Idle.Seconds(), ToolS: l.Tool.Seconds(),
		Denials: l.Denials, OutputBytes: l.OutputBytes,
	}
}

// spent is what a run has used so far, under run.mu.
type spent struct {
	turns, calls int
	outputBytes  int64
	warned       map[string]bool
	refused      *Stop
	// planRefusals are refusals of plan mode and of dry runs, which end nothing
	// early.
	planRefusals int
}

// mayTakeTurn is asked before every model request.
func (s *session) mayTakeTurn(ctx context.Context) *Stop {
	if ctx.Err() != nil {
		return s.stopOf(ctx)
	}
	if stop := s.spentStop(); stop != nil {
		return stop
	}
	s.mu.Lock()
	n := s.spent.turns
	s.spent.turns++
	s.mu.Unlock()
	return s.check("turns", float64(n), float64(s.Limits.Turns), fault.LimitTurns)
}

// mayCall is asked before every tool call.
func (s *session) mayCall(ctx context.Context) *Stop {
	if ctx.Err() != nil {
		return s.stopOf(ctx)
	}
	if stop := s.refusedStop(); stop != nil {
		return stop
	}
	s.mu.Lock()
	n := s.spent.calls
	s.spent.calls++
	s.mu.Unlock()
	if stop := s.check("tool_calls", float64(n), float64(s.Limits.ToolCalls), fault.LimitTurns); stop != nil {
		s.mu.Lock()
		s.spent.refused = stop
		s.mu.Unlock()
		return stop
	}
	return nil
}

// spentStop tells whether tokens or money have run out.
func (s *session) spentStop() *Stop {
	s.mu.Lock()
	tokens := s.outcome.Usage.InputTokens + s.outcome.Usage.OutputTokens
	cost := 0.0
	if s.outcome.CostUSD != nil {
		cost = *s.outcome.CostUSD
	}
	bytes := s.spent.outputBytes
	s.mu.Unlock()
	if s.Row != nil && s.Row.Budget != nil {
		if stop := s.Row.Budget(cost); stop != nil {
			return stop
		}
	}
	if stop := s.check("tokens", float64(tokens), float64(s.Limits.Tokens), fault.LimitSpend); stop != nil {
		return stop
	}
	if stop := s.check("output_bytes", float64(bytes), float64(s.Limits.OutputBytes), fault.LimitSpend); stop != nil {
		return stop
	}
	return s.check("cost_usd", cost, s.Limits.CostUSD, fault.LimitSpend)
}

// check compares a value with its budget, warns once on the way, and makes the
// stop when it is spent.
func (r *run) check(limit string, value, budget float64, exit fault.Exit) *Stop {
	if budget <= 0 {
		return nil
	}
	if value >= budget {
		return r.tellLimit(limitStop(limit, value, budget, exit))
	}
	if value >= warnAt*budget && r.once("warn "+limit) {
		r.tell(r.self(), event.LimitWarningEvent{Limit: limit, Value: value, Max: budget, Scope: "run"})
	}
	return nil
}

// limitStop is the stop for a budget that is spent.
func limitStop(limit string, value, budget float64, exit fault.Exit) *Stop {
	return &Stop{limit: &event.LimitReachedEvent{Limit: limit, Value: value, Max: budget, Scope: "run"}, Exit: exit, Reason: "limit_" + limit, Err: &event.Err{
		Code: "limit_" + limit, Message: fmt.Sprintf("the limit of %s was reached: %g of %g", limit, value, budget),
	}}
}

// tellLimit tells the stream once which limit a stop is about, and returns the
// stop.
func (r *run) tellLimit(stop *Stop) *Stop {
	if stop.limit == nil {
		return stop
	}
	// Who comes second waits, so that what follows from the stop is behind it.
	r.telling.Lock()
	defer r.telling.Unlock()
	if r.once("reached " + stop.limit.Limit) {
		r.tell(r.self(), *stop.limit)
	}
	return stop
}

// once tells whether key is asked for the first time in this run.
func (r *run) once(key string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.spent.warned[key] {
		return false
	}
	if r.spent.warned == nil {
		r.spent.warned = map[string]bool{}
	}
	r.spent.warned[key] = true
	return true
}

// stopOf is the stop with which ctx was cancelled. A clock that has run out is
// told here and not by the clock, which must not wait for a reader.
func (r *run) stopOf(ctx context.Context) *Stop {
	if stop, ok := context.Cause(ctx).(*Stop); ok {
		return r.tellLimit(stop)
	}
	return &Stop{Exit: fault.Interrupted, Reason: "cancelled"}
}

// moneyLeft is what the run may still spend, and whether that is limited.
func (r *run) moneyLeft() (usd float64, limited bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	spent := 0.0
	if r.outcome.CostUSD != nil {
		spent = *r.outcome.CostUSD
	}
	return max(0, r.Limits.CostUSD-spent), r.Limits.CostUSD > 0
}

// charge adds what a call has spent through agents of its own.
func (r *run) charge(s tools.Spent) {
	r.mu.Lock()
	defer r.mu.Unlock()
	o := &r.outcome
	o.Usage.Add(s.Usage)
	for id, u := range s.ByModel {
		if o.UsageByModel == nil {
			o.UsageByModel = map[string]event.Usage{}
		}
		sum := o.UsageByModel[id]
		sum.Add(u)
		o.UsageByModel[id] = sum
	}
	for name, n := range s.ToolCalls {
		o.ToolCalls[name] += n
	}
	o.Denials = append(o.Denials, s.Denials...)
	o.Turns += s.Turns
	r.priceLocked()
}
