#!/usr/bin/env bash
. "$(dirname "$0")/../lib.sh"
check 08 "eight calls at a time: each has its own output, in the order of their start"
start "$(film eight)" 80 40
sample 20
over
for f in "$D"/samples/*; do
	awk '/exec_command.*task [0-9]/ {match($0, /task [0-9]/); id=substr($0, RSTART+5, 1); if (id < last) {print "order " id " after " last}; last=id} /^ │ out-/ {if ($2 != "out-" id) print $2 " below " id}' "$f"
done | sort -u >"$D/wrong"
[ -s "$D/wrong" ] && fail "$(head -n 3 "$D/wrong")"
saw "$(ls "$D/samples" | wc -l) samples"
for i in 1 2 3 4 5 6 7 8; do once "task $i "; [ "$(hist | grep -c "^┃ out-$i")" -eq 5 ] || fail "task $i has not its own 5 rows"; done
order 'task 1 ' 'task 2 ' 'task 3 ' 'task 4 ' 'task 5 ' 'task 6 ' 'task 7 ' 'task 8 '
clean
verdict
