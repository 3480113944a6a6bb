package cmd

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"drover/output/event"
)

// This file runs commands under small policies, through the whole program, and
// looks whether they really ran: a refused one leaves no canary.

// verdicts is one policy, and what becomes of commands under it.
type verdicts struct {
	name, policy string
	lay          map[string]string
	// ran are commands that must run and go well, refused those that must not.
	ran, refused []string
}

var smallPolicies = []verdicts{
	{
		name:   "what follows an allowed command is judged, too",
		policy: "rules:\n  - {id: cd, effect: allow, argv: [cd]}\n  - {id: status, effect: allow, argv: [git, status]}\n",
		ran:    []string{"cd sub && git status"},
		refused: []string{"cd sub && touch canary", "git status; touch canary", "git status | tee canary", "git status &\ntouch canary",
			"git status || touch canary", "cd sub; touch ../canary", "(git status; touch canary)", "git status `touch canary`"},
	},
	{
		name:    "wildcards are not wider than their command",
		policy:  "rules:\n  - {id: cd, effect: allow, argv: [cd, '*']}\n  - {id: status, effect: allow, argv: [git, 'stat*']}\n",
		ran:     []string{"cd sub && git status"},
		refused: []string{"cd sub && touch canary", "git status; touch canary", "git status | tee canary", "git status &\ntouch canary"},
	},
	{
		name:   "settings that choose programs are not neutral",
		policy: "rules:\n  - {id: status, effect: allow, argv: [git, status]}\n",
		ran:    []string{"git -C sub status", "LC_ALL=C git status"},
		refused: []string{"git -c core.fsmonitor='touch canary' status", "env GIT_DIR=evil git status", "GIT_DIR=evil git status",
			"GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=core.fsmonitor GIT_CONFIG_VALUE_0='touch canary' git status",
			"PATH=sub:$PATH git status", "LD_PRELOAD=./x.so git status"},
	},
	{
		name:    "what is quoted in a file is data",
		policy:  "rules:\n  - {id: cat, effect: allow, argv: [cat]}\n  - {id: writes, effect: allow, path: ['**'], access: [write]}\n  - {id: no-rm, effect: deny, argv: [rm, -rf]}\n",
		ran:     []string{"cat > doc.md <<'EOF'\nnever run rm -rf / here; $(touch canary)\nEOF"},
		refused: []string{"cat > doc2.md <<EOF\n$(rm -rf sub; touch canary)\nEOF", "cat <<'EOF' | sh\ntouch canary\nEOF"},
	},
	{
		name:    "a redirection is a write",
		policy:  "rules:\n  - {id: echo, effect: allow, argv: [echo]}\n",
		ran:     []string{"echo x > /dev/null", "echo x 2>&1", "echo x >&2"},
		refused: []string{"echo x > canary", "echo x >> ../canary", "echo x >| canary", "echo x &> canary", "echo x &>> canary", "echo x <> canary 1>&0"},
	},
	{
		name:    "a write is judged by where it goes",
		policy:  "rules:\n  - {id: echo, effect: allow, argv: [echo]}\n  - {id: writes, effect: allow, path: ['**'], access: [write]}\n",
		ran:     []string{"echo x > in.txt", "echo x >| in.txt", "echo x &> in.txt"},
		refused: []string{"echo x >> ../canary", "echo x > /canary", "echo x > out/canary"},
		lay:     map[string]string{"out": "-> ../outside"},
	},
	{
		name:    "programs that run others are as good as those",
		policy:  "rules:\n  - {id: ls, effect: allow, argv: [ls]}\n  - {id: xargs, effect: allow, argv: [xargs]}\n  - {id: grep, effect: allow, argv: [grep]}\n",
		ran:     []string{"ls sub | xargs -r grep foo || ls"},
		refused: []string{"ls | xargs rm", "ls | xargs -I{} sh -c 'touch canary'", "ls | xargs touch canary", "ls | xargs -P2 -n1 touch canary"},
	},
	{
		name:   "find does more than find",
		policy: "approval: untrusted\n",
		ran:    []string{"find . -name x"},
		refused: []string{"find . -delete", `find . -exec touch canary \;`, `find . -execdir touch canary \;`, `find . -ok touch canary \;`, "find . -fprint canary",
			"find . -fls canary"},
	},
	{
		name:   "a wrapper is as good as what it wraps",
		policy: "rules:\n  - {id: env, effect: allow, argv: [env]}\n  - {id: status, effect: allow, argv: [git, status]}\n",
		ran:    []string{"env FOO=1 git status"},
		refused: []string{"env touch canary", "timeout 5 touch canary", "nice -n 5 touch canary", "command touch canary", "busybox touch canary", "sh -c 'touch canary'",
			"unknown-wrapper git status"},
	},
	{
		name:   "operators are no parts of paths",
		policy: "approval: untrusted\n",
		ran:    []string{"ls missing 2>/dev/null || echo none", "ls sub 2> /dev/null; echo done"},
	},
	{
		name:   "a substitution of processes is judged",
		policy: "rules:\n  - {id: cat, effect: allow, argv: [cat]}\n  - {id: diff, effect: allow, argv: [diff]}\n",
		lay:    map[string]string{"a": "1\n", "b": "1\n"},
		// What a substitution gives cannot be known, so none of them is allowed.
		refused: []string{"diff <(cat a) <(cat b)", "cat <(touch canary)", "cat a > >(tee canary)", "echo >(touch canary)"},
	},
	{
		name:    "the ends of pipelines are readers, and words are whole",
		policy:  "approval: untrusted\n",
		lay:     map[string]string{"f": "x\n", "bin/sortfoo": "touch canary\n"},
		ran:     []string{"grep -c x f | sort", "grep -c x f | wc", "grep -c x f | uniq -c", "sort f"},
		refused: []string{"sortfoo f", "grep -c x f | sortfoo", "sort -o canary f"},
	},
}

// TestCommandsRunOrDoNotAsASmallPolicySays: a verdict is only as good as what
// happens.
func TestCommandsRunOrDoNotAsASmallPolicySays(t *testing.T) {
	t.Parallel()
	var all together
	for _, v := range smallPolicies {
		v := v
		commands := append(append([]string{}, v.ran...), v.refused...)
		var list []m
		for _, c := range commands {
			list = append(list, execCall(c))
		}
		p := newProcess(t, script(t, calls(list...), says("Done.")), "run", "--model", "script:../model.jsonl", "--policy", "../policy.yaml",
			"--on-deny", "continue", "--max-denials", "100",
			"--sandbox", "off", "go") // it is the policy that must refuse
		p.lay(map[string]string{"policy.yaml": "version: 1\ndefault: deny\n" + v.policy, "work/sub/": "", "outside/": ""})
		outer := p.dir
		p.dir = filepath.Join(outer, "work")
		p.lay(v.lay)
		p.cmd.Dir = p.dir
		p.cmd.Env = append(p.cmd.Env, "GIT_CONFIG_NOSYSTEM=1")
		for _, dir := range []string{"work", "work/sub"} {
			repository(t, filepath.Join(outer, dir))
		}
		all.start(v.name, p, func(t *testing.T, stream []byte, _ int) {
			results := bodies[event.ToolResultEvent](t, stream)
			if len(results) != len(commands) {
				t.Fatalf("%d results for %d commands\n%.3000s", len(results), len(commands), stream)
			}
			of := map[string]event.ToolResultEvent{}
			for _, r := range results {
				of[r.ToolCallID] = r
			}
			for i, c := range bodies[event.ToolCallEvent](t, stream) {
				if r := of[c.ToolCallID]; r.Denied != (i >= len(v.ran)) {
					t.Errorf("%q: denied is %t: %s", commands[i], r.Denied, r.Content)
				}
			}
			for _, place := range []string{"work/canary", "work/sub/canary", "canary", "outside/canary", "../canary"} {
				if _, err := os.Lstat(filepath.Join(outer, place)); err == nil {
					t.Errorf("%s is there", place)
				}
			}
		})
	}
	all.finish(t)
}

// repository makes a folder one of git, without git.
func repository(t *testing.T, dir string) {
	t.Helper()
	git := filepath.Join(dir, ".git")
	for _, sub := range []string{"objects", "refs/heads"} {
		if err := os.MkdirAll(filepath.Join(git, sub), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range map[string]string{"HEAD": "ref: refs/heads/main\n", "config": "[core]\n\trepositoryformatversion = 0\n"} {
		if err := os.WriteFile(filepath.Join(git, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// TestTheVerdictNamesThePartsAndTheRule: whoever reads the stream sees why.
func TestTheVerdictNamesThePartsAndTheRule(t *testing.T) {
	t.Parallel()
	p := newProcess(t, script(t, calls(execCall("echo a && git status && touch canary")), says("Done.")), "run", "--model", "script:model.jsonl",
		"--policy", "policy.yaml", "--on-deny", "report", "go")
	p.lay(map[string]string{"policy.yaml": "version: 1\ndefault: deny\nrules:\n  - {id: echo, effect: allow, argv: [echo]}\n  - {id: status, effect: allow, argv: [git, status]}\n"})
	stream, _ := p.output()
	d := bodies[event.ToolDecisionEvent](t, stream)
	if len(d) != 1 || d[0].Effect != "deny" || len(d[0].Parts) != 3 {
		t.Fatalf("got %+v", d)
	}
	var told []string
	for _, part := range d[0].Parts {
		told = append(told, fmt.Sprint(part))
	}
	for _, want := range []string{"echo", "status", "touch canary"} {
		if !strings.Contains(strings.Join(told, "\n"), want) {
			t.Errorf("%q is not among %q", want, told)
		}
	}
}

// TestEverythingIsAllowedWhereTheUserSaysSo, whatever is hard to read.
func TestEverythingIsAllowedWhereTheUserSaysSo(t *testing.T) {
	t.Parallel()
	p := run(t, script(t, calls(execCall(`echo "$(date)"`), execCall("eval 'echo '$((40+2))"), execCall("cat <(echo inner)")), says("Done.")), "go")
	for _, r := range bodies[event.ToolResultEvent](t, p.mustEnd(0)) {
		if r.Denied || r.IsError {
			t.Errorf("refused: %s", r.Content)
		}
	}
}

// TestPolicyFilesOfOtherEncodings: only UTF-8 is read, with or without a mark;
// everything else ends the run before it begins.
func TestPolicyFilesOfOtherEncodings(t *testing.T) {
	t.Parallel()
	good := "version: 1\ndefault: deny\nrules:\n  - {id: echo, effect: allow, argv: [echo]}\n"
	wide := []byte{0xff, 0xfe}
	for i := range len(good) {
		wide = append(wide, good[i], 0)
	}
	for _, c := range []struct {
		name, content string
		exit          int
		want          string
	}{
		{"UTF-8 with a mark", "\xef\xbb\xbf" + good, 0, ""},
		{"UTF-16", string(wide), 3, "policy.yaml"},
		{"a byte that is no text", strings.Replace(good, "echo", "ech\xff", 1), 3, "policy.yaml"},
		{"empty", "", 3, "policy.yaml"},
		{"a misspelt key", strings.Replace(good, "argv:", "agrv:", 1), 3, `"argv"`},
	} {
		p := newProcess(t, script(t, calls(execCall("echo hi")), says("Done.")), "run", "--model", "script:model.jsonl", "--policy", "policy.yaml", "go")
		p.lay(map[string]string{"policy.yaml": c.content})
		stream, exit := p.output()
		if exit != c.exit || !strings.Contains(p.stderr.String(), c.want) {
			t.Errorf("%s: exit %d, want %d; stderr: %s", c.name, exit, c.exit, p.stderr.String())
		}
		if n := len(bodies[event.TurnStartedEvent](t, stream)); c.exit != 0 && n != 0 {
			t.Errorf("%s: the model was asked", c.name)
		}
	}
	for _, odd := range []string{"folder/", "missing.yaml", "locked.yaml"} {
		p := newProcess(t, script(t, says("Done.")), "run", "--model", "script:model.jsonl", "--policy", strings.TrimSuffix(odd, "/"), "go")
		if odd != "missing.yaml" {
			p.lay(map[string]string{odd: good})
		}
		if odd == "locked.yaml" {
			if os.Geteuid() == 0 {
				continue // root reads everything
			}
			if err := os.Chmod(filepath.Join(p.dir, odd), 0); err != nil {
				t.Fatal(err)
			}
		}
		if _, exit := p.output(); exit != 3 || !strings.Contains(p.stderr.String(), strings.TrimSuffix(odd, "/")) {
			t.Errorf("%s: exit %d; stderr: %s", odd, exit, p.stderr.String())
		}
	}
}

// TestALinkDoesNotLeadOut: what is behind a link is judged by where it is.
func TestALinkDoesNotLeadOut(t *testing.T) {
	t.Parallel()
	// Commands have a /tmp of their own, so this must lie elsewhere to be told
	// from what nobody sees.
	outer, err := os.MkdirTemp(".", "outer")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(outer) })
	if outer, err = filepath.Abs(outer); err != nil {
		t.Fatal(err)
	}
	s := script(t, calls(patchCall("*** Add File: link/canary\n+x\n"), patchCall("*** Update File: link/secret\n@@\n-"+canary+"\n+x\n"),
		execCall("cd link && touch canary"), execCall("echo x > link/canary"), execCall("mv a link/"), execCall("cp -r a link/canary"),
		m{"name": "search_in_files", "args": m{"pattern": canary[:6]}}, m{"name": "list_dir", "args": m{"dir_path": filepath.Join(outer, "work/link")}},
	), says("Done."))
	p := newProcess(t, s, "run", "--model", "script:model.jsonl", "--on-deny", "continue", "--max-denials", "100", "-C", filepath.Join(outer, "work"), "go")
	inner := p.dir
	p.dir = outer
	p.lay(map[string]string{"outside/secret": canary + "\n", "work/link": "-> ../outside", "work/a": "a\n"})
	p.dir = inner
	stream, exit := p.output()
	if exit != 0 {
		t.Errorf("exit %d: %s", exit, p.stderr.String())
	}
	results := bodies[event.ToolResultEvent](t, stream)
	if len(results) != 8 {
		t.Fatalf("%d results", len(results))
	}
	for _, r := range results {
		if strings.Contains(r.Content, canary) {
			t.Errorf("%s shows what is outside: %s", r.ToolName, r.Content)
		}
		if r.ToolName == "apply_patch" && !r.Denied {
			t.Errorf("a patch through the link is not refused: %s", r.Content)
		}
	}
	p.dir = outer
	for name, text := range p.tree("outside") {
		if name != "secret" || text != canary+"\n" {
			t.Errorf("outside there is %s: %q", name, text)
		}
	}
}

// TestAWorkspaceBehindALinkIsOneFolder: relative, by the link and by the real
// path, a file is the same one, and is named the same.
func TestAWorkspaceBehindALinkIsOneFolder(t *testing.T) {
	t.Parallel()
	p := newProcess(t, "", "run", "--model", "script:model.jsonl", "--policy", "policy.yaml", "-C", "p", "go")
	patch := func(path, from, to string) m {
		return patchCall("*** Update File: " + path + "\n@@\n-" + from + "\n+" + to + "\n")
	}
	p.lay(map[string]string{
		"policy.yaml":     "version: 1\ndefault: deny\nrules:\n  - {id: writes, effect: allow, path: ['**'], access: [read, write]}\n",
		"data/proj/a.txt": "0\n", "p": "-> data/proj",
	})
	s := script(t, calls(patch("a.txt", "0", "1")), calls(patch(filepath.Join(p.dir, "p/a.txt"), "1", "2")),
		calls(patch(filepath.Join(p.dir, "data/proj/a.txt"), "2", "3")), says("Done."))
	if err := os.WriteFile(filepath.Join(p.dir, "model.jsonl"), []byte(s), 0o600); err != nil {
		t.Fatal(err)
	}
	stream := p.mustEnd(0)
	changed := bodies[event.FileChangedEvent](t, stream)
	if len(changed) != 3 {
		t.Fatalf("%d changes\n%.3000s", len(changed), stream)
	}
	for _, c := range changed {
		if c.Path != "a.txt" {
			t.Errorf("the file is named %q", c.Path)
		}
	}
	if got := p.tree("data/proj")["a.txt"]; got != "3\n" {
		t.Errorf("the file holds %q", got)
	}
}
