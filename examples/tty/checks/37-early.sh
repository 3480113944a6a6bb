#!/usr/bin/env bash
. "$(dirname "$0")/../lib.sh"
check 37 "an answer typed before the question is none; without another it is denied at its deadline"
start "$(script "$(runs 'sleep 2')" "$(runs 'touch asked')" '{"text":"Done."}') --policy $D/ask.yaml --approval-timeout 3s go"
until_screen '▸ exec_command  sleep 2' 15
type_ y Enter
until_screen '[N]o:' 15
over 20
has 'denied: no answer by '
[ -e "$D/work/asked" ] && fail 'it ran'
hist | grep -q '⊘ exec_command  touch asked' || fail 'no frame says that it was denied'
clean 1
verdict
