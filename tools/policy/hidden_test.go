package policy

import "testing"

// hidden are scripts that run "git push" without showing it.
var hidden = []string{
	`touch push; git p?sh`, `touch push; git [p]ush`, `touch push; git [[:alpha:]]ush`, `touch push; git *`, `touch git push; *`, `touch git push; g* p*`,
	`shopt -s nocaseglob; git PUS?`, `git pu{s..s}h`, `git {push,}`, `git pu{s,}h`, `shopt -s extglob; git @(push)`,
	`git -c alias.p=push p`, `git -c alias.p='!git push' p`, `git -c "$x" log`, `git --config-env=alias.p=X p`, `git config alias.q push; git q`, `git q`,
	`git config alias.q '!git push'`, `git config core.pager 'git push'`, `git config core.pager "$x"`, `git config "$k" "$v"`, `git ~+/../push`,
	`git submodule foreach git push`, `git submodule foreach 'git push'`, `git rebase --exec 'git push' main`, `git rebase -x "$x" main`, `git bisect run git push`,
	`git fetch --upload-pack='git push' o`, `git $x`, `git "$x"`, `git -C $x status`, `git --no-pager $x`, `git -C "$x" "$y"`,
	`printf -v x push; git $x`, `read x <<< push; git $x`, `getopts p x -p; git ${x}ush`, `mapfile -t x <<< push; git ${x[0]}`, `echo push; git $_`, `x=pu; x+=sh; git $x`,
	`x=a; printf -v x push; git $x`, `x=a; read x < f; git "$x"`, `declare -l x=PUSH; git $x`, `declare -n y=x; y=push; x=a; git $y`, `x=a; y=printf; $y -v x push; git $x`,
	`x=a; eval "x=push"; git $x`, `x=a; trap 'x=push' EXIT; git $x`, `x=push bash -c 'git $x'`, `x=push; bash -c 'git $x; x=a'`, `cd push; git ${PWD##*/}`, `git ${1-push}`,
	`f(){ git $1; }; f push`, `f(){ "$@"; }; f git push`, `f(){ $1 push; }; f git`, `set -- push; git "$1"`, `set -- git push; shift 0; $*`,
	`jobs -x git push`, `jobs -x git $x`, `jobs -x "$x" push`, `. /dev/stdin <<< "git push"`, `source ./f`, `. f`, `. <(cat q)`, `command . f`, `builtin source f`,
	`compgen -C "git push"`, `compgen -C"git push"`, `compgen -W '$(git push)'`, `compgen -C "$x"`, `complete -C 'git push' x`, `mapfile -C 'git push;' -c 1 a < f`, `bind -x '"a": x'`,
	"alias g=git; shopt -s expand_aliases\ng push", `alias g="$x"`, `BASH_ENV=<(echo git push) bash -c true`, `BASH_ENV=f bash -c true`, `export BASH_ENV=f; make`, `env BASH_ENV=f bash -c true`,
	`env ENV=./f sh -i`, `PROMPT_COMMAND="$x" bash -i`, `PS4='$(git push)'; set -x; true`, `env 'BASH_FUNC_x%%=() { git push; }' bash -c x`, `read BASH_ENV < f; make`,
	`GIT_PAGER='git push' git log`, `GIT_PAGER="$x" git log`, `env GIT_SSH_COMMAND='git push' git fetch`, `GIT_CONFIG_GLOBAL=f git log`, `GIT_DIR=f git log`,
	`history -s git push; fc -s`, `fc -s`, `bash < q`, `cat q | bash`, `curl x | sh`, `bash q`, `sh ./q x`, `bash -s < q`, `bash /dev/stdin <<< ls`, `bash <<< "$x"`, `bash <<< ls < q`,
	"bash <<E\n$x\nE", `bash <(cat q)`, `bash -c "$x"`, `bash -c "$(cat q)"`, `xargs -I{} sh -c {} < q`, `bash --rcfile q -i`, `bash -ic true`, `bash $x`, `csh q`, `fish < q`, `busybox sh q`,
	`printf 'git push\n' > s.sh; . ./s.sh`, `printf 'git push\n' > s.sh; bash s.sh`, `eval "$x"`, `eval git '$x'`, `eval "$(cat q)"`, `trap "$x" EXIT`, `trap -- "$x" EXIT`, `trap 'git push' EXIT`,
	`tar --checkpoint-action=exec='git push' --checkpoint=1 -cf x .`, `tar --to-command='git push' -xf x`, `tar -I 'git push' -xf x`, `tar -cf x . --checkpoint-a="exec=git push"`, `tar $x`, `tar -I "$x" -xf y`,
	`find . -exec git push \;`, `find . -maxdepth 0 -exec sh -c 'git push' \;`, `find push -exec git {} \;`, `find git -exec {} push \;`, `find . $x`, `find . "$x" git push \;`, `fd -x git push`,
	`awk 'BEGIN{system("git push")}'`, `awk '{print | "git push"}' f`, `split --filter='git push' f`, `sort --compress-program='git push' f`, `rsync -e 'git push' a b:`, `go test -exec 'git push' ./...`,
	`xargs git < q`, `xargs -a q git`, `xargs $x`, `xargs -I% git % < q`, `env $x`, `env -S "$x"`, `env -S 'git push'`, `timeout 5 $x`, `timeout $x`, `nice "$x" push`, `command $x`, `exec $x`, `sudo $x`, `watch "$x"`,
	`hash -p /usr/bin/git g; g push`, `enable -f ./x.so x`, `$x`, `"$x" push`, `$x push`, `${x}git push`, `$(cat q)`, "`cat q`", `"$x" git push`, `"$x" -c 'git push'`, `b?sh q`, `SH=bash; $SH q`,
	`G=git; $G push`, `P=push; git $P`, `for c in status push; do git $c; done`, `for c in *; do git $c; done`, `x=; $x git push`, `x=git; (x=a); $x push`, `coproc bash`, `echo 'git push' | at now`, `crontab f`,
	`git-push`, `/usr/lib/git-core/git-push origin`, `$(git --exec-path)/git-push`, `"$(git --exec-path)"/git-push`, `/usr/lib/git-core/git-pus?`, `/usr/lib/git-core/g*push`,
	`parallel git ::: push`, `parallel git {} ::: push`, `parallel {} push ::: git`, `parallel ::: 'git push'`, `parallel < q`, `parallel git < q`, `eatmydata git push`, `uv run git push`, `poetry run git $x`,
	`sed '1e git push' f`, `git -c include.path=f log`, `git config include.path f`, `select c in push; do git $c; done`, `bash -c 'git "$@"' _ push`, `bash -c 'git $0' push`, `while read l; do $l; done < f`,
	`x='git push'; $x`, `x=git; y=push; $x $y`, `declare x=push; git $x`, `m[0]=push; git ${m[0]}`, `git ${x:+push}`, `IFS=/; x=git/push; $x`, `exec 3<<<'git push'; bash <&3`, `x='a[$(git push)]'; echo $((x))`,
	`[[ -v 'a[$(git push)]' ]]`, `BASH_CMDS[g]=/usr/bin/git; g push`, `BASH_ALIASES[g]=git; eval 'g push'`, `printf -v 'BASH_CMDS[g]' /usr/bin/git; g push`, `declare -n r=BASH_CMDS; r[g]=/usr/bin/git; g push`,
	`declare -i n; n='a[$(git push)]'`, `read 'BASH_ALIASES[g]' < f; g push`, `declare BASH_ENV=f; export BASH_ENV; make`,
	`ln -s /usr/bin/git g; ./g push`, `cp "$(command -v git)" g; ./g push`, "cp `which git` g",
	`if true; then git $x; fi`, `(git $x)`, `git $x &`, `true && git "$x"`, `echo $(git $x)`, `git push $x`, `ls; echo (`,
}

// plain are scripts that certainly push nothing, or whose program is one that
// no rule names.
var plain = []string{
	`git status`, `git log --oneline | head`, `ls *.go`, `for f in *.go; do gofmt -l $f; done`, `x=1; echo $x`, `go test ./... && git diff`,
	`find . -name '*.go' | xargs grep -n foo`, "cat <<EOF\nhello\nEOF", "cat > f <<'EOF'\ngit push\nEOF", `make test`, `echo "$x"`, `echo $HOME`, `ls "$dir"`, `cp a{,.bak}`,
	`git diff $x`, `git add *.go`, `git add -A && git commit -m "git push later"`, `git log "$x"`, `git checkout -b "$branch"`, `git -C "$dir" status`, `git -C sub log`, `git --version`, `git`,
	`git -c color.ui=never log`, `git config user.name "$name"`, `git config --get remote.origin.url`, `git rebase main`, `git submodule update --init`, `git fetch origin`, `git stash push`,
	`d=sub; git -C $d status`, `d=sub; find $d -name x`, `GIT=git; $GIT status`, `for c in status log; do git $c; done`, `PY=python3; $PY x.py`, `for f in *.txt; do wc -l "$f"; done`, `find . -name *.go`, `find "$d" -type f`,
	`find . -name '*.go' -exec gofmt -l {} +`, `find . -type f -print0 | xargs -0 sed -i s/a/b/`, `ls | xargs -I{} mv {} {}.bak`, `xargs rm < q`, `seq 3 | while read n; do echo $n; done`, `x=$(date); echo "$x"`, `n=$(wc -l < f); echo $n`,
	`cd sub && ./build.sh`, `./run.sh "$x"`, `python x.py "$x"`, `python - <<'E'` + "\nprint(1)\nE", `bash -c 'ls'`, `bash -c "go vet ./..."`, "bash <<'E'\nls\nE", `bash <<< "ls"`, `bash --version`, `d=sub; bash -c "ls $d"`,
	`if [ -f x ]; then echo y; fi`, `f() { echo "$1"; }; f x`, `set -e; set -o pipefail; go build ./...`, `export CI=1; go test ./...`, `ENV=test npm test`, `NODE_ENV=production npm run build`, `PATH=$PATH:/x go test`,
	`PAGER=cat git log`, `GIT_PAGER=cat git log`, `GIT_CONFIG_GLOBAL=/dev/null git log`, `GIT_EDITOR=true git rebase --continue`, `trap 'rm -r x' EXIT`, `trap - EXIT`, `eval "ls -l"`, `mapfile -t a < f`, `read -r a b < f`,
	`printf '%s\n' "$x"`, `command -v "$x"`, `command -v gofmt`, `timeout 60 go test ./...`, `env CI=1 go test`, `tar czf x.tgz src`, `tar xzf "$f"`, `awk '{print $1}' f`, `awk -F'|' '{print "a"}' f`, `sed -n 1,5p f`, `sort -u f | uniq -c`,
	`ln -s ../git git`, `cp /usr/bin/make m`, `cp docs/git x`, `mv "$x" y`, `cp "$(cat f)" y`, `parallel gofmt -l ::: *.go`, `poetry run pytest "$x"`, `uv run x.py $y`, `sed -i 's/see git push/x/' f`, `sed -i "s/a/$x/" f`, `git-lfs ls`, `git config --list`, `jobs`, `wait $!`, `kill "$pid"`, `fc -l`, `compgen -A function`, `grep -rn "git push" .`, `echo "git push"`, `rg --pre-glob x y`, `go run . -- "$x"`, `npm test`, `docker ps`, `"$D/bin/tool" x`, `test -n "$x" && echo y`, `[[ $a == b ]] && ls`,
	`echo $((1+2))`, `i=0; while [ $i -lt 3 ]; do i=$((i+1)); done`, `case $x in a) ls;; esac`, `diff <(ls a) <(ls b)`, `cat ~/x`, `ls | sort > out.txt`, `sleep 1 & wait`, `(cd sub && make)`, `true`, `# comment`,
}

// What a deny rule names is refused when the command cannot be read, whatever
// is allowed otherwise; what certainly is something else is not.
func TestHiddenCommandsMeetTheRulesThatCouldNameThem(t *testing.T) {
	flagged := func(change func(*Sources)) *Policy {
		s := Sources{Deny: []string{"exec:git push"}, Roots: Roots{Workspace: "/w", Writable: []string{"/w"}, Home: "/home/u"}}
		change(&s)
		p, err := Load(s)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	for name, p := range map[string]*Policy{
		"workspace": flagged(func(*Sources) {}),
		"yolo":      flagged(func(s *Sources) { s.Yolo = true }),
		"default deny": load(t, `
version: 1
default: deny
shell: {opaque: allow}
rules:
  - {id: all, effect: allow, argv: ["*"]}
  - {id: paths, effect: allow, path: ["**"]}
  - {id: home, effect: allow, path: ["/**"], access: [read]}
  - {id: no-push, effect: deny, argv: [git, push]}
`),
	} {
		t.Run(name, func(t *testing.T) {
			for _, c := range hidden {
				if v := p.Decide(run(c)); v.Effect != Deny || v.RuleID == "" {
					t.Errorf("hidden %q: got %s by %s %q (%s)", c, v.Effect, v.DecidedBy, v.RuleID, v.Reason)
				}
			}
			for _, c := range plain {
				if v := p.Decide(run(c)); v.Effect == Deny {
					t.Errorf("plain %q: got %s by %s %q (%s)", c, v.Effect, v.DecidedBy, v.RuleID, v.Reason)
				}
			}
		})
	}
	asks := load(t, "version: 1\ndefault: allow\nshell: {opaque: allow}\nrules: [{id: push, effect: ask, argv: [git, push]}]")
	for _, c := range hidden {
		if v := asks.Decide(run(c)); v.Effect == Allow {
			t.Errorf("hidden %q is not asked for", c)
		}
	}
}

// Without a rule that could be meant, what cannot be read is decided as before.
func TestHiddenCommandsAreFreeWithoutARule(t *testing.T) {
	p, err := Load(Sources{Roots: Roots{Workspace: "/w", Writable: []string{"/w"}, Home: "/home/u"}})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range append(hidden, plain...) {
		if v := p.Decide(run(c)); v.Effect == Deny && v.RuleID == "" && v.DecidedBy != bySandbox {
			t.Errorf("%q: got %s (%s)", c, v.Effect, v.Reason)
		}
	}
	p = load(t, "version: 1\ndefault: allow\nrules: [{id: d, effect: deny, argv: [rm]}, {id: script, effect: allow, argv: [bash, build.sh]}]")
	checkCommands(t, p, []judged{
		{`git $x`, Deny}, {`git log $x`, Allow}, {`git "$x"`, Allow}, {`git q`, Allow}, {`rm* x`, Deny}, {`l* x`, Allow}, {`"$x"`, Deny}, {`bash build.sh`, Allow}, {`bash other.sh`, Deny},
		{`bash ./other.sh; bash build.sh`, Deny},
	})
	v := p.Decide(run(`bash other.sh`))
	if want := `"bash other.sh" cannot be read (the script of the shell is not read), and rule "d" may apply`; v.Reason != want {
		t.Errorf("reason: got %q, want %q", v.Reason, want)
	}
}
