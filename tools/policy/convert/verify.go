package convert

import (
	"fmt"

	"go.yaml.in/yaml/v3"

	"drover/tools/policy"
)

// verify tries every rule on its examples, in the whole policy. An example
// that comes out as it should becomes a test; one that comes out stricter is
// noted. One that came out milder would be a hole, and its rule is noted as
// lost.
func (b *builder) verify() error {
	rules := make([]policy.Rule, len(b.entries))
	for i := range b.entries {
		rules[i] = b.entries[i].rule
	}
	p, err := loadRules(b.settings, rules...)
	if err != nil {
		return fmt.Errorf("load converted policy: %w", err)
	}
	for _, e := range b.entries {
		for _, argv := range e.examples {
			b.try(p, e, argv)
		}
		for _, argv := range e.counter {
			if v := decide(p, argv); v.RuleID == e.rule["id"] {
				b.stricter(e.origin, "here the rule is about %s, too", quote(argv))
			}
		}
	}
	return nil
}

func decide(p *policy.Policy, argv []string) policy.Verdict {
	return p.Decide(policy.Call{Tool: "exec_command", Actions: []policy.Action{policy.Exec(workspace, "bash", "-c", quote(argv))}})
}

func (b *builder) try(p *policy.Policy, e entry, argv []string) {
	v := decide(p, argv)
	want := policy.Effect(e.rule["effect"].(string))
	switch {
	case rank(v.Effect) < rank(want):
		b.lost(e.origin, "here %s is decided more mildly: %s", quote(argv), v.Effect)
	case v.RuleID == e.rule["id"] && v.Effect == want:
		b.tests = append(b.tests, test(argv, want, v.RuleID))
	case rank(v.Effect) > rank(want) && v.RuleID == "":
		b.stricter(e.origin, "here %s is not covered: %s", quote(argv), v.Reason)
	}
}

func rank(e policy.Effect) int {
	return map[policy.Effect]int{policy.Allow: 1, policy.Ask: 2, policy.Deny: 3}[e]
}

// test is a case of the policy on one line.
func test(argv []string, expect policy.Effect, rule string) *yaml.Node {
	n := &yaml.Node{Kind: yaml.MappingNode, Style: yaml.FlowStyle}
	for _, kv := range [][2]string{{"exec", quote(argv)}, {"expect", string(expect)}, {"rule", rule}} {
		value := &yaml.Node{}
		value.SetString(kv[1])
		n.Content = append(n.Content, &yaml.Node{Kind: yaml.ScalarNode, Value: kv[0]}, value)
	}
	return n
}
