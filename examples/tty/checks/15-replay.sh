#!/usr/bin/env bash
. "$(dirname "$0")/../lib.sh"
check 15 "a log that is rendered has no region"
"$LOGS" loud >"$D/loud.jsonl"
start "$DROVER events render $D/loud.jsonl; sleep 1; $DROVER events render $D/loud.jsonl"
sample 10 0.05
over
grep -lE "$live" "$D"/samples/* && fail 'something live was seen'
[ "$(count '✗ exec_command')" -eq 2 ] || fail 'not two frames'
saw "$(ls "$D/samples" | wc -l) samples without anything live"
clean
verdict
