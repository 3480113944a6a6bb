package cmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"drover/cmd/config"
	"drover/output"
	"drover/output/fault"
	"drover/runner/model"
	"drover/runner/session"
	"drover/tools"
	"drover/tools/policy"
	"drover/tools/sandbox"
)

// findings looks at everything, in the order in which a run would meet it. What
// needs something that is broken looks at it with what is left.
func (a *app) findings(ctx context.Context, cwd string) []finding {
	cfg, list := a.examineConfig(cwd)
	s := mergeSettings(&a.run, nil, cfg)
	pol, found := a.examinePolicy(s, cwd)
	list = append(list, found...)
	list = append(list, a.examineSandbox(ctx, s, pol, cwd)...)
	list = append(list, a.examineState(), a.examineModel(s.model, cfg, cwd))
	if len(cfg.Hooks) > 0 {
		list = append(list, a.examineHooks(cfg, cwd))
	}
	if cfg.Approver != "" {
		list = append(list, a.examineApprover(cfg))
	}
	return append(list, a.examineGit(cwd), a.examineShell(cfg), a.examineTerminal())
}

// problem is the finding of an error, with its fix.
func problem(name string, err error) finding {
	f := fault.From(err)
	return finding{Name: name, Status: broken, Text: f.Error(), Fix: f.Fix}
}

// examineConfig reads the config files; without them, or with broken ones, the
// defaults hold.
func (a *app) examineConfig(cwd string) (*config.Config, []finding) {
	cfg, err := a.loadConfig(&a.run, cwd)
	if err != nil {
		return config.Early(a.getenv), []finding{problem("config", err)}
	}
	f := finding{Name: "config", Status: fine, Text: "no config file; the defaults hold", Details: map[string]any{"files": nonNil(cfg.Files)}}
	if len(cfg.Files) > 0 {
		f.Text = "read " + strings.Join(cfg.Files, ", ")
	} else if home := config.Home(a.getenv); home == "" {
		f.Status, f.Text = warning, "neither XDG_CONFIG_HOME nor HOME is set, so that there is no place for a config"
		f.Fix = "set HOME to a folder that drover may read"
	}
	list := []finding{f}
	for _, w := range cfg.Warnings {
		list = append(list, finding{Name: "config", Status: warning, Text: w})
	}
	return cfg, list
}

// examinePolicy loads the policy in force; nil if there is none that could be
// used.
func (a *app) examinePolicy(s settings, cwd string) (*policy.Policy, []finding) {
	pol, err := a.loadPolicy(&a.run, s, cwd)
	if err != nil {
		return nil, []finding{problem("policy", err)}
	}
	var files []string
	for _, l := range pol.Layers() {
		if l.Layer != "builtin" {
			files = append(files, l.Path)
		}
	}
	f := finding{Name: "policy", Status: fine, Text: "read " + strings.Join(files, ", "),
		Details: map[string]any{"files": nonNil(files), "preset": pol.PresetName(), "default": pol.Default(), "sha256": pol.SHA256()}}
	if len(files) == 0 {
		f.Text = fmt.Sprintf("no policy file; the preset %s holds", pol.PresetName())
	}
	list := []finding{f}
	for _, n := range pol.Notices() {
		list = append(list, finding{Name: "policy", Status: warning, Text: n, Fix: "see: drover policy check"})
	}
	return pol, list
}

// examineSandbox sets the sandbox up the way a run would, takes it down, and
// tries what else the kernel offers.
func (a *app) examineSandbox(ctx context.Context, s settings, pol *policy.Policy, cwd string) []finding {
	report := sandbox.Probe(ctx)
	f := finding{Name: "sandbox", Status: fine, Details: map[string]any{"offered": report}}
	list := []finding{f}
	closed := inContainer() && !report.UserNamespaces && report.Bubblewrap == ""
	for _, hint := range report.Hints {
		if !closed || !strings.Contains(hint, "this is a container") { // told below, with all that it takes
			list = append(list, hintFinding(hint))
		}
	}
	if closed {
		list = append(list, finding{Name: "sandbox", Status: warning, Text: "this container keeps drover from making namespaces of its own",
			Fix: "start it with --security-opt seccomp=unconfined --security-opt apparmor=unconfined; no further capability is needed"})
	}
	list[0] = a.trySandbox(ctx, s, pol, cwd, f)
	return append([]finding{kernelFinding(report)}, list...)
}

// kernelFinding names what the system offers for a sandbox.
func kernelFinding(r sandbox.Report) finding {
	offers := []string{strings.TrimSpace(r.OS + " " + r.Kernel)}
	if r.Landlock > 0 {
		offers = append(offers, fmt.Sprintf("Landlock %d", r.Landlock))
	}
	for _, o := range []struct {
		there bool
		name  string
	}{{r.Seccomp, "seccomp"}, {r.UserNamespaces, "namespaces"}, {r.Bubblewrap != "", "bubblewrap"}, {r.Overlay, "overlays"}, {r.Seatbelt, "Seatbelt"}} {
		if o.there {
			offers = append(offers, o.name)
		}
	}
	f := finding{Name: "kernel", Status: fine, Text: strings.Join(offers, ", ") + "; the best level is " + string(r.Level)}
	if r.Problem != "" {
		f.Status, f.Text = warning, f.Text+"; no namespaces: "+r.Problem
	}
	return f
}

// hintFinding is what is missing, and after a colon what to do about it.
func hintFinding(hint string) finding {
	text, fix, _ := strings.Cut(hint, ": ")
	return finding{Name: "sandbox", Status: warning, Text: text, Fix: fix}
}

// trySandbox opens the sandbox of a run, and completes the finding.
func (a *app) trySandbox(ctx context.Context, s settings, pol *policy.Policy, cwd string, f finding) finding {
	if pol == nil {
		// The sandbox itself can be tried without the user's policy.
		var err error
		if pol, err = policy.Load(policy.Sources{Preset: "workspace", Roots: policy.Roots{Workspace: cwd, Writable: s.writable(cwd)}}); err != nil {
			return problem("sandbox", err)
		}
	}
	box, err := a.openSandbox(ctx, s, pol, cwd, "")
	if err != nil {
		p := problem("sandbox", err)
		p.Details = f.Details
		return p
	}
	defer box.Close(graceOfCommands)
	info := box.Info()
	network := "no network"
	if info.Network {
		network = "with the network"
	}
	f.Text = fmt.Sprintf("%s, level %s, %s", info.Mode, cmp.Or(info.Level, sandbox.LevelNone), network)
	f.Details["mode"], f.Details["level"], f.Details["network"] = info.Mode, info.Level, info.Network
	switch {
	case s.sandbox == "off":
		f.Status, f.Text = warning, "off: an allowed command can do whatever you can"
		f.Fix = "leave out sandbox: off, or run drover in a container"
	case info.Level == sandbox.LevelNone || info.Level == "":
		f.Status, f.Fix = broken, "use a kernel with user namespaces or Landlock, or run with --sandbox off"
	case len(info.Warnings) > 0:
		f.Status = warning
		f.Text += ": " + strings.Join(info.Warnings, "; ")
	}
	return f
}

// inContainer tells whether this is Docker, Podman or the like.
func inContainer() bool {
	return slices.ContainsFunc([]string{"/.dockerenv", "/run/.containerenv"}, func(mark string) bool {
		_, err := os.Stat(mark)
		return err == nil
	})
}

// examineState looks at the folder in which sessions are kept. It makes none.
func (a *app) examineState() finding {
	dir := session.StateDir(a.getenv)
	f := finding{Name: "state", Status: fine, Details: map[string]any{"folder": dir}}
	if dir == "" {
		return finding{Name: "state", Status: broken, Text: "neither XDG_STATE_HOME nor HOME is set, so that no session can be kept",
			Fix: "set HOME, or use --ephemeral"}
	}
	there, info, err := nearest(dir)
	switch {
	case err != nil:
		return finding{Name: "state", Status: broken, Text: fmt.Sprintf("%q cannot be used: %s", dir, osReason(err)), Fix: "set XDG_STATE_HOME to a folder that you may write, or use --ephemeral"}
	case !info.IsDir():
		return finding{Name: "state", Status: broken, Text: fmt.Sprintf("%q is no folder", there), Fix: "set XDG_STATE_HOME to a folder, or use --ephemeral"}
	case !writable(there):
		return finding{Name: "state", Status: broken, Text: fmt.Sprintf("%q cannot be written", there), Fix: "set XDG_STATE_HOME to a folder that you may write, or use --ephemeral"}
	case there != dir:
		f.Text = dir + " will be made"
	case info.Mode().Perm()&0o077 != 0:
		f.Status, f.Text = warning, fmt.Sprintf("%s is open to others (mode %04o)", dir, info.Mode().Perm())
		f.Fix = "chmod 700 " + dir
	default:
		f.Text = dir + ", for you alone"
	}
	return f
}

// nearest is the folder itself, or the closest one above it that is there.
func nearest(dir string) (string, fs.FileInfo, error) {
	for {
		info, err := os.Stat(dir)
		if !errors.Is(err, fs.ErrNotExist) || dir == filepath.Dir(dir) {
			return dir, info, err
		}
		dir = filepath.Dir(dir)
	}
}

// examineModel opens the model without calling it. An error names the variable
// of a missing key and never shows a value.
func (a *app) examineModel(id string, cfg *config.Config, cwd string) finding {
	if id == "" {
		return finding{Name: "model", Status: warning, Text: "no model is configured",
			Fix: "name one with --model provider/model, DROVER_MODEL, or model: in the config"}
	}
	m, err := model.Open(id, model.Config{Providers: cfg.Providers, Getenv: a.getenv, BaseDir: cwd, UserAgent: "drover/" + Version})
	if err != nil {
		return problem("model", err)
	}
	f := finding{Name: "model", Status: fine, Text: m.ID + " (not called)"}
	var keys []string
	for name := range m.Secrets {
		keys = append(keys, strings.TrimRight(name, " ")) // blanks tell several of one header apart
	}
	slices.Sort(keys)
	keys = slices.Compact(keys)
	if len(keys) > 0 {
		f.Text = m.ID + ", its key is in " + strings.Join(keys, ", ") + " (not called)"
	}
	f.Details = map[string]any{"id": m.ID, "provider": m.Provider.Name(), "key_variables": nonNil(keys)}
	return f
}

// examineHooks looks for the programs of hooks.
func (a *app) examineHooks(cfg *config.Config, cwd string) finding {
	find := hookFinder{cwd: cwd, home: a.getenv("HOME"), look: a.hookPath(cfg.ShellEnvironment)}
	f := finding{Name: "hooks", Status: fine, Text: fmt.Sprintf("%d configured", len(cfg.Hooks))}
	for i := range cfg.Hooks {
		h := &cfg.Hooks[i]
		if program, missing := find.program(h.Command); missing {
			f.Status, f.Text = broken, fmt.Sprintf("the %s hook %q cannot be run: there is no program %q", h.Event, h.Name, program)
			f.Fix = fmt.Sprintf("install it, or repair hooks: in %q line %d", h.File, h.Line)
			break
		}
	}
	return f
}

// examineApprover looks for the program that answers what the policy asks. A
// run without it goes on, and each question is a refusal.
func (a *app) examineApprover(cfg *config.Config) finding {
	f := finding{Name: "approver", Status: fine, Text: cfg.Approver}
	dir, err := os.Getwd() // which is where it is started
	if err != nil {
		return f
	}
	find := hookFinder{cwd: dir, home: a.getenv("HOME"), look: a.hookPath(cfg.ShellEnvironment)}
	if program, missing := find.program(cfg.Approver); missing {
		f.Status, f.Text = broken, fmt.Sprintf("the approver cannot be run: there is no program %q, so that whatever is asked is refused", program)
		f.Fix = "install it, or repair approver: in the config"
	}
	return f
}

// examineGit looks for git and for a repository.
func (a *app) examineGit(cwd string) finding {
	path := lookPath(a.getenv("PATH"))("git")
	if path == "" {
		return finding{Name: "git", Status: warning, Text: "git is not on PATH: no isolated worktrees, and agents miss it", Fix: "install git"}
	}
	f := finding{Name: "git", Status: fine, Text: path + "; this folder is in no repository"}
	for dir := cwd; ; dir = filepath.Dir(dir) {
		if _, err := os.Lstat(filepath.Join(dir, ".git")); err == nil {
			f.Text = path + "; repository " + dir
			break
		}
		if dir == filepath.Dir(dir) {
			break
		}
	}
	return f
}

// examineShell names the shell of commands.
func (a *app) examineShell(cfg *config.Config) finding {
	path := tools.Commands{Environ: a.environ(), Shell: cfg.Shell}.SessionShell()
	f := finding{Name: "shell", Status: fine, Text: path}
	switch {
	case cfg.Shell != "" && path != cfg.Shell && filepath.Base(path) != cfg.Shell:
		f.Status, f.Fix = warning, "install it, or set shell: in the config to bash, zsh, sh or the like"
		f.Text = fmt.Sprintf("the shell %q of the config cannot be used; commands are run by %s", cfg.Shell, path)
	case !isProgram(path):
		f.Status, f.Text, f.Fix = broken, fmt.Sprintf("the shell %q cannot be run", path), "install it, or set shell: in the config"
	}
	return f
}

// examineTerminal says what the formats for people have to work with.
func (a *app) examineTerminal() finding {
	facts := map[string]any{
		"stdin": output.IsTerminal(a.stdin), "stdout": output.IsTerminal(a.stdout), "stderr": output.IsTerminal(a.stderr),
		"term": a.getenv("TERM"), "ascii": output.ASCII(a.stdout, a.getenv), "format": output.Auto(a.stdout, a.getenv), "no_color": a.getenv("NO_COLOR") != "",
	}
	f := finding{Name: "terminal", Status: fine, Details: facts, Text: fmt.Sprintf("standard output is no terminal; --format auto is %s", facts["format"])}
	if output.IsTerminal(a.stdout) {
		f.Text = fmt.Sprintf("standard output is a terminal (TERM=%s); --format auto is %s", cmp.Or(a.getenv("TERM"), "unset"), facts["format"])
	}
	return f
}

// nonNil makes an empty list one that JSON shows as such.
func nonNil(list []string) []string {
	if list == nil {
		return []string{}
	}
	return list
}
