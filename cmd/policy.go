package cmd

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"drover/output/fault"
	"drover/tools/policy"
)

func newPolicyCmd(a *app) *cobra.Command {
	return group("policy", "Check, test and explain policy files, and see what they would change",
		newPolicyCheckCmd(a), newPolicyTestCmd(a), newPolicyExplainCmd(a), newPolicyShowCmd(a), newPolicyReplayCmd(a),
		newPolicySuggestCmd(a), newPolicyImportCmd(a))
}

func newPolicyCheckCmd(a *app) *cobra.Command {
	var format string
	var strict bool
	c := &cobra.Command{
		Use:   "check [FILE...]",
		Short: "Load policy files strictly and name what is probably not meant",
		Long:  "Load each file strictly and print what is probably not meant, such as a rule that\nanother one always beats, with its line and what to do about it. Without a file the\npolicy in force is checked. Exit 0, or 3 if a file cannot be used; warnings count only\nwith --strict.",
		RunE: func(c *cobra.Command, args []string) error {
			a.run.set = c.Flags().Changed
			return checkPolicies(a, args, format, strict)
		},
	}
	bindPolicyFlags(a, c)
	c.Flags().StringVar(&format, "format", "text", "text or json")
	c.Flags().BoolVar(&strict, "strict", false, "exit 3 on a warning, too")
	return c
}

// checkedFile is one file as `policy check --format json` prints it.
type checkedFile struct {
	File string `json:"file"`
	OK   bool   `json:"ok"`
	// Error is why the file cannot be used.
	Error    *checkError   `json:"error,omitempty"`
	Rules    int           `json:"rules"`
	Tests    int           `json:"tests"`
	Warnings []checkedRule `json:"warnings"`
}

type checkError struct {
	Code string `json:"code"`
	Why  string `json:"why"`
	Fix  string `json:"fix,omitempty"`
	// Problems are all that is wrong with the file, in the order of its lines.
	Problems []string `json:"problems,omitempty"`
}

// checkedRule is one warning.
type checkedRule struct {
	File    string `json:"file"`
	Line    int    `json:"line,omitempty"`
	RuleID  string `json:"rule_id,omitempty"`
	Message string `json:"message"`
	Fix     string `json:"fix,omitempty"`
}

func checkPolicies(a *app, files []string, format string, strict bool) error {
	if format != "text" && format != "json" {
		return unknownFormat(format, "text", "json")
	}
	results, err := a.checkFiles(files)
	if err != nil {
		return err
	}
	bad := false
	for _, r := range results {
		bad = bad || !r.OK || strict && len(r.Warnings) > 0
	}
	if format == "json" {
		if err := json.NewEncoder(a.stdout).Encode(results); err != nil {
			return err
		}
	} else if err := printChecked(a.stdout, results); err != nil {
		return err
	}
	if bad {
		return exitWith{fault.Config}
	}
	return nil
}

// checkFiles loads each file alone; without a file, the policy in force. What
// is wrong with a file goes to stderr, and the others are checked all the same.
func (a *app) checkFiles(files []string) ([]checkedFile, error) {
	if len(files) == 0 {
		p, err := a.policyInForce()
		if err != nil {
			return nil, err
		}
		return []checkedFile{checked("the policy in force", p)}, nil
	}
	cwd, err := a.policyFolder()
	if err != nil {
		return nil, err
	}
	var results []checkedFile
	for _, file := range files {
		p, err := policy.Load(a.fileSources(cwd, file))
		if err == nil {
			results = append(results, checked(file, p))
			continue
		}
		f := fault.From(err)
		a.printError(f)
		r := checkedFile{File: file, Error: &checkError{Code: f.Code, Why: f.Why, Fix: f.Fix, Problems: problemsOf(f)}, Warnings: []checkedRule{}}
		for _, p := range r.Error.Problems[min(1, len(r.Error.Problems)):] {
			fmt.Fprintln(a.stderr, clean("  also: %s", p))
		}
		results = append(results, r)
	}
	return results, nil
}

// problemsOf are all problems behind the error of a file, if there are several.
func problemsOf(f *fault.Error) []string {
	var joined interface{ Unwrap() []error }
	if !errors.As(f.Err, &joined) {
		return nil
	}
	var out []string
	for _, err := range joined.Unwrap() {
		out = append(out, err.Error())
	}
	return out
}

func checked(name string, p *policy.Policy) checkedFile {
	r := checkedFile{File: name, OK: true, Rules: len(p.Rules()), Tests: len(p.Tests()), Warnings: []checkedRule{}}
	for _, f := range p.Lint() {
		r.Warnings = append(r.Warnings, checkedRule{File: f.File, Line: f.Line, RuleID: f.RuleID, Message: f.Message, Fix: f.Fix})
	}
	return r
}

func printChecked(w io.Writer, results []checkedFile) error {
	for _, r := range results {
		for _, f := range r.Warnings {
			message := f.Message
			if f.RuleID != "" {
				message = fmt.Sprintf("rule %q: %s", f.RuleID, message)
			}
			if _, err := fmt.Fprintln(w, clean("%s: warning: %s", place(f.File, f.Line), message)); err != nil {
				return err
			}
			if f.Fix == "" {
				continue
			}
			if _, err := fmt.Fprintln(w, clean("  fix: %s", f.Fix)); err != nil {
				return err
			}
		}
		if !r.OK {
			continue
		}
		if _, err := fmt.Fprintln(w, clean("%s: ok: %d rules, %d tests, %d warnings", r.File, r.Rules, r.Tests, len(r.Warnings))); err != nil {
			return err
		}
	}
	return nil
}
