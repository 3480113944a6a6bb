package cmd

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"drover/output/fault"
)

// policyCommand runs `drover policy ARGS` in a folder and returns what it
// prints to stdout and stderr, and its error.
func policyCommand(t *testing.T, dir string, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	t.Chdir(dir)
	var files [2]*os.File
	for i, name := range []string{"stdout", "stderr"} {
		f, err := os.Create(filepath.Join(t.TempDir(), name))
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		files[i] = f
	}
	env := map[string]string{"HOME": dir, "XDG_CONFIG_HOME": filepath.Join(dir, "config"), "PATH": os.Getenv("PATH")}
	a := &app{stdout: files[0], stderr: files[1], getenv: func(name string) string { return env[name] }, environ: func() []string { return nil }}
	c := newPolicyCmd(a)
	c.SilenceErrors, c.SilenceUsage = true, true
	c.SetArgs(args)
	err = c.Execute()
	var texts [2]string
	for i, f := range files {
		data, err := os.ReadFile(f.Name())
		if err != nil {
			t.Fatal(err)
		}
		texts[i] = string(data)
	}
	return texts[0], texts[1], err
}

func writePolicy(t *testing.T, dir, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestPolicyCheckNamesFileLineAndNearestKey(t *testing.T) {
	dir := t.TempDir()
	writePolicy(t, dir, "good.yaml", "version: 1\nrules:\n  - {id: all, effect: allow, argv: ['*']}\ntests:\n  - {exec: ls, expect: allow}\n")
	writePolicy(t, dir, "bad.yaml", "version: 1\nrules:\n  - id: a\n    effect: allow\n    comand_prefix: [git, status]\n")
	stdout, _, err := policyCommand(t, dir, "check", "good.yaml")
	if err != nil || !strings.Contains(stdout, `good.yaml:3: warning: rule "all": it allows every command`) || !strings.Contains(stdout, "good.yaml: ok: 1 rules, 1 tests, 1 warnings") {
		t.Errorf("got %v, %s", err, stdout)
	}
	stdout, stderr, err := policyCommand(t, dir, "check", "bad.yaml", "missing.yaml", "good.yaml")
	var quiet exitWith
	if !errors.As(err, &quiet) || quiet.code != fault.Config {
		t.Errorf("got error %v", err)
	}
	for _, part := range []string{`"bad.yaml"`, `line 5: unknown key "comand_prefix"`, `did you mean "argv"?`, `"missing.yaml"`, "no such file"} {
		if !strings.Contains(stderr, part) {
			t.Errorf("stderr lacks %q:\n%s", part, stderr)
		}
	}
	if !strings.Contains(stdout, "good.yaml: ok") {
		t.Errorf("the files after a bad one are not checked: %s", stdout)
	}
}

func TestPolicyShowPrintsPresetsAndThePoolInForce(t *testing.T) {
	dir := t.TempDir()
	stdout, _, err := policyCommand(t, dir, "show", "--builtin")
	for _, name := range []string{"read-only", "workspace", "ci", "yolo"} {
		if !strings.Contains(stdout, "# preset: "+name+"\n") {
			t.Errorf("the preset %s is missing (%v)", name, err)
		}
	}
	if stdout, _, err = policyCommand(t, dir, "show", "--builtin", "ci"); err != nil || strings.Contains(stdout, "---") || !strings.Contains(stdout, "no-push") {
		t.Errorf("got %v, %s", err, stdout)
	}
	if _, _, err = policyCommand(t, dir, "show", "--builtin", "no"); fault.From(err).Exit != fault.Usage {
		t.Errorf("got %v", err)
	}
	stdout, _, err = policyCommand(t, dir, "show")
	if err != nil || !strings.Contains(strings.Join(strings.Fields(stdout), " "), "approval on-failure mode headless") || !strings.Contains(stdout, "builtin workspace") || !strings.Contains(stdout, "write-workspace") {
		t.Errorf("got %v, %s", err, stdout)
	}

	writePolicy(t, dir, "p.yaml", "version: 1\non_ask: fail\nrules:\n  - {id: git, effect: allow, argv: [git, [status, log]], network: true, timeout: 30s}\n")
	if err := os.MkdirAll(filepath.Join(dir, ".drover"), 0o700); err != nil {
		t.Fatal(err)
	}
	writePolicy(t, dir, filepath.Join(".drover", "policy.yaml"), "version: 1\nrules:\n  - {id: own, effect: allow, argv: [make]}\n")
	stdout, _, err = policyCommand(t, dir, "show", "--policy", "p.yaml", "--deny", "exec:git log", "--format", "json")
	var shown shownPolicy
	if err != nil || json.Unmarshal([]byte(stdout), &shown) != nil {
		t.Fatalf("got %v, %s", err, stdout)
	}
	if len(shown.Rules) != 2 || shown.Rules[0].Match != "argv: [git, [status, log]]" || shown.Rules[1].ID != "flag-1" || shown.OnAsk != "fail" ||
		len(shown.Layers) != 2 || len(shown.SHA256) != 64 || len(shown.Notices) != 1 {
		t.Errorf("got %+v", shown)
	}
	text, _, err := policyCommand(t, dir, "show", "--effective", "--policy", "p.yaml", "--deny", "exec:git log")
	if err != nil || !strings.Contains(text, shown.SHA256) || !strings.Contains(text, "p.yaml:4") || !strings.Contains(text, "notice") ||
		!strings.Contains(text, "argv: [git, [status, log]] network: true timeout: 30s\n") {
		t.Errorf("got %v, %s", err, text)
	}
}
