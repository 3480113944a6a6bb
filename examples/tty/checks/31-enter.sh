#!/usr/bin/env bash
. "$(dirname "$0")/../lib.sh"
check 31 "three presses of Enter leave three rows at most"
start "$(film busy)"
for i in 1 2 3; do sleep 2; type_ Enter; done
over
for i in $(seq -f %02g 1 40); do [ "$(hist | grep -cE "^✓ .*COMMIT$i")" -eq 1 ] || fail "COMMIT$i is there $(count "COMMIT$i") times"; done
saw "$(stale) rows"
clean 3
verdict
