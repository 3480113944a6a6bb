#!/usr/bin/env bash
. "$(dirname "$0")/../lib.sh"
check 16 "forty calls on 24 rows: at most 8 rows, a row that counts the others, all of them in the end"
start "$(film forty)"
sample 20
over
n=$(most_rows); saw "at most $n rows"
[ "$n" -le 8 ] || fail "$n rows"
seen '^ … [0-9]+ more: ' && saw "$(cat "$D"/samples/* | grep -E '^ … ' | sort -u | head -n 2 | tr '\n' '|')" || fail 'no row counts the others'
cat "$D"/samples/* | grep -oE '… [0-9]+ more: .*' | sort -u | while read -r _ n _ rest; do
	sum=$(echo "$rest" | grep -oE '[0-9]+' | paste -sd+ | bc 2>/dev/null || echo "$rest" | grep -oE '[0-9]+' | awk '{s+=$1} END {print s}')
	[ "$sum" -eq "$n" ] || echo "$n is not $rest"
done >"$D/wrong"
[ -s "$D/wrong" ] && fail "$(cat "$D/wrong")"
for i in $(seq 40); do [ "$(hist | grep -cE "task $i ")" -eq 1 ] || fail "task $i is not there once"; done
clean
verdict
