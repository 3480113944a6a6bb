#!/usr/bin/env bash
. "$(dirname "$0")/../lib.sh"
check 29 "Ctrl-Z takes the region off, fg brings it back"
shell
cmd=$(script "$(runs 'sleep 6; echo late')" '{"text":"Done."}')
type_ "clear; $cmd --yolo go" Enter
until_screen '▸ exec_command' 15
type_ C-z
until_screen 'Stopped' 10
sleep 0.3
screen | grep -q '▸' && fail 'the region is still there'
type_ 'echo usable-$((40 + 2))' Enter
until_screen 'usable-42' 5
type_ fg Enter
until_screen '▸ exec_command' 10 && saw 'it is back'
until_screen '✓ success' 20
sleep 0.3
[ "$(stale)" -eq 0 ] || fail 'stale rows'
once '✓ exec_command'
verdict
