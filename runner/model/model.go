// Package model talks to language models.
//
// A Provider answers one Request with a stream of Deltas; that is all it does.
// It never retries, never waits for anything but its server, never runs a
// tool, and keeps no conversation: the caller sends the whole history each
// time. Retrying, waiting and the clocks are in retry.go and watch.go, and
// belong to the caller. This package talks to the network (and, for scripts
// and replays, to files); it writes to no output.
//
// A provider is a tolerant reader and a strict reporter: whatever a server
// does, the deltas obey the contract below, or the stream ends with an Error.
//
//   - Opened comes at most once, before every other delta, when the server has
//     accepted the request and the response has begun.
//   - Calls are told apart by Delta.Index, which counts from 0 within the
//     response and is never reused, whatever indexes or ids the server sent.
//   - A call's CallStart comes before its CallArgs; the joined CallArgs texts
//     are its arguments. A call without any CallArgs has no arguments.
//   - Text is whole characters: no delta ends inside a UTF-8 sequence.
//   - A good stream ends with exactly one Finish and no error. A stream that
//     broke, or ended without its end marker, ends with an Error and no Finish.
//   - Nothing follows Finish or an error.
//   - A response that ends with ToolCalls has a call. Watch holds every
//     provider to this: a server that announced calls has lost them.
package model

import (
	"context"
	"encoding/json"
	"iter"
	"strconv"
	"time"
)

// Provider is a model behind an API. Implementations are safe for concurrent
// use by several agents.
type Provider interface {
	// Name is the provider's id, such as "openai" or "script".
	Name() string
	// Stream sends one request and yields the response as it arrives. The
	// error is always an *Error and ends the sequence. Cancelling ctx ends
	// the stream soon, with an error that wraps ctx's cause.
	Stream(ctx context.Context, req *Request) iter.Seq2[Delta, error]
}

// Request is everything that one model response depends on.
type Request struct {
	// Model is the model's name as the provider's API knows it.
	Model string
	// System is the system prompt.
	System string
	// Items is the conversation so far, oldest first.
	Items []Item
	// Tools are offered to the model, in this order.
	Tools []Tool
	// MaxOutputTokens bounds the response; 0 leaves it to the provider.
	MaxOutputTokens int
	// Schema, if set, is a JSON Schema that the final answer must match; a
	// provider that can hand it to its API does. Strict says that it has the form
	// of the strict modes, see Adapt.
	Schema json.RawMessage
	Strict bool
	// Agent is the path of the agent that asks: "/root" or a sub-agent's. A
	// session is one conversation; both are used by scripts and as cache keys
	// and are never needed by a server.
	Agent, SessionID string
}

// ItemKind tells what an Item is.
type ItemKind string

// The kinds of items.
const (
	UserMessage      ItemKind = "user"
	AssistantMessage ItemKind = "assistant"
	Reasoning        ItemKind = "reasoning"
	ToolCall         ItemKind = "tool_call"
	ToolResult       ItemKind = "tool_result"
)

// Item is one piece of a conversation. Which fields count depends on Kind.
type Item struct {
	Kind ItemKind `json:"kind"`
	// Text is a message's, a reasoning's or a result's text.
	Text string `json:"text,omitempty"`
	// CallID ties a result to its call. It is unique within a session.
	CallID string `json:"call_id,omitempty"`
	// Name is the tool's name, of calls and results.
	Name string `json:"name,omitempty"`
	// Args are a call's arguments: JSON text, or for a freeform call the
	// input itself.
	Args string `json:"args,omitempty"`
	// Freeform marks a custom call and its result.
	Freeform bool `json:"freeform,omitempty"`
	// IsError marks a result that reports a failure.
	IsError bool `json:"is_error,omitempty"`
	// Opaque is what only the provider that sent the item needs back:
	// encrypted reasoning, thinking signatures, item ids. Origin names that
	// provider; others ignore it.
	Opaque json.RawMessage `json:"opaque,omitempty"`
	Origin string          `json:"origin,omitempty"`
}

// Tool is a tool as a model sees it.
type Tool struct {
	Name string
	Doc  string
	// Schema is the JSON Schema of the arguments of a function tool.
	Schema json.RawMessage
	// Grammar is the Lark grammar of a freeform tool, "" for a function. A
	// provider whose API has no freeform tools offers a function with one
	// string argument "input" and reports its calls as freeform.
	Grammar string
	// Freeform marks a tool whose input is plain text.
	Freeform bool
	// LocalShell marks the command tool that the Responses API has itself; to
	// other APIs it is a function like any other.
	LocalShell bool
}

// DeltaKind tells what a Delta brings.
type DeltaKind int

// The kinds of deltas.
const (
	// Opened says that the response has begun.
	Opened DeltaKind = iota
	// TextDelta appends Text to the answer.
	TextDelta
	// ReasoningDelta appends Text to the reasoning.
	ReasoningDelta
	// CallStart opens the call Index with ID (may be ""), Name, Freeform.
	CallStart
	// CallArgs appends Text to the arguments of the call Index.
	CallArgs
	// Keep hands over an item that must go back to the provider with the
	// history, such as encrypted reasoning, at this place of the response.
	Keep
	// Finish ends a good response with Reason and Usage.
	Finish
)

// Delta is one step of a response.
type Delta struct {
	Kind     DeltaKind
	Text     string
	Index    int
	ID       string
	Name     string
	Freeform bool
	Item     *Item
	// Reason says why the model stopped.
	Reason FinishReason
	// Usage is nil when the server sent none.
	Usage *Usage
}

// FinishReason says why a response ended, in one vocabulary for all APIs.
type FinishReason string

// The finish reasons. Everything but Stop and ToolCalls means that no call of
// the response may run.
const (
	Stop          FinishReason = "stop"
	ToolCalls     FinishReason = "tool_calls"
	Length        FinishReason = "length"
	ContentFilter FinishReason = "content_filter"
	Refusal       FinishReason = "refusal"
)

// Usage are the token counts of one response. InputTokens includes the cached
// ones.
type Usage struct {
	InputTokens       int64 `json:"input_tokens"`
	OutputTokens      int64 `json:"output_tokens"`
	CachedInputTokens int64 `json:"cached_input_tokens,omitempty"`
	CacheWriteTokens  int64 `json:"cache_write_tokens,omitempty"`
	ReasoningTokens   int64 `json:"reasoning_tokens,omitempty"`
}

// ErrorKind classes provider errors; it is error_kind in events.
type ErrorKind string

// The kinds of provider errors.
const (
	// ErrConnect: no connection, or it broke before the response began.
	ErrConnect ErrorKind = "connect"
	// ErrCut: the stream broke or ended before its end marker.
	ErrCut ErrorKind = "stream_cut"
	// ErrFirstByte, ErrIdle: a clock of Watch ran out.
	ErrFirstByte ErrorKind = "first_byte_timeout"
	ErrIdle      ErrorKind = "stream_idle"
	// ErrAuth: 401, 403, or no key.
	ErrAuth ErrorKind = "auth"
	// ErrNotFound: 404, usually an unknown model.
	ErrNotFound ErrorKind = "not_found"
	// ErrRate: 429. ErrOverloaded: 503, 529. ErrServer: other 5xx, 408, 409, 425.
	ErrRate       ErrorKind = "rate_limit"
	ErrOverloaded ErrorKind = "overloaded"
	ErrServer     ErrorKind = "server_error"
	// ErrRequest: any other 4xx; the request is at fault.
	ErrRequest ErrorKind = "bad_request"
	// ErrContext: the conversation is longer than the model's window.
	ErrContext ErrorKind = "context_length"
	// ErrQuota: the account has no money left; trying again does not help.
	ErrQuota ErrorKind = "quota"
	// ErrFilter: the provider's content filter refused the request.
	ErrFilter ErrorKind = "content_filter"
	// ErrMalformed: the server answered 200 with something that is no answer,
	// or reported that the model's call was malformed.
	ErrMalformed ErrorKind = "malformed_response"
	// ErrTooLarge: one event of the stream is beyond the size limit.
	ErrTooLarge ErrorKind = "event_too_large"
	// ErrScriptMismatch, ErrScriptEnded: the script model's own ends.
	ErrScriptMismatch ErrorKind = "script_mismatch"
	ErrScriptEnded    ErrorKind = "script_ended"
	// ErrCancelled: ctx was cancelled.
	ErrCancelled ErrorKind = "cancelled"
)

// Error is how a stream fails.
type Error struct {
	Kind ErrorKind
	// Status is the HTTP status, 0 if there was none.
	Status int
	// Message is the server's own message, shortened, with secrets of the
	// request masked.
	Message string
	// RequestID is the server's id of the request, if it sent one.
	RequestID string
	// Retryable says that the same request may succeed later.
	Retryable bool
	// RetryAfter is how long the server asked to wait, 0 if it did not.
	RetryAfter time.Duration
	// Fix is what a person can do about it, "" if nothing useful can be said.
	Fix string
	Err error
}

// Error returns kind, status and message in one line.
func (e *Error) Error() string {
	s := string(e.Kind)
	if e.Status != 0 {
		s += " (HTTP " + strconv.Itoa(e.Status) + ")"
	}
	if e.Message != "" {
		s += ": " + e.Message
	} else if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }
