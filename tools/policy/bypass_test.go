package policy

import "testing"

// judged is one command and what must become of it.
type judged struct {
	command string
	want    Effect
}

func checkCommands(t *testing.T, p *Policy, cases []judged) {
	t.Helper()
	for _, c := range cases {
		if v := p.Decide(run(c.command)); v.Effect != c.want {
			t.Errorf("%q: got %s by %s %q (%s), want %s", c.command, v.Effect, v.DecidedBy, v.RuleID, v.Reason, c.want)
		}
	}
}

// A deny rule holds in every spelling that can be seen without running the
// command, under a policy that allows everything else.
func TestDeniedCommandInAnySpelling(t *testing.T) {
	p := load(t, `
version: 1
default: allow
rules:
  - {id: no-rm, effect: deny, argv: [rm]}
  - {id: no-push, effect: deny, argv: [git, push], argv_any: ["--force*", "-f", "+*"]}
  - {id: no-curl, effect: deny, argv: [/usr/bin/curl]}
  - {id: no-chmod, effect: deny, argv: [chmod, -Rf]}
  - {id: asks, effect: ask, argv: [docker, run]}
`)
	var cases []judged
	for _, c := range []string{
		`rm x`, `rm`, `/bin/rm x`, `./rm x`, `../../bin/rm x`, `\rm x`, `'rm' x`, `r""m x`, `"r"'m' x`, `$'rm' x`, `$'\x72m' x`,
		`$'\162m' x`, `r\
m x`, `command rm x`, `builtin command rm x`, `exec rm x`, `exec -a ls rm x`, `env rm x`, `env -i A=1 rm x`, `/usr/bin/env rm x`,
		`env -u A rm x`, `env -S 'rm x'`, `timeout 5 rm x`, `timeout -k 1 5s rm x`, `timeout --signal=KILL 5 rm x`, `nice rm x`,
		`nice -n 5 rm x`, `nice -5 rm x`, `nohup rm x &`, `time rm x`, `time -p rm x`, `/usr/bin/time -f %e rm x`, `stdbuf -oL rm x`, `setsid -w rm x`,
		`ionice -c 3 rm x`, `sudo rm x`, `sudo -u root rm x`, `sudo -n env A=1 rm x`, `doas rm x`, `xargs rm`, `ls | xargs rm`,
		`ls | xargs -n 1 -P4 rm`, `ls | xargs -I{} rm {}`, `ls | xargs -I{} sh -c 'rm {}'`, `ls | xargs -0 -- rm`, `find . -exec rm {} \;`,
		`find . -type f -execdir rm {} +`, `find . -ok rm {} \;`, `busybox rm x`, `toybox rm x`, `flock /tmp/l rm x`,
		`flock -n /tmp/l -c 'rm x'`, `watch -n 1 rm x`, `script -c 'rm x' /dev/null`, `su -c 'rm x'`, `unshare -r rm x`, `strace -f rm x`, `chroot / rm x`,
		`sh -c 'rm x'`, `bash -lc 'rm x'`, `bash -euxo pipefail -c 'rm x'`, `bash -c -e 'rm x'`, `bash --norc -c 'rm x'`, `/bin/sh -c "rm x"`,
		`sh -c "sh -c 'rm x'"`, `sh -c 'eval "rm x"'`, `eval rm x`, `eval "rm x"`, `eval 'r''m x'`, `true && rm x`, `true; rm x`,
		`false || rm x`, `ls | rm x`, `rm x &`, "true\nrm x", `(rm x)`, `{ rm x; }`, `! rm x`, `if rm x; then true; fi`,
		`if true; then rm x; fi`, `if false; then :; elif rm x; then :; else :; fi`, `while rm x; do :; done`, `until false; do rm x; done`,
		`for i in 1; do rm $i; done`, `for ((i=0;i<1;i++)); do rm x; done`, `case a in a) rm x;; esac`, `select i in a; do rm x; done`,
		`f() { rm x; }; f`, `function f { rm x; }; f`, `f() { "$@"; }; f rm x`, `coproc rm x`, `echo $(rm x)`, "echo `rm x`",
		`echo "$(rm x)"`, `cat <(rm x)`, `cat >(rm x)`, `echo ${a:-$(rm x)}`, `echo $(( $(rm x) ))`, `[[ -n $(rm x) ]]`,
		`a=$(rm x)`, `a=($(rm x))`, `export A=$(rm x)`, `local a=$(rm x)`, `cat <<EOF
$(rm x)
EOF`, `cat <<< "$(rm x)"`, `echo > "$(rm x)"`, `trap 'rm x' EXIT`, `alias ls='rm x'`, `a=rm; $a x`, `a=rm; "$a" x`, `a=r; b=m; $a$b x`,
		`a=(rm x); "${a[@]}"`, `a="rm x"; $a`, `rm${IFS}x`, `{rm,x}`, `r{m,} x`, `$(echo rm) x`, `$(printf rm) x`, `$(printf '\x72m') x`,
		`$(which rm) x`, `$(command -v rm) x`, `${x:-rm} x`, `${x-rm} x`, `r$@m x`, `r${x}m x`, `/bin/r? x`, `/???/rm x`, `=rm x`,
		`a=rm; eval "$a x"`, `a=rm; sh -c "$a x"`, `sh -c '"$@"' _ rm x`, `sh -c '$0 x' rm`, `sh <<EOF
rm x
EOF`, `bash <<< "rm x"`, `bash -s <<'EOF'
rm x
EOF`, `echo rm x | sh`, `echo 'rm x' | bash -s`, `printf 'rm x\n' | sh`, `cat <<EOF | sh
rm x
EOF`, `for c in ls rm; do $c x; done`, `A=1 rm x`, `A=1 B=2 rm x`, `>f rm x`, `<f rm x`, `2>/dev/null rm x`, `rm x 2>/dev/null`, `rm x #`,
		`rm x; (`, `rm x; '`, `if rm x`, `echo "$(` + "`" + `rm x` + "`" + `)"`, `parallel rm ::: x`, `fd -x rm`, `fish -c 'rm x'`, `git bisect run rm x`, `IFS=,; a=rm,x; $a`, `set -- rm x; "$@"`, `set rm x; $1 $2`, `a=xrm; ${a#x} y`, `a=rmx; ${a%x} y`, `a=xrm; ${a:1} y`,
		`a=rmx; ${a:0:2} y`, `a=xm; ${a/x/r} y`, `git -c alias.x='!rm x' x`, `git -c core.pager='rm x' log`, `. <(echo rm x)`, `bash <(echo rm x)`, `sh < <(echo rm x)`,
		`yes rm x | sh`, `time -- rm x`, `PROMPT_COMMAND='rm x' bash -i`, `GIT_SSH_COMMAND='rm x' git fetch`, `echo cm0geA== | base64 -d | sh`, `bash -c "$(cat <<'E'
rm x
E
)"`, `ld.so /bin/rm x`,
		`source <(rm x)`, `test -n "$(rm x)"`, `echo a{b,$(rm x)}`, `x[$(rm x)]=1`, `: ${x:=$(rm x)}`, `exec 3< <(rm x)`,
		`git push --force`, `git push -f`, `git push origin main --force-with-lease`, `git push origin +main`, `git push --forc`, `git -C sub push -f`,
		`git -c a.b=c push -f`, `git --git-dir=.git push -f`, `git --git-dir .git push -f`, `git --no-pager push --force`, `GIT_DIR=x git push -f`,
		`/usr/bin/git push -f`, `cd sub && git push -f`, `a=--force; git push $a`, `git push "--force"`, `git push origin main -f`,
		`curl x`, `/usr/bin/curl x`, `timeout 5 curl x`, `chmod -Rf 0 .`, `chmod -fR 0 .`, `chmod -R -f 0 .`, `chmod -R 0 . -f`,
	} {
		cases = append(cases, judged{c, Deny})
	}
	checkCommands(t, p, cases)
	checkCommands(t, p, []judged{
		{`docker run x`, Ask}, {`sudo docker run x`, Ask}, {`docker --debug run x`, Ask}, {`sh -c 'docker run x'`, Ask}, {`echo $(docker run x)`, Ask},
		{`docker ps`, Allow}, {`ls`, Allow}, {`echo rm x`, Allow}, {`echo "rm x"`, Allow}, {`grep rm x`, Allow}, {`rmdir x`, Allow}, {`git rm x`, Allow},
		{`git push`, Allow}, {`git push origin main`, Allow}, {`git log -f`, Allow}, {`git log push --force`, Allow}, {`chmod -R 0 .`, Allow}, {`echo a | sort`, Allow},
		{`cat > doc.md <<'EOF'
rm -rf /
$(rm x)
EOF`, Allow}, {`printf '%s' 'rm x' > f`, Allow}, {`ls # rm x`, Allow}, {`echo "a; rm x"`, Allow}, {`timeout 5 echo rm`, Allow}, {`find . -name rm`, Allow},
		{`echo '$(rm x)'`, Allow}, {`x=rm`, Allow}, {`rg rm src`, Allow}, {`python x.py rm x`, Allow}, {`go test -run rm ./...`, Allow},
		{`npm run build`, Allow}, {`make rm`, Allow}, {`for f in *.go; do gofmt "$f"; done`, Allow}, {`[ -f x ] && echo y || echo n`, Allow}, {`curlx x`, Allow},
	})
}
