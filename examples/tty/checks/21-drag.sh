#!/usr/bin/env bash
. "$(dirname "$0")/../lib.sh"
check 21 "dragging the width, then height steps: nothing stays behind"
start "$(film busy)" 100 24
sleep 1
for w in $(seq 100 -2 40) $(seq 40 2 120) $(seq 120 -2 80); do resize $w 24; sleep 0.03; done
for h in 30 12 40; do resize 80 $h; sleep 0.3; done
over
for i in $(seq -f %02g 1 40); do [ "$(count "COMMIT$i")" -eq 1 ] || fail "COMMIT$i is there $(count "COMMIT$i") times"; done
clean
verdict
