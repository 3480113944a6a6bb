#!/usr/bin/env bash
. "$(dirname "$0")/../lib.sh"
check 25 "families, flags, wide and combining characters move no row"
start "$(film wide)"
sample 20
over
bad=0
for f in "$D"/samples/*; do
	grep -q '▸ exec_command' "$f" || continue
	# The status row is directly below the tail, and there is one of it.
	[ "$(grep -c 'turn 1' "$f")" -eq 1 ] || bad=$((bad + 1))
	awk '/^ │/ {tail=NR} /turn 1/ {status=NR} END {exit tail && status != tail + 1}' "$f" || bad=$((bad + 1))
done
saw "$(ls "$D/samples" | wc -l) samples, $bad wrong"
[ "$bad" -eq 0 ] || fail 'a row has moved'
once '✗ exec_command'
clean
verdict
