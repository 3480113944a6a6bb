package event

import "encoding/json"

// This file holds the small values that events are made of: enumerations,
// each a string type whose values the schema lists, and shared objects.

// RunStatus is the one status of a run.
type RunStatus string

// SessionStatus is how a session ended: completed, failed, interrupted or closed.
type SessionStatus string

// TurnInput is what a turn answers: prompt, steer, tool_results,
// agent_message, check, retry or resume.
type TurnInput string

// TurnStatus is how a turn ended: completed, failed or interrupted.
type TurnStatus string

// Role is who speaks: user, assistant or system.
type Role string

// Phase is commentary (calls follow) or final.
type Phase string

// ToolStatus is the state of a call.
type ToolStatus string

// The states of a call, in the order in which they are reached.
const (
	StatusPending    ToolStatus = "pending"
	StatusAwaiting   ToolStatus = "awaiting_approval"
	StatusRunning    ToolStatus = "running"
	StatusDone       ToolStatus = "done"
	StatusError      ToolStatus = "error"
	StatusDenied     ToolStatus = "denied"
	StatusIncomplete ToolStatus = "incomplete"
)

// IncompleteReason says why a call has no result: turn_ended, cancelled,
// timeout, limit, provider_error or crash.
type IncompleteReason string

// DecisionEffect is allow, deny, would_allow or would_deny.
type DecisionEffect string

// Decider is who decided: policy, default, grant, hook, approver, tty,
// timeout, sandbox, dry_run or yolo.
type Decider string

// CompactTrigger is auto or manual.
type CompactTrigger string

// InputKind is what is asked for: question, elicitation or permission.
type InputKind string

// Layer is where a rule comes from: managed, flag, user, project or builtin.
type Layer string

// Scope is how long a yes lasts: once, session or always.
type Scope string

// HookOutcome is how a hook ended: ok, blocked, error or timeout.
type HookOutcome string

// HookDecision is what a hook said about a call: allow, deny, ask, defer or
// none.
type HookDecision string

// Stream is stdout, stderr or tty.
type Stream string

// Encoding is utf-8 or base64.
type Encoding string

// FileKind is add, modify, delete or rename.
type FileKind string

// CostBasis says where a cost comes from: reported, estimated or unknown.
type CostBasis string

// PromptSource is arg, file, stdin, recipe, job or resume.
type PromptSource string

// LimitScope is run, session, item or tool.
type LimitScope string

// NoticeLevel is info or warning.
type NoticeLevel string

// WaitingOn is provider, tool, approval, input, lock, rate_limit or none.
type WaitingOn string

// PlanStatus is pending, in_progress, completed or cancelled.
type PlanStatus string

// Usage are token counts summed over provider calls.
type Usage struct {
	InputTokens       int64 `json:"input_tokens"`
	OutputTokens      int64 `json:"output_tokens"`
	CachedInputTokens int64 `json:"cached_input_tokens,omitempty"`
	CacheWriteTokens  int64 `json:"cache_write_tokens,omitempty"`
	ReasoningTokens   int64 `json:"reasoning_tokens,omitempty"`
	// Calls counts provider calls that answered, Retries those that had to be
	// tried again.
	Calls   int `json:"calls,omitempty"`
	Retries int `json:"retries,omitempty"`
	// Estimated is true when at least one count is drover's own estimate.
	Estimated bool `json:"estimated,omitempty"`
}

// Add adds v to u.
func (u *Usage) Add(v Usage) {
	u.InputTokens += v.InputTokens
	u.OutputTokens += v.OutputTokens
	u.CachedInputTokens += v.CachedInputTokens
	u.CacheWriteTokens += v.CacheWriteTokens
	u.ReasoningTokens += v.ReasoningTokens
	u.Calls += v.Calls
	u.Retries += v.Retries
	u.Estimated = u.Estimated || v.Estimated
}

// Limits are the budgets in force; absent means none.
type Limits struct {
	Turns       int     `json:"turns,omitempty"`
	ToolCalls   int     `json:"tool_calls,omitempty"`
	Tokens      int64   `json:"tokens,omitempty"`
	CostUSD     float64 `json:"cost_usd,omitempty"`
	WallS       float64 `json:"wall_s,omitempty"`
	IdleS       float64 `json:"idle_s,omitempty"`
	ToolS       float64 `json:"tool_s,omitempty"`
	Denials     int     `json:"denials,omitempty"`
	Agents      int     `json:"agents,omitempty"`
	AgentDepth  int     `json:"agent_depth,omitempty"`
	OutputBytes int64   `json:"output_bytes,omitempty"`
}

// Artifact is a file beside the session that holds what a line could not.
type Artifact struct {
	Path      string `json:"path"`
	Bytes     int64  `json:"bytes"`
	SHA256    string `json:"sha256,omitempty"`
	MediaType string `json:"media_type,omitempty"`
}

// FileRef is a file that steers a run, by the hash of its bytes.
type FileRef struct {
	Path   string `json:"path"`
	Layer  Layer  `json:"layer,omitempty"`
	SHA256 string `json:"sha256,omitempty"`
}

// PolicyRef is the policy in force.
type PolicyRef struct {
	Default string    `json:"default"`
	OnAsk   string    `json:"on_ask,omitempty"`
	OnDeny  string    `json:"on_deny,omitempty"`
	SHA256  string    `json:"sha256"`
	Layers  []FileRef `json:"layers,omitempty"`
	Preset  string    `json:"preset,omitempty"`
}

// Sandbox is what bounds allowed actions: the mode asked for, the level
// reached, and whether commands have the network.
type Sandbox struct {
	Mode    string `json:"mode"`
	Level   string `json:"level"`
	Network bool   `json:"network"`
}

// Grant is an answer that holds for more than one call, kept as the rule that
// was approved.
type Grant struct {
	// Rule is a rule as it stands in a policy file.
	Rule          json.RawMessage `json:"rule"`
	Scope         Scope           `json:"scope"`
	SessionID     string          `json:"session_id,omitempty"`
	CorrelationID string          `json:"correlation_id,omitempty"`
}

// Denial is one refused call.
type Denial struct {
	ToolCallID    string  `json:"tool_call_id"`
	ToolName      string  `json:"tool_name"`
	SessionID     string  `json:"session_id,omitempty"`
	DecidedBy     Decider `json:"decided_by"`
	RuleID        string  `json:"rule_id,omitempty"`
	Reason        string  `json:"reason,omitempty"`
	CorrelationID string  `json:"correlation_id,omitempty"`
	// Counts says whether the refusal changes the exit code (on_deny).
	Counts bool `json:"counts"`
}

// SandboxRefusal is something that the sandbox seems to have refused inside an
// allowed command: an inference from what the command printed.
type SandboxRefusal struct {
	ToolCallID string `json:"tool_call_id"`
	ToolName   string `json:"tool_name"`
	SessionID  string `json:"session_id,omitempty"`
	// Access is read, write or connect, Target the path or the host; both are
	// empty if unknown.
	Access string `json:"access,omitempty"`
	Target string `json:"target,omitempty"`
	Reason string `json:"reason"`
	// Counts says whether it changes the exit code (on_sandbox_refusal).
	Counts bool `json:"counts"`
}

// DecisionPart is one judged part of a call.
type DecisionPart struct {
	Action    string  `json:"action"`
	Effect    string  `json:"effect"`
	RuleID    string  `json:"rule_id,omitempty"`
	DecidedBy Decider `json:"decided_by,omitempty"`
}

// Err is an error inside another event.
type Err struct {
	Code       string `json:"code"`
	Message    string `json:"message"`
	Fix        string `json:"fix,omitempty"`
	Retryable  bool   `json:"retryable,omitempty"`
	HTTPStatus int    `json:"http_status,omitempty"`
}

// PlanItem is one step of a plan.
type PlanItem struct {
	ID     string     `json:"id,omitempty"`
	Text   string     `json:"text"`
	Status PlanStatus `json:"status"`
}

// ChangedFile is a file that the run changed, in run.finished.
type ChangedFile struct {
	Path string   `json:"path"`
	Kind FileKind `json:"kind"`
}

// CheckResult is the last outcome of one check command.
type CheckResult struct {
	Command  string `json:"command"`
	ExitCode int    `json:"exit_code"`
	Passed   bool   `json:"passed"`
}
