package cmd

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"drover/output/event"
)

// plainRun starts a command that is no run and returns what it said.
func plainRun(t *testing.T, args ...string) (stdout, stderr string, exit int) {
	t.Helper()
	p := newProcess(t, "", args...)
	out, exit := p.plain()
	return string(out), p.stderr.String(), exit
}

func TestHelpOfACommandThatDoesNotExist(t *testing.T) {
	t.Parallel()
	for _, args := range []string{"nope --help", "--help nope", "help nope", "-h nope", "tools nope --help", "help tools nope", "nope --version"} {
		stdout, stderr, exit := plainRun(t, strings.Fields(args)...)
		if exit != 2 || stdout != "" || !strings.Contains(stderr, `unknown command "nope"`) {
			t.Errorf("drover %s: exit %d, stdout %q, stderr %q", args, exit, stdout, stderr)
		}
	}
	for _, args := range []string{"--help", "help", "help run", "run --help", "tools --help", "help tools call", ""} {
		stdout, stderr, exit := plainRun(t, strings.Fields(args)...)
		if exit != 0 || !strings.Contains(stdout, "Usage:") || stderr != "" {
			t.Errorf("drover %s: exit %d, stdout %q, stderr %q", args, exit, stdout, stderr)
		}
	}
}

func TestVersionFlagPrintsTheVersion(t *testing.T) {
	t.Parallel()
	flag, _, exit := plainRun(t, "--version")
	command, _, _ := plainRun(t, "version")
	if exit != 0 || flag != command || !strings.HasPrefix(flag, "drover "+Version) {
		t.Errorf("exit %d, %q and %q", exit, flag, command)
	}
}

func TestValueOfALabelIsNotSplitAtCommas(t *testing.T) {
	t.Parallel()
	p := run(t, answer, "--label", "a=b,c=d", "--label", `q="x",=y`, "--label", "empty=", "--label", "a=last,one", "go")
	stream := p.mustEnd(0)
	want := map[string]string{"a": "last,one", "q": `"x",=y`, "empty": ""}
	if d := cmp.Diff(want, bodies[event.RunStartedEvent](t, stream)[0].Labels); d != "" {
		t.Error(d)
	}
	p = run(t, answer, "-f", "task.yaml", "--param", "who=Ann, Bob=Rob")
	p.lay(map[string]string{"task.yaml": "version: 1\nprompt: Greet ${who}.\nparams: {who: nobody}\n"})
	if got := userMessage(t, p.mustEnd(0)); got != "Greet Ann, Bob=Rob." {
		t.Errorf("the prompt is %q", got)
	}
	for _, flag := range []string{"--label", "--param"} {
		for _, value := range []string{"alone", "=value", ""} {
			run(t, answer, flag, value, "go").mustEnd(2)
		}
	}
}

func TestFileNamesOfPoliciesAreCleaned(t *testing.T) {
	t.Parallel()
	const name = "\x1b[31mred.yaml"
	for _, args := range [][]string{{"policy", "check", name}, {"policy", "show", "--policy", name}, {"policy", "check", "--policy", name}} {
		p := newProcess(t, "", args...)
		p.lay(map[string]string{name: "version: 1\ndefault: deny\nrules:\n  - {id: a, effect: allow, path: ['**'], access: [read]}\n  - {id: b, effect: deny, path: ['**']}\n"})
		stdout, exit := p.plain()
		if all := string(stdout) + p.stderr.String(); exit != 0 || strings.Contains(all, "\x1b") || !strings.Contains(all, "red.yaml") {
			t.Errorf("%q: exit %d: %q", args, exit, all)
		}
	}
}

func TestSessionsOfTheFolderAreNotTheUsers(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"list"}, {"show", "last"}, {"rm", "--all"}} {
		p := newProcess(t, "", append([]string{"sessions"}, args...)...)
		p.lay(map[string]string{"sessions/ses_00000000000000000000000000/events.jsonl": "mine"})
		p.cmd.Env = append(p.cmd.Env, "HOME=", "XDG_STATE_HOME=")
		if _, exit := p.plain(); exit != 7 {
			t.Errorf("%q: exit %d: %s", args, exit, p.stderr.String())
		}
		if got := p.tree(".")[filepath.Join("sessions", "ses_00000000000000000000000000", "events.jsonl")]; got != "mine" {
			t.Errorf("%q: the folder's own file is %q", args, got)
		}
	}
}
