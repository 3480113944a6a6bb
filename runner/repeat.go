package runner

import (
	"crypto/sha256"
	"fmt"
	"sync"

	"drover/output/event"
	"drover/output/fault"
)

// How many identical calls with identical results in a row are one too many:
// from warnRepeats on the model is told, at stopRepeats the run ends. Broken
// calls end it sooner, because a model that cannot write JSON does not recover.
const (
	warnRepeats = 5
	stopRepeats = 12
	stopBroken  = 3
)

// repeats notices a model that goes round in circles.
type repeats struct {
	mu     sync.Mutex
	last   [sha256.Size]byte
	count  int
	broken int
}

// note counts a call with its result and adds a remark to the text when it is
// the same as the ones before.
func (r *repeats) note(c *call, text string) string {
	key := sha256.Sum256([]byte(c.name + "\x00" + c.input.Text + "\x00" + text))
	r.mu.Lock()
	defer r.mu.Unlock()
	if key != r.last {
		r.last, r.count = key, 1
		return text
	}
	r.count++
	if r.count < warnRepeats {
		return text
	}
	return text + fmt.Sprintf("\n\n[drover: this call has been made %d times with the same result; "+
		"do something else, or give the final answer. The run ends at %d.]", r.count, stopRepeats)
}

// stop ends the run when the circle does not open.
func (r *repeats) stop() *Stop {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.broken >= stopBroken:
		return &Stop{Exit: fault.Model, Reason: "invalid_calls", Err: &event.Err{
			Code: "invalid_calls", Message: fmt.Sprintf("the model sent %d calls in a row whose arguments are no JSON", r.broken),
			Fix: "use a model that can call tools",
		}}
	case r.count >= stopRepeats:
		return &Stop{Exit: fault.Incomplete, Reason: "loop", Err: &event.Err{
			Code: "loop", Message: fmt.Sprintf("the model made the same call %d times with the same result", r.count),
		}}
	}
	return nil
}
