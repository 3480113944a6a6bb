package cmd

import (
	"encoding/base64"
	"slices"
	"strings"
	"testing"
)

// TestSecretsOfEveryUsualNameAreMasked prints them in a command, in every way
// in which base64 hides a value, and as the final answer.
func TestSecretsOfEveryUsualNameAreMasked(t *testing.T) {
	t.Parallel()
	for entry, canary := range map[string]string{
		"TOKEN=canary1234": "", "DB_PASSWD=canary1234": "", "MYSQL_PWD=canary1234": "", "GITHUB_PAT=canary1234": "",
		"MY_CREDENTIALS=canary1234": "", "NPM_AUTH=canary1234": "", "PIN_KEY=k3yK3y": "",
		"DATABASE_URL=postgres://me:canary1234@db/x": "canary1234",
	} {
		name, value, _ := strings.Cut(entry, "=")
		if canary == "" {
			canary = value
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cmd := `echo $V; echo $V | base64; echo x$V | base64; echo xx$V | base64; yes $V | head -40 | base64; V=; env`
			encoded := base64.StdEncoding.EncodeToString([]byte("it is " + canary + "\n"))
			p := run(t, script(t, calls(execCall("V="+canary+"; "+cmd)), m{"text": encoded + " " + canary, "chunk": 3}), "--events", "full", "-o", "answer.txt", "go")
			p.cmd.Env = append(p.cmd.Env, entry)
			stream := p.mustEnd(0)
			all := p.everything(stream)
			all["answer.txt"] = p.tree(".")["answer.txt"]
			for where, text := range all {
				if strings.Contains(text, canary) {
					t.Errorf("the secret is in %s", where)
				}
				if i := slices.IndexFunc(strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune("\"\\ \n", r) }), func(word string) bool {
					for cut := range min(4, len(word)) {
						word := word[cut:]
						if raw, err := base64.StdEncoding.DecodeString(word[:len(word)/4*4]); err == nil && strings.Contains(string(raw), canary) {
							return true
						}
					}
					return false
				}); i >= 0 {
					t.Errorf("the secret is in base64 in %s: %s", where, text)
				}
			}
		})
	}
}

// TestFailedStartPrintsNoSecretWithDebug also shows the chain of causes.
func TestFailedStartPrintsNoSecretWithDebug(t *testing.T) {
	t.Parallel()
	for name, args := range map[string][]string{
		"unreadable policy":   {"--policy", "canary-9931\x1b[31m.yaml"},
		"unreadable prompt":   {"--prompt-file", "canary-9931"},
		"schema":              {"--output-schema", "canary-9931.json"},
		"flag that is none":   {"--canary-9931"},
		"command of nobody":   {"--format", "canary-9931"},
		"config in the house": {"--model", "nobody/canary-9931"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if !slices.Contains(args, "--prompt-file") {
				args = append(args, "hi")
			}
			p := run(t, answer, append(args, "--debug")...)
			p.cmd.Env = append(p.cmd.Env, "LISTED=canary-9931", "DROVER_REDACT=LISTED")
			stdout, exit := p.output()
			if exit == 0 || strings.Contains(p.stderr.String(), "\x1b") {
				t.Errorf("exit %d, stderr %q", exit, p.stderr.String())
			}
			for where, text := range p.everything(stdout) {
				if strings.Contains(text, "canary-9931") {
					t.Errorf("the secret is in %s: %s", where, text)
				}
			}
		})
	}
}

// TestPolicyOfTheFolderIsNotTheUsers runs without a home: nothing that lies in
// the folder may stand in for the user's own policy and config.
func TestPolicyOfTheFolderIsNotTheUsers(t *testing.T) {
	t.Parallel()
	for name, home := range map[string][]string{"no home": {"HOME=", "XDG_CONFIG_HOME=", "XDG_STATE_HOME="}, "relative home": {"HOME=.", "XDG_CONFIG_HOME=.", "XDG_STATE_HOME=."}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newProcess(t, script(t, calls(execCall("true")), says("Done.")), "run", "--model", "script:model.jsonl", "--ephemeral", "go")
			open := "version: 1\ndefault: allow\nrules:\n  - {id: all, effect: allow, tool: ['*']}\n"
			p.lay(map[string]string{"policy.yaml": open, "drover/policy.yaml": open, ".config/drover/policy.yaml": open, "config.yaml": "network: true\n", "drover/config.yaml": "network: true\n"})
			for _, entry := range home {
				p.cmd.Env = append(p.cmd.Env, entry)
			}
			stdout, exit := p.output()
			if strings.Contains(string(stdout), "policy.yaml") || !strings.Contains(string(stdout), `"type":"run.started"`) {
				t.Errorf("exit %d, the folder's policy was taken for the user's: %s", exit, stdout)
			}
		})
	}
}
