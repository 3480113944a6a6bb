package cmd

import (
	"testing"

	"drover/output/event"
)

// TestCommandsHaveTheNetworkOnlyWhereSomebodySaysSo says it in every place where
// it can be said.
func TestCommandsHaveTheNetworkOnlyWhereSomebodySaysSo(t *testing.T) {
	t.Parallel()
	const opening, closing = "version: 1\ndefault: deny\nnetwork: allow\n", "version: 1\ndefault: deny\nnetwork: deny\n"
	task := func(network string) string { return "version: 1\nprompt: go\nnetwork: " + network + "\n" }
	for name, c := range map[string]struct {
		file, content, env string
		args               []string
		open, told         bool
	}{
		"nobody":                       {},
		"a flag":                       {args: []string{"--network"}, open: true},
		"a task":                       {file: "task.yaml", content: task("true"), args: []string{"-f", "task.yaml"}, open: true},
		"the config":                   {file: ".config/drover/config.yaml", content: "network: true\n", open: true},
		"a project without trust":      {file: ".drover/config.yaml", content: "network: true\n"},
		"a variable":                   {env: "DROVER_NETWORK=true", open: true},
		"a variable against a task":    {file: "task.yaml", content: task("true"), env: "DROVER_NETWORK=false", args: []string{"-f", "task.yaml"}},
		"a flag against a task":        {file: "task.yaml", content: task("false"), args: []string{"-f", "task.yaml", "--network"}, open: true},
		"a policy":                     {file: "p.yaml", content: opening, args: []string{"--policy", "p.yaml"}, open: true},
		"a policy against the flag":    {file: "p.yaml", content: closing, args: []string{"--policy", "p.yaml", "--network"}, told: true},
		"nobody, and nothing bounds":   {args: []string{"--sandbox", "off"}, open: true},
		"yolo, which opens no network": {args: []string{"--yolo"}},
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
			told := false
			for _, n := range bodies[event.NoticeEvent](t, stream) {
				told = told || n.Code == "network_closed"
			}
			if told != c.told {
				t.Errorf("told: %v", told)
			}
			if s := bodies[event.RunStartedEvent](t, stream)[0].Sandbox; s == nil || s.Network != c.open {
				t.Errorf("run.started says %+v", s)
			}
		})
	}
}
