package runner

import (
	"time"

	"drover/output/event"
)

// This file counts what a run has used: tokens, money, time, calls and files.

// recordUsage adds one response to the totals and reports it.
func (s *session) recordUsage(c *collector) {
	u := event.Usage{Calls: 1}
	if m := c.usage; m != nil && m.InputTokens+m.OutputTokens > 0 {
		u.InputTokens, u.OutputTokens, u.ReasoningTokens = m.InputTokens, m.OutputTokens, m.ReasoningTokens
		u.CachedInputTokens, u.CacheWriteTokens = m.CachedInputTokens, m.CacheWriteTokens
	} else {
		u.Estimated = true
		u.InputTokens = s.contextTokens()
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
	p, known := r.Model.Prices()
	if !known {
		return nil, "unknown"
	}
	plain := u.InputTokens - u.CachedInputTokens - u.CacheWriteTokens
	cost := (float64(plain)*p.Input + float64(u.CachedInputTokens)*p.CacheRead + float64(u.CacheWriteTokens)*p.CacheWrite + float64(u.OutputTokens)*p.Output) / 1e6
	if r.Model.Free {
		return &cost, "reported"
	}
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
