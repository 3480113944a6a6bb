package cmd

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"drover/cmd/config"
	"drover/output/event"
	"drover/output/fault"
	"drover/runner/session"
	"drover/tools"
	"drover/tools/policy"
	"drover/tools/sandbox"
)

// openSandbox sets up what bounds the commands of a run or of one call. layers
// is a folder that does not exist yet, or empty.
func (a *app) openSandbox(ctx context.Context, s settings, pol *policy.Policy, cwd, layers string) (*sandbox.Sandbox, error) {
	writable := s.writable(cwd)
	if len(writable) > 0 {
		writable = append(writable, pol.AddDirs()...)
	}
	if s.sandbox != string(sandbox.Off) {
		if err := a.claimOwnFolders(writable); err != nil {
			return nil, err
		}
	}
	return sandbox.Open(ctx, sandbox.Options{
		Mode: sandbox.Mode(s.sandbox), Cwd: cwd, Writable: writable,
		Protected: a.protected(writable, s, pol), DenyRead: pol.DenyRead(),
		Network: commandsHaveNetwork(s, pol), Layers: layers, Environ: a.environ(), Early: a.early,
	})
}

// protected are the names below the writable roots that commands must not
// change: what steers git and agents, and what the next run of drover believes.
func (a *app) protected(writable []string, s settings, pol *policy.Policy) []string {
	lifted := pol.Unprotected()
	var out []string
	for _, root := range writable {
		for _, name := range tools.Protected {
			if path := filepath.Join(root, name); !slices.Contains(lifted, path) {
				out = append(out, path)
			}
		}
	}
	return append(out, a.steering(writable, s)...)
}

// steering are the files and folders below the writable roots that the next run
// believes: drover's own, and the policy and task files of this one.
func (a *app) steering(writable []string, s settings) []string {
	own := a.ownFolders()
	for _, path := range append([]string{s.inlinePolicyName, s.approvals.program}, s.policies...) {
		if path != "" {
			own = append(own, absolute([]string{path})...)
		}
	}
	return slices.DeleteFunc(own, func(path string) bool { return !filepath.IsAbs(path) || !liesBelow(writable, path) })
}

// ownFolders are where drover keeps what it believes and what it has seen.
func (a *app) ownFolders() []string {
	return []string{session.StateDir(a.getenv), config.Home(a.getenv)}
}

// claimOwnFolders makes drover's own folders, if a root is around them: what does
// not exist cannot be protected, and the policy that a command puts there is the
// user's for the next run.
func (a *app) claimOwnFolders(writable []string) error {
	for _, path := range a.ownFolders() {
		if !filepath.IsAbs(path) || !liesBelow(writable, path) {
			continue
		}
		if err := os.MkdirAll(path, 0o700); err != nil {
			return &fault.Error{
				Code: "own_folder", What: fmt.Sprintf("drover's folder %q cannot be made", path), Why: osReason(err),
				Fix: "make it, or run in a folder that it does not lie in", Exit: fault.Environment, Err: err,
			}
		}
	}
	return nil
}

// liesBelow tells whether a path is strictly below one of the folders, whichever
// links are in their names.
func liesBelow(folders []string, path string) bool {
	real := policy.RealPath(filepath.Clean(path))
	return slices.ContainsFunc(folders, func(dir string) bool {
		dir = policy.RealPath(filepath.Clean(dir))
		return real != dir && strings.HasPrefix(real, strings.TrimSuffix(dir, "/")+"/")
	})
}

// private are the folders that commands see through a private layer.
func (a *app) private(s settings) []string {
	if s.sandbox == "off" {
		return nil
	}
	return sandbox.Private(a.environ())
}

// commandsHaveNetwork tells whether the commands of a run have the network. A
// policy file that closes it outranks every setting that opens it, as a deny
// outranks an allow.
func commandsHaveNetwork(s settings, pol *policy.Policy) bool {
	return (s.network || pol.Network()) && len(pol.ClosesNetwork()) == 0
}

// sandboxNotices are what the sandbox cannot do here, one notice each.
func sandboxNotices(info sandbox.Info, s settings, pol *policy.Policy) []event.NoticeEvent {
	var list []event.NoticeEvent
	if closed := pol.ClosesNetwork(); s.network && len(closed) > 0 {
		list = append(list, event.NoticeEvent{Level: "warning", Code: "network_closed",
			Message: "the network stays closed for commands: the policy file " + strconv.Quote(closed[0]) + " says network: deny"})
	}
	for _, text := range info.Warnings {
		list = append(list, event.NoticeEvent{Level: "warning", Code: "sandbox_partial", Message: text})
	}
	return list
}

// sandboxRef is the sandbox as run.started tells it.
func sandboxRef(info sandbox.Info) *event.Sandbox {
	return &event.Sandbox{
		Mode: string(info.Mode), Level: string(cmp.Or(info.Level, sandbox.LevelNone)), Network: info.Network,
	}
}
