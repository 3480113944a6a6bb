package model

import (
	"context"
	"fmt"
	"iter"
	"path"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/bmatcuk/doublestar/v4"
)

// The script model plays a fixed conversation from a file, streamed like a real
// one: every line of the file is one model response. It is the offline default
// of tests and examples, and follows the same contract as every provider.
//
// Each session has a cursor of its own. A session that is seen for the first
// time starts at the first line of its agent; when a root session brings a
// history along (it was resumed), it starts after the responses in there. A
// line is used up when it is played, also when it is an error: the retry gets
// the next line.

// rootAgent is the path of the agent that lines without a glob belong to.
const rootAgent = "/root"

// defaultChunk is how many bytes a delta carries: few enough that streaming can
// be seen, and nothing in a short answer depends on it.
const defaultChunk = 16

// script is the Provider. It is read once and never changes but for sessions.
type script struct {
	file  string
	lines []scriptLine
	// ids are the call ids that the file gives itself; counted ones avoid them.
	ids map[string]bool

	mu       sync.Mutex
	sessions map[string]*scriptSession
}

// scriptSession is where one session stands.
type scriptSession struct {
	mu sync.Mutex
	// begun says that next and calls are set.
	begun bool
	// next indexes the first line that this session has not passed.
	next int
	// calls is the highest N of the ids call_N in this session.
	calls int
	// captured are the values of capture, by name.
	captured map[string]string
}

// scriptTurn is a line made ready to be streamed: values filled in, ids given.
type scriptTurn struct {
	*scriptLine
	text, reasoning string
	calls           []scriptCall
	failure         *Error
}

// openScript reads the script file at path. Its errors are *fault.Error with
// the code script_invalid.
func openScript(path string) (Provider, error) {
	lines, err := loadScript(path)
	if err != nil {
		return nil, err
	}
	p := &script{file: path, lines: lines, ids: map[string]bool{}, sessions: map[string]*scriptSession{}}
	for i := range lines {
		for _, c := range lines[i].calls {
			if c.id != "" {
				p.ids[c.id] = true
			}
		}
	}
	return p, nil
}

// scriptValues is the context key of WithScriptValues.
type scriptValues struct{}

// WithScriptValues returns a context in which the script model fills in
// ${name} with values[name] too; a value captured by the script comes first.
// List jobs pass the row's values this way. The map must not change afterwards.
func WithScriptValues(ctx context.Context, values map[string]string) context.Context {
	return context.WithValue(ctx, scriptValues{}, values)
}

// Name returns "script".
func (p *script) Name() string { return "script" }

// Stream plays the session's next line.
func (p *script) Stream(ctx context.Context, req *Request) iter.Seq2[Delta, error] {
	return func(yield func(Delta, error) bool) {
		turn, failed := p.take(ctx, req)
		if failed == nil && turn.delay > 0 {
			failed = waitScript(ctx, turn.delay)
		}
		if failed != nil {
			yield(Delta{}, failed)
			return
		}
		turn.stream(ctx, yield)
	}
}

// take moves the session's cursor past its next line and returns that line,
// ready to be streamed.
func (p *script) take(ctx context.Context, req *Request) (*scriptTurn, *Error) {
	s := p.session(req.SessionID)
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.begun {
		p.begin(s, req)
	}
	at := p.find(s.next, req.Agent)
	if at == len(p.lines) {
		return nil, &Error{Kind: ErrScriptEnded, Message: p.endedMessage(req.Agent)}
	}
	l := &p.lines[at]
	if failed := s.match(l, req.Items); failed != nil {
		return nil, failed
	}
	s.next = at + 1
	given, _ := ctx.Value(scriptValues{}).(map[string]string)
	return p.fill(s, l, given), nil
}

// forget drops what is known of a session that has ended.
func (p *script) forget(id string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.sessions, id)
}

func (p *script) session(id string) *scriptSession {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.sessions[id]
	if s == nil {
		s = &scriptSession{}
		p.sessions[id] = s
	}
	return s
}

// begin places the cursor of a session that is seen for the first time.
func (p *script) begin(s *scriptSession, req *Request) {
	s.begun = true
	for _, it := range req.Items {
		if n, err := strconv.Atoi(strings.TrimPrefix(it.CallID, "call_")); err == nil {
			s.calls = max(s.calls, n)
		}
	}
	if !isRoot(req.Agent) {
		// What a sub-agent finds in its history is its parent's.
		return
	}
	for _, start := range responseStarts(req.Items) {
		// A line that failed left nothing in the history.
		at := p.find(s.next, req.Agent)
		for at < len(p.lines) && (p.lines[at].failure != nil || p.lines[at].cut) {
			at = p.find(at+1, req.Agent)
		}
		if at == len(p.lines) {
			s.next = at
			return
		}
		s.next = at + 1
		// The line was played, whether it still matches or not; what it captured
		// is captured again.
		_ = s.match(&p.lines[at], req.Items[:start])
	}
}

// responseStarts returns where in a history the model's responses begin. A
// response is what the model sent between two things that it did not send.
func responseStarts(items []Item) []int {
	var starts []int
	for i := range items {
		if items[i].fromModel() && (i == 0 || !items[i-1].fromModel()) {
			starts = append(starts, i)
		}
	}
	return starts
}

func (it *Item) fromModel() bool { return it.Kind != UserMessage && it.Kind != ToolResult }

// find returns the index of the agent's first line from index at on, or the
// number of lines.
func (p *script) find(at int, agent string) int {
	for at < len(p.lines) && !p.lines[at].belongsTo(agent) {
		at++
	}
	return at
}

func (p *script) endedMessage(agent string) string {
	if isRoot(agent) {
		return "the script " + p.file + " has no further line"
	}
	return "the script " + p.file + " has no further line for the agent " + agent
}

func isRoot(agent string) bool { return agent == "" || agent == rootAgent }

func (l *scriptLine) belongsTo(agent string) bool {
	if isRoot(agent) {
		return l.agent == ""
	}
	return l.agent != "" &&
		(doublestar.MatchUnvalidated(l.agent, agent) || doublestar.MatchUnvalidated(l.agent, path.Base(agent)))
}

// match tests the line's expect and capture against what was added since the
// model's previous response, and stores what is captured.
func (s *scriptSession) match(l *scriptLine, items []Item) *Error {
	if l.expect == nil && len(l.capture) == 0 {
		return nil
	}
	text := added(items)
	if l.expect != nil && !l.expect.MatchString(text) {
		return mismatch(l, "expect", l.expect.String(), text)
	}
	for _, c := range l.capture {
		m := c.re.FindStringSubmatch(text)
		if m == nil {
			return mismatch(l, "capture "+c.name, c.re.String(), text)
		}
		if s.captured == nil {
			s.captured = map[string]string{}
		}
		s.captured[c.name] = m[1]
	}
	return nil
}

// added joins what came after the model's previous response: the results in the
// order of their calls, then the messages.
func added(items []Item) string {
	first := len(items)
	for first > 0 && !items[first-1].fromModel() {
		first--
	}
	var texts []string
	results := map[string][]string{}
	for _, it := range items[first:] {
		if it.Kind == ToolResult {
			results[it.CallID] = append(results[it.CallID], it.Text)
		}
	}
	for i := range items[:first] {
		if c := &items[i]; c.Kind == ToolCall {
			texts = append(texts, results[c.CallID]...)
			delete(results, c.CallID)
		}
	}
	// Results without a call follow in their own order, then the messages.
	for _, it := range items[first:] {
		if _, left := results[it.CallID]; it.Kind == ToolResult && left {
			texts = append(texts, it.Text)
		}
	}
	for _, it := range items[first:] {
		if it.Kind == UserMessage {
			texts = append(texts, it.Text)
		}
	}
	return strings.Join(texts, "\n")
}

func mismatch(l *scriptLine, what, pattern, text string) *Error {
	return &Error{Kind: ErrScriptMismatch, Message: fmt.Sprintf(
		"%s: %s /%s/ does not match what was added since the last response: %s",
		l.where, what, pattern, quoteShort(text))}
}

// quoteShort quotes the text; of a long one it keeps both ends, because an
// error stands in the first line or in the last.
func quoteShort(text string) string {
	const end = 200
	if len(text) <= 2*end {
		return strconv.Quote(text)
	}
	head, tail := text[:end], text[len(text)-end:]
	for head != "" && !utf8.ValidString(head) && utf8.ValidString(text) {
		head = head[:len(head)-1]
	}
	for tail != "" && !utf8.RuneStart(tail[0]) {
		tail = tail[1:]
	}
	return fmt.Sprintf("%q … (%d bytes) … %q", head, len(text)-len(head)-len(tail), tail)
}

// fill puts values and ids into the line.
func (p *script) fill(s *scriptSession, l *scriptLine, given map[string]string) *scriptTurn {
	value := func(name string) (string, bool) {
		if v, ok := s.captured[name]; ok {
			return v, true
		}
		v, ok := given[name]
		return v, ok
	}
	t := &scriptTurn{scriptLine: l, text: fillIn(l.text, value), reasoning: fillIn(l.reasoning, value)}
	if len(l.calls) > 0 {
		t.calls = make([]scriptCall, len(l.calls))
	}
	for i, c := range l.calls {
		if c.json && c.filled {
			c.args = fillJSON(c.args, value)
		} else if !c.json {
			c.args = fillIn(c.args, value)
		}
		for c.id == "" {
			s.calls++
			if id := "call_" + strconv.Itoa(s.calls); !p.ids[id] {
				c.id = id
			}
		}
		t.calls[i] = c
	}
	if l.failure != nil {
		failure := *l.failure
		failure.Message = fillIn(failure.Message, value)
		t.failure = &failure
	}
	return t
}

// stream yields the turn's deltas and its end.
func (t *scriptTurn) stream(ctx context.Context, yield func(Delta, error) bool) {
	limit := -1
	if t.cut {
		n := 0
		t.deltas(func(Delta) bool { n++; return true })
		limit = n / 2
	}
	going := true
	send := func(d Delta) bool {
		if ctx.Err() != nil {
			yield(Delta{}, cancelled(ctx))
			going = false
			return false
		}
		going = yield(d, nil)
		return going
	}
	if t.failure == nil || t.text != "" || t.reasoning != "" || len(t.calls) > 0 {
		if !send(Delta{Kind: Opened}) {
			return
		}
	}
	t.deltas(func(d Delta) bool {
		if limit == 0 {
			return false
		}
		limit--
		return send(d)
	})
	switch {
	case !going:
	case t.failure != nil:
		yield(Delta{}, t.failure)
	case t.cut:
		yield(Delta{}, &Error{Kind: ErrCut, Retryable: true, Message: t.where + " of the script cuts its response"})
	default:
		send(Delta{Kind: Finish, Reason: t.reason(), Usage: t.usageCopy()})
	}
}

// deltas yields what lies between Opened and the end.
func (t *scriptTurn) deltas(yield func(Delta) bool) {
	ok := pieces(t.reasoning, t.chunk, func(s string) bool {
		return yield(Delta{Kind: ReasoningDelta, Text: s})
	}) && pieces(t.text, t.chunk, func(s string) bool {
		return yield(Delta{Kind: TextDelta, Text: s})
	})
	for i := 0; ok && i < len(t.calls); i++ {
		c := &t.calls[i]
		ok = yield(Delta{Kind: CallStart, Index: i, ID: c.id, Name: c.name, Freeform: c.freeform}) &&
			pieces(c.args, t.chunk, func(s string) bool {
				return yield(Delta{Kind: CallArgs, Index: i, Text: s})
			})
	}
}

// pieces yields s in pieces of at most size bytes, or of one character where
// that is longer.
func pieces(s string, size int, yield func(string) bool) bool {
	for len(s) > size {
		n := size
		for n > 0 && !utf8.RuneStart(s[n]) {
			n--
		}
		if n == 0 {
			_, n = utf8.DecodeRuneInString(s)
		}
		if !yield(s[:n]) {
			return false
		}
		s = s[n:]
	}
	return s == "" || yield(s)
}

func (t *scriptTurn) reason() FinishReason {
	if t.finish != "" {
		return t.finish
	}
	if len(t.calls) > 0 {
		return ToolCalls
	}
	return Stop
}

// usageCopy keeps the file's numbers out of the caller's reach.
func (t *scriptTurn) usageCopy() *Usage {
	if t.usage == nil {
		return nil
	}
	u := *t.usage
	return &u
}

func waitScript(ctx context.Context, d time.Duration) *Error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return cancelled(ctx)
	}
}
