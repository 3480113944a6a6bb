package tools

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"
)

// The bounds of the table of sessions.
const (
	// maxSessions is how many commands may be open; one more evicts another.
	maxSessions = 64
	// protectedSessions are never evicted: those used last.
	protectedSessions = 8
	// manySessions is the number from which the model is warned.
	manySessions = 60
	// Session ids lie in this range, ends included.
	minSessionID, maxSessionID = 1000, 99_999
)

// defaultMaxPoll is the longest wait of a poll where nothing else is set.
const defaultMaxPoll = 5 * time.Minute

// Sessions are the commands of one agent that outlive their call, by their
// session id. They are safe for concurrent use.
type Sessions struct {
	// MaxPoll bounds how long write_stdin waits for output without input; 0 is
	// five minutes, and less than five seconds counts as these. It is set before
	// the first use.
	MaxPoll time.Duration

	ctx  context.Context
	stop context.CancelFunc
	// live are the commands that are not over yet, also those that have left the
	// table.
	live sync.WaitGroup

	mu     sync.Mutex
	closed bool
	// table is every open session; a reserved id has none yet.
	table map[int]*openSession
	uses  uint64
}

// openSession is a command in the table.
type openSession struct {
	*running
	// evict ends the command.
	evict context.CancelFunc
	// used is the number of the latest use; a greater one is more recent.
	used uint64
	// calls are waiting for it right now. It rests when there are none.
	calls int
}

// errSessionsClosed is the answer to whoever starts a command when the run ends.
var errSessionsClosed = errors.New("start command: the run ends")

// NewSessions returns an empty table. The end of ctx ends the commands.
func NewSessions(ctx context.Context) *Sessions {
	s := &Sessions{table: map[int]*openSession{}}
	s.ctx, s.stop = context.WithCancel(ctx)
	return s
}

// Close ends all commands at once, TERM, grace, KILL, and returns when their
// last events are out. Nothing can be started afterwards.
func (s *Sessions) Close() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.stop()
	s.live.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.table)
}

// start starts a command that may outlive its call, under an id that is
// reserved for it. Whoever calls it keeps the id with open or gives it back with
// drop.
func (s *Sessions) start(c command, env Env) (id int, opened *openSession, err error) {
	if id, err = s.reserve(); err != nil {
		return 0, nil, err
	}
	ctx, cancel := context.WithCancel(s.ctx)
	r, err := c.start(ctx, env, func() {
		cancel()
		s.live.Done()
	})
	if err != nil {
		cancel()
		s.drop(id)
		s.live.Done()
		return 0, nil, err
	}
	return id, &openSession{running: r, evict: cancel}, nil
}

// reserve takes a free id, and counts a command that is about to live.
func (s *Sessions) reserve() (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return 0, errSessionsClosed
	}
	for {
		id := minSessionID + rand.IntN(maxSessionID-minSessionID+1)
		if _, taken := s.table[id]; !taken {
			s.table[id] = nil
			s.live.Add(1)
			return id, nil
		}
	}
}

// open puts a command into the table, for the call that has started it.
func (s *Sessions) open(id int, opened *openSession) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.uses++
	opened.used, opened.calls = s.uses, 1
	s.table[id] = opened
}

// rest says that a call waits for the session no longer, and returns how many
// are open and rest. If there are too many, one of them is ended, in the
// background. Those that a call waits for are never too many: there are as many
// as the model has asked for, and it would not know why one was ended.
func (s *Sessions) rest(opened *openSession) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	opened.calls--
	if victim := s.victim(); victim != 0 {
		s.table[victim].evict()
		delete(s.table, victim)
	}
	return s.resting()
}

func (s *Sessions) resting() int {
	n := 0
	for _, o := range s.table {
		if o != nil && o.calls == 0 {
			n++
		}
	}
	return n
}

// victim is the id of the session that must go because there are too many, 0 if
// none: of those that rest and were not used lately, the one used longest ago
// that has ended, or else that one which runs.
func (s *Sessions) victim() int {
	if s.resting() <= maxSessions {
		return 0
	}
	var ids []int
	for id, o := range s.table {
		if o != nil {
			ids = append(ids, id)
		}
	}
	slices.SortFunc(ids, func(a, b int) int { return cmp.Compare(s.table[a].used, s.table[b].used) })
	ids = slices.DeleteFunc(ids[:len(ids)-protectedSessions], func(id int) bool { return s.table[id].calls > 0 })
	for _, id := range ids {
		if s.table[id].exited() {
			return id
		}
	}
	if len(ids) == 0 {
		return 0
	}
	return ids[0]
}

// use returns a session for a call that will wait for it, until rest; nil if
// there is none.
func (s *Sessions) use(id int) *openSession {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	opened := s.table[id]
	if opened != nil {
		s.uses++
		opened.used = s.uses
		opened.calls++
	}
	return opened
}

// drop takes an id out of the table.
func (s *Sessions) drop(id int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.table, id)
}

// pollLimit is the longest wait without input.
func (s *Sessions) pollLimit() time.Duration {
	if s.MaxPoll == 0 {
		return defaultMaxPoll
	}
	return max(s.MaxPoll, minPoll)
}

// crowded warns the model before sessions are evicted; it is empty while there
// are few.
func crowded(open int) string {
	if open < manySessions {
		return ""
	}
	return fmt.Sprintf("Warning: %d command sessions are open and at most %d should be; let old ones end, or the least used are ended for you.", open, manySessions)
}

// wait returns when the command is over, the time is up or ctx ends. A command
// that has ended just in time is awaited until nothing of it is left, and so is
// one that ends because the run does.
func (o *openSession) wait(ctx context.Context, s *Sessions, deadline <-chan time.Time) {
	select {
	case <-o.over:
		return
	case <-deadline:
	case <-ctx.Done():
	}
	if o.exited() || s.ctx.Err() != nil {
		<-o.over
	}
}

// report collects what there is to tell. A session whose end is told is closed.
func (o *openSession) report(s *Sessions, id int) CommandResult {
	res := o.collect()
	if res.over {
		s.drop(id)
		return res
	}
	res.session = id
	return res
}
