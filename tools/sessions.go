package tools

import (
	"context"
)

// Sessions are the commands of one agent that outlive their call, by their
// session id.
type Sessions struct{ ctx context.Context }

// NewSessions returns an empty table. The end of ctx ends the commands.
func NewSessions(ctx context.Context) *Sessions { return &Sessions{ctx: ctx} }

// Close ends all commands, TERM, grace, KILL, and returns when their last
// events are out.
func (s *Sessions) Close() {}
