package cmd

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"strings"

	"github.com/spf13/cobra"

	"drover/output/fault"
)

func newDoctorCmd(a *app) *cobra.Command {
	var format string
	c := &cobra.Command{
		Use: "doctor", Short: "Report what a run would find here, and how to repair what is missing", Args: noArgs,
		Long: "Report what a run in this folder would find: the sandbox that the kernel offers, the\nfiles that steer it, the model and whether its key is set (never its value), and the\nprograms that agents need. Nothing is changed and no model is called. Exit 0, or 7 if\nthe sandbox cannot be had.",
		RunE: func(c *cobra.Command, _ []string) error {
			a.run.set = c.Flags().Changed
			return a.examine(c.Context(), format)
		},
	}
	f := c.Flags()
	f.StringVar(&format, "format", "text", "text or json")
	f.StringVarP(&a.run.cwd, "cwd", "C", "", "the folder of the run (default: the current one)")
	f.StringVarP(&a.run.model, "model", "m", "", "the model to look at (default: that of the config)")
	f.StringVar(&a.run.sandbox, "sandbox", "", "the sandbox to try: read-only, workspace-write or off")
	f.BoolVar(&a.run.trustProject, "trust-project", false, "look at the project's own policy and config as trusted")
	return c
}

// findingStatus is how something looks.
type findingStatus string

// The states of a finding.
const (
	fine    findingStatus = "ok"
	warning findingStatus = "warning"
	broken  findingStatus = "error"
)

// finding is one thing that doctor looked at.
type finding struct {
	// Name is a stable snake_case name, Status how it looks, Text what was
	// found in one line, Fix what to do about it.
	Name   string        `json:"name"`
	Status findingStatus `json:"status"`
	Text   string        `json:"text"`
	Fix    string        `json:"fix,omitempty"`
	// Details is the same as data.
	Details map[string]any `json:"details,omitempty"`
}

// diagnosis is what doctor prints as JSON.
type diagnosis struct {
	OK       bool      `json:"ok"`
	ExitCode int       `json:"exit_code"`
	Version  string    `json:"version"`
	OS       string    `json:"os"`
	Arch     string    `json:"arch"`
	Cwd      string    `json:"cwd"`
	Findings []finding `json:"findings"`
}

// examine looks at everything and prints it.
func (a *app) examine(ctx context.Context, format string) error {
	if format != "text" && format != "json" {
		return unknownFormat(format, "text", "json")
	}
	if err := oneOf("sandbox", a.run.sandbox, []string{"", "read-only", "workspace-write", "off"}); err != nil {
		return err
	}
	caller, err := os.Getwd()
	if err != nil {
		return &fault.Error{Code: "cwd", What: "the current folder cannot be used", Why: osReason(err), Exit: fault.Environment, Err: err}
	}
	cwd, err := workingFolder(caller, &a.run, nil)
	if err != nil {
		return err
	}
	d := diagnosis{OK: true, Version: Version, OS: runtime.GOOS, Arch: runtime.GOARCH, Cwd: cwd}
	d.Findings = a.findings(ctx, cwd)
	for i := range d.Findings {
		f := &d.Findings[i]
		if f.Status != broken {
			continue
		}
		d.OK = false
		if f.Name == "sandbox" {
			d.ExitCode = int(fault.Environment)
		}
	}
	out := d.lines()
	if format == "json" {
		if out, err = json.Marshal(d); err != nil {
			return fmt.Errorf("encode the findings: %w", err)
		}
	}
	// Names of folders and programs may hold a secret, too.
	_, err = fmt.Fprintf(a.stdout, "%s\n", a.redact.Bytes(out))
	if err == nil && d.ExitCode != 0 {
		return exitWith{fault.Exit(d.ExitCode)}
	}
	return err
}

// lines is a finding a line, and below it what to do.
func (d diagnosis) lines() []byte {
	lines := []string{clean("drover %s on %s/%s, in %s", d.Version, d.OS, d.Arch, d.Cwd)}
	for _, f := range d.Findings {
		lines = append(lines, clean("%-7s  %-11s  %s", string(f.Status), f.Name, f.Text))
		if f.Fix != "" {
			lines = append(lines, clean("%-7s  %-11s  fix: %s", "", "", f.Fix))
		}
	}
	return []byte(strings.Join(lines, "\n"))
}
