package cmd

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"drover/output/event"
	"drover/runner"
	"drover/tools/sandbox"
)

// reach tries to leave the sandbox in three ways, and notes which were open.
const reach = `echo ran >> ran-NAME; touch ../outside/NAME; touch .git/NAME; exec 3<>/dev/tcp/127.0.0.1/PORT && echo NAME >> reached; exit 0`

// TestHooksAndChecksAreInTheSandbox has each of them reach for a folder that is
// not the agent's, for .git, and for the network. A hook gets what its entry in
// the config says and no more.
func TestHooksAndChecksAreInTheSandbox(t *testing.T) {
	t.Parallel()
	if _, err := os.Stat("/bin/bash"); err != nil {
		t.Skip("no bash here: ", err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() }) // the parts of the test run after its function
	_, port, err := net.SplitHostPort(listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ keys, outside, git, network string }{
		"nothing lifted": {"", "", "", ""},
		"a folder":       {"write: [../../outside]", "hook", "", ""},
		"the network":    {"network: true", "", "", "hook"},
		"the sandbox":    {"sandbox: 'off'", "hook", "hook", "hook"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			script := script(t, calls(execCall("true")), says("Done."))
			p := newProcess(t, "", "run", "--model", "script:model.jsonl", "-C", "work", "--policy", "policy.yaml", "--check", strings.NewReplacer("NAME", "check", "PORT", port).Replace(reach), "go")
			var hooks strings.Builder
			for _, at := range runner.HookEvents() {
				command := strings.NewReplacer("NAME", "hook-"+string(at), "PORT", port).Replace(reach)
				keys := c.keys
				if keys != "" {
					keys += ", "
				}
				fmt.Fprintf(&hooks, "  %s: [{hooks: [{%scommand: %s}]}]\n", at, keys, strconv.Quote(command))
			}
			p.lay(map[string]string{
				"model.jsonl": script, "policy.yaml": "version: 1\ndefault: allow\n", "outside/": "", "work/.git/config": "",
				".config/drover/config.yaml": "shell: /bin/bash\nhooks:\n" + hooks.String(),
			})
			stream := p.mustEnd(0)
			if s := bodies[event.RunStartedEvent](t, stream)[0].Sandbox; s.Level == string(sandbox.LevelLandlock) {
				t.Skip("only a kernel with user namespaces protects .git")
			}
			for _, at := range append([]string{"check"}, hookNames()...) {
				if _, err := os.Stat(filepath.Join(p.dir, "work", "ran-"+at)); err != nil {
					t.Errorf("%s was not run: %v", at, err)
				}
			}
			for what, want := range map[string]string{"outside": c.outside, "work/.git": c.git, "work/reached": c.network} {
				if got := p.reached(what); got != map[string]string{"": "", "hook": strings.Join(hookNames(), " ")}[want] {
					t.Errorf("%s was reached by %q", what, got)
				}
			}
		})
	}
}

func hookNames() (names []string) {
	for _, at := range runner.HookEvents() {
		names = append(names, "hook-"+string(at))
	}
	return names
}

// reached is who has left a mark in a folder or a line in a file, in order of
// events.
func (p *process) reached(what string) string {
	p.t.Helper()
	var found []string
	for _, name := range append([]string{"check"}, hookNames()...) {
		_, err := os.Stat(filepath.Join(p.dir, what, name))
		if text, _ := os.ReadFile(filepath.Join(p.dir, what)); err == nil || strings.Contains(string(text), name+"\n") {
			found = append(found, name)
		}
	}
	return strings.Join(found, " ")
}
