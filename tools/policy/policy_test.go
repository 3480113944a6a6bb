package policy

import (
	"path/filepath"
	"testing"
)

// load returns the policy of a YAML text in the workspace /w.
func load(t testing.TB, yaml string, change ...func(*Sources)) *Policy {
	t.Helper()
	s := Sources{
		Inline: []byte(yaml),
		Roots:  Roots{Workspace: "/w", Writable: []string{"/w"}, Home: "/home/u"},
	}
	for _, c := range change {
		c(&s)
	}
	p, err := Load(s)
	if err != nil {
		t.Fatalf("load: %v", err)
	}
	return p
}

func run(script string) Call {
	return Call{Tool: "exec_command", Actions: []Action{Exec("/w", "bash", "-lc", script)}}
}

func TestExampleDecidesAllItsCases(t *testing.T) {
	p, err := Load(Sources{
		Flags: []string{filepath.Join("testdata", "example.yaml")},
		Roots: Roots{Workspace: "/w", Writable: []string{"/w"}, Home: "/home/u"},
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(p.Tests()) != 22 {
		t.Fatalf("got %d cases, want 22", len(p.Tests()))
	}
	checkCases(t, p)
}

func TestPresetsDecideTheirCases(t *testing.T) {
	for _, name := range Presets() {
		t.Run(name, func(t *testing.T) {
			p := load(t, "", func(s *Sources) { s.Inline, s.Preset = nil, name })
			if len(p.Tests()) == 0 || p.PresetName() != name {
				t.Fatalf("preset %q has no cases", p.PresetName())
			}
			checkCases(t, p)
		})
	}
}

func checkCases(t *testing.T, p *Policy) {
	t.Helper()
	for _, c := range p.Tests() {
		v := p.Decide(p.CallOf(c))
		if v.Effect != c.Expect || c.Rule != "" && v.RuleID != c.Rule {
			t.Errorf("%s: got %s by %q (%s), want %s by %q", c.Name, v.Effect, v.RuleID, v.Reason, c.Expect, c.Rule)
		}
	}
}
