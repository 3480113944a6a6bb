package cmd

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"drover/tools/policy"
)

// drover runs the real binary to its end in a folder.
func drover(t *testing.T, dir string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := exec.CommandContext(t.Context(), self, args...)
	c.Dir = dir
	c.Env = append(os.Environ(), asDrover+"=1", "HOME="+dir,
		"XDG_STATE_HOME="+filepath.Join(dir, ".state"), "XDG_CONFIG_HOME="+filepath.Join(dir, ".config"))
	var out, problems bytes.Buffer
	c.Stdout, c.Stderr = &out, &problems
	err = c.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return out.String(), problems.String(), c.ProcessState.ExitCode()
}

// examplePolicy is a copy of the example in a folder of its own.
func examplePolicy(t *testing.T) (dir string, tests []policy.Test) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("..", "examples", "policy", "example.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	dir = t.TempDir()
	writePolicy(t, dir, "example.yaml", string(data))
	p, err := policy.Load(policy.Sources{Flags: []string{filepath.Join(dir, "example.yaml")}, Roots: policy.Roots{Workspace: dir, Writable: []string{dir}}})
	if err != nil {
		t.Fatal(err)
	}
	return dir, p.Tests()
}

func TestExamplePolicyPassesItsTests(t *testing.T) {
	t.Parallel()
	dir, tests := examplePolicy(t)
	if len(tests) != 22 {
		t.Fatalf("got %d cases", len(tests))
	}
	stdout, stderr, code := drover(t, dir, "policy", "test", "--coverage", "example.yaml")
	if code != 0 || !strings.Contains(stdout, "example.yaml: ok: 22 of 22 cases passed") || stderr != "" {
		t.Errorf("exit %d, %s%s", code, stdout, stderr)
	}
	if !strings.Contains(stdout, `untested: rule "read-workspace" decides no case`) || strings.Count(stdout, "untested: ") != 1 {
		t.Errorf("the coverage is wrong: %s", stdout)
	}
	stdout, stderr, code = drover(t, dir, "policy", "check", "--strict", "example.yaml")
	if code != 0 || !strings.Contains(stdout, "11 rules, 22 tests, 0 warnings") {
		t.Errorf("exit %d, %s%s", code, stdout, stderr)
	}
}

// TestExplainNamesRuleAndLineOfTheExample asks about each case of the example
// on the command line.
func TestExplainNamesRuleAndLineOfTheExample(t *testing.T) {
	t.Parallel()
	dir, tests := examplePolicy(t)
	source, err := os.ReadFile(filepath.Join(dir, "example.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(source), "\n")
	codes := map[policy.Effect]int{policy.Allow: 0, policy.Deny: 10, policy.Ask: 11}
	// The cases that no rule decides.
	byDefault := map[string]bool{"log to file": true, "substitution": true, "bad env prefix": true, "climb out": true, "mcp write": true, "other host": true, "spawn other": true}
	for _, c := range tests {
		t.Run(c.Name, func(t *testing.T) {
			args := append([]string{"policy", "explain", "--policy", "example.yaml"}, flagsOf(c)...)
			stdout, stderr, code := drover(t, dir, append(args, "--format", "json")...)
			var got explained
			if err := json.Unmarshal([]byte(stdout), &got); err != nil {
				t.Fatalf("%v: %s%s", err, stdout, stderr)
			}
			if got.Effect != c.Expect || code != codes[c.Expect] || c.Rule != "" && got.RuleID != c.Rule {
				t.Errorf("got %s by %q with exit %d, want %s by %q", got.Effect, got.RuleID, code, c.Expect, c.Rule)
			}
			text, _, _ := drover(t, dir, args...)
			if byDefault[c.Name] {
				if got.DecidedBy != "default" || !strings.Contains(text, "decided by the default") {
					t.Errorf("got %s: %s", got.DecidedBy, text)
				}
				return
			}
			if got.Line == 0 || got.Line > len(lines) || strings.TrimSpace(lines[got.Line-1]) != "- id: "+got.RuleID {
				t.Errorf("line %d is not that of the rule %q", got.Line, got.RuleID)
			}
			if want := fmt.Sprintf("rule %q (example.yaml:%d)", got.RuleID, got.Line); !strings.Contains(text, want) {
				t.Errorf("the text lacks %s:\n%s", want, text)
			}
		})
	}
}

// flagsOf writes a case as flags of policy explain.
func flagsOf(c policy.Test) []string {
	var args []string
	if c.Agent != "" {
		args = append(args, "--agent", c.Agent)
	}
	for kind, paths := range c.Paths {
		for _, p := range paths {
			args = append(args, "--path", string(kind)+":"+p)
		}
	}
	switch {
	case c.Exec != "":
		args = append(args, "--exec", c.Exec)
	case c.Tool != "":
		args = append(args, "--tool", c.Tool, "--args", string(c.Args))
	case c.Host != "":
		args = append(args, "--host", c.Host)
	case c.MCP != "":
		args = append(args, "--mcp", c.MCP)
	}
	return args
}
