#!/usr/bin/env bash
. "$(dirname "$0")/../lib.sh"
check 38 "y runs the call; n, nothing, nonsense and the end of input do not"
n=0
for answer in y n '' 'x Enter x' C-d; do
	n=$((n + 1))
	start "rm -f $D/work/asked; $(script "$(runs 'touch asked')" '{"text":"Done."}') --policy $D/ask.yaml go"
	until_screen '[N]o:' 15
	sleep 0.2
	case "$answer" in C-d) type_ C-d ;; *) type_ $answer Enter ;; esac
	over 20
	if [ "$answer" = y ]; then
		[ -e "$D/work/asked" ] || fail 'y did not run it'
		has '[N]o: y'
	elif [ -e "$D/work/asked" ]; then
		fail "'$answer' ran it"
	fi
	saw "'$answer': $(hist | grep -E '^(✓|⊘) exec_command' | cut -c1-70)"
	clean
	t kill-server; S=$S-$n
done
screen() { :; }
verdict
