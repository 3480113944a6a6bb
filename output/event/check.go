package event

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// This file and check_call.go hold the guarantees of the stream as code. Every
// test that runs drover passes its output through them, and so does
// `drover events validate`.

// MaxLine and MaxBigLine are how long a line may be, its newline included. The
// first is what readers with Go's bufio.Scanner can take; the second is for
// the few types that carry whole texts: message, tool.call and run.finished.
const (
	MaxLine    = 64<<10 - 1
	MaxBigLine = 1 << 20
)

// maxLineOf is how long a line of the type may be.
func maxLineOf(typ string) int {
	switch typ {
	case "message", "tool.call", "run.finished", "tool.approval.requested", "job.item.finished":
		return MaxBigLine
	}
	return MaxLine
}

// CheckStream reads the stream of one run to its end and returns every
// guarantee that it breaks, each with its line.
func CheckStream(r io.Reader) []error {
	var c Checker
	var problems []error
	src := bufio.NewReaderSize(r, 64<<10)
	for {
		line, err := src.ReadBytes('\n')
		if len(line) > 0 {
			whole, ended := bytes.CutSuffix(line, []byte("\n"))
			problems = append(problems, c.Line(whole)...)
			if !ended {
				problems = append(problems, c.problem("the last line has no newline"))
			}
		}
		if errors.Is(err, io.EOF) {
			return append(problems, c.Finish()...)
		}
		if err != nil {
			return append(problems, fmt.Errorf("read stream: %w", err))
		}
	}
}

// Checker checks the lines of one run one by one. The zero value is ready.
type Checker struct {
	// Level is how much of the stream is known to be there. What a level leaves
	// out is not missed; it rises by itself when a line shows that there is
	// more.
	Level Level

	lines    int
	seq      int64
	runID    string
	started  bool
	finished *RunFinishedEvent
	// endLine is where run.finished was.
	endLine int

	sessions  map[string]*checkedSession
	calls     map[string]*checkedCall
	texts     map[seriesKey]*checkedText
	terminals map[string]*checkedTerminal
	requests  map[string]*checkedRequest
	jobs      map[string]*checkedJob
	usage     Usage
	// refused are the calls that a decision denied, in order.
	refused []string
	typ     string
	// late are problems that count only at a level that was not known yet.
	late     []error
	problems []error
}

type checkedSession struct {
	origin    Origin
	turn      int
	turnOpen  bool
	lastTurn  int
	finished  bool
	announced bool
}

type checkedText struct {
	text  strings.Builder
	ended bool
}

type checkedTerminal struct {
	callID  string
	started bool
	ended   bool
}

// Line checks the next line, given without its newline, and returns what is
// wrong with it.
func (c *Checker) Line(line []byte) []error {
	c.lines++
	c.problems = nil
	c.typ = ""
	c.check(line)
	return c.problems
}

// Finish returns what is wrong with the stream as a whole.
func (c *Checker) Finish() []error {
	c.problems = nil
	c.typ = ""
	if c.lines == 0 {
		return []error{errors.New("the stream is empty")}
	}
	if c.finished == nil {
		c.fail("the last line is not run.finished")
	}
	if c.Level >= Default {
		c.problems = append(c.problems, c.late...)
	}
	return c.problems
}

func (c *Checker) fail(format string, args ...any) {
	c.problems = append(c.problems, c.problem(format, args...))
}

// failAtDefault reports what is only wrong if the stream is no core stream.
func (c *Checker) failAtDefault(format string, args ...any) {
	c.late = append(c.late, c.problem(format, args...))
}

func (c *Checker) problem(format string, args ...any) error {
	where := fmt.Sprintf("line %d", c.lines)
	if c.typ != "" {
		where += " (" + c.typ + ")"
	}
	return fmt.Errorf("%s: %s", where, fmt.Sprintf(format, args...))
}

func (c *Checker) check(line []byte) {
	if c.finished != nil {
		c.fail("something follows run.finished")
	}
	if !c.framing(line) {
		return
	}
	e, err := Decode(line)
	if err != nil {
		c.fail("%v", err)
		return
	}
	c.typ = e.Body.Type()
	if err := Validate(line); err != nil {
		c.fail("%v", err)
	}
	if size := len(line) + 1; size > maxLineOf(c.typ) {
		c.fail("the line is %d bytes long, %d are allowed", size, maxLineOf(c.typ))
	}
	c.envelope(e)
	c.Level = max(c.Level, LevelOf(e.Body))
	if e.Replayed {
		return // history is shown again: it has its ends, but not its beginnings
	}
	c.event(e)
}

// framing checks what can be said of a line without knowing what it means.
func (c *Checker) framing(line []byte) bool {
	switch {
	case len(bytes.TrimSpace(line)) == 0:
		c.fail("the line is blank")
	case bytes.HasPrefix(line, []byte("\xef\xbb\xbf")):
		c.fail("the line begins with a byte-order mark")
	case bytes.HasSuffix(line, []byte("\r")):
		c.fail("the line ends with a carriage return")
	case bytes.Contains(line, []byte("\u2028")), bytes.Contains(line, []byte("\u2029")):
		c.fail("U+2028 or U+2029 is not escaped")
	case line[0] != '{' || line[len(line)-1] != '}':
		c.fail("the line is not one JSON object")
	default:
		if err := checkStrict(line); err != nil {
			c.fail("%v", err)
			return false
		}
		return true
	}
	return false
}

func (c *Checker) envelope(e Event) {
	if e.Seq <= c.seq {
		c.fail("seq %d follows %d", e.Seq, c.seq)
	}
	c.seq = max(c.seq, e.Seq)
	if c.runID == "" {
		c.runID = e.RunID
	}
	if e.RunID != c.runID || e.RunID == "" {
		c.fail("run_id is %q, the first line said %q", e.RunID, c.runID)
	}
	if e.SessionID == "" {
		return
	}
	if s := c.sessions[e.SessionID]; s != nil && s.announced &&
		(e.ParentSessionID != s.origin.ParentSessionID || e.Agent != s.origin.Agent) {
		c.fail("session %s has parent %q and agent %q, at its start they were %q and %q",
			e.SessionID, e.ParentSessionID, e.Agent, s.origin.ParentSessionID, s.origin.Agent)
	}
}

func (c *Checker) session(id string) *checkedSession {
	s := c.sessions[id]
	if s == nil {
		s = &checkedSession{}
		if c.sessions == nil {
			c.sessions = map[string]*checkedSession{}
		}
		c.sessions[id] = s
	}
	return s
}

func (c *Checker) event(e Event) {
	if c.lines == 1 {
		c.first(e)
	}
	switch b := e.Body.(type) {
	case RunStartedEvent:
		if c.lines > 1 {
			c.fail("it is not the first line")
		}
		c.started = true
		if major := "urn:drover:schema:events:1."; !strings.HasPrefix(b.Schema, major) {
			c.fail("the schema is %q, expected %sx", b.Schema, major)
		}
	case RunFinishedEvent:
		c.runFinished(b)
	case SessionStartedEvent:
		s := c.session(e.SessionID)
		if s.announced {
			c.fail("session %s has started before", e.SessionID)
		}
		s.announced, s.origin = true, e.Origin
	case SessionFinishedEvent:
		s := c.session(e.SessionID)
		if !s.announced || s.finished {
			c.fail("session %s is not open", e.SessionID)
		}
		if s.turnOpen {
			c.fail("turn %d of session %s is still open", s.turn, e.SessionID)
		}
		s.finished = true
	case TurnStartedEvent, TurnFinishedEvent:
		c.turn(e)
	case UsageEvent:
		c.usage.Add(Usage{
			InputTokens: b.InputTokens, OutputTokens: b.OutputTokens, CachedInputTokens: b.CachedInputTokens,
			CacheWriteTokens: b.CacheWriteTokens, ReasoningTokens: b.ReasoningTokens,
		})
	default:
		c.text(e)
		c.terminal(e)
		c.call(e)
		c.approval(e)
		c.job(e)
	}
}

func (c *Checker) first(e Event) {
	switch e.Body.(type) {
	case RunStartedEvent, RunFinishedEvent:
	default:
		c.fail("the first line is neither run.started nor a lone run.finished")
	}
}

func (c *Checker) turn(e Event) {
	s := c.session(e.SessionID)
	if !s.announced || s.finished {
		c.fail("session %s is not open", e.SessionID)
	}
	if _, ok := e.Body.(TurnStartedEvent); ok {
		switch {
		case s.turnOpen:
			c.fail("turn %d of session %s is still open", s.turn, e.SessionID)
		case e.Turn <= s.lastTurn:
			c.fail("turn %d follows turn %d", e.Turn, s.lastTurn)
		}
		s.turn, s.lastTurn, s.turnOpen = e.Turn, max(e.Turn, s.lastTurn), true
		return
	}
	if !s.turnOpen || s.turn != e.Turn {
		c.fail("turn %d of session %s is not open", e.Turn, e.SessionID)
	}
	s.turnOpen = false
	for _, id := range c.openCalls(e.SessionID) {
		c.fail("call %s is still open", id)
	}
	for key, t := range c.texts {
		if key.session == e.SessionID && !t.ended && (key.kind == seriesMessage || key.kind == seriesReasoning) {
			c.fail("the %s %s has no whole", key.kind, key.id)
		}
	}
}

// text checks that deltas come before their whole and are equal to it.
func (c *Checker) text(e Event) {
	series := func(kind, id string) *checkedText {
		key := seriesKey{session: e.SessionID, kind: kind, id: id}
		t := c.texts[key]
		if t == nil {
			t = &checkedText{}
			if c.texts == nil {
				c.texts = map[seriesKey]*checkedText{}
			}
			c.texts[key] = t
		}
		return t
	}
	delta := func(t *checkedText, s string) {
		if t.ended {
			c.fail("a delta follows the whole text")
		}
		t.text.WriteString(s)
	}
	whole := func(t *checkedText, s string, cut bool) {
		if t.ended {
			c.fail("the whole text came before")
		}
		if joined := t.text.String(); joined != "" && joined != s && !cut {
			c.fail("the joined deltas are not the whole: %s", difference(joined, s))
		}
		t.ended = true
		t.text.Reset()
	}
	switch b := e.Body.(type) {
	case MessageDeltaEvent:
		delta(series(seriesMessage, b.MessageID), b.Delta)
	case MessageEvent:
		whole(series(seriesMessage, b.MessageID), b.Text, b.Truncated)
	case ReasoningDeltaEvent:
		delta(series(seriesReasoning, b.MessageID), b.Delta)
	case ReasoningEvent:
		whole(series(seriesReasoning, b.MessageID), b.Text, b.Truncated)
	}
}

// difference shows where two texts part.
func difference(a, b string) string {
	i := 0
	for i < len(a) && i < len(b) && a[i] == b[i] {
		i++
	}
	near := func(s string) string { return fmt.Sprintf("%q", s[max(0, i-10):min(len(s), i+20)]) }
	return fmt.Sprintf("at byte %d, %s and %s", i, near(a), near(b))
}

func (c *Checker) terminal(e Event) {
	get := func(id, callID string) *checkedTerminal {
		t := c.terminals[id]
		if t == nil {
			t = &checkedTerminal{callID: callID}
			if c.terminals == nil {
				c.terminals = map[string]*checkedTerminal{}
			}
			c.terminals[id] = t
		}
		return t
	}
	switch b := e.Body.(type) {
	case TerminalNewRunningEvent:
		t := get(b.TerminalID, b.ToolCallID)
		if t.started || t.ended {
			c.fail("terminal %s has started before", b.TerminalID)
		}
		t.started = true
	case TerminalAppendStringEvent:
		t := get(b.TerminalID, b.ToolCallID)
		if !t.started || t.ended {
			c.fail("terminal %s is not open", b.TerminalID)
		}
	case TerminalInputEvent:
		t := get(b.TerminalID, b.ToolCallID)
		if !t.started || t.ended {
			c.fail("terminal %s is not open for input", b.TerminalID)
		}
	case TerminalCompletedEvent:
		t := get(b.TerminalID, b.ToolCallID)
		if t.ended {
			c.fail("terminal %s has completed before", b.TerminalID)
		}
		if !t.started {
			c.failAtDefault("terminal %s has not started", b.TerminalID)
		}
		t.ended = true
	}
}

func (c *Checker) runFinished(b RunFinishedEvent) {
	c.finished, c.endLine = &b, c.lines
	if b.Lines != int64(c.lines) {
		c.fail("lines is %d, the stream has %d", b.Lines, c.lines)
	}
	if want, ok := statusOfExit[b.ExitCode]; !ok || want != b.Status {
		c.fail("exit code %d and status %q do not belong together", b.ExitCode, b.Status)
	}
	if c.lines == 1 {
		if b.ExitCode == 0 {
			c.fail("a run that has not started cannot be a success")
		}
		return
	}
	if !c.started {
		c.fail("run.started is missing")
	}
	for _, id := range c.openCalls("") {
		c.fail("call %s is still open", id)
	}
	for _, id := range c.openRequests() {
		c.fail("the request %s is still open", id)
	}
	for _, id := range c.openJobs() {
		c.fail("job %s is still open", id)
	}
	for id, s := range c.sessions {
		if s.turnOpen {
			c.fail("turn %d of session %s is still open", s.turn, id)
		}
	}
	for id, t := range c.terminals {
		if t.started && !t.ended {
			c.fail("terminal %s is still open", id)
		}
	}
	c.totals(b)
}

// totals checks what the last line says about the ones before it.
func (c *Checker) totals(b RunFinishedEvent) {
	got, want := b.Usage, c.usage
	got.Calls, got.Retries, got.Estimated = 0, 0, false
	if got != want {
		c.failAtDefault("usage is %+v, the usage events add up to %+v", got, want)
	}
	if b.Truncated {
		return
	}
	for _, id := range c.refused {
		if !slices.ContainsFunc(b.Denials, func(d Denial) bool { return d.ToolCallID == id }) {
			c.fail("the refused call %s is not among the denials", id)
		}
	}
}

// statusOfExit is the table of exit codes in output/fault, which this package
// does not import; a test holds the two together.
var statusOfExit = map[int]RunStatus{
	0: "success", 1: "failed", 2: "failed", 3: "failed", 4: "failed", 5: "failed", 6: "failed", 7: "failed", 8: "failed",
	10: "blocked", 11: "needs_input", 12: "limit", 13: "limit", 14: "timeout", 15: "invalid_output", 16: "incomplete",
	20: "partial", 21: "failed", 70: "internal_error", 130: "cancelled", 141: "cancelled", 143: "cancelled",
}
