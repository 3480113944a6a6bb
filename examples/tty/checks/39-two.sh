#!/usr/bin/env bash
. "$(dirname "$0")/../lib.sh"
check 39 "two questions at once come one after the other"
start "$(script "$(runs 'touch asked' 'git push origin HEAD' 'sleep 4')" '{"text":"Done."}') --policy $D/ask.yaml go" 80 30
until_screen '(1 of 2)' 15
screen | grep -q '(2 of 2)' && fail 'both at a time'
type_ y Enter
until_screen '(2 of 2)' 15
type_ n Enter
until_screen '▸ exec_command  sleep 4' 10 && saw 'the third call is back'
over
order '(1 of 2)' '(2 of 2)'
[ -e "$D/work/asked" ] || fail 'the first answer was lost'
clean
verdict
