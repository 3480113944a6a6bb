package cmd

import (
	"strings"
	"testing"

	"drover/output/event"
)

// TestClosedNetworkThatIsOpenIsTold asks for a closed network in every place
// where that can be said.
func TestClosedNetworkThatIsOpenIsTold(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		file, content, env string
		args               []string
		want               string
	}{
		"nobody asks":       {},
		"task":              {file: "task.yaml", content: "version: 1\nprompt: go\nnetwork: false\n", args: []string{"-f", "task.yaml"}, want: "the task file"},
		"task that opens":   {file: "task.yaml", content: "version: 1\nprompt: go\nnetwork: true\n", args: []string{"-f", "task.yaml"}},
		"config":            {file: ".config/drover/config.yaml", content: "network: false\n", want: "the config"},
		"project":           {file: ".drover/config.yaml", content: "network: false\n", want: "the config"},
		"variable":          {env: "DROVER_NETWORK=false", want: "the config"},
		"policy":            {file: "p.yaml", content: "version: 1\ndefault: deny\nnetwork: deny\n", args: []string{"--policy", "p.yaml"}, want: `"p.yaml"`},
		"policy that opens": {file: "p.yaml", content: "version: 1\ndefault: deny\nnetwork: allow\n", args: []string{"--policy", "p.yaml"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			args := c.args
			if c.file != "task.yaml" {
				args = append(args, "go")
			}
			p := newProcess(t, answer, append([]string{"run", "--model", "script:model.jsonl"}, args...)...)
			if c.file != "" {
				p.lay(map[string]string{c.file: c.content})
			}
			p.cmd.Env = append(p.cmd.Env, c.env)
			stream := p.mustEnd(0)
			var told []string
			for _, n := range bodies[event.NoticeEvent](t, stream) {
				if n.Code == "network_open" {
					told = append(told, n.Message)
				}
			}
			if c.want == "" && told != nil || c.want != "" && (len(told) != 1 || !strings.Contains(told[0], c.want)) {
				t.Errorf("told %q", told)
			}
			if s := bodies[event.RunStartedEvent](t, stream)[0].Sandbox; s == nil || !s.Network {
				t.Errorf("run.started says %+v", s)
			}
		})
	}
}
