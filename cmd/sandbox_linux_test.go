package cmd

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"drover/output/event"
)

// What a command or a file tool leaves where the next run looks for the user's
// policy would be the user's policy.
func TestNothingBecomesTheUsersPolicy(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		args   []string
		files  map[string]string
		policy string
	}{
		"home is the workspace":      {args: []string{"-C", "home"}},
		"home is reached by a link":  {args: []string{"-C", "real"}, files: map[string]string{"real/": "", "home": "-> real"}},
		"home is added":              {args: []string{"-C", "work", "--add-dir", "home"}, files: map[string]string{"work/": ""}},
		"home is added by a policy":  {args: []string{"-C", "work", "--policy", "p.yaml"}, files: map[string]string{"work/": ""}, policy: "add_dirs: [../home]"},
		"a folder is there already":  {args: []string{"-C", "home"}, files: map[string]string{"home/.config/drover/other": "x"}},
		"the folders above it moved": {args: []string{"-C", "."}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			own := filepath.Join("home", ".config", "drover", "policy.yaml")
			p := run(t, "")
			home := filepath.Join(p.dir, "home")
			target := filepath.Join(p.dir, own)
			p.lay(map[string]string{
				"write.sh": "cd '" + p.dir + "'\nmv home gone; mv home/.config home/gone; mkdir -p '" + filepath.Dir(target) + "'; echo 'version: 1' > '" + target + "'; true\n",
				"model":    script(t, calls(execCall("sh '"+filepath.Join(p.dir, "write.sh")+"'"), m{"name": "write_file", "args": m{"path": target, "content": "version: 1\n"}}), says("Done.")),
				"p.yaml":   "version: 1\ndefault: allow\non_deny: continue\n" + c.policy,
			})
			if c.files["home"] == "" {
				p.lay(map[string]string{"home/": ""})
			}
			p.lay(c.files)
			p.cmd.Args = append([]string{p.cmd.Args[0], "run", "--model", "script:" + filepath.Join(p.dir, "model"), "--policy", filepath.Join(p.dir, "p.yaml")}, append(c.args, "go")...)
			p.cmd.Env = append(p.cmd.Env, "HOME="+home, "XDG_CONFIG_HOME=", "XDG_STATE_HOME="+filepath.Join(p.dir, "state"))
			stream, _ := p.output()
			if results := bodies[event.ToolResultEvent](t, stream); len(results) != 2 || !strings.HasPrefix(results[1].Content, "denied") {
				t.Errorf("the file tool wrote: %+v\n%s", results, p.stderr.String())
			}
			if text, err := os.ReadFile(target); err == nil {
				t.Errorf("the user's policy is %q", text)
			}
		})
	}
}
