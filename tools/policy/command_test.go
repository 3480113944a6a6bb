package policy

import (
	"strings"
	"testing"
)

func TestEverySimpleCommandIsJudged(t *testing.T) {
	for _, rules := range []string{
		`{id: cd, effect: allow, argv: [cd]}, {id: status, effect: allow, argv: [git, status]}`,
		`{id: cd, effect: allow, argv: [cd, "*"]}, {id: status, effect: allow, argv: [git, "stat*"]}`,
	} {
		p := load(t, "version: 1\nrules: ["+rules+"]")
		checkCommands(t, p, []judged{
			{`cd sub && touch canary`, Deny},
			{`git status; touch canary`, Deny},
			{`git status | tee canary`, Deny},
			{"git status &\ntouch canary", Deny},
			{`git status || touch canary`, Deny},
			{`(cd sub; touch canary)`, Deny},
			{`cd sub && git status`, Allow},
			{`git status && git status | git status`, Allow},
			{`gitstatus`, Deny}, {`git stash`, Deny}, {`git`, Deny},
		})
		v := p.Decide(run(`cd sub && touch canary`))
		if len(v.Parts) != 2 || v.Parts[0].RuleID != "cd" || v.Action.Argv[0] != "touch" {
			t.Errorf("parts do not name each command: %+v", v.Parts)
		}
	}
}

func TestOptionsAndVariablesThatChooseProgramsAreNeverNeutral(t *testing.T) {
	p := load(t, "version: 1\nrules: [{id: status, effect: allow, argv: [git, status]}]")
	checkCommands(t, p, []judged{
		{`git -C sub status`, Allow},
		{`git -C sub -C deeper --no-pager status`, Allow},
		{`LC_ALL=C git status`, Allow},
		{`LC_ALL=C CI=1 TZ=UTC git status`, Allow},
		{`env LC_ALL=C git status`, Allow},
		{`git -C /etc status`, Deny},
		{`git -C ../other status`, Deny},
		{`git -c core.fsmonitor='touch canary' status`, Ask},
		{`GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=core.fsmonitor GIT_CONFIG_VALUE_0='touch canary' git status`, Ask},
		{`env GIT_DIR=evil git status`, Ask},
		{`GIT_DIR=evil git status`, Ask},
		{`PATH=.:$PATH git status`, Ask},
		{`PATH=.; git status`, Ask},
		{`export PATH=.; git status`, Ask},
		{`declare -x PATH=.; git status`, Ask},
		{`export FOO=1; git status`, Ask},
		{`FOO=1; git status`, Allow},
		{`for PATH in .; do git status; done`, Ask},
		{`: ${PATH:=x}; git status`, Deny},
		{`set -a; FOO=1; git status`, Ask},
		{`hash -p ./evil git; git status`, Ask},
		{`alias git=./evil; git status`, Ask},
		{`git() { touch canary; }; git status`, Deny},
		{`git() { git status; }; git status`, Ask},
		{`git --git-dir=evil status`, Ask},
		{`git --exec-path=. status`, Ask},
		{`git --config-env=a=b status`, Ask},
		{`git --unknown status`, Ask},
		{`./git status`, Deny},
		{`../bin/git status`, Deny},
		{`/tmp/git status`, Deny},
		{`$git status`, Ask},
		{`g*t status`, Ask},
		{`git $cmd`, Ask},
		{`git "$cmd"`, Ask},
		{`git {status,push}`, Ask},
		{`git sta*`, Ask},
	})
}

func TestWrappersAreLookedThroughAndNothingElse(t *testing.T) {
	p := load(t, `
version: 1
rules:
  - {id: env, effect: allow, argv: [env]}
  - {id: status, effect: allow, argv: [git, status]}
  - {id: ls, effect: allow, argv: [[ls, grep, xargs]]}
`)
	checkCommands(t, p, []judged{
		{`env touch canary`, Deny},
		{`env FOO=1 git status`, Allow},
		{`env FOO=1 touch canary`, Deny},
		{`env GIT_SSH=x git status`, Ask},
		{`env -S "git status"`, Ask},
		{`env`, Allow},
		{`timeout 5 touch canary`, Deny},
		{`timeout 5 git status`, Allow},
		{`timeout -k 2 --signal KILL 5 git status`, Allow},
		{`timeout $t git status`, Ask},
		{`timeout --strange 5 git status`, Ask},
		{`xargs --strange rm`, Ask},
		{`nice -n 5 touch canary`, Deny},
		{`nice -n 5 git status`, Allow},
		{`command touch canary`, Deny},
		{`command git status`, Allow},
		{`command -v git`, Deny},
		{`busybox touch canary`, Deny},
		{`busybox git status`, Deny},
		{`flock l git status`, Deny},
		{`sh -c 'touch canary'`, Deny},
		{`sh -c 'git status'`, Allow},
		{`sh -c "git status; touch canary"`, Deny},
		{`sh -c "$x"`, Ask},
		{`sh script.sh`, Deny},
		{`sh`, Deny},
		{`./sh -c 'git status'`, Deny},
		{`./timeout 5 git status`, Deny},
		{`sudo git status`, Deny},
		{`nohup git status`, Allow},
		{`time git status`, Allow},
		{`exec git status`, Allow},
		{`ls | xargs rm`, Deny},
		{`ls | xargs -I{} sh -c 'touch canary'`, Deny},
		{`ls | xargs -I{} sh -c 'touch {}'`, Ask},
		{`ls | xargs grep foo`, Allow},
		{`ls | xargs -n1 -- grep foo`, Allow},
	})
	sudo := load(t, `
version: 1
rules: [{id: s, effect: allow, argv: [[sudo, doas]]}, {id: g, effect: allow, argv: [git, status]}]
`)
	checkCommands(t, sudo, []judged{{`sudo git status`, Allow}, {`sudo touch x`, Deny}, {`sudo -u root git status`, Allow}, {`sudo -i`, Ask}})
}

func TestAllowRulesAreNotStretchedByExpansions(t *testing.T) {
	p := load(t, `
version: 1
rules:
  - {id: log, effect: allow, argv: [git, log], argv_none: ["--output*", "-o*", "--ext-diff"]}
  - {id: exact, effect: allow, argv: [make, check], argv_exact: true}
  - {id: any, effect: allow, argv: [go], argv_any: ["./..."]}
  - {id: echo, effect: allow, argv: [echo]}
`)
	checkCommands(t, p, []judged{
		{`git log`, Allow}, {`git log -p a.go`, Allow}, {`git log --output=x`, Deny}, {`git log --outp=x`, Deny}, {`git log --out x`, Deny},
		{`git log $x`, Deny}, {`git log "$x"`, Deny}, {`git log *`, Deny}, {`git log {a,--output=x}`, Deny}, {`git log ~/x`, Allow},
		{`git log $(echo a)`, Ask}, {`git log '$x'`, Allow}, {`git log \$x`, Allow}, {`ls | xargs git log`, Deny},
		{`git log --oneline`, Allow}, {`git log -- a`, Allow},
		{`make check`, Allow}, {`make check x`, Deny}, {`make check $x`, Deny},
		{`go test ./...`, Allow}, {`go vet`, Deny}, {`go test $x`, Deny},
		{`echo $x *`, Allow}, {`echo "$(git log)"`, Ask}, {`echo "a$((1+1))"`, Allow}, {`echo "$(( $(touch x) ))"`, Ask},
	})
}

// A shell evaluates values in arithmetic again, and an index in them may hold
// a command substitution.
func TestArithmeticOnTextIsNotHarmless(t *testing.T) {
	yaml := "version: 1\nrules: [{id: e, effect: allow, argv: [[echo, read, printf, test, '[', unset, wait, cat]]}, {id: d, effect: deny, argv: [rm]}]"
	p := load(t, yaml)
	// Without a rule that could be meant it is asked for.
	free := load(t, strings.Replace(yaml, ", {id: d, effect: deny, argv: [rm]}", "", 1))
	for _, c := range []string{
		`a='b[$(touch c)]'; echo $((a))`, `a='b[$(touch c)]'; echo $(($a))`, `a='b[$(touch c)]'; ((a))`, `a='b[$(touch c)]'; echo ${x[a]}`,
		`a='b[$(touch c)]'; [[ $a -eq 1 ]]`, `a='b[$(touch c)]'; [[ a -eq 1 ]]`, `[[ -v 'a[$(touch c)]' ]]`, `let 'a[$(touch c)]'`,
		`a='b[$(touch c)]'; echo ${x:a}`, `a='b[$(touch c)]'; x[a]=1`, `x='$(touch c)'; echo ${x@P}`, `x='a[$(touch c)]'; echo ${!x}`,
		`declare -i a; a='b[$(touch c)]'`, `declare -n a='b[$(touch c)]'`, `declare 'a[$(touch c)]=1'`, `test -v 'a[$(touch c)]'`, `[ -v 'a[$(touch c)]' ]`,
		`printf -v 'a[$(touch c)]' x`, `unset 'a[$(touch c)]'`, `read 'a[$(touch c)]'`, `read a < /dev/null; echo $((a))`,
		`while read a; do echo $((a)); done`, `echo $((a)); a='b[$(touch c)]'`, `printf -v a x; echo $((a))`,
	} {
		if v := free.Decide(run(c)); v.Effect != Ask {
			t.Errorf("%q: got %s (%s), want ask", c, v.Effect, v.Reason)
		}
		if v := p.Decide(run(c)); v.Effect == Allow {
			t.Errorf("%q: got %s (%s) with a rule", c, v.Effect, v.Reason)
		}
	}
	checkCommands(t, p, []judged{
		{`for a in x y; do ((a)); done`, Allow}, {`: ${a:=b}; echo $((a))`, Deny}, {`unset "$x"`, Ask}, {`read a; echo $((a))`, Deny},
		{`for ((i = 0; i < 3; i++)); do echo $i; done`, Allow}, {`i=0; ((i += 1)); echo $((i * 2))`, Allow}, {`for i in 1 2 3; do echo $((i + 1)); done`, Allow},
		{`for i in {1..9}; do echo $((i)); done`, Allow}, {`a=(1 2 3); echo ${a[1]} ${#a[@]} ${a[@]}`, Allow}, {`i=1; a=(x y); echo ${a[i]} ${a[$i]}`, Allow},
		{`n=5; [[ $n -gt 3 ]] && echo y`, Allow}, {`[[ -n $x && $x == a* ]] || echo n`, Allow}, {`x=abc; echo ${x:1:2} ${x#a} ${x%c} ${x/b/c}`, Allow},
		{`[ "$x" -eq 1 ]`, Allow}, {`test -f a`, Allow}, {`while IFS= read -r line; do echo "$line"; done < /dev/null`, Allow}, {`echo $((1 + 2 * 3))`, Allow},
		{`IFS=, echo x`, Ask}, {`printf '%s\n' "$x"`, Allow},
		{`a='b[$(rm x)]'; echo $((a))`, Deny}, {`x='$(rm c)'; echo ${x@P}`, Deny}, {`test -v 'a[$(rm x)]'`, Deny}, {`a='b[$(rm c)]'; [[ $a -eq 1 ]]`, Deny},
		{`echo rm x | { cat; sh; }`, Deny}, {`echo rm x | cat | (sh)`, Deny}, {`echo rm x | timeout 5 sh`, Deny}, {`{ bash; } <<< "rm x"`, Deny},
		{`echo rm x | while read l; do $l; done`, Deny}, {`echo 'rm x' | xargs -I{} sh -c '{}'`, Deny}, {`echo rm x | xargs env`, Deny},
		{`cat [x`, Allow}, {`cat []-]-x`, Allow},
	})
	strict := load(t, "version: 1\nrules: [{id: e, effect: allow, argv: [cat], argv_none: ['--x']}]")
	checkCommands(t, strict, []judged{{`cat []-]-x`, Deny}, {`cat "["a]`, Allow}, {`cat ["a"]`, Deny}, {`cat [a]`, Deny}, {`cat [`, Allow}, {`cat []`, Allow}})
}

func TestZshIsNotReadLikeBash(t *testing.T) {
	p := load(t, "version: 1\nrules: [{id: e, effect: allow, argv: [[echo, ls, cd]]}, {id: o, effect: allow, path: ['out', '!'], access: [write]}]")
	for script, want := range map[string]Effect{
		`echo x >! in`: Ask, `ls *(e:'touch c':)`: Ask, `echo x > out`: Allow, `=touch c`: Ask, `echo | cd sub; echo x > out`: Deny, `ls *`: Allow,
	} {
		if v := p.Decide(Call{Tool: "shell", Actions: []Action{Exec("/w", "zsh", "-c", script)}}); v.Effect != want {
			t.Errorf("%q: got %s (%s), want %s", script, v.Effect, v.Reason, want)
		}
	}
}

func TestShellsConnectOnlyWhereHostsAreAllowed(t *testing.T) {
	p := load(t, "version: 1\nrules: [{id: e, effect: allow, argv: [[echo, cat]]}, {id: h, effect: allow, host: ['ok:80']}]")
	checkCommands(t, p, []judged{
		{`echo x > /dev/tcp/ok/80`, Allow}, {`echo x > /dev/tcp/bad/80`, Deny}, {`cat < /dev/udp/bad/80`, Deny}, {`cat < /dev/../dev/tcp/bad/80`, Deny},
	})
	free := load(t, "", func(s *Sources) { s.Inline = nil })
	checkCommands(t, free, []judged{{`cat < /dev/tcp/bad/80`, Deny}, {`cat < /etc/hosts`, Allow}})
}

func TestRedirectionsAreJudgedAsPaths(t *testing.T) {
	p := load(t, `
version: 1
rules:
  - {id: echo, effect: allow, argv: [[echo, cat, cd, ls]]}
  - {id: write, effect: allow, path: ["out/**"], access: [write]}
  - {id: secret, effect: deny, path: ["**/.env"]}
`)
	checkCommands(t, p, []judged{
		{`echo x > in.txt`, Deny}, {`echo x >> ../out.txt`, Deny}, {`echo x > /dev/null`, Allow}, {`echo x 2>&1`, Allow},
		{`echo x >| in.txt`, Deny}, {`echo x &> in.txt`, Deny}, {`echo x &>> in.txt`, Deny}, {`echo x >&in.txt`, Deny}, {`echo x <> in.txt`, Deny},
		{`echo x > out/a`, Allow}, {`echo x >| out/a 2>> out/b`, Allow}, {`echo x > ./out/../out/a`, Allow}, {`echo x > out/../in`, Deny},
		{`cd out && echo x > a`, Allow}, {`cd out && cd deep && echo x > a`, Allow}, {`cd out; echo x > a`, Deny}, {`cd out && cd .. && echo x > a`, Deny},
		{`cd "$d" && echo x > a`, Ask}, {`cd - && echo x > out/a`, Ask}, {`(cd out && echo x > a)`, Allow}, {`(cd out); echo x > a`, Deny},
		{`for i in 1 2; do echo x > out/a; cd ..; done`, Deny}, {`echo x > "$f"`, Deny}, {`echo x > $(echo f)`, Deny}, {`f=.env; echo x > $f`, Deny},
		{`> in.txt`, Deny}, {`> out/a`, Allow}, {`{ echo x; } > in.txt`, Deny}, {`(echo x) > out/a`, Allow}, {`if true; then echo; fi > in.txt`, Deny},
		{`ls missing 2>/dev/null || echo none`, Allow}, {`cat < .env`, Deny}, {`cat < /dev/null`, Allow}, {`echo x 3>&-`, Allow}, {`echo x > /dev/fd/2`, Allow},
		{`echo x > /dev/tcp/a/80`, Deny}, {`cat > out/d.md <<'EOF'
rm -rf /
EOF`, Allow}, {`cat <<EOF
plain
EOF`, Allow}, {`cat <<EOF
$(touch x)
EOF`, Ask}, {`cat <(cat a)`, Ask}, {`cat >(touch x)`, Ask}, {`bash <<'EOF'
echo x
EOF`, Ask}, {`python3 - <<'EOF'
print(1)
EOF`, Ask},
	})
}

func TestReadersWithActionsAreNotKnownToBeSafe(t *testing.T) {
	p := load(t, "version: 1\napproval: untrusted\nrules: [{id: x, effect: deny, argv: [never]}]")
	checkCommands(t, p, []judged{
		{`find . -name x`, Allow}, {`find . -delete`, Ask}, {`find . -exec touch canary \;`, Ask}, {`find . -execdir touch c \;`, Ask},
		{`find . -ok touch c \;`, Ask}, {`find . -okdir touch c \;`, Ask}, {`find . -fprint canary`, Ask}, {`find . -fls c`, Ask}, {`find . -fprintf c x`, Ask},
		{`grep -c x f | sort`, Allow}, {`grep -c x f | wc`, Allow}, {`grep -c x f | uniq -c`, Allow}, {`sort`, Allow}, {`sortfoo`, Ask},
		{`sort -o f f`, Ask}, {`sort -uof f`, Ask}, {`sort --out=f f`, Ask}, {`uniq a b`, Ask}, {`base64 -o x`, Ask}, {`base64 x`, Allow},
		{`rg x`, Allow}, {`rg --pre=p x`, Ask}, {`rg --pre=sh x`, Deny}, {`rg -z x`, Ask}, {`sed -n 5p f`, Allow}, {`sed -n 1,5p f`, Allow}, {`sed -i s/a/b/ f`, Ask}, {`sed -n 5w f`, Ask},
		{`git status`, Allow}, {`git log --oneline`, Allow}, {`git log --output=x`, Ask}, {`git diff --ext-diff`, Ask}, {`git branch`, Allow}, {`git branch -vv`, Allow},
		{`git branch new`, Ask}, {`git branch -D x`, Ask}, {`git push`, Ask}, {`git -C sub status`, Ask}, {`git --no-pager log`, Allow}, {`git`, Ask},
		{`cat f`, Allow}, {`./cat f`, Ask}, {`cat $x`, Ask}, {`cat f > g`, Ask}, {`cat f > /dev/null`, Allow}, {`cat <<EOF
x
EOF`, Ask}, {`touch x`, Ask}, {`echo $(ls)`, Ask}, {`echo (`, Deny}, {`ls && ls; ls | wc -l`, Allow}, {`ls && touch x`, Ask},
	})
	for _, c := range []struct {
		script  string
		changes bool
	}{{`ls | wc`, false}, {`ls > f`, true}, {`make`, true}, {`git log`, false}, {`cat < f`, false}, {`ls $(x)`, true}, {`# nothing`, false}} {
		if got := p.ChangesState(Exec("/w", "bash", "-c", c.script)); got != c.changes {
			t.Errorf("ChangesState(%q) = %v", c.script, got)
		}
	}
}

func TestApprovalPoliciesDecideUnmatchedCommands(t *testing.T) {
	force := []string{`rm -f x`, `rm -rf x`, `rm -fr x`, `rm -r -f x`, `rm --force x`, `rm -r --force x`, `sudo rm -rf x`, `sudo -u a rm -rf x`,
		`/bin/rm -rf x`, `true && rm -rf x`, `sh -c 'rm -rf x'`, `timeout 5 rm -rf x`, `echo $(rm -rf x)`, `eval "rm -rf x"`, `a=rm; $a -rf x`, `rm -v -rf x`}
	for _, c := range []struct {
		approval           string
		plain, force, open Effect
	}{
		{"untrusted", Ask, Ask, Ask}, {"on-failure", Allow, Ask, Ask}, {"on-request", Allow, Ask, Ask}, {"never", Allow, Deny, Allow},
	} {
		yaml := "version: 1\napproval: " + c.approval + "\nrules: [{id: no-curl, effect: deny, argv: [curl]}, {id: ok, effect: allow, argv: [make]}]"
		p := load(t, yaml)
		open := load(t, yaml, func(s *Sources) { s.Roots.Unrestricted = true })
		cases := []judged{{`touch x`, c.plain}, {`ls`, Allow}, {`make x`, Allow}, {`curl x`, Deny}, {`rm x`, c.plain}, {`echo $(touch x)`, c.plain}, {`$x y`, Deny}}
		for _, f := range force {
			cases = append(cases, judged{f, c.force})
		}
		checkCommands(t, p, cases)
		if v := open.Decide(run(force[1])); v.Effect != c.open {
			t.Errorf("%s without sandbox: got %s, want %s", c.approval, v.Effect, c.open)
		}
	}
}

func TestBareWordsAreResolvedOutsideTheWorkspace(t *testing.T) {
	files := map[string]string{"git": "/usr/bin/git", "evil": "/w/bin/evil", "timeout": "/usr/bin/timeout", "bash": "/bin/bash"}
	p := load(t, `
version: 1
rules:
  - {id: git, effect: allow, argv: [[git, evil, missing, cd, "go*"]]}
  - {id: abs, effect: allow, argv: [/opt/tool]}
  - {id: script, effect: allow, argv: [./build.sh]}
  - {id: no-abs, effect: deny, argv: [/usr/bin/nc]}
`, func(s *Sources) { s.Env.LookPath = func(name string) string { return files[name] } })
	checkCommands(t, p, []judged{
		{`git status`, Allow}, {`/usr/bin/git status`, Allow}, {`/opt/git status`, Deny}, {`evil`, Deny}, {`missing`, Deny}, {`cd x`, Allow}, {`gofmt`, Deny},
		{`timeout 5 git x`, Allow}, {`nice git x`, Deny}, {`/opt/tool x`, Allow}, {`tool x`, Deny}, {`./build.sh`, Allow}, {`cd sub && ./build.sh`, Deny},
		{`cd sub && ../build.sh`, Allow}, {`/w/build.sh`, Allow}, {`build.sh`, Deny}, {`/usr/bin/nc`, Deny}, {`nc x`, Deny},
	})
	if v := p.Decide(Call{Tool: "shell", Actions: []Action{Exec("/w", "cd", "x")}}); v.Effect != Deny {
		t.Error("a builtin without a shell is no program")
	}
	if v := p.Decide(Call{Tool: "shell", Actions: []Action{Exec("/w", "/w/bash", "-c", "git status")}}); v.Effect != Deny {
		t.Error("a shell inside the workspace was looked through")
	}
}

func TestVectorsAreNotExpanded(t *testing.T) {
	p := load(t, "version: 1\ndefault: allow\nrules: [{id: no-rm, effect: deny, argv: [rm]}]")
	for _, c := range []struct {
		argv []string
		want Effect
	}{
		{[]string{"rm", "x"}, Deny}, {[]string{"echo", "$(rm x)"}, Allow}, {[]string{"bash", "-c", "rm x"}, Deny}, {[]string{"$(rm)"}, Allow},
		{[]string{"env", "rm"}, Deny}, {[]string{"sh", "-c", `"$@"`, "_", "rm", "x"}, Deny}, {nil, Deny},
		{[]string{"bash", "-c", ""}, Allow}, {[]string{"bash", "-c", "# only a comment"}, Allow},
	} {
		if v := p.Decide(Call{Tool: "shell", Actions: []Action{Exec("/w", c.argv...)}}); v.Effect != c.want {
			t.Errorf("%q: got %s, want %s", c.argv, v.Effect, c.want)
		}
	}
}

func TestScriptsBeyondTheLimitsAreRefusedIfARuleCouldName(t *testing.T) {
	deny := load(t, "version: 1\ndefault: allow\nrules: [{id: no-rm, effect: deny, argv: [rm]}]")
	free := load(t, "version: 1\ndefault: allow")
	deep := "x"
	for range 20 {
		deep = "sh -c " + quote(deep)
		if len(deep) > 1<<16 {
			break
		}
	}
	for _, script := range []string{
		strings.Repeat("(", 40_000), strings.Repeat("$((", 20_000) + "1", strings.Repeat("if ", 30_000), strings.Repeat("ls\n", 5000) + "rm x",
		"echo " + strings.Repeat("x", 2<<20), strings.Repeat("eval ", 20) + "'" + deep + "'",
		strings.Repeat("a=xx\n", 1) + strings.Repeat("a=$a$a\n", 60) + "$a" + "\nrm x",
	} {
		if v := deny.Decide(run(script)); v.Effect != Deny {
			t.Errorf("%.20q…: got %s", script, v.Effect)
		}
		if v := free.Decide(run(script)); v.Effect != Allow {
			t.Errorf("%.20q…: got %s without any rule", script, v.Effect)
		}
	}
	document := "cat > a.go <<'EOF'\n" + strings.Repeat("func f(a []int) { return a[0] - 1 }\n", 1000) + "EOF"
	if v := deny.Decide(run(document)); v.Effect != Allow {
		t.Errorf("a long document: got %s (%s)", v.Effect, v.Reason)
	}
}

func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }
