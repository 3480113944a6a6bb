package cmd

import (
	"encoding/base64"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"drover/output/event"
)

// This file looks for a secret wherever a run leaves something, after each way
// in which a run can fail around it.

// canary is the secret; a test that must not name it itself spells it in two
// halves.
const canary = "canary-4f9a1c77"

// leaks are the places that hold the secret, in any encoding that is masked.
func leaks(all map[string]string) []string {
	var out []string
	for where, text := range all {
		for _, form := range []string{canary, url.QueryEscape(canary + "/")[:len(canary)], base64.StdEncoding.EncodeToString([]byte(canary))[:18]} {
			if strings.Contains(text, form) {
				out = append(out, where)
			}
		}
	}
	return out
}

// left is everything but the files that the test itself has laid.
func (p *process) left(stdout []byte, laid ...string) map[string]string {
	p.t.Helper()
	all := p.everything(stdout)
	for name, content := range p.tree(".") {
		all[name] = content
	}
	for _, name := range append(laid, "model.jsonl") {
		delete(all, name)
	}
	return all
}

// TestHooksAndApproversThatFailShowNoSecret has each of them print all that it
// knows on its way down.
func TestHooksAndApproversThatFailShowNoSecret(t *testing.T) {
	t.Parallel()
	const spill = `env; cat; env >&2; printf 'canary-%s\n' 4f9a1c77 >&2; cat /proc/$PPID/environ /proc/self/environ >&2 2>/dev/null`
	for name, c := range map[string]struct {
		config string
		args   []string
		exit   int
	}{
		"hook that crashes":    {"hooks: {PreToolUse: [{hooks: [{command: " + strconv.Quote(spill+"; exit 3") + "}]}]}\n", nil, 10},
		"hook that refuses":    {"hooks: {PreToolUse: [{hooks: [{command: " + strconv.Quote(spill+"; exit 2") + "}]}]}\n", nil, 10},
		"hook that hangs":      {"hooks: {PreToolUse: [{hooks: [{timeout: 0.3, command: " + strconv.Quote(spill+"; sleep 300") + "}]}]}\n", nil, 10},
		"hook with nonsense":   {"hooks: {PostToolUse: [{hooks: [{on_error: deny, command: " + strconv.Quote(spill) + "}]}]}\n", nil, 0},
		"hook of the end":      {"hooks: {Stop: [{hooks: [{on_error: deny, command: " + strconv.Quote(spill+"; exit 1") + "}]}]}\n", nil, 1},
		"hook that is missing": {"hooks: {PreToolUse: [{hooks: [{command: ./" + canary + "}]}]}\n", nil, 7},
		"approver that fails":  {"", []string{"--ask", "exec:echo", "--approver", spill + "; exit 3"}, 10},
		"approver that denies": {"", []string{"--ask", "exec:echo", "--approver", spill + "; exit 2"}, 10},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			args := append([]string{"run", "--model", "script:model.jsonl", "--debug", "--events", "full"}, c.args...)
			p := newProcess(t, script(t, calls(execCall("echo "+canary)), says("Done.")), append(args, "go")...)
			const config = ".config/drover/config.yaml"
			p.lay(map[string]string{config: c.config})
			p.cmd.Env = append(p.cmd.Env, "API_TOKEN="+canary)
			stdout, exit := p.output()
			if exit != c.exit {
				t.Errorf("exit %d, want %d: %s", exit, c.exit, p.stderr.String())
			}
			if where := leaks(p.left(stdout, config)); where != nil {
				t.Errorf("the secret is in %q:\n%.6000s", where, stdout)
			}
		})
	}
}

// TestNoChildIsToldTheKeys reads the arguments and environments of everything
// that runs below drover, its sandbox's helper included, from a command, a check
// and a hook.
func TestNoChildIsToldTheKeys(t *testing.T) {
	t.Parallel()
	// The pattern must not find the process that looks for it; what is found is
	// told without drover itself, which has the key.
	const key = "canary-of-argv-77c1a9f4"
	const look = `for f in $(grep -la 'canary-of-argv-[7]7c1a9f4' /proc/[0-9]*/cmdline /proc/[0-9]*/environ 2>/dev/null); do ` +
		`grep -qa 'model[.]jsonl' ${f%/*}/cmdline || echo $f; done; echo looked; true`
	for _, mode := range []string{"workspace-write", "off"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			p := run(t, script(t, calls(execCall("{ "+look+"; } > of-command")), says("Done.")), "--sandbox", mode, "--check", "{ "+look+"; } > of-check", "go")
			p.lay(map[string]string{".config/drover/config.yaml": "providers: {local: {api: chat, base_url: 'http://127.0.0.1:1/v1', api_key_env: LOCAL_KEY}}\n" +
				"hooks: {PreToolUse: [{hooks: [{command: " + strconv.Quote("{ "+look+"; } > of-hook") + "}]}]}\n"})
			p.cmd.Env = append(p.cmd.Env, "LOCAL_KEY="+key)
			p.mustEnd(0)
			for _, name := range []string{"of-command", "of-check", "of-hook"} {
				if got := p.tree(".")[name]; got != "looked\n" {
					t.Errorf("%s found the key: %s", name, got)
				}
			}
		})
	}
}

// TestAlwaysWritesNoSecret approves a command that holds one for good.
func TestAlwaysWritesNoSecret(t *testing.T) {
	t.Parallel()
	p := newProcess(t, script(t, calls(execCall("./deploy.sh --token "+canary)), says("Done.")), "run", "--model", "script:model.jsonl",
		"--ask", "exec:./deploy.sh", "--approver", "sh yes.sh", "--allow-policy-writes", "--events", "full", "go")
	p.lay(map[string]string{"deploy.sh": "#!/bin/sh\necho deployed > deployed\n", "yes.sh": `id=$(sed 's/.*"correlation_id":"\([^"]*\)".*/\1/')
echo "{\"v\":1,\"type\":\"tool.approval.response\",\"correlation_id\":\"$id\",\"approved\":true,\"scope\":\"always\"}"
`})
	if err := os.Chmod(filepath.Join(p.dir, "deploy.sh"), 0o755); err != nil {
		t.Fatal(err)
	}
	p.cmd.Env = append(p.cmd.Env, "API_TOKEN="+canary)
	stdout := p.mustEnd(0)
	if p.tree(".")["deployed"] == "" {
		t.Error("the approved command was not run")
	}
	if where := leaks(p.left(stdout)); where != nil {
		t.Errorf("the secret is in %q", where)
	}
}

// TestEveryFileOfARunIsPrivate looks at the state folder while the run is still
// going, when sockets and layers are there, and after it.
func TestEveryFileOfARunIsPrivate(t *testing.T) {
	t.Parallel()
	for _, mask := range []string{"000", "022"} {
		t.Run(mask, func(t *testing.T) {
			t.Parallel()
			dir, err := os.MkdirTemp("", "drover") // the path of a socket has to be short
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = os.RemoveAll(dir) })
			socket := filepath.Join(dir, "s")
			const list = "find .state/drover .config/drover %s -printf '%%m %%y %%p\\n' 2>/dev/null > modes.txt; exit 0"
			p := newProcess(t, script(t, calls(execCall("head -c 3000000 /dev/zero | tr '\\0' x; echo private > /tmp/private-file")), says("Done.")),
				"run", "--model", "script:model.jsonl", "--approvals-socket", socket, "--check", "true", "go")
			p.lay(map[string]string{".config/drover/config.yaml": "hooks: {Stop: [{hooks: [{sandbox: 'off', command: " + strconv.Quote(fmt.Sprintf(list, socket)) + "}]}]}\n"})
			if err := os.Chmod(filepath.Join(p.dir, ".config", "drover"), 0o700); err != nil {
				t.Fatal(err)
			}
			p.cmd.Args = append([]string{"sh", "-c", `umask ` + mask + `; exec "$0" "$@"`, p.cmd.Path}, p.cmd.Args[1:]...)
			p.cmd.Path = "/bin/sh"
			p.mustEnd(0)
			kinds := map[string]int{}
			for line := range strings.Lines(p.tree(".")["modes.txt"]) {
				var mode, kind, path string
				if _, err := fmt.Sscan(line, &mode, &kind, &path); err != nil {
					t.Fatal(err)
				}
				kinds[kind]++
				inside, _, below := strings.Cut(path, "/layers/")
				switch want := map[string]string{"d": "700", "f": "600", "s": "600"}[kind]; {
				case path == ".config/drover/config.yaml": // the user's own file
				case below:
					// What commands make has the modes that they choose, behind a
					// folder that nobody else can enter.
					_ = inside
				case kind == "l":
				case mode != want:
					t.Errorf("%s has mode %s, want %s", path, mode, want)
				}
			}
			if kinds["f"] < 2 || kinds["d"] < 3 || kinds["s"] != 1 {
				t.Errorf("looked at %v: %s", kinds, p.tree(".")["modes.txt"])
			}
		})
	}
}

// TestSecretsOfManyFormsAreMaskedAcrossChunks prints them in pieces, as they are,
// escaped as in an address, and in base64, and has the final answer hold them.
func TestSecretsOfManyFormsAreMaskedAcrossChunks(t *testing.T) {
	t.Parallel()
	const secret = "p@ss/w rd+" + canary
	forms := []string{secret, url.QueryEscape(secret), url.PathEscape(secret), url.QueryEscape(url.QueryEscape(secret)), base64.StdEncoding.EncodeToString([]byte(secret))}
	var print strings.Builder
	for _, form := range forms {
		half := len(form) / 2
		fmt.Fprintf(&print, "printf %%s '%s'; sleep 0.1; echo '%s'; ", form[:half], form[half:])
	}
	p := run(t, script(t, calls(execCall(print.String())), m{"text": strings.Join(forms, " and "), "chunk": 3}), "--events", "full", "-o", "answer.txt", "go")
	p.cmd.Env = append(p.cmd.Env, "API_TOKEN="+secret)
	stream := p.mustEnd(0)
	for where, text := range p.left(stream) {
		for _, form := range forms {
			if strings.Contains(text, form) {
				t.Errorf("%q is in %s", form, where)
			}
		}
	}
	if got := strings.Count(lastLine(t, stream).Message, "[secret:API_TOKEN]"); got != len(forms) {
		t.Errorf("%d of %d were masked: %s", got, len(forms), lastLine(t, stream).Message)
	}
	if events := bodies[event.TerminalAppendStringEvent](t, stream); len(events) == 0 {
		t.Error("the command printed nothing")
	}
}

// TestSecretAtACutIsNotShownInPart prints one so often that every cut goes
// through it, at each of its bytes.
func TestSecretAtACutIsNotShownInPart(t *testing.T) {
	t.Parallel()
	const secret = "4f9a1c77-canary-8b2e5d60"
	var turns []m
	for n := range len(secret) + 1 {
		command := execCall(fmt.Sprintf("printf '%%*s' %d ''; i=0; while [ $i -lt 400 ]; do i=$((i+1)); printf '%%s ' $API_TOKEN; done", n))
		command["args"].(m)["max_output_tokens"] = 200
		turns = append(turns, calls(command), calls(execCall(": "+strings.Repeat("x", 170+n)+secret)))
	}
	p := newProcess(t, script(t, append(turns, says("Done."))...), "run", "--model", "script:model.jsonl", "--policy", "policy.yaml", "--debug", "--events", "full", "go")
	const config = ".config/drover/config.yaml"
	p.lay(map[string]string{
		"policy.yaml": "version: 1\ndefault: allow\n",
		config:        "hooks: {PostToolUse: [{hooks: [{command: \"yes $API_TOKEN | head -200 | tr '\\\\n' ' ' >&2; exit 1\"}]}]}\n",
	})
	p.cmd.Env = append(p.cmd.Env, "API_TOKEN="+secret)
	stream := p.mustEnd(0)
	if len(bodies[event.HookFinishedEvent](t, stream)) == 0 {
		t.Error("no hook was run")
	}
	for where, text := range p.left(stream, "policy.yaml", config) {
		for n := 0; n+8 <= len(secret); n++ {
			if i := strings.Index(text, secret[n:n+8]); i >= 0 {
				t.Errorf("a part of the secret is in %s: %.200s", where, text[max(0, i-100):])
				break
			}
		}
	}
}
