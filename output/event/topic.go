package event

// Topic groups event types for subscribers inside the process. The stream
// merges all topics; seq is the only order between them.
type Topic string

// The topics.
const (
	TopicAll            Topic = "*"
	TopicRun            Topic = "run"
	TopicText           Topic = "text"
	TopicToolCalls      Topic = "tool_calls"
	TopicApprovals      Topic = "approvals"
	TopicTerminalStream Topic = "terminal_stream"
	TopicJobs           Topic = "jobs"
	TopicPlumbing       Topic = "plumbing"
)

// TopicOf returns the topic of a body.
func TopicOf(b Body) Topic {
	switch b.(type) {
	case RunStartedEvent, RunFinishedEvent, SessionStartedEvent, SessionFinishedEvent,
		TurnStartedEvent, TurnFinishedEvent:
		return TopicRun
	case MessageDeltaEvent, MessageEvent, ReasoningDeltaEvent, ReasoningEvent:
		return TopicText
	case ToolCallStartEvent, ToolCallArgsDeltaEvent, ToolCallEvent, ToolStatusEvent,
		ToolResultEvent, ToolIncompleteEvent, FileChangedEvent, PlanUpdatedEvent, GoalUpdatedEvent:
		return TopicToolCalls
	case ToolDecisionEvent, ToolApprovalRequestEvent, ToolApprovalResponseEvent, InputRequestedEvent, InputResolvedEvent:
		return TopicApprovals
	case TerminalNewRunningEvent, TerminalAppendStringEvent, TerminalInputEvent, TerminalCompletedEvent:
		return TopicTerminalStream
	}
	if isJob(b) {
		return TopicJobs
	}
	return TopicPlumbing
}

func isJob(b Body) bool {
	switch b.(type) {
	case JobStartedEvent, JobItemStartedEvent, JobItemFinishedEvent, JobProgressEvent, JobFinishedEvent:
		return true
	}
	return false
}

// LevelOf returns the lowest level of a sink that gets the body.
func LevelOf(b Body) Level {
	switch e := b.(type) {
	case ReasoningDeltaEvent, TerminalInputEvent, HeartbeatEvent:
		return Full
	case MessageDeltaEvent, ReasoningEvent, ToolCallStartEvent, ToolCallArgsDeltaEvent,
		TerminalNewRunningEvent, TerminalAppendStringEvent, UsageEvent, JobProgressEvent:
		return Default
	case ToolDecisionEvent:
		if e.Effect == "deny" {
			return Core
		}
		return Default
	case HookFinishedEvent:
		if e.Outcome == "blocked" {
			return Core
		}
		return Default
	case NoticeEvent:
		if e.Level == "warning" {
			return Core
		}
		return Default
	}
	return Core
}
