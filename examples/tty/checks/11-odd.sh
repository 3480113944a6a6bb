#!/usr/bin/env bash
. "$(dirname "$0")/../lib.sh"
check 11 "results before calls, twice, of nobody; arguments after the end: one frame each"
start "$(film odd)"
over
hist | grep -E '^(✓|!|✗)' | sed 's/^/   /'
[ "$(hist | grep -cE '^✓ exec_command')" -eq 2 ] || fail 'not two frames of exec_command'
[ "$(hist | grep -cE '^! call')" -eq 1 ] || fail 'not one frame for the unknown call'
clean
verdict
