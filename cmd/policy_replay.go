package cmd

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"drover/output/fault"
	"drover/tools/policy"
)

func newPolicyReplayCmd(a *app) *cobra.Command {
	var o replayOptions
	c := &cobra.Command{
		Use:   "replay EVENTS...",
		Short: "Judge the calls of past runs again and show whose verdict changes",
		Long: `Judge every tool call of recorded streams under the policy in force, or the one given
with --policy, and print those whose verdict changes: "widen" if more may happen than
the recorded policy let happen, "narrow" if less. EVENTS are files of JSON lines, - for
standard input, ids of sessions, or last. Nothing is run and no file is needed that
the calls were about; a call that cannot be judged is listed with the reason.

The working folder and the sandbox are the recorded ones; the project's policy is that
of the current folder. A recorded refusal that could have been an open question counts
as a refusal. Exit 0, or 1 if --fail-on is met, no call could be judged, or a line
cannot be read.`,
		Example: "  drover policy replay --policy new.yaml --fail-on widen runs/*.jsonl\n  drover policy replay last",
		Args:    someStreams,
		RunE: func(c *cobra.Command, args []string) error {
			a.run.set = c.Flags().Changed
			return replayPolicy(a, args, &o)
		},
	}
	bindPolicyFlags(a, c)
	bindPlaceFlags(a, c)
	c.Flags().StringVar(&o.failOn, "fail-on", "", "exit 1 on a change: widen, narrow or change")
	c.Flags().StringVar(&o.format, "format", "text", "text or json")
	return c
}

type replayOptions struct{ failOn, format string }

// someStreams refuses a command line without a stream.
func someStreams(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return usageError(c, errors.New("no stream was given: name a file, a session, or last"))
	}
	return nil
}

// The changes of a verdict.
const (
	widened  = "widen"
	narrowed = "narrow"
)

// replayedCall is a call whose verdict changes, or that cannot be judged.
type replayedCall struct {
	Source     string `json:"source"`
	Line       int    `json:"line"`
	RunID      string `json:"run_id,omitempty"`
	ToolCallID string `json:"tool_call_id"`
	ToolName   string `json:"tool_name"`
	Display    string `json:"display,omitempty"`
	Agent      string `json:"agent,omitempty"`
	// Change is widen or narrow; empty for a call that cannot be judged.
	Change string        `json:"change,omitempty"`
	Was    policy.Effect `json:"was,omitempty"`
	// WasRule is the rule that decided then.
	WasRule string   `json:"was_rule_id,omitempty"`
	Now     *decided `json:"now,omitempty"`
	// Problem is why the call cannot be judged.
	Problem string `json:"problem,omitempty"`
}

// replayResult is what `policy replay --format json` prints.
type replayResult struct {
	Judged    int            `json:"judged"`
	Widened   int            `json:"widened"`
	Narrowed  int            `json:"narrowed"`
	Changes   []replayedCall `json:"changes"`
	NotJudged []replayedCall `json:"not_judged"`
}

func replayPolicy(a *app, sources []string, o *replayOptions) error {
	if o.format != "text" && o.format != "json" {
		return unknownFormat(o.format, "text", "json")
	}
	if err := oneOf("fail-on", o.failOn, []string{"", widened, narrowed, "change"}); err != nil {
		return err
	}
	rec, err := a.readRecordings(sources)
	if err != nil {
		return err
	}
	judge, err := a.newRejudging()
	if err != nil {
		return err
	}
	// A policy that cannot be loaded is told even if there is no call.
	if _, err := judge.at("", ""); err != nil {
		return err
	}
	res := replayResult{Changes: []replayedCall{}, NotJudged: []replayedCall{}}
	for _, c := range rec.calls {
		if err := res.add(c, judge); err != nil {
			return err
		}
	}
	if o.format == "json" {
		err = json.NewEncoder(a.stdout).Encode(res)
	} else {
		err = res.print(a.stdout)
	}
	if err != nil {
		return err
	}
	if rec.broken || res.fails(o.failOn) {
		return exitWith{fault.Failed}
	}
	return nil
}

// fails tells whether the result is one that the caller does not want.
func (r *replayResult) fails(failOn string) bool {
	switch failOn {
	case widened:
		return r.Widened > 0 || r.blind()
	case narrowed:
		return r.Narrowed > 0 || r.blind()
	case "change":
		return len(r.Changes) > 0 || r.blind()
	}
	return r.blind()
}

// blind tells whether there were calls and none could be judged.
func (r *replayResult) blind() bool { return r.Judged == 0 && len(r.NotJudged) > 0 }

func (r *replayResult) add(c *recordedCall, judge *rejudging) error {
	row := replayedCall{Source: c.source, Line: c.line, RunID: c.runID, ToolCallID: c.id, ToolName: c.tool, Display: c.display, Agent: c.agent}
	v, _, j, why, err := judge.judge(c)
	if err != nil {
		return err
	}
	was, unknown := c.was()
	if why == "" {
		why = unknown
	}
	if row.Problem = why; why != "" {
		r.NotJudged = append(r.NotJudged, row)
		return nil
	}
	r.Judged++
	if was == policy.Deny && v.Effect == policy.Ask && c.policy != "" && c.policy == j.policy.SHA256() {
		// Under the very same policy the refusal was an open question.
		was = policy.Ask
	}
	if row.Change = change(was, v.Effect); row.Change == "" {
		return nil
	}
	now := decidedBy(v)
	row.Was, row.WasRule, row.Now = was, c.ruleID, &now
	if row.Change == widened {
		r.Widened++
	} else {
		r.Narrowed++
	}
	r.Changes = append(r.Changes, row)
	return nil
}

// change names the change from one effect to another.
func change(was, now policy.Effect) string {
	rank := map[policy.Effect]int{policy.Allow: 0, policy.Ask: 1, policy.Deny: 2}
	switch {
	case rank[now] < rank[was]:
		return widened
	case rank[now] > rank[was]:
		return narrowed
	}
	return ""
}

func (r *replayResult) print(w io.Writer) error {
	var b strings.Builder
	for _, c := range r.Changes {
		fmt.Fprintln(&b, clean("%-6s %s %s %s", c.Change, place(c.Source, c.Line), c.ToolName, c.Display))
		fmt.Fprintln(&b, clean("       was %s, now %s by %s%s", effectBy(c.Was, c.WasRule), c.Now.Effect, c.Now.who(), because(c.Now.Reason)))
	}
	for _, c := range r.NotJudged {
		fmt.Fprintln(&b, clean("not judged: %s %s %s", place(c.Source, c.Line), c.ToolName, c.Display))
		fmt.Fprintln(&b, clean("       %s", c.Problem))
	}
	fmt.Fprintf(&b, "%d calls judged: %d widened, %d narrowed, %d unchanged", r.Judged, r.Widened, r.Narrowed, r.Judged-len(r.Changes))
	if n := len(r.NotJudged); n > 0 {
		fmt.Fprintf(&b, "; %d not judged", n)
	}
	b.WriteByte('\n')
	_, err := io.WriteString(w, b.String())
	return err
}
