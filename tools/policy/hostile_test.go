package policy

import (
	"strings"
	"testing"
	"time"
)

// hostileLimit is far above what any script may take, also on a busy machine.
const hostileLimit = 60 * time.Second

// Whatever is in a script of a megabyte, the decision comes soon.
func TestHostileScriptsTakeBoundedTime(t *testing.T) {
	if testing.Short() {
		t.Skip("reads some hundred megabytes of scripts")
	}
	const size = 1 << 20
	fill := func(s string) string { return strings.Repeat(s, size/len(s)) }
	nest := func(open, inner, close string) string {
		n := (size - len(inner)) / (len(open) + len(close))
		return strings.Repeat(open, n) + inner + strings.Repeat(close, n)
	}
	few := func(open, inner, close string, n int) string {
		return strings.Repeat(open, n) + inner + strings.Repeat(close, n)
	}
	scripts := map[string]string{
		"substitutions":        nest("$(", "git push", ")"),
		"quoted substitutions": nest(`"$(`, "git push", `)"`),
		"few substitutions":    "echo " + few(`"$(echo `, "git push", `)"`, 3000),
		"back quotes":          fill("`"),
		"braces":               "echo " + nest("{a,", "b", "}"),
		"few braces":           "echo " + few("{a,", "b", "}", 3000),
		"products of braces":   "echo " + strings.Repeat("{a,b}", 4000),
		"parentheses":          nest("(", "git push", ")"),
		"arithmetic":           "echo " + nest("$((", "1", "))"),
		"few arithmetic":       "echo " + few("$((1+", "1", "))", 2000),
		"parameters":           "echo " + nest("${a:-", "b", "}"),
		"few parameters":       "echo " + few("${a:-", "b", "}", 3000),
		"groups":               nest("{ ", "git push; ", "}; "),
		"conditions":           fill("if "),
		"commands":             fill("ls\n"),
		"pipes":                fill("ls|"),
		"long pipeline":        "ls" + strings.Repeat(" | cat", 4000),
		"variables":            fill("a=$a$a;"),
		"few variables":        strings.Repeat("a=$a$a$b;b=$b$a\n", 2000) + "$a $b",
		"folders":              strings.Repeat("cd $a$b/x;cd a;", 2000) + "echo x > y",
		"evals":                fill("eval "),
		"few evals":            strings.Repeat("eval ", 3000) + "git push",
		"shells":               strings.Repeat("sh -c '", 1000) + "git push",
		"wrappers":             strings.Repeat("env ", 20000) + "git push",
		"timeouts":             strings.Repeat("timeout 5 ", 20000) + "git push",
		"searches":             "find . " + strings.Repeat(`-exec git push \; `, 20000),
		"here-documents":       strings.Repeat("cat <<E\n$(git push)\nE\n", 4000),
		"redirects":            "ls" + strings.Repeat(" > $a$b/c", 20000),
		"loops":                strings.Repeat("for a in b c; do ", 300) + "git push" + strings.Repeat("; done", 300),
		"functions":            strings.Repeat("f() { ", 2000) + "git push" + strings.Repeat("; }", 2000),
		"stars":                "git " + fill("*"),
		"sets":                 "git " + fill("["),
		"words":                "git " + fill("$a "),
		"copies":               "cp " + strings.Repeat("a* ", 20000) + "secrets/x",
		"awk":                  "awk '" + strings.Repeat(`system("x") | `, 50000) + "'",
		"sed":                  "sed '" + strings.Repeat(`s/a/b/e;`, 50000) + "'",
		"marks":                "ed <<< '" + strings.Repeat("!ls ", 50000) + "'",
		"numbers":              strings.Repeat("a=$b;b=$a;((a+b));", 10000),
		"quotes":               fill(`'"`),
		"backslashes":          fill(`\`),
		"carriage returns":     fill("ls\r\n"),
		"nothing":              fill("\x00"),
	}
	for _, policy := range []string{"open", "paths"} {
		p := corpusPolicy(t, policy, "/w")
		for name, script := range scripts {
			start := time.Now()
			v := p.Decide(run(script))
			if took := time.Since(start); took > hostileLimit {
				t.Errorf("%s under %s took %s", name, policy, took)
			} else if took > time.Second {
				t.Logf("%s under %s took %s: %s", name, policy, took, v.Reason)
			}
		}
	}
}

// FuzzDecide begins with the corpus. What is refused stays refused if something
// harmless stands in front of it, and the order of calls does not matter.
func FuzzDecide(f *testing.F) {
	for _, g := range readCorpus(f) {
		for _, c := range g.Cases {
			if c.Argv == nil {
				f.Add(c.Cmd)
			}
		}
	}
	var policies []*Policy
	for _, name := range []string{"open", "asks", "readers", "paths", "build", "yolo"} {
		policies = append(policies, corpusPolicy(f, name, "/w"))
	}
	f.Fuzz(func(t *testing.T, script string) {
		for _, p := range policies {
			v := p.Decide(run(script))
			if again := p.Decide(run(script)); again.Effect != v.Effect || again.RuleID != v.RuleID {
				t.Errorf("%q: got %s by %q, then %s by %q", script, v.Effect, v.RuleID, again.Effect, again.RuleID)
			}
			if script != "" && (script[0] == '-' || script[0] == '+') {
				// A shell takes the script for an option.
				continue
			}
			if behind := p.Decide(run("true\n" + script)); v.Effect.stricter(behind.Effect) {
				t.Errorf("%q: got %s (%s), but %s behind a harmless command", script, v.Effect, v.Reason, behind.Effect)
			}
		}
	})
}
