#!/usr/bin/env bash
. "$(dirname "$0")/../lib.sh"
check 13 "a log that is cut anywhere is rendered to its end"
"$LOGS" eight >"$D/whole.jsonl"
size=$(wc -c <"$D/whole.jsonl")
for i in $(seq 50); do
	head -c $((size * i / 51)) "$D/whole.jsonl" >"$D/cut.jsonl"
	"$DROVER" events render "$D/cut.jsonl" >"$D/out" 2>"$D/err" || fail "cut $i ends with $?: $(cat "$D/err")"
	grep -q '▸ exec' "$D/out" && fail "cut $i leaves something live"
	[ "$i" -lt 5 ] || grep -q '^!' "$D/out" || [ "$i" -gt 48 ] || fail "cut $i has no incomplete frame"
done
saw '50 cuts'
screen() { :; }
verdict
