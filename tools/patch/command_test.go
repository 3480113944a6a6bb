package patch

import (
	"errors"
	"strings"
	"testing"
)

func TestCommandsThatAreOnlyAPatch(t *testing.T) {
	text := wrap("*** Add File: a\n+it's $HOME `x` \\n\n") + "\n"
	here := "<<'EOF'\n" + text + "EOF"
	sh := func(script string) []string { return []string{"bash", "-lc", script} }
	for _, c := range []struct {
		name  string
		argv  []string
		dir   string
		found bool
		err   error
	}{
		{"program with argument", []string{"apply_patch", text}, "", true, nil},
		{"other spelling", []string{"applypatch", text}, "", true, nil},
		{"bash -lc", sh("apply_patch " + here), "", true, nil},
		{"bash -lc, final newline", sh("apply_patch " + here + "\n"), "", true, nil},
		{"bash -c by path", []string{"/usr/bin/bash", "-c", "applypatch " + here}, "", true, nil},
		{"zsh", []string{"zsh", "-lc", "apply_patch " + here}, "", true, nil},
		{"sh", []string{"SH", "-c", "apply_patch " + here}, "", true, nil},
		{"pwsh", []string{`C:\Program Files\pwsh.EXE`, "-NoProfile", "-Command", "apply_patch " + here}, "", true, nil},
		{"powershell", []string{"powershell", "-Command", "apply_patch " + here}, "", true, nil},
		{"cmd", []string{"cmd", "/c", "apply_patch " + here}, "", true, nil},
		{"other delimiter", sh("apply_patch <<PATCH\n" + text + "PATCH"), "", true, nil},
		{"double-quoted delimiter", sh("apply_patch <<\"E O\"\n" + text + "E O"), "", true, nil},
		{"tabs taken away", sh("apply_patch <<-'EOF'\n\t" + strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n\t") + "\n\tEOF"), "", true, nil},
		{"cd", sh("cd sub/dir && apply_patch " + here), "sub/dir", true, nil},
		{"cd, single quotes", sh("cd 'my dir' && apply_patch " + here), "my dir", true, nil},
		{"cd, double quotes", sh("cd \"my dir\" && apply_patch " + here), "my dir", true, nil},
		{"cd, backslash", sh(`cd my\ dir && apply_patch ` + here), "my dir", true, nil},

		{"patch without a call", []string{text}, "", true, ErrNoCall},
		{"script that is a patch", sh(text), "", true, ErrNoCall},

		{"nothing", nil, "", false, nil},
		{"program without argument", []string{"apply_patch"}, "", false, nil},
		{"program with two arguments", []string{"apply_patch", text, "x"}, "", false, nil},
		{"ordinary command", []string{"ls", "-l"}, "", false, nil},
		{"ordinary script", sh("ls | wc"), "", false, nil},
		{"script that mentions it", sh("echo apply_patch << x\n"), "", false, nil},
		{"other flags", []string{"bash", "-x", "-c", "apply_patch " + here}, "", false, nil},
		{"other shell", []string{"fish", "-c", "apply_patch " + here}, "", false, nil},
		{"command in front", sh("echo hi; apply_patch " + here), "", false, nil},
		{"command in front with and", sh("echo hi && apply_patch " + here), "", false, nil},
		{"cd with semicolon", sh("cd sub; apply_patch " + here), "", false, nil},
		{"cd with or", sh("cd sub || apply_patch " + here), "", false, nil},
		{"cd with pipe", sh("cd sub | apply_patch " + here), "", false, nil},
		{"two cds", sh("cd a && cd b && apply_patch " + here), "", false, nil},
		{"cd with two words", sh("cd a b && apply_patch " + here), "", false, nil},
		{"cd with redirect", sh("cd a > x && apply_patch " + here), "", false, nil},
		{"cd to the last folder", sh("cd - && apply_patch " + here), "", false, nil},
		{"cd to a variable", sh("cd $X && apply_patch " + here), "", false, nil},
		{"cd to a variable in quotes", sh("cd \"$X\" && apply_patch " + here), "", false, nil},
		{"cd to a home", sh("cd ~/x && apply_patch " + here), "", false, nil},
		{"cd to a pattern", sh("cd x* && apply_patch " + here), "", false, nil},
		{"command behind", sh("apply_patch <<'EOF' && echo done\n" + text + "EOF"), "", false, nil},
		{"second statement", sh("apply_patch " + here + "\necho done"), "", false, nil},
		{"pipe behind", sh("apply_patch <<'EOF' | cat\n" + text + "EOF"), "", false, nil},
		{"in the background", sh("apply_patch <<'EOF' &\n" + text + "EOF"), "", false, nil},
		{"negated", sh("! apply_patch " + here), "", false, nil},
		{"argument besides", sh("apply_patch x " + here), "", false, nil},
		{"assignment besides", sh("A=b apply_patch " + here), "", false, nil},
		{"redirect besides", sh("apply_patch <<'EOF' > log\n" + text + "EOF"), "", false, nil},
		{"other descriptor", sh("apply_patch 3" + here), "", false, nil},
		{"here-string", sh("apply_patch <<< x"), "", false, nil},
		{"other program", sh("cat " + here), "", false, nil},
		{"in a subshell", sh("(apply_patch " + here + "\n)"), "", false, nil},
		{"unfinished", sh("apply_patch <<'EOF'\n" + text), "", false, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, dir, found, err := FromCommand(c.argv)
			if found != c.found || dir != c.dir || !errors.Is(err, c.err) {
				t.Fatalf("found %v, dir %q, err %v; want %v, %q, %v", found, dir, err, c.found, c.dir, c.err)
			}
			if found && strings.TrimSpace(got) != strings.TrimSpace(text) {
				t.Errorf("text %q, want %q", got, text)
			}
		})
	}
}

func FuzzFromCommand(f *testing.F) {
	f.Add("cd 'a b' && apply_patch <<'EOF'\n" + wrap("*** Delete File: a\n") + "\nEOF")
	f.Add("apply_patch <<-X\n\t*** Begin Patch\n\tX")
	f.Add("cd \"$(x)\" && applypatch <<EOF &\nEOF\n")
	f.Fuzz(func(t *testing.T, script string) {
		text, _, found, err := FromCommand([]string{"sh", "-c", script})
		if err != nil && !found || !found && text != "" {
			t.Fatalf("found %v, text %q, err %v", found, text, err)
		}
	})
}
