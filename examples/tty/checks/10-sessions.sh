#!/usr/bin/env bash
. "$(dirname "$0")/../lib.sh"
check 10 "two sessions at a time: each in order, no frame split by the other"
start "$(film agents '--show agents')"
over
order 'left 0 ' 'left 1 ' 'left 2 ' 'left 3 ' 'left 4 '
order 'right 0 ' 'right 1 ' 'right 2 ' 'right 3 ' 'right 4 '
hist | awk '/exec_command/ {match($0, /(left|right) [0-9]/); id=substr($0, RSTART, RLENGTH)} /^┃ of / {if ($3 " " $4 != id) {print $3 " " $4 " below " id; bad=1}} END {exit bad}' && saw 'each tail is below its header' || fail 'frames are split'
clean
verdict
