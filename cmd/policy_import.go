package cmd

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"drover/output"
	"drover/output/fault"
	"drover/runner/textfile"
	"drover/tools/policy"
	"drover/tools/policy/convert"
)

// converters are the products whose files can be imported.
var converters = map[string]func([]convert.File) (convert.Result, error){"codex": convert.Codex, "claude": convert.Claude}

func newPolicyImportCmd(a *app) *cobra.Command {
	var from, out string
	c := &cobra.Command{
		Use:   "import --from codex|claude FILE...",
		Short: "Turn permission files of other products into a policy",
		Long: `Convert files into one policy and print it: execpolicy rules (--from codex, *.rules), or
settings with permissions (--from claude, settings.json). The meaning is kept: what
cannot be said exactly becomes stricter, and what cannot be said at all is left out;
both are told on standard error and in comments of the policy. Examples of the rules
are checked and become tests. The result is loaded and checked before it is printed.
Exit 0, 1 if something is left out, 3 if a file cannot be read.`,
		Example: "  drover policy import --from codex rules/*.rules -o policy.yaml\n  drover policy import --from claude .claude/settings.json > policy.yaml",
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usageError(c, errors.New("no file was given"))
			}
			if from == "" {
				return usageError(c, errors.New("--from is missing: codex or claude"))
			}
			if err := oneOf("from", from, []string{"codex", "claude"}); err != nil {
				return err
			}
			return importPolicy(a, from, out, args)
		},
	}
	f := c.Flags()
	f.StringVar(&from, "from", "", "whose files they are: codex or claude")
	f.StringVarP(&out, "output", "o", "", "write the policy to a file that does not exist yet")
	return c
}

func importPolicy(a *app, from, out string, names []string) error {
	var files []convert.File
	for _, name := range names {
		data, err := textfile.Plain(name, convert.MaxFile)
		if err != nil {
			return &fault.Error{Code: "import_unreadable", What: fmt.Sprintf("%q cannot be imported", name), Why: osReason(err), Exit: fault.Config, Err: err}
		}
		files = append(files, convert.File{Name: name, Data: data})
	}
	res, err := converters[from](files)
	if err != nil {
		return err
	}
	shown := out
	if shown == "" {
		shown = "the result"
	}
	p, err := policy.Load(policy.Sources{Inline: res.Policy, InlineName: shown, Roots: policy.Roots{Workspace: "/workspace", Home: a.getenv("HOME")}})
	if err != nil {
		return err
	}
	if err := writeImported(a, out, res.Policy); err != nil {
		return err
	}
	for _, n := range res.Notes {
		kind := "stricter"
		if n.Lost {
			kind = "not mapped"
		}
		fmt.Fprintln(a.stderr, output.Clean(kind+": "+strings.ReplaceAll(n.String(), ": not mapped: ", ": ")))
	}
	for _, f := range checked(shown, p).Warnings {
		fmt.Fprintln(a.stderr, clean("%s: warning: rule %q: %s", place(f.File, f.Line), f.RuleID, f.Message))
	}
	fmt.Fprintln(a.stderr, clean("%s: %d rules, %d tests; %d not mapped, %d stricter", shown, len(p.Rules()), len(p.Tests()), res.Lost(), len(res.Notes)-res.Lost()))
	if res.Lost() > 0 {
		return exitWith{fault.Failed}
	}
	return nil
}

// writeImported writes the policy to stdout or to a new file: an existing one
// may be in force.
func writeImported(a *app, out string, text []byte) error {
	if out == "" {
		_, err := a.stdout.Write(text)
		return err
	}
	f, err := os.OpenFile(out, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err == nil {
		_, err = bytes.NewReader(text).WriteTo(f)
		err = errors.Join(err, f.Close())
	}
	if err == nil {
		return nil
	}
	why, fix := osReason(err), ""
	if errors.Is(err, fs.ErrExist) {
		why, fix = "it exists", "remove it, or write to another file"
	}
	return &fault.Error{Code: "output_failed", What: fmt.Sprintf("the policy cannot be written to %q", filepath.Clean(out)), Why: why, Fix: fix, Exit: fault.Environment, Err: err}
}
