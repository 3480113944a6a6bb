#!/usr/bin/env bash
. "$(dirname "$0")/../lib.sh"
check 40 "where stdin is a pipe, the terminal is read and the pipe is not"
start "(echo y; echo rest) | ($(script "$(runs 'touch asked')" '{"text":"Done."}') --policy $D/ask.yaml go; cat >$D/left)"
until_screen '[N]o:' 15
sleep 0.5
[ -e "$D/work/asked" ] && fail 'the pipe has answered'
type_ y Enter
over
[ -e "$D/work/asked" ] || fail 'the answer of the terminal was lost'
[ "$(cat "$D/left" | tr '\n' ' ')" = 'y rest ' ] && saw 'the pipe is untouched' || fail "the pipe holds '$(cat "$D/left")'"
clean
verdict
