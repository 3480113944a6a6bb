#!/usr/bin/env bash
. "$(dirname "$0")/../lib.sh"
check 20 "height steps 24, 18, 12, 40, 24: nothing stays behind"
start "$(film busy)"
sleep 2
for h in 18 12 40 24; do resize 80 $h; sleep 0.7; done
over
for i in $(seq -f %02g 1 40); do [ "$(count "COMMIT$i")" -eq 1 ] || fail "COMMIT$i is there $(count "COMMIT$i") times"; done
clean
verdict
