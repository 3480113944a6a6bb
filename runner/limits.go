package runner

import (
	"context"
	"fmt"
	"sync"
	"time"

	"drover/output/event"
	"drover/output/fault"
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
	// estimated says that some cost is not known.
	unknownCost bool
	warned      map[string]bool
	refused     *Stop
}

// waiting is what the run waits for, for heartbeats.
type waiting struct {
	mu     sync.Mutex
	on     event.WaitingOn
	callID string
	since  time.Time
	// active is when something last happened.
	active time.Time
}

func (r *run) waitFor(on event.WaitingOn, callID string) {
	r.waiting.mu.Lock()
	defer r.waiting.mu.Unlock()
	r.waiting.on, r.waiting.callID, r.waiting.since = on, callID, r.Now()
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
		r.limitReached(limit, value, budget)
		return limitStop(limit, value, budget, exit)
	}
	if value >= warnAt*budget && r.once("warn "+limit) {
		r.Log.Emit(event.Origin{SessionID: r.SessionID}, event.LimitWarningEvent{Limit: limit, Value: value, Max: budget, Scope: "run"})
	}
	return nil
}

func limitStop(limit string, value, budget float64, exit fault.Exit) *Stop {
	return &Stop{Exit: exit, Reason: "limit_" + limit, Err: &event.Err{
		Code: "limit_" + limit, Message: fmt.Sprintf("the limit of %s was reached: %g of %g", limit, value, budget),
	}}
}

func (r *run) limitReached(limit string, value, budget float64) {
	if r.once("reached " + limit) {
		r.Log.Emit(event.Origin{SessionID: r.SessionID}, event.LimitReachedEvent{Limit: limit, Value: value, Max: budget, Scope: "run"})
	}
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

// heartbeatEvery is how long the stream may be silent.
const heartbeatEvery = 15 * time.Second

// watchLimits watches the clocks of a run until the returned function is
// called: the wall and idle limits end it, silence brings heartbeats.
func (r *run) watchLimits(ctx context.Context) (stop func()) {
	r.waiting.active = r.Now()
	r.Log.Subscribe(event.TopicAll, func(e event.Event) {
		if _, beat := e.Body.(event.HeartbeatEvent); !beat {
			r.waiting.mu.Lock()
			r.waiting.active = e.Time
			r.waiting.mu.Unlock()
		}
	})
	done := make(chan struct{})
	var group sync.WaitGroup
	group.Go(func() {
		tick := time.NewTicker(r.tickEvery())
		defer tick.Stop()
		for {
			select {
			case <-done:
				return
			case <-ctx.Done():
				return
			case <-tick.C:
				r.tick()
			}
		}
	})
	var wall *time.Timer
	if r.Limits.Wall > 0 {
		wall = time.AfterFunc(r.Limits.Wall, func() {
			r.limitReached("wall_s", r.Limits.Wall.Seconds(), r.Limits.Wall.Seconds())
			r.cancel(limitStop("wall_s", r.Limits.Wall.Seconds(), r.Limits.Wall.Seconds(), fault.Timeout))
		})
	}
	return func() {
		if wall != nil {
			wall.Stop()
		}
		close(done)
		group.Wait()
	}
}

// tickEvery is often enough for the idle limit to be kept within a tenth.
func (r *run) tickEvery() time.Duration {
	if r.Limits.Idle > 0 {
		return max(min(r.Limits.Idle/10, time.Second), 10*time.Millisecond)
	}
	return time.Second
}

func (r *run) tick() {
	now := r.Now()
	r.waiting.mu.Lock()
	on, callID, since := r.waiting.on, r.waiting.callID, r.waiting.since
	silent := now.Sub(r.waiting.active)
	r.waiting.mu.Unlock()
	if limit := r.Limits.Idle; limit > 0 && silent >= limit {
		r.limitReached("idle_s", silent.Seconds(), limit.Seconds())
		r.cancel(limitStop("idle_s", silent.Seconds(), limit.Seconds(), fault.Timeout))
		return
	}
	if now.Sub(r.Log.LastEmit()) >= heartbeatEvery {
		if on == "" {
			on = "none"
		}
		r.Log.Emit(event.Origin{SessionID: r.SessionID}, event.HeartbeatEvent{
			WaitingOn: on, ElapsedMS: now.Sub(since).Milliseconds(), ToolCallID: callID,
		})
	}
}

// stopOf is the stop with which ctx was cancelled.
func (r *run) stopOf(ctx context.Context) *Stop {
	if stop, ok := context.Cause(ctx).(*Stop); ok {
		return stop
	}
	return &Stop{Exit: fault.Interrupted, Reason: "cancelled"}
}

// recordUsage adds one response to the totals and reports it.
func (s *session) recordUsage(c *collector) {
	u := event.Usage{Calls: 1}
	if m := c.usage; m != nil && m.InputTokens+m.OutputTokens > 0 {
		u.InputTokens, u.OutputTokens, u.ReasoningTokens = m.InputTokens, m.OutputTokens, m.ReasoningTokens
		u.CachedInputTokens, u.CacheWriteTokens = m.CachedInputTokens, m.CacheWriteTokens
	} else {
		u.Estimated = true
		u.InputTokens = int64(tokens(len(s.system) + s.historyBytes))
		u.OutputTokens = int64(c.outputTokens())
	}
	now := s.Now()
	e := event.UsageEvent{
		Model: s.Model.Model, Provider: s.Model.Provider.Name(), Estimated: u.Estimated,
		InputTokens: u.InputTokens, OutputTokens: u.OutputTokens, ReasoningTokens: u.ReasoningTokens,
		CachedInputTokens: u.CachedInputTokens, CacheWriteTokens: u.CacheWriteTokens,
		LatencyMS: now.Sub(c.began).Milliseconds(), FinishReason: string(c.reason),
	}
	if !c.firstDelta.IsZero() {
		e.TTFTMS = c.firstDelta.Sub(c.began).Milliseconds()
	}
	s.mu.Lock()
	o := &s.outcome
	o.Usage.Add(u)
	if o.UsageByModel == nil {
		o.UsageByModel = map[string]event.Usage{}
	}
	byModel := o.UsageByModel[s.Model.ID]
	byModel.Add(u)
	o.UsageByModel[s.Model.ID] = byModel
	e.CostUSD, e.CostBasis = s.price(u)
	s.priceLocked()
	s.mu.Unlock()
	s.emit(e)
}

func (c *collector) outputTokens() int {
	n := c.text.Len() + c.thought.Len()
	for _, k := range c.calls {
		n += len(k.name) + k.args.Len()
	}
	return tokens(n)
}

// price is what usage costs, or nil and "unknown".
func (r *run) price(u event.Usage) (*float64, event.CostBasis) {
	zero := 0.0
	if r.Model.Free {
		return &zero, "reported"
	}
	in, out := r.Model.Info.InputPrice, r.Model.Info.OutputPrice
	if in == nil || out == nil {
		return nil, "unknown"
	}
	cached := in
	if r.Model.Info.CachedPrice != nil {
		cached = r.Model.Info.CachedPrice
	}
	cost := (float64(u.InputTokens-u.CachedInputTokens)**in + float64(u.CachedInputTokens)**cached + float64(u.OutputTokens)**out) / 1e6
	return &cost, "estimated"
}

// priceLocked sets the outcome's cost from its usage.
func (r *run) priceLocked() {
	r.outcome.CostUSD, r.outcome.CostBasis = r.price(r.outcome.Usage)
}

func (r *run) addAPITime(d time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.outcome.APITime += d
}

func (r *run) countRetry() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.outcome.Usage.Retries++
}

// countCall counts a call that was run, by tool.
func (r *run) countCall(name string, outputBytes int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.outcome.ToolCalls[name]++
	r.spent.outputBytes += outputBytes
}

// noteFile remembers a changed file once, with its latest kind.
func (r *run) noteFile(f event.FileChangedEvent) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i, old := range r.outcome.FilesChanged {
		if old.Path == f.Path {
			if old.Kind != "add" || f.Kind != "modify" {
				r.outcome.FilesChanged[i].Kind = f.Kind
			}
			return
		}
	}
	r.outcome.FilesChanged = append(r.outcome.FilesChanged, event.ChangedFile{Path: f.Path, Kind: f.Kind})
}

// answer remembers the final answer.
func (r *run) answer(text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.outcome.Message = text
}

func tokens(bytes int) int { return (bytes + 3) / 4 }
