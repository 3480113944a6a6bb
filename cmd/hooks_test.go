package cmd

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"drover/output/event"
)

func TestProgramsOfHooksAreFound(t *testing.T) {
	dir := t.TempDir()
	for name, mode := range map[string]os.FileMode{"guard.sh": 0o755, "notes.txt": 0o644, "bin/audit": 0o755, "a b.sh": 0o755} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("#!/bin/sh\n"), mode); err != nil {
			t.Fatal(err)
		}
	}
	sh := lookPath("/bin:/usr/bin")("sh")
	find := hookFinder{cwd: dir, home: dir, look: func(name string) string {
		return map[string]string{"audit": filepath.Join(dir, "bin", "audit"), "sh": sh}[name]
	}}
	for _, c := range []struct {
		script, program string
		missing         bool
	}{
		{"./guard.sh --strict", filepath.Join(dir, "guard.sh"), false},
		{`"$CLAUDE_PROJECT_DIR"/guard.sh`, filepath.Join(dir, "guard.sh"), false},
		{`"${DROVER_PROJECT_DIR}/guard.sh" | tee log`, filepath.Join(dir, "guard.sh"), false},
		{"~/guard.sh && echo x", filepath.Join(dir, "guard.sh"), false},
		{"$HOME/guard.sh", filepath.Join(dir, "guard.sh"), false},
		{"'./a b.sh'", filepath.Join(dir, "a b.sh"), false},
		{"audit x", filepath.Join(dir, "bin", "audit"), false},
		{"sh guard.sh", filepath.Join(dir, "guard.sh"), false},
		{"sh -c 'exit 2'", sh, false},

		{"./gone.sh", filepath.Join(dir, "gone.sh"), true},
		{"./notes.txt", filepath.Join(dir, "notes.txt"), true},
		{"auditt x", "auditt", true},
		{"sh gone.sh", filepath.Join(dir, "gone.sh"), true},
		{"./bin", filepath.Join(dir, "bin"), true},

		// What only a shell could tell is not judged.
		{"", "", false},
		{"# nothing", "", false},
		{"test -f x", "", false},
		{"exec ./gone.sh", "", false},
		{"X=1 ./gone.sh", "", false},
		{"$PROGRAM x", "", false},
		{"$(which gone)", "", false},
		{"./*.sh", "", false},
		{"if true; then ./gone.sh; fi", "", false},
		{"{ ./gone.sh; }", "", false},
		{`./go\ne.sh`, "", false},
		{"${X:-./gone.sh}", "", false},
		{"what (is this", "", false},
	} {
		program, missing := find.program(c.script)
		if program != c.program || missing != c.missing {
			t.Errorf("%q: %q, missing %v; want %q, %v", c.script, program, missing, c.program, c.missing)
		}
	}
}

// TestAgentCannotReplaceItsGuard has the agent rewrite the hook's program, in
// its own workspace, and then try what the hook refuses.
func TestAgentCannotReplaceItsGuard(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]m{
		"with a command": execCall("printf '#!/bin/sh\\nexit 0\\n' > guard.sh"),
		"with a patch":   patchCall("*** Update File: guard.sh\n@@\n-#!/bin/sh\n+#!/bin/false\n"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := run(t, script(t, calls(change), calls(execCall("touch canary")), says("Done.")), "go")
			p.lay(map[string]string{
				"guard.sh":                   "#!/bin/sh\ngrep -q canary && exit 2\nexit 0\n",
				".config/drover/config.yaml": "hooks: {PreToolUse: [{hooks: [{command: ./guard.sh}]}]}\n",
			})
			if err := os.Chmod(filepath.Join(p.dir, "guard.sh"), 0o755); err != nil {
				t.Fatal(err)
			}
			stream := p.mustEnd(10)
			if _, made := p.tree(".")["canary"]; made || !bytes.Contains(stream, []byte("guard.sh was changed")) {
				t.Errorf("the guard was led around:\n%s", stream)
			}
			if got := bodies[event.HookFinishedEvent](t, stream); len(got) != 2 || got[0].Outcome != "ok" || got[1].Decision != "deny" {
				t.Errorf("got %+v", got)
			}
		})
	}
}
