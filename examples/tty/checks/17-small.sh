#!/usr/bin/env bash
. "$(dirname "$0")/../lib.sh"
check 17 "the same on 10 rows and on 5"
for rows in 10 5; do
	start "$(film forty)" 80 $rows
	sample 20
	over
	n=$(most_rows); saw "$rows rows: at most $n for the region"
	[ "$n" -le $((rows / 3)) ] || fail "$n rows of $rows"
	for i in $(seq 40); do [ "$(hist | grep -cE "task $i ")" -eq 1 ] || fail "task $i is not there once"; done
	clean
	t kill-server; rm -rf "$D/samples"; S=$S-b
done
screen() { :; }
verdict
