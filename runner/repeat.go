package runner

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"sync"

	"drover/output/event"
	"drover/output/fault"
)

// How many identical calls with identical results in a row are one too many:
// from DefaultLoopWarn on the model is told, at DefaultLoopStop the run ends.
// Two or three calls that alternate count as often as they come together. Broken
// calls end it sooner, because a model that cannot write JSON does not recover.
const (
	DefaultLoopWarn = 5
	DefaultLoopStop = 12
	stopBroken      = 3
	// maxPeriod is how many calls may alternate and still be seen as one circle.
	maxPeriod = 3
)

// repeats notices a model that goes round in circles.
type repeats struct {
	mu sync.Mutex
	// warnAt and stopAt are the limits; 0 is the default.
	warnAt, stopAt int
	// tail are the latest calls with their results, the newest last: as many as
	// the longest circle that ends a run has.
	tail [][sha256.Size]byte
	// denied counts refusals of the same call, whatever comes between.
	denied map[[sha256.Size]byte]int
	// end is the stop that the circles so far have earned.
	end    *Stop
	broken int
}

func (r *repeats) limits() (warn, stop int) {
	warn, stop = r.warnAt, r.stopAt
	if warn == 0 {
		warn = DefaultLoopWarn
	}
	if stop == 0 {
		stop = DefaultLoopStop
	}
	return warn, stop
}

// note counts a call with its result and adds a remark to the text when it is
// the same as the ones before.
func (r *repeats) note(c *call, text string) string {
	if c.polls() {
		return text
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	warn, stop := r.limits()
	r.tail = append(r.tail, sha256.Sum256([]byte(c.name+"\x00"+c.input.Text+"\x00"+text)))
	if most := maxPeriod * max(stop, 1); len(r.tail) > most {
		r.tail = r.tail[len(r.tail)-most:]
	}
	for period := 1; period <= maxPeriod; period++ {
		rounds := r.rounds(period)
		if rounds*period < warn || rounds < 2 || period > 1 && rounds < minRounds {
			continue
		}
		if rounds*period >= stop {
			r.end = loopStop(period, rounds)
		}
		what := fmt.Sprintf("this call has been made %d times with the same result", rounds)
		if period > 1 {
			what = fmt.Sprintf("these %d calls have alternated %d times with the same results", period, rounds)
		}
		return text + "\n\n[drover: " + what + "; do something else, or give the final answer. " +
			fmt.Sprintf("The run ends at %d.]", (stop+period-1)/period)
	}
	return text
}

// minRounds is how often calls must have alternated before it is a circle.
const minRounds = 3

// rounds is how often the last period calls have come one after the other at the
// end of the tail.
func (r *repeats) rounds(period int) int {
	n := 0
	for len(r.tail) >= (n+1)*period {
		for i := range period {
			if r.tail[len(r.tail)-1-n*period-i] != r.tail[len(r.tail)-1-i] {
				return n
			}
		}
		n++
	}
	return n
}

func loopStop(period, rounds int) *Stop {
	if period == 1 {
		return &Stop{Exit: fault.Incomplete, Reason: "loop", Err: &event.Err{
			Code: "loop", Message: fmt.Sprintf("the model made the same call %d times with the same result", rounds),
		}}
	}
	return &Stop{Exit: fault.Incomplete, Reason: "loop_alternating", Err: &event.Err{
		Code: "loop_alternating", Message: fmt.Sprintf("the model made the same %d calls in turn, %d times, with the same results", period, rounds),
	}}
}

// noteDenied counts a refusal and adds a remark to the text when the same call
// was refused before.
func (r *repeats) noteDenied(c *call, text string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, stop := r.limits()
	if r.denied == nil {
		r.denied = map[[sha256.Size]byte]int{}
	}
	key := sha256.Sum256([]byte(c.name + "\x00" + c.input.Text))
	r.denied[key]++
	n := r.denied[key]
	if n < 2 {
		return text
	}
	if n >= max(2, stop/2) {
		r.end = &Stop{Exit: fault.Incomplete, Reason: "loop_denied", Err: &event.Err{
			Code: "loop_denied", Message: fmt.Sprintf("the model made the same call %d times although it is refused", n),
			Fix: "allow the call in the policy, or tell the agent in the prompt how to do without it",
		}}
	}
	return text + fmt.Sprintf("\n\n[drover: this call has been refused %d times; it will not be allowed. Do without it, or say in the final answer what is missing.]", n)
}

// polls tells whether the call only waits for a command that is still running:
// doing that again and again is no circle.
func (c *call) polls() bool {
	if c.name != "write_stdin" || c.exitCode != nil {
		return false
	}
	var in struct {
		Chars string `json:"chars"`
	}
	return json.Unmarshal([]byte(c.input.Text), &in) == nil && in.Chars == ""
}

// stop ends the run when the circle does not open.
func (r *repeats) stop() *Stop {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.broken >= stopBroken {
		return &Stop{Exit: fault.Model, Reason: "invalid_calls", Err: &event.Err{
			Code: "invalid_calls", Message: fmt.Sprintf("the model sent %d calls in a row whose arguments are no JSON", r.broken),
			Fix: "use a model that can call tools",
		}}
	}
	return r.end
}
