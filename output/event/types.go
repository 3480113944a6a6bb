package event

import "encoding/json"

// This file lists every event in the order of the manual. A struct's doc
// comment is its sentence there; field comments say what the name does not.
// Fields without omitempty are required in the schema.

// Run, session, turn.

// RunStartedEvent is the first line of a stream: what is about to happen, with
// hashes of everything that steers it.
type RunStartedEvent struct {
	Schema       string       `json:"schema"`
	Product      string       `json:"product"`
	Version      string       `json:"version"`
	Cwd          string       `json:"cwd"`
	Model        string       `json:"model"`
	Provider     string       `json:"provider"`
	Policy       PolicyRef    `json:"policy"`
	Limits       Limits       `json:"limits"`
	Capabilities []string     `json:"capabilities"`
	PromptSource PromptSource `json:"prompt_source,omitempty"`
	Sandbox      *Sandbox     `json:"sandbox,omitempty"`
	// Grants are answers of earlier runs of the session that still hold.
	Grants       []Grant           `json:"grants,omitempty"`
	Tools        []string          `json:"tools,omitempty"`
	Instructions []FileRef         `json:"instructions,omitempty"`
	ResumedFrom  string            `json:"resumed_from,omitempty"`
	DryRun       bool              `json:"dry_run,omitempty"`
	Labels       map[string]string `json:"labels,omitempty"`
}

// RunFinishedEvent is the last line of a stream, exactly one, on every path.
type RunFinishedEvent struct {
	Status           RunStatus        `json:"status"`
	ExitCode         int              `json:"exit_code"`
	Reason           string           `json:"reason"`
	Usage            Usage            `json:"usage"`
	DurationMS       int64            `json:"duration_ms"`
	Turns            int              `json:"turns"`
	Lines            int64            `json:"lines"`
	Denials          []Denial         `json:"denials"`
	Message          string           `json:"message,omitempty"`
	StructuredOutput json.RawMessage  `json:"structured_output,omitempty"`
	StructuredError  string           `json:"structured_output_error,omitempty"`
	CostUSD          *float64         `json:"cost_usd,omitempty"`
	CostBasis        CostBasis        `json:"cost_basis,omitempty"`
	UsageByModel     map[string]Usage `json:"usage_by_model,omitempty"`
	APIDurationMS    int64            `json:"api_duration_ms,omitempty"`
	ToolCalls        map[string]int   `json:"tool_calls,omitempty"`
	Incomplete       []string         `json:"incomplete,omitempty"`
	SandboxRefusals  []SandboxRefusal `json:"sandbox_refusals,omitempty"`
	FilesChanged     []ChangedFile    `json:"files_changed,omitempty"`
	Checks           []CheckResult    `json:"checks,omitempty"`
	Redactions       int64            `json:"redactions,omitempty"`
	Artifacts        []Artifact       `json:"artifacts,omitempty"`
	Resume           string           `json:"resume,omitempty"`
	Error            *Err             `json:"error,omitempty"`
	// Truncated says that lists or texts were cut to fit the line.
	Truncated bool `json:"truncated,omitempty"`
}

// SessionStartedEvent opens a session; a sub-agent is a child session.
type SessionStartedEvent struct {
	Resumed             bool     `json:"resumed"`
	ForkedFrom          string   `json:"forked_from,omitempty"`
	SpawnedByToolCallID string   `json:"spawned_by_tool_call_id,omitempty"`
	Name                string   `json:"name,omitempty"`
	Role                string   `json:"role,omitempty"`
	Model               string   `json:"model,omitempty"`
	Cwd                 string   `json:"cwd,omitempty"`
	Tools               []string `json:"tools,omitempty"`
}

// SessionFinishedEvent holds the totals of one session, children excluded.
type SessionFinishedEvent struct {
	Status     SessionStatus `json:"status"`
	Usage      Usage         `json:"usage"`
	CostUSD    *float64      `json:"cost_usd,omitempty"`
	DurationMS int64         `json:"duration_ms,omitempty"`
	ToolCalls  int           `json:"tool_calls,omitempty"`
	Message    string        `json:"message,omitempty"`
}

// TurnStartedEvent begins one model response with its calls.
type TurnStartedEvent struct {
	Input TurnInput `json:"input"`
}

// TurnFinishedEvent ends a turn; after it no call of the turn is open.
type TurnFinishedEvent struct {
	Status     TurnStatus `json:"status"`
	StopReason string     `json:"stop_reason,omitempty"`
	Usage      *Usage     `json:"usage,omitempty"`
	Error      *Err       `json:"error,omitempty"`
}

// Text.

// MessageDeltaEvent is a chunk of the assistant's text.
type MessageDeltaEvent struct {
	MessageID string `json:"message_id"`
	Delta     string `json:"delta"`
}

// MessageEvent is a whole text, authoritative over its deltas. The prompt is
// the first one, with role user.
type MessageEvent struct {
	MessageID string    `json:"message_id"`
	Role      Role      `json:"role"`
	Text      string    `json:"text"`
	Phase     Phase     `json:"phase,omitempty"`
	Truncated bool      `json:"truncated,omitempty"`
	Artifact  *Artifact `json:"artifact,omitempty"`
}

// ReasoningDeltaEvent is a chunk of the model's reasoning.
type ReasoningDeltaEvent struct {
	MessageID string `json:"message_id"`
	Delta     string `json:"delta"`
}

// ReasoningEvent is a whole reasoning text or summary.
type ReasoningEvent struct {
	MessageID string `json:"message_id"`
	Text      string `json:"text"`
	Truncated bool   `json:"truncated,omitempty"`
}

// Tool calls.

// ToolCallStartEvent says that the model has begun a call: it is pending.
type ToolCallStartEvent struct {
	ToolCallID string `json:"tool_call_id"`
	ToolName   string `json:"tool_name"`
	Index      int    `json:"index"`
	ServerName string `json:"server_name,omitempty"`
}

// ToolCallArgsDeltaEvent is raw argument text as it arrives.
type ToolCallArgsDeltaEvent struct {
	ToolCallID string `json:"tool_call_id"`
	Delta      string `json:"delta"`
}

// ToolCallEvent says that a call's arguments are complete. If they cannot be
// parsed, args is null and args_raw and args_error tell what came.
type ToolCallEvent struct {
	ToolCallID string          `json:"tool_call_id"`
	ToolName   string          `json:"tool_name"`
	Args       json.RawMessage `json:"args"`
	Display    string          `json:"display"`
	ServerName string          `json:"server_name,omitempty"`
	ArgsRaw    string          `json:"args_raw,omitempty"`
	ArgsError  string          `json:"args_error,omitempty"`
	// Truncated says that texts inside the arguments were cut to fit the line.
	Truncated bool      `json:"truncated,omitempty"`
	Artifact  *Artifact `json:"artifact,omitempty"`
}

// ToolDecisionEvent is the one final verdict on a call, with the rule that
// made it.
type ToolDecisionEvent struct {
	ToolCallID    string         `json:"tool_call_id"`
	ToolName      string         `json:"tool_name"`
	Effect        DecisionEffect `json:"effect"`
	DecidedBy     Decider        `json:"decided_by"`
	RuleID        string         `json:"rule_id,omitempty"`
	Layer         Layer          `json:"layer,omitempty"`
	Reason        string         `json:"reason,omitempty"`
	Scope         Scope          `json:"scope,omitempty"`
	CorrelationID string         `json:"correlation_id,omitempty"`
	// Parts are the judged parts of the call (simple commands, paths), when
	// there is more than one.
	Parts []DecisionPart `json:"parts,omitempty"`
}

// ToolApprovalRequestEvent asks whether a call may run: it is blocked until the
// answer. The session is the one that has to answer; if a sub-agent's call is
// asked about, SubagentSessionID is the blocked one and RelayPath the way from
// it to the session that answers.
type ToolApprovalRequestEvent struct {
	ToolCallID        string          `json:"tool_call_id"`
	ToolName          string          `json:"tool_name"`
	CorrelationID     string          `json:"correlation_id"`
	Args              json.RawMessage `json:"args"`
	Display           string          `json:"display,omitempty"`
	ServerName        string          `json:"server_name,omitempty"`
	SubagentSessionID string          `json:"subagent_session_id,omitempty"`
	RelayPath         []string        `json:"relay_path,omitempty"`
	RuleID            string          `json:"rule_id,omitempty"`
	Reason            string          `json:"reason,omitempty"`
	// SuggestedRules are policy rules that would allow the call, the narrowest
	// first; an answer of a longer scope names one of them.
	SuggestedRules []json.RawMessage `json:"suggested_rules,omitempty"`
	// MaxScope is the longest scope that an answer can have.
	MaxScope Scope `json:"max_scope,omitempty"`
	// Deadline is when the request is refused by itself, in RFC 3339.
	Deadline  string    `json:"deadline,omitempty"`
	Truncated bool      `json:"truncated,omitempty"`
	Artifact  *Artifact `json:"artifact,omitempty"`
}

// ToolApprovalResponseEvent is the answer to a request: who gave it, and how
// long it lasts.
type ToolApprovalResponseEvent struct {
	CorrelationID string  `json:"correlation_id"`
	Approved      bool    `json:"approved"`
	Scope         Scope   `json:"scope"`
	DecidedBy     Decider `json:"decided_by"`
	ToolCallID    string  `json:"tool_call_id,omitempty"`
	RuleID        string  `json:"rule_id,omitempty"`
	Reason        string  `json:"reason,omitempty"`
	ArgsRewritten bool    `json:"args_rewritten,omitempty"`
	// Args are the new arguments, if the answer changed them.
	Args      json.RawMessage `json:"args,omitempty"`
	WaitMS    int64           `json:"wait_ms,omitempty"`
	Truncated bool            `json:"truncated,omitempty"`
}

// ToolStatusEvent is emitted at every change of a call's state.
type ToolStatusEvent struct {
	ToolCallID string     `json:"tool_call_id"`
	ToolName   string     `json:"tool_name"`
	Status     ToolStatus `json:"status"`
	TimeoutSec float64    `json:"timeout_sec,omitempty"`
	Progress   string     `json:"progress,omitempty"`
}

// ToolResultEvent merges a result into its call: it is done, or an error.
type ToolResultEvent struct {
	ToolCallID  string          `json:"tool_call_id"`
	ToolName    string          `json:"tool_name"`
	Display     string          `json:"display"`
	IsError     bool            `json:"is_error"`
	Summary     string          `json:"summary,omitempty"`
	Content     string          `json:"content,omitempty"`
	Structured  json.RawMessage `json:"structured,omitempty"`
	Error       *Err            `json:"error,omitempty"`
	Denied      bool            `json:"denied,omitempty"`
	DurationMS  int64           `json:"duration_ms,omitempty"`
	OutputBytes int64           `json:"output_bytes,omitempty"`
	Truncated   bool            `json:"truncated,omitempty"`
	Artifact    *Artifact       `json:"artifact,omitempty"`
}

// ToolIncompleteEvent says that no result will come.
type ToolIncompleteEvent struct {
	ToolCallID  string           `json:"tool_call_id"`
	ToolName    string           `json:"tool_name"`
	Reason      IncompleteReason `json:"reason"`
	LastStatus  ToolStatus       `json:"last_status,omitempty"`
	ArgsPartial string           `json:"args_partial,omitempty"`
}

// Terminal and files.

// TerminalNewRunningEvent says that a command runs; several per call are
// possible.
type TerminalNewRunningEvent struct {
	ToolCallID  string   `json:"tool_call_id"`
	TerminalID  string   `json:"terminal_id"`
	Command     string   `json:"command"`
	Description string   `json:"description"`
	Argv        []string `json:"argv,omitempty"`
	Cwd         string   `json:"cwd,omitempty"`
	TTY         bool     `json:"tty,omitempty"`
	Background  bool     `json:"background,omitempty"`
	Sandbox     string   `json:"sandbox,omitempty"`
}

// TerminalAppendStringEvent is appended output. Bytes that are not text come
// as base64.
type TerminalAppendStringEvent struct {
	ToolCallID   string   `json:"tool_call_id"`
	TerminalID   string   `json:"terminal_id"`
	Delta        string   `json:"delta"`
	Stream       Stream   `json:"stream,omitempty"`
	Encoding     Encoding `json:"encoding,omitempty"`
	DroppedBytes int64    `json:"dropped_bytes,omitempty"`
}

// TerminalInputEvent says that something was written to a running command.
type TerminalInputEvent struct {
	ToolCallID string `json:"tool_call_id"`
	TerminalID string `json:"terminal_id"`
	// Bytes is how much was written, Text the beginning of it.
	Bytes int64  `json:"bytes"`
	Text  string `json:"text,omitempty"`
}

// TerminalCompletedEvent is a command's exit code or signal.
type TerminalCompletedEvent struct {
	ToolCallID  string    `json:"tool_call_id"`
	TerminalID  string    `json:"terminal_id"`
	IsError     bool      `json:"is_error"`
	ExitCode    *int      `json:"exit_code,omitempty"`
	Signal      string    `json:"signal,omitempty"`
	TimedOut    bool      `json:"timed_out,omitempty"`
	DurationMS  int64     `json:"duration_ms,omitempty"`
	OutputBytes int64     `json:"output_bytes,omitempty"`
	Truncated   bool      `json:"truncated,omitempty"`
	Artifact    *Artifact `json:"artifact,omitempty"`
}

// FileChangedEvent is one file effect of a call. Path is relative to the run's
// folder where the file lies below it, with forward slashes.
type FileChangedEvent struct {
	ToolCallID   string    `json:"tool_call_id"`
	Path         string    `json:"path"`
	Kind         FileKind  `json:"kind"`
	OldPath      string    `json:"old_path,omitempty"`
	Added        int       `json:"added"`
	Removed      int       `json:"removed"`
	BeforeSHA256 string    `json:"before_sha256,omitempty"`
	AfterSHA256  string    `json:"after_sha256,omitempty"`
	Diff         string    `json:"diff,omitempty"`
	Lenient      bool      `json:"lenient,omitempty"`
	Truncated    bool      `json:"truncated,omitempty"`
	Artifact     *Artifact `json:"artifact,omitempty"`
}

// Plan.

// PlanUpdatedEvent is the whole plan, replaced each time.
type PlanUpdatedEvent struct {
	Items       []PlanItem `json:"items"`
	Explanation string     `json:"explanation,omitempty"`
}

// GoalUpdatedEvent is the goal that a long session works towards, and its
// budget of tokens.
type GoalUpdatedEvent struct {
	Objective   string `json:"objective"`
	Status      string `json:"status"`
	TokenBudget int64  `json:"token_budget,omitempty"`
	TokensUsed  int64  `json:"tokens_used,omitempty"`
}

// Questions.

// InputRequestedEvent is a question to a person, by a tool or a server.
type InputRequestedEvent struct {
	CorrelationID string    `json:"correlation_id"`
	Kind          InputKind `json:"kind"`
	Prompt        string    `json:"prompt"`
	Choices       []string  `json:"choices,omitempty"`
	ToolCallID    string    `json:"tool_call_id,omitempty"`
}

// InputResolvedEvent is the outcome of a question. The answer itself is in the
// result of the call.
type InputResolvedEvent struct {
	CorrelationID string  `json:"correlation_id"`
	Answered      bool    `json:"answered"`
	DecidedBy     Decider `json:"decided_by"`
	Reason        string  `json:"reason,omitempty"`
}

// Plumbing.

// UsageEvent is one provider call.
type UsageEvent struct {
	Model             string    `json:"model"`
	InputTokens       int64     `json:"input_tokens"`
	OutputTokens      int64     `json:"output_tokens"`
	Provider          string    `json:"provider,omitempty"`
	CallID            string    `json:"call_id,omitempty"`
	CachedInputTokens int64     `json:"cached_input_tokens,omitempty"`
	CacheWriteTokens  int64     `json:"cache_write_tokens,omitempty"`
	ReasoningTokens   int64     `json:"reasoning_tokens,omitempty"`
	Estimated         bool      `json:"estimated,omitempty"`
	CostUSD           *float64  `json:"cost_usd,omitempty"`
	CostBasis         CostBasis `json:"cost_basis,omitempty"`
	LatencyMS         int64     `json:"latency_ms,omitempty"`
	TTFTMS            int64     `json:"ttft_ms,omitempty"`
	FinishReason      string    `json:"finish_reason,omitempty"`
}

// ProviderRetryEvent says that drover waits before another try.
type ProviderRetryEvent struct {
	Attempt     int    `json:"attempt"`
	DelayMS     int64  `json:"delay_ms"`
	ErrorKind   string `json:"error_kind"`
	MaxAttempts int    `json:"max_attempts,omitempty"`
	HTTPStatus  int    `json:"http_status,omitempty"`
	Message     string `json:"message,omitempty"`
	CallID      string `json:"call_id,omitempty"`
}

// ContextCompactedEvent says that the conversation was shortened, because it
// was longer than the model's window. The counts are drover's estimates.
type ContextCompactedEvent struct {
	Trigger      CompactTrigger `json:"trigger"`
	TokensBefore int64          `json:"tokens_before"`
	TokensAfter  int64          `json:"tokens_after"`
}

// LimitWarningEvent says that a budget passed its warning mark.
type LimitWarningEvent struct {
	Limit string     `json:"limit"`
	Value float64    `json:"value"`
	Max   float64    `json:"max"`
	Scope LimitScope `json:"scope,omitempty"`
}

// LimitReachedEvent says that a budget is spent; it is the reason of a later
// end.
type LimitReachedEvent struct {
	Limit string     `json:"limit"`
	Value float64    `json:"value"`
	Max   float64    `json:"max"`
	Scope LimitScope `json:"scope,omitempty"`
}

// HookFinishedEvent is the outcome of a command that watches over the run. Hook
// is its name, Event what it was started for.
type HookFinishedEvent struct {
	Hook       string       `json:"hook"`
	Event      string       `json:"event"`
	Outcome    HookOutcome  `json:"outcome"`
	ToolCallID string       `json:"tool_call_id,omitempty"`
	ExitCode   *int         `json:"exit_code,omitempty"`
	Decision   HookDecision `json:"decision,omitempty"`
	Reason     string       `json:"reason,omitempty"`
	DurationMS int64        `json:"duration_ms,omitempty"`
}

// NoticeEvent is a remark that ends nothing, with a stable code.
type NoticeEvent struct {
	Level   NoticeLevel    `json:"level"`
	Code    string         `json:"code"`
	Message string         `json:"message"`
	Details map[string]any `json:"details,omitempty"`
}

// ErrorEvent is an error with a stable code; a fatal one ends the run.
type ErrorEvent struct {
	Code      string         `json:"code"`
	Message   string         `json:"message"`
	Fatal     bool           `json:"fatal"`
	Retryable bool           `json:"retryable,omitempty"`
	Details   map[string]any `json:"details,omitempty"`
}

// HeartbeatEvent comes every 15 s of silence and says what is waited for.
type HeartbeatEvent struct {
	WaitingOn  WaitingOn `json:"waiting_on"`
	ElapsedMS  int64     `json:"elapsed_ms"`
	ToolCallID string    `json:"tool_call_id,omitempty"`
}

// Type returns "run.started".
func (RunStartedEvent) Type() string { return "run.started" }

// Type returns "run.finished".
func (RunFinishedEvent) Type() string { return "run.finished" }

// Type returns "session.started".
func (SessionStartedEvent) Type() string { return "session.started" }

// Type returns "session.finished".
func (SessionFinishedEvent) Type() string { return "session.finished" }

// Type returns "turn.started".
func (TurnStartedEvent) Type() string { return "turn.started" }

// Type returns "turn.finished".
func (TurnFinishedEvent) Type() string { return "turn.finished" }

// Type returns "message.delta".
func (MessageDeltaEvent) Type() string { return "message.delta" }

// Type returns "message".
func (MessageEvent) Type() string { return "message" }

// Type returns "reasoning.delta".
func (ReasoningDeltaEvent) Type() string { return "reasoning.delta" }

// Type returns "reasoning".
func (ReasoningEvent) Type() string { return "reasoning" }

// Type returns "tool.call.started".
func (ToolCallStartEvent) Type() string { return "tool.call.started" }

// Type returns "tool.call.args_delta".
func (ToolCallArgsDeltaEvent) Type() string { return "tool.call.args_delta" }

// Type returns "tool.call".
func (ToolCallEvent) Type() string { return "tool.call" }

// Type returns "tool.decision".
func (ToolDecisionEvent) Type() string { return "tool.decision" }

// Type returns "tool.approval.requested".
func (ToolApprovalRequestEvent) Type() string { return "tool.approval.requested" }

// Type returns "tool.approval.resolved".
func (ToolApprovalResponseEvent) Type() string { return "tool.approval.resolved" }

// Type returns "tool.status".
func (ToolStatusEvent) Type() string { return "tool.status" }

// Type returns "tool.result".
func (ToolResultEvent) Type() string { return "tool.result" }

// Type returns "tool.incomplete".
func (ToolIncompleteEvent) Type() string { return "tool.incomplete" }

// Type returns "terminal.started".
func (TerminalNewRunningEvent) Type() string { return "terminal.started" }

// Type returns "terminal.output".
func (TerminalAppendStringEvent) Type() string { return "terminal.output" }

// Type returns "terminal.input".
func (TerminalInputEvent) Type() string { return "terminal.input" }

// Type returns "terminal.completed".
func (TerminalCompletedEvent) Type() string { return "terminal.completed" }

// Type returns "file.changed".
func (FileChangedEvent) Type() string { return "file.changed" }

// Type returns "plan.updated".
func (PlanUpdatedEvent) Type() string { return "plan.updated" }

// Type returns "goal.updated".
func (GoalUpdatedEvent) Type() string { return "goal.updated" }

// Type returns "input.requested".
func (InputRequestedEvent) Type() string { return "input.requested" }

// Type returns "input.resolved".
func (InputResolvedEvent) Type() string { return "input.resolved" }

// Type returns "usage".
func (UsageEvent) Type() string { return "usage" }

// Type returns "provider.retry".
func (ProviderRetryEvent) Type() string { return "provider.retry" }

// Type returns "context.compacted".
func (ContextCompactedEvent) Type() string { return "context.compacted" }

// Type returns "limit.warning".
func (LimitWarningEvent) Type() string { return "limit.warning" }

// Type returns "limit.reached".
func (LimitReachedEvent) Type() string { return "limit.reached" }

// Type returns "hook.finished".
func (HookFinishedEvent) Type() string { return "hook.finished" }

// Type returns "notice".
func (NoticeEvent) Type() string { return "notice" }

// Type returns "error".
func (ErrorEvent) Type() string { return "error" }

// Type returns "heartbeat".
func (HeartbeatEvent) Type() string { return "heartbeat" }
