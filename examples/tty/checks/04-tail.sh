#!/usr/bin/env bash
. "$(dirname "$0")/../lib.sh"
check 04 "of 300 lines at most 5 are live, 5 stay after a failure and none after a success"
start "$(film loud)"
sample 20
over
most=0
for f in "$D"/samples/*; do n=$(grep -c '^ │ ' "$f"); [ "$n" -gt "$most" ] && most=$n; done
saw "$most rows of the tail at a time"
[ "$most" -le 5 ] && [ "$most" -ge 3 ] || fail "$most rows of the tail"
[ "$(hist | grep -c '^┃ line ')" -eq 5 ] || fail "not 5 rows stay"
once '┃ … 295 earlier lines' '✗ exec_command'
clean
stop; D=$(mktemp -d); S=$S-b
start "$(film quiet)"
over
[ "$(hist | grep -c 'line ')" -eq 0 ] || fail 'rows of a success stay'
once '✓ exec_command'
clean
verdict
