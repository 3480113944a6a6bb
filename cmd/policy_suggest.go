package cmd

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"

	"drover/output"
	"drover/output/fault"
	"drover/tools/policy"
)

func newPolicySuggestCmd(a *app) *cobra.Command {
	var format string
	c := &cobra.Command{
		Use:   "suggest EVENTS...",
		Short: "Print the smallest rules that would have allowed the refused calls of past runs",
		Long: `Look at the calls that recorded streams show as refused, judge them under the policy in
force, and print the smallest rules that would allow them, as a policy file for a
person to review; each rule names the calls that it is for. A rule that allows much
more than the calls is marked as wide. What a rule refuses, a rule asks about or the
sandbox holds needs a person: no new rule changes it, and it is listed at the end.
EVENTS are files of JSON lines, - for standard input, ids of sessions, or last.`,
		Example: "  drover run --dry-run 'Update the dependencies.' > dry.jsonl\n  drover policy suggest dry.jsonl > more.yaml\n  drover run --policy policy.yaml --policy more.yaml 'Update the dependencies.'",
		Args:    someStreams,
		RunE: func(c *cobra.Command, args []string) error {
			a.run.set = c.Flags().Changed
			return suggestRules(a, args, format)
		},
	}
	bindPolicyFlags(a, c)
	bindPlaceFlags(a, c)
	c.Flags().StringVar(&format, "format", "yaml", "yaml or json")
	return c
}

// suggestion is one rule and the calls that it is for.
type suggestion struct {
	policy.Proposal
	Calls []suggestedCall `json:"calls"`
}

// suggestedCall is a call in a stream.
type suggestedCall struct {
	Source  string `json:"source"`
	Line    int    `json:"line"`
	Tool    string `json:"tool_name"`
	Display string `json:"display,omitempty"`
	// Obstacles are what no new rule changes.
	Obstacles []policy.Obstacle `json:"obstacles,omitempty"`
	// Problem is why the call cannot be judged.
	Problem string `json:"problem,omitempty"`
}

// suggestions is what `policy suggest --format json` prints.
type suggestions struct {
	Refused int          `json:"refused"`
	Rules   []suggestion `json:"rules"`
	// NeedsPerson are calls that no new rule would have allowed.
	NeedsPerson []suggestedCall `json:"needs_person"`
	NotJudged   []suggestedCall `json:"not_judged"`
	// AllowedNow counts the calls that the policy in force allows by now.
	AllowedNow int `json:"allowed_now"`
}

func suggestRules(a *app, sources []string, format string) error {
	if format != "yaml" && format != "json" {
		return unknownFormat(format, "yaml", "json")
	}
	rec, err := a.readRecordings(sources)
	if err != nil {
		return err
	}
	judge, err := a.newRejudging()
	if err != nil {
		return err
	}
	if _, err := judge.at("", ""); err != nil {
		return err
	}
	s := suggestions{Rules: []suggestion{}, NeedsPerson: []suggestedCall{}, NotJudged: []suggestedCall{}}
	for _, c := range rec.calls {
		if c.effect == "deny" || c.effect == "would_deny" {
			if err := s.add(c, judge); err != nil {
				return err
			}
		}
	}
	if format == "json" {
		err = json.NewEncoder(a.stdout).Encode(s)
	} else {
		err = s.print(a.stdout)
	}
	if err == nil && rec.broken {
		err = exitWith{fault.Failed}
	}
	return err
}

func (s *suggestions) add(c *recordedCall, judge *rejudging) error {
	s.Refused++
	row := suggestedCall{Source: c.source, Line: c.line, Tool: c.tool, Display: c.display}
	v, call, j, why, err := judge.judge(c)
	if err != nil {
		return err
	}
	if row.Problem = why; why != "" {
		s.NotJudged = append(s.NotJudged, row)
		return nil
	}
	if v.Effect == policy.Allow {
		if c.by == "hook" {
			row.Problem = "a hook refused it, not the policy"
			s.NotJudged = append(s.NotJudged, row)
		} else {
			s.AllowedNow++
		}
		return nil
	}
	rules, stuck := j.policy.ProposeDenied(call, v)
	if len(stuck) > 0 || len(rules) == 0 {
		// Rules for the other parts would not have allowed the call.
		row.Obstacles = stuck
		s.NeedsPerson = append(s.NeedsPerson, row)
		return nil
	}
	for _, r := range rules {
		s.rule(r, row)
	}
	return nil
}

// rule adds a call to its rule.
func (s *suggestions) rule(r policy.Proposal, row suggestedCall) {
	for i := range s.Rules {
		if s.Rules[i].ID == r.ID {
			s.Rules[i].Calls = append(s.Rules[i].Calls, row)
			return
		}
	}
	s.Rules = append(s.Rules, suggestion{Proposal: r, Calls: []suggestedCall{row}})
}

// maxNamed bounds how many calls a comment names.
const maxNamed = 5

func (s *suggestions) print(w io.Writer) error {
	var b bytes.Buffer
	comment := func(lead, format string, args ...any) {
		// Whatever stands in a call, a comment is one line.
		fmt.Fprintf(&b, "%s %s\n", lead, strings.Join(strings.Fields(output.Clean(fmt.Sprintf(format, args...))), " "))
	}
	comment("#", "%s refused; these rules would allow %s. Review each before it becomes part of a policy.", callCount(s.Refused), callCount(s.covered()))
	if s.AllowedNow > 0 {
		comment("#", "%s allowed by the policy in force already.", callCount(s.AllowedNow))
	}
	b.WriteString("version: 1\n")
	if len(s.Rules) == 0 {
		b.WriteString("rules: []\n")
	} else {
		b.WriteString("rules:\n")
	}
	for _, r := range s.Rules {
		if r.Wide {
			comment("  #", "WIDE: this allows much more than the calls that it is for.")
		}
		for i, c := range r.Calls {
			if i == maxNamed {
				comment("  #", "and %s more", callCount(len(r.Calls)-i))
				break
			}
			comment("  #", "%s %s %s", place(c.Source, c.Line), c.Tool, c.Display)
		}
		text, err := ruleYAML(r.Rule)
		if err != nil {
			return err
		}
		b.Write(text)
	}
	if len(s.NeedsPerson) > 0 {
		b.WriteString("\n")
		comment("#", "Needs a person: no new rule changes these.")
		for _, c := range s.NeedsPerson {
			comment("#", "%s %s %s", place(c.Source, c.Line), c.Tool, c.Display)
			for _, o := range c.Obstacles {
				d := decided{By: o.DecidedBy, RuleID: o.RuleID, File: o.File, Line: o.Line}
				comment("#  ", "%s: %s%s", o.Action, d.who(), because(o.Reason))
			}
		}
	}
	if len(s.NotJudged) > 0 {
		b.WriteString("\n")
		comment("#", "Not judged:")
		for _, c := range s.NotJudged {
			comment("#", "%s %s %s: %s", place(c.Source, c.Line), c.Tool, c.Display, c.Problem)
		}
	}
	_, err := w.Write(b.Bytes())
	return err
}

// covered counts the calls that the rules are for.
func (s *suggestions) covered() int {
	return s.Refused - len(s.NeedsPerson) - len(s.NotJudged) - s.AllowedNow
}

func callCount(n int) string {
	if n == 1 {
		return "1 call"
	}
	return fmt.Sprintf("%d calls", n)
}

// ruleYAML writes a rule as an item of the list of rules.
func ruleYAML(r policy.Rule) ([]byte, error) {
	var b bytes.Buffer
	enc := yaml.NewEncoder(&b)
	enc.SetIndent(2)
	if err := enc.Encode([]policy.Rule{r}); err != nil {
		return nil, fmt.Errorf("write rule: %w", err)
	}
	if err := enc.Close(); err != nil {
		return nil, fmt.Errorf("write rule: %w", err)
	}
	var out bytes.Buffer
	for line := range strings.Lines(b.String()) {
		out.WriteString("  " + line)
	}
	return out.Bytes(), nil
}
