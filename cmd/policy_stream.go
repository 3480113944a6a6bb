package cmd

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"drover/output/event"
	"drover/output/fault"
	"drover/runner/session"
	"drover/tools"
	"drover/tools/policy"
)

// recordedCall is one tool call of a recorded stream, and what became of it.
type recordedCall struct {
	// source and line are where the call stands.
	source string
	line   int
	runID  string

	id, tool, server, agent string
	display                 string
	args                    json.RawMessage
	// cwd is the folder of the session, sandbox the mode of the run, policy the
	// hash of what judged the call.
	cwd, sandbox, policy string
	// problem is why the call cannot be judged, if the stream itself says so.
	problem string

	decided bool
	effect  event.DecisionEffect
	by      event.Decider
	ruleID  string
	reason  string
	// asked says that the policy had asked and did not refuse.
	asked bool
	ran   bool
}

// recording collects the calls of streams.
type recording struct {
	app   *app
	calls []*recordedCall
	// broken says that a line could not be read.
	broken bool
	events int

	open map[string]*recordedCall
	cwds map[string]string
	run  event.RunStartedEvent
}

// readRecordings reads streams: files of JSON lines, - for standard input, ids
// of sessions, or last.
func (a *app) readRecordings(sources []string) (*recording, error) {
	r := &recording{app: a}
	for _, source := range sources {
		r.open, r.cwds, r.run = map[string]*recordedCall{}, map[string]string{}, event.RunStartedEvent{}
		before := r.events
		if err := r.read(source); err != nil {
			return nil, err
		}
		if r.events == before {
			return nil, &fault.Error{Code: "input_unreadable", What: fmt.Sprintf("%q cannot be judged", source), Why: "it holds no event",
				Fix: "give a stream of drover run: a file of JSON lines, or the id of a session", Exit: fault.Usage}
		}
	}
	return r, nil
}

func (r *recording) read(source string) error {
	if source == "-" {
		return r.stream(source, r.app.stdin)
	}
	info, err := os.Stat(source)
	if err == nil && info.IsDir() {
		return &fault.Error{Code: "input_unreadable", What: fmt.Sprintf("event stream %q cannot be read", source), Why: "it is a folder", Exit: fault.Usage}
	}
	if err != nil && !strings.ContainsAny(source, "/.") {
		return r.session(source)
	}
	f, err := r.app.openStream(source)
	if err != nil {
		return err
	}
	defer f.Close()
	return r.stream(source, f)
}

// stream reads JSON lines. The private records of a session's log are passed
// over.
func (r *recording) stream(name string, src io.Reader) error {
	reader := event.NewReader(src)
	for {
		before := reader.Line()
		e, err := reader.Next()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err == nil:
			r.note(name, reader.Line(), e)
		case reader.Line() == before:
			return unread(err)
		case !bytes.HasPrefix(reader.Bytes(), []byte(`{"record":`)):
			fmt.Fprintln(r.app.stderr, clean("%s: %s", name, err))
			r.broken = r.broken || !errors.Is(err, event.ErrTorn)
		}
	}
}

func (r *recording) session(id string) error {
	state, err := r.app.stateDir()
	if err != nil {
		return err
	}
	if id, err = session.Resolve(state, id); err != nil {
		return err
	}
	log, err := session.OpenReader(state, id)
	if err != nil {
		return err
	}
	defer log.Close()
	n := 0
	err = eachEvent(log, func(line []byte) error {
		n++
		e, err := event.Decode(line)
		if err != nil {
			fmt.Fprintln(r.app.stderr, clean("session %s: %s", id, err))
			r.broken = true
			return nil
		}
		r.note(id, n, e)
		return nil
	})
	for _, d := range log.Damage() {
		fmt.Fprintf(r.app.stderr, "drover: session %s: %d bytes at offset %d are damaged and left out\n", id, d.Bytes, d.Offset)
		r.broken = true
	}
	return err
}

// note takes what an event says of a call. Replayed events repeat what another
// stream tells.
func (r *recording) note(source string, line int, e event.Event) {
	r.events++
	if e.Replayed {
		return
	}
	key := func(callID string) string { return e.SessionID + "\x00" + callID }
	switch b := e.Body.(type) {
	case event.RunStartedEvent:
		r.run = b
	case event.SessionStartedEvent:
		if b.Cwd != "" {
			r.cwds[e.SessionID] = b.Cwd
		}
	case event.ToolCallEvent:
		c := &recordedCall{
			source: source, line: line, runID: e.RunID, id: b.ToolCallID, tool: b.ToolName, server: b.ServerName, agent: e.Agent,
			display: b.Display, args: b.Args, policy: r.run.Policy.SHA256, cwd: r.cwds[e.SessionID],
		}
		if c.cwd == "" {
			c.cwd = r.run.Cwd
		}
		if r.run.Sandbox != nil {
			c.sandbox = r.run.Sandbox.Mode
		}
		switch {
		case b.ArgsError != "":
			c.problem = "its arguments could not be read: " + b.ArgsError
		case b.Truncated:
			c.problem = "its arguments were cut to fit the line"
		}
		r.calls = append(r.calls, c)
		r.open[key(b.ToolCallID)] = c
	case event.ToolDecisionEvent:
		if c := r.open[key(b.ToolCallID)]; c != nil {
			c.decided, c.effect, c.by, c.ruleID, c.reason = true, b.Effect, b.DecidedBy, b.RuleID, b.Reason
			c.asked = c.asked || asks(b)
		}
	case event.ToolApprovalRequestEvent:
		if c := r.open[key(b.ToolCallID)]; c != nil {
			c.asked = true
		}
	case event.ToolApprovalResponseEvent:
		if c := r.open[key(b.ToolCallID)]; c != nil && b.ArgsRewritten {
			if c.args = b.Args; b.Args == nil || b.Truncated {
				c.problem = "an answer rewrote its arguments"
			}
		}
	case event.ToolStatusEvent:
		if c := r.open[key(b.ToolCallID)]; c != nil && b.Status == event.StatusRunning {
			c.ran = true
		}
	}
}

// asks tells whether a refusal was a question that nobody answered. The event
// has no word for it: its reason or its parts tell.
func asks(b event.ToolDecisionEvent) bool {
	switch b.DecidedBy {
	case "approver", "tty", "timeout", "grant":
		return true
	}
	for _, p := range b.Parts {
		if p.Effect == string(policy.Deny) {
			return false
		}
	}
	for _, p := range b.Parts {
		if p.Effect == string(policy.Ask) {
			return true
		}
	}
	return strings.HasPrefix(b.Reason, "needs approval") || b.RuleID != "" && b.Reason == fmt.Sprintf("rule %q says ask", b.RuleID)
}

// was is what the policy of the recording said: allow, ask or deny. It is
// empty, and why says so, if the stream does not tell.
func (c *recordedCall) was() (effect policy.Effect, why string) {
	refused := c.effect == "deny" || c.effect == "would_deny"
	switch {
	case c.asked:
		return policy.Ask, ""
	case !c.decided && c.ran:
		// A stream of core events leaves out the decisions that allow.
		return policy.Allow, ""
	case !c.decided:
		return "", "it was never decided"
	case c.by == "hook" && refused:
		return "", "a hook refused it, and what the policy said is not recorded"
	case c.by == "hook":
		return policy.Ask, ""
	case refused && c.ruleID == "" && strings.HasPrefix(c.reason, "plan mode: "):
		// Plan mode refuses only what the policy allows.
		return policy.Allow, ""
	case refused:
		return policy.Deny, ""
	}
	return policy.Allow, ""
}

// where is where the call stands, for a person.
func (c *recordedCall) where() string { return place(c.source, c.line) }

// words are the call in one line.
func (c *recordedCall) words() string {
	if c.display == "" || c.display == c.tool {
		return c.tool
	}
	return c.tool + " " + c.display
}

// rejudging judges recorded calls under the policy in force. The policy is
// loaded for each folder and sandbox that was recorded.
type rejudging struct {
	app    *app
	home   string
	loaded map[string]*judging
}

func (a *app) newRejudging() (*rejudging, error) {
	home, err := a.policyFolder()
	if err != nil {
		return nil, err
	}
	return &rejudging{app: a, home: home, loaded: map[string]*judging{}}, nil
}

// at is the policy for a folder. The files of the project are those of the
// folder of this command: the recorded one may be on another machine.
func (r *rejudging) at(cwd, sandbox string) (*judging, error) {
	key := sandbox + "\x00" + cwd
	if j := r.loaded[key]; j != nil {
		return j, nil
	}
	a := r.app
	if err := oneOf("sandbox", a.run.sandbox, []string{"", "read-only", "workspace-write", "off"}); err != nil {
		return nil, err
	}
	cfg, err := a.loadConfig(&a.run, r.home)
	if err != nil {
		return nil, err
	}
	s := mergeSettings(&a.run, nil, cfg)
	if a.run.sandbox == "" && sandbox != "" {
		s.sandbox = sandbox
	}
	if cwd == "" {
		cwd = r.home
	}
	sources := a.policySources(&a.run, s, cwd)
	sources.Project = a.policySources(&a.run, s, r.home).Project
	j, err := a.newJudging(sources, cfg)
	if err != nil {
		return nil, err
	}
	r.loaded[key] = j
	return j, nil
}

// judge returns the verdict on a recorded call; why says why there is none.
func (r *rejudging) judge(c *recordedCall) (v policy.Verdict, call policy.Call, j *judging, why string, err error) {
	if c.problem != "" {
		return v, call, nil, c.problem, nil
	}
	if j, err = r.at(c.cwd, c.sandbox); err != nil {
		return v, call, nil, "", err
	}
	if call, why = j.recorded(c); why != "" {
		return v, call, j, why, nil
	}
	return j.policy.Decide(call), call, j, "", nil
}

// recorded prepares a recorded call again. Preparing reads names and nothing
// else, so that the files of that time are not needed.
func (j *judging) recorded(c *recordedCall) (call policy.Call, why string) {
	j.path.define(string(c.args))
	tool := tools.Find(c.tool)
	switch {
	case tool != nil:
		prepared, err := j.prepare(tool, tools.Input{Text: string(c.args)})
		if err != nil {
			return call, "its arguments cannot be read: " + err.Error()
		}
		call = prepared
	case c.server != "":
		name := strings.TrimPrefix(c.tool, c.server+"__")
		call = policy.Call{Tool: c.tool, Args: c.args, Actions: []policy.Action{{Kind: policy.KindMCP, Server: c.server, Tool: name, Args: c.args}}}
	case policy.KnownTool(c.tool):
		call = policy.Call{Tool: c.tool, Args: c.args, Actions: []policy.Action{policy.Tool(c.tool, c.args)}}
	default:
		return call, "the tool is not known: it came from a task file or another version, and what it does is not recorded"
	}
	call.Agent = c.agent
	return call, ""
}
