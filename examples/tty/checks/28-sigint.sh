#!/usr/bin/env bash
. "$(dirname "$0")/../lib.sh"
check 28 "an interrupt of five calls: exit 130, five frames, and a fresh line"
shell
cmd=$(script "$(runs 'sleep 60; echo 1' 'sleep 60; echo 2' 'sleep 60; echo 3' 'sleep 60; echo 4' 'sleep 60; echo 5')" '{"text":"late"}')
type_ "clear; $cmd --yolo go; echo rc=\$?" Enter
until_screen '5 running' 15
type_ C-c
until_screen 'rc=130' 20
sleep 0.5
screen | grep . | sed 's/^/   /'
[ "$(hist | grep -cE '^(-|!|✗|✓) exec_command')" -eq 5 ] || fail "$(hist | grep -cE '^(-|!|✗|✓) exec_command') frames"
hist | grep -q '^rc=130' || fail 'no fresh line'
[ "$(stale)" -eq 0 ] || fail 'the region is still there'
verdict
