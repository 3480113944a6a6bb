#!/usr/bin/env bash
. "$(dirname "$0")/../lib.sh"
check 22 "sixty random sizes: nothing stays behind"
start "$(film busy)"
sleep 1
RANDOM=${SEED:-$$}
for _ in $(seq 60); do resize $((30 + RANDOM % 91)) $((5 + RANDOM % 31)); sleep 0.03; done
resize 100 30
over
for i in $(seq -f %02g 1 40); do [ "$(count "COMMIT$i")" -eq 1 ] || fail "COMMIT$i is there $(count "COMMIT$i") times"; done
[ "$failures" -eq 0 ] || hist | tail -n +41 | head -n 60
clean ${STALE:-0}
verdict
