package policy

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func appendRule(t *testing.T, p *Policy, file, rule, id string) {
	t.Helper()
	if err := p.AppendGenerated(file, parsed(t, p, rule), id); err != nil {
		t.Fatal(err)
	}
}

func TestAlwaysAnswersBecomeRulesOfTheUser(t *testing.T) {
	file := filepath.Join(t.TempDir(), "new", "policy.generated.yaml")
	p := load(t, asking)
	call := run("git push origin main")
	prs := p.Propose(call, p.Decide(call))
	if err := p.AppendGenerated(file, prs[0], "ap1\n- {id: evil}\x1b[0m"); err != nil {
		t.Fatal(err)
	}
	appendRule(t, p, file, `{"id":"make","argv":["make"]}`, "ap2")
	appendRule(t, p, file, `{"id":"make","argv":["make"]}`, "ap3")
	appendRule(t, p, file, `{"id":"other","argv":["make"]}`, "ap4")
	appendRule(t, p, file, `{"id":"make","argv":["just"],"max_scope":"always"}`, "")
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	want := generatedHead + `version: 1
rules:
  # correlation id: ap1- {id: evil}[0m
  - id: ` + prs[0].ID + `
    effect: allow
    argv: [git, push, origin, main]
    argv_exact: true
  # correlation id: ap2
  - id: make
    effect: allow
    argv: [make]
  - id: make-2
    effect: allow
    argv: [just]
`
	if diff := cmp.Diff(want, string(data)); diff != "" {
		t.Errorf("file (-want +got):\n%s", diff)
	}
	info, err := os.Stat(file)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	next := load(t, asking, func(s *Sources) { s.Generated = file })
	checkCommands(t, next, []judged{{`git push origin main`, Allow}, {`git push origin`, Ask}, {`make x`, Allow}, {`just`, Allow}, {`rm x`, Deny}})
	v := next.Decide(run("git push origin main"))
	if v.DecidedBy != byGrant || v.RuleID != prs[0].ID || v.Layer != "user" || v.File != file || v.Line == 0 {
		t.Errorf("got %+v", v)
	}
	if v := next.Decide(run("git tag x")); v.Effect != Ask {
		t.Errorf("got %+v", v)
	}
	left, err := filepath.Glob(file + ".*.tmp")
	if err != nil || len(left) > 0 {
		t.Errorf("left over: %v %v", left, err)
	}
}

func TestAlwaysAnswersRespectWhoAskedForShorterOnes(t *testing.T) {
	dir := t.TempDir()
	file := write(t, dir, "policy.generated.yaml", "version: 1\nrules: [{id: all, effect: allow, argv: [git]}, {id: no, effect: deny, argv: [git, gc]}]\n")
	p := load(t, asking, func(s *Sources) { s.Generated = file })
	checkCommands(t, p, []judged{{`git push`, Allow}, {`git tag x`, Ask}, {`git clone x`, Ask}, {`git fetch`, Allow}, {`git gc`, Deny}})
	alone, err := Load(Sources{Generated: file, Roots: Roots{Workspace: "/w", Writable: []string{"/w"}}})
	if err != nil || alone.PresetName() != presetWorkspace {
		t.Errorf("answers stand in for a policy: %v", err)
	}
}

func TestAFileThatAPersonEditedKeepsItsWords(t *testing.T) {
	file := write(t, t.TempDir(), "g.yaml", `# mine
version: 1
rules: [{id: a, effect: allow, argv: [x]}] # short
tests:
  - {name: t, exec: x, expect: allow} # kept
`)
	p := load(t, asking)
	appendRule(t, p, file, `{"argv":["zig"]}`, "ap1")
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{"# mine", "# short", "# kept", "argv: [zig]", "id: a"} {
		if !strings.Contains(string(data), part) {
			t.Errorf("%q is lost:\n%s", part, data)
		}
	}
	if next := load(t, string(data)); len(next.Rules()) != 2 || len(next.Tests()) != 1 {
		t.Errorf("got:\n%s", data)
	}
}

func TestFilesThatCannotTakeAnAnswerStayAsTheyAre(t *testing.T) {
	dir := t.TempDir()
	p := load(t, asking)
	target := write(t, dir, "target.yaml", "version: 1\n")
	link := filepath.Join(dir, "link.yaml")
	if err := os.Symlink(target, link); err != nil {
		t.Fatal(err)
	}
	broken := write(t, dir, "broken.yaml", "version: 1\nrulez: []\n")
	lock := filepath.Join(dir, "locked.yaml")
	if err := os.Symlink(target, lock+".lock"); err != nil {
		t.Fatal(err)
	}
	pr := parsed(t, p, `{"argv":["make"]}`)
	for _, file := range []string{link, broken, dir, lock} {
		if err := p.AppendGenerated(file, pr, "ap1"); err == nil {
			t.Errorf("%s took the rule", filepath.Base(file))
		}
	}
	for file, want := range map[string]string{target: "version: 1\n", broken: "version: 1\nrulez: []\n"} {
		if data, err := os.ReadFile(file); err != nil || string(data) != want {
			t.Errorf("%s changed to %q (%v)", file, data, err)
		}
	}
	short := parsed(t, p, `{"argv":["make"],"max_scope":"session"}`)
	if err := p.AppendGenerated(filepath.Join(dir, "x.yaml"), short, ""); err == nil {
		t.Error("an answer for a session was written down")
	}
	if err := p.AppendGenerated(filepath.Join(dir, "x.yaml"), Proposal{ID: "x"}, ""); err == nil {
		t.Error("a rule that nobody read was written down")
	}
}

func TestAnswersThatComeTogetherAreAllKept(t *testing.T) {
	file := filepath.Join(t.TempDir(), "policy.generated.yaml")
	p := load(t, asking)
	names := strings.Fields("a b c d e f g h i j k l m n o p")
	var group sync.WaitGroup
	for _, name := range names {
		pr := parsed(t, p, `{"id":"same","argv":["`+name+`"]}`)
		group.Go(func() {
			if err := p.AppendGenerated(file, pr, name); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	next := load(t, asking, func(s *Sources) { s.Generated = file })
	for _, name := range names {
		if v := next.Decide(run(name)); v.Effect != Allow {
			t.Errorf("the answer for %s is lost", name)
		}
	}
}
