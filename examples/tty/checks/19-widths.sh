#!/usr/bin/env bash
. "$(dirname "$0")/../lib.sh"
check 19 "width steps 80, 60, 40, 70, 120, 80: nothing stays behind"
start "$(film busy)"
sleep 2
for w in 60 40 70 120 80; do resize $w 24; sleep 0.7; done
over
for i in $(seq -f %02g 1 40); do [ "$(count "COMMIT$i")" -eq 1 ] || fail "COMMIT$i is there $(count "COMMIT$i") times"; done
clean
verdict
