package cmd

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"

	"drover/output/fault"
	"drover/runner/textfile"
	"drover/tools/policy"
)

func newPolicyTestCmd(a *app) *cobra.Command {
	var o testOptions
	c := &cobra.Command{
		Use:   "test [FILE...]",
		Short: "Run the test cases of policy files",
		Long: `Run the cases under tests: in each file, and those in the *.policytest.yaml files beside
it that name the file:

  policy: policy.yaml
  tests:
    - {name: push, exec: "git push", expect: ask, rule: push-asks}

Each file is judged alone, without the user's and the system's; without a file the
policy in force is tested. A word that is nowhere on PATH counts as found, so that a
test does not depend on the machine. Exit 0 if every case holds, 1 if one does not or
there is none, 3 if a file cannot be used.`,
		RunE: func(c *cobra.Command, args []string) error {
			a.run.set = c.Flags().Changed
			return testPolicies(a, args, o)
		},
	}
	bindPolicyFlags(a, c)
	c.Flags().StringVar(&o.format, "format", "text", "text, json, junit or tap")
	c.Flags().BoolVar(&o.coverage, "coverage", false, "list the rules that decide no case")
	return c
}

type testOptions struct {
	format   string
	coverage bool
}

// caseResult is one case and how it came out.
type caseResult struct {
	Name string `json:"name"`
	File string `json:"file"`
	Line int    `json:"line"`
	// Call is what is judged, in words.
	Call   string        `json:"call"`
	OK     bool          `json:"ok"`
	Expect policy.Effect `json:"expect"`
	// ExpectRule is the rule that must decide; empty is any.
	ExpectRule string   `json:"expect_rule,omitempty"`
	Got        *decided `json:"got,omitempty"`
	// Problem is why the call cannot be judged.
	Problem string `json:"problem,omitempty"`
}

// suiteResult are the cases that one policy was tested with.
type suiteResult struct {
	Policy string       `json:"policy"`
	Passed int          `json:"passed"`
	Failed int          `json:"failed"`
	Cases  []caseResult `json:"cases"`
	// Rules counts the rules of the policy, Untouched are those that decided
	// nothing in any case.
	Rules     int              `json:"rules"`
	Untouched []policy.RuleRef `json:"untouched,omitempty"`
}

func testPolicies(a *app, files []string, o testOptions) error {
	print := testPrinters[o.format]
	if print == nil {
		return unknownFormat(o.format, "text", "json", "junit", "tap")
	}
	suites, err := a.testSuites(files)
	if err != nil {
		return err
	}
	var results []suiteResult
	total, failed := 0, 0
	for _, s := range suites {
		r := s.run()
		if !o.coverage {
			r.Untouched = nil
		}
		total, failed = total+len(r.Cases), failed+r.Failed
		results = append(results, r)
	}
	if err := print(a.stdout, results); err != nil {
		return err
	}
	if total == 0 {
		return &fault.Error{Code: "no_tests", What: "nothing was tested", Why: "the policy holds no tests",
			Fix: `write cases: tests: [{exec: "git status", expect: allow}]`, Exit: fault.Failed}
	}
	if failed > 0 {
		return exitWith{fault.Failed}
	}
	return nil
}

// suite is a policy with its cases.
type suite struct {
	name string
	judging
}

// testSuites loads the files and what stands beside them.
func (a *app) testSuites(files []string) ([]suite, error) {
	if len(files) == 0 {
		return a.suitesInForce()
	}
	cwd, err := a.policyFolder()
	if err != nil {
		return nil, err
	}
	t := suiteLoader{app: a, cwd: cwd, seen: map[string]bool{}}
	for _, file := range files {
		if isCaseFile(file) {
			err = t.caseFile(file)
		} else {
			err = t.policyFile(file)
		}
		if err != nil {
			return nil, err
		}
	}
	return t.suites, nil
}

func (a *app) suitesInForce() ([]suite, error) {
	j, err := a.judgingInForce()
	if err != nil {
		return nil, err
	}
	t := suiteLoader{app: a, cwd: j.env.Cwd, seen: map[string]bool{}}
	t.suites = append(t.suites, suite{name: "the policy in force", judging: *j})
	for _, l := range j.policy.Layers() {
		if l.Layer == "builtin" {
			continue
		}
		if err := t.beside(l.Path); err != nil {
			return nil, err
		}
	}
	return t.suites, nil
}

// suiteLoader loads each file of cases once.
type suiteLoader struct {
	app    *app
	cwd    string
	seen   map[string]bool
	suites []suite
}

func (t *suiteLoader) policyFile(file string) error {
	j, err := t.app.policyFile(t.cwd, file)
	if err != nil {
		return err
	}
	t.suites = append(t.suites, suite{name: file, judging: *j})
	return t.beside(file)
}

// beside loads the files of cases in the folder of a policy that name it.
func (t *suiteLoader) beside(file string) error {
	dir := filepath.Dir(file)
	entries, err := os.ReadDir(dir)
	if err != nil {
		return &fault.Error{Code: "policy_unreadable", What: fmt.Sprintf("the tests beside %q cannot be found", file), Why: osReason(err), Exit: fault.Config, Err: err}
	}
	for _, e := range entries {
		if !isCaseFile(e.Name()) {
			continue
		}
		name := filepath.Join(dir, e.Name())
		f, err := readCaseFile(name)
		if err != nil {
			return err
		}
		for _, p := range f.policies {
			if sameFile(p, file) {
				if err := t.caseFile(name); err != nil {
					return err
				}
				break
			}
		}
	}
	return nil
}

func (t *suiteLoader) caseFile(name string) error {
	key, err := filepath.Abs(name)
	if err != nil {
		key = name
	}
	if t.seen[key] {
		return nil
	}
	t.seen[key] = true
	f, err := readCaseFile(name)
	if err != nil {
		return err
	}
	// The cases join the policy like a policy inside a task file, so that they
	// are read by the same reader and keep their lines.
	s := t.app.fileSources(t.cwd, f.policies...)
	s.Inline, s.InlineName = f.cases, name
	j, err := t.app.newJudging(s, nil)
	if err != nil {
		return err
	}
	t.suites = append(t.suites, suite{name: name, judging: *j})
	return nil
}

// isCaseFile tells whether a file holds cases only, by its name.
func isCaseFile(name string) bool {
	return strings.HasSuffix(name, ".policytest.yaml") || strings.HasSuffix(name, ".policytest.yml")
}

// caseFile is a file of cases for policies that stand elsewhere.
type caseFile struct {
	// policies are the files that are tested together.
	policies []string
	// cases is the rest of the file, line by line where it was.
	cases []byte
}

// maxCaseFile bounds a file of cases, in bytes.
const maxCaseFile = 1 << 20

func readCaseFile(name string) (caseFile, error) {
	fail := func(why, fix string, err error) (caseFile, error) {
		return caseFile{}, &fault.Error{Code: "policy_invalid", What: fmt.Sprintf("test file %q cannot be used", name), Why: why, Fix: fix, Exit: fault.Config, Err: err}
	}
	data, err := textfile.Plain(name, maxCaseFile)
	if err != nil {
		return fail(osReason(err), "", err)
	}
	var root yaml.Node
	if err := yaml.Unmarshal(data, &root); err != nil {
		return fail(strings.TrimPrefix(err.Error(), "yaml: "), "", err)
	}
	const form = "write: policy: FILE, and the cases under tests:"
	if len(root.Content) == 0 || root.Content[0].Kind != yaml.MappingNode || root.Content[0].Style&yaml.FlowStyle != 0 {
		return fail("it is no mapping with one key a line", form, nil)
	}
	f, why := splitCases(root.Content[0], data)
	if why == "" && len(f.policies) == 0 {
		why = "it names no policy"
	}
	if why != "" {
		return fail(why, form, errors.New(why))
	}
	for i, p := range f.policies {
		if !filepath.IsAbs(p) {
			f.policies[i] = filepath.Join(filepath.Dir(name), p)
		}
	}
	return f, nil
}

// splitCases takes the key policy out of a file of cases and leaves its lines
// empty.
func splitCases(top *yaml.Node, data []byte) (f caseFile, why string) {
	lines := strings.Split(string(data), "\n")
	for i := 0; i+1 < len(top.Content); i += 2 {
		key, value := top.Content[i], top.Content[i+1]
		switch key.Value {
		case "version", "tests":
			continue
		case "policy":
		default:
			return f, fmt.Sprintf("line %d: unknown key %q", key.Line, key.Value)
		}
		names := []*yaml.Node{value}
		if value.Kind == yaml.SequenceNode {
			names = value.Content
		}
		for _, n := range names {
			if n.Kind != yaml.ScalarNode || n.Tag != "!!str" || n.Value == "" {
				return f, fmt.Sprintf("line %d: policy must be the name of a file, or a list of them", n.Line)
			}
			f.policies = append(f.policies, n.Value)
		}
		end := len(lines)
		if i+2 < len(top.Content) {
			end = top.Content[i+2].Line - 1
		}
		for l := key.Line - 1; l < end; l++ {
			lines[l] = ""
		}
	}
	f.cases = []byte(strings.Join(lines, "\n"))
	return f, ""
}

// run judges every case of the policy.
func (s *suite) run() suiteResult {
	r := suiteResult{Policy: s.name, Cases: []caseResult{}}
	touched := map[string]bool{}
	for _, t := range s.policy.Tests() {
		if isCaseFile(s.name) && t.File != s.name {
			continue // the policy's own cases are those of another suite
		}
		c := s.runCase(t, touched)
		if c.OK {
			r.Passed++
		} else {
			r.Failed++
		}
		r.Cases = append(r.Cases, c)
	}
	for _, rule := range s.policy.Rules() {
		if rule.Layer == "builtin" || rule.File == "" {
			continue
		}
		r.Rules++
		if !touched[ruleKey(rule.ID, rule.File, rule.Line)] {
			r.Untouched = append(r.Untouched, rule)
		}
	}
	return r
}

func ruleKey(id, file string, line int) string { return fmt.Sprintf("%s:%d:%s", file, line, id) }

func (s *suite) runCase(t policy.Test, touched map[string]bool) caseResult {
	c := caseResult{Name: t.Name, File: t.File, Line: t.Line, Call: caseCall(t), Expect: t.Expect, ExpectRule: t.Rule}
	call, err := s.call(t)
	if err != nil {
		c.Problem = err.Error()
		return c
	}
	v := s.policy.Decide(call)
	for _, p := range v.Parts {
		touched[ruleKey(p.RuleID, p.File, p.Line)] = true
	}
	got := decidedBy(v)
	c.Got, c.OK = &got, v.Effect == t.Expect && (t.Rule == "" || t.Rule == v.RuleID)
	return c
}

// caseCall is the call of a case in words, as the file has it.
func caseCall(t policy.Test) string {
	var parts []string
	for _, kind := range []policy.Kind{policy.KindRead, policy.KindWrite, policy.KindDelete} {
		for _, p := range t.Paths[kind] {
			parts = append(parts, fmt.Sprintf("%s %s", kind, p))
		}
	}
	call := strings.Join(parts, ", ")
	switch {
	case t.Exec != "":
		call = "exec " + t.Exec
	case t.Tool != "":
		call = strings.TrimRight(fmt.Sprintf("tool %s %s", t.Tool, t.Args), " ")
	case t.Host != "":
		call = "host " + t.Host
	case t.MCP != "":
		call = "mcp " + t.MCP
	}
	if t.Agent != "" {
		call += " (agent " + t.Agent + ")"
	}
	return call
}

// expected says in words what a case wants.
func (c *caseResult) expected() string { return effectBy(c.Expect, c.ExpectRule) }

// got says in words what came out.
func (c *caseResult) got() string {
	if c.Got == nil {
		return "no verdict: " + c.Problem
	}
	return effectBy(c.Got.Effect, c.Got.RuleID)
}

func effectBy(effect policy.Effect, rule string) string {
	if rule == "" {
		return string(effect)
	}
	return fmt.Sprintf("%s by rule %q", effect, rule)
}
