#!/usr/bin/env bash
. "$(dirname "$0")/../lib.sh"
check 27 "killed at any moment, the terminal is as it was"
RANDOM=${SEED:-$$}
for i in $(seq 10); do
	start "$(film busy)" 80 24
	until_screen '▸' 10
	sleep "0.$((RANDOM % 10))$((RANDOM % 10))"
	pkill -9 -f "events render --play $D/busy.jsonl" || fail 'nothing to kill'
	over 10
	[ "$(t display-message -p -t a '#{cursor_flag}')" = 1 ] || fail "$i: the cursor is hidden"
	[ "$(t display-message -p -t a '#{wrap_flag}')" = 1 ] || fail "$i: wrapping is off"
	colours | grep "$END" | grep -qE "$(printf '\033')\[(1|2|3[1-6])m$END" && fail "$i: a colour is left on"
	t kill-server; S=$S-$i
done
saw 'ten kills'
screen() { :; }
verdict
