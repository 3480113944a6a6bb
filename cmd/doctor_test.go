package cmd

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// diagnose runs doctor and returns what it found.
func (p *process) diagnose(t *testing.T) (diagnosis, int) {
	t.Helper()
	stdout, exit := p.plain()
	var d diagnosis
	if err := json.Unmarshal(stdout, &d); err != nil {
		t.Fatalf("%v: %s %s", err, stdout, p.stderr.String())
	}
	if d.ExitCode != exit {
		t.Errorf("exit %d, and it says %d", exit, d.ExitCode)
	}
	return d, exit
}

// of returns the findings of a name.
func (d diagnosis) of(name string) []finding {
	return slices.DeleteFunc(slices.Clone(d.Findings), func(f finding) bool { return f.Name != name })
}

func doctor(t *testing.T, args ...string) *process {
	t.Helper()
	return newProcess(t, "", append([]string{"doctor", "--format", "json"}, args...)...)
}

func TestDoctorLooksAtEverythingAndChangesNothing(t *testing.T) {
	t.Parallel()
	p := doctor(t)
	before := p.tree(".")
	d, _ := p.diagnose(t)
	for _, name := range []string{"config", "policy", "sandbox", "state", "model", "git", "shell", "terminal"} {
		if len(d.of(name)) == 0 {
			t.Errorf("nothing of %s", name)
		}
	}
	if d.Version != Version || d.Cwd == "" {
		t.Errorf("got %+v", d)
	}
	if after := p.tree("."); len(after) != len(before) {
		t.Errorf("files came: %v", after)
	}
	for _, f := range d.Findings {
		if f.Status == broken && f.Fix == "" {
			t.Errorf("no fix for %+v", f)
		}
	}
}

func TestDoctorNamesKeysAndShowsNone(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		key    string
		status findingStatus
		text   string
	}{
		"set":        {"canary-0123456789", fine, "its key is in OPENAI_API_KEY"},
		"missing":    {"", broken, "OPENAI_API_KEY"},
		"unexpanded": {"${{ secrets.canary-0123456789 }}", broken, "never expanded"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := doctor(t, "--model", "openai/gpt-5")
			p.cmd.Env = append(p.cmd.Env, "OPENAI_API_KEY="+c.key)
			d, _ := p.diagnose(t)
			got := d.of("model")
			if len(got) != 1 || got[0].Status != c.status || !strings.Contains(got[0].Text, c.text) {
				t.Errorf("got %+v", got)
			}
			raw, err := json.Marshal(d)
			if err != nil || strings.Contains(string(raw)+p.stderr.String(), "canary") {
				t.Errorf("the key is shown: %s %v", raw, err)
			}
		})
	}
}

func TestDoctorGoesOnBehindWhatIsBroken(t *testing.T) {
	t.Parallel()
	p := doctor(t)
	p.lay(map[string]string{
		".config/drover/config.yaml": "max_turn: 3\n",
		".config/drover/policy.yaml": "version: 1\nrules:\n  - {id: x, effekt: allow}\n",
		"state":                      "no folder",
	})
	p.cmd.Env = append(p.cmd.Env, "XDG_STATE_HOME="+filepath.Join(p.dir, "state"))
	d, _ := p.diagnose(t)
	for name, want := range map[string]string{"config": "max_turn", "policy": "effekt", "state": "not a directory"} {
		got := d.of(name)
		if len(got) == 0 || got[0].Status != broken || !strings.Contains(got[0].Text, want) {
			t.Errorf("%s: %+v", name, got)
		}
	}
	if d.OK || len(d.of("terminal")) == 0 {
		t.Errorf("got %+v", d)
	}
}

func TestDoctorFindsOpenStateAndMissingHooks(t *testing.T) {
	t.Parallel()
	p := doctor(t)
	p.lay(map[string]string{
		".config/drover/config.yaml": "hooks: {Stop: [{hooks: [{command: ./no-such-guard, name: guard}]}]}\n",
		".state/drover/x":            "",
	})
	p.cmd.Env = append(p.cmd.Env, "XDG_STATE_HOME="+filepath.Join(p.dir, ".state"))
	if err := os.Chmod(filepath.Join(p.dir, ".state", "drover"), 0o755); err != nil {
		t.Fatal(err)
	}
	d, _ := p.diagnose(t)
	if got := d.of("state"); got[0].Status != warning || !strings.HasPrefix(got[0].Fix, "chmod 700 ") {
		t.Errorf("got %+v", got)
	}
	if got := d.of("hooks"); len(got) != 1 || got[0].Status != broken || !strings.Contains(got[0].Text, "no-such-guard") {
		t.Errorf("got %+v", got)
	}
}

// TestDoctorFindsMissingApproverAndShell: a run would go on without the
// approver and without the shell that the config names.
func TestDoctorFindsMissingApproverAndShell(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		config, finding string
		status          findingStatus
		text            string
	}{
		"missing approver": {"approver: ./no-such-program --now\n", "approver", broken, "no-such-program"},
		"approver":         {"approver: test -t 0 && ask\n", "approver", fine, "test -t 0"},
		"missing shell":    {"shell: /nowhere/bash\n", "shell", warning, "/nowhere/bash"},
		"no shell":         {"shell: /bin/cat\n", "shell", warning, "/bin/cat"},
		"shell by name":    {"shell: sh\n", "shell", fine, "/sh"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := doctor(t)
			p.lay(map[string]string{".config/drover/config.yaml": c.config})
			d, _ := p.diagnose(t)
			got := d.of(c.finding)
			if len(got) != 1 || got[0].Status != c.status || !strings.Contains(got[0].Text, c.text) || (got[0].Fix == "") != (c.status == fine) {
				t.Errorf("got %+v", got)
			}
		})
	}
}

// TestDoctorShowsNoSecretOfAnyName has secrets in every name that it shows.
func TestDoctorShowsNoSecretOfAnyName(t *testing.T) {
	t.Parallel()
	for _, format := range []string{"text", "json"} {
		p := newProcess(t, "", "doctor", "--format", format, "-C", canary)
		p.lay(map[string]string{canary + "/x": "", ".config/drover/config.yaml": "approver: ./" + canary + "\nshell: /bin/" + canary + "\nmodel: local/" + canary +
			"\nproviders: {local: {api: chat, base_url: 'http://me:" + canary + "@h/v1'}}\nhooks: {Stop: [{hooks: [{command: ./" + canary + "}]}]}\n"})
		p.cmd.Env = append(p.cmd.Env, "API_TOKEN="+canary)
		stdout, exit := p.plain()
		if where := leaks(map[string]string{"stdout": string(stdout), "stderr": p.stderr.String()}); exit != 0 || where != nil || !strings.Contains(string(stdout), "[secret:API_TOKEN]") {
			t.Errorf("exit %d, the secret is in %q: %s", exit, where, stdout)
		}
	}
}

func TestDoctorIsReadable(t *testing.T) {
	t.Parallel()
	p := newProcess(t, "", "doctor", "--sandbox", "off", "--model", "nobody/\x1b[31mx")
	stdout, exit := p.plain()
	if exit != 0 || !strings.HasPrefix(string(stdout), "drover "+Version) || strings.Contains(string(stdout), "\x1b") {
		t.Errorf("exit %d: %q", exit, stdout)
	}
	for line := range strings.Lines(string(stdout)) {
		if len(line) > 500 {
			t.Errorf("a long line: %s", line)
		}
	}
	for _, args := range [][]string{{"--format", "xml"}, {"--sandbox", "none"}, {"-C", "/nowhere"}, {"stray"}} {
		p := newProcess(t, "", append([]string{"doctor"}, args...)...)
		if _, exit := p.plain(); exit != 2 {
			t.Errorf("%v: exit %d", args, exit)
		}
	}
}
