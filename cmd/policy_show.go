package cmd

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"drover/output"
	"drover/output/fault"
	"drover/tools/policy"
)

func newPolicyShowCmd(a *app) *cobra.Command {
	var builtin, effective bool
	var format string
	c := &cobra.Command{
		Use:   "show [PRESET...]",
		Short: "Print the policy in force, or the built-in presets",
		Long:  "Print the pool of rules that a run in this folder with these flags would be judged\nby, with its sources and the hash that run.started reports. With --builtin print the\npresets as YAML, all of them or those that are named.",
		RunE: func(c *cobra.Command, args []string) error {
			a.run.set = c.Flags().Changed
			switch {
			case builtin && effective:
				return usageError(c, errors.New("--builtin and --effective exclude each other"))
			case builtin:
				return showPresets(a.stdout, args)
			case len(args) > 0:
				return usageError(c, errors.New("presets are named with --builtin"))
			}
			return showPolicy(a, format)
		},
	}
	bindPolicyFlags(a, c)
	c.Flags().BoolVar(&builtin, "builtin", false, "print the built-in presets")
	c.Flags().BoolVar(&effective, "effective", false, "print the policy in force (the default)")
	c.Flags().StringVar(&format, "format", "text", "text or json")
	return c
}

func showPresets(w io.Writer, names []string) error {
	if len(names) == 0 {
		names = policy.Presets()
	}
	for i, name := range names {
		data, ok := policy.Preset(name)
		if !ok {
			return &fault.Error{
				Code: "policy_unknown_preset", What: fmt.Sprintf("there is no preset %q", name),
				Fix: "see: drover policy show --builtin", Exit: fault.Usage,
			}
		}
		head := ""
		if len(names) > 1 {
			head = "# preset: " + name + "\n"
		}
		if i > 0 {
			head = "---\n" + head
		}
		if _, err := fmt.Fprintf(w, "%s%s", head, data); err != nil {
			return err
		}
	}
	return nil
}

// shownPolicy is the pool as `policy show --format json` prints it.
type shownPolicy struct {
	SHA256           string           `json:"sha256"`
	Preset           string           `json:"preset,omitempty"`
	Default          policy.Effect    `json:"default"`
	Approval         string           `json:"approval,omitempty"`
	Granular         *policy.Granular `json:"granular,omitempty"`
	Mode             policy.Mode      `json:"mode"`
	OnAsk            policy.OnAsk     `json:"on_ask"`
	OnDeny           policy.OnDeny    `json:"on_deny"`
	OnSandboxRefusal policy.OnDeny    `json:"on_sandbox_refusal"`
	MaxDenials       int              `json:"max_denials,omitempty"`
	Network          bool             `json:"network"`
	AddDirs          []string         `json:"add_dirs,omitempty"`
	DenyRead         []string         `json:"deny_read,omitempty"`
	Layers           []shownLayer     `json:"layers"`
	Rules            []policy.RuleRef `json:"rules"`
	Notices          []string         `json:"notices,omitempty"`
}

type shownLayer struct {
	Layer  string `json:"layer"`
	Path   string `json:"path"`
	SHA256 string `json:"sha256"`
}

func showPolicy(a *app, format string) error {
	if format != "text" && format != "json" {
		return unknownFormat(format, "text", "json")
	}
	p, err := a.policyInForce()
	if err != nil {
		return err
	}
	s := shownPolicy{
		SHA256: p.SHA256(), Preset: p.PresetName(), Mode: p.Mode(), Default: p.Default(), Approval: p.Approval(), OnAsk: p.OnAsk(), OnDeny: p.OnDeny(),
		OnSandboxRefusal: p.OnSandboxRefusal(), MaxDenials: p.MaxDenials(), Network: p.Network(), AddDirs: p.AddDirs(),
		DenyRead: p.DenyRead(), Layers: []shownLayer{}, Rules: p.Rules(), Notices: p.Notices(),
	}
	if g, ok := p.Granular(); ok {
		s.Granular = &g
	}
	for _, l := range p.Layers() {
		s.Layers = append(s.Layers, shownLayer{Layer: l.Layer, Path: l.Path, SHA256: l.SHA256})
	}
	if format == "json" {
		return json.NewEncoder(a.stdout).Encode(s)
	}
	return s.print(a.stdout)
}

func (s *shownPolicy) print(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "sha256\t%s\n", s.SHA256)
	for _, l := range s.Layers {
		fmt.Fprintf(t, "source\t%s %s (%.12s)\n", l.Layer, output.Clean(l.Path), l.SHA256)
	}
	fmt.Fprintf(t, "default\t%s\n", s.Default)
	if s.Approval != "" {
		fmt.Fprintf(t, "approval\t%s\n", s.Approval)
	}
	fmt.Fprintf(t, "mode\t%s\n", s.Mode)
	fmt.Fprintf(t, "on_ask\t%s\non_deny\t%s\non_sandbox_refusal\t%s\n", s.OnAsk, s.OnDeny, s.OnSandboxRefusal)
	if s.MaxDenials > 0 {
		fmt.Fprintf(t, "max_denials\t%d\n", s.MaxDenials)
	}
	fmt.Fprintf(t, "network\t%s\n", map[bool]string{true: "allow", false: "deny"}[s.Network])
	for _, dir := range s.AddDirs {
		fmt.Fprintf(t, "add_dirs\t%s\n", output.Clean(dir))
	}
	for _, glob := range s.DenyRead {
		fmt.Fprintf(t, "deny_read\t%s\n", output.Clean(glob))
	}
	for _, n := range s.Notices {
		fmt.Fprintf(t, "notice\t%s\n", output.Clean(n))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	if len(s.Rules) == 0 {
		return nil
	}
	t = tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "\nEFFECT\tRULE\tLAYER\tWHERE\tMATCH")
	for _, r := range s.Rules {
		fmt.Fprintf(t, "%s\t%s\t%s\t%s:%d\t%s%s\n", r.Effect, output.Clean(r.ID), r.Layer, output.Clean(r.File), r.Line, output.Clean(r.Match), ruleSets(r))
	}
	return t.Flush()
}

// ruleSets are the keys of a rule that are no conditions, as they stand in a
// file.
func ruleSets(r policy.RuleRef) string {
	var sets []string
	for _, k := range []struct{ key, value string }{{"max_scope", r.MaxScope}, {"on_ask", string(r.OnAsk)}, {"on_deny", string(r.OnDeny)}} {
		if k.value != "" {
			sets = append(sets, " "+k.key+": "+k.value)
		}
	}
	if r.Network {
		sets = append(sets, " network: true")
	}
	if r.Unsandboxed {
		sets = append(sets, " sandbox: off")
	}
	if r.TimeoutMS > 0 {
		sets = append(sets, fmt.Sprintf(" timeout: %v", time.Duration(r.TimeoutMS)*time.Millisecond))
	}
	return strings.Join(sets, "")
}
