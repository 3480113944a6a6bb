package jobs

import (
	"fmt"
	"math/rand/v2"
	"time"

	"drover/output/event"
	"drover/output/fault"
	"drover/runner"
)

// The reasons with which a row's agent is ended from outside.
const (
	reasonDeadline = "job_deadline"
	reasonCancel   = "job_cancelled"
	reasonLost     = "claim_lost"
)

// verdict is what becomes of a row after one attempt.
type verdict struct {
	status event.JobItemStatus
	exit   fault.Exit
	err    *event.Err
	// again gives the row back to the queue, after delay; uncounted says that
	// the attempt does not count.
	again, uncounted bool
	delay            time.Duration
	// provider is what the attempt says about the provider.
	provider providerSign
	// hopeless says that every other row would fail in the same way.
	hopeless bool
}

// The waits between attempts at a row: a random time below a bound that doubles.
const (
	retryBase = 2 * time.Second
	retryCap  = time.Minute
)

// judge decides what becomes of a row whose agent ended with out. Only a failure
// of the provider is tried again: what a row's own agent did wrong costs money
// each time, and `drover jobs retry` is there for it.
func (c *crew) judge(attempt int, probe bool, out runner.Outcome, rep *report, limit time.Duration) verdict {
	v := verdict{exit: out.End.Exit, err: out.End.Err, provider: unknown}
	if out.Usage.Calls > 0 {
		v.provider = answered
	}
	rep.mu.Lock()
	reported, problem, reminded := rep.result != nil, rep.problem, rep.reminded
	rep.mu.Unlock()
	switch out.End.Exit {
	case fault.Success:
		if reported {
			v.status = "completed"
			return v
		}
		if problem != "" {
			return v.fail("invalid_output", fault.InvalidOutput, "invalid_output", "the result does not match the output schema: "+problem)
		}
		return v.fail("failed", fault.Incomplete, "not_reported", "worker finished without calling "+ReportTool)
	case fault.Provider:
		v.provider = failing
		if probe || attempt < c.spec.MaxAttempts {
			v.again, v.uncounted, v.delay = true, probe, backoff(attempt)
		}
		v.status = "failed"
	case fault.Auth, fault.Config, fault.Environment, fault.Usage:
		v.status, v.again, v.uncounted, v.hopeless, v.delay = "failed", true, true, true, time.Second
	case fault.Blocked, fault.NeedsInput:
		v.status = "blocked"
	case fault.LimitTurns:
		v.status = "limit"
	case fault.LimitSpend:
		v.status = "limit"
		if out.End.Reason == reasonBudget {
			v.again, v.uncounted = true, true
		}
	case fault.Timeout:
		v.status = "timeout"
		if out.End.Reason == "limit_wall_s" || out.End.Reason == reasonDeadline {
			v.err = &event.Err{Code: "timeout", Message: "worker exceeded max runtime of " + limit.String()}
		}
	case fault.InvalidOutput:
		v.status = "invalid_output"
	case fault.Interrupted, fault.Terminated, fault.ClosedOutput:
		v.status = "cancelled"
		if out.End.Reason != reasonCancel {
			v.again, v.uncounted = true, true
		}
	case fault.Incomplete:
		v.status = "failed"
		if !reported && (reminded || out.End.Reason == "empty_answer") {
			// What the reminder led to is not what is wrong.
			return v.fail("failed", fault.Incomplete, "not_reported", "worker finished without calling "+ReportTool)
		}
	default:
		v.status = "failed"
	}
	return v.named()
}

// fail sets how a row failed.
func (v verdict) fail(status event.JobItemStatus, exit fault.Exit, code, message string) verdict {
	v.status, v.exit, v.err = status, exit, &event.Err{Code: code, Message: message}
	return v
}

// named makes sure that a row which did not succeed says why.
func (v verdict) named() verdict {
	if v.err == nil {
		v.err = &event.Err{Code: v.exit.Name(), Message: "the row ended with " + v.exit.Name()}
	}
	return v
}

func backoff(attempt int) time.Duration {
	bound := retryBase
	for range attempt - 1 {
		if bound *= 2; bound >= retryCap {
			bound = retryCap
			break
		}
	}
	return bound/2 + time.Duration(rand.Int64N(int64(bound/2)))
}

// lostTooOften is the verdict on a row with which too many processes have died.
func lostTooOften(times int) verdict {
	return verdict{}.fail("failed", fault.Internal, "worker_lost", fmt.Sprintf("%d workers died while they worked on this row; it is not tried again", times))
}

// maxLost is how many workers may die with a row: one that kills its worker
// would else keep the job from its end for ever.
const maxLost = 10
